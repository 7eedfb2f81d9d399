# SPDX-License-Identifier: Apache-2.0
"""The IMUs of Gazebo: two plugins of Gazebo classic, and the noise of SDF, classic and new."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import Streams, stream
from sim_sensors.core.shared_parameters import AxisParameters, OfAccelerometer, OfGyroscope, axes
from sim_sensors.imu.imu import SampledImu
from sim_sensors.imu.kinematics import BackwardDifference, Kinematics
from sim_sensors.imu.orientation import Attitude, Sensed, StatedAttitude
from sim_sensors.noise.processes import GaussMarkov, Process, TurnOn, White
from sim_sensors.noise.triad import AxisErrors, SumTriad


@dataclasses.dataclass(frozen=True)
class GazeboNoise(SampledImu):
    """What both plugins of Gazebo classic have: one number for the noise of everything."""

    gaussian_noise: float = parameter(
        0.0,
        'rad/s, m/s^2',
        'Noise of each sample of every axis of both triads, one number in both units.',
        minimum=0.0,
    )

    def triad(self, part: None, rng: Streams) -> AxisErrors:
        """Return the errors of a triad: both have the same noise."""
        return SumTriad(White(rng('white'), self.deviation(self.gaussian_noise)), ())


@dataclasses.dataclass(frozen=True)
class GazeboRosImu(GazeboNoise):
    """GazeboRosIMU, the model plugin of Gazebo classic: y = truth + s w.

    As upstream the signals are those of `sim_sensors.imu.kinematics.BackwardDifference` (turned
    the wrong way, without gravity), and s^2 is stated for the orientation too, which is exact.
    Source: [GazeboRos], noetic, gazebo_ros_imu.
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
    """GazeboRosImuSensor of ROS 1, the sensor plugin of Gazebo classic: y = truth + s w, also for
    x, y, z and w of the quaternion.

    exact: the quaternion is normalised, so that it is turned by about 2 s about each axis, and
    (2 s)^2 is stated. As upstream it is not, |q|^2 has the mean 1 + 4 s^2, and s^2 is stated.
    With `orientation.mode` absent there is no orientation. Source: [GazeboRos], noetic,
    gazebo_ros_imu_sensor. The ROS 2 plugin adds nothing to the noise of
    SDF: that is `GazeboImu`.
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

    mean: tuple[float, float, float] = axes('{u}', 'Mean of the white noise.')
    stddev: tuple[float, float, float] = axes('{u}', 'Deviation of a sample.', minimum=0.0)
    bias_mean: tuple[float, float, float] = axes(
        '{u}', 'Mean of the constant bias, which then gets a random sign.'
    )
    bias_stddev: tuple[float, float, float] = axes(
        '{u}', 'Deviation of the constant bias.', minimum=0.0
    )
    dynamic_bias_stddev: tuple[float, float, float] = axes(
        '{u}/s/sqrt(Hz)', 'What drives the dynamic bias: a density, not a deviation.', minimum=0.0
    )
    dynamic_bias_correlation_time: tuple[float, float, float] = axes(
        's', 'Correlation time of the dynamic bias; 0: there is none.', minimum=0.0
    )
    precision: tuple[float, float, float] = axes(
        '{u}', 'Step of the reported values; 0: none.', minimum=0.0
    )


class SdfGyroscope(OfGyroscope, SdfNoise):
    """Noise of a gyroscope in SDF; none by default."""


class SdfAccelerometer(OfAccelerometer, SdfNoise):
    """Noise of an accelerometer in SDF; none by default."""


@dataclasses.dataclass(frozen=True)
class GazeboImu(SampledImu):
    """GaussianNoiseModel of SDF: y = round(truth + N(mean, stddev) + bias + dynamic bias).

    bias = +-N(bias_mean, bias_stddev), drawn once; the dynamic bias is a Gauss-Markov process
    from zero with the stationary deviation dynamic_bias_stddev sqrt(time / 2), exactly
    discretised. As upstream the constant bias is the initial value of the dynamic one and decays
    with it. Gazebo classic has no dynamic bias. Source: GaussianNoiseModel of
    [GzSensors] and [GazeboClassic].
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
