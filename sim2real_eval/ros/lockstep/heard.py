# SPDX-License-Identifier: Apache-2.0
"""What a judge node published."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile

from sim2real_eval.judge.rotations import angles_from_matrix, matrix_from_quaternion
from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim_sensors.measurements import FloatArray, OdometryArray

__all__ = ['OdometryInbox', 'decoded', 'pose_of', 'publishers_of', 'stamp_of']

_ODOMETRY = MESSAGE_TYPES['nav_msgs/msg/Odometry']
_DEPTH = 100


class OdometryInbox:
    """Serialised nav_msgs/Odometry of one topic that nobody has taken yet.

    Parameters
    ----------
    node : Node
    topic : str
    """

    def __init__(self, node: Node, topic: str) -> None:
        self.waiting: list[bytes] = []
        self._node = node
        self._subscription: Any = node.create_subscription(
            Odometry, topic, self.waiting.append, QoSProfile(depth=_DEPTH), raw=True
        )

    @property
    def publishers(self) -> list[str]:
        """Full names of the nodes that publish the topic."""
        return publishers_of(self._node, self._subscription.topic_name)

    def take(self) -> list[bytes]:
        """Return what came, and forget it."""
        taken = list(self.waiting)
        self.waiting.clear()
        return taken

    def close(self) -> None:
        """Remove the subscription."""
        self._node.destroy_subscription(self._subscription)


def publishers_of(node: Node, topic: str) -> list[str]:
    """Return the full names of the nodes that publish a topic, as far as `node` knows.

    A name that it does not know yet, which comes after the publisher, is empty.
    """
    return [
        '' if 'UNKNOWN' in one.node_name else f'{one.node_namespace.rstrip("/")}/{one.node_name}'
        for one in node.get_publishers_info_by_topic(topic)
    ]


def decoded(data: Sequence[bytes]) -> OdometryArray:
    """Decode serialised odometry; arrivals are zero."""
    arrival = np.zeros(len(data), dtype=np.int64)
    array = decode(_ODOMETRY, data, arrival, 'odometry').array
    assert isinstance(array, OdometryArray)
    return array


def stamp_of(data: bytes) -> int:
    """Return the stamp of a serialised message."""
    seconds, nanoseconds = struct.unpack_from('<iI' if data[1] & 1 else '>iI', data, 4)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def pose_of(data: bytes) -> FloatArray:
    """Return position and roll, pitch, yaw, (6,), of a serialised odometry."""
    array = decoded([data])
    pose, rotation = np.zeros(6), np.zeros((3, 3))
    pose[:3] = array.position[0]
    matrix_from_quaternion(np.ascontiguousarray(array.orientation[0]), rotation)
    angles_from_matrix(rotation, pose[3:])
    return pose
