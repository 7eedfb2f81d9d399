# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Connections to an estimator: publishers, subscriptions and services."""

from __future__ import annotations

import abc
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Imu, NavSatFix
from std_srvs.srv import Trigger

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.parts import POSE, parts_of
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING
from sim2real_eval.recording.cdr import encode, encode_transforms
from sim2real_eval.recording.message_types import CMD_VEL_TYPE, find_type
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import MessageArray, OdometryArray
from .expected import PendingMessage
from .process import TOPICS_BESIDE_INPUTS, JudgeProcess, input_topics
from .publishers import PublisherWatch, publishers_of
from .waits import Wait, Work, call_service

# Humble has this module under its older name.
_EVENTS = import_module(
    'rclpy.event_handler' if find_spec('rclpy.event_handler') else 'rclpy.qos_event'
)
MESSAGES: Mapping[str, tuple[Any, str]] = {
    'odom': (Odometry, 'nav_msgs/msg/Odometry'),
    'pose': (PoseWithCovarianceStamped, 'geometry_msgs/msg/PoseWithCovarianceStamped'),
    'twist': (TwistWithCovarianceStamped, 'geometry_msgs/msg/TwistWithCovarianceStamped'),
    'imu': (Imu, 'sensor_msgs/msg/Imu'),
    FIX: (NavSatFix, 'sensor_msgs/msg/NavSatFix'),
    HEADING: (Imu, 'sensor_msgs/msg/Imu'),
    COMMAND: (TwistStamped, CMD_VEL_TYPE),
}
"""ROS class and name of the message type for each kind of input."""

_DEPTH = 1000
_ACK_TIMEOUT = Duration(seconds=2)
_NO_WAIT = Duration(nanoseconds=1)


