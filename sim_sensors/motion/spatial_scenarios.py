# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motions in space: constant twist, constant acceleration, swaying, and tables of motion.

The first two and the last correspond to ConstantTwistScenario, AcceleratingScenario and
DiscreteScenario of [GTSAM], with the same meaning of every parameter. The first three are exact at
any time.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.config_files import read_columns
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.shared_parameters import Axes, axes, mounting_quaternion
from .scenarios import TimedMotion
from .trajectory import PointQueries, Trajectory, times_within


@dataclasses.dataclass(frozen=True)
class RigidScenario(TimedMotion, PointQueries):
    """Base of motions with constant angular velocity: duration and initial pose."""

    position: Axes = axes('m', 'Initial position.')
    rpy: Axes = axes('rad', 'Initial attitude: roll, pitch, yaw.')
    angular_velocity: Axes = axes('rad/s', 'Constant angular velocity, in the body.')

    def _turn(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the initial attitude and the attitude at times, `(n, 4)` each."""
        first = np.tile(mounting_quaternion(self.rpy), (len(t), 1))
        angle = t[:, None] * np.array(self.angular_velocity)
        return first, rotations.multiply(first, rotations.exp(angle))


@dataclasses.dataclass(frozen=True)
class ConstantTwist(RigidScenario):
    """Screw motion: angular and linear velocity are constant in the body.

    T(t) = T0 Exp([w; v] t), a_n = R (w x v).
    """

    kind = 'constant_twist'
    velocity: Axes = axes('m/s', 'Constant velocity, in the body.', (1.0, 0.0, 0.0))

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s; see `TimedMotion.at`."""
        t = times_within(times, self.start, self.end)
        first, orientation = self._turn(t)
        v = np.tile(self.velocity, (len(t), 1))
        w = np.tile(self.angular_velocity, (len(t), 1))
        # The integral of Exp(w s) v from 0 to t is the left Jacobian of w t times v t. It equals
        # the right Jacobian of -w t, which `body_rates` applies.
        way, _ = rotations.body_rates((-t[:, None] * w, t[:, None] * v, np.zeros_like(v)))
        return Trajectory(
            t,
            np.array(self.position) + rotations.rotate(first, way),
            orientation,
            rotations.rotate(orientation, v),
            w,
            rotations.rotate(orientation, rotations.cross(w, v)),
            np.zeros_like(w),
        )


@dataclasses.dataclass(frozen=True)
class Accelerating(RigidScenario):
    """Constant acceleration in the world and constant angular velocity in the body.

    R(t) = R0 Exp(w t), p = p0 + v0 t + a t^2 / 2.
    """

    kind = 'accelerating'
    velocity: Axes = axes('m/s', 'Initial velocity, in the world.')
    acceleration: Axes = axes('m/s^2', 'Constant acceleration, in the world.', (0.5, 0.0, 0.0))

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s; see `TimedMotion.at`."""
        t = times_within(times, self.start, self.end)
        _, orientation = self._turn(t)
        a = np.tile(self.acceleration, (len(t), 1))
        v = np.array(self.velocity)
        s = t[:, None]
        return Trajectory(
            t,
            np.array(self.position) + s * (v + 0.5 * s * a),
            orientation,
            v + s * a,
            np.tile(self.angular_velocity, (len(t), 1)),
            a,
            np.zeros_like(a),
        )


@dataclasses.dataclass(frozen=True)
class Swaying(TimedMotion, PointQueries):
    """Sinusoidal rotation about three axes and translation along three axes.

    p(t) = p0 + A sin(2 pi f t), R(t) = R0 Exp(phi(t)), phi(t) = B sin(2 pi g t). Velocities and
    accelerations are exact derivatives. The motion does not repeat itself if the frequencies have
    no common multiple.
    """

    kind = 'swaying'
    position: Axes = axes('m', 'Mean position.')
    rpy: Axes = axes('rad', 'Mean attitude: roll, pitch, yaw.')
    swing: Axes = axes(
        'rad', 'Amplitudes of the rotation vector from the mean attitude.', (0.35, 0.2, 0.25)
    )
    swing_frequency: Axes = axes(
        'Hz', 'Frequencies of the swing.', (0.31, 0.23, 0.17), minimum=0.0
    )
    sway: Axes = axes('m', 'Amplitudes of the position, along the axes of the world.')
    sway_frequency: Axes = axes('Hz', 'Frequencies of the sway.', (0.19, 0.29, 0.37), minimum=0.0)

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s; see `TimedMotion.at`."""
        t = times_within(times, self.start, self.end)
        swung = _sines(t, np.array(self.swing), np.array(self.swing_frequency))
        way, velocity, change = _sines(t, np.array(self.sway), np.array(self.sway_frequency))
        mean = np.tile(mounting_quaternion(self.rpy), (len(t), 1))
        return Trajectory.along(t, (np.array(self.position) + way, velocity, change), mean, swung)


@dataclasses.dataclass(frozen=True)
class HandHeld(Swaying):
    """`Swaying` before the chessboard of [Ligorio2015], world `chessboard`.

    A camera without a mounting of its own sees all corners, from the side.
    """

    kind = 'hand_held'
    position: Axes = axes('m', 'Mean position.', (-0.2, 0.15, 0.08))
    rpy: Axes = axes('rad', 'Mean attitude: roll, pitch, yaw.', (0.0, 0.25, -0.64))


def _sines(t: FloatArray, amplitude: FloatArray, frequency: FloatArray) -> rotations.Curve:
    w = 2.0 * np.pi * frequency
    phase = t[:, None] * w
    sine = amplitude * np.sin(phase)
    return sine, amplitude * w * np.cos(phase), -w * w * sine


_COLUMNS = (
    't', 'q_w', 'q_x', 'q_y', 'q_z', 'v_x', 'v_y', 'v_z', 'p_x', 'p_y', 'p_z', 'w_x', 'w_y', 'w_z',
    'a_x', 'a_y', 'a_z',
)  # fmt: skip


class DiscreteScenario(PointQueries):
    """Continuous motion through a table of motion.

    By default quintics join all values of the two rows around a time, so velocity is the exact
    derivative of position, and so on (see `Trajectory.at`). The angular accelerations at the rows
    are three-point differences of the rates. With `as_upstream`, each column is interpolated
    separately: poses along the screw between two rows, vectors linearly. Velocity is then not the
    derivative of position, and a preintegration is wrong by O(h^2) for rows h apart.

    Parameters
    ----------
    times : (n,) float
        s, strictly increasing, n >= 2.
    positions : (n, 3) float
        m, world.
    orientations : (n, 4) float
        Unit quaternions x y z w, body to world.
    angular_velocities_b : (n, 3) float
        rad/s, body.
    velocities_n, accelerations_n : (n, 3) float
        m/s and m/s^2, world, without gravity.
    as_upstream : bool
        Interpolate as GTSAM does.
    where : str
        Name of the source in messages.

    Raises
    ------
    MotionError
        For wrong shapes, fewer than two rows, values that are not finite, times that do not
        increase, or quaternions whose norm differs from 1 by more than 1e-6.
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
        columns = (positions, orientations, velocities_n, accelerations_n)
        p, q, v, a = (np.array(column, dtype=np.float64) for column in columns)
        try:
            self._rows = Trajectory(time, p, q, v, rate, a, np.asarray(growth))
        except MotionError as error:
            raise MotionError(f'{where}: {error}') from None
        self.as_upstream = as_upstream
        self.start, self.end = self._rows.start, self._rows.end

    @classmethod
    def from_csv(cls, path: str | Path, *, as_upstream: bool = False) -> DiscreteScenario:
        """Read a table with the columns of GTSAM's FromCSV; the first time becomes 0.

        The columns are t, q_w, q_x, q_y, q_z, v_x, v_y, v_z, p_x, p_y, p_z, w_x, w_y, w_z, a_x,
        a_y, a_z, in any order and SI units; others are ignored.

        Raises MotionError, which names the file and the defect.
        """
        column = read_columns(Path(path), _COLUMNS)
        # Checked here, so that the message states the times of the file.
        _check_increasing(column['t'], str(path))

        def vector(letter: str, axes: str = 'xyz') -> FloatArray:
            return np.column_stack([column[f'{letter}_{axis}'] for axis in axes])

        return cls(
            column['t'] - column['t'][:1],
            vector('p'), vector('q', 'xyzw'), vector('w'), vector('v'), vector('a'),
            as_upstream=as_upstream,
            where=str(path),
        )  # fmt: skip

    def duration(self) -> float:
        """Return the time from the first row to the last, s."""
        return self.end - self.start

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order; see `Motion.at`."""
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
        turn = rotations.rotation_between(first, rows.orientation[k + 1])
        way = rotations.rotate_back(first, rows.position[k + 1] - rows.position[k])
        # The screw from one pose to the next has the constant velocity u, where Jl(turn) u = way.
        # After the share s of it, the displacement is Jl(s turn) s u.
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
