# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of CARLA, gnss-ins-sim, MATLAB and RotorS (also of its copies in PX4 and Pegasus)."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.compilation import row_loop
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.seeding import Streams
from sim_sensors.core.shared_parameters import (
    Axes,
    AxisParameters,
    OfAccelerometer,
    OfGyroscope,
    axes,
)
from sim_sensors.noise.electronics import Temperature
from sim_sensors.noise.processes import (
    FromFirstSample,
    GaussMarkov,
    LastValueProcess,
    Process,
    TurnOn,
    White,
    WhiteDensity,
)
from sim_sensors.noise.triad import AxisErrors, SumTriad
from sim_sensors.sensor.sensor import ReportedCovariance, UnknownCovariance
from .chain import AccelerometerChain, ChainTriad, GyroscopeChain
from .imu import (
    ExactKinematics,
    IdealMeasurement,
    ImuModel,
    Kinematics,
    SampledImu,
    UpstreamImu,
    VelocityDifference,
)
from .orientation import Attitude, Orientation, StatedAttitude

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class CarlaGyroscope(Parameters):
    """Attributes noise_gyro_* of CARLA's IMU."""

    bias: Axes = axes('rad/s', 'Constant bias.')
    stddev: Axes = axes('rad/s', 'Standard deviation of each sample.', minimum=0.0)


@dataclasses.dataclass(frozen=True)
class CarlaAccelerometer(Parameters):
    """Attributes noise_accel_* of CARLA's IMU; it has no bias."""

    stddev: Axes = axes('m/s^2', 'Standard deviation of each sample.', minimum=0.0)


