# SPDX-License-Identifier: Apache-2.0
"""Inertial measurement units: true motion in, angular rate and specific force with errors out.

Every IMU model here is y = truth + white noise + bias per axis, with a bias that walks; the models
in `imu_models` differ in how they give the two and in which comes first.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors import rotations
from sim_sensors.attitude import AttitudeSource, Orientation
from sim_sensors.delivery import Channel, Delivery
from sim_sensors.environment import STANDARD_GRAVITY
from sim_sensors.measurements import FloatArray, ImuArray, IntArray
from sim_sensors.noise import RandomWalk, White, WhiteDensity
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.sampling import intervals, sample_motion

if TYPE_CHECKING:
    from sim_sensors.trajectory import Motion, Trajectory

__all__ = ['ImuMeasurement', 'ImuModel', 'ImuSensor', 'Triad', 'simulate']


@dataclasses.dataclass(frozen=True, eq=False)
class ImuMeasurement:
    """What an IMU reports, and the biases in it, which are truth for whoever estimates them.

    Attributes
    ----------
    orientation : (n, 4)
        Quaternion x y z w, sensor to world; identity where absent.
    angular_velocity : (n, 3)
        rad/s, sensor frame.
    linear_acceleration : (n, 3)
        Specific force, m/s^2, sensor frame.
    orientation_covariance, angular_velocity_covariance, linear_acceleration_covariance : (n, 3, 3)
        As in `sim_sensors.measurements.ImuArray`.
    gyroscope_bias, accelerometer_bias : (n, 3)
        Part of the reported values that is bias, rad/s and m/s^2; the mean of the white noise is
        not in it.
    """

    orientation: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    orientation_covariance: FloatArray
    angular_velocity_covariance: FloatArray
    linear_acceleration_covariance: FloatArray
    gyroscope_bias: FloatArray
    accelerometer_bias: FloatArray

    def messages(self, stamp_ns: IntArray, frame: str) -> ImuArray:
        """Return sensor_msgs/Imu arrays stamped `stamp_ns`, arriving at once."""
        return ImuArray(
            stamp_ns=stamp_ns,
            arrival_ns=stamp_ns,
            frame=frame,
            orientation=self.orientation,
            angular_velocity=self.angular_velocity,
            linear_acceleration=self.linear_acceleration,
            orientation_covariance=self.orientation_covariance,
            angular_velocity_covariance=self.angular_velocity_covariance,
            linear_acceleration_covariance=self.linear_acceleration_covariance,
        )


class Triad:
    """Errors of three orthogonal axes: white noise and a walking bias.

    Parameters
    ----------
    white : White or WhiteDensity
        Noise of each sample.
    bias : RandomWalk
        The bias.
    move_bias_first : bool
        True: the bias is moved and then used (Chrono); False: used and then moved (AirSim).
    """

    def __init__(
        self, white: White | WhiteDensity, bias: RandomWalk, *, move_bias_first: bool
    ) -> None:
        self._white = white
        self._bias = bias
        self._advance_bias = bias.advance if move_bias_first else bias.advance_after_use

    @property
    def bias(self) -> FloatArray:
        """State of the bias, `(3,)`: that of the latest sample, or of the next one where the bias
        is used before it is moved.
        """
        return np.array(self._bias.value)

    def corrupt(
        self, truth: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measured values, the bias in them and the variance of the white noise, each
        `(n, 3)`, for true values `(n, 3)` at intervals `dt` `(n,)` s.
        """
        white = self._white.advance(dt)
        bias = self._advance_bias(dt)
        return truth + white + bias, bias, self._white.variance(dt)


@dataclasses.dataclass(frozen=True)
class ImuModel(Parameters, abc.ABC):
    """What all IMU models have: rate, mounting, orientation and covariance."""

    rate: float = parameter(
        100.0, 'Hz', 'Measurements per second.', minimum=0.0, minimum_excluded=True, read_only=True
    )
    frame_id: str = parameter('imu_link', '', 'Frame of the messages.', read_only=True)
    lever_arm: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'm', 'Position of the IMU in the body (forward, left, up).'
    )
    mounting_rpy: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0),
        'rad',
        'Rotation of the IMU in the body: roll, pitch, yaw about fixed axes, as in a static '
        'transform body to sensor.',
    )
    latency: float = parameter(
        0.0, 's', 'Time from the stamp to the arrival of the message.', minimum=0.0
    )
    covariance: str = parameter(
        'white_noise',
        '',
        'Published covariance of rate and acceleration: white_noise: variance of the white noise '
        'on the diagonal; unknown: all zero.',
        choices=('white_noise', 'unknown'),
    )
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    orientation: Orientation = dataclasses.field(default_factory=Orientation)

    @abc.abstractmethod
    def triads(self, seed: int, run: str, sensor: str) -> tuple[Triad, Triad]:
        """Return the errors of the gyroscope and of the accelerometer."""

    def noise_intervals(self, dt: FloatArray) -> FloatArray:
        """Return the intervals that scale the noise, `(n,)` s, given those between the samples."""
        return dt

    def mounted(self, translation: ArrayLike, rotation: ArrayLike) -> ImuModel:
        """Return the model mounted as a static transform says.

        Parameters
        ----------
        translation : (3,)
            Position in the body, m.
        rotation : (4,)
            Quaternion x y z w, sensor to body.
        """
        rpy = Rotation.from_quat(np.asarray(rotation, dtype=np.float64)).as_euler('xyz')
        offset = tuple(np.asarray(translation, dtype=np.float64).tolist())
        return dataclasses.replace(self, lever_arm=offset, mounting_rpy=tuple(rpy.tolist()))

    def start(
        self,
        seed: int,
        run: str,
        sensor: str = 'imu',
        *,
        gravity: float = STANDARD_GRAVITY,
    ) -> ImuSensor:
        """Switch a sensor on.

        Parameters
        ----------
        seed, run, sensor
            Labels of its random streams; see `sim_sensors.seeding.stream`.
        gravity : float
            m/s^2, of the simulated world.
        """
        gyroscope, accelerometer = self.triads(seed, run, sensor)
        attitude = self.orientation.start(seed, run, sensor)
        channel = self.delivery.start(seed, run, sensor, self.latency)
        return ImuSensor(self, gyroscope, accelerometer, attitude, channel, gravity)


