# SPDX-License-Identifier: Apache-2.0
"""The motion that waypoints ask for: pose, speed and yaw rate at any time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from sim_sensors.errors import MotionError
from sim_sensors.measurements import FloatArray
from sim_sensors.planar import Pose, advance, twist_between
from sim_sensors.waypoint_table import Waypoints

__all__ = ['INTERPOLATIONS', 'ReferenceMotion', 'ReferenceState']

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

    Parameters
    ----------
    waypoints : Waypoints
    interpolation : {'spline', 'twist'}

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
        rows = zip(
            waypoints.x.tolist(), waypoints.y.tolist(), waypoints.heading.tolist(), strict=True
        )
        self._poses = [Pose(*row) for row in rows]
        self._spline = None
        if interpolation == 'spline':
            columns = np.column_stack([waypoints.x, waypoints.y, waypoints.heading])
            self._spline = CubicSpline(waypoints.time, columns)
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
            poses: FloatArray = self._spline(np.clip(times, 0.0, self.end))
            return poses
        return np.array([self.at(time).pose for time in times.tolist()]).reshape(-1, 3)

    @property
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
