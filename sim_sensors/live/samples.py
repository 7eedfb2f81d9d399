# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples of the truth that are still arriving: odometry, and noise-free sensors."""

from __future__ import annotations

import bisect
import dataclasses
import enum
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.odometry import SAMPLES_AHEAD, SAMPLES_BEHIND, OdometryMotion, check_values
from sim_sensors.motion.time_line import AHEAD_COUNT, NEW_LINE_COUNT, NewTimeLine, UsualStep
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.sensor import SensorModel

M = TypeVar('M', bound=MessageArray)

# Number of received samples that the next final interval depends on. The interval at the end of a
# record depends on the same number.
_WINDOW = SAMPLES_BEHIND + SAMPLES_AHEAD - 1
# Stamp interval in which samples after a clock jump are attributed to the previous loop. If only
# the clock steps back and the odometry continues, this much motion is lost.
_STALE_NS = 1_000_000_000
# Stamp interval in which a clock jump follows samples that have begun an earlier time line.
_CLOCK_FOLLOWS_NS = 10_000_000_000
# Most samples that wait for a slower stream: more than a minute of a physics engine at 1 kHz.
_MAX_WINDOW = 100_000
# Longer than any gap, s.
_FOR_EVER = 1e9


class Verdict(enum.Enum):
    """Outcome of a received sample."""

    ACCEPTED = 'accepted'
    GAP = 'accepted after a gap'
    RESTARTED = 'accepted as a new start, after a gap too long to bridge'
    REWOUND = 'accepted as a new start, of an earlier time line'
    RENAMED = 'accepted as a new start, in other frames'
    HELD = 'held until the next samples confirm its stamp, which is far ahead'
    REPEATED = 'refused: stamp repeated'
    LATE = 'refused: stamp before the newest'
    STALE = 'refused: older than the jump of the clock'
    FINISHED = 'refused: the odometry is finished'
    INVALID = 'refused: not finite, or an invalid quaternion'
    EARLY = 'refused: before the noise-free sensor began'
    WAITING = 'waits for the noise-free sensor to begin'
    AHEAD = 'refused: too far ahead of the noise-free sensor'
    OTHER_FRAME = 'refused: other frames than those before'

    @property
    def is_accepted(self) -> bool:
        """Whether the sample was accepted, or may still be."""
        return self.is_new_start or self in (
            Verdict.ACCEPTED, Verdict.GAP, Verdict.WAITING, Verdict.HELD
        )  # fmt: skip

    @property
    def is_new_start(self) -> bool:
        """Whether the sensor starts again with the sample."""
        return self in (Verdict.RESTARTED, Verdict.REWOUND, Verdict.RENAMED)


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
        self._new_line: NewTimeLine[M] = NewTimeLine(self._longest_gap_ns)
        self._ceiling_ns: int | None = None
        self._rewound_ns: int | None = None
        self.gap = 0.0
        self.outliers = 0
        self._discard()

    def _discard(self) -> None:
        self._window: list[M] = []
        self._usual = UsualStep()
        self.origin_ns: int | None = None
        self.newest_ns: int | None = None
        self.finished = False

    def finish(self) -> None:
        """End the record: motion is final up to the newest sample, and later samples are refused.

        This holds until `reset` or `rewind`. MotionError if fewer than three samples have come, so
        that there is no motion; later samples are refused nevertheless.
        """
        if self._new_line.reason is Verdict.HELD and not self._exceeds_longest_gap():
            self._bridge()
        self._refuse_held()
        self.finished = True
        if len(self._window) <= SAMPLES_AHEAD:
            raise MotionError(
                f'{self.title} has {len(self._window)} samples; at least 3 are needed'
            )

    def reset(self) -> None:
        """Delete all samples; the next sample is the first."""
        self._discard()
        self._refuse_held()
        self._new_line.clear()
        self._ceiling_ns = self._rewound_ns = None

    def rewind(self) -> list[M]:
        """Delete the samples before an earlier time line; return those to push again.

        Call it when the clock jumped back or `push` returned `REWOUND`. Samples and clock arrive
        on different topics, in either order. Samples that were refused as late since the last
        accepted one are the start of the new line. If there are none, samples up to a second after
        the newest one belong to the old line and are stale.
        """
        is_late = self._new_line.reason is Verdict.LATE
        new_loop, ceiling = (self._new_line.messages if is_late else []), self.newest_ns
        self.reset()
        if not new_loop:
            self._ceiling_ns = ceiling
        return new_loop

    def note_rewound(self) -> None:
        """Note that an earlier time line has begun before the clock jumped; see `take_jump`."""
        self._rewound_ns = self.origin_ns

    def take_jump(self) -> bool:
        """Return True for the first clock jump after an earlier time line began.

        The samples have then restarted already, and that jump changes nothing.
        """
        rewound_ns, self._rewound_ns = self._rewound_ns, None
        if rewound_ns is None or self.newest_ns is None:
            return False
        return self.newest_ns - rewound_ns <= _CLOCK_FOLLOWS_NS

    def push(self, sample: M) -> Verdict:
        """Take the next sample, one row, and return its verdict.

        After `REWOUND`, push what `rewind` returns; the sample is the last of them.
        """
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
                self._new_line.add(sample, stamp, Verdict.LATE, NEW_LINE_COUNT)
            return Verdict.FINISHED
        if self.newest_ns is None:
            self._start(sample, stamp)
            return Verdict.ACCEPTED
        place = self._place(sample)
        if place is Verdict.REPEATED:
            return place
        if place is not Verdict.ACCEPTED:
            return self._hold(sample, stamp, place)
        self._refuse_held()
        self._new_line.clear()
        return self._append(sample, stamp)

    def _refuse_held(self) -> None:
        """Refuse the samples ahead of time that no further ones have confirmed."""
        if self._new_line.reason is Verdict.HELD:
            self.outliers += len(self._new_line.messages)
            self._new_line.clear()

    def _place(self, sample: M) -> Verdict:
        """Return how a sample follows the newest one; `ACCEPTED` if it continues the line."""
        assert self.newest_ns is not None
        interval = int(sample.stamp_ns[0]) - self.newest_ns
        if interval < 0:
            return Verdict.LATE
        if _frames(sample) != _frames(self._window[-1]):
            return Verdict.OTHER_FRAME
        if interval == 0:
            return Verdict.REPEATED
        if interval > self._longest_gap_ns or self._usual.is_exceeded(interval):
            return Verdict.HELD
        return Verdict.ACCEPTED

    def _hold(self, sample: M, stamp: int, place: Verdict) -> Verdict:
        count = AHEAD_COUNT if place is Verdict.HELD else NEW_LINE_COUNT
        if not self._new_line.is_continued_by(stamp, place):
            self._refuse_held()
        if not self._new_line.add(sample, stamp, place, count, self._usual.ns):
            return place
        if place is Verdict.LATE:
            return Verdict.REWOUND
        if place is Verdict.HELD and not self._exceeds_longest_gap():
            self._bridge()
            return Verdict.GAP
        held, end_ns = self._new_line.messages, self.newest_ns
        self._new_line.clear()
        self._discard()
        for message in held:
            self._append(message, int(message.stamp_ns[0]))
        if place is Verdict.OTHER_FRAME:
            return Verdict.RENAMED
        assert end_ns is not None
        self.gap = (int(held[0].stamp_ns[0]) - end_ns) * 1e-9
        return Verdict.RESTARTED

    def _exceeds_longest_gap(self) -> bool:
        """Return whether the gap before the held samples is too long to bridge."""
        assert self.newest_ns is not None
        first_ns = int(self._new_line.messages[0].stamp_ns[0])
        return first_ns - self.newest_ns > self._longest_gap_ns

    def _bridge(self) -> None:
        """Accept the held samples, after a gap."""
        held = self._new_line.messages
        self._new_line.clear()
        self._append(held[0], int(held[0].stamp_ns[0]))
        gap = self.gap
        for message in held[1:]:
            self._append(message, int(message.stamp_ns[0]))
        self.gap = gap

    def _append(self, sample: M, stamp: int) -> Verdict:
        if self.newest_ns is None:
            self._start(sample, stamp)
            return Verdict.ACCEPTED
        if len(self._window) >= _MAX_WINDOW:
            return Verdict.AHEAD
        interval, usual = stamp - self.newest_ns, self._usual.ns
        self._window.append(sample)
        self._usual.add(interval)
        self.newest_ns = stamp
        if usual and interval > self._gap_factor * usual:
            self.gap = interval * 1e-9
            return Verdict.GAP
        return Verdict.ACCEPTED

    def is_new_start(self, sample: M) -> bool:
        """Return True if a sample would delete all samples before it.

        Measure before you push such a sample.
        """
        if self.finished or self.newest_ns is None or not self._is_valid(sample):
            return False
        place, stamp = self._place(sample), int(sample.stamp_ns[0])
        if place is Verdict.HELD:
            return self._new_line.is_complete_with(stamp, place, AHEAD_COUNT) and (
                self._exceeds_longest_gap()
            )
        if place in (Verdict.LATE, Verdict.OTHER_FRAME):
            return self._new_line.is_complete_with(stamp, place, NEW_LINE_COUNT, self._usual.ns)
        return False

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
    outliers : int
        Number of samples that were held and then refused, since the next ones did not confirm
        their stamps.
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


def _frames(sample: MessageArray) -> tuple[str, str]:
    return sample.frame, getattr(sample, 'child_frame', '')


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
