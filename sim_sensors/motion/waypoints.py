# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Waypoints in the plane, checked, repaired and read from CSV, and splines through waypoints."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core import rotations
from sim_sensors.core.config_files import read_columns
from sim_sensors.core.errors import MotionError, Remark
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import LARGEST
from .course import course
from .planar import Pose
from .sampling import ahead_of_time
from .trajectory import LONGEST, Trajectory, times_within

if TYPE_CHECKING:
    from scipy.interpolate import BSpline
    from scipy.spatial.transform import RotationSpline

_GAP_FACTOR = 2.5
_FASTEST = 60.0  # m/s of a robot
Plane = tuple[FloatArray, FloatArray]
"""Components of vectors in a plane, `(n,)` each."""

_DEGREE = 5
_SLOWEST = 1e-3  # m/s of horizontal speed that a tangent needs to have a direction


@dataclasses.dataclass(frozen=True, eq=False)
class Waypoints:
    """Timed waypoints in the plane, `(n,)` each.

    Times are in s and increase strictly from 0. x and y are in m in the world, with the first
    point as the origin. Headings are in rad, from x to the left, unwrapped. The notes state
    repairs and defects. `origin` (x, y, time) is the original first point, m and s.
    """

    time: FloatArray
    x: FloatArray
    y: FloatArray
    heading: FloatArray
    notes: tuple[Remark, ...] = ()
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __len__(self) -> int:
        return len(self.time)

    def cut(self, start: float, duration: float) -> Waypoints:
        """Return the points within `duration` s from `start` s, moved to the origin.

        Raises MotionError if fewer than two points remain.
        """
        inside = (self.time >= start) & (self.time <= start + duration)
        table = np.column_stack([self.time, self.x, self.y, self.heading])[inside]
        if len(table) < 2:
            raise MotionError(
                f'{len(table)} waypoints from {start:g} s to {start + duration:g} s; must be >= 2 '
                f'(the path lasts {self.time[-1]:g} s)'
            )
        return _move_to_origin(table, self.notes, self.origin)

    def starting_at(self, pose: Pose) -> Waypoints:
        """Return the path moved and rotated as a whole so that it begins at a pose."""
        turn = pose.heading - float(self.heading[0])
        c, s = math.cos(turn), math.sin(turn)
        x, y = self.x - self.x[0], self.y - self.y[0]
        return dataclasses.replace(
            self, x=pose.x + c * x - s * y, y=pose.y + s * x + c * y, heading=self.heading + turn
        )


def repair_waypoints(
    time: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    heading: ArrayLike | None = None,
    *,
    where: str = 'waypoints',
) -> Waypoints:
    """Return waypoints without points that no robot can follow, moved to the origin.

    Removed are points with values that are not finite, single points whose time is ahead of the
    next three or more, points whose time does not increase, and single outliers (both steps to the
    point are faster than 60 m/s, the step past it is not). A permanent jump, and a gap of more
    than 2.5 times the median interval, are kept and noted.

    Columns are `(n,)`, in s, m and rad. The default heading is the course over ground, see
    `course`. `where` names the source in messages.

    Raises MotionError for wrong shapes, or if fewer than two points remain.
    """
    columns = (time, x, y) if heading is None else (time, x, y, heading)
    arrays = [np.asarray(array, dtype=np.float64) for array in columns]
    shape = arrays[0].shape
    if len(shape) != 1 or any(array.shape != shape for array in arrays):
        shapes = ', '.join(str(array.shape) for array in arrays)
        raise MotionError(f'{where}: columns have shapes {shapes}; must be alike, (n,)')
    table = np.column_stack(arrays)
    notes: list[Remark] = []

    def keep(mask: NDArray[np.bool_], problem: str) -> None:
        nonlocal table
        if not mask.all():
            text = f'{{count:d}} waypoints left out: {problem}'
            notes.append(Remark(text, count=int((~mask).sum())))
            table = table[mask]

    keep(np.all(np.abs(table) <= LARGEST, axis=1), 'not finite')
    keep(
        ~ahead_of_time(table[:, 0]), 'their times are later than those of all following waypoints'
    )
    latest = np.maximum.accumulate(np.concatenate([[-np.inf], table[:-1, 0]]))
    keep(np.logical_not(table[:, 0] < latest), 'their times go backwards')
    keep(
        np.greater(np.diff(table[:, 0], prepend=-np.inf), 0.0),
        'at the same time as the previous waypoint',
    )
    keep(~_find_outliers(table), f'faster than {_FASTEST:g} m/s from and to there')
    if len(table) < 2:
        raise MotionError(f'{where}: {len(table)} waypoints left; must be >= 2')
    if (span := table[-1, 0] - table[0, 0]) > LONGEST:
        raise MotionError(f'{where}: lasts {span:g} s; must be at most {LONGEST:g} s')
    steps = np.diff(table[:, 0])
    speeds = np.hypot(np.diff(table[:, 1]), np.diff(table[:, 2])) / steps
    for index in np.flatnonzero(speeds > _FASTEST)[:3]:
        text = 'a jump of the waypoints at {time:.2f} s requires {speed:.3g} m/s; kept'
        notes.append(Remark(text, time=table[index, 0] - table[0, 0], speed=speeds[index]))
    gaps = steps > _GAP_FACTOR * float(np.median(steps))
    if gaps.any():
        text = (
            '{gaps:d} gaps between waypoints, the longest {longest:.3g} s at {time:.2f} s; '
            'interpolated'
        )
        time_of = table[np.argmax(steps), 0] - table[0, 0]
        notes.append(Remark(text, gaps=int(gaps.sum()), longest=steps.max(), time=time_of))
    if heading is None:
        angle = course(table[:, 0], table[:, 1], table[:, 2])
        table = np.column_stack([table, angle])
    return _move_to_origin(table, tuple(notes))


