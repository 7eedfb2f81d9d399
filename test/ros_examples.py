# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Real ROS nodes over real DDS on a reserved domain, for the ROS tests."""

from __future__ import annotations

import collections
import contextlib
import math
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import uninstall_signal_handlers
from rosgraph_msgs.msg import Clock

from sim2real_eval.judge.external.graph import (
    WITHOUT_TYPE_DESCRIPTIONS,
    free_domain,
    private_context,
)
from sim2real_eval.ros.judge_node import JudgeNode
from sim_sensors import executables
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.ros.messages import messages_of, stamp_ns, time_message
from sim_sensors.ros.path_follower_node import PathFollowerNode
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.sensors_node import sensor_nodes
from sim_sensors.ros.trajectory_node import TrajectoryNode
from sim_sensors.sensor.catalogue import kinds

TIMEOUT = 180.0
# Long enough for a busy machine to answer the first time.
_AGAIN_S = 3.0
# Domains of the latest graphs stay reserved, because DDS takes killed processes for alive a while.
_DOMAINS: collections.deque[contextlib.ExitStack] = collections.deque()
_STAY_HELD = 10

# Fast DDS announces itself every 3 s; with this file processes find each other sooner.
_QUICK_DISCOVERY = """<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <participant profile_name="quick" is_default_profile="true"><rtps><builtin><discovery_config>
    <leaseDuration><sec>20</sec></leaseDuration>
    <leaseAnnouncement><sec>0</sec><nanosec>100000000</nanosec></leaseAnnouncement>
  </discovery_config></builtin></rtps></participant>
</profiles>
"""

# For sensors that may lose nothing, however much comes at once and however slow a moment is.
DEEP = (
    'qos_overrides./ground_truth/odometry.subscription.reliability:=reliable',
    'qos_overrides./ground_truth/odometry.subscription.depth:=5000',
    *(
        f'qos_overrides.{topic}.publisher.depth:=1000'
        for topic in ('/imu/data', '/gps/fix', '/imu_node/truth/bias')
    ),
)
_COUNTS = ('odometry publishers', 'subscriptions', 'truth subscriptions')


def _words(name: str, parameters: Sequence[str], file: Path | None) -> list[str]:
    """Return the words of a command line; nodes that can report often do so."""
    seldom = name in ('', 'judge_node', 'trajectory_node')
    often = [] if seldom else ['diagnostics_period:=0.05']
    words = [word for parameter in (*often, *parameters) for word in ('-p', parameter)]
    return words + ([] if file is None else ['--params-file', str(file)])


@contextlib.contextmanager
def signals_left_alone() -> Iterator[None]:
    """Take rclpy's handlers back that a node's `main` leaves for the end of its process.

    A signal to pytest would otherwise shut down the context of the next test.
    """
    try:
        yield
    finally:
        uninstall_signal_handlers()


def refused(
    capsys: pytest.CaptureFixture[str], name: str, *parameters: str, file: Path | None = None
) -> list[str]:
    """Run an executable in this process with wrong arguments; return its lines on stderr.

    Lines of the ROS log and of DDS, which bypass Python, are not included.
    """
    words = _words('', parameters, file)
    capsys.readouterr()
    # A wrong match would run for ever.
    end = threading.Timer(TIMEOUT, rclpy.try_shutdown)
    end.start()
    with signals_left_alone():
        status = getattr(executables, name)(['--ros-args', *words])
    end.cancel()
    output = capsys.readouterr()
    assert status == 2, output.err
    return output.err.splitlines()


_OTHERS: dict[str, Any] = {
    'judge_node': JudgeNode,
    'path_follower_node': PathFollowerNode,
    'trajectory_node': TrajectoryNode,
}


def nodes_of(name: str, *words: str, context: Context) -> list[Node]:
    """Make the nodes of an executable in this process, from the words of its command line."""
    options: Any = {'context': context, 'cli_args': ['--ros-args', *words]}
    if name == 'sensors_node':
        return sensor_nodes(**options)
    if name in _OTHERS:
        return [_OTHERS[name](**options)]
    (kind,) = (kind for kind in kinds() if kind.node == name)
    return [SensorNode(kind, **options)]


