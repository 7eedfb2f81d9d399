# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sampled motion of a rigid body, and the interface of everything that moves.

Frames: world ENU (x east, y north, z up), body FLU (x forward, y left, z up). Quaternions x y z w
take body vectors to the world. See docs/explanation/motion.md.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray

_TOLERANCE_S = 1e-9
_ROUNDING = 2e-15  # of the norm of a normalised quaternion


class Motion(Protocol):
    """True motion that can be sampled from `start` to `end`."""

    @property
    def start(self) -> float:
        """First time, s."""
        ...

    @property
    def end(self) -> float:
        """Last time, s."""
        ...

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order.

        Each row depends only on its own time.

        Raises
        ------
        MotionError
            When a time is not finite or lies outside `start` .. `end`.
        """
        ...


LONGEST = 1e6
"""Longest duration of a simulated motion, s: eleven days."""


def times_within(times: ArrayLike, start: float, end: float) -> FloatArray:
    """Return `times` as an array `(n,)` if all lie within `start` .. `end`.

    A nanosecond of tolerance at both ends, which is clipped, covers the rounding of stamps to
    seconds.

    Raises
    ------
    MotionError
        Naming the time and the span.

    Examples
    --------
    >>> times_within([0.0, 20.0 + 1e-10], 0.0, 20.0)
    array([ 0., 20.])
    """
    array = np.ascontiguousarray(np.atleast_1d(np.asarray(times, dtype=np.float64)))
    if array.ndim != 1:
        raise MotionError(f'times have shape {array.shape}; must be one-dimensional')
    outside = ~((array >= start - _TOLERANCE_S) & (array <= end + _TOLERANCE_S))
    if outside.any():
        value = array[np.flatnonzero(outside)[0]]
        raise MotionError(f'time {value:.9g} s is outside the motion, {start:.9g} .. {end:.9g} s')
    return np.clip(array, start, end)


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """Motion of one point of a rigid body at sample times.

    The fields must be consistent: velocity is the derivative of position, and so on. Use
    `OdometryMotion` for recorded odometry, whose fields disagree by their noise.

    Attributes
    ----------
    time : (n,) float
        Seconds, strictly increasing unless made by `at`.
    position : (n, 3) float
        m, world.
    orientation : (n, 4) float
        Unit quaternion x y z w, body to world.
    velocity : (n, 3) float
        m/s, world.
    angular_velocity : (n, 3) float
        rad/s, body.
    acceleration : (n, 3) float
        m/s^2, world, kinematic: without gravity.
    angular_acceleration : (n, 3) float
        rad/s^2, body.

    Raises
    ------
    MotionError
        For wrong shapes, values that are not finite, or quaternions whose norm differs from 1 by
        more than 1e-6 (smaller differences are normalised). An empty trajectory is allowed.

    Examples
    --------
    >>> from sim_sensors import motion_of
    >>> sampled = motion_of('line', duration=2.0).at(np.array([0.0, 1.0]))
    >>> len(sampled), sampled.velocity.shape
    (2, (2, 3))
    """

    time: FloatArray
    position: FloatArray
    orientation: FloatArray
    velocity: FloatArray
    angular_velocity: FloatArray
    acceleration: FloatArray
    angular_acceleration: FloatArray

    def __post_init__(self) -> None:
        n = np.atleast_1d(self.time).shape[0]
        for field in dataclasses.fields(self):
            array = np.ascontiguousarray(getattr(self, field.name), dtype=np.float64)
            shape = {'time': (n,), 'orientation': (n, 4)}.get(field.name, (n, 3))
            if array.shape != shape:
                raise MotionError(
                    f'trajectory: {field.name} has shape {array.shape}, must be {shape}'
                )
            if not np.isfinite(array).all():
                raise MotionError(f'trajectory: {field.name} has values that are not finite')
            object.__setattr__(self, field.name, array)
        q = self.orientation
        norm = np.sqrt(q[:, 0] ** 2 + q[:, 1] ** 2 + q[:, 2] ** 2 + q[:, 3] ** 2)
        if (np.abs(norm - 1.0) > 1e-6).any():
            worst = norm[np.argmax(np.abs(norm - 1.0))]
            raise MotionError(f'trajectory: orientation has norm {worst:.9g}, must be 1')
        # Normalising twice may change the last bit, so unit quaternions are not touched.
        off = np.abs(norm - 1.0) > _ROUNDING
        object.__setattr__(self, 'orientation', q / np.where(off, norm, 1.0)[:, None])

    @classmethod
    def along(
        cls, time: FloatArray, path: rotations.Curve, first: FloatArray, swing: rotations.Curve
    ) -> Trajectory:
        """Return the motion with the positions `path` and the orientations first Exp(swing)."""
        rate, rate_change = rotations.body_rates(swing)
        orientation = rotations.multiply(first, rotations.exp(swing[0]))
        return cls(time, path[0], orientation, path[1], rate, path[2], rate_change)

    @classmethod
    def level(
        cls,
        time: FloatArray,
        place: tuple[FloatArray, FloatArray],
        heading: FloatArray,
        speed: FloatArray,
        push: tuple[FloatArray, FloatArray],
        yaw: tuple[FloatArray, FloatArray],
    ) -> Trajectory:
        """Return the motion of a body that moves along its x axis on level ground.

        `place` is x and y [m], `push` the acceleration along and across the motion [m/s^2], and
        `yaw` the yaw rate and its derivative [rad/s, rad/s^2]; all have shape `(n,)`.
        """
        zero = np.zeros_like(time)
        tangent = np.column_stack([np.cos(heading), np.sin(heading), zero])
        normal = np.column_stack([-tangent[:, 1], tangent[:, 0], zero])
        return cls(
            time,
            np.column_stack([*place, zero]),
            rotations.from_heading(heading),
            speed[:, None] * tangent,
            np.column_stack([zero, zero, yaw[0]]),
            push[0][:, None] * tangent + push[1][:, None] * normal,
            np.column_stack([zero, zero, yaw[1]]),
        )

    def __len__(self) -> int:
        return len(self.time)

    @property
    def start(self) -> float:
        """First time, s."""
        return float(self.time[0])

    @property
    def end(self) -> float:
        """Last time, s."""
        return float(self.time[-1])

    def at(self, times: ArrayLike) -> Trajectory:
        """Interpolate between the two samples around each of `times` `(n,)` s, in any order.

        Position is the quintic with the position, velocity and acceleration of both samples.
        Orientation is R_k Exp(phi(t)), where the quintic phi has the recorded body rates and
        angular accelerations at both ends. The samples themselves are returned unchanged, and
        every derivative is exact. For samples of a smooth motion h apart, the error is O(h^6) in
        position and O(h^4) in acceleration.

        Raises
        ------
        MotionError
            When a time is outside `start` .. `end`, or the samples do not increase in time.
        """
        if len(self) == 0:
            raise MotionError('trajectory: has no samples; at least 1 is needed to interpolate')
        t = times_within(times, self.start, self.end)
        if len(self) == 1:
            return self._take(np.zeros(len(t), dtype=np.intp))
        if (np.diff(self.time) <= 0.0).any():
            raise MotionError('trajectory: time must increase strictly to interpolate')
        k = np.clip(np.searchsorted(self.time, t, side='right') - 1, 0, len(self) - 2)
        first, last = self._take(k), self._take(k + 1)
        h = (last.time - first.time)[:, None]
        s = (t - first.time)[:, None] / h
        path = quintic(
            s,
            h,
            (first.position, first.velocity, first.acceleration),
            (last.position, last.velocity, last.acceleration),
        )
        turn = rotations.rotation_between(first.orientation, last.orientation)
        swing = quintic(
            s,
            h,
            (np.zeros_like(turn), first.angular_velocity, first.angular_acceleration),
            (turn, *rotations.end_derivatives(
                turn, last.angular_velocity, last.angular_acceleration
            )),
        )  # fmt: skip
        return Trajectory.along(t, path, first.orientation, swing)

    def at_lever_arm(self, offset_xyz: ArrayLike) -> Trajectory:
        """Return the motion of the point of the same body at l = `offset_xyz`, m.

        Attitude and rates stay. Position, velocity and acceleration follow from the kinematics of
        a rigid body: p + R l, v + R (w x l), a + R (wd x l + w x (w x l)).
        """
        arm = np.asarray(offset_xyz, dtype=np.float64)
        if arm.shape != (3,) or not np.isfinite(arm).all():
            raise MotionError(f'lever arm {offset_xyz!r} is not allowed; must be 3 finite metres')
        if not arm.any():
            return self
        arm = np.broadcast_to(arm, self.position.shape)
        q, rate = self.orientation, self.angular_velocity
        velocity = rotations.cross(rate, arm)
        acceleration = rotations.cross(self.angular_acceleration, arm)
        acceleration = acceleration + rotations.cross(rate, velocity)
        return dataclasses.replace(
            self,
            position=self.position + rotations.rotate(q, arm),
            velocity=self.velocity + rotations.rotate(q, velocity),
            acceleration=self.acceleration + rotations.rotate(q, acceleration),
        )

    def turned(self, rotation: FloatArray) -> Trajectory:
        """Return the motion turned about the origin of the world.

        `rotation` is a quaternion x y z w `(1, 4)`.
        """
        return dataclasses.replace(
            self,
            position=rotations.rotate(rotation, self.position),
            orientation=rotations.multiply(rotation, self.orientation),
            velocity=rotations.rotate(rotation, self.velocity),
            acceleration=rotations.rotate(rotation, self.acceleration),
        )

    def specific_force(self, gravity: ArrayLike) -> FloatArray:
        """Return the specific force R^T (a - g_n) of an ideal accelerometer, `(n, 3)` m/s^2.

        `gravity` is the magnitude of a downward gravity, m/s^2, or the vector g_n in the world.
        The result is in the axes of the body: (0, 0, +g) at rest and level.
        """
        g = np.asarray(gravity, dtype=np.float64)
        if g.shape not in ((), (3,)) or not np.isfinite(g).all():
            raise MotionError(f'gravity {gravity!r} is not allowed; must be 1 or 3 finite numbers')
        g_n = np.array([0.0, 0.0, -float(g)]) if g.shape == () else g
        return rotations.rotate_back(self.orientation, self.acceleration - g_n)

    def _take(self, index: NDArray[np.intp]) -> Trajectory:
        return Trajectory(
            **{field.name: getattr(self, field.name)[index] for field in dataclasses.fields(self)}
        )


# Hermite polynomials between samples, and the differences that supply missing slopes. Arrays have
# the shape `(n, 3)`, time first. `h` is the length of each interval in seconds, `(n, 1)`, and `s`
# the position in it, 0 to 1, `(n, 1)`. `start` and `end` are a value, its slope and, for a
# quintic, its second derivative.

Slope = tuple[FloatArray, FloatArray]
"""Value and slope."""
Cubic = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Coefficients of a cubic; see `cubic_between`."""
Bend = tuple[FloatArray, FloatArray, FloatArray]
"""Value, slope and second derivative."""


