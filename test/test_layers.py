# SPDX-License-Identifier: Apache-2.0
"""The folders of both packages import one way; `make lint` holds the order in pyproject.toml."""

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
    """Every import, within functions and for types alone, too."""
    return grimp.build_graph(*ROOTS, cache_dir=None)


def test_no_module_imports_itself_by_way_of_others(graph: grimp.ImportGraph) -> None:
    assert len(graph.modules) > 100
    imported = {
        module: graph.find_modules_directly_imported_by(module) for module in graph.modules
    }
    graphlib.TopologicalSorter(imported).prepare()  # CycleError names the modules of a cycle


def test_only_what_starts_a_program_imports_the_roots(graph: grimp.ImportGraph) -> None:
    """The roots show names of all folders, so that a folder that imports one imports them all."""
    for root in ROOTS:
        assert not {
            module
            for module in graph.find_modules_that_directly_import(root)
            if module.split('.')[0] == root
        }


def test_scripts_beside_the_packages_import_what_is_there(repository: Path) -> None:
    """Benchmarks and drawings that no other test runs would be found broken by who needs them."""
    missing = []
    scripts = [*repository.glob('benchmarks/*.py'), *repository.glob('docs/images/*.py')]
    assert len(scripts) > 30
    for script in scripts:
        for node in ast.walk(ast.parse(script.read_text(encoding='utf-8'))):
            if isinstance(node, ast.ImportFrom) and (node.module or '').split('.')[0] in ROOTS:
                missing += [
                    f'{script.name}: {node.module}.{alias.name}'
                    for alias in node.names
                    if not _is_there(str(node.module), alias.name)
                ]
    assert missing == []


def test_files_that_the_suite_runs_first_are_there(repository: Path) -> None:
    """One that is renamed would lose its place without a word."""
    names = [*conftest._COMPILING, *conftest._MEANWHILE, *conftest._WAITING]
    assert [name for name in names if not (repository / 'test' / f'{name}.py').is_file()] == []


def _is_there(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(
            importlib.util.find_spec(f'{module}.{name}')
        )
    except ModuleNotFoundError as error:
        # ROS and extras are not everywhere.
        return str(error.name).split('.')[0] not in ROOTS
