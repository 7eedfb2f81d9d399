# SPDX-License-Identifier: Apache-2.0
"""The same function over many items in several processes that never outlive their parent."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import contextlib
import logging
import logging.handlers
import multiprocessing
import multiprocessing.queues
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import TypeVar

from sim_sensors.core.errors import Sim2RealError

# A judge node may need 8 s to end, see judge/external/process.py; a busy machine more.
_SHUTDOWN_S = 20.0
_THREAD_ENDS_S = 0.5

_THREADS = ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'VECLIB_MAXIMUM_THREADS')

# Of the packages whose loops are compiled, which takes long and is told.
_LOG = logging.getLogger('sim_sensors')

T = TypeVar('T')
R = TypeVar('R')


def map_in_processes(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    jobs: int,
    progress: Callable[[], None] | None = None,
) -> list[R]:
    """Return `function(item)` of each item, in the order of the items.

    Parameters
    ----------
    function : callable
        Of a module's top level, so that it can be sent to a process. A process that dies, for
        example for want of memory, is a Sim2RealError.
    jobs : int
        Processes; with one job or one item everything runs in this process.
    progress : callable, optional
        Called whenever an item is done.
    """
    with Workers(min(jobs, len(items))) as workers:
        return workers.map(function, items, progress=progress)


class Workers:
    """Processes that are started once for several maps; a context manager.

    They start when they are first needed, or at `start`, and end with the context: at once when
    that ends in an exception. With one of `jobs` everything runs in this process.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()
        self._listener: logging.handlers.QueueListener | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        try:
            if kind is not None:
                end_all(set(multiprocessing.active_children()) - self._others)
        finally:
            self._pool.shutdown(cancel_futures=True)
            # A worker that was killed may hold the queue; the thread ends with this process.
            if self._listener is not None and kind is None:
                self._listener.stop()

    def start(self) -> None:
        """Start the processes, unless they run or are not needed.

        While this process has a single thread they are copies of it, on Linux: what it has
        imported and read they need not. A copy of a process with threads may hang, as may one on
        other systems; there they start afresh.
        """
        if self.jobs <= 1 or self._pool is not None:
            return
        context = multiprocessing.get_context('fork' if can_copy() else 'spawn')
        self._others = set(multiprocessing.active_children())
        queue = _Records(context.SimpleQueue()) if _LOG.isEnabledFor(logging.INFO) else None
        self._pool = concurrent.futures.ProcessPoolExecutor(
            self.jobs, mp_context=context, initializer=begin_worker, initargs=(queue,)
        )
        with interrupts_held(), single_threads(), _deaths_told():
            # With the first task the pool makes all copies.
            self._pool.submit(int)
        if queue is not None:
            self._listener = logging.handlers.QueueListener(queue, _Once())
            self._listener.start()

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        progress: Callable[[], None] | None = None,
    ) -> list[R]:
        """Return `function(item)` of each item, see `map_in_processes`."""
        if len(items) > 1:
            return self.begin_map(function, items, progress=progress)()
        return Workers().begin_map(function, items, progress=progress)()

    def begin_map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        progress: Callable[[], None] | None = None,
    ) -> Callable[[], list[R]]:
        """Begin `map` and return what waits for its results; this process can go on meanwhile."""
        if self.jobs <= 1 or not items:
            results: list[R] = []
            for item in items:
                results.append(function(item))
                if progress is not None:
                    progress()
            return lambda: results
        self.start()
        assert self._pool is not None
        with interrupts_held(), single_threads(), _deaths_told():
            futures = [self._pool.submit(_until_terminated, function, item) for item in items]

        def wait() -> list[R]:
            with _deaths_told():
                for done in concurrent.futures.as_completed(futures):
                    done.result()
                    if progress is not None:
                        progress()
                return [future.result() for future in futures]

        return wait


@contextlib.contextmanager
def _deaths_told() -> Iterator[None]:
    """Say that a worker died in a `Sim2RealError`."""
    try:
        yield
    except concurrent.futures.process.BrokenProcessPool:
        raise Sim2RealError(
            'a worker process died (out of memory?); fewer --jobs need less memory'
        ) from None


@contextlib.contextmanager
def single_threads() -> Iterator[None]:
    """Let the linear algebra of processes that are started meanwhile use one thread each.

    So also that of this process, if numpy is not imported yet. Our matrices are small: threads
    make each of them slower, many times so where processes share the cores, and how a product is
    cut up may show in its last digit. What the user has set stays.
    """
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, '1'))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while workers are started; they inherit that and never see it.

    Ctrl-C goes to the whole group of processes. The parent ends its workers itself; each of them
    would otherwise print a traceback of its own.
    """
    if not hasattr(signal, 'pthread_sigmask'):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def can_copy() -> bool:
    """Return whether workers would be copies of this process, which has no other thread.

    That of libraries counts, too; where it cannot be told they are not.
    """
    tasks, end = Path('/proc/self/task'), time.monotonic() + _THREAD_ENDS_S
    try:
        while len(list(tasks.iterdir())) > 1:
            # A thread of Python is there for a moment after it was joined.
            if threading.active_count() > 1 or time.monotonic() > end:
                return False
            time.sleep(0.001)
    except OSError:
        return False
    return True


def end_all(workers: Iterable[BaseProcess]) -> None:
    """Let workers remove what is temporary and end their nodes; kill those that do not end."""
    for worker in workers:
        worker.terminate()
    deadline = time.monotonic() + _SHUTDOWN_S
    for worker in workers:
        worker.join(max(deadline - time.monotonic(), 0.0))
        if worker.is_alive():
            worker.kill()
            worker.join()


def _until_terminated(function: Callable[[T], R], item: T) -> R:
    """Return `function(item)`; end the worker when SIGTERM came meanwhile."""
    try:
        return function(item)
    except SystemExit as stop:
        # The pool would send it to the parent as a result, and go on with the next item.
        os._exit(int(stop.code or 0))


class _Records:
    """Carries what workers log, and is sent before the call returns.

    A `multiprocessing.Queue` sends from a thread, which may end with its worker in the middle of a
    record, holding the lock of all others: the parent would wait for ever.
    """

    def __init__(self, queue: multiprocessing.queues.SimpleQueue[logging.LogRecord]) -> None:
        self._queue = queue

    def put_nowait(self, record: logging.LogRecord) -> None:
        self._queue.put(record)

    def get(self, block: bool = True) -> logging.LogRecord:
        return self._queue.get()


class _Once(logging.Handler):
    """Hands records of workers on to this process's handlers, what several say but once."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if said not in self._said:
            self._said.add(said)
            logging.getLogger(record.name).handle(record)


def begin_worker(records: _Records | None) -> None:
    """Make this worker end when its parent does, also when that was killed, and on SIGTERM.

    What it logs goes to `records`; None: nowhere.
    """
    # What a copy of its parent has of it.
    _LOG.handlers.clear()
    if records is not None:
        _LOG.addHandler(logging.handlers.QueueHandler(records))
        _LOG.setLevel(logging.INFO)

    def stop(number: int, frame: FrameType | None) -> None:
        # Once: the pool tells all workers again when the first has ended.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name='wait for parent', daemon=True).start()
    # Last: the pool would print what it raises in here.
    signal.signal(signal.SIGTERM, stop)