def cubic(s: FloatArray, h: FloatArray, terms: Cubic) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return value, first and second derivative of a cubic."""
    p0, m0, b, c = terms
    value = p0 + h * s * (m0 + s * (b + s * c))
    first = m0 + s * (2.0 * b + 3.0 * s * c)
    second = (2.0 * b + 6.0 * s * c) / h
    return value, first, second


def cubic_integral(s: FloatArray, h: FloatArray, terms: Cubic) -> FloatArray:
    """Return the integral over time of `cubic` from the start of the interval to `s`."""
    p0, m0, b, c = terms
    return h * s * (p0 + h * s * (m0 / 2.0 + s * (b / 3.0 + s * c / 4.0)))


def cubic_between(h: FloatArray, start: Slope, end: Slope) -> Cubic:
    """Return the coefficients p0, m0, b, c of a cubic with given end values and slopes.

    The cubic is p0 + h s (m0 + s (b + s c)) over an interval of h seconds.
    """
    (p0, m0), (p1, m1) = start, end
    jump = p1 - p0
    return p0, m0, 3.0 * jump / h - 2.0 * m0 - m1, m0 + m1 - 2.0 * jump / h


def quintic(
    s: FloatArray, h: FloatArray, start: Bend, end: Bend
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return value, first and second derivative of a quintic.

    Its values, slopes and second derivatives at both ends are given.
    """
    p0, m0, a0 = start
    p1, m1, a1 = end
    # Residuals at the end of the parabola through the start, in units of s.
    value_residual = p1 - p0 - h * m0 - 0.5 * h * h * a0
    slope_residual = h * (m1 - m0 - h * a0)
    curve_residual = h * h * (a1 - a0)
    c3 = 10.0 * value_residual - 4.0 * slope_residual + 0.5 * curve_residual
    c4 = -15.0 * value_residual + 7.0 * slope_residual - curve_residual
    c5 = 6.0 * value_residual - 3.0 * slope_residual + 0.5 * curve_residual
    cube = s * s * s
    value = p0 + h * s * (m0 + 0.5 * h * s * a0) + cube * (c3 + s * (c4 + s * c5))
    first = m0 + h * s * a0 + s * s * (3.0 * c3 + s * (4.0 * c4 + 5.0 * s * c5)) / h
    second = a0 + s * (6.0 * c3 + s * (12.0 * c4 + 20.0 * s * c5)) / (h * h)
    return value, first, second


