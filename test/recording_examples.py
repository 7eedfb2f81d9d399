# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""For the tests of recordings: a valid one of every message type, bags of it, bit equality."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
from rosbags.typesys import Stores, get_typestore

from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)

TYPESTORE = get_typestore(Stores.ROS2_JAZZY)
SUFFIX = {'mcap': '.mcap', 'sqlite3': '.db3'}
SHARED = Path(__file__).parents[1] / '../shared'
REFERENCE = Path(os.environ.get('SIM2REAL_REFERENCE') or SHARED / 'reference')
REAL = Path(os.environ.get('SIM2REAL_REAL') or SHARED / 'real')


def arrays_equal(a: MessageArray, b: MessageArray) -> bool:
    """Bit equality of all fields; -0.0 and 0.0 differ, equal NaNs do not."""
    if type(a) is not type(b):
        return False
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            if x.shape != y.shape or x.tobytes() != y.tobytes():
                return False
        elif x != y:
            return False
    return True


def drive(n: int = 400, start_ns: int = 1_000_000_000_000) -> Recording:
    """Make a valid recording with every type that a recording holds, at 100, 50 and 10 Hz."""
    rng = np.random.default_rng(7)

    def base(count: int, period_ns: int, frame: str, lag_ns: int = 0) -> dict[str, object]:
        stamp = start_ns + period_ns * np.arange(count)
        return {'stamp_ns': stamp, 'arrival_ns': stamp + lag_ns, 'frame': frame}

    def quaternion(count: int) -> np.ndarray:
        q = rng.normal(size=(count, 4))
        return q / np.linalg.norm(q, axis=1, keepdims=True)

    def covariance(count: int, size: int) -> np.ndarray:
        return np.broadcast_to(np.diag(rng.uniform(0.1, 1, size)), (count, size, size))

    imu = ImuArray(
        **base(n, 10_000_000, 'imu_link'), orientation=quaternion(n),
        angular_velocity=rng.normal(size=(n, 3)), linear_acceleration=rng.normal(size=(n, 3)),
        orientation_covariance=covariance(n, 3), angular_velocity_covariance=covariance(n, 3),
        linear_acceleration_covariance=covariance(n, 3),
    )  # fmt: skip
    m = n // 10
    fix = FixArray(
        **base(m, 100_000_000, 'gps_link', 3_000_001), latitude=43 + rng.normal(size=m) * 1e-5,
        longitude=-89 + rng.normal(size=m) * 1e-5, altitude=rng.normal(size=m) + 260,
        status=np.zeros(m, np.int64), position_covariance=covariance(m, 3),
        position_covariance_type=np.full(m, 2),
    )  # fmt: skip
    k = n // 2

    def odometry(frame: str, child: str, scale: float) -> OdometryArray:
        return OdometryArray(
            **base(k, 20_000_000, frame), child_frame=child, position=rng.normal(size=(k, 3)),
            orientation=quaternion(k), linear_velocity=rng.normal(size=(k, 3)),
            angular_velocity=rng.normal(size=(k, 3)), pose_covariance=scale * covariance(k, 6),
            twist_covariance=scale * covariance(k, 6),
        )  # fmt: skip

    pose = PoseArray(
        **base(m, 100_000_000, 'odom', 250_000_000),
        position=rng.normal(size=(m, 3)),
        orientation=quaternion(m),
        pose_covariance=covariance(m, 6),
    )
    twist = TwistArray(
        **base(m, 100_000_000, 'base_link'),
        linear_velocity=rng.normal(size=(m, 3)),
        angular_velocity=rng.normal(size=(m, 3)),
        twist_covariance=covariance(m, 6),
    )
    magnetic = MagneticFieldArray(
        **base(k, 20_000_000, 'imu_link'),
        magnetic_field=5e-5 * rng.normal(size=(k, 3)),
        magnetic_field_covariance=1e-14 * covariance(k, 3),
    )
    command = dataclasses.replace(twist, twist_covariance=np.zeros((m, 6, 6)))
    return Recording(
        name='line_3',
        scenario='line',
        path='',
        messages={
            '/imu/data': imu, '/gps/fix': fix,
            '/ground_truth/odometry': odometry('map', 'base_link', 0.0),
            '/odom': odometry('odom', 'base_footprint', 1.0), '/imu/mag': magnetic,
            '/pose': pose, '/gps/vel': twist, '/cmd_vel': command,
        },
        roles={
            'imu': '/imu/data', 'gps': '/gps/fix', 'truth': '/ground_truth/odometry',
            'mag': '/imu/mag',
        },
        transforms=(
            StaticTransform('base_link', 'imu_link', (0.1, -0.2, 0.3), (0.0, 0.0, 0.6, 0.8)),
            StaticTransform('base_link', 'gps_link', (1e-17, 0.5, 1.0)),
        ),
        ros_types={'/cmd_vel': 'geometry_msgs/msg/TwistStamped'},
    )  # fmt: skip


def write_bags(root: Path) -> Path:
    """Write a short drive to `root`/mcap/line_3 and `root`/sqlite3/line_3."""
    for storage in SUFFIX:
        write_recording(drive(100), root / storage / 'line_3', storage=storage)
    return root


def assert_same(read: Recording, written: Recording) -> None:
    assert set(read.messages) == set(written.messages)
    for topic, array in written.messages.items():
        assert arrays_equal(read.messages[topic], array), topic
    assert read.roles == written.roles
    assert set(read.transforms) == set(written.transforms)
    assert (read.name, read.scenario) == (written.name, written.scenario)
    assert read.ros_types['/cmd_vel'] == 'geometry_msgs/msg/TwistStamped'
