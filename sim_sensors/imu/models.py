# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMU models of Chrono, AirSim and Webots, and an IMU without errors."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, positive
from sim_sensors.core.seeding import Streams
from sim_sensors.core.shared_parameters import (
    Axes,
    AxisParameters,
    OfAccelerometer,
    OfGyroscope,
    axes,
)
from sim_sensors.noise.electronics import quantise, saturate
from sim_sensors.noise.processes import RandomWalk, White, WhiteDensity
from sim_sensors.noise.triad import AxisErrors, Corrupted, Triad
from sim_sensors.sensor.sensor import OuterProductCovariance, ReportedCovariance
from .imu import IdealMeasurement, ImuModel, Kinematics, SampledImu, VelocityDifference

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory

_STD = 'Standard deviation of each sample at std_rate.'


def _drift(default: float) -> Any:
    doc = 'Bias drift: each step has the standard deviation drift sqrt(dt / drift_time).'
    return non_negative(default, '{u}', doc)


@dataclasses.dataclass(frozen=True)
class ChronoErrors(AxisParameters):
    """Errors of three axes in Chrono's normal-drift model."""

    mean: Axes = axes('{u}', 'Mean of the noise of each sample.')
    std: Axes = axes('{u}', _STD, minimum=0.0)
    drift: float = _drift(0.0)
    drift_time: float = non_negative(
        0.1, 's', 'Time scale of the drift, not a correlation time; 0: no drift.'
    )


@dataclasses.dataclass(frozen=True)
class ChronoGyroscope(OfGyroscope, ChronoErrors):
    """Errors of a gyroscope in Chrono's normal-drift model; defaults of the paper's demo."""

    std: Axes = axes('{u}', _STD, 0.05, minimum=0.0)
    drift: float = _drift(1e-4)


@dataclasses.dataclass(frozen=True)
class ChronoAccelerometer(OfAccelerometer, ChronoErrors):
    """Errors of an accelerometer in Chrono's normal-drift model; defaults of the paper's demo."""

    std: Axes = axes('{u}', _STD, (0.3, 0.3, 0.01), minimum=0.0)
    drift: float = _drift(0.1)


@dataclasses.dataclass(frozen=True)
class ChronoImu(SampledImu):
    """Chrono's normal-drift IMU, which all five variants of the paper use.

    Per sample k and axis, with dt = 1 / rate and b[0] = 0::

        b[k] = b[k-1] + drift sqrt(dt / drift_time) w
        y[k] = truth[k] + N(mean, std) + b[k]

    The bias moves before it is used, so the first sample already has one. Its variance is k
    drift^2 dt / drift_time; the density of its rate random walk is K = drift / sqrt(drift_time).
    dt is the nominal interval, as in Chrono, even if real samples are further apart.

    The defaults, and the preset `chrono`, are the numbers of the paper's released demo. They give
    the accelerometer K = 0.316 m/s^2/sqrt(s): its bias has a standard deviation of 1.41 m/s^2
    after 20 s. It is unknown which numbers the paper's tables used. The text says that both
    sensors share the drift; the demo does not share it, and it adds no noise to its gyroscope. A
    comment in the demo calls the gyroscope's 0.05 degrees per second; the code uses it as rad/s.

    Notes
    -----
    `as_upstream` repeats the defects of Chrono main and of the paper's fork:

    - force = a_s + R (0, 0, g): the acceleration stays in world axes, and gravity is rotated the
      wrong way. On a level vehicle gravity is right, but the horizontal acceleration turns with
      the heading. Both triads ignore the mounting rotation.
    - `std` is the standard deviation of every sample, at any rate.
    - The covariance is (y[k] - m[k]) (y[k] - m[k])^T / max(k - 2, 1) with the running mean m[k]:
      the outer product of one sample, which fades like 1/k. The first one is zero. `exact`
      publishes diag(std^2).

    References
    ----------
    [Chrono] `ChNoiseModel.cpp`; [Mahajan2024], section IV-A; [ART].
    """

    kind: ClassVar[str] = 'chrono_normal_drift'

    gyroscope: ChronoGyroscope = dataclasses.field(default_factory=ChronoGyroscope)
    accelerometer: ChronoAccelerometer = dataclasses.field(default_factory=ChronoAccelerometer)

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        if self.is_exact:
            return super().kinematics(gravity)
        return WorldAxes(self.lever_arm, gravity)

    def reported_covariance(self) -> ReportedCovariance:
        """Return the source of the published covariance of one triad."""
        if self.is_exact or self.covariance == 'unknown':
            return super().reported_covariance()
        return OuterProductCovariance()

    def noise_intervals(self, dt: FloatArray) -> FloatArray:
        """Return 1 / rate for every sample, as upstream, whatever the real intervals are."""
        return np.full_like(dt, 1.0 / self.rate)

    def triad(self, part: ChronoErrors, rng: Streams) -> Triad:
        """Return the errors of a triad."""
        walk = part.drift / math.sqrt(part.drift_time) if part.drift_time > 0.0 else 0.0
        white = White(rng('white'), self.deviation(part.std), part.mean)
        return Triad(white, RandomWalk(rng('bias'), walk), move_bias_first=True)


