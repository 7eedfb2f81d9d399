# SPDX-License-Identifier: Apache-2.0
"""Odometry and messages of noise-free sensors that are still arriving, and what is final of them.

The last interval waits for samples that never come until `finish` says so.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import enum
import math
import statistics
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.odometry import SAMPLES_AHEAD, SAMPLES_BEHIND, OdometryMotion, check_values
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.sensor import SensorModel

T = TypeVar('T')
M = TypeVar('M', bound=MessageArray)

# Those that the interval which the next sample makes final depends on, without that sample; the
# interval that ends a record depends on the same.
_KEPT = SAMPLES_BEHIND + SAMPLES_AHEAD - 1
# Refused samples that may turn out to be the start of the next loop; as many as a subscription
# queues.
_HELD = 1000
# How far the loop before the jump may go on after it. By stamp: odometry that goes on while the
# clock alone steps back costs this much motion, whatever its rate.
_STALE_NS = 1_000_000_000
# Samples that wait for a stream that is behind: a minute and more of a physics engine.
_MOST = 100_000
# Longer than any gap, s.
_FOR_EVER = 1e9
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
    EARLY = 'refused: before the noise-free sensor began'
    WAITING = 'waits for the noise-free sensor to begin'
    AHEAD = 'refused: too far ahead of what it is measured with'

    @property
    def accepted(self) -> bool:
        """Whether the sample counts."""
        return self in (Verdict.ACCEPTED, Verdict.GAP, Verdict.RESTARTED, Verdict.WAITING)


class LiveSamples(Generic[M]):
    """The arriving samples, one row each, that what is interpolated still depends on.

    All since the last call of `trim`, and three before it. What it answers depends on the samples
    and on the calls of `rewind` alone, never on a clock.
    """

    what: ClassVar[str]

    def __init__(self, gap_factor: float, longest_gap: float) -> None:
        self._gap_factor = gap_factor
        self._longest_gap_ns = round(longest_gap * 1e9)
        self._held: list[M] = []
        self._ceiling_ns: int | None = None
        self.gap = 0.0
        self._discard()

    def _discard(self) -> None:
        self._window: list[M] = []
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
            raise MotionError(
                f'{self.what} has {len(self._window)} samples; at least 3 are needed'
            )

    def reset(self) -> None:
        """Forget everything; the next sample is the first."""
        self._discard()
        self._held.clear()
        self._ceiling_ns = None

    def rewind(self) -> list[M]:
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

    def push(self, sample: M) -> Verdict:
        """Take the next sample, one row, and say what became of it."""
        if not self._is_valid(sample):
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
        if len(self._window) >= _MOST:
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

    def samples(self, before_ns: int) -> M:
        """Return what times before `before_ns` depend on, since `trim`.

        A `MotionError` says that there is nothing.
        """
        if not self._window:
            raise MotionError(f'{self.what} has 0 samples; at least 3 are needed')
        past = bisect.bisect_left(self._window, before_ns, key=lambda one: int(one.stamp_ns[0]))
        return _joined(self._window[: max(past - 1, 0) + _KEPT])

    def trim(self, before_ns: int) -> None:
        """Forget the samples that only times before `before_ns` depend on."""
        most, past = len(self._window) - _KEPT, 0
        while past < most and int(self._window[past + SAMPLES_BEHIND].stamp_ns[0]) <= before_ns:
            past += 1
        del self._window[:past]

    def keep_last(self, count: int) -> None:
        """Forget all but the last samples: they were the first."""
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
        if len(self._held) < _HELD:
            self._held.append(sample)


class LiveOdometry(LiveSamples[OdometryArray]):
    """The samples of arriving odometry that motion still depends on.

    `velocity` says where velocity comes from; see `OdometryMotion`. An interval above `gap_factor`
    median intervals is a gap, `gap` the length of the latest, s, 0 before any; it is bridged, as
    in batch, unless longer than `longest_gap`, s: then the sample after it is a new start.
    `origin_ns` and `newest_ns` are stamps of the first sample, which is time 0, and of the newest
    that counts, None before it; `finished` tells whether the last sample has come.
    """

    what = 'odometry'

    def __init__(self, *, velocity: str, gap_factor: float, longest_gap: float) -> None:
        super().__init__(gap_factor, longest_gap)
        self._velocity = velocity

    def motion(self, before_ns: int) -> OdometryMotion:
        """Return the motion before `before_ns` that `trim` left, by the batch's rule for its end.

        A `MotionError` says that there are fewer than three samples.
        """
        origin_ns = 0 if self.origin_ns is None else self.origin_ns
        samples = self.samples(before_ns)
        return OdometryMotion(samples, origin_ns=origin_ns, velocity=self._velocity)

    def _is_valid(self, sample: OdometryArray) -> bool:
        """Whether `check_values` accepts the sample; it is asked only where this is not plain."""
        rows = (
            sample.position, sample.linear_velocity, sample.angular_velocity, sample.orientation
        )  # fmt: skip
        values = [value for row in rows for value in row[0].tolist()]
        if all(map(math.isfinite, values)) and math.hypot(*values[-4:]) > 1e-3:
            return True
        try:
            check_values(sample)
        except MotionError:
            return False
        return True


class LiveNoiseFree(LiveSamples[Any]):
    """The messages of a noise-free sensor, of which gaps are bridged whatever their length.

    `improve(motion, messages, origin_ns)` returns the motion as that sensor measured it, as
    `SensorModel.ideal` does; `values` names the fields that have to be finite.
    """

    what = 'the noise-free sensor'

    def __init__(
        self, improve: Callable[[Motion, Any, int], Motion], values: tuple[str, ...]
    ) -> None:
        super().__init__(math.inf, _FOR_EVER)
        self.improve = improve
        self._values = values

    @classmethod
    def of(
        cls,
        kind: type[SensorModel[Any]],
        place: Mounting,
        surroundings: Callable[[], dict[str, Any]],
    ) -> LiveNoiseFree:
        """Return what takes the messages of the noise-free sensor of a kind, at its place.

        `surroundings` gives what `start` of a model of the kind takes of the world.
        """
        ideal = kind.ideal
        assert ideal is not None

        def improve(motion: Motion, messages: Any, origin_ns: int) -> Motion:
            return ideal(motion, messages, origin_ns=origin_ns, mounting=place, **surroundings())

        return cls(improve, kind.ideal_values)

    def _is_valid(self, sample: Any) -> bool:
        has_fix = not isinstance(sample, FixArray) or sample.status[0] >= 0
        return has_fix and all(np.isfinite(getattr(sample, name)).all() for name in self._values)


def _joined(samples: list[M]) -> M:
    """Return one array of all samples; frames are those of the first."""
    first = samples[0]
    names = [field.name for field in dataclasses.fields(first)]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(sample, name) for sample in samples])
        for name in names
        if not isinstance(getattr(first, name), str)
    }
    return dataclasses.replace(first, **arrays)
