# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Every field of the layouts has data over DDS, in the demo and while a path is followed."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy', reason='no ROS')

from geometry_msgs.msg import Twist, TwistStamped
from layout_examples import TOPICS, demo_fields
from ros_examples import Graph, graph_of_its_own

from sim_sensors.core.shipped import config_path
from sim_sensors.motion.motions import START_NS, motion_of, truth_of
from sim_sensors.motion.planar import Pose, advance
from sim_sensors.ros.messages import messages_of, time_message

FIELDS = sorted(demo_fields())
# A robot on a plane neither rolls nor pitches; one with differential drive has no side velocity.
PLANAR = {'orientation.x', 'orientation.y'}
PERIOD = 0.02


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        for topic in {topic for topic, _ in FIELDS} - set(graph.received):
            package, _, name = TOPICS[topic].split('/')
            graph.listen(topic, getattr(importlib.import_module(f'{package}.msg'), name))
        yield graph


def start(graph: Graph, folder: Path, wheels: str, *words: str) -> None:
    """Start sensors and judge with the models of the launch files."""
    file = folder / 'models.yaml'
    models = {'imu_node': 'chrono_ahrs', 'gps_node': 'zed_f9p_rtk', 'wheel_odometry_node': wheels}
    parameters = {f'/**/{name}': {'ros__parameters': {'model': models[name]}} for name in models}
    file.write_text(yaml.safe_dump(parameters), encoding='utf-8')
    graph.start('sensors_node', 'sensors:=[imu, gps, wheels]', *words, file=file)
    navsat = f'navsat_params_file:={config_path("judge", "clean_navsat.yaml")}'
    frames = 'assume_identity_frames:=true'
    graph.start('judge_node', frames, navsat, *words, file=config_path('judge', 'clean.yaml'))


def constant_fields(graph: Graph) -> set[str]:
    """Return the ends of the fields that never change; wait for a message of each topic."""
    graph.wait(lambda: all(graph.received[topic] for topic, _ in FIELDS), 'all topics')
    constant = set()
    for topic, names in (field for field in FIELDS if field[1]):
        values = [functools.reduce(getattr, names, m) for m in graph.received[topic]]
        assert np.isfinite(values).all(), (topic, names)
        constant |= {'.'.join(names[-2:])} if len(set(values)) == 1 else set()
    return constant


def test_the_demo_fills_every_field_of_the_layouts(graph: Graph, tmp_path: Path) -> None:
    start(graph, tmp_path, 'ackermann')
    graph.wait(lambda: graph.odometry.get_subscription_count() >= 3, 'the sensors')
    motion = motion_of('drive_circle', seed=0, run='', duration=4.0, parameters={})
    for message in messages_of(truth_of(motion, rate=1.0 / PERIOD)):
        graph.odometry.publish(message)
        for _ in range(10):
            graph.executor.spin_once(timeout_sec=0.002)
    assert constant_fields(graph) <= PLANAR


def test_a_followed_path_fills_every_field_of_the_layouts(graph: Graph, tmp_path: Path) -> None:
    """The robot of the test obeys cmd_vel, as that of a simulator."""
    path = tmp_path / 'path.csv'
    rows = [(t, 2.0 * math.sin(0.4 * t), 2.0 - 2.0 * math.cos(0.4 * t)) for t in range(10)]
    path.write_text('t,x,y\n' + ''.join(f'{t},{x},{y}\n' for t, x, y in rows), encoding='utf-8')
    graph.listen('cmd_vel', TwistStamped)
    graph.start('path_follower_node', f'path:={path}')
    start(graph, tmp_path, 'differential')
    graph.wait(lambda: graph.odometry.get_subscription_count() >= 4, 'follower and sensors')
    truth = truth_of(motion_of('circle', seed=0, run='', duration=3.0, parameters={}), rate=50.0)
    commands, pose = graph.received['cmd_vel'], Pose(0.0, 0.0, 0.0)
    for k in range(200):
        twist = commands[-1].twist if commands else Twist()
        pose = advance(pose, twist.linear.x * PERIOD, 0.0, twist.angular.z * PERIOD)
        message = next(messages_of(truth.take([0])))
        message.header.stamp = time_message(START_NS + round(k * PERIOD * 1e9))
        message.pose.pose.position.x, message.pose.pose.position.y = pose.x, pose.y
        quaternion = message.pose.pose.orientation
        quaternion.z, quaternion.w = math.sin(pose.heading / 2.0), math.cos(pose.heading / 2.0)
        message.twist.twist = twist
        graph.odometry.publish(message)
        for _ in range(10):
            graph.executor.spin_once(timeout_sec=0.002)
    assert constant_fields(graph) <= PLANAR | {'linear.y'}
    # It arrives where the path is after 4 s.
    assert math.hypot(pose.x - rows[4][1], pose.y - rows[4][2]) < 0.2
