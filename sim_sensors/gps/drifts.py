# SPDX-License-Identifier: Apache-2.0
"""Position errors that drift step by step: those of Hector's GPS and of PX4's simulated ones.

PX4 simulates a GPS in three places: Gazebo classic's plugin, GZBridge and SensorGpsSim.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import stream, streams
from sim_sensors.core.shared_parameters import axes
from sim_sensors.gps.position_noise import ProcessSum, UpstreamNoise
from sim_sensors.noise.processes import GaussMarkov, Process, White

# Gauss-Legendre nodes: exact to the last digits for steps below ten correlation times.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)

# Radius by which PX4 turns metres into degrees, CONSTANTS_RADIUS_OF_EARTH of its geo.h [PX4].
_RADIUS = 6371000.0


@dataclasses.dataclass(frozen=True)
class HectorNoise(UpstreamNoise):
    """Hector's sensor models of position and velocity, of which one drives the other.

    e = offset + d + N(0, gaussian_noise); d' = -drift_frequency d + v + noise, where v is the
    drift of the velocity and both noises give a drift of its own deviation. d starts with
    `drift`, v with `velocity_drift`.

    As upstream the noise of a step is proportional to dt instead of sqrt(dt), so that deviations
    depend on the rate. Source: [Hector] sensor_model.h, gazebo_ros_gps.cpp.
    """

    kind: ClassVar[str] = 'hector'

    offset: tuple[float, float, float] = axes('m', 'Constant error.')
    drift: tuple[float, float, float] = axes(
        'm', 'Deviation of the drift of the position.', minimum=0.0
    )
    drift_frequency: float = parameter(
        1.0 / 3600.0, 'Hz', 'One over the correlation time of that drift.', above=0.0
    )
    gaussian_noise: tuple[float, float, float] = axes(
        'm', 'Deviation of the noise of each fix.', minimum=0.0
    )
    velocity_drift: tuple[float, float, float] = axes(
        'm/s', 'Deviation of the drift of the velocity.', minimum=0.0
    )
    velocity_drift_frequency: float = parameter(
        1.0 / 3600.0,
        'Hz',
        'One over the correlation time of the drift of the velocity.',
        above=0.0,
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the noise with its drifts drawn."""
        rng = streams(seed, run, sensor, 'position')
        drift = HectorPositionDrift(
            rng('drift'),
            (self.drift, self.velocity_drift),
            (self.drift_frequency, self.velocity_drift_frequency),
            is_exact=self.is_exact,
        )
        return ProcessSum(White(rng('white'), self.gaussian_noise, self.offset), drift)


class HectorPositionDrift:
    """Two coupled Gauss-Markov processes per axis, d' = -f d + v + s w, v' = -g v + q w, with
    s = sqrt(2 f) drift and q = sqrt(2 g) velocity_drift.

    Exact: drawn from the joint normal law of d and v after the step. As upstream: explicit steps
    with noise proportional to dt, after which d moves by v dt. `std` are the deviations of d (m)
    without v, and of v (m/s), `(3,)` each; `frequency` f and g, Hz, > 0.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        std: tuple[tuple[float, float, float], tuple[float, float, float]],
        frequency: tuple[float, float],
        *,
        is_exact: bool,
    ) -> None:
        self._rng = rng
        self._std = np.asarray(std)
        self._frequency = frequency
        self._is_exact = is_exact
        state = self._std * rng.standard_normal((2, 3))
        self.value: FloatArray = state[0]
        self._velocity: FloatArray = state[1]

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return d after each step, `(n, 3)`."""
        normals = self._rng.standard_normal((len(dt), 3, 3))
        values = np.empty((len(dt), 3))
        for k, step in enumerate(dt.tolist()):
            self._step(step, normals[k])
            values[k] = self.value
        return values

    def _step(self, dt: float, normals: FloatArray) -> None:
        f, g = self._frequency
        own, others = self._std
        a, b = math.exp(-f * dt), math.exp(-g * dt)
        if self._is_exact:
            # Of equal intervals on a grid of nanoseconds few differ at all.
            carried, shared, rest = _coupling(f, g, round(dt * 1e9))
            s = math.sqrt(-math.expm1(-2.0 * f * dt))
            q = math.sqrt(-math.expm1(-2.0 * g * dt))
            position = a * self.value + carried * self._velocity + s * own * normals[0]
            self.value = position + others * (shared * normals[1] + rest * normals[2])
            self._velocity = b * self._velocity + q * others * normals[1]
        else:
            s, q = dt * math.sqrt(2.0 * f), dt * math.sqrt(2.0 * g)
            self._velocity = b * self._velocity + q * others * normals[1]
            self.value = a * self.value + s * own * normals[0] + dt * self._velocity


@functools.lru_cache(maxsize=1024)
def _coupling(f: float, g: float, dt_ns: int) -> tuple[float, float, float]:
    """Return what d gets in a step per unit of v, per unit normal that v gets, and besides.

    d gets c(t) = (exp(-g t) - exp(-f t)) / (f - g) of what v had a time t before, so its variance
    is the integral of 2 g c^2 and its covariance with v that of 2 g c exp(-g t).
    """
    dt = dt_ns * 1e-9
    t = 0.5 * dt * (_NODES + 1.0)
    weights = 0.5 * dt * _WEIGHTS
    variance = float(np.sum(weights * 2.0 * g * _carried(f, g, t) ** 2))
    covariance = float(np.sum(weights * 2.0 * g * _carried(f, g, t) * np.exp(-g * t)))
    spread = -math.expm1(-2.0 * g * dt)
    shared = covariance / math.sqrt(spread) if spread > 0.0 else 0.0
    rest = math.sqrt(max(variance - shared * shared, 0.0))
    return float(_carried(f, g, np.array([dt]))[0]), shared, rest


def _carried(f: float, g: float, t: FloatArray) -> FloatArray:
    x = (f - g) * t
    safe = np.where(np.abs(x) > 1e-12, x, 1.0)
    ratio = np.where(np.abs(x) > 1e-12, -np.expm1(-safe) / safe, 1.0)
    return np.asarray(t * np.exp(-g * t) * ratio)


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
        step, time = 1.0 / self.physics_rate, self.time_constant
        rng = streams(seed, run, sensor, 'position')
        if self.is_exact:
            white = White(rng('white'), density / math.sqrt(step))
            bias: Process = GaussMarkov(rng('gauss_markov'), walk * math.sqrt(0.5 * time), time)
        else:
            white = White(rng('white'), density * math.sqrt(step))
            carried, spread = 1.0 - 1.0 / time, walk * step**1.5
            bias = _StepMarkov(rng('gauss_markov'), carried, spread, self.physics_rate)
        return ProcessSum(white, bias)


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
