# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors of the simulated twin of a recording, their mounting, and the time they share."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, RecordingError, decisive, routine
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import (
    DEFAULT_TOPICS,
    IDEAL_ROLES,
    OPTIONAL_ROLES,
    Recording,
    StaticTransform,
)
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
)
from sim_sensors.core.parameters import Parameters, to_variant
from sim_sensors.core.registry import file_of, source_digest
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.motions import noise_free_imu
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.vision.vision_pose import VisionModel
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import World
from .camera_view import nothing_seen

REAL_SENSOR = 'real'
"""Name of a recording's own sensor in place of a model."""

STAND_IN = 'stand_in'
"""Name of the sensors of the demo, which are none of the compared models."""

WHEEL_TOPIC = f'/{WheelOdometryModel.topic}'
"""Topic of simulated and recorded wheel odometry."""

VISION_TOPIC = f'/{VisionModel.topic}'
"""Topic of simulated poses of a camera that sees tags."""

_SENSOR_ROLES = (*IDEAL_ROLES, *IDEAL_ROLES.values())
# Largest difference of equal gravities, m/s^2; on Earth gravity varies from 9.78 to 9.83.
_SAME_GRAVITY = 0.05
_MIN_SAMPLES = 3
"""Samples of a truth below which it is not a motion."""
NOISE_FREE = routine(
    'twin.noise_free',
    "the simulated {sensor} adds its errors to the simulator's noise-free messages",
    'Specific force, position or field come from the noise-free sensor, the rest from odometry.',
    'to ignore that sensor, set `topics: {{{role}: null}}` in recording.yaml',
)
OTHER_GRAVITY = routine(
    'twin.other_gravity',
    'the physics has a gravity of {physical:.5g m/s^2}, the world one of {world:.6g m/s^2}',
    'An accelerometer at rest measures that of the physics; judges expect that of the Earth.',
    'to replace it, give `--set gravity={world:.6g}`',
)
CENTIMETRES = decisive(
    'twin.centimetres',
    'the physics has a gravity of {physical:.5g}: lengths are in centimetres',
    'MuJoCo has no units; they follow from the gravity [MuJoCo]. Positions, velocities and forces '
    'are 100 times those in metres.',
    'scale the lengths of the file to metres, and its gravity to 0 0 -9.81',
)


@dataclasses.dataclass(frozen=True)
class Twin:
    """Sensor models of a twin; other sensors of the recording stay.

    Attributes
    ----------
    label : str
        Name in tables and files.
    gps : GpsModel or None
        GPS model, or None to keep the recorded fixes.
    imu : ImuModel or None
        IMU model, or None to keep the recorded messages.
    others : mapping
        Models of further kinds by the name of the kind: `mag`, `camera` ...
    phrase : str
        Short description of the models; see `SensorModel.phrase`.
    shared_imu : str
        Name of an IMU model that all twins of a comparison share, which labels leave out.
    chosen : frozenset of str
        Parameters that the user has set for this comparison, such as `gps.rate`.
    """

    label: str
    gps: GpsModel | None
    imu: ImuModel | None
    others: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    phrase: str = ''
    shared_imu: str = ''
    chosen: frozenset[str] = frozenset()

    @property
    def models(self) -> dict[str, Any]:
        """All models by kind of sensor."""
        models = {'imu': self.imu, 'gps': self.gps, **self.others}
        return {kind: model for kind, model in models.items() if model is not None}

    def to_mapping(self) -> dict[str, Any]:
        """Return the parameters of the models by kind, for provenance; `real` for a real sensor.

        A class that was loaded from a file adds the file's path and digest.
        """
        kinds = dict.fromkeys(['gps', 'imu', *self.others])
        return {
            kind: _provenance(self.models[kind]) if kind in self.models else REAL_SENSOR
            for kind in kinds
        }


def _provenance(model: Parameters) -> dict[str, Any]:
    classes = [type(part) for part in (model, *model.parts().values())]
    files = {
        str(path): source_digest(part_class)
        for part_class in classes
        if (path := file_of(part_class))
    }
    return {**to_variant(model), 'sha256': files} if files else model.to_mapping()


