# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Pose of the robot from tags: the true pose with an error that depends on the visible tags.

Source: [FRC3176]. Error and stated covariance depend on the distance and the number of the tags.
The model in `sim_sensors.camera.camera` simulates pixels and estimates the pose from them.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core import rotations
from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray, IntArray, PoseArray
from sim_sensors.core.parameters import (
    Parameters,
    VariedParameters,
    non_negative,
    parameter,
    positive,
    variants,
)
from sim_sensors.core.registry import Registry
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import (
    Axes,
    Upstream,
    axes,
    latency,
    lever_arm,
    mounting_quaternion,
    sample_rate,
    share,
)
from sim_sensors.sensor.delivery import Channel, Delivery
from sim_sensors.sensor.sensor import Measurement, Sensor, SensorModel
from sim_sensors.sensor.sensor import simulate as simulate

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory
    from sim_sensors.world.world import World

BoolArray = NDArray[np.bool_]


class VisionLaw(Parameters, abc.ABC):
    """Base of the models of the standard deviations of a pose from tags."""

    @abc.abstractmethod
    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return the deviations of position and rotation per axis, `(n, 2)`, m and rad.

        `count` `(n,)` is the number of tags in view, >= 1; `distance` `(n,)` m is the mean
        distance to them.
        """


@dataclasses.dataclass(frozen=True)
class TagDistance(VisionLaw):
    """Standard deviation k d^a / n^b for n tags at a mean distance of d m.

    a = 2 follows from the angular size of a tag, b = 1/2 from independent errors of the tags.
    Position and heading each have their own k.
    """

    kind: ClassVar[str] = 'tag_distance'

    position: float = non_negative(
        0.01, 'm', 'Standard deviation of a coordinate for one tag at a distance of 1 m.'
    )
    heading: float = non_negative(
        0.01, 'rad', 'Standard deviation of the rotation about an axis for one tag 1 m away.'
    )
    distance_power: float = non_negative(2.0, '1', 'Exponent a of the distance.', maximum=10.0)
    count_power: float = non_negative(
        0.5, '1', 'Exponent b of the number of tags; 0.5: independent errors.', maximum=10.0
    )

    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return k d^a / n^b for both k."""
        growth = distance**self.distance_power / count.astype(np.float64) ** self.count_power
        return np.column_stack([self.position * growth, self.heading * growth])


