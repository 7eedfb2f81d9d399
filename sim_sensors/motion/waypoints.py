# SPDX-License-Identifier: Apache-2.0
"""Motion along a smooth spline through waypoints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, make_interp_spline
from scipy.spatial.transform import Rotation, RotationSpline

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import Trajectory, times_within

Plane = tuple[FloatArray, FloatArray]
"""Components of vectors in a plane, `(n,)` each."""

_DEGREE = 5
_SLOWEST = 1e-3  # m/s of horizontal speed that a tangent needs to have a direction


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
        has no direction of travel. Without it the ends are free (not-a-knot).

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
        """Motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside `start` .. `end`.
        """
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
    q = np.asarray(orientations, dtype=np.float64)
    if q.shape != (len(times), 4):
        raise MotionError(f'waypoints: orientations of shape {q.shape}, must be {(len(times), 4)}')
    if not np.isfinite(q).all() or (np.linalg.norm(q, axis=1) < 1e-6).any():
        raise MotionError('waypoints: orientations must be finite quaternions of non-zero norm')
    return RotationSpline(times, Rotation.from_quat(q))


def _tangent(
    velocity: FloatArray, acceleration: FloatArray, jerk: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Orientation, body rate and its derivative of a body whose x axis is along the velocity.

    Yaw psi = atan2(vy, vx), pitch theta = -atan2(vz, vh) with vh the horizontal speed, no roll;
    w = (-psi' sin theta, theta', psi' cos theta). Primes by the quotient rule.
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
    """Angle of the plane vector v with derivatives a and j, and the derivatives of that angle."""
    square = v[0] * v[0] + v[1] * v[1]
    first = (v[0] * a[1] - v[1] * a[0]) / square
    growth = 2.0 * (v[0] * a[0] + v[1] * a[1]) / square
    second = (v[0] * j[1] - v[1] * j[0]) / square - first * growth
    return np.arctan2(v[1], v[0]), first, second