def without_sensor(recording: Recording, kind: str) -> Recording:
    """Return a copy without the messages of a kind of sensor, such as `imu` or `wheels`.

    Without IMU or GPS, a reference trajectory also loses its label: it may depend on that sensor.
    """
    sensor = KINDS.get(kind)
    topics = {f'/{name}' for name in (sensor.topic, *sensor.more_topics)}
    for role in [role for role, topic in DEFAULT_TOPICS.items() if topic in topics]:
        recording = recording.with_messages(role, None)
    roles = recording.roles.values()
    messages = {
        topic: array
        for topic, array in recording.messages.items()
        if topic not in topics or topic in roles
    }
    reference = None if kind in ('gps', 'imu') else recording.reference
    return dataclasses.replace(recording, messages=messages, reference=reference)


@dataclasses.dataclass(frozen=True)
class PlacedSensor:
    """Simulated sensor at its place on the robot.

    Attributes
    ----------
    model : sensor model
        Model with mounting and frame of the messages.
    start_ns : int
        First stamp.
    transform : StaticTransform or None
        Place of a sensor that is mounted as its model states, else None.
    """

    model: Any
    start_ns: int
    transform: StaticTransform | None = None


class Mountings:
    """Poses of sensors in the frame `base`, by static transforms.

    All frames are assumed to coincide with the base if there is no transform.

    Examples
    --------
    >>> robot = Mountings([StaticTransform('base_link', 'imu_link', (0.1, 0.0, 0.2))], 'base_link')
    >>> robot.pose('imu_link')[0].tolist()
    [0.1, 0.0, 0.2]
    """

    def __init__(self, transforms: Sequence[StaticTransform], base: str) -> None:
        self._base = base
        self.frames = FrameTree(transforms, assume_identity=not transforms)

    def pose(self, frame: str, user: str = 'simulated sensor') -> tuple[FloatArray, FloatArray]:
        """Return the pose of a frame: position `(3,)` m and quaternion `(4,)`, sensor to body.

        Raises JudgeError, which names the `user`, when static transforms are given but do not
        connect the frame to the base.
        """
        rotation, translation = self.frames.lookup(self._base, frame, user)
        return translation, Rotation.from_matrix(rotation).as_quat()

    def place(self, model: Any, real_messages: MessageArray | None, start_ns: int) -> PlacedSensor:
        """Return a model with the mounting of its sensor.

        Frame and first stamp are those of `real_messages`, if there are any. A camera, and a
        sensor without a real one, is mounted as its model states if no transform names its frame.
        Sensors placed later in the same frame have the same place.

        Raises JudgeError as `pose` does.
        """
        frame = model.frame_id if real_messages is None else real_messages.frame
        model = dataclasses.replace(model, frame_id=frame)
        start_ns = start_ns if real_messages is None else int(real_messages.stamp_ns[0])
        is_unplaced = real_messages is None or isinstance(model, CameraModel)
        if is_unplaced and frame.strip('/') != self._base.strip('/') and frame not in self.frames:
            transform = _transform(model, self._base)
            self.frames.add(transform)
            return PlacedSensor(model, start_ns, transform)
        translation, rotation = self.pose(frame)
        orientation = () if isinstance(model, GpsModel) else (rotation,)
        return PlacedSensor(model.mounted(translation, *orientation), start_ns)


def _transform(model: Any, base: str) -> StaticTransform:
    """Return the static transform of a sensor that is mounted as its model states."""
    if isinstance(model, CameraModel):
        quaternion = model.optical_rotation()
    else:
        quaternion = mounting_quaternion(getattr(model, 'mounting_rpy', (0.0, 0.0, 0.0)))[0]
    qx, qy, qz, qw = quaternion.tolist()
    x, y, z = model.lever_arm
    return StaticTransform(base, model.frame_id, (x, y, z), (qx, qy, qz, qw))


