# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion through recorded odometry: local interpolation, the same live and from a file.

See docs/explanation/motion.md for the choice of method.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core import rotations
from sim_sensors.core.blocks import seconds
from sim_sensors.core.errors import MotionError, Remark
from sim_sensors.core.measurements import FloatArray, OdometryArray
from .trajectory import (
    Cubic,
    Trajectory,
    cubic,
    cubic_between,
    cubic_integral,
    parabola,
    times_within,
)

SAMPLES_BEHIND = 2
"""Number of samples at or before a time that determine the motion at that time."""

SAMPLES_AHEAD = 2
"""Number of samples after a time that determine the motion at that time."""

_SOURCES = ('auto', 'twist', 'position')

# Extent [m] below which a record with zero twist counts as standing still: five standard
# deviations of RTK noise (1 cm) in each direction.
_STANDSTILL_EXTENT = 0.1
# A disagreement is reported if it exceeds both the absolute and the relative threshold (of the
# rms).
_VELOCITY_THRESHOLD, _RATE_THRESHOLD, _RELATIVE_THRESHOLD = 0.05, 0.02, 0.05
# The twist is suspected to be in the world frame if that reduces the disagreement by this factor.
_FRAME_FACTOR = 0.5
# Intervals longer than this many medians are gaps; turns above this angle [rad] are ambiguous.
_GAP_FACTOR, _TURN_THRESHOLD = 5.0, 1.0


