# SPDX-License-Identifier: Apache-2.0
"""Sensors on odometry that is still arriving, with the bits of a batch run.

The grid of stamps of a sensor starts at the first odometry stamp, which is also time 0, as in a
batch run over the same odometry, or at a stamp of its own. The last odometry interval is not final
until `finish`.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import enum
import functools
import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FixArray, IntArray, MessageArray, OdometryArray
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.odometry import SAMPLES_AHEAD, SAMPLES_BEHIND, OdometryMotion, check_values
from sim_sensors.motion.sampling import SampleGrid
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.sensor import Sensor, SensorModel

T = TypeVar('T')
M = TypeVar('M', bound=MessageArray)

# Number of received samples that the next final interval depends on. The interval at the end of a
# record depends on the same number.
_WINDOW = SAMPLES_BEHIND + SAMPLES_AHEAD - 1
# Refused samples that may be the start of the next loop; as many as a subscription queues.
_MAX_HELD = 1000
# Stamp interval in which samples after a clock jump are attributed to the previous loop. If only
# the clock steps back and the odometry continues, this much motion is lost.
_STALE_NS = 1_000_000_000
# Samples that wait for a slower stream: more than a minute of a physics engine.
_MAX_WINDOW = 100_000
# Longer than any gap, s.
_FOR_EVER = 1e9
# Number of intervals for the median.
_MEDIAN_OF = 50


class Verdict(enum.Enum):
    """Outcome of a received sample."""

    ACCEPTED = 'accepted'
    GAP = 'accepted after a gap'
    RESTARTED = 'accepted as a new start, after a gap too long to bridge'
    REPEATED = 'refused: stamp repeated'
    LATE = 'refused: stamp before the newest'
    STALE = 'refused: older than the jump of the clock'
    FINISHED = 'refused: the odometry is finished'
    INVALID = 'refused: not finite, or an invalid quaternion'
    EARLY = 'refused: before the noise-free sensor began'
    WAITING = 'waits for the noise-free sensor to begin'
    AHEAD = 'refused: too far ahead of the noise-free sensor'

    @property
    def is_accepted(self) -> bool:
        """Whether the sample was accepted."""
        return self in (Verdict.ACCEPTED, Verdict.GAP, Verdict.RESTARTED, Verdict.WAITING)


class LiveSamples(Generic[M]):
    """Window of arriving samples, one row each, that the interpolation still depends on.

    It contains all samples since the last call of `trim` and three before it. All results depend
    on the samples and the calls of `rewind` alone, never on a clock.
    """

    title: ClassVar[str]
    """Name in error messages."""

    def __init__(self, gap_factor: float, longest_gap: float) -> None:
        self._gap_factor = gap_factor
        self._longest_gap_ns = round(longest_gap * 1e9)
        self._held: list[M] = []
        self._ceiling_ns: int | None = None
        self.gap = 0.0
        self._discard()

    def _discard(self) -> None:
        self._window: list[M] = []
        self._intervals: collections.deque[int] = collections.deque(maxlen=_MEDIAN_OF)
        self.origin_ns: int | None = None
        self.newest_ns: int | None = None
        self.finished = False

    def finish(self) -> None:
        """End the record: motion is final up to the newest sample, and later samples are refused.

        This holds until `reset` or `rewind`. MotionError if fewer than three samples have come, so
        that there is no motion; later samples are refused nevertheless.
        """
        self.finished = True
        if len(self._window) <= SAMPLES_AHEAD:
            raise MotionError(
                f'{self.title} has {len(self._window)} samples; at least 3 are needed'
            )

    def reset(self) -> None:
        """Delete all samples; the next sample is the first."""
        self._discard()
        self._held.clear()
        self._ceiling_ns = None

    def rewind(self) -> list[M]:
        """Delete the samples after a backward clock jump; return those to push again.

        Samples and clock arrive on different topics, in either order. Samples that were refused as
        late since the last accepted one are the start of the new loop. If there are none, samples
        up to a second after the newest one belong to the old loop and are stale.
        """
        new_loop, ceiling = list(self._held), self.newest_ns
        self.reset()
        if not new_loop:
            self._ceiling_ns = ceiling
        return new_loop

    def push(self, sample: M) -> Verdict:
        """Take the next sample, one row, and return its verdict."""
        if not self._is_valid(sample):
            return Verdict.INVALID
        stamp = int(sample.stamp_ns[0])
        if self._ceiling_ns is not None:
            if 0 < stamp - self._ceiling_ns <= _STALE_NS:
                return Verdict.STALE
            self._ceiling_ns = None
        if self.finished:
            # The next loop may begin before the clock jumps.
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
        if len(self._window) >= _MAX_WINDOW:
            return Verdict.AHEAD
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
        """Return True if a sample of this stamp would follow a gap that is too long to bridge.

        Such a sample deletes all samples before it, so measure before you push it.
        """
        if self.finished or self.newest_ns is None:
            return False
        return stamp_ns - self.newest_ns > self._longest_gap_ns

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one are final; None if none is."""
        if len(self._window) <= SAMPLES_AHEAD or self.newest_ns is None:
            return None
        if self.finished:
            return self.newest_ns + 1
        return int(self._window[-SAMPLES_AHEAD].stamp_ns[0])

    def samples(self, before_ns: int) -> M:
        """Return the samples since `trim` that times before `before_ns` depend on.

        MotionError if there are no samples.
        """
        return _concatenate(self._rows(before_ns))

    def _rows(self, before_ns: int) -> list[M]:
        if not self._window:
            raise MotionError(f'{self.title} has 0 samples; at least 3 are needed')
        past = bisect.bisect_left(self._window, before_ns, key=lambda row: int(row.stamp_ns[0]))
        return self._window[: max(past - 1, 0) + _WINDOW]

    def trim(self, before_ns: int) -> None:
        """Delete the samples that only times before `before_ns` depend on."""
        removable, past = len(self._window) - _WINDOW, 0
        while (
            past < removable and int(self._window[past + SAMPLES_BEHIND].stamp_ns[0]) <= before_ns
        ):
            past += 1
        del self._window[:past]

    def keep_last(self, count: int) -> None:
        """Delete all but the last samples; the oldest of them becomes the first."""
        del self._window[:-count]
        if self._window:
            self.origin_ns = int(self._window[0].stamp_ns[0])

    def _is_valid(self, sample: M) -> bool:
        raise NotImplementedError

    def _start(self, sample: M, stamp: int) -> None:
        self._window.append(sample)
        self.origin_ns = self.newest_ns = stamp

    def _hold(self, sample: M, stamp: int) -> None:
        if self._held and stamp <= int(self._held[-1].stamp_ns[0]):
            self._held.clear()
        if len(self._held) < _MAX_HELD:
            self._held.append(sample)


