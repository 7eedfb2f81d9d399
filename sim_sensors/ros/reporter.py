# SPDX-License-Identifier: Apache-2.0
"""How a node publishes its health on /diagnostics."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

__all__ = ['Reporter']


class Reporter:
    """Publishes the status of a node now and then.

    Diagnostics are about this process, so they follow the wall and go on in a paused world.

    Parameters
    ----------
    node : Node
    status : callable
        Returns the status.
    period : float
        Wall time from one message to the next, s.
    """

    def __init__(
        self, node: Node, status: Callable[[], DiagnosticStatus], period: float = 1.0
    ) -> None:
        self._status = status
        self._clock = node.get_clock()
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        node.create_timer(period, self.report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def report(self) -> None:
        """Publish the status."""
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = self._clock.now().to_msg()
        self._publisher.publish(message)
