# SPDX-License-Identifier: Apache-2.0
"""The motion of a body at one time, asked quantity by quantity as GTSAM's Scenario is."""

from __future__ import annotations

import numpy as np

from sim_sensors import rotations
from sim_sensors.measurements import FloatArray
from sim_sensors.nav_state import NavState
from sim_sensors.trajectory import Motion

__all__ = ['PointQueries']


class PointQueries(Motion):
    """Adds GTSAM's names to whatever is a `Motion`: each method is one row of `at`.

    Suffixes: `_n` components in the world (navigation frame), `_b` in the body. Each method raises
    `MotionError` for a time outside the motion.
    """

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
