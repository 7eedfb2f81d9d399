# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Memory and time of each verb on a long recording, and reading beside rosbags' AnyReader."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from measuring import table, write

from sim_sensors.core.shipped import config_path

_ANY_READER = """
import pathlib, sys
import sim2real_eval.recording.rosbag  # as much as the other imports
from rosbags.highlevel import AnyReader
with AnyReader([pathlib.Path(sys.argv[1])]) as reader:
    for _ in reader.messages():
        pass
"""
_READ = """
import sys
from sim2real_eval import read_recording
read_recording(sys.argv[1])
"""
_MOVING, _STANDING, _OUT = 'figure_eight', 'standstill', 'out'


class Run(NamedTuple):
    """What a child took: peak of its memory, MB, its processor time, s, and its exit status."""

    megabytes: float
    seconds: float
    status: int


def run(arguments: list[str], limit_s: float) -> Run:
    """Run a child to its end or the limit, s, of its processor time."""
    limit = f'ulimit -t {limit_s:.0f}; exec "$@"'
    child = subprocess.Popen(
        ['sh', '-c', limit, 'sh', *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'},
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Run(usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, child.returncode)


def model(name: str, rate: float, folder: Path) -> str:
    """Write a shipped IMU model at another rate, Hz; return the file."""
    text = config_path('imu', f'{name}.yaml').read_text(encoding='utf-8')
    file = folder / f'{name}.yaml'
    file.write_text(re.sub(r'(?m)^rate:.*', f'rate: {rate}', text), encoding='utf-8')
    return str(file)


def steps(folder: Path, data: Path, duration: float, rate: float) -> dict[str, list[str]]:
    """Return the commands by name, in the order in which they depend on each other.

    Recordings lie in `data`; what is made of them lies in `folder`, and goes before the next.
    """
    verb = [sys.executable, '-m', 'sim2real_eval.cli']
    moving, standing = (str(data / motion / f'{motion}_1') for motion in (_MOVING, _STANDING))

    def simulated(motion: str, imu: str) -> list[str]:
        made = ['--duration', str(duration), '--imu', imu, '--out', str(data / motion)]
        return [*verb, 'simulate', '--motion', motion, *made]

    noisy = model('chrono', rate, folder)

    def out(name: str) -> list[str]:
        return ['--out', str(folder / _OUT / name)]

    return {
        'simulate': simulated(_MOVING, noisy),
        'AnyReader': [sys.executable, '-c', _ANY_READER, moving],
        'read_recording': [sys.executable, '-c', _READ, moving],
        'judge': [*verb, 'judge', moving, '--config', 'paper_released', *out('estimate')],
        'check': [*verb, 'check', moving],
        'compare': [*verb, 'compare', moving, '--imu', noisy, '--jobs', '1', *out('c')],
        'vepd': [
            *verb, 'vepd', moving, '--models', 'ch_rw', '--imu', noisy, '--jobs', '1',
            *out('vepd'),
        ],
        'simulate, standing': simulated(_STANDING, model('xsens_mtx', rate, folder)),
        'allan': [*verb, 'allan', standing, *out('allan')],
        'characterize': [*verb, 'characterize', standing, *out('characterize')],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--duration', type=float, default=7200.0, help='s, default %(default)s')
    parser.add_argument('--rate', type=float, default=1000.0, help='of the IMU, Hz')
    parser.add_argument(
        '--data', type=Path, help='folder that keeps the recordings; what it has is not made again'
    )
    parser.add_argument('--limit', type=float, default=1800.0, help='processor time of each, s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    found: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = options.data or folder
        for name, arguments in steps(folder, data, options.duration, options.rate).items():
            motion = _STANDING if 'standing' in name else _MOVING
            if name.startswith('simulate') and (data / motion).exists():
                continue
            if data == folder and motion == _STANDING:
                shutil.rmtree(data / _MOVING, ignore_errors=True)
            (folder / _OUT).mkdir()
            found[name] = run(arguments, options.limit)
            shutil.rmtree(folder / _OUT)
            print(name, *(f'{value:.0f}' for value in found[name]), file=sys.stderr, flush=True)
    any_reader = found['AnyReader'].seconds
    table(
        ('', 'peak MB', 's', 'x real time', 'of AnyReader', 'exit'),
        [
            (
                name,
                f'{one.megabytes:,.0f}',
                f'{one.seconds:,.1f}',
                f'{options.duration / one.seconds:,.0f}',
                f'{one.seconds / any_reader:.2f}',
                str(one.status),
            )
            for name, one in found.items()
        ],
    )
    result: dict[str, Any] = {name: one._asdict() for name, one in found.items()}
    name = f'long_recordings_{options.duration:.0f}s_{options.rate:.0f}hz'
    write(options.out, name, {'duration': options.duration, 'rate': options.rate, 'runs': result})


if __name__ == '__main__':
    main()
