# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""trajectory_node waits for its subscribers, drives the sensors, and loops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from ros_examples import (
    TIMEOUT,
    Graph,
    batch_bits,
    final_stamps,
    graph_of_its_own,
    imu_bits,
    refused,
    stamps,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, NavSatFix

from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.ideal import InertialMotion
from sim_sensors.motion.motions import START_NS, motion_of, noise_free_imu, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.ros.messages import messages_of, stamp_ns
from sim_sensors.world.geodesy import STANDARD_GRAVITY

CIRCLE = truth_of(motion_of('circle', seed=0, run='', duration=1.5, parameters={'ramp_time': 0.5}))
ROUND = truth_of(motion_of('circle', seed=0, run='', duration=0.5, parameters={'ramp_time': 0.2}))


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        graph.node.destroy_publisher(graph.odometry)
        graph.node.destroy_publisher(graph.clock)
        yield graph


def test_the_motion_begins_when_all_awaited_connections_exist(graph: Graph) -> None:
    graph.listen('/clock', Clock)
    # A reader, but not the one that is awaited.
    graph.listen('ground_truth/odometry', Odometry)
    awaited = 'ground_truth/odometry:world odometry/filtered ground_truth/odometry:imu_node'
    words = [
        *('--ros-args', '-r', 'odometry/filtered:=judged', '-p', f'awaited:={awaited}'),
        *('-p', 'motion:=circle', '-p', 'duration:=1.0', '-p', 'scenario.ramp_time:=0.5'),
        *('-p', 'clock:=true', '-p', 'delay:=0.1'),
    ]
    process = subprocess.Popen(
        [sys.executable, '-m', 'sim_sensors.ros.trajectory_node', *words],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    graph.processes.append(process)
    times, odometry = graph.received['/clock'], graph.received['ground_truth/odometry']
    publisher = graph.node.create_publisher(Odometry, 'judged', QoSProfile(depth=1))
    graph.wait(lambda: len(times) >= 50, 'the time that stands')
    assert {stamp_ns(message.clock) for message in times} == {START_NS}
    assert not odometry
    graph.start('imu_node', 'use_sim_time:=true')
    graph.wait(lambda: len(odometry) == 101, 'the whole motion')
    assert stamps(odometry) == [START_NS + k * 10_000_000 for k in range(101)]
    graph.wait(lambda: stamp_ns(times[-1].clock) == START_NS + 1_000_000_000, 'the last time')
    noise_free, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert json.loads(noise_free) == {'published': 101}
    graph.node.destroy_publisher(publisher)


@pytest.mark.parametrize('word', ['odometry//x', 'imu/data:a-b', ':imu_node', '3:x', 'imu/data::'])
def test_a_malformed_connection_to_await_is_refused(
    graph: Graph, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    (line,) = refused(capsys, 'trajectory_node', f'awaited:="imu/data {word}"')
    assert f'awaited: {word!r}' in line


def test_trajectory_node_alone_drives_the_sensors(graph: Graph) -> None:
    """Twice as fast as real time, with a clock; stamps are the motion's."""
    graph.listen('imu/data', Imu)
    graph.listen('gps/fix', NavSatFix)
    graph.start('sensors_node', 'use_sim_time:=true')
    (moving,) = graph.start(
        'trajectory_node', 'motion:=circle', 'duration:=1.5', 'scenario.ramp_time:=0.5',
        'factor:=2.0', 'clock:=true',
        'awaited:=ready ground_truth/odometry:imu_node ground_truth/odometry:gps_node',
    )  # fmt: skip
    graph.let_go('imu/data', 'gps/fix', sensors=2)
    inertial, fixes = graph.received['imu/data'], graph.received['gps/fix']
    graph.wait(lambda: len(inertial) == len(final_stamps(CIRCLE, 100.0)), 'the last measurement')
    graph.wait(lambda: len(fixes) == len(final_stamps(CIRCLE, 10.0)), 'the last fix')
    assert stamps(inertial) == final_stamps(CIRCLE, 100.0)
    assert stamps(fixes) == final_stamps(CIRCLE, 10.0)
    assert imu_bits(inertial) == batch_bits(CIRCLE)
    graph.wait(lambda: moving.finished, 'its end')


def test_a_looping_trajectory_node_repeats_the_noise(graph: Graph) -> None:
    graph.listen('imu/data', Imu)
    graph.start('imu_node', 'use_sim_time:=true')
    graph.start(
        'trajectory_node', 'motion:=circle', 'duration:=0.5', 'scenario.ramp_time:=0.2',
        'clock:=true', 'loop:=true', 'awaited:=ready ground_truth/odometry:imu_node',
    )  # fmt: skip
    graph.let_go('imu/data')
    got, full = graph.received['imu/data'], final_stamps(ROUND, 100.0)

    def rounds() -> list[list]:
        at = [0, *(k for k in range(1, len(got)) if stamps([got[k]]) < stamps([got[k - 1]]))]
        return [got[i:j] for i, j in zip(at, [*at[1:], len(got)], strict=False)]

    graph.wait(lambda: len(rounds()) == 4, 'three rounds')
    want = batch_bits(ROUND)
    for part in rounds()[:3]:
        # The clock may overtake the last odometry of a round, which then does not count.
        assert len(part) > 0.8 * len(full)
        assert stamps(part) == full[: len(part)]
        assert imu_bits(part) == want[: len(imu_bits(part))]


def test_a_car_on_springs_publishes_its_noise_free_imu(graph: Graph) -> None:
    """Every step of the physics, and the sensors beside it measure that: the bits of the batch."""
    pytest.importorskip('mujoco', reason='the extra mujoco')
    rough = motion_of('sprung_line', seed=0, run='run_1', duration=1.5, parameters={'road': 'C'})
    felt = noise_free_imu(rough)
    assert felt is not None
    graph.listen('ground_truth/imu', Imu)
    graph.listen('imu/data', Imu)
    graph.start('imu_node', 'use_sim_time:=true', 'noise_free.enabled:=true')
    graph.start(
        'trajectory_node', 'motion:=sprung_line', 'scenario.road:=C', 'duration:=1.5',
        'clock:=true', 'awaited:=ready ground_truth/odometry:imu_node ground_truth/imu:imu_node '
        f'ground_truth/imu:{graph.node.get_name()}',
    )  # fmt: skip
    graph.let_go('imu/data')
    noise_free, measured = graph.received['ground_truth/imu'], graph.received['imu/data']
    graph.wait(lambda: len(noise_free) == len(felt), 'the last step')
    graph.wait(lambda: len(measured) >= 140, 'what is final')
    assert imu_bits(noise_free) == imu_bits(list(messages_of(felt)))
    moved = OdometryMotion(truth_of(rough), origin_ns=START_NS)
    ideal = InertialMotion(moved, felt, origin_ns=START_NS, gravity=STANDARD_GRAVITY)
    labels = {'seed': 0, 'run': 'recording/1/run_1', 'origin_ns': START_NS}
    batch = imu.simulate(load_imu('chrono'), ideal, **labels)
    assert imu_bits(measured) == imu_bits(list(messages_of(batch.take(slice(0, len(measured))))))
