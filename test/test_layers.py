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
