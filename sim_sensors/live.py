# SPDX-License-Identifier: Apache-2.0
"""Odometry that is still arriving, and a sensor on it: the bits of a batch run, once final.

This is what a node steps. A sensor's grid of stamps starts at the first odometry stamp, which is
also time 0, as in a batch run over the same odometry, or at a stamp of its own. The last interval
waits for samples that never come until `LiveOdometry.finish` says so.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import IntArray, OdometryArray
from sim_sensors.motion.odometry import SAMPLES_AHEAD, SAMPLES_BEHIND, OdometryMotion, check_values
from sim_sensors.motion.sampling import SampleGrid, seconds
from sim_sensors.sensor.sensor import Sensor

T = TypeVar('T')

# Those that the interval which the next sample makes final depends on, without that sample; the
# interval that ends a record depends on the same.
_KEPT = SAMPLES_BEHIND + SAMPLES_AHEAD - 1
# Refused samples that may turn out to be the start of the next loop; as many as a subscription
# queues.
_HELD = 1000
# How far the loop before the jump may go on after it. By stamp: odometry that goes on while the
# clock alone steps back costs this much motion, whatever its rate.
_STALE_NS = 1_000_000_000
# Intervals whose median is the usual one.
_USUAL = 50


class Verdict(enum.Enum):
    """What became of an odometry sample."""

    ACCEPTED = 'accepted'
    GAP = 'accepted after a gap'
    RESTARTED = 'accepted as a new start, after a gap too long to bridge'
    REPEATED = 'refused: stamp repeated'
    LATE = 'refused: stamp before the newest'
    STALE = 'refused: from before the jump of the clock'
    FINISHED = 'refused: the odometry was said to be finished'
    INVALID = 'refused: not finite, or no rotation'

    @property
    def accepted(self) -> bool:
        """Whether the sample counts."""
        return self in (Verdict.ACCEPTED, Verdict.GAP, Verdict.RESTARTED)


class LiveOdometry:
    """The samples of arriving odometry that motion still depends on.

    All since the last call of `trim`, and three before it. What it answers depends on the samples
    and on the calls of `rewind` alone, never on a clock.

    `velocity` says where velocity comes from; see `OdometryMotion`. An interval above `gap_factor`
    median intervals is a gap, `gap` the length of the latest, s, 0 before any; it is bridged, as
    in batch, unless longer than `longest_gap`, s: then the sample after it is a new start.
    `origin_ns` and `newest_ns` are stamps of the first sample, which is time 0, and of the newest
    that counts, None before it; `finished` tells whether the last sample has come.
    """

    def __init__(self, *, velocity: str, gap_factor: float, longest_gap: float) -> None:
        self._velocity = velocity
        self._gap_factor = gap_factor
        self._longest_gap_ns = round(longest_gap * 1e9)
        self._held: list[OdometryArray] = []
        self._ceiling_ns: int | None = None
        self.gap = 0.0
        self._discard()

    def _discard(self) -> None:
        self._window: list[OdometryArray] = []
        self._intervals: collections.deque[int] = collections.deque(maxlen=_USUAL)
        self.origin_ns: int | None = None
        self.newest_ns: int | None = None
        self.finished = False

    def finish(self) -> None:
        """Take the newest sample for the last: motion is final up to it, and more is refused.

        Until `reset` or `rewind`.

        Raises MotionError when fewer than three samples have come, so that there is no motion;
        more is refused still.
        """
        self.finished = True
        if len(self._window) <= SAMPLES_AHEAD:
            raise MotionError(f'odometry has {len(self._window)} samples; at least 3 are needed')

    def reset(self) -> None:
        """Forget everything; the next sample is the first."""
        self._discard()
        self._held.clear()
        self._ceiling_ns = None

    def rewind(self) -> list[OdometryArray]:
        """Forget the samples because the clock jumped backward; return those to push again.

        Samples and clock come on different topics, in either order. Samples that were refused as
        late since the last one that counted are the start of the new loop. If there are none, what
        still comes from up to a second after the newest sample so far belongs to the old loop and
        is stale.
        """
        again, ceiling = list(self._held), self.newest_ns
        self.reset()
        if not again:
            self._ceiling_ns = ceiling
        return again

    def push(self, sample: OdometryArray) -> Verdict:
        """Take the next sample, one row, and say what became of it."""
        if not _is_valid(sample):
            return Verdict.INVALID
        stamp = int(sample.stamp_ns[0])
        if self._ceiling_ns is not None:
            if 0 < stamp - self._ceiling_ns <= _STALE_NS:
                return Verdict.STALE
            self._ceiling_ns = None
        if self.finished:
            # The next loop may begin before the clock tells so.
            if self.newest_ns is not None and stamp < self.newest_ns:
                self._hold(sample, stamp)
            return Verdict.FINISHED
        if self.newest_ns is None:
            self._start(sample, stamp)
            return Verdict.ACCEPTED
        interval = stamp - self.newest_ns
        if interval == 0:
            return Verdict.REPEATED
        if interval < 0:
            self._hold(sample, stamp)
            return Verdict.LATE
        self._held.clear()
        if self.is_new_start(stamp):
            self.gap = interval * 1e-9
            self._discard()
            self._start(sample, stamp)
            return Verdict.RESTARTED
        is_gap = len(self._intervals) >= SAMPLES_AHEAD and (
            interval > self._gap_factor * statistics.median_low(self._intervals)
        )
        self._window.append(sample)
        self._intervals.append(interval)
        self.newest_ns = stamp
        if is_gap:
            self.gap = interval * 1e-9
            return Verdict.GAP
        return Verdict.ACCEPTED

    def is_new_start(self, stamp_ns: int) -> bool:
        """Whether a sample of that stamp would come after a gap too long to bridge.

        What is final must be measured before it is pushed: it forgets all samples before it.
        """
        if self.finished or self.newest_ns is None:
            return False
        return stamp_ns - self.newest_ns > self._longest_gap_ns

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one are final; None when none is."""
        if len(self._window) <= SAMPLES_AHEAD or self.newest_ns is None:
            return None
        if self.finished:
            return self.newest_ns + 1
        return int(self._window[-SAMPLES_AHEAD].stamp_ns[0])

    def motion(self) -> OdometryMotion:
        """Return the motion that has become final since `trim`, by the batch's rule for its end.

        A `MotionError` says that there are fewer than three samples.
        """
        origin_ns = 0 if self.origin_ns is None else self.origin_ns
        if not self._window:
            raise MotionError('odometry has 0 samples; at least 3 are needed')
        return OdometryMotion(_joined(self._window), origin_ns=origin_ns, velocity=self._velocity)

    def trim(self) -> None:
        """Forget the samples that only motion before `final_ns` depends on."""
        del self._window[:-_KEPT]

    def _start(self, sample: OdometryArray, stamp: int) -> None:
        self._window.append(sample)
        self.origin_ns = self.newest_ns = stamp

    def _hold(self, sample: OdometryArray, stamp: int) -> None:
        if self._held and stamp <= int(self._held[-1].stamp_ns[0]):
            self._held.clear()
        if len(self._held) < _HELD:
            self._held.append(sample)


