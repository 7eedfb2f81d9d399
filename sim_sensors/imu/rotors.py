# SPDX-License-Identifier: Apache-2.0
"""The IMU of RotorS, and of PX4's copy of it."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import AxisParameters
from sim_sensors.imu.imu import UpstreamImu
from sim_sensors.imu.orientation import Attitude, StatedAttitude
from sim_sensors.noise.processes import GaussMarkov, TurnOn, WhiteDensity
from sim_sensors.noise.triad import AxisErrors, SumTriad


@dataclasses.dataclass(frozen=True)
class RotorsErrors(AxisParameters):
    """Errors of three axes in RotorS."""

    noise_density: float = parameter(
        0.0, '{u}/sqrt(Hz)', 'White noise: Allan deviation at 1 s.', minimum=0.0
    )
    random_walk: float = parameter(
        0.0, '{u}/s/sqrt(Hz)', 'Density that drives the Gauss-Markov bias.', minimum=0.0
    )
    bias_correlation_time: float = parameter(
        1000.0, 's', 'Correlation time of that bias.', above=0.0
    )
    turn_on_bias_sigma: float = parameter(
        0.0, '{u}', 'Deviation of a constant drawn when switched on.', minimum=0.0
    )


@dataclasses.dataclass(frozen=True)
class RotorsGyroscope(RotorsErrors):
    """Errors of a gyroscope in RotorS; none by default."""

    unit: ClassVar[str] = 'rad/s'
    integral_unit: ClassVar[str] = 'rad'


@dataclasses.dataclass(frozen=True)
class RotorsAccelerometer(RotorsErrors):
    """Errors of an accelerometer in RotorS; none by default."""

    unit: ClassVar[str] = 'm/s^2'
    integral_unit: ClassVar[str] = 'm/s'


@dataclasses.dataclass(frozen=True)
class RotorsImu(UpstreamImu):
    """RotorS: y = truth + b + turn on + noise_density w / sqrt(dt).

    b is a Gauss-Markov process from zero, driven by random_walk, with the stationary deviation
    random_walk sqrt(bias_correlation_time / 2). As upstream the stated covariance is the squared
    *density*, whatever the rate, and all nine numbers of the orientation's covariance are -1
    although there is an orientation. Source: [RotorS], gazebo_imu_plugin.
    """

    kind: ClassVar[str] = 'rotors_imu'

    gyroscope: RotorsGyroscope = dataclasses.field(default_factory=RotorsGyroscope)
    accelerometer: RotorsAccelerometer = dataclasses.field(default_factory=RotorsAccelerometer)

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of the gyroscope and of the accelerometer."""
        parts: tuple[tuple[str, RotorsErrors], ...] = (
            ('gyroscope', self.gyroscope),
            ('accelerometer', self.accelerometer),
        )
        gyroscope, accelerometer = (
            SumTriad(
                WhiteDensity(stream(seed, run, sensor, f'{name}_white'), part.noise_density),
                (
                    TurnOn(stream(seed, run, sensor, f'{name}_turn_on'), part.turn_on_bias_sigma),
                    GaussMarkov(
                        stream(seed, run, sensor, f'{name}_gauss_markov'),
                        part.random_walk * math.sqrt(0.5 * part.bias_correlation_time),
                        part.bias_correlation_time,
                        stationary=False,
                    ),
                ),
                stated=None if self.is_exact else part.noise_density**2,
            )
            for name, part in parts
        )
        return gyroscope, accelerometer

    def attitude(self, seed: int, run: str, sensor: str, gravity: float) -> Attitude:
        """Return what is published as orientation, switched on."""
        attitude = super().attitude(seed, run, sensor, gravity)
        if self.is_exact:
            return attitude
        return StatedAttitude(attitude, np.full((3, 3), -1.0))