def add_sensor_transforms(recording: Recording, placed: Iterable[PlacedSensor]) -> Recording:
    """Return a recording with the transforms of sensors that are mounted as their models state.

    A recording without any transform assumes its sensors at the base; it then states so for each
    of them. If the new sensors are at the base too, nothing is added.
    """
    added = {
        sensor.transform.child: sensor.transform
        for sensor in placed
        if sensor.transform is not None
    }
    is_identity = all(
        transform == StaticTransform(transform.parent, transform.child)
        for transform in added.values()
    )
    if not added or (is_identity and not recording.transforms):
        return recording
    at_base: list[StaticTransform] = []
    if not recording.transforms:
        (base, *_) = {transform.parent for transform in added.values()}
        arrays = (recording.require(role) for role in _SENSOR_ROLES if role in recording.roles)
        frames = {array.frame for array in arrays} - {base, *added}
        at_base = [StaticTransform(base, frame) for frame in sorted(frames)]
    transforms = (*recording.transforms, *at_base, *added.values())
    return dataclasses.replace(recording, transforms=transforms)


@dataclasses.dataclass(frozen=True)
class TwinSensors:
    """Settings with which the sensors of a twin start, in a batch run and on a live graph.

    Attributes
    ----------
    placed : mapping of str to PlacedSensor
        Sensors by kind that replace one of the recording: IMU, GPS, magnetometer.
    seed : int
        Seed of the study.
    run : str
        Label of the random streams.
    velocity : str
        Source of the motion's velocity, twist or position, chosen from the whole truth.
    origin : LocalFrame
        Place of the truth on the Earth.
    """

    placed: Mapping[str, PlacedSensor]
    seed: int
    run: str
    velocity: str
    origin: LocalFrame


def gravity_notes(motion: Motion, world: World) -> tuple[Finding, ...]:
    """Return a finding if a physics engine moved with another gravity than that of the world."""
    physical = getattr(motion, 'physical_gravity', None)
    if physical is None or abs(physical - world.gravity) <= _SAME_GRAVITY:
        return ()
    if abs(physical - 100.0 * world.gravity) <= 100.0 * _SAME_GRAVITY:
        return (CENTIMETRES('', physical=physical),)
    return (OTHER_GRAVITY('', physical=physical, world=world.gravity),)


def simulate_camera(
    recording: Recording, placed: PlacedSensor, motion: Motion, world: World, **labels: Any
) -> Recording:
    """Return a recording with the features, camera info and poses of a simulated camera.

    `labels` are `seed`, `run` and `origin_ns` as for `simulate_topic`.
    """
    measured = camera.simulate(
        placed.model, motion, start_ns=placed.start_ns, world=world, **labels
    )
    features = measured.features
    # camera_node publishes the info before the features; ties of arrival keep that order.
    info = CameraInfoArray.from_intrinsics(
        placed.model.intrinsics, features.stamp_ns, features.arrival_ns, features.frame
    )
    recording = recording.with_messages('camera_info', info)
    recording = recording.with_messages('features', features)
    if not len(features.ids):
        note = nothing_seen(
            recording.roles['features'],
            len(features),
            placed.model,
            motion,
            world,
            free=placed.transform is not None,
        )
        recording = dataclasses.replace(recording, notes=(*recording.notes, note))
    return recording.with_messages('camera_pose', measured.poses if len(measured.poses) else None)


def simulate_topic(
    recording: Recording,
    kind: type[SensorModel[Any]],
    model: Any,
    motion: Motion,
    world: World,
    *,
    seed: int,
    run: str,
    origin_ns: int,
    base_frame: str,
) -> Recording:
    """Return the recording with a simulated sensor that has no role, such as wheel odometry.

    Its messages replace those on its topic, to which a judge subscribes.

    Parameters
    ----------
    recording : Recording
        Recording to extend.
    kind : type of SensorModel
        Base class of the kind of sensor.
    model : Parameters
        Model of that kind, mounted as it states.
    motion : Motion
        Motion to measure.
    world : World
        Surroundings of the sensor.
    seed, run
        Labels of the random streams; see `sim_sensors.core.seeding.stream`.
    origin_ns : int
        Stamp of motion time 0, and of the first measurement.
    base_frame : str
        Frame of the body.

    Raises
    ------
    Sim2RealError
        When the sensor cannot work in that world, or measures nothing.
    """
    if hasattr(model, 'child_frame_id'):
        model = dataclasses.replace(model, child_frame_id=base_frame)
    measured = kind.simulate(
        model,
        motion,
        seed=seed,
        run=run,
        start_ns=origin_ns,
        origin_ns=origin_ns,
        **kind.surroundings(world),
    )
    if not len(measured):
        raise RecordingError(f'{recording.path or recording.name}: {kind.silence}')
    return dataclasses.replace(
        recording, messages={**recording.messages, f'/{kind.topic}': measured}
    )


