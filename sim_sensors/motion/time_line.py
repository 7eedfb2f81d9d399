# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rule by which a stream of messages changes to another time line.

A single wrong stamp must not end a stream, and a simulator that starts again must not be refused
for ever. Messages that do not continue a stream are therefore held until there are enough of them.
The rule depends on stamps alone, so that a live stream does not depend on scheduling.
"""

from __future__ import annotations

import collections
import statistics
from collections.abc import Hashable
from typing import Generic, TypeVar

M = TypeVar('M')

AHEAD_STEPS = 10
"""Usual steps beyond which a stamp counts as ahead of time."""

AHEAD_COUNT = 3
"""Messages ahead of time that end a gap; a single one is a wrong stamp, as in a recording."""

NEW_LINE_COUNT = 20
"""Messages that begin an earlier time line, unless the clock says so first. An accepted stamp is
at most `AHEAD_STEPS` steps ahead, and makes fewer messages late."""

# Usual steps for which the present line must be silent, so that a second publisher with a higher
# rate does not replace it.
_SILENT_STEPS = 5
# Steps for the median, and steps before it is known.
_MEDIAN_OF, _MIN_STEPS = 50, 2
# Held messages; as many as a subscription queues.
_MAX_HELD = 1000


class NewTimeLine(Generic[M]):
    """Messages in a row that do not continue a stream, and may begin another time line.

    They are consistent if they have one reason and increasing stamps; others replace them. Clear
    it when a message continues the stream.

    Parameters
    ----------
    longest_step_ns : int
        Longest step between two consistent messages.

    Examples
    --------
    >>> line = NewTimeLine[str](10**9)
    >>> [line.add(name, stamp, 'late', 3) for name, stamp in (('a', 5), ('b', 6), ('c', 7))]
    [False, False, True]
    >>> line.messages
    ['a', 'b', 'c']
    """

    def __init__(self, longest_step_ns: int) -> None:
        self._longest_step_ns = longest_step_ns
        self.messages: list[M] = []
        self.clear()

    def clear(self) -> None:
        """Forget all messages."""
        self.messages = []
        self.reason: Hashable = None
        self._first_ns = self._last_ns = 0

    def is_complete_with(
        self, stamp_ns: int, reason: Hashable, count: int, usual_step_ns: int = 0
    ) -> bool:
        """Return whether a message of this stamp would be the last that a new line needs.

        Parameters
        ----------
        stamp_ns : int
            Stamp of the message.
        reason : hashable
            Reason why it does not continue the stream.
        count : int
            Messages that are needed; with more than three of them also five usual steps of time.
        usual_step_ns : int
            Usual step of the present line; 0 if it is unknown.
        """
        if not self.is_continued_by(stamp_ns, reason):
            return False
        silence_ns = _SILENT_STEPS * usual_step_ns if count > AHEAD_COUNT else 0
        return len(self.messages) + 1 >= count and stamp_ns - self._first_ns >= silence_ns

    def add(
        self, message: M, stamp_ns: int, reason: Hashable, count: int, usual_step_ns: int = 0
    ) -> bool:
        """Hold a message, and return whether it completes a new line; see `is_complete_with`."""
        is_complete = self.is_complete_with(stamp_ns, reason, count, usual_step_ns)
        if not self.is_continued_by(stamp_ns, reason):
            self.messages = []
            self._first_ns = stamp_ns
        if len(self.messages) < _MAX_HELD:
            self.messages.append(message)
        self.reason, self._last_ns = reason, stamp_ns
        return is_complete

    def is_continued_by(self, stamp_ns: int, reason: Hashable) -> bool:
        """Return whether a message would be consistent with the held ones."""
        step_ns = stamp_ns - self._last_ns
        return (
            bool(self.messages) and reason == self.reason and 0 < step_ns <= self._longest_step_ns
        )


class UsualStep:
    """Median of the latest steps between stamps, `ns`; 0 before there are two."""

    def __init__(self) -> None:
        self._steps: collections.deque[int] = collections.deque(maxlen=_MEDIAN_OF)
        self.ns = 0

    def add(self, step_ns: int) -> None:
        """Add a step between two messages of a line."""
        self._steps.append(step_ns)
        if len(self._steps) >= _MIN_STEPS:
            self.ns = int(statistics.median_low(self._steps))

    def is_exceeded(self, step_ns: int) -> bool:
        """Return whether a step ends ahead of time."""
        return 0 < AHEAD_STEPS * self.ns < step_ns


class TopicTimeLines:
    """Time lines of several topics whose consumer cannot go back in time by itself.

    Parameters
    ----------
    least_step_ns : int
        Step back beyond which a message is not only late.
    """

    def __init__(self, least_step_ns: int) -> None:
        self._least_step_ns = least_step_ns
        self.clear()

    def clear(self) -> None:
        """Forget all stamps, as after a reset."""
        self._newest_ns: dict[str, int] = {}
        self._new_lines: dict[str, NewTimeLine[None]] = {}

    def begins_earlier(self, topic: str, stamp_ns: int) -> bool:
        """Take the stamp of a message; return True once an earlier time line has begun."""
        newest_ns = self._newest_ns.setdefault(topic, stamp_ns)
        new_line = self._new_lines.setdefault(topic, NewTimeLine(self._least_step_ns))
        if stamp_ns < newest_ns - self._least_step_ns:
            return new_line.add(None, stamp_ns, 'late', NEW_LINE_COUNT)
        self._newest_ns[topic] = max(newest_ns, stamp_ns)
        new_line.clear()
        return False
