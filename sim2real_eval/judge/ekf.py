# SPDX-License-Identifier: Apache-2.0
"""Prediction and correction of the 15-state extended Kalman filter, compiled.

The equations are those of robot_localization's ekf (docs/judge.md gives them). F has 54 entries
off the identity and H only selects states, so neither is ever formed: `predict` walks the
non-zero entries of F, `correct` gathers rows and columns of P.

All functions work in place on a `Filter`, a named tuple of arrays, and allocate nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim2real_eval.judge.state import AX, PITCH, ROLL, VROLL, VX, YAW, N
from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray, IntArray

__all__ = [
    'CONTROL_NS',
    'INITIALISED',
    'LAST_NS',
    'NO_STAMP',
    'Dynamics',
    'Filter',
    'correct',
    'predict',
    'process',
    'wrap_angle',
]

INITIALISED = 0
LAST_NS = 1
CONTROL_NS = 2
NO_STAMP = -(2**62)
"""Stamp of what never happened; far enough back for every timeout, near enough not to overflow."""

_MINIMUM_VARIANCE = 1e-9
_LONGEST_STEP_S = 100000.0
_STEP_INSTEAD_S = 0.01


class Filter(NamedTuple):
    """State of one filter; every field is an array that the kernels change in place.

    Attributes
    ----------
    x : (15,) float
        State, in the order of `sim2real_eval.judge.state`.
    P : (15, 15) float
        Covariance.
    times : (3,) int64
        Initialised (0 or 1), last measurement time, time of the last command; nanoseconds.
    command : (6,) float
        Latest velocity command: vx vy vz vroll vpitch vyaw.
    work : (4, 15, 15) float
        Scratch space.
    """

    x: FloatArray
    P: FloatArray
    times: IntArray
    command: FloatArray
    work: FloatArray


class Dynamics(NamedTuple):
    """What the prediction needs beside the state; constant during a run.

    Attributes
    ----------
    Q : (15, 15) float
        Process noise covariance per second.
    dynamic : bool
        Scale the pose block of Q by the square of the speed.
    control_mask : (6,) float
        1 where the control input accelerates vx vy vz vroll vpitch vyaw.
    control_limits : (4, 6) float
        Acceleration limits and gains, deceleration limits and gains.
    control_timeout_ns : int
        Age at which a command counts as zero.
    """

    Q: FloatArray
    dynamic: bool
    control_mask: FloatArray
    control_limits: FloatArray
    control_timeout_ns: int


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


def new_filter(initial_state: FloatArray, initial_covariance: FloatArray) -> Filter:
    """Return a filter that waits for its first measurement."""
    return Filter(
        x=initial_state.copy(),
        P=initial_covariance.copy(),
        times=np.array([0, 0, NO_STAMP], dtype=np.int64),
        command=np.zeros(6),
        work=np.zeros((4, N, N)),
    )
