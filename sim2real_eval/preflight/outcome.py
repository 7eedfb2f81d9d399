# SPDX-License-Identifier: Apache-2.0
"""What the pre-flight of recordings came to: pass, warn or fail, line by line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sim2real_eval.common.findings import Finding, Severity, by_severity, merge_findings

PASS, WARN, FAIL = 'pass', 'warn', 'fail'


@dataclasses.dataclass(frozen=True)
class Measure:
    """What a check measured.

    Attributes
    ----------
    value : float or None
        In the unit of the check; None where there is no number.
    limit : float or None
        From where on it is told.
    finding : Finding or None
        What is wrong, if anything is: a decisive one fails, another one warns.
    subject : str
        Role, and part of the check.
    scale : str
        What the limit bounds: `most` the value from above, `least` from below, `either` its size,
        `ratio` how far it is from 1 either way.
    unit : str or None
        Of the value, where it is not that of the check.
    """

    value: float | None
    limit: float | None
    finding: Finding | None = None
    subject: str = ''
    scale: str = 'most'
    unit: str | None = None

    @property
    def share(self) -> float | None:
        """How much of what is allowed the value takes; 1 is the limit, None where it has none."""
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
    """A measure of a check."""

    check: str
    own_unit: str
    measure: Measure

    @property
    def unit(self) -> str:
        """Unit of the value; a ratio has none."""
        own = self.own_unit if self.measure.unit is None else self.measure.unit
        return '' if self.measure.scale == 'ratio' else own

    @property
    def status(self) -> str:
        """`pass`, `warn` or `fail`."""
        finding = self.measure.finding
        if finding is None:
            return PASS
        return FAIL if finding.severity is Severity.DECISIVE else WARN

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        one = self.measure
        return {
            'check': self.check,
            'subject': one.subject,
            'status': self.status,
            'value': one.value,
            'limit': one.limit,
            'unit': self.unit,
            'finding': None if one.finding is None else one.finding.to_record(),
        }


@dataclasses.dataclass(frozen=True)
class Preflight:
    """All measures of one recording, in the order of the checks.

    Attributes
    ----------
    corrections : mapping
        What puts right all that was found and can be, by role and key: what `corrections` of its
        recording.yaml should hold in total.
    path : str
        Where it was read; empty for one that was not.
    """

    recording: str
    outcomes: tuple[Outcome, ...]
    corrections: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    path: str = ''

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        checks = [one.to_record() for one in self.outcomes]
        return {
            'recording': self.recording,
            'status': self.status,
            'checks': checks,
            'corrections': {role: dict(one) for role, one in self.corrections.items()},
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong."""
        found = (one.measure.finding for one in self.outcomes)
        return tuple(one for one in found if one is not None)

    @property
    def status(self) -> str:
        """The worst status."""
        return worst(one.status for one in self.outcomes)


@dataclasses.dataclass(frozen=True)
class Line:
    """A check over many recordings, or one subject of it.

    Attributes
    ----------
    label : str
        Name of the check, and of the subject where there are several lines of it.
    outcomes : tuple of (recording, Outcome)
    """

    label: str
    outcomes: tuple[tuple[str, Outcome], ...]

    @property
    def status(self) -> str:
        """The worst status."""
        return worst(one.status for _, one in self.outcomes)

    @property
    def limiting(self) -> Outcome:
        """The measure that takes the most of what is allowed, of the worst status."""
        found = [one for _, one in self.outcomes if one.status == self.status]
        shares = [-1.0 if one.measure.share is None else one.measure.share for one in found]
        return found[shares.index(max(shares))]

    def count(self, status: str) -> int:
        """Return the number of recordings of which this is the worst status."""
        found: dict[str, list[str]] = {}
        for name, one in self.outcomes:
            found.setdefault(name, []).append(one.status)
        return sum(worst(each) == status for each in found.values())


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of some statuses."""
    return max(statuses, key=(PASS, WARN, FAIL).index, default=PASS)


def lines(runs: Sequence[Preflight], *, by_subject: bool = False) -> list[Line]:
    """Return one line per check over all recordings, in the order of the checks."""
    found: dict[tuple[str, str], list[tuple[str, Outcome]]] = {}
    for run in runs:
        for one in run.outcomes:
            subject = one.measure.subject if by_subject else ''
            found.setdefault((one.check, subject), []).append((run.recording, one))
    return [Line(', '.join(filter(None, key)), tuple(outcomes)) for key, outcomes in found.items()]


def merged(runs: Sequence[Preflight]) -> list[Finding]:
    """Return what is wrong in any recording, merged, the most severe first."""
    if len(runs) == 1:
        return by_severity(runs[0].findings)
    return merge_findings(('', run.findings) for run in runs)
