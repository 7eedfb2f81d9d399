# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""wheel_odometry_node and vision_node over real DDS: the bits of the batch run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from ros_examples import DEEP, Graph, final_stamps, graph_of_its_own, stamps
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from sim_sensors.core.shipped import config_path
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.scenarios import Circle
from sim_sensors.ros.messages import messages_of
from sim_sensors.vision import vision_pose
from sim_sensors.vision.vision_pose import load_vision
from sim_sensors.wheels import wheel_odometry
from sim_sensors.wheels.wheel_odometry import load_wheels
from sim_sensors.world.world import load_world

TRUTH = truth_of(Circle(radius=3.0, speed=2.0, duration=4.0))
ORIGIN = int(TRUTH.stamp_ns[0])
MOTION = OdometryMotion(TRUTH, origin_ns=ORIGIN, velocity='twist')


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def bits(messages: Sequence[Any]) -> bytes:
    """Every number of odometry or of poses."""
    rows = []
    for message in messages:
        pose = message.pose.pose
        row = [getattr(pose.position, axis) for axis in 'xyz']
        row += [getattr(pose.orientation, axis) for axis in 'xyzw'] + list(message.pose.covariance)
        if isinstance(message, Odometry):
            twist = message.twist.twist
            row += [
                getattr(part, axis) for part in (twist.linear, twist.angular) for axis in 'xyz'
            ]
            row += list(message.twist.covariance)
        rows.append(row)
    return np.array(rows).tobytes()


def test_the_wheel_node_equals_the_batch_run_bit_for_bit_and_follows_the_truth(
    graph: Graph,
) -> None:
    """A differential drive at 40 Hz; joints turn as in the batch run."""
    for topic, kind in (
        ('wheel/odometry', Odometry),
        ('wheel_odometry_node/truth/odometry', Odometry),
        ('wheel/joint_states', JointState),
    ):
        graph.listen(topic, kind)
    graph.start(
        'wheel_odometry_node', 'model:=differential', 'seed:=7', 'run:=circle_1',
        'wheels.rate:=40.0', 'wheels.noise.density:=0.05', 'wheels.drive.half_track:=0.25', *DEEP,
    )  # fmt: skip
    graph.connect('wheel/odometry')
    got = graph.received['wheel/odometry']
    graph.play(TRUTH, lambda k: len(got) >= len(final_stamps(TRUTH, 40.0, k)))
    assert stamps(got) == final_stamps(TRUTH, 40.0)
    plain = load_wheels('differential')
    noise = dataclasses.replace(plain.noise, density=0.05)
    drive = dataclasses.replace(plain.drive, half_track=0.25)
    model = dataclasses.replace(plain, rate=40.0, noise=noise, drive=drive)
    expected = wheel_odometry.simulate(model, MOTION, seed=7, run='circle_1', origin_ns=ORIGIN)
    assert bits(got) == bits(list(messages_of(expected.take(slice(0, len(got))))))
    assert {(m.header.frame_id, m.child_frame_id) for m in got} == {('odom', 'base_link')}
    truths = graph.received['wheel_odometry_node/truth/odometry']
    joints = graph.received['wheel/joint_states']
    graph.wait(lambda: len(truths) == len(joints) == len(got), 'truth and joints')
    assert stamps(truths) == stamps(joints) == stamps(got)
    last = MOTION.at([(stamps(got)[-1] - ORIGIN) * 1e-9]).position[0]
    place = truths[-1].pose.pose.position
    assert (place.x, place.y) == pytest.approx(tuple(last[:2]), abs=1e-4)
    assert bits(truths) != bits(got)
    assert joints[-1].name == ['left_wheel', 'right_wheel']
    whole = model.start(7, 'circle_1').measure(MOTION.at((np.array(stamps(got)) - ORIGIN) * 1e-9))
    np.testing.assert_array_equal([list(m.position) for m in joints], whole.wheel_angle)


def test_the_vision_node_equals_the_batch_run_bit_for_bit(graph: Graph, tmp_path: Path) -> None:
    """Tags are ambiguous and fixes drop out; a reset does not read the file of the world again."""
    ring = tmp_path / 'ring.yaml'
    ring.write_bytes(config_path('worlds', 'tag_ring.yaml').read_bytes())
    graph.listen('vision/pose', PoseWithCovarianceStamped)
    graph.listen('vision_node/truth/pose', PoseStamped)
    graph.start(
        'vision_node', 'model:=frc_2024', f'world:={ring}', 'seed:=7', 'run:=circle_1',
        'vision.ambiguity:=0.3', 'vision.max_range:=7.0', 'vision.delivery.drop_out:=0.1', *DEEP,
    )  # fmt: skip
    graph.connect('vision/pose')
    ring.unlink()
    assert graph.call(Trigger, '/vision_node/reset', Trigger.Request()).success
    plain = load_vision('frc_2024')
    delivery = dataclasses.replace(plain.delivery, drop_out=0.1)
    model = dataclasses.replace(plain, ambiguity=0.3, max_range=7.0, delivery=delivery)
    simulated = vision_pose.simulate(
        model, MOTION, seed=7, run='circle_1', origin_ns=ORIGIN, world=load_world('tag_ring')
    )
    got = graph.received['vision/pose']
    ends = TRUTH.stamp_ns - 10_000_000
    expected = np.searchsorted(
        np.maximum(simulated.arrival_ns, simulated.stamp_ns), ends, side='right'
    )
    graph.play(TRUTH, lambda k: len(got) >= expected[k - 1] - 1)
    assert 20 < len(simulated) < 0.8 * 4.0 * 35.0
    assert len(simulated) - 5 <= len(got) <= len(simulated)
    assert bits(got) == bits(list(messages_of(simulated.take(slice(0, len(got))))))
    truths = graph.received['vision_node/truth/pose']
    graph.wait(lambda: len(truths) == len(got), 'a true pose for each')
    assert stamps(truths) == stamps(got)
    at = MOTION.at((np.array(stamps(got)) - ORIGIN) * 1e-9)
    positions = [(m.pose.position.x, m.pose.position.y) for m in truths]
    np.testing.assert_allclose(positions, at.position[:, :2], atol=1e-12)


def test_wheels_and_vision_in_one_process_equal_the_batch_run_bit_for_bit(graph: Graph) -> None:
    """`sensors:=[wheels, vision]` with the defaults of batch runs."""
    graph.listen('wheel/odometry', Odometry)
    graph.listen('vision/pose', PoseWithCovarianceStamped)
    graph.start('sensors_node', 'sensors:=[wheels, vision]', 'seed:=5', *DEEP)
    graph.connect('wheel/odometry', 'vision/pose', sensors=2)
    wheels, poses = graph.received['wheel/odometry'], graph.received['vision/pose']
    graph.play(TRUTH, lambda k: len(wheels) >= len(final_stamps(TRUTH, 50.0, k)))
    labels: Any = {'seed': 5, 'run': 'recording/1/run_1', 'origin_ns': ORIGIN}
    expected = wheel_odometry.simulate(load_wheels('swerve'), MOTION, **labels)
    assert bits(wheels) == bits(list(messages_of(expected.take(slice(0, len(wheels))))))
    simulated = vision_pose.simulate(
        load_vision('tags'), MOTION, world=load_world('tag_ring'), **labels
    )
    graph.wait(lambda: len(poses) >= len(simulated) - 3, 'poses')
    assert bits(poses) == bits(list(messages_of(simulated.take(slice(0, len(poses))))))