class OdometryMotion:
    """Motion through recorded odometry, from samples around each time only.

    The motion at a time in [t_k, t_k+1) depends only on the samples k-1 .. k+2: the two at or
    before it and the two after it. A live reader can therefore evaluate a time as soon as
    `SAMPLES_AHEAD` later samples have arrived. It gets the same bits as a batch run if it passes
    at least those four samples and the same `origin_ns`. At the ends of the record a one-sided
    difference replaces the missing neighbour. The first interval is thus final once three samples
    exist; the last one is final only when the record has ended.

    Velocity
        From the twist: the recorded velocities, rotated to the world, joined by cubics whose
        slopes are three-point differences. Acceleration is its exact derivative: continuous.
    Position
        The integral of that velocity, plus a correction that reaches the next recorded position
        by the smooth step 3 s^2 - 2 s^3. The correction is zero for consistent records. It is not
        part of the velocity: 1 cm of position noise at 4 Hz would add accelerations of 1 m/s^2.
        Recorded positions and recorded velocities are both matched at the samples;
        `velocity_disagreement` states how far they disagree.
    Orientation
        R_k Exp(phi(t)). The cubic phi joins both recorded orientations; its body rates at the
        samples are three-point differences of the relative rotation vectors. Angular velocity is
        the exact derivative of orientation, angular acceleration that of angular velocity.
        Recorded angular velocity is only compared, see `rate_disagreement`.

    If the record holds no velocity (all zero while the position moves), the velocity at a sample
    is the slope of the parabola through three positions, and its derivative the second derivative
    of that parabola. Acceleration is then linear between samples, also for uneven intervals. A
    polynomial through position, slope and second derivative would oscillate about the true
    acceleration by jerk times interval.

    Parameters
    ----------
    odometry : OdometryArray
        At least 3 samples at increasing stamps. The twist is in the child (body) frame, as in ROS.
    origin_ns : int
        Stamp of time 0, ns. It must lie near the record: a float resolves 1e-10 s only within
        some 10^5 s of the origin.
    velocity : {'auto', 'twist', 'position'}
        Source of the velocity. 'auto' decides from the whole record, so a live reader must choose
        one of the others.

    Attributes
    ----------
    start, end : float
        First and last time, s.
    velocity_source : {'twist', 'position'}
        Source that is used.

    Raises
    ------
    MotionError
        If there are fewer than 3 samples, or stamps that do not increase, values that are not
        finite, or quaternions of zero norm.
    """

    def __init__(self, odometry: OdometryArray, *, origin_ns: int, velocity: str = 'auto') -> None:
        if velocity not in _SOURCES:
            allowed = ', '.join(_SOURCES)
            raise MotionError(f'velocity {velocity!r} is not allowed; must be one of {allowed}')
        _check(odometry)
        self._odometry = odometry
        self._time = seconds(odometry.stamp_ns, origin_ns)
        self.start, self.end = float(self._time[0]), float(self._time[-1])
        self._interval = (np.diff(odometry.stamp_ns) * 1e-9)[:, None]
        self._position = odometry.position
        self._orientation = q = _normalize(odometry.orientation)
        self._turn = rotations.rotation_between(q[:-1], q[1:])
        far = (
            rotations.rotation_between(q[:1], q[2:3]),
            rotations.rotation_between(q[-3:-2], q[-1:]),
        )
        self._rate, _ = self._slopes(self._turn, far)
        if velocity == 'auto':
            velocity = 'position' if _velocity_is_absent(odometry) else 'twist'
        self.velocity_source = velocity
        if self.velocity_source == 'twist':
            self._velocity = rotations.rotate(q, odometry.linear_velocity)
            self._acceleration, _ = self._slopes(*_steps(self._velocity))
        else:
            self._velocity, self._acceleration = self._slopes(*_steps(self._position))

    @functools.cached_property
    def velocity_disagreement(self) -> float:
        """Rms difference of recorded velocity and position differences, m/s.

        For each interval: the mean of both recorded velocities, rotated to the world, minus the
        change of position divided by the interval.
        """
        recorded = rotations.rotate(self._orientation, self._odometry.linear_velocity)
        return _rms(_midpoints(recorded) - self._displacement)

    @functools.cached_property
    def rate_disagreement(self) -> float:
        """Rms difference of recorded angular velocity and orientation differences, rad/s."""
        return _rms(_midpoints(self._odometry.angular_velocity) - self._mean_rate)

    @functools.cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """Remarks about defects of the record, one sentence each."""
        return (
            *_check_intervals(self._interval[:, 0]),
            *_check_velocity(self._odometry, self._displacement, self.velocity_disagreement),
            *_check_orientation(self._turn, self._displacement),
            *_check_rate(self._odometry, self._mean_rate, self.rate_disagreement),
        )

    @property
    def _displacement(self) -> FloatArray:
        return np.diff(self._odometry.position, axis=0) / self._interval

    @property
    def _mean_rate(self) -> FloatArray:
        return self._turn / self._interval

    def __len__(self) -> int:
        return len(self._time)

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order; see `Motion.at`."""
        t = times_within(times, self.start, self.end)
        k = np.clip(np.searchsorted(self._time, t, side='right') - 1, 0, len(self) - 2)
        intervals: NDArray[np.intp] = k
        row: Any = slice(None)
        if len(k) and np.ptp(k) < len(k) // 2:
            # The coefficients of an interval are computed once for all times in it.
            intervals = np.arange(k.min(), k.max() + 1)
            row = k - intervals[0]
        h = self._interval[intervals]
        swing, path = self._swing(intervals, h), self._path(intervals, h)
        missing = self._position_residual(intervals, h, path)[row]
        h, swing, path = h[row], _select_rows(swing, row), _select_rows(path, row)
        s = np.clip((t - self._time[k])[:, None] / h, 0.0, 1.0)
        velocity, acceleration, _ = cubic(s, h, path)
        step = s * s * (3.0 - 2.0 * s)
        position = self._position[k] + cubic_integral(s, h, path) + step * missing
        curve = position, velocity, acceleration
        return Trajectory.along(t, curve, self._orientation[k], cubic(s, h, swing))

    def _swing(self, k: NDArray[np.intp], h: FloatArray) -> Cubic:
        """Return the cubics of the rotation vector from the first sample of each interval."""
        turn = self._turn[k]
        last_rate, _ = rotations.end_derivatives(turn, self._rate[k + 1])
        return cubic_between(h, (np.zeros_like(turn), self._rate[k]), (turn, last_rate))

    def _path(self, k: NDArray[np.intp], h: FloatArray) -> Cubic:
        """Return the cubics of the velocity in each interval."""
        return cubic_between(
            h,
            (self._velocity[k], self._acceleration[k]),
            (self._velocity[k + 1], self._acceleration[k + 1]),
        )

    def _position_residual(self, k: NDArray[np.intp], h: FloatArray, path: Cubic) -> FloatArray:
        """Return next recorded position minus integrated velocity, `(n, 3)` m."""
        moved = cubic_integral(np.ones_like(h), h, path)
        return np.asarray(self._position[k + 1] - self._position[k] - moved)

    def _slopes(
        self, step: FloatArray, far: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the three-point slope and second derivative at every sample.

        `step` `(n-1, 3)` goes from each sample to the next, `far`, `(1, 3)` each, from the first
        sample to the third and from the third last to the last.
        """
        h = self._interval
        first, last = far
        # At the ends the sample two steps inside replaces the missing one, at a negative interval.
        return parabola(
            np.concatenate([-(h[:1] + h[1:2]), h]),
            np.concatenate([-first, step]),
            np.concatenate([h, -(h[-1:] + h[-2:-1])]),
            np.concatenate([step, -last]),
        )


def _select_rows(terms: Cubic, selection: Any) -> Cubic:
    p0, m0, b, c = (term[selection] for term in terms)
    return p0, m0, b, c


def _steps(values: FloatArray) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    return np.diff(values, axis=0), (values[2:3] - values[:1], values[-1:] - values[-3:-2])


def _normalize(q: FloatArray) -> FloatArray:
    norm = np.sqrt(q[:, 0] ** 2 + q[:, 1] ** 2 + q[:, 2] ** 2 + q[:, 3] ** 2)
    return np.asarray(q / norm[:, None])


