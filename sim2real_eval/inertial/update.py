# SPDX-License-Identifier: Apache-2.0
"""Correction of the error-state filter by up to three measured numbers; compiled."""

from __future__ import annotations

import math

from sim2real_eval.inertial.strapdown import (
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    add_error,
    coefficients,
)
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = ['distance', 'update']


@kernel
def distance(
    P: FloatArray,
    H: FloatArray,
    nu: FloatArray,
    R: FloatArray,
    m: int,
    PH: FloatArray,
    L: FloatArray,
) -> float:
    """Return nu' S^-1 nu with S = H P H' + R = L L', and fill PH = P H' and L.

    Parameters
    ----------
    P : (15, 15) float
    H : (>= m, 15) float
    nu : (>= m,) float
    R : (>= m, >= m) float
    m : int
        At most 3.
    PH : (15, 3) float
    L : (4, 3) float
        Lower triangle in the first three rows; the last becomes L^-1 nu.
    """
    for i in range(ERRORS):
        for j in range(m):
            total = 0.0
            for k in range(ERRORS):
                total += P[i, k] * H[j, k]
            PH[i, j] = total
    square = 0.0
    for i in range(m):
        for j in range(i + 1):
            total = R[i, j]
            for k in range(ERRORS):
                total += H[i, k] * PH[k, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(total) if i == j else total / L[j, j]
        residual = nu[i]
        for k in range(i):
            residual -= L[i, k] * L[3, k]
        L[3, i] = residual / L[i, i]
        square += L[3, i] * L[3, i]
    return square


@kernel
def update(
    x: FloatArray,
    P: FloatArray,
    H: FloatArray,
    R: FloatArray,
    m: int,
    PH: FloatArray,
    L: FloatArray,
    K: FloatArray,
    A: FloatArray,
    e: FloatArray,
    J: FloatArray,
    blind: FloatArray,
) -> None:
    """Correct state and covariance after `distance`, by the Joseph form, and reset the error.

    The error that is left, e', belongs to the corrected attitude: Exp(e') = Exp(truth) Exp(-e), so
    de' = J de with J the left Jacobian of e ([Sola2017], section 7.2.3, there to first order).

    Parameters
    ----------
    x, P, H, R, m, PH, L
        As in `distance`; x, (16,), and P are changed in place.
    blind : (2, 3) float
        Directions in which attitude and gyroscope bias are left as they are, unit vectors; zeros:
        none. Their correlations count in full (Schmidt's consider filter; the Joseph form holds
        for any gain).
    K : (15, 3) float
    A : (15, 15) float
    e : (16,) float
        Becomes the correction.
    J : (4, 4) float
    """
    # K = PH S^-1 = (PH L'^-1) L^-1, and e = K nu = (PH L'^-1) (L^-1 nu).
    for i in range(ERRORS):
        e[i] = 0.0
        for j in range(m):
            total = PH[i, j]
            for k in range(j):
                total -= K[i, k] * L[j, k]
            K[i, j] = total / L[j, j]
            e[i] += K[i, j] * L[3, j]
        for j in range(m - 1, -1, -1):
            total = K[i, j]
            for k in range(j + 1, m):
                total -= K[i, k] * L[k, j]
            K[i, j] = total / L[j, j]
    for first, direction in ((ATTITUDE, blind[0]), (GYROSCOPE_BIAS, blind[1])):
        along = 0.0
        for i in range(3):
            along += direction[i] * e[first + i]
        for i in range(3):
            e[first + i] -= direction[i] * along
        for j in range(m):
            along = 0.0
            for i in range(3):
                along += direction[i] * K[first + i, j]
            for i in range(3):
                K[first + i, j] -= direction[i] * along
    # (I - K H) P (I - K H)' + K R K' with A = (I - K H) P.
    for i in range(ERRORS):
        for j in range(ERRORS):
            total = P[i, j]
            for k in range(m):
                total -= K[i, k] * PH[j, k]
            A[i, j] = total
    for i in range(ERRORS):
        for k in range(m):
            total = 0.0
            for j in range(ERRORS):
                total -= A[i, j] * H[k, j]
            for j in range(m):
                total += K[i, j] * R[j, k]
            PH[i, k] = total
    for i in range(ERRORS):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(m):
                total += PH[i, k] * K[j, k]
            P[i, j] = total
            P[j, i] = total

    t = e[ATTITUDE:GYROSCOPE_BIAS]
    t2 = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    _, a, b, _ = coefficients(t2)
    for i in range(3):
        for j in range(3):
            skew = 0.0
            if i != j:
                skew = -t[3 - i - j] if (j - i) % 3 == 1 else t[3 - i - j]
            square = t[i] * t[j] - (t2 if i == j else 0.0)
            J[i, j] = (1.0 if i == j else 0.0) + a * skew + b * square
    for j in range(ERRORS):
        for i in range(3):
            J[3, i] = 0.0
            for k in range(3):
                J[3, i] += J[i, k] * P[ATTITUDE + k, j]
        for i in range(3):
            P[ATTITUDE + i, j] = J[3, i]
    for j in range(ERRORS):
        for i in range(3):
            J[3, i] = 0.0
            for k in range(3):
                J[3, i] += J[i, k] * P[j, ATTITUDE + k]
        for i in range(3):
            P[j, ATTITUDE + i] = J[3, i]
    for i in range(ERRORS):
        for j in range(i):
            P[i, j] = P[j, i]
    add_error(x, e, J[3])