def thin_samples(time: FloatArray, rate: float) -> NDArray[np.intp]:
    """Return the indices of the first sample of each `1/rate` s and of the last sample."""
    period = np.floor((time - time[0]) * rate + 1e-6)
    first = np.flatnonzero(np.diff(period, prepend=-1.0) > 0.0)
    last = len(time) - 1
    return first if first[-1] == last else np.append(first, last)


def read_waypoints(path: str | Path) -> Waypoints:
    """Read a CSV table with the columns t, x, y [s, m] and optionally theta [rad].

    Other columns are ignored. A `MotionError` names file, line, value and what is allowed.
    """
    table = read_columns(Path(path), ('t', 'x', 'y'), 'theta', finite=False)
    return repair_waypoints(
        table['t'], table['x'], table['y'], table.get('theta'), where=str(path)
    )


def _find_outliers(table: FloatArray) -> NDArray[np.bool_]:
    out = np.zeros(len(table), dtype=np.bool_)
    fast = np.hypot(np.diff(table[:, 1]), np.diff(table[:, 2])) > _FASTEST * np.diff(table[:, 0])
    past = table[2:] - table[:-2]
    out[1:-1] = fast[:-1] & fast[1:] & (np.hypot(past[:, 1], past[:, 2]) <= _FASTEST * past[:, 0])
    return out