def _is_valid(sample: OdometryArray) -> bool:
    """Whether `check_values` accepts the sample; it is asked only where this is not plain."""
    rows = (sample.position, sample.linear_velocity, sample.angular_velocity, sample.orientation)
    values = [value for row in rows for value in row[0].tolist()]
    if all(map(math.isfinite, values)) and math.hypot(*values[-4:]) > 1e-3:
        return True
    try:
        check_values(sample)
    except MotionError:
        return False
    return True


def _joined(samples: list[OdometryArray]) -> OdometryArray:
    """Return one array of all samples; frames are those of the first."""
    arrays: dict[str, Any] = {
        field.name: np.concatenate([getattr(sample, field.name) for sample in samples])
        for field in dataclasses.fields(OdometryArray)
        if field.name not in ('frame', 'child_frame')
    }
    return dataclasses.replace(samples[0], **arrays)


class LiveSensor(Generic[T]):
    """A sensor with its grid of stamps, fed with odometry.

    `switch_on` gives the sensor in its initial state, with its random streams at their start;
    `rate`, Hz, is that of the sensor. The `odometry` is empty at first; where a sample makes it
    start anew (`is_new_start`), measure before that is pushed. The grid of stamps begins at
    `start_ns`, those before the first odometry left out, or at the first odometry stamp. At most
    `chunk` measurements are made at once, which bounds memory; with 1, one that fails takes no
    other with it.

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
        self.odometry = odometry
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

    def push(self, sample: OdometryArray) -> Verdict:
        """Take the next odometry sample, one row."""
        verdict = self.odometry.push(sample)
        if verdict is Verdict.RESTARTED:
            self._switch()
        return verdict

    def measure(self) -> Iterator[tuple[IntArray, T]]:
        """Return stamps and measurements that the samples so far made final, in chunks.

        Raises MotionError when the sensor cannot measure that motion; the chunk is lost, and the
        next call goes on after it.
        """
        end_ns, origin_ns = self.odometry.final_ns, self.odometry.origin_ns
        if end_ns is None or origin_ns is None:
            return
        grid = SampleGrid(origin_ns if self._start_ns is None else self._start_ns, self._rate)
        if self._index is None:
            self._index = grid.count(origin_ns - 1)
        count = grid.count(end_ns - 1)
        # Made only when there is something to measure: a GPS skips nine samples of ten.
        motion = self.odometry.motion() if self._index < count else None
        while motion is not None and self._index < count:
            stamp_ns = grid.stamps(self._index, min(self._index + self._chunk, count))
            # Counted before it is measured: what fails is not tried for ever.
            self._index += len(stamp_ns)
            yield stamp_ns, self._sensor.measure(motion.at(seconds(stamp_ns, origin_ns)))
        self.odometry.trim()

    def reset(self) -> None:
        """Start afresh with the same random numbers: the next sample is the first."""
        self.odometry.reset()
        self._switch()

    def rewind(self) -> list[OdometryArray]:
        """Start afresh because the clock jumped backward; return the samples to push again."""
        again = self.odometry.rewind()
        self._switch()
        return again

    def change(self, switch_on: Callable[[], Sensor[T]]) -> None:
        """Go on, on the same stamps, with a sensor that is switched on anew."""
        self._switch_on = switch_on
        self._sensor = switch_on()
