# SPDX-License-Identifier: Apache-2.0
"""Pose of the robot from tags that a camera sees, made from the true pose.

Source: [FRC3176]: the frame comes from the true pose, the error and the
covariance that is stated of it from how far the tags are and how many. What a camera measures in
pixels is in `sim_sensors.camera.camera`; this is the pose that a vision system makes of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray, IntArray, PoseArray
from sim_sensors.core.parameters import (
    Parameters,
    VariedParameters,
    non_negative,
    parameter,
    positive,
)
from sim_sensors.core.registry import Registry
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import (
    Axes,
    axes,
    latency,
    lever_arm,
    mounting_quaternion,
    sample_rate,
    share,
)
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import Sensor, SensorModel
from . import view

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory
    from sim_sensors.world.world import World

# Of 1280 x 720 pixels with the focal lengths of [FRC3176], 879.07 and 879.15 pixels.
_FIELD_OF_VIEW = (1.2586, 0.7771)


@dataclasses.dataclass(frozen=True)
class VisionModel(SensorModel[PoseArray], VariedParameters):
    """A camera with a program that finds tags and tells where the robot is."""

    kind: ClassVar[str] = 'vision_pose'
    name: ClassVar[str] = 'vision'
    noun: ClassVar[str] = 'a vision pose'
    preset: ClassVar[str] = 'tags'
    topic: ClassVar[str] = 'vision/pose'
    message: ClassVar[str] = 'geometry_msgs/msg/PoseWithCovarianceStamped'
    node: ClassVar[str] = 'vision_node'
    world: ClassVar[str] = 'tag_ring'
    silence: ClassVar[str] = (
        'no tag is ever in view of the camera; must be another world, motion or camera'
    )
    varied: ClassVar[Mapping[str, Registry[Any]]] = {
        'noise': view.VISION_LAWS,
        'covariance': view.VISION_COVARIANCES,
    }

    rate: float = sample_rate(30.0, 'Frames per second.')
    frame_id: str = parameter('map', '', 'Frame of the poses.', read_only=True)
    lever_arm: Axes = lever_arm('camera', (0.0, 0.0, 0.5))
    mounting_rpy: Axes = axes(
        'rad',
        'Rotation of the camera in the body, whose x comes out of the lens: roll, pitch, yaw '
        'about fixed axes.',
    )
    field_of_view: tuple[float, float] = positive(
        _FIELD_OF_VIEW, 'rad', 'Across and up.', maximum=3.1
    )
    max_range: float = non_negative(
        10.0, 'm', 'Distance from which on tags are too small to be found.'
    )
    max_incidence: float = non_negative(
        1.3,
        'rad',
        'Angle between the normal of a tag and the line of sight from which on it is not found.',
        maximum=1.5708,
    )
    ambiguity: float = share(
        0.0, 'Share of poses from a single tag that are the wrong one of the two that fit it.'
    )
    latency: float = latency()
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    gate: view.Gate = dataclasses.field(default_factory=view.Gate)
    noise: view.VisionLaw = dataclasses.field(default_factory=view.TagDistance)
    covariance: Parameters = dataclasses.field(default_factory=view.AsDrawn)

    @property
    def reported_covariance(self) -> view.VisionLaw:
        """The law that is stated."""
        return self.covariance if isinstance(self.covariance, view.VisionLaw) else self.noise

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` takes from a world."""
        return {'world': world}

    def start(self, seed: int, run: str, sensor: str = 'vision', *, world: World) -> VisionSensor:
        """Switch the camera on where that world has its tags; see `SensorModel.start`.

        Raises
        ------
        SensorError
            When the world has no tags.
        """
        return VisionSensor(self, seed, run, sensor, world)

    def channel(self, seed: int, run: str, sensor: str) -> view.AcceptedPoseChannel:
        """Return what carries the messages of poses that are accepted."""
        return view.AcceptedPoseChannel(super().channel(seed, run, sensor))


