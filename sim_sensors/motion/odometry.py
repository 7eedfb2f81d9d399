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
from sim_sensors.core.blocks import (
    by_blocks,
    lengths_of,
    seconds,
    steps_of,
    sum_by_blocks,
    whole_rows,
)
from sim_sensors.core.errors import MotionError, Remark
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.core.scratch import joined
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
"""Samples at or before a time that its output depends on (fewer at the start of the record)."""

SAMPLES_AHEAD = 2
"""Samples after a time that its output depends on (fewer at the end of the record)."""

_SOURCES = ('auto', 'twist', 'position')

# Below this extent [m] a record with zero twist is taken for one that stands still: five standard
# deviations of RTK noise (1 cm) either way.
_STANDSTILL_EXTENT = 0.1
# Disagreements are worth a sentence when above both of these: absolute, and relative to the rms.
_VELOCITY_THRESHOLD, _RATE_THRESHOLD, _RELATIVE_THRESHOLD = 0.05, 0.02, 0.05
# The twist is suspected to be in the world frame when it then agrees this much better.
_FRAME_FACTOR = 0.5
# Intervals longer than this many medians are gaps; turns above this angle [rad] are ambiguous.
_GAP_FACTOR, _TURN_THRESHOLD = 5.0, 1.0


class OdometryMotion:
    """Motion through recorded odometry, from samples around each time only.

    The output at a time in [t_k, t_k+1) depends on the samples k-1 .. k+2 and on nothing else:
    the two at or before it and the two after it. A live reader may thus answer for a time as soon
    as `SAMPLES_AHEAD` samples past it have arrived, and gives the same bits as a batch run when
    it passes at least those four samples and the same `origin_ns`. At the ends of the record the
    missing neighbour is replaced by a one-sided difference, so the very first interval is final
    once three samples are there, and the last one only when the record is known to have ended.

    Velocity
        From the twist: the recorded velocities, rotated to the world, joined by cubics whose
        slopes are three-point differences. Acceleration is its exact derivative: continuous.
    Position
        The integral of that velocity, plus in each interval the smooth step 3 s^2 - 2 s^3 times
        what the integral misses of the next recorded position. For consistent records this is
        nil. It is not part of velocity: forcing 1 cm of position noise at 4 Hz into velocity
        would invent accelerations of 1 m/s^2. So recorded positions and recorded velocities are
        both met, and their disagreement, which `velocity_disagreement` states, stays visible.
    Orientation
        R_k Exp(phi(t)), phi the cubic that meets both recorded orientations with body rates from
        three-point differences of the relative rotation vectors. Angular velocity is the exact
        derivative of orientation, angular acceleration of angular velocity. Recorded angular
        velocity is compared only, in `rate_disagreement`.

    Where the record holds no velocity (all zero while the position moves), velocities at the
    samples are the slopes of the parabolas through each three positions, and their slopes the
    second derivatives of those. Two parabolas that share two positions differ in slope at these by
    just what the mean of their second derivatives makes of the interval, so that acceleration runs
    straight from one to the next, also between uneven samples. (A polynomial through position,
    slope and second derivative would have an acceleration that swings about that of the body by
    jerk times interval.)

    Parameters
    ----------
    odometry : OdometryArray
        At least 3 samples at increasing stamps. Twist in the child (body) frame, as ROS has it.
    origin_ns : int
        Stamp of time 0, ns. It must lie near the record: a float resolves 1e-10 s only within
        some 10^5 s of the origin.
    velocity : {'auto', 'twist', 'position'}
        Where velocity comes from. 'auto' decides from the whole record; a live reader, which has
        not seen it, must choose.

    Attributes
    ----------
    start, end : float
        First and last time, s.
    velocity_source : {'twist', 'position'}
        What 'auto' decided.

    Raises
    ------
    MotionError
        Fewer than 3 samples, stamps that do not increase, values that are not finite,
        quaternions of no norm.
    """

    def __init__(self, odometry: OdometryArray, *, origin_ns: int, velocity: str = 'auto') -> None:
        if velocity not in _SOURCES:
            allowed = ', '.join(_SOURCES)
            raise MotionError(f'velocity {velocity!r} is not allowed; must be one of {allowed}')
        _check(odometry)
        self._odometry = odometry
        self._time = seconds(odometry.stamp_ns, origin_ns)
        self.start, self.end = float(self._time[0]), float(self._time[-1])
        self._interval = by_blocks(lambda steps: steps * 1e-9, steps_of(odometry.stamp_ns))[
            :, None
        ]
        self._position = odometry.position
        self._orientation = q = by_blocks(_normalised, odometry.orientation)
        self._turn = by_blocks(rotations.between, q[:-1], q[1:])
        far = rotations.between(q[:1], q[2:3]), rotations.between(q[-3:-2], q[-1:])
        self._rate, _ = self._slopes(self._turn, far)
        if velocity == 'auto':
            velocity = 'position' if _velocity_is_absent(odometry) else 'twist'
        self.velocity_source = velocity
        if self.velocity_source == 'twist':
            self._velocity = by_blocks(rotations.rotate, q, odometry.linear_velocity)
            self._acceleration, _ = self._slopes(*_steps(self._velocity))
        else:
            self._velocity, self._acceleration = self._slopes(*_steps(self._position))

    @functools.cached_property
    def velocity_disagreement(self) -> float:
        """Rms over the intervals of the mean of both recorded velocities (rotated to the world)
        less the position difference over the interval, norm, m/s.
        """
        recorded = by_blocks(rotations.rotate, self._orientation, self._odometry.linear_velocity)
        return _rms(by_blocks(np.subtract, _mean(recorded), self._displacement))

    @functools.cached_property
    def rate_disagreement(self) -> float:
        """The same of the recorded angular velocity and the relative rotation vector, rad/s."""
        return _rms(
            by_blocks(np.subtract, _mean(self._odometry.angular_velocity), self._mean_rate)
        )

    @functools.cached_property
    def remarks(self) -> tuple[Remark, ...]:
        """What the user should know about the record, one sentence each."""
        return (
            *_about_time(self._interval[:, 0]),
            *_about_velocity(self._odometry, self._displacement, self.velocity_disagreement),
            *_about_orientation(self._turn, self._displacement),
            *_about_rate(self._odometry, self._mean_rate, self.rate_disagreement),
        )

    @property
    def _displacement(self) -> FloatArray:
        return by_blocks(np.divide, steps_of(self._odometry.position), self._interval)

    @property
    def _mean_rate(self) -> FloatArray:
        return by_blocks(np.divide, self._turn, self._interval)

    def __len__(self) -> int:
        return len(self._time)

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order; see `Motion.at`."""
        t = times_within(times, self.start, self.end)
        k = np.clip(np.searchsorted(self._time, t, side='right') - 1, 0, len(self) - 2)
        intervals: NDArray[np.intp] = k
        own: Any = slice(None)
        if len(k) and np.ptp(k) < len(k) // 2:
            # What belongs to an interval is made once for all times in it.
            intervals = np.arange(k.min(), k.max() + 1)
            own = k - intervals[0]
        h = self._interval[intervals]
        swing, path = self._swing(intervals, h), self._path(intervals, h)
        missed = self._missed(intervals, h, path)[own]
        h, swing, path = h[own], _rows(swing, own), _rows(path, own)
        s = np.clip((t - self._time[k])[:, None] / h, 0.0, 1.0)
        velocity, acceleration, _ = cubic(s, h, path)
        step = s * s * (3.0 - 2.0 * s)
        position = self._position[k] + cubic_integral(s, h, path) + step * missed
        curve = position, velocity, acceleration
        return Trajectory.along(t, curve, self._orientation[k], cubic(s, h, swing))

    def _swing(self, k: NDArray[np.intp], h: FloatArray) -> Cubic:
        """The rotation vector from the first sample of each interval."""
        turn = self._turn[k]
        last_rate, _ = rotations.end_derivatives(turn, self._rate[k + 1])
        return cubic_between(h, (np.zeros_like(turn), self._rate[k]), (turn, last_rate))

    def _path(self, k: NDArray[np.intp], h: FloatArray) -> Cubic:
        """The velocity in each interval."""
        return cubic_between(
            h,
            (self._velocity[k], self._acceleration[k]),
            (self._velocity[k + 1], self._acceleration[k + 1]),
        )

    def _missed(self, k: NDArray[np.intp], h: FloatArray, path: Cubic) -> FloatArray:
        """How far the integral of the velocity ends from the next sample, `(n, 3)` m."""
        moved = cubic_integral(np.ones_like(h), h, path)
        return np.asarray(self._position[k + 1] - self._position[k] - moved)

    def _slopes(
        self, step: FloatArray, far: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Three-point slope and second derivative at every sample.

        `step` `(n-1, 3)` goes from each sample to the next, `far`, `(1, 3)` each, from the first
        sample to the third and from the third last to the last.
        """
        h = self._interval
        first, last = far
        # At the ends the sample two steps inside stands in for the missing one: a negative
        # interval away.
        h_before = joined(-(h[:1] + h[1:2]), h)
        h_after = joined(h, -(h[-1:] + h[-2:-1]))
        before, after = joined(-first, step), joined(step, -last)
        found = by_blocks(
            lambda *each: np.hstack(parabola(*each)), h_before, before, h_after, after
        )
        return found[:, :3], found[:, 3:]


