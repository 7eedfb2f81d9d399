# SPDX-License-Identifier: Apache-2.0
"""What wheel odometry reports, before it is a message."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors import rotations
from sim_sensors.measurements import FloatArray, IntArray, OdometryArray

__all__ = ['WheelMeasurement']

# Of z, roll and pitch, which wheels do not measure; diff_drive_controller of ros2_control has it.
_UNMEASURED = 1e6
# Places of x, y and the rotation about z among the six of a message.
_PLANAR = np.ix_([0, 1, 5], [0, 1, 5])


@dataclasses.dataclass(frozen=True, eq=False)
class WheelMeasurement:
    """Odometry of wheels that err, beside that of perfect ones.

    Attributes
    ----------
    pose, true_pose : (n, 3)
        x, y in m and heading in rad, not wrapped. The true one is that of wheels without error:
        of a drive that sees all of the motion (a swerve), the true pose itself.
    velocity, true_velocity : (n, 3)
        Mean since the sample before: forward, left in m/s and yaw rate in rad/s.
    pose_covariance, velocity_covariance : (n, 3, 3)
        As stated, in the order of the above.
    wheel_angle, true_wheel_angle : (n, wheels)
        Turned since the first sample, rad.
    steering_angle, true_steering_angle : (n, steered)
        rad, to the left of forward.
    height : float
        z of the poses, m.
    """

    pose: FloatArray
    velocity: FloatArray
    pose_covariance: FloatArray
    velocity_covariance: FloatArray
    true_pose: FloatArray
    true_velocity: FloatArray
    wheel_angle: FloatArray
    steering_angle: FloatArray
    true_wheel_angle: FloatArray
    true_steering_angle: FloatArray
    height: float

    def messages(self, stamp_ns: IntArray, frame: str, child_frame: str) -> OdometryArray:
        """Return nav_msgs/Odometry arrays stamped `stamp_ns`, arriving at once."""
        return _odometry(
            stamp_ns,
            frame,
            child_frame,
            (self.pose, self.height, self.velocity),
            (_of_six(self.pose_covariance), _of_six(self.velocity_covariance)),
        )

    def true_messages(self, stamp_ns: IntArray, frame: str, child_frame: str) -> OdometryArray:
        """Return the odometry of wheels without error, with covariances of zero."""
        zero = np.zeros((len(self.pose), 6, 6))
        state = (self.true_pose, self.height, self.true_velocity)
        return _odometry(stamp_ns, frame, child_frame, state, (zero, zero))


def _odometry(
    stamp_ns: IntArray,
    frame: str,
    child_frame: str,
    state: tuple[FloatArray, float, FloatArray],
    covariances: tuple[FloatArray, FloatArray],
) -> OdometryArray:
    pose, height, velocity = state
    zero = np.zeros(len(pose))
    return OdometryArray(
        stamp_ns=stamp_ns,
        arrival_ns=stamp_ns,
        frame=frame,
        child_frame=child_frame,
        position=np.column_stack([pose[:, :2], np.full(len(pose), height)]),
        orientation=rotations.from_heading(pose[:, 2]),
        linear_velocity=np.column_stack([velocity[:, :2], zero]),
        angular_velocity=np.column_stack([zero, zero, velocity[:, 2]]),
        pose_covariance=covariances[0],
        twist_covariance=covariances[1],
    )


def _of_six(planar: FloatArray) -> FloatArray:
    full = np.zeros((len(planar), 6, 6))
    full[:, [2, 3, 4], [2, 3, 4]] = _UNMEASURED
    full[:, _PLANAR[0], _PLANAR[1]] = planar
    return full
