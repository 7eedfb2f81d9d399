# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motions of a car, a truck, a drone and a boat, twice differentiable by construction.

World axes are east, north, up; body axes forward, left, up. Units are m, s and rad.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, PchipInterpolator, make_interp_spline
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

Array = NDArray[Any]
STEP_S = 0.02
"""Distance of the knots of all splines."""


@dataclasses.dataclass(frozen=True)
class State:
    """Motion at given times.

    Attributes
    ----------
    position, velocity, acceleration : (n, 3) float
        In world axes.
    attitude : Rotation
        From body to world axes, n of them.
    rate, rate_change : (n, 3) float
        Angular velocity in rad/s and its derivative, in body axes.
    """

    position: Array
    velocity: Array
    acceleration: Array
    attitude: Rotation
    rate: Array
    rate_change: Array

    def point(self, lever_arm: Array) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration of a point fixed to the body."""
        arm = np.tile(lever_arm, (len(self.rate), 1))
        turning = np.cross(self.rate, arm)
        bending = np.cross(self.rate_change, arm) + np.cross(self.rate, turning)
        return (
            self.position + self.attitude.apply(arm),
            self.velocity + self.attitude.apply(turning),
            self.acceleration + self.attitude.apply(bending),
        )


@dataclasses.dataclass(frozen=True)
class Motion:
    """Splines of position and of roll, pitch and yaw over time.

    Attributes
    ----------
    vehicle : str
    duration : float
        Seconds; the motion is defined from 0 to here.
    path, angles : BSpline
        Quintic, so that accelerations and their derivatives are continuous.
    """

    vehicle: str
    duration: float
    path: BSpline
    angles: BSpline

    def at(self, time: Array) -> State:
        """Return the motion at given times; before and after, it is continued at rest."""
        time = np.clip(np.asarray(time, dtype=float), 0.0, self.duration)
        half = 1e-3
        later, earlier = (np.clip(time + sign * half, 0.0, self.duration) for sign in (1, -1))
        change = (self._rate(later) - self._rate(earlier)) / (later - earlier)[:, None]
        roll, pitch, yaw = self.angles(time).T
        return State(
            self.path(time),
            self.path.derivative(1)(time),
            self.path.derivative(2)(time),
            Rotation.from_euler('ZYX', np.stack([yaw, pitch, roll], axis=1)),
            self._rate(time),
            change,
        )

    def _rate(self, time: Array) -> Array:
        roll, pitch, _ = self.angles(time).T
        droll, dpitch, dyaw = self.angles.derivative(1)(time).T
        return np.stack(
            [
                droll - dyaw * np.sin(pitch),
                dpitch * np.cos(roll) + dyaw * np.sin(roll) * np.cos(pitch),
                -dpitch * np.sin(roll) + dyaw * np.cos(roll) * np.cos(pitch),
            ],
            axis=1,
        )


@dataclasses.dataclass(frozen=True)
class Wheeled:
    """Dimensions and manners of a wheeled vehicle.

    Attributes
    ----------
    speeds : tuple of 2 float
        Slowest and fastest cruise, m/s.
    push : tuple of 2 float
        Gentlest and hardest acceleration, m/s^2.
    sideways : float
        Greatest lateral acceleration, m/s^2.
    curvature : float
        Of the tightest turn, 1/m.
    lean, dive : float
        Roll and pitch of the springs, rad per m/s^2.
    """

    speeds: tuple[float, float]
    push: tuple[float, float]
    sideways: float
    curvature: float
    lean: float
    dive: float


CAR = Wheeled((3.0, 14.0), (0.8, 2.6), 3.0, 0.16, 0.007, 0.005)
TRUCK = Wheeled((3.0, 19.0), (0.4, 0.9), 1.6, 0.07, 0.018, 0.006)


def make_motion(
    vehicle: str, rng: np.random.Generator, duration: float, *, hills: float, rest: float,
    small: bool = False,
) -> Motion:  # fmt: skip
    """Return a motion of a vehicle.

    Parameters
    ----------
    vehicle : str
        A key of `VEHICLES`.
    rng : Generator
    duration : float
        Seconds.
    hills : float
        Steepest slope of the ground, as a ratio; the height of waves of a boat, in m.
    rest : float
        Seconds of standstill at the start; below 0 the vehicle is moving already.
    small : bool
        Whether a drone stays within a hall of 8 m.
    """
    time = np.arange(0.0, duration + STEP_S / 2.0, STEP_S)
    if vehicle == 'drone':
        path, angles = _fly(rng, time, rest, small)
    elif vehicle == 'boat':
        path, angles = _sail(rng, time, rest, hills)
    else:
        path, angles = _roll(rng, time, rest, hills, CAR if vehicle == 'car' else TRUCK)
    path = path - path[0]
    return Motion(
        vehicle,
        float(time[-1]),
        make_interp_spline(time, path, k=5),
        make_interp_spline(time, angles, k=5),
    )


def _integral(values: Array) -> Array:
    """Return the integral over time by the trapezoidal rule, from 0."""
    steps = 0.5 * STEP_S * (values[1:] + values[:-1])
    return np.concatenate([np.zeros_like(values[:1]), np.cumsum(steps, axis=0)])


def _smooth(values: Array, seconds: float) -> Array:
    return gaussian_filter1d(values, seconds / STEP_S, axis=0, mode='nearest')


def _cruise(
    rng: np.random.Generator, end: float, rest: float, speeds: tuple[float, float],
    push: tuple[float, float], reverse: float,
) -> Callable[[Array], Array]:  # fmt: skip
    """Return a speed over time: cruises, stops and one stretch of reverse."""
    at, speed = (max(rest, 0.0), 0.0) if rest > 0.0 else (0.0, float(rng.uniform(*speeds)))
    points = [(-1.0, speed), (at, speed)]
    stretch, reversing = 0, 2 + int(rng.integers(2))
    while at < end:
        if stretch == reversing and reverse > 0.0:
            plan = [(0.0, 2.0), (-reverse, 7.0), (0.0, 2.5)]
        elif stretch % 3 == 2:
            plan = [(0.0, float(rng.uniform(2.5, 5.0)))]
        else:
            plan = [(float(rng.uniform(*speeds)), float(rng.uniform(7.0, 16.0)))]
        for target, hold in plan:
            at += abs(target - speed) / float(rng.uniform(*push)) + 0.3
            points += [(at, target), (at + hold, target)]
            at, speed = at + hold, target
        stretch += 1
    times, values = np.array(points).T
    curve = PchipInterpolator(times, values)
    return lambda time: curve(time)


def _steering(rng: np.random.Generator, time: Array) -> Array:
    """Return a steering between -1 and 1: straights, bends and sharp turns."""
    points, at, side = [(-1.0, 0.0)], 0.0, 1.0
    while at < time[-1] + 5.0:
        at += float(rng.uniform(3.0, 7.0))
        side = -side if rng.random() < 0.6 else side
        points.append((at, side * float(rng.choice([0.0, 0.35, 0.7, 1.0]))))
        at += float(rng.uniform(1.0, 4.0))
        points.append((at, points[-1][1]))
    times, values = np.array(points).T
    return np.asarray(PchipInterpolator(times, values)(time))


def _ground(rng: np.random.Generator, slope: float) -> Callable[[Array, Array], Array]:
    """Return slopes of a hilly ground to the east and north, and its height, by place."""
    count = 5
    lengths, courses = rng.uniform(70.0, 400.0, count), rng.uniform(0.0, 2.0 * np.pi, count)
    waves = 2.0 * np.pi / lengths * np.stack([np.cos(courses), np.sin(courses)])
    heights = slope / np.sqrt(count) * lengths / (2.0 * np.pi) * rng.uniform(0.6, 1.4, count)
    phases = rng.uniform(0.0, 2.0 * np.pi, count)

    def ground(east: Array, north: Array) -> Array:
        angle = np.stack([east, north], axis=1) @ waves + phases
        slopes = (heights * np.cos(angle)) @ waves.T
        return np.column_stack([slopes, np.sin(angle) @ heights])

    return ground


def _roll(
    rng: np.random.Generator, time: Array, rest: float, hills: float, manners: Wheeled
) -> tuple[Array, Array]:
    """Return path and angles of a car or truck; base_link is below the rear axle."""
    speed = _smooth(_cruise(rng, time[-1], rest, manners.speeds, manners.push, 2.2)(time), 0.15)
    tightest = np.minimum(manners.curvature, manners.sideways / np.maximum(speed**2, 1.0))
    turning = _smooth(_steering(rng, time) * tightest, 0.2) * speed
    yaw = rng.uniform(-np.pi, np.pi) + _integral(turning)
    ground = _ground(rng, hills)
    path = _integral(speed[:, None] * np.stack([np.cos(yaw), np.sin(yaw)], axis=1))
    for _ in range(3):
        slopes = ground(*path.T)[:, :2]
        along = slopes[:, 0] * np.cos(yaw) + slopes[:, 1] * np.sin(yaw)
        level = speed * np.cos(np.arctan(along))
        path = _integral(level[:, None] * np.stack([np.cos(yaw), np.sin(yaw)], axis=1))
    across = slopes[:, 1] * np.cos(yaw) - slopes[:, 0] * np.sin(yaw)
    height = ground(*path.T)[:, 2]
    roll = np.arctan(across) + manners.lean * speed * turning
    pitch = -np.arctan(along) - manners.dive * np.gradient(speed, STEP_S)
    angles = np.stack([_smooth(roll, 0.2), _smooth(pitch, 0.2), yaw], axis=1)
    return np.column_stack([path, height]), angles


def _moves(time: Array, starts: Array, lasts: Array, steps: Array) -> Array:
    """Return the sum of displacements, each along the polynomial of least jerk."""
    share = np.clip((time[:, None] - starts) / lasts, 0.0, 1.0)
    return (share**3 * (10.0 - 15.0 * share + 6.0 * share**2)) @ steps


def _fly(rng: np.random.Generator, time: Array, rest: float, small: bool) -> tuple[Array, Array]:
    """Return path and angles of a multicopter, which leans into its thrust."""
    reach = np.array([3.0, 3.0, 0.8]) if small else np.array([40.0, 40.0, 6.0])
    centre = np.array([0.0, 0.0, 1.5 if small else 18.0])
    rise = 3.0 if small else 7.0
    starts, lasts, steps = [max(rest, 0.5)], [rise], [centre]
    place, at = centre, max(rest, 0.5) + 0.8 * rise
    while at < time[-1] - 4.0:
        target = centre + reach * rng.uniform(-1.0, 1.0, 3)
        pace = float(rng.uniform(0.8, 1.6) if small else rng.uniform(3.0, 9.0))
        distance = float(np.linalg.norm(target - place))
        last = max(2.0, 1.875 * distance / pace, np.sqrt(5.77 * distance / 5.0))
        starts.append(at)
        lasts.append(last)
        steps.append(target - place)
        place = target
        at += last * float(rng.uniform(0.55, 1.0)) + float(rng.choice([0.0, 0.0, 2.5]))
    path = _smooth(_moves(time, np.array(starts), np.array(lasts), np.array(steps)), 0.15)
    turns = np.arange(rest + 4.0, time[-1], 5.0)
    yaws = rng.choice([-1.0, 1.0], len(turns)) * rng.uniform(0.4, 2.2, len(turns))
    yaw = rng.uniform(-np.pi, np.pi) + _moves(time, turns, np.full(len(turns), 3.5), yaws)
    velocity = np.gradient(path, STEP_S, axis=0)
    airborne = np.clip((time - max(rest, 0.5) - 1.0) / 2.0, 0.0, 1.0)
    wind = rng.normal(0.0, 0.3, 3) * [1.0, 1.0, 0.0]
    thrust = np.gradient(velocity, STEP_S, axis=0) + np.array([0.0, 0.0, 9.81])
    thrust += 0.15 * (velocity - wind) * airborne[:, None]
    heading = Rotation.from_euler('z', yaw[:, None])
    ahead = heading.inv().apply(thrust / np.linalg.norm(thrust, axis=1)[:, None])
    gusts = _smooth(rng.normal(0.0, 1.0, (len(time), 2)), 0.35)
    gusts *= np.radians(1.0) / gusts.std(axis=0) * airborne[:, None]
    roll = -np.arcsin(ahead[:, 1]) + gusts[:, 0]
    pitch = np.arctan2(ahead[:, 0], ahead[:, 2]) + gusts[:, 1]
    return path, np.stack([_smooth(roll, 0.1), _smooth(pitch, 0.1), yaw], axis=1)


def _sail(rng: np.random.Generator, time: Array, rest: float, waves: float) -> tuple[Array, Array]:
    """Return path and angles of a boat with waves, a slip in turns and a weak current."""
    speed = _smooth(_cruise(rng, time[-1], rest, (2.0, 7.0), (0.25, 0.7), 0.0)(time), 0.3)
    turning = _smooth(_steering(rng, time), 0.5) * 0.05 * np.minimum(speed, 5.0)
    yaw = rng.uniform(-np.pi, np.pi) + _integral(turning)
    course = yaw - 0.35 * turning
    current = rng.uniform(0.02, 0.1) * np.array([np.cos(rng.uniform(0, 6.3)), 0.6])
    path = _integral(speed[:, None] * np.stack([np.cos(course), np.sin(course)], axis=1))
    path += time[:, None] * current

    def swell(size: float) -> Array:
        periods, phases = rng.uniform(2.2, 6.5, 3), rng.uniform(0.0, 2.0 * np.pi, 3)
        return np.asarray(
            size / 1.5 * np.sin(2.0 * np.pi * time[:, None] / periods + phases).sum(axis=1)
        )

    roll = swell(0.25 * waves) + 0.05 * speed * turning
    pitch = swell(0.12 * waves) - np.radians(0.4) * speed
    heave = swell(waves)
    yaw = yaw + swell(0.03 * waves)
    return np.column_stack([path, heave]), np.stack([roll, _smooth(pitch, 0.3), yaw], axis=1)


VEHICLES = ('car', 'truck', 'drone', 'boat')
"""Vehicles of which there are motions."""