def _rows(terms: Cubic, selection: Any) -> Cubic:
    p0, m0, b, c = (each[selection] for each in terms)
    return p0, m0, b, c


def _steps(values: FloatArray) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    return steps_of(values), (values[2:3] - values[:1], values[-1:] - values[-3:-2])


def _normalised(q: FloatArray) -> FloatArray:
    norm = np.sqrt(q[:, 0] ** 2 + q[:, 1] ** 2 + q[:, 2] ** 2 + q[:, 3] ** 2)
    return np.asarray(q / norm[:, None])


def _check(odometry: OdometryArray) -> None:
    if len(odometry) < 3:
        raise MotionError(f'odometry has {len(odometry)} samples; at least 3 are needed')
    backward = np.flatnonzero(by_blocks(lambda steps: steps <= 0, steps_of(odometry.stamp_ns)))
    if len(backward):
        index = int(backward[0]) + 1
        raise MotionError(
            f'odometry: stamp {odometry.stamp_ns[index]} of sample {index} does not come after '
            f'the one before it ({odometry.stamp_ns[index - 1]}); stamps must increase'
        )
    check_values(odometry)


def check_values(odometry: OdometryArray) -> None:
    """Refuse samples that no motion can pass through by a `MotionError`: values that are not
    finite, quaternions of no norm.
    """
    for name in ('position', 'orientation', 'linear_velocity', 'angular_velocity'):
        values = getattr(odometry, name)
        bad = np.flatnonzero(by_blocks(lambda rows: ~whole_rows(np.isfinite(rows)), values))
        if len(bad):
            raise MotionError(f'odometry: {name} of sample {bad[0]} is not finite')
    norm = lengths_of(odometry.orientation)
    bad = np.flatnonzero(norm < 1e-6)
    if len(bad):
        raise MotionError(f'odometry: orientation of sample {bad[0]} is no rotation (norm 0)')


