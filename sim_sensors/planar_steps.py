# SPDX-License-Identifier: Apache-2.0
"""Steps in the plane over whole motions: from poses to body twists and back, compiled.

What `sim_sensors.planar` does for one pose at a time. Loops over scalars, so that cutting a motion
into calls changes no bit.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.compilation import compiled, kernel
from sim_sensors.measurements import FloatArray

__all__ = ['body_steps', 'heading_of', 'pose_covariances', 'poses_after', 'seen_from']

# Below this angle [rad] the closed forms lose digits; the series' first term left out is < 1e-18.
_SMALL = 1e-4


@kernel
def _sinc(angle: float) -> float:
    return 1.0 - angle * angle / 6.0 if abs(angle) < _SMALL else math.sin(angle) / angle


@kernel
def _versinc(angle: float) -> float:
    """(1 - cos a)/a."""
    if abs(angle) < _SMALL:
        return 0.5 * angle
    half = math.sin(0.5 * angle)
    return 2.0 * half * half / angle


@compiled
def heading_of(quaternion: FloatArray) -> float:
    """Return the heading, rad, of a quaternion x y z w `(4,)`."""
    x, y, z, w = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    return math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)


@compiled
def body_steps(position: FloatArray, orientation: FloatArray) -> FloatArray:
    """Return Log(pose[k]^-1 pose[k+1]) in the plane of the body, `(n - 1, 3)`.

    Exact for motion in a horizontal plane. On a slope the plane is that of the body: path and
    rotation are those which wheels on that slope see.

    Parameters
    ----------
    position : (n, 3)
        m, world.
    orientation : (n, 4)
        Quaternions x y z w, body to world.

    Returns
    -------
    (n - 1, 3)
        Forward and left path in m, turn in rad (the short way round).
    """
    n = len(position) - 1
    out = np.empty((max(n, 0), 3))
    for k in range(n):
        x, y, z, w = orientation[k, 0], orientation[k, 1], orientation[k, 2], orientation[k, 3]
        qx, qy = orientation[k + 1, 0], orientation[k + 1, 1]
        qz, qw = orientation[k + 1, 2], orientation[k + 1, 3]
        # conj(q[k]) q[k+1]
        rx = w * qx - x * qw - y * qz + z * qy
        ry = w * qy + x * qz - y * qw - z * qx
        rz = w * qz - x * qy + y * qx - z * qw
        rw = w * qw + x * qx + y * qy + z * qz
        if rw < 0.0:
            rx, ry, rz, rw = -rx, -ry, -rz, -rw
        sine = math.sqrt(rx * rx + ry * ry + rz * rz)
        turn = 2.0 * rz if sine < 1e-12 else 2.0 * math.atan2(sine, rw) * rz / sine
        px = position[k + 1, 0] - position[k, 0]
        py = position[k + 1, 1] - position[k, 1]
        pz = position[k + 1, 2] - position[k, 2]
        # First two rows of the transpose of the rotation matrix.
        dx = (1.0 - 2.0 * (y * y + z * z)) * px
        dx += 2.0 * (x * y + w * z) * py + 2.0 * (x * z - w * y) * pz
        dy = 2.0 * (x * y - w * z) * px
        dy += (1.0 - 2.0 * (x * x + z * z)) * py + 2.0 * (y * z + w * x) * pz
        a, b = _sinc(turn), _versinc(turn)
        scale = a * a + b * b
        out[k, 0] = (a * dx + b * dy) / scale
        out[k, 1] = (a * dy - b * dx) / scale
        out[k, 2] = turn
    return out


@compiled
def poses_after(start: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the poses after each step, start Exp(s_0) .. Exp(s_k), `(n, 3)`.

    Parameters
    ----------
    start : (3,)
        x, y in m and heading in rad, which is not wrapped.
    steps : (n, 3)
        As `body_steps` returns them.
    """
    x, y, heading = start[0], start[1], start[2]
    out = np.empty((len(steps), 3))
    for k in range(len(steps)):
        forward, left, turn = steps[k, 0], steps[k, 1], steps[k, 2]
        a, b = _sinc(turn), _versinc(turn)
        dx, dy = a * forward - b * left, b * forward + a * left
        c, s = math.cos(heading), math.sin(heading)
        x += c * dx - s * dy
        y += s * dx + c * dy
        heading += turn
        out[k, 0], out[k, 1], out[k, 2] = x, y, heading
    return out


