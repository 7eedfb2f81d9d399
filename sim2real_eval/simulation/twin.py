# SPDX-License-Identifier: Apache-2.0
"""Which sensors the simulated twin of a recording has, and how they are switched on."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

from scipy.spatial.transform import Rotation

from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.simulation.findings import NOTHING_SEEN
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.camera_info import CameraInfoArray
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.world import World

if TYPE_CHECKING:
    from sim_sensors.camera.camera import CameraModel
    from sim_sensors.gps.gps import GpsModel
    from sim_sensors.imu.imu import ImuModel
    from sim_sensors.magnetometer.magnetometer import Magnetometer
    from sim_sensors.vision.vision_pose import VisionModel
    from sim_sensors.wheels.wheel_odometry import WheelOdometryModel
    from sim_sensors.world.geodesy import LocalFrame


__all__ = ['REAL_SENSOR', 'Placed', 'Twin', 'TwinSensors', 'with_camera']

S = TypeVar('S', 'ImuModel', 'GpsModel', 'Magnetometer')

REAL_SENSOR = 'real'
"""Stands for a recording's own sensor where a model could be named."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """Which sensors a twin has.

    Attributes
    ----------
    label : str
        Name in tables and files.
    gps : GpsModel or None
        None: the recording's own fixes stay.
    imu : ImuModel or None
        None: the recording's own IMU stays.
    mag : Magnetometer or None
        None: the recording's own magnetometer stays, if it has one.
    camera : CameraModel or None
        None: the recording's own features and poses stay, if it has any.
    wheels : WheelOdometryModel or None
        None: the recording's own wheel odometry stays, if it has one.
    vision : VisionModel or None
        None: the recording's own poses stay, if it has some.
    """

    label: str
    gps: GpsModel | None
    imu: ImuModel | None
    mag: Magnetometer | None = None
    camera: CameraModel | None = None
    wheels: WheelOdometryModel | None = None
    vision: VisionModel | None = None


@dataclasses.dataclass(frozen=True)
class Placed(Generic[S]):
    """A simulated sensor on the robot.

    Attributes
    ----------
    model : ImuModel, GpsModel or Magnetometer
        With mounting and frame of the messages.
    start_ns : int
        First stamp.
    """

    model: S
    start_ns: int


@dataclasses.dataclass(frozen=True)
class TwinSensors:
    """How the sensors of a twin are switched on: the same in a batch run and on a live graph.

    Attributes
    ----------
    imu : Placed of ImuModel, or None
        None: the recording's own IMU stays.
    gps : Placed of GpsModel, or None
        None: the recording's own fixes stay.
    seed : int
    run : str
        Label of the random streams; those of the sensors are the defaults, `imu`, `gps`, `mag`.
    velocity : {'twist', 'position'}
        Where the velocity of the motion comes from, as decided from the whole truth.
    origin : LocalFrame
        Where on the Earth the truth is.
    mag : Placed of Magnetometer, or None
        None: the recording's own magnetometer stays, if it has one.
    """

    imu: Placed[ImuModel] | None
    gps: Placed[GpsModel] | None
    seed: int
    run: str
    velocity: str
    origin: LocalFrame
    mag: Placed[Magnetometer] | None = None


# -------- A simulated camera in a recording: feature tracks, its numbers, poses, and its
# mounting.


def with_camera(
    recording: Recording,
    model: CameraModel,
    motion: Motion,
    world: World,
    *,
    seed: int,
    run: str,
    origin_ns: int,
    base_frame: str,
) -> Recording:
    """Return a recording with the features, camera info and poses of a simulated camera.

    It is mounted as the static transform of its frame says. Where there is none it is as the model
    says, and the recording gets that transform. A recording without any transform, whose sensors
    are taken to be at the base, then says so of them.

    Parameters
    ----------
    recording : Recording
        What the rest of is kept; its own features say frame and first stamp, where it has any.
    model : CameraModel
        What sees.
    motion : Motion
        Of the base.
    world : World
        What is seen.
    seed, run
        Labels of the random streams.
    origin_ns : int
        Stamp of motion time 0.
    base_frame : str
        Of the body that moves.
    """
    own = recording.features
    frame = model.frame_id if own is None else own.frame
    model = dataclasses.replace(model, frame_id=frame)
    if any(transform.child.strip('/') == frame.strip('/') for transform in recording.transforms):
        tree = FrameTree(recording.transforms)
        rotation, translation = tree.lookup(base_frame, frame, 'simulated camera')
        model = model.mounted(translation, Rotation.from_matrix(rotation).as_quat())
    else:
        recording = _mounted(recording, model, base_frame)
    seen = camera.simulate(
        model,
        motion,
        seed=seed,
        run=run,
        start_ns=origin_ns if own is None else int(own.stamp_ns[0]),
        origin_ns=origin_ns,
        world=world,
    )
    frames = seen.features
    # Before the features, as camera_node publishes it: ties of arrival keep the order of topics.
    info = CameraInfoArray.of(model.intrinsics, frames.stamp_ns, frames.arrival_ns, frames.frame)
    recording = recording.with_messages('camera_info', info)
    recording = recording.with_messages('features', frames)
    if not len(seen.features.ids):
        unseen = NOTHING_SEEN(recording.roles['features'], count=len(seen.features))
        recording = dataclasses.replace(recording, notes=(*recording.notes, unseen))
    return recording.with_messages('camera_pose', seen.poses if len(seen.poses) else None)


def _mounted(recording: Recording, model: CameraModel, base_frame: str) -> Recording:
    x, y, z = model.lever_arm
    qx, qy, qz, qw = model.optical_rotation().tolist()
    own = StaticTransform(base_frame, model.frame_id, (x, y, z), (qx, qy, qz, qw))
    others = {}
    if not recording.transforms:
        arrays = (recording.imu, recording.gps, recording.mag)
        frames = [array.frame for array in arrays if array is not None]
        others = {frame: StaticTransform(base_frame, frame) for frame in frames}
        others.pop(base_frame, None)
    return dataclasses.replace(
        recording, transforms=(*recording.transforms, *others.values(), own)
    )
