# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Two robots in one graph, in namespaces: neither hears the other."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy', reason='no ROS')

from live_examples import MOUNTED, Published, arrivals, curve, everything, live_judge
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from ros_judge_examples import Graph, Script, play

from sim2real_eval.judge.external.graph import free_domain, private_context
from sim2real_eval.judge.robot_localization.configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.cdr import encode_transforms
from sim2real_eval.recording.metadata import transform_mappings
from sim2real_eval.recording.recording import Recording, StaticTransform

STEP_NS = 20_000_000
# Each robot has a clock of its own.
APART_NS = 1_000_000_000_000
OTHER = (
    StaticTransform('base_link', 'imu_link', (-0.2, 0.5, 0.0), (0.0, 0.0, 0.8, 0.6)),
    StaticTransform('base_link', 'gps_link', (0.9, -0.6, 0.3), (0.0, 0.0, 0.0, 1.0)),
)
MOUNTINGS = {'robot1': MOUNTED, 'robot2': OTHER}
FRAMES = {'map_frame': 'map', 'odom_frame': 'odom', 'base_link_frame': 'base_link'}


@pytest.fixture(scope='module', autouse=True)
def isolated() -> Iterator[None]:
    with free_domain() as domain, private_context(domain):
        yield


def moved(recording: Recording, offset_ns: int, prefix: str) -> Recording:
    """Return the recording at another time, its frames with a prefix."""
    messages = {
        topic: dataclasses.replace(
            array,
            stamp_ns=array.stamp_ns + offset_ns,
            arrival_ns=array.arrival_ns + offset_ns,
            frame=prefix + array.frame,
            **({'child_frame': prefix + array.child_frame} if 'odom' in topic else {}),
        )
        for topic, array in recording.messages.items()
    }
    return dataclasses.replace(recording, messages=messages)


def script_of(live: LiveJudge, recording: Recording) -> Script:
    """Return the messages in order, with the clock of the robot."""
    events = arrivals(live, recording, ReplayOptions())
    now = events[0][0]
    script: Script = [('clock', now)]
    for arrival, *event in events:
        while now + STEP_NS <= arrival:
            now += STEP_NS
            script.append(('clock', now))
        script.append((event[0], event[1]))
    return script


@dataclasses.dataclass
class Robot:
    """A judge_node in a namespace, what its sensors send, and the estimates of it alone."""

    graph: Graph
    script: Script
    alone: Published


@contextlib.contextmanager
def robot(folder: Path, name: str, number: int, transforms_by: str) -> Iterator[Robot]:
    prefix = f'{name}/' if transforms_by == 'prefixed tf' else ''
    frames = {key: prefix + frame for key, frame in FRAMES.items()}
    folder.mkdir()
    config = everything(folder, stamped_control=True, world_frame=frames['odom_frame'], **frames)
    (folder / 'navsat.yaml').write_text(
        yaml.safe_dump(
            {'/**': {'ros__parameters': {'frequency': 20.0, 'use_odometry_yaw': False}}}
        )
    )
    navsat = NavsatConfig.from_file(folder / 'navsat.yaml')
    mounted = tuple(
        dataclasses.replace(t, parent=prefix + t.parent, child=prefix + t.child)
        for t in MOUNTINGS[name]
    )
    run = moved(curve(1.0, mounted), number * APART_NS, prefix)
    live = live_judge(run, config, navsat)
    script = script_of(live, run)
    alone = play(live, script)
    arguments = [
        '-r', f'__ns:=/{name}', '-r', f'/clock:=/{name}/clock',
        *(['-r', '/tf_static:=tf_static'] if transforms_by != 'prefixed tf' else []),
        '--params-file', str(config.where), '-p', 'use_sim_time:=true',
        '-p', f'navsat_params_file:={folder}/navsat.yaml',
    ]  # fmt: skip
    if transforms_by == 'file':
        (folder / 'tf.yaml').write_text(yaml.safe_dump(transform_mappings(mounted)))
        arguments += ['-p', f'static_transforms_file:={folder}/tf.yaml']
    graph = Graph(folder, arguments, f'/{name}')
    try:
        if transforms_by != 'file':
            publish_transforms(graph, f'/{name}' if not prefix else '', mounted)
        yield Robot(graph, script, alone)
    finally:
        graph.close()


def publish_transforms(
    graph: Graph, namespace: str, transforms: tuple[StaticTransform, ...]
) -> None:
    """Publish transforms as static_transform_publisher does, and wait for their listener."""
    message = pytest.importorskip('tf2_msgs.msg').TFMessage
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    for transform in transforms:
        topic = f'{namespace}/tf_static'
        publisher = graph.node.create_publisher(message, topic, latched)
        publisher.publish(deserialize_message(encode_transforms([transform], 0), message))
        graph.until(lambda publisher=publisher: publisher.get_subscription_count() > 0)
        assert publisher.wait_for_all_acked()
    # The node answers after it has taken them.
    graph.status()


def has_all(robot: Robot) -> bool:
    return len(robot.graph.filtered.data) >= len(robot.alone.filtered)


@pytest.mark.parametrize('transforms_by', ['file', 'namespaced tf', 'prefixed tf'])
def test_each_judge_estimates_what_it_does_alone(tmp_path: Path, transforms_by: str) -> None:
    """Different mountings and clocks, step by step in turns: equal bit for bit."""
    if transforms_by != 'file':
        pytest.importorskip('tf2_msgs')
    with contextlib.ExitStack() as stack:
        robots = [
            stack.enter_context(robot(tmp_path / name, name, number, transforms_by))
            for number, name in enumerate(MOUNTINGS)
        ]
        for events in zip(*(robot.script for robot in robots), strict=True):
            for each, event in zip(robots, events, strict=True):
                each.graph.step(*event)
        for each in robots:
            filtered, gps = each.graph.filtered, each.graph.gps
            each.graph.until(partial(has_all, each))
            status = each.graph.status()
            assert not status['refused']
            assert not status['resets']
            for received, rows in ((filtered, each.alone.filtered), (gps, each.alone.gps)):
                assert len(received.odometry) == len(rows) > 5
                for name in ('stamp_ns', 'position', 'linear_velocity', 'pose_covariance'):
                    expected = np.concatenate([getattr(row, name) for row in rows])
                    assert getattr(received.odometry, name).tobytes() == expected.tobytes(), name
        first, second = (each.graph.filtered.odometry for each in robots)
        assert second.stamp_ns[0] - first.stamp_ns[0] == APART_NS
        # The mountings matter: with that of the other robot, the estimate would differ.
        assert np.abs(first.position - second.position).max() > 0.1
