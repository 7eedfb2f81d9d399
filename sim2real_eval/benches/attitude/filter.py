# SPDX-License-Identifier: Apache-2.0
"""The extended Kalman filter of [Ligorio2015], equations 8 to 12, with its settings; compiled.

The state is the quaternion q that takes vectors of the world to the body, order x y z w; u is its
vector and w its scalar part. With Xi(q) = [w I - [u]x; -u^T], a small rotation d of the body
changes q by Xi(q) d / 2.

[Ligorio2015] does not say what becomes of the covariance when q is made a unit quaternion again.
Here it is projected like the state, with I - q q^T: along q there is nothing that could be
uncertain.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.compiled_rotations import cross
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray

ACCELEROMETER, MAGNETOMETER, CAMERA = range(3)
"""Kinds of events."""


def xi_matrices(q: FloatArray) -> FloatArray:
    """Return Xi(q), `(n, 4, 3)`, of quaternions `(n, 4)`; Xi^T Xi = I.

    Source: [Crassidis2007], with the sign of a quaternion world to body.
    """
    x, y, z, w = q.T
    rows = [[w, z, -y], [-z, w, x], [y, -x, w], [-x, -y, -z]]
    return np.asarray(np.moveaxis(np.array(rows), -1, 0))


@compiled
def _predict(
    q: FloatArray, P: FloatArray, rate: FloatArray, dt: float, density: FloatArray
) -> None:
    """Turn by a constant rate, equation 9: q <- [cos a, -sin a w/|w|] q, a = |w| dt / 2.

    P <- F P F^T + dt/4 Xi D Xi^T: for one sample period Ts, with D = Ts cov(gyro), that is
    (Ts/2)^2 Xi cov(gyro) Xi^T; a period that a frame of the camera cuts adds up to the same.
    """
    speed = math.sqrt(rate[0] ** 2 + rate[1] ** 2 + rate[2] ** 2)
    angle = 0.5 * speed * dt
    scale = -0.5 * dt
    if speed > 1e-12:
        scale = -math.sin(angle) / speed
    a, b, c, d = scale * rate[0], scale * rate[1], scale * rate[2], math.cos(angle)
    # Product from the left with the quaternion (a, b, c, d).
    F = np.array([[d, -c, b, a], [c, d, -a, b], [-b, a, d, c], [-a, -b, -c, d]])
    turned = np.zeros(4)
    FP = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            turned[i] += F[i, j] * q[j]
            for k in range(4):
                FP[i, k] += F[i, j] * P[j, k]
    for i in range(4):
        q[i] = turned[i]
    x, y, z, w = turned[0], turned[1], turned[2], turned[3]
    xi = np.array([[w, z, -y], [-z, w, x], [y, -x, w], [-x, -y, -z]])
    half = np.zeros((4, 3))
    for i in range(4):
        for j in range(3):
            for k in range(3):
                half[i, k] += xi[i, j] * density[j, k]
    for i in range(4):
        for k in range(i + 1):
            total = 0.0
            for j in range(3):
                total += half[i, j] * xi[k, j]
            total *= 0.25 * dt
            for j in range(4):
                total += FP[i, j] * F[k, j]
            P[i, k] = total
            P[k, i] = total


@compiled
def _expect(q: FloatArray, v: FloatArray, expected: FloatArray, H: FloatArray) -> None:
    """Return q v conj(q) and its derivative, equations 10 and 11."""
    w = q[3]
    dot = q[0] * v[0] + q[1] * v[1] + q[2] * v[2]
    size = q[0] ** 2 + q[1] ** 2 + q[2] ** 2
    turned = np.zeros(3)
    cross(q, v, turned)
    for i in range(3):
        expected[i] = (w * w - size) * v[i] + 2.0 * dot * q[i] + 2.0 * w * turned[i]
        H[i, 3] = 2.0 * (w * v[i] + turned[i])
        for j in range(3):
            H[i, j] = 2.0 * (q[i] * v[j] - v[i] * q[j])
        H[i, i] += 2.0 * dot
    # Less 2 w [v]x.
    H[0, 1] += 2.0 * w * v[2]
    H[0, 2] -= 2.0 * w * v[1]
    H[1, 0] -= 2.0 * w * v[2]
    H[1, 2] += 2.0 * w * v[0]
    H[2, 0] += 2.0 * w * v[1]
    H[2, 1] -= 2.0 * w * v[0]


@compiled
def _correct(
    q: FloatArray, P: FloatArray, innovation: FloatArray, H: FloatArray, R: FloatArray, n: int
) -> float:
    """Correct with n measured numbers, make q a unit quaternion, return the innovation's NIS."""
    W = np.zeros((4, 4))
    L = np.zeros((4, 4))
    y = np.zeros(4)
    for i in range(n):
        for j in range(4):
            for k in range(4):
                W[i, j] += H[i, k] * P[k, j]
    nis = 0.0
    # Cholesky: S = L L^T; then W = L^-1 H P and y = L^-1 innovation.
    for i in range(n):
        for j in range(i + 1):
            total = R[i, j]
            for k in range(4):
                total += W[i, k] * H[j, k]
            L[i, j] = total
    for i in range(n):
        for j in range(i + 1):
            total = L[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(total) if i == j else total / L[j, j]
    for i in range(n):
        y[i] = innovation[i]
        for k in range(i):
            y[i] -= L[i, k] * y[k]
            for j in range(4):
                W[i, j] -= L[i, k] * W[k, j]
        y[i] /= L[i, i]
        for j in range(4):
            W[i, j] /= L[i, i]
        nis += y[i] * y[i]
    norm = 0.0
    for j in range(4):
        for i in range(n):
            q[j] += W[i, j] * y[i]
            for k in range(4):
                P[j, k] -= W[i, j] * W[i, k]
        norm += q[j] * q[j]
    norm = math.sqrt(norm)
    for j in range(4):
        q[j] /= norm
    along = np.zeros(4)
    both = 0.0
    for j in range(4):
        for k in range(4):
            along[j] += P[j, k] * q[k]
        both += q[j] * along[j]
    for j in range(4):
        for k in range(4):
            P[j, k] += both * q[j] * q[k] - along[j] * q[k] - q[j] * along[k]
            P[j, k] /= norm * norm
    return nis


@compiled
def filter_events(
    kind: IntArray,
    dt: FloatArray,
    rate: FloatArray,
    values: FloatArray,
    covariance: FloatArray,
    density: FloatArray,
    gravity: FloatArray,
    field: FloatArray,
    first: FloatArray,
    first_covariance: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predict to each event and correct with it; the model is switched by the kind of sample.

    Of each of `n` events: `kind`, ACCELEROMETER, MAGNETOMETER or CAMERA (what is negative is
    predicted only); `dt` s since the event before and the angular velocity `rate` in that time,
    `(n, 3)` rad/s, body; `values` `(n, 4)`, specific force, m/s^2, or field, T, in the body (the
    fourth is not looked at), or the quaternion of a pose; and their `covariance` `(n, 4, 4)`.

    `density` `(3, 3)` is that of the gyroscope's white noise, (rad/s)^2/Hz. In the world an
    accelerometer at rest measures `gravity` `(3,)` m/s^2, upwards, and the magnetic field is
    `field` `(3,)` T. `first` `(4,)` is the quaternion, world to body, at the first event before it
    is used, and `first_covariance` `(4, 4)` its own.

    Returns quaternions `(n, 4)` after each event, their covariances `(n, 4, 4)`, and the
    normalised square of the innovation, NaN where there was none.
    """
    n = len(kind)
    states, covariances, squares = np.empty((n, 4)), np.empty((n, 4, 4)), np.full(n, np.nan)
    q, P = first.copy(), first_covariance.copy()
    H, innovation, expected = np.zeros((4, 4)), np.zeros(4), np.zeros(3)
    for i in range(n):
        if dt[i] > 0.0:
            _predict(q, P, rate[i], dt[i], density)
        if kind[i] == CAMERA:
            # q and -q are the same attitude.
            same = 0.0
            for j in range(4):
                same += values[i, j] * q[j]
            sign = 1.0 if same >= 0.0 else -1.0
            for j in range(4):
                innovation[j] = sign * values[i, j] - q[j]
                for k in range(4):
                    H[j, k] = 1.0 if j == k else 0.0
            squares[i] = _correct(q, P, innovation, H, covariance[i], 4)
        elif kind[i] >= 0:
            _expect(q, gravity if kind[i] == ACCELEROMETER else field, expected, H)
            for j in range(3):
                innovation[j] = values[i, j] - expected[j]
            squares[i] = _correct(q, P, innovation, H, covariance[i], 3)
        for j in range(4):
            states[i, j] = q[j]
            for k in range(4):
                covariances[i, j, k] = P[j, k]
    return states, covariances, squares


class AttitudeError(Sim2RealError):
    """An attitude cannot be estimated: no samples, or noise of which nothing is known."""