class Graph:
    """The nodes under test, and a node that publishes odometry and the clock to them.

    The nodes are in this process, spun by the executor of the world, since a process takes two
    seconds to load. `launch` starts a node as a process.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.node = Node(
            'world', context=self.context, parameter_overrides=[WITHOUT_TYPE_DESCRIPTIONS]
        )
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.received: dict[str, list[Any]] = collections.defaultdict(list)
        self.processes: list[subprocess.Popen[str]] = []
        self._nodes: list[Node] = []
        self._subscriptions: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        self.odometry = self.node.create_publisher(
            Odometry, 'ground_truth/odometry', QoSProfile(depth=5000)
        )
        self.clock = self.node.create_publisher(Clock, '/clock', QoSProfile(depth=10))
        self.listen('/diagnostics', DiagnosticArray)

    def close(self) -> None:
        """End the processes, the executor and the node.

        Nothing may spin at this point: destroying a node while an executor spins is a segmentation
        fault in rclpy (ros2/rclpy#260, #663), see also eProsima/Fast-DDS#3561.
        """
        for process in self.processes:
            self.stop(process, signal.SIGKILL)
        for node in list(self._nodes):
            self.end(node)
        self.executor.remove_node(self.node)
        self.executor.shutdown()
        self.node.destroy_node()

    def start(self, name: str, *parameters: str, file: Path | None = None) -> list[Node]:
        """Start the nodes of an executable with parameters such as `imu.rate:=50.0`."""
        words = _words(name, parameters, file)
        nodes = nodes_of(name, *words, context=self.context)
        for node in nodes:
            self.executor.add_node(node)
        self._nodes += nodes
        return nodes

    def end(self, node: Node) -> None:
        """End a node that was started."""
        self._nodes.remove(node)
        self.executor.remove_node(node)
        node.destroy_node()

    def launch(
        self, name: str, *parameters: str, file: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start an executable as a process."""
        words = _words(name, parameters, file)
        process = subprocess.Popen(
            [sys.executable, '-m', 'sim_sensors.executables', name, '--ros-args', *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def stop(self, process: subprocess.Popen[str], sign: int = signal.SIGINT) -> int:
        if process.poll() is None:
            process.send_signal(sign)
        process.communicate(timeout=TIMEOUT)
        return process.returncode

    def listen(self, topic: str, kind: type) -> None:
        self._subscriptions[topic] = self.node.create_subscription(
            kind, topic, self.received[topic].append, QoSProfile(depth=5000)
        )

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Spin until `condition`; the test fails when it never comes."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < end, f'waited {TIMEOUT:g} s for {what}'
            self.executor.spin_once(timeout_sec=0.02)

    def connect(self, *topics: str, sensors: int = 1, publishers: int = 1) -> None:
        """Wait until the sensors hear odometry and are heard on `topics`.

        Topics of their errors that this node listens to count as well. Either side finds the other
        in its own time, so the sensors are asked too.
        """
        first = len(self.received['/diagnostics'])
        truth = [topic for topic in self._subscriptions if '/truth/' in topic]
        self.wait(
            lambda: (
                self.odometry.get_subscription_count() == sensors
                and self._are_matched(topics, truth, sensors, publishers, first)
            ),
            f'{sensors} sensors on {topics}',
        )

    def let_go(self, *topics: str, sensors: int = 1) -> None:
        """Publish the topic `ready` when each sensor has an odometry publisher and a listener.

        A trajectory_node that awaits it loses nothing at the start.
        """
        self.wait(
            lambda: self._are_matched(topics, (), sensors, 1, 0), f'{sensors} sensors on {topics}'
        )
        self.node.create_publisher(Clock, 'ready', 1)

    def _are_matched(
        self,
        topics: Sequence[str],
        truth: Sequence[str],
        sensors: int,
        publishers: int,
        first: int,
    ) -> bool:
        newest = {
            status.name: {
                pair.key: int(pair.value) for pair in status.values if pair.key in _COUNTS
            }
            for array in self.received['/diagnostics'][first:]
            for status in array.status
        }.values()
        counts = [[values[key] for values in newest] for key in _COUNTS]
        return all(map(self._publishers_of, (*topics, *truth))) and (
            counts[0] == [publishers] * sensors
            and (sum(counts[1]), sum(counts[2])) == (len(topics), len(truth))
        )

    def _publishers_of(self, topic: str) -> int:
        return int(self._subscriptions[topic].get_publisher_count())

    def publishers(self, topic: str) -> list[str]:
        """Names of the nodes that publish a topic."""
        return [info.node_name for info in self.node.get_publishers_info_by_topic(topic)]

    def play(self, truth: OdometryArray, expected: Callable[[int], bool], burst: int = 10) -> None:
        """Publish odometry; after each burst wait for `expected(samples so far)`.

        A sensor's publisher holds 10 measurements; what makes more at once needs `DEEP`.
        """
        for k, message in enumerate(messages_of(truth), 1):
            self.odometry.publish(message)
            if k % burst == 0 or k == len(truth):
                self.wait(lambda k=k: expected(k), f'what follows from {k} samples')

    def tick(self, stamp: int) -> None:
        self.clock.publish(Clock(clock=time_message(stamp)))

    def call(self, kind: type, name: str, request: Any) -> Any:
        """Call a service, and repeat the request until an answer comes.

        A request is lost while one side has not discovered the other.
        """
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client = self._clients[name]
        self.wait(client.service_is_ready, name)
        futures: list[Any] = []
        requested = -math.inf

        def answered() -> bool:
            nonlocal requested
            if time.monotonic() > requested + _AGAIN_S:
                futures.append(client.call_async(request))
                requested = time.monotonic()
            return any(future.done() for future in futures)

        self.wait(answered, f'an answer of {name}')
        return next(future.result() for future in futures if future.done())

    def statuses(self) -> list[Any]:
        return [status for array in self.received['/diagnostics'] for status in array.status]

    def values(self) -> dict[str, str]:
        """Counters of the newest diagnostic status."""
        statuses = self.statuses()
        return {pair.key: pair.value for pair in statuses[-1].values} if statuses else {}

    def said(self, text: str) -> bool:
        return any(text in status.message for status in self.statuses())


@contextlib.contextmanager
def graph_of_its_own() -> Iterator[Graph]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        profile = Path(folder, 'quick.xml')
        profile.write_text(_QUICK_DISCOVERY)
        patch.setenv('FASTRTPS_DEFAULT_PROFILES_FILE', str(profile))
        domain = contextlib.ExitStack()
        _DOMAINS.append(domain)
        if len(_DOMAINS) > _STAY_HELD:
            _DOMAINS.popleft().close()
        with private_context(domain.enter_context(free_domain())) as context:
            graph = Graph(context)
            try:
                yield graph
            finally:
                graph.close()


def stamps(messages: Sequence[Any]) -> list[int]:
    return [stamp_ns(message.header.stamp) for message in messages]


def final_stamps(truth: OdometryArray, rate: float, samples: int | None = None) -> list[int]:
    """Stamps of a sensor that are final with the first samples: all before the second newest."""
    n = len(truth) if samples is None else samples
    if n < 3:
        return []
    first, end = int(truth.stamp_ns[0]), int(truth.stamp_ns[n - 2])
    grid = [first + round(k * 1e9 / rate) for k in range(int((end - first) * rate / 1e9) + 2)]
    return [stamp for stamp in grid if stamp < end]


def imu_bits(messages: Sequence[Any]) -> bytes:
    """Every number of sensor_msgs/Imu messages."""
    rows = []
    for m in messages:
        q = m.orientation
        row = [q.x, q.y, q.z, q.w, *m.orientation_covariance]
        for name in ('angular_velocity', 'linear_acceleration'):
            vector = getattr(m, name)
            row += [vector.x, vector.y, vector.z, *getattr(m, f'{name}_covariance')]
        rows.append(row)
    return np.array(rows).tobytes()


def fix_bits(messages: Sequence[Any]) -> bytes:
    """Every number of sensor_msgs/NavSatFix messages."""
    rows = [
        (m.latitude, m.longitude, m.altitude, m.status.status, m.position_covariance_type,
         *m.position_covariance)
        for m in messages
    ]  # fmt: skip
    return np.array(rows).tobytes()


def batch_bits(truth: OdometryArray) -> bytes:
    """Messages of imu_node with its defaults; the last waits for odometry that never comes."""
    origin = int(truth.stamp_ns[0])
    motion = OdometryMotion(truth, origin_ns=origin, velocity='twist')
    measured = imu.simulate(
        load_imu('chrono'), motion, seed=0, run='recording/1/run_1', origin_ns=origin
    )
    return imu_bits(list(messages_of(measured.take(slice(0, len(final_stamps(truth, 100.0)))))))
