# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of Gazebo: plugins of Gazebo classic, the noise of SDF, and hector_gazebo."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.compilation import row_loop
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import non_negative, parameter
from sim_sensors.core.seeding import Streams, stream
from sim_sensors.core.shared_parameters import (
    Axes,
    AxisParameters,
    OfAccelerometer,
    OfGyroscope,
    axes,
    mounting_quaternion,
)
from sim_sensors.noise.processes import FromFirstSample, GaussMarkov, TurnOn, White
from sim_sensors.noise.triad import AxisErrors, SumTriad
from .imu import IdealMeasurement, Kinematics, SampledImu
from .orientation import Attitude, OrientationModel, SensedSignals, StatedAttitude

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class GazeboNoise(SampledImu):
    """Base of both plugins of Gazebo classic: one number for the noise of both triads."""

    gaussian_noise: float = non_negative(
        0.0,
        'rad/s, m/s^2',
        'Standard deviation of each sample of every axis of both triads, the same number '
        'in both units.',
    )

    def triad(self, part: None, rng: Streams) -> AxisErrors:
        """Return the errors of a triad; both triads have the same noise."""
        return SumTriad(White(rng('white'), self.deviation(self.gaussian_noise)), ())


class BackwardDifference:
    """Kinematics of GazeboRosIMU of Gazebo classic, [GazeboRos] gazebo_ros_imu.

    World vectors are rotated by R instead of its transpose. R is the mounting times the attitude,
    so the mounting rotates about the axes of the world. The acceleration is the backward
    difference of the velocity; the first one is 0. There is no gravity, and the lever arm is
    ignored.
    """

    def __init__(self, mounting_rpy: ArrayLike) -> None:
        self._mounting = mounting_quaternion(mounting_rpy)
        self._velocity: FloatArray | None = None

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the measurement of the plugin."""
        orientation = rotations.multiply(self._mounting, truth.orientation)
        before = np.empty_like(truth.velocity)
        if len(before):
            before[0] = truth.velocity[0] if self._velocity is None else self._velocity
            before[1:] = truth.velocity[:-1]
            self._velocity = truth.velocity[-1].copy()
        rate = rotations.rotate(truth.orientation, truth.angular_velocity)
        return IdealMeasurement(
            orientation=orientation,
            rate=rotations.rotate(orientation, rate),
            force=rotations.rotate(orientation, (truth.velocity - before) / dt[:, None]),
        )


@dataclasses.dataclass(frozen=True)
class GazeboRosImu(GazeboNoise):
    """GazeboRosIMU, the model plugin of Gazebo classic for ROS 1.

    Per sample and axis, with s = gaussian_noise in rad/s and in m/s^2::

        y = truth + s w

    Notes
    -----
    `as_upstream` repeats the defects of the noetic plugin:

    - rate = R w_world and force = R (v[k] - v[k-1]) / dt, where R^T would be right. R is mounting
      times attitude, which applies the mounting about the world's axes; the published orientation
      is this R.
    - There is no gravity: at rest it reads 0.
    - The lever arm is ignored.
    - s^2 is stated for the orientation too, which is exact. `exact` states zeros (unknown).

    References
    ----------
    [GazeboRos] noetic f9e1a46, gazebo_ros_imu.
    """

    kind: ClassVar[str] = 'gazebo_ros_imu'

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        if self.is_exact:
            return super().kinematics(gravity)
        return BackwardDifference(self.mounting_rpy)

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return the source of the published orientation."""
        attitude = super().attitude(seed, run, sensor, gravity)
        if self.is_exact or not self.orientation.publishes:
            return attitude
        return StatedAttitude(attitude, np.eye(3) * self.gaussian_noise**2)


