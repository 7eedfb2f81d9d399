# SPDX-License-Identifier: Apache-2.0
"""White noise of what wheel encoders tell, by two laws, and the error of steering's zero.

Source of the first law and of the steering error: [FRC3176].
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.seeding import stream
from sim_sensors.upstream import Upstream
from sim_sensors.variants import by_kind

__all__ = [
    'WHEEL_NOISES',
    'NoWheelNoise',
    'PerDistance',
    'SquaredIncrement',
    'SteeringOffset',
    'WheelNoise',
]


class WheelNoise(Parameters, abc.ABC):
    """Zero-mean white noise in what one wheel rolls from a sample to the next."""

    @abc.abstractmethod
    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return its standard deviation, m, for travels in m, of any shape."""


@dataclasses.dataclass(frozen=True)
class NoWheelNoise(WheelNoise):
    """No noise."""

    kind: ClassVar[str] = 'none'

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return zeros."""
        return np.zeros_like(travels)


@dataclasses.dataclass(frozen=True)
class SquaredIncrement(WheelNoise):
    """The law of [FRC3176]: delta + scale delta^2 N(0, std), delta the increment of the angle.

    It depends on the rate: n equal steps that make D rad together have a variance of
    (scale std)^2 D^4 / n^3, so that doubling the rate divides the standard deviation by 2.83.
    At 90 rad/s and 50 Hz one step of 1.8 rad errs by 1.3 rad.
    """

    kind: ClassVar[str] = 'squared_increment'

    scale: float = parameter(0.1, '1/rad', 'Factor of the squared increment.', minimum=0.0)
    std: float = parameter(
        4.0, '1', 'Standard deviation of the normal number; 2.0 in later code.', minimum=0.0
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return scale std delta^2 wheel_radius."""
        found: FloatArray = self.scale * self.std / wheel_radius * (travels * travels)
        return found


@dataclasses.dataclass(frozen=True)
class PerDistance(WheelNoise):
    """Variance per distance: a random walk over the path, whose law is that at every rate."""

    kind: ClassVar[str] = 'per_distance'

    density: float = parameter(
        0.01,
        'm/sqrt(m)',
        'Standard deviation of the rolled distance after 1 m; after 100 m ten times that.',
        minimum=0.0,
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return density sqrt(|travel|)."""
        found: FloatArray = self.density * np.sqrt(np.abs(travels))
        return found


WHEEL_NOISES: dict[str, type[WheelNoise]] = by_kind(NoWheelNoise, SquaredIncrement, PerDistance)


@dataclasses.dataclass(frozen=True)
class SteeringOffset(Upstream):
    """Constant error of the zero of each steered wheel, in its measured angle.

    `exact` is what the text of [FRC3176] says: uniform within +-bound. `as_upstream` is what its
    code does: floor(2 bound U) - bound, whole degrees from -bound to bound - 1, of mean -0.5
    degrees.
    """

    bound: float = parameter(0.0, 'deg', 'Largest error; 0: none.', minimum=0.0, maximum=90.0)

    @property
    def has_defects(self) -> bool:
        """Whether there is an error at all."""
        return self.bound > 0.0

    def draw(self, seed: int, run: str, sensor: str, count: int) -> FloatArray:
        """Return the errors of `count` steered wheels, `(count,)` rad."""
        uniform = stream(seed, run, sensor, 'steering_offset').random(count)
        swing = 2.0 * self.bound * uniform
        degrees = swing - self.bound if self.is_exact else np.floor(swing) - self.bound
        return np.asarray(np.radians(degrees if self.bound > 0.0 else np.zeros(count)))

    @property
    def mean(self) -> float:
        """Mean of each, rad: none as the text says, that of a rounding down as its code does."""
        if self.is_exact or self.bound == 0.0:
            return 0.0
        weight, error = self._law()
        return float((weight * error).sum())

    @property
    def variance(self) -> float:
        """Variance of each about the mean, rad^2."""
        if self.is_exact or self.bound == 0.0:
            return math.radians(self.bound) ** 2 / 3.0
        weight, error = self._law()
        return float((weight * (error - self.mean) ** 2).sum())

    def _law(self) -> tuple[FloatArray, FloatArray]:
        """Return the chances of the errors that the code can yield, and these, rad."""
        # Of each whole number k in [0, 2 bound): the length of its piece of that interval.
        whole = np.arange(math.ceil(2.0 * self.bound))
        weight = np.minimum(whole + 1, 2.0 * self.bound) - whole
        return weight / (2.0 * self.bound), np.radians(whole - self.bound)
