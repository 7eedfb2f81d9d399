# SPDX-License-Identifier: Apache-2.0
"""The same function over many items in several processes, whichever way these are started."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from sim2real_eval.common.workers import Workers, map_in_processes
from sim_sensors.core.errors import Sim2RealError

_LATE = [0]


def square(number: int) -> tuple[int, int, int]:
    """Return also what this process holds, and its number."""
    return number * number, _LATE[0], os.getpid()


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number: int) -> None:
    raise Sim2RealError(f'{number} is not allowed')


def tell(number: int) -> None:
    logging.getLogger('sim_sensors.here').info('compiling for this machine')


def alone(text: str) -> str:
    """Run text in a process without threads; return what it prints."""
    paths = [str(Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [sys.executable, '-c', text], capture_output=True, text=True, check=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths), 'OPENBLAS_NUM_THREADS': '1'},
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def beside() -> Iterator[threading.Event]:
    """A thread of this process, of which a copy would have half."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait, daemon=True)
    thread.start()
    yield end
    end.set()
    thread.join()


def test_results_come_in_the_order_of_the_items_and_progress_once_for_each() -> None:
    advanced: list[None] = []
    with Workers(2) as workers:
        found = workers.map(square, range(20), progress=lambda: advanced.append(None))
    assert [one[0] for one in found] == [k * k for k in range(20)]
    assert len(advanced) == 20
    assert os.getpid() not in {one[2] for one in found}


def test_one_job_or_one_item_needs_no_process() -> None:
    assert {one[2] for one in map_in_processes(square, range(3), jobs=1)} == {os.getpid()}
    assert map_in_processes(square, [4], jobs=2) == [(16, _LATE[0], os.getpid())]


def test_processes_of_one_with_threads_start_afresh(
    beside: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of such a process may hang: its locks may be held by a thread that they lack."""
    monkeypatch.setattr(sys.modules[__name__], '_LATE', [7])
    assert {one[1] for one in map_in_processes(square, range(4), jobs=2)} == {0}


@pytest.mark.skipif(sys.platform != 'linux', reason='copies are made on Linux')
def test_processes_of_one_without_threads_are_copies_of_it() -> None:
    """What is imported and read already need not be again."""
    text = (
        'import test_workers as t\nfrom sim2real_eval.common.workers import map_in_processes\n'
        't._LATE[0] = 7\nprint({one[1] for one in map_in_processes(t.square, range(4), jobs=2)})'
    )
    assert alone(text) == '{7}\n'


@pytest.mark.skipif(sys.platform != 'linux', reason='copies are made on Linux')
def test_after_workers_a_process_can_be_copied_again() -> None:
    """A thread that was joined is in /proc for a moment."""
    text = (
        'import test_workers as t\nfrom sim2real_eval.common.workers import can_copy\n'
        'print({t.map_in_processes(t.square, [1, 2], jobs=2) and can_copy() for _ in range(20)})'
    )
    assert alone(text) == '{True}\n'


def test_a_worker_that_dies_ends_the_map_in_one_line() -> None:
    with pytest.raises(Sim2RealError, match=r'a worker process died .*fewer --jobs'):
        map_in_processes(die, range(4), jobs=2)


def test_what_a_worker_raises_is_raised_and_no_process_stays() -> None:
    started: list[BaseProcess] = []

    def used() -> None:
        with Workers(2) as workers:
            workers.start()
            assert workers._pool is not None
            started.extend(workers._pool._processes.values())
            workers.map(refuse, range(4))

    with pytest.raises(Sim2RealError, match=r'^\d is not allowed$'):
        used()
    end = time.monotonic() + 300.0
    while any(process.is_alive() for process in started):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_all_workers_say_is_heard_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger='sim_sensors'), Workers(2) as workers:
        workers.map(tell, range(6))
    assert [one.getMessage() for one in caplog.records] == ['compiling for this machine']