@dataclasses.dataclass(frozen=True)
class GazeboRosImuSensor(GazeboNoise):
    """GazeboRosImuSensor, the sensor plugin of Gazebo classic for ROS 1.

    Per sample and axis, with s = gaussian_noise in rad/s and in m/s^2::

        y = truth + s w

    Gravity is included and the frame is correct. If `orientation` publishes a quaternion, its x,
    y, z and w have the same noise s. `exact` normalises the quaternion, so its error is 2 s about
    each axis, and states (2 s)^2. s is then scaled to the rate of the sensor as for the triads
    (`std_rate`).

    The plugin for ROS 2 only has the noise of SDF; use `gz_imu` for it.

    Notes
    -----
    `as_upstream` leaves the quaternion unnormalised, so E|q|^2 = 1 + 4 s^2, and states s^2.

    References
    ----------
    [GazeboRos] noetic f9e1a46, gazebo_ros_imu_sensor.
    """

    kind: ClassVar[str] = 'gazebo_ros_imu_sensor'

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return the source of the published orientation."""
        attitude = super().attitude(seed, run, sensor, gravity)
        if not self.orientation.publishes:
            return attitude
        rng = stream(seed, run, sensor, 'quaternion')
        std = float(self.deviation(self.gaussian_noise))
        return NoisyQuaternion(attitude, rng, std, normalised=self.is_exact)


class NoisyQuaternion(Attitude):
    """Attitude with white noise of standard deviation `std` on each component of its quaternion.

    If `normalised`, the result is a unit quaternion and the stated covariance that of its error.
    """

    def __init__(
        self, attitude: Attitude, rng: np.random.Generator, std: float, *, normalised: bool
    ) -> None:
        # An error of a unit quaternion rotates by twice its size.
        super().__init__(np.eye(3) * std**2 * (4.0 if normalised else 1.0))
        self._attitude = attitude
        self._noise = White(rng, std, axes=4)
        self._normalised = normalised

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return the noisy quaternions; see `Attitude`."""
        noisy = self._attitude.measure(truth, dt, sensed) + self._noise.advance(dt)
        if not self._normalised:
            return noisy
        x, y, z, w = noisy.T
        return np.asarray(noisy / np.sqrt(x * x + y * y + z * z + w * w)[:, None])


@dataclasses.dataclass(frozen=True)
class SdfNoise(AxisParameters):
    """Noise blocks of SDF for three axes, with the names of SDF."""

    mean: Axes = axes('{u}', 'Mean of the white noise.')
    stddev: Axes = axes('{u}', 'Standard deviation of a sample.', minimum=0.0)
    bias_mean: Axes = axes('{u}', 'Mean of the constant bias before it gets a random sign.')
    bias_stddev: Axes = axes('{u}', 'Standard deviation of the constant bias.', minimum=0.0)
    dynamic_bias_stddev: Axes = axes(
        '{u}/s/sqrt(Hz)',
        'Density of the white noise that drives the dynamic bias; not its standard deviation.',
        minimum=0.0,
    )
    dynamic_bias_correlation_time: Axes = axes(
        's', 'Correlation time of the dynamic bias; 0: there is none.', minimum=0.0
    )
    precision: Axes = axes(
        '{u}', 'Quantisation step of the reported values; 0: no quantisation.', minimum=0.0
    )


class SdfGyroscope(OfGyroscope, SdfNoise):
    """Noise of a gyroscope in SDF; none by default."""


class SdfAccelerometer(OfAccelerometer, SdfNoise):
    """Noise of an accelerometer in SDF; none by default."""


# Largest precision that Gazebo ignores, rad/s or m/s^2.
_MIN_PRECISION = 1e-6


