# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM, taken notice of where nothing is half done."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

__all__ = ['Stop', 'Stopped']

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The process was asked to stop.

    Parameters
    ----------
    number : int
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        self.word = 'interrupted' if number == signal.SIGINT else 'terminated'
        super().__init__(self.word)


class Stop:
    """Remembers that the process was asked to stop until somebody looks.

    An exception in a signal handler may come while a process is started, or where Python drops
    exceptions, such as in what it does after a fork; then it is lost. Only a second signal, of
    someone who has waited in vain, raises at once.
    """

    def __init__(self) -> None:
        self._number: int | None = None

    def check(self) -> None:
        """Raise Stopped when the process was asked to stop."""
        if self._number is not None:
            raise Stopped(self._number)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take notice of the signals inside the block.

        What a shell starts in the background ignores SIGINT; here it counts, since `ros2 launch`
        sends it.
        """
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self._number = number