class ImuSensor:
    """An IMU that is switched on: a model and its state. Made by `ImuModel.start`.

    Attributes
    ----------
    model : ImuModel
        What it is.
    channel : Channel
        What carries its messages.
    """

    def __init__(
        self,
        model: ImuModel,
        gyroscope: Triad,
        accelerometer: Triad,
        attitude: AttitudeSource,
        channel: Channel,
        gravity: float,
    ) -> None:
        self.model = model
        self.channel = channel
        self._gyroscope = gyroscope
        self._accelerometer = accelerometer
        self._attitude = attitude
        self._gravity = gravity
        self._mounting = Rotation.from_euler('xyz', model.mounting_rpy).as_quat()[None, :]
        self._time: float | None = None

    @property
    def gyroscope_bias(self) -> FloatArray:
        """Present bias of the gyroscope, `(3,)` rad/s."""
        return self._gyroscope.bias

    @property
    def accelerometer_bias(self) -> FloatArray:
        """Present bias of the accelerometer, `(3,)` m/s^2."""
        return self._accelerometer.bias

    def measure(self, truth: Trajectory) -> ImuMeasurement:
        """Measure at the times of `truth`, which must follow those measured before.

        Parameters
        ----------
        truth : Trajectory
            Motion of the body, `n` samples; cutting it into several calls changes no bit.

        Raises
        ------
        MotionError
            When a time does not follow the one before it.
        """
        times = truth.time
        dt = intervals(times, self._time, 1.0 / self.model.rate)
        if len(times):
            self._time = float(times[-1])
        at_sensor = truth.at_lever_arm(np.asarray(self.model.lever_arm))
        orientation = rotations.multiply(at_sensor.orientation, self._mounting)
        noise_dt = self.model.noise_intervals(dt)
        rate, rate_bias, rate_variance = self._gyroscope.corrupt(
            rotations.rotate_back(self._mounting, at_sensor.angular_velocity), noise_dt
        )
        force, force_bias, force_variance = self._accelerometer.corrupt(
            rotations.rotate_back(self._mounting, at_sensor.specific_force(self._gravity)),
            noise_dt,
        )
        return ImuMeasurement(
            orientation=self._attitude.measure(orientation, dt),
            angular_velocity=rate,
            linear_acceleration=force,
            orientation_covariance=self._attitude.covariance(len(times)),
            angular_velocity_covariance=self._covariance(rate_variance),
            linear_acceleration_covariance=self._covariance(force_variance),
            gyroscope_bias=rate_bias,
            accelerometer_bias=force_bias,
        )

    def _covariance(self, variance: FloatArray) -> FloatArray:
        matrices = np.zeros((len(variance), 3, 3))
        if self.model.covariance == 'white_noise':
            matrices[:, [0, 1, 2], [0, 1, 2]] = variance
        return matrices


def simulate(
    model: ImuModel,
    motion: Motion,
    *,
    seed: int,
    run: str,
    sensor: str = 'imu',
    start_ns: int | None = None,
    origin_ns: int = 0,
    gravity: float = STANDARD_GRAVITY,
) -> ImuArray:
    """Measure a whole motion on the sensor's own stamps, `start_ns + round(k 1e9 / rate)`.

    Parameters
    ----------
    model : ImuModel
        What measures.
    motion : Motion
        What is measured, from its start to its end.
    seed, run, sensor
        Labels of the random streams; see `sim_sensors.seeding.stream`.
    start_ns : int or None
        First stamp; None: the start of the motion.
    origin_ns : int
        Stamp of motion time 0.
    gravity : float
        m/s^2, of the simulated world.

    Raises
    ------
    MotionError
        When `start_ns` is outside the motion.
    """
    stamp_ns, times = sample_motion(motion, model.rate, start_ns=start_ns, origin_ns=origin_ns)
    imu = model.start(seed, run, sensor, gravity=gravity)
    return imu.channel.deliver(imu.measure(motion.at(times)).messages(stamp_ns, model.frame_id))
