# SPDX-License-Identifier: Apache-2.0
"""Preintegration of many samples, with Jacobians and covariance or of many draws at once."""

from __future__ import annotations

import numpy as np

from sim2real_eval.benches.preintegration.steps import WORK, move, step
from sim_sensors.core.compilation import compiled
from sim_sensors.core.compiled_rotations import cross
from sim_sensors.core.measurements import FloatArray


@compiled
def _to_body(
    f: FloatArray,
    r: FloatArray,
    bias: FloatArray,
    turn: FloatArray,
    arm: FloatArray,
    a: FloatArray,
    w: FloatArray,
    c: FloatArray,
) -> None:
    """Fill a and w with specific force and rate of the body's origin, in its axes.

    The bias is taken off as the sensor has it; then a = S (f - b) - w x (w x l), without the
    angular acceleration, which nobody measures.
    """
    for i in range(3):
        a[i] = w[i] = 0.0
        for k in range(3):
            a[i] += turn[i, k] * (f[k] - bias[k])
            w[i] += turn[i, k] * (r[k] - bias[3 + k])
    cross(w, arm, c)
    a[0] -= w[1] * c[2] - w[2] * c[1]
    a[1] -= w[2] * c[0] - w[0] * c[2]
    a[2] -= w[0] * c[1] - w[1] * c[0]


@compiled
def _to_sensor(
    B: FloatArray, C: FloatArray, w: FloatArray, turn: FloatArray, arm: FloatArray, row: FloatArray
) -> None:
    """Turn Jacobians with respect to the body's force and rate into those of the sensor's."""
    dot = w[0] * arm[0] + w[1] * arm[1] + w[2] * arm[2]
    for i in range(9):
        # Derivative of -w x (w x l) = l w^2 - w (w . l) by w.
        for j in range(3):
            row[j] = C[i, j] - B[i, j] * dot
            for k in range(3):
                row[j] += B[i, k] * (2.0 * arm[k] * w[j] - w[k] * arm[j])
        for j in range(3):
            C[i, j] = row[0] * turn[0, j] + row[1] * turn[1, j] + row[2] * turn[2, j]
        for j in range(3):
            row[j] = B[i, 0] * turn[0, j] + B[i, 1] * turn[1, j] + B[i, 2] * turn[2, j]
        for j in range(3):
            B[i, j] = row[j]


@compiled
def _product(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Fill `out` with A B."""
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            out[i, j] = total


@compiled
def _turned(A: FloatArray, P: FloatArray, out: FloatArray, W: FloatArray) -> None:
    """Fill `out` with A P A', by way of W, which is like A."""
    _product(A, P, W)
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            total = 0.0
            for k in range(A.shape[1]):
                total += W[i, k] * A[j, k]
            out[i, j] = total


@compiled
def integrate(
    form: int,
    x: FloatArray,
    H: FloatArray,
    P: FloatArray,
    force: FloatArray,
    rate: FloatArray,
    dt: FloatArray,
    bias: FloatArray,
    turn: FloatArray,
    arm: FloatArray,
    noise: FloatArray,
) -> None:
    """Go on with a preintegration.

    P <- F P F' + B N_a B'/dt + C N_g C'/dt + N_i dt, the last one for the position; with 15 rows F
    also carries the biases' errors (F = [A B C; 0 I I]), which grow by N_ba dt and N_bg dt.

    Parameters
    ----------
    form : int
    x : (9,) or (10,) float
        State, see `steps`; changed in place.
    H : (9, 6) float
        Derivative of the state by the bias (accelerometer, gyroscope); changed in place.
    P : (9, 9) or (15, 15) float
        Covariance; changed in place.
    force, rate : (k, 3) float
        As measured by the sensor, m/s^2 and rad/s.
    dt : (k,) float
        s.
    bias : (6,) float
        Estimated bias: accelerometer, gyroscope.
    turn : (3, 3) float
        Takes vectors of the sensor to the body.
    arm : (3,) float
        Position of the sensor in the body, m.
    noise : (5, 3, 3) float
        Accelerometer, gyroscope, integration, walks of the two biases: squares of densities.
    """
    d = P.shape[0]
    A, B, C = np.zeros((9, 9)), np.zeros((9, 3)), np.zeros((9, 3))
    F, G, S = np.eye(d), np.zeros((9, 6)), np.zeros((d, d))
    W = np.zeros(WORK)
    a, w, row = np.zeros(3), np.zeros(3), np.zeros(3)
    Q, N, T = np.zeros((6, 6)), np.zeros((9, 9)), np.zeros((9, 6))
    U, V = np.zeros((d, d)), np.zeros((9, 6))
    for k in range(len(dt)):
        h = dt[k]
        _to_body(force[k], rate[k], bias, turn, arm, a, w, row)
        step(form, x, a, w, h, A, B, C, W)
        _to_sensor(B, C, w, turn, arm, row)
        G[:, :3] = B
        G[:, 3:] = C
        _product(A, H, T)
        for i in range(9):
            for j in range(6):
                H[i, j] = T[i, j] - G[i, j]
        F[:9, :9] = A
        if d == 15:
            F[:9, 9:] = G
        for i in range(3):
            for j in range(3):
                Q[i, j] = noise[0, i, j] / h
                Q[3 + i, 3 + j] = noise[1, i, j] / h
        _turned(F, P, S, U)
        _turned(G, Q, N, V)
        for i in range(9):
            for j in range(9):
                S[i, j] += N[i, j]
        for i in range(3):
            for j in range(3):
                S[3 + i, 3 + j] += noise[2, i, j] * h
                if d == 15:
                    S[9 + i, 9 + j] += noise[3, i, j] * h
                    S[12 + i, 12 + j] += noise[4, i, j] * h
        for i in range(d):
            for j in range(d):
                P[i, j] = 0.5 * (S[i, j] + S[j, i])


@compiled
def integrate_all(
    form: int,
    x: FloatArray,
    force: FloatArray,
    rate: FloatArray,
    dt: float,
    bias: FloatArray,
    turn: FloatArray,
    arm: FloatArray,
) -> None:
    """Integrate many draws of the same time, without Jacobians.

    Parameters
    ----------
    form : int
    x : (n, 9) or (n, 10) float
        States; changed in place.
    force, rate : (n, k, 3) float
    dt : float
        s.
    bias, turn, arm
        As in `integrate`.
    """
    W = np.zeros(WORK)
    a, w, row = np.zeros(3), np.zeros(3), np.zeros(3)
    for i in range(len(x)):
        for k in range(force.shape[1]):
            _to_body(force[i, k], rate[i, k], bias, turn, arm, a, w, row)
            move(form, x[i], a, w, dt, W)
