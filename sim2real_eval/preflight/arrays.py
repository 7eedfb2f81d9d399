# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays that several checks share."""

from __future__ import annotations

import numpy as np

from sim_sensors.core.measurements import FloatArray

_MEDIAN_OF_SQUARE = 0.455
"""Median of the square of a standard normal number, as in [Hampel1974]."""


def plane(vectors: FloatArray) -> FloatArray:
    """Return the horizontal parts of vectors, (n, 2 or 3), as complex numbers."""
    complex_numbers: FloatArray = vectors[:, 0] + 1j * vectors[:, 1]
    return complex_numbers


def robust_variance(errors: FloatArray) -> float:
    """Return the variance of Gaussian errors around zero from the median of their squares."""
    return float(np.median(errors**2)) / _MEDIAN_OF_SQUARE
