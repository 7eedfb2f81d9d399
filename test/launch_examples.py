# SPDX-License-Identifier: Apache-2.0
"""What launch files say, read without ROS; and what they do, with it."""

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
    """Names in the order of their declaration."""
    found: list[str] = []
    for call in calls(tree(file), 'declare'):
        found += [ast.literal_eval(word) for word in call.args]
        found += [word.arg for word in call.keywords if word.arg]
    return found


def mentioned(file: str) -> set[str]:
    """Texts that are not just names in a declaration."""
    module = tree(file)
    declarations = {id(word) for call in calls(module, 'declare') for word in call.args}
    return {
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in declarations
    }


def used(file: str) -> set[str]:
    """Arguments that are named where their values are taken."""
    takers = calls(tree(file), 'LaunchConfiguration', 'typed', 'boolean', 'value', 'words')
    return {
        call.args[0].value
        for call in takers
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    }


def executables(module: ast.Module) -> set[tuple[str, str]]:
    """Package and executable of every node."""
    found = set()
    for call in calls(module, 'node', 'Node'):
        package = keyword(call, 'package')
        name = call.args[0] if call.args else keyword(call, 'executable')
        if isinstance(name, ast.Constant):
            owner = package.value if isinstance(package, ast.Constant) else 'sim2real_sensors'
            found.add((owner, name.value))
    return found


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
        """Those of a process that is one node."""
        return {key: value for node in self.parameters.values() for key, value in node.items()}


def description(file: str) -> Any:
    """The launch description, as `ros2 launch` makes it."""
    spec = importlib.util.spec_from_file_location(file.partition('.')[0], FILES[file])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def started(file: str, *, found: list[Started] | None = None, **arguments: str) -> list[Started]:
    """What a launch file starts at once, with everything but the starting done for real.

    `found` has what was started up to an error.
    """
    from launch import LaunchContext

    context = LaunchContext()
    context.launch_configurations.update(arguments)
    found = [] if found is None else found
    _visit(description(file), context, found)
    return found


def _visit(entity: Any, context: Any, found: list[Started]) -> None:
    from launch.actions import ExecuteProcess
    from launch.utilities import perform_substitutions
    from launch_ros.actions import Node

    if not isinstance(entity, ExecuteProcess):
        for inner in entity.visit(context) or []:
            _visit(inner, context, found)
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
    found.append(Started(package, executable, words, parameters))
