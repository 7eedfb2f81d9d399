# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor nodes over real DDS publish the bits that the batch command writes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
import yaml
from geometry_msgs.msg import PoseWithCovarianceStamped, TwistStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from ros_examples import DEEP, Graph, final_stamps, fix_bits, graph_of_its_own, imu_bits, stamps
from sensor_msgs.msg import Imu, NavSatFix
from std_srvs.srv import Trigger

from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.core.measurements import FixArray, ImuArray, OdometryArray
from sim_sensors.gps import gps
from sim_sensors.gps.events import FixStates, Outages
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.time_line import AHEAD_COUNT, AHEAD_STEPS
from sim_sensors.ros.messages import messages_of
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.world.geodesy import LocalFrame

MOTION = motion_of('drive_half_sine', seed=3, run='run_1', duration=2.5, parameters={})
TRUTH = truth_of(MOTION)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def measured(graph: Graph, topic: str, truth: OdometryArray, rate: float, burst: int = 10) -> list:
    """Play odometry and return the messages of one sensor, which must be on the very stamps.

    After a long gap, samples are held until `AHEAD_COUNT` of them show that time has gone on.
    """
    graph.connect(topic)
    got = graph.received[topic]
    steps = np.diff(truth.stamp_ns)
    after_gap = np.flatnonzero(steps > AHEAD_STEPS * np.median(steps)) + 1

    def expected(k: int) -> bool:
        accepted = min([k, *(g for g in after_gap.tolist() if g < k < g + AHEAD_COUNT)])
        return len(got) >= len(final_stamps(truth, rate, accepted))

    graph.play(truth, expected, burst)
    assert stamps(got) == final_stamps(truth, rate)
    return got


def uneven(truth: OdometryArray) -> OdometryArray:
    """Drop samples so that intervals are 10, 20 and 30 ms, and one 200 ms."""
    keep = np.random.default_rng(1).random(len(truth)) < 0.6
    keep[150:170] = False
    keep[[0, -1]] = True
    return truth.take(keep)


@pytest.mark.parametrize('model', ['chrono', 'airsim', 'chrono_ahrs', 'adis16448'])
def test_imu_node_equals_the_batch_run_bit_for_bit(graph: Graph, model: str) -> None:
    """Over uneven odometry with a gap, at 250 Hz; the twin of the recording has the same bits."""
    truth = uneven(TRUTH)
    graph.listen('imu/data', Imu)
    graph.listen('imu_node/truth/bias', TwistStamped)
    graph.start('imu_node', f'model:={model}', 'seed:=7', 'run:=half_1', 'imu.rate:=250.0', *DEEP)
    got = measured(graph, 'imu/data', truth, 250.0)
    origin = int(truth.stamp_ns[0])
    batch: ImuArray = imu.simulate(
        dataclasses.replace(load_imu(model), rate=250.0),
        OdometryMotion(truth, origin_ns=origin, velocity='twist'),
        seed=7, run='half_1', origin_ns=origin,
    )  # fmt: skip
    # Only the last interval is missing.
    assert 0 < len(batch) - len(got) <= 1 + 250.0 * 0.04
    assert imu_bits(got) == imu_bits(list(messages_of(batch.take(slice(0, len(got))))))
    assert {message.header.frame_id for message in got} == {'imu_link'}
    biases = graph.received['imu_node/truth/bias']
    graph.wait(lambda: len(biases) == len(got), 'a bias for each measurement')
    assert stamps(biases) == stamps(got)
    last = biases[-1].twist
    assert last.linear.x != 0.0
    assert last.angular.z != 0.0


def test_nodes_with_default_parameters_give_the_twin_of_sim2real_simulate(graph: Graph) -> None:
    twin = Twin('twin', load_gps('ch_gauss'), load_imu('chrono'))
    recording = synthetic_recording(MOTION, twin, seed=5, run='run_1', scenario='half_sine')
    for topic, kind in (('imu/data', Imu), ('gps/fix', NavSatFix)):
        graph.listen(topic, kind)
    graph.start('sensors_node', 'seed:=5')
    graph.connect('imu/data', 'gps/fix', sensors=2)
    inertial, fixes = graph.received['imu/data'], graph.received['gps/fix']

    streams = ((inertial, 100.0), (fixes, 10.0))
    graph.play(
        TRUTH,
        lambda k: all(len(got) >= len(final_stamps(TRUTH, rate, k)) for got, rate in streams),
    )
    assert stamps(inertial) == final_stamps(TRUTH, 100.0)
    assert stamps(fixes) == final_stamps(TRUTH, 10.0)
    rows = recording.imu.take(slice(0, len(inertial)))
    assert imu_bits(inertial) == imu_bits(list(messages_of(rows)))
    first = recording.gps.take(slice(0, len(fixes)))
    assert fix_bits(fixes) == fix_bits(list(messages_of(first)))


