# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors with realistic errors on the topics of a running Gazebo: `python sensors.py WORLD.sdf`.

The SDF names them, inside Gazebo's own noise-free sensors::

    <sdf version="1.9" xmlns:sim2real="https://sim2real">
    ...
      <sensor name="gps" type="navsat">
        <topic>/ground_truth/fix</topic>
        <sim2real:model topic="/gps/fix">ch_rw</sim2real:model>

A model is a preset or a file beside the SDF. It measures what the noise-free sensor did, and what
the OdometryPublisher of the robot says; its messages have the bits of
`sim2real simulate --truth NAME --seed SEED --origin LAT,LON,ALT` for the log of these topics, with
the origin of the world. Sensors begin when all noise-free ones have, but wait for no more than
1000 messages of the odometry. Fixes of a receiver that has none are not published. Needs pyzmq.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from gz_transport import Received, Transport, encoded
from scipy.spatial.transform import Rotation

from sim2real_eval.recording.gazebo_log import gazebo_message
from sim2real_eval.recording.repairs import check_messages
from sim_sensors.core.errors import Sim2RealError, not_among
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    MagneticFieldArray,
    MessageArray,
    MessageParts,
    OdometryArray,
)
from sim_sensors.core.seeding import run_label
from sim_sensors.live.samples import LiveNoiseFree, LiveOdometry
from sim_sensors.live.sensor import LiveSensor
from sim_sensors.motion.ideal import Mounting
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import World

NAMESPACE = '{https://sim2real}'
_KINDS = {'imu': 'imu', 'navsat': 'gps', 'magnetometer': 'mag'}
# Of which the first are looked at together: Gazebo's first twists are wrong.
_FIRST = 40
_LONGEST_WAIT = 1000


@dataclasses.dataclass(frozen=True)
class Declared:
    """A sensor of an SDF: kind, model, topics in and out, place on the robot and in the file."""

    kind: type[SensorModel[Any]]
    model: str
    source: str
    topic: str
    place: Mounting
    where: str


@dataclasses.dataclass(frozen=True)
class Robot:
    """The sensors of the robot in an SDF, the topic of its true odometry, and the origin."""

    sensors: tuple[Declared, ...]
    odometry: str
    origin: LocalFrame
    folder: Path


