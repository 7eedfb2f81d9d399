# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor nodes on a faulty graph, over real DDS."""

from __future__ import annotations

import array
import dataclasses
import json
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from ros_examples import (
    DEEP,
    Graph,
    batch_bits,
    final_stamps,
    graph_of_its_own,
    imu_bits,
    refused,
    stamps,
)
from sensor_msgs.msg import Imu
from std_srvs.srv import Trigger

from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.ros.messages import messages_of
from sim_sensors.sensor.catalogue import KINDS, kinds

TRUTH = truth_of(motion_of('circle', seed=0, run='', duration=3.0, parameters={}))
TOPIC = 'imu/data'


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        graph.listen(TOPIC, Imu)
        yield graph


def play(graph: Graph, truth: OdometryArray) -> list:
    """Play odometry and return the measurements that follow from it."""
    got, before = graph.received[TOPIC], len(graph.received[TOPIC])
    graph.play(truth, lambda k: len(got) >= before + len(final_stamps(truth, 100.0, k)))
    return got[before:]


def later(truth: OdometryArray, by_ns: int) -> OdometryArray:
    stamp = truth.stamp_ns + by_ns
    return dataclasses.replace(truth, stamp_ns=stamp, arrival_ns=stamp)


def test_gaps_and_unordered_odometry_are_only_reported(graph: Graph) -> None:
    graph.start('imu_node')
    graph.connect(TOPIC)
    gap = TRUTH.take([*range(100), *range(150, 301)])
    rows = list(messages_of(gap))
    rows[60:60] = [rows[59], rows[20], rows[40]]
    broken = next(messages_of(gap.take([60])))
    broken.pose.pose.position.x = float('nan')
    rows[70:70] = [broken, serialize_message(broken)[:-9]]
    got = graph.received[TOPIC]
    for k in range(0, len(rows), 10):
        for row in rows[k : k + 10]:
            graph.odometry.publish(row)
        graph.wait(
            lambda k=k: int(graph.values().get('odometry accepted', 0)) >= min(k + 5, len(gap)),
            'the burst',
        )
    graph.wait(lambda: len(got) >= len(final_stamps(gap, 100.0)), 'all measurements')
    assert stamps(got) == final_stamps(gap, 100.0)
    assert imu_bits(got) == batch_bits(gap)
    graph.wait(lambda: int(graph.values()['published']) == len(got), 'the count')
    counted = graph.values()
    assert counted['odometry accepted'] == str(len(gap))
    assert counted['odometry repeated'] == '1'
    assert counted['odometry late'] == '2'
    assert counted['odometry invalid'] == '2'
    assert counted['gaps'] == '1'
    assert float(counted['longest gap [s]']) == pytest.approx(0.51, abs=1e-9)
    assert counted['last stamp [ns]'] == str(stamps(got)[-1])
    graph.wait(lambda: graph.said('odometry gap of 0.51 s'), 'the gap in the log')
    levels = {status.message: status.level for status in graph.statuses()}
    assert levels['measuring'] == b'\x00'
    assert all(level > b'\x00' for text, level in levels.items() if 'gap' in text)


def test_a_backward_jump_of_the_clock_restarts_the_same_noise(graph: Graph) -> None:
    """Both rounds of a loop of one second have the same bits, in any order of /clock."""
    graph.start('imu_node', 'use_sim_time:=true', *DEEP)
    graph.connect(TOPIC)
    graph.wait(lambda: graph.clock.get_subscription_count() == 1, 'the node to hear /clock')
    loop = TRUTH.take(slice(0, 101))
    start, end = int(loop.stamp_ns[0]), int(loop.stamp_ns[-1])

    def resets() -> int:
        return int(graph.values()['resets'])

    def tell(stamp: int) -> None:
        report_count = len(graph.statuses())
        graph.tick(stamp)
        graph.wait(lambda: len(graph.statuses()) > report_count + 1, 'a report')

    def jump(number: int) -> None:
        """Tell the time until the node has seen it go back; a tick may be lost."""
        while resets() < number:
            tell(end)
            tell(start)

    first = play(graph, loop)
    jump(1)
    second = play(graph, loop)
    assert stamps(first) == stamps(second)
    assert imu_bits(first) == imu_bits(second) == batch_bits(loop)
    # The third round's first odometry overtakes the clock, and counts all the same.
    before = len(graph.received[TOPIC])
    for row in messages_of(loop.take(slice(0, 10))):
        graph.odometry.publish(row)
    graph.wait(lambda: int(graph.values()['odometry late']) == 10, '10 refused samples')
    jump(2)
    graph.play(loop.take(slice(10, None)), lambda k: True)
    graph.wait(lambda: len(graph.received[TOPIC]) == before + len(first), 'the third round')
    assert imu_bits(graph.received[TOPIC][before:]) == imu_bits(first)


