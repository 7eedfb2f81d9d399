# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Orientation that an IMU publishes: none, the truth, or that of an instrument."""

from __future__ import annotations

import abc
import dataclasses
import importlib.util
import math

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.installation import pip_install
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.seeding import stream
from sim_sensors.noise.processes import GaussMarkov

# Variance of a uniform angle, rad^2, for unknown roll and pitch.
_ANY_TILT = (math.pi**2 / 3.0, math.pi**2 / 3.0)


@dataclasses.dataclass(frozen=True, eq=False)
class SensedSignals:
    """Rates and forces of the IMU, from which some attitudes are derived.

    Angular velocity `rate` and specific force `force`, `(n, 3)` rad/s and m/s^2 in the sensor
    frame, and the biases in them.
    """

    rate: FloatArray
    force: FloatArray
    rate_bias: FloatArray
    force_bias: FloatArray


class Attitude(abc.ABC):
    """Source of the published orientation of one IMU, with its state.

    `stated` `(3, 3)` is the covariance to publish, rad^2, about the world axes.
    """

    def __init__(self, stated: ArrayLike) -> None:
        self._covariance = np.asarray(stated, dtype=np.float64)

    @abc.abstractmethod
    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return the published quaternions, `(n, 4)` x y z w, sensor to world (ENU).

        `truth` `(n, 4)` are the true ones, `dt` `(n,)` s the times since the previous samples, and
        `sensed` the measurements at the same times.
        """

    def covariance(self, n: int) -> FloatArray:
        """Return the covariance to publish `n` times, `(n, 3, 3)` rad^2."""
        return np.tile(self._covariance, (n, 1, 1))


class FusedAttitude(Attitude):
    """On-chip orientation fusion without a magnetometer, such as the IMU mode of a BNO055.

    The yaw is the integral of the measured rates and drifts with them. The filter is that of
    [imufusion], the revised AHRS algorithm of [Madgwick], chapter 7, in its 32-bit floats. It
    starts from the true attitude, like a filter that has settled. For a yaw that counts from
    switch-on, subtract the first yaw.

    `gain` is that of the filter. `gravity`, m/s^2, is the unit of its accelerations. The stated
    covariance is zero (unknown).
    """

    def __init__(self, gain: float, gravity: float) -> None:
        import imufusion  # optional, of the extra [fusion]

        super().__init__(np.zeros((3, 3)))
        self._filter = imufusion.Ahrs()
        settings = imufusion.AhrsSettings()
        settings.convention = imufusion.CONVENTION_ENU
        settings.gain = gain
        # Ranges and rejections are off by default, so the errors are those of the sensor model.
        self._filter.set_settings(settings)
        self._gravity = gravity if gravity > 0.0 else 1.0
        self._has_started = False

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return the quaternions of the filter; see `Attitude`."""
        if not self._has_started and len(truth):
            self._filter.skip_startup()
            self._filter.set_quaternion(truth[0, [3, 0, 1, 2]])
            self._has_started = True
        rates = np.degrees(sensed.rate)
        forces = sensed.force / self._gravity
        result = np.empty((len(truth), 4))
        for k in range(len(truth)):
            self._filter.set_sample_period(float(dt[k]))
            self._filter.update_no_magnetometer(rates[k], forces[k])
            result[k] = self._filter.get_quaternion()
        result = result[:, [1, 2, 3, 0]]
        x, y, z, w = result.T
        # The norm of a quaternion in 32 bits is 1 to 1e-7 only.
        return np.asarray(result / np.sqrt(x * x + y * y + z * z + w * w)[:, None])


@dataclasses.dataclass(frozen=True)
class OrientationModel(Parameters, abc.ABC):
    """Base of the models of the orientation field of an IMU message."""

    @property
    @abc.abstractmethod
    def publishes(self) -> bool:
        """Whether an orientation is published."""

    @abc.abstractmethod
    def start(self, seed: int, run: str, sensor: str, *, gravity: float) -> Attitude:
        """Return the source of the orientation under that gravity, m/s^2.

        For the labels see `sim_sensors.core.seeding.stream`.
        """


