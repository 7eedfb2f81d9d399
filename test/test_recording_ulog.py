# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Logs of PX4, written here byte by byte from the published format, are read in ROS's axes."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from ulog_examples import COUNT, HEADING, NEW_GPS, RATE, SPEED, STEP_US, drive, write_log

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.reading import read_recording


def test_imu_fixes_and_motion_of_a_log_have_the_axes_of_ros(tmp_path: Path) -> None:
    pytest.importorskip('pyulog')
    read = read_recording(write_log(tmp_path / 'flight.ulg', drive('_groundtruth')))
    assert (len(read.imu), len(read.gps), len(read.truth)) == (COUNT, 19, COUNT)
    assert read.imu.stamp_ns[:2].tolist() == [3_000_000_000, 3_010_000_000]
    np.testing.assert_allclose(read.imu.angular_velocity[0], [0.01, -0.02, -RATE], rtol=1e-6)
    np.testing.assert_allclose(read.imu.linear_acceleration[0], [0.5, -0.25, 9.8], rtol=1e-6)
    # The first message has no fix.
    np.testing.assert_allclose(read.gps.latitude[0], 43.00001, rtol=0, atol=1e-9)
    assert read.gps.altitude[0] == pytest.approx(240.0)
    np.testing.assert_allclose(
        np.diag(read.gps.position_covariance[0]), [0.25, 0.25, 0.81], rtol=1e-6
    )
    last = (COUNT - 1) * STEP_US * 1e-6
    expected = [SPEED * math.sin(HEADING) * last, SPEED * math.cos(HEADING) * last, 2.0]
    np.testing.assert_allclose(read.truth.position[-1], expected, atol=1e-5)
    # Heading from north to the right becomes yaw from east to the left.
    x, y, z, w = read.truth.orientation[-1]
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    assert yaw == pytest.approx(math.pi / 2 - HEADING - RATE * last, abs=1e-6)
    np.testing.assert_allclose(read.truth.angular_velocity[-1], [0, 0, -RATE], atol=1e-6)
    # The nose has turned to the right of the course, so the velocity points to the left of it.
    forward, left = SPEED * math.cos(RATE * last), SPEED * math.sin(RATE * last)
    np.testing.assert_allclose(read.truth.linear_velocity[-1], [forward, left, 0], atol=1e-5)
    arms = {transform.child: transform.translation for transform in read.transforms}
    assert arms == {'imu_link': (0.0, 0.0, 0.0), 'gps_link': (0.0, -0.5, 0.0)}
    assert 'recording.reference_truth' not in {note.code for note in read.notes}


def test_fixes_of_newer_logs_are_in_degrees_and_the_estimate_is_a_reference(
    tmp_path: Path,
) -> None:
    pytest.importorskip('pyulog')
    read = read_recording(write_log(tmp_path / 'flight.ulg', drive(gps=NEW_GPS)))
    assert read.gps.latitude[3] == 43.0 + 1e-6 * 30
    assert set(read.gps.status) == {2}
    assert 'recording.reference_truth' in {note.code for note in read.notes}


def test_a_motion_without_rates_gets_them_from_its_poses(tmp_path: Path) -> None:
    pytest.importorskip('pyulog')
    read = read_recording(write_log(tmp_path / 'flight.ulg', drive()[:-1]))
    np.testing.assert_allclose(read.truth.angular_velocity[50], [0, 0, -RATE], atol=1e-3)
    assert 'truth.from_poses' in {note.code for note in read.notes}


@pytest.mark.parametrize('data', [b'', b'ULog\x01\x12\x35\x01', bytes(100)])
def test_a_damaged_log_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip('pyulog')
    (tmp_path / 'flight.ulg').write_bytes(data)
    with pytest.raises(RecordingError, match=r'flight\.ulg: [^\n]+$'):
        read_recording(tmp_path / 'flight.ulg')


def test_missing_pyulog_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'pyulog', None)
    with pytest.raises(RecordingError, match='pip install pyulog'):
        read_recording(write_log(tmp_path / 'flight.ulg', drive()))
