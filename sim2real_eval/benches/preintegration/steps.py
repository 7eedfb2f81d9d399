# SPDX-License-Identifier: Apache-2.0
"""One interval of preintegration and its Jacobians, in two forms; compiled.

Both take the specific force a and the angular rate w as constant over the interval dt, with the
attitude at its start ([GTSAM], PreintegratedImuMeasurements):

    p <- p + v dt + R a dt^2/2        v <- v + R a dt

manifold: R <- R Exp(w dt); the state is [quaternion x y z w, p, v], (10,).
tangent: theta <- theta + Jr^-1(theta) w dt with R = Exp(theta); the state is [theta, p, v], (9,).
The former is exact for a constant rate, the latter to first order in dt only, and it ends where
theta comes to 2 pi. GTSAM as it is installed has the latter.

Errors, (9,): of theta itself in the tangent form, to the right of R (R Exp(error)) in the manifold
form; of p and v, added, in the axes of the start in both. A, B, C are the Jacobians of the next
state with respect to the state, to a and to w.
"""

from __future__ import annotations

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
)  # fmt: skip
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
def move(form: int, x: FloatArray, a: FloatArray, w: FloatArray, dt: float, W: FloatArray) -> None:
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
    """Move a state over an interval and fill its Jacobians.

    Parameters
    ----------
    form : int
        TANGENT or MANIFOLD.
    x : (9,) or (10,) float
        State, changed in place.
    a, w : (3,) float
        Specific force, m/s^2, and angular rate, rad/s, in the body.
    dt : float
        s.
    A, B, C : (9, 9), (9, 3), (9, 3) float
        Filled.
    W : float
        Scratch of shape WORK.
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
        # Of the error to the right of R: Exp(-w dt) for itself, Jr(w dt) dt for the rate.
        right_jacobian(phi, inverse)
        for i in range(3):
            phi[i] = -phi[i]
        matrix_from_vector(phi, slope)
        for i in range(3):
            for j in range(3):
                forward[i, j] = 1.0 if i == j else 0.0
    # R [-a] times what makes a rotation to the right of R of an error.
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
    move(form, x, a, w, dt, W)


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
    # Minus half of [w].
    out[0, 1] += 0.5 * w[2]
    out[1, 0] -= 0.5 * w[2]
    out[0, 2] -= 0.5 * w[1]
    out[2, 0] += 0.5 * w[1]
    out[1, 2] += 0.5 * w[0]
    out[2, 1] -= 0.5 * w[0]