@dataclasses.dataclass(frozen=True)
class Frc2024(Upstream, VisionLaw):
    """Standard deviations in the 2024 code of Team 3176.

    Several tags: max((0.4 d)^2, 0.7) for the position and 0.9 for the heading. One tag: (1.2 d)^2
    and 100. `exact` interprets them as variances, m^2 and rad^2. `as_upstream` interprets them as
    standard deviations, as WPILib does, to which the code passes them.
    """

    kind: ClassVar[str] = 'frc_2024'

    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return the numbers as standard deviations, or their roots if `exact`."""
        has_several = count > 1
        near = 0.4 * distance
        far = 1.2 * distance
        position = np.where(has_several, np.maximum(near * near, 0.7), far * far)
        numbers = np.column_stack([position, np.where(has_several, 0.9, 100.0)])
        return np.sqrt(numbers) if self.is_exact else numbers


@dataclasses.dataclass(frozen=True)
class AsDrawn(Parameters):
    """Stated covariance equal to that of the error."""

    kind: ClassVar[str] = 'as_drawn'


VISION_LAWS = variants('a law of the errors of poses', VisionLaw)
VISION_COVARIANCES: Registry[type[Parameters]] = variants(
    'a covariance of poses', AsDrawn, VisionLaw
)


@dataclasses.dataclass(frozen=True)
class Gate(Parameters):
    """Rejection of poses that are probably wrong; the defaults are those of Team 3176 [FRC3176].

    Team 3176 measures a jump from the estimated pose of the robot, which a sensor does not know.
    Here it is measured from the latest accepted pose, and may be longer by the distance that the
    robot can have driven since.
    """

    enabled: bool = parameter(
        True, '', 'Whether the gate is applied; false: all poses are accepted.'
    )
    single_tag_only: bool = parameter(
        True, '', 'Whether poses from several tags are always accepted.'
    )
    max_height: float = non_negative(1.0, 'm', 'Largest |z| of the body; 0: no limit.')
    max_distance: float = non_negative(7.0, 'm', 'Largest mean distance of the tags; 0: no limit.')
    max_jump: float = non_negative(
        1.0, 'm', 'Largest distance from the latest accepted pose; 0: no limit.'
    )
    top_speed: float = non_negative(
        5.0, 'm/s', 'Largest speed of the robot; the allowed distance grows with it over time.'
    )

    def start(self) -> GateState:
        """Return the gate of one sensor."""
        return GateState(self)


class GateState:
    """Gate of one sensor, which keeps the latest accepted pose."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._latest: tuple[float, FloatArray] | None = None

    def accept(
        self, times: FloatArray, position: FloatArray, distance: FloatArray, count: IntArray
    ) -> BoolArray:
        """Return which of the next poses are accepted, `(n,)`.

        `times` `(n,)` s and `position` `(n, 3)` m are those of the poses, `count` `(n,)` the
        number of tags in view (0: no pose) and `distance` `(n,)` m the mean distance to them.
        """
        gate = self._gate
        is_accepted = count > 0
        if not gate.enabled:
            return is_accepted
        is_tested = count == 1 if gate.single_tag_only else count > 0
        if gate.max_height > 0.0:
            is_accepted &= ~is_tested | (np.abs(position[:, 2]) <= gate.max_height)
        if gate.max_distance > 0.0:
            is_accepted &= ~is_tested | (distance <= gate.max_distance)
        if gate.max_jump > 0.0:
            for k in np.flatnonzero(is_accepted):
                is_accepted[k] = not is_tested[k] or self._is_near(float(times[k]), position[k])
                if is_accepted[k]:
                    self._latest = float(times[k]), position[k].copy()
        return is_accepted

    def _is_near(self, time: float, position: FloatArray) -> bool:
        if self._latest is None:
            return True
        latest_time, latest_position = self._latest
        step = position - latest_position
        jump = float(np.sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]))
        return jump <= self._gate.max_jump + self._gate.top_speed * (time - latest_time)


@dataclasses.dataclass(frozen=True, eq=False)
class VisionMeasurement(Measurement[PoseArray]):
    """Poses from tags, accepted or not."""

    message: ClassVar[type[PoseArray]] = PoseArray

    position: FloatArray  # (n, 3) of the body, m, world
    orientation: FloatArray  # (n, 4) quaternion x y z w, body to world
    # Stated covariance, (n, 6, 6): x y z in m^2, rotation about the world's axes in rad^2.
    pose_covariance: FloatArray
    # Mean distance of the camera to the tags in view, (n,) m; 0 without tags.
    distance: FloatArray
    count: IntArray  # (n,) number of tags in view; 0: no pose, the row holds the true one
    accepted: BoolArray  # (n,) True if the pose is sent
    flipped: BoolArray  # (n,) True for the wrong one of the two poses that fit a single tag
    true_position: FloatArray  # (n, 3)
    true_orientation: FloatArray  # (n, 4)


class AcceptedPoseChannel(Channel):
    """Channel that sends only accepted poses, through the underlying `channel`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._accepted_poses: BoolArray = np.zeros(0, dtype=np.bool_)

    def expect(self, accepted: BoolArray) -> None:
        """Queue which of the next messages are accepted, `(n,)`."""
        self._accepted_poses = np.concatenate([self._accepted_poses, accepted])

    def send(self, stamp_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Send those of the next messages that are accepted; see `Channel.send`."""
        n = len(stamp_ns)
        sent = np.flatnonzero(self._accepted_poses[:n])
        self._accepted_poses = self._accepted_poses[n:]
        arrived, arrival_ns = self._channel.send(stamp_ns[sent])
        return sent[arrived], arrival_ns


