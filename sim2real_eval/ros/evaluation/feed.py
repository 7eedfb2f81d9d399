# SPDX-License-Identifier: Apache-2.0
"""A recording's messages on the graph, as it is replayed, for whoever looks on."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Imu, MagneticField, NavSatFix, PointCloud2

from sim2real_eval.judge.external.follower import PendingMessage, last_arrival_ns
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.topics import route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType, default_type
from sim2real_eval.recording.recording import Recording
from sim2real_eval.ros.evaluation.bench import SensorBench
from sim_sensors.core.measurements import MessageArray

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


# What arrives at the judge of a twin: measured as the run goes on, and recorded.


class SensorFeed:
    """Deliveries of a twin, in the order of a batch run over the same messages.

    Parameters
    ----------
    bench : SensorBench
        Measures.
    setup : JudgeSetup
        Decides which topics are heard, as in a batch run.

    Raises
    ------
    JudgeError
        When the recording lacks what the configuration needs.
    """

    def __init__(self, bench: SensorBench, setup: JudgeSetup) -> None:
        self._bench = bench
        self._setup = setup
        self._waiting: list[tuple[int, int, int, str, MessageArray, int]] = []
        self._last_ns: int | None = None
        recording = bench.recording()
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        # Of messages that arrive together those of the earlier taker come first.
        self._takers: dict[str, list[tuple[int, str]]] = {}
        for rank, (taker, topic) in enumerate(routing.takers):
            self._takers.setdefault(topic, []).append((rank, taker))
        self._topics = {role: recording.roles[role] for role in bench.roles}
        for topic, array in recording.messages.items():
            self._take(topic, array, 0)
        self._count = dict.fromkeys(bench.roles, 0)

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return what arrives up to now and was not returned before.

        Raises
        ------
        Sim2RealError
            When a sensor cannot measure the truth.
        """
        self._bench.measure(now_ns)
        for role, array in self._bench.news().items():
            self._take(self._topics[role], array, self._count[role])
            self._count[role] += len(array)
        due = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, _, taker, array, index = heapq.heappop(self._waiting)
            due.append((taker, array.take([index])))
        return due

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message that counts, once the sensors have measured everything."""
        if self._last_ns is None and self._bench.finished:
            setup = self._setup
            timing = prepare(
                self._bench.recording(), setup.filter, setup.navsat, setup.case
            ).timing
            self._last_ns = last_arrival_ns(timing, setup)
        return self._last_ns

    def _take(self, topic: str, array: MessageArray, first: int) -> None:
        for rank, taker in self._takers.get(topic, ()):
            for index, arrival in enumerate(array.arrival_ns.tolist()):
                entry = (arrival, rank, first + index, taker, array, index)
                heapq.heappush(self._waiting, entry)
