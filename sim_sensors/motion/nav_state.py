# SPDX-License-Identifier: Apache-2.0
"""Attitude, position and velocity at one time, and the queries of GTSAM's Scenario."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from .trajectory import Trajectory

States = tuple[FloatArray, FloatArray, FloatArray]
"""Orientations x y z w `(n, 4)`, positions and velocities `(n, 3)`."""


def local_coordinates(of: States, to: States) -> FloatArray:
    """Return the differences `(n, 9)` from n states to n others.

    [Log(R1^T R2), R1^T (p2 - p1), R1^T (v2 - v1)]: components in the body of the first, rad, m and
    m/s (NavState of [GTSAM]).
    """
    return np.hstack([
        rotations.between(of[0], to[0]),
        rotations.rotate_back(of[0], to[1] - of[1]),
        rotations.rotate_back(of[0], to[2] - of[2]),
    ])  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class NavState:
    """Attitude, position and velocity of a body.

    The orientation is a unit quaternion x y z w, body to world; position and velocity are `(3,)` m
    and m/s, world.

    Raises MotionError for wrong shapes, values that are not finite, or a quaternion whose norm is
    not 1 to 1e-6.
    """

    orientation: FloatArray
    position: FloatArray
    velocity: FloatArray

    def __post_init__(self) -> None:
        for name, length in (('orientation', 4), ('position', 3), ('velocity', 3)):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (length,) or not np.isfinite(array).all():
                raise MotionError(
                    f'state: {name} {getattr(self, name)!r} is not allowed; must be {length} '
                    'finite numbers'
                )
            object.__setattr__(self, name, array)
        norm = float(np.sqrt(np.sum(self.orientation**2)))
        if abs(norm - 1.0) > 1e-6:
            raise MotionError(f'state: orientation has norm {norm:.9g}, must be 1')
        object.__setattr__(self, 'orientation', self.orientation / norm)

    @property
    def rotation(self) -> FloatArray:
        """Matrix `(3, 3)`, body to world."""
        q = np.tile(self.orientation, (3, 1))
        return np.ascontiguousarray(rotations.rotate(q, np.eye(3)).T)

    @property
    def pose(self) -> FloatArray:
        """Matrix `(4, 4)`, body to world, m."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.rotation, self.position
        return pose

    def local_coordinates(self, other: NavState) -> FloatArray:
        """Return the difference to another state, `(9,)`: rotation, position, velocity, in the
        body of this one; see `local_coordinates`.
        """
        return np.asarray(local_coordinates(self._rows(), other._rows())[0])

    def retract(self, difference: ArrayLike) -> NavState:
        """Return the state at a difference `(9,)`; the inverse of `local_coordinates`."""
        xi = np.asarray(difference, dtype=np.float64)
        if xi.shape != (9,):
            raise MotionError(f'state: difference has shape {xi.shape}, must be (9,)')
        R = self.rotation
        turned = rotations.multiply(self.orientation[None], rotations.exp(xi[None, :3]))[0]
        return NavState(turned, self.position + R @ xi[3:6], self.velocity + R @ xi[6:])

    def _rows(self) -> States:
        return self.orientation[None], self.position[None], self.velocity[None]


class PointQueries(Protocol):
    """Mixin that adds GTSAM's queries to a `Motion`; each method returns one row of `at`.

    The suffix `_n` means components in the world (navigation frame), `_b` in the body. Each method
    raises `MotionError` for a time outside the motion.
    """

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s."""
        ...

    def nav_state(self, t: float) -> NavState:
        """Return attitude, position and velocity at `t` s."""
        now = self.at([t])
        return NavState(now.orientation[0], now.position[0], now.velocity[0])

    def rotation(self, t: float) -> FloatArray:
        """Return the matrix `(3, 3)` that takes body vectors to the world."""
        return self.nav_state(t).rotation

    def pose(self, t: float) -> FloatArray:
        """Return the matrix `(4, 4)` that takes points of the body to the world, m."""
        return self.nav_state(t).pose

    def omega_b(self, t: float) -> FloatArray:
        """Return the angular velocity, `(3,)` rad/s, body."""
        return np.asarray(self.at([t]).angular_velocity[0])

    def velocity_n(self, t: float) -> FloatArray:
        """Return the velocity, `(3,)` m/s, world."""
        return np.asarray(self.at([t]).velocity[0])

    def velocity_b(self, t: float) -> FloatArray:
        """Return the velocity, `(3,)` m/s, body."""
        now = self.at([t])
        return np.asarray(rotations.rotate_back(now.orientation, now.velocity)[0])

    def acceleration_n(self, t: float) -> FloatArray:
        """Return the acceleration without gravity, `(3,)` m/s^2, world."""
        return np.asarray(self.at([t]).acceleration[0])

    def acceleration_b(self, t: float) -> FloatArray:
        """Return the acceleration without gravity, `(3,)` m/s^2, body."""
        now = self.at([t])
        return np.asarray(rotations.rotate_back(now.orientation, now.acceleration)[0])
