# SPDX-License-Identifier: Apache-2.0
"""What all sensors share that are switched on: they measure one sample after the other."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Generic, TypeVar

from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.motion.sampling import intervals, sample_motion

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory
    from sim_sensors.sensor.delivery import Channel

T = TypeVar('T')


class Sensor(abc.ABC, Generic[T]):
    """A sensor that is switched on: it knows when it measured last.

    Parameters
    ----------
    rate : float
        Of its own stamps, Hz.
    channel : Channel
        What carries its messages.
    first_interval : float
        Interval to the first sample of all, s: before it there is none.

    Attributes
    ----------
    channel : Channel
        As given.
    """

    def __init__(self, rate: float, channel: Channel, *, first_interval: float = 0.0) -> None:
        self.channel = channel
        self._rate = rate
        self._first_interval = first_interval
        self._last: float | None = None

    def measure(self, truth: Trajectory) -> T:
        """Measure at the times of `truth`, which must follow those measured before.

        Parameters
        ----------
        truth : Trajectory
            Motion of the body, `n` samples; cutting it into several calls changes no bit.

        Raises
        ------
        MotionError
            When a time does not follow the one before it.
        """
        times = truth.time
        dt = intervals(times, self._last, self._first_interval)
        if len(times):
            self._last = float(times[-1])
        return self._measure(truth, dt)

    def measure_all(
        self, motion: Motion, *, start_ns: int | None = None, origin_ns: int = 0
    ) -> tuple[IntArray, T]:
        """Return the stamps `start_ns + round(k 1e9 / rate)` and what is measured at them.

        Parameters
        ----------
        motion : Motion
            What is measured, from its start to its end, in the frame of the world.
        start_ns : int or None
            First stamp; None: the start of the motion.
        origin_ns : int
            Stamp of motion time 0.

        Raises
        ------
        MotionError
            When `start_ns` is outside the motion.
        """
        stamp_ns, times = sample_motion(motion, self._rate, start_ns=start_ns, origin_ns=origin_ns)
        return stamp_ns, self.measure(motion.at(times))

    @abc.abstractmethod
    def _measure(self, truth: Trajectory, dt: FloatArray) -> T:
        """Measure at the times of `truth`, each `dt` `(n,)` s after the sample before it."""
