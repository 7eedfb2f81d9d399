# SPDX-License-Identifier: Apache-2.0
"""A process beside this one that loads by itself what it needs, and works while this one does."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from .workers import Workers, begin_worker, can_copy, end_all, interrupts_held, single_threads

T = TypeVar('T')
R = TypeVar('R')


class Companion:
    """A process that does what it is sent while this one goes on; a context manager.

    It is a copy of this process from where the context begins, and cheap where that process is
    small then; `prepare` loads there what it needs. With one of `jobs`, and where processes cannot
    be copied, this process does everything at once. So it does with what is left when the other
    has died, for example for want of memory.
    """

    def __init__(self, jobs: int, prepare: Callable[[], object]) -> None:
        self.is_apart = False
        self._jobs, self._prepare = jobs, prepare
        self._sent = 0
        self._done: dict[int, tuple[bool, Any, str]] = {}

    def __enter__(self) -> Companion:
        if self._jobs > 1 and can_copy():
            context = multiprocessing.get_context('fork')
            self._connection, theirs = context.Pipe()
            self._process = context.Process(
                target=_serve, args=(theirs, self._connection, self._prepare), daemon=True
            )
            with interrupts_held(), single_threads():
                self._process.start()
            theirs.close()
            self.is_apart = True
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_apart:
            # Nobody waits for what is left. It ends before the pipe that it writes to.
            end_all([self._process])
            self._connection.close()

    def begin_map(self, function: Callable[[T], R], items: Sequence[T]) -> Callable[[], list[R]]:
        """Begin to call a function with items and return what waits for its results."""
        if not self.is_apart:
            return Workers().begin_map(function, items)
        first, self._sent = self._sent, self._sent + len(items)
        with contextlib.suppress(ConnectionError):
            for number, item in enumerate(items, first):
                self._connection.send_bytes(pickle.dumps((number, pickle.dumps((function, item)))))

        def wait() -> list[R]:
            found: list[R] = []
            for number, item in enumerate(items, first):
                if not self._receive(number):
                    found.append(function(item))
                    continue
                is_done, value, told = self._done.pop(number)
                if not is_done:
                    raise value from RuntimeError(told)
                found.append(value)
            return found

        return wait

    def _receive(self, number: int) -> bool:
        """Wait for the result of a task; return whether there is one."""
        with contextlib.suppress(EOFError, ConnectionError):
            while number not in self._done:
                done, result = pickle.loads(self._connection.recv_bytes())
                self._done[done] = result
        return number in self._done


def _serve(connection: Connection, parents: Connection, prepare: Callable[[], object]) -> None:
    """Do what is sent until nothing more can come."""
    # Or it would wait for what it could send to itself.
    parents.close()
    begin_worker(None)
    tasks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def receive() -> None:
        # While something is done, so that who sends more need not wait for it.
        with contextlib.suppress(EOFError, OSError):
            while True:
                tasks.put(connection.recv_bytes())
        tasks.put(None)

    threading.Thread(target=receive, name='receive tasks', daemon=True).start()
    # What cannot be loaded is told where it is needed.
    with contextlib.suppress(Exception):
        prepare()
    with contextlib.suppress(OSError):
        while (task := tasks.get()) is not None:
            connection.send_bytes(_answer(task))


def _answer(task: bytes) -> bytes:
    """Return the pickled number of a pickled task and what came of it: a value, or an exception
    and where it was raised.
    """
    number, content = pickle.loads(task)
    try:
        function, item = pickle.loads(content)
        return pickle.dumps((number, (True, function(item), '')))
    except Exception as error:
        told = traceback.format_exc()
        try:
            answer = pickle.dumps((number, (False, error, told)))
            pickle.loads(answer)
        except Exception:
            lost = RuntimeError(f'{type(error).__name__}: {error}')
            answer = pickle.dumps((number, (False, lost, told)))
        return answer
