# SPDX-License-Identifier: Apache-2.0
"""Poses in the plane: the group SE(2), its exponential and its logarithm, one pose at a time.

Scalars throughout: a controller steps one pose after the other, live and in batch alike, and both
must give the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ['Pose', 'advance', 'relative', 'twist_between', 'wrap']

# Below this angle [rad] sin(a)/a and its kin are taken from their series; its error is a^4/120.
_SMALL = 1e-4


class Pose(NamedTuple):
    """A pose in the plane.

    Attributes
    ----------
    x, y : float
        m, world.
    heading : float
        rad, from x to the left; not wrapped.
    """

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


def advance(pose: Pose, forward: float, left: float, turn: float) -> Pose:
    """Return pose Exp(xi): where a constant body twist leads, without integration error.

    Parameters
    ----------
    pose : Pose
    forward, left : float
        Path along the body's axes, m: speed times time.
    turn : float
        rad: yaw rate times time.
    """
    a, b = _sinc(turn), _versinc(turn)
    dx, dy = a * forward - b * left, b * forward + a * left
    c, s = math.cos(pose.heading), math.sin(pose.heading)
    return Pose(pose.x + c * dx - s * dy, pose.y + s * dx + c * dy, pose.heading + turn)


def relative(pose: Pose, other: Pose) -> Pose:
    """Return pose^-1 other: the other pose as seen from the first, heading wrapped."""
    dx, dy = other.x - pose.x, other.y - pose.y
    c, s = math.cos(pose.heading), math.sin(pose.heading)
    return Pose(c * dx + s * dy, c * dy - s * dx, wrap(other.heading - pose.heading))


def twist_between(pose: Pose, other: Pose) -> tuple[float, float, float]:
    """Return Log(pose^-1 other): forward and left path in m and turn in rad; `advance` undoes it.

    The turn is the short way round.
    """
    seen = relative(pose, other)
    a, b = _sinc(seen.heading), _versinc(seen.heading)
    scale = a * a + b * b
    forward = (a * seen.x + b * seen.y) / scale
    left = (a * seen.y - b * seen.x) / scale
    return forward, left, seen.heading


def _sinc(angle: float) -> float:
    return 1.0 - angle * angle / 6.0 if abs(angle) < _SMALL else math.sin(angle) / angle


def _versinc(angle: float) -> float:
    """(1 - cos a)/a."""
    if abs(angle) < _SMALL:
        return 0.5 * angle
    half = math.sin(0.5 * angle)
    return 2.0 * half * half / angle
