# SPDX-License-Identifier: Apache-2.0
"""Prediction of the scaled unscented filter as textbooks have it, compiled.

Julier and Uhlmann's scaled transform, about its first point: with y0 the image of the state, yk
those of the other points, dk = yk - y0 (angles wrapped) and w = 1 / (2 (N + lambda)):

    x = y0 + w sum dk
    P = w sum dk dk' + (beta - alpha^2) (x - y0) (x - y0)' + dt Q

which is the usual sum over all points with the weights of `sigma_weights`, rearranged: the usual
one is a difference of numbers 1 / alpha^2 times as large. P is positive semi-definite as long as
beta is at least alpha^2.

The control input and the dynamic Q are those of the state before the step, as in the extended
filter. The correction is `correction.correct`: a measurement is a selection of states, for which
the transform of points drawn anew gives Pzz = H P H' and Pxz = P H' exactly.
"""

from __future__ import annotations

import math

from sim2real_eval.judge.filter import Dynamics, Filter
from sim2real_eval.judge.prediction import control_acceleration, wrap_angle
from sim2real_eval.judge.rows import add_rows, set_row
from sim2real_eval.judge.state import AX, ROLL, VX, YAW, N
from sim2real_eval.judge.transposes import mirror
from sim2real_eval.judge.unscented import move
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = ['predict_textbook']


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
def predict_textbook(flt: Filter, dyn: Dynamics, stamp_ns: int, dt: float) -> None:
    """Move state and covariance on by `dt` seconds, to `stamp_ns`."""
    x, P, points, columns, D = flt.x, flt.P, flt.points, flt.work[0], flt.work[1]
    others, spread, curvature = dyn.weights[1], dyn.weights[3], dyn.weights[4]
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
