# SPDX-License-Identifier: Apache-2.0
"""Correction of the 15-state extended Kalman filter, compiled.

A measurement measures some of the states directly, so H only selects: rows and columns of P are
gathered instead of multiplied.
"""

from __future__ import annotations

import math

from sim2real_eval.judge.filter import INITIALISED, LAST_NS, Dynamics, Filter
from sim2real_eval.judge.prediction import predict, wrap_angle
from sim2real_eval.judge.state import ROLL, YAW, N
from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['advance', 'correct', 'process']

_MINIMUM_VARIANCE = 1e-9
_LONGEST_STEP_S = 100000.0
_STEP_INSTEAD_S = 0.01


@compiled
def _invert(S: FloatArray, m: int, inverse: FloatArray) -> bool:
    """Invert the leading (m, m) block of S, which is destroyed; False when it is singular."""
    for i in range(m):
        for j in range(m):
            inverse[i, j] = 1.0 if i == j else 0.0
    for column in range(m):
        pivot = column
        for row in range(column + 1, m):
            if abs(S[row, column]) > abs(S[pivot, column]):
                pivot = row
        if S[pivot, column] == 0.0 or not math.isfinite(S[pivot, column]):
            return False
        if pivot != column:
            for j in range(m):
                S[pivot, j], S[column, j] = S[column, j], S[pivot, j]
                inverse[pivot, j], inverse[column, j] = inverse[column, j], inverse[pivot, j]
        scale = 1.0 / S[column, column]
        for j in range(m):
            S[column, j] *= scale
            inverse[column, j] *= scale
        for row in range(m):
            factor = S[row, column]
            if row != column and factor != 0.0:
                for j in range(m):
                    S[row, j] -= factor * S[column, j]
                    inverse[row, j] -= factor * inverse[column, j]
    return True


@compiled
def correct(
    flt: Filter, index: IntArray, m: int, z: FloatArray, R: FloatArray, threshold: float
) -> bool:
    """Correct with `m` directly measured states; return False when the gate refused them.

    Parameters
    ----------
    flt : Filter
        Changed in place.
    index : (>= m,) int64
        States that are measured.
    m : int
        How many of them.
    z : (>= m,) float
        Measured values.
    R : (>= m, >= m) float
        Their covariance; its diagonal is floored in place as robot_localization does.
    threshold : float
        Mahalanobis distance from which on the measurement is refused; infinity for no gate.
    """
    x, P = flt.x, flt.P
    S, inverse, K, A = flt.work[0], flt.work[1], flt.work[2], flt.work[3]
    for i in range(m):
        R[i, i] = max(abs(R[i, i]), _MINIMUM_VARIANCE)
        for j in range(m):
            S[i, j] = P[index[i], index[j]] + R[i, j]
    if not _invert(S, m, inverse):
        return False

    # S is free now: its first row keeps the innovation.
    nu = S[0]
    for i in range(m):
        nu[i] = z[i] - x[index[i]]
        if ROLL <= index[i] <= YAW:
            nu[i] = wrap_angle(nu[i])
    if threshold < math.inf:
        distance = 0.0
        for i in range(m):
            for j in range(m):
                distance += nu[i] * inverse[i, j] * nu[j]
        if distance >= threshold * threshold:
            return False

    for i in range(N):
        for j in range(m):
            total = 0.0
            for k in range(m):
                total += P[i, index[k]] * inverse[k, j]
            K[i, j] = total
    for i in range(N):
        total = 0.0
        for j in range(m):
            total += K[i, j] * nu[j]
        x[i] += total
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])

    # Joseph form: A = (I - K H) P, then P = A (I - K H)' + K R K'.
    for i in range(N):
        for j in range(N):
            total = P[i, j]
            for k in range(m):
                total -= K[i, k] * P[index[k], j]
            A[i, j] = total
    for i in range(N):
        # What A lacks of K R, so that one product with K' finishes the row.
        for k in range(m):
            total = -A[i, index[k]]
            for j in range(m):
                total += K[i, j] * R[j, k]
            S[0, k] = total
        for j in range(N):
            total = A[i, j]
            for k in range(m):
                total += S[0, k] * K[j, k]
            P[i, j] = total
    return True


@compiled
def advance(flt: Filter, dyn: Dynamics, stamp_ns: int) -> None:
    """Predict to `stamp_ns`, which becomes the last measurement time."""
    dt = (stamp_ns - flt.times[LAST_NS]) * 1e-9
    if dt > _LONGEST_STEP_S:
        dt = _STEP_INSTEAD_S
    predict(flt, dyn, stamp_ns, dt)
    flt.times[LAST_NS] = stamp_ns


@compiled
def process(
    flt: Filter,
    dyn: Dynamics,
    stamp_ns: int,
    index: IntArray,
    m: int,
    z: FloatArray,
    R: FloatArray,
    threshold: float,
) -> bool:
    """Take one measurement: initialise, or predict to its stamp when it is newer, and correct.

    Returns
    -------
    bool
        False when the gate refused the measurement.
    """
    accepted = True
    if flt.times[INITIALISED] == 0:
        for i in range(m):
            flt.x[index[i]] = z[i]
            for j in range(m):
                flt.P[index[i], index[j]] = R[i, j]
        flt.times[INITIALISED] = 1
        flt.times[LAST_NS] = stamp_ns
        return accepted
    elapsed_ns = stamp_ns - flt.times[LAST_NS]
    if elapsed_ns > 0:
        advance(flt, dyn, stamp_ns)
    if m > 0:
        accepted = correct(flt, index, m, z, R, threshold)
    return accepted
