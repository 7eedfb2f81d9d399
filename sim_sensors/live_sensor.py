# SPDX-License-Identifier: Apache-2.0
"""A sensor on motion that is still arriving: the bits of a batch run, as soon as they are final.

This is what a node steps. Its grid of stamps starts at the first odometry stamp, which is also
time 0, as in a batch run over the same odometry. Only the last interval, which waits for samples
that never come, is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from sim_sensors.live_odometry import LiveOdometry, Verdict
from sim_sensors.measurements import IntArray, OdometryArray
from sim_sensors.sampling import SampleGrid, seconds
from sim_sensors.trajectory import Trajectory

__all__ = ['LiveSensor']

# Stamps measured at once, so that a gap of any length needs bounded memory.
_CHUNK = 1000

T_co = TypeVar('T_co', covariant=True)
T = TypeVar('T')


class _Sensor(Protocol[T_co]):
    def measure(self, truth: Trajectory) -> T_co: ...


class LiveSensor(Generic[T]):
    """A sensor with its grid of stamps, fed with odometry.

    Parameters
    ----------
    switch_on : callable
        Gives the sensor in its initial state, with its random streams at their start.
    rate : float
        Of the sensor, Hz.
    odometry : LiveOdometry
        Empty.

    Examples
    --------
    Every verdict is followed by whatever became final::

        verdict = sensor.push(sample)
        for stamp_ns, measurement in sensor.measure():
            publish(measurement.messages(stamp_ns, frame))
    """

    def __init__(
        self, switch_on: Callable[[], _Sensor[T]], rate: float, odometry: LiveOdometry
    ) -> None:
        self._switch_on = switch_on
        self._rate = rate
        self._odometry = odometry
        self._switch()

    def _switch(self) -> None:
        self._sensor = self._switch_on()
        self._index = 0

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest odometry that counts."""
        return self._odometry.newest_ns

    @property
    def gap(self) -> float:
        """Length of the latest gap in the odometry, s."""
        return self._odometry.gap

    def push(self, sample: OdometryArray) -> Verdict:
        """Take the next odometry sample, one row."""
        verdict = self._odometry.push(sample)
        if verdict is Verdict.RESTARTED:
            self._switch()
        return verdict

    def measure(self) -> Iterator[tuple[IntArray, T]]:
        """Return stamps and measurements that the latest sample made final, in chunks."""
        end_ns, origin_ns = self._odometry.final_ns, self._odometry.origin_ns
        if end_ns is None or origin_ns is None:
            return
        grid = SampleGrid(origin_ns, self._rate)
        count = grid.count(end_ns - 1)
        # Made only when there is something to measure: a GPS skips nine samples of ten.
        motion = self._odometry.motion() if self._index < count else None
        while motion is not None and self._index < count:
            stamp_ns = grid.stamps(self._index, min(self._index + _CHUNK, count))
            # Counted before it is measured: what fails is not tried for ever.
            self._index += len(stamp_ns)
            yield stamp_ns, self._sensor.measure(motion.at(seconds(stamp_ns, origin_ns)))

    def reset(self) -> None:
        """Start afresh with the same random numbers: the next sample is the first."""
        self._odometry.reset()
        self._switch()

    def rewind(self) -> list[OdometryArray]:
        """Start afresh because the clock jumped backward; return the samples to push again."""
        again = self._odometry.rewind()
        self._switch()
        return again

    def change(self, switch_on: Callable[[], _Sensor[T]]) -> None:
        """Go on, on the same stamps, with a sensor that is switched on anew."""
        self._switch_on = switch_on
        self._sensor = switch_on()
