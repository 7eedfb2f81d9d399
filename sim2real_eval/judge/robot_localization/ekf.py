# SPDX-License-Identifier: Apache-2.0
"""Prediction of the 15-state extended Kalman filter, compiled.

The equations are those of robot_localization's ekf (docs/explanation/judge.md gives them). The
Jacobian F has 54 entries off the identity; they are written out, so neither F nor the transfer
matrix is formed. P stays symmetric to the bit: one triangle is computed, the other is its mirror
image.
"""

from __future__ import annotations

import math

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray
from .matrices import add_rows, mirror_left, set_row, subtract_with_column, subtract_with_row
from .state import AX, CONTROL_NS, PITCH, ROLL, VROLL, VX, YAW, Dynamics, Filter, N


@kernel
def wrap_angle(angle: float) -> float:
    """Bring an angle into (-pi, pi]."""
    if -math.pi < angle <= math.pi:
        return angle
    turned = (angle + math.pi) % (2.0 * math.pi)
    return math.pi if turned == 0.0 else turned - math.pi


@kernel
def control_acceleration(flt: Filter, dyn: Dynamics, axis: int, stamp_ns: int) -> float:
    """Return what the command accelerates an axis of vx vy vz vroll vpitch vyaw by."""
    command = flt.command[axis]
    if stamp_ns - flt.times[CONTROL_NS] >= dyn.control_timeout_ns:
        command = 0.0
    velocity = flt.x[VX + axis]
    error = command - velocity
    set_point = command if abs(error) <= abs(command) + 0.01 else 0.0
    row = 2 if abs(set_point) < abs(velocity) else 0
    limit = dyn.control_limits[row, axis]
    return float(min(max(dyn.control_limits[row + 1, axis] * error, -limit), limit))


@kernel
def predict(flt: Filter, dyn: Dynamics, stamp_ns: int, dt: float) -> None:
    """Move state and covariance on by `dt` seconds, to `stamp_ns`."""
    x, P, Q = flt.x, flt.P, dyn.Q
    T, M = flt.work[0], flt.work[1]
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
    # That of roll, pitch, yaw by themselves, off the identity, and by the rates.
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
        set_row(
            M, i, P, (i, 3, 4, 5, 6, 7, 8, 12, 13, 14),
            (1.0, T[i, 0], T[i, 1], T[i, 2], T[i, 3], T[i, 4], T[i, 5], T[i, 6], T[i, 7], T[i, 8]),
        )  # fmt: skip
        set_row(M, VX + i, P, (VX + i, AX + i), (1.0, dt))
    set_row(M, 3, P, (3, 4, 9, 10, 11), (1.0 + roll_roll, roll_pitch, dt, roll_wy, roll_wz))
    set_row(M, 4, P, (4, 3, 10, 11), (1.0, pitch_roll, pitch_wy, pitch_wz))
    set_row(M, 5, P, (5, 3, 4, 10, 11), (1.0, yaw_roll, yaw_pitch, yaw_wy, yaw_wz))

    # P = M F' + dt Q: F' changes columns 0-8 only, and only their upper triangle is computed.
    scale = 1.0
    if dyn.dynamic:
        scale = 0.0
        for i in range(6):
            scale += x[VX + i] * x[VX + i]
    for i in range(VROLL, N):
        add_rows(P, i, Q, (i,), (dt,))
    for i in range(VROLL):
        set_row(P, i, Q, (i,), (dt,))
        if dyn.dynamic and i < 6:
            for j in range(6):
                P[i, j] *= scale
        add_rows(P, i, M, (i,), (1.0,))
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
    mirror_left(P)

    # The control input acts after the Jacobian was taken: it replaces accelerations and
    # accelerates the rates.
    for axis in range(6):
        T[3, axis] = 0.0
        if dyn.control_mask[axis] != 0.0:
            acceleration = control_acceleration(flt, dyn, axis, stamp_ns)
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


# Innovation covariance, gate and gain of a correction, compiled; shared by both filters.

_MINIMUM_VARIANCE = 1e-9


@kernel
def passes(
    flt: Filter, S: FloatArray, R: FloatArray, m: int, nu: FloatArray, L: FloatArray,
    inverse: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    """Factor S + R = L D L' and say whether the innovation passes the gate.

    S is the covariance of the predicted measurement, of which the lower triangle is read, R that
    of the measurement, whose diagonal is floored in place as robot_localization does. L is filled
    with L below the diagonal and (L D)' above, `inverse` with 1 / D, and the innovation nu becomes
    L^-1 nu; all may be larger than m. The squared Mahalanobis distance and D go to `flt.distance`,
    unless S + R is singular: then the measurement does not pass; nor does it from the distance
    `threshold` on.
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
        flt.distance[1 + j] = pivot
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
