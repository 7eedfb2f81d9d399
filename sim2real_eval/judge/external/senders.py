# SPDX-License-Identifier: Apache-2.0
"""Ends of topics and services of a judge node: its inputs, transforms and odometry, questions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Imu, NavSatFix
from std_srvs.srv import Trigger

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.parts import POSE, parts_of
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING
from sim2real_eval.recording.cdr import encode, encode_transforms
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.message_types import CMD_VEL_TYPE, known_type
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import MessageArray, OdometryArray
from .waits import Wait, Work, answered, publishers_of

# Humble has them under the older name.
_EVENTS = import_module(
    'rclpy.event_handler' if find_spec('rclpy.event_handler') else 'rclpy.qos_event'
)
FILTERED_TOPIC = 'odometry/filtered'
MESSAGES: Mapping[str, tuple[Any, str]] = {
    'odom': (Odometry, 'nav_msgs/msg/Odometry'),
    'pose': (PoseWithCovarianceStamped, 'geometry_msgs/msg/PoseWithCovarianceStamped'),
    'twist': (TwistWithCovarianceStamped, 'geometry_msgs/msg/TwistWithCovarianceStamped'),
    'imu': (Imu, 'sensor_msgs/msg/Imu'),
    FIX: (NavSatFix, 'sensor_msgs/msg/NavSatFix'),
    HEADING: (Imu, 'sensor_msgs/msg/Imu'),
    COMMAND: (TwistStamped, CMD_VEL_TYPE),
}
"""ROS class and name of the type that a kind of input, or another taker, takes."""

_OWN_TOPICS = {FIX: 'gps/fix', HEADING: 'imu', COMMAND: 'cmd_vel'}
_DEPTH = 1000
_ALL_HEARD = Duration(seconds=2)


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


def filter_topics(
    namespace: str, config: FilterConfig, takers: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return the topic of each taker of a filter's node, and its type."""
    topics = {**input_topics(config), **_OWN_TOPICS}
    kinds = {
        taker: MESSAGES.get(taker) or MESSAGES[taker.rstrip('0123456789')] for taker in takers
    }
    return {taker: (f'{namespace}/{topics[taker]}', kind) for taker, (_, kind) in kinds.items()}


def interface(name: str, who: str) -> Any:
    """Return the class of a ROS type, such as sensor_msgs/msg/Imu; JudgeError, naming `who` needs
    it, without its package.
    """
    package, folder, kind = name.split('/')
    if find_spec(package) is None:
        raise JudgeError(
            f'{who}: {package} is not installed for this Python; source the setup file of ROS'
        )
    return getattr(import_module(f'{package}.{folder}'), kind)


class Senders:
    """Publishes serialised messages for takers.

    `topics` gives each its topic, with a leading slash, and its message type; `frames` gives
    takers the frame and child frame that their messages are to carry, where the node cannot look
    their own up. `closing` removes what is made here from the node, as in all of this module.
    """

    def __init__(
        self,
        node: Node,
        closing: ExitStack,
        topics: Mapping[str, tuple[str, str]],
        frames: Mapping[str, tuple[str, str]],
    ) -> None:
        self._frames = frames
        self._kinds = {}
        self._publishers = {}
        for taker, (topic, kind) in topics.items():
            self._kinds[taker] = known_type(kind)
            self._publishers[taker] = node.create_publisher(
                interface(kind, taker), topic, QoSProfile(depth=_DEPTH)
            )
            closing.callback(node.destroy_publisher, self._publishers[taker])

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

    def unheard(self, *, but: str = '') -> dict[str, str]:
        """Return the topics on which a reliable subscription lacks messages, by taker.

        `but` is a taker whose messages are known to be heard: DDS may tell of that seconds later.
        """
        return {
            taker: publisher.topic_name
            for taker, publisher in self._publishers.items()
            if taker != but and not publisher.wait_for_all_acked(_ALL_HEARD)
        }


class Inbox:
    """Serialised messages of one topic that nobody has taken yet, by default nav_msgs/Odometry."""

    def __init__(
        self, node: Node, closing: ExitStack, topic: str, message: Any = Odometry
    ) -> None:
        self.waiting: list[bytes] = []
        self.lost = 0
        """Messages that the middleware knows to have been lost."""
        self._node = node
        create = partial(
            node.create_subscription,
            *(message, topic, self.waiting.append, QoSProfile(depth=_DEPTH)),
            raw=True,
        )
        lost = _EVENTS.SubscriptionEventCallbacks(message_lost=self._on_lost)
        try:
            self._subscription: Any = create(event_callbacks=lost)
        except _EVENTS.UnsupportedEventTypeError:
            # Not every middleware counts what it loses.
            self._subscription = create()
        closing.callback(node.destroy_subscription, self._subscription)

    def _on_lost(self, event: Any) -> None:
        self.lost = event.total_count

    @property
    def matched(self) -> bool:
        """Whether a publisher has found this."""
        return bool(self._subscription.get_publisher_count())

    @property
    def publishers(self) -> list[str]:
        """Full names of the nodes that publish the topic."""
        return publishers_of(self._node, self._subscription.topic_name)

    def take(self) -> list[bytes]:
        """Return what came, and forget it."""
        taken = self.waiting.copy()
        self.waiting.clear()
        return taken