class WorldAxes:
    """Kinematics of Chrono: force = a_s + R (0, 0, g), [Chrono] ChIMUSensor.

    The acceleration stays in *world* axes and gravity is rotated the wrong way; neither triad is
    turned by the mounting. For a level vehicle gravity is right and the horizontal acceleration
    turns with the heading.
    """

    def __init__(self, lever_arm: ArrayLike, gravity: float) -> None:
        self._lever_arm = np.asarray(lever_arm, dtype=np.float64)
        self._gravity = gravity

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the measurement of Chrono's IMU; `dt` is not used."""
        at_sensor = truth.at_lever_arm(self._lever_arm)
        up = np.zeros_like(at_sensor.acceleration)
        up[:, 2] = self._gravity
        return IdealMeasurement(
            orientation=at_sensor.orientation,
            rate=at_sensor.angular_velocity,
            force=at_sensor.acceleration + rotations.rotate(at_sensor.orientation, up),
        )


@dataclasses.dataclass(frozen=True)
class AirSimGyroscope(Parameters):
    """Errors of a gyroscope in AirSim; defaults of an MPU-6000."""

    angle_random_walk: float = non_negative(
        math.radians(0.30) / 60.0, 'rad/s/sqrt(Hz)', 'White noise density.'
    )
    bias_stability: float = non_negative(
        math.radians(4.6) / 3600.0,
        'rad/s',
        'Bias drift: each step has the standard deviation bias_stability sqrt(dt / bias_time).',
    )
    bias_time: float = positive(500.0, 's', 'Time scale of the drift, not a correlation time.')
    turn_on_bias: Axes = axes('rad/s', 'Bias of the first sample.', read_only=True)


@dataclasses.dataclass(frozen=True)
class AirSimAccelerometer(Parameters):
    """Errors of an accelerometer in AirSim; defaults of an MPU-6000."""

    velocity_random_walk: float = non_negative(
        0.24e-3 * 9.80665, 'm/s^2/sqrt(Hz)', 'White noise density.'
    )
    bias_stability: float = non_negative(
        36e-6 * 9.80665,
        'm/s^2',
        'Bias drift: each step has the standard deviation bias_stability sqrt(dt / bias_time).',
    )
    bias_time: float = positive(800.0, 's', 'Time scale of the drift, not a correlation time.')
    turn_on_bias: Axes = axes('m/s^2', 'Bias of the first sample.', read_only=True)


# Shortest interval that AirSim uses, s.
_SHORTEST = 1e-3


@dataclasses.dataclass(frozen=True)
class AirSimImu(ImuModel):
    """AirSim's IMU: white noise and a bias that walks.

    Per sample and axis, with b[0] = turn_on_bias::

        y = truth + density w / sqrt(dt) + b
        b = b + bias_stability sqrt(dt / bias_time) w        (after use)

    dt is the time since the previous sample, at least 1 ms; the first sample takes dt = 1 / rate.
    `density` is `angle_random_walk` of the gyroscope and `velocity_random_walk` of the
    accelerometer.

    The defaults are those of an MPU-6000: 0.30 deg/sqrt(h), 4.6 deg/h, 0.24 mg/sqrt(Hz), 36 ug.
    `bias_time` is no correlation time, although AirSim's comments speak of bias stability: the
    bias is an unbounded random walk. If std = density / sqrt(dt) and drift = bias_stability, this
    is the model of Chrono, except that there the bias moves before it is used. The preset `airsim`
    also publishes the true orientation with zero (unknown) covariance, as AirSim does. In
    [Mahajan2024] AirSim has the IMU of Chrono: the preset `airsim_paper`.

    References
    ----------
    [AirSim] `ImuSimple.hpp`, `ImuSimpleParams.hpp`; [Woodman2007], section 3.2.
    """

    kind: ClassVar[str] = 'airsim'

    gyroscope: AirSimGyroscope = dataclasses.field(default_factory=AirSimGyroscope)
    accelerometer: AirSimAccelerometer = dataclasses.field(default_factory=AirSimAccelerometer)

    def noise_intervals(self, dt: FloatArray) -> FloatArray:
        """Return the real intervals, none shorter than 1 ms."""
        return np.maximum(dt, _SHORTEST)

    def triad(self, part: AirSimGyroscope | AirSimAccelerometer, rng: Streams) -> Triad:
        """Return the errors of a triad."""
        density = (
            part.angle_random_walk
            if isinstance(part, AirSimGyroscope)
            else part.velocity_random_walk
        )
        walk = part.bias_stability / math.sqrt(part.bias_time)
        bias = RandomWalk(rng('bias'), walk, part.turn_on_bias)
        return Triad(WhiteDensity(rng('white'), density), bias, move_bias_first=False)


