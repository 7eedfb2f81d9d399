# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the demo and read a recording of each kind, in an environment without test tools.

An import that setup.py does not declare, or a lower bound that is too low, fails here: with the
test tools, some other package brings the library. `make bounds` runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ulog_examples import drive, write_log

BIN = Path(sys.executable).parent
CONVERSIONS = {
    'file_zstd': '--dst-storage sqlite3 --compress zstd --compress-mode file',
    'message_zstd': '--dst-storage sqlite3 --compress zstd --compress-mode message',
    'mcap_zstd': '--dst-storage mcap --compress zstd --compress-mode storage',
    'ros1.bag': '--dst-typestore ros1_noetic',
    'ros1_bz2.bag': '--dst-typestore ros1_noetic --compress bz2',
    'ros1_lz4.bag': '--dst-typestore ros1_noetic --compress lz4',
}
"""Options of rosbags-convert by recording."""


def run(command: str, *arguments: object, folder: Path, most: int = 0) -> None:
    """Run a command of this environment; the script ends if its status exceeds `most`."""
    words = [str(BIN / command), *map(str, arguments)]
    print('$', command, *arguments, flush=True)
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, 'PYTHONNOUSERSITE': '1'},
    )  # fmt: skip
    if not 0 <= done.returncode <= most:
        sys.exit(f'{done.stdout}{done.stderr}\nfailed with status {done.returncode}')


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run('sim2real', 'demo', '--runs', 3, folder=folder)
        for storage in ('mcap', 'sqlite3', 'csv'):
            run(
                'sim2real', 'simulate', '--motion', 'drive_line', '--duration', 20, '--runs', 2,
                '--storage', storage, '--out', storage, folder=folder,
            )  # fmt: skip
        paths = [path for kind in ('mcap', 'sqlite3', 'csv') for path in (folder / kind).iterdir()]
        bag = folder / 'mcap' / 'line_1'
        for target, options in CONVERSIONS.items():
            run('rosbags-convert', '--src', bag, '--dst', target, *options.split(), folder=folder)
            paths.append(folder / target)
        paths.append(write_log(folder / 'px4.ulg', drive()))
        for path in paths:
            # Status 1: the recording is read, and a sensor does not pass.
            run('sim2real', 'check', path, folder=folder, most=1)
        run('sim2real', 'vepd', *paths[:2], '--models', 'ch_rw', '--out', 'vepd', folder=folder)
    print(f'The demo, and recordings of {len(paths)} kinds: all right.')


if __name__ == '__main__':
    main()