def filter_topics(
    namespace: str, config: FilterConfig, input_names: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return topic and message type of each input of a filter's node."""
    topics = {**input_topics(config), **TOPICS_BESIDE_INPUTS}
    kinds = {
        input_name: MESSAGES.get(input_name) or MESSAGES[input_name.rstrip('0123456789')]
        for input_name in input_names
    }
    return {
        input_name: (f'{namespace}/{topics[input_name]}', kind)
        for input_name, (_, kind) in kinds.items()
    }


def interface_class(name: str, user: str) -> Any:
    """Return the class of a ROS type, such as sensor_msgs/msg/Imu.

    Raises JudgeError, which names the `user` of the type, if its package is not installed.
    """
    package, folder, type_name = name.split('/')
    if find_spec(package) is None:
        raise JudgeError(
            f'{user}: {package} is not installed for this Python; source the setup file of ROS'
        )
    return getattr(import_module(f'{package}.{folder}'), type_name)


class Senders:
    """Publishers of serialised messages, one for each input.

    Parameters
    ----------
    node : Node
    closing : ExitStack
        Destroys the publishers at its end; the other classes of this module use it likewise.
    topics : mapping
        Topic, with a leading slash, and message type of each input.
    frames : mapping
        Frame and child frame to put into the messages of an input, where the node cannot look up
        those of the recording.
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
        for input_name, (topic, kind) in topics.items():
            self._kinds[input_name] = find_type(kind)
            self._publishers[input_name] = node.create_publisher(
                interface_class(kind, input_name), topic, QoSProfile(depth=_DEPTH)
            )
            closing.callback(node.destroy_publisher, self._publishers[input_name])

    def have_subscribers(self, input_names: Iterable[str]) -> bool:
        """Return True if each of these inputs has a subscriber."""
        return all(
            self._publishers[input_name].get_subscription_count() > 0 for input_name in input_names
        )

    def send(self, input_name: str, array: MessageArray) -> None:
        """Publish one message."""
        if input_name in self._frames:
            frame, child = self._frames[input_name]
            array = dataclasses.replace(array, frame=frame)
            if isinstance(array, OdometryArray):
                array = dataclasses.replace(array, child_frame=child)
        self._publishers[input_name].publish(encode(self._kinds[input_name], array, input_name)[0])

    def unacknowledged_topics(self, *, except_input: str = '') -> list[str]:
        """Return the topics on which a reliable subscription lacks messages.

        `except_input` is known to have received its messages; DDS may acknowledge seconds later.
        """
        return [
            publisher.topic_name
            for input_name, publisher in self._publishers.items()
            if input_name != except_input and not publisher.wait_for_all_acked(_ACK_TIMEOUT)
        ]


class Inbox:
    """Queue of serialised messages received on one topic, by default nav_msgs/Odometry.

    `watch` decides which messages are those of the run.
    """

    def __init__(
        self,
        node: Node,
        closing: ExitStack,
        watch: PublisherWatch,
        topic: str,
        message: Any = Odometry,
    ) -> None:
        self.waiting: list[bytes] = []
        self.lost = 0
        """Number of messages that the middleware reports as lost."""
        self._node, self._watch, self._topic = node, watch, topic
        subscribe = partial(
            node.create_subscription,
            *(message, topic, self._receive, QoSProfile(depth=_DEPTH)),
            raw=True,
        )
        callbacks = _EVENTS.SubscriptionEventCallbacks(message_lost=self._on_lost)
        try:
            self._subscription: Any = subscribe(event_callbacks=callbacks)
        except _EVENTS.UnsupportedEventTypeError:
            # Not every middleware counts lost messages.
            self._subscription = subscribe()
        closing.callback(node.destroy_subscription, self._subscription)

    def _receive(self, data: bytes, info: Mapping[str, Any]) -> None:
        if self._watch.accept(self._topic, info):
            self.waiting.append(data)

    def _on_lost(self, event: Any) -> None:
        self.lost = event.total_count

    @property
    def is_matched(self) -> bool:
        """Whether the topic has a publisher."""
        return bool(self._subscription.get_publisher_count())

    @property
    def publishers(self) -> list[str]:
        """Full names of the nodes that publish the topic."""
        return publishers_of(self._node, self._subscription.topic_name)

    def take(self) -> list[bytes]:
        """Remove and return all messages."""
        messages = self.waiting.copy()
        self.waiting.clear()
        return messages


class ProcessingProbe:
    """Requests to a node whose answers prove that earlier messages were processed.

    In one cycle, the single-threaded executors of rclcpp and rclpy take at most one message of
    each subscription and then answer at most one request. So the answer to a request that was sent
    after a message proves that the message was processed, unless the message came too late for the
    cycle and the request did not; then the next cycle takes it. `settle` therefore ends with a
    request that is sent when all others are answered.

    `judge` is the name of the node with its namespace. The requests go to its parameter service,
    or to `~/status` of judge_node.
    """

    def __init__(self, node: Node, closing: ExitStack, judge: str) -> None:
        self._parameters = node.create_client(GetParameters, f'{judge}/get_parameters')
        self._status = node.create_client(Trigger, f'{judge}/status')
        for client in (self._parameters, self._status):
            closing.callback(node.destroy_client, client)
        self._open: list[Any] = []

    @property
    def pending(self) -> int:
        """Number of requests that were sent and not waited for."""
        return len(self._open)

    def send(self) -> None:
        """Send a request without waiting for the answer."""
        self._open.append(self._parameters.call_async(GetParameters.Request()))

    def settle(self) -> Work:
        """Wait until the node has processed everything that was sent before."""
        if self._open:
            yield Wait(self._open[-1].done, 'answers')
            self._open.clear()
        future = self._parameters.call_async(GetParameters.Request())
        yield Wait(future.done, 'an answer')

    def match(self) -> Work:
        """Wait until the node answers; requests before discovery are lost."""
        yield Wait(self._parameters.service_is_ready, 'its services')
        yield from call_service(self._parameters, GetParameters.Request(), 'an answer')

    def wait_for_status(
        self, is_reached: Callable[[dict[str, Any]], bool], description: str
    ) -> Work:
        """Wait until the status of judge_node fulfils a condition."""
        status: dict[str, Any] | None = None
        while status is None or not is_reached(status):
            answer = yield from call_service(self._status, Trigger.Request(), description)
            status = dict(json.loads(answer.message))


def coinciding_frames(
    recording: Recording, tree: FrameTree, config: FilterConfig, sources: Mapping[str, str | None]
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Find the inputs whose frames coincide with those that the filter works in.

    `sources` is that of `Routing`. Returns these inputs with the frame and child frame under which
    they need no transform, and all other inputs with the frame that a transform must connect.
    Raises JudgeError if a frame is not connected.
    """
    frames: dict[str, tuple[str, str]] = {}
    transformed: dict[str, str] = {}
    base, world = config.base_link_frame, config.world_frame
    for source in config.sources:
        topic = sources[source.name]
        if topic is None:
            continue
        array = recording.messages[topic]
        in_world = source.kind in ('odom', 'pose')
        for part in parts_of(source, source.kind):
            frame, is_world_pose = part.frame(array, base), part.kind == POSE and in_world
            if is_world_pose and source.differential:
                continue
            target = world if is_world_pose else base
            rotation, position = tree.lookup(target, frame, source.name)
            if position.any() or not np.array_equal(rotation, np.eye(3)):
                transformed[source.name] = frame
        if source.name not in transformed:
            frames[source.name] = (world if in_world else base, base)
    return frames, transformed


class StaticFrames:
    """Publisher of a recording's static transforms in a namespace.

    Two judges may have different transforms, hence the namespace. `needed` maps inputs to their
    frames. If it is empty, nothing is published; otherwise a missing tf2_msgs is a JudgeError.
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
                f'{name}: frame {frame!r} differs from the frame of the filter, and tf2_msgs, by '
                'which robot_localization receives transforms, is not installed for this Python; '
                'source the setup file of ROS, or use the embedded judge'
            )
        message = import_module('tf2_msgs.msg').TFMessage
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._publisher = node.create_publisher(message, f'{namespace}/tf_static', latched)
        closing.callback(node.destroy_publisher, self._publisher)
        self._publisher.publish(encode_transforms(recording.transforms, 0))

    @property
    def are_received(self) -> bool:
        """Whether the node has received the transforms, or needs none."""
        if self._publisher is None:
            return True
        return self._publisher.get_subscription_count() > 0 and bool(
            self._publisher.wait_for_all_acked(_NO_WAIT)
        )

    @property
    def are_needed(self) -> bool:
        """Whether the node needs transforms."""
        return self._publisher is not None


EstimatorType = TypeVar('EstimatorType', bound='GraphEstimator')


class GraphEstimator(abc.ABC):
    """An estimator on the graph, used in a `with` block.

    Leaving the block ends its process and removes everything from `node`. The `ReplayClock` spins
    the node, and at each time calls the methods below in the order in which they are defined.
    """

    run_on_ns: int
    """How long the clock goes on after the last message."""

    def __init__(self, node: Node, name: str) -> None:
        self.name = name  # in messages
        self._node = node
        self._closing = ExitStack()
        self._process: JudgeProcess | None = None
        self._probe: ProcessingProbe | None = None
        self._watch = PublisherWatch(node)

    def __enter__(self: EstimatorType) -> EstimatorType:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def _start_process(
        self, command: Sequence[str], scratch_folder: Path, folder: Path | None = None
    ) -> None:
        domain = self._node.context.get_domain_id()
        environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
        process = JudgeProcess(self.name, command, environment, folder, scratch_folder)
        # Registered first, so that an interrupted start leaves no node running.
        self._closing.push(process)
        self._process = process.__enter__()

    def _settle(self, answers: int) -> Work:
        assert self._probe is not None
        for _ in range(answers):
            yield from self._probe.settle()

    @abc.abstractmethod
    def begin(self, start_ns: int) -> int:
        """Prepare for a run; return the first time of the clock."""

    @abc.abstractmethod
    def ready(self) -> Work:
        """Wait until the estimator is ready; the clock does not run yet."""

    @property
    @abc.abstractmethod
    def next_ns(self) -> int:
        """Next time at which something is due."""

    @abc.abstractmethod
    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Take the messages that have arrived."""

    @abc.abstractmethod
    def step(self, now_ns: int) -> bool:
        """Return True if the node has something to do at this time."""

    def settle(self) -> Work:
        """Wait until the node has processed all messages."""
        yield from ()

    @abc.abstractmethod
    def answer(self, now_ns: int) -> Work:
        """Wait until the node has done what is due; the clock has been set."""

    def idle(self) -> Work:
        """Let the node see the clock at a time at which it has nothing to do."""
        yield from ()

    @abc.abstractmethod
    def finish_step(self, now_ns: int) -> None:
        """Finish the step."""

    def refuse_other_publishers(self, *, is_last: bool = False) -> None:
        """Raise OtherPublisherError for a topic of another node; see `PublisherWatch.check`."""
        self._watch.check(is_last=is_last)

    def check(self) -> None:
        """Raise JudgeError if the process has ended."""
        if self._process is not None:
            self._process.check()
