# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Outcomes of the checks of recordings: pass, warn or fail, line by line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sim2real_eval.common.findings import Finding, Severity, by_severity, merge_findings

PASS, WARN, FAIL = 'pass', 'warn', 'fail'

_WORSE = 1.1
"""Ratio of speed errors, corrected over recorded, above which corrections are withheld."""


@dataclasses.dataclass(frozen=True)
class Measure:
    """Measured value of a check, its limit, and the finding if it is beyond it.

    Attributes
    ----------
    value : float or None
        In the unit of the check; None if there is no number.
    limit : float or None
        Limit of the value.
    finding : Finding or None
        Problem, if there is one: a decisive one fails the check, others are warnings.
    subject : str
        Role, and part of the check.
    scale : str
        Kind of limit: `most` or `least` of the value, `either` for its size, `ratio` for its
        distance from 1.
    unit : str or None
        Unit of the value if it is not that of the check.
    """

    value: float | None
    limit: float | None
    finding: Finding | None = None
    subject: str = ''
    scale: str = 'most'
    unit: str | None = None

    @property
    def share(self) -> float | None:
        """Value relative to its limit; 1 is at the limit, None without a limit."""
        value, limit = self.value, self.limit
        if value is None or not limit:
            return None
        if self.scale == 'least':
            return limit / value if value > 0.0 else math.inf
        if self.scale == 'ratio':
            return abs(math.log(value)) / math.log(limit) if value > 0.0 else math.inf
        return abs(value) / limit


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Measure of a named check."""

    check: str
    default_unit: str
    measure: Measure

    @property
    def unit(self) -> str:
        """Unit of the value; a ratio has none."""
        unit = self.default_unit if self.measure.unit is None else self.measure.unit
        return '' if self.measure.scale == 'ratio' else unit

    @property
    def status(self) -> str:
        """`pass`, `warn` or `fail`."""
        finding = self.measure.finding
        if finding is None:
            return PASS
        return FAIL if finding.severity is Severity.DECISIVE else WARN

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        measure = self.measure
        return {
            'check': self.check,
            'subject': measure.subject,
            'status': self.status,
            'value': measure.value,
            'limit': measure.limit,
            'unit': self.unit,
            'finding': None if measure.finding is None else measure.finding.to_record(),
        }


@dataclasses.dataclass(frozen=True)
class Preflight:
    """Outcomes of all checks of one recording, in the order of the checks.

    Attributes
    ----------
    corrections : mapping
        Corrections by role and key that `corrections` of its recording.yaml should contain in
        total; empty if nothing can be corrected.
    path : str
        Where it was read; empty for a recording made in memory.
    lever_arms : mapping
        Entry `lever_arms` of its recording.yaml; empty if none is found.
    changes : mapping
        Corrections by role that are applied after those of the recording.
    original : mapping
        Corrections by role with which the recording was read.
    speed_errors : (float, float) or None
        Root mean square errors of the speed that the judge estimates, m/s, as recorded and with
        the corrections; None if it was not judged.
    """

    recording: str
    outcomes: tuple[Outcome, ...]
    corrections: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    path: str = ''
    lever_arms: Mapping[str, list[float]] = dataclasses.field(default_factory=dict)
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    original: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    speed_errors: tuple[float, float] | None = None

    @property
    def is_made_worse(self) -> bool:
        """Whether the corrections increase the judge's error, although all checks agree with them.

        Then the truth or another sensor probably has an error that the recorded one balances.
        """
        if self.speed_errors is None:
            return False
        recorded, corrected = self.speed_errors
        return corrected > _WORSE * recorded

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        record: dict[str, Any] = {
            'recording': self.recording,
            'status': self.status,
            'checks': [outcome.to_record() for outcome in self.outcomes],
            'corrections': {role: dict(values) for role, values in self.corrections.items()},
            'lever_arms': dict(self.lever_arms),
        }
        if self.speed_errors is not None:
            record['speed_errors'] = list(self.speed_errors)
        return record

    def with_findings(self, change: Callable[[Finding], Finding | None]) -> Preflight:
        """Return the outcomes with each finding replaced by `change` of it."""

        def changed(outcome: Outcome) -> Outcome:
            finding = outcome.measure.finding
            if finding is None:
                return outcome
            measure = dataclasses.replace(outcome.measure, finding=change(finding))
            return dataclasses.replace(outcome, measure=measure)

        return dataclasses.replace(self, outcomes=tuple(map(changed, self.outcomes)))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Problems of the recording."""
        findings = (outcome.measure.finding for outcome in self.outcomes)
        return tuple(finding for finding in findings if finding is not None)

    @property
    def status(self) -> str:
        """Worst status of all checks."""
        return worst(outcome.status for outcome in self.outcomes)


@dataclasses.dataclass(frozen=True)
class Line:
    """A check over many recordings, or one subject of it.

    Attributes
    ----------
    label : str
        Name of the check, and of the subject if it has several lines.
    outcomes : tuple of (recording, Outcome)
        Outcomes of all recordings.
    """

    label: str
    outcomes: tuple[tuple[str, Outcome], ...]

    @property
    def status(self) -> str:
        """Worst status of all recordings."""
        return worst(outcome.status for _, outcome in self.outcomes)

    @property
    def limiting(self) -> Outcome:
        """Outcome of the worst status whose value is nearest to its limit, or furthest beyond."""
        outcomes = [outcome for _, outcome in self.outcomes if outcome.status == self.status]
        shares = [
            -1.0 if outcome.measure.share is None else outcome.measure.share
            for outcome in outcomes
        ]
        return outcomes[shares.index(max(shares))]

    def count(self, status: str) -> int:
        """Return the number of recordings of which this is the worst status."""
        statuses: dict[str, list[str]] = {}
        for name, outcome in self.outcomes:
            statuses.setdefault(name, []).append(outcome.status)
        return sum(worst(of_recording) == status for of_recording in statuses.values())


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of some statuses."""
    return max(statuses, key=(PASS, WARN, FAIL).index, default=PASS)


def lines(runs: Sequence[Preflight], *, by_subject: bool = False) -> list[Line]:
    """Return one line per check over all recordings, in the order of the checks."""
    grouped: dict[tuple[str, str], list[tuple[str, Outcome]]] = {}
    for run in runs:
        for outcome in run.outcomes:
            subject = outcome.measure.subject if by_subject else ''
            grouped.setdefault((outcome.check, subject), []).append((run.recording, outcome))
    return [
        Line(', '.join(filter(None, key)), tuple(outcomes)) for key, outcomes in grouped.items()
    ]


def merge_runs(runs: Sequence[Preflight]) -> list[Finding]:
    """Return the findings of all recordings, merged, the most severe first."""
    if len(runs) == 1:
        return by_severity(runs[0].findings)
    return merge_findings(('', run.findings) for run in runs)
