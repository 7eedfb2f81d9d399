# SPDX-License-Identifier: Apache-2.0
"""Which sensors the simulated twin of a recording has, and where they are on the robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording, StaticTransform
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import FloatArray, MessageArray
from sim_sensors.core.parameters import Parameters, to_variant
from sim_sensors.core.registry import file_of, source_digest
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.vision.vision_pose import VisionModel
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import World
from .findings import NOTHING_SEEN

REAL_SENSOR = 'real'
"""Stands for a recording's own sensor where a model could be named."""

WHEEL_TOPIC = f'/{WheelOdometryModel.topic}'
"""Where simulated wheel odometry goes, and recorded one is expected."""

VISION_TOPIC = f'/{VisionModel.topic}'
"""Where simulated poses of a camera that sees tags go."""

_SENSORS = (*IDEAL_ROLES, *IDEAL_ROLES.values())


@dataclasses.dataclass(frozen=True)
class Twin:
    """Which sensors a twin has; a recording's own stay where it has none of a kind.

    Attributes
    ----------
    label : str
        Name in tables and files.
    gps : GpsModel or None
        None: the recording's own fixes stay.
    imu : ImuModel or None
        None: the recording's own IMU stays.
    others : mapping
        Models of further kinds by the name of the kind: `mag`, `camera` ...
    phrase : str
        What its models are, in a few words; see `SensorModel.phrase`.
    shared_imu : str
        Name of the IMU model where all twins beside it have the same, which labels leave out.
    """

    label: str
    gps: GpsModel | None
    imu: ImuModel | None
    others: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    phrase: str = ''
    shared_imu: str = ''

    @property
    def models(self) -> dict[str, Any]:
        """All models by kind of sensor."""
        both = {'imu': self.imu, 'gps': self.gps}
        return {**{kind: one for kind, one in both.items() if one is not None}, **self.others}

    def to_mapping(self) -> dict[str, Any]:
        """Return the parameters of the models by kind, for provenance; `real` for own sensors.

        Where a class was loaded from a file, its path and digest are with them.
        """
        kinds = dict.fromkeys(['gps', 'imu', *self.others])
        return {
            kind: _provenance(self.models[kind]) if kind in self.models else REAL_SENSOR
            for kind in kinds
        }


def _provenance(model: Parameters) -> dict[str, Any]:
    own = model.to_mapping()
    parts = [type(one) for one in (model, *model.parts().values())]
    files = {str(path): source_digest(one) for one in parts if (path := file_of(one))}
    if not files:
        return own
    return {**to_variant(model), 'sha256': files}


@dataclasses.dataclass(frozen=True)
class Placed:
    """A simulated sensor on the robot.

    `model` has the mounting and the frame of the messages, `start_ns` is the first stamp.
    `transform` is the place of a sensor that is mounted as its model says, else None.
    """

    model: Any
    start_ns: int
    transform: StaticTransform | None = None


class Mountings:
    """Where sensors are in the frame `base`, by static transforms.

    Without any transform all frames are taken to be that of the base.

    Examples
    --------
    >>> robot = Mountings([StaticTransform('base_link', 'imu_link', (0.1, 0.0, 0.2))], 'base_link')
    >>> robot.of('imu_link')[0].tolist()
    [0.1, 0.0, 0.2]
    """

    def __init__(self, transforms: Sequence[StaticTransform], base: str) -> None:
        self._base = base
        self.frames = FrameTree(transforms, assume_identity=not transforms)

    def of(self, frame: str, what: str = 'simulated sensor') -> tuple[FloatArray, FloatArray]:
        """Return where a frame is: position `(3,)` m and quaternion `(4,)`, sensor to body.

        Raises JudgeError when static transforms are given but do not connect the frame to the
        base; it names `what` needs it.
        """
        rotation, translation = self.frames.lookup(self._base, frame, what)
        return translation, Rotation.from_matrix(rotation).as_quat()

    def place(self, model: Any, own: MessageArray | None, start_ns: int) -> Placed:
        """Return a model as its sensor is mounted.

        Frame and first stamp are those of `own`, the messages of the real sensor, where there is
        one. A sensor of a frame that no transform names is where its model says: a camera, and
        one without a real one. What is placed later in the same frame is there, too.

        Raises JudgeError as `of` does.
        """
        frame = model.frame_id if own is None else own.frame
        model = dataclasses.replace(model, frame_id=frame)
        start_ns = start_ns if own is None else int(own.stamp_ns[0])
        is_open = own is None or isinstance(model, CameraModel)
        if is_open and frame.strip('/') != self._base.strip('/') and frame not in self.frames:
            transform = _transform(model, self._base)
            self.frames.add(transform)
            return Placed(model, start_ns, transform)
        translation, rotation = self.of(frame)
        turn = () if isinstance(model, GpsModel) else (rotation,)
        return Placed(model.mounted(translation, *turn), start_ns)


