# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""demo.launch.py twice in one graph, under two namespaces, with the real launch."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import operator
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='no ROS')
pytest.importorskip('launch_ros', reason='no ROS installation')
pytest.importorskip('tf2_msgs', reason='no ROS installation')
if shutil.which('ros2') is None:
    pytest.skip('no ros2', allow_module_level=True)

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TwistStamped, Vector3Stamped
from layout_examples import Field, demo_fields
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, NavSatFix
from tf2_msgs.msg import TFMessage

from sim2real_eval.judge.external.graph import free_domain, private_context
from sim_sensors.core.shipped import config_path
from sim_sensors.ros.messages import stamp_ns

for package in ('sim2real_sensors', 'tf2_ros'):
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        pytest.skip(f'{package} is not installed', allow_module_level=True)

ROBOTS = ('robot1', 'robot2')
SECONDS = 12.0
# Two demos start on a machine that may compile for the first time.
PATIENCE_S = 400.0
# Topics of all processes of a graph.
SHARED = {'/rosout', '/parameter_events', '/diagnostics'}
TOPICS = {
    'clock': Clock, 'ground_truth/odometry': Odometry, 'odometry/filtered': Odometry,
    'wheel_odometry_node/truth/odometry': Odometry,
    'odometry/gps': Odometry, 'wheel/odometry': Odometry, 'imu/data': Imu, 'gps/fix': NavSatFix,
    'imu_node/truth/bias': TwistStamped, 'gps_node/truth/position_error': Vector3Stamped,
}  # fmt: skip
PLANAR = {('orientation', 'x'), ('orientation', 'y')}
MOUNTED = """
lever_arm: [0.4, -0.3, 0.2]
mounting_rpy: [0.0, 0.0, 1.2]
"""


@dataclasses.dataclass
class Demos:
    """What both demos published, and how they ended."""

    received: dict[str, list[Any]]
    publishers: dict[str, set[str]]
    """Full names of the nodes that published a topic."""
    subscribers: dict[str, set[str]]
    statuses: dict[str, int]
    output: dict[str, str]

    def of(self, robot: str, topic: str) -> list[Any]:
        return self.received[f'/{robot}/{topic}']


