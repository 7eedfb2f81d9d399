# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""magnetometer_node over real DDS publishes the bits of the batch run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import dataclasses

import numpy as np
from geometry_msgs.msg import Vector3Stamped
from ros_examples import DEEP, Graph, final_stamps, graph_of_its_own, stamps
from sensor_msgs.msg import MagneticField

from sim_sensors.magnetometer.magnetometer import load_mag, simulate
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.ros.messages import messages_of
from sim_sensors.world.world import load_world

TRUTH = truth_of(motion_of('drive_half_sine', seed=3, run='run_1', duration=3.0, parameters={}))
ORIGIN = int(TRUTH.stamp_ns[0])


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def bits(messages: Sequence[Any]) -> bytes:
    """Every number of sensor_msgs/MagneticField messages."""
    rows = [
        [m.magnetic_field.x, m.magnetic_field.y, m.magnetic_field.z, *m.magnetic_field_covariance]
        for m in messages
    ]
    return np.array(rows).tobytes()


def batch(model: Any) -> Any:
    motion = OdometryMotion(TRUTH, origin_ns=ORIGIN, velocity='twist')
    world = load_world('dipole_room')
    return simulate(model, motion, world=world, origin_ns=ORIGIN, seed=7, run='half_1')


def test_the_magnetometer_node_equals_the_batch_run_bit_for_bit(graph: Graph) -> None:
    """The sensor is mounted off the centre among 500 magnets; its error is published too."""
    graph.listen('imu/mag', MagneticField)
    graph.listen('magnetometer_node/truth/error', Vector3Stamped)
    graph.start(
        'magnetometer_node', 'model:=disturbed', 'world:=dipole_room', 'seed:=7', 'run:=half_1',
        'mag.rate:=50.0', 'mag.lever_arm:=[0.2, 0.0, 1.2]', 'mag.mounting_rpy:=[0.0, 0.1, 1.5]',
        'mag.magnetometer.noise_correlation:=[0.5, 0.0, 0.0]', 'mag.frame_id:=mag_link', *DEEP,
    )  # fmt: skip
    graph.connect('imu/mag')
    got = graph.received['imu/mag']
    graph.play(TRUTH, lambda k: len(got) >= len(final_stamps(TRUTH, 50.0, k)))
    assert stamps(got) == final_stamps(TRUTH, 50.0)
    plain = load_mag('disturbed')
    model = dataclasses.replace(
        plain, rate=50.0, lever_arm=(0.2, 0.0, 1.2), mounting_rpy=(0.0, 0.1, 1.5),
        magnetometer=dataclasses.replace(plain.magnetometer, noise_correlation=(0.5, 0.0, 0.0)),
    )  # fmt: skip
    expected = batch(model).take(slice(0, len(got)))
    assert bits(got) == bits(list(messages_of(expected)))
    assert {message.header.frame_id for message in got} == {'mag_link'}
    errors = graph.received['magnetometer_node/truth/error']
    graph.wait(lambda: len(errors) == len(got), 'an error for each measurement')
    assert stamps(errors) == stamps(got)
    # Hard iron of 2e-5 T and more.
    assert all(abs(error.vector.x) + abs(error.vector.z) > 1e-6 for error in errors)
