# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judge the runs of a study on workers of a dask.distributed cluster.

A worker gets a unit as an object, judges for a few seconds, and sends back the files of the runs
with the unit that is left. Recordings are read by path: they are large, and the machines of a
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

_TIMEOUT_S = 10.0  # of connecting to a cluster, and of its first worker
_NO_WORKER_S = 60.0
"""Time for which a cluster may be without workers."""
_LOOK_S = 5.0
"""Period at which workers that joined or left are looked for."""
_SLOW_S = 30.0
"""Shortest time after which a worker that is idle does the work of a silent one, too."""
_LOG = logging.getLogger(__name__)
_HERE = f'cluster: worker on {platform.node()}'
_SLICE_S = 2.0
"""A worker sends its runs after the one that it judges at this time."""


class _Slice(NamedTuple):
    """What a worker sends back."""

    files: list[tuple[str, bytes]]  # of its runs
    failures: list[StudyFailure]
    rest: tuple[RunKey, ...]  # runs that are left


@dataclasses.dataclass(eq=False)
class _Task:
    """Part of a unit that waits or is judged."""

    number: int  # of the unit
    unit: StudyUnit
    begun: float = 0.0
    futures: dict[Any, str] = dataclasses.field(default_factory=dict)  # the worker of each


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
        text = ' '.join(str(error).split())
        raise ParameterError(
            '--cluster', '', f'{address!r}: no scheduler answers at this address ({text})'
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
        self._workers: dict[str, int] = {}  # threads of each, by address
        self._looked = self._seen = -_NO_WORKER_S
        self._required = versions()
        self._judged: dict[Any, _Task] = {}  # by future
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()  # futures that are done
        self._longest = 0.0  # time that a task took, s
        self._look()

    @property
    def threads(self) -> int:
        """Number of runs that the workers judge at a time."""
        return sum(self._workers.values())

    def judge(
        self,
        units: Sequence[StudyUnit],
        store: RunStore,
        progress: Callable[[], None] | None = None,
    ) -> list[StudyFailure]:
        """Judge units; the result is that of one process.

        A thread of a worker judges one unit after another, so that it reads a recording once. When
        none is left, it gets half of what another one has left, and repeats what another one has
        begun and not answered for long.

        Parameters
        ----------
        units : sequence of StudyUnit
        store : RunStore
            Takes the runs as they arrive.
        progress : callable, optional
            Called after each unit.

        Returns
        -------
        list of StudyFailure
            In the order of the runs.

        Raises
        ------
        Sim2RealError
            When a worker cannot read a recording or has other versions, when workers die, or the
            connection is lost. The runs that arrived are stored.
        """
        order = {key: number for number, key in enumerate(key for u in units for key in u.keys)}
        waiting = deque(_Task(number, unit) for number, unit in enumerate(units))
        parts = Counter(range(len(units)))  # tasks of each unit that are not done
        failures: list[tuple[int, list[StudyFailure]]] = []
        while waiting or self._judged:
            self._look()
            for worker in self._idle():
                if waiting:
                    self._submit(waiting.popleft(), worker)
                elif slow := self._slow():
                    self._submit(slow, worker)
            try:
                done = self._arrived.get(timeout=1.0)
            except queue.Empty:
                continue
            task = self._judged.get(done)
            if task is None:
                continue  # another worker was faster
            worker = task.futures[done]
            result = _result(done)
            self._forget(task)
            store.write(result.files)
            failures.append((order[task.unit.keys[0]], result.failures))
            if not result.rest:
                parts[task.number] -= 1
                if progress is not None and not parts[task.number]:
                    progress()
                continue
            # If another worker is idle, it gets half.
            is_wanted = not waiting and len(self._idle()) > 1
            rest = dataclasses.replace(task.unit, keys=result.rest).split(1 + is_wanted)
            mine, *others = (_Task(task.number, unit) for unit in rest)
            parts[task.number] += len(others)
            waiting.extend(others)
            if worker in self._workers:
                self._submit(mine, worker)
            else:
                waiting.appendleft(mine)
        return [failure for _, some in sorted(failures) for failure in some]

    def _submit(self, task: _Task, worker: str) -> None:
        # Units are sent often, so the messages of the recording are omitted.
        recording = dataclasses.replace(task.unit.recording, content=None)
        unit = dataclasses.replace(task.unit, recording=recording)
        # Another worker gets it if this one dies.
        future = self._client.submit(
            _judge_slice, pickle.dumps(unit), self._required, workers=[worker],
            allow_other_workers=True, pure=False,
        )  # fmt: skip
        task.futures[future], task.begun = worker, time.monotonic()
        self._judged[future] = task
        future.add_done_callback(self._arrived.put)

    def _forget(self, task: _Task) -> None:
        """Drop a task that is done, also where other workers do it again."""
        self._longest = max(self._longest, time.monotonic() - task.begun)
        for future in task.futures:
            del self._judged[future]
            future.cancel()

    def _slow(self) -> _Task | None:
        """Return a task of which nothing was heard for very long, or None."""
        now = time.monotonic()
        for task in self._judged.values():
            if len(task.futures) == 1 and now > task.begun + max(_SLOW_S, 5.0 * self._longest):
                (worker,) = task.futures.values()
                _LOG.warning(
                    'cluster: %s has not answered for %.0f s; another worker does its work',
                    worker, now - task.begun,
                )  # fmt: skip
                return task
        return None

    def _look(self) -> None:
        """Look now and then which workers there are."""
        now = time.monotonic()
        if now < self._looked + _LOOK_S:
            return
        self._looked = now
        with _one_line():
            self._workers = dict(self._client.nthreads())
        if self._workers:
            self._seen = now
        elif now > self._seen + _NO_WORKER_S:
            raise Sim2RealError(
                f'cluster: has had no worker for {_NO_WORKER_S:g} s; start some, and repeat the '
                'command to continue'
            )

    def _idle(self) -> list[str]:
        """Return the worker of each thread that judges nothing."""
        idle = Counter(self._workers)
        idle.subtract(task.futures[future] for future, task in self._judged.items())
        return list(idle.elements())


def _result(future: Any) -> _Slice:
    with _one_line():
        return future.result()  # type: ignore[no-any-return]


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    """Report errors of the cluster in one line."""
    import distributed

    try:
        yield
    except distributed.KilledWorker:
        raise Sim2RealError(
            'cluster: several workers died on the same runs, probably out of memory; repeat the '
            'command to continue'
        ) from None
    except (ImportError, RuntimeError) as error:
        # A RuntimeError is also how the scheduler reports that it cannot unpickle the work.
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
    """Judge a pickled unit for a while on a worker, which must have the required versions."""
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
                f'{_HERE} has {package} {installed[package]}; must have {needed}, as here'
            )


def _check_recording(unit: StudyUnit) -> None:
    """Raise Sim2RealError if this worker cannot read the recording of a unit."""
    origin = unit.recording.origin
    if isinstance(origin, RecordingSource) and not Path(origin.path).exists():
        raise Sim2RealError(
            f'{_HERE} cannot read {origin.path}; recordings must have the same path on every '
            'machine, for example on a shared file system'
        )
