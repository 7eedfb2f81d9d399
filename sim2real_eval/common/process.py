# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Signals and threads of this process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_REPEAT_S = 0.1
"""Delay after which a signal that compiled code has dropped is sent again."""


@contextlib.contextmanager
def interruptible(*, once: bool = False) -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and SystemExit(143) on SIGTERM, also in compiled code.

    While numba compiles, LLVM calls Python from C, which drops exceptions. The signal is then sent
    again soon after, and an error after a signal counts as the requested end. If `once` is set,
    later signals are ignored while the first one ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals: list[BaseException] = []
    timers: list[threading.Timer] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if once and signals and not timers:
            return
        is_interrupt = number == signal.SIGINT
        while timers:
            timers.pop().cancel()
        signals.append(KeyboardInterrupt() if is_interrupt else SystemExit(128 + number))
        raise signals[-1]

    def repeat_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if not signals:
            unraisable_hook(dropped)
            return
        is_interrupt = isinstance(signals[-1], KeyboardInterrupt)
        number = signal.SIGINT if is_interrupt else signal.SIGTERM
        # Sent to the main thread as a signal, which also ends a call of the system that waits.
        thread = threading.main_thread().ident
        timers.append(threading.Timer(_REPEAT_S, signal.pthread_kill, (thread, number)))
        timers[-1].start()

    handlers = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    # A shell lets programs in the background ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handlers[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    unraisable_hook, sys.unraisablehook = sys.unraisablehook, repeat_dropped
    try:
        yield
        if timers:
            # The dropped signal was not sent again yet.
            raise signals[-1]
    except Exception:
        if signals:
            raise signals[-1] from None
        raise
    finally:
        for timer in timers:
            timer.cancel()
        sys.unraisablehook = unraisable_hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


_THREADS = ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'VECLIB_MAXIMUM_THREADS')


@contextlib.contextmanager
def single_threads() -> Iterator[None]:
    """Let NumPy use one thread in processes that start meanwhile, or when it is imported.

    The matrices are small, so threads make them slower and may change the last digit of a result.
    Environment variables that the user has set stay.
    """
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, '1'))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