class LiveOdometry(LiveSamples[OdometryArray]):
    """Window of arriving odometry.

    Parameters
    ----------
    velocity : str
        Source of the velocity; see `OdometryMotion`.
    gap_factor : float
        An interval longer than this many median intervals is a gap. Gaps are bridged as in a
        batch run.
    longest_gap : float
        After a longer gap, s, the next sample is a new start.

    Attributes
    ----------
    gap : float
        Length of the latest gap, s; 0 before the first.
    origin_ns, newest_ns : int or None
        Stamps of the first sample, which is time 0, and of the newest accepted one.
    finished : bool
        Whether the record has ended.
    """

    title = 'odometry'

    def __init__(self, *, velocity: str, gap_factor: float, longest_gap: float) -> None:
        super().__init__(gap_factor, longest_gap)
        self._velocity = velocity

    def motion(self, before_ns: int) -> OdometryMotion:
        """Return the motion since `trim` and before `before_ns`, which ends as in a batch run.

        MotionError if there are fewer than three samples.
        """
        origin_ns = 0 if self.origin_ns is None else self.origin_ns
        return _motion_of(tuple(self._rows(before_ns)), origin_ns, self._velocity)

    def _is_valid(self, sample: OdometryArray) -> bool:
        """Return True if `check_values` accepts the sample, after a faster test."""
        rows = (
            sample.position, sample.linear_velocity, sample.angular_velocity, sample.orientation
        )  # fmt: skip
        numbers = [number for row in rows for number in row[0].tolist()]
        if all(map(math.isfinite, numbers)) and math.hypot(*numbers[-4:]) > 1e-3:
            return True
        try:
            check_values(sample)
        except MotionError:
            return False
        return True