@dataclasses.dataclass(frozen=True)
class IdealImu(ImuModel):
    """An IMU without errors: y = truth.

    Its covariances are zero, which readers take as unknown. The preset `ideal` publishes the true
    orientation.

    References
    ----------
    Kinematics of a rigid body, [Ligorio2015], equation 4.
    """

    kind: ClassVar[str] = 'ideal'

    def triad(self, part: None, rng: Streams) -> Triad:
        """Return errors that are zero."""
        return Triad(White(rng('white'), 0.0), RandomWalk(rng('bias'), 0.0), move_bias_first=True)


@dataclasses.dataclass(frozen=True)
class WebotsErrors(AxisParameters):
    """Errors of three axes in Webots; none by default, as in Webots."""

    noise: float = non_negative(
        0.0, '1', 'Third column of the lookup table: standard deviation relative to the value.'
    )
    range: float = non_negative(0.0, '{u}', 'End of the lookup table; 0: no limit.')
    resolution: float = non_negative(
        0.0, '{u}', 'Quantisation step; 0: no quantisation (-1 in Webots).'
    )


class WebotsGyroscope(OfGyroscope, WebotsErrors):
    """Errors of a Gyro node; none by default."""


class WebotsAccelerometer(OfAccelerometer, WebotsErrors):
    """Errors of an Accelerometer node; none by default."""


@dataclasses.dataclass(frozen=True)
class WebotsImu(SampledImu):
    """The IMU of Webots: Gyro and Accelerometer, with a lookup table that maps a value to itself.

    Per sample and axis::

        y = round(c (1 + noise w)),   c = truth within +-range

    The noise is a share of the value: a gyroscope at rest has none, and an accelerometer at rest
    has an error along gravity only. There is no bias. The driver webots_ros2 states no covariance
    (zeros). The preset `webots_imu` has noise of 1 %, which is ours; in Webots it is 0.

    Notes
    -----
    With `as_upstream`, `noise` is that of a sample at any rate. The acceleration is the difference
    of the velocity since the previous sample, and the velocity before the first sample is 0.

    References
    ----------
    [Webots] `WbLookupTable.cpp`, `WbAccelerometer.cpp`; [WebotsRos2] `Ros2IMU.cpp`.
    """

    kind: ClassVar[str] = 'webots_imu'

    gyroscope: WebotsGyroscope = dataclasses.field(default_factory=WebotsGyroscope)
    accelerometer: WebotsAccelerometer = dataclasses.field(default_factory=WebotsAccelerometer)

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        if self.is_exact:
            return super().kinematics(gravity)
        return VelocityDifference(self.lever_arm, self.mounting_rpy, gravity)

    def triad(self, part: WebotsErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        return ProportionalTriad(part, float(self.deviation(part.noise)), rng('white'))


class ProportionalTriad:
    """Errors of three axes with noise proportional to the value; see `WebotsImu`."""

    def __init__(self, part: WebotsErrors, noise: float, rng: np.random.Generator) -> None:
        self._part, self._noise, self._rng = part, noise, rng
        self.bias: FloatArray = np.zeros(3)

    def corrupt(self, truth: FloatArray, dt: FloatArray) -> Corrupted:
        """Return the measurement; see `AxisErrors`."""
        clean = saturate(truth, self._part.range)
        spread = self._noise * clean
        values = clean + spread * self._rng.standard_normal(truth.shape)
        return quantise(values, self._part.resolution), np.zeros_like(truth), spread**2
