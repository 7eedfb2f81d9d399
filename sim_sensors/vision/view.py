# SPDX-License-Identifier: Apache-2.0
"""What a vision system makes of tags: which it sees, how far off its pose is, which it accepts.

The error and what is stated of it go by the distance of the tags and their number. Source:
[FRC3176], whose text says only that it depends on both; its team's code of the
year after has the numbers of `frc_2024`.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray, IntArray, PoseArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, variants
from sim_sensors.core.registry import Registry
from sim_sensors.core.shared_parameters import Upstream
from sim_sensors.sensor.delivery import Channel
from sim_sensors.sensor.sensor import Measurement

BoolArray = NDArray[np.bool_]


class VisionLaw(Parameters, abc.ABC):
    """Standard deviations of a pose from tags."""

    @abc.abstractmethod
    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return those of each coordinate, m, and of the rotation about each axis, rad, `(n, 2)`.

        `count` `(n,)` tags are in view, at least one, at the mean `distance` `(n,)` m.
        """


@dataclasses.dataclass(frozen=True)
class TagDistance(VisionLaw):
    """Standard deviation k d^a / n^b: d is the mean distance of the tags, n their number.

    a = 2 for the angular size of a tag; b = 1/2 if tags err independently. Position and heading
    each have their own k.
    """

    kind: ClassVar[str] = 'tag_distance'

    position: float = non_negative(
        0.01, 'm', 'Standard deviation of a coordinate, one tag 1 m away.'
    )
    heading: float = non_negative(
        0.01, 'rad', 'Standard deviation of the rotation about an axis, one tag 1 m away.',
    )  # fmt: skip
    distance_power: float = non_negative(2.0, '1', 'a: power of the distance.', maximum=10.0)
    count_power: float = non_negative(
        0.5, '1', 'b: power of the number of tags; 0.5: they err independently.', maximum=10.0
    )

    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return k d^a / n^b for both k."""
        growth = distance**self.distance_power / count.astype(np.float64) ** self.count_power
        return np.column_stack([self.position * growth, self.heading * growth])


@dataclasses.dataclass(frozen=True)
class Frc2024(Upstream, VisionLaw):
    """The numbers of Team 3176's code of 2024.

    Several tags: max((0.4 d)^2, 0.7) for the position and 0.9 for the heading. One tag: (1.2 d)^2
    and 100. `exact` takes them as the variances that they look like, m^2 and rad^2. `as_upstream`
    takes them as standard deviations, because the code hands them to WPILib, which does.
    """

    kind: ClassVar[str] = 'frc_2024'

    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return the numbers, or their roots."""
        several = count > 1
        near = 0.4 * distance
        far = 1.2 * distance
        position = np.where(several, np.maximum(near * near, 0.7), far * far)
        found = np.column_stack([position, np.where(several, 0.9, 100.0)])
        return np.sqrt(found) if self.is_exact else found


@dataclasses.dataclass(frozen=True)
class AsDrawn(Parameters):
    """What is stated is what the error was drawn with."""

    kind: ClassVar[str] = 'as_drawn'


VISION_LAWS = variants('a law of the errors of poses', VisionLaw)
VISION_COVARIANCES: Registry[type[Parameters]] = variants(
    'a covariance of poses', AsDrawn, VisionLaw
)


@dataclasses.dataclass(frozen=True)
class Gate(Parameters):
    """Refuses poses that are probably wrong; the defaults are Team 3176's [FRC3176].

    Theirs compares a jump with the estimate of the robot, which a sensor does not have. This one
    compares it with the newest accepted pose, plus the distance that the robot can have gone
    since.
    """

    enabled: bool = parameter(True, '', 'False: every pose is accepted.')
    single_tag_only: bool = parameter(
        True, '', 'True: poses from several tags are accepted whatever they say.'
    )
    max_height: float = non_negative(1.0, 'm', 'Largest |z| of the body; 0: any.')
    max_distance: float = non_negative(7.0, 'm', 'Largest mean distance of the tags; 0: any.')
    max_jump: float = non_negative(
        1.0, 'm', 'Largest jump from the newest pose that was accepted; 0: any.'
    )
    top_speed: float = non_negative(
        5.0, 'm/s', 'Speed of the robot, by which the allowed jump grows with time.'
    )

    def start(self) -> GateState:
        """Return a gate that has seen nothing."""
        return GateState(self)


