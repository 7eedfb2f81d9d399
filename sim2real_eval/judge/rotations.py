# SPDX-License-Identifier: Apache-2.0
"""Small rotations for the compiled loops; scipy's Rotation is the tests' oracle.

Angles are roll, pitch, yaw about fixed axes x, y, z, so that R = Rz(yaw) Ry(pitch) Rx(roll).
"""

from __future__ import annotations

import math

from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = [
    'angles_from_matrix',
    'is_identity',
    'matrix_from_angles',
    'matrix_from_quaternion',
    'matrix_product',
    'rotate_covariance',
    'rotate_square',
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
