# SPDX-License-Identifier: Apache-2.0
"""The drift of a Hector GPS: a drifting velocity moves a position that drifts by itself."""

from __future__ import annotations

import functools
import math

import numpy as np

from sim_sensors.core.measurements import FloatArray

# Gauss-Legendre nodes: exact to the last digits for steps below ten correlation times.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


class HectorPositionDrift:
    """Two coupled Gauss-Markov processes per axis, d' = -f d + v + s w, v' = -g v + q w, with
    s = sqrt(2 f) drift and q = sqrt(2 g) velocity_drift.

    Exact: drawn from the joint normal law of d and v after the step. As upstream: explicit steps
    with noise proportional to dt, after which d moves by v dt.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    std : pair of (3,)
        Deviations of d (m) without v, and of v (m/s).
    frequency : pair of float
        f and g, Hz, > 0.
    is_exact : bool
        See above.
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
