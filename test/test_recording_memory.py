# SPDX-License-Identifier: Apache-2.0
"""Memory that a recording takes: what its messages measure, not their bytes or objects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import Columns, ImuArray, is_steady

MESSAGES = 60_000
MOST_BYTES = 250
"""Of memory by message: 56 are stamps, rates and forces, in what is written, what is read and what
is checked. The message itself has 324."""


def imu(count: int) -> ImuArray:
    """Return messages at 1 kHz whose orientation and covariances never change."""
    stamps = np.arange(1, count + 1) * 1_000_000
    values = np.arange(3.0 * count).reshape(count, 3)
    stated = np.broadcast_to(np.eye(3), (count, 3, 3))
    attitude = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (count, 4))
    return ImuArray(stamps, stamps, 'imu_link', attitude, values, -values, stated, stated, stated)


def written_and_read(folder: Path, count: int) -> ImuArray:
    """Return the IMU of a recording that went through a bag."""
    write_recording(Recording('r', 's', '', {'/imu': imu(count)}, {'imu': '/imu'}), folder)
    found = read_recording(folder).imu
    assert found is not None
    return found


def peak_kb() -> int:
    """Return the most memory that this program has had, kB.

    Not `ru_maxrss`, which begins with that of the process that started it.
    """
    lines = Path('/proc/self/status').read_text(encoding='ascii').splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))


def test_what_never_changes_is_kept_once_and_comes_back(tmp_path: Path) -> None:
    given, found = imu(20_000), written_and_read(tmp_path / 'bag', 20_000)
    for name in ('orientation', 'orientation_covariance', 'linear_acceleration_covariance'):
        assert is_steady(getattr(found, name)), name
    for name in ('stamp_ns', 'orientation', 'angular_velocity', 'angular_velocity_covariance'):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))
    assert is_steady(found.take(found.stamp_ns > 5).orientation)


def test_messages_in_parts_are_those_at_once_wherever_a_value_first_changes() -> None:
    given = imu(60)
    covariance = np.array(given.orientation_covariance)
    covariance[40, 1, 1] = 2.0
    changing = ImuArray(
        given.stamp_ns, given.arrival_ns, 'imu_link', given.orientation, given.angular_velocity,
        given.linear_acceleration, covariance, covariance, covariance,
    )  # fmt: skip
    for size in (1, 7, 40, 41, 60):
        columns = Columns[ImuArray]()
        for start in range(0, 60, size):
            columns.add(changing.take(slice(start, start + size)))
        joined = columns.joined()
        np.testing.assert_array_equal(joined.orientation_covariance, covariance)
        np.testing.assert_array_equal(joined.angular_velocity, given.angular_velocity)


@pytest.mark.skipif(sys.platform != 'linux', reason='memory is read from /proc')
def test_writing_and_reading_take_no_object_for_each_message(tmp_path: Path) -> None:
    run = [sys.executable, __file__, str(tmp_path)]
    grown = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert 0 < int(grown) * 1024 < MOST_BYTES * MESSAGES


if __name__ == '__main__':
    # With what some blocks take, and modules, a first time.
    written_and_read(Path(sys.argv[1], 'first'), 20_000)
    before = peak_kb()
    written_and_read(Path(sys.argv[1], 'second'), MESSAGES)
    print(peak_kb() - before)
