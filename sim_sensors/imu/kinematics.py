# SPDX-License-Identifier: Apache-2.0
"""The measurement of an IMU without errors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.shared_parameters import mounting_quaternion

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory


@dataclasses.dataclass(frozen=True, eq=False)
class IdealMeasurement:
    """True signals at an IMU.

    `orientation` `(n, 4)` is a quaternion x y z w, sensor to world (ENU); `rate` `(n, 3)` rad/s
    and specific force `(n, 3)` m/s^2 are in the sensor frame.
    """

    orientation: FloatArray
    rate: FloatArray
    force: FloatArray


class Kinematics(Protocol):
    """Computes the ideal measurement of the IMU from the motion of the body; may hold state."""

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return the signals at the times of `truth`, which follow those before at intervals `dt`
        `(n,)` s.
        """


class ExactKinematics:
    """rate = M^T w, force = M^T R^T (a_s - g), as [Ligorio2015], equation 4; it has no state.

    `lever_arm` `(3,)` m and `mounting_rpy` `(3,)` rad place the IMU in the body; `gravity`, m/s^2,
    is that of the simulated world.
    """

    def __init__(self, lever_arm: ArrayLike, mounting_rpy: ArrayLike, gravity: float) -> None:
        self._lever_arm = np.asarray(lever_arm, dtype=np.float64)
        self._mounting = mounting_quaternion(mounting_rpy)
        self._gravity = gravity

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return what an exact IMU measures; `dt` is not used."""
        at_sensor = truth.at_lever_arm(self._lever_arm)
        return IdealMeasurement(
            orientation=rotations.multiply(at_sensor.orientation, self._mounting),
            rate=rotations.rotate_back(self._mounting, at_sensor.angular_velocity),
            force=rotations.rotate_back(self._mounting, at_sensor.specific_force(self._gravity)),
        )


class WorldAxes:
    """Chrono's accelerometer: the acceleration in *world* axes plus gravity turned the wrong way,
    force = a_s + R (0, 0, g); neither triad is turned by the mounting ([Chrono] ChIMUSensor).

    For a level vehicle gravity is right and the horizontal acceleration turns with the heading.
    """

    def __init__(self, lever_arm: ArrayLike, gravity: float) -> None:
        self._lever_arm = np.asarray(lever_arm, dtype=np.float64)
        self._gravity = gravity

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return what Chrono's IMU measures; `dt` is not used."""
        at_sensor = truth.at_lever_arm(self._lever_arm)
        up = np.zeros_like(at_sensor.acceleration)
        up[:, 2] = self._gravity
        return IdealMeasurement(
            orientation=at_sensor.orientation,
            rate=at_sensor.angular_velocity,
            force=at_sensor.acceleration + rotations.rotate(at_sensor.orientation, up),
        )


class BackwardDifference:
    """GazeboRosIMU of Gazebo classic: world vectors turned by R instead of its transpose, with
    R = mounting attitude, the mounting thus about the world's axes and not the body's; the
    acceleration as backward difference of the velocity, no gravity, the lever arm ignored
    ([GazeboRos] gazebo_ros_imu). The first acceleration, which has no velocity before it, is 0.
    """

    def __init__(self, mounting_rpy: ArrayLike) -> None:
        self._mounting = mounting_quaternion(mounting_rpy)
        self._velocity: FloatArray | None = None

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return what the plugin measures."""
        orientation = rotations.multiply(self._mounting, truth.orientation)
        before = np.empty_like(truth.velocity)
        if len(before):
            before[0] = truth.velocity[0] if self._velocity is None else self._velocity
            before[1:] = truth.velocity[:-1]
            self._velocity = truth.velocity[-1].copy()
        rate = rotations.rotate(truth.orientation, truth.angular_velocity)
        return IdealMeasurement(
            orientation=orientation,
            rate=rotations.rotate(orientation, rate),
            force=rotations.rotate(orientation, (truth.velocity - before) / dt[:, None]),
        )


class SecondDifference(ExactKinematics):
    """CARLA's accelerometer: the second derivative of the parabola through the latest three
    positions, plus gravity, turned into the sensor.

    Before the first sample both earlier positions are the origin and the step is huge, so that
    the first sample has no acceleration and the second has about -position / dt^2 in it
    ([CARLA]). Rates and everything else are exact.
    """

    def __init__(self, lever_arm: ArrayLike, mounting_rpy: ArrayLike, gravity: float) -> None:
        super().__init__(lever_arm, mounting_rpy, gravity)
        self._positions = np.zeros((2, 3))
        self._step = float(np.finfo(np.float32).max)

    def ideal_measurement(self, truth: Trajectory, dt: FloatArray) -> IdealMeasurement:
        """Return what CARLA's IMU measures."""
        ideal = super().ideal_measurement(truth, dt)
        at_sensor = truth.at_lever_arm(self._lever_arm)
        y = np.concatenate([self._positions, at_sensor.position])
        h = np.concatenate([[self._step], dt])[:, None]
        if len(dt):
            self._positions, self._step = y[-2:].copy(), float(dt[-1])
        h1, h2 = h[1:], h[:-1]
        middle, oldest, newest = (
            y[1:-1] / (h1 * h2),
            y[:-2] / (h2 * (h1 + h2)),
            y[2:] / (h1 * (h1 + h2)),
        )
        force = 2.0 * (newest + oldest - middle)
        force[:, 2] += self._gravity
        body = rotations.rotate_back(at_sensor.orientation, force)
        return IdealMeasurement(
            ideal.orientation, ideal.rate, rotations.rotate_back(self._mounting, body)
        )