@dataclasses.dataclass(frozen=True)
class Orientation(OrientationModel):
    """The orientation field of an IMU message.

    `mode` selects the content:

    - `absent`: the identity with orientation_covariance[0] = -1 ([REP145], sensor_msgs/Imu). A
      judge that is configured to use the orientation gets none.
    - `truth`: exact, with zero covariance, which robot_localization takes as 1e-9.
    - `relative`: like `truth`, but relative to the attitude of the first sample, as in new Gazebo.
    - `heading`: the exact yaw alone, a compass. Roll and pitch are zero, with a stated
      variance of pi^2/3 rad^2.
    - `ahrs`: the truth with an error, in place of the attitude filter of an AHRS.
    - `fusion`: the output of a filter that runs on the measured rates and accelerations.
    - `two_antennas`: the heading of two GNSS antennas. Roll and pitch are as in `heading`.

    The error of `ahrs` is, per axis, tilt about east and north, yaw about up::

        q_published = exp(e) q_true,   e in world axes (east, north, up)
        e[k] = phi e[k-1] + std sqrt(1 - phi^2) w,   phi = exp(-dt / time_constant),
        e[0] ~ N(0, std)

    The stated covariance diag(roll_pitch_std^2, roll_pitch_std^2, yaw_std^2) is that of e at every
    rate and time. The error does not depend on the errors of gyroscope and accelerometer, so a
    judge sees no correlation between them; a real AHRS has one. The defaults (0.6 deg, 2 deg, 10
    s, 60 s) are our choice, typical of data sheets of MEMS AHRS; [Mahajan2024] gives none.

    `fusion` runs the AHRS algorithm of [imufusion] without a magnetometer, sample by sample with
    the actual intervals, like the fusion of a BNO055 in its IMU mode. Gravity corrects the tilt.
    The yaw is the integral of the measured rates, so it drifts with their bias. It starts at the
    true attitude. No covariance is stated (zeros, unknown). Install it with `pip install
    imufusion`; without it the mode is refused.

    `two_antennas` is a moving-base receiver. The antennas are `baseline` apart along the x axis of
    the IMU; each position has a horizontal error, a Gauss-Markov process n of `antenna_std` and
    `yaw_time_constant`::

        heading = angle of (R (baseline, 0, 0) + n_front - n_rear) in the horizontal plane

    For a level body and a small error, the standard deviation of the heading is sqrt(2)
    antenna_std / baseline. This value is stated for the yaw at any attitude. The true error grows
    with the pitch, which shortens the horizontal baseline.
    """

    mode: str = parameter(
        'absent',
        '',
        'absent: identity, covariance[0] = -1; truth: exact with zero (unknown) covariance; '
        'relative: truth relative to the first attitude; '
        'heading: exact yaw, no roll and pitch; ahrs: truth with the stated error; fusion: filter '
        'on the measured rates and accelerations; two_antennas: yaw of two GNSS antennas.',
        choices=('absent', 'truth', 'relative', 'heading', 'ahrs', 'fusion', 'two_antennas'),
        read_only=True,
    )
    roll_pitch_std: float = non_negative(
        0.01, 'rad', 'Standard deviation of the tilt about each horizontal axis.'
    )
    yaw_std: float = non_negative(
        0.035, 'rad', 'Standard deviation of the rotation about the vertical.'
    )
    roll_pitch_time_constant: float = positive(10.0, 's', 'Correlation time of the tilt error.')
    yaw_time_constant: float = positive(60.0, 's', 'Correlation time of the yaw error.')

    fusion_gain: float = non_negative(
        0.5, '1', 'Gain with which gravity corrects the tilt; 0: only the angular rates are used.'
    )
    baseline: float = positive(1.0, 'm', 'Distance of the two antennas, along x.')
    antenna_std: float = non_negative(
        0.01, 'm', 'Standard deviation of each antenna position, north and east.'
    )

    def _check(self) -> None:
        if self.mode == 'fusion' and importlib.util.find_spec('imufusion') is None:
            raise ParameterError(
                type(self).__name__,
                'mode',
                "'fusion' needs the library imufusion, which is not installed; run "
                f'{pip_install("imufusion")}',
            )

    @property
    def publishes(self) -> bool:
        """Whether an orientation is published."""
        return self.mode != 'absent'

    def start(self, seed: int, run: str, sensor: str, *, gravity: float) -> Attitude:
        """Return the source of the orientation; see `OrientationModel.start`."""
        if self.mode == 'fusion':
            return FusedAttitude(self.fusion_gain, gravity)
        if self.mode == 'two_antennas':
            return TwoAntennas(self, stream(seed, run, sensor, 'attitude'))
        return AttitudeSource(self, stream(seed, run, sensor, 'attitude'))


