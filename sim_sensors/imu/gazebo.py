# SPDX-License-Identifier: Apache-2.0
"""The IMUs of Gazebo: two plugins of Gazebo classic, and the noise of SDF, classic and new."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import non_negative
from sim_sensors.core.seeding import Streams, stream
from sim_sensors.core.shared_parameters import (
    Axes,
    AxisParameters,
    OfAccelerometer,
    OfGyroscope,
    axes,
)
from sim_sensors.noise.processes import GaussMarkov, Process, TurnOn, White
from sim_sensors.noise.triad import AxisErrors, SumTriad
from .imu import SampledImu
from .kinematics import BackwardDifference, Kinematics
from .orientation import Attitude, Sensed, StatedAttitude


@dataclasses.dataclass(frozen=True)
class GazeboNoise(SampledImu):
    """What both plugins of Gazebo classic have: one number for the noise of everything."""

    gaussian_noise: float = non_negative(
        0.0,
        'rad/s, m/s^2',
        'Noise of each sample of every axis of both triads, one number in both units.',
    )

    def triad(self, part: None, rng: Streams) -> AxisErrors:
        """Return the errors of a triad: both have the same noise."""
        return SumTriad(White(rng('white'), self.deviation(self.gaussian_noise)), ())


@dataclasses.dataclass(frozen=True)
class GazeboRosImu(GazeboNoise):
    """GazeboRosIMU, the model plugin of Gazebo classic for ROS 1.

    Per sample and axis, with s = gaussian_noise in rad/s and in m/s^2::

        y = truth + s w

    Notes
    -----
    `as_upstream` repeats the defects of the noetic plugin:

    - rate = R w_world and force = R (v[k] - v[k-1]) / dt, where R^T would be right. R is mounting
      times attitude, which turns the mounting about the world's axes; the orientation has this R.
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
        """Return what is published as orientation, switched on."""
        attitude = super().attitude(seed, run, sensor, gravity)
        if self.is_exact or not self.orientation.publishes:
            return attitude
        return StatedAttitude(attitude, np.eye(3) * self.gaussian_noise**2)


