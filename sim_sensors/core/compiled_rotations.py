# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rotations for compiled loops, one at a time; `core.rotations` has the array versions.

Angles are roll, pitch, yaw about fixed axes x, y, z, so that R = Rz(yaw) Ry(pitch) Rx(roll);
quaternions are x y z w.
"""

from __future__ import annotations

import math

from .compilation import kernel
from .measurements import FloatArray


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
    """Return whether a rotation matrix is exactly the identity."""
    for i in range(3):
        for j in range(3):
            if R[i, j] != (1.0 if i == j else 0.0):
                return False
    return True


@kernel
def matrix_product(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Fill (3, 3) `out` with A B; `out` must not be A or B."""
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


@kernel
def rotate_covariance(R: FloatArray, C: FloatArray, out: FloatArray) -> None:
    """Fill (6, 6) `out` with D C D', D = diag(R, R)."""
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
def times_inverse(base: FloatArray, pose: FloatArray) -> None:
    """Replace `pose` by base^-1 pose; both have rotation rows and a position row."""
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
def cross(a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3,), with a x b; `out` must not be a or b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@kernel
def skew(a: FloatArray, i: int, j: int) -> float:
    """Return entry (i, j) of the matrix [a] with [a] b = a x b."""
    if i == j:
        return 0.0
    value: float = a[3 - i - j]
    return -value if (j - i) % 3 == 1 else value


@kernel
def multiply(p: FloatArray, q: FloatArray, out: FloatArray) -> None:
    """Fill `out`, which may be p or q, with the unit quaternion of the product p q."""
    x = p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1]
    y = p[3] * q[1] - p[0] * q[2] + p[1] * q[3] + p[2] * q[0]
    z = p[3] * q[2] + p[0] * q[1] - p[1] * q[0] + p[2] * q[3]
    w = p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2]
    scale = 1.0 / math.sqrt(x * x + y * y + z * z + w * w)
    out[0], out[1], out[2], out[3] = x * scale, y * scale, z * scale, w * scale


# The exponential of SO(3) and its right Jacobian: [Sola2018], equations 143 and 144.

# Series replace closed forms below this squared angle, where these lose digits. The first omitted
# term is below 1e-16 of the sum.
_SERIES_BELOW = 0.25


@kernel
def coefficients(t2: float) -> tuple[float, float, float, float]:
    """Return sin t/t, (1 - cos t)/t^2, (t - sin t)/t^3, (t^2/2 + cos t - 1)/t^4 of t^2."""
    if t2 < _SERIES_BELOW:
        return (
            1.0 - t2 / 6.0 * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 *
                (1.0 - t2 / 110.0 * (1.0 - t2 / 156.0))))),
            0.5 * (1.0 - t2 / 12.0 * (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0 * (1.0 - t2 / 90.0 *
                (1.0 - t2 / 132.0 * (1.0 - t2 / 182.0)))))),
            (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 * (1.0 - t2 / 110.0 *
                (1.0 - t2 / 156.0 * (1.0 - t2 / 210.0)))))) / 6.0,
            (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0 * (1.0 - t2 / 90.0 * (1.0 - t2 / 132.0 *
                (1.0 - t2 / 182.0 * (1.0 - t2 / 240.0)))))) / 24.0,
        )  # fmt: skip
    t = math.sqrt(t2)
    sine, versine = math.sin(t), 2.0 * math.sin(0.5 * t) ** 2
    return sine / t, versine / t2, (t - sine) / (t2 * t), (0.5 * t2 - versine) / (t2 * t2)


@kernel
def quaternion_from_vector(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (4,), with the quaternion of a rotation vector."""
    t2 = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    half, _, _, _ = coefficients(0.25 * t2)
    for i in range(3):
        out[i] = 0.5 * half * phi[i]
    out[3] = math.cos(0.5 * math.sqrt(t2))


@kernel
def _fill(phi: FloatArray, linear: float, square: float, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with I + linear [phi] + square [phi]^2."""
    x, y, z = phi[0], phi[1], phi[2]
    out[0, 0] = 1.0 - square * (y * y + z * z)
    out[1, 1] = 1.0 - square * (x * x + z * z)
    out[2, 2] = 1.0 - square * (x * x + y * y)
    out[0, 1] = square * x * y - linear * z
    out[1, 0] = square * x * y + linear * z
    out[0, 2] = square * x * z + linear * y
    out[2, 0] = square * x * z - linear * y
    out[1, 2] = square * y * z - linear * x
    out[2, 1] = square * y * z + linear * x


@kernel
def matrix_from_vector(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with Exp(phi)."""
    linear, square, _, _ = coefficients(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    _fill(phi, linear, square, out)


@kernel
def right_jacobian(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with Jr(phi): Exp(phi + d) = Exp(phi) Exp(Jr d) for small d."""
    _, linear, square, _ = coefficients(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    _fill(phi, -linear, square, out)


@kernel
def inverse_terms(t2: float) -> tuple[float, float]:
    """Return E = (1 - (t/2) cot(t/2))/t^2 and (dE/dt)/t of t^2.

    E = sum |B_2k| t^(2k - 2)/(2k)! over the Bernoulli numbers B_2k.
    """
    if t2 < _SERIES_BELOW:
        e = (1.0 / 12.0 + t2 * (1.0 / 720.0 + t2 * (1.0 / 30240.0 + t2 * (1.0 / 1209600.0 +
            t2 * (1.0 / 47900160.0 + t2 * (691.0 / 1307674368000.0 +
            t2 * (1.0 / 74724249600.0 + t2 * 3617.0 / 10670622842880000.0)))))))  # fmt: skip
        slope = (2.0 / 720.0 + t2 * (4.0 / 30240.0 + t2 * (6.0 / 1209600.0 +
            t2 * (8.0 / 47900160.0 + t2 * (6910.0 / 1307674368000.0 +
            t2 * (12.0 / 74724249600.0 + t2 * 50638.0 / 10670622842880000.0))))))  # fmt: skip
        return e, slope
    t = math.sqrt(t2)
    half = 0.5 * t
    cot = math.cos(half) / math.sin(half)
    e = (1.0 - half * cot) / t2
    rise = 0.5 * (half / math.sin(half) ** 2 - cot)
    return e, (rise / t - 2.0 * e) / t2


@kernel
def inverse_right_jacobian(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with the inverse of Jr(phi); it grows without bound towards 2 pi."""
    square, _ = inverse_terms(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    _fill(phi, 0.5, square, out)
