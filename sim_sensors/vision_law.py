# SPDX-License-Identifier: Apache-2.0
"""How far off a pose from tags is, by their distance and number, and what is stated of it.

Source: [FRC3176], whose text says only that it depends on both; its team's code of the
year after has the numbers of `frc_2024`.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import numpy as np

from sim_sensors.measurements import FloatArray, IntArray
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.upstream import Upstream
from sim_sensors.variants import by_kind

__all__ = ['VISION_COVARIANCES', 'VISION_LAWS', 'AsDrawn', 'Frc2024', 'TagDistance', 'VisionLaw']


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


VISION_LAWS: dict[str, type[VisionLaw]] = by_kind(TagDistance, Frc2024)
VISION_COVARIANCES: dict[str, type[Parameters]] = {**by_kind(AsDrawn), **VISION_LAWS}
