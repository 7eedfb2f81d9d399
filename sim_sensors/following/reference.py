# SPDX-License-Identifier: Apache-2.0
"""Reference motion through waypoints, and tracking errors of a robot."""

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
    """Reference at one time: pose, speed along the heading [m/s] and yaw rate [rad/s]."""

    pose: Pose
    speed: float
    yaw_rate: float


class ReferenceMotion:
    """Motion through waypoints; it rests at the first before it starts and at the last afterwards.

    Interpolation `spline` joins x, y and heading by cubic splines, with smooth speed and yaw rate.
    `twist` joins poses by a constant body twist (a geodesic of SE(2)): lines and circles are exact
    for any spacing, but the speed jumps at the waypoints.

    Raises
    ------
    MotionError
        For an unknown interpolation.
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
        """Return the reference at `time` s."""
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
    """Tracking errors of one pose.

    `along` and `across` are robot minus reference, m: along the heading of the reference (negative
    if the robot is late) and to its left. `yaw` is REFERENCE MINUS ROBOT, as in [Cesenek2019],
    rad, wrapped to [-pi, pi].
    """

    along: float
    across: float
    yaw: float

    @property
    def distance(self) -> float:
        """Distance from the reference to the robot, m."""
        return math.hypot(self.along, self.across)


def tracking_error(target: Pose, actual: Pose) -> TrackingError:
    """Return the tracking error of one pose."""
    offset = relative(target, actual)
    return TrackingError(offset.x, offset.y, -offset.heading)


@dataclasses.dataclass(frozen=True)
class ErrorStatistics:
    """Mean, root mean square and maximum of the magnitude of an error."""

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
    """Tracking errors over a drive, `(n,)` each [s, m, rad]; see `TrackingError` for signs."""

    time: FloatArray
    along: FloatArray
    across: FloatArray
    distance: FloatArray
    yaw: FloatArray

    @classmethod
    def of(cls, reference: ReferenceMotion, time: FloatArray, poses: FloatArray) -> TrackingErrors:
        """Return the errors of poses `(n, 3)` (x, y, heading) at `time` `(n,)` s."""
        targets = reference.poses(time).tolist()
        errors = [
            tracking_error(Pose(*target), Pose(*pose))
            for target, pose in zip(targets, poses.tolist(), strict=True)
        ]
        table = np.array(errors).reshape(-1, 3)
        distance = np.hypot(table[:, 0], table[:, 1])
        return cls(time, table[:, 0], table[:, 1], distance, table[:, 2])

    def statistics(self) -> dict[str, ErrorStatistics]:
        """Return the statistics of distance, along and across [m] and yaw [rad]."""
        names = ('distance', 'along', 'across', 'yaw')
        return {name: ErrorStatistics.of(getattr(self, name)) for name in names}
