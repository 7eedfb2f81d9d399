# SPDX-License-Identifier: Apache-2.0
"""Where the sensors of a robot are, and where simulated ones are put on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from scipy.spatial.transform import Rotation

from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording, StaticTransform
from sim_sensors.camera.camera import CameraModel
from sim_sensors.core.measurements import FloatArray, MessageArray
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.gps.gps import GpsModel

_SENSORS = (*IDEAL_ROLES, *IDEAL_ROLES.values())


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
