# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Progress lines at regular intervals, for output without a progress bar."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def heartbeat(
    say: Callable[[str], None], describe: Callable[[], str], interval_s: float = 10.0
) -> Iterator[None]:
    """Report the current activity and the elapsed time at regular intervals.

    Parameters
    ----------
    say : callable
        Called with each line, from a separate thread.
    describe : callable
        Returns a description of the activity for each line.
    interval_s : float
        Time between two lines, s.

    Examples
    --------
    >>> import time
    >>> with heartbeat(print, lambda: 'run 3 of 12', interval_s=0.3):
    ...     time.sleep(0.5)
    run 3 of 12 (0 s)
    """
    began, done = time.monotonic(), threading.Event()

    def report() -> None:
        while not done.wait(interval_s):
            say(f'{describe()} ({time.monotonic() - began:.0f} s)')

    thread = threading.Thread(target=report, name='heartbeat', daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