def parabola(
    h_before: FloatArray, before: FloatArray, h_after: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slope and second derivative at the middle of three unevenly spaced samples.

    `before` and `after` are the steps `(n, 3)` to the middle sample and from it; `h_before` and
    `h_after` `(n, 1)` are their durations, s. At the end of a record both other samples may lie on
    one side; the duration and the step of the one on the wrong side are then negative.
    """
    rate_before, rate_after = before / h_before, after / h_after
    span = h_before + h_after
    slope = (h_after * rate_before + h_before * rate_after) / span
    second = 2.0 * (rate_after - rate_before) / span
    return np.asarray(slope), np.asarray(second)


States = tuple[FloatArray, FloatArray, FloatArray]
"""Orientations x y z w `(n, 4)`, positions and velocities `(n, 3)`."""


def local_coordinates(of: States, to: States) -> FloatArray:
    """Return the differences `(n, 9)` from n states to n others.

    [Log(R1^T R2), R1^T (p2 - p1), R1^T (v2 - v1)]: components in the body of the first, rad, m and
    m/s (NavState of [GTSAM]).
    """
    return np.hstack([
        rotations.rotation_between(of[0], to[0]),
        rotations.rotate_back(of[0], to[1] - of[1]),
        rotations.rotate_back(of[0], to[2] - of[2]),
    ])  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class NavState:
    """Attitude, position and velocity of a body.

    The orientation is a unit quaternion x y z w, body to world; position and velocity are `(3,)` m
    and m/s, world.

    Raises MotionError for wrong shapes, values that are not finite, or a quaternion whose norm is
    not 1 to 1e-6.
    """

    orientation: FloatArray
    position: FloatArray
    velocity: FloatArray

    def __post_init__(self) -> None:
        for name, length in (('orientation', 4), ('position', 3), ('velocity', 3)):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (length,) or not np.isfinite(array).all():
                raise MotionError(
                    f'state: {name} {getattr(self, name)!r} is not allowed; must be {length} '
                    'finite numbers'
                )
            object.__setattr__(self, name, array)
        norm = float(np.sqrt(np.sum(self.orientation**2)))
        if abs(norm - 1.0) > 1e-6:
            raise MotionError(f'state: orientation has norm {norm:.9g}, must be 1')
        object.__setattr__(self, 'orientation', self.orientation / norm)

    @property
    def rotation(self) -> FloatArray:
        """Matrix `(3, 3)`, body to world."""
        q = np.tile(self.orientation, (3, 1))
        return np.ascontiguousarray(rotations.rotate(q, np.eye(3)).T)

    @property
    def pose(self) -> FloatArray:
        """Matrix `(4, 4)`, body to world, m."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.rotation, self.position
        return pose

    def local_coordinates(self, other: NavState) -> FloatArray:
        """Return the difference to another state, `(9,)`: rotation, position, velocity.

        Components are in the body of this state; see the function `local_coordinates`.
        """
        return np.asarray(local_coordinates(self._rows(), other._rows())[0])

    def retract(self, difference: ArrayLike) -> NavState:
        """Return the state at a difference `(9,)`; the inverse of `local_coordinates`."""
        xi = np.asarray(difference, dtype=np.float64)
        if xi.shape != (9,):
            raise MotionError(f'state: difference has shape {xi.shape}, must be (9,)')
        R = self.rotation
        turned = rotations.multiply(self.orientation[None], rotations.exp(xi[None, :3]))[0]
        return NavState(turned, self.position + R @ xi[3:6], self.velocity + R @ xi[6:])

    def _rows(self) -> States:
        return self.orientation[None], self.position[None], self.velocity[None]


class PointQueries(Protocol):
    """Mixin that adds GTSAM's queries to a `Motion`; each method returns one row of `at`.

    The suffix `_n` means components in the world (navigation frame), `_b` in the body. Each method
    raises `MotionError` for a time outside the motion.
    """

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s."""
        ...

    def nav_state(self, t: float) -> NavState:
        """Return attitude, position and velocity at `t` s."""
        now = self.at([t])
        return NavState(now.orientation[0], now.position[0], now.velocity[0])

    def rotation(self, t: float) -> FloatArray:
        """Return the matrix `(3, 3)` that takes body vectors to the world."""
        return self.nav_state(t).rotation

    def pose(self, t: float) -> FloatArray:
        """Return the matrix `(4, 4)` that takes points of the body to the world, m."""
        return self.nav_state(t).pose

    def omega_b(self, t: float) -> FloatArray:
        """Return the angular velocity, `(3,)` rad/s, body."""
        return np.asarray(self.at([t]).angular_velocity[0])

    def velocity_n(self, t: float) -> FloatArray:
        """Return the velocity, `(3,)` m/s, world."""
        return np.asarray(self.at([t]).velocity[0])

    def velocity_b(self, t: float) -> FloatArray:
        """Return the velocity, `(3,)` m/s, body."""
        now = self.at([t])
        return np.asarray(rotations.rotate_back(now.orientation, now.velocity)[0])

    def acceleration_n(self, t: float) -> FloatArray:
        """Return the acceleration without gravity, `(3,)` m/s^2, world."""
        return np.asarray(self.at([t]).acceleration[0])

    def acceleration_b(self, t: float) -> FloatArray:
        """Return the acceleration without gravity, `(3,)` m/s^2, body."""
        now = self.at([t])
        return np.asarray(rotations.rotate_back(now.orientation, now.acceleration)[0])