def read_robot(path: Path) -> Robot:
    """Return the robot of a world whose sensors name models.

    Raises
    ------
    ValueError
        When it names none, or more than one robot does, or something that they need is missing,
        or a model would publish where others do.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f'{path}: {error}') from None
    named = f'.//{NAMESPACE}model'
    for element in root.iter():
        own = str(element.tag).removeprefix(NAMESPACE)
        if own not in (element.tag, 'model'):
            raise ValueError(not_among(f'{path}: sim2real:{own} is unknown', own, ['model']))
    robots = [model for model in root.iter('model') if model.find(named) is not None]
    if len(robots) != 1:
        raise ValueError(f'{path}: {len(robots)} robots have a sim2real:model; must be one')
    (robot,) = robots
    found = []
    for link in robot.findall('link'):
        for sensor in link.findall('sensor'):
            where = f'{path}: sensor {sensor.get("name")}'
            for model in sensor.findall(f'{NAMESPACE}model'):
                kind = _KINDS.get(sensor.get('type', ''))
                topics = sensor.findtext('topic'), model.get('topic')
                if kind is None or not all(topics):
                    raise ValueError(
                        f'{where}: must be an imu, a navsat or a magnetometer with a topic, and '
                        'sim2real:model must have one'
                    )
                text = (model.text or '').strip()
                place = _place(where, link.find('pose'), sensor.find('pose'))
                source, topic = map(_full, topics)
                found.append(Declared(KINDS.get(kind), text, source, topic, place, where))
    if len(found) != len(root.findall(named)):
        raise ValueError(f'{path}: sim2real:model must be in a <sensor> of a <link> of the robot')
    odometry = next(
        (
            plugin.findtext('odom_topic')
            for plugin in robot.iter('plugin')
            if plugin.get('name', '').endswith('OdometryPublisher')
        ),
        None,
    )
    if not odometry:
        raise ValueError(f'{path}: the robot has no OdometryPublisher with an odom_topic')
    taken = {_full(odometry), *(one.source for one in found)}
    for one in found:
        if one.topic in taken:
            raise ValueError(
                f'{one.where}: topic {one.topic} of sim2real:model is not allowed; must be one '
                'that no model publishes or measures'
            )
        taken.add(one.topic)
    sphere = root.find('.//spherical_coordinates')
    words = [sphere.findtext(key) if sphere is not None else None for key in _ORIGIN]
    try:
        origin = LocalFrame(*(float(word or 0.0) for word in words))
    except ValueError as error:
        raise ValueError(f'{path}: <spherical_coordinates>: {error}') from None
    return Robot(tuple(found), _full(odometry), origin, path.parent)


_ORIGIN = ('latitude_deg', 'longitude_deg', 'elevation')


def _full(topic: str) -> str:
    return '/' + topic.strip('/')


def _place(where: str, *poses: ElementTree.Element | None) -> Mounting:
    """Return where a sensor is on the robot, from the poses of its link and its own."""
    arm, turn = np.zeros(3), Rotation.identity()
    for pose in poses:
        if pose is None:
            continue
        try:
            numbers = [float(word) for word in (pose.text or '').split()]
        except ValueError:
            numbers = []
        # A pose without attributes is in metres and radians, relative to its parent.
        if pose.attrib or len(numbers) != 6:
            raise ValueError(f'{where}: <pose>: must be 6 numbers, without attributes')
        arm = arm + turn.apply(numbers[:3])
        turn = turn * Rotation.from_euler('xyz', numbers[3:])
    return Mounting(tuple(arm.tolist()), tuple(turn.as_quat().tolist()))


class Output:
    """One simulated sensor, fed with messages, that gives those of its own."""

    def __init__(self, declared: Declared, robot: Robot, seed: int, run: str) -> None:
        kind = declared.kind
        self.declared = declared
        try:
            model = _placed(kind.load(declared.model, folder=robot.folder), declared.place)
        except Sim2RealError as error:
            raise ValueError(f'{declared.where}: {error}') from None
        surroundings = kind.surroundings(World(frame=robot.origin))
        self._live: LiveSensor[Any] = LiveSensor(
            lambda: model.start(seed, run, kind.name, **surroundings),
            model.rate,
            LiveOdometry(velocity='twist', gap_factor=5.0, longest_gap=1.0),
            noise_free=LiveNoiseFree.from_kind(kind, declared.place, lambda: surroundings),
        )

    def push(self, message: MessageArray) -> Iterator[MessageArray]:
        """Take a message of the odometry or of the noise-free sensor; return what is measured."""
        if isinstance(message, OdometryArray):
            self._live.push(message)
        else:
            self._live.push_noise_free(message)
        for stamp_ns, measured in self._live.measure():
            yield self._live.sensor.deliver(stamp_ns, measured)


def _placed(model: Any, place: Mounting) -> Any:
    if hasattr(model, 'mounting_rpy'):
        return model.mounted(place.lever_arm, place.rotation)
    return model.mounted(place.lever_arm)


class Sensors:
    """All sensors of a robot: messages of Gazebo in, messages for Gazebo out."""

    def __init__(self, robot: Robot, seed: int, name: str) -> None:
        run = run_label('recording', 1, name)
        self._robot = robot
        self._outputs = [Output(one, robot, seed, run) for one in robot.sensors]
        self._first: list[OdometryArray] = []
        # First stamps of the noise-free sensors, and odometry that waits for all of them.
        self._begun: dict[str, int] = {}
        self._waiting: list[OdometryArray] | None = []

    def push(self, received: Received) -> Iterator[tuple[str, str, bytes]]:
        """Return topic, type and bytes of what is to be published now."""
        now = time.time_ns()
        message = gazebo_message(received.topic, received.type_name, received.data, now)
        messages: list[MessageArray] = [message]
        if isinstance(message, OdometryArray):
            messages = [*self._common(self._odometry(message))]
        else:
            self._begun.setdefault(received.topic, int(message.stamp_ns[0]))
        for one in messages:
            for output in self._outputs:
                declared = output.declared
                if received.topic in (self._robot.odometry, declared.source):
                    for array in output.push(one):
                        for data in wire_of(array):
                            yield declared.topic, _NAMES[declared.kind.name], data

    def _common(self, odometry: list[OdometryArray]) -> list[OdometryArray]:
        """Leave out what is before all noise-free sensors have begun, as a batch run does."""
        if self._waiting is None or not odometry:
            return odometry
        self._waiting += odometry
        missing = {one.source for one in self._robot.sensors} - self._begun.keys()
        if missing and len(self._waiting) < _LONGEST_WAIT:
            return []
        for topic in sorted(missing):
            print(f'{topic}: no message yet; the others begin without it', flush=True)
        start = max(self._begun.values(), default=0)
        found = [one for one in self._waiting if one.stamp_ns[0] >= start]
        self._waiting = None
        return found

    def _odometry(self, message: OdometryArray) -> list[OdometryArray]:
        """Hold the first back, and leave out those that a reader of the log leaves out."""
        if len(self._first) >= _FIRST:
            return [message]
        self._first.append(message)
        if len(self._first) < _FIRST:
            return []
        columns = MessageParts[OdometryArray]()
        for one in self._first:
            columns.add(one)
        kept, notes = check_messages(
            'gazebo', self._robot.odometry, columns.concatenate(), is_truth=True
        )
        for note in notes:
            print(note, flush=True)
        return [kept.take(slice(k, k + 1)) for k in range(len(kept))]


_NAMES = {
    'imu': 'ignition.msgs.IMU',
    'gps': 'ignition.msgs.NavSat',
    'mag': 'ignition.msgs.Magnetometer',
}


def wire_of(array: MessageArray) -> Iterator[bytes]:
    """Return the messages of an array as bytes on the wire, as Gazebo's own."""
    for k, stamp_ns in enumerate(array.stamp_ns.tolist()):
        stamp = encoded((1, stamp_ns // 10**9), (2, stamp_ns % 10**9))
        frame = encoded((1, 'frame_id'), (2, array.frame))
        header = encoded((1, stamp), (2, frame))
        if isinstance(array, FixArray):
            # A NavSat cannot say that there is no fix.
            if array.status[k] < 0:
                continue
            place = array.latitude[k], array.longitude[k], array.altitude[k]
            yield encoded((1, header), *_numbers(place), (8, array.frame))
        elif isinstance(array, ImuArray):
            vectors = array.orientation[k], array.angular_velocity[k], array.linear_acceleration[k]
            parts = [(3 + i, encoded(*_numbers(one))) for i, one in enumerate(vectors)]
            yield encoded((1, header), *parts)
        elif isinstance(array, MagneticFieldArray):
            yield encoded((1, header), (2, encoded(*_numbers(array.magnetic_field[k]))))


def _numbers(values: Any) -> list[tuple[int, float]]:
    return [(2 + i, float(value)) for i, value in enumerate(np.asarray(values))]


def main() -> None:
    """Run until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('sdf', type=Path, help='world with the robot, as Gazebo runs it')
    parser.add_argument('--seed', type=int, default=0, help='seed of all random draws')
    parser.add_argument('--name', default='drive', help='name of the recording to be')
    options = parser.parse_args()
    try:
        robot = read_robot(options.sdf)
        sensors = Sensors(robot, options.seed, options.name)
        transport = Transport()
    except (OSError, ValueError, Sim2RealError) as error:
        parser.error(str(error))
    except ImportError:
        parser.error('needs the library pyzmq, which is not installed: pip install pyzmq')
    running = True

    def stop(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    transport.subscribe(robot.odometry)
    for one in robot.sensors:
        transport.subscribe(one.source)
        transport.advertise(one.topic, _NAMES[one.kind.name])
        print(f'{one.topic}: {one.model} on {one.source}', flush=True)
    for received in transport.messages():
        if not running:
            break
        if received is not None:
            try:
                for message in sensors.push(received):
                    transport.publish(*message)
            except Sim2RealError as error:
                transport.close()
                parser.error(str(error))
    transport.close()


if __name__ == '__main__':
    main()
