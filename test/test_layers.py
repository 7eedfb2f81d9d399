# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Imports between modules; `make lint` checks the order of layers in pyproject.toml."""

from __future__ import annotations

import ast
import graphlib
import importlib
import importlib.util
from pathlib import Path

import conftest
import grimp
import pytest

ROOTS = ('sim_sensors', 'sim2real_eval')


@pytest.fixture(scope='module')
def graph() -> grimp.ImportGraph:
    """All imports, including those in functions and under TYPE_CHECKING."""
    return grimp.build_graph(*ROOTS, cache_dir=None)


def test_there_is_no_import_cycle(graph: grimp.ImportGraph) -> None:
    assert len(graph.modules) > 100
    imported = {
        module: graph.find_modules_directly_imported_by(module) for module in graph.modules
    }
    graphlib.TopologicalSorter(imported).prepare()  # CycleError names the modules of a cycle


def test_no_module_imports_its_own_root_package(graph: grimp.ImportGraph) -> None:
    """The roots export names of all folders, so importing a root imports everything."""
    for root in ROOTS:
        assert not {
            module
            for module in graph.find_modules_that_directly_import(root)
            if module.split('.')[0] == root
        }


def test_scripts_import_only_existing_names(repository: Path) -> None:
    """No other test runs the benchmarks and drawings."""
    missing = []
    scripts = [*repository.glob('benchmarks/**/*.py'), *repository.glob('docs/images/*.py')]
    assert len(scripts) > 30
    for script in scripts:
        for node in ast.walk(ast.parse(script.read_text(encoding='utf-8'))):
            if isinstance(node, ast.ImportFrom) and (node.module or '').split('.')[0] in ROOTS:
                missing += [
                    f'{script.name}: {node.module}.{alias.name}'
                    for alias in node.names
                    if not _exists(str(node.module), alias.name)
                ]
    assert missing == []


def constants_bound_twice(source: str) -> list[str]:
    """Return constants that a module binds again, including those in tuples."""
    bound: set[str] = set()
    again = []
    for statement in ast.parse(source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                again += [node.id] if node.id in bound and node.id.isupper() else []
                bound.add(node.id)
    return again


def test_no_module_binds_a_constant_twice(repository: Path) -> None:
    """The second value would also hold for the functions above it; no linter has this rule."""
    assert constants_bound_twice('_A, _B = 1, 2\ndef f(): return _B\n_B: int = 3') == ['_B']
    folders = (*ROOTS, 'test', 'benchmarks', 'docs', 'launch', 'examples')
    scripts = [path for folder in folders for path in repository.glob(f'{folder}/**/*.py')]
    assert len(scripts) > 500
    twice = {path: constants_bound_twice(path.read_text(encoding='utf-8')) for path in scripts}
    assert {str(path): names for path, names in twice.items() if names} == {}


def test_files_that_the_suite_runs_first_exist(repository: Path) -> None:
    """A renamed file would silently lose its place in the order."""
    names = [*conftest._COMPILING, *conftest._MEANWHILE, *conftest._WAITING]
    assert [name for name in names if not (repository / 'test' / f'{name}.py').is_file()] == []


def _exists(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(
            importlib.util.find_spec(f'{module}.{name}')
        )
    except ModuleNotFoundError as error:
        # ROS and extras may be absent.
        return str(error.name).split('.')[0] not in ROOTS


# Calls that open an input, build a pattern of file names or write JSON, by name of the function.
_AT_THE_DOOR = {
    'inputs': {'open', 'read_text', 'read_bytes', 'json.load', 'np.load', 'np.loadtxt'},
    'patterns': {'glob.glob', 'glob.iglob'},
    'JSON': {'json.dump', 'json.dumps'},
    'figures': {'Figure', 'plt.figure', 'plt.subplots', 'savefig', 'print_png'},
}
# Modules that may call them, each with its reason.
_DOORS = {
    'inputs': {
        'sim_sensors/core/input_files.py': 'the door',
        'sim_sensors/core/compilation.py': 'sources of this package and its own cache',
        'sim_sensors/following/network.py': 'weights in this package',
        'sim2real_eval/common/new_files.py': 'writes',
        'sim2real_eval/characterization/signal_files.py': 'NumPy reads it after `check_input`',
        'sim2real_eval/study/run_store.py': 'NumPy reads what `open_input` opened',
        'sim2real_eval/study/search/engine.py': 'appends to its own file',
        'sim2real_eval/recording/rosbag.py': 'rosbags reads it after `check_inputs`',
        'sim2real_eval/recording/storage.py': 'zstandard reads it after `check_inputs`; writes',
        'sim2real_eval/cli/main.py': 'os.devnull',
    },
    'patterns': {
        'sim_sensors/core/input_files.py': 'the door',
        'sim2real_eval/common/new_files.py': 'the name is escaped',
    },
    'JSON': {
        'sim2real_eval/common/results.py': 'the door',
        'sim2real_eval/study/search/engine.py': 'lines that only it reads',
        'sim2real_eval/study/record.py': 'a digest',
        'sim2real_eval/common/file_list.py': 'a list that only it reads',
        'sim2real_eval/common/new_files.py': 'a note that only it reads',
        'sim2real_eval/study/run.py': 'a key for equal findings',
        'sim2real_eval/study/folder.py': 'turns tuples into lists',
        'sim2real_eval/study/verification.py': 'turns tuples into lists; compares',
        'sim2real_eval/cli/demo.py': 'turns tuples into lists',
        'sim2real_eval/exporting/gps_simulators.py': 'a text in the format of a simulator',
        'sim2real_eval/exporting/text_simulators.py': 'a text in the format of a simulator',
        'sim2real_eval/ros/judge_node.py': 'an answer of a service',
        'sim2real_eval/ros/evaluation/run.py': 'an answer of a service',
        'sim_sensors/ros/sensor_node.py': 'an answer of a service',
        'sim_sensors/ros/trajectory_node.py': 'a line for its launch file',
        'launch/evaluate.launch.py': 'a parameter of a node',
    },
    'figures': {'sim2real_eval/report/style.py': 'the door: draws names as they stand'},
}


def calls_at_the_door(source: str) -> set[str]:
    """Return the kinds of calls of `_AT_THE_DOOR` in a module; Path.glob takes constants only."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition('.')[2]
        found |= {kind for kind, names in _AT_THE_DOOR.items() if {name, last} & names}
        if last in ('glob', 'rglob') and not isinstance(node.args[0], ast.Constant):
            found.add('patterns')
    return found


def test_inputs_patterns_json_and_figures_have_one_door(repository: Path) -> None:
    """Elsewhere a pipe would be waited for, and a name from data would be markup."""
    assert calls_at_the_door('p.open(); glob.glob(x); json.dumps(y); Figure()') == {*_AT_THE_DOOR}
    assert calls_at_the_door("p.glob('*.csv')") == set()
    paths = [
        path
        for folder in (*ROOTS, 'launch', 'gazebo_ws_plugins')
        for path in repository.glob(f'{folder}/**/*.py')
    ]
    assert len(paths) > 300
    for kind, doors in _DOORS.items():
        callers = {
            str(path.relative_to(repository))
            for path in paths
            if kind in calls_at_the_door(path.read_text(encoding='utf-8'))
        }
        assert callers - {*doors} == set(), kind
