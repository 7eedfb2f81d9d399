# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Poses in the plane (the group SE(2)): one at a time, and steps over whole motions.

Scalars throughout: a controller steps one pose after the other, live and in batch alike, and both
must give the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.measurements import FloatArray

# Angle [rad] below which sin(a)/a and (1 - cos a)/a are series, as the closed forms lose digits.
# The error is a^4/120, < 1e-18.
_SMALL = 1e-4


class Pose(NamedTuple):
    """A pose in the plane: x and y [m], world; heading [rad], from x to the left, unwrapped."""

    x: float
    y: float
    heading: float


def wrap(angle: float) -> float:
    """Return the angle of the same direction in [-pi, pi], rad.

    Examples
    --------
    >>> round(wrap(6.0), 6)
    -0.283185
    """
    return math.remainder(angle, 2.0 * math.pi)


def heading_of(x: float, y: float, z: float, w: float) -> float:
    """Return the heading, rad in [-pi, pi], of a quaternion x y z w that need not be of norm 1."""
    return math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)


def advance(pose: Pose, forward: float, left: float, turn: float) -> Pose:
    """Return pose Exp(xi), the pose after a constant body twist, without integration error.

    `forward` and `left` are the path along the body's axes, m: speed times time; `turn` is yaw
    rate times time, rad.
    """
    a, b = _sinc(turn), _versinc(turn)
    dx, dy = a * forward - b * left, b * forward + a * left
    c, s = math.cos(pose.heading), math.sin(pose.heading)
    return Pose(pose.x + c * dx - s * dy, pose.y + s * dx + c * dy, pose.heading + turn)


def relative(pose: Pose, other: Pose) -> Pose:
    """Return pose^-1 other: the other pose in the frame of the first, heading wrapped."""
    dx, dy = other.x - pose.x, other.y - pose.y
    c, s = math.cos(pose.heading), math.sin(pose.heading)
    return Pose(c * dx + s * dy, c * dy - s * dx, wrap(other.heading - pose.heading))


def twist_between(pose: Pose, other: Pose) -> tuple[float, float, float]:
    """Return Log(pose^-1 other): forward and left path in m and turn in rad; `advance` undoes it.

    The turn is the short way round.
    """
    offset = relative(pose, other)
    a, b = _sinc(offset.heading), _versinc(offset.heading)
    scale = a * a + b * b
    forward = (a * offset.x + b * offset.y) / scale
    left = (a * offset.y - b * offset.x) / scale
    return forward, left, offset.heading


def _sinc(angle: float) -> float:
    return 1.0 - angle * angle / 6.0 if abs(angle) < _SMALL else math.sin(angle) / angle


def _versinc(angle: float) -> float:
    """Return (1 - cos a)/a."""
    if abs(angle) < _SMALL:
        return 0.5 * angle
    half = math.sin(0.5 * angle)
    return 2.0 * half * half / angle


# The same operations over whole motions, compiled: from poses to body twists and back. They loop
# over scalars, so the result does not depend on how a motion is cut into calls.

_sinc_in_loops = kernel(_sinc)
_versinc_in_loops = kernel(_versinc)


@compiled
def body_steps(position: FloatArray, orientation: FloatArray) -> FloatArray:
    """Return Log(pose[k]^-1 pose[k+1]) in the plane of the body, `(n - 1, 3)`.

    The columns are the forward and left path in m and the turn in rad (the short way round). The
    result is exact for motion in a horizontal plane. On a slope the plane is that of the body, so
    path and rotation are those of wheels on that slope. `position` is `(n, 3)` m, world;
    `orientation` are quaternions x y z w `(n, 4)`, body to world.
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
        a, b = _sinc_in_loops(turn), _versinc_in_loops(turn)
        scale = a * a + b * b
        out[k, 0] = (a * dx + b * dy) / scale
        out[k, 1] = (a * dy - b * dx) / scale
        out[k, 2] = turn
    return out


@kernel
def _displacement(heading: float, forward: float, left: float, turn: float) -> tuple[float, float]:
    """Return the displacement of a body step in the world, m."""
    a, b = _sinc_in_loops(turn), _versinc_in_loops(turn)
    dx, dy = a * forward - b * left, b * forward + a * left
    c, s = math.cos(heading), math.sin(heading)
    return c * dx - s * dy, s * dx + c * dy


@compiled
def poses_after(start: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the poses after each step, start Exp(s_0) .. Exp(s_k), `(n, 3)`.

    `start` is x, y in m and heading in rad; headings are not wrapped. The steps have the form that
    `body_steps` returns.
    """
    x, y, heading = start[0], start[1], start[2]
    out = np.empty((len(steps), 3))
    for k in range(len(steps)):
        dx, dy = _displacement(heading, steps[k, 0], steps[k, 1], steps[k, 2])
        x += dx
        y += dy
        heading += steps[k, 2]
        out[k, 0], out[k, 1], out[k, 2] = x, y, heading
    return out


