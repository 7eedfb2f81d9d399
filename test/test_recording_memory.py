# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing keep the arrays of the messages in memory, not their bytes."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.cli.main import main as run_command
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.blocks import is_steady
from sim_sensors.core.measurements import ImuArray, MessageArray, MessageParts
from sim_sensors.core.shipped import config_path

SMALL, LARGE = 150_000, 400_000
MAX_BYTES = {'simulate': 180, 'judge': 610, 'check': 300, 'vepd': 480}
"""Bytes per IMU message, a quarter above what was measured.

They guard against copies of whole recordings. They do not show that two hours at 1 kHz stay below
1.5 GB, which takes 180 bytes: `benchmarks/long_recordings.py` measures that.
"""


def imu(count: int) -> ImuArray:
    """Return messages at 1 kHz whose orientation and covariances are constant."""
    stamps = np.arange(1, count + 1) * 1_000_000
    vectors = np.arange(3.0 * count).reshape(count, 3)
    covariance = np.broadcast_to(np.eye(3), (count, 3, 3))
    attitude = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (count, 4))
    return ImuArray(
        stamps, stamps, 'imu_link', attitude, vectors, -vectors, covariance, covariance, covariance
    )


def write_and_read_imu(folder: Path, count: int) -> ImuArray:
    """Return the IMU messages of a recording after writing and reading a bag."""
    write_recording(Recording('r', 's', '', {'/imu': imu(count)}, {'imu': '/imu'}), folder)
    messages = read_recording(folder).imu
    assert messages is not None
    return messages


def peak_kb() -> int:
    """Return the peak memory of this process, kB (`ru_maxrss` includes that of the parent)."""
    lines = Path('/proc/self/status').read_text(encoding='ascii').splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))


def test_constant_fields_of_a_bag_are_stored_once(tmp_path: Path) -> None:
    written, read = imu(20_000), write_and_read_imu(tmp_path / 'bag', 20_000)
    for name in ('orientation', 'orientation_covariance', 'linear_acceleration_covariance'):
        assert is_steady(getattr(read, name)), name
    for name in ('stamp_ns', 'orientation', 'angular_velocity', 'angular_velocity_covariance'):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
    assert is_steady(read.take(read.stamp_ns > 5).orientation)


@pytest.mark.parametrize('size', [1, 7, 40, 41, 60])
def test_messages_joined_from_parts_equal_those_read_at_once(size: int) -> None:
    whole = imu(60)
    covariance = np.array(whole.orientation_covariance)
    covariance[40, 1, 1] = 2.0
    whole = dataclasses.replace(whole, orientation_covariance=covariance)
    parts = MessageParts[ImuArray]()
    for start in range(0, 60, size):
        parts.add(whole.take(slice(start, start + size)))
    joined = parts.concatenate()
    np.testing.assert_array_equal(joined.orientation_covariance, covariance)
    np.testing.assert_array_equal(joined.angular_velocity, whole.angular_velocity)


def test_decoded_parts_do_not_change_if_the_buffer_is_reused() -> None:
    stamps, parts = np.array([1, 2]), MessageParts[MessageArray]()
    parts.add(MessageArray(stamps, stamps, 'base_link'))
    stamps += 2
    parts.add(MessageArray(stamps, stamps, 'base_link'))
    assert parts.concatenate().stamp_ns.tolist() == [1, 2, 3, 4]


@pytest.fixture(scope='module')
def bytes_per_message(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Return how much the peak memory of each command grows per IMU message."""
    if sys.platform != 'linux':
        pytest.skip('memory is read from /proc')
    folder = tmp_path_factory.mktemp('memory')
    # The C library gives back the memory of each array when it is freed, as it always does with
    # the larger arrays of hours.
    environment = {**os.environ, 'MALLOC_MMAP_THRESHOLD_': '65536'}
    run = [sys.executable, __file__, str(folder)]
    subprocess.run(run, check=True, capture_output=True, env=environment)
    growth: dict[str, float] = json.loads((folder / 'growth.json').read_text(encoding='utf-8'))
    return growth


@pytest.mark.parametrize('command', MAX_BYTES)
def test_memory_per_imu_message_is_bounded(
    command: str, bytes_per_message: dict[str, float]
) -> None:
    number = bytes_per_message[command]
    assert number < MAX_BYTES[command], f'{command}: {number:.0f} bytes per IMU message'


def commands(folder: Path, count: int) -> dict[str, list[str]]:
    """Return the arguments of each command for recordings of so many IMU messages at 1 kHz."""
    base = folder / f'{count}'
    base.mkdir()
    text = config_path('imu', 'chrono.yaml').read_text(encoding='utf-8')
    model = str(base / 'chrono.yaml')
    at_1_khz = re.sub('(?m)^rate:.*', 'rate: 1000.0', text)
    Path(model).write_text(at_1_khz, encoding='utf-8')
    duration = ['--duration', f'{count / 1000.0}']
    drive = f'{base}/figure_eight/figure_eight_1'
    return {
        'simulate': ['simulate', '--motion', 'figure_eight', *duration, '--imu', model,
                     '--out', f'{base}/figure_eight'],
        'judge': ['judge', drive, '--config', 'paper_released', '--out', f'{base}/estimate'],
        'check': ['check', drive],
        'vepd': ['vepd', drive, '--models', 'ch_rw', '--imu', model,
                 '--jobs', '1', '--out', f'{base}/vepd'],
    }  # fmt: skip


def measure_growth(folder: Path) -> None:
    """Write the growth of the peak memory of each command, bytes per IMU message."""
    growth: dict[str, float] = {}
    small, large = commands(folder, SMALL), commands(folder, LARGE)
    for name in small:
        peaks = []
        # The smaller one comes first, as it loads modules.
        for arguments in (small[name], large[name]):
            # This resets the peak.
            Path('/proc/self/clear_refs').write_text('5', encoding='ascii')
            run_command(arguments)
            peaks.append(peak_kb())
        growth[name] = (peaks[1] - peaks[0]) * 1024 / (LARGE - SMALL)
    (folder / 'growth.json').write_text(json.dumps(growth), encoding='utf-8')


if __name__ == '__main__':
    measure_growth(Path(sys.argv[1]))
