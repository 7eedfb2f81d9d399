# SPDX-License-Identifier: Apache-2.0
"""The topic of the true motion, and how nodes listen to it."""

from __future__ import annotations

from collections.abc import Callable

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

__all__ = ['ODOMETRY_TOPIC', 'subscribe_odometry']

ODOMETRY_TOPIC = 'ground_truth/odometry'
"""Relative name of the topic of the true motion."""

# Deep enough for a second of ten times real time; best effort, so that any publisher fits.
_QOS = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)


def subscribe_odometry(node: Node, callback: Callable[[bytes], None]) -> Subscription:
    """Subscribe to the true motion; the callback gets each message as its bytes."""
    return node.create_subscription(
        Odometry,
        ODOMETRY_TOPIC,
        callback,
        _QOS,
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        raw=True,
    )
