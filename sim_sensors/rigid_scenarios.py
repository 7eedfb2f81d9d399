# SPDX-License-Identifier: Apache-2.0
"""Motions in space with a closed form: constant twist and constant acceleration.

They are ConstantTwistScenario and AcceleratingScenario of [GTSAM], with the same meaning of every
parameter, and exact at any time.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors import rotations
from sim_sensors.measurements import FloatArray
from sim_sensors.mounting import mounting_quaternion
from sim_sensors.parameters import parameter
from sim_sensors.point_queries import PointQueries
from sim_sensors.timed_motion import TimedMotion
from sim_sensors.trajectory import Trajectory, times_within

__all__ = ['RIGID_SCENARIOS', 'Accelerating', 'ConstantTwist', 'RigidScenario']


@dataclasses.dataclass(frozen=True)
class RigidScenario(TimedMotion, PointQueries):
    """Base of both: how long, and where from."""

    position: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), 'm', 'First position.')
    rpy: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'rad', 'First attitude: roll, pitch, yaw.'
    )
    angular_velocity: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'rad/s', 'Constant angular velocity, in the body.'
    )

    def _turn(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first attitude and that at times, `(n, 4)` each."""
        first = np.tile(mounting_quaternion(self.rpy), (len(t), 1))
        angle = t[:, None] * np.array(self.angular_velocity)
        return first, rotations.multiply(first, rotations.exp(angle))


@dataclasses.dataclass(frozen=True)
class ConstantTwist(RigidScenario):
    """Turns and moves at a rate and velocity that are constant in the body: a screw.

    T(t) = T0 Exp([w; v] t), a_n = R (w x v).
    """

    kind = 'constant_twist'
    velocity: tuple[float, float, float] = parameter(
        (1.0, 0.0, 0.0), 'm/s', 'Constant velocity, in the body.'
    )

    def at(self, times: ArrayLike) -> Trajectory:
        """Motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside 0 .. `duration`.
        """
        t = times_within(times, self.start, self.end)
        first, orientation = self._turn(t)
        v = np.tile(self.velocity, (len(t), 1))
        w = np.tile(self.angular_velocity, (len(t), 1))
        # The integral of Exp(w s) v from 0 to t is the left Jacobian of w t times v t; the left
        # one is the right one of -w t, which is what gives a body rate.
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
    """Accelerates evenly in the world while it turns at a constant rate.

    R(t) = R0 Exp(w t), p = p0 + v0 t + a t^2 / 2.
    """

    kind = 'accelerating'
    velocity: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'm/s', 'First velocity, in the world.'
    )
    acceleration: tuple[float, float, float] = parameter(
        (0.5, 0.0, 0.0), 'm/s^2', 'Constant acceleration, in the world.'
    )

    def at(self, times: ArrayLike) -> Trajectory:
        """Motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside 0 .. `duration`.
        """
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


RIGID_SCENARIOS: dict[str, type[RigidScenario]] = {
    scenario.kind: scenario for scenario in (ConstantTwist, Accelerating)
}
"""The scenarios in space by name."""
