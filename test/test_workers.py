# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The pool of worker processes: order of results, errors, and the end of every process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from sim2real_eval.common.workers import Workers, map_in_processes
from sim_sensors.core.errors import Sim2RealError


def square(number: int) -> tuple[int, int]:
    """Return the square and the process that computed it."""
    return number * number, os.getpid()


def kill_worker(task: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait_over(task: object) -> None:
    time.sleep(300.0)


def refuse(number: int) -> None:
    raise Sim2RealError(f'{number} is not allowed')


class Unloadable:
    def __reduce__(self) -> tuple[object, ...]:
        return refuse, (3,)


def write_pid_and_sleep(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(300.0)


def wait_for_end(pid: int) -> None:
    end = time.monotonic() + 60.0
    while Path(f'/proc/{pid}').exists():
        assert time.monotonic() < end, f'process {pid} still runs'
        time.sleep(0.01)


def test_results_are_in_the_order_of_the_items() -> None:
    with Workers(2) as workers:
        results = workers.map(square, range(20))
    assert [number for number, _ in results] == [k * k for k in range(20)]
    assert os.getpid() not in {pid for _, pid in results}


def test_one_job_or_one_item_starts_no_process() -> None:
    assert {pid for _, pid in map_in_processes(square, range(3), jobs=1)} == {os.getpid()}
    assert map_in_processes(square, [4], jobs=2) == [(16, os.getpid())]


def test_two_maps_can_run_at_the_same_time() -> None:
    with Workers(2) as workers:
        first, second = workers.begin_map(square, [1, 2]), workers.begin_map(square, [3])
        assert [number for number, _ in [*second(), *first()]] == [9, 1, 4]


def test_a_worker_that_dies_ends_the_map_with_an_error() -> None:
    with pytest.raises(Sim2RealError, match='worker'):
        map_in_processes(kill_worker, range(4), jobs=2)


@pytest.mark.parametrize('function', [kill_worker, wait_over])
def test_tasks_larger_than_a_pipe_do_not_keep_an_interrupted_map(
    function: Callable[[object], None],
) -> None:
    """The pool is writing a task when its workers die, by themselves or by Ctrl-C."""
    tasks = [bytes(1 << 20)] * 8
    ends_with = Sim2RealError if function is kill_worker else KeyboardInterrupt

    def interrupt(workers: Workers) -> None:
        end = workers.begin_map(function, tasks)
        if function is wait_over:
            time.sleep(0.5)
            raise KeyboardInterrupt
        end()

    with pytest.raises(ends_with), Workers(2) as workers:
        interrupt(workers)


def test_the_error_of_a_worker_is_raised_and_all_processes_end() -> None:
    processes: list[BaseProcess] = []

    def map_refused() -> None:
        with Workers(2) as workers:
            workers.map(square, range(4))
            processes.extend(workers._pool._processes.values())
            workers.map(refuse, range(4))

    with pytest.raises(Sim2RealError, match=r'^\d is not allowed$'):
        map_refused()
    assert not any(process.is_alive() for process in processes)


@pytest.mark.skipif(not Path('/proc/self').exists(), reason='looks for processes in /proc')
def test_an_item_that_cannot_be_loaded_in_a_worker_is_an_error_of_its_own() -> None:
    """As of a class whose file was edited; the worker is not taken for dead."""
    with pytest.raises(Sim2RealError, match='3 is not allowed'):
        map_in_processes(square, [Unloadable(), Unloadable()], jobs=2)  # type: ignore[list-item]


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    code = (
        'import sys, pathlib, test_workers as t\n'
        'from sim2real_eval.common.workers import map_in_processes\n'
        'paths = [pathlib.Path(sys.argv[1], name) for name in "ab"]\n'
        'map_in_processes(t.write_pid_and_sleep, paths, jobs=2)\n'
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, '-c', code, tmp_path], env={**os.environ, 'PYTHONPATH': path}
    ) as process:
        end = time.monotonic() + 60.0
        while len(pids := [path.read_text() for path in tmp_path.iterdir()]) < 2 or '' in pids:
            assert time.monotonic() < end, 'the workers did not start'
            time.sleep(0.01)
        process.kill()
    for pid in pids:
        wait_for_end(int(pid))


@pytest.mark.skipif(sys.version_info < (3, 11), reason='needs PYTHONSAFEPATH of Python 3.11')
def test_a_file_in_the_working_directory_is_no_module_of_the_workers(tmp_path: Path) -> None:
    for name in ('statistics', 'random', 'selectors', 'pickle', 'numpy', 'sim2real_eval'):
        (tmp_path / f'{name}.py').write_text('raise SystemExit(9)\n')
    script = tmp_path / 'scripts' / 'study.py'
    script.parent.mkdir()
    script.write_text(
        'import os\n'
        'from sim2real_eval.common.workers import Workers\n'
        "if __name__ == '__main__':\n"
        '    with Workers(2) as workers:\n'
        "        values = workers.map(os.getenv, ['PYTHONSAFEPATH', 'HOME'])\n"
        "    assert values == [None, os.environ['HOME']], values\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != 'PYTHONSAFEPATH'}
    subprocess.run([sys.executable, script], check=True, cwd=tmp_path, env=environment)
