# SPDX-License-Identifier: Apache-2.0
"""A sensor on odometry that is still arriving: the bits of a batch run, once final.

This is what a node steps. A sensor's grid of stamps starts at the first odometry stamp, which is
also time 0, as in a batch run over the same odometry, or at a stamp of its own.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from sim_sensors.core.blocks import seconds
from sim_sensors.core.measurements import IntArray, MessageArray, OdometryArray
from sim_sensors.motion.sampling import SampleGrid
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.sensor import Sensor
from .samples import LiveNoiseFree, LiveOdometry, LiveSamples, Verdict

T = TypeVar('T')

# Odometry that waits for the noise-free sensor to begin; as many as a subscription queues.
_EARLY = 1000


class LiveSensor(Generic[T]):
    """A sensor with its grid of stamps, fed with odometry.

    `switch_on` gives the sensor in its initial state, with its random streams at their start;
    `rate`, Hz, is that of the sensor. The `odometry` is empty at first; where a sample makes it
    start anew (`is_new_start`), measure before that is pushed. The grid of stamps begins at
    `start_ns`, those before the first odometry left out, or at the first odometry stamp. At most
    `chunk` measurements are made at once, which bounds memory; with 1, one that fails takes no
    other with it. With `noise_free` the sensor measures what that one did: odometry waits until it
    has begun, counts from there on, and is final as far as both are.

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
        noise_free: LiveNoiseFree | None = None,
    ) -> None:
        self._switch_on = switch_on
        self._rate = rate
        self.odometry = odometry
        self._start_ns = start_ns
        self._chunk = chunk
        self.noise_free = noise_free
        self._early: collections.deque[OdometryArray] = collections.deque(maxlen=_EARLY)
        self._switch()

    def _switch(self) -> None:
        self._sensor = self._switch_on()
        self._index: int | None = None

    @property
    def sensor(self) -> Any:
        """The sensor as it is switched on now; `measure` yields what it measured."""
        return self._sensor

    def push(self, sample: OdometryArray) -> Verdict:
        """Take the next odometry sample, one row."""
        if self.noise_free is not None:
            began_ns = self.noise_free.origin_ns
            if began_ns is None:
                self._early.append(sample)
                return Verdict.WAITING
            if sample.stamp_ns[0] < began_ns and self.odometry.newest_ns is None:
                return Verdict.EARLY
        verdict = self.odometry.push(sample)
        if verdict is Verdict.RESTARTED:
            self._switch()
        return verdict

    def push_noise_free(self, sample: MessageArray) -> Verdict:
        """Take the next message of the noise-free sensor, one row."""
        assert self.noise_free is not None
        verdict = self.noise_free.push(sample)
        if self.odometry.newest_ns is None:
            self.noise_free.keep_last(_EARLY)
        while self._early and self.noise_free.origin_ns is not None:
            self.push(self._early.popleft())
        return verdict

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one can be measured; None when none can."""
        streams: list[LiveSamples[Any]] = [self.odometry]
        if self.noise_free is not None:
            streams.append(self.noise_free)
        ends = [stream.final_ns for stream in streams]
        return None if None in ends else min(end for end in ends if end is not None)

    def finish(self) -> None:
        """Take what has come for all; see `LiveOdometry.finish`."""
        try:
            if self.noise_free is not None:
                self.noise_free.finish()
        finally:
            self.odometry.finish()

    def measure(self) -> Iterator[tuple[IntArray, T]]:
        """Return stamps and measurements that the samples so far made final, in chunks.

        Raises MotionError when the sensor cannot measure that motion; the chunk is lost, and the
        next call goes on after it.
        """
        end_ns, origin_ns = self.final_ns, self.odometry.origin_ns
        if end_ns is None or origin_ns is None:
            return
        grid = SampleGrid(origin_ns if self._start_ns is None else self._start_ns, self._rate)
        if self._index is None:
            self._index = grid.count(origin_ns - 1)
        count = grid.count(end_ns - 1)
        # Made only when there is something to measure: a GPS skips nine samples of ten.
        motion = self._motion(origin_ns, end_ns) if self._index < count else None
        while motion is not None and self._index < count:
            stamp_ns = grid.stamps(self._index, min(self._index + self._chunk, count))
            # Counted before it is measured: what fails is not tried for ever.
            self._index += len(stamp_ns)
            yield stamp_ns, self._sensor.measure(motion.at(seconds(stamp_ns, origin_ns)))
        self.odometry.trim(end_ns)
        if self.noise_free is not None:
            self.noise_free.trim(end_ns)

    def _motion(self, origin_ns: int, end_ns: int) -> Motion:
        motion = self.odometry.motion(end_ns)
        if self.noise_free is None:
            return motion
        return self.noise_free.improve(motion, self.noise_free.samples(end_ns), origin_ns)

    def reset(self) -> None:
        """Start afresh with the same random numbers: the next sample is the first."""
        self.odometry.reset()
        if self.noise_free is not None:
            self.noise_free.reset()
        self._early.clear()
        self._switch()

    def rewind(self) -> list[OdometryArray]:
        """Start afresh because the clock jumped backward; return the samples to push again."""
        again = self.odometry.rewind()
        self._early.clear()
        if self.noise_free is not None:
            for sample in self.noise_free.rewind():
                self.noise_free.push(sample)
        self._switch()
        return again

    def change(self, switch_on: Callable[[], Sensor[T]]) -> None:
        """Go on, on the same stamps, with a sensor that is switched on anew."""
        self._switch_on = switch_on
        self._sensor = switch_on()
