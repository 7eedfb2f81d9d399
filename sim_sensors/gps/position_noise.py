# SPDX-License-Identifier: Apache-2.0
"""What every position error of a GPS is."""

from __future__ import annotations

import abc
import dataclasses
import math

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.shared_parameters import Upstream
from sim_sensors.noise.processes import Process


@dataclasses.dataclass(frozen=True)
class PositionNoise(Parameters, abc.ABC):
    """Position error of a GPS: parameters that start a process of metres east, north, up."""

    @property
    def is_angular(self) -> bool:
        """Whether the error is degrees of longitude, degrees of latitude and metres up instead."""
        return False

    @abc.abstractmethod
    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the process with its state, three axes; its first interval is 0 s."""


@dataclasses.dataclass(frozen=True)
class UpstreamNoise(Upstream, PositionNoise):
    """Error of a GPS of another simulator, as it should be or with the defects that it has."""


class ProcessSum:
    """Sum of processes, added in the order given."""

    def __init__(self, *parts: Process) -> None:
        self._parts = parts

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(3,)`."""
        total = np.zeros(3)
        for part in self._parts:
            total = total + part.value
        return total

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, 3)`."""
        total = np.zeros((len(dt), 3))
        for part in self._parts:
            total = total + part.advance(dt)
        return total


# Chrono's bounded random walk of the GPS position error: smooth, pulled home, speed-
# limited.

# Intervals longer than a whole number of steps by less than this fraction of a step are rounding
# dust of float seconds: without it a dust of 1e-17 s would cost an extra step and an extra draw.
_DUST = 1e-6


class BoundedWalk:
    """Position error e driven by a clipped random acceleration, with the speed limited.

    Each interval is integrated with steps h = min(1/model_rate, what remains), per axis::

        a  = clip(N(-pull std e / error_scale, std), -acceleration_limit, +acceleration_limit)
        s += a h;   s *= speed_limit / |s| where |s| > speed_limit (3-D norm)
        e += s h                                  (the new s: symplectic Euler)

    `std` is per step, so the statistics depend on `model_rate`, but not on the rate of the
    samples as long as `model_rate` is a multiple of it.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    acceleration_std : float
        m/s^2 per step.
    model_rate : float
        1/h, Hz.
    speed_limit : float
        m/s; 0: no limit.
    acceleration_limit : float
        m/s^2; 0: no limit.
    error_scale : float
        m, > 0; a scale and not a bound.
    pull : float
        Strength of the pull towards zero error, >= 0.

    Notes
    -----
    ChNoiseRandomWalks of [Chrono] with its hard-coded pull 0.2 and error scale 1 m made
    parameters, and its unused mean argument left out ([Caldararu2022]).
    """

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        acceleration_std: float,
        model_rate: float,
        speed_limit: float,
        acceleration_limit: float,
        error_scale: float,
        pull: float,
    ) -> None:
        self._rng = rng
        self._step = 1.0 / model_rate
        self._std = acceleration_std
        self._gradient = -pull * acceleration_std / error_scale
        self._speed_limit = speed_limit or math.inf
        self._acceleration_limit = acceleration_limit or math.inf
        self.value: FloatArray = np.zeros(3)
        self.speed: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the position error at the next samples, `(n, 3)` m; `dt` is `(n,)` s, >= 0."""
        steps = np.ceil(dt / self._step - _DUST).astype(np.int64)
        normals = self._rng.standard_normal((int(steps.sum()), 3))
        values: FloatArray = _integrate(
            self.value,
            self.speed,
            dt,
            steps,
            normals,
            self._step,
            self._std,
            self._gradient,
            self._speed_limit,
            self._acceleration_limit,
        )
        return values


@compiled
def _integrate(
    e: FloatArray,
    s: FloatArray,
    dt: FloatArray,
    steps: IntArray,
    normals: FloatArray,
    step: float,
    std: float,
    gradient: float,
    speed_limit: float,
    acceleration_limit: float,
) -> FloatArray:
    """Advance e and s in place; return e after each interval."""
    out = np.empty((dt.shape[0], 3))
    draw = 0
    for k in range(dt.shape[0]):
        for i in range(steps[k]):
            h = step if i < steps[k] - 1 else dt[k] - step * (steps[k] - 1)
            for axis in range(3):
                a = gradient * e[axis] + std * normals[draw, axis]
                a = min(max(a, -acceleration_limit), acceleration_limit)
                s[axis] += a * h
            norm = math.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
            if norm > speed_limit:
                for axis in range(3):
                    s[axis] *= speed_limit / norm
            for axis in range(3):
                e[axis] += s[axis] * h
            draw += 1
        for axis in range(3):
            out[k, axis] = e[axis]
    return out
