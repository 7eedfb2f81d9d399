# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Health of a live judge: counts of its messages, and findings about what needs attention now."""

from __future__ import annotations

import collections
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sim2real_eval.common.findings import Finding, Severity, by_severity, decisive, to_records
from sim2real_eval.judge.estimate import PartCount
from sim2real_eval.recording.checks import STAMP_REPEATED
from sim_sensors.core.rotations import euler_from_quaternion
from .advice import NO_MESSAGE
from .live import LiveJudge

OK, WARN, ERROR = range(3)
"""Levels, as in diagnostic_msgs/DiagnosticStatus."""

# Findings count the last 5 s or a little more of the node's clock.
_WINDOW_NS = 5 * 10**9
_STEP_NS = 10**9
_SILENT_S = 5.0
_MESSAGE_LENGTH = 80

NO_ESTIMATE = decisive(
    'live.no_estimate',
    'no estimate: {reason}',
    'The node has published nothing on odometry/filtered for 5 s.',
    'check its topics and the clock',
)
NOT_FINITE = decisive(
    'live.not_finite',
    'the estimate is not finite',
    'The filter does not recover from NaN or infinity.',
    'check process noise and covariances, and call `~/reset`',
)
DISABLED = decisive(
    'live.disabled',
    'the filter is disabled',
    'With `disabled_at_startup`, measurements wait, and nothing is published.',
    'call the service `enable`',
)
TOGGLED_OFF = decisive(
    'live.toggled_off',
    'measurements are not used: processing is toggled off',
    'The state is published unchanged, with the stamp of the tick.',
    'call the service `toggle`',
)
SEVERAL_PUBLISHERS = decisive(
    'live.several_publishers',
    'has {count:d} publishers, whose messages mix',
    'Messages of two sources look like one jumping sensor.',
    'leave one of them',
)
MESSAGES_REFUSED = decisive(
    'live.messages_refused',
    'refused: {reason}',
    'Refused messages do not reach the filter. The finding ends 5 s after the last of them; for '
    'an input, a valid message must also arrive.',
)
INPUT_SILENT = decisive(
    'live.input_silent',
    'no message for {seconds:g s}',
    'The input has sent messages before; odometry/gps comes from gps/fix.',
    'check whether its publisher runs and has a fix',
)
_ERRORS = (NO_ESTIMATE, NOT_FINITE)
LIVE_KINDS = (
    *_ERRORS, DISABLED, TOGGLED_OFF, SEVERAL_PUBLISHERS, MESSAGES_REFUSED, INPUT_SILENT
)  # fmt: skip
"""Kinds of findings that only a live judge has."""


@dataclasses.dataclass
class _Refusals:
    """Refused messages of one subscription."""

    count: int
    reason: str
    last_s: float
    is_over: bool = False  # a good message has arrived since, or none is expected


