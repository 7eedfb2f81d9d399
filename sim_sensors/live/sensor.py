# SPDX-License-Identifier: Apache-2.0
"""A sensor on motion that is still arriving: the bits of a batch run, as soon as they are final.

This is what a node steps. Its grid of stamps starts at the first odometry stamp, which is also
time 0, as in a batch run over the same odometry, or at a stamp of its own. The last interval waits
for samples that never come until `finish` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from sim_sensors.core.measurements import IntArray, OdometryArray
from sim_sensors.live.odometry import LiveOdometry, Verdict
from sim_sensors.motion.sampling import SampleGrid, seconds
from sim_sensors.sensor.sensor import Sensor

T = TypeVar('T')


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
    start_ns : int or None
        Where the grid of stamps starts; those before the first odometry are left out. None: at
        the first odometry stamp.
    chunk : int
        Measurements made at once; memory is bounded by it. With 1, one that fails takes no other
        with it.

    Examples
    --------
    Every verdict is followed by whatever became final::

        verdict = sensor.push(sample)
        for stamp_ns, measurement in sensor.measure():
            publish(measurement.messages(stamp_ns, frame))
    """

    def __init__(
        self,
        switch_on: Callable[[], Sensor[T]],
        rate: float,
        odometry: LiveOdometry,
        *,
        start_ns: int | None = None,
        chunk: int = 1000,
    ) -> None:
        self._switch_on = switch_on
        self._rate = rate
        self._odometry = odometry
        self._start_ns = start_ns
        self._chunk = chunk
        self._switch()

    def _switch(self) -> None:
        self._sensor = self._switch_on()
        self._index: int | None = None

    @property
    def sensor(self) -> Any:
        """The sensor as it is switched on now; `measure` yields what it measured."""
        return self._sensor

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest odometry that counts."""
        return self._odometry.newest_ns

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one are measured by `measure`; None before any can be."""
        return self._odometry.final_ns

    @property
    def gap(self) -> float:
        """Length of the latest gap in the odometry, s."""
        return self._odometry.gap

    def is_new_start(self, stamp_ns: int) -> bool:
        """Whether a sample of that stamp makes the sensor start anew; measure before it then."""
        return self._odometry.is_new_start(stamp_ns)

    def push(self, sample: OdometryArray) -> Verdict:
        """Take the next odometry sample, one row."""
        verdict = self._odometry.push(sample)
        if verdict is Verdict.RESTARTED:
            self._switch()
        return verdict

    def finish(self) -> None:
        """Say that the newest sample is the last: what is left can be measured.

        Raises
        ------
        MotionError
            Fewer than three samples have come.
        """
        self._odometry.finish()

    def measure(self) -> Iterator[tuple[IntArray, T]]:
        """Return stamps and measurements that the samples so far made final, in chunks.

        Raises
        ------
        MotionError
            The sensor cannot measure that motion. The chunk is lost; the next call goes on after
            it.
        """
        end_ns, origin_ns = self._odometry.final_ns, self._odometry.origin_ns
        if end_ns is None or origin_ns is None:
            return
        grid = SampleGrid(origin_ns if self._start_ns is None else self._start_ns, self._rate)
        if self._index is None:
            self._index = grid.count(origin_ns - 1)
        count = grid.count(end_ns - 1)
        # Made only when there is something to measure: a GPS skips nine samples of ten.
        motion = self._odometry.motion() if self._index < count else None
        while motion is not None and self._index < count:
            stamp_ns = grid.stamps(self._index, min(self._index + self._chunk, count))
            # Counted before it is measured: what fails is not tried for ever.
            self._index += len(stamp_ns)
            yield stamp_ns, self._sensor.measure(motion.at(seconds(stamp_ns, origin_ns)))
        self._odometry.trim()

    def reset(self) -> None:
        """Start afresh with the same random numbers: the next sample is the first."""
        self._odometry.reset()
        self._switch()

    def rewind(self) -> list[OdometryArray]:
        """Start afresh because the clock jumped backward; return the samples to push again."""
        again = self._odometry.rewind()
        self._switch()
        return again

    def change(self, switch_on: Callable[[], Sensor[T]]) -> None:
        """Go on, on the same stamps, with a sensor that is switched on anew."""
        self._switch_on = switch_on
        self._sensor = switch_on()
