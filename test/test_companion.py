# SPDX-License-Identifier: Apache-2.0
"""A process that does what it is sent while this one goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim2real_eval.common.companion import Companion
from sim_sensors.core.errors import Sim2RealError

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='copies are made on Linux')

_HELD: list[int] = []


def load() -> None:
    _HELD.append(os.getpid())


def lack() -> None:
    raise ValueError('no such backend')


def where(item: object) -> tuple[int, list[int]]:
    return os.getpid(), _HELD


def half(number: int) -> float:
    if number % 2:
        raise Sim2RealError(f'{number} is odd')
    return number / 2


def unsendable(number: int) -> object:
    return lambda: number


class OddError(Exception):
    """Its copy would be made of one argument."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f'{one} and {other}')


def lost(number: int) -> None:
    raise OddError(7, 8)


def alone(text: str) -> str:
    """Run text in a process without threads, which can be copied; return what it prints."""
    paths = [str(Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [sys.executable, '-c', 'import os, signal\nfrom test_companion import *\n' + text],
        capture_output=True, text=True, check=True, timeout=300,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths), 'OPENBLAS_NUM_THREADS': '1'},
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def beside() -> Iterator[None]:
    """A thread of this process, of which a copy would have half."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait, daemon=True)
    thread.start()
    yield
    end.set()
    thread.join()


def test_it_is_another_process_which_loads_what_it_needs_by_itself() -> None:
    text = (
        'with Companion(2, load) as one:\n'
        '    ((pid, held),) = one.begin_map(where, [None])()\n'
        'print(pid != os.getpid(), held == [pid], where(None)[1])'
    )
    assert alone(text) == 'True True []\n'


def test_much_is_sent_while_it_is_busy_and_results_may_be_asked_for_in_any_order() -> None:
    """A pipe holds 64 KB; who sends 10 MB would wait for what is done before."""
    text = (
        'import threading, time\n'
        'with Companion(2, load) as one:\n'
        '    waits = [one.begin_map(time.sleep, [1.0]), one.begin_map(len, [bytes(10**7)] * 2)]\n'
        '    waits.append(one.begin_map(half, [4, 6]))\n'
        '    print([wait() for wait in waits[::-1]])'
    )
    assert alone(text) == '[[2.0, 3.0], [10000000, 10000000], [None]]\n'


def test_what_it_raises_is_raised_here_and_it_goes_on() -> None:
    text = (
        'with Companion(2, lack) as one:\n'
        '    odd, even = one.begin_map(half, [2, 3]), one.begin_map(half, [8])\n'
        '    try: odd()\n'
        '    except Sim2RealError as error: print(error, even())'
    )
    assert alone(text) == '3 is odd [4.0]\n'


def test_what_is_left_when_it_dies_is_done_here() -> None:
    text = (
        'with Companion(2, load) as one:\n'
        '    first = one.begin_map(where, [None])()[0][0]\n'
        '    os.kill(first, signal.SIGKILL)\n'
        '    before = one.begin_map(where, [None, None])\n'
        '    print([pid == os.getpid() for pid, _ in before()], one.begin_map(half, [2])())'
    )
    assert alone(text) == '[True, True] [1.0]\n'


def test_what_cannot_be_sent_is_raised_and_it_goes_on() -> None:
    text = (
        'with Companion(2, load) as one:\n'
        '    for function in (unsendable, lost):\n'
        '        try: one.begin_map(function, [1])()\n'
        '        except Exception as error: print(type(error).__name__, error, error.__cause__)\n'
        '    print(one.begin_map(half, [2])())'
    )
    first, *lines, last = alone(text).splitlines()
    assert 'lambda' in first
    assert any('OddError: 7 and 8' in line for line in lines)
    # Where it was raised.
    assert any(line.endswith('in lost') for line in lines)
    assert last == '[1.0]'


def test_it_ends_with_the_context_whatever_ends_that() -> None:
    text = (
        'import multiprocessing, time\n'
        'for wrong in (False, True):\n'
        '    try:\n'
        '        with Companion(2, load) as one:\n'
        '            one.begin_map(time.sleep, [600.0])\n'
        '            if wrong: raise ValueError\n'
        '    except ValueError: pass\n'
        '    print(multiprocessing.active_children())'
    )
    assert alone(text) == '[]\n[]\n'


def test_with_one_job_or_with_threads_this_process_does_it(beside: None) -> None:
    for jobs in (1, 2):
        with Companion(jobs, lack) as one:
            assert not one.is_apart
            assert one.begin_map(half, [2, 4])() == [1.0, 2.0]
            with pytest.raises(Sim2RealError, match='3 is odd'):
                one.begin_map(half, [3])()
