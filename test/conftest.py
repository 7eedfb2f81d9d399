# SPDX-License-Identifier: Apache-2.0
"""Paths that many tests share, and which copy of the package is under test."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before numpy is imported: workers of pytest that compute in threads take the cores of each other.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import hypothesis
import numpy as np
import pytest

# The same few examples each time, so that a run that passed passes again: look for new
# counterexamples with `pytest --hypothesis-profile=search`, and add what it finds as an @example.
hypothesis.settings.register_profile('fixed', derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile('search', deadline=None, max_examples=1000)
hypothesis.settings.load_profile('fixed')

# Modules and tests stay to the end; to search them for garbage took a seventh of the time.
gc.disable()
# Nor is what they make searched after every 700 new objects, and what stays after every 70,000:
# that was a twentieth of the time to compile the judge.
_SEARCHES = 20_000, 5, 5

# Compile most of the judge: one worker does them all, one after the other. The parts of which the
# filters consist go into each loop that is compiled, and are made ready once per process. None of
# them is among those of colcon, which would compile one of the loops in a process of its own.
_COMPILING = (
    'test_judge_live',
    'test_judge_enu',
    'test_judge_diverged',
    'test_judge_core',
    'test_judge_prediction',
    'test_judge_correction',
    'test_judge_filter',
    'test_judge_mended',
    'test_judge_queue',
    'test_judge_textbook_unscented',
    'test_lockstep',
)
# Need no judge, and give the other worker to do meanwhile.
_MEANWHILE = (
    'test_allan',
    'test_allan_fit',
    'test_attitude',
    'test_characterize_gps',
    'test_gps_drift',
)
# Wait for processes more than they compute: at the end they would leave a core idle.
_WAITING = (
    'test_lockstep_process',
    'test_ros_evaluation_ends',
    'test_ros_evaluation',
    'test_ros_judge',
    'test_cli_wrong_lines',
)
_FIRST = (*_COMPILING, *_MEANWHILE, *_WAITING)

ROOT = Path(__file__).resolve().parents[1]

# colcon test starts pytest in the source folder, which Python then searches first. With this
# variable the tests get what colcon installed instead.
if os.environ.get('SIM2REAL_TEST_INSTALLED'):
    sys.path[:] = [entry for entry in sys.path if Path(entry or '.').resolve() != ROOT]


def _shared(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable) or ROOT.parent / 'shared' / default)
    if not path.is_dir():
        pytest.skip(f'no folder {path}; set {variable}')
    return path.resolve()


@pytest.fixture(scope='session')
def repository() -> Path:
    """Root of the source tree that these tests belong to."""
    return ROOT


@pytest.fixture(scope='session')
def real_dir() -> Path:
    """Folder of real recordings; the test skips where it is absent."""
    return _shared('SIM2REAL_REAL', 'real')


@pytest.fixture(scope='session')
def reference_dir() -> Path:
    """Folder of reference traces of the real nodes; the test skips where it is absent."""
    return _shared('SIM2REAL_REFERENCE', 'reference')


@pytest.fixture
def blank_pictures() -> Iterator[None]:
    """The pictures of commands are left blank, for tests that do not look at them."""
    from cli_examples import pictures_left_blank

    with pictures_left_blank():
        yield


@pytest.fixture(name='record_property')
def recorded_figure(record_property: Callable[[str, object], None]) -> Callable[[str, Any], None]:
    """Record figures for the page of validation; workers take no numbers of numpy."""

    def record(name: str, value: Any) -> None:
        record_property(name, value.item() if isinstance(value, np.generic) else value)

    return record


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let every second worker load the tests from the last on.

    pytest rewrites the assertions of a file when it is first loaded, which takes half of the time
    of all loading, and keeps what it wrote: so each worker of two rewrites one half and reads the
    other.
    """
    worker = getattr(session.config, 'workerinput', {}).get('workerid', 'gw0')
    if session.config.args != session.config.getini('testpaths') or worker[-1] in '02468':
        return
    for path in sorted(Path(__file__).parent.glob('test_*.py'), reverse=True):
        # What fails or skips here does so again when it is collected, and is reported then.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(path.stem)


def pytest_collection_finish() -> None:
    """From here on garbage is looked for among what tests make."""
    gc.freeze()
    gc.set_threshold(*_SEARCHES)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of `_FIRST` first; all others keep their order."""
    places = {name: place for place, name in enumerate(_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(_FIRST)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand files to workers as `--dist=loadfile` does, and those of `_COMPILING` as if one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return _COMPILING[0] if Path(file).stem in _COMPILING else file

    return Scheduling(config, log) if config.getvalue('dist') == 'loadfile' else None
