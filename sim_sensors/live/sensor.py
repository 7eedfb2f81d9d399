# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors on odometry that is still arriving, with the bits of a batch run.

The grid of stamps of a sensor starts at the first odometry stamp, which is also time 0, as in a
batch run over the same odometry, or at a stamp of its own. The last odometry interval is not final
until `finish`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from sim_sensors.core.measurements import IntArray, MessageArray, OdometryArray
from sim_sensors.motion.sampling import SampleGrid
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.sensor import Sensor
from .samples import LiveNoiseFree, LiveOdometry, LiveSamples, Verdict

T = TypeVar('T')

# Odometry that waits for the noise-free sensor to begin; as many as a subscription queues.
_MAX_EARLY = 1000


class LiveSensor(Generic[T]):
    """A sensor that measures arriving odometry on its grid of stamps.

    Parameters
    ----------
    switch_on : callable
        Returns the sensor in its initial state, with its random streams at their start.
    rate : float
        Rate of the sensor, Hz.
    odometry : LiveOdometry
        Empty at first. Measure before you push a sample that restarts it (`is_new_start`).
    start_ns : int, optional
        First stamp of the grid; stamps before the first odometry are left out. None: the stamp of
        the first odometry.
    chunk : int
        Largest number of measurements made at once, which bounds memory. If it is 1, a
        failure affects a single measurement.
    noise_free : LiveNoiseFree, optional
        Noise-free sensor whose output is measured. Odometry waits until it has begun, and is final
        as far as both streams are.

    Examples
    --------
    After each sample, publish the final measurements::

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
        self._early: collections.deque[OdometryArray] = collections.deque(maxlen=_MAX_EARLY)
        # Whether the noise-free sensor has begun an earlier time line, and the odometry not yet.
        self._is_odometry_behind = False
        self._restart()

    def _restart(self) -> None:
        self._sensor = self._switch_on()
        self._index: int | None = None
        self._is_odometry_behind = False

    @property
    def sensor(self) -> Any:
        """The current sensor."""
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
        if verdict is Verdict.REWOUND:
            for held in self.rewind():
                self.push(held)
            self.odometry.note_rewound()
        elif verdict.is_new_start:
            self._restart()
        return verdict

    def push_noise_free(self, sample: MessageArray) -> Verdict:
        """Take the next message of the noise-free sensor, one row."""
        assert self.noise_free is not None
        verdict = self.noise_free.push(sample)
        if verdict is Verdict.REWOUND:
            for held in self.noise_free.rewind():
                self.noise_free.push(held)
            self.noise_free.note_rewound()
            self._is_odometry_behind = self.odometry.newest_ns is not None
        if self.odometry.newest_ns is None:
            self.noise_free.keep_last(_MAX_EARLY)
        while self._early and self.noise_free.origin_ns is not None:
            self.push(self._early.popleft())
        return verdict

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one can be measured; None if none can."""
        if self._is_odometry_behind:
            return None
        streams: list[LiveSamples[Any]] = [self.odometry]
        if self.noise_free is not None:
            streams.append(self.noise_free)
        ends = [stream.final_ns for stream in streams]
        return None if None in ends else min(end for end in ends if end is not None)

    def finish(self) -> None:
        """End the record; see `LiveOdometry.finish`."""
        try:
            if self.noise_free is not None:
                self.noise_free.finish()
        finally:
            self.odometry.finish()

    def measure(self) -> Iterator[tuple[IntArray, T]]:
        """Yield the final stamps, ns, and their measurements in chunks.

        MotionError if the sensor cannot measure the motion; that chunk is lost, and the next call
        continues after it.
        """
        end_ns, origin_ns = self.final_ns, self.odometry.origin_ns
        if end_ns is None or origin_ns is None:
            return
        grid = SampleGrid(origin_ns if self._start_ns is None else self._start_ns, self._rate)
        if self._index is None:
            self._index = grid.count(origin_ns - 1)
        count = grid.count(end_ns - 1)
        # Interpolated only if there is something to measure: a GPS skips nine of ten samples.
        motion = self._motion(origin_ns, end_ns) if self._index < count else None
        while motion is not None and self._index < count:
            stamp_ns = grid.stamps(self._index, min(self._index + self._chunk, count))
            # Counted before it is measured, so that a failure is not repeated for ever.
            self._index += len(stamp_ns)
            yield stamp_ns, self._sensor.measure(motion.at((stamp_ns - origin_ns) * 1e-9))
        self.odometry.trim(end_ns)
        if self.noise_free is not None:
            self.noise_free.trim(end_ns)

    def _motion(self, origin_ns: int, end_ns: int) -> Motion:
        motion = self.odometry.motion(end_ns)
        if self.noise_free is None:
            return motion
        return self.noise_free.improve(motion, self.noise_free.samples(end_ns), origin_ns)

    def reset(self) -> None:
        """Restart with the same random numbers; the next sample is the first."""
        self.odometry.reset()
        if self.noise_free is not None:
            self.noise_free.reset()
        self._early.clear()
        self._restart()

    def rewind(self) -> list[OdometryArray]:
        """Restart on an earlier time line; return the samples to push again."""
        new_loop = self.odometry.rewind()
        self._early.clear()
        if self.noise_free is not None and not self.noise_free.take_jump():
            for sample in self.noise_free.rewind():
                self.noise_free.push(sample)
        self._restart()
        return new_loop

    def change(self, switch_on: Callable[[], Sensor[T]]) -> None:
        """Continue on the same stamps with a new sensor."""
        self._switch_on = switch_on
        self._sensor = switch_on()
