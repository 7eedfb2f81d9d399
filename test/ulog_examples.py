# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Logs of PX4, written byte by byte from the published format."""

from __future__ import annotations

import math
import struct
from pathlib import Path

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
