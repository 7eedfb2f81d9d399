# SPDX-License-Identifier: Apache-2.0
"""Flicker noise, the bias instability of inertial sensors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray

# Neighbouring time constants are at most this factor apart, which makes the plateau wavy by less
# than 0.1 %; they go this far beyond both ends of the span, where it falls by 1.6 %.
_SPACING = 5.0
_MARGIN = 5.0


class Flicker:
    """Noise with the spectral density B^2 / (2 pi f), so that its Allan deviation is a plateau at
    sqrt(2 ln(2) / pi) B = 0.664 B.

    It is a sum of stationary Gauss-Markov processes whose time constants T are spaced evenly on a
    logarithmic scale with the step L = ln(T[i+1] / T[i]). Each has the variance B^2 L / pi, since
    the integral of 2 T / (1 + (2 pi f T)^2) over ln T is 1 / (2 f); the first and the last also
    carry what the faster ones contribute as white noise and the slower ones as a random walk,
    which makes theirs 1 / (1 - exp(-L)) times as large. Within the span the plateau is met to 2 %;
    below it the Allan deviation rises as its square root of time, above it falls so.

    A value is the mean of the sum over the interval before it, drawn from the exact joint law of
    that mean and of the state at its end: with x = dt / T[i] and a = exp(-x) the state is a x[i]
    + sqrt(1 - a^2) w, and the mean has, given the state before, the expectation x[i] (1 - a) / x,
    the variance (2 x - 3 + 4 a - a^2) / x^2 and the covariance (1 - a)^2 / x with the state
    after. So averages over several samples are those of the process in continuous time, and the
    Allan deviation is the same at every rate, down to an averaging time of one sample.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    instability : float or (axes,)
        B, unit u.
    shortest, longest : float
        Span of averaging times with a plateau, s, 0 < shortest < longest.
    axes : int
        Number of independent components.

    References
    ----------
    [IEEE952], annex C.1.3 (B and the plateau). Sum of relaxation processes: [VanDerZiel1950].
    """

    def __init__(
        self,
        rng: np.random.Generator,
        instability: ArrayLike,
        shortest: float,
        longest: float,
        *,
        axes: int = 3,
    ) -> None:
        first, last = shortest / _MARGIN, longest * _MARGIN
        count = math.ceil(math.log(last / first) / math.log(_SPACING)) + 1
        self._rng = rng
        self._times = np.geomspace(first, last, count)
        step = math.log(last / first) / (count - 1)
        variance = np.full(count, step / math.pi)
        variance[[0, -1]] /= -math.expm1(-step)
        instability = np.broadcast_to(np.asarray(instability, dtype=np.float64), (axes,))
        self._std = np.sqrt(variance)[:, None] * instability
        self._state: FloatArray = rng.standard_normal((count, axes))
        self.value: FloatArray = (self._std * self._state).sum(axis=0)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        normals = self._rng.standard_normal((len(dt), len(self._times) + 1, self._state.shape[1]))
        values = _flicker(self._state, self._std, self._times, dt, normals)
        if len(values):
            self.value = values[-1].copy()
        return values


@compiled
def _flicker(
    state: FloatArray, std: FloatArray, times: FloatArray, dt: FloatArray, normals: FloatArray
) -> FloatArray:
    """Advance `state` in place."""
    count, axes = state.shape
    out = np.zeros((dt.shape[0], axes))
    rest = np.empty(axes)
    for k in range(dt.shape[0]):
        rest[:] = 0.0
        for i in range(count):
            x = dt[k] / times[i]
            a = math.exp(-x)
            b2 = -math.expm1(-2.0 * x)
            carried = -math.expm1(-x) / x
            shared = x * carried * carried
            # The closed form loses its digits where x is small; the series errs by 1e-9.
            if x < 0.01:
                spread = x * (2.0 / 3.0 - x * (0.5 - x * (7.0 / 30.0 - x / 12.0)))
            else:
                spread = (2.0 * x - 3.0 + 4.0 * a - a * a) / (x * x)
            b = math.sqrt(b2)
            # What the mean has beside the state is white: that of all processes is drawn at once.
            own = max(spread - shared * shared / b2, 0.0)
            for axis in range(axes):
                w = normals[k, i, axis]
                out[k, axis] += std[i, axis] * (carried * state[i, axis] + shared / b * w)
                state[i, axis] = a * state[i, axis] + b * w
                rest[axis] += std[i, axis] * std[i, axis] * own
        for axis in range(axes):
            out[k, axis] += math.sqrt(rest[axis]) * normals[k, count, axis]
    return out
