# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Content of the launch files without ROS, and their processes with ROS."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import itertools
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILES = {path.name: path for path in sorted((ROOT / 'launch').glob('*.launch.py'))}


def tree(file: str) -> ast.Module:
    return ast.parse(FILES[file].read_text(encoding='utf-8'))


def calls(module: ast.Module, *names: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def declared(file: str) -> list[str]:
    names: list[str] = []
    for call in calls(tree(file), 'declare'):
        names += [ast.literal_eval(word) for word in call.args]
        names += [word.arg for word in call.keywords if word.arg]
    return names


def executables(module: ast.Module) -> set[tuple[str, str]]:
    """Package and executable of every node."""
    nodes = set()
    for call in calls(module, 'node', 'Node'):
        package = keyword(call, 'package')
        name = call.args[0] if call.args else keyword(call, 'executable')
        if isinstance(name, ast.Constant):
            owner = package.value if isinstance(package, ast.Constant) else 'sim2real_sensors'
            nodes.add((owner, name.value))
    return nodes


@dataclasses.dataclass
class Started:
    """One process that a launch file would start."""

    package: str | None
    executable: str | None
    words: list[str]
    parameters: dict[str, Any]
    """By node, as parameter files have them; later files win."""

    @property
    def own(self) -> dict[str, Any]:
        """Parameters of a process with one node."""
        return {key: value for node in self.parameters.values() for key, value in node.items()}


def description(file: str) -> Any:
    """The launch description, as `ros2 launch` makes it."""
    spec = importlib.util.spec_from_file_location(file.partition('.')[0], FILES[file])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def started(file: str, *, into: list[Started] | None = None, **arguments: str) -> list[Started]:
    """Return the processes that a launch file would start, up to an error in `into`."""
    from launch import LaunchContext

    context = LaunchContext()
    context.launch_configurations.update(arguments)
    processes = [] if into is None else into
    _visit(description(file), context, processes)
    return processes


def _visit(entity: Any, context: Any, processes: list[Started]) -> None:
    from launch.actions import ExecuteProcess
    from launch.utilities import perform_substitutions
    from launch_ros.actions import Node

    if not isinstance(entity, ExecuteProcess):
        for inner in entity.visit(context) or []:
            _visit(inner, context, processes)
        return
    if entity.condition is not None and not entity.condition.evaluate(context):
        return
    package = executable = None
    if isinstance(entity, Node):
        entity._perform_substitutions(context)
        package, executable = entity.node_package, entity.node_executable
        # What Node.execute adds right before it starts the process.
        name = f'__node:={entity.node_name}'
        space = f'__ns:={entity.expanded_node_namespace}'
        context.extend_locals({'ros_specific_arguments': {'name': name, 'ns': space}})
    # The first word looks the executable up; not everything is installed here.
    words = [perform_substitutions(context, part) for part in entity.cmd[1:]]
    parameters: dict[str, Any] = {}
    for flag, file in itertools.pairwise(words):
        if flag == '--params-file':
            for node, content in yaml.safe_load(Path(file).read_text(encoding='utf-8')).items():
                parameters.setdefault(node, {}).update(content['ros__parameters'])
    processes.append(Started(package, executable, words, parameters))
