# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Prediction of the 15-state extended Kalman filter, compiled.

The equations are those of robot_localization's ekf (docs/explanation/judge.md gives them). The
Jacobian F differs from the identity in 41 entries. They are written out, and F is not formed. P
stays symmetric to the bit: one triangle is computed and copied to the other.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray
from .state import AX, CONTROL_NS, PITCH, ROLL, VROLL, VX, WIDTH, YAW, Filter, N

_MINIMUM_VARIANCE = 1e-9
FIRST = np.int64(0)
"""First row. numba would compile a function again for an argument that is a literal."""


# Operations on rows of padded matrices, (n, 16).


@kernel
def set_row(target: FloatArray, i: int, source: FloatArray, k: int, factor: float) -> None:
    """Set target[i] to factor * source[k]."""
    for j in range(0, WIDTH, 8):
        t0, t1 = factor * source[k, j], factor * source[k, j + 1]
        t2, t3 = factor * source[k, j + 2], factor * source[k, j + 3]
        t4, t5 = factor * source[k, j + 4], factor * source[k, j + 5]
        t6, t7 = factor * source[k, j + 6], factor * source[k, j + 7]
        target[i, j], target[i, j + 1], target[i, j + 2], target[i, j + 3] = t0, t1, t2, t3
        target[i, j + 4], target[i, j + 5], target[i, j + 6], target[i, j + 7] = t4, t5, t6, t7


@kernel
def add_row(target: FloatArray, i: int, source: FloatArray, k: int, factor: float) -> None:
    """Add factor * source[k] to target[i], unless the factor is 0."""
    # Most factors are 0 where states are independent, such as those that `two_d_mode` holds.
    if factor != 0.0:
        for j in range(WIDTH):
            target[i, j] += factor * source[k, j]


@kernel
def add_rows(
    target: FloatArray, i: int, source: FloatArray, first: int, last: int, factors: FloatArray,
    column: int, sign: float,
) -> None:  # fmt: skip
    """Add sign * factors[k, column] * source[k] to target[i], for k from first to last - 1."""
    # Sixteen sums stay in vector registers; numba does not vectorise a loop over the columns.
    a0, a1, a2, a3 = target[i, 0], target[i, 1], target[i, 2], target[i, 3]
    b0, b1, b2, b3 = target[i, 4], target[i, 5], target[i, 6], target[i, 7]
    c0, c1, c2, c3 = target[i, 8], target[i, 9], target[i, 10], target[i, 11]
    d0, d1, d2, d3 = target[i, 12], target[i, 13], target[i, 14], target[i, 15]
    for k in range(first, last):
        factor = sign * factors[k, column]
        if factor != 0.0:
            a0 += factor * source[k, 0]
            a1 += factor * source[k, 1]
            a2 += factor * source[k, 2]
            a3 += factor * source[k, 3]
            b0 += factor * source[k, 4]
            b1 += factor * source[k, 5]
            b2 += factor * source[k, 6]
            b3 += factor * source[k, 7]
            c0 += factor * source[k, 8]
            c1 += factor * source[k, 9]
            c2 += factor * source[k, 10]
            c3 += factor * source[k, 11]
            d0 += factor * source[k, 12]
            d1 += factor * source[k, 13]
            d2 += factor * source[k, 14]
            d3 += factor * source[k, 15]
    target[i, 0], target[i, 1], target[i, 2], target[i, 3] = a0, a1, a2, a3
    target[i, 4], target[i, 5], target[i, 6], target[i, 7] = b0, b1, b2, b3
    target[i, 8], target[i, 9], target[i, 10], target[i, 11] = c0, c1, c2, c3
    target[i, 12], target[i, 13], target[i, 14], target[i, 15] = d0, d1, d2, d3


@kernel
def mirror(P: FloatArray, columns: int) -> None:
    """Copy the upper triangle to the lower one, in the first `columns` columns."""
    for i in range(1, N):
        for j in range(min(i, columns)):
            P[i, j] = P[j, i]


@kernel
def wrap_angle(angle: float) -> float:
    """Bring an angle into (-pi, pi]."""
    if -math.pi < angle <= math.pi:
        return angle
    positive = (angle + math.pi) % (2.0 * math.pi)
    return math.pi if positive == 0.0 else positive - math.pi


@kernel
def control_acceleration(flt: Filter, settings: np.record, axis: int, stamp_ns: int) -> float:
    """Return the acceleration by the command along an axis of vx vy vz vroll vpitch vyaw."""
    command = flt.command[axis]
    if stamp_ns - flt.times[CONTROL_NS] >= settings.control_timeout_ns:
        command = 0.0
    velocity = flt.x[VX + axis]
    error = command - velocity
    set_point = command if abs(error) <= abs(command) + 0.01 else 0.0
    row = 2 if abs(set_point) < abs(velocity) else 0
    limit = settings.control_limits[row, axis]
    return float(min(max(settings.control_limits[row + 1, axis] * error, -limit), limit))


