# SPDX-License-Identifier: Apache-2.0
"""Prediction of the 15-state extended Kalman filter, compiled.

The equations are those of robot_localization's ekf (docs/judge.md gives them). The Jacobian F has
54 entries off the identity; they are written out, so neither F nor the transfer matrix is formed.
"""

from __future__ import annotations

import math

from sim2real_eval.judge.filter import CONTROL_NS, Dynamics, Filter
from sim2real_eval.judge.state import AX, PITCH, ROLL, VROLL, VX, YAW, N
from sim_sensors.compilation import compiled

__all__ = ['predict', 'wrap_angle']


@compiled
def wrap_angle(angle: float) -> float:
    """Bring an angle into (-pi, pi]."""
    if -math.pi < angle <= math.pi:
        return angle
    turned = (angle + math.pi) % (2.0 * math.pi)
    return math.pi if turned == 0.0 else turned - math.pi


@compiled
def _control_acceleration(flt: Filter, dyn: Dynamics, axis: int, stamp_ns: int) -> float:
    command = flt.command[axis]
    if stamp_ns - flt.times[CONTROL_NS] >= dyn.control_timeout_ns:
        command = 0.0
    velocity = flt.x[VX + axis]
    error = command - velocity
    set_point = command if abs(error) <= abs(command) + 0.01 else 0.0
    row = 2 if abs(set_point) < abs(velocity) else 0
    limit = dyn.control_limits[row, axis]
    return float(min(max(dyn.control_limits[row + 1, axis] * error, -limit), limit))


