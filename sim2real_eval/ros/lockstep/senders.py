# SPDX-License-Identifier: Apache-2.0
"""Publishers of everything that a judge node hears."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, NavSatFix

from sim2real_eval.judge.configuration import FilterConfig
from sim2real_eval.judge.routing import COMMAND, FIX, HEADING
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import CMD_VEL_TYPE, MESSAGE_TYPES
from sim_sensors.measurements import MessageArray, OdometryArray

__all__ = ['FILTERED_TOPIC', 'Senders', 'input_topics']

FILTERED_TOPIC = 'odometry/filtered'
_TYPES: Mapping[str, tuple[Any, str]] = {
    'odom': (Odometry, 'nav_msgs/msg/Odometry'),
    'pose': (PoseWithCovarianceStamped, 'geometry_msgs/msg/PoseWithCovarianceStamped'),
    'twist': (TwistWithCovarianceStamped, 'geometry_msgs/msg/TwistWithCovarianceStamped'),
    'imu': (Imu, 'sensor_msgs/msg/Imu'),
    FIX: (NavSatFix, 'sensor_msgs/msg/NavSatFix'),
    HEADING: (Imu, 'sensor_msgs/msg/Imu'),
    COMMAND: (TwistStamped, CMD_VEL_TYPE),
}
_OWN_TOPICS = {FIX: 'gps/fix', HEADING: 'imu', COMMAND: 'cmd_vel'}
_DEPTH = 100


def input_topics(config: FilterConfig) -> dict[str, str]:
    """Return the topic of each input of the filter, relative to the namespace.

    Each has a topic of its own, since one message for two inputs would leave it to the node's
    executor which of them takes it first.
    """
    used = {'set_pose', FILTERED_TOPIC, *_OWN_TOPICS.values()}
    topics = {}
    for source in config.sources:
        topic = source.topic
        if topic in used:
            topic = f'{topic}/{source.name}'
        used.add(topic)
        topics[source.name] = topic
    return topics


class Senders:
    """Publishes serialised messages for takers.

    Parameters
    ----------
    node : Node
    namespace : str
        With a leading slash.
    config : FilterConfig
    takers : iterable of str
        Those that a message can come for, among them perhaps an input on odometry/gps.
    frames : mapping of str to (str, str)
        Taker to the frame and child frame that its messages are to carry, where the node cannot
        look their own up.
    """

    def __init__(
        self,
        node: Node,
        namespace: str,
        config: FilterConfig,
        takers: Iterable[str],
        frames: Mapping[str, tuple[str, str]],
    ) -> None:
        self._node = node
        self._frames = frames
        topics = {**input_topics(config), **_OWN_TOPICS}
        self._kinds = {}
        self._publishers = {}
        for taker in takers:
            message, kind = _TYPES.get(taker) or _TYPES[taker.rstrip('0123456789')]
            self._kinds[taker] = MESSAGE_TYPES[kind]
            self._publishers[taker] = node.create_publisher(
                message, f'{namespace}/{topics[taker]}', QoSProfile(depth=_DEPTH)
            )

    def close(self) -> None:
        """Remove the publishers."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)

    def heard(self, takers: Iterable[str]) -> bool:
        """Say whether somebody subscribes to each of them."""
        return all(self._publishers[taker].get_subscription_count() > 0 for taker in takers)

    def send(self, taker: str, array: MessageArray) -> None:
        """Publish one message."""
        if taker in self._frames:
            frame, child = self._frames[taker]
            array = dataclasses.replace(array, frame=frame)
            if isinstance(array, OdometryArray):
                array = dataclasses.replace(array, child_frame=child)
        self._publishers[taker].publish(encode(self._kinds[taker], array, taker)[0])
