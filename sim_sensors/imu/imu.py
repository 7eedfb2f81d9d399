# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Inertial measurement units: true motion in, angular rate and specific force with errors out.

An IMU consists of kinematics (the ideal measurement), the errors of its two triads, the published
covariances and attitude, and the channel that delivers its messages. Most models differ in the
errors only. The model of a simulator that differs elsewhere replaces that part.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray, ImuArray
from sim_sensors.core.parameters import parameter, positive
from sim_sensors.core.seeding import Streams, streams
from sim_sensors.core.shared_parameters import (
    Axes,
    Upstream,
    axes,
    latency,
    lever_arm,
    mounting_quaternion,
    sample_rate,
)
from sim_sensors.motion.ideal import InertialMotion
from sim_sensors.noise.triad import AxisErrors, SettableBias
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.faults import Fault
from sim_sensors.sensor.sensor import (
    Measurement,
    MountedModel,
    ReportedCovariance,
    Sensor,
    UnknownCovariance,
    WhiteNoiseCovariance,
)
from sim_sensors.sensor.sensor import simulate as simulate
from sim_sensors.world.earth import TurningEarth, simulates_rotation
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .faults import IMU_FAULTS, InertialSignals
from .orientation import Attitude, Orientation, OrientationModel, SensedSignals

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory
    from sim_sensors.world.world import World


@dataclasses.dataclass(frozen=True, eq=False)
class IdealMeasurement:
    """True signals at an IMU.

    `orientation` `(n, 4)` is a quaternion x y z w, sensor to world (ENU); `rate` `(n, 3)` rad/s
    and specific force `(n, 3)` m/s^2 are in the sensor frame.
    """

    orientation: FloatArray
    rate: FloatArray
    force: FloatArray


class Kinematics(Protocol):
    """Interface that derives the ideal measurement from the motion of the body; may hold state."""

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the signals at the times of `truth`, at intervals `dt` `(n,)` s."""


class ExactKinematics:
    """Kinematics of a rigid body: rate = M^T w, force = M^T R^T (a_s - g).

    [Ligorio2015], equation 4. `lever_arm` `(3,)` m and `mounting_rpy` `(3,)` rad place the IMU in
    the body; `gravity`, m/s^2, is that of the simulated world.
    """

    def __init__(self, lever_arm: ArrayLike, mounting_rpy: ArrayLike, gravity: float) -> None:
        self._lever_arm = np.asarray(lever_arm, dtype=np.float64)
        self._mounting = mounting_quaternion(mounting_rpy)
        self._gravity = gravity

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the measurement of an exact IMU; `dt` is not used."""
        at_sensor = truth.at_lever_arm(self._lever_arm)
        return IdealMeasurement(
            orientation=rotations.multiply(at_sensor.orientation, self._mounting),
            rate=rotations.rotate_back(self._mounting, at_sensor.angular_velocity),
            force=rotations.rotate_back(self._mounting, at_sensor.specific_force(self._gravity)),
        )