class JudgeHealth:
    """Counts of a live judge, and findings about its last seconds.

    `clock` returns the steady time, s.
    """

    def __init__(self, live: LiveJudge, clock: Callable[[], float] = time.monotonic) -> None:
        self._live, self._clock = live, clock
        self.received: dict[str, int] = {}
        self.published = 0
        self.resets = 0
        self.last_reset = ''
        self._refused: dict[str, _Refusals] = {}
        # By topic: the newest stamp, and the number of messages that repeat a stamp.
        self._stamps: dict[str, int] = {}
        self._repeated: dict[str, int] = {}
        self._orientation: npt.ArrayLike | None = None
        self._estimate_s, self._estimate_ns = clock(), 0
        self._past: collections.deque[tuple[int, tuple[PartCount, ...]]] = collections.deque()
        self._known: set[tuple[str, str]] = set()

    def count_received(self, subscription: str) -> None:
        """Count a message of a subscription."""
        self.received[subscription] = self.received.get(subscription, 0) + 1

    def check_stamp(self, topic: str, stamp_ns: int) -> None:
        """Count a message that repeats the stamp of the previous one."""
        if self._stamps.get(topic) == stamp_ns:
            self._repeated[topic] = self._repeated.get(topic, 0) + 1
        self._stamps[topic] = stamp_ns

    def count_estimate(self, orientation: npt.ArrayLike, now_ns: int) -> None:
        """Count an estimate that was published at a time; its quaternion is x y z w."""
        self.published += 1
        self._orientation = orientation
        self._estimate_s, self._estimate_ns = self._clock(), now_ns

    def count_reset(self, reason: str) -> None:
        """Count a reset, after which nothing of the past is compared."""
        self.resets += 1
        self.last_reset = reason
        self._past.clear()

    def count_accepted(self, subscription: str) -> None:
        """Note that a message was used; refusals before it are over after a while."""
        if subscription in self._refused:
            self._refused[subscription].is_over = True

    def count_refused(self, subscription: str, reason: str, *, is_rare: bool = False) -> bool:
        """Count a message that could not be used; return True if that is news.

        `is_rare` is a subscription that may never receive another message.
        """
        previous = self._refused.get(subscription)
        is_news = previous is None or not self._is_current(previous)
        count = 0 if previous is None else previous.count
        self._refused[subscription] = _Refusals(count + 1, reason, self._clock(), is_rare)
        return is_news

    def _is_current(self, refusals: _Refusals) -> bool:
        return not refusals.is_over or self._clock() < refusals.last_s + _SILENT_S

    def findings(self, now_ns: int, publishers: Mapping[str, int]) -> list[Finding]:
        """Return what holds now, the worst first.

        Parameters
        ----------
        now_ns : int
            Time of the node's clock.
        publishers : mapping of str to int
            Number of publishers of each topic that must have one.
        """
        errors, warnings = self._output_findings(now_ns), []
        warnings += [
            MESSAGES_REFUSED(name, reason=refusals.reason)
            for name, refusals in self._refused.items()
            if self._is_current(refusals)
        ]
        warnings += [
            SEVERAL_PUBLISHERS(topic, count=count)
            for topic, count in publishers.items()
            if count > 1
        ]
        past = self._past_counts(now_ns)
        if past is not None:
            warnings += map(self._in_live_words, self._live.notes(past))
        return [*errors, *by_severity(warnings)]

    def _in_live_words(self, finding: Finding) -> Finding:
        """Return the finding, or that the input has fallen silent."""
        if finding.kind is not NO_MESSAGE:
            return finding
        source = finding.subject.split()[0]
        had_messages = any(
            part.received for part in self._live.parts if part.name.split()[0] == source
        )
        return INPUT_SILENT(finding.subject, seconds=_SILENT_S) if had_messages else finding

    def _output_findings(self, now_ns: int) -> list[Finding]:
        live = self._live
        if not live.enabled:
            return [DISABLED()]
        findings = [] if live.processing else [TOGGLED_OFF()]
        if self._orientation is not None and not np.isfinite(self._orientation).all():
            return [NOT_FINITE(), *findings]
        if self._clock() >= self._estimate_s + _SILENT_S:
            return [NO_ESTIMATE(reason=self._silence(now_ns)), *findings]
        return findings

    def _silence(self, now_ns: int) -> str:
        """Return the reason why no estimate is published."""
        if now_ns == 0:
            return 'waits for /clock'
        if not any(self.received.values()):
            return 'no message has arrived'
        if not self._live.initialised:
            return 'no measurement could be used'
        return 'the clock stands' if now_ns <= self._estimate_ns else 'no new measurement'

    def _past_counts(self, now_ns: int) -> tuple[PartCount, ...] | None:
        """Return the counts of 5 s ago or earlier; None if the judge has not run for so long."""
        past = self._past
        if now_ns == 0:
            return None  # simulated time that has not begun
        if past and now_ns < past[-1][0]:
            past.clear()
        if not past or now_ns >= past[-1][0] + _STEP_NS:
            past.append((now_ns, self._live.parts))
        while len(past) > 1 and past[1][0] <= now_ns - _WINDOW_NS:
            past.popleft()
        return past[0][1] if past[0][0] <= now_ns - _WINDOW_NS else None

    def news(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the decisive findings that did not hold at the previous call."""
        decisive_findings = [
            finding
            for finding in findings
            # The first refused message is logged at once.
            if finding.severity is Severity.DECISIVE and finding.kind is not MESSAGES_REFUSED
        ]
        known, self._known = self._known, {(f.code, f.subject) for f in decisive_findings}
        return [f for f in decisive_findings if (f.code, f.subject) not in known]

    def message(self, findings: Sequence[Finding]) -> str:
        """Return the most severe finding in at most 80 characters."""
        serious = [finding for finding in findings if level_of([finding]) > OK]
        if not serious:
            return 'judging' if self.published else 'waits for its first measurement'
        more = f' (+{len(serious) - 1})' if len(serious) > 1 else ''
        return _shorten(plain_text(serious[0]), _MESSAGE_LENGTH - len(more)) + more

    def values(self) -> list[tuple[str, object]]:
        """Return the counts by name."""
        values: list[tuple[str, object]] = [('published', self.published)]
        if self._orientation is not None:
            heading = math.degrees(euler_from_quaternion(self._orientation)[2])
            values.append(('heading [deg]', f'{heading:.1f}'))
        values += [('resets', self.resets), ('last reset', self.last_reset)]
        values += [(f'{name} received', count) for name, count in sorted(self.received.items())]
        values += [(f'{name} refused', r.count) for name, r in sorted(self._refused.items())]
        values += [(f'{topic} stamps repeated', n) for topic, n in sorted(self._repeated.items())]
        for part in self._live.parts:
            for count in ('older', 'unusable', 'fused', 'rejected'):
                values.append((f'{part.name} {count}', getattr(part, count)))
        return values

    def summary(self, findings: Sequence[Finding]) -> dict[str, object]:
        """Return counts, present findings and the notes of a batch run as plain values."""
        repeated = [STAMP_REPEATED(topic, count=n) for topic, n in self._repeated.items()]
        return {
            'level': level_of(findings),
            'message': self.message(findings),
            'findings': to_records(findings),
            'received': self.received,
            'refused': {name: refusals.count for name, refusals in self._refused.items()},
            'published': self.published,
            'resets': self.resets,
            'parts': [dataclasses.asdict(part) for part in self._live.parts],
            'notes': to_records([*self._live.notes(), *repeated]),
        }


def plain_text(finding: Finding) -> str:
    """Return subject and problem of a finding, without the remedy."""
    return ': '.join(filter(None, (finding.subject, finding.problem)))


def _shorten(text: str, length: int) -> str:
    """Return the beginning of a text, up to the end of a clause if that keeps half of it."""
    if len(text) <= length:
        return text
    room = length - len('...')
    end = max(text.rfind(mark, 0, room) for mark in (': ', '; ', ', '))
    return f'{text[: end if end > length // 2 else room].rstrip()}...'


def level_of(findings: Sequence[Finding]) -> int:
    """Return ERROR if no estimate can come, WARN if a finding is decisive, else OK."""
    if any(finding.kind in _ERRORS for finding in findings):
        return ERROR
    return WARN if any(f.severity is Severity.DECISIVE for f in findings) else OK