def test_gps_node_equals_the_batch_run_at_its_datum_bit_for_bit(graph: Graph) -> None:
    """A walk with memory, an antenna off the body's origin, 5 Hz, velocity from positions."""
    graph.listen('gps/fix', NavSatFix)
    graph.listen('gps_node/truth/position_error', Vector3Stamped)
    graph.start(
        'gps_node', 'model:=ch_rw_airsim', 'seed:=2', 'gps.rate:=5.0',
        'gps.lever_arm:=[0.1, 0.0, 0.5]', 'gps.frame_id:=antenna', 'velocity:=position',
        'datum.latitude_deg:=-33.5', 'datum.longitude_deg:=151.0', 'datum.altitude_m:=12',
    )  # fmt: skip
    got = measured(graph, 'gps/fix', TRUTH, 5.0, burst=60)
    origin = int(TRUTH.stamp_ns[0])
    model = dataclasses.replace(load_gps('ch_rw_airsim'), rate=5.0, lever_arm=(0.1, 0.0, 0.5))
    batch: FixArray = gps.simulate(
        model, OdometryMotion(TRUTH, origin_ns=origin, velocity='position'),
        seed=2, run='recording/1/run_1', origin_ns=origin, frame=LocalFrame(-33.5, 151.0, 12.0),
    )  # fmt: skip
    assert fix_bits(got) == fix_bits(list(messages_of(batch.take(slice(0, len(got))))))
    assert {message.header.frame_id for message in got} == {'antenna'}
    errors = graph.received['gps_node/truth/position_error']
    graph.wait(lambda: len(errors) == len(got), 'an error for each fix')
    assert errors[0].vector.x == 0.0
    assert errors[-1].vector.x != 0.0


def test_delayed_messages_are_published_when_odometry_reaches_their_arrival(graph: Graph) -> None:
    """A latency of 0.5 s delays each measurement by 0.5 s of motion."""
    graph.listen('imu/data', Imu)
    graph.start('imu_node', 'model:=ideal', 'imu.latency:=0.5')
    graph.connect('imu/data')
    got = graph.received['imu/data']
    graph.play(TRUTH, lambda k: len(got) >= max(0, k - 50))
    assert stamps(got) == TRUTH.stamp_ns[:-50].tolist()


@pytest.mark.parametrize('late_ns', [-3_000_000, 123_456_789])
def test_after_finish_the_twin_of_sensors_that_start_off_the_grid_is_complete(
    graph: Graph, late_ns: int
) -> None:
    """The sensors have latency, jitter and drop-outs, the receiver changing fixes and outages. A
    grid that starts before the odometry equals a batch run from its first stamp inside.
    """
    truth, origin = uneven(TRUTH), int(TRUTH.stamp_ns[0])
    motion = OdometryMotion(truth, origin_ns=origin, velocity='twist')
    unsteady = Delivery(jitter=0.02, drop_out=0.1, drop_out_length=0.15)
    models = {
        'imu': dataclasses.replace(load_imu('chrono'), latency=0.25, delivery=unsteady),
        'gps': dataclasses.replace(
            load_gps('ch_rw_airsim'), latency=0.5, delivery=unsteady,
            states=FixStates(initial='rtk', dwell=(0.2, 0.4, 0.4, 0.3, 0.5)),
            outages=Outages(given=(0.5, 1.0), interval=0.8, length=0.2, silent=True),
        ),
    }  # fmt: skip
    graph.listen('imu/data', Imu)
    graph.listen('gps/fix', NavSatFix)
    for kind, model in models.items():
        parts = [
            f'{kind}.{name}.{key}:={value}'
            for name, part in model.parts().items()
            if name in ('delivery', 'states', 'outages')
            for key, value in part.to_mapping().items()
        ]
        preset = 'chrono' if kind == 'imu' else 'ch_rw_airsim'
        graph.start(
            f'{kind}_node', f'model:={preset}', f'start_ns:={origin + late_ns}',
            f'{kind}.latency:={model.latency}', *parts, *DEEP,
        )  # fmt: skip
    graph.connect('imu/data', 'gps/fix', sensors=2)
    batch = {}
    for kind, module in (('imu', imu), ('gps', gps)):
        start = origin + late_ns
        while start < origin:
            start += round(1e9 / models[kind].rate)
        batch[kind] = module.simulate(
            models[kind], motion, seed=0, run='recording/1/run_1', start_ns=start, origin_ns=origin
        )
    for message in messages_of(truth):
        graph.odometry.publish(message)

    def heard() -> bool:
        newest = {status.name: status.values[0].value for status in graph.statuses()}
        return list(newest.values()) == [str(len(truth))] * 2

    graph.wait(heard, 'all odometry')
    for kind, topic in (('imu', 'imu/data'), ('gps', 'gps/fix')):
        answer = graph.call(Trigger, f'{kind}_node/finish', Trigger.Request())
        want = batch[kind]
        assert answer.success
        counts = {'published': len(want), 'last_stamp_ns': int(want.stamp_ns[-1])}
        assert json.loads(answer.message) == counts
        graph.wait(lambda t=topic, w=want: len(graph.received[t]) == len(w), 'the rest')
    assert len(set(batch['gps'].status.tolist())) > 1
    assert stamps(graph.received['imu/data']) == batch['imu'].stamp_ns.tolist()
    assert stamps(graph.received['gps/fix']) == batch['gps'].stamp_ns.tolist()
    assert imu_bits(graph.received['imu/data']) == imu_bits(list(messages_of(batch['imu'])))
    assert fix_bits(graph.received['gps/fix']) == fix_bits(list(messages_of(batch['gps'])))