def _transform(model: Any, base: str) -> StaticTransform:
    if isinstance(model, CameraModel):
        turn = model.optical_rotation()
    else:
        turn = mounting_quaternion(getattr(model, 'mounting_rpy', (0.0, 0.0, 0.0)))[0]
    qx, qy, qz, qw = turn.tolist()
    x, y, z = model.lever_arm
    return StaticTransform(base, model.frame_id, (x, y, z), (qx, qy, qz, qw))


def with_places(recording: Recording, placed: Iterable[Placed]) -> Recording:
    """Return a recording that says where simulated sensors are which are mounted as models say.

    One without any transform, whose sensors are taken to be at the base, then says so of them;
    where the new ones are at the base too, nothing is said.
    """
    own = {one.transform.child: one.transform for one in placed if one.transform is not None}
    plain = all(one == StaticTransform(one.parent, one.child) for one in own.values())
    if not own or (plain and not recording.transforms):
        return recording
    others: dict[str, StaticTransform] = {}
    if not recording.transforms:
        (base, *_) = {one.parent for one in own.values()}
        arrays = (recording.require(role) for role in _SENSORS if role in recording.roles)
        frames = {one.frame for one in arrays} - {base, *own}
        others = {frame: StaticTransform(base, frame) for frame in sorted(frames)}
    transforms = (*recording.transforms, *others.values(), *own.values())
    return dataclasses.replace(recording, transforms=transforms)


@dataclasses.dataclass(frozen=True)
class TwinSensors:
    """How the sensors of a twin are switched on: the same in a batch run and on a live graph."""

    # Sensors by kind that stand in for one of the recording: IMU, GPS, magnetometer.
    placed: Mapping[str, Placed]
    seed: int
    # Label of the random streams; those of the sensors are the defaults, the names of the kinds.
    run: str
    # Where the velocity of the motion comes from, twist or position, as decided from the whole
    # truth.
    velocity: str
    origin: LocalFrame  # where on the Earth the truth is


def with_camera(
    recording: Recording, placed: Placed, motion: Motion, world: World, **labels: Any
) -> Recording:
    """Return a recording with the features, camera info and poses of a simulated camera.

    `labels`: `seed`, `run` and `origin_ns` as of `with_topic`.
    """
    seen = camera.simulate(placed.model, motion, start_ns=placed.start_ns, world=world, **labels)
    frames = seen.features
    # Before the features, as camera_node publishes it: ties of arrival keep the order.
    info = CameraInfoArray.from_intrinsics(
        placed.model.intrinsics, frames.stamp_ns, frames.arrival_ns, frames.frame
    )
    recording = recording.with_messages('camera_info', info)
    recording = recording.with_messages('features', frames)
    if not len(frames.ids):
        unseen = NOTHING_SEEN(recording.roles['features'], count=len(frames))
        recording = dataclasses.replace(recording, notes=(*recording.notes, unseen))
    return recording.with_messages('camera_pose', seen.poses if len(seen.poses) else None)


def with_topic(
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
    """Return the recording with a sensor that has no role, in place of its own.

    A judge that asks for its topic takes it, such as wheel odometry and poses from tags.

    Raises Sim2RealError when the sensor cannot work in that world, or never measures anything.

    Parameters
    ----------
    model : Parameters
        Of that kind, mounted as it says.
    motion : Motion
        What is measured.
    world : World
        What surrounds the sensor.
    seed, run
        Labels of the random streams; see `sim_sensors.core.seeding.stream`.
    origin_ns : int
        Stamp of motion time 0, and of the first measurement.
    base_frame : str
        Frame of the body.
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
