# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Life cycle of the sensor nodes over DDS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_examples import (
    Graph,
    batch_bits,
    final_stamps,
    graph_of_its_own,
    imu_bits,
    messages_of,
    stamps,
)
from sensor_msgs.msg import Imu, NavSatFix

from sim_sensors.core.compilation import PREPARED
from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.imu import load_imu, simulate
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion

TRUTH = truth_of(motion_of('circle', duration=3.0), rate=100.0)
TOPIC = '/imu/data'


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        graph.listen(TOPIC, Imu)
        yield graph


def change(graph: Graph, label: str) -> bool:
    request = ChangeState.Request()
    request.transition.label = label
    return bool(graph.call(ChangeState, '/imu_node/change_state', request).success)


def set_parameter(graph: Graph, name: str, value: object) -> tuple[bool, str]:
    request = SetParameters.Request()
    request.parameters = [Parameter(name, value=value).to_parameter_msg()]
    result = graph.call(SetParameters, '/imu_node/set_parameters', request).results[0]
    return result.successful, result.reason


def play(graph: Graph) -> list[Imu]:
    """Publish the truth to the active node, and return what it measures."""
    graph.wait(lambda: graph.odometry.get_subscription_count() == 1, 'the subscription')
    graph.received[TOPIC].clear()
    graph.play(TRUTH, lambda k: len(graph.received[TOPIC]) >= len(final_stamps(TRUTH, 100.0, k)))
    return list(graph.received[TOPIC])


def test_another_model_needs_no_other_process(graph: Graph) -> None:
    (node,) = graph.start('imu_node')
    graph.connect(TOPIC)
    assert imu_bits(play(graph)) == batch_bits(TRUTH)
    assert not set_parameter(graph, 'model', 'adis16448')[0]
    assert set_parameter(graph, 'model', 'chrono')[0], 'as `ros2 param load` of a dump sets it'
    assert change(graph, 'deactivate')
    graph.wait(lambda: graph.odometry.get_subscription_count() == 0, 'the end of its subscription')
    assert graph.publishers(TOPIC) == ['imu_node']

    done, why = set_parameter(graph, 'model', 'adis')
    assert not done
    assert "'adis'" in why
    assert set_parameter(graph, 'model', 'adis16448')[0]
    assert set_parameter(graph, 'imu.rate', 50.0)[0]
    assert change(graph, 'activate')
    origin = int(TRUTH.stamp_ns[0])
    motion = OdometryMotion(TRUTH, origin_ns=origin, velocity='twist')
    model = load_imu('adis16448')
    expected = simulate(
        type(model).from_mapping({**model.to_mapping(), 'rate': 50.0}, 'test'),
        motion,
        seed=0,
        run='recording/1/run_1',
        origin_ns=origin,
    )
    graph.wait(lambda: graph.odometry.get_subscription_count() == 1, 'the subscription')
    graph.received[TOPIC].clear()
    count = len(final_stamps(TRUTH, 50.0))
    graph.play(TRUTH, lambda k: len(graph.received[TOPIC]) >= len(final_stamps(TRUTH, 50.0, k)))
    measured = expected.take(slice(0, count))
    assert imu_bits(graph.received[TOPIC]) == imu_bits(list(messages_of(measured)))
    assert node.is_active


def test_a_manager_starts_the_node(graph: Graph) -> None:
    (node,) = graph.start('imu_node', 'autostart:=false')
    graph.wait(lambda: graph.said('unconfigured'), 'its report')
    # The graph may at first show an endpoint without a node.
    graph.wait(lambda: not graph.publishers(TOPIC), 'no topic before it is configured')
    assert change(graph, 'configure')
    graph.wait(lambda: graph.publishers(TOPIC) == ['imu_node'], 'its topic')
    assert graph.odometry.get_subscription_count() == 0
    assert change(graph, 'activate')
    assert imu_bits(play(graph)) == batch_bits(TRUTH)
    assert change(graph, 'deactivate')
    assert change(graph, 'cleanup')
    graph.wait(lambda: not graph.publishers(TOPIC), 'the end of its topic')
    assert change(graph, 'configure')
    assert change(graph, 'activate')
    again = play(graph)
    assert imu_bits(again) == batch_bits(TRUTH)
    assert stamps(again) == final_stamps(TRUTH, 100.0)
    assert change(graph, 'active_shutdown') or change(graph, 'shutdown')
    assert node.state == 'finalized'