class AttitudeSource(Attitude):
    """Orientation in one of the modes absent, truth, relative, heading and ahrs."""

    def __init__(self, orientation: Orientation, rng: np.random.Generator) -> None:
        self._mode = orientation.mode
        self._first: FloatArray | None = None
        tilt, yaw = orientation.roll_pitch_std, orientation.yaw_std
        std = np.array([tilt, tilt, yaw])
        slow = orientation.roll_pitch_time_constant
        self._error = GaussMarkov(rng, std, [slow, slow, orientation.yaw_time_constant])
        stated = np.zeros((3, 3))
        if self._mode == 'absent':
            stated[0, 0] = -1.0
        elif self._mode == 'heading':
            stated = np.diag([*_ANY_TILT, 0.0])
        elif self._mode == 'ahrs':
            stated = np.diag(std**2)
        super().__init__(stated)

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return the published quaternions; see `Attitude`."""
        if self._mode == 'absent':
            identity = np.zeros((len(dt), 4))
            identity[:, 3] = 1.0
            return identity
        if self._mode == 'truth':
            return np.array(truth)
        if self._mode == 'relative':
            if self._first is None:
                self._first = truth[:1].copy() if len(truth) else None
            return (
                np.array(truth)
                if self._first is None
                else rotations.multiply(rotations.conjugate(self._first), truth)
            )
        if self._mode == 'heading':
            return _keep_heading(truth)
        return rotations.multiply(rotations.exp(self._error.advance(dt)), truth)


class TwoAntennas(Attitude):
    """Heading of two GNSS antennas, with the state of their errors."""

    def __init__(self, orientation: Orientation, rng: np.random.Generator) -> None:
        # Deviation of the difference of two independent positions.
        std = math.sqrt(2.0) * orientation.antenna_std
        self._error = GaussMarkov(rng, std, orientation.yaw_time_constant, axes=2)
        self._baseline = np.array([orientation.baseline, 0.0, 0.0])
        super().__init__(np.diag([*_ANY_TILT, (std / orientation.baseline) ** 2]))

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return rotations about the vertical; see `Attitude`."""
        baseline = np.broadcast_to(self._baseline, (len(truth), 3))
        measured = rotations.rotate(truth, baseline)[:, :2] + self._error.advance(dt)
        return rotations.from_heading(np.arctan2(measured[:, 1], measured[:, 0]))


class StatedAttitude(Attitude):
    """Attitude whose stated covariance, `(3, 3)` rad^2, is replaced."""

    def __init__(self, attitude: Attitude, stated: ArrayLike) -> None:
        super().__init__(stated)
        self._attitude = attitude

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: SensedSignals) -> FloatArray:
        """Return the quaternions of the attitude."""
        return self._attitude.measure(truth, dt, sensed)


def _keep_heading(truth: FloatArray) -> FloatArray:
    """Return the rotation about the vertical with the heading of the x axis, `(n, 4)`."""
    x, y, z, w = truth.T
    # Half-angle formulas of the heading from the horizontal part of the x axis.
    cosine, sine = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w)
    length = np.sqrt(cosine * cosine + sine * sine)
    level = length > 0.0
    safe = np.where(level, length, 1.0)
    half = np.sqrt(np.maximum(0.5 * (1.0 + np.where(level, cosine / safe, 1.0)), 0.0))
    other = np.sqrt(np.maximum(0.5 * (1.0 - np.where(level, cosine / safe, 1.0)), 0.0))
    result = np.zeros_like(truth)
    result[:, 2] = np.copysign(other, sine)
    result[:, 3] = half
    return result
