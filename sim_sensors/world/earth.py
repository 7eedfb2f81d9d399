# SPDX-License-Identifier: Apache-2.0
"""Rotation and curvature of the Earth, as an inertial sensor in a local frame feels them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import Trajectory
from .geodesy import WGS84_A, WGS84_E2, LocalFrame

EARTH_RATE = 7.292115e-5
"""rad/s, WGS84 [NIMA2000]: 15.04 degrees an hour."""

LONG_RECORD = 600.0
"""s, in which the Earth turns by 2.5 degrees."""

EARTHS = ('auto', 'flat', 'rotating')
"""Values of a parameter `earth`."""


def turns(earth: str, bias: float, duration: float) -> bool:
    """Return whether the Earth turns, under a value of `EARTHS`.

    `auto`: in records of 10 minutes and more, for gyroscopes of tactical grade and better: those
    whose bias may be up to `bias`, rad/s, by the end, and that is less than `EARTH_RATE`. 0: no
    bias is declared, so the grade is not known.

    Examples
    --------
    >>> tactical, consumer = np.radians([1.0, 100.0]) / 3600.0
    >>> [turns('auto', bias, 3600.0) for bias in (tactical, consumer)]
    [True, False]
    >>> turns('auto', tactical, 60.0)
    False
    """
    if earth == 'auto':
        return duration >= LONG_RECORD and bool(0.0 < bias < EARTH_RATE)
    return earth == 'rotating'


@dataclasses.dataclass(frozen=True, eq=False)
class TurningEarth:
    """What the Earth adds in a frame that is fixed to it, east north up, [Groves2013], chapter 5.

    With W the rate of the Earth, v the velocity, and p the position in the frame::

        rate + R^T W        specific force R^T (a + 2 W x v - g(p))
        g(p) = (0, 0, -g) + (-k_e east, -k_n north, (k_e + k_n + 2 W^2) up)

    k_e = g / (N + h) and k_n = g / (M + h), with N and M the radii of curvature: the plumb line
    turns with the place, to first order. In a frame that stays level along the way the same would
    be called transport rate. g has the centrifugal acceleration in it.

    Attributes
    ----------
    rate : (3,) float
        W, rad/s.
    gradient : (3,) float
        -k_e, -k_n, k_e + k_n + 2 W^2, 1/s^2.
    automatic : bool
        Whether a sensor feels it only as `turns` says of `auto`.

    Examples
    --------
    >>> earth = TurningEarth.of(LocalFrame(45.0, 0.0, 0.0), 9.80665)
    >>> (np.degrees(earth.rate) * 3600.0).round(2)
    array([ 0.  , 10.64, 10.64])
    """

    rate: FloatArray
    gradient: FloatArray
    automatic: bool = False

    @classmethod
    def of(cls, frame: LocalFrame, gravity: float, *, automatic: bool = False) -> TurningEarth:
        """Return it at the origin of a frame with that gravity, m/s^2."""
        latitude = math.radians(frame.latitude_deg)
        bend = 1.0 - WGS84_E2 * math.sin(latitude) ** 2
        east = gravity / (WGS84_A / math.sqrt(bend) + frame.altitude_m)
        north = gravity / (WGS84_A * (1.0 - WGS84_E2) / bend**1.5 + frame.altitude_m)
        rate = EARTH_RATE * np.array([0.0, math.cos(latitude), math.sin(latitude)])
        gradient = np.array([-east, -north, east + north + 2.0 * EARTH_RATE**2])
        return cls(rate, gradient, automatic)

    def sensed(self, motion: Trajectory) -> Trajectory:
        """Return the motion with the rates and accelerations that inertial sensors feel.

        Angular acceleration has the turn of the body against W in it: then the acceleration of a
        lever arm, too, is right.
        """
        turn = np.tile(self.rate, (len(motion.time), 1))
        rate = rotations.rotate_back(motion.orientation, turn)
        return dataclasses.replace(
            motion,
            angular_velocity=motion.angular_velocity + rate,
            angular_acceleration=motion.angular_acceleration
            - rotations.cross(motion.angular_velocity, rate),
            acceleration=motion.acceleration
            + 2.0 * rotations.cross(turn, motion.velocity)
            - self.gradient * motion.position,
        )