def test_a_wrong_transition_is_refused_and_the_node_lives(graph: Graph) -> None:
    (node,) = graph.start('imu_node')
    graph.connect(TOPIC)
    assert not change(graph, 'activate')
    assert not change(graph, 'configure')
    assert not change(graph, 'fly')
    assert node.is_active
    assert imu_bits(play(graph)) == batch_bits(TRUTH)


def test_a_wrong_model_ends_the_process_at_once(graph: Graph) -> None:
    with pytest.raises(ParameterError, match='adis'):
        graph.start('imu_node', 'model:=adis', 'autostart:=false')


def test_an_imu_without_orientation_is_on_imu_data_raw_if_data_raw_is_set(graph: Graph) -> None:
    """REP 145; a model that changes the topic needs a cleanup, as the message says."""
    raw = '/imu/data_raw'
    graph.listen(raw, Imu)
    graph.start('imu_node', 'model:=chrono', 'data_raw:=true')
    graph.wait(lambda: graph.odometry.get_subscription_count() == 1, 'the subscription')
    got = graph.received[raw]
    graph.play(TRUTH, lambda k: len(got) >= len(final_stamps(TRUTH, 100.0, k)))
    assert {message.orientation_covariance[0] for message in got} == {-1.0}
    assert change(graph, 'deactivate')
    accepted, reason = set_parameter(graph, 'model', 'chrono_ahrs')
    assert not accepted
    assert 'imu/data_raw' in reason
    assert change(graph, 'cleanup')
    assert set_parameter(graph, 'model', 'chrono_ahrs')[0]
    assert change(graph, 'configure')
    assert change(graph, 'activate')
    count = len(got)
    assert {message.orientation_covariance[0] for message in play(graph)} != {-1.0}
    assert len(got) == count


def test_a_dump_with_an_empty_list_starts_a_node(graph: Graph, tmp_path: Path) -> None:
    (node,) = graph.start('gps_node')
    assert list(node.get_parameter('gps.outages.given').value) == []
    graph.end(node)
    file = tmp_path / 'gps_node.yaml'
    # As `ros2 param dump` writes it.
    file.write_text('/**: {ros__parameters: {gps: {outages: {given: []}, rate: 5.0}}}')
    (node,) = graph.start('gps_node', file=file)
    assert node.get_parameter('gps.rate').value == 5.0
    graph.end(node)
    file.write_text('/**: {ros__parameters: {gps: {rate: []}}}')
    with pytest.raises(ParameterError) as error:
        graph.start('gps_node', file=file)
    assert error.value.key == 'gps.rate'


def test_an_unexpected_error_leaves_nothing_behind(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node,) = graph.start('imu_node', 'autostart:=false')
    assert change(graph, 'configure')
    monkeypatch.setattr(type(node), '_offer_faults', lambda node: 1 // 0)
    assert not change(graph, 'activate')
    assert node.state == 'unconfigured'
    assert graph.publishers(TOPIC) == []
    monkeypatch.undo()
    assert change(graph, 'configure')
    assert change(graph, 'activate')
    assert imu_bits(play(graph)) == batch_bits(TRUTH)


def test_a_slow_receiver_is_compiled_before_it_measures(graph: Graph) -> None:
    """The random walk takes 100 steps from fix to fix, too many for the interpreter."""
    graph.start('gps_node', 'model:=ch_rw', 'gps.rate:=1.0')
    graph.listen('/gps/fix', NavSatFix)
    graph.wait(lambda: graph.odometry.get_subscription_count() == 1, 'the subscription')
    before = list(PREPARED)
    count = len(final_stamps(TRUTH, 1.0))
    graph.play(TRUTH, lambda k: True)
    graph.wait(lambda: len(graph.received['/gps/fix']) >= count, 'the fixes')
    assert before == PREPARED
