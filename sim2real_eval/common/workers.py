# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A pool of worker processes, which end when their parent does."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import contextlib
import functools
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sim_sensors.core.errors import Sim2RealError
from .process import interruptible, single_threads

_HAS_FORKSERVER = 'forkserver' in multiprocessing.get_all_start_methods()
_FORK_S = 0.5

_SAFE_PATH = 'PYTHONSAFEPATH'
_NO_LEAK = 'ignore:resource_tracker:UserWarning'

T = TypeVar('T')
R = TypeVar('R')


def map_in_processes(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    jobs: int,
    progress: Callable[[], None] | None = None,
) -> list[R]:
    """Return `function(item)` for each item; see `Workers.map`."""
    with Workers(min(jobs, len(items))) as workers:
        return workers.map(function, items, progress=progress)


class Workers:
    """A pool of `jobs` processes as a context manager; with one job the caller does the work.

    The processes start with the first map and end with the context, immediately if it ends in an
    exception. Scripts that use more than one job need the usual `if __name__ == '__main__':`.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self.preloaded: Sequence[str] = ()
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None
        self._is_starting = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        if kind is not None:
            if self._is_starting:
                # A worker that is being forked must find the semaphores that it shares.
                time.sleep(_FORK_S)
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            if sys.version_info < (3, 11, 5):
                # The pool would wait for ever for a task that it writes into a full pipe which
                # nobody reads (https://github.com/python/cpython/issues/94777).
                pool: Any = self._pool
                pool._call_queue._reader.close()
        self._pool.shutdown(cancel_futures=True)

    def start(self, *modules: str) -> None:
        """Start a process that imports modules once for all workers, and return at once.

        Only the first call has an effect: later workers share what that one has imported. Systems
        without the start method `forkserver` do nothing.
        """
        if self.jobs <= 1 or not _HAS_FORKSERVER:
            return
        context = multiprocessing.get_context('forkserver')
        context.set_forkserver_preload(list(modules))
        with _safe_path():
            # The tracker removes the semaphores of a killed command, which is no leak to warn of.
            sys.warnoptions.append(_NO_LEAK)
            try:
                # First, because it lets signals through again.
                multiprocessing.resource_tracker.ensure_running()
            finally:
                sys.warnoptions.remove(_NO_LEAK)
        with _block_interrupts(), single_threads(), _safe_path():
            try:
                multiprocessing.forkserver.ensure_running()
            except ChildProcessError:
                # A forked copy of a process with a server needs a server of its own.
                server: Any = multiprocessing.forkserver
                server._forkserver._forkserver_pid = None
                server.ensure_running()
        self.preloaded = self.preloaded or modules

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        progress: Callable[[], None] | None = None,
    ) -> list[R]:
        """Return `function(item)` for each item, in the order of the items.

        Parameters
        ----------
        function : callable
            Function of a module, or a `functools.partial` of one.
        items : sequence
        progress : callable, optional
            Called after each item.

        Raises
        ------
        Sim2RealError
            When a worker process ends unexpectedly, for example for lack of memory.
        """
        workers = self if len(items) > 1 else Workers()
        return workers.begin_map(function, items, progress=progress)()

    def begin_map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        progress: Callable[[], None] | None = None,
    ) -> Callable[[], list[R]]:
        """Begin a map and return the function that waits for its results."""
        if self.jobs <= 1 or not items:
            results: list[R] = []
            for item in items:
                results.append(function(item))
                if progress is not None:
                    progress()
            return lambda: results
        with _report_deaths():
            pool = self._start_pool(function)
            self._is_starting = True
            futures = [pool.submit(_run_task, pickle.dumps((function, item))) for item in items]
            self._is_starting = False

        def wait() -> list[R]:
            with _report_deaths():
                for future in concurrent.futures.as_completed(futures):
                    future.result()
                    if progress is not None:
                        progress()
                return [future.result() for future in futures]

        return wait

    def _start_pool(
        self, function: Callable[..., object]
    ) -> concurrent.futures.ProcessPoolExecutor:
        if self._pool is None:
            if not self.preloaded:
                whole = function.func if isinstance(function, functools.partial) else function
                self.start(whole.__module__)
            context = multiprocessing.get_context('forkserver' if _HAS_FORKSERVER else 'spawn')
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self.jobs, context, _begin_worker, (_SAFE_PATH in os.environ,)
            )
        return self._pool


def _run_task(work: bytes) -> Any:
    """Return `function(item)` of pickled work; on SIGTERM, unwind the task and end this worker.

    An error of unpickling, such as of a plug-in that was edited, is one of the task. The pool
    would take it for the death of a worker.

    The task removes its temporary files and ends its nodes. The pool would take the SystemExit for
    a result and start the next task.
    """
    try:
        with interruptible(once=True):
            function, item = pickle.loads(work)
            return function(item)
    except SystemExit as stop:
        os._exit(stop.code if isinstance(stop.code, int) else 1)


def _begin_worker(keep_safe_path: bool) -> None:
    """Leave Ctrl-C to the parent, and end with it even if it is killed."""
    if not keep_safe_path:
        # Programs that a task starts find their modules as usual.
        os.environ.pop(_SAFE_PATH, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextlib.contextmanager
def _report_deaths() -> Iterator[None]:
    """Report the death of a worker as a `Sim2RealError`."""
    try:
        yield
    except concurrent.futures.process.BrokenProcessPool:
        raise Sim2RealError(
            'a worker process died, probably out of memory: use fewer --jobs. Scripts need '
            "`if __name__ == '__main__':`."
        ) from None


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Let Python processes that start meanwhile import nothing from the working directory.

    Those of `multiprocessing` would take a `statistics.py` there for the module of that name.
    Python 3.10 ignores the variable.
    """
    added = _SAFE_PATH not in os.environ
    os.environ.setdefault(_SAFE_PATH, '1')
    try:
        yield
    finally:
        if added:
            os.environ.pop(_SAFE_PATH, None)


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block Ctrl-C, which goes to all processes of a terminal, in processes that start meanwhile.

    Each of them would print a traceback; the parent ends them itself.
    """
    if not hasattr(signal, 'pthread_sigmask'):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
