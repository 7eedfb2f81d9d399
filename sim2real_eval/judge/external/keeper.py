# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Run a command, and end it with all its children when the parent process is gone.

The kernel signals a process whose parent was killed, but not the children of that process, such as
the nodes that `ros2 launch` starts. This process leads their process group and kills the group.
No module imports it: `process.py` runs the file without site-packages, so that it starts at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from types import FrameType

ORPHANED = signal.SIGHUP
"""Signal of the kernel when the parent has ended."""


def main(scratch_folder: str, command: list[str]) -> int:
    """Run the command; return its exit status, negative for a signal.

    The folder is removed if the parent ends first; an empty string means there is none.
    """

    def end_group(number: int, frame: FrameType | None) -> None:
        if scratch_folder:
            shutil.rmtree(scratch_folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)

    signal.signal(ORPHANED, end_group)
    # The command receives these signals too and should end by itself. Popen restores the default
    # handlers for it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return subprocess.call(command)


if __name__ == '__main__':
    status = main(sys.argv[1], sys.argv[2:])
    if status < 0:
        # The parent must see the same signal. SIGKILL has no handler to reset.
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