def test_two_imus_of_different_models_run_in_one_process(graph: Graph, tmp_path: Path) -> None:
    """Each has its namespace and model; the bits are those of either alone under its label."""
    models = {'front': 'chrono', 'rear': 'airsim'}
    for space in models:
        graph.listen(f'{space}/imu/data', Imu)
    file = tmp_path / 'sensors.yaml'
    nodes = {
        f'/{space}/imu_node': {'ros__parameters': {'model': name}}
        for space, name in models.items()
    }
    file.write_text(yaml.safe_dump(nodes))
    graph.start('sensors_node', 'sensors:=[front/imu, rear/imu]', 'seed:=1', file=file)
    graph.connect(*(f'{space}/imu/data' for space in models), sensors=2)
    got = {space: graph.received[f'{space}/imu/data'] for space in models}
    graph.play(TRUTH, lambda k: min(map(len, got.values())) >= len(final_stamps(TRUTH, 100.0, k)))
    origin = int(TRUTH.stamp_ns[0])
    motion = OdometryMotion(TRUTH, origin_ns=origin, velocity='twist')
    for space, model in models.items():
        batch: ImuArray = imu.simulate(
            load_imu(model), motion, seed=1, run='recording/1/run_1', sensor=f'{space}/imu',
            origin_ns=origin,
        )  # fmt: skip
        rows = batch.take(slice(0, len(got[space])))
        assert imu_bits(got[space]) == imu_bits(list(messages_of(rows)))


def test_a_frame_prefix_is_before_the_frames_of_all_messages(graph: Graph) -> None:
    """As robot1/imu_link, also those of a pose in a world and of the truth; bits are the same."""
    frames = {
        'imu/data': ('imu_link', Imu), 'gps/fix': ('gps_link', NavSatFix),
        'wheel/odometry': ('odom', Odometry), 'vision/pose': ('map', PoseWithCovarianceStamped),
        'gps_node/truth/position_error': ('map', Vector3Stamped),
    }  # fmt: skip
    for topic, (_, kind) in frames.items():
        graph.listen(topic, kind)
    sensors = ['imu', 'gps', 'wheels', 'vision']
    graph.start('sensors_node', f'sensors:=[{", ".join(sensors)}]', 'frame_prefix:=robot1/', *DEEP)
    measurements = [topic for topic in frames if '/truth/' not in topic]
    graph.wait(
        lambda: (
            graph.odometry.get_subscription_count() == len(sensors)
            and all(graph.node.count_publishers(topic) for topic in frames)
        ),
        'the sensors',
    )
    for message in messages_of(TRUTH):
        graph.odometry.publish(message)
    graph.wait(lambda: all(graph.received[topic] for topic in measurements), 'each sensor')
    graph.wait(lambda: graph.received['gps_node/truth/position_error'], 'an error')
    for topic, (frame, _) in frames.items():
        assert {m.header.frame_id for m in graph.received[topic]} == {f'robot1/{frame}'}, topic
    wheels = graph.received['wheel/odometry']
    assert {message.child_frame_id for message in wheels} == {'robot1/base_link'}
