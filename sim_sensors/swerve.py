# SPDX-License-Identifier: Apache-2.0
"""Swerve kinematics both ways: modules that each roll and steer, `m` of them, compiled.

A module at (x, y) of a body that makes the step (forward, left, turn) moves by
(forward - turn y, left + turn x). From what the modules measured, the step follows by least
squares: over the `2 m` components, the three numbers that fit best ([WPILib] does the same).
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray

__all__ = ['derivatives_of_modules', 'steps_of_modules', 'turn_modules', 'weights_of']

# A module that moves by less [m] keeps its angle: there is no direction to be had.
_AT_REST = 1e-9


def weights_of(modules: FloatArray) -> FloatArray:
    """Return the inverse of the normal matrix of the least squares, `(3, 3)`.

    Parameters
    ----------
    modules : (m, 2)
        Places, m; at least two different ones.
    """
    x, y = modules[:, 0], modules[:, 1]
    count = float(len(modules))
    normal = np.array(
        [
            [count, 0.0, -y.sum()],
            [0.0, count, x.sum()],
            [-y.sum(), x.sum(), (x * x + y * y).sum()],
        ]
    )
    inverse: FloatArray = np.linalg.inv(normal)
    return inverse


@compiled
def turn_modules(
    steps: FloatArray, modules: FloatArray, before: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return travels and angles of the modules, `(n, m)` m and rad.

    A module takes the nearer of the two angles that do, and rolls backward where that is the
    opposite one, as swerve drives do; its angle is not wrapped.

    Parameters
    ----------
    steps : (n, 3)
        Forward, left, turn.
    modules : (m, 2)
        Places, m.
    before : (m,)
        Angles before the first step, rad.
    """
    n, m = len(steps), len(modules)
    travels, angles = np.empty((n, m)), np.empty((n, m))
    for i in range(m):
        angle = before[i]
        for k in range(n):
            dx = steps[k, 0] - steps[k, 2] * modules[i, 1]
            dy = steps[k, 1] + steps[k, 2] * modules[i, 0]
            travel = math.sqrt(dx * dx + dy * dy)
            if travel > _AT_REST:
                turn = math.atan2(dy, dx) - angle
                half_turns = round(turn / math.pi)
                angle += turn - half_turns * math.pi
                if half_turns % 2:
                    travel = -travel
            else:
                travel = dx * math.cos(angle) + dy * math.sin(angle)
            travels[k, i], angles[k, i] = travel, angle
    return travels, angles


@compiled
def steps_of_modules(
    travels: FloatArray, angles: FloatArray, modules: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the steps `(n, 3)` that fit best what the modules measured.

    Parameters
    ----------
    travels, angles : (n, m)
        m and rad.
    modules : (m, 2)
        Places, m.
    weights : (3, 3)
        Of `weights_of`.
    """
    out = np.empty((len(travels), 3))
    for k in range(len(travels)):
        forward = left = turn = 0.0
        for i in range(len(modules)):
            dx = travels[k, i] * math.cos(angles[k, i])
            dy = travels[k, i] * math.sin(angles[k, i])
            forward += dx
            left += dy
            turn += modules[i, 0] * dy - modules[i, 1] * dx
        for j in range(3):
            out[k, j] = weights[j, 0] * forward + weights[j, 1] * left + weights[j, 2] * turn
    return out


@compiled
def derivatives_of_modules(
    travels: FloatArray, angles: FloatArray, modules: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the derivatives of the best-fitting steps by travels, then angles, `(n, 3, 2 m)`.

    Parameters
    ----------
    travels, angles : (n, m)
        m and rad.
    modules : (m, 2)
        Places, m.
    weights : (3, 3)
        Of `weights_of`.
    """
    m = len(modules)
    out = np.empty((len(travels), 3, 2 * m))
    for k in range(len(travels)):
        for i in range(m):
            c, s = math.cos(angles[k, i]), math.sin(angles[k, i])
            x, y = modules[i, 0], modules[i, 1]
            for j in range(3):
                along = weights[j, 0] * c + weights[j, 1] * s + weights[j, 2] * (x * s - y * c)
                across = weights[j, 1] * c - weights[j, 0] * s + weights[j, 2] * (x * c + y * s)
                out[k, j, i], out[k, j, m + i] = along, travels[k, i] * across
    return out