class VelocityDifference(ExactKinematics):
    """Kinematics of simulators that difference the velocity: force = M^T R^T (dv/dt - g).

    dv is the change of the sensor's velocity since the previous sample, and R the attitude at the
    sample. Before the first sample the velocity is 0, so a sensor that is switched on in motion
    starts with the force of v/dt. The rate is exact.
    """

    def __init__(self, lever_arm: ArrayLike, mounting_rpy: ArrayLike, gravity: float) -> None:
        super().__init__(lever_arm, mounting_rpy, gravity)
        self._velocity: FloatArray = np.zeros(3)

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the measurement with the differenced velocity."""
        ideal = super().ideal_measurement(truth, dt)
        at_sensor = truth.at_lever_arm(self._lever_arm)
        velocities = np.concatenate([self._velocity[None], at_sensor.velocity])
        self._velocity = velocities[-1].copy()
        force = (velocities[1:] - velocities[:-1]) / dt[:, None]
        force[:, 2] += self._gravity
        return dataclasses.replace(ideal, force=rotations.rotate_back(ideal.orientation, force))


@dataclasses.dataclass(frozen=True, eq=False)
class ImuMeasurement(Measurement[ImuArray]):
    """Measurement of an IMU, and the biases in it, which are the truth for estimators."""

    message: ClassVar[type[ImuArray]] = ImuArray

    # Messages, as in `sim_sensors.core.measurements.ImuArray`.
    orientation: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    orientation_covariance: FloatArray
    angular_velocity_covariance: FloatArray
    linear_acceleration_covariance: FloatArray
    # Bias in the values, (n, 3), rad/s and m/s^2, without the mean of the white noise.
    gyroscope_bias: FloatArray
    accelerometer_bias: FloatArray


@dataclasses.dataclass(frozen=True)
class ImuModel(MountedModel[ImuArray]):
    """Base of all IMU models: rate, mounting, orientation and covariance.

    Examples
    --------
    >>> from sim_sensors import load_imu
    >>> load_imu('chrono').rate
    100.0
    """

    name: ClassVar[str] = 'imu'
    noun: ClassVar[str] = 'an IMU'
    preset: ClassVar[str] = 'chrono'
    topic: ClassVar[str] = 'imu/data'
    message: ClassVar[str] = 'sensor_msgs/msg/Imu'
    node: ClassVar[str] = 'imu_node'
    ideal: ClassVar[Callable[..., Motion] | None] = InertialMotion
    ideal_topic: ClassVar[str] = 'ground_truth/imu'
    ideal_values: ClassVar[tuple[str, ...]] = ('angular_velocity', 'linear_acceleration')
    fault_kinds: ClassVar[tuple[type[Fault], ...]] = IMU_FAULTS

    rate: float = sample_rate(100.0, 'Measurements per second.')
    frame_id: str = parameter('imu_link', '', 'Frame of the messages.', read_only=True)
    lever_arm: Axes = lever_arm('IMU')
    mounting_rpy: Axes = axes(
        'rad',
        'Rotation of the IMU in the body: roll, pitch, yaw about fixed axes, as in a static '
        'transform body to sensor.',
    )
    latency: float = latency()
    covariance: str = parameter(
        'white_noise',
        '',
        'Published covariance of rate and acceleration: white_noise: variance of the white noise '
        'on the diagonal; unknown: all zero.',
        choices=('white_noise', 'unknown'),
    )
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    orientation: OrientationModel = dataclasses.field(default_factory=Orientation)
    faults: tuple[Fault, ...] = ()

    @abc.abstractmethod
    def triad(self, part: Any, rng: Streams) -> AxisErrors:
        """Return the errors of one triad.

        `part` holds the parameters `gyroscope` or `accelerometer`, or is None if the model has
        none. `rng` returns the random stream of a source by its name.
        """

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of the gyroscope and of the accelerometer."""
        gyroscope, accelerometer = (
            self.triad(getattr(self, name, None), streams(seed, run, sensor, name))
            for name in ('gyroscope', 'accelerometer')
        )
        return gyroscope, accelerometer

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the kinematics of the IMU under a gravity, m/s^2."""
        return ExactKinematics(self.lever_arm, self.mounting_rpy, gravity)

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return the source of the published orientation."""
        return self.orientation.start(seed, run, sensor, gravity=gravity)

    def reported_covariance(self) -> ReportedCovariance:
        """Return the source of the published covariance of one triad."""
        return WhiteNoiseCovariance() if self.covariance == 'white_noise' else UnknownCovariance()

    def reported_covariances(self) -> tuple[ReportedCovariance, ReportedCovariance]:
        """Return the sources of the published covariances of gyroscope and accelerometer."""
        return self.reported_covariance(), self.reported_covariance()

    def gyroscope_bias(self, duration: float) -> float:
        """Return the standard deviation of the gyroscope's bias after `duration` s, rad/s.

        It is 0 where the model declares no bias, as for simulators whose Earth is flat.
        """
        return 0.0

    def noise_intervals(self, dt: FloatArray) -> FloatArray:
        """Return the intervals that scale the noise, `(n,)` s, given those between the samples."""
        return dt

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` takes from a world."""
        return {'gravity': world.gravity, 'earth': world.turning_earth}

    def start(
        self,
        seed: int,
        run: str,
        sensor: str = 'imu',
        *,
        gravity: float = STANDARD_GRAVITY,
        earth: TurningEarth | None = None,
    ) -> ImuSensor:
        """Switch a sensor on under a gravity, m/s^2; see `SensorModel.start`.

        `earth` is the rotation and curvature of the Earth, by default none. If it is automatic, it
        has no effect while the length of the record is unknown.
        """
        return ImuSensor(self, seed, run, sensor, gravity, earth)


class ImuSensor(Sensor[ImuMeasurement]):
    """An IMU that is switched on: a model and its state. Made by `ImuModel.start`."""

    model: ImuModel

    def __init__(
        self,
        model: ImuModel,
        seed: int,
        run: str,
        sensor: str,
        gravity: float,
        earth: TurningEarth | None = None,
    ) -> None:
        super().__init__(model, seed, run, sensor, first_interval=1.0 / model.rate)
        self._earth = earth
        self._kinematics = model.kinematics(gravity)
        self._gyroscope, self._accelerometer = model.triads(seed, run, sensor)
        self._rate_covariance, self._force_covariance = model.reported_covariances()
        self._attitude = model.attitude(seed, run, sensor, gravity)
        self._rate = self._force = np.full(3, np.nan)

    @property
    def gyroscope_bias(self) -> FloatArray:
        """Present bias of the gyroscope, `(3,)` rad/s."""
        return self._gyroscope.bias

    @property
    def accelerometer_bias(self) -> FloatArray:
        """Present bias of the accelerometer, `(3,)` m/s^2."""
        return self._accelerometer.bias

    @property
    def has_settable_bias(self) -> bool:
        """Whether the drift of both triads can be set, as that of `hector_imu` can."""
        return isinstance(self._gyroscope, SettableBias) and isinstance(
            self._accelerometer, SettableBias
        )

    def calibrate(self) -> None:
        """Set the drift of the gyroscope to zero, from the next sample on.

        Raises
        ------
        SensorError
            When the model has no drift that can be set; hector_imu has.
        """
        self.set_gyroscope_bias(np.zeros(3))

    def set_gyroscope_bias(self, bias: ArrayLike) -> None:
        """Set the drift of the gyroscope to `bias`, `(3,)` rad/s; see `calibrate`."""
        self._set_bias(self._gyroscope, bias)

    def set_accelerometer_bias(self, bias: ArrayLike) -> None:
        """Set the drift of the accelerometer to `bias`, `(3,)` m/s^2; see `calibrate`."""
        self._set_bias(self._accelerometer, bias)

    def _set_bias(self, errors: AxisErrors, bias: ArrayLike) -> None:
        values = np.asarray(bias, dtype=np.float64)
        if not isinstance(errors, SettableBias):
            raise SensorError(
                f'the bias of an IMU of the model {self.model.kind} cannot be set; the model must '
                'be hector_imu'
            )
        if values.shape != (3,) or not np.isfinite(values).all():
            raise SensorError(f'a bias of {bias!r} is not allowed; must be 3 finite numbers')
        errors.set_bias(values)

    def _prepare(self, motion: Motion) -> None:
        duration = motion.end - motion.start
        if (
            simulates_rotation('auto', self.model.gyroscope_bias(duration), duration)
            and self._earth
        ):
            self._earth = dataclasses.replace(self._earth, automatic=False)

    def _measure(self, truth: Trajectory, dt: FloatArray) -> ImuMeasurement:
        if self._earth is not None and not self._earth.automatic:
            truth = self._earth.sensed_motion(truth)
        ideal = self._kinematics.ideal_measurement(truth, dt)
        noise_dt = self.model.noise_intervals(dt)
        rate, rate_bias, rate_variance = self._gyroscope.corrupt(ideal.rate, noise_dt)
        force, force_bias, force_variance = self._accelerometer.corrupt(ideal.force, noise_dt)
        self.faults.disturb(truth.time, InertialSignals(rate, force, self._rate, self._force))
        if len(dt):
            self._rate, self._force = rate[-1].copy(), force[-1].copy()
        sensed = SensedSignals(rate, force, rate_bias, force_bias)
        return ImuMeasurement(
            orientation=self._attitude.measure(ideal.orientation, dt, sensed),
            angular_velocity=rate,
            linear_acceleration=force,
            orientation_covariance=self._attitude.covariance(len(dt)),
            angular_velocity_covariance=self._rate_covariance.state(rate, rate_variance),
            linear_acceleration_covariance=self._force_covariance.state(force, force_variance),
            gyroscope_bias=rate_bias,
            accelerometer_bias=force_bias,
        )


@dataclasses.dataclass(frozen=True)
class UpstreamImu(Upstream, ImuModel):
    """IMU of another simulator, corrected or with the defects of the original."""


@dataclasses.dataclass(frozen=True)
class SampledImu(UpstreamImu):
    """IMU whose white noise is given as a standard deviation per sample.

    Such a number describes a different sensor at every rate, because integration responds to the
    density std / sqrt(rate). `exact` keeps the density that the numbers have at `std_rate`.
    """

    std_rate: float = positive(
        100.0,
        'Hz',
        'Rate for which the noise per sample is given. At other rates exact keeps its density, '
        'and as_upstream its standard deviation.',
    )

    def deviation(self, std: ArrayLike) -> FloatArray:
        """Return the standard deviation of a sample at the rate of the sensor."""
        scale = math.sqrt(self.rate / self.std_rate) if self.is_exact else 1.0
        return np.asarray(np.asarray(std, dtype=np.float64) * scale)


load_imu = ImuModel.load