# Noise-free sensors of a simulator, and the time of a recording for which there is truth.


def noise_free_messages(recording: Recording) -> dict[str, MessageArray]:
    """Return the messages of noise-free sensors by kind, without repeated stamps."""
    messages = {}
    for kind, role in IDEAL_ROLES.items():
        if role in recording.roles:
            array = recording.messages[recording.roles[role]]
            messages[kind] = array.take(np.diff(array.stamp_ns, prepend=-1) > 0)
    return messages


def noise_free_fixes(recording: Recording) -> FixArray | None:
    """Return the fixes of a noise-free GPS, if there is one."""
    fixes = noise_free_messages(recording).get('gps')
    return fixes if isinstance(fixes, FixArray) else None


def add_noise_free_imu(recording: Recording, motion: Motion) -> Recording:
    """Return the recording of a motion with the messages of its noise-free IMU, if it has one."""
    measured = noise_free_imu(motion)
    if measured is None:
        return recording
    return recording.with_messages(IDEAL_ROLES['imu'], measured)


def noise_free_notes(recording: Recording, simulated: Collection[str]) -> tuple[Finding, ...]:
    """Report the simulated kinds of sensors that use noise-free messages."""
    return tuple(
        NOISE_FREE(recording.roles[role], role=role, sensor=KINDS.get(kind).title)
        for kind, role in IDEAL_ROLES.items()
        if kind in simulated and role in recording.roles
    )


def find_common_span(recording: Recording, truth: OdometryArray) -> tuple[int, int]:
    """Return the first and last stamp of the truth within the time of all noise-free sensors.

    A noise-free sensor that measured at another time raises RecordingError.
    """
    start_ns, end_ns = int(truth.stamp_ns[0]), int(truth.stamp_ns[-1])
    for kind, array in noise_free_messages(recording).items():
        stamps = array.stamp_ns
        first, last = (int(stamps[0]), int(stamps[-1])) if len(stamps) else (0, -1)
        start_ns, end_ns = max(start_ns, first), min(end_ns, last)
        common = truth.stamp_ns[find_span(truth.stamp_ns, start_ns, end_ns)]
        if len(common) < _MIN_SAMPLES:
            role = IDEAL_ROLES[kind]
            raise RecordingError(
                f'{recording.path or recording.name}: {recording.roles[role]} ({role}) measured '
                f'during {len(common)} samples of the truth; must be at least {_MIN_SAMPLES}'
            )
        start_ns, end_ns = int(common[0]), int(common[-1])
    return start_ns, end_ns


def cut_to_span(recording: Recording, start_ns: int, end_ns: int) -> Recording:
    """Return the recording with only the messages stamped in [start, end].

    Raises RecordingError when a topic whose role is needed has no message there.
    """
    messages = {
        topic: array.take(find_span(array.stamp_ns, start_ns, end_ns))
        for topic, array in recording.messages.items()
    }
    roles = dict(recording.roles)
    for role, topic in recording.roles.items():
        if not len(messages[topic]) and role in OPTIONAL_ROLES:
            del messages[topic], roles[role]
        elif not len(messages[topic]):
            span = (end_ns - start_ns) * 1e-9
            raise RecordingError(
                f'{recording.path or recording.name}: {topic} ({role}) has no message in the '
                f'{span:.1f} s for which there is truth'
            )
    return dataclasses.replace(recording, messages=messages, roles=roles)


def find_span(stamp_ns: IntArray, start_ns: int, end_ns: int) -> slice:
    """Return the slice of non-decreasing stamps in [start, end]."""
    first = int(np.searchsorted(stamp_ns, start_ns))
    return slice(first, int(np.searchsorted(stamp_ns, end_ns, side='right')))
