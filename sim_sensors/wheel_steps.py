# SPDX-License-Identifier: Apache-2.0
"""Kinematics of a pair of wheels, with and without front steering, over steps, compiled.

Steps are forward and left path in m and turn in rad of the middle between the two wheels. Source
of the differential drive: [Cesenek2019]; of the steered one: the kinematic bicycle.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray

__all__ = [
    'derivatives_of_pair',
    'derivatives_of_steered',
    'steer',
    'steps_of_pair',
    'steps_of_steered',
    'turn_pair',
]

# No vehicle steers further [rad]; nearer to a right angle the turn would be all rounding.
_STEEPEST = 1.4
# A vehicle that moves by less [m] keeps its steering: there is no direction to be had.
_AT_REST = 1e-9


@compiled
def turn_pair(steps: FloatArray, half_track: float) -> FloatArray:
    """Return travels of the left and right wheel, `(n, 2)` m."""
    out = np.empty((len(steps), 2))
    for k in range(len(steps)):
        swing = half_track * steps[k, 2]
        out[k, 0], out[k, 1] = steps[k, 0] - swing, steps[k, 0] + swing
    return out


@compiled
def steps_of_pair(travels: FloatArray, half_track: float) -> FloatArray:
    """Return the steps `(n, 3)` of travels `(n, 2)` m."""
    out = np.zeros((len(travels), 3))
    for k in range(len(travels)):
        out[k, 0] = 0.5 * (travels[k, 0] + travels[k, 1])
        out[k, 2] = 0.5 * (travels[k, 1] - travels[k, 0]) / half_track
    return out


@compiled
def derivatives_of_pair(count: int, half_track: float) -> FloatArray:
    """Return the derivatives of `count` steps by the two travels, `(n, 3, 2)`."""
    out = np.zeros((count, 3, 2))
    for k in range(count):
        out[k, 0, 0] = out[k, 0, 1] = 0.5
        out[k, 2, 0], out[k, 2, 1] = -0.5 / half_track, 0.5 / half_track
    return out


@compiled
def steer(steps: FloatArray, wheelbase: float, before: FloatArray) -> FloatArray:
    """Return the steering angle of the bicycle, `(n, 1)` rad, atan(L turn / forward).

    Parameters
    ----------
    steps : (n, 3)
    wheelbase : float
        L, m.
    before : (1,)
        Angle before the first step, rad.
    """
    out = np.empty((len(steps), 1))
    angle = before[0]
    for k in range(len(steps)):
        if abs(steps[k, 0]) > _AT_REST:
            angle = math.atan(wheelbase * steps[k, 2] / steps[k, 0])
            angle = min(max(angle, -_STEEPEST), _STEEPEST)
        out[k, 0] = angle
    return out


@compiled
def steps_of_steered(travels: FloatArray, angles: FloatArray, wheelbase: float) -> FloatArray:
    """Return the steps `(n, 3)` of travels `(n, 2)` m and steering `(n, 1)` rad."""
    out = np.zeros((len(travels), 3))
    for k in range(len(travels)):
        out[k, 0] = 0.5 * (travels[k, 0] + travels[k, 1])
        out[k, 2] = out[k, 0] * math.tan(angles[k, 0]) / wheelbase
    return out


@compiled
def derivatives_of_steered(
    travels: FloatArray, angles: FloatArray, wheelbase: float
) -> FloatArray:
    """Return the derivatives of the steps by both travels and the angle, `(n, 3, 3)`."""
    out = np.zeros((len(travels), 3, 3))
    for k in range(len(travels)):
        path = 0.5 * (travels[k, 0] + travels[k, 1])
        tangent = math.tan(angles[k, 0])
        out[k, 0, 0] = out[k, 0, 1] = 0.5
        out[k, 2, 0] = out[k, 2, 1] = 0.5 * tangent / wheelbase
        out[k, 2, 2] = path * (1.0 + tangent * tangent) / wheelbase
    return out
