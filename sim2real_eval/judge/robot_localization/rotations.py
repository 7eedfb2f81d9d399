# SPDX-License-Identifier: Apache-2.0
"""Small rotations for the compiled loops; scipy's Rotation is the tests' oracle.

Angles are roll, pitch, yaw about fixed axes x, y, z, so that R = Rz(yaw) Ry(pitch) Rx(roll).
"""

from __future__ import annotations

import math

from sim2real_eval.judge.robot_localization.state import VROLL
from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray

__all__ = [
    'angles_from_matrix',
    'is_identity',
    'level_imu',
    'matrix_from_angles',
    'matrix_from_quaternion',
    'matrix_product',
    'move_to_base',
    'rotate_covariance',
    'rotate_square',
    'times_inverse',
    'transform',
    'turn_twist',
]


@kernel
def matrix_from_quaternion(q: FloatArray, R: FloatArray) -> None:
    """Fill (3, 3) `R` from a quaternion x y z w of any length; a zero quaternion is identity."""
    length2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    if length2 == 0.0:
        for i in range(3):
            for j in range(3):
                R[i, j] = 1.0 if i == j else 0.0
        return
    s = 2.0 / length2
    xx, yy, zz = q[0] * q[0] * s, q[1] * q[1] * s, q[2] * q[2] * s
    xy, xz, yz = q[0] * q[1] * s, q[0] * q[2] * s, q[1] * q[2] * s
    wx, wy, wz = q[3] * q[0] * s, q[3] * q[1] * s, q[3] * q[2] * s
    R[0, 0], R[0, 1], R[0, 2] = 1.0 - (yy + zz), xy - wz, xz + wy
    R[1, 0], R[1, 1], R[1, 2] = xy + wz, 1.0 - (xx + zz), yz - wx
    R[2, 0], R[2, 1], R[2, 2] = xz - wy, yz + wx, 1.0 - (xx + yy)


@kernel
def matrix_from_angles(roll: float, pitch: float, yaw: float, R: FloatArray) -> None:
    """Fill (3, 3) `R` from roll, pitch, yaw."""
    sr, cr = math.sin(roll), math.cos(roll)
    sp, cp = math.sin(pitch), math.cos(pitch)
    sy, cy = math.sin(yaw), math.cos(yaw)
    R[0, 0], R[0, 1], R[0, 2] = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    R[1, 0], R[1, 1], R[1, 2] = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    R[2, 0], R[2, 1], R[2, 2] = -sp, cp * sr, cp * cr


@kernel
def angles_from_matrix(R: FloatArray, angles: FloatArray) -> None:
    """Fill `angles` with roll, pitch, yaw of (3, 3) `R`; at pitch +-90 degrees yaw is 0."""
    if abs(R[2, 0]) >= 1.0:
        angles[2] = 0.0
        if R[2, 0] < 0.0:
            angles[1] = math.pi / 2.0
            angles[0] = math.atan2(R[0, 1], R[0, 2])
        else:
            angles[1] = -math.pi / 2.0
            angles[0] = math.atan2(-R[0, 1], -R[0, 2])
        return
    angles[1] = -math.asin(R[2, 0])
    angles[0] = math.atan2(R[2, 1], R[2, 2])
    angles[2] = math.atan2(R[1, 0], R[0, 0])


@kernel
def is_identity(R: FloatArray) -> bool:
    """Say whether a rotation matrix is the identity, exactly."""
    for i in range(3):
        for j in range(3):
            if R[i, j] != (1.0 if i == j else 0.0):
                return False
    return True


@kernel
def rotate_covariance(R: FloatArray, C: FloatArray, out: FloatArray) -> None:
    """Fill (6, 6) `out` with D C D', D = diag(R, R): both triples turned by the same rotation."""
    if is_identity(R):
        for i in range(6):
            for j in range(6):
                out[i, j] = C[i, j]
        return
    for a in range(0, 6, 3):
        for b in range(0, 6, 3):
            for i in range(3):
                for j in range(3):
                    total = 0.0
                    for k in range(3):
                        inner = 0.0
                        for m in range(3):
                            inner += C[a + k, b + m] * R[j, m]
                        total += R[i, k] * inner
                    out[a + i, b + j] = total