@kernel
def noise_scale(settings: np.record, x: FloatArray) -> float:
    """Return the factor of the pose block of Q: 1, or |(v, w)|^2 if the noise is dynamic."""
    if not settings.dynamic:
        return 1.0
    scale = 0.0
    for i in range(6):
        scale += x[VX + i] * x[VX + i]
    return scale


@kernel
def predict(flt: Filter, settings: np.record, stamp_ns: int, dt: float) -> None:
    """Predict state and covariance over `dt` seconds, to `stamp_ns`."""
    x, P, Q = flt.x, flt.P, settings.Q
    T, M = flt.rows, flt.gain
    sr, cr = math.sin(x[ROLL]), math.cos(x[ROLL])
    sp, cp = math.sin(x[PITCH]), math.cos(x[PITCH])
    sy, cy = math.sin(x[YAW]), math.cos(x[YAW])
    ic = 1.0 / cp
    tp = sp * ic
    r00, r01, r02 = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    r10, r11, r12 = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    r20, r21, r22 = -sp, cp * sr, cp * cr
    half = 0.5 * dt * dt
    u0 = x[VX] * dt + x[AX] * half
    u1 = x[VX + 1] * dt + x[AX + 1] * half
    u2 = x[VX + 2] * dt + x[AX + 2] * half

    # T holds the Jacobian of the position: by roll, pitch, yaw (columns 0-2), by velocity (3-5)
    # and by acceleration (6-8).
    forward = r20 * u0 + r21 * u1 + r22 * u2
    T[0, 0], T[0, 1] = r02 * u1 - r01 * u2, cy * forward
    T[1, 0], T[1, 1] = r12 * u1 - r11 * u2, sy * forward
    T[2, 0], T[2, 1] = r22 * u1 - r21 * u2, -cp * u0 - sp * (sr * u1 + cr * u2)
    T[0, 2] = -(r10 * u0 + r11 * u1 + r12 * u2)
    T[1, 2] = r00 * u0 + r01 * u1 + r02 * u2
    T[2, 2] = 0.0
    T[0, 3], T[0, 4], T[0, 5] = dt * r00, dt * r01, dt * r02
    T[1, 3], T[1, 4], T[1, 5] = dt * r10, dt * r11, dt * r12
    T[2, 3], T[2, 4], T[2, 5] = dt * r20, dt * r21, dt * r22
    for i in range(3):
        for j in range(3):
            T[i, 6 + j] = 0.5 * dt * T[i, 3 + j]
    # Jacobian of roll, pitch, yaw: by themselves, without the identity, and by the rates.
    turn = sr * x[VROLL + 1] + cr * x[VROLL + 2]
    tilt = cr * x[VROLL + 1] - sr * x[VROLL + 2]
    roll_roll, roll_pitch = dt * tp * tilt, dt * turn * ic * ic
    pitch_roll = -dt * turn
    yaw_roll, yaw_pitch = dt * tilt * ic, dt * turn * tp * ic
    roll_wy, roll_wz = dt * (sr * tp), dt * (cr * tp)
    pitch_wy, pitch_wz = dt * cr, -dt * sr
    yaw_wy, yaw_wz = dt * (sr * ic), dt * (cr * ic)

    # M = F P; the rows of rates and accelerations are those of P.
    for i in range(3):
        f3, f4, f5, f6, f7, f8 = T[i, 0], T[i, 1], T[i, 2], T[i, 3], T[i, 4], T[i, 5]
        f12, f13, f14 = T[i, 6], T[i, 7], T[i, 8]
        for j in range(WIDTH):
            M[i, j] = (
                P[i, j] + f3 * P[3, j] + f4 * P[4, j] + f5 * P[5, j]
                + f6 * P[6, j] + f7 * P[7, j] + f8 * P[8, j]
                + f12 * P[12, j] + f13 * P[13, j] + f14 * P[14, j]
            )  # fmt: skip
            M[VX + i, j] = P[VX + i, j] + dt * P[AX + i, j]
    for j in range(WIDTH):
        p3, p4, p5, p10, p11 = P[3, j], P[4, j], P[5, j], P[10, j], P[11, j]
        M[3, j] = (
            (1.0 + roll_roll) * p3 + roll_pitch * p4 + dt * P[9, j] + roll_wy * p10 + roll_wz * p11
        )
        M[4, j] = p4 + pitch_roll * p3 + pitch_wy * p10 + pitch_wz * p11
        M[5, j] = p5 + yaw_roll * p3 + yaw_pitch * p4 + yaw_wy * p10 + yaw_wz * p11

    # P = M F' + dt Q: F' changes columns 0-8 only, and only their upper triangle is computed.
    scale = noise_scale(settings, x)
    for i in range(VROLL, N):
        add_row(P, i, Q, i, dt)
    for i in range(VROLL):
        set_row(P, i, Q, i, dt)
        if settings.dynamic and i < 6:
            for j in range(6):
                P[i, j] *= scale
        add_row(P, i, M, i, 1.0)
        for j in range(3):
            P[i, VX + j] += dt * M[i, AX + j]
    for i in range(6):
        rates = yaw_wy * M[i, 10] + yaw_wz * M[i, 11]
        P[i, 5] += yaw_roll * M[i, 3] + yaw_pitch * M[i, 4] + rates
        P[i, 4] += pitch_roll * M[i, 3] + pitch_wy * M[i, 10] + pitch_wz * M[i, 11]
        rates = dt * M[i, 9] + roll_wy * M[i, 10] + roll_wz * M[i, 11]
        P[i, 3] += roll_roll * M[i, 3] + roll_pitch * M[i, 4] + rates
    for i in range(3):
        for j in range(i, 3):
            P[i, j] += (
                T[j, 0] * M[i, 3]
                + T[j, 1] * M[i, 4]
                + T[j, 2] * M[i, 5]
                + (T[j, 3] * M[i, 6] + T[j, 4] * M[i, 7] + T[j, 5] * M[i, 8])
                + (T[j, 6] * M[i, 12] + T[j, 7] * M[i, 13] + T[j, 8] * M[i, 14])
            )
    mirror(P, VROLL)

    # The control input acts after the Jacobian was taken: it replaces accelerations and
    # accelerates the rates.
    for axis in range(6):
        T[3, axis] = 0.0
        if settings.control_mask[axis] != 0.0:
            acceleration = control_acceleration(flt, settings, axis, stamp_ns)
            if axis < 3:
                x[AX + axis] = acceleration
            else:
                T[3, axis] = acceleration * dt
    for axis in range(3, 6):
        x[VX + axis] += T[3, axis]

    u0 = x[VX] * dt + x[AX] * half
    u1 = x[VX + 1] * dt + x[AX + 1] * half
    u2 = x[VX + 2] * dt + x[AX + 2] * half
    w0, w1, w2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    x[0] += r00 * u0 + r01 * u1 + r02 * u2
    x[1] += r10 * u0 + r11 * u1 + r12 * u2
    x[2] += r20 * u0 + r21 * u1 + r22 * u2
    x[ROLL] = wrap_angle(x[ROLL] + dt * (w0 + sr * tp * w1 + cr * tp * w2))
    x[PITCH] = wrap_angle(x[PITCH] + dt * (cr * w1 - sr * w2))
    x[YAW] = wrap_angle(x[YAW] + dt * (sr * ic * w1 + cr * ic * w2))
    for i in range(3):
        x[VX + i] += dt * x[AX + i]


