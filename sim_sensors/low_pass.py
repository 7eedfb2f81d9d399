# SPDX-License-Identifier: Apache-2.0
"""The bandwidth of a sensor: a low pass of first or second order, exactly discretised."""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray

__all__ = ['LowPass']


class LowPass:
    """Low pass with -3 dB at `bandwidth` and unit gain at rest.

    First order: y' = w (u - y). Second order: Butterworth, y'' = w^2 (u - y) - sqrt(2) w y'. With
    w = 2 pi bandwidth, and u constant over each interval between samples, the sampled solution is
    exact for every interval. White noise therefore keeps its density inside the band at every
    rate, and nothing is folded into it from above the rate.

    The filter starts settled on the first clean value; its noise starts from zero, and the
    variance of the noise is propagated with it.

    Parameters
    ----------
    bandwidth : float
        Hz, > 0.
    order : {1, 2}
    axes : int
        Number of components.
    """

    def __init__(self, bandwidth: float, order: int, *, axes: int = 3) -> None:
        self._omega = 2.0 * math.pi * bandwidth
        self._order = order
        # Per axis: value, its derivative; variance of value, covariance of both, of derivative.
        self._state = np.zeros((axes, 5))
        self._is_settled = False

    def filter(
        self, clean: FloatArray, noise: FloatArray, variance: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the filtered sum of signal and white noise, and the variance of its noise.

        Parameters
        ----------
        clean, noise, variance : (n, axes)
            Signal, noise, and variance of the noise at each sample.
        dt : (n,)
            Time since the sample before, s.
        """
        if not self._is_settled and len(clean):
            self._state[:, 0] = clean[0]
            self._is_settled = True
        return _filter(self._state, self._omega, self._order, clean + noise, variance, dt)


@compiled
def _filter(
    state: FloatArray,
    omega: float,
    order: int,
    inputs: FloatArray,
    variance: FloatArray,
    dt: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Advance `state` in place."""
    out, spread = np.empty_like(inputs), np.empty_like(inputs)
    half = math.sqrt(0.5) * omega
    for k in range(inputs.shape[0]):
        # Transition matrix of (y - u, y').
        if order == 1:
            f00, f01, f10, f11 = math.exp(-omega * dt[k]), 0.0, 0.0, 0.0
        else:
            e, x = math.exp(-half * dt[k]), half * dt[k]
            c, s = math.cos(x), math.sin(x)
            f00, f01 = e * (c + s), e * s / half
            f10, f11 = -e * s * 2.0 * half, e * (c - s)
        for axis in range(inputs.shape[1]):
            y, v, p00, p01, p11 = state[axis]
            u, q = inputs[k, axis], variance[k, axis]
            state[axis, 0] = u + f00 * (y - u) + f01 * v
            state[axis, 1] = f10 * (y - u) + f11 * v
            g0, g1 = 1.0 - f00, -f10
            state[axis, 2] = (
                f00 * f00 * p00 + 2.0 * f00 * f01 * p01 + f01 * f01 * p11 + g0 * g0 * q
            )
            state[axis, 3] = (
                f00 * f10 * p00 + (f00 * f11 + f01 * f10) * p01 + f01 * f11 * p11 + g0 * g1 * q
            )
            state[axis, 4] = (
                f10 * f10 * p00 + 2.0 * f10 * f11 * p01 + f11 * f11 * p11 + g1 * g1 * q
            )
            out[k, axis], spread[k, axis] = state[axis, 0], state[axis, 2]
    return out, spread
