# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults that are switched and played by the nodes, equal to the batch run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_examples import (
    DEEP,
    Graph,
    final_stamps,
    fix_bits,
    graph_of_its_own,
    imu_bits,
    messages_of,
    refused,
)
from sensor_msgs.msg import Imu, NavSatFix
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.sensor.faults import with_faults

TRUTH = truth_of(motion_of('circle', duration=6.0), rate=100.0)
ORIGIN = int(TRUTH.stamp_ns[0])
BITS = {'imu': imu_bits, 'gps': fix_bits}
TOPICS = {'imu': '/imu/data', 'gps': '/gps/fix'}
MODELS: dict[str, Any] = {'imu': load_imu('chrono'), 'gps': load_gps('ch_gauss')}
SCENARIO = """\
faults:
- {sensor: gps, fault: outage, start: 1, end: 2}
- {sensor: gps, fault: jamming, start: 1.5, end: 3.5}
- {sensor: gps, fault: spoofing, start: 3, velocity: [0, 2, 0]}
- {sensor: imu, fault: stuck, start: 2, end: 2.5, axis: z}
- {sensor: imu, fault: saturation, start: 4, gyroscope_range: 0.01}
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        graph.listen(TOPICS['imu'], Imu)
        graph.listen(TOPICS['gps'], NavSatFix)
        yield graph


def batch(sensor: str, file: Path) -> bytes:
    """Measurements of a whole motion with the faults of a file; the last are not final."""
    model = with_faults(MODELS, file)[sensor]
    motion = OdometryMotion(TRUTH, origin_ns=ORIGIN, velocity='twist')
    measured = model.simulate(motion, seed=0, run='recording/1/run_1', origin_ns=ORIGIN)
    count = len(final_stamps(TRUTH, model.rate))
    return BITS[sensor](list(messages_of(measured.take(slice(0, count)))))


def play(graph: Graph, rows: slice) -> None:
    truth = TRUTH.take(rows)

    def expected(k: int) -> bool:
        total = rows.start + k
        return all(
            len(graph.received[TOPICS[name]]) >= len(final_stamps(TRUTH, model.rate, total))
            for name, model in MODELS.items()
        )

    graph.play(truth, expected)


def switch(graph: Graph, node: str, fault: str, on: bool) -> None:
    answer = graph.call(SetBool, f'/{node}/fault/{fault}', SetBool.Request(data=on))
    assert answer.success


def set_parameter(graph: Graph, node: str, name: str, value: object) -> None:
    request = SetParameters.Request()
    request.parameters = [Parameter(name, value=value).to_parameter_msg()]
    answer = graph.call(SetParameters, f'/{node}/set_parameters', request)
    assert answer.results[0].successful, answer.results[0].reason


def test_a_scenario_is_played_with_the_bits_of_the_batch_run(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text(SCENARIO)
    graph.start('sensors_node', f'faults_file:={file}', *DEEP)
    graph.connect(*TOPICS.values(), sensors=2)
    play(graph, slice(0, len(TRUTH)))
    for name, topic in TOPICS.items():
        assert BITS[name](graph.received[topic]) == batch(name, file), name
    graph.wait(lambda: graph.said('fault: spoofing'), 'the GPS report')
    graph.wait(lambda: graph.said('fault: saturation'), 'the IMU report')


def test_switched_faults_are_published_as_a_scenario_that_repeats_them(
    graph: Graph, tmp_path: Path
) -> None:
    graph.start('sensors_node', *DEEP)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    texts: dict[str, list[str]] = {'imu_node': [], 'gps_node': []}
    for node, heard in texts.items():
        graph.node.create_subscription(
            String,
            f'/{node}/faults',
            lambda message, heard=heard: heard.append(message.data),
            latched,
        )
    graph.connect(*TOPICS.values(), sensors=2)
    play(graph, slice(0, 150))
    switch(graph, 'gps_node', 'jamming', True)
    switch(graph, 'imu_node', 'stuck', True)
    play(graph, slice(150, 290))
    # New numbers act on the fault that is on, and do not restart the noise.
    set_parameter(graph, 'gps_node', 'fault.jamming.jammer_to_noise', 3.0)
    switch(graph, 'imu_node', 'stuck', False)
    set_parameter(graph, 'gps_node', 'fault.fix.state', 'none')
    play(graph, slice(290, 400))
    switch(graph, 'gps_node', 'fix', True)
    play(graph, slice(400, 500))
    switch(graph, 'gps_node', 'fix', False)
    play(graph, slice(500, len(TRUTH)))
    graph.wait(lambda: graph.said('fault: jamming'), 'the GPS report')
    counts = {'imu_node': 1, 'gps_node': 3}
    graph.wait(
        lambda: all(
            heard and heard[-1].count('fault:') == counts[node] for node, heard in texts.items()
        ),
        'the scenarios',
    )
    lines = [line for heard in texts.values() for line in heard[-1].splitlines()[1:]]
    file = tmp_path / 'played.yaml'
    file.write_text('\n'.join(['faults:', *lines]) + '\n')
    for name, topic in TOPICS.items():
        assert BITS[name](graph.received[topic]) == batch(name, file), name


def test_a_reset_begins_the_scenario_again(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text(SCENARIO)
    graph.start('sensors_node', f'faults_file:={file}', *DEEP)
    graph.connect(*TOPICS.values(), sensors=2)
    play(graph, slice(0, len(TRUTH)))
    for node in ('imu_node', 'gps_node'):
        assert graph.call(Trigger, f'/{node}/reset', Trigger.Request()).success
    for topic in TOPICS.values():
        graph.received[topic].clear()
    play(graph, slice(0, len(TRUTH)))
    for name, topic in TOPICS.items():
        assert BITS[name](graph.received[topic]) == batch(name, file), name


@pytest.mark.parametrize(
    ('entry', 'named'),
    [('{sensor: gps, fault: outtage}', 'outtage'), ('{sensor: lidar, fault: outage}', 'lidar')],
)
def test_a_wrong_scenario_ends_the_process_in_one_line(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str, named: str
) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text(f'faults: [{entry}]\n')
    (line,) = refused(capsys, 'sensors_node', f'faults_file:={file}')
    assert named in line
    assert 'faults.yaml' in line


def test_another_scenario_keeps_the_parameters_of_the_model(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text(SCENARIO)
    (node,) = graph.start('gps_node', 'gps.noise.std:=[3.0, 2.0, 1.0]')
    assert node.trigger_deactivate().name == 'SUCCESS'
    set_parameter(graph, 'gps_node', 'faults_file', str(file))
    assert list(node.get_parameter('gps.noise.std').value) == [3.0, 2.0, 1.0]
    assert node.trigger_activate().name == 'SUCCESS'
    assert [fault.kind for fault in node.sensor.faults.faults] == ['outage', 'jamming', 'spoofing']
    # The file is read again, and its faults are those of the label in force.
    assert node.trigger_deactivate().name == 'SUCCESS'
    set_parameter(graph, 'gps_node', 'sensor', 'rear/gps')
    assert node.trigger_activate().name == 'SUCCESS'
    assert node.sensor.faults.faults == ()
    assert node.trigger_deactivate().name == 'SUCCESS'
    file.unlink()
    assert node.trigger_activate().name == 'FAILURE'
    assert node.state == 'inactive'
