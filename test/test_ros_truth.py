# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Nodes on a truth that is wrong, silent, or of a simulator that dies; each is a process."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='no ROS')

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import TwistStamped
from ros_examples import DEEP, Graph, batch_bits, final_stamps, graph_of_its_own, imu_bits, stamps
from sensor_msgs.msg import Imu

from sim_sensors.core import rotations
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.ros.messages import messages_of

TOPIC = 'imu/data'
CIRCLE = truth_of(motion_of('circle', seed=0, run='', duration=12.0, parameters={}), rate=50.0)
TIMEOUT = 0.5


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


class Followed:
    """A path_follower_node in a process of its own, and its robot."""

    def __init__(self, graph: Graph, folder: Path) -> None:
        path = folder / 'path.csv'
        rows = [f'{t},{t},0,0' for t in range(12)]
        path.write_text('\n'.join(['t,x,y,theta', *rows, '']), encoding='utf-8')
        graph.listen('cmd_vel', TwistStamped)
        self.graph = graph
        self.process = graph.launch(
            'path_follower_node', f'path:={path}', f'odometry_timeout:={TIMEOUT}'
        )
        graph.wait(
            lambda: (
                graph.odometry.get_subscription_count() == 1
                and graph.values().get('odometry publishers') == '1'
                and graph.values().get('subscriptions') == '1'
            ),
            'the follower',
        )

    def drive(self, rows: range, *, change: OdometryArray | None = None) -> None:
        """Publish odometry until each row has been heard."""
        for row in messages_of((change or CIRCLE).take(list(rows))):
            self.graph.odometry.publish(row)
            self.graph.executor.spin_once(timeout_sec=0.01)

    @property
    def speeds(self) -> list[float]:
        return [message.twist.linear.x for message in self.graph.received['cmd_vel']]

    def wait_for_stop(self, count: int = 1) -> None:
        self.graph.wait(lambda: self.speeds.count(0.0) == count, 'the stop')


@pytest.fixture
def followed(graph: Graph, tmp_path: Path) -> Followed:
    return Followed(graph, tmp_path)


def test_silence_stops_the_robot_with_an_error_and_odometry_drives_it_on(
    followed: Followed,
) -> None:
    followed.drive(range(100))
    followed.wait_for_stop()
    assert max(followed.speeds) > 0.5
    assert followed.speeds[-1] == 0.0
    graph = followed.graph
    graph.wait(lambda: graph.statuses()[-1].level == DiagnosticStatus.ERROR, 'the error')
    assert graph.values()['stops'] == '1'
    count = len(followed.speeds)
    followed.drive(range(100, 140))
    graph.wait(lambda: len(followed.speeds) > count and followed.speeds[-1] > 0.5, 'the drive')
    graph.wait(lambda: graph.statuses()[-1].level == DiagnosticStatus.OK, 'the recovery')


def test_invalid_odometry_stops_the_robot(followed: Followed) -> None:
    nan = dataclasses.replace(CIRCLE, position=np.full_like(CIRCLE.position, np.nan))
    followed.drive(range(50))
    followed.graph.wait(lambda: followed.speeds and followed.speeds[-1] > 0.5, 'the drive')
    followed.drive(range(50, 70), change=nan)
    followed.wait_for_stop()
    invalid = 'odometry: it contains no valid pose'
    followed.graph.wait(lambda: followed.graph.values()[invalid] == '20', 'the count')
    assert followed.speeds.count(0.0) == 1


