# SPDX-License-Identifier: Apache-2.0
"""Innovation covariance, gate and gain of a correction, compiled; shared by both filters."""

from __future__ import annotations

import math

from sim2real_eval.judge.filter import Filter
from sim2real_eval.judge.rows import set_row, subtract_with_column, subtract_with_row
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = ['passes', 'solve_backward', 'solve_forward']

_MINIMUM_VARIANCE = 1e-9


@kernel
def passes(
    flt: Filter, S: FloatArray, R: FloatArray, m: int, nu: FloatArray, L: FloatArray,
    inverse: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    """Factor S + R = L D L' and say whether the innovation passes the gate.

    The squared Mahalanobis distance goes to `flt.distance`, unless S + R is singular: then the
    measurement does not pass.

    Parameters
    ----------
    flt : Filter
    S : (>= m, >= m) float
        Covariance of the predicted measurement; its lower triangle is read.
    R : (>= m, >= m) float
        That of the measurement; its diagonal is floored in place as robot_localization does.
    m : int
    nu : (>= m,) float
        The innovation; becomes L^-1 nu.
    L : (>= m, >= m) float
        Filled with L below the diagonal and (L D)' above.
    inverse : (>= m,) float
        Filled with 1 / D.
    threshold : float
        Mahalanobis distance from which on the measurement is refused.
    """
    distance = 0.0
    for j in range(m):
        R[j, j] = max(abs(R[j, j]), _MINIMUM_VARIANCE)
        error = nu[j]
        pivot = S[j, j] + R[j, j]
        for i in range(j):
            entry = S[j, i] + R[j, i]
            for k in range(i):
                entry -= L[k, j] * L[i, k]
            L[i, j] = entry
            L[j, i] = entry * inverse[i]
            pivot -= entry * L[j, i]
            error -= L[j, i] * nu[i]
        if pivot == 0.0 or not math.isfinite(pivot):
            return False
        nu[j] = error
        inverse[j] = 1.0 / pivot
        distance += error * error * inverse[j]
    flt.distance[0] = distance
    return not distance >= threshold * threshold


@kernel
def solve_forward(
    W: FloatArray, K: FloatArray, m: int, L: FloatArray, inverse: FloatArray
) -> None:
    """Replace `m` rows of W by L^-1 W; K becomes D^-1 of that."""
    for j in range(m):
        subtract_with_row(W, j, W, 0, j, L, j)
        set_row(K, j, W, (j,), (inverse[j],))


@kernel
def solve_backward(K: FloatArray, m: int, L: FloatArray) -> None:
    """Replace `m` rows of K by L'^-1 K; after `solve_forward` the transposed gain."""
    for j in range(m - 2, -1, -1):
        subtract_with_column(K, j, K, j + 1, m, L, j)