@dataclasses.dataclass(frozen=True)
class CarlaImu(SampledImu):
    """CARLA's IMU: white noise, and a constant bias of the gyroscope.

    Per sample and axis::

        y = truth + bias + N(0, stddev)

    All frames are right-handed, as in the output of CARLA's ROS bridge. The preset `carla_imu` has
    the noise of CARLA's leaderboard (the defaults are 0) and publishes CARLA's compass as
    `orientation: {mode: heading}`. CARLA's angle clockwise from north is pi/2 minus that yaw.

    Notes
    -----
    `as_upstream` repeats these defects:

    - The rate of a mounted sensor is M w, where M^T w would be correct: it is rotated by the
      mounting instead of its inverse. With the sensor pitched by 90 degrees, a left turn is
      measured as +wx, not -wx. Mountings rotated by 180 degrees are not affected.
    - The acceleration is the second difference of the latest three positions. Before the first
      sample these are the origin, and the time step is the largest 32-bit float. So the first
      sample has only gravity, and the second about -position/dt^2. From the third sample on a
      constant acceleration is exact.
    - No covariances are stated (zeros, unknown), as by CARLA's ROS bridge.

    Gravity is that of the simulated world; CARLA's is 9.81 m/s^2. The ROS bridge publishes the
    full attitude instead of the compass: `orientation: {mode: truth}`.

    References
    ----------
    [CARLA] 001f560, InertialMeasurementUnit; [CARLARos] `imu.py`.
    """

    kind: ClassVar[str] = 'carla_imu'

    gyroscope: CarlaGyroscope = dataclasses.field(default_factory=CarlaGyroscope)
    accelerometer: CarlaAccelerometer = dataclasses.field(default_factory=CarlaAccelerometer)

    def triad(self, part: CarlaGyroscope | CarlaAccelerometer, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        bias = part.bias if isinstance(part, CarlaGyroscope) else 0.0
        white = White(rng('white'), self.deviation(part.stddev))
        return SumTriad(white, (TurnOn(rng('turn_on'), 0.0, bias),))

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        if self.is_exact:
            return super().kinematics(gravity)
        return SecondDifference(self.lever_arm, self.mounting_rpy, gravity)

    def reported_covariance(self) -> ReportedCovariance:
        """Return the source of the published covariance of one triad."""
        return super().reported_covariance() if self.is_exact else UnknownCovariance()


class SecondDifference(ExactKinematics):
    """Kinematics of CARLA: the acceleration is a second difference of positions, [CARLA].

    It is the second derivative of the parabola through the latest three positions, plus gravity,
    turned into the sensor frame. Before the first sample both earlier positions are the origin and
    the step is huge. The first sample therefore has no acceleration, and the second about
    -position / dt^2. The rate is rotated by the mounting instead of its inverse.
    """

    def __init__(self, lever_arm: ArrayLike, mounting_rpy: ArrayLike, gravity: float) -> None:
        super().__init__(lever_arm, mounting_rpy, gravity)
        self._positions = np.zeros((2, 3))
        self._step = float(np.finfo(np.float32).max)

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the measurement of CARLA's IMU."""
        ideal = super().ideal_measurement(truth, dt)
        at_sensor = truth.at_lever_arm(self._lever_arm)
        y = np.concatenate([self._positions, at_sensor.position])
        h = np.concatenate([[self._step], dt])[:, None]
        if len(dt):
            self._positions, self._step = y[-2:].copy(), float(dt[-1])
        h1, h2 = h[1:], h[:-1]
        middle, oldest, newest = (
            y[1:-1] / (h1 * h2),
            y[:-2] / (h2 * (h1 + h2)),
            y[2:] / (h1 * (h1 + h2)),
        )
        force = 2.0 * (newest + oldest - middle)
        force[:, 2] += self._gravity
        body = rotations.rotate_back(at_sensor.orientation, force)
        return IdealMeasurement(
            ideal.orientation,
            rotations.rotate(self._mounting, at_sensor.angular_velocity),
            rotations.rotate_back(self._mounting, body),
        )


@dataclasses.dataclass(frozen=True)
class GnssInsSimErrors(AxisParameters):
    """Errors of three axes in gnss-ins-sim."""

    bias: Axes = axes('{u}', 'Constant bias.')
    drift_std: Axes = axes('{u}', 'Stationary standard deviation of the drift.', minimum=0.0)
    drift_time: float = non_negative(100.0, 's', 'Correlation time of the drift; 0: infinite.')
    noise_density: Axes = axes('{u}/sqrt(Hz)', 'White noise: Allan deviation at 1 s.', minimum=0.0)


class GnssInsSimGyroscope(OfGyroscope, GnssInsSimErrors):
    """Errors of a gyroscope in gnss-ins-sim; none by default."""


class GnssInsSimAccelerometer(OfAccelerometer, GnssInsSimErrors):
    """Errors of an accelerometer in gnss-ins-sim; none by default."""


@dataclasses.dataclass(frozen=True)
class GnssInsSimImu(UpstreamImu):
    """The IMU of gnss-ins-sim: white noise and a Gauss-Markov drift.

    Per sample and axis, with a Gauss-Markov process `drift` that starts at zero::

        y = truth + bias + drift + noise_density w / sqrt(dt)

    `exact` discretises the drift exactly. For an infinite correlation time (0 here) its limit is a
    drift that stays zero. Upstream's custom dictionaries overwrite its built-in
    grades; this is not reproduced. Vibration is not modelled.

    Notes
    -----
    With `as_upstream`, the drift decays by the factor 1 - dt/T, with the noise of the exact model,
    and the first sample has no drift. If T is infinite, the drift is *white* noise of the standard
    deviation drift_std. A T of at most half an interval is refused: upstream's drift diverges.

    References
    ----------
    [GnssInsSim] 966ff27, pathgen.
    """

    kind: ClassVar[str] = 'gnss_ins_sim'

    gyroscope: GnssInsSimGyroscope = dataclasses.field(default_factory=GnssInsSimGyroscope)
    accelerometer: GnssInsSimAccelerometer = dataclasses.field(
        default_factory=GnssInsSimAccelerometer
    )

    def _check(self) -> None:
        super()._check()
        for name, part in (('gyroscope', self.gyroscope), ('accelerometer', self.accelerometer)):
            # An Euler step of more than twice the time constant makes the drift diverge.
            limit = 0.5 / self.rate
            if not self.is_exact and 0.0 < part.drift_time <= limit and any(part.drift_std):
                raise ParameterError(
                    type(self).__name__,
                    f'{name}.drift_time',
                    f'{part.drift_time!r} is not allowed as_upstream at {self.rate:g} Hz, where '
                    f'the drift diverges; must be 0 or > {limit:g} [s]',
                )

    def gyroscope_bias(self, duration: float) -> float:
        """Return the typical size of the bias of the gyroscope, rad/s, on the worst axis."""
        return float(np.hypot(self.gyroscope.bias, self.gyroscope.drift_std).max())

    def triad(self, part: GnssInsSimErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        generator, time = rng('gauss_markov'), part.drift_time or math.inf
        drift: Process
        if self.is_exact:
            drift = GaussMarkov(generator, part.drift_std, time, stationary=False)
        elif part.drift_time:
            drift = FromFirstSample(EulerDrift(generator, part.drift_std, time))
        else:
            drift = White(generator, part.drift_std)
        constant = TurnOn(rng('turn_on'), 0.0, part.bias)
        return SumTriad(WhiteDensity(rng('white'), part.noise_density), (constant, drift))


class EulerDrift(LastValueProcess):
    """Drift of gnss-ins-sim: y[k] = (1 - dt/T) y[k-1] + std sqrt(1 - exp(-2 dt/T)) w, from zero.

    The decay is an Euler step and the noise is not, so the stationary deviation grows with dt.
    """

    def __init__(self, rng: np.random.Generator, std: Axes, time: float) -> None:
        super().__init__(0.0, 3)
        self._rng, self._std, self._time = rng, np.asarray(std), time

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, 3)`."""
        normals = self._rng.standard_normal((len(dt), 3))
        return self.keep_last(_euler_drift(self.value, self._std, self._time, dt, normals))


@row_loop
def _euler_drift(
    value: FloatArray, std: FloatArray, time: float, dt: FloatArray, normals: FloatArray
) -> FloatArray:
    out = np.empty_like(normals)
    for axis in range(normals.shape[1]):
        y = value[axis]
        for k in range(normals.shape[0]):
            spread = std[axis] * math.sqrt(-math.expm1(-2.0 * dt[k] / time))
            y = (1.0 - dt[k] / time) * y + spread * normals[k, axis]
            out[k, axis] = y
    return out


@dataclasses.dataclass(frozen=True)
class MatlabErrors(AxisParameters):
    """Properties that gyroparams and accelparams have in common."""

    measurement_range: float = non_negative(0.0, '{u}', 'MeasurementRange; 0 stands for Inf.')
    resolution: float = non_negative(0.0, '{u}', 'Resolution; 0: none.')
    constant_bias: Axes = axes('{u}', 'ConstantBias.')
    axes_misalignment: Axes = axes(
        '%', 'AxesMisalignment: share of the signal of each axis that the other two axes measure.'
    )
    noise_density: Axes = axes('{u}/sqrt(Hz)', 'NoiseDensity.', minimum=0.0)
    bias_instability: Axes = axes(
        '{u}', 'BiasInstability, the coefficient B of an Allan plot.', minimum=0.0
    )
    random_walk: Axes = axes('{u}/s/sqrt(Hz)', 'RandomWalk.', minimum=0.0)
    temperature_bias: Axes = axes('{u}/K', 'TemperatureBias.')
    temperature_scale_factor: Axes = axes('%/K', 'TemperatureScaleFactor.')

    def chain(self) -> dict[str, object]:
        """Return the same errors as parameters of `sim_sensors.imu.chain.ErrorChain`."""
        x, y, z = (0.01 * entry for entry in self.axes_misalignment)
        return {
            'cross_axis_upper': (y, z, z),
            'cross_axis_lower': (x, x, y),
            'temperature_scale': tuple(0.01 * entry for entry in self.temperature_scale_factor),
            'constant_bias': self.constant_bias,
            'random_walk': self.random_walk,
            'bias_instability': self.bias_instability,
            'temperature_bias': self.temperature_bias,
            'noise_density': self.noise_density,
            'range': (self.measurement_range,) * 3,
            'quantisation': (self.resolution,) * 3,
        }


class MatlabGyroscope(OfGyroscope, MatlabErrors):
    """gyroparams, without AccelerationBias; none by default."""


class MatlabAccelerometer(OfAccelerometer, MatlabErrors):
    """accelparams; none by default."""


@dataclasses.dataclass(frozen=True)
class MatlabImu(ImuModel):
    """MATLAB's imuSensor: the chain, with the names and units of gyroparams and accelparams.

    The errors are those of `sim_sensors.imu.chain.ImuChain`. 0 stands for an infinite
    MeasurementRange. The reference temperature is 25 degC, as in MATLAB.

    A vector a, b, c of AxesMisalignment, in percent, fills the columns of the matrix: 0.01 `[100 b
    c; a 100 c; a b 100]`; a matrix is not accepted. We could not confirm this order; it matters
    only if a, b and c differ. Densities are those of the Allan plot ("double-sided" in MATLAB).
    BiasInstability is flicker noise with a plateau of 0.664 B; MATLAB's own filters for it are not
    reproduced. AccelerationBias (g-sensitivity) is not modelled.

    References
    ----------
    [MATLAB] imuSensor, gyroparams and accelparams.
    """

    kind: ClassVar[str] = 'matlab_imu'

    gyroscope: MatlabGyroscope = dataclasses.field(default_factory=MatlabGyroscope)
    accelerometer: MatlabAccelerometer = dataclasses.field(default_factory=MatlabAccelerometer)
    temperature: Temperature = dataclasses.field(default_factory=Temperature)

    def gyroscope_bias(self, duration: float) -> float:
        """Return the typical size of the bias of the gyroscope after `duration` s, rad/s."""
        return GyroscopeChain.from_mapping(self.gyroscope.chain(), self.kind).bias_after(duration)

    def triad(self, part: MatlabErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        kind = GyroscopeChain if isinstance(part, MatlabGyroscope) else AccelerometerChain
        return ChainTriad(kind.from_mapping(part.chain(), self.kind), self.temperature, rng)


@dataclasses.dataclass(frozen=True)
class RotorsErrors(AxisParameters):
    """Errors of three axes in RotorS."""

    noise_density: float = non_negative(
        0.0, '{u}/sqrt(Hz)', 'White noise: Allan deviation at 1 s.'
    )
    random_walk: float = non_negative(
        0.0, '{u}/s/sqrt(Hz)', 'Density that drives the Gauss-Markov bias.'
    )
    bias_correlation_time: float = positive(1000.0, 's', 'Correlation time of that bias.')
    turn_on_bias_sigma: float = non_negative(
        0.0, '{u}', 'Standard deviation of a constant bias drawn at switch-on.'
    )


class RotorsGyroscope(OfGyroscope, RotorsErrors):
    """Errors of a gyroscope in RotorS; none by default."""


class RotorsAccelerometer(OfAccelerometer, RotorsErrors):
    """Errors of an accelerometer in RotorS; none by default."""


@dataclasses.dataclass(frozen=True)
class RotorsImu(UpstreamImu):
    """The IMU of RotorS and of PX4: white noise, a turn-on bias and a Gauss-Markov bias.

    Per sample and axis, with tau = bias_correlation_time, K = random_walk and b[0] = 0::

        b = exp(-dt/tau) b + K sqrt(tau/2 (1 - exp(-2 dt/tau))) w
        y = truth + b + turn_on + noise_density w / sqrt(dt)

    turn_on ~ N(0, turn_on_bias_sigma) is drawn once. The stationary standard deviation of b is K
    sqrt(tau/2). In PX4's copy the turn-on bias is b[0] instead, so it fades with tau:
    `turn_on_decays`, as `px4_iim42653:as_upstream` has.

    Notes
    -----
    With `as_upstream`, the stated covariances are noise_density^2 at any rate: a hundredth of
    the variance of a sample at 100 Hz. All nine numbers of the orientation's covariance are -1,
    although there is an orientation.

    References
    ----------
    [RotorS] cd813b7 and [PX4Classic] 807b67b, gazebo_imu_plugin.
    """

    kind: ClassVar[str] = 'rotors_imu'

    gyroscope: RotorsGyroscope = dataclasses.field(default_factory=RotorsGyroscope)
    accelerometer: RotorsAccelerometer = dataclasses.field(default_factory=RotorsAccelerometer)
    turn_on_decays: bool = parameter(
        False,
        '',
        'True: the turn-on bias is the initial value of the Gauss-Markov bias, as in PX4; false: '
        'it is constant, as in RotorS.',
    )

    def triad(self, part: RotorsErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        drift = GaussMarkov(
            rng('gauss_markov'),
            part.random_walk * math.sqrt(0.5 * part.bias_correlation_time),
            part.bias_correlation_time,
            stationary=False,
        )
        turn_on = TurnOn(rng('turn_on'), part.turn_on_bias_sigma)
        biases: tuple[Process, ...] = (turn_on, drift)
        if self.turn_on_decays:
            drift.value = turn_on.value.copy()
            biases = (drift,)
        return SumTriad(
            WhiteDensity(rng('white'), part.noise_density),
            biases,
            stated=None if self.is_exact else part.noise_density**2,
        )

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return the source of the published orientation."""
        attitude = super().attitude(seed, run, sensor, gravity)
        if self.is_exact:
            return attitude
        return StatedAttitude(attitude, np.full((3, 3), -1.0))


@dataclasses.dataclass(frozen=True)
class PegasusImu(RotorsImu):
    """The IMU of Pegasus for Isaac Sim: RotorS' model, with the configuration of Pegasus.

    `exact` is that model with all its parameters; see `RotorsImu`. Pegasus publishes forward,
    right, down; here the axes are forward, left, up.

    Notes
    -----
    `as_upstream` repeats these defects:

    - The bias of the gyroscope has the correlation time of the accelerometer.
    - The bias of the accelerometer is computed but not added. The turn-on biases are never drawn.
    - The acceleration is the difference of the body's velocity since the previous sample, and
      the velocity before the first sample is 0. Lever arm and mounting are ignored.
    - The message has no orientation (the identity), and all covariances are zero.

    References
    ----------
    [Pegasus] bef3c57, `imu.py`, `ros2_backend.py`.
    """

    kind: ClassVar[str] = 'pegasus_imu'

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        if self.is_exact:
            return super().kinematics(gravity)
        return VelocityDifference(np.zeros(3), np.zeros(3), gravity)

    def triad(self, part: RotorsErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        if self.is_exact:
            return super().triad(part, rng)
        is_gyroscope = isinstance(part, RotorsGyroscope)
        used = dataclasses.replace(
            part,
            random_walk=part.random_walk if is_gyroscope else 0.0,
            bias_correlation_time=self.accelerometer.bias_correlation_time,
            turn_on_bias_sigma=0.0,
        )
        return super().triad(used, rng)

    def reported_covariance(self) -> ReportedCovariance:
        """Return the source of the published covariance of one triad."""
        return super().reported_covariance() if self.is_exact else UnknownCovariance()

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return the source of the published orientation."""
        if self.is_exact:
            return super().attitude(seed, run, sensor, gravity)
        absent = Orientation().start(seed, run, sensor, gravity=gravity)
        return StatedAttitude(absent, np.zeros((3, 3)))
