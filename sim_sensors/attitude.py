# SPDX-License-Identifier: Apache-2.0
"""The orientation that an IMU publishes: none, the truth, or an AHRS's with a stated error."""

from __future__ import annotations

import abc
import dataclasses
from typing import Protocol

import numpy as np

from sim_sensors import rotations
from sim_sensors.measurements import FloatArray
from sim_sensors.noise import GaussMarkov
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.seeding import stream

__all__ = ['Attitude', 'AttitudeSource', 'Orientation', 'OrientationModel', 'Sensed']


@dataclasses.dataclass(frozen=True, eq=False)
class Sensed:
    """What the IMU measured beside the orientation, for attitudes that are made of it.

    Attributes
    ----------
    rate, force : (n, 3)
        Measured angular velocity, rad/s, and specific force, m/s^2, sensor frame.
    rate_bias, force_bias : (n, 3)
        The biases in them.
    """

    rate: FloatArray
    force: FloatArray
    rate_bias: FloatArray
    force_bias: FloatArray


class Attitude(Protocol):
    """The orientation of an IMU that is switched on, with its state."""

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: Sensed) -> FloatArray:
        """Return the published quaternions.

        Parameters
        ----------
        truth : (n, 4)
            Quaternions x y z w, sensor to world (ENU).
        dt : (n,)
            Time since the sample before, s.
        sensed : Sensed
            What the IMU measured at the same times.
        """

    def covariance(self, n: int) -> FloatArray:
        """Return the covariances to publish with the latest `n`, `(n, 3, 3)` rad^2."""


@dataclasses.dataclass(frozen=True)
class OrientationModel(Parameters, abc.ABC):
    """Whatever stands in the orientation field of an IMU message."""

    @property
    @abc.abstractmethod
    def publishes(self) -> bool:
        """Whether there is an orientation at all."""

    @abc.abstractmethod
    def start(self, seed: int, run: str, sensor: str, *, rate: float, gravity: float) -> Attitude:
        """Switch it on.

        Parameters
        ----------
        seed, run, sensor
            Labels of its random streams; see `sim_sensors.seeding.stream`.
        rate : float
            Of the IMU, Hz.
        gravity : float
            m/s^2, of the simulated world.
        """


@dataclasses.dataclass(frozen=True)
class Orientation(OrientationModel):
    """What stands in the orientation field of an IMU message.

    With `mode: ahrs` the published attitude is `exp(e) q_true`: a small rotation by the vector e,
    in world axes, applied on the left. e is a stationary Gauss-Markov process per axis, tilt about
    the two horizontal axes and yaw about the vertical, and the published covariance
    diag(roll_pitch_std^2, roll_pitch_std^2, yaw_std^2) is exactly its covariance.
    """

    mode: str = parameter(
        'absent',
        '',
        'absent: identity, covariance[0] = -1; truth: exact with zero (unknown) covariance; ahrs: '
        'truth with the stated error.',
        choices=('absent', 'truth', 'ahrs'),
        read_only=True,
    )
    roll_pitch_std: float = parameter(
        0.01, 'rad', 'Standard deviation of the tilt about each horizontal axis.', minimum=0.0
    )
    yaw_std: float = parameter(
        0.035, 'rad', 'Standard deviation of the rotation about the vertical.', minimum=0.0
    )
    roll_pitch_time_constant: float = parameter(
        10.0, 's', 'Correlation time of the tilt error.', minimum=0.0, minimum_excluded=True
    )
    yaw_time_constant: float = parameter(
        60.0, 's', 'Correlation time of the yaw error.', minimum=0.0, minimum_excluded=True
    )

    @property
    def publishes(self) -> bool:
        """Whether there is an orientation at all."""
        return self.mode != 'absent'

    def start(self, seed: int, run: str, sensor: str, *, rate: float, gravity: float) -> Attitude:
        """Return a source of orientations with its state; see `sim_sensors.seeding.stream`."""
        return AttitudeSource(self, stream(seed, run, sensor, 'attitude'))


class AttitudeSource:
    """Orientation of one IMU, with the state of its error.

    Parameters
    ----------
    orientation : Orientation
        Mode and error.
    rng : numpy.random.Generator
        Stream of the error.
    """

    def __init__(self, orientation: Orientation, rng: np.random.Generator) -> None:
        self._mode = orientation.mode
        tilt, yaw = orientation.roll_pitch_std, orientation.yaw_std
        std = np.array([tilt, tilt, yaw])
        slow = orientation.roll_pitch_time_constant
        self._error = GaussMarkov(rng, std, [slow, slow, orientation.yaw_time_constant])
        self._covariance = np.zeros((3, 3))
        if self._mode == 'absent':
            self._covariance[0, 0] = -1.0
        elif self._mode == 'ahrs':
            self._covariance = np.diag(std**2)

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: Sensed) -> FloatArray:
        """Return the published quaternions; see `Attitude`."""
        if self._mode == 'absent':
            identity = np.zeros((len(dt), 4))
            identity[:, 3] = 1.0
            return identity
        if self._mode == 'truth':
            return np.array(truth)
        return rotations.multiply(rotations.exp(self._error.advance(dt)), truth)

    def covariance(self, n: int) -> FloatArray:
        """Return the covariance to publish, `(n, 3, 3)` rad^2, about the world axes."""
        covariances: FloatArray = np.tile(self._covariance, (n, 1, 1))
        return covariances