class GateState:
    """A gate as poses come; it remembers the newest that it accepted."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._newest: tuple[float, FloatArray] | None = None

    def accepted(
        self, times: FloatArray, position: FloatArray, distance: FloatArray, count: IntArray
    ) -> BoolArray:
        """Return which of the next poses are accepted, `(n,)`.

        At times `(n,)` s they are measured at `position` `(n, 3)` m, from `count` tags in view, of
        the mean `distance` `(n,)` m; 0 tags: there is no pose.
        """
        gate = self._gate
        found = count > 0
        if not gate.enabled:
            return found
        asked = count == 1 if gate.single_tag_only else found
        if gate.max_height > 0.0:
            found &= ~asked | (np.abs(position[:, 2]) <= gate.max_height)
        if gate.max_distance > 0.0:
            found &= ~asked | (distance <= gate.max_distance)
        if gate.max_jump > 0.0:
            for k in np.flatnonzero(found):
                found[k] = not asked[k] or self._is_near(float(times[k]), position[k])
                if found[k]:
                    self._newest = float(times[k]), position[k].copy()
        return found

    def _is_near(self, time: float, position: FloatArray) -> bool:
        if self._newest is None:
            return True
        then, place = self._newest
        step = position - place
        jump = float(np.sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]))
        return jump <= self._gate.max_jump + self._gate.top_speed * (time - then)


# What a vision system tells of its pose, and the channel that leaves out what is not
# accepted.


@dataclasses.dataclass(frozen=True, eq=False)
class VisionMeasurement(Measurement[PoseArray]):
    """Poses from tags, those included that are not accepted."""

    message: ClassVar[type[PoseArray]] = PoseArray

    position: FloatArray  # (n, 3) of the body, m, world
    orientation: FloatArray  # (n, 4) quaternion x y z w, body to world
    # (n, 6, 6) As stated: x y z in m^2, rotation about the world's axes in rad^2
    pose_covariance: FloatArray
    # (n,) Mean distance of the camera to the tags in view, m; 0 where there is none
    distance: FloatArray
    count: IntArray  # (n,) tags in view; 0: there is no pose, and the row holds the true one
    accepted: BoolArray  # (n,) whether the pose is sent
    flipped: BoolArray  # (n,) whether it is the wrong one of the two that fit a single tag
    # (n, 3), (n, 4) What there was to measure
    true_position: FloatArray
    true_orientation: FloatArray


class AcceptedPoseChannel(Channel):
    """A channel into which only accepted poses are sent; `channel` carries them."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._accepted_poses: BoolArray = np.zeros(0, dtype=np.bool_)

    def expect(self, accepted: BoolArray) -> None:
        """Say which of the next messages offered are accepted, `(n,)`."""
        self._accepted_poses = np.concatenate([self._accepted_poses, accepted])

    def send(self, stamp_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Send those of the next messages that are accepted; see `Channel.send`."""
        n = len(stamp_ns)
        offered = np.flatnonzero(self._accepted_poses[:n])
        self._accepted_poses = self._accepted_poses[n:]
        kept, arrival_ns = self._channel.send(stamp_ns[offered])
        return offered[kept], arrival_ns


@compiled
def tags_in_view(
    camera: FloatArray,
    turn: FloatArray,
    corners: FloatArray,
    faces: FloatArray,
    limits: FloatArray,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return how many tags are in view, `(n,)`, their mean distance in m, 0 where there is none,
    and the row of the last of them, -1 where there is none.

    A tag is in view when its four corners are in the picture, its centre is near enough, and its
    face is turned to the camera. Nothing hides anything.

    `camera` `(n, 3)` are positions, m, world, and `turn` `(n, 3, 3)` rotation matrices, camera to
    world; x out of the lens, y left, z up in the picture. `corners` `(m, 4, 3)` m and `faces` `(m,
    6)`, centre and unit vector out of the face, are in the world. `limits` are tangents of half
    the fields of view, across and up; greatest distance, m; cosine of the greatest angle between
    the face's normal and the line of sight.
    """
    n = len(camera)
    count, last = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    distance = np.zeros(n)
    for k in range(n):
        for tag in range(len(corners)):
            x = camera[k, 0] - faces[tag, 0]
            y = camera[k, 1] - faces[tag, 1]
            z = camera[k, 2] - faces[tag, 2]
            away = math.sqrt(x * x + y * y + z * z)
            if away > limits[2] or away == 0.0:
                continue
            facing = (x * faces[tag, 3] + y * faces[tag, 4] + z * faces[tag, 5]) / away
            if facing < limits[3] or facing <= 0.0:
                continue
            seen = True
            for corner in range(4):
                dx = corners[tag, corner, 0] - camera[k, 0]
                dy = corners[tag, corner, 1] - camera[k, 1]
                dz = corners[tag, corner, 2] - camera[k, 2]
                ahead = turn[k, 0, 0] * dx + turn[k, 1, 0] * dy + turn[k, 2, 0] * dz
                left = turn[k, 0, 1] * dx + turn[k, 1, 1] * dy + turn[k, 2, 1] * dz
                up = turn[k, 0, 2] * dx + turn[k, 1, 2] * dy + turn[k, 2, 2] * dz
                inside = abs(left) <= ahead * limits[0] and abs(up) <= ahead * limits[1]
                seen = seen and ahead > 0.0 and inside
            if seen:
                count[k] += 1
                distance[k] += away
                last[k] = tag
        if count[k]:
            distance[k] /= count[k]
    return count, distance, last
