# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Analytic motions on level ground, and the base class of motions with parameters."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from . import paths
from .trajectory import LONGEST, Trajectory, times_within

Progress = tuple[FloatArray, FloatArray, FloatArray]
"""Distance, speed and acceleration along a path, `(n,)` each."""


@dataclasses.dataclass(frozen=True)
class TimedMotion(Parameters):
    """Base of motions that are parameter sets."""

    duration: float = positive(20.0, 's', 'Duration of the motion.', maximum=LONGEST)

    @property
    def start(self) -> float:
        """First time, 0 s."""
        return 0.0

    @property
    def end(self) -> float:
        """Last time, s."""
        return self.duration

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside 0 .. `duration`.
        """
        raise NotImplementedError


# Analytic motions on level ground: standstill, line, circle, half-sine, figure-eight.
#
# Each is a parameter set and a `Motion` that is exact at any time. The body follows a path of arc
# length s(t) with its x axis along the tangent T, normal N to the left, curvature k and speed v =
# s':
#
#     velocity = v T            acceleration = v' T + v^2 k N
#     yaw rate = v k            yaw acceleration = v' k + v^2 dk/ds


@dataclasses.dataclass(frozen=True)
class Scenario(TimedMotion):
    """Base of the scenarios: level motion along a path that starts in the origin."""

    heading: float = parameter(
        0.0, 'rad', 'Rotation of the whole path, counter-clockwise from east.'
    )

    def progress(self, times: FloatArray) -> Progress:
        """Return distance (m), speed (m/s) and acceleration (m/s^2) at `times` `(n,)` s."""
        return np.zeros_like(times), np.zeros_like(times), np.zeros_like(times)

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Path before the rotation by `heading`."""
        return paths.LinePath()

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s; see `TimedMotion.at`."""
        t = times_within(times, self.start, self.end)
        distance, speed, acceleration = self.progress(t)
        points = self.path.at(distance)
        cosine, sine = float(np.cos(self.heading)), float(np.sin(self.heading))
        x, y = cosine * points.x - sine * points.y, sine * points.x + cosine * points.y
        bend = speed * speed * points.curvature
        turning = acceleration * points.curvature + speed * speed * points.curvature_slope
        return Trajectory.level(
            t,
            (x, y),
            points.heading + self.heading,
            speed,
            (acceleration, bend),
            (speed * points.curvature, turning),
        )


@dataclasses.dataclass(frozen=True)
class Standstill(Scenario):
    """Standstill."""

    kind = 'standstill'


@dataclasses.dataclass(frozen=True)
class RampedDrive(Scenario):
    """Scenario with a speed profile."""

    speed: float = positive(1.0, 'm/s', 'Speed after the ramp.')
    ramp_time: float = non_negative(
        2.0, 's', 'Time from rest to full speed; 0 starts at full speed.'
    )
    rest_time: float = non_negative(0.0, 's', 'Time at rest before the ramp.')
    stop: bool = parameter(False, '', 'Ramp down to rest at the end.')

    def progress(self, times: FloatArray) -> Progress:
        """Return distance (m), speed (m/s) and acceleration (m/s^2) at `times` `(n,)` s.

        The profile is rest, smooth ramp, constant speed, and a smooth stop if `stop` is set. The
        ramp is v(t) = V (6 x^5 - 15 x^4 + 10 x^3), x = t / ramp_time: speed, acceleration and jerk
        are continuous; the acceleration peaks at 1.875 V / ramp_time and the jerk at 5.774 V /
        ramp_time^2.
        """
        distance, speed, acceleration = self._ramp(times - self.rest_time)
        if self.stop:
            down = self._ramp(times - (self.duration - self.ramp_time))
            return distance - down[0], speed - down[1], acceleration - down[2]
        return distance, speed, acceleration

    def _ramp(self, since: FloatArray) -> Progress:
        """Return distance, speed and acceleration of a ramp from 0 to V that begins at time 0."""
        v, ramp = self.speed, self.ramp_time
        if ramp == 0.0:
            return v * np.maximum(since, 0.0), np.where(since < 0.0, 0.0, v), np.zeros_like(since)
        x = np.clip(since / ramp, 0.0, 1.0)
        beyond = np.maximum(since - ramp, 0.0)
        cube = x * x * x
        distance = v * ramp * cube * x * (2.5 + x * (x - 3.0)) + v * beyond
        speed = v * cube * (10.0 + x * (6.0 * x - 15.0))
        acceleration = 30.0 * v / ramp * (x * (1.0 - x)) ** 2
        return distance, speed, acceleration

    def _check(self) -> None:
        ramps = self.ramp_time * (2 if self.stop else 1)
        if self.rest_time + ramps > self.duration:
            raise ParameterError(
                type(self).__name__,
                'duration',
                f'{self.duration:g} is not allowed; must be >= {self.rest_time + ramps:g} [s], '
                'the time of rest and ramps together',
            )


@dataclasses.dataclass(frozen=True)
class Line(RampedDrive):
    """Straight line."""

    kind = 'line'


@dataclasses.dataclass(frozen=True)
class Circle(RampedDrive):
    """Circle.

    At full speed v: yaw rate v / radius and specific force v^2 / radius to the left.
    """

    kind = 'circle'
    radius: float = positive(3.0, 'm', 'Radius of the circle, which turns left.')
    clockwise: bool = parameter(False, '', 'Turn right instead of left.')

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Circular path."""
        return paths.CirclePath(-self.radius if self.clockwise else self.radius)


@dataclasses.dataclass(frozen=True)
class HalfSine(RampedDrive):
    """Half a sine wave, then a straight line.

    y = amplitude sin(pi x / length) for 0 <= x <= length, with the x axis at `heading`. The body
    begins along the tangent. The yaw acceleration jumps at the beginning of the straight line;
    everything else is continuous.
    """

    kind = 'half_sine'
    length: float = positive(15.0, 'm', 'Distance between the zeros of the half-sine.')
    amplitude: float = parameter(2.0, 'm', 'Amplitude of the half-sine; negative: to the right.')

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Half a sine wave and its continuation."""
        return paths.half_sine_path(self.length, self.amplitude)


@dataclasses.dataclass(frozen=True)
class FigureEight(RampedDrive):
    """Repeated figure-eight.

    x = (length/2) sin u, y = (width/2) sin 2u, with the x axis at `heading`; it begins at the
    crossing.
    """

    kind = 'figure_eight'
    length: float = positive(8.0, 'm', 'Extent along x.')
    width: float = positive(4.0, 'm', 'Extent along y.')

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Figure-eight path."""
        return paths.figure_eight_path(self.length, self.width)
