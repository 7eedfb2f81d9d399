# SPDX-License-Identifier: Apache-2.0
"""What a node does when /clock jumps back, as when a simulation begins again."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.clock import ClockChange, JumpHandle, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node

__all__ = ['on_backward_jump']


def on_backward_jump(node: Node, callback: Callable[[], None]) -> JumpHandle:
    """Have a callback called after the clock of a node has jumped back; keep what is returned.

    That simulated time was switched on or off is no jump.
    """

    def jumped(jump: TimeJump) -> None:
        if jump.clock_change == ClockChange.ROS_TIME_NO_CHANGE:
            callback()

    return node.get_clock().create_jump_callback(
        JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        ),
        post_callback=jumped,
    )
