# SPDX-License-Identifier: Apache-2.0
"""The attitude that a filter inside the sensor makes of its own rates and accelerations."""

from __future__ import annotations

import imufusion
import numpy as np

from sim_sensors.attitude import Sensed
from sim_sensors.measurements import FloatArray

__all__ = ['FusedAttitude']


class FusedAttitude:
    """On-chip orientation fusion, such as the IMU mode of a BNO055: no magnetometer, so the yaw
    is the integral of the measured rates and drifts with them.

    The filter is imufusion's ([imufusion]; the revised AHRS algorithm of [Madgwick], chapter
    7), as it is, in its 32-bit floats. It starts from the true attitude, as one that has settled;
    a yaw that counts from switching on is this one less its first.

    Parameters
    ----------
    gain : float
        Of the filter, see there.
    gravity : float
        m/s^2; the filter takes accelerations as multiples of it.
    """

    def __init__(self, gain: float, gravity: float) -> None:
        self._filter = imufusion.Ahrs()
        settings = imufusion.AhrsSettings()
        settings.convention = imufusion.CONVENTION_ENU
        settings.gain = gain
        # Ranges and rejections of zero are off: the errors are those of the sensor model.
        self._filter.set_settings(settings)
        self._gravity = gravity if gravity > 0.0 else 1.0
        self._has_started = False

    def measure(self, truth: FloatArray, dt: FloatArray, sensed: Sensed) -> FloatArray:
        """Return the quaternions of the filter; see `sim_sensors.attitude.Attitude`."""
        if not self._has_started and len(truth):
            self._filter.skip_startup()
            self._filter.set_quaternion(truth[0, [3, 0, 1, 2]])
            self._has_started = True
        rates = np.degrees(sensed.rate)
        forces = sensed.force / self._gravity
        result = np.empty((len(truth), 4))
        for k in range(len(truth)):
            self._filter.set_sample_period(float(dt[k]))
            self._filter.update_no_magnetometer(rates[k], forces[k])
            result[k] = self._filter.get_quaternion()
        result = result[:, [1, 2, 3, 0]]
        x, y, z, w = result.T
        # In 64 bits it is a unit quaternion to 1e-7 only.
        return np.asarray(result / np.sqrt(x * x + y * y + z * z + w * w)[:, None])

    def covariance(self, n: int) -> FloatArray:
        """Return zeros, unknown: the filter states none."""
        return np.zeros((n, 3, 3))