@functools.lru_cache(maxsize=8)
def _motion_of(rows: tuple[OdometryArray, ...], origin_ns: int, velocity: str) -> OdometryMotion:
    """Return the motion of samples; the sensors of a process that share them share the motion."""
    return OdometryMotion(_concatenate(list(rows)), origin_ns=origin_ns, velocity=velocity)


class LiveNoiseFree(LiveSamples[Any]):
    """Window of messages of a noise-free sensor; gaps of any length are bridged.

    `improve(motion, messages, origin_ns)` returns the motion as that sensor measured it, as
    `SensorModel.ideal` does. `fields` are the names of the fields that must be finite.
    """

    title = 'the noise-free sensor'

    def __init__(
        self, improve: Callable[[Motion, Any, int], Motion], fields: tuple[str, ...]
    ) -> None:
        super().__init__(math.inf, _FOR_EVER)
        self.improve = improve
        self._fields = fields

    @classmethod
    def from_kind(
        cls,
        kind: type[SensorModel[Any]],
        mounting: Mounting,
        surroundings: Callable[[], dict[str, Any]],
    ) -> LiveNoiseFree:
        """Return the window for the noise-free sensor of a kind.

        `surroundings` returns the properties of the world that `start` of a model takes.
        """
        ideal = kind.ideal
        assert ideal is not None

        def improve(motion: Motion, messages: Any, origin_ns: int) -> Motion:
            return ideal(
                motion, messages, origin_ns=origin_ns, mounting=mounting, **surroundings()
            )

        return cls(improve, kind.ideal_values)

    def _is_valid(self, sample: Any) -> bool:
        has_fix = not isinstance(sample, FixArray) or sample.status[0] >= 0
        return has_fix and all(np.isfinite(getattr(sample, name)).all() for name in self._fields)


def _concatenate(samples: list[M]) -> M:
    """Return one array of all samples; frames are those of the first."""
    first = samples[0]
    names = [field.name for field in dataclasses.fields(first)]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(sample, name) for sample in samples])
        for name in names
        if not isinstance(getattr(first, name), str)
    }
    return dataclasses.replace(first, **arrays)


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
        self._restart()

    def _restart(self) -> None:
        self._sensor = self._switch_on()
        self._index: int | None = None

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
        if verdict is Verdict.RESTARTED:
            self._restart()
        return verdict

    def push_noise_free(self, sample: MessageArray) -> Verdict:
        """Take the next message of the noise-free sensor, one row."""
        assert self.noise_free is not None
        verdict = self.noise_free.push(sample)
        if self.odometry.newest_ns is None:
            self.noise_free.keep_last(_MAX_EARLY)
        while self._early and self.noise_free.origin_ns is not None:
            self.push(self._early.popleft())
        return verdict

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one can be measured; None if none can."""
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
        """Restart after a backward clock jump; return the samples to push again."""
        new_loop = self.odometry.rewind()
        self._early.clear()
        if self.noise_free is not None:
            for sample in self.noise_free.rewind():
                self.noise_free.push(sample)
        self._restart()
        return new_loop

    def change(self, switch_on: Callable[[], Sensor[T]]) -> None:
        """Continue on the same stamps with a new sensor."""
        self._switch_on = switch_on
        self._sensor = switch_on()
