# SPDX-License-Identifier: Apache-2.0
"""Errors of wheel odometry that are drawn once: radii of the wheels, zeros of their steering.

What stays adds up along the way, not as white noise does: after n equal steps on a line it is off
by n times that of one, white noise by sqrt(n) times. It also bends the way: one wrong zero of the
steering spreads the poses that are possible over an arc, whose sagitta, of second order, is soon
larger than all that changes from step to step. First order would call it zero.

So poses are walked for some robots that differ in their constants. To one who knows the law alone,
each may be the true one. With a step as told s, less its means, and c_i its derivative by constant
i times the standard deviation of that, robot j makes the steps

    s + sum of c_i x_ij

x_j being points with weights w_j that have the moments of the constants to the fourth
(`sim_sensors.cubature`). What the pose as told, p, is off by, squared, is on average

    sum of w_j (p - p_j) (p - p_j)'

which holds the means and the second order of the bends. In a single step it is the sum of
c_i c_i', constant or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim_sensors.cubature import points_of
from sim_sensors.measurements import FloatArray
from sim_sensors.planar_steps import squares_about
from sim_sensors.seeding import stream

if TYPE_CHECKING:
    from sim_sensors.wheel_odometry import WheelOdometryModel

__all__ = ['WheelConstants']

# Fourth moments of laws of variance 1; that of whole degrees within 4 is 1.76.
_NORMAL, _UNIFORM = 3.0, 1.8


class WheelConstants:
    """The errors of one robot's wheels that stay, and what they have done to its pose.

    Parameters
    ----------
    model : WheelOdometryModel
        Their laws.
    seed, run, sensor
        Labels of their random streams; see `sim_sensors.seeding.stream`.

    Attributes
    ----------
    radius_errors : (wheels,) float
        Relative error of the radius of each wheel.
    steering_offsets : (steered,) float
        Error of each measured steering angle, rad.
    """

    def __init__(self, model: WheelOdometryModel, seed: int, run: str, sensor: str) -> None:
        drive, steering = model.drive, model.steering_offset
        normals = stream(seed, run, sensor, 'wheel_radius').standard_normal(drive.wheels)
        self.radius_errors: FloatArray = model.radius_error * normals
        self.steering_offsets = steering.draw(seed, run, sensor, drive.steered)
        # Those that are not zero by their law: first the radii, then the steering.
        radii = drive.wheels if model.radius_error > 0.0 else 0
        angles = drive.steered if steering.bound > 0.0 else 0
        self._radii = radii
        self._drawn = slice(drive.wheels - radii, drive.wheels + angles)
        self._deviations: FloatArray = np.repeat(
            [model.radius_error, np.sqrt(steering.variance)], [radii, angles]
        )
        self._points, self._weights = points_of([_NORMAL] * radii + [_UNIFORM] * angles)
        # Of robots with constants of these points.
        self._poses: FloatArray = np.zeros((len(self._weights), 3))

    def start_at(self, pose: FloatArray) -> None:
        """Begin at `pose`, `(3,)`, whatever the constants."""
        self._poses[:] = pose

    def step_changes(self, travels: FloatArray, derivatives: FloatArray) -> FloatArray:
        """Return what a standard deviation of each does to steps, `(n, 3, m)`.

        `m` is the number of those that are not zero by their law.

        Parameters
        ----------
        travels : (n, wheels)
            As told, m: of these a radius is the factor.
        derivatives : (n, 3, wheels + steered)
            Of the steps by travels, then angles; see `sim_sensors.wheel_drives`.
        """
        changes: FloatArray = derivatives[:, :, self._drawn] * self._deviations
        if self._radii:
            changes[:, :, : self._radii] *= travels[:, None, :]
        return changes

    def squares(self, poses: FloatArray, steps: FloatArray, changes: FloatArray) -> FloatArray:
        """Return the mean squares of the errors that stay in the next poses, `(n, 3, 3)`.

        Parameters
        ----------
        poses : (n, 3)
            As told, after each step.
        steps : (n, 3)
            As told, less the means.
        changes : (n, 3, m)
            Of the steps; see `step_changes`.
        """
        found, self._poses = squares_about(
            poses, steps, changes, self._points, self._weights, self._poses
        )
        return found
