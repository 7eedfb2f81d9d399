# SPDX-License-Identifier: Apache-2.0
"""The folders of both packages import one way; `make lint` holds the order in pyproject.toml."""

from __future__ import annotations

import graphlib

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