@pytest.mark.parametrize('sign', [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_the_node_stops_the_robot(followed: Followed, sign: int) -> None:
    followed.drive(range(50))
    followed.graph.wait(lambda: followed.speeds and followed.speeds[-1] > 0.5, 'the drive')
    followed.process.send_signal(sign)
    followed.wait_for_stop()
    assert followed.process.wait(timeout=60.0) == 0
    assert followed.speeds[-1] == 0.0


def simulator(graph: Graph, start_s: int) -> subprocess.Popen[str]:
    """Start a simulator whose clock begins at a time, without /clock."""
    return graph.launch(
        'trajectory_node', 'motion:=circle', 'duration:=100.0', 'rate:=100.0',
        f'start_ns:={start_s * 10**9}', 'awaited:=imu/data', 'delay:=0.5',
        'qos_overrides./ground_truth/odometry.publisher.depth:=5000',
    )  # fmt: skip


def test_a_simulator_that_dies_and_starts_again_is_measured_from_its_first_sample(
    graph: Graph,
) -> None:
    graph.node.destroy_publisher(graph.odometry)
    graph.listen(TOPIC, Imu)
    graph.launch('imu_node', *DEEP)
    got = graph.received[TOPIC]
    first = simulator(graph, 2000)
    graph.wait(lambda: len(got) > 50, 'measurements')
    graph.stop(first, signal.SIGKILL)
    simulator(graph, 1000)
    restarted = lambda: [m for m in got if m.header.stamp.sec < 1500]  # noqa: E731
    graph.wait(lambda: len(restarted()) > 100, 'measurements of the second simulator')
    truth = truth_of(
        motion_of('circle', seed=0, run='run_1', duration=100.0, parameters={}),
        rate=100.0,
        start_ns=1000 * 10**9,
    ).take(slice(0, 103))
    assert stamps(restarted()[:101]) == final_stamps(truth, 100.0)
    assert imu_bits(restarted()[:101]) == batch_bits(truth)
    graph.wait(lambda: graph.values().get('resets') == '1', 'the count')


@pytest.mark.parametrize(
    ('code', 'level'),
    [
        ('check.twist_in_world', DiagnosticStatus.ERROR),
        ('check.truth_jumps', DiagnosticStatus.ERROR),
        ('truth.frame_assumed', DiagnosticStatus.WARN),
    ],
)
def test_a_sensor_node_reports_a_wrong_truth_with_the_code_of_check(
    graph: Graph, code: str, level: bytes
) -> None:
    position = CIRCLE.position.copy()
    position[300:] += 100.0
    world = rotations.rotate(CIRCLE.orientation, CIRCLE.linear_velocity)
    change = {
        'check.twist_in_world': {'linear_velocity': world},
        'check.truth_jumps': {'position': position},
        'truth.frame_assumed': {'child_frame': ''},
    }[code]
    graph.listen(TOPIC, Imu)
    process = graph.launch('imu_node')
    graph.connect(TOPIC)
    reported = len(graph.statuses())
    for row in messages_of(dataclasses.replace(CIRCLE, **change)):
        graph.odometry.publish(row)
        graph.executor.spin_once(timeout_sec=0.002)
    graph.wait(lambda: graph.values().get(code) == '1', 'the code')
    others = {'check.twist_in_world', 'check.truth_jumps', 'truth.frame_assumed'} - {code}
    assert {graph.values()[other] for other in others} == {'0'}
    assert max(status.level for status in graph.statuses()[reported:]) == level
    assert graph.stop(process) == 0


def test_a_twist_that_is_not_read_is_not_reported(graph: Graph) -> None:
    """The log advises to start the node with velocity:=position."""
    world = rotations.rotate(CIRCLE.orientation, CIRCLE.linear_velocity)
    truth = dataclasses.replace(CIRCLE, linear_velocity=world)
    graph.listen(TOPIC, Imu)
    graph.start('imu_node', 'velocity:=position', *DEEP)
    graph.connect(TOPIC)
    got, reported = graph.received[TOPIC], len(graph.statuses())
    for row in messages_of(truth):
        graph.odometry.publish(row)
        graph.executor.spin_once(timeout_sec=0.002)
    graph.wait(lambda: len(got) == len(final_stamps(truth, 100.0)), 'all measurements')
    assert graph.values()['check.twist_in_world'] == '0'
    levels = {
        status.level
        for status in graph.statuses()[reported:]
        if 'no odometry' not in status.message
    }
    assert levels == {DiagnosticStatus.OK}
    origin = int(CIRCLE.stamp_ns[0])
    motion = OdometryMotion(CIRCLE, origin_ns=origin, velocity='position')
    measured = imu.simulate(
        load_imu('chrono'), motion, seed=0, run='recording/1/run_1', origin_ns=origin
    )
    assert imu_bits(got) == imu_bits(list(messages_of(measured.take(slice(0, len(got))))))
