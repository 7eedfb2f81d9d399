# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rotations over arrays: quaternions, the exponential of SO(3) and its right Jacobian.

Quaternions are `(n, 4)`, order x y z w (ROS and scipy), and take body vectors to world vectors.
Rotation vectors are `(n, 3)` rad.

SciPy's Rotation has the first half of these functions. It is not used because results must not
depend, in any bit, on the number of rows of a call: the live node evaluates a few samples at a
time, the batch command all of them. Every formula below is therefore written component by
component, so that no matrix product or reduction can change the order of summation. The tests
compare with SciPy, which does not have the second half: the Jacobian and its derivative.

Formulas: [Sola2018], equations 143, 144 (right Jacobian and inverse); the derivative follows by
the product rule.
"""

from __future__ import annotations

import functools
import importlib
import math
import warnings
from types import ModuleType

import numpy as np
import numpy.typing as npt

from .measurements import FloatArray

Curve = tuple[FloatArray, FloatArray, FloatArray]
"""Values, first and second time derivatives of a vector function, each `(n, 3)`."""

# Below these angles [rad] the closed forms lose digits by cancellation, so series take over.
# At 1 rad the first term left out of the series below is under 1e-17 of the sum.
_SERIES_BELOW = 1.0
_TERMS = 9
# Series of B = (t - sin t)/t^3 and D = (dB/dt)/t, A = (1 - cos t)/t^2 and C = (dA/dt)/t in t^2.
_A = [(-1.0) ** k / math.factorial(2 * k + 2) for k in range(_TERMS)]
_B = [(-1.0) ** k / math.factorial(2 * k + 3) for k in range(_TERMS)]
_C = [2.0 * k * _A[k] for k in range(1, _TERMS)]
_D = [2.0 * k * _B[k] for k in range(1, _TERMS)]
# (1 - (t/2) cot(t/2))/t^2 = sum |B_2k| t^(2k-2)/(2k)!, with Bernoulli numbers B_2k.
_BERNOULLI = [1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730, 7 / 6, 3617 / 510, 43867 / 798]
_E = [value / math.factorial(2 * k + 2) for k, value in enumerate(_BERNOULLI)]


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Cross product of `(n, 3)` arrays, row by row."""
    result = np.empty(np.broadcast(a, b).shape)
    result[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    result[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    result[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return result


def skew(vectors: FloatArray) -> FloatArray:
    """Return the matrices [v]x `(n, 3, 3)` of vectors `(n, 3)`, with [v]x a = v x a."""
    result = np.zeros((len(vectors), 3, 3))
    result[:, 0, 1], result[:, 0, 2] = -vectors[:, 2], vectors[:, 1]
    result[:, 1, 0], result[:, 1, 2] = vectors[:, 2], -vectors[:, 0]
    result[:, 2, 0], result[:, 2, 1] = -vectors[:, 1], vectors[:, 0]
    return result


def conjugate(q: FloatArray) -> FloatArray:
    """Inverse rotation of unit quaternions `(n, 4)`."""
    return np.asarray(q * np.array([-1.0, -1.0, -1.0, 1.0]))


def continuous(q: FloatArray) -> FloatArray:
    """Return quaternions `(n, 4)` with the signs that make neighbours continuous.

    A quaternion and its negative are the same rotation, but interpolation between them is not.
    """
    dots = np.sum(q[1:] * q[:-1], axis=1)
    signs = np.cumprod(np.r_[1.0, np.where(dots < 0.0, -1.0, 1.0)])
    return np.asarray(q * signs[:, None])


def multiply(p: FloatArray, q: FloatArray) -> FloatArray:
    """Hamilton product p q of `(n, 4)` arrays: the rotation q first, then p."""
    px, py, pz, pw = p[:, 0], p[:, 1], p[:, 2], p[:, 3]
    qx, qy, qz, qw = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    result = np.empty(np.broadcast(p, q).shape)
    result[:, 0] = pw * qx + px * qw + py * qz - pz * qy
    result[:, 1] = pw * qy - px * qz + py * qw + pz * qx
    result[:, 2] = pw * qz + px * qy - py * qx + pz * qw
    result[:, 3] = pw * qw - px * qx - py * qy - pz * qz
    return result


def rotate(q: FloatArray, v: FloatArray) -> FloatArray:
    """Take body vectors `v` `(n, 3)` to the world: R(q) v."""
    if len(q) == 1 and not q[0, :3].any():
        # Most sensors are not rotated; the formula would only add zeros.
        return np.array(v)
    t = 2.0 * cross(q[:, :3], v)
    return v + q[:, 3:] * t + cross(q[:, :3], t)


def rotate_back(q: FloatArray, v: FloatArray) -> FloatArray:
    """Take world vectors `v` `(n, 3)` to the body: R(q)^T v."""
    return rotate(conjugate(q), v)


def from_heading(heading: FloatArray) -> FloatArray:
    """Quaternions `(n, 4)` of rotations about the world z axis by `heading` `(n,)` rad."""
    result = np.zeros((len(heading), 4))
    result[:, 2] = np.sin(0.5 * heading)
    result[:, 3] = np.cos(0.5 * heading)
    return result


def heading(q: FloatArray) -> FloatArray:
    """Yaw `(n,)` rad, in [-pi, pi], of quaternions `(n, 4)`: the inverse of `from_heading`."""
    x, y, z, w = q.T
    return np.asarray(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def exp(vector: FloatArray) -> FloatArray:
    """Quaternions `(n, 4)` of rotation vectors `(n, 3)` rad."""
    angle = np.sqrt(_dot(vector, vector))
    half = 0.5 * angle
    safe = np.where(angle > 1e-8, angle, 1.0)
    scale = np.where(angle > 1e-8, np.sin(half) / safe, 0.5)
    result = np.empty((len(vector), 4))
    result[:, :3] = scale[:, None] * vector
    result[:, 3] = np.cos(half)
    return result


def log(q: FloatArray) -> FloatArray:
    """Rotation vectors `(n, 3)` rad, of at most pi, of unit quaternions `(n, 4)`."""
    sign = np.where(q[:, 3] < 0.0, -1.0, 1.0)
    vector = sign[:, None] * q[:, :3]
    norm = np.sqrt(_dot(vector, vector))
    angle = 2.0 * np.arctan2(norm, sign * q[:, 3])
    scale = np.where(norm > 1e-12, angle / np.where(norm > 1e-12, norm, 1.0), 2.0)
    return scale[:, None] * vector


def rotation_between(p: FloatArray, q: FloatArray) -> FloatArray:
    """Rotation vectors `(n, 3)` from p to q: Log(p^-1 q), with components in either body frame."""
    return log(multiply(conjugate(p), q))


def body_rates(curve: Curve) -> tuple[FloatArray, FloatArray]:
    """Return the body rate along R Exp(phi(t)) and its derivative, `(n, 3)` rad/s and rad/s^2.

    The curve is the rotation vector phi and its time derivatives. The rate is omega = Jr(phi)
    dphi, the other its exact time derivative, with Jr x = x - A phi x x + B phi x (phi x x).
    """
    phi, first, second = curve
    A, B, C, D = _jacobian_terms(_dot(phi, phi))
    inner, inner_rate = cross(phi, first), cross(phi, second)
    outer = cross(phi, inner)
    growth = _dot(phi, first)[:, None]
    rate = first - A * inner + B * outer
    acceleration = (
        second
        - growth * C * inner
        - A * inner_rate
        + growth * D * outer
        + B * (cross(first, inner) + cross(phi, inner_rate))
    )
    return rate, acceleration


def end_derivatives(
    vector: FloatArray, rate: FloatArray, acceleration: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of phi for a given body rate and acceleration at phi = `vector`.

    This is the inverse of `body_rates`. Without `acceleration`, the second result is meaningless.
    """
    first = _solve(vector, rate)
    if acceleration is None:
        return first, np.zeros_like(first)
    _, bias = body_rates((vector, first, np.zeros_like(first)))
    return first, _solve(vector, acceleration - bias)


def _solve(phi: FloatArray, y: FloatArray) -> FloatArray:
    """Inverse of the right Jacobian times y."""
    square = _dot(phi, phi)
    small = square < _SERIES_BELOW**2
    safe = np.where(small, 1.0, square)
    half = 0.5 * np.sqrt(safe)
    closed = (1.0 - half * np.cos(half) / np.sin(half)) / safe
    E = np.where(small, _series(_E, np.where(small, square, 0.0)), closed)[:, None]
    inner = cross(phi, y)
    return y + 0.5 * inner + E * cross(phi, inner)


def _jacobian_terms(square: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """A, B and (dA/dt)/t, (dB/dt)/t as `(n, 1)` at the squared angles t^2."""
    small = square < _SERIES_BELOW**2
    safe = np.where(small, 1.0, square)
    angle = np.sqrt(safe)
    sine, versine = np.sin(angle), 2.0 * np.sin(0.5 * angle) ** 2
    A = versine / safe
    B = (angle - sine) / (safe * angle)
    closed = (A, B, (sine / angle - 2.0 * A) / safe, (A - 3.0 * B) / safe)
    x = np.where(small, square, 0.0)
    terms = [
        np.where(small, _series(coefficients, x), exact)[:, None]
        for coefficients, exact in zip((_A, _B, _C, _D), closed, strict=True)
    ]
    return terms[0], terms[1], terms[2], terms[3]


def _series(coefficients: list[float], x: FloatArray) -> FloatArray:
    total = np.full(x.shape, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2])


# Euler angles and quaternions for people and ROS, in launch files and diagnostics.
#
# They use `tf_transformations` of ROS, or scipy if it is missing or broken. The two agree to about
# 1e-15, but not to the bit. The results of models and judge must not depend on installed packages,
# so these use the functions above and scipy instead. Values written to files are rounded.
#
# Quaternions are x y z w. Euler angles are roll, pitch, yaw about the fixed axes x, y, z in this
# order, rad, as in a static transform and a URDF.


def quaternion_from_euler(
    roll: float, pitch: float, yaw: float
) -> tuple[float, float, float, float]:
    """Return the quaternion x y z w, with w >= 0, of roll, pitch, yaw, rad."""
    from scipy.spatial.transform import Rotation

    library = _tf_transformations()
    if library is None:
        numbers = Rotation.from_euler('xyz', (roll, pitch, yaw)).as_quat().tolist()
    else:
        numbers = [float(part) for part in library.quaternion_from_euler(roll, pitch, yaw)]
    sign = -1.0 if numbers[3] < 0.0 else 1.0
    x, y, z, w = (sign * part for part in numbers)
    return x, y, z, w


def euler_from_quaternion(quaternion: npt.ArrayLike) -> tuple[float, float, float]:
    """Return roll, pitch, yaw of a quaternion x y z w of any length but zero, rad.

    Raises ValueError for a quaternion of length zero.
    """
    from scipy.spatial.transform import Rotation

    # Checked and scaled here, because the libraries differ for other than unit quaternions.
    unit = Rotation.from_quat(np.asarray(quaternion, dtype=np.float64))
    library = _tf_transformations()
    if library is None:
        with warnings.catch_warnings():
            # At a pitch of 90 degrees yaw is set to 0, as in the other library.
            warnings.simplefilter('ignore', UserWarning)
            angles = unit.as_euler('xyz').tolist()
    else:
        angles = [float(angle) for angle in library.euler_from_quaternion(unit.as_quat())]
    roll, pitch, yaw = angles
    return roll, pitch, yaw


@functools.cache
def _tf_transformations() -> ModuleType | None:
    try:
        return importlib.import_module('tf_transformations')
    except ImportError:
        return None
    except Exception as error:
        # It can be installed but broken, such as Ubuntu's transforms3d with NumPy 2.
        warnings.warn(
            f'tf_transformations cannot be imported ({type(error).__name__}: {error}); '
            'scipy takes its place',
            RuntimeWarning,
            stacklevel=3,
        )
        return None