@kernel
def matrix_product(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Fill (3, 3) `out` with A B; it must be neither of them."""
    for i in range(3):
        for j in range(3):
            out[i, j] = 0.0
            for k in range(3):
                out[i, j] += A[i, k] * B[k, j]


@kernel
def rotate_square(R: FloatArray, C: FloatArray, out: FloatArray) -> None:
    """Fill (3, 3) `out` with R C R', summed term by term."""
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                for m in range(3):
                    total += R[i, k] * C[k, m] * R[j, m]
            out[i, j] = total


# -------- Rigid motions of poses and twists for the preparation of measurements, compiled.
#
# A pose is four rows of three: those of the rotation matrix, and the position.


@kernel
def times_inverse(base: FloatArray, pose: FloatArray) -> None:
    """Replace `pose` by base^-1 pose; both are rotation rows and a position row."""
    p0 = pose[3, 0] - base[3, 0]
    p1 = pose[3, 1] - base[3, 1]
    p2 = pose[3, 2] - base[3, 2]
    for i in range(3):
        pose[3, i] = base[0, i] * p0 + base[1, i] * p1 + base[2, i] * p2
    for j in range(3):
        r0, r1, r2 = pose[0, j], pose[1, j], pose[2, j]
        for i in range(3):
            pose[i, j] = base[0, i] * r0 + base[1, i] * r1 + base[2, i] * r2


@kernel
def transform(rotation: FloatArray, offset: FloatArray, pose: FloatArray) -> None:
    """Replace `pose` by the transform (rotation, offset) times pose."""
    p0, p1, p2 = pose[3, 0], pose[3, 1], pose[3, 2]
    for i in range(3):
        pose[3, i] = rotation[i, 0] * p0 + rotation[i, 1] * p1 + rotation[i, 2] * p2 + offset[i]
    for j in range(3):
        r0, r1, r2 = pose[0, j], pose[1, j], pose[2, j]
        for i in range(3):
            pose[i, j] = rotation[i, 0] * r0 + rotation[i, 1] * r1 + rotation[i, 2] * r2


@kernel
def level_imu(rotation: FloatArray, pose: FloatArray, work: FloatArray) -> float:
    """Take the mounting angles off an IMU attitude, angle by angle; return the mounting yaw."""
    mounting, angles = work[4], work[5]
    angles_from_matrix(pose, angles)
    if is_identity(rotation):
        # What the lines below come to, without their sines.
        matrix_from_angles(angles[0], angles[1], angles[2], pose)
        return 0.0
    angles_from_matrix(rotation, mounting)
    roll, pitch = angles[0] - mounting[0], angles[1] - mounting[1]
    yaw = mounting[2]
    levelled_roll = math.cos(yaw) * roll - math.sin(yaw) * pitch
    levelled_pitch = math.sin(yaw) * roll + math.cos(yaw) * pitch
    matrix_from_angles(levelled_roll, levelled_pitch, angles[2] - yaw, pose)
    return float(yaw)


@kernel
def move_to_base(turn: FloatArray, at: FloatArray, pose: FloatArray, scratch: FloatArray) -> None:
    """Replace the pose of another body frame by that of base_link."""
    # base_link in that frame: rotation turn', position -turn' at.
    matrix_product(pose, turn.T, scratch)
    for i in range(3):
        for j in range(3):
            pose[i, j] = scratch[i, j]
            pose[3, i] -= scratch[i, j] * at[j]


@kernel
def turn_twist(turn: FloatArray, at: FloatArray, x: FloatArray, z: FloatArray) -> None:
    """Replace the twist of another body frame by that of base_link, with the filter's rates."""
    v0, v1, v2, w0, w1, w2 = z[0], z[1], z[2], z[3], z[4], z[5]
    for i in range(3):
        z[i] = turn[i, 0] * v0 + turn[i, 1] * v1 + turn[i, 2] * v2
        z[3 + i] = turn[i, 0] * w0 + turn[i, 1] * w1 + turn[i, 2] * w2
    r0, r1, r2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    z[0] += at[1] * r2 - at[2] * r1
    z[1] += at[2] * r0 - at[0] * r2
    z[2] += at[0] * r1 - at[1] * r0
