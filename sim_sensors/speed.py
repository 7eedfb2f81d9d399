# SPDX-License-Identifier: Apache-2.0
"""Speed profile of a scenario: rest, smooth ramp, constant speed, and a smooth stop if wanted."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['SpeedProfile']


@dataclasses.dataclass(frozen=True)
class SpeedProfile:
    """Distance, speed and acceleration along a path, in closed form.

    The ramp is v(t) = V (6 x^5 - 15 x^4 + 10 x^3), x = t / ramp_time: speed, acceleration and
    jerk are continuous; the acceleration peaks at 1.875 V / ramp_time and the jerk at
    5.774 V / ramp_time^2. With `ramp_time` 0 the motion starts (and ends) at full speed.

    Attributes
    ----------
    speed : float
        V, m/s.
    ramp_time : float
        Duration of the ramp, s.
    duration : float
        Duration of the whole motion, s.
    rest_time : float
        Time at rest before the ramp, s.
    stop : bool
        Ramp down so that it is at rest at the end.
    """

    speed: float
    ramp_time: float
    duration: float
    rest_time: float = 0.0
    stop: bool = False

    @property
    def length(self) -> float:
        """Distance travelled in all, m."""
        return float(self.at(np.array([self.duration]))[0][0])

    def at(self, times: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Distance (m), speed (m/s) and acceleration (m/s^2) at `times` `(n,)` s."""
        distance, speed, acceleration = self._ramp(times - self.rest_time)
        if self.stop:
            down = self._ramp(times - (self.duration - self.ramp_time))
            distance = distance - down[0]
            speed = speed - down[1]
            acceleration = acceleration - down[2]
        return distance, speed, acceleration

    def _ramp(self, since: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """One ramp from 0 to V that begins at 0."""
        v, ramp = self.speed, self.ramp_time
        if ramp == 0.0:
            return v * np.maximum(since, 0.0), np.where(since < 0.0, 0.0, v), np.zeros_like(since)
        x = np.clip(since / ramp, 0.0, 1.0)
        beyond = np.maximum(since - ramp, 0.0)
        cube = x * x * x
        distance = v * ramp * cube * x * (2.5 + x * (x - 3.0)) + v * beyond
        speed = v * cube * (10.0 + x * (6.0 * x - 15.0))
        acceleration = 30.0 * v / ramp * (x * (1.0 - x)) ** 2
        return distance, speed, acceleration
