# SPDX-License-Identifier: Apache-2.0
"""Motion from a table of poses, rates, velocities and accelerations (DiscreteScenario)."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.nav_state import PointQueries
from sim_sensors.motion.trajectory import Trajectory, times_within

_COLUMNS = (
    't', 'q_w', 'q_x', 'q_y', 'q_z', 'v_x', 'v_y', 'v_z', 'p_x', 'p_y', 'p_z', 'w_x', 'w_y', 'w_z',
    'a_x', 'a_y', 'a_z',
)  # fmt: skip


class DiscreteScenario(PointQueries):
    """A table of motion, made continuous.

    By default positions and attitudes are joined by quintics through all values of both rows
    around a time, so that velocity is the derivative of position and so on at every time (see
    `Trajectory.at`); the angular accelerations at the rows, which the table lacks, are
    three-point differences of its rates. As upstream, each column is interpolated for itself: pose
    along the screw between two rows, vectors along lines. A velocity is then not the derivative
    of the positions, and a preintegration misses by O(h^2) for rows h apart.

    Parameters
    ----------
    times : (n,) s
        Strictly increasing, n >= 2.
    positions : (n, 3) m
        World.
    orientations : (n, 4)
        Quaternions x y z w, body to world.
    angular_velocities_b : (n, 3) rad/s
        Body.
    velocities_n : (n, 3) m/s
        World.
    accelerations_n : (n, 3) m/s^2
        World, without gravity.
    as_upstream : bool
        Interpolate as GTSAM does.
    where : str
        For messages.

    Raises
    ------
    MotionError
        For wrong shapes, fewer than two rows, values that are not finite, times that do not
        increase, or quaternions that are not of unit norm to 1e-6.
    """

    def __init__(
        self,
        times: ArrayLike,
        positions: ArrayLike,
        orientations: ArrayLike,
        angular_velocities_b: ArrayLike,
        velocities_n: ArrayLike,
        accelerations_n: ArrayLike,
        *,
        as_upstream: bool = False,
        where: str = 'discrete scenario',
    ) -> None:
        time = np.array(times, dtype=np.float64)
        if time.ndim != 1 or len(time) < 2:
            raise MotionError(f'{where}: has {time.size} rows; must be >= 2')
        _check_increasing(time, where)
        rate = np.array(angular_velocities_b, dtype=np.float64)
        if rate.shape != (len(time), 3):
            raise MotionError(
                f'{where}: angular velocities have shape {rate.shape}, must be {(len(time), 3)}'
            )
        edge = 2 if len(time) > 2 else 1
        growth = np.gradient(rate, time, axis=0, edge_order=edge)  # type: ignore[call-overload]
        try:
            self._rows = Trajectory(
                time,
                np.array(positions, dtype=np.float64),
                np.array(orientations, dtype=np.float64),
                np.array(velocities_n, dtype=np.float64),
                rate,
                np.array(accelerations_n, dtype=np.float64),
                np.asarray(growth),
            )
        except MotionError as error:
            raise MotionError(f'{where}: {error}') from None
        self.as_upstream = as_upstream

    @classmethod
    def from_csv(cls, path: str | Path, *, as_upstream: bool = False) -> DiscreteScenario:
        """Read a table with the columns of GTSAM's FromCSV; the first time becomes 0.

        t, q_w, q_x, q_y, q_z, v_x, v_y, v_z, p_x, p_y, p_z, w_x, w_y, w_z, a_x, a_y, a_z, in any
        order, SI units; others are ignored.

        Raises
        ------
        MotionError
            Naming the file and what is wrong in it.
        """
        table = _read(Path(path))
        column = {name: table[:, i] for i, name in enumerate(_COLUMNS)}
        # Here, where the times are those of the file.
        _check_increasing(column['t'], str(path))

        def vector(letter: str, axes: str = 'xyz') -> FloatArray:
            return np.column_stack([column[f'{letter}_{axis}'] for axis in axes])

        return cls(
            column['t'] - column['t'][0],
            vector('p'),
            vector('q', 'xyzw'),
            vector('w'),
            vector('v'),
            vector('a'),
            as_upstream=as_upstream,
            where=str(path),
        )

    @property
    def start(self) -> float:
        """First time, s."""
        return self._rows.start

    @property
    def end(self) -> float:
        """Last time, s."""
        return self._rows.end

    def duration(self) -> float:
        """Return the time from the first row to the last, s."""
        return self.end - self.start

    def at(self, times: ArrayLike) -> Trajectory:
        """Motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside the table.
        """
        if not self.as_upstream:
            return self._rows.at(times)
        t = times_within(times, self.start, self.end)
        rows = self._rows
        k = np.clip(np.searchsorted(rows.time, t, side='right') - 1, 0, len(rows) - 2)
        h = (rows.time[k + 1] - rows.time[k])[:, None]
        s = (t - rows.time[k])[:, None] / h

        def line(values: FloatArray) -> FloatArray:
            return values[k] + s * (values[k + 1] - values[k])

        first = rows.orientation[k]
        turn = rotations.between(first, rows.orientation[k + 1])
        way = rotations.rotate_back(first, rows.position[k + 1] - rows.position[k])
        # The screw from one pose to the next has the constant velocity u with Jl(turn) u = way;
        # after a part s of it, the way is Jl(s turn) s u.
        velocity, _ = rotations.end_derivatives(-turn, way)
        gone, _ = rotations.body_rates((-s * turn, s * velocity, np.zeros_like(turn)))
        return Trajectory(
            t,
            rows.position[k] + rotations.rotate(first, gone),
            rotations.multiply(first, rotations.exp(s * turn)),
            line(rows.velocity),
            line(rows.angular_velocity),
            line(rows.acceleration),
            (rows.angular_velocity[k + 1] - rows.angular_velocity[k]) / h,
        )


def _check_increasing(time: FloatArray, where: str) -> None:
    late = np.flatnonzero(~(np.diff(time) > 0.0))
    if len(late):
        raise MotionError(
            f'{where}: time {time[late[0] + 1]:.9g} s comes after {time[late[0]]:.9g} s; must '
            'increase strictly'
        )


def _read(path: Path) -> FloatArray:
    """Return the columns of a table in the order of _COLUMNS, `(n, 17)`."""
    try:
        with path.open(encoding='utf-8-sig', newline='') as file:
            lines = csv.reader(file)
            header = [name.strip().removeprefix('#').strip() for name in next(lines, [])]
            missing = [name for name in _COLUMNS if name not in header]
            if missing:
                raise MotionError(
                    f'{path}: has no column {", ".join(missing)}; must have {", ".join(_COLUMNS)}'
                )
            place = [header.index(name) for name in _COLUMNS]
            rows = [_numbers(row, place, f'{path}: line {lines.line_num}') for row in lines if row]
    except OSError as error:
        raise MotionError(f'{path}: {error.strerror}; must be a CSV file') from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise MotionError(f'{path}: {error}; must be a CSV file') from None
    if len(rows) < 2:
        raise MotionError(f'{path}: has {len(rows)} rows; must be >= 2')
    return np.array(rows)


def _numbers(row: list[str], place: list[int], where: str) -> list[float]:
    if len(row) <= max(place):
        raise MotionError(f'{where}: has {len(row)} columns; must be as many as names above')
    try:
        numbers = [float(row[i]) for i in place]
    except ValueError as error:
        raise MotionError(f'{where}: {error}; must be a number') from None
    if not all(map(math.isfinite, numbers)):
        raise MotionError(f'{where}: has a value that is not finite; must be a number')
    return numbers
