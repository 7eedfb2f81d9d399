# SPDX-License-Identifier: Apache-2.0
"""What an IMU reports, before it is a message."""

from __future__ import annotations

import dataclasses

from sim_sensors.measurements import FloatArray, ImuArray, IntArray

__all__ = ['ImuMeasurement']


@dataclasses.dataclass(frozen=True, eq=False)
class ImuMeasurement:
    """What an IMU reports, and the biases in it, which are truth for whoever estimates them.

    Attributes
    ----------
    orientation : (n, 4)
        Quaternion x y z w, sensor to world; identity where absent.
    angular_velocity : (n, 3)
        rad/s, sensor frame.
    linear_acceleration : (n, 3)
        Specific force, m/s^2, sensor frame.
    orientation_covariance, angular_velocity_covariance, linear_acceleration_covariance : (n, 3, 3)
        As in `sim_sensors.measurements.ImuArray`.
    gyroscope_bias, accelerometer_bias : (n, 3)
        Part of the reported values that is bias, rad/s and m/s^2; the mean of the white noise is
        not in it.
    """

    orientation: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    orientation_covariance: FloatArray
    angular_velocity_covariance: FloatArray
    linear_acceleration_covariance: FloatArray
    gyroscope_bias: FloatArray
    accelerometer_bias: FloatArray

    def messages(self, stamp_ns: IntArray, frame: str) -> ImuArray:
        """Return sensor_msgs/Imu arrays stamped `stamp_ns`, arriving at once."""
        return ImuArray(
            stamp_ns=stamp_ns,
            arrival_ns=stamp_ns,
            frame=frame,
            orientation=self.orientation,
            angular_velocity=self.angular_velocity,
            linear_acceleration=self.linear_acceleration,
            orientation_covariance=self.orientation_covariance,
            angular_velocity_covariance=self.angular_velocity_covariance,
            linear_acceleration_covariance=self.linear_acceleration_covariance,
        )
