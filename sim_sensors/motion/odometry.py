# SPDX-License-Identifier: Apache-2.0
"""Motion through recorded odometry: local interpolation, the same live and from a file.

See docs/motion.md for the choice of method.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError, Remark
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.motion.hermite import cubic, cubic_integral, parabola
from sim_sensors.motion.odometry_check import OdometryCheck, check_odometry, velocity_is_absent
from sim_sensors.motion.trajectory import Trajectory, times_within

SAMPLES_BEHIND = 2
"""Samples at or before a time that its output depends on (fewer at the start of the record)."""

SAMPLES_AHEAD = 2
"""Samples after a time that its output depends on (fewer at the end of the record)."""

_SOURCES = ('auto', 'twist', 'position')


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
        self._time = (odometry.stamp_ns - np.int64(origin_ns)) * 1e-9
        self._interval = (np.diff(odometry.stamp_ns) * 1e-9)[:, None]
        self._position = odometry.position
        q = odometry.orientation
        norm = np.sqrt(q[:, 0] ** 2 + q[:, 1] ** 2 + q[:, 2] ** 2 + q[:, 3] ** 2)
        self._orientation = q / norm[:, None]
        self._turn = rotations.between(self._orientation[:-1], self._orientation[1:])
        self._rate, _ = self._slopes(self._turn, self._far_turns())

        if velocity == 'auto':
            absent = velocity_is_absent(odometry.position, odometry.linear_velocity)
            velocity = 'position' if absent else 'twist'
        self.velocity_source = velocity
        if self.velocity_source == 'twist':
            self._velocity = rotations.rotate(self._orientation, odometry.linear_velocity)
            self._acceleration, _ = self._slopes(*_steps(self._velocity))
        else:
            self._velocity, self._acceleration = self._slopes(*_steps(self._position))
        self._odometry = odometry

    @functools.cached_property
    def check(self) -> OdometryCheck:
        """Agreement of the parts of the record with each other; made when first asked for."""
        return check_odometry(self._odometry, self._orientation, self._interval, self._turn)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What the user should know about the record, one sentence each."""
        return self.check.remarks

    @property
    def velocity_disagreement(self) -> float:
        """Rms of recorded velocity against position differences, m/s."""
        return self.check.velocity_disagreement

    @property
    def rate_disagreement(self) -> float:
        """Rms of recorded angular velocity against orientation differences, rad/s."""
        return self.check.rate_disagreement

    def __len__(self) -> int:
        return len(self._time)

    @property
    def start(self) -> float:
        """First time, s."""
        return float(self._time[0])

    @property
    def end(self) -> float:
        """Last time, s."""
        return float(self._time[-1])

    def at(self, times: ArrayLike) -> Trajectory:
        """Motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside `start` .. `end`.
        """
        t = times_within(times, self.start, self.end)
        k = np.clip(np.searchsorted(self._time, t, side='right') - 1, 0, len(self) - 2)
        h = self._interval[k]
        s = np.clip((t - self._time[k])[:, None] / h, 0.0, 1.0)
        position, velocity, acceleration = self._translation(k, s, h)

        turn = self._turn[k]
        last_rate, _ = rotations.end_derivatives(turn, self._rate[k + 1])
        curve = cubic(s, h, (np.zeros_like(turn), self._rate[k]), (turn, last_rate))
        angular_velocity, angular_acceleration = rotations.body_rates(curve)
        orientation = rotations.multiply(self._orientation[k], rotations.exp(curve[0]))
        return Trajectory(
            t,
            position,
            orientation,
            velocity,
            angular_velocity,
            acceleration,
            angular_acceleration,
        )

    def _translation(
        self, k: np.ndarray[tuple[int, ...], np.dtype[np.intp]], s: FloatArray, h: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        p0, p1 = self._position[k], self._position[k + 1]
        ends = (
            (self._velocity[k], self._acceleration[k]),
            (self._velocity[k + 1], self._acceleration[k + 1]),
        )
        velocity, acceleration, _ = cubic(s, h, *ends)
        missed = p1 - p0 - cubic_integral(np.ones_like(s), h, *ends)
        step = s * s * (3.0 - 2.0 * s)
        position = p0 + cubic_integral(s, h, *ends) + step * missed
        return position, velocity, acceleration

    def _slopes(
        self, step: FloatArray, far: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Three-point slope and second derivative at every sample.

        Parameters
        ----------
        step : (n-1, 3)
            From each sample to the next.
        far : (first, last)
            `(1, 3)` each: from the first sample to the third, from the third last to the last.
        """
        h = self._interval
        first, last = far
        # At the ends the sample two steps inside stands in for the missing one: a negative
        # interval away.
        h_before = np.concatenate([-(h[:1] + h[1:2]), h])
        h_after = np.concatenate([h, -(h[-1:] + h[-2:-1])])
        before = np.concatenate([-first, step])
        after = np.concatenate([step, -last])
        return parabola(h_before, before, h_after, after)

    def _far_turns(self) -> tuple[FloatArray, FloatArray]:
        q = self._orientation
        return rotations.between(q[:1], q[2:3]), rotations.between(q[-3:-2], q[-1:])


def _steps(values: FloatArray) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    return np.diff(values, axis=0), (values[2:3] - values[:1], values[-1:] - values[-3:-2])


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
    """Refuse samples that no motion can pass through, each by itself.

    Raises
    ------
    MotionError
        Values that are not finite, quaternions of no norm.
    """
    for name in ('position', 'orientation', 'linear_velocity', 'angular_velocity'):
        bad = np.flatnonzero(~np.isfinite(getattr(odometry, name)).all(axis=1))
        if len(bad):
            raise MotionError(f'odometry: {name} of sample {bad[0]} is not finite')
    norm = np.linalg.norm(odometry.orientation, axis=1)
    bad = np.flatnonzero(norm < 1e-6)
    if len(bad):
        raise MotionError(f'odometry: orientation of sample {bad[0]} is no rotation (norm 0)')