def _move_to_origin(
    table: FloatArray,
    notes: tuple[Remark, ...],
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Waypoints:
    """Return waypoints with the first of the rows t, x, y, heading as the origin."""
    start, x, y, _ = table[0].tolist()
    angle = np.unwrap(table[:, 3])
    return Waypoints(
        table[:, 0] - start,
        table[:, 1] - x,
        table[:, 2] - y,
        angle - 2.0 * math.pi * np.round(angle[0] / (2.0 * math.pi)),
        notes,
        (origin[0] + x, origin[1] + y, origin[2] + start),
    )


class WaypointMotion:
    """Motion along the quintic spline through timed waypoints.

    Position has four continuous derivatives; velocity and acceleration are its exact derivatives.
    Orientation either follows the tangent (x axis along the velocity, y axis level: yaw and pitch
    from the velocity, no roll), with rates from the spline's derivatives, or is the scipy
    `RotationSpline` through given orientations (continuous angular acceleration).

    Parameters
    ----------
    times : (n,) s
        Strictly increasing; n >= 6, or n >= 2 with `rest_ends`.
    positions : (n, 3) m
        World.
    orientations : (n, 4), optional
        Quaternions x y z w, body to world; the tangent if absent.
    rest_ends : bool
        Start and stop at rest, without acceleration. This needs `orientations`, as a body at rest
        has no direction of travel. Otherwise the ends are free (not-a-knot).

    Attributes
    ----------
    start, end : float
        First and last time, s.

    Raises
    ------
    MotionError
        On wrong shapes, too few points, times that do not increase, values that are not finite,
        quaternions of no norm, or a path that has no direction somewhere.
    """

    def __init__(
        self,
        times: ArrayLike,
        positions: ArrayLike,
        orientations: ArrayLike | None = None,
        *,
        rest_ends: bool = False,
    ) -> None:
        from scipy.interpolate import make_interp_spline

        t = np.asarray(times, dtype=np.float64)
        p = np.asarray(positions, dtype=np.float64)
        least = 2 if rest_ends else _DEGREE + 1
        if t.ndim != 1 or len(t) < least:
            raise MotionError(f'waypoints: times of shape {t.shape}; at least {least} are needed')
        if p.shape != (len(t), 3):
            raise MotionError(f'waypoints: positions of shape {p.shape}, must be {(len(t), 3)}')
        if not (np.isfinite(t).all() and np.isfinite(p).all()):
            raise MotionError('waypoints: times or positions are not all finite')
        if (np.diff(t) <= 0.0).any():
            index = int(np.flatnonzero(np.diff(t) <= 0.0)[0]) + 1
            raise MotionError(f'waypoints: time {t[index]:g} s of point {index} does not increase')
        if rest_ends and orientations is None:
            raise MotionError('waypoints: rest at the ends needs orientations')
        still = [(1, np.zeros(3)), (2, np.zeros(3))]
        ends: Any = (still, still) if rest_ends else None  # scipy-stubs know the texts only
        self._spline: BSpline = make_interp_spline(t, p, k=_DEGREE, bc_type=ends)
        self._derivatives = [self._spline.derivative(order) for order in (1, 2, 3)]
        self.start, self.end = float(t[0]), float(t[-1])
        self._rotation = None if orientations is None else _rotation_spline(t, orientations)
        if self._rotation is None:
            self._check_direction(t)

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order; see `Motion.at`."""
        t = times_within(times, self.start, self.end)
        velocity, acceleration, jerk = (spline(t) for spline in self._derivatives)
        if self._rotation is None:
            attitude = _tangent(velocity, acceleration, jerk)
        elif len(t) == 0:
            attitude = np.zeros((0, 4)), np.zeros((0, 3)), np.zeros((0, 3))
        else:
            attitude = (self._rotation(t).as_quat(), self._rotation(t, 1), self._rotation(t, 2))
        orientation, rate, rate_change = attitude
        return Trajectory(
            t, self._spline(t), orientation, velocity, rate, acceleration, rate_change
        )

    def _check_direction(self, times: FloatArray) -> None:
        share = np.linspace(0.0, 1.0, 33)
        fine = (times[:-1, None] + np.diff(times)[:, None] * share).ravel()
        velocity = self._derivatives[0](fine)
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        if speed.min() < _SLOWEST:
            raise MotionError(
                f'waypoints: horizontal speed falls to {speed.min():.3g} m/s at '
                f'{fine[np.argmin(speed)]:.3g} s, so the tangent has no direction; must be >= '
                f'{_SLOWEST:g} m/s, or give orientations'
            )


def _rotation_spline(times: FloatArray, orientations: ArrayLike) -> RotationSpline:
    from scipy.spatial.transform import Rotation, RotationSpline

    q = np.asarray(orientations, dtype=np.float64)
    if q.shape != (len(times), 4):
        raise MotionError(f'waypoints: orientations of shape {q.shape}, must be {(len(times), 4)}')
    if not np.isfinite(q).all() or (np.linalg.norm(q, axis=1) < 1e-6).any():
        raise MotionError('waypoints: orientations must be finite quaternions of non-zero norm')
    return RotationSpline(times, Rotation.from_quat(q))


def _tangent(
    velocity: FloatArray, acceleration: FloatArray, jerk: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return orientation, body rate and its derivative of a body whose x axis is along the
    velocity.

    Yaw psi = atan2(vy, vx), pitch theta = -atan2(vz, vh) with the horizontal speed vh, and no
    roll. w = (-psi' sin theta, theta', psi' cos theta), with derivatives by the quotient rule.
    """
    vx, vy, vz = velocity.T
    ax, ay, az = acceleration.T
    jx, jy, jz = jerk.T
    vh = np.hypot(vx, vy)
    yaw, yaw1, yaw2 = _angle((vx, vy), (ax, ay), (jx, jy))
    ah = (vx * ax + vy * ay) / vh
    jh = (ax * ax + ay * ay + vx * jx + vy * jy - ah * ah) / vh
    climb, climb1, climb2 = _angle((vh, vz), (ah, az), (jh, jz))
    sine, cosine = np.sin(climb), np.cos(climb)
    zero = np.zeros_like(yaw)
    about_y = rotations.exp(np.column_stack([zero, -climb, zero]))
    orientation = rotations.multiply(rotations.from_heading(yaw), about_y)
    rate = np.column_stack([yaw1 * sine, -climb1, yaw1 * cosine])
    change = np.column_stack(
        [yaw2 * sine + yaw1 * climb1 * cosine, -climb2, yaw2 * cosine - yaw1 * climb1 * sine]
    )
    return orientation, rate, change


def _angle(v: Plane, a: Plane, j: Plane) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the angle of a plane vector v and its two derivatives, from v' = a and v'' = j."""
    square = v[0] * v[0] + v[1] * v[1]
    first = (v[0] * a[1] - v[1] * a[0]) / square
    growth = 2.0 * (v[0] * a[0] + v[1] * a[1]) / square
    second = (v[0] * j[1] - v[1] * j[0]) / square - first * growth
    return np.arctan2(v[1], v[0]), first, second
