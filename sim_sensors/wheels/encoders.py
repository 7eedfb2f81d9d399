# SPDX-License-Identifier: Apache-2.0
"""What the encoders of wheels tell of how they roll over the ground.

Slips are stretches of the way over which a wheel spins or is locked.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, variants
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Upstream, share
from .drives import WheelDrive


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
    """The law of [FRC3176]: delta + scale delta^2 N(0, std), delta the angle increment in rad.

    It depends on the rate: n equal steps that make D rad together have a variance of (scale std)^2
    D^4 / n^3, with the defaults 0.16 D^4 / n^3. Doubling the rate divides the standard deviation
    by 2.83. At 90 rad/s and 50 Hz one step of 1.8 rad errs by 1.3 rad. Use it to repeat published
    simulations; do not calibrate it on logs of another rate.
    """

    kind: ClassVar[str] = 'squared_increment'

    scale: float = non_negative(0.1, '1/rad', 'Factor of the squared increment.')
    std: float = non_negative(
        4.0, '1', 'Standard deviation of the normal number; 2.0 in later code.'
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return scale std delta^2 wheel_radius."""
        return self.scale * self.std / wheel_radius * (travels * travels)


@dataclasses.dataclass(frozen=True)
class PerDistance(WheelNoise):
    """A variance per distance, density^2: a random walk over the path, the same at every rate."""

    kind: ClassVar[str] = 'per_distance'

    density: float = non_negative(
        0.01,
        'm/sqrt(m)',
        'Standard deviation of the rolled distance after 1 m; after 100 m ten times that.',
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return density sqrt(|travel|)."""
        return self.density * np.sqrt(np.abs(travels))


WHEEL_NOISES = variants('a wheel noise', WheelNoise)


@dataclasses.dataclass(frozen=True)
class SteeringOffset(Upstream):
    """Constant error of each measured steering angle.

    `exact` is what the text of [FRC3176] says: uniform within +-bound (for 4 degrees a variance of
    5.33). `as_upstream` is what its code does: floor(2 bound U) - bound, for 4 degrees whole
    degrees from -4 to +3, mean -0.5, variance 5.25.
    """

    bound: float = non_negative(0.0, 'deg', 'Largest error; 0: none.', maximum=90.0)

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


_SHORTEST = 1e-3
# Slips in one step from which on their sum is drawn: one by one, endlessly many take for ever.
_MANY = 1000.0


@dataclasses.dataclass(frozen=True)
class Slip(Parameters):
    """Slips of each wheel, drawn over the distance that it covers.

    A wheel turns more (spins) or less (is locked) over a stretch of its way. The distances between
    slips and their lengths are exponential. They are drawn as events of the way, so they lie at
    the same places at every rate.
    """

    distance: float = non_negative(0.0, 'm', 'Mean way between two slips of a wheel; 0: none.')
    length: float = non_negative(0.2, 'm', 'Mean way over the ground of a slip.')
    ratio: float = share(
        0.5,
        'How much more a spinning wheel turns, of what it covers, and how much less a locked one.',
    )
    locked: float = share(0.5, 'Share of slips in which the wheel turns less.')

    def _check(self) -> None:
        # Each slip is drawn, so that endlessly many would take endlessly long.
        if 0.0 < self.distance < _SHORTEST:
            raise ParameterError(
                'Slip', 'distance', f'{self.distance!r} is not allowed; must be 0 or >= 0.001 [m]'
            )

    @property
    def any(self) -> bool:
        """Whether there is a slip at all."""
        return self.distance > 0.0 and self.length > 0.0 and self.ratio > 0.0

    @property
    def mean(self) -> float:
        """Mean of what slips add, per distance over the ground: 0 where half of them are locked.

        A slip adds +ratio or -ratio times its length, and there is one per distance + length.
        """
        if not self.any:
            return 0.0
        return (1.0 - 2.0 * self.locked) * self.ratio * self.length / (self.distance + self.length)

    @property
    def variance_per_metre(self) -> float:
        """Variance about `mean` of what slips add, per distance, m^2/m, over many slips.

        Gaps G and slips S alternate, so that it is that of a cumulative process (D. R.
        Cox, "Renewal Theory", 1962): Var(R - mean (G + S)) / E(G + S) with R = +-ratio S, which
        for exponential G and S is
        2 ((ratio length)^2 - mean^2 length (2 distance + length)) / (distance + length).
        """
        if not self.any:
            return 0.0
        about_zero = (self.ratio * self.length) ** 2
        of_mean = self.mean**2 * self.length * (2.0 * self.distance + self.length)
        return 2.0 * (about_zero - of_mean) / (self.distance + self.length)

    def start(self, seed: int, run: str, sensor: str, wheels: int) -> SlipProcess:
        """Return the slips of the wheels of one robot; started twice, they are the same."""
        each, sums = (
            [stream(seed, run, sensor, f'{name}_{wheel}') for wheel in range(wheels)]
            for name in ('slip', 'slip_sum')
        )
        return SlipProcess(self, each, sums)


class SlipProcess:
    """Slips as the wheels go on, with a random stream for each wheel, and one for sums of many.

    The sum of a thousand slips is as good as normal.
    """

    def __init__(
        self, slip: Slip, rngs: list[np.random.Generator], sums: list[np.random.Generator]
    ) -> None:
        self._slip, self._rngs, self._sums = slip, rngs, sums
        self._way = np.zeros(len(rngs))
        # Of each wheel: where slips start and end, m, and what they add per metre; the last one
        # is beyond the way so far.
        self._slips: list[list[tuple[float, float, float]]] = [[] for _ in rngs]

    def advance(self, travels: FloatArray) -> FloatArray:
        """Return what slips add to the next travels `(n, wheels)` m, with sign, likewise."""
        added = np.zeros_like(travels)
        if self._slip.any and len(travels):
            for wheel in range(travels.shape[1]):
                added[:, wheel] = self._of(wheel, np.abs(travels[:, wheel]))
        return added * np.sign(travels)

    def _of(self, wheel: int, travels: FloatArray) -> FloatArray:
        slip = self._slip
        far = travels > _MANY * (slip.distance + slip.length)
        added = self._one_by_one(wheel, np.where(far, 0.0, travels))
        if far.any():
            way = travels[far]
            normals = self._sums[wheel].standard_normal(len(way))
            added[far] = slip.mean * way + np.sqrt(slip.variance_per_metre * way) * normals
        return added

    def _one_by_one(self, wheel: int, travels: FloatArray) -> FloatArray:
        way = np.empty(len(travels) + 1)
        way[0], way[1:] = self._way[wheel], travels
        # accumulate adds row after row by definition, as stepping does.
        np.add.accumulate(way, out=way)
        before, after = way[:-1], way[1:]
        self._way[wheel] = after[-1]
        slips = self._slips[wheel]
        while not slips or slips[-1][0] < after[-1]:
            slips.append(self._next(wheel, slips[-1][1] if slips else 0.0))
        added = np.zeros(len(travels))
        starts, ends, rates = np.array(slips).T
        first = np.searchsorted(after, starts, side='right')
        count = np.maximum(np.searchsorted(before, ends, side='left') - first, 0)
        # Each slip in each step that it reaches into.
        slip = np.repeat(np.arange(len(slips)), count)
        step = np.arange(len(slip)) + np.repeat(first - np.cumsum(count) + count, count)
        covered = np.minimum(ends[slip], after[step]) - np.maximum(starts[slip], before[step])
        np.add.at(added, step, rates[slip] * covered)
        self._slips[wheel] = [each for each in slips if each[1] > after[-1]]
        return added

    def _next(self, wheel: int, end: float) -> tuple[float, float, float]:
        rng, slip = self._rngs[wheel], self._slip
        start = end + slip.distance * rng.standard_exponential()
        length = slip.length * rng.standard_exponential()
        sign = -1.0 if rng.random() < slip.locked else 1.0
        return start, start + length, sign * slip.ratio


class Encoders:
    """Encoders of one robot: slip, wrong radii, white noise and whole counts.

    `WheelConstants` draws the wrong radii. `counts` is the number per turn of a wheel; 0 stands
    for no steps.
    """

    def __init__(
        self,
        drive: WheelDrive,
        noise: WheelNoise,
        slip: Slip,
        counts: float,
        seed: int,
        run: str,
        sensor: str,
    ) -> None:
        wheels = drive.wheels
        self._radius = drive.wheel_radius
        self._noise, self._slip = noise, slip
        # Way of one count, m.
        self._count = 2.0 * math.pi * drive.wheel_radius / counts if counts > 0.0 else 0.0
        self._rng = stream(seed, run, sensor, 'wheel_noise')
        self._slips = slip.start(seed, run, sensor, wheels)
        # Where between two counts each wheel stands at first: at an edge, noise would count.
        self._way: FloatArray = np.zeros(wheels)
        if self._count:
            self._way = self._count * stream(seed, run, sensor, 'encoder_phase').random(wheels)

    def read(self, travels: FloatArray, radius_errors: FloatArray) -> FloatArray:
        """Return what is told of the next travels over the ground, `(n, wheels)` m.

        `radius_errors` `(wheels,)` are relative.
        """
        normals = self._rng.standard_normal(travels.shape)
        deviation = self._noise.deviation(travels, self._radius)
        told = travels + self._slips.advance(travels)
        told = told + radius_errors * travels
        found: FloatArray = told + normals * deviation
        if not self._count:
            return found
        way = accumulated(self._way, found)
        self._way = way[-1].copy()
        whole = np.floor(way / self._count)
        return self._count * (whole[1:] - whole[:-1])

    def variance(self, travels: FloatArray) -> FloatArray:
        """Return the variance, m^2, of travels `(n, wheels)` m, as one who knows the model does.

        Of what changes from step to step: errors of the radii stay, the mean of slips does, and
        counting does not add up; see `variance_of_counting`.
        """
        found = self._noise.deviation(travels, self._radius) ** 2
        return found + self._slip.variance_per_metre * np.abs(travels)

    @property
    def variance_of_counting(self) -> float:
        """Variance that whole counts add to one travel, m^2: two ends, each uniform."""
        return self._count**2 / 6.0


def accumulated(start: FloatArray, values: FloatArray) -> FloatArray:
    """Return `start` and its sums with the rows of `values`, row after row, `(n + 1, k)`."""
    return np.add.accumulate(np.concatenate([start[None], values]), axis=0)
