# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judge the runs of a study on workers of a dask.distributed cluster.

A worker gets a pickled unit, judges for a few seconds, and sends back the files of the runs and
the keys of the remaining runs. Recordings are read by path: they are large, and the machines of a
cluster share a file system.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pickle
import platform
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.results import version, versions
from sim2real_eval.recording.reading import RecordingSource
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.installation import pip_install
from .outcome import StudyFailure
from .run import RunKey
from .run_store import RunStore, encode_run
from .unit import StudyUnit

_TIMEOUT_S = 10.0  # for connecting to a scheduler, and for its first worker
_NO_WORKER_S = 60.0
"""Time without any worker after which judging is given up."""
_UPDATE_S = 5.0
"""Interval between updates of the list of workers."""
_SLOW_S = 30.0
"""Shortest time without an answer after which an idle worker repeats the task of another."""
_LOG = logging.getLogger(__name__)
_WORKER = f'cluster: worker on {platform.node()}'
_SLICE_S = 2.0
"""Time after which a worker finishes its current run and sends its results."""


class _Slice(NamedTuple):
    """Results that a worker sends back."""

    files: list[tuple[str, bytes]]  # names and contents of the files of its runs
    failures: list[StudyFailure]
    remaining: tuple[RunKey, ...]  # runs that are not judged yet


@dataclasses.dataclass(eq=False)
class _Task:
    """Part of a unit that is waiting or running."""

    number: int  # index of the unit
    unit: StudyUnit
    begun: float = 0.0
    futures: dict[Any, str] = dataclasses.field(default_factory=dict)  # workers by future


@contextlib.contextmanager
def cluster_of(address: str) -> Iterator[Cluster]:
    """Connect to a cluster.

    Raises
    ------
    ParameterError
        When dask.distributed is not installed, or there is no scheduler or worker.
    """
    try:
        import distributed
    except ImportError:
        raise ParameterError(
            '--cluster', '', f'needs dask.distributed: {pip_install("distributed")}'
        ) from None
    for name in ('distributed', 'distributed.client'):
        # It logs a lost connection with a traceback.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = ' '.join(str(error).split())
        raise ParameterError(
            '--cluster', '', f'{address!r}: no scheduler answers at this address ({reason})'
        ) from None
    with contextlib.closing(client):
        try:
            client.wait_for_workers(1, timeout=_TIMEOUT_S)
        except TimeoutError:
            raise ParameterError(
                '--cluster', '', f'{address!r}: the scheduler has no worker; start one or more'
            ) from None
        yield Cluster(client)


