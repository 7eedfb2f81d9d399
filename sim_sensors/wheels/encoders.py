# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Drives of wheel odometry, and their encoders: white noise, slips, counts, steering zeros."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive, variants
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Upstream, share
from sim_sensors.motion.vehicles import (
    body_steps_of_modules,
    derivatives_of_modules,
    module_weights,
    turn_modules,
)

# Largest steering angle, rad; closer to a right angle the turn would consist of rounding errors.
_LARGEST_STEERING = 1.4
# Path, m, below which a vehicle keeps its steering angle, because the direction is undefined.
_AT_REST = 1e-9


def travels_of_pair(steps: FloatArray, half_track: float) -> FloatArray:
    """Return the travels of the left and right wheel, `(n, 2)` m, for steps `(n, 3)`."""
    difference = half_track * steps[:, 2]
    return np.column_stack([steps[:, 0] - difference, steps[:, 0] + difference])


@compiled
def steering_angles(steps: FloatArray, wheelbase: float, before: FloatArray) -> FloatArray:
    """Return the steering angles of the kinematic bicycle, `(n, 1)` rad, for steps `(n, 3)`.

    The angle is atan(L turn / forward) with the wheelbase L, m. `before` `(1,)` is the angle
    before the first step, rad.
    """
    out = np.empty((len(steps), 1))
    angle = before[0]
    for k in range(len(steps)):
        if abs(steps[k, 0]) > _AT_REST:
            angle = math.atan(wheelbase * steps[k, 2] / steps[k, 0])
            angle = min(max(angle, -_LARGEST_STEERING), _LARGEST_STEERING)
        out[k, 0] = angle
    return out


@compiled
def steps_of_steered(travels: FloatArray, angles: FloatArray, wheelbase: float) -> FloatArray:
    """Return the steps `(n, 3)` for travels `(n, 2)` m and steering angles `(n, 1)` rad."""
    out = np.zeros((len(travels), 3))
    for k in range(len(travels)):
        out[k, 0] = 0.5 * (travels[k, 0] + travels[k, 1])
        out[k, 2] = out[k, 0] * math.tan(angles[k, 0]) / wheelbase
    return out


@compiled
def derivatives_of_steered(
    travels: FloatArray, angles: FloatArray, wheelbase: float
) -> FloatArray:
    """Return the derivatives of the steps by both travels and by the angle, `(n, 3, 3)`."""
    out = np.zeros((len(travels), 3, 3))
    for k in range(len(travels)):
        path = 0.5 * (travels[k, 0] + travels[k, 1])
        tangent = math.tan(angles[k, 0])
        out[k, 0, 0] = out[k, 0, 1] = 0.5
        out[k, 2, 0] = out[k, 2, 1] = 0.5 * tangent / wheelbase
        out[k, 2, 2] = path * (1.0 + tangent * tangent) / wheelbase
    return out


def _length(default: float, doc: str) -> Any:
    return positive(default, 'm', doc)