@pytest.fixture(scope='module')
def demos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demos]:
    folder = tmp_path_factory.mktemp('demos')
    mounted = folder / 'mounted.yaml'
    mounted.write_text(config_path('imu', 'chrono_ahrs.yaml').read_text('utf-8') + MOUNTED)
    arguments = {
        'robot1': [],
        'robot2': ['scenario:=drive_line', f'imu:={mounted}', 'gps:=ch_rw', 'seed:=4'],
    }
    with free_domain() as domain, private_context(domain) as context:
        node = Node('listener', context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        processes = {
            robot: start(folder, robot, [*more, f'duration:={SECONDS}'])
            for robot, more in arguments.items()
        }
        try:
            yield listen(node, executor, processes, folder)
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    process.wait(60)
            executor.shutdown()
            node.destroy_node()


def start(folder: Path, robot: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    words = ['ros2', 'launch', 'sim2real_sensors', 'demo.launch.py', f'namespace:={robot}']
    with (folder / f'{robot}.log').open('wb') as log:
        return subprocess.Popen(
            [*words, *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=folder,
            env={**os.environ, 'ROS_LOG_DIR': str(folder / 'log')},
        )  # fmt: skip


def listen(
    node: Node,
    executor: SingleThreadedExecutor,
    processes: dict[str, subprocess.Popen[bytes]],
    folder: Path,
) -> Demos:
    """Listen to both demos, and to the topics of the root namespace, until both have ended."""
    received: dict[str, list[Any]] = collections.defaultdict(list)
    deep = QoSProfile(depth=5000)
    latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(DiagnosticArray, '/diagnostics', received['/diagnostics'].append, 100)
    for prefix in ('/', *(f'/{robot}/' for robot in ROBOTS)):
        for name, kind in TOPICS.items():
            node.create_subscription(kind, prefix + name, received[prefix + name].append, deep)
        topic = f'{prefix}tf_static'
        node.create_subscription(TFMessage, topic, received[topic].append, latched)
    publishers: dict[str, set[str]] = collections.defaultdict(set)
    subscribers: dict[str, set[str]] = collections.defaultdict(set)
    end, next_look = time.monotonic() + PATIENCE_S, 0.0
    while any(process.poll() is None for process in processes.values()):
        assert time.monotonic() < end, [(folder / f'{robot}.log').read_text() for robot in ROBOTS]
        executor.spin_once(timeout_sec=0.05)
        if time.monotonic() > next_look:
            next_look = time.monotonic() + 0.5
            for topic, _ in node.get_topic_names_and_types():
                publishers[topic] |= names(node.get_publishers_info_by_topic(topic))
                subscribers[topic] |= names(node.get_subscriptions_info_by_topic(topic))
    return Demos(
        received,
        publishers,
        subscribers,
        {robot: process.returncode for robot, process in processes.items()},
        {robot: (folder / f'{robot}.log').read_text() for robot in ROBOTS},
    )


def names(infos: Any) -> set[str]:
    """Return the full names of the discovered nodes besides the listener."""
    found = {f'{info.node_namespace.rstrip("/")}/{info.node_name}' for info in infos}
    return {name for name in found if name.startswith(tuple(f'/{robot}/' for robot in ROBOTS))}


def test_both_demos_end_by_themselves_with_status_0(demos: Demos) -> None:
    assert demos.statuses == dict.fromkeys(ROBOTS, 0), demos.output
    for robot in ROBOTS:
        assert 'the motion has ended' in demos.output[robot]
        assert not re.search('Traceback|ERROR|process has died', demos.output[robot])


def test_no_topic_connects_the_robots(demos: Demos) -> None:
    ends = {topic: demos.publishers[topic] | demos.subscribers[topic] for topic in
            {*demos.publishers, *demos.subscribers} - SHARED}  # fmt: skip
    for robot, other in (ROBOTS, ROBOTS[::-1]):
        topics = {topic for topic, nodes in ends.items() if any(
            node.startswith(f'/{robot}/') for node in nodes)}  # fmt: skip
        assert topics
        assert {topic for topic in topics if not topic.startswith(f'/{robot}/')} == set()
        assert not any(node.startswith(f'/{other}/') for topic in topics for node in ends[topic])
        # One source of each measurement, and of the time.
        for topic in (*TOPICS, 'clock'):
            assert len(demos.publishers[f'/{robot}/{topic}']) == 1, topic
    for topic in (*TOPICS, 'tf_static'):
        assert not demos.received[f'/{topic}'], topic


def test_both_robots_measure_and_are_judged(demos: Demos) -> None:
    for robot in ROBOTS:
        truth, estimates = (
            velocities(demos.of(robot, topic))
            for topic in ('ground_truth/odometry', 'odometry/filtered')
        )
        assert len(truth) > 0.9 * SECONDS * 100.0
        # A busy machine delays the clock, and the judge skips ticks.
        assert len(estimates) > 50
        assert max(estimates) - min(estimates) > 0.8 * SECONDS * 1e9
        times = sorted(set(truth) & set(estimates)) or sorted(truth)
        true_speed = np.array([truth[t] for t in times])
        speed = np.interp(times, sorted(estimates), [estimates[t] for t in sorted(estimates)])
        # At rest or with the velocity of the other robot the error would be above 0.5 m/s.
        late = np.array(times) > times[0] + 3e9
        assert np.sqrt(np.mean((speed - true_speed)[late] ** 2)) < 0.3, robot
        assert np.abs(true_speed[late]).mean() > 0.5
    fixes = {robot: demos.of(robot, 'gps/fix') for robot in ROBOTS}
    # Only the receiver of the first robot states its covariance, as a driver does.
    types = {r: {fix.position_covariance_type for fix in fixes[r]} for r in ROBOTS}
    assert types['robot1'] <= {NavSatFix.COVARIANCE_TYPE_APPROXIMATED,
                               NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN}  # fmt: skip
    assert types == {'robot1': {2}, 'robot2': {0}}


def velocities(messages: list[Odometry]) -> dict[int, float]:
    """Return the forward velocity by stamp."""
    return {stamp_ns(m.header.stamp): m.twist.twist.linear.x for m in messages}


def test_each_robot_has_the_transforms_of_its_sensors(demos: Demos) -> None:
    def transforms(robot: str) -> dict[str, tuple[float, float]]:
        sent = [t for message in demos.of(robot, 'tf_static') for t in message.transforms]
        return {
            t.child_frame_id: (t.transform.translation.x, 2.0 * math.acos(t.transform.rotation.w))
            for t in sent
        }

    first, second = map(transforms, ROBOTS)
    assert set(first) == set(second) == {'imu_link', 'gps_link'}
    assert first['imu_link'] == (0.0, 0.0)
    assert second['imu_link'] == pytest.approx((0.4, 1.2))


def test_diagnostics_name_the_robot(demos: Demos) -> None:
    statuses = {
        status.name.partition(':')[0]
        for array in demos.received['/diagnostics']
        for status in array.status
    }
    names = ('imu_node', 'gps_node', 'wheel_odometry_node', 'ekf_filter_node')
    assert {f'/{robot}/{name}' for robot in ROBOTS for name in names} <= statuses


@pytest.mark.parametrize('field', sorted(demo_fields()))
def test_every_field_of_the_layouts_has_data(demos: Demos, field: Field) -> None:
    topic, path = field
    messages = demos.received[topic if topic in SHARED else f'/robot1{topic}']
    assert messages
    if path:
        values = [functools.reduce(getattr, path, message) for message in messages]
        assert np.isfinite(values).all()
        # A car on a plane neither rolls nor pitches.
        assert len(set(values)) > 1 or path[-2:] in PLANAR


def test_the_yaw_of_the_imu_and_the_wheels_follow_the_truth(demos: Demos) -> None:
    inertial, truth = (demos.of('robot1', name) for name in ('imu/data', 'ground_truth/odometry'))
    assert {m.orientation_covariance[0] for m in inertial} != {-1.0}
    assert agree(yaws(inertial, 'orientation'), yaws(truth, 'pose.pose.orientation'), 0.2)
    wheels = velocities(demos.of('robot1', 'wheel/odometry'))
    assert agree(wheels, velocities(truth), 0.2)


def yaws(messages: list[Any], path: str) -> dict[int, float]:
    def yaw(q: Any) -> float:
        return math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y**2 + q.z**2))

    get = operator.attrgetter(path)
    return {stamp_ns(m.header.stamp): yaw(get(m)) for m in messages}


def agree(values: dict[int, float], expected: dict[int, float], tolerance: float) -> bool:
    """Return True if values at equal stamps differ by less than the tolerance (rms, angles)."""
    common = sorted(set(values) & set(expected))
    assert len(common) > 100
    difference = np.array([values[t] - expected[t] for t in common])
    wrapped = np.angle(np.exp(1j * difference))
    return float(np.sqrt(np.mean(wrapped**2))) < tolerance
