# SPDX-License-Identifier: Apache-2.0
"""The covariances that an IMU states for its rates and accelerations."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray


class ReportedCovariance(Protocol):
    """What is published as covariance of one triad, with whatever state that takes."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return covariances `(n, 3, 3)` for values `(n, 3)` with white noise of that variance."""


class Diagonal:
    """The variance of the white noise, on the diagonal."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return diag(variance)."""
        matrices = np.zeros((len(variance), 3, 3))
        matrices[:, [0, 1, 2], [0, 1, 2]] = variance
        return matrices


class Correlated:
    """The covariance of white noise whose axes are correlated.

    Parameters
    ----------
    correlation : tuple of 3 float
        Of x with y, x with z and y with z.
    """

    def __init__(self, correlation: tuple[float, float, float]) -> None:
        self._correlation = correlation

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return matrices with `variance` on the diagonal."""
        matrices = Diagonal().state(measured, variance)
        for i, j, c in zip((0, 0, 1), (1, 2, 2), self._correlation, strict=True):
            if c:
                matrices[:, i, j] = c * np.sqrt(variance[:, i] * variance[:, j])
                matrices[:, j, i] = matrices[:, i, j]
        return matrices


class Unknown:
    """Zeros, which sensor_msgs/Imu defines as unknown."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((len(variance), 3, 3))


class OuterProduct:
    """What Chrono's ROS handler publishes in place of a covariance: the outer product of the
    latest deviation from the running mean over the count of samples less one,

        (y[k] - m[k]) (y[k] - m[k])^T / (k - 1),   m[k] = mean of y[1] ... y[k]

    which is a matrix of rank one and fades like 1/k. The first, which would be 0/0, is zero.
    """

    def __init__(self) -> None:
        # Mean, and count of samples.
        self._state = np.zeros(4)

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the outer products."""
        return _outer_products(self._state, measured)


@compiled
def _outer_products(state: FloatArray, measured: FloatArray) -> FloatArray:
    """Advance `state` in place."""
    out = np.zeros((measured.shape[0], 3, 3))
    for k in range(measured.shape[0]):
        state[3] += 1.0
        for i in range(3):
            state[i] += (measured[k, i] - state[i]) / state[3]
        if state[3] > 1.0:
            for i in range(3):
                for j in range(3):
                    product = (measured[k, i] - state[i]) * (measured[k, j] - state[j])
                    out[k, i, j] = product / (state[3] - 1.0)
    return out