def test_a_paused_clock_does_not_stop_measurements(graph: Graph) -> None:
    graph.start('imu_node', 'use_sim_time:=true')
    graph.connect(TOPIC)
    assert imu_bits(play(graph, TRUTH)) == batch_bits(TRUTH)


def test_the_reset_service_restarts_the_same_noise(graph: Graph) -> None:
    graph.start('imu_node')
    graph.connect(TOPIC)
    first = play(graph, TRUTH)
    answer = graph.call(Trigger, 'imu_node/reset', Trigger.Request())
    assert answer.success
    # Later stamps get the noise of the first run.
    again = play(graph, later(TRUTH, 10**10))
    assert [stamp - 10**10 for stamp in stamps(again)] == stamps(first)
    assert imu_bits(again) == imu_bits(first)


def test_a_restarted_node_repeats_the_measurements_of_a_new_one(graph: Graph) -> None:
    process = graph.launch('imu_node')
    graph.connect(TOPIC)
    play(graph, TRUTH.take(slice(0, 101)))
    graph.wait(lambda: graph.values()['odometry accepted'] == '101', 'its report')
    assert graph.stop(process, signal.SIGKILL) == -signal.SIGKILL
    process = graph.launch('imu_node')
    fresh = {'odometry accepted': '0', 'odometry publishers': '1', 'subscriptions': '1'}
    graph.wait(lambda: fresh.items() <= graph.values().items(), 'the new node')
    # Fast DDS may lose what it sends through the shared memory of the dead process, for seconds:
    # the first message is repeated until it is heard, which is refused from then on.
    later_odometry, got = TRUTH.take(slice(101, None)), graph.received[TOPIC]
    before = len(got)
    while graph.values()['odometry accepted'] == '0':
        graph.odometry.publish(next(messages_of(later_odometry)))
        report_count = len(graph.statuses())
        graph.wait(lambda known=report_count: len(graph.statuses()) > known, 'a report')
    graph.play(
        later_odometry.take(slice(1, None)),
        lambda k: len(got) >= before + len(final_stamps(later_odometry, 100.0, k + 1)),
    )
    assert imu_bits(got[before:]) == batch_bits(later_odometry)
    assert graph.stop(process) == 0


def ask(graph: Graph, name: str, value: object) -> tuple[bool, str]:
    request = SetParameters.Request()
    request.parameters = [Parameter(name, value=value).to_parameter_msg()]
    result = graph.call(SetParameters, 'imu_node/set_parameters', request).results[0]
    return result.successful, result.reason


def test_parameters_are_checked_before_they_are_applied(graph: Graph) -> None:
    graph.start('imu_node')
    graph.connect(TOPIC)
    std = 'imu.gyroscope.std'
    for name, value, reason in (
        (std, [0.1, -0.1, 0.1], f'{std}: [0.1, -0.1, 0.1]'),
        (std, [0.1], std),
        (std, 'loud', f"{std}: 'loud'"),
        (std, True, std),
        ('imu.covariance', 1, 'imu.covariance: 1'),
        ('imu.covariance', 'none', "'none'"),
        ('imu.latency', -1.0, 'imu.latency: -1.0'),
        ('imu.latency', float('nan'), 'imu.latency: nan'),
        ('imu.rate', 50.0, 'not active'),
        ('seed', 4, 'not active'),
    ):
        done, why = ask(graph, name, value)
        assert not done
        assert reason in why
    request = GetParameters.Request(names=[std, 'imu.covariance'])
    values = graph.call(GetParameters, 'imu_node/get_parameters', request).values
    assert list(values[0].double_array_value) == [0.05] * 3
    assert values[1].string_value == 'white_noise'
    assert imu_bits(play(graph, TRUTH)) == batch_bits(TRUTH)

    done, _ = ask(graph, std, [0.0, 0.0, 0.0])
    assert done
    graph.received[TOPIC].clear()
    graph.play(later(TRUTH, 3_010_000_000), lambda k: len(graph.received[TOPIC]) >= k)
    rates = [message.angular_velocity_covariance[0] for message in graph.received[TOPIC]]
    assert set(rates) == {0.0}


