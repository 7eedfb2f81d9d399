# SPDX-License-Identifier: Apache-2.0
"""Points that stand for independent random numbers: a weighted few with the same moments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['points_of']

# Where all combinations of signs become many, some are products of others.
_MOST = 6
_PRODUCTS = ([0, 1, 2, 3], [0, 1, 4, 5])


def points_of(kurtosis: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return points and weights with the moments of independent numbers, to the fourth.

    Of mean 0, variance 1 and symmetric laws, so that the mean of every polynomial of degree four
    is right, and so that of the square of whatever is quadratic in them. It is a central composite
    design (G. E. P. Box and K. B. Wilson, 1951): corners (+-a, .., +-a) of total weight r^2, a
    pair +-b_i on each axis, and the centre. Moments x_i^2, x_i^4 and x_i^2 x_j^2 of 1, k_i and 1
    ask for a^2 = 1/r, b_i^2 = (k_i - 1)/(1 - r) and weights (1 - r)^2 / (2 (k_i - 1)) of each of a
    pair. No weight is negative where r >= (s - 1)/(s + 1), s the sum of 1/(k_i - 1).

    Parameters
    ----------
    kurtosis : sequence of m floats
        Fourth moments k_i, above 1: 3 of a normal number, 1.8 of a uniform one. `m` is at most 8.

    Returns
    -------
    points : (p, m)
        81 of eight numbers, 25 of four, 1 of none.
    weights : (p,)
        Their sum is 1.
    """
    m = len(kurtosis)
    if not m:
        return np.zeros((1, 0)), np.ones(1)
    excess = np.asarray(kurtosis, dtype=float) - 1.0
    total = float((1.0 / excess).sum())
    r = max(0.5, (total - 1.0) / (total + 1.0))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=min(m, _MOST))))
    # Of four each: no product of four columns or fewer is then the same at all corners.
    made = [signs[:, of].prod(axis=1) for of in _PRODUCTS[: max(m - _MOST, 0)]]
    corners = np.column_stack([signs, *made])
    axes = np.diag(np.sqrt(excess / (1.0 - r)))
    of_axes = (1.0 - r) ** 2 / (2.0 * excess)
    points = np.concatenate([corners / np.sqrt(r), axes, -axes, np.zeros((1, m))])
    of_corners = np.full(len(corners), r * r / len(corners))
    centre = max(1.0 - r * r - 2.0 * of_axes.sum(), 0.0)
    return points, np.concatenate([of_corners, of_axes, of_axes, [centre]])
