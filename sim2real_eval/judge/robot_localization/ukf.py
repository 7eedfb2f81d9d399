# SPDX-License-Identifier: Apache-2.0
"""The 15-state unscented Kalman filter, compiled: robot_localization's, peculiarities included.

The mean of angles is that of their directions. What is peculiar (docs/explanation/judge.md):

- A correction takes P - K Pzz K' with Pzz the covariance of the predicted measurement without R.
- The correction after a prediction uses the points that were propagated, without that step's Q.
- Before the first prediction all points are zero, so the second measurement has no effect when it
  has the stamp of the first.
- Where a measured angle is the k-th measured state, the k-th entry of the difference of a point
  and the state is wrapped, not that of the angle.
- The control input does not act.
"""

from __future__ import annotations

import math

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray
from .ekf import control_acceleration, passes, solve_backward, solve_forward, wrap_angle
from .matrices import add_rows, mirror, set_row, subtract_with_column
from .state import AX, PITCH, POINTS_VALID, ROLL, VROLL, VX, YAW, Dynamics, Filter, N

_POINTS = 2 * N + 1


@kernel
def _draw_points(flt: Filter, spread: float) -> None:
    """Fill the points: the state, and it plus and minus the columns of the root of spread P."""
    x, P, points, L = flt.x, flt.P, flt.points, flt.work[0]
    for j in range(N):
        for i in range(j, N):
            total = spread * P[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[j, j] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(N):
        points[0, i] = x[i]
        for j in range(N):
            root = L[i, j] if j <= i else 0.0
            points[1 + j, i] = x[i] + root
            points[1 + N + j, i] = x[i] - root


@kernel
def move(point: FloatArray, dt: float) -> None:
    """Move one point on by `dt` seconds, by the transfer function of its own attitude."""
    sr, cr = math.sin(point[ROLL]), math.cos(point[ROLL])
    sp, cp = math.sin(point[PITCH]), math.cos(point[PITCH])
    sy, cy = math.sin(point[YAW]), math.cos(point[YAW])
    tp, ic = sp / cp, 1.0 / cp
    half = 0.5 * dt * dt
    u0 = point[VX] * dt + point[AX] * half
    u1 = point[VX + 1] * dt + point[AX + 1] * half
    u2 = point[VX + 2] * dt + point[AX + 2] * half
    w0, w1, w2 = point[VROLL], point[VROLL + 1], point[VROLL + 2]
    point[0] += cy * cp * u0 + (cy * sp * sr - sy * cr) * u1 + (cy * sp * cr + sy * sr) * u2
    point[1] += sy * cp * u0 + (sy * sp * sr + cy * cr) * u1 + (sy * sp * cr - cy * sr) * u2
    point[2] += -sp * u0 + cp * sr * u1 + cp * cr * u2
    point[ROLL] += dt * (w0 + sr * tp * w1 + cr * tp * w2)
    point[PITCH] += dt * (cr * w1 - sr * w2)
    point[YAW] += dt * (sr * ic * w1 + cr * ic * w2)
    for i in range(3):
        point[VX + i] += dt * point[AX + i]


@kernel
def _mean(points: FloatArray, state: int, first: float, others: float) -> float:
    """Return the weighted mean of a state over the points; of an angle, that of directions."""
    if ROLL <= state <= YAW:
        sine, cosine = first * math.sin(points[0, state]), first * math.cos(points[0, state])
        for k in range(1, _POINTS):
            sine += others * math.sin(points[k, state])
            cosine += others * math.cos(points[k, state])
        return math.atan2(sine, cosine)
    total = first * points[0, state]
    for k in range(1, _POINTS):
        total += others * points[k, state]
    return float(total)


@kernel
def predict_unscented(flt: Filter, dyn: Dynamics, weights: FloatArray, dt: float) -> None:
    """Move points, state and covariance on by `dt` seconds."""
    x, P, points, D = flt.x, flt.P, flt.points, flt.work[0]
    first, others, first_covariance = weights[0], weights[1], weights[2]
    _draw_points(flt, weights[3])
    for k in range(_POINTS):
        move(points[k], dt)
    for i in range(N):
        x[i] = _mean(points, i, first, others)
    for i in range(N):
        for j in range(N):
            P[i, j] = 0.0
    for k in range(_POINTS):
        weight = first_covariance if k == 0 else others
        for i in range(N):
            D[0, i] = points[k, i] - x[i]
        for i in range(ROLL, YAW + 1):
            D[0, i] = wrap_angle(D[0, i])
        for i in range(N):
            add_rows(P, i, D, (0,), (weight * D[0, i],))
    scale = 1.0
    if dyn.dynamic:
        scale = 0.0
        for i in range(6):
            scale += x[VX + i] * x[VX + i]
    for i in range(N):
        for j in range(N):
            P[i, j] += dt * dyn.Q[i, j] * (scale if i < 6 and j < 6 else 1.0)
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    flt.times[POINTS_VALID] = 1


@kernel
def correct_unscented(
    flt: Filter, weights: FloatArray, index: IntArray, m: int, z: FloatArray, R: FloatArray,
    threshold: float,
) -> bool:  # fmt: skip
    """Correct with `m` directly measured states; arguments and answer as for `correct`."""
    x, P, points = flt.x, flt.P, flt.points
    if flt.times[POINTS_VALID] == 0:
        _draw_points(flt, weights[3])
    first, others, first_covariance = weights[0], weights[1], weights[2]
    # C = Pxz as rows of measurements; S = Pzz; both from the points.
    C, S, D, K = flt.work[0], flt.work[1], flt.work[2], flt.work[3]
    predicted, nu, difference = D[0], D[1], D[2]
    for a in range(m):
        predicted[a] = _mean(points, index[a], first, others)
        for j in range(N):
            C[a, j] = 0.0
        for b in range(m):
            S[a, b] = 0.0
    for k in range(_POINTS):
        weight = first_covariance if k == 0 else others
        for i in range(N):
            difference[i] = points[k, i] - x[i]
        for a in range(m):
            off = points[k, index[a]] - predicted[a]
            if ROLL <= index[a] <= YAW:
                off = wrap_angle(off)
                difference[a] = wrap_angle(difference[a])
            D[3, a] = off
        for a in range(m):
            add_rows(C, a, D, (2,), (weight * D[3, a],))
            for b in range(m):
                S[a, b] += weight * D[3, a] * D[3, b]
    for a in range(m):
        nu[a] = z[a] - predicted[a]
        if ROLL <= index[a] <= YAW:
            nu[a] = wrap_angle(nu[a])
        D[4, a] = nu[a]
    flt.times[POINTS_VALID] = 0
    # K' = (S + R)^-1 C.
    L = flt.roots
    if not passes(flt, S, R, m, D[4], L, D[5], threshold):
        return False
    solve_forward(C, K, m, L, D[5])
    solve_backward(K, m, L)
    for j in range(m):
        for i in range(N):
            x[i] += K[j, i] * nu[j]
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    # P -= K S K', S without R: C is free for S K'.
    for a in range(m):
        for i in range(N):
            C[a, i] = 0.0
        for b in range(m):
            add_rows(C, a, K, (b,), (S[a, b],))
    for i in range(N):
        subtract_with_column(P, i, C, 0, m, K, i)
    mirror(P)
    return True


# Prediction of the scaled unscented filter as textbooks have it, compiled.
#
# Julier and Uhlmann's scaled transform, about its first point: with y0 the image of the state, yk
# those of the other points, dk = yk - y0 (angles wrapped) and w = 1 / (2 (N + lambda)):
#
#     x = y0 + w sum dk
#     P = w sum dk dk' + (beta - alpha^2) (x - y0) (x - y0)' + dt Q
#
# which is the usual sum over all points with the weights of `sigma_weights`, rearranged: the usual
# one is a difference of numbers 1 / alpha^2 times as large. P is positive semi-definite as long as
# beta is at least alpha^2.
#
# The control input and the dynamic Q are those of the state before the step, as in the extended
# filter. The correction is `filter.correct`: a measurement is a selection of states, for which the
# transform of points drawn anew gives Pzz = H P H' and Pxz = P H' exactly.


@kernel
def _roots(P: FloatArray, spread: float, columns: FloatArray) -> None:
    """Fill `columns` so that row j is column j of the Cholesky root of spread P.

    A pivot that is not positive, as that of a state known exactly, gives a column of zeros.
    """
    for j in range(N):
        pivot = spread * P[j, j]
        for k in range(j):
            pivot -= columns[k, j] * columns[k, j]
        for i in range(N):
            columns[j, i] = 0.0
        if pivot > 0.0:
            root = math.sqrt(pivot)
            columns[j, j] = root
            for i in range(j + 1, N):
                total = spread * P[i, j]
                for k in range(j):
                    total -= columns[k, i] * columns[k, j]
                columns[j, i] = total / root


@kernel
def predict_textbook(
    flt: Filter, dyn: Dynamics, weights: FloatArray, stamp_ns: int, dt: float
) -> None:
    """Move state and covariance on by `dt` seconds, to `stamp_ns`."""
    x, P, points, columns, D = flt.x, flt.P, flt.points, flt.work[0], flt.work[1]
    others, spread, curvature = weights[1], weights[3], weights[4]
    _roots(P, spread, columns)
    scale = 1.0
    if dyn.dynamic:
        scale = 0.0
        for i in range(6):
            scale += x[VX + i] * x[VX + i]
    # The command replaces the accelerations' mean, not their spread.
    for axis in range(6):
        D[0, axis] = 0.0
        if dyn.control_mask[axis] != 0.0:
            D[0, axis] = control_acceleration(flt, dyn, axis, stamp_ns)
    for axis in range(3):
        if dyn.control_mask[axis] != 0.0:
            x[AX + axis] = D[0, axis]
        x[VX + 3 + axis] += D[0, 3 + axis] * dt
    for i in range(N):
        points[0, i] = x[i]
        for j in range(N):
            points[1 + j, i] = x[i] + columns[j, i]
            points[1 + N + j, i] = x[i] - columns[j, i]
    mean, centre = D[1], points[0]
    for i in range(N):
        mean[i] = 0.0
    for k in range(2 * N + 1):
        move(points[k], dt)
        if k > 0:
            for i in range(N):
                points[k, i] -= centre[i]
            for i in range(ROLL, YAW + 1):
                points[k, i] = wrap_angle(points[k, i])
            for i in range(N):
                mean[i] += others * points[k, i]
    for i in range(N):
        x[i] = centre[i] + mean[i]
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    for i in range(N):
        set_row(P, i, dyn.Q, (i,), (dt,))
        if dyn.dynamic and i < 6:
            for j in range(6):
                P[i, j] *= scale
        add_rows(P, i, D, (1,), (curvature * mean[i],))
        for k in range(1, 2 * N + 1):
            add_rows(P, i, points, (k,), (others * points[k, i],))
    mirror(P)
