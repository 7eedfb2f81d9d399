# SPDX-License-Identifier: Apache-2.0
"""Reading and writing keep the arrays of the messages in memory, not their bytes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.api import simulate
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.blocks import is_steady
from sim_sensors.core.measurements import ImuArray, MessageArray, MessageParts
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion import motion_of

SMALL, LARGE = 20_000, 120_000
MAX_BYTES = 350
"""Bytes per IMU message. Reading takes 110 to 290, depending on when memory is given back."""


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
def test_messages_joined_from_parts_equal_the_whole(size: int) -> None:
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


def test_parts_do_not_change_with_a_reused_buffer() -> None:
    stamps, parts = np.array([1, 2]), MessageParts[MessageArray]()
    parts.add(MessageArray(stamps, stamps, 'base_link'))
    stamps += 2
    parts.add(MessageArray(stamps, stamps, 'base_link'))
    assert parts.concatenate().stamp_ns.tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(sys.platform != 'linux', reason='memory is read from /proc')
def test_writing_and_reading_take_at_most_350_bytes_per_message(tmp_path: Path) -> None:
    run = [sys.executable, __file__, str(tmp_path)]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    bytes_per_message = {step: float(number) for step, number in map(str.split, lines)}
    assert bytes_per_message.keys() == STEPS.keys()
    for step, number in bytes_per_message.items():
        assert number < MAX_BYTES, f'{step}: {number:.0f} bytes per IMU message'


def drive(count: int) -> Recording:
    """Return a drive with truth, GPS, and `count` IMU messages at 1 kHz."""
    model = dataclasses.replace(load_imu('chrono'), rate=1000.0)
    motion = motion_of('figure_eight', duration=(count - 1) / 1000.0)
    return simulate(motion, gps='baseline', imu=model)


STEPS: dict[str, Callable[[Recording, Path], object]] = {
    'write': lambda recording, folder: write_recording(recording, folder / recording.name),
    'read': lambda recording, folder: read_recording(folder / recording.name),
}


def main(folder: Path) -> None:
    """Print the growth of each step's peak memory per IMU message."""
    small, large = drive(SMALL), drive(LARGE)
    for name, step in STEPS.items():
        # The first call loads modules.
        step(dataclasses.replace(small, name='small'), folder)
        # This resets the peak.
        Path('/proc/self/clear_refs').write_text('5', encoding='ascii')
        before = peak_kb()
        step(dataclasses.replace(large, name='large'), folder)
        print(name, (peak_kb() - before) * 1024 / (LARGE - SMALL))


if __name__ == '__main__':
    main(Path(sys.argv[1]))
