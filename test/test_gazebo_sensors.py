# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The companion of Gazebo turns its messages into sensor messages with the bits of the batch.

Gazebo itself ran outside of the tests; here messages of a motion are put on the wire as it does.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.recording.gazebo_log import gazebo_message
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.measurements import MessageParts
from sim_sensors.gps.gps import load_gps
from sim_sensors.gps.gps import simulate as simulate_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.imu import simulate as simulate_imu
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.magnetometer.magnetometer import simulate as simulate_mag
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.scenarios import Circle
from sim_sensors.world.world import World

PLUGINS = Path(__file__).parents[1] / 'gazebo_ws_plugins'
WORLD = (PLUGINS / 'worlds' / 'sim2real_field.sdf').read_text('utf-8')
ODOMETRY, IMU, FIX = '/ground_truth/odometry', '/ground_truth/imu', '/ground_truth/fix'
MAG = '/ground_truth/mag'


@pytest.fixture(scope='module')
def companion():
    """The modules of the folder, which is no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGINS))
        import gz_transport
        import sensors

        yield gz_transport, sensors
    for name in ('gz_transport', 'sensors'):
        del sys.modules[name]


@pytest.fixture
def sdf(tmp_path: Path) -> Path:
    """The world of this repository, whose robot names models."""
    text = WORLD.replace('<sdf ', '<sdf xmlns:sim2real="https://sim2real" ')
    models = {
        IMU: ('/imu/data', 'bno055'),
        FIX: ('/gps/fix', 'ch_rw'),
        MAG: ('/imu/mag', 'xsens_mtx'),
    }
    for topic, (out, model) in models.items():
        element = f'<sim2real:model topic="{out}">{model}</sim2real:model>'
        replaced = f'<topic>{topic}</topic>{element}<pose>0.1 0 0.2 0 0 0</pose>'
        text = text.replace(f'<topic>{topic}</topic>', replaced)
    path = tmp_path / 'world.sdf'
    path.write_text(text, 'utf-8')
    return path


def odometry_on_wire(encoded, truth, k: int) -> bytes:
    stamp = encoded((1, int(truth.stamp_ns[k]) // 10**9), (2, int(truth.stamp_ns[k]) % 10**9))

    def numbers(values):
        return encoded(*((2 + i, float(value)) for i, value in enumerate(values)))

    pose = encoded((4, numbers(truth.position[k])), (5, numbers(truth.orientation[k])))
    linear, angular = truth.linear_velocity[k], truth.angular_velocity[k]
    twist = encoded((2, numbers(linear)), (3, numbers(angular)))
    frames = [(2, encoded((1, key), (2, value))) for key, value in FRAMES.items()]
    return encoded((1, encoded((1, stamp), *frames)), (2, pose), (3, twist))


FRAMES = {'frame_id': 'map', 'child_frame_id': 'base_link'}


def test_live_messages_equal_the_batch_run_bit_for_bit(companion, sdf: Path) -> None:
    """If streams begin one after the other, each sensor begins where all have begun."""
    gz, sensors = companion
    robot = sensors.read_robot(sdf)
    motion, at = Circle(duration=2.0), {'lever_arm': (0.1, 0.0, 0.2)}
    drawn = {'seed': 1, 'run': 'a', 'origin_ns': 10**9}
    world = World(frame=robot.origin)
    imu, gps, mag = (
        load(name).__class__(**at)
        for load, name in ((load_imu, 'ideal'), (load_gps, 'baseline'), (load_mag, 'ideal'))
    )
    ideal = {
        IMU: simulate_imu(imu, motion, **drawn),
        FIX: simulate_gps(gps, motion, frame=robot.origin, **drawn),
        MAG: simulate_mag(mag, motion, world=world, **drawn),
    }
    ideal = {topic: array.take(slice(k, None)) for k, (topic, array) in enumerate(ideal.items())}
    truth = truth_of(motion, start_ns=10**9)
    wire = [
        (int(stamp), ODOMETRY, 'ignition.msgs.Odometry', odometry_on_wire(gz.encoded, truth, k))
        for k, stamp in enumerate(truth.stamp_ns)
    ]
    for topic, name in ((IMU, 'IMU'), (FIX, 'NavSat'), (MAG, 'Magnetometer')):
        array = ideal[topic]
        data = sensors.wire_of(array)
        wire += [
            (int(stamp), topic, f'ignition.msgs.{name}', message)
            for stamp, message in zip(array.stamp_ns, data, strict=True)
        ]
    running = sensors.Sensors(robot, 5, 'drive')
    live = {'/imu/data': MessageParts(), '/gps/fix': MessageParts(), '/imu/mag': MessageParts()}
    for _, topic, name, data in sorted(wire, key=lambda entry: entry[0]):
        for out, kind, bytes_ in running.push(gz.Received(topic, name, data)):
            live[out].add(gazebo_message(out, kind, bytes_, 0))

    recording = Recording.of_truth(truth, 'drive', 'circle')
    for role, topic in (('ideal_imu', IMU), ('ideal_gps', FIX), ('ideal_mag', MAG)):
        recording = recording.with_messages(role, ideal[topic])
    links = [
        StaticTransform('base_link', frame, at['lever_arm'])
        for frame in {'imu_link', 'gps_link', ideal[IMU].frame, ideal[FIX].frame}
    ]
    recording = Recording(**{**vars(recording), 'transforms': tuple(links)})
    maker = TwinMaker(recording, seed=5, purpose='recording', origin=robot.origin, world=world)
    other_models = {'mag': load_mag('xsens_mtx')}
    batch = maker.make(Twin('own', load_gps('ch_rw'), load_imu('bno055'), others=other_models))
    for topic, expected, fields in (
        ('/imu/data', batch.imu, ('angular_velocity', 'linear_acceleration', 'orientation')),
        ('/gps/fix', batch.gps, ('latitude', 'longitude', 'altitude')),
        ('/imu/mag', batch.mag, ('magnetic_field',)),
    ):
        sent = live[topic].concatenate()
        # The last interval waits for samples that do not come.
        assert len(expected) - 3 <= len(sent) <= len(expected)
        for field in ('stamp_ns', *fields):
            batch_values = getattr(expected, field)[: len(sent)]
            np.testing.assert_array_equal(getattr(sent, field), batch_values)


def test_an_sdf_that_names_no_model_is_refused(companion, tmp_path: Path) -> None:
    path = tmp_path / 'plain.sdf'
    path.write_text(WORLD, 'utf-8')
    with pytest.raises(ValueError, match=r'plain\.sdf'):
        companion[1].read_robot(path)


def test_two_transports_find_each_other(companion, monkeypatch) -> None:
    pytest.importorskip('zmq')
    monkeypatch.setenv('GZ_IP', '127.0.0.1')
    sender, receiver = (companion[0].Transport(f'test_{time.time_ns()}') for _ in range(2))
    receiver._prefix = sender._prefix
    receiver.subscribe('/twist')
    sender.advertise('/twist', 'ignition.msgs.Twist')
    sent, end = b'\x00 zero bytes \x00', time.monotonic() + 300.0
    for _, received in zip(sender.messages(), receiver.messages()):  # noqa: B905
        sender.publish('/twist', 'ignition.msgs.Twist', sent)
        if received is not None or time.monotonic() > end:
            break
    sender.close()
    receiver.close()
    assert received == companion[0].Received('/twist', 'ignition.msgs.Twist', sent)


def test_sensor_placement_and_truth_topic_are_read_from_the_sdf(companion, tmp_path: Path) -> None:
    """A link that is turned by a quarter; wheel odometry comes first, and topics lack a slash."""
    path = tmp_path / 'robot.sdf'
    path.write_text(
        """<sdf version="1.9" xmlns:sim2real="https://sim2real"><world name="w"><model name="r">
        <plugin name="gz::sim::systems::DiffDrive"><odom_topic>/wheels</odom_topic></plugin>
        <plugin name="gz::sim::systems::OdometryPublisher"><odom_topic>truth</odom_topic></plugin>
        <link name="imu_link"><pose>0.1 0 0.2 0 0 1.5707963267948966</pose>
        <sensor name="imu" type="imu"><pose>0.3 0 0 0 0 0</pose><topic>ideal</topic>
        <sim2real:model topic="imu/data">bno055</sim2real:model></sensor></link>
        </model></world></sdf>""",
        'utf-8',
    )
    robot = companion[1].read_robot(path)
    (imu,) = robot.sensors
    assert (robot.odometry, imu.source, imu.topic) == ('/truth', '/ideal', '/imu/data')
    np.testing.assert_allclose(imu.place.lever_arm, (0.1, 0.3, 0.2), atol=1e-15)
    np.testing.assert_allclose(imu.place.rotation, (0.0, 0.0, 0.5**0.5, 0.5**0.5), atol=1e-15)


def test_a_wrong_sdf_is_refused_in_one_line_with_file_and_element(companion, sdf: Path) -> None:
    text = sdf.read_text('utf-8')
    for old, new, place in (
        ('"/gps/fix"', '"/imu/data"', 'sensor gps: '),
        ('"/gps/fix"', f'"{FIX}"', 'sensor gps: '),
        ('"/gps/fix"', '"ground_truth/odometry"', 'sensor gps: '),
        ('sim2real:model', 'sim2real:modle', 'sim2real:modle'),
        (' xmlns:sim2real="https://sim2real"', '', ''),
        ('0.1 0 0.2 0 0 0', '0.1 0 0.2 0 0 up', 'sensor imu: <pose>'),
        ('<pose>0.1', '<pose degrees="true">0.1', 'sensor imu: <pose>'),
        ('<latitude_deg>', '<latitude_deg>N', '<spherical_coordinates>'),
        ('>ch_rw<', '>ch_rv<', 'sensor gps: '),
    ):
        sdf.write_text(text.replace(old, new), 'utf-8')
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            companion[1].Sensors(companion[1].read_robot(sdf), 1, 'drive')
        problem = str(raised.value)
        assert problem.startswith(f'{sdf}: {place}'), problem
        assert '\n' not in problem


def test_a_silent_noise_free_sensor_does_not_stop_the_others(
    companion, sdf: Path, monkeypatch, capsys
) -> None:
    gz, sensors = companion
    monkeypatch.setattr(sensors, '_LONGEST_WAIT', 50)
    running = sensors.Sensors(sensors.read_robot(sdf), 5, 'drive')
    motion = Circle(duration=2.0)
    drawn = {'seed': 1, 'run': 'a', 'origin_ns': 10**9}
    imu = simulate_imu(load_imu('ideal').__class__(lever_arm=(0.1, 0.0, 0.2)), motion, **drawn)
    truth = truth_of(motion, start_ns=10**9)
    for k, data in enumerate(sensors.wire_of(imu)):
        list(running.push(gz.Received(IMU, 'ignition.msgs.IMU', data)))
        if k == len(imu) // 4:
            break
    sent_topics = set()
    for k in range(len(truth)):
        data = odometry_on_wire(gz.encoded, truth, k)
        out = running.push(gz.Received(ODOMETRY, 'ignition.msgs.Odometry', data))
        sent_topics |= {topic for topic, *_ in out}
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(':')[0] for line in lines] == [FIX, MAG]
    assert sent_topics == {'/imu/data'}