@dataclasses.dataclass(frozen=True)
class WheelDrive(Parameters, abc.ABC):
    """Base of all drives: wheels with encoders and steering."""

    wheels: ClassVar[int]
    """Number of wheels with an encoder."""

    steered: ClassVar[int]
    """Number of measured steering angles."""

    names: ClassVar[tuple[str, ...]]
    """Names of the joints: the wheels, then the steering."""

    wheel_radius: float = positive(0.1, 'm', 'Radius of the wheels.')

    def with_track_scale(self, scale: float) -> WheelDrive:
        """Return the drive with distances between left and right wheels multiplied by `scale`.

        Raises ParameterError for a drive whose turn does not depend on these distances.
        """
        raise ParameterError(
            type(self).__name__,
            'half_track_error',
            f'must be 0: the turn of drive {self.kind} does not depend on the track',
        )

    @property
    def sides(self) -> FloatArray:
        """Side of each wheel, `(wheels,)`: 1 for left, -1 for right."""
        return np.array([1.0 if 'left' in name else -1.0 for name in self.names[: self.wheels]])

    @abc.abstractmethod
    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the travels and steering angles of the wheels for steps of the centre.

        Parameters
        ----------
        steps : (n, 3)
            Forward path, left path, m, and turn, rad.
        angles : (steered,)
            Steering angles before the first step, rad; wheels that do not roll keep them.

        Returns
        -------
        travels : (n, wheels)
            Distances over the ground along each wheel, m.
        angles : (n, steered)
            Steering angles to the left of forward, rad.
        """

    @abc.abstractmethod
    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps `(n, 3)` for travels and angles; see `inverse`."""

    @abc.abstractmethod
    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps of `forward`, `(n, 3, wheels + steered)`.

        The columns are first those by the travels, per m, then those by the angles, per rad.
        """


@dataclasses.dataclass(frozen=True)
class DifferentialWheels(WheelDrive):
    """Two driven wheels; the centre is midway between them [Cesenek2019].

    With wheel rates l and r, radius R and half track L, the speed is R (l + r) / 2 and the yaw
    rate R (r - l) / (2 L). Sideways motion of the centre is not measured.
    """

    kind: ClassVar[str] = 'differential'
    wheels: ClassVar[int] = 2
    steered: ClassVar[int] = 0
    names: ClassVar[tuple[str, ...]] = ('left_wheel', 'right_wheel')

    half_track: float = _length(0.2, 'Half the distance between the wheels.')

    def with_track_scale(self, scale: float) -> WheelDrive:
        """Return the drive with another track."""
        return dataclasses.replace(self, half_track=self.half_track * scale)

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the travels; no angle is measured."""
        return travels_of_pair(steps, self.half_track), np.zeros((len(steps), 0))

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps, which have no sideways path."""
        left, right = travels.T
        path, turn = 0.5 * (left + right), 0.5 * (right - left) / self.half_track
        return np.column_stack([path, np.zeros(len(path)), turn])

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps, which are constant."""
        turn = 0.5 / self.half_track
        return np.tile([[0.5, 0.5], [0.0, 0.0], [-turn, turn]], (len(travels), 1, 1))


@dataclasses.dataclass(frozen=True)
class AckermannWheels(WheelDrive):
    """Two driven rear wheels and front steering; the centre is the middle of the rear axle.

    Encoders are at the rear wheels. The steering angle is that of the bicycle model: for the path
    s of the centre, wheelbase L and steering d, turn = s tan(d) / L. It is at most 1.4 rad.
    Turning without rolling is impossible for such a vehicle and is not measured.
    """

    kind: ClassVar[str] = 'ackermann'
    wheels: ClassVar[int] = 2
    steered: ClassVar[int] = 1
    names: ClassVar[tuple[str, ...]] = ('rear_left_wheel', 'rear_right_wheel', 'front_steering')

    half_track: float = _length(0.2, 'Half the distance between the rear wheels.')
    wheelbase: float = _length(0.5, 'Distance between the axles.')

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the travels of the rear wheels and the steering angle."""
        return travels_of_pair(steps, self.half_track), steering_angles(
            steps, self.wheelbase, angles
        )

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps; the turn follows from the steering, not from the two wheels."""
        return steps_of_steered(travels, angles, self.wheelbase)

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps."""
        return derivatives_of_steered(travels, angles, self.wheelbase)


@dataclasses.dataclass(frozen=True)
class SwerveWheels(WheelDrive):
    """Four modules that each roll and steer [FRC3176]; see `sim_sensors.motion.vehicles`.

    The centre is the origin of the modules' positions. The three components of the motion are
    fitted to the eight measured values by least squares. A module turns by at most 90 degrees and
    rolls backward instead.
    """

    kind: ClassVar[str] = 'swerve'
    wheels: ClassVar[int] = 4
    steered: ClassVar[int] = 4
    names: ClassVar[tuple[str, ...]] = tuple(
        f'{place}_{part}'
        for part in ('wheel', 'steering')
        for place in ('front_left', 'front_right', 'rear_left', 'rear_right')
    )

    wheel_radius: float = positive(0.0508, 'm', 'Radius of the wheels.')
    module_x: tuple[float, float, float, float] = parameter(
        (0.27, 0.27, -0.27, -0.27),
        'm',
        'Position forward of the centre: front left, front right, rear left, rear right.',
    )
    module_y: tuple[float, float, float, float] = parameter(
        (0.27, -0.27, 0.27, -0.27), 'm', 'Position left of the centre, in the same order.'
    )

    def _check(self) -> None:
        if len(set(zip(self.module_x, self.module_y, strict=True))) < 2:
            raise ParameterError(
                'SwerveWheels',
                'module_x',
                'all modules have the same position; must have at least two positions',
            )

    def with_track_scale(self, scale: float) -> WheelDrive:
        """Return the drive with `module_y` multiplied by `scale`."""
        front_left, front_right, rear_left, rear_right = (scale * y for y in self.module_y)
        scaled = front_left, front_right, rear_left, rear_right
        return dataclasses.replace(self, module_y=scaled)

    @property
    def modules(self) -> FloatArray:
        """Positions of the modules, `(4, 2)` m."""
        return np.column_stack([self.module_x, self.module_y])

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return travels and angles of the modules, which turn by at most 90 degrees."""
        return turn_modules(steps, self.modules, angles)

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the least-squares steps."""
        return body_steps_of_modules(travels, angles, self.modules, module_weights(self.modules))

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps."""
        return derivatives_of_modules(travels, angles, self.modules, module_weights(self.modules))


