# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Logs of PX4, written here byte by byte from the published format, are read in ROS's axes."""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.reading import read_recording

COUNT, STEP_US, START_US = 200, 10_000, 3_000_000
SPEED, HEADING, RATE = 4.0, math.radians(30.0), 0.2
CODES = {'uint64_t': 'Q', 'int32_t': 'i', 'uint8_t': 'B', 'bool': '?', 'float': 'f', 'double': 'd'}

IMU = ('sensor_combined', 'float[3] gyro_rad;float[3] accelerometer_m_s2')
OLD_GPS = (
    'vehicle_gps_position',
    'int32_t lat;int32_t lon;int32_t alt;int32_t alt_ellipsoid;'
    'uint8_t fix_type;float eph;float epv',
)
NEW_GPS = (
    'sensor_gps',
    'double latitude_deg;double longitude_deg;double altitude_msl_m;double altitude_ellipsoid_m;'
    'uint8_t fix_type;float eph;float epv',
)
POSITION = ('vehicle_local_position', 'float x;float y;float z;float vx;float vy;float vz')
ATTITUDE = ('vehicle_attitude', 'float[4] q')
ANGULAR = ('vehicle_angular_velocity', 'float[3] xyz')


def message(kind: bytes, content: bytes) -> bytes:
    return struct.pack('<HB', len(content), ord(kind)) + content


def packing(fields: str) -> str:
    code = '<Q'
    for field in fields.split(';'):
        kind, _, count = field.split(' ')[0].partition('[')
        code += (count.rstrip(']') or '1') + CODES[kind]
    return code


def write_log(path: Path, topics: list[tuple[str, str, list[tuple[int, ...]]]]) -> Path:
    """Write header, formats, a parameter, subscriptions and data of (name, fields, rows)."""
    data = b'ULog\x01\x12\x35\x01' + struct.pack('<Q', START_US)
    data += message(b'B', bytes(40))
    for name, fields, _ in topics:
        data += message(b'F', f'{name}:uint64_t timestamp;{fields};'.encode())
    key = b'float EKF2_GPS_POS_Y'
    data += message(b'P', bytes([len(key)]) + key + struct.pack('<f', 0.5))
    for number, (name, _, _) in enumerate(topics):
        data += message(b'A', struct.pack('<BH', 0, number) + name.encode())
    for number, (_, fields, rows) in enumerate(topics):
        for row in rows:
            content = struct.pack(packing(fields), *row)
            data += message(b'D', struct.pack('<H', number) + content)
    path.write_bytes(data)
    return path


def drive(suffix: str = '', gps: tuple[str, str] = OLD_GPS) -> list[tuple[str, str, list]]:
    """Drive level and straight at 4 m/s, 30 degrees east of north, while turning at 0.2 rad/s
    about the vertical; the nose begins at that heading.
    """
    rows: dict[str, list] = {'imu': [], 'gps': [], 'position': [], 'attitude': [], 'rate': []}
    north, east = SPEED * math.cos(HEADING), SPEED * math.sin(HEADING)
    for k in range(COUNT):
        t, stamp = k * STEP_US * 1e-6, START_US + k * STEP_US
        # Down is positive in PX4: a turn to the right, and gravity felt upwards.
        rows['imu'].append((stamp, 0.01, 0.02, RATE, 0.5, 0.25, -9.8))
        if k % 10 == 0:
            place = (43.0 + 1e-6 * k, -89.4, 250.0, 240.0)
            if gps is OLD_GPS:
                scaled = [round(v * s) for v, s in zip(place, (1e7, 1e7, 1e3, 1e3), strict=True)]
                rows['gps'].append((stamp, *scaled, 3 if k else 1, 0.5, 0.9))
            else:
                rows['gps'].append((stamp, *place, 6, 0.5, 0.9))
        rows['position'].append((stamp, north * t, east * t, -2.0, north, east, 0.0))
        half = 0.5 * (HEADING + RATE * t)
        rows['attitude'].append((stamp, math.cos(half), 0.0, 0.0, math.sin(half)))
        rows['rate'].append((stamp, 0.0, 0.0, RATE))
    return [
        (*IMU, rows['imu']),
        (*gps, rows['gps']),
        (POSITION[0] + suffix, POSITION[1], rows['position']),
        (ATTITUDE[0] + suffix, ATTITUDE[1], rows['attitude']),
        (ANGULAR[0] + suffix, ANGULAR[1], rows['rate']),
    ]


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