@compiled
def pose_covariances(
    headings: FloatArray, steps: FloatArray, noise: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the covariances of poses after noisy steps, to first order, `(n, 3, 3)`.

    P' = F P F' + G Q G'. F has 1 on the diagonal and (-dy, dx) in the column of the heading, where
    (dx, dy) is the displacement of a step in the world. G is the derivative of the pose with
    respect to the step.

    Headings `(n,)`, rad, are those before each step. `noise` `(n, 3, 3)` is the covariance Q of
    each step, independent of the others, and `start` `(3, 3)` that before the first; x, y, heading
    in the world.
    """
    out = np.empty((len(steps), 3, 3))
    P = start.copy()
    F, G = np.eye(3), np.eye(3)
    product, spread = np.empty((3, 3)), np.empty((3, 3))
    for k in range(len(steps)):
        _write_jacobians(headings[k], steps[k], F, G)
        _transform_covariance(F, P, product, spread)
        for i in range(3):
            for j in range(3):
                out[k, i, j] = spread[i, j]
        _transform_covariance(G, noise[k], product, spread)
        for i in range(3):
            for j in range(3):
                out[k, i, j] += spread[i, j]
                P[i, j] = out[k, i, j]
    return out


@compiled
def sigma_point_squares(
    poses: FloatArray,
    steps: FloatArray,
    changes: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean squares of pose errors over sigma points, and the last poses.

    Each of `p` sigma points is a body whose steps are perturbed.

    Parameters
    ----------
    poses : (n, 3) float
        Unperturbed poses after each step: x, y [m], heading [rad].
    steps : (n, 3) float
        Unperturbed steps, see `body_steps`.
    changes : (n, 3, m) float
        Change of each step by a unit of each of `m` causes.
    points : (p, m) float
        Amount of each cause at each sigma point.
    weights : (p,) float
        Weights of the sigma points, of sum 1.
    start : (p, 3) float
        Poses of the sigma points before the first step.

    Returns
    -------
    squares : (n, 3, 3) float
        Weighted sums of (pose - sigma point) (pose - sigma point)'.
    last : (p, 3) float
        Poses of the sigma points after the last step.
    """
    out = np.zeros((len(steps), 3, 3))
    last, error = start.copy(), np.empty(3)
    for k in range(len(steps)):
        for j in range(len(points)):
            forward, left, turn = steps[k, 0], steps[k, 1], steps[k, 2]
            for i in range(points.shape[1]):
                forward += changes[k, 0, i] * points[j, i]
                left += changes[k, 1, i] * points[j, i]
                turn += changes[k, 2, i] * points[j, i]
            dx, dy = _displacement(last[j, 2], forward, left, turn)
            last[j, 0] += dx
            last[j, 1] += dy
            last[j, 2] += turn
            for i in range(3):
                error[i] = poses[k, i] - last[j, i]
            for i in range(3):
                for h in range(i + 1):
                    out[k, i, h] += weights[j] * (error[i] * error[h])
        out[k, 0, 1], out[k, 0, 2], out[k, 1, 2] = out[k, 1, 0], out[k, 2, 0], out[k, 2, 1]
    return out, last


@compiled
def sum_squared_columns(changes: FloatArray) -> FloatArray:
    """Return the sum of c c' over the columns c of each matrix of changes, `(n, 3, 3)`.

    `changes` is `(n, 3, m)`.
    """
    out = np.zeros((len(changes), 3, 3))
    for k in range(len(changes)):
        for i in range(changes.shape[2]):
            for a in range(3):
                for b in range(a + 1):
                    out[k, a, b] += changes[k, a, i] * changes[k, b, i]
        out[k, 0, 1], out[k, 0, 2], out[k, 1, 2] = out[k, 1, 0], out[k, 2, 0], out[k, 2, 1]
    return out


@kernel
def _write_jacobians(heading: float, step: FloatArray, F: FloatArray, G: FloatArray) -> None:
    """Write F and G, the derivatives of the pose after a step.

    F is with respect to the pose before the step, and G with respect to the step.

    Both arrays must start as identity matrices; only the other elements are written.
    """
    forward, left, turn = step[0], step[1], step[2]
    a, b = _sinc_in_loops(turn), _versinc_in_loops(turn)
    if abs(turn) < _SMALL:
        da, db = -turn / 3.0, 0.5
    else:
        da, db = (math.cos(turn) - a) / turn, (math.sin(turn) - b) / turn
    c, s = math.cos(heading), math.sin(heading)
    dx, dy = a * forward - b * left, b * forward + a * left
    F[0, 2], F[1, 2] = -(s * dx + c * dy), c * dx - s * dy
    G[0, 0], G[0, 1] = c * a - s * b, -c * b - s * a
    G[1, 0], G[1, 1] = s * a + c * b, -s * b + c * a
    ex, ey = da * forward - db * left, db * forward + da * left
    G[0, 2], G[1, 2] = c * ex - s * ey, s * ex + c * ey


@kernel
def _transform_covariance(
    A: FloatArray, P: FloatArray, product: FloatArray, out: FloatArray
) -> None:
    """Write A P A' of 3 x 3 matrices, in a fixed order of summation."""
    for i in range(3):
        for j in range(3):
            product[i, j] = A[i, 0] * P[0, j] + A[i, 1] * P[1, j] + A[i, 2] * P[2, j]
    for i in range(3):
        for j in range(3):
            out[i, j] = product[i, 0] * A[j, 0] + product[i, 1] * A[j, 1] + product[i, 2] * A[j, 2]
