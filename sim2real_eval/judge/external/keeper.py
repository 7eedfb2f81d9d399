# SPDX-License-Identifier: Apache-2.0
"""Runs a command, and ends with it all that it started once its own parent is gone.

The kernel tells a child that its parent was killed, but not the children of that child, such as
the nodes that `ros2 launch` starts. So this process stands between: it leads their process group.
Imported by nobody: `process.py` runs the file, without site-packages, to start at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType

ORPHANED = signal.SIGHUP
"""What the kernel sends when the parent has ended."""


def main(command: list[str]) -> int:
    """Run the command; return its exit status, negative for a signal."""

    def end_group(number: int, frame: FrameType | None) -> None:
        os.killpg(0, signal.SIGKILL)

    signal.signal(ORPHANED, end_group)
    # They reach the command too, which is to end by itself; Popen gives it the usual ones back.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return subprocess.call(command)


if __name__ == '__main__':
    status = main(sys.argv[1:])
    if status < 0:
        # The parent is to see the same end. SIGKILL has no handler that could be taken away.
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
