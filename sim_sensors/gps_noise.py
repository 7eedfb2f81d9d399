# SPDX-License-Identifier: Apache-2.0
"""How a GPS position errs: not at all, by white noise, by Chrono's bounded random walk, or as the
models of other modules say.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from sim_sensors.bounded_walk import BoundedWalk
from sim_sensors.gnss_noise import GnssNoise
from sim_sensors.gps_upstream import GazeboPositionNoise, GeodeticNoise, HectorNoise
from sim_sensors.measurements import FloatArray
from sim_sensors.noise import Process, White
from sim_sensors.parameters import parameter
from sim_sensors.position_noise import PositionNoise
from sim_sensors.px4_noise import Px4ClassicNoise, Px4MarkovNoise
from sim_sensors.seeding import stream
from sim_sensors.variants import by_kind

__all__ = ['POSITION_NOISES', 'GaussianNoise', 'NoNoise', 'PositionNoise', 'RandomWalkNoise']


@dataclasses.dataclass(frozen=True)
class NoNoise(PositionNoise):
    """No position error (baseline, AirSim)."""

    kind: ClassVar[str] = 'none'

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return a process that is zero."""
        return _Zero()


class _Zero:
    """The process that is always zero; it draws nothing."""

    def __init__(self) -> None:
        self.value: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        return np.zeros((len(dt), 3))


@dataclasses.dataclass(frozen=True)
class GaussianNoise(PositionNoise):
    """White position error, independent from fix to fix: e = N(mean, std) per axis (Ch:Gauss).

    Source: [Chrono] ChNoiseNormal; defaults of the paper's demo [ART].
    """

    kind: ClassVar[str] = 'gaussian'

    mean: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'm', 'Mean error (east, north, up).'
    )
    std: tuple[float, float, float] = parameter(
        (0.03, 0.03, 0.03), 'm', 'Standard deviation of each fix (east, north, up).', minimum=0.0
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the white noise."""
        return White(stream(seed, run, sensor, 'position_white'), self.std, self.mean)


@dataclasses.dataclass(frozen=True)
class RandomWalkNoise(PositionNoise):
    """Smooth bounded wander of the position (Ch:RW); see `sim_sensors.bounded_walk`.

    The first fix has no error. Source: [Chrono] ChNoiseRandomWalks, [Caldararu2022];
    defaults of the paper's demo [ART].
    """

    kind: ClassVar[str] = 'chrono_random_walk'

    acceleration_std: float = parameter(
        0.047, 'm/s^2', 'Acceleration drawn at each step of the walk, per axis.', minimum=0.0
    )
    model_rate: float = parameter(
        100.0,
        'Hz',
        'Steps of the walk per second; not the rate of the GPS.',
        minimum=0.0,
        minimum_excluded=True,
        read_only=True,
    )
    speed_limit: float = parameter(
        0.016, 'm/s', 'Largest speed of the error, in 3-D; 0: no limit.', minimum=0.0
    )
    acceleration_limit: float = parameter(
        0.152, 'm/s^2', 'Largest acceleration of the error, per axis; 0: no limit.', minimum=0.0
    )
    error_scale: float = parameter(
        1.0,
        'm',
        'Scale E_max of the pull towards zero; not a bound.',
        minimum=0.0,
        minimum_excluded=True,
    )
    pull: float = parameter(0.2, '1', 'Strength c of the pull towards zero.', minimum=0.0)

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the walk at zero error and speed."""
        return BoundedWalk(
            stream(seed, run, sensor, 'position_walk'),
            acceleration_std=self.acceleration_std,
            model_rate=self.model_rate,
            speed_limit=self.speed_limit,
            acceleration_limit=self.acceleration_limit,
            error_scale=self.error_scale,
            pull=self.pull,
        )


POSITION_NOISES = by_kind(
    NoNoise,
    GaussianNoise,
    RandomWalkNoise,
    GnssNoise,
    GazeboPositionNoise,
    GeodeticNoise,
    HectorNoise,
    Px4ClassicNoise,
    Px4MarkovNoise,
)