# Innovation covariance, gate and gain of a correction; shared by both filters.


@kernel
def passes_gate(
    flt: Filter, S: FloatArray, R: FloatArray, m: int, nu: FloatArray, L: FloatArray,
    inverse: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    """Factor S + R = L D L' and return whether the innovation passes the gate.

    Arrays may be larger than m. The squared Mahalanobis distance and D go to `flt.distance`. A
    singular S + R does not pass, and neither does a distance of `threshold` or more.

    Parameters
    ----------
    S : covariance of the predicted measurement; its lower triangle is read.
    R : covariance of the measurement; its diagonal is raised in place to a minimum, as in
        robot_localization.
    nu : innovation; becomes L^-1 nu.
    L : filled with L below the diagonal and L' above.
    inverse : filled with 1 / D.
    """
    distance, row = 0.0, flt.factor_row
    for j in range(m):
        R[j, j] = max(abs(R[j, j]), _MINIMUM_VARIANCE)
        error = nu[j]
        pivot = S[j, j] + R[j, j]
        for i in range(j):
            entry = S[j, i] + R[j, i]
            for k in range(i):
                entry -= row[k] * L[i, k]
            row[i] = entry
            L[j, i] = L[i, j] = entry * inverse[i]
            pivot -= entry * L[j, i]
            error -= L[j, i] * nu[i]
        if pivot == 0.0 or not math.isfinite(pivot):
            return False
        nu[j] = error
        flt.distance[1 + j] = pivot
        inverse[j] = 1.0 / pivot
        distance += error * error * inverse[j]
    flt.distance[0] = distance
    return not distance >= threshold * threshold


@kernel
def solve_forward(
    W: FloatArray, K: FloatArray, m: int, L: FloatArray, inverse: FloatArray
) -> None:
    """Replace `m` rows of W by L^-1 W, and fill K with D^-1 L^-1 W."""
    for j in range(m):
        add_rows(W, j, W, FIRST, j, L, j, -1.0)
        set_row(K, j, W, j, inverse[j])


@kernel
def solve_backward(K: FloatArray, m: int, L: FloatArray) -> None:
    """Replace `m` rows of K by L'^-1 K: the transposed gain after `solve_forward`."""
    for j in range(m - 2, -1, -1):
        add_rows(K, j, K, j + 1, m, L, j, -1.0)
