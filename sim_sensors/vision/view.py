# SPDX-License-Identifier: Apache-2.0
"""How far off a pose from tags is, by their distance and number, and what is stated of it.

Source: [FRC3176], whose text says only that it depends on both; its team's code of the
year after has the numbers of `frc_2024`.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameters, parameter, variants
from sim_sensors.core.registry import Registry
from sim_sensors.core.shared_parameters import Upstream


class VisionLaw(Parameters, abc.ABC):
    """Standard deviations of a pose from tags."""

    @abc.abstractmethod
    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return those of each coordinate, m, and of the rotation about each axis, rad, `(n, 2)`.

        Parameters
        ----------
        distance : (n,)
            Mean distance of the camera to the tags in view, m.
        count : (n,)
            Tags in view, at least one.
        """


@dataclasses.dataclass(frozen=True)
class TagDistance(VisionLaw):
    """k d^a / n^b, of position and of heading, d the mean distance and n the number of tags."""

    kind: ClassVar[str] = 'tag_distance'

    position: float = parameter(
        0.01, 'm', 'Standard deviation of a coordinate, one tag 1 m away.', minimum=0.0
    )
    heading: float = parameter(
        0.01, 'rad', 'Standard deviation of the rotation about an axis, one tag 1 m away.',
        minimum=0.0,
    )  # fmt: skip
    distance_power: float = parameter(2.0, '1', 'a: power of the distance.', minimum=0.0)
    count_power: float = parameter(
        0.5, '1', 'b: power of the number of tags; 0.5: they err independently.', minimum=0.0
    )

    def deviations(self, distance: FloatArray, count: IntArray) -> FloatArray:
        """Return k d^a / n^b for both k."""
        growth = distance**self.distance_power / count.astype(np.float64) ** self.count_power
        return np.column_stack([self.position * growth, self.heading * growth])


@dataclasses.dataclass(frozen=True)
class Frc2024(Upstream, VisionLaw):
    """The numbers of Team 3176's code of 2024: max((0.4 d)^2, 0.7) and 0.9 of several tags, of one
    (1.2 d)^2 and 100.

    `exact` takes them for the variances that they look like, m^2 and rad^2. `as_upstream` takes
    them for standard deviations, as WPILib does, to which they are handed.
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


# Which tags a camera sees, compiled.


@compiled
def tags_in_view(
    camera: FloatArray,
    turn: FloatArray,
    corners: FloatArray,
    faces: FloatArray,
    limits: FloatArray,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return how many tags are in view, their mean distance in m, and the last of them.

    A tag is in view when its four corners are in the picture, its centre is near enough, and its
    face is turned to the camera. Nothing hides anything.

    Parameters
    ----------
    camera : (n, 3)
        Positions, m, world.
    turn : (n, 3, 3)
        Rotation matrices, camera to world; x out of the lens, y left, z up in the picture.
    corners : (m, 4, 3)
        m, world.
    faces : (m, 6)
        Centre and unit vector out of the face, world.
    limits : (4,)
        Tangents of half the fields of view, across and up; greatest distance, m; cosine of the
        greatest angle between the face's normal and the line of sight.

    Returns
    -------
    count : (n,) int
    distance : (n,) float
        0 where there is none.
    last : (n,) int
        Row of the last tag in view; -1 where there is none.
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
