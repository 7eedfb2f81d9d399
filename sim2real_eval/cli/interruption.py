# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM, heard also where they came at a bad moment."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ['Interruption', 'interruptible']


class Interruption:
    """Whether somebody asked for the end.

    Attributes
    ----------
    error : KeyboardInterrupt, SystemExit or None
        What the signal raised: KeyboardInterrupt for Ctrl-C, SystemExit for SIGTERM.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        raise self.error


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM, as from `timeout`, remove temporary files and worker processes like Ctrl-C.

    While loops are compiled, LLVM calls Python from C, which cannot pass an exception on: that of
    a signal is printed and dropped, and what was about to be compiled fails as if it were wrong.
    After a signal every failure is therefore taken for the end that was asked for.

    Raises
    ------
    KeyboardInterrupt, SystemExit
        In place of what failed after Ctrl-C or SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = Interruption()
    numbers = [signal.SIGTERM]
    # Ignored, as in a program that a shell runs in the background, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, heard._stop) for number in numbers}
    hook = sys.unraisablehook

    def quiet(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_value is not heard.error:
            hook(dropped)

    sys.unraisablehook = quiet
    try:
        yield
    except Exception:
        if heard.error is not None:
            raise heard.error from None
        raise
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