class Cluster:
    """Workers of a scheduler to which `client`, a distributed.Client, is connected."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workers: dict[str, int] = {}  # number of threads by address
        # Times of the last update, and of the last update that found a worker.
        self._updated = self._had_worker = -_NO_WORKER_S
        self._required = versions()
        self._running: dict[Any, _Task] = {}  # by future
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()  # futures
        self._longest = 0.0  # s, longest duration of a task
        self._update_workers()

    @property
    def threads(self) -> int:
        """Number of runs that the workers judge concurrently."""
        return sum(self._workers.values())

    def judge(
        self,
        units: Sequence[StudyUnit],
        store: RunStore,
        progress: Callable[[], None] | None = None,
    ) -> list[StudyFailure]:
        """Judge units; the results are identical to those of a single process.

        A thread of a worker judges one unit after another, so that it reads a recording once. When
        no unit is waiting, an idle thread gets half of the remaining runs of another thread, or
        repeats a task whose worker has not answered for a long time.

        Parameters
        ----------
        units : sequence of StudyUnit
        store : RunStore
            Receives the runs as they arrive.
        progress : callable, optional
            Called after each unit.

        Returns
        -------
        list of StudyFailure
            In the order of the runs.

        Raises
        ------
        Sim2RealError
            When a worker cannot read a recording or has other versions of libraries, when several
            workers die on the same runs, or when the connection is lost. Finished runs are stored.
        """
        keys = (key for unit in units for key in unit.keys)
        order = {key: number for number, key in enumerate(keys)}
        waiting = deque(_Task(number, unit) for number, unit in enumerate(units))
        parts = Counter(range(len(units)))  # tasks of each unit that are not done
        failures: list[tuple[int, list[StudyFailure]]] = []
        while waiting or self._running:
            self._update_workers()
            for worker in self._idle_workers():
                if waiting:
                    self._submit(waiting.popleft(), worker)
                elif overdue := self._overdue_task():
                    self._submit(overdue, worker)
            try:
                future = self._done.get(timeout=1.0)
            except queue.Empty:
                continue
            task = self._running.get(future)
            if task is None:
                continue  # another worker was faster
            worker = task.futures[future]
            result = _result(future)
            self._forget(task)
            store.write(result.files)
            failures.append((order[task.unit.keys[0]], result.failures))
            if not result.remaining:
                parts[task.number] -= 1
                if progress is not None and not parts[task.number]:
                    progress()
                continue
            # Another idle worker gets half of the remaining runs.
            is_shared = not waiting and len(self._idle_workers()) > 1
            rest = dataclasses.replace(task.unit, keys=result.remaining).split(1 + is_shared)
            next_task, *shared = (_Task(task.number, unit) for unit in rest)
            parts[task.number] += len(shared)
            waiting.extend(shared)
            if worker in self._workers:
                self._submit(next_task, worker)
            else:
                waiting.appendleft(next_task)
        return [failure for _, task_failures in sorted(failures) for failure in task_failures]

    def _submit(self, task: _Task, worker: str) -> None:
        # A unit is sent many times, so it goes without the messages of the recording.
        recording = dataclasses.replace(task.unit.recording, content=None)
        unit = dataclasses.replace(task.unit, recording=recording)
        # The scheduler gives the task to another worker if this one dies.
        future = self._client.submit(
            _judge_slice, pickle.dumps(unit), self._required, workers=[worker],
            allow_other_workers=True, pure=False,
        )  # fmt: skip
        task.futures[future], task.begun = worker, time.monotonic()
        self._running[future] = task
        future.add_done_callback(self._done.put)

    def _forget(self, task: _Task) -> None:
        """Remove a finished task, and cancel its repetitions on other workers."""
        self._longest = max(self._longest, time.monotonic() - task.begun)
        for future in task.futures:
            del self._running[future]
            future.cancel()

    def _overdue_task(self) -> _Task | None:
        """Return a task that runs on one worker for far longer than any task so far, or None."""
        now = time.monotonic()
        for task in self._running.values():
            if len(task.futures) == 1 and now > task.begun + max(_SLOW_S, 5.0 * self._longest):
                (worker,) = task.futures.values()
                _LOG.warning(
                    'cluster: %s has not answered for %.0f s; another worker repeats its task',
                    worker, now - task.begun,
                )  # fmt: skip
                return task
        return None

    def _update_workers(self) -> None:
        """Update the list of workers, at most once per `_UPDATE_S`."""
        now = time.monotonic()
        if now < self._updated + _UPDATE_S:
            return
        self._updated = now
        with _one_line():
            self._workers = dict(self._client.nthreads())
        if self._workers:
            self._had_worker = now
        elif now > self._had_worker + _NO_WORKER_S:
            raise Sim2RealError(
                f'cluster: no worker for {_NO_WORKER_S:g} s; start workers and repeat the command '
                'to continue'
            )

    def _idle_workers(self) -> list[str]:
        """Return the worker of each idle thread; a worker may occur several times."""
        idle = Counter(self._workers)
        idle.subtract(task.futures[future] for future, task in self._running.items())
        return list(idle.elements())


def _result(future: Any) -> _Slice:
    with _one_line():
        return future.result()  # type: ignore[no-any-return]


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    """Convert errors of dask.distributed to a Sim2RealError with a message of one line."""
    import distributed

    try:
        yield
    except distributed.KilledWorker:
        raise Sim2RealError(
            'cluster: several workers died on the same runs, probably out of memory; repeat the '
            'command to continue'
        ) from None
    except (ImportError, RuntimeError) as error:
        # The scheduler also raises RuntimeError if it cannot unpickle the work.
        if isinstance(error, RuntimeError) and 'deserialization' not in str(error):
            raise
        raise Sim2RealError(
            'cluster: the scheduler or a worker cannot load the work; install sim2real_sensors '
            f'{version("sim2real_sensors")} and its libraries there, too'
        ) from None
    except (OSError, distributed.CancelledError):
        raise Sim2RealError(
            'cluster: the connection to the scheduler was lost; repeat the command to continue'
        ) from None


def _judge_slice(pickled: bytes, required: dict[str, str]) -> _Slice:
    """Judge a pickled unit on a worker for `_SLICE_S`; raise Sim2RealError for other versions."""
    _check_versions(required)
    unit: StudyUnit = pickle.loads(pickled)
    _check_recording(unit)
    files: dict[str, bytes] = {}
    end = time.monotonic() + _SLICE_S
    failures, rest = unit.judge(
        # Runs of one recording have the file of the ground truth in common.
        lambda run, signals: files.update(encode_run(run, signals)),
        lambda: time.monotonic() > end,
    )
    return _Slice(list(files.items()), failures, rest.keys)


def _check_versions(required: dict[str, str]) -> None:
    """Raise Sim2RealError if a library of this worker has another version."""
    installed = versions()
    for package, needed in required.items():
        if installed[package] != needed:
            raise Sim2RealError(
                f'{_WORKER} has {package} {installed[package]}; must have {needed}, as the client'
            )


def _check_recording(unit: StudyUnit) -> None:
    """Raise Sim2RealError if this worker cannot read the recording of a unit."""
    origin = unit.recording.origin
    if isinstance(origin, RecordingSource) and not Path(origin.path).exists():
        raise Sim2RealError(
            f'{_WORKER} cannot read {origin.path}; recordings must have the same path on every '
            'machine, for example on a shared file system'
        )
