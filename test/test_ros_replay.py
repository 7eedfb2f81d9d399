# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor nodes under replay: ten times real time, clocks that pause or jump, broken files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from rclpy.duration import Duration
from rclpy.parameter import Parameter
from ros_examples import (
    DEEP,
    TIMEOUT,
    Graph,
    batch_bits,
    final_stamps,
    fix_bits,
    graph_of_its_own,
    imu_bits,
    refused,
    stamps,
)
from sensor_msgs.msg import Imu, NavSatFix
from std_srvs.srv import Trigger

from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.ros.messages import messages_of, stamp_ns
from sim_sensors.ros.sensor_node import SensorNode

TRUTH = truth_of(motion_of('circle', seed=0, run='', duration=10.0, parameters={}))
SPEED = 10.0


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


@contextmanager
def busy_loop() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def replay(graph: Graph) -> None:
    """Publish /clock and odometry by the wall alone, whatever the sensors do."""
    messages = list(messages_of(TRUTH))
    begin = time.monotonic()
    for k, (stamp, message) in enumerate(zip(TRUTH.stamp_ns.tolist(), messages, strict=True)):
        while time.monotonic() < begin + k * 0.01 / SPEED:
            graph.executor.spin_once(timeout_sec=1e-4)
        graph.tick(stamp)
        graph.odometry.publish(message)


def test_a_replay_at_ten_times_real_time_equals_the_batch_run_bit_for_bit(graph: Graph) -> None:
    """1000 odometry messages a second reach an IMU and a GPS in one process on a busy machine."""
    origin = int(TRUTH.stamp_ns[0])
    graph.listen('imu/data', Imu)
    graph.listen('gps/fix', NavSatFix)
    graph.launch('sensors_node', 'use_sim_time:=true', *DEEP)
    graph.connect('imu/data', 'gps/fix', sensors=2)
    with busy_loop():
        replay(graph)

    def heard() -> bool:
        newest = {status.name: status.values[0].value for status in graph.statuses()}
        return list(newest.values()) == [str(len(TRUTH))] * 2

    graph.wait(heard, 'all odometry')
    for kind in ('imu', 'gps'):
        assert graph.call(Trigger, f'{kind}_node/finish', Trigger.Request()).success
    motion = OdometryMotion(TRUTH, origin_ns=origin, velocity='twist')
    labels = {'seed': 0, 'run': 'recording/1/run_1', 'origin_ns': origin}
    inertial = imu.simulate(load_imu('chrono'), motion, **labels)
    fixes = gps.simulate(load_gps('ch_gauss'), motion, **labels)
    got, got_fixes = graph.received['imu/data'], graph.received['gps/fix']
    graph.wait(lambda: len(got) == len(inertial) and len(got_fixes) == len(fixes), 'the rest')
    assert imu_bits(got) == imu_bits(list(messages_of(inertial)))
    assert fix_bits(got_fixes) == fix_bits(list(messages_of(fixes)))


def test_pauses_and_forward_jumps_of_the_clock_change_nothing(graph: Graph) -> None:
    """Odometry goes on while it stands; a jump of an hour is no reason to begin anew."""
    truth = TRUTH.take(slice(0, 301))
    got = graph.received['imu/data']
    graph.listen('imu/data', Imu)
    graph.start('imu_node', 'use_sim_time:=true')
    graph.connect('imu/data')
    graph.wait(lambda: graph.clock.get_subscription_count() == 1, 'the node to hear /clock')

    def reports(now_ns: int) -> None:
        """Publish the time until a report has it as its stamp."""

        def knows() -> bool:
            graph.tick(now_ns)
            newest = graph.received['/diagnostics'][-1].header.stamp
            return stamp_ns(newest) == now_ns

        graph.wait(knows, f'a report at {now_ns}')

    begin = int(truth.stamp_ns[0])
    late = begin + 3600 * 10**9
    for first, last, now_ns in ((0, 100, begin), (100, 200, begin), (200, 301, late)):
        reports(now_ns)
        graph.play(
            truth.take(slice(first, last)),
            lambda k, n=first: len(got) >= len(final_stamps(truth, 100.0, n + k)),
        )
    motion = OdometryMotion(truth, origin_ns=begin, velocity='twist')
    labels = {'seed': 0, 'run': 'recording/1/run_1', 'origin_ns': begin}
    batch = imu.simulate(load_imu('chrono'), motion, **labels)
    assert stamps(got) == final_stamps(truth, 100.0)
    assert imu_bits(got) == imu_bits(list(messages_of(batch.take(slice(0, len(got))))))
    assert graph.values()['resets'] == '0'
    assert graph.values()['gaps'] == '0'


def test_odometry_queued_at_a_jump_of_the_clock_completes_the_loop(graph: Graph) -> None:
    """Two seconds wait, more than is stale by its stamp: they count, and the next round is whole.

    The node lives in this process, so that nothing is taken before the jump is there too.
    """
    truth = TRUTH.take(slice(0, 301))
    graph.listen('imu/data', Imu)
    chosen = {
        'use_sim_time': True,
        'diagnostics_period': 0.05,
        'qos_overrides./ground_truth/odometry.subscription.reliability': 'reliable',
        'qos_overrides./imu/data.publisher.depth': 1000,
    }
    overrides = [Parameter(name, value=value) for name, value in chosen.items()]
    node = SensorNode(ImuModel, context=graph.context, parameter_overrides=overrides)
    graph.executor.add_node(node)
    graph.connect('imu/data')
    start, end = int(truth.stamp_ns[0]), int(truth.stamp_ns[-1])

    def knows(stamp: int) -> bool:
        graph.tick(stamp)
        return bool(node.get_clock().now().nanoseconds == stamp)

    graph.wait(lambda: knows(end), 'the time')
    got = graph.received['imu/data']
    graph.play(truth.take(slice(0, 101)), lambda k: len(got) >= len(final_stamps(truth, 100.0, k)))
    for row in messages_of(truth.take(slice(101, None))):
        graph.odometry.publish(row)
    assert graph.odometry.wait_for_all_acked(Duration(seconds=TIMEOUT))
    graph.tick(start)
    # Would the clock come later, the test would still pass, and show nothing.
    time.sleep(0.1)
    graph.wait(lambda: knows(start), 'the jump')
    graph.wait(lambda: graph.values()['resets'] == '1', 'its report')
    assert graph.values()['odometry accepted'] == str(len(truth))
    graph.wait(lambda: len(got) == len(final_stamps(truth, 100.0)), 'the first round')
    first = imu_bits(got)
    got.clear()
    graph.play(truth, lambda k: len(got) >= len(final_stamps(truth, 100.0, k)))
    assert first == imu_bits(got) == batch_bits(truth)
    node.destroy_node()


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('/**: {ros__parameters: {imu: {rate: fast}}}', "imu.rate: 'fast'"),
        ('/**: {ros__parameters: {start_ns: -5}}', 'start_ns: -5'),
        ('/**: {ros__parameters: {start_ns: soon}}', "start_ns: 'soon'"),
        ('/**: {ros__parameters: {seed: 1', 'broken.yaml'),
    ],
)
def test_a_broken_parameter_file_is_a_one_line_error_with_status_2(
    graph: Graph, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / 'broken.yaml'
    file.write_text(text)
    lines = refused(capsys, 'imu_node', file=file)
    # rcl adds a line to files that it cannot parse.
    assert len(lines) <= 2
    assert lines[-1].startswith('imu_node: error: ')
    assert reason in lines[-1]