@compiled
def pose_covariances(
    headings: FloatArray, steps: FloatArray, noise: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the covariance of the poses that erring steps lead to, to first order, `(n, 3, 3)`.

    With the world displacement (dx, dy) of a step, P' = F P F' + G Q G', where F has 1 on the
    diagonal and (-dy, dx) in the column of the heading, and G is the derivative of the pose by
    the step.

    Parameters
    ----------
    headings : (n,)
        Before each step, rad.
    steps : (n, 3)
        As `body_steps` returns them.
    noise : (n, 3, 3)
        Covariance Q of each step, independent of the others.
    start : (3, 3)
        Covariance before the first step; x, y, heading in the world.
    """
    out = np.empty((len(steps), 3, 3))
    P = start.copy()
    F, G = np.eye(3), np.zeros((3, 3))
    G[2, 2] = 1.0
    product, spread = np.empty((3, 3)), np.empty((3, 3))
    for k in range(len(steps)):
        forward, left, turn = steps[k, 0], steps[k, 1], steps[k, 2]
        a, b = _sinc(turn), _versinc(turn)
        if abs(turn) < _SMALL:
            da, db = -turn / 3.0, 0.5
        else:
            da, db = (math.cos(turn) - a) / turn, (math.sin(turn) - b) / turn
        c, s = math.cos(headings[k]), math.sin(headings[k])
        dx, dy = a * forward - b * left, b * forward + a * left
        F[0, 2], F[1, 2] = -(s * dx + c * dy), c * dx - s * dy
        G[0, 0], G[0, 1] = c * a - s * b, -c * b - s * a
        G[1, 0], G[1, 1] = s * a + c * b, -s * b + c * a
        ex, ey = da * forward - db * left, db * forward + da * left
        G[0, 2], G[1, 2] = c * ex - s * ey, s * ex + c * ey
        _congruent(F, P, product, spread)
        for i in range(3):
            for j in range(3):
                out[k, i, j] = spread[i, j]
        _congruent(G, noise[k], product, spread)
        for i in range(3):
            for j in range(3):
                out[k, i, j] += spread[i, j]
                P[i, j] = out[k, i, j]
    return out


@compiled
def seen_from(covariances: FloatArray, arm: FloatArray) -> FloatArray:
    """Return the covariances `(n, 3, 3)` of steps as another point of the body makes them.

    Parameters
    ----------
    covariances : (n, 3, 3)
        Of forward, left, turn at one point.
    arm : (2,)
        From that point to the other, forward and left, m.
    """
    out = np.empty_like(covariances)
    A, product = np.eye(3), np.empty((3, 3))
    A[0, 2], A[1, 2] = -arm[1], arm[0]
    for k in range(len(covariances)):
        _congruent(A, covariances[k], product, out[k])
    return out


@kernel
def _congruent(A: FloatArray, P: FloatArray, product: FloatArray, out: FloatArray) -> None:
    """A P A' of 3 x 3 matrices, in a fixed order of summation."""
    for i in range(3):
        for j in range(3):
            product[i, j] = A[i, 0] * P[0, j] + A[i, 1] * P[1, j] + A[i, 2] * P[2, j]
    for i in range(3):
        for j in range(3):
            out[i, j] = product[i, 0] * A[j, 0] + product[i, 1] * A[j, 1] + product[i, 2] * A[j, 2]
