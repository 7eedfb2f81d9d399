# SPDX-License-Identifier: Apache-2.0
"""Motions in space with a closed form: constant twist, constant acceleration, swaying by hand.

They are ConstantTwistScenario and AcceleratingScenario of [GTSAM], with the same meaning of every
parameter, and exact at any time.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.motion.nav_state import PointQueries
from sim_sensors.motion.scenarios import TimedMotion
from sim_sensors.motion.trajectory import Trajectory, times_within


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


# A body that is turned and swayed to and fro, as by hand, in closed form.


@dataclasses.dataclass(frozen=True)
class Swaying(TimedMotion, PointQueries):
    """Swings about three axes and sways along three, each with a sine of its own.

    p(t) = p0 + A sin(2 pi f t), R(t) = R0 Exp(phi(t)), phi(t) = B sin(2 pi g t); velocities and
    accelerations are their exact derivatives. Frequencies without a common multiple keep the
    motion from repeating itself.
    """

    kind = 'swaying'
    position: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), 'm', 'Mean position.')
    rpy: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'rad', 'Mean attitude: roll, pitch, yaw.'
    )
    swing: tuple[float, float, float] = parameter(
        (0.35, 0.2, 0.25), 'rad', 'Amplitudes of the rotation vector from the mean attitude.'
    )
    swing_frequency: tuple[float, float, float] = parameter(
        (0.31, 0.23, 0.17), 'Hz', 'Its frequencies.', minimum=0.0
    )
    sway: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), 'm', 'Amplitudes of the position, along the axes of the world.'
    )
    sway_frequency: tuple[float, float, float] = parameter(
        (0.19, 0.29, 0.37), 'Hz', 'Its frequencies.', minimum=0.0
    )

    def at(self, times: ArrayLike) -> Trajectory:
        """Motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside 0 .. `duration`.
        """
        t = times_within(times, self.start, self.end)
        swung = _sines(t, np.array(self.swing), np.array(self.swing_frequency))
        swayed = _sines(t, np.array(self.sway), np.array(self.sway_frequency))
        rate, acceleration = rotations.body_rates(swung)
        mean = np.tile(mounting_quaternion(self.rpy), (len(t), 1))
        return Trajectory(
            t,
            np.array(self.position) + swayed[0],
            rotations.multiply(mean, rotations.exp(swung[0])),
            swayed[1],
            rate,
            swayed[2],
            acceleration,
        )


def _sines(t: FloatArray, amplitude: FloatArray, frequency: FloatArray) -> rotations.Curve:
    w = 2.0 * np.pi * frequency
    phase = t[:, None] * w
    sine = amplitude * np.sin(phase)
    return sine, amplitude * w * np.cos(phase), -w * w * sine
