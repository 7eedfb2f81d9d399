# SPDX-License-Identifier: Apache-2.0
"""The covariances that an IMU states for its rates and accelerations."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['Diagonal', 'Statement', 'Unknown']


class Statement(Protocol):
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


class Unknown:
    """Zeros, which sensor_msgs/Imu defines as unknown."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((len(variance), 3, 3))