def _velocity_is_absent(odometry: OdometryArray) -> bool:
    """Say whether every recorded velocity is exactly zero although the position moves."""
    moves = bool(np.ptp(odometry.position, axis=0).max() > _STANDSTILL_EXTENT)
    return moves and not odometry.linear_velocity.any()


def _about_time(interval: FloatArray) -> list[Remark]:
    median = float(np.median(interval))
    gaps = interval[interval > _GAP_FACTOR * median]
    if not len(gaps):
        return []
    text = (
        'odometry has {gaps:d} gaps, the longest {longest:.3g} s where {median:.3g} s is usual; '
        'motion inside them is interpolated'
    )
    return [Remark(text, gaps=len(gaps), longest=gaps.max(), median=median)]


def _about_velocity(odometry: OdometryArray, displacement: FloatArray, rms: float) -> list[Remark]:
    if _velocity_is_absent(odometry):
        text = (
            'recorded linear velocity is all zero while the position moves: velocity and '
            'acceleration are derived from the positions, with their noise'
        )
        return [Remark(text)]
    speed = _rms(displacement)
    if rms <= max(_VELOCITY_THRESHOLD, _RELATIVE_THRESHOLD * speed):
        return []
    unrotated = _rms(by_blocks(np.subtract, _mean(odometry.linear_velocity), displacement))
    if unrotated < _FRAME_FACTOR * rms:
        frames = (odometry.frame or 'the world frame', odometry.child_frame or 'the body frame')
        world, body = (name.replace('{', '{{').replace('}', '}}') for name in frames)
        text = (
            f'recorded linear velocity seems to be in {world}, not in {body} as nav_msgs/Odometry '
            'asks: it differs from position differences by {unrotated:.3g} m/s rms unrotated, but '
            '{rms:.3g} m/s rotated to the world, which is what is used'
        )
        return [Remark(text, unrotated=unrotated, rms=rms)]
    text = (
        'recorded linear velocity differs from position differences by {rms:.3g} m/s rms '
        '(rms speed {speed:.3g} m/s)'
    )
    return [Remark(text, rms=rms, speed=speed)]


def _about_orientation(turn: FloatArray, displacement: FloatArray) -> list[Remark]:
    largest = float(lengths_of(turn).max())
    if largest > _TURN_THRESHOLD:
        text = (
            'orientation turns by up to {largest:.0f} degrees between two samples: angular '
            'velocity in between is a guess'
        )
        return [Remark(text, largest=np.degrees(largest))]
    if largest < 1e-9 and _course_change(displacement) > np.radians(30.0):
        text = (
            'orientation never changes although the direction of travel does: the record seems '
            'to hold no orientation, so body-frame velocity, specific force and rates are wrong'
        )
        return [Remark(text)]
    return []


def _about_rate(odometry: OdometryArray, rate: FloatArray, rms: float) -> list[Remark]:
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
    """Largest angle between the first and any later direction of travel, rad, above 0.5 m/s."""
    moving = displacement[np.hypot(displacement[:, 0], displacement[:, 1]) > 0.5]
    if not len(moving):
        return 0.0
    course = np.arctan2(moving[:, 1], moving[:, 0]) - np.arctan2(moving[0, 1], moving[0, 0])
    return float(np.abs(np.arctan2(np.sin(course), np.cos(course))).max())


def _mean(values: FloatArray) -> FloatArray:
    return by_blocks(lambda after, before: 0.5 * (after + before), values[1:], values[:-1])


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(sum_by_blocks(np.square, values).sum() / len(values)))
