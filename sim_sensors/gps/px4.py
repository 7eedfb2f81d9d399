# SPDX-License-Identifier: Apache-2.0
"""The position errors of PX4's simulated GPS: Gazebo classic's plugin, GZBridge, SensorGpsSim."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import axes
from sim_sensors.gps.position_noise import ProcessSum, UpstreamNoise
from sim_sensors.noise.processes import GaussMarkov, Process, White

# Radius by which PX4 turns metres into degrees, CONSTANTS_RADIUS_OF_EARTH of its geo.h
# [PX4].
_RADIUS = 6371000.0


@dataclasses.dataclass(frozen=True)
class Px4ClassicNoise(UpstreamNoise):
    """The GPS plugin of PX4 for Gazebo classic: white noise on a bias.

    Exact, what the units of its parameters say: white noise of the density `noise_density` at
    the physics rate, noise_density sqrt(physics_rate) per fix; a Gauss-Markov bias driven by
    `random_walk`, so of deviation random_walk sqrt(time_constant / 2).

    As upstream with h = 1 / physics_rate: white noise_density sqrt(h), and once per step of the
    physics b <- b + random_walk sqrt(h) h w - b / 60, 60 being time_constant without its unit: two
    errors of dt. From zero; the steps between two fixes are taken at once, exactly in law.

    Source: [PX4Classic] gazebo_gps_plugin.
    """

    kind: ClassVar[str] = 'px4_classic'

    noise_density: tuple[float, float, float] = axes(
        'm/sqrt(Hz)', 'Density of the white noise.', (2e-4, 2e-4, 4e-4), minimum=0.0
    )
    random_walk: tuple[float, float, float] = axes(
        'm/sqrt(s)', 'Driving density of the bias.', (2.0, 2.0, 4.0), minimum=0.0
    )
    time_constant: float = parameter(
        60.0, 's', 'Correlation time of the bias; must be >= 1.', minimum=1.0
    )
    physics_rate: float = parameter(
        250.0, 'Hz', 'Steps of the physics per second.', above=0.0, read_only=True
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the sum of noise and bias."""
        density, walk = np.asarray(self.noise_density), np.asarray(self.random_walk)
        step = 1.0 / self.physics_rate
        noise_rng = stream(seed, run, sensor, 'position_white')
        bias_rng = stream(seed, run, sensor, 'position_gauss_markov')
        if self.is_exact:
            bias: Process = GaussMarkov(
                bias_rng, walk * math.sqrt(0.5 * self.time_constant), self.time_constant
            )
            return ProcessSum(White(noise_rng, density / math.sqrt(step)), bias)
        bias = _StepMarkov(
            bias_rng, 1.0 - 1.0 / self.time_constant, walk * step**1.5, self.physics_rate
        )
        return ProcessSum(White(noise_rng, density * math.sqrt(step)), bias)


@dataclasses.dataclass(frozen=True)
class Px4MarkovNoise(UpstreamNoise):
    """The noise of PX4's GZBridge and SensorGpsSim: e <- coefficient e + step_std w at each fix.

    Exact: a Gauss-Markov process that has that law at `model_rate` and keeps it at every rate,
    from its stationary law. As upstream: the same numbers at every rate, from zero; and metres
    east become degrees without the cosine of the latitude, so that they shrink by it.

    Source: [PX4] gz_bridge and sensor_gps_sim.
    """

    kind: ClassVar[str] = 'px4_markov'

    coefficient: float = parameter(
        0.93,
        '1',
        'Correlation of one fix with the next; must be < 1.',
        above=0.0,
        maximum=0.999999,
    )
    step_std: tuple[float, float, float] = axes(
        'm', 'Deviation of what each fix adds.', (0.008, 0.008, 0.012), minimum=0.0
    )
    model_rate: float = parameter(
        30.0,
        'Hz',
        'Rate at which upstream runs, where both variants have the same law.',
        above=0.0,
    )

    @property
    def is_angular(self) -> bool:
        """Whether it repeats the missing cosine."""
        return not self.is_exact

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the process."""
        rng = stream(seed, run, sensor, 'position_gauss_markov')
        step = np.asarray(self.step_std)
        if self.is_exact:
            time = -1.0 / (self.model_rate * math.log(self.coefficient))
            return GaussMarkov(rng, step / math.sqrt(1.0 - self.coefficient**2), time)
        degrees = math.degrees(1.0 / _RADIUS)
        return _StepMarkov(rng, self.coefficient, step * np.array([degrees, degrees, 1.0]))


class _StepMarkov:
    """y <- a y + std w at each step, from zero; with a rate, the steps between fixes at once.

    Steps of a rate are counted on a grid from the first fix, so that rounded intervals lose none.
    """

    def __init__(
        self, rng: np.random.Generator, a: float, std: FloatArray, rate: float | None = None
    ) -> None:
        self._rng, self._a, self._std, self._rate = rng, a, std, rate
        self._elapsed = 0.0
        self._taken = 0
        self.value: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        normals = self._rng.standard_normal((len(dt), 3))
        values = np.empty((len(dt), 3))
        for k, interval in enumerate(dt.tolist()):
            carried, spread = self._a, 1.0
            if self._rate is not None:
                self._elapsed += interval
                count = math.floor(self._elapsed * self._rate + 1e-6) - self._taken
                self._taken += count
                carried = self._a**count
                spread = math.sqrt((1.0 - carried**2) / (1.0 - self._a**2))
            self.value = carried * self.value + spread * self._std * normals[k]
            values[k] = self.value
        return values
