# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures, the order of the test files, and the copy of the package under test."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Set before NumPy is imported: pytest workers with several threads compete for the cores.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import hypothesis
import numpy as np
import pytest

# The examples are the same in each run. `pytest --hypothesis-profile=search` looks for new
# counterexamples; add each one as an @example.
hypothesis.settings.register_profile('fixed', derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile('search', deadline=None, max_examples=1000)
hypothesis.settings.load_profile('fixed')

# Modules and tests stay until the end; searching them for garbage took a seventh of the time.
gc.disable()
# The default thresholds took a twentieth of the time to compile the judge.
_THRESHOLDS = 20_000, 5, 5

# These files compile most of the judge. One worker runs them all, because the parts of the filters
# are prepared once per process. None of them is among the tests of colcon, which would compile
# again in another process.
_COMPILING = (
    'test_judge_live', 'test_judge_enu', 'test_judge_diverged', 'test_judge_core',
    'test_judge_prediction', 'test_judge_correction', 'test_judge_corrections',
    'test_judge_filter', 'test_judge_queue', 'test_judge_textbook_unscented', 'test_lockstep',
)  # fmt: skip
# These files need no judge and keep the other worker busy meanwhile.
_MEANWHILE = (
    'test_allan', 'test_allan_fit', 'test_attitude', 'test_characterize_gps', 'test_gps_drift',
)  # fmt: skip
# These files mostly wait for processes; at the end they would leave a core idle.
_WAITING = (
    'test_lockstep_process', 'test_ros_evaluation_ends', 'test_ros_evaluation',
    'test_ros_judge', 'test_cli_wrong_lines',
)  # fmt: skip
_FIRST = (*_COMPILING, *_MEANWHILE, *_WAITING)

ROOT = Path(__file__).resolve().parents[1]

# `colcon test` starts pytest in the source folder, which Python then searches first. This variable
# makes the tests import the installed package instead.
if os.environ.get('SIM2REAL_TEST_INSTALLED'):
    sys.path[:] = [entry for entry in sys.path if Path(entry or '.').resolve() != ROOT]


def _shared(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable) or ROOT.parent / 'shared' / default)
    if not path.is_dir():
        pytest.skip(f'no folder {path}; set {variable}')
    return path.resolve()


@pytest.fixture(scope='session')
def repository() -> Path:
    """Root of the source tree."""
    return ROOT


@pytest.fixture(scope='session')
def real_dir() -> Path:
    """Folder of real recordings; the test skips if it is absent."""
    return _shared('SIM2REAL_REAL', 'real')


@pytest.fixture(scope='session')
def reference_dir() -> Path:
    """Folder of reference traces of the real nodes; the test skips if it is absent."""
    return _shared('SIM2REAL_REFERENCE', 'reference')


@pytest.fixture
def blank_pictures() -> Iterator[None]:
    """Leave the pictures of commands blank, for tests that do not look at them."""
    from cli_examples import pictures_left_blank

    with pictures_left_blank():
        yield


@pytest.fixture(name='record_property')
def recorded_figure(record_property: Callable[[str, object], None]) -> Callable[[str, Any], None]:
    """Record figures for the validation page; pytest workers cannot send NumPy numbers."""

    def record(name: str, value: Any) -> None:
        record_property(name, value.item() if isinstance(value, np.generic) else value)

    return record


def pytest_collection_finish() -> None:
    """Collect garbage from now on, among objects that tests make."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of `_FIRST` first; all others keep their order."""
    places = {name: place for place, name in enumerate(_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(_FIRST)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute files as `--dist=loadfile` does, with all of `_COMPILING` as one file."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return _COMPILING[0] if Path(file).stem in _COMPILING else file

    return Scheduling(config, log) if config.getvalue('dist') == 'loadfile' else None