# Questions to a node whose answers prove that it has dealt with what was sent before.


class Questions:
    """A client of a service that every node has, and of judge_node's `~/status`.

    The executors of rclcpp and rclpy, single-threaded, take in one cycle at most one message of
    each subscription and answer at most one request, in this order. So the answer to a question
    that was put after a message proves that the message was dealt with, unless it came too late
    for the cycle and the question did not; the next cycle then takes it. `settled` therefore ends
    with a question that is put when all others are answered. `judge` is the name of the judge's
    node with its namespace.
    """

    def __init__(self, node: Node, closing: ExitStack, judge: str) -> None:
        self._ask = node.create_client(GetParameters, f'{judge}/get_parameters')
        self._status = node.create_client(Trigger, f'{judge}/status')
        for client in (self._ask, self._status):
            closing.callback(node.destroy_client, client)
        self._open: list[Any] = []

    @property
    def pending(self) -> int:
        """Questions that have been put and not waited for."""
        return len(self._open)

    def put(self) -> None:
        """Ask, and do not wait for the answer."""
        self._open.append(self._ask.call_async(GetParameters.Request()))

    def settled(self) -> Work:
        """Wait until everything that was sent before has been dealt with."""
        if self._open:
            yield Wait(self._open[-1].done, 'answers')
            self._open.clear()
        future = self._ask.call_async(GetParameters.Request())
        yield Wait(future.done, 'an answer')

    def matched(self) -> Work:
        """Wait until the node answers; what is asked before both sides know each other is lost."""
        yield Wait(self._ask.service_is_ready, 'its services')
        yield from answered(self._ask, GetParameters.Request(), 'an answer')

    def status(self, reached: Callable[[dict[str, Any]], bool], what: str) -> Work:
        """Wait until judge_node's status is such."""
        status: dict[str, Any] | None = None
        while status is None or not reached(status):
            answer = yield from answered(self._status, Trigger.Request(), what)
            status = dict(json.loads(answer.message))


def coinciding_frames(
    recording: Recording, tree: FrameTree, config: FilterConfig, sources: Mapping[str, str | None]
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Find the inputs whose frames coincide with those that the filter works in.

    `sources` is that of `Routing`. Returns such inputs, with the frame and child frame under which
    they need no transform, and the others, with the frame that a transform must connect.
    JudgeError when nothing connects a frame.
    """
    frames: dict[str, tuple[str, str]] = {}
    others: dict[str, str] = {}
    base, world = config.base_link_frame, config.world_frame
    for source in config.sources:
        topic = sources[source.name]
        if topic is None:
            continue
        array = recording.messages[topic]
        in_world = source.kind in ('odom', 'pose')
        for part in parts_of(source, source.kind):
            frame, of_world = part.frame(array, base), part.kind == POSE and in_world
            if not (of_world and source.differential) and not coincide(
                tree, world if of_world else base, frame, source.name
            ):
                others[source.name] = frame
        if source.name not in others:
            frames[source.name] = (world if in_world else base, base)
    return frames, others


def coincide(tree: FrameTree, target: str, frame: str, name: str) -> bool:
    """Say whether two frames are one; JudgeError, with who asks, when nothing connects them."""
    rotation, position = tree.lookup(target, frame, name)
    return np.array_equal(rotation, np.eye(3)) and not position.any()


_AT_ONCE = Duration(nanoseconds=1)


class StaticFrames:
    """Publishes a recording's static transforms where a node listens.

    In a namespace, since two sides may have other transforms. Nothing is published when no input
    of `needed` (with its frame) needs one; else JudgeError when tf2_msgs is not installed.
    """

    def __init__(
        self,
        node: Node,
        closing: ExitStack,
        namespace: str,
        recording: Recording,
        needed: Mapping[str, str],
    ) -> None:
        self._publisher: Any = None
        if not needed:
            return
        if find_spec('tf2_msgs') is None:
            name, frame = next(iter(needed.items()))
            raise JudgeError(
                f'{name}: frame {frame!r} is not where the filter works, and tf2_msgs, which '
                'robot_localization learns transforms from, is not installed for this Python; '
                'source the setup file of ROS, or use the embedded judge'
            )
        message = import_module('tf2_msgs.msg').TFMessage
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._publisher = node.create_publisher(message, f'{namespace}/tf_static', latched)
        closing.callback(node.destroy_publisher, self._publisher)
        self._publisher.publish(encode_transforms(recording.transforms, 0))

    @property
    def heard(self) -> bool:
        """Whether the node listens, where it has to, and has received the transforms."""
        if self._publisher is None:
            return True
        return self._publisher.get_subscription_count() > 0 and bool(
            self._publisher.wait_for_all_acked(_AT_ONCE)
        )

    @property
    def needed(self) -> bool:
        """Whether the node needs transforms at all."""
        return self._publisher is not None
