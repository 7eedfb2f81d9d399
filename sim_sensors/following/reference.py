# SPDX-License-Identifier: Apache-2.0
"""The motion that waypoints ask for, and how far a robot is from it."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.planar import Pose, advance, relative, twist_between
from sim_sensors.motion.waypoints import Waypoints

INTERPOLATIONS = ('spline', 'twist')


class ReferenceState(NamedTuple):
    """What is asked for at one time: pose, speed along the heading [m/s], yaw rate [rad/s]."""

    pose: Pose
    speed: float
    yaw_rate: float


class ReferenceMotion:
    """Motion through waypoints; before the first and after the last it rests there.

    Interpolation `spline` joins x, y and heading by cubic splines, so that speed and yaw rate are
    smooth. `twist` joins poses by a constant body twist (a geodesic of SE(2)): lines and circles
    are then exact whatever the spacing, and the speed jumps at the waypoints.

    Raises
    ------
    MotionError
        For another interpolation.
    """

    def __init__(self, waypoints: Waypoints, interpolation: str = 'spline') -> None:
        if interpolation not in INTERPOLATIONS:
            allowed = ', '.join(INTERPOLATIONS)
            raise MotionError(
                f'interpolation {interpolation!r} is not allowed; must be one of {allowed}'
            )
        self.waypoints = waypoints
        self.end = float(waypoints.time[-1])
        self._time = waypoints.time.tolist()
        rows = np.column_stack([waypoints.x, waypoints.y, waypoints.heading])
        self._poses = [Pose(*row) for row in rows.tolist()]
        self._spline = None
        if interpolation == 'spline':
            self._spline = CubicSpline(waypoints.time, rows)
            self._slope = self._spline.derivative()

    def at(self, time: float) -> ReferenceState:
        """Return what is asked for at `time` s."""
        if not 0.0 <= time <= self.end:
            return ReferenceState(self._poses[0 if time < 0.0 else -1], 0.0, 0.0)
        if self._spline is None:
            return self._along_twist(time)
        x, y, heading = self._spline(time).tolist()
        vx, vy, yaw_rate = self._slope(time).tolist()
        speed = math.cos(heading) * vx + math.sin(heading) * vy
        return ReferenceState(Pose(x, y, heading), speed, yaw_rate)

    def poses(self, times: FloatArray) -> FloatArray:
        """Return x, y [m] and heading [rad] at `times` `(n,)` s as `(n, 3)`."""
        if self._spline is not None:
            return np.asarray(self._spline(np.clip(times, 0.0, self.end)))
        return np.array([self.at(time).pose for time in times.tolist()]).reshape(-1, 3)

    @functools.cached_property
    def top_speed(self) -> float:
        """Greatest speed between waypoints, m/s."""
        w = self.waypoints
        return float(np.max(np.hypot(np.diff(w.x), np.diff(w.y)) / np.diff(w.time)))

    def _along_twist(self, time: float) -> ReferenceState:
        k = int(np.searchsorted(self.waypoints.time, time, side='right')) - 1
        k = min(max(k, 0), len(self._time) - 2)
        first, last = self._poses[k], self._poses[k + 1]
        span = self._time[k + 1] - self._time[k]
        forward, left, turn = twist_between(first, last)
        share = (time - self._time[k]) / span
        pose = advance(first, share * forward, share * left, share * turn)
        return ReferenceState(pose, forward / span, turn / span)


class TrackingError(NamedTuple):
    """Errors of one pose.

    `along` and `across` are robot minus reference along the reference's heading (negative: late)
    and to its left, m; `yaw` is REFERENCE MINUS ROBOT, as in [Cesenek2019], wrapped to [-pi, pi],
    rad.
    """

    along: float
    across: float
    yaw: float

    @property
    def distance(self) -> float:
        """From the reference to the robot, m."""
        return math.hypot(self.along, self.across)


def tracking_error(wanted: Pose, actual: Pose) -> TrackingError:
    """Return the error of one pose."""
    seen = relative(wanted, actual)
    return TrackingError(seen.x, seen.y, -seen.heading)


@dataclasses.dataclass(frozen=True)
class ErrorStatistics:
    """Of the magnitude of one error: mean, root of the mean square, and maximum."""

    mean: float
    rms: float
    maximum: float

    @classmethod
    def of(cls, values: FloatArray) -> ErrorStatistics:
        """Return the statistics of `values` `(n,)`."""
        size = np.abs(values)
        return cls(float(size.mean()), float(np.sqrt(np.mean(size**2))), float(size.max()))


@dataclasses.dataclass(frozen=True, eq=False)
class TrackingErrors:
    """Errors over a drive, signs as in `TrackingError`, at times in s; m and rad, `(n,)` each."""

    time: FloatArray
    along: FloatArray
    across: FloatArray
    distance: FloatArray
    yaw: FloatArray

    @classmethod
    def of(cls, reference: ReferenceMotion, time: FloatArray, poses: FloatArray) -> TrackingErrors:
        """Return the errors of poses `(n, 3)` (x, y, heading) at `time` `(n,)` s."""
        wanted = reference.poses(time)
        rows = [
            tracking_error(Pose(*should), Pose(*is_))
            for should, is_ in zip(wanted.tolist(), poses.tolist(), strict=True)
        ]
        table = np.array(rows).reshape(-1, 3)
        distance = np.hypot(table[:, 0], table[:, 1])
        return cls(time, table[:, 0], table[:, 1], distance, table[:, 2])

    def statistics(self) -> dict[str, ErrorStatistics]:
        """Return the statistics of distance, along and across [m] and yaw [rad]."""
        names = ('distance', 'along', 'across', 'yaw')
        return {name: ErrorStatistics.of(getattr(self, name)) for name in names}
