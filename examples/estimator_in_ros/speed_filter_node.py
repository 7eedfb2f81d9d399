# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A node that estimates velocity from fixes: differences, low-passed."""

from __future__ import annotations

import contextlib
import math
import sys

import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import NavSatFix

METRES_PER_DEGREE = 111_320.0


class SpeedFilter(Node):
    """Publishes the velocity, east and north, after every fix."""

    def __init__(self) -> None:
        super().__init__('speed_filter')
        self._time_constant = self.declare_parameter('time_constant', 0.5).value  # s
        self._last: tuple[float, float, float] | None = None
        self._velocity = (0.0, 0.0)
        self._publisher = self.create_publisher(Odometry, 'speed_filter/odometry', 10)
        self.create_subscription(NavSatFix, 'gps/fix', self.on_fix, qos_profile_sensor_data)

    def on_fix(self, fix: NavSatFix) -> None:
        """Take a fix; publish the velocity at its stamp."""
        time = fix.header.stamp.sec + fix.header.stamp.nanosec * 1e-9
        here = (time, fix.longitude, fix.latitude)
        if self._last is not None and time > self._last[0]:
            dt = time - self._last[0]
            share = dt / (self._time_constant + dt)
            # Of the difference alone: that of products with the cosine would move east with north.
            scales = (METRES_PER_DEGREE * math.cos(math.radians(fix.latitude)), METRES_PER_DEGREE)
            steps = [new - old for new, old in zip(here[1:], self._last[1:], strict=True)]
            raw = [step * scale / dt for step, scale in zip(steps, scales, strict=True)]
            self._velocity = tuple(
                (1 - share) * old + share * new
                for old, new in zip(self._velocity, raw, strict=True)
            )
        self._last = here
        message = Odometry()
        message.header.stamp = fix.header.stamp
        message.header.frame_id = 'odom'
        # In the world's axes, not the body's, as speed_filter.yaml says.
        message.child_frame_id = 'base_link'
        message.pose.pose.orientation.w = 1.0
        message.twist.twist.linear.x, message.twist.twist.linear.y = self._velocity
        self._publisher.publish(message)


def main() -> None:
    """Run the node until Ctrl-C."""
    rclpy.init(args=sys.argv)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(SpeedFilter())


if __name__ == '__main__':
    main()