def test_parameter_descriptors_state_unit_range_and_access(graph: Graph) -> None:
    graph.start('imu_node')
    graph.connect(TOPIC)
    names = ['imu.rate', 'imu.gyroscope.std', 'imu.orientation.mode', 'seed', 'gravity']
    names.append('diagnostics_period')
    request = DescribeParameters.Request(names=names)
    descriptors = graph.call(
        DescribeParameters, 'imu_node/describe_parameters', request
    ).descriptors
    rate, std, mode, seed, gravity, period = descriptors
    assert rate.description == 'Measurements per second. [Hz]'
    assert not rate.read_only
    assert 'not active' in rate.additional_constraints
    assert period.read_only
    assert rate.floating_point_range[0].from_value == 1e-6
    assert std.type == ParameterType.PARAMETER_DOUBLE_ARRAY
    assert not std.read_only
    assert 'one of absent, truth, relative, heading, ahrs' in mode.additional_constraints
    assert seed.integer_range[0].from_value == 0
    assert gravity.description == 'Gravity of the simulated world. [m/s^2]'


@pytest.mark.parametrize('kind', [kind.name for kind in kinds()])
def test_parameters_keep_the_types_of_their_descriptors_whatever_is_set(
    graph: Graph, kind: str
) -> None:
    """Whole numbers and texts for numbers, and a number for three; at the start and later."""
    sensor = KINDS.get(kind)
    (node,) = graph.start(sensor.node)
    names = list(node.get_parameters_by_prefix(''))
    types = {name: node.describe_parameter(name).type for name in names}
    assert {name: node.get_parameter(name).type_.value for name in names} == types
    own = [name for name in names if name.startswith(f'{kind}.')]
    words, count = [], 0
    for name in own:
        descriptor, value = node.describe_parameter(name), node.get_parameter(name).value
        if descriptor.type == ParameterType.PARAMETER_DOUBLE_ARRAY and len(value) == 3:
            # The first one is allowed in a combination with the others.
            changes = [value[0], repr(value[0]), [repr(number) for number in value]]
            assert 'a number or a list of 3 numbers' in descriptor.additional_constraints
        elif descriptor.type == ParameterType.PARAMETER_DOUBLE:
            changes = [repr(value), *([int(value)] if value == int(value) else [])]
        else:
            changes = [list(value) if isinstance(value, array.array) else value]
        if changes[-1] != []:  # rclpy takes no empty list at the start
            words.append(f'{name}:={json.dumps(changes[-1])}')
        for change in changes:
            (result,) = node.set_parameters([Parameter(name, value=change)])
            # The value does not change, so it need not wait until the node is not active.
            assert result.successful != descriptor.read_only, (name, change, result.reason)
            assert node.get_parameter(name).type_.value == types[name], (name, change)
            count += result.successful
    assert count
    graph.end(node)
    (node,) = graph.start(sensor.node, *words)
    assert {name: node.describe_parameter(name).type for name in names} == types
    assert {name: node.get_parameter(name).type_.value for name in names} == types


@pytest.mark.parametrize(
    ('command', 'named'),
    [
        ('imu_node imu.rate:=-1', 'imu.rate: -1'),
        ('imu_node imu.gyroscope.std:=loud', "imu.gyroscope.std: 'loud'"),
        ('imu_node model:=ch_rw', "'ch_rw'"),
        ('imu_node seed:=-1', 'seed: -1'),
        ('imu_node imu.rat:=50.0', 'imu.rate'),
        ('sensors_node imu.rat:=50.0', 'imu.rate'),
        ('gps_node datum.latitude_deg:=91.0', 'datum.latitude_deg: 91.0'),
        ('gps_node model:=gone.yaml', 'gone.yaml'),
        ('sensors_node sensors:=[lidar]', "'lidar'"),
        ('sensors_node sensors:=[imu,imu]', "'imu'"),
        ('trajectory_node motion:=spiral', "'spiral'"),
        ('trajectory_node loop:=true', 'loop: True'),
        ('trajectory_node motion:=circle scenario.radius:=0.0', 'scenario.radius: 0.0'),
    ],
)
def test_a_wrong_parameter_at_the_start_is_refused_in_one_line(
    graph: Graph, capsys: pytest.CaptureFixture[str], command: str, named: str
) -> None:
    (line,) = refused(capsys, *command.split())
    assert named in line