@dataclasses.dataclass(frozen=True)
class GazeboRosImuSensor(GazeboNoise):
    """GazeboRosImuSensor, the sensor plugin of Gazebo classic for ROS 1.

    Per sample and axis, with s = gaussian_noise in rad/s and in m/s^2::

        y = truth + s w

    Gravity is included and the frame is right. If `orientation` publishes a quaternion, its x, y,
    z and w have the same noise s. `exact` normalises the quaternion, so it errs by 2 s about each
    axis, and states (2 s)^2. s is then scaled to the rate of the sensor as for the triads
    (`std_rate`).

    The plugin for ROS 2 adds nothing to the noise of SDF: for that one, take `gz_imu`.

    Notes
    -----
    `as_upstream` leaves the quaternion unnormalised, so E|q|^2 = 1 + 4 s^2, and states s^2.

    References
    ----------
    [GazeboRos] noetic f9e1a46, gazebo_ros_imu_sensor.
    """

    kind: ClassVar[str] = 'gazebo_ros_imu_sensor'

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return what is published as orientation, switched on."""
        attitude = super().attitude(seed, run, sensor, gravity)
        if not self.orientation.publishes:
            return attitude
        rng = stream(seed, run, sensor, 'quaternion')
        std = float(self.deviation(self.gaussian_noise))
        return NoisyQuaternion(attitude, rng, std, normalised=self.is_exact)


class NoisyQuaternion(Attitude):
    """An attitude with white noise of the deviation `std` on each number of its quaternion.

    With `normalised` the result is a unit quaternion, and the stated covariance that of its error.
    """

    def __init__(
        self, attitude: Attitude, rng: np.random.Generator, std: float, *, normalised: bool
    ) -> None:
        # A unit quaternion turns by twice the angle of its error.
        super().__init__(np.eye(3) * std**2 * (4.0 if normalised else 1.0))
        self._attitude = attitude
        self._noise = White(rng, std, axes=4)
        self._normalised = normalised

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: Sensed) -> FloatArray:
        """Return the noisy quaternions; see `Attitude`."""
        noisy = self._attitude.measure(truth, dt, sensed) + self._noise.advance(dt)
        if not self._normalised:
            return noisy
        x, y, z, w = noisy.T
        return np.asarray(noisy / np.sqrt(x * x + y * y + z * z + w * w)[:, None])


@dataclasses.dataclass(frozen=True)
class SdfNoise(AxisParameters):
    """A noise block of SDF per axis, with its names."""

    mean: Axes = axes('{u}', 'Mean of the white noise.')
    stddev: Axes = axes('{u}', 'Deviation of a sample.', minimum=0.0)
    bias_mean: Axes = axes('{u}', 'Mean of the constant bias, which then gets a random sign.')
    bias_stddev: Axes = axes('{u}', 'Deviation of the constant bias.', minimum=0.0)
    dynamic_bias_stddev: Axes = axes(
        '{u}/s/sqrt(Hz)', 'What drives the dynamic bias: a density, not a deviation.', minimum=0.0
    )
    dynamic_bias_correlation_time: Axes = axes(
        's', 'Correlation time of the dynamic bias; 0: there is none.', minimum=0.0
    )
    precision: Axes = axes('{u}', 'Step of the reported values; 0: none.', minimum=0.0)


class SdfGyroscope(OfGyroscope, SdfNoise):
    """Noise of a gyroscope in SDF; none by default."""


class SdfAccelerometer(OfAccelerometer, SdfNoise):
    """Noise of an accelerometer in SDF; none by default."""


@dataclasses.dataclass(frozen=True)
class GazeboImu(SampledImu):
    """The noise of SDF: new Gazebo, and Gazebo classic's plugin for ROS 2.

    Per sample and axis, with Tc = dynamic_bias_correlation_time and d[0] = 0::

        y = round(truth + N(mean, stddev) + b + d, precision)
        d[k] = phi d[k-1] + dynamic_bias_stddev sqrt(Tc/2 (1 - phi^2)) w,   phi = exp(-dt/Tc)

    b = +-N(bias_mean, bias_stddev) is drawn once, with a random sign. `dynamic_bias_stddev` is the
    density that drives d, whose stationary standard deviation is dynamic_bias_stddev sqrt(Tc/2).
    Gazebo classic has no d. Published covariances are stddev^2, without the biases. The
    orientation is exact and relative to the world; new Gazebo publishes it relative to the first
    pose.

    Notes
    -----
    `as_upstream`, as in new Gazebo, b is the initial value of d and decays with it.

    References
    ----------
    GaussianNoiseModel of [GazeboClassic] and of [GzSensors] 9ba02f2; [GazeboRos] ros2.
    """

    kind: ClassVar[str] = 'gz_imu'

    gyroscope: SdfGyroscope = dataclasses.field(default_factory=SdfGyroscope)
    accelerometer: SdfAccelerometer = dataclasses.field(default_factory=SdfAccelerometer)

    def triad(self, part: SdfNoise, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        white = White(rng('white'), self.deviation(part.stddev), part.mean)
        drawn = rng('turn_on')
        size = TurnOn(drawn, part.bias_stddev, part.bias_mean)
        size.value = np.where(drawn.random(3) < 0.5, -size.value, size.value)
        times = np.asarray(part.dynamic_bias_correlation_time)
        has_dynamic = (times > 0.0) & (np.asarray(part.dynamic_bias_stddev) > 0.0)
        safe = np.where(times > 0.0, times, math.inf)
        dynamic = GaussMarkov(
            rng('gauss_markov'),
            np.where(has_dynamic, part.dynamic_bias_stddev * np.sqrt(0.5 * times), 0.0),
            np.where(has_dynamic, safe, math.inf),
            stationary=False,
        )
        biases: tuple[Process, ...] = (size, dynamic)
        if not self.is_exact:
            dynamic.value = size.value.copy()
            biases = (dynamic,)
        return SumTriad(white, biases, precision=part.precision)
