# SPDX-License-Identifier: Apache-2.0
"""A recording's messages on the graph, as it is replayed, for whoever looks on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from geometry_msgs.msg import (
    PoseWithCovarianceStamped,
    TwistStamped,
    TwistWithCovarianceStamped,
)
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Imu, MagneticField, NavSatFix, PointCloud2

from sim2real_eval.recording import Recording
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType, default_type

__all__ = ['Broadcast', 'message_class']

_CLASSES: dict[str, Any] = {
    'geometry_msgs/msg/PoseWithCovarianceStamped': PoseWithCovarianceStamped,
    'geometry_msgs/msg/TwistStamped': TwistStamped,
    'geometry_msgs/msg/TwistWithCovarianceStamped': TwistWithCovarianceStamped,
    'nav_msgs/msg/Odometry': Odometry,
    'sensor_msgs/msg/CameraInfo': CameraInfo,
    'sensor_msgs/msg/Imu': Imu,
    'sensor_msgs/msg/MagneticField': MagneticField,
    'sensor_msgs/msg/NavSatFix': NavSatFix,
    'sensor_msgs/msg/PointCloud2': PointCloud2,
}
_QOS = QoSProfile(depth=100)
# What the judges publish or obey to; a bag may hold those of the judge that ran on the robot.
_OF_THE_JUDGE = (
    'accel/filtered',
    'cmd_vel',
    'gps/filtered',
    'odometry/filtered',
    'odometry/gps',
    'set_pose',
)
_ASIDE = 'recorded'


def message_class(kind: MessageType) -> Any:
    """Return the ROS class of a message type."""
    return _CLASSES[kind.name]


class Broadcast:
    """Publishes the topics of a recording in a namespace, each message at its arrival.

    Topics that the judge in that namespace publishes or obeys to go below `recorded` there.

    Parameters
    ----------
    node : Node
        That publishes.
    recording : Recording
    namespace : str
        Absolute; before each topic.
    leave_out : collection of str
        Full names of topics that somebody else publishes.
    """

    def __init__(
        self, node: Node, recording: Recording, namespace: str, leave_out: Collection[str] = ()
    ) -> None:
        self._node = node
        self._publishers: list[Any] = []
        rows: list[tuple[int, int, bytes]] = []
        for topic, array in recording.messages.items():
            below = topic.strip('/')
            name = f'{namespace}/{below}'
            if name in leave_out or not len(array):
                continue
            if below in _OF_THE_JUDGE:
                name = f'{namespace}/{_ASIDE}/{below}'
            named = MESSAGE_TYPES.get(recording.ros_types.get(topic, ''))
            kind = named if named and named.array is type(array) else default_type(array)
            publisher = node.create_publisher(message_class(kind), name, _QOS)
            number = len(self._publishers)
            self._publishers.append(publisher)
            rows += [
                (arrival, number, data)
                for arrival, data in zip(
                    array.arrival_ns.tolist(), encode(kind, array, topic), strict=True
                )
            ]
        order = np.argsort([arrival for arrival, _, _ in rows], kind='stable').tolist()
        self._rows = [rows[index] for index in order]
        self._next = 0

    def until(self, now_ns: int) -> None:
        """Publish what has arrived by now."""
        while self._next < len(self._rows) and self._rows[self._next][0] <= now_ns:
            _, number, data = self._rows[self._next]
            self._publishers[number].publish(data)
            self._next += 1

    def close(self) -> None:
        """Take the topics off the graph."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)
        self._publishers.clear()
