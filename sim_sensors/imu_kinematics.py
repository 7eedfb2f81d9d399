# SPDX-License-Identifier: Apache-2.0
"""What an IMU without errors would feel of a motion."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors import rotations
from sim_sensors.measurements import FloatArray

if TYPE_CHECKING:
    from sim_sensors.trajectory import Trajectory

__all__ = ['ExactKinematics', 'Felt', 'Kinematics', 'mounting_quaternion']


@dataclasses.dataclass(frozen=True, eq=False)
class Felt:
    """True signals at an IMU.

    Attributes
    ----------
    orientation : (n, 4)
        Quaternion x y z w, sensor to world (ENU).
    rate : (n, 3)
        Angular velocity, rad/s, sensor frame.
    force : (n, 3)
        Specific force, m/s^2, sensor frame.
    """

    orientation: FloatArray
    rate: FloatArray
    force: FloatArray


class Kinematics(Protocol):
    """Makes of the motion of the body what the IMU feels, with whatever state that takes."""

    def feel(self, truth: Trajectory, dt: FloatArray) -> Felt:
        """Return the signals at the times of `truth`, which follow those before at intervals `dt`
        `(n,)` s.
        """


def mounting_quaternion(rpy: ArrayLike) -> FloatArray:
    """Return the quaternion x y z w, `(1, 4)`, of roll, pitch, yaw about fixed axes, rad."""
    quaternion: FloatArray = Rotation.from_euler('xyz', np.asarray(rpy)).as_quat()[None, :]
    return quaternion


class ExactKinematics:
    """rate = M^T w, force = M^T R^T (a_s - g): models.md section 1; it has no state.

    Parameters
    ----------
    lever_arm : (3,)
        Position of the IMU in the body, m.
    mounting_rpy : (3,)
        Rotation of the IMU in the body, rad.
    gravity : float
        m/s^2, of the simulated world.
    """

    def __init__(self, lever_arm: ArrayLike, mounting_rpy: ArrayLike, gravity: float) -> None:
        self._lever_arm = np.asarray(lever_arm, dtype=np.float64)
        self._mounting = mounting_quaternion(mounting_rpy)
        self._gravity = gravity

    def feel(self, truth: Trajectory, dt: FloatArray) -> Felt:
        """Return what an exact IMU feels; `dt` is not used."""
        at_sensor = truth.at_lever_arm(self._lever_arm)
        return Felt(
            orientation=rotations.multiply(at_sensor.orientation, self._mounting),
            rate=rotations.rotate_back(self._mounting, at_sensor.angular_velocity),
            force=rotations.rotate_back(self._mounting, at_sensor.specific_force(self._gravity)),
        )
