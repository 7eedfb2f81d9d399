# SPDX-License-Identifier: Apache-2.0
"""The IMU of CARLA."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import axes
from sim_sensors.imu.imu import SampledImu
from sim_sensors.imu.kinematics import Kinematics, SecondDifference
from sim_sensors.noise.processes import TurnOn, White
from sim_sensors.noise.triad import AxisErrors, SumTriad

_ZERO = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class CarlaGyroscope(Parameters):
    """Attributes noise_gyro_* of CARLA's IMU."""

    bias: tuple[float, float, float] = axes('rad/s', 'Constant bias.')
    stddev: tuple[float, float, float] = axes('rad/s', 'Noise of each sample.', minimum=0.0)


@dataclasses.dataclass(frozen=True)
class CarlaAccelerometer(Parameters):
    """Attributes noise_accel_* of CARLA's IMU; it has no bias."""

    stddev: tuple[float, float, float] = axes('m/s^2', 'Noise of each sample.', minimum=0.0)


@dataclasses.dataclass(frozen=True)
class CarlaImu(SampledImu):
    """CARLA: y = truth + bias + N(0, stddev), the accelerometer without a bias.

    As upstream the acceleration is the second difference of the latest three positions, of which
    the first two samples are artefacts, see `sim_sensors.imu.kinematics.SecondDifference`. CARLA
    is left-handed; everything here is right-handed, as behind its ROS bridge. Source: [CARLA]
    InertialMeasurementUnit.
    """

    kind: ClassVar[str] = 'carla_imu'

    gyroscope: CarlaGyroscope = dataclasses.field(default_factory=CarlaGyroscope)
    accelerometer: CarlaAccelerometer = dataclasses.field(default_factory=CarlaAccelerometer)

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of the gyroscope and of the accelerometer."""
        gyroscope, accelerometer = (
            SumTriad(
                White(stream(seed, run, sensor, f'{name}_white'), self.deviation(stddev)),
                (TurnOn(stream(seed, run, sensor, f'{name}_turn_on'), 0.0, bias),),
            )
            for name, stddev, bias in (
                ('gyroscope', self.gyroscope.stddev, self.gyroscope.bias),
                ('accelerometer', self.accelerometer.stddev, _ZERO),
            )
        )
        return gyroscope, accelerometer

    def kinematics(self, gravity: float) -> Kinematics:
        """Return the ideal measurement under that gravity, m/s^2."""
        exact = super().kinematics(gravity)
        if self.is_exact:
            return exact
        return SecondDifference(exact, self.lever_arm, self.mounting_rpy, gravity)


def compass(orientation: FloatArray) -> FloatArray:
    """Return CARLA's compass: the heading, rad clockwise from north, in [0, 2 pi).

    Parameters
    ----------
    orientation : (n, 4)
        Quaternions x y z w, sensor to world (ENU).

    Returns
    -------
    (n,)
    """
    x, y, z, w = orientation.T
    yaw = np.arctan2(2.0 * (x * y + z * w), 1.0 - 2.0 * (y * y + z * z))
    turned = np.mod(0.5 * math.pi - yaw, 2.0 * math.pi)
    # A tiny negative angle is rounded to the full circle, which is 0.
    return np.where(turned >= 2.0 * math.pi, 0.0, turned)