def _check(odometry: OdometryArray) -> None:
    if len(odometry) < 3:
        raise MotionError(f'odometry has {len(odometry)} samples; at least 3 are needed')
    backward = np.flatnonzero(np.diff(odometry.stamp_ns) <= 0)
    if len(backward):
        index = int(backward[0]) + 1
        raise MotionError(
            f'odometry: stamp {odometry.stamp_ns[index]} of sample {index} does not come after '
            f'the one before it ({odometry.stamp_ns[index - 1]}); stamps must increase'
        )
    check_values(odometry)


def check_values(odometry: OdometryArray) -> None:
    """Raise a `MotionError` for values that are not finite or quaternions of zero norm."""
    for name in ('position', 'orientation', 'linear_velocity', 'angular_velocity'):
        values = getattr(odometry, name)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise MotionError(f'odometry: {name} of sample {bad[0]} is not finite')
    norm = np.linalg.norm(odometry.orientation, axis=1)
    bad = np.flatnonzero(norm < 1e-6)
    if len(bad):
        raise MotionError(f'odometry: orientation of sample {bad[0]} is no rotation (norm 0)')


def _velocity_is_absent(odometry: OdometryArray) -> bool:
    """Return whether every recorded velocity is exactly zero although the position moves."""
    moves = bool(np.ptp(odometry.position, axis=0).max() > _STANDSTILL_EXTENT)
    return moves and not odometry.linear_velocity.any()


def _check_intervals(interval: FloatArray) -> list[Remark]:
    median = float(np.median(interval))
    gaps = interval[interval > _GAP_FACTOR * median]
    if not len(gaps):
        return []
    text = (
        'odometry has {gaps:d} gaps, the longest {longest:.3g} s where {median:.3g} s is usual; '
        'motion inside them is interpolated'
    )
    return [Remark(text, gaps=len(gaps), longest=gaps.max(), median=median)]


def _check_velocity(odometry: OdometryArray, displacement: FloatArray, rms: float) -> list[Remark]:
    if _velocity_is_absent(odometry):
        text = (
            'recorded linear velocity is all zero while the position moves: velocity and '
            'acceleration are derived from the positions, with their noise'
        )
        return [Remark(text)]
    speed = _rms(displacement)
    if rms <= max(_VELOCITY_THRESHOLD, _RELATIVE_THRESHOLD * speed):
        return []
    unrotated = _rms(_midpoints(odometry.linear_velocity) - displacement)
    if unrotated < _FRAME_FACTOR * rms:
        frames = (odometry.frame or 'the world frame', odometry.child_frame or 'the body frame')
        world, body = (name.replace('{', '{{').replace('}', '}}') for name in frames)
        text = (
            f'recorded linear velocity seems to be in {world}, not in {body} as nav_msgs/Odometry '
            'requires: it differs from position differences by {unrotated:.3g} m/s rms unrotated, '
            'but {rms:.3g} m/s rotated to the world, which is used'
        )
        return [Remark(text, unrotated=unrotated, rms=rms)]
    text = (
        'recorded linear velocity differs from position differences by {rms:.3g} m/s rms '
        '(rms speed {speed:.3g} m/s)'
    )
    return [Remark(text, rms=rms, speed=speed)]


def _check_orientation(turn: FloatArray, displacement: FloatArray) -> list[Remark]:
    largest = float(np.linalg.norm(turn, axis=1).max())
    if largest > _TURN_THRESHOLD:
        text = (
            'orientation turns by up to {largest:.0f} degrees between two samples: angular '
            'velocity in between is ambiguous'
        )
        return [Remark(text, largest=np.degrees(largest))]
    if largest < 1e-9 and _course_change(displacement) > np.radians(30.0):
        text = (
            'orientation never changes although the direction of travel does: the record seems '
            'to hold no orientation, so body-frame velocity, specific force and rates are wrong'
        )
        return [Remark(text)]
    return []


def _check_rate(odometry: OdometryArray, rate: FloatArray, rms: float) -> list[Remark]:
    turning = _rms(rate)
    if not odometry.angular_velocity.any() and turning > _RATE_THRESHOLD:
        text = (
            'recorded angular velocity is all zero; rates come from the orientations in any case'
        )
        return [Remark(text)]
    if rms <= max(_RATE_THRESHOLD, _RELATIVE_THRESHOLD * turning):
        return []
    text = (
        'recorded angular velocity differs from orientation differences by {rms:.3g} rad/s '
        'rms (rms rate {rate:.3g} rad/s); the rates used are those of the orientations'
    )
    return [Remark(text, rms=rms, rate=turning)]


def _course_change(displacement: FloatArray) -> float:
    """Return the largest angle, rad, between the first and a later direction of travel.

    Only intervals faster than 0.5 m/s count.
    """
    moving = displacement[np.hypot(displacement[:, 0], displacement[:, 1]) > 0.5]
    if not len(moving):
        return 0.0
    course = np.arctan2(moving[:, 1], moving[:, 0]) - np.arctan2(moving[0, 1], moving[0, 0])
    return float(np.abs(np.arctan2(np.sin(course), np.cos(course))).max())


def _midpoints(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (values[1:] + values[:-1]))


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.square(values).sum() / len(values)))
