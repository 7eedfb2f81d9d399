# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The least that an rclpy node costs: it answers each Odometry with an Imu of the same stamp."""

from __future__ import annotations

import contextlib

import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.init()
        node = Node('relay')
        publisher = node.create_publisher(Imu, 'imu/data', 10)

        def answer(message: Odometry) -> None:
            publisher.publish(
                Imu(header=message.header, orientation=message.pose.pose.orientation)
            )

        node.create_subscription(
            Odometry,
            'ground_truth/odometry',
            answer,
            QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT),
        )
        rclpy.spin(node)


if __name__ == '__main__':
    main()
