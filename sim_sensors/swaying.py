# SPDX-License-Identifier: Apache-2.0
"""A body that is turned and swayed to and fro, as by hand, in closed form."""

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

__all__ = ['Swaying']


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
