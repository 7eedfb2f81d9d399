# SPDX-License-Identifier: Apache-2.0
"""judge_node as a lifecycle node, in place of the ekf_node of robot_localization after 3.10.0.

As there, subscriptions are created when the node is configured, and the timer and the publisher
when it is activated.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn

from sim2real_eval.ros.judge_node import JudgeNode


class LifecycleFilter(LifecycleNodeMixin, JudgeNode):  # type: ignore[misc]
    """Embedded judge that does nothing until it is active."""

    def __init__(self, **options: Any) -> None:
        JudgeNode.__init__(self, **options)
        LifecycleNodeMixin.__init__(self)
        self._timer.cancel()

    def _subscribe(self) -> None:
        """Wait for the configuration."""

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create the subscriptions."""
        super()._subscribe()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the timer: its grid begins now, or with the clock."""
        self._timer.reset()
        self._on_timer()
        return TransitionCallbackReturn.SUCCESS


if __name__ == '__main__':
    rclpy.init(args=sys.argv)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(LifecycleFilter())
