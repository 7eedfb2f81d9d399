# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Processor time per short recording of `sim2real vepd`, in turns with another commit.

Drives of 5 s, two models. The time of the command with few recordings is subtracted, so that the
fixed cost of the command does not count. The user and system time of all processes counts.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import MIN_REPETITIONS, spread, table, write

_ROOT = Path(__file__).resolve().parents[1]
_FEW = 20
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of Linux
_MODELS = 'ch_rw,ch_gauss'


def run(root: Path, folder: Path, words: list[str]) -> float:
    """Run a verb of the code in `root`; return the processor time of its processes, s."""
    environment = {
        **os.environ, 'PYTHONPATH': str(root), 'MPLBACKEND': 'Agg', 'OPENBLAS_NUM_THREADS': '1',
    }  # fmt: skip
    before = os.times()
    command = [sys.executable, '-m', 'sim2real_eval.cli', *words]
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=folder)
    # Workers that the command does not wait for have become children of this process.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def per_recording(root: Path, folder: Path, count: int, jobs: int) -> float:
    """Return the processor time of one more recording, ms."""
    took = {}
    for recordings in (_FEW, count):
        real = [f'bags/line_{number}' for number in range(1, recordings + 1)]
        words = ['vepd', *real, '--models', _MODELS, '--jobs', str(jobs)]
        took[recordings] = run(root, folder, [*words, '--out', 'result', '--overwrite'])
    return 1e3 * (took[count] - took[_FEW]) / (count - _FEW)


def unpack(commit: str, folder: Path) -> Path:
    """Write the code of a commit into a new folder."""
    folder.mkdir()
    archive = ['git', '-C', str(_ROOT), 'archive', '--format=tar', commit]
    packed = subprocess.run(archive, check=True, capture_output=True).stdout
    subprocess.run(['tar', '-x', '-C', str(folder)], check=True, input=packed)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--against', metavar='COMMIT', default='914dd60e')
    parser.add_argument('--recordings', type=int, default=100)
    parser.add_argument('--repetitions', type=int, default=MIN_REPETITIONS)
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made = ['--duration', '5', '--runs', str(options.recordings), '--out', 'bags']
        run(_ROOT, folder, ['simulate', '--motion', 'drive_line', *made])
        codes = {options.against: unpack(options.against, folder / 'code'), 'this': _ROOT}
        for root in codes.values():  # compile
            per_recording(root, folder, _FEW + 1, 1)
        took: dict[str, list[float]] = {}
        for _ in range(options.repetitions):
            for jobs in (1, 2):
                for name, root in codes.items():
                    milliseconds = per_recording(root, folder, options.recordings, jobs)
                    took.setdefault(f'{name}, --jobs {jobs}', []).append(milliseconds)
    medians = {name: spread(values)['median'] for name, values in took.items()}
    table(
        ('code', 'ms per recording'), [(name, f'{median:.0f}') for name, median in medians.items()]
    )
    ratios = {
        f'jobs_{jobs}': medians[f'{options.against}, --jobs {jobs}']
        / medians[f'this, --jobs {jobs}']
        for jobs in (1, 2)
    }
    print('as many times as fast:', ', '.join(f'{ratio:.2f}' for ratio in ratios.values()))
    result = {'recordings': options.recordings, 'milliseconds': took, 'ratios': ratios}
    write(options.out, 'recording_cpu', result)


if __name__ == '__main__':
    main()