class VisionSensor(Sensor[view.VisionMeasurement]):
    """A camera that is switched on. Made by `VisionModel.start`."""

    model: VisionModel
    channel: view.AcceptedPoseChannel

    def __init__(self, model: VisionModel, seed: int, run: str, sensor: str, world: World) -> None:
        tags = world.tags
        if not len(tags):
            raise SensorError('the world has no tags; a vision pose needs at least 1 to see')
        super().__init__(model, seed, run, sensor)
        self._corners = tags.corners()
        normals = Rotation.from_quat(tags.orientations).apply([0.0, 0.0, 1.0])
        self._faces = np.ascontiguousarray(np.hstack([tags.positions, normals]))
        self._limits = np.array(
            [
                math.tan(0.5 * model.field_of_view[0]),
                math.tan(0.5 * model.field_of_view[1]),
                model.max_range,
                math.cos(model.max_incidence),
            ]
        )
        self._mounting = mounting_quaternion(model.mounting_rpy)
        self._gate = model.gate.start()
        self._noise = stream(seed, run, sensor, 'vision_noise')
        self._flips = stream(seed, run, sensor, 'vision_ambiguity')

    def _measure(self, truth: Trajectory, dt: FloatArray) -> view.VisionMeasurement:
        model = self.model
        count, distance, last = self._seen(truth)
        some, far = np.maximum(count, 1), np.where(count > 0, distance, 1.0)
        sees = (count > 0)[:, None]
        normals = self._noise.standard_normal((len(truth), 6))
        deviations = np.repeat(model.noise.deviations(far, some), 3, axis=1)
        error = np.where(sees, normals * deviations, 0.0)
        flipped = (self._flips.random(len(truth)) < model.ambiguity) & (count == 1)
        position, orientation = self._turned(truth, flipped, last)
        position = position + error[:, :3]
        orientation = rotations.multiply(rotations.exp(error[:, 3:]), orientation)
        stated = np.repeat(model.reported_covariance.deviations(far, some), 3, axis=1)
        covariance = np.zeros((len(truth), 6, 6))
        covariance[:, range(6), range(6)] = np.where(sees, stated * stated, 0.0)
        accepted = self._gate.accepted(truth.time, position, distance, count)
        self.channel.expect(accepted)
        return view.VisionMeasurement(
            position=position,
            orientation=orientation,
            pose_covariance=covariance,
            distance=distance,
            count=count,
            accepted=accepted,
            flipped=flipped,
            true_position=truth.position,
            true_orientation=truth.orientation,
        )

    def _seen(self, truth: Trajectory) -> tuple[IntArray, FloatArray, IntArray]:
        camera = truth.at_lever_arm(self.model.lever_arm).position
        mounting = np.broadcast_to(self._mounting, (len(truth), 4))
        turn = rotations.multiply(truth.orientation, mounting)
        axes = [
            rotations.rotate(turn, np.broadcast_to(axis, (len(truth), 3))) for axis in np.eye(3)
        ]
        matrix = np.ascontiguousarray(np.stack(axes, axis=2))
        return view.tags_in_view(camera, matrix, self._corners, self._faces, self._limits)

    def _turned(
        self, truth: Trajectory, flipped: view.BoolArray, last: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the poses, the wrong ones of two where they are flipped.

        To the camera a tag may as well be tilted to the other side of the line of sight. As the
        tag is known not to be, all else is turned about it instead: by twice the angle between
        its normal n and the line of sight v, from v to n.
        """
        position, orientation = truth.position, truth.orientation
        if not flipped.any():
            return position, orientation
        camera = truth.at_lever_arm(self.model.lever_arm).position
        rows = np.flatnonzero(flipped)
        centre, normal = self._faces[last[rows], :3], self._faces[last[rows], 3:]
        sight = camera[rows] - centre
        axis = rotations.cross(sight, normal)
        sine = np.sqrt(axis[:, 0] ** 2 + axis[:, 1] ** 2 + axis[:, 2] ** 2)
        cosine = sight[:, 0] * normal[:, 0] + sight[:, 1] * normal[:, 1]
        cosine = cosine + sight[:, 2] * normal[:, 2]
        angle = 2.0 * np.arctan2(sine, cosine)
        # A tag that is seen from straight ahead has no second pose.
        turn = rotations.exp(axis * (angle / np.maximum(sine, 1e-300))[:, None])
        position, orientation = position.copy(), orientation.copy()
        position[rows] = centre + rotations.rotate(turn, position[rows] - centre)
        orientation[rows] = rotations.multiply(turn, orientation[rows])
        return position, orientation


load_vision, simulate = VisionModel.load, VisionModel.simulate
