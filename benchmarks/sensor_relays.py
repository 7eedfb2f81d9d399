# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The least that the messages of a kind of sensor cost: a node that publishes them at their rate.

It takes odometry as bytes, of which it reads the stamp, and has no model.
"""

from __future__ import annotations

import array
import contextlib
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import (
    Point,
    Pose,
    PoseWithCovariance,
    Quaternion,
    Twist,
    TwistWithCovariance,
    Vector3,
)
from geometry_msgs.msg import PoseWithCovarianceStamped as PoseStamped
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import (
    CameraInfo,
    Imu,
    JointState,
    MagneticField,
    NavSatFix,
    PointCloud2,
    PointField,
)
from std_msgs.msg import Header

NINE, TWELVE, THIRTY_SIX = np.zeros(9), np.zeros(12), np.zeros(36)
# 40 features of the camera, with the layout of sim_sensors.camera.features.
FIELDS = [PointField(name=name, datatype=PointField.FLOAT64, count=1) for name in 'xyzuvi']
FEATURES = 40
DATA = array.array('B', bytes(FEATURES * 48))


def vector() -> Vector3:
    return Vector3(x=0.1, y=0.2, z=0.3)


def pose() -> PoseWithCovariance:
    place = Pose(
        position=Point(x=0.1, y=0.2, z=0.3), orientation=Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
    )
    return PoseWithCovariance(pose=place, covariance=THIRTY_SIX)


def imu(header: Header) -> tuple[Any, ...]:
    return (
        Imu(
            header=header,
            orientation=Quaternion(x=0.0, y=0.0, z=0.0, w=1.0),
            orientation_covariance=NINE,
            angular_velocity=vector(),
            angular_velocity_covariance=NINE,
            linear_acceleration=vector(),
            linear_acceleration_covariance=NINE,
        ),
    )


def gps(header: Header) -> tuple[Any, ...]:
    return (
        NavSatFix(
            header=header, latitude=1.0, longitude=2.0, altitude=3.0, position_covariance=NINE
        ),
    )


def mag(header: Header) -> tuple[Any, ...]:
    field = MagneticField(header=header, magnetic_field=vector(), magnetic_field_covariance=NINE)
    return (field,)


def camera(header: Header) -> tuple[Any, ...]:
    info = CameraInfo(
        header=header, width=640, height=480, distortion_model='plumb_bob', d=[0.0] * 5, k=NINE,
        r=NINE, p=TWELVE,
    )  # fmt: skip
    cloud = PointCloud2(
        header=header, height=1, width=FEATURES, fields=FIELDS, point_step=48,
        row_step=48 * FEATURES, data=DATA, is_dense=True,
    )  # fmt: skip
    return info, cloud, PoseStamped(header=header, pose=pose())


def wheels(header: Header) -> tuple[Any, ...]:
    twist = TwistWithCovariance(
        twist=Twist(linear=vector(), angular=vector()), covariance=THIRTY_SIX
    )
    odometry = Odometry(header=header, child_frame_id='base_link', pose=pose(), twist=twist)
    names = [f'wheel_{k}' for k in range(8)]
    return odometry, JointState(header=header, name=names, position=[0.1] * 8)


def vision(header: Header) -> tuple[Any, ...]:
    return (PoseStamped(header=header, pose=pose()),)


# Messages per second, their topics, and the function that makes them.
KINDS: dict[str, tuple[float, dict[str, type], Callable[[Header], tuple[Any, ...]]]] = {
    'imu': (100.0, {'imu/data': Imu}, imu),
    'gps': (10.0, {'gps/fix': NavSatFix}, gps),
    'mag': (100.0, {'imu/mag': MagneticField}, mag),
    'camera': (
        30.0,
        {
            'camera/camera_info': CameraInfo,
            'camera/features': PointCloud2,
            'camera/pose': PoseStamped,
        },
        camera,
    ),
    'wheels': (50.0, {'wheel/odometry': Odometry, 'wheel/joint_states': JointState}, wheels),
    'vision': (30.0, {'vision/pose': PoseStamped}, vision),
}


def main() -> None:
    rate, topics, make = KINDS[sys.argv[1]]
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.init()
        node = Node(f'{sys.argv[1]}_relay')
        publishers = [node.create_publisher(kind, topic, 10) for topic, kind in topics.items()]
        due = 0.0

        def answer(data: bytes) -> None:
            nonlocal due
            seconds, nanoseconds = struct.unpack_from('<iI', data, 4)
            now = seconds + nanoseconds * 1e-9
            if now < due - 1e-6:
                return
            due = max(due, now - 1.0 / rate) + 1.0 / rate
            header = Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id='sensor')
            for publisher, message in zip(publishers, make(header), strict=True):
                publisher.publish(message)

        node.create_subscription(
            Odometry,
            'ground_truth/odometry',
            answer,
            QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT),
            raw=True,
        )
        rclpy.spin(node)


if __name__ == '__main__':
    main()