WHEEL_DRIVES = variants('a drive', WheelDrive)


class WheelNoise(Parameters, abc.ABC):
    """Base of the white noise of the travel of a wheel between two samples."""

    @abc.abstractmethod
    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return the standard deviation, m, for travels in m, of any shape."""


@dataclasses.dataclass(frozen=True)
class NoWheelNoise(WheelNoise):
    """No noise."""

    kind: ClassVar[str] = 'none'

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return zeros."""
        return np.zeros_like(travels)


@dataclasses.dataclass(frozen=True)
class SquaredIncrement(WheelNoise):
    """Noise of [FRC3176]: delta + scale delta^2 N(0, std) for an angle increment of delta rad.

    It depends on the rate: the sum of n equal steps over D rad has a variance of (scale std)^2 D^4
    / n^3, or 0.16 D^4 / n^3 with the defaults. Doubling the rate divides the standard deviation by
    2.83. At 90 rad/s and 50 Hz, a step of 1.8 rad has a standard deviation of 1.3 rad. Use it to
    repeat published simulations; do not calibrate it on logs of another rate.
    """

    kind: ClassVar[str] = 'squared_increment'

    scale: float = non_negative(0.1, '1/rad', 'Factor of the squared wheel increment.')
    std: float = non_negative(
        4.0, '1', 'Standard deviation of the normally distributed factor; 2.0 in later code.'
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return scale std delta^2 wheel_radius."""
        return self.scale * self.std / wheel_radius * (travels * travels)


@dataclasses.dataclass(frozen=True)
class PerDistance(WheelNoise):
    """Variance per distance, density^2: a random walk over the path, the same at every rate."""

    kind: ClassVar[str] = 'per_distance'

    density: float = non_negative(
        0.01,
        'm/sqrt(m)',
        'Standard deviation of the travelled distance after 1 m; after 100 m ten times that.',
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return density sqrt(|travel|)."""
        return self.density * np.sqrt(np.abs(travels))


WHEEL_NOISES = variants('a wheel noise', WheelNoise)


@dataclasses.dataclass(frozen=True)
class SteeringOffset(Upstream):
    """Constant error of each measured steering angle.

    `exact` follows the text of [FRC3176]: uniform within +-bound (for 4 degrees a variance of
    5.33). `as_upstream` follows its code: floor(2 bound U) - bound, which for 4 degrees gives
    whole degrees from -4 to +3, mean -0.5, variance 5.25.
    """

    bound: float = non_negative(0.0, 'deg', 'Bound of the error; 0: no error.', maximum=90.0)

    @property
    def has_defects(self) -> bool:
        """Whether there is an error."""
        return self.bound > 0.0

    def draw(self, seed: int, run: str, sensor: str, count: int) -> FloatArray:
        """Return the errors of `count` steered wheels, `(count,)` rad."""
        uniform = stream(seed, run, sensor, 'steering_offset').random(count)
        above_lowest = 2.0 * self.bound * uniform
        degrees = (above_lowest if self.is_exact else np.floor(above_lowest)) - self.bound
        return np.asarray(np.radians(degrees if self.bound > 0.0 else np.zeros(count)))

    @property
    def mean(self) -> float:
        """Mean of the error, rad: 0, or as_upstream the mean effect of rounding down."""
        if self.is_exact or self.bound == 0.0:
            return 0.0
        weight, error = self._upstream_distribution()
        return float((weight * error).sum())

    @property
    def variance(self) -> float:
        """Variance of the error about its mean, rad^2."""
        if self.is_exact or self.bound == 0.0:
            return math.radians(self.bound) ** 2 / 3.0
        weight, error = self._upstream_distribution()
        return float((weight * (error - self.mean) ** 2).sum())

    def _upstream_distribution(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of the errors of the upstream code, and the errors, rad."""
        # The probability that rounding down gives k is the share of [0, 2 bound) in [k, k + 1).
        whole = np.arange(math.ceil(2.0 * self.bound))
        weight = np.minimum(whole + 1, 2.0 * self.bound) - whole
        return weight / (2.0 * self.bound), np.radians(whole - self.bound)


# Smallest mean distance between slips, m.
_SHORTEST = 1e-3
# Number of slips in one step above which their sum is drawn instead of each slip.
_MANY = 1000.0


@dataclasses.dataclass(frozen=True)
class Slip(Parameters):
    """Slips of each wheel: stretches of its path where it turns more (spins) or less (is locked).

    Lengths of slips and the gaps between them are exponentially distributed. They are drawn along
    the path, so slips are at the same positions at every rate.
    """

    distance: float = non_negative(
        0.0, 'm', 'Mean distance between two slips of a wheel; 0: no slip.'
    )
    length: float = non_negative(0.2, 'm', 'Mean length of a slip along the ground.')
    ratio: float = share(
        0.5, 'Share of the distance by which a spinning wheel turns more and a locked wheel less.'
    )
    locked: float = share(0.5, 'Share of slips in which the wheel turns less.')

    def _check(self) -> None:
        # Each slip is drawn by itself, so very frequent slips would take too long.
        if 0.0 < self.distance < _SHORTEST:
            raise ParameterError(
                'Slip', 'distance', f'{self.distance!r} is not allowed; must be 0 or >= 0.001 [m]'
            )

    @property
    def any(self) -> bool:
        """Whether there are slips."""
        return self.distance > 0.0 and self.length > 0.0 and self.ratio > 0.0

    @property
    def mean(self) -> float:
        """Mean contribution of slips per distance over the ground; 0 if half of them are locked.

        A slip adds +ratio or -ratio times its length, and there is one per distance + length.
        """
        if not self.any:
            return 0.0
        return (1.0 - 2.0 * self.locked) * self.ratio * self.length / (self.distance + self.length)

    @property
    def variance_per_metre(self) -> float:
        """Variance of the contribution of many slips about `mean`, per distance, m^2/m.

        Gaps G and slips S alternate. It is therefore the variance of a cumulative process (D. R.
        Cox, "Renewal Theory", 1962), Var(R - mean (G + S)) / E(G + S) with R = +-ratio S, which
        for exponential G and S is::

            2 ((ratio length)^2 - mean^2 length (2 distance + length)) / (distance + length)
        """
        if not self.any:
            return 0.0
        about_zero = (self.ratio * self.length) ** 2
        mean_part = self.mean**2 * self.length * (2.0 * self.distance + self.length)
        return 2.0 * (about_zero - mean_part) / (self.distance + self.length)

    def start(self, seed: int, run: str, sensor: str, wheels: int) -> SlipProcess:
        """Return the slips of the wheels of one robot; two calls return the same slips."""
        single, sums = (
            [stream(seed, run, sensor, f'{name}_{wheel}') for wheel in range(wheels)]
            for name in ('slip', 'slip_sum')
        )
        return SlipProcess(self, single, sums)


class SlipProcess:
    """Slips of the wheels of one robot along their paths.

    Each wheel has a random stream for single slips and one for sums of many slips, which are
    normally distributed to a good approximation.
    """

    def __init__(
        self, slip: Slip, rngs: list[np.random.Generator], sums: list[np.random.Generator]
    ) -> None:
        self._slip, self._rngs, self._sums = slip, rngs, sums
        self._distance = np.zeros(len(rngs))
        # For each wheel the slips that have not ended: start and end, m, and contribution per
        # metre. The last one starts ahead of the wheel.
        self._slips: list[list[tuple[float, float, float]]] = [[] for _ in rngs]

    def advance(self, travels: FloatArray) -> FloatArray:
        """Return the contribution of slips to the next travels, both `(n, wheels)` m."""
        added = np.zeros_like(travels)
        if self._slip.any and len(travels):
            for wheel in range(travels.shape[1]):
                added[:, wheel] = self._advance_wheel(wheel, np.abs(travels[:, wheel]))
        return added * np.sign(travels)

    def _advance_wheel(self, wheel: int, travels: FloatArray) -> FloatArray:
        slip = self._slip
        is_long = travels > _MANY * (slip.distance + slip.length)
        added = self._add_single_slips(wheel, np.where(is_long, 0.0, travels))
        if is_long.any():
            distance = travels[is_long]
            normals = self._sums[wheel].standard_normal(len(distance))
            spread = np.sqrt(slip.variance_per_metre * distance)
            added[is_long] = slip.mean * distance + spread * normals
        return added

    def _add_single_slips(self, wheel: int, travels: FloatArray) -> FloatArray:
        # `accumulate` adds row after row, as stepping does.
        distance = np.add.accumulate(np.concatenate([self._distance[wheel : wheel + 1], travels]))
        before, after = distance[:-1], distance[1:]
        self._distance[wheel] = after[-1]
        slips = self._slips[wheel]
        while not slips or slips[-1][0] < after[-1]:
            slips.append(self._draw_slip(wheel, slips[-1][1] if slips else 0.0))
        added = np.zeros(len(travels))
        starts, ends, rates = np.array(slips).T
        first = np.searchsorted(after, starts, side='right')
        count = np.maximum(np.searchsorted(before, ends, side='left') - first, 0)
        # One entry for each slip and each step that it overlaps.
        slip = np.repeat(np.arange(len(slips)), count)
        step = np.arange(len(slip)) + np.repeat(first - np.cumsum(count) + count, count)
        covered = np.minimum(ends[slip], after[step]) - np.maximum(starts[slip], before[step])
        np.add.at(added, step, rates[slip] * covered)
        self._slips[wheel] = [(start, end, rate) for start, end, rate in slips if end > after[-1]]
        return added

    def _draw_slip(self, wheel: int, end: float) -> tuple[float, float, float]:
        rng, slip = self._rngs[wheel], self._slip
        start = end + slip.distance * rng.standard_exponential()
        length = slip.length * rng.standard_exponential()
        sign = -1.0 if rng.random() < slip.locked else 1.0
        return start, start + length, sign * slip.ratio


class Encoders:
    """Encoders of one robot: slip, wrong radii, white noise and whole counts.

    `WheelConstants` draws the wrong radii. `counts` is the number of counts per turn of a wheel;
    0: no quantisation.
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
        # Travel of one count, m.
        self._count = 2.0 * math.pi * drive.wheel_radius / counts if counts > 0.0 else 0.0
        self._rng = stream(seed, run, sensor, 'wheel_noise')
        self._slips = slip.start(seed, run, sensor, wheels)
        # Initial position of each wheel between two counts. If all wheels started exactly at an
        # edge, the smallest motion backward would count.
        self._travelled: FloatArray = np.zeros(wheels)
        if self._count:
            self._travelled = self._count * stream(seed, run, sensor, 'encoder_phase').random(
                wheels
            )

    def read(self, travels: FloatArray, radius_errors: FloatArray) -> FloatArray:
        """Return the measured travels for the next true travels, `(n, wheels)` m.

        `radius_errors` `(wheels,)` are relative.
        """
        normals = self._rng.standard_normal(travels.shape)
        deviation = self._noise.deviation(travels, self._radius)
        measured = travels + self._slips.advance(travels)
        measured = measured + radius_errors * travels
        noisy: FloatArray = measured + normals * deviation
        if not self._count:
            return noisy
        travelled = accumulate_rows(self._travelled, noisy)
        self._travelled = travelled[-1].copy()
        counts = np.floor(travelled / self._count)
        return self._count * (counts[1:] - counts[:-1])

    def variance(self, travels: FloatArray) -> FloatArray:
        """Return the variance, m^2, of measured travels `(n, wheels)` m under this model.

        It includes white noise, and slips about their mean. It does not include the constant
        errors of the radii, nor quantisation, which does not add up; see `variance_of_counting`.
        """
        white = self._noise.deviation(travels, self._radius) ** 2
        return white + self._slip.variance_per_metre * np.abs(travels)

    @property
    def variance_of_counting(self) -> float:
        """Variance of one travel due to whole counts, m^2; the errors of both ends are uniform."""
        return self._count**2 / 6.0


def accumulate_rows(start: FloatArray, values: FloatArray) -> FloatArray:
    """Return `start` `(k,)` followed by its cumulative sums with the rows of `values` `(n, k)`."""
    return np.add.accumulate(np.concatenate([start[None], values]), axis=0)
