# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiled preintegration of samples, with Jacobians and covariance, or of many draws at once.

There are two forms of integration. In both, the specific force a and the angular rate w are
constant over the interval dt, with the attitude at its start ([GTSAM],
PreintegratedImuMeasurements):

    p <- p + v dt + R a dt^2/2        v <- v + R a dt

manifold: R <- R Exp(w dt); the state is [quaternion x y z w, p, v], (10,).
tangent: theta <- theta + Jr^-1(theta) w dt with R = Exp(theta); the state is [theta, p, v], (9,).
The manifold form is exact for a constant rate. The tangent form, the default of GTSAM, is of first
order in dt and singular at |theta| = 2 pi.

Errors (9,) of the rotation are those of theta in the tangent form, and to the right of R
(R Exp(error)) in the manifold form. Errors of p and v are added, in the axes of the start. A, B, C
are the Jacobians of the next state with respect to the state, to a and to w.
"""

from __future__ import annotations

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.compiled_rotations import (
    cross,
    inverse_right_jacobian,
    inverse_terms,
    matrix_from_quaternion,
    matrix_from_vector,
    multiply,
    quaternion_from_vector,
    right_jacobian,
)
from sim_sensors.core.measurements import FloatArray

TANGENT = 0
MANIFOLD = 1
WORK = (21, 3)
"""Shape of the scratch space of `step`."""


@compiled
def rotation_of(form: int, x: FloatArray, R: FloatArray) -> None:
    """Fill R, (3, 3), with the rotation of a state."""
    if form == TANGENT:
        matrix_from_vector(x[0:3], R)
    else:
        matrix_from_quaternion(x, R)


@compiled
def propagate_state(
    form: int, x: FloatArray, a: FloatArray, w: FloatArray, dt: float, W: FloatArray
) -> None:
    """Move a state over an interval; scratch space W as for `step`."""
    R, inverse = W[0:3], W[3:6]
    rotation_of(form, x, R)
    at = 3 if form == TANGENT else 4
    for i in range(3):
        force = R[i, 0] * a[0] + R[i, 1] * a[1] + R[i, 2] * a[2]
        x[at + i] += x[at + 3 + i] * dt + 0.5 * force * dt * dt
        x[at + 3 + i] += force * dt
    if form == MANIFOLD:
        phi, turn = W[18], W.ravel()[57:61]
        for i in range(3):
            phi[i] = w[i] * dt
        quaternion_from_vector(phi, turn)
        multiply(x[0:4], turn, x[0:4])
        return
    inverse_right_jacobian(x[0:3], inverse)
    for i in range(3):
        x[i] += (inverse[i, 0] * w[0] + inverse[i, 1] * w[1] + inverse[i, 2] * w[2]) * dt


@compiled
def step(
    form: int,
    x: FloatArray,
    a: FloatArray,
    w: FloatArray,
    dt: float,
    A: FloatArray,
    B: FloatArray,
    C: FloatArray,
    W: FloatArray,
) -> None:
    """Move a state `x`, `(9,)` or `(10,)`, over an interval of `dt` s in place.

    `form` is TANGENT or MANIFOLD, `a` and `w` `(3,)` are specific force, m/s^2, and angular rate,
    rad/s, in the body. Filled are the Jacobians A `(9, 9)`, B and C `(9, 3)`; W is scratch of the
    shape WORK.
    """
    R, inverse, forward, slope = W[0:3], W[3:6], W[6:9], W[9:12]
    pull, phi, c1, c2 = W[12:15], W[15], W[16], W[17]
    rotation_of(form, x, R)
    if form == TANGENT:
        inverse_right_jacobian(x[0:3], inverse)
        right_jacobian(x[0:3], forward)
        _inverse_slope(x[0:3], w, c1, c2, slope)
    else:
        for i in range(3):
            phi[i] = w[i] * dt
        # The error to the right of R has the Jacobians Exp(-w dt), and Jr(w dt) dt by the rate.
        right_jacobian(phi, inverse)
        for i in range(3):
            phi[i] = -phi[i]
        matrix_from_vector(phi, slope)
        for i in range(3):
            for j in range(3):
                forward[i, j] = 1.0 if i == j else 0.0
    # R [-a] times the Jacobian from an error to a rotation on the right of R.
    for i in range(3):
        c1[0] = R[i, 2] * a[1] - R[i, 1] * a[2]
        c1[1] = R[i, 0] * a[2] - R[i, 2] * a[0]
        c1[2] = R[i, 1] * a[0] - R[i, 0] * a[1]
        for j in range(3):
            pull[i, j] = c1[0] * forward[0, j] + c1[1] * forward[1, j] + c1[2] * forward[2, j]
    for i in range(9):
        for j in range(9):
            A[i, j] = 1.0 if i == j else 0.0
        for j in range(3):
            B[i, j] = C[i, j] = 0.0
    for i in range(3):
        A[3 + i, 6 + i] = dt
        for j in range(3):
            A[i, j] = slope[i, j] if form == MANIFOLD else A[i, j] + slope[i, j] * dt
            A[3 + i, j] = 0.5 * pull[i, j] * dt * dt
            A[6 + i, j] = pull[i, j] * dt
            B[3 + i, j] = 0.5 * R[i, j] * dt * dt
            B[6 + i, j] = R[i, j] * dt
            C[i, j] = inverse[i, j] * dt
    propagate_state(form, x, a, w, dt, W)


@compiled
def _inverse_slope(
    t: FloatArray, w: FloatArray, c1: FloatArray, c2: FloatArray, out: FloatArray
) -> None:
    """Fill `out`, (3, 3), with the derivative of Jr^-1(t) w by t.

    Jr^-1 w = w + t x w / 2 + E t x (t x w), and t x (t x w) = t (t . w) - w t^2.
    """
    t2 = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    e, rise = inverse_terms(t2)
    cross(t, w, c1)
    cross(t, c1, c2)
    dot = t[0] * w[0] + t[1] * w[1] + t[2] * w[2]
    for i in range(3):
        for j in range(3):
            outer = t[i] * w[j] - 2.0 * w[i] * t[j] + (dot if i == j else 0.0)
            out[i, j] = e * outer + rise * c2[i] * t[j]
    # The last term is -[w] / 2.
    out[0, 1] += 0.5 * w[2]
    out[1, 0] -= 0.5 * w[2]
    out[0, 2] -= 0.5 * w[1]
    out[2, 0] += 0.5 * w[1]
    out[1, 2] += 0.5 * w[0]
    out[2, 1] -= 0.5 * w[0]


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

    The bias is subtracted in the axes of the sensor. Then a = S (f - b) - w x (w x l), without the
    angular acceleration, which is not measured.
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
    """Convert Jacobians by force and rate of the body to those of the sensor, in place."""
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
def _propagate(A: FloatArray, P: FloatArray, out: FloatArray, W: FloatArray) -> None:
    """Fill `out` with A P A'; W is scratch of the shape of A."""
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
    """Continue a preintegration over samples of the sensor.

    The samples are `force` and `rate`, `(k, 3)` m/s^2 and rad/s, at intervals `dt` `(k,)` s.
    Changed in place are the state `x`, `(9,)` or `(10,)`, its derivative by the bias, `H` `(9,
    6)`, and its covariance, `P`, `(9, 9)` or `(15, 15)`:

    P <- F P F' + B N_a B'/dt + C N_g C'/dt + N_i dt, the last one for the position; with 15 rows F
    also carries the biases' errors (F = [A B C; 0 I I]), which grow by N_ba dt and N_bg dt.

    The estimated `bias` `(6,)` is of accelerometer, then gyroscope; `turn` `(3, 3)` takes vectors
    of the sensor to the body, where it is at `arm` `(3,)` m. `noise` `(5, 3, 3)` are squares of
    densities: accelerometer, gyroscope, integration, walks of the two biases.
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
        for i in range(9):
            for j in range(3):
                G[i, j], G[i, 3 + j] = B[i, j], C[i, j]
        _product(A, H, T)
        for i in range(9):
            for j in range(6):
                H[i, j] = T[i, j] - G[i, j]
        for i in range(9):
            for j in range(9):
                F[i, j] = A[i, j]
            for j in range(9, d):
                F[i, j] = G[i, j - 9]
        for i in range(3):
            for j in range(3):
                Q[i, j] = noise[0, i, j] / h
                Q[3 + i, 3 + j] = noise[1, i, j] / h
        _propagate(F, P, S, U)
        _propagate(G, Q, N, V)
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
    """Integrate many draws of the same duration, without Jacobians.

    States `x`, `(n, 9)` or `(n, 10)`, are changed in place by `force` and `rate`, `(n, k, 3)`,
    over intervals of `dt` s. The other arguments are those of `integrate`.
    """
    W = np.zeros(WORK)
    a, w, row = np.zeros(3), np.zeros(3), np.zeros(3)
    for i in range(len(x)):
        for k in range(force.shape[1]):
            _to_body(force[i, k], rate[i, k], bias, turn, arm, a, w, row)
            propagate_state(form, x[i], a, w, dt, W)
