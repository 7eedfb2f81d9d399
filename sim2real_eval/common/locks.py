# SPDX-License-Identifier: Apache-2.0
"""Names that other folders still import until they use `common.results` and `tempfile`."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from .results import hold

__all__ = ['Scratch', 'hold', 'left_scratches', 'remove_scratch', 'uninterrupted']


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of a block of a few milliseconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    }
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, lambda *arguments: received.append(arguments))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for arguments in received:
            handlers[arguments[0]](*arguments)


class Scratch:
    """A new temporary folder, removed by `remove` or at the end of a `with` block."""

    def __init__(self, where: Path, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f'{prefix}tmp-{os.getpid()}-', dir=where))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder and everything in it; a second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)


def remove_scratch(folder: Path) -> None:
    """Remove a temporary folder."""
    shutil.rmtree(folder)


def left_scratches(where: Path, prefix: str) -> Iterator[Path]:
    """Yield the temporary folders of processes that have ended without removing them."""
    for folder in where.glob(f'{prefix}tmp-*'):
        pid = folder.name[len(prefix) :].split('-')[1]
        try:
            os.kill(int(pid), 0)
        except (ProcessLookupError, OverflowError):
            yield folder
        except (ValueError, OSError):
            continue