@compiled
def predict(flt: Filter, dyn: Dynamics, stamp_ns: int, dt: float) -> None:
    """Move state and covariance on by `dt` seconds, to `stamp_ns`."""
    x, P = flt.x, flt.P
    T, M = flt.work[0], flt.work[1]
    sr, cr = math.sin(x[ROLL]), math.cos(x[ROLL])
    sp, cp = math.sin(x[PITCH]), math.cos(x[PITCH])
    sy, cy = math.sin(x[YAW]), math.cos(x[YAW])
    tp, ic = sp / cp, 1.0 / cp

    # T holds R (rows 0-2, columns 0-2), E (columns 3-5) and the derivatives by roll, pitch, yaw.
    T[0, 0], T[0, 1], T[0, 2] = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    T[1, 0], T[1, 1], T[1, 2] = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    T[2, 0], T[2, 1], T[2, 2] = -sp, cp * sr, cp * cr
    T[0, 3], T[0, 4], T[0, 5] = 1.0, sr * tp, cr * tp
    T[1, 3], T[1, 4], T[1, 5] = 0.0, cr, -sr
    T[2, 3], T[2, 4], T[2, 5] = 0.0, sr * ic, cr * ic
    half = 0.5 * dt * dt
    u0 = x[VX] * dt + x[AX] * half
    u1 = x[VX + 1] * dt + x[AX + 1] * half
    u2 = x[VX + 2] * dt + x[AX + 2] * half
    for i in range(3):
        T[i, 6] = T[i, 2] * u1 - T[i, 1] * u2
    forward = -sp * u0 + cp * sr * u1 + cp * cr * u2
    T[0, 7], T[1, 7], T[2, 7] = cy * forward, sy * forward, -cp * u0 - sp * (sr * u1 + cr * u2)
    T[0, 8] = -(T[1, 0] * u0 + T[1, 1] * u1 + T[1, 2] * u2)
    T[1, 8] = T[0, 0] * u0 + T[0, 1] * u1 + T[0, 2] * u2
    T[2, 8] = 0.0
    wy, wz = x[VROLL + 1], x[VROLL + 2]
    turn = sr * wy + cr * wz
    tilt = cr * wy - sr * wz
    # Derivatives of roll, pitch, yaw by roll and pitch, off the identity.
    roll_roll, roll_pitch = dt * tp * tilt, dt * turn * ic * ic
    pitch_roll = -dt * turn
    yaw_roll, yaw_pitch = dt * tilt * ic, dt * turn * tp * ic

    # M = F P, row by row; rows of rates and accelerations are unchanged.
    for j in range(N):
        for i in range(3):
            M[i, j] = P[i, j] + (
                T[i, 6] * P[3, j]
                + T[i, 7] * P[4, j]
                + T[i, 8] * P[5, j]
                + dt * (T[i, 0] * P[6, j] + T[i, 1] * P[7, j] + T[i, 2] * P[8, j])
                + half * (T[i, 0] * P[12, j] + T[i, 1] * P[13, j] + T[i, 2] * P[14, j])
            )
        turned = dt * (P[9, j] + T[0, 4] * P[10, j] + T[0, 5] * P[11, j])
        M[3, j] = P[3, j] + roll_roll * P[3, j] + roll_pitch * P[4, j] + turned
        turned = dt * (T[1, 4] * P[10, j] + T[1, 5] * P[11, j])
        M[4, j] = P[4, j] + pitch_roll * P[3, j] + turned
        turned = dt * (T[2, 4] * P[10, j] + T[2, 5] * P[11, j])
        M[5, j] = P[5, j] + yaw_roll * P[3, j] + yaw_pitch * P[4, j] + turned
        for i in range(3):
            M[6 + i, j] = P[6 + i, j] + dt * P[12 + i, j]
        for i in range(9, N):
            M[i, j] = P[i, j]

    # P = M F' + dt Q.
    scale = 1.0
    if dyn.dynamic:
        scale = 0.0
        for i in range(6):
            scale += x[VX + i] * x[VX + i]
    for i in range(N):
        for j in range(3):
            P[i, j] = M[i, j] + (
                T[j, 6] * M[i, 3]
                + T[j, 7] * M[i, 4]
                + T[j, 8] * M[i, 5]
                + dt * (T[j, 0] * M[i, 6] + T[j, 1] * M[i, 7] + T[j, 2] * M[i, 8])
                + half * (T[j, 0] * M[i, 12] + T[j, 1] * M[i, 13] + T[j, 2] * M[i, 14])
            )
        turned = dt * (M[i, 9] + T[0, 4] * M[i, 10] + T[0, 5] * M[i, 11])
        P[i, 3] = M[i, 3] + roll_roll * M[i, 3] + roll_pitch * M[i, 4] + turned
        turned = dt * (T[1, 4] * M[i, 10] + T[1, 5] * M[i, 11])
        P[i, 4] = M[i, 4] + pitch_roll * M[i, 3] + turned
        turned = dt * (T[2, 4] * M[i, 10] + T[2, 5] * M[i, 11])
        P[i, 5] = M[i, 5] + yaw_roll * M[i, 3] + yaw_pitch * M[i, 4] + turned
        for j in range(3):
            P[i, 6 + j] = M[i, 6 + j] + dt * M[i, 12 + j]
        for j in range(9, N):
            P[i, j] = M[i, j]
        for j in range(N):
            P[i, j] += dt * dyn.Q[i, j] * (scale if i < 6 and j < 6 else 1.0)

    # The control input acts after the Jacobian was taken: it replaces accelerations and
    # accelerates the rates.
    for axis in range(6):
        if dyn.control_mask[axis] != 0.0:
            acceleration = _control_acceleration(flt, dyn, axis, stamp_ns)
            if axis < 3:
                x[AX + axis] = acceleration
            else:
                M[0, axis] = acceleration * dt
        else:
            M[0, axis] = 0.0
    for axis in range(3, 6):
        x[VX + axis] += M[0, axis]

    u0 = x[VX] * dt + x[AX] * half
    u1 = x[VX + 1] * dt + x[AX + 1] * half
    u2 = x[VX + 2] * dt + x[AX + 2] * half
    w0, w1, w2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    for i in range(3):
        x[i] += T[i, 0] * u0 + T[i, 1] * u1 + T[i, 2] * u2
        x[ROLL + i] = wrap_angle(x[ROLL + i] + dt * (T[i, 3] * w0 + T[i, 4] * w1 + T[i, 5] * w2))
        x[VX + i] += dt * x[AX + i]
