# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM wait while files change places: what has begun is ended."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hear Ctrl-C and SIGTERM at the end of the block only, as their handlers would have then.

    For steps that take milliseconds. Only the main thread is interrupted by signals; in others,
    and for signals that Python does not handle, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _NUMBERS}
    handled = [number for number in _NUMBERS if callable(before[number])]
    try:
        for number in handled:
            signal.signal(number, lambda *signalled: heard.append(signalled))
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
        for signalled in heard:
            before[signalled[0]](*signalled)