@compiled
def tags_in_view(
    camera: FloatArray,
    rotation: FloatArray,
    corners: FloatArray,
    faces: FloatArray,
    limits: FloatArray,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Find the tags in view of a camera.

    A tag is in view if its four corners are in the image, its centre is near enough, and its face
    is turned to the camera. Tags do not hide each other.

    Parameters
    ----------
    camera : (n, 3)
        Positions of the camera in the world, m.
    rotation : (n, 3, 3)
        Rotation matrices, camera to world; x forward, y left, z up in the image.
    corners : (m, 4, 3)
        Corners of the tags in the world, m.
    faces : (m, 6)
        Centre, m, and unit normal of the face of each tag, in the world.
    limits : (4,)
        Tangents of half the horizontal and vertical fields of view; largest distance, m; cosine of
        the largest angle between the normal of the face and the line of sight.

    Returns
    -------
    count : (n,) int
        Number of tags in view.
    distance : (n,)
        Their mean distance, m; 0 without tags.
    last : (n,) int
        Index of the last tag in view; -1 without tags.
    """
    n = len(camera)
    count, last = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    distance = np.zeros(n)
    for k in range(n):
        for tag in range(len(corners)):
            x = camera[k, 0] - faces[tag, 0]
            y = camera[k, 1] - faces[tag, 1]
            z = camera[k, 2] - faces[tag, 2]
            range_to_tag = math.sqrt(x * x + y * y + z * z)
            if range_to_tag > limits[2] or range_to_tag == 0.0:
                continue
            facing = (x * faces[tag, 3] + y * faces[tag, 4] + z * faces[tag, 5]) / range_to_tag
            if facing < limits[3] or facing <= 0.0:
                continue
            is_in_view = True
            for corner in range(4):
                dx = corners[tag, corner, 0] - camera[k, 0]
                dy = corners[tag, corner, 1] - camera[k, 1]
                dz = corners[tag, corner, 2] - camera[k, 2]
                ahead = rotation[k, 0, 0] * dx + rotation[k, 1, 0] * dy + rotation[k, 2, 0] * dz
                left = rotation[k, 0, 1] * dx + rotation[k, 1, 1] * dy + rotation[k, 2, 1] * dz
                up = rotation[k, 0, 2] * dx + rotation[k, 1, 2] * dy + rotation[k, 2, 2] * dz
                inside = abs(left) <= ahead * limits[0] and abs(up) <= ahead * limits[1]
                is_in_view = is_in_view and ahead > 0.0 and inside
            if is_in_view:
                count[k] += 1
                distance[k] += range_to_tag
                last[k] = tag
        if count[k]:
            distance[k] /= count[k]
    return count, distance, last


# Fields of view, rad, of 1280 x 720 px with the focal lengths of [FRC3176], 879.07 and 879.15 px.
_FIELD_OF_VIEW = (1.2586, 0.7771)


@dataclasses.dataclass(frozen=True)
class VisionModel(SensorModel[PoseArray], VariedParameters):
    """Camera and software that estimate the pose of the robot from tags."""

    kind: ClassVar[str] = 'vision_pose'
    name: ClassVar[str] = 'vision'
    noun: ClassVar[str] = 'a vision pose'
    preset: ClassVar[str] = 'tags'
    topic: ClassVar[str] = 'vision/pose'
    message: ClassVar[str] = 'geometry_msgs/msg/PoseWithCovarianceStamped'
    node: ClassVar[str] = 'vision_node'
    world: ClassVar[str] = 'tag_ring'
    silence: ClassVar[str] = (
        'no tag is ever in view of the camera; use another world, motion or camera'
    )
    varied: ClassVar[Mapping[str, Registry[Any]]] = {
        'noise': VISION_LAWS,
        'covariance': VISION_COVARIANCES,
    }

    rate: float = sample_rate(30.0, 'Frames per second.')
    frame_id: str = parameter('map', '', 'Frame of the poses.', read_only=True)
    lever_arm: Axes = lever_arm('camera', (0.0, 0.0, 0.5))
    mounting_rpy: Axes = axes(
        'rad',
        'Rotation of the camera in the body (its x axis points out of the lens): roll, '
        'pitch, yaw about fixed axes.',
    )
    field_of_view: tuple[float, float] = positive(
        _FIELD_OF_VIEW, 'rad', 'Horizontal and vertical field of view.', maximum=3.1
    )
    max_range: float = non_negative(10.0, 'm', 'Largest distance at which a tag is detected.')
    max_incidence: float = non_negative(
        1.3,
        'rad',
        'Largest angle between the normal of a tag and the line of sight at which the tag '
        'is detected.',
        maximum=1.5708,
    )
    ambiguity: float = share(
        0.0, 'Share of single-tag poses that are the wrong one of the two solutions.'
    )
    latency: float = latency()
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    gate: Gate = dataclasses.field(default_factory=Gate)
    noise: VisionLaw = dataclasses.field(default_factory=TagDistance)
    covariance: Parameters = dataclasses.field(default_factory=AsDrawn)

    @property
    def reported_covariance(self) -> VisionLaw:
        """Model of the stated standard deviations."""
        return self.covariance if isinstance(self.covariance, VisionLaw) else self.noise

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` takes from a world."""
        return {'world': world}

    def start(self, seed: int, run: str, sensor: str = 'vision', *, world: World) -> VisionSensor:
        """Switch the camera on in a world with tags; see `SensorModel.start`.

        Raises
        ------
        SensorError
            When the world has no tags.
        """
        return VisionSensor(self, seed, run, sensor, world)

    def channel(self, seed: int, run: str, sensor: str) -> AcceptedPoseChannel:
        """Return the channel of one sensor, which carries accepted poses."""
        return AcceptedPoseChannel(super().channel(seed, run, sensor))


class VisionSensor(Sensor[VisionMeasurement]):
    """Running camera: a model and its state. Made by `VisionModel.start`."""

    model: VisionModel
    channel: AcceptedPoseChannel

    def __init__(self, model: VisionModel, seed: int, run: str, sensor: str, world: World) -> None:
        from scipy.spatial.transform import Rotation

        tags = world.tags
        if not len(tags):
            raise SensorError(
                'the world has no tags; a vision pose needs a world with at least 1 tag'
            )
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

    def _measure(self, truth: Trajectory, dt: FloatArray) -> VisionMeasurement:
        model = self.model
        count, distance, last = self._find_tags(truth)
        # Rows without tags are computed for one tag at 1 m; the result is not used.
        safe_count, safe_distance = np.maximum(count, 1), np.where(count > 0, distance, 1.0)
        has_tags = (count > 0)[:, None]
        normals = self._noise.standard_normal((len(truth), 6))
        deviations = np.repeat(model.noise.deviations(safe_distance, safe_count), 3, axis=1)
        error = np.where(has_tags, normals * deviations, 0.0)
        flipped = (self._flips.random(len(truth)) < model.ambiguity) & (count == 1)
        position, orientation = self._flip_poses(truth, flipped, last)
        position = position + error[:, :3]
        orientation = rotations.multiply(rotations.exp(error[:, 3:]), orientation)
        stated = np.repeat(
            model.reported_covariance.deviations(safe_distance, safe_count), 3, axis=1
        )
        covariance = np.zeros((len(truth), 6, 6))
        covariance[:, range(6), range(6)] = np.where(has_tags, stated * stated, 0.0)
        accepted = self._gate.accept(truth.time, position, distance, count)
        self.channel.expect(accepted)
        return VisionMeasurement(
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

    def _find_tags(self, truth: Trajectory) -> tuple[IntArray, FloatArray, IntArray]:
        camera = truth.at_lever_arm(self.model.lever_arm).position
        mounting = np.broadcast_to(self._mounting, (len(truth), 4))
        attitude = rotations.multiply(truth.orientation, mounting)
        axes = [
            rotations.rotate(attitude, np.broadcast_to(axis, (len(truth), 3)))
            for axis in np.eye(3)
        ]
        matrix = np.ascontiguousarray(np.stack(axes, axis=2))
        return tags_in_view(camera, matrix, self._corners, self._faces, self._limits)

    def _flip_poses(
        self, truth: Trajectory, flipped: BoolArray, last: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the poses; rows in `flipped` get the wrong one of the two that fit the tag.

        The image of a tag is nearly the same if the tag is tilted the opposite way. Since the pose
        of the tag is known, the camera is rotated about the tag instead, from the line of sight v
        to the normal n of the tag and by the same angle beyond it.
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
        # A tag seen along its normal has no second pose.
        turn = rotations.exp(axis * (angle / np.maximum(sine, 1e-300))[:, None])
        position, orientation = position.copy(), orientation.copy()
        position[rows] = centre + rotations.rotate(turn, position[rows] - centre)
        orientation[rows] = rotations.multiply(turn, orientation[rows])
        return position, orientation


load_vision = VisionModel.load
