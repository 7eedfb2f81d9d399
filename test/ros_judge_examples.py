# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""judge_node in a process of its own, driven in lockstep over DDS."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped
from live_examples import MOUNTED, Published, everything, give
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, NavSatFix
from std_srvs.srv import Trigger

from sim2real_eval.judge.external.connections import GraphEstimator
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import Grids
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.metadata import transform_mappings
from sim2real_eval.ros.judge_node import JudgeNode
from sim_sensors.core.measurements import MessageArray, OdometryArray

PATIENCE_S = 180.0
_AGAIN_S = 0.5
# Input: topic, message class and message type.
TAKERS: dict[str, tuple[str, Any, str]] = {
    'odom0': ('/wheel/odom', Odometry, 'nav_msgs/msg/Odometry'),
    'imu0': ('/imu/data', Imu, 'sensor_msgs/msg/Imu'),
    'fix': ('/gps/fix', NavSatFix, 'sensor_msgs/msg/NavSatFix'),
    'heading': ('/imu', Imu, 'sensor_msgs/msg/Imu'),
    'command': ('/cmd_vel', TwistStamped, 'geometry_msgs/msg/TwistStamped'),
    'set_pose': (
        '/set_pose', PoseWithCovarianceStamped, 'geometry_msgs/msg/PoseWithCovarianceStamped'
    ),
}  # fmt: skip
COUNTED_AS = {'fix': 'gps/fix', 'heading': 'imu', 'command': 'cmd_vel'}
Script = list[tuple[str, Any]]
"""Events in order: ('clock', ns), or the name of an input and its message."""


_START_PROCESS = GraphEstimator._start_process


def start_judge_node_here(
    estimator: GraphEstimator, command: Sequence[str], *folders: Path
) -> None:
    """Replace `GraphEstimator._start_process`: only judge_node runs in this process."""
    if 'sim2real_eval.ros.judge_node' in command:
        start_in_this_process(estimator, command)
    else:
        _START_PROCESS(estimator, command, *folders)


def start_in_this_process(
    estimator: GraphEstimator, command: Sequence[str], *folders: Path
) -> None:
    """Run a judge_node in this process, which loads its libraries once for all runs."""
    words = list(command[command.index('--ros-args') :])
    executor = estimator._node.executor
    judge = JudgeNode(context=estimator._node.context, use_global_arguments=False, cli_args=words)
    estimator._closing.callback(judge.destroy_node)
    executor.add_node(judge)
    estimator._closing.callback(executor.remove_node, judge)


def write_parameters(folder: Path) -> Path:
    """Write parameter files and transforms as a user has them; return the folder."""
    everything(folder, stamped_control=True)
    navsat = {'/**': {'ros__parameters': {'frequency': 20.0, 'use_odometry_yaw': False}}}
    (folder / 'navsat_params.yaml').write_text(yaml.safe_dump(navsat), encoding='utf-8')
    transforms = yaml.safe_dump(transform_mappings(MOUNTED))
    (folder / 'static_transforms.yaml').write_text(transforms, encoding='utf-8')
    return folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, '-m', 'sim2real_eval.ros.judge_node', '--ros-args', *arguments]


def play(live: LiveJudge, script: Script) -> Published:
    """Return the output of a judge in this process that follows the script of the node."""
    out, timers = Published(), None
    for input_name, what in script:
        if input_name != 'clock':
            give(live, input_name, what)
            continue
        timers = timers or Grids(live.config, live.navsat, what)
        if timers.filter.take(what):
            estimate = live.tick(what)
            if estimate is not None:
                out.filtered.append(estimate)
        if timers.take_navsat(what):
            position = live.navsat_tick()
            if position is not None:
                out.gps.append(position)
            back = live.filtered_fix(what)
            if back is not None:
                out.back.append(back)
    return out


@dataclasses.dataclass
class Heard:
    """Serialised messages of one topic, nav_msgs/Odometry by default."""

    data: list[bytes] = dataclasses.field(default_factory=list)
    ros_type: str = 'nav_msgs/msg/Odometry'

    @property
    def array(self) -> MessageArray:
        arrival = np.zeros(len(self.data), dtype=np.int64)
        decoded = decode(MESSAGE_TYPES[self.ros_type], self.data, arrival, 'inbox')
        assert not decoded.other_frames
        return decoded.array

    @property
    def odometry(self) -> OdometryArray:
        array = self.array
        assert isinstance(array, OdometryArray)
        return array


