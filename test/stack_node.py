# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Lifecycle node with a reset, for test_ros_stack.py; it publishes the number of fixes."""

from __future__ import annotations

import contextlib
import sys
import time

import rclpy
from geometry_msgs.msg import TwistStamped
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import NavSatFix
from std_srvs.srv import Empty


class Counter(LifecycleNode):  # type: ignore[misc]
    """Publishes the number of fixes so far as a speed, except for the fix `skip`."""

    def __init__(self) -> None:
        super().__init__('counter')
        self.count = 0
        self.skip = self.declare_parameter('skip', -1).value
        self.broken = self.declare_parameter('broken', '').value
        self.create_service(Empty, 'start_anew', self.on_reset)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create the publisher and the subscription."""
        self.publisher = self.create_publisher(TwistStamped, 'speed', 10)
        # Reliable with a deep queue, so that a busy machine loses no fix.
        self.create_subscription(NavSatFix, 'fix', self.on_fix, 100)
        if self.broken == 'slow':
            time.sleep(1.3)
        failed = self.broken == 'configure'
        return TransitionCallbackReturn.FAILURE if failed else TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start to count."""
        if self.broken == 'activate':
            raise RuntimeError('as asked for')
        return TransitionCallbackReturn.SUCCESS

    def on_fix(self, fix: NavSatFix) -> None:
        """Count a fix."""
        self.count += 1
        message = TwistStamped(header=fix.header)
        message.twist.linear.x = float(self.count)
        if self.count != self.skip:
            self.publisher.publish(message)

    def on_reset(self, _: Empty.Request, answer: Empty.Response) -> Empty.Response:
        """Restart the count at zero."""
        self.count = 0
        return answer


if __name__ == '__main__':
    rclpy.init(args=sys.argv)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(Counter())
