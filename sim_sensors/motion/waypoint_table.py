# SPDX-License-Identifier: Apache-2.0
"""Waypoints in the plane: time, position and heading; checked, repaired, read from CSV."""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core.errors import MotionError, Remark
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.planar import Pose
from sim_sensors.motion.sampling import ahead_of_time

_GAP_FACTOR = 2.5
_COLUMNS = ('t', 'x', 'y', 'theta')


@dataclasses.dataclass(frozen=True, eq=False)
class Waypoints:
    """Where to be, and when.

    Attributes
    ----------
    time : (n,) s
        Strictly increasing, from 0.
    x, y : (n,) m
        World; the first point is the origin.
    heading : (n,) rad
        From x to the left, unwrapped.
    notes : tuple of Remark
        What was repaired, or should be known.
    origin : (x, y, time)
        Where and when the first point was before it was moved, m and s.
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
        """Return the points within `duration` s from `start` s, moved to the origin again.

        Raises
        ------
        MotionError
            When fewer than two are left.
        """
        inside = (self.time >= start) & (self.time <= start + duration)
        time, x, y = self.time[inside], self.x[inside], self.y[inside]
        if len(time) < 2:
            raise MotionError(
                f'{len(time)} waypoints from {start:g} s to {start + duration:g} s; must be >= 2 '
                f'(the path lasts {self.time[-1]:g} s)'
            )
        return _moved(time, x, y, self.heading[inside], self.notes, self.origin)

    def starting_at(self, pose: Pose) -> Waypoints:
        """Return the same path, moved and turned as a whole so that it begins at a pose."""
        turn = pose.heading - float(self.heading[0])
        c, s = math.cos(turn), math.sin(turn)
        x, y = self.x - self.x[0], self.y - self.y[0]
        return dataclasses.replace(
            self, x=pose.x + c * x - s * y, y=pose.y + s * x + c * y, heading=self.heading + turn
        )


def repaired_waypoints(
    time: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    heading: ArrayLike | None = None,
    *,
    where: str = 'waypoints',
    max_speed: float = 60.0,
    least_speed: float = 0.3,
) -> Waypoints:
    """Return waypoints without what no robot can follow, moved to the origin.

    Left out: points with values that are not finite, single ones with a time ahead of that of the
    next three or more, those with the time of one before or an earlier one, and single points that
    stick out (both steps to it faster than `max_speed`, the step past it not). A jump that stays,
    and a gap of more than 2.5 times the median interval, are kept and noted.

    Parameters
    ----------
    time, x, y : (n,) s, m
    heading : (n,) rad, optional
        Course over ground if absent, see `course`.
    where : str
        For messages.
    max_speed : float
        m/s.
    least_speed : float
        m/s, for the course.

    Raises
    ------
    MotionError
        On wrong shapes, or when fewer than two points are left.
    """
    given = [np.asarray(array, dtype=np.float64) for array in (time, x, y)]
    if heading is not None:
        given.append(np.asarray(heading, dtype=np.float64))
    shape = given[0].shape
    if len(shape) != 1 or any(array.shape != shape for array in given):
        shapes = ', '.join(str(array.shape) for array in given)
        raise MotionError(f'{where}: columns have shapes {shapes}; must be alike, (n,)')
    table = np.column_stack(given)
    notes: list[Remark] = []

    def keep(mask: NDArray[np.bool_], problem: str) -> None:
        nonlocal table
        if not mask.all():
            text = f'{{count:d}} waypoints left out: {problem}'
            notes.append(Remark(text, count=int((~mask).sum())))
            table = table[mask]

    keep(np.all(np.isfinite(table), axis=1), 'not finite')
    keep(~ahead_of_time(table[:, 0]), 'their time is ahead of that of all the next')
    latest = np.maximum.accumulate(np.concatenate([[-np.inf], table[:-1, 0]]))
    keep(np.logical_not(table[:, 0] < latest), 'their time goes back')
    keep(np.greater(np.diff(table[:, 0], prepend=-np.inf), 0.0), 'at the time of the one before')
    keep(~_sticking_out(table, max_speed), f'faster than {max_speed:g} m/s from and to there')
    if len(table) < 2:
        raise MotionError(f'{where}: {len(table)} waypoints left; must be >= 2')
    steps = np.diff(table[:, 0])
    speeds = np.hypot(np.diff(table[:, 1]), np.diff(table[:, 2])) / steps
    for index in np.flatnonzero(speeds > max_speed)[:3]:
        text = 'a jump of the waypoints at {time:.2f} s asks for {speed:.3g} m/s; kept'
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
        angle = course(table[:, 0], table[:, 1], table[:, 2], least_speed=least_speed)
    else:
        angle = table[:, 3]
    return _moved(table[:, 0], table[:, 1], table[:, 2], angle, tuple(notes), (0.0, 0.0, 0.0))


def course(
    time: FloatArray, x: FloatArray, y: FloatArray, *, least_speed: float = 0.3
) -> FloatArray:
    """Return the course over ground, rad, unwrapped, from central differences.

    Slower than `least_speed` the course of the latest faster point is held (of the first one,
    before it; 0 where there is none): at rest the differences are noise. A robot that drives
    backward has this course but not this heading.
    """
    vx, vy = np.gradient(x, time), np.gradient(y, time)
    moving = np.flatnonzero(np.hypot(vx, vy) >= least_speed)
    if not len(moving):
        return np.zeros_like(x)
    latest = np.clip(np.searchsorted(moving, np.arange(len(x)), side='right') - 1, 0, None)
    return np.unwrap(np.arctan2(vy, vx)[moving[latest]])


def thinned(time: FloatArray, rate: float) -> NDArray[np.intp]:
    """Return the indices of the first sample in each period of `1/rate` s, and of the last."""
    period = np.floor((time - time[0]) * rate + 1e-6)
    first = np.flatnonzero(np.diff(period, prepend=-1.0) > 0.0)
    last = len(time) - 1
    return first if first[-1] == last else np.append(first, last)


def read_waypoints(path: str | Path) -> Waypoints:
    """Read a CSV table with the columns t, x, y [s, m] and perhaps theta [rad]; others are left.

    Raises
    ------
    MotionError
        Naming file, line, value and what is allowed.
    """
    path = Path(path)
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MotionError(f'{path}: cannot be read as CSV: {error}') from None
    header = [name.strip() for name in rows[0]] if rows else []
    if missing := [name for name in _COLUMNS[:3] if name not in header]:
        raise MotionError(
            f'{path}: no column {", ".join(missing)}; must begin with a header t,x,y[,theta]'
        )
    names = [name for name in _COLUMNS if name in header]
    columns: list[list[float]] = [[] for _ in names]
    for line, row in enumerate(rows[1:], 2):
        if not row:
            continue
        for name, column in zip(names, columns, strict=True):
            place = header.index(name)
            text = row[place] if place < len(row) else ''
            try:
                column.append(float(text))
            except ValueError:
                raise MotionError(
                    f'{path}: line {line}: {name} {text!r} is not allowed; must be a number'
                ) from None
    time, x, y = (np.array(column) for column in columns[:3])
    theta = np.array(columns[3]) if len(names) == 4 else None
    return repaired_waypoints(time, x, y, theta, where=str(path))


def _sticking_out(table: FloatArray, max_speed: float) -> NDArray[np.bool_]:
    out = np.zeros(len(table), dtype=np.bool_)
    if len(table) < 3:
        return out
    fast = np.hypot(np.diff(table[:, 1]), np.diff(table[:, 2])) > max_speed * np.diff(table[:, 0])
    past = table[2:] - table[:-2]
    out[1:-1] = fast[:-1] & fast[1:] & (np.hypot(past[:, 1], past[:, 2]) <= max_speed * past[:, 0])
    return out


def _moved(
    time: FloatArray,
    x: FloatArray,
    y: FloatArray,
    heading: FloatArray,
    notes: tuple[Remark, ...],
    origin: tuple[float, float, float],
) -> Waypoints:
    angle = np.unwrap(heading)
    angle = angle - 2.0 * math.pi * np.round(angle[0] / (2.0 * math.pi))
    first = (float(x[0]), float(y[0]), float(time[0]))
    return Waypoints(
        time - first[2],
        x - first[0],
        y - first[1],
        angle,
        notes,
        (origin[0] + first[0], origin[1] + first[1], origin[2] + first[2]),
    )