@dataclasses.dataclass(frozen=True)
class GazeboImu(SampledImu):
    """The noise of SDF: new Gazebo, and Gazebo classic's plugin for ROS 2.

    Per sample and axis, with Tc = dynamic_bias_correlation_time and d[0] = 0::

        y = round(truth + N(mean, stddev) + b + d, precision)
        d[k] = phi d[k-1] + dynamic_bias_stddev sqrt(Tc/2 (1 - phi^2)) w,   phi = exp(-dt/Tc)

    b = +-N(bias_mean, bias_stddev) is drawn once, with a random sign. `dynamic_bias_stddev` is the
    density that drives d, whose stationary standard deviation is dynamic_bias_stddev sqrt(Tc/2).
    Gazebo classic has no d. Published covariances are stddev^2, without the biases. The
    orientation is exact and relative to the world. New Gazebo publishes it relative to the first
    pose: `orientation: {mode: relative}`, as `gz_imu:as_upstream` has.

    Notes
    -----
    `as_upstream`, as in new Gazebo:

    - b is the initial value of d and decays with it, from the second sample on.
    - A precision of at most 1e-6 is ignored.

    References
    ----------
    GaussianNoiseModel of [GazeboClassic] and of [GzSensors] 9ba02f2, Imu.cc of [GzSim] 01d9d94;
    [GazeboRos] ros2.
    """

    kind: ClassVar[str] = 'gz_imu'

    gyroscope: SdfGyroscope = dataclasses.field(default_factory=SdfGyroscope)
    accelerometer: SdfAccelerometer = dataclasses.field(default_factory=SdfAccelerometer)

    def triad(self, part: SdfNoise, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        white = White(rng('white'), self.deviation(part.stddev), part.mean)
        drawn = rng('turn_on')
        bias = TurnOn(drawn, part.bias_stddev, part.bias_mean)
        bias.value = np.where(drawn.random(3) < 0.5, -bias.value, bias.value)
        times = np.asarray(part.dynamic_bias_correlation_time)
        has_dynamic = (times > 0.0) & (np.asarray(part.dynamic_bias_stddev) > 0.0)
        safe = np.where(times > 0.0, times, math.inf)
        dynamic = GaussMarkov(
            rng('gauss_markov'),
            np.where(has_dynamic, part.dynamic_bias_stddev * np.sqrt(0.5 * times), 0.0),
            np.where(has_dynamic, safe, math.inf),
            stationary=False,
        )
        if self.is_exact:
            return SumTriad(white, (bias, dynamic), precision=part.precision)
        dynamic.value = bias.value.copy()
        precision = np.asarray(part.precision)
        used = np.where(precision > _MIN_PRECISION, precision, 0.0)
        return SumTriad(white, (FromFirstSample(dynamic),), precision=used)


_ONE_PER_HOUR = 1.0 / 3600.0


@dataclasses.dataclass(frozen=True)
class HectorErrors(AxisParameters):
    """Sensor model of hector_gazebo for three axes."""

    offset: Axes = axes('{u}', 'Constant error.')
    drift: Axes = axes('{u}', 'Stationary standard deviation of the drift.', minimum=0.0)
    drift_frequency: Axes = axes(
        'Hz',
        'Inverse of the correlation time of the drift.',
        _ONE_PER_HOUR,
        minimum=0.0,
        maximum=1.0,
    )
    gaussian_noise: Axes = axes('{u}', 'Standard deviation of each sample.', minimum=0.0)
    scale: Axes = axes('1', 'Scale factor.', 1.0)


class HectorGyroscope(OfGyroscope, HectorErrors):
    """Errors rate* of hector_gazebo; none by default."""


class HectorAccelerometer(OfAccelerometer, HectorErrors):
    """Errors accel* of hector_gazebo; none by default."""


@dataclasses.dataclass(frozen=True)
class HectorYaw(OrientationModel):
    """Attitude of hector_gazebo: the truth with a yaw error and a tilt error; see `HectorImu`.

    The yaw error has the parameters yaw* of the plugin. The tilt error follows from the bias of
    the accelerometer.
    """

    offset: float = parameter(0.0, 'rad', 'Constant yaw error.')
    drift: float = non_negative(0.0, 'rad', 'Stationary standard deviation of the yaw drift.')
    drift_frequency: float = non_negative(
        _ONE_PER_HOUR, 'Hz', 'Inverse of the correlation time of the drift.', maximum=1.0
    )
    drift_from_zero: bool = parameter(
        False,
        '',
        'True: the drift starts at 0, as when it is set in a running plugin; false: its first '
        'value is drawn.',
    )
    gaussian_noise: float = non_negative(
        0.0, 'rad', 'Standard deviation of each yaw; as_upstream states it without applying it.'
    )

    @property
    def publishes(self) -> bool:
        """True: an orientation is always published."""
        return True

    def start(self, seed: int, run: str, sensor: str, *, gravity: float) -> Attitude:
        """Start the attitude of an `exact` IMU whose accelerometer has no errors."""
        return HectorImu(orientation=self).attitude(seed, run, sensor, gravity)


@dataclasses.dataclass(frozen=True)
class HectorImu(SampledImu):
    """The IMU of hector_gazebo: drifting errors and a pseudo-AHRS.

    Per sample and axis, with f = drift_frequency and d[0] ~ N(0, drift), but d[0] = 0 for
    a yaw with `drift_from_zero`::

        d = exp(-f dt) d + drift sqrt(1 - exp(-2 f dt)) w
        y = scale truth + offset + d + N(0, gaussian_noise)

        q = yaw_error * tilt * q_true,  yaw_error = offset + d + N(0, gaussian_noise) of the yaw
                                        tilt = (by, -bx, 0) / g

    b is the bias (offset + d) of the accelerometer, turned into world axes.

    The three services of Hector are methods of `ImuSensor` and act from the next sample on.
    `calibrate` sets the drift of the gyroscope to zero; `set_gyroscope_bias` and
    `set_accelerometer_bias` set a drift, which continues from there. A reset draws the drift again
    from the same stream. Sensors of other models refuse these calls.

    Notes
    -----
    `as_upstream` repeats these defects:

    - d = exp(-f dt) d + dt sqrt(2 f) drift w, with dt where sqrt(dt) would be right. d starts with
      the standard deviation `drift` and falls to drift dt sqrt(2 f / (1 - exp(-2 f dt))), about
      drift sqrt(dt): a tenth at 100 Hz.
    - The first sample has no interval: its rate and its force are 0 plus the errors, without
      gravity, and d has its initial value.
    - The rate is the mean since the previous sample, from its attitude. The acceleration is the
      difference of the velocity since then, which is 0 before the first sample. The lever arm is
      ignored.
    - The mounting rotates force and orientation about the world's axes. The rate is correct.
    - The white noise of the yaw is in the covariance, but not in the yaw.
    - The stated covariance of the orientation is that of white noise only: that of the
      accelerometer divided by g, with x and y exchanged, and that of the yaw. Without gravity, the
      first two are -1. `exact` states the variance of the error.

    The yaw drift of the preset is 0.1118 rad for `exact` and 1.118 rad for `as_upstream`, which
    gives the same drift at 100 Hz. The latter starts at 0, as if it was set in a running plugin.

    References
    ----------
    [Hector] melodic-devel de947fb, `sensor_model.h`, `update_timer.h` and gazebo_ros_imu.
    """

    kind: ClassVar[str] = 'hector_imu'

    gyroscope: HectorGyroscope = dataclasses.field(default_factory=HectorGyroscope)
    accelerometer: HectorAccelerometer = dataclasses.field(default_factory=HectorAccelerometer)
    orientation: HectorYaw = dataclasses.field(default_factory=HectorYaw)

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        if self.is_exact:
            return super().kinematics(gravity)
        return PoseDifference(self.mounting_rpy, gravity)

    def triad(self, part: HectorErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        return HectorTriad(
            White(rng('white'), self.deviation(part.gaussian_noise)),
            TurnOn(rng('turn_on'), 0.0, part.offset),
            HectorSensorDrift(
                rng('gauss_markov'),
                np.asarray(part.drift),
                np.asarray(part.drift_frequency),
                exact=self.is_exact,
            ),
            np.asarray(part.scale),
        )

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return the source of the published orientation."""
        yaw = self.orientation
        drift = HectorSensorDrift(
            stream(seed, run, sensor, 'attitude'),
            np.array([yaw.drift]),
            np.array([yaw.drift_frequency]),
            exact=self.is_exact,
            stationary=not yaw.drift_from_zero,
        )
        white = White(
            stream(seed, run, sensor, 'attitude_white'),
            self.deviation(yaw.gaussian_noise) if self.is_exact else 0.0,
            axes=1,
        )
        force = self.accelerometer
        if self.is_exact:
            tilt = np.asarray(force.drift)
            heading = math.hypot(yaw.drift, float(self.deviation(yaw.gaussian_noise)))
        else:
            tilt, heading = np.asarray(force.gaussian_noise), yaw.gaussian_noise
        # The accelerometer measures no tilt if there is no gravity.
        tilt_variance = (tilt[:2] / gravity) ** 2 if gravity > 0.0 else np.zeros(2)
        if gravity <= 0.0 and not self.is_exact:
            tilt_variance = np.full(2, -1.0)
        # The tilt about x comes from the bias along y; upstream states them the other way round.
        order = [1, 0] if self.is_exact else [0, 1]
        covariance = np.diag(np.append(tilt_variance[order], heading**2))
        mounting = np.zeros(3) if self.is_exact else self.mounting_rpy
        return HectorAttitude(yaw.offset, drift, white, gravity, covariance, mounting)


class PoseDifference:
    """Kinematics of hector_gazebo as upstream, from differences of pose and velocity.

    The force is Q^T ((v[k] - v[k-1]) / dt - g) with Q the mounting times the attitude. The rate is
    M^T log(R[k-1]^T R[k]) / dt. Both are 0 at the first sample.
    """

    def __init__(self, mounting_rpy: ArrayLike, gravity: float) -> None:
        self._mounting, self._gravity = mounting_quaternion(mounting_rpy), gravity
        self._before: tuple[FloatArray, FloatArray] | None = None

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the measurement of the plugin."""
        orientation = rotations.multiply(self._mounting, truth.orientation)
        if not len(dt):
            return IdealMeasurement(orientation, np.empty((0, 3)), np.empty((0, 3)))
        is_first = self._before is None
        attitude, velocity = self._before or (truth.orientation[0], truth.velocity[0])
        self._before = truth.orientation[-1].copy(), truth.velocity[-1].copy()
        attitudes = np.concatenate([attitude[None], truth.orientation])
        velocities = np.concatenate([velocity[None], truth.velocity])
        turn = rotations.multiply(rotations.conjugate(attitudes[:-1]), attitudes[1:])
        rate = rotations.rotate_back(self._mounting, rotations.log(turn) / dt[:, None])
        force = (velocities[1:] - velocities[:-1]) / dt[:, None]
        force[:, 2] += self._gravity
        force = rotations.rotate_back(orientation, force)
        if is_first:
            rate[0] = force[0] = 0.0
        return IdealMeasurement(orientation, rate, force)


class HectorSensorDrift(GaussMarkov):
    """Drift d of hector_gazebo, exact or with noise proportional to dt; see `HectorImu`.

    `std` is `(axes,)` in the unit of the sensor, `frequency` `(axes,)` Hz; 0 Hz: constant drift.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        std: FloatArray,
        frequency: FloatArray,
        *,
        exact: bool,
        stationary: bool = True,
    ) -> None:
        times = np.where(frequency > 0.0, 1.0 / np.where(frequency > 0.0, frequency, 1.0), np.inf)
        super().__init__(rng, std, times, stationary=stationary, axes=len(std))
        self._frequency = frequency
        self._is_exact = exact
        self._has_started = False

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`; as_upstream the first one is skipped."""
        if self._is_exact:
            return super().advance(dt)
        if len(dt) and not self._has_started:
            self._has_started = True
            dt = np.concatenate([[0.0], dt[1:]])
        normals = self._normals(len(dt))
        return self.keep_last(_drift(self.value, self._std, self._frequency, dt, normals))


class HectorTriad(SumTriad):
    """Errors of three axes of hector_gazebo, whose drift can be set; `scale` is `(3,)`."""

    def __init__(
        self, white: White, offset: TurnOn, drift: HectorSensorDrift, scale: FloatArray
    ) -> None:
        super().__init__(white, (offset, drift), scale=scale)
        self._drift = drift

    def set_bias(self, bias: FloatArray) -> None:
        """Set the drift, `(3,)`; it continues from there."""
        self._drift.value = np.array(bias, dtype=np.float64)


class HectorAttitude(Attitude):
    """Pseudo-AHRS of hector_gazebo; see `HectorImu`."""

    def __init__(
        self,
        offset: float,
        drift: HectorSensorDrift,
        white: White,
        gravity: float,
        covariance: FloatArray,
        world_mounting: ArrayLike,
    ) -> None:
        super().__init__(covariance)
        self._offset, self._drift, self._white = offset, drift, white
        self._gravity = gravity
        # The plugin turns the bias by the attitude of the body, without its mounting.
        self._mounting = mounting_quaternion(world_mounting)

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return the published quaternions; see `Attitude`."""
        turn = np.zeros((len(dt), 3))
        turn[:, 2] = (self._offset + self._drift.advance(dt) + self._white.advance(dt))[:, 0]
        yaw = rotations.exp(turn)
        lean = np.zeros((len(dt), 3))
        if self._gravity > 0.0:
            attitude = rotations.multiply(rotations.conjugate(self._mounting), truth)
            bias = rotations.rotate(attitude, sensed.force_bias)
            lean[:, 0], lean[:, 1] = bias[:, 1] / self._gravity, -bias[:, 0] / self._gravity
        tilt = rotations.exp(lean)
        return rotations.multiply(rotations.multiply(yaw, tilt), truth)


@row_loop
def _drift(
    value: FloatArray, std: FloatArray, frequency: FloatArray, dt: FloatArray, normals: FloatArray
) -> FloatArray:
    out = np.empty_like(normals)
    for axis in range(normals.shape[1]):
        y, f = value[axis], frequency[axis]
        for k in range(normals.shape[0]):
            y = math.exp(-f * dt[k]) * y
            y += dt[k] * math.sqrt(2.0 * f) * std[axis] * normals[k, axis]
            out[k, axis] = y
    return out