class Graph:
    """A ROS graph of one judge_node and of its publishers and subscribers in this process.

    `prefix` is the namespace of the node and of all topics, such as /robot1, with its clock.
    """

    def __init__(self, folder: Path, arguments: list[str], prefix: str = '') -> None:
        self.context = Context()
        rclpy.init(context=self.context, domain_id=int(os.environ['ROS_DOMAIN_ID']))
        self.node = rclpy.create_node('driver', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.clock = self.node.create_publisher(Clock, f'{prefix}/clock', 10)
        self.publishers = {
            input_name: self.node.create_publisher(message, prefix + topic, 10)
            for input_name, (topic, message, _) in TAKERS.items()
        }
        name = f'{prefix}/ekf_filter_node'
        self.status_client = self.node.create_client(Trigger, f'{name}/status')
        self.reset_client = self.node.create_client(Trigger, f'{name}/reset')
        self.filtered, self.gps = Heard(), Heard()
        self.back = Heard(ros_type='sensor_msgs/msg/NavSatFix')
        self._subscribe(f'{prefix}/odometry/filtered', self.filtered)
        self._subscribe(f'{prefix}/odometry/gps', self.gps)
        self._subscribe(f'{prefix}/gps/filtered', self.back, NavSatFix)
        self.sent: dict[str, int] = {}
        self.log = (folder / 'judge_node.log').open('ab')
        self.arguments = arguments
        self.start()

    def _subscribe(self, topic: str, inbox: Heard, kind: Any = Odometry) -> None:
        self.node.create_subscription(kind, topic, inbox.data.append, 1000, raw=True)

    def listen(self, topic: str) -> Heard:
        """Subscribe to a topic and wait until the node has discovered the subscription."""
        inbox, before = Heard(), self.status()['subscribers'][topic]
        self._subscribe(topic, inbox)
        self.until_status(lambda status: status['subscribers'][topic] > before)
        return inbox

    def start(self) -> None:
        """Start the node and wait for discovery on both sides and every topic."""
        before = self.listeners()
        self.process = subprocess.Popen(command(*self.arguments), stderr=self.log)
        try:
            self.match(before)
        except AssertionError:
            self.kill()
            raise

    def match(self, before: Sequence[set[bytes]]) -> None:
        """Wait until the node hears every topic and is heard; `before` are earlier `listeners`."""
        self.sent.clear()
        # A node that was killed is taken for alive by DDS for 20 s more, less than another may
        # take to start on a busy machine.
        self.until(lambda: self._heard_beside(before))
        self.until_status(
            lambda status: (
                all(status['publishers'].values()) and all(status['subscribers'].values())
            )
        )

    def listeners(self) -> list[set[bytes]]:
        """Return the subscribers of each topic."""
        look = self.node.get_subscriptions_info_by_topic
        topics = [publisher.topic_name for publisher in self.publishers.values()]
        return [{bytes(info.endpoint_gid) for info in look(topic)} for topic in topics]

    def _heard_beside(self, before: Sequence[set[bytes]]) -> bool:
        """Return True if each topic has a new subscriber that its publisher knows."""
        return all(
            now - then and publisher.get_subscription_count() == len(now)
            for publisher, now, then in zip(
                self.publishers.values(), self.listeners(), before, strict=True
            )
        )

    def kill(self) -> None:
        """End the node by SIGKILL."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, 'waited in vain'
            self.executor.spin_once(timeout_sec=0.02)

    def call(self, client: Any) -> str:
        """Call a service repeatedly: calls are lost until both sides are matched."""
        future = client.call_async(Trigger.Request())
        requested = time.monotonic()

        def answered() -> bool:
            nonlocal future, requested
            if not future.done() and time.monotonic() > requested + _AGAIN_S:
                future, requested = client.call_async(Trigger.Request()), time.monotonic()
            return bool(future.done())

        self.until(answered)
        assert future.result().success
        return str(future.result().message)

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.call(self.status_client)))

    def until_status(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        status: dict[str, Any] = {}

        def condition() -> bool:
            status.update(self.status())
            return reached(status)

        self.until(condition)
        return status

    def set_clock(self, now_ns: int) -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(now_ns, 1_000_000_000)
        self.clock.publish(message)

    def reach(self, now_ns: int, dealt: Callable[[dict[str, Any]], bool]) -> None:
        """Set the clock, repeatedly if it is lost, until the node has reacted."""
        sent = 0.0

        def reached(status: dict[str, Any]) -> bool:
            nonlocal sent
            if status['now_ns'] == now_ns and dealt(status):
                return True
            if time.monotonic() > sent + _AGAIN_S:
                self.set_clock(now_ns)
                sent = time.monotonic()
            return False

        self.until_status(reached)

    def step(self, input_name: str, what: Any) -> None:
        """Send one message and wait until the node has counted it."""
        if input_name == 'clock':
            self.reach(what, lambda status: int(status['next_tick_ns']) > what)
            return
        kind = MESSAGE_TYPES[TAKERS[input_name][2]]
        self.publishers[input_name].publish(encode(kind, what, input_name)[0])
        name = COUNTED_AS.get(input_name, input_name)
        self.sent[name] = self.sent.get(name, 0) + 1
        self.until_status(lambda s: s['received'].get(name, 0) == self.sent[name])

    def play(self, script: Script) -> dict[str, Any]:
        """Send everything in lockstep and wait until all published messages are here."""
        for input_name, what in script:
            self.step(input_name, what)
        status = self.status()
        self.until(lambda: len(self.filtered.data) >= status['published'])
        return status
