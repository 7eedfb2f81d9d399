# SPDX-License-Identifier: Apache-2.0
"""A line every few seconds while something takes long, for those who see no progress bar."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def heartbeat(
    say: Callable[[str], None], describe: Callable[[], str], interval_s: float = 10.0
) -> Iterator[None]:
    """Say at intervals what goes on, and for how long it has.

    Parameters
    ----------
    say : callable
        Gets each line, in a thread of its own.
    describe : callable
        Asked for what goes on whenever a line is due.
    interval_s : float

    Examples
    --------
    >>> import time
    >>> with heartbeat(print, lambda: 'run 3 of 12', interval_s=0.3):
    ...     time.sleep(0.5)
    run 3 of 12 (0 s)
    """
    began, done = time.monotonic(), threading.Event()

    def repeat() -> None:
        while not done.wait(interval_s):
            say(f'{describe()} ({time.monotonic() - began:.0f} s)')

    thread = threading.Thread(target=repeat, name='heartbeat', daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
