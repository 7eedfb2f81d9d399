# SPDX-License-Identifier: Apache-2.0
"""What a user is told about a recording or a run: records with a code, merged over many runs.

Each code is declared once, in a module `findings.py` of the folder that finds it. A text is made
where it is shown.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim_sensors.core.errors import Remark, Sim2RealError

FINDINGS = 'findings.txt'
"""File of a result that has all of them."""
Number = float | tuple[float, float]
"""A value, or the least and the greatest of many runs."""


class Severity(enum.IntEnum):
    """How much a finding matters; what matters most is shown first."""

    DECISIVE = 0
    """The result, or a part of it, means nothing unless the user acts."""
    ASSUMED = 1
    """The recording does not say it, so a value was assumed."""
    ROUTINE = 2
    """Worth knowing; no action is needed."""


_KINDS: dict[str, FindingKind] = {}


@dataclasses.dataclass(frozen=True)
class FindingKind:
    """The declaration of a code; call it to make a finding.

    Attributes
    ----------
    code : str
        Such as `navsat.no_fix`.
    severity : Severity
    text : str
        Template. `{speed:.3g m/s}` is a number with its format and unit, `{node}` a word, and
        `{problem!s}` a `Remark` with numbers of its own. Runs are merged when their words, and
        what remarks say around their numbers, are equal; numbers become ranges.
    meaning : str
        What it means for the result, for docs/reference/findings.md.
    remedy : str
        What the user can do; empty if there is nothing to do. A template as the text.
    per_model : bool
        Whether `merge_models` keeps the simulated models apart.
    """

    code: str
    severity: Severity
    text: str
    meaning: str
    remedy: str = ''
    per_model: bool = False

    def __call__(self, subject: str = '', /, **values: Any) -> Finding:
        """Make a finding about a topic, input or file.

        Other values than one for each name in text and remedy are a ValueError.
        """
        if values.keys() != {name for name, _, _ in self.fields}:
            raise ValueError(f'{self.code}: {sorted(values)} do not fit {self.text!r}')
        numbers = {name: values[name] for name, form, _ in self.fields if form}
        words = {name: str(values[name]) for name, form, _ in self.fields if not form}
        for name, value in values.items():
            if isinstance(value, Remark):
                words[name] = value.template
                numbers |= value.numbers
        plain = {name: _plain(number) for name, number in numbers.items()}
        return Finding(self, subject, plain, words)

    @property
    def fields(self) -> list[tuple[str, str, str]]:
        """Names in both templates with format and unit; a word has neither."""
        found = _fields(self.text)
        known = {name for name, _, _ in found}
        return found + [each for each in _fields(self.remedy) if each[0] not in known]


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that the user should know about a recording, a run or many runs.

    Attributes
    ----------
    kind : FindingKind
    subject : str
        Topic, input or file that it is about; may be empty.
    numbers : mapping of str to (float or (float, float))
        In the units of the declaration; of merged runs the least and the greatest.
    words : mapping of str to str
        The other values of the template.
    runs : tuple of (group, count, total)
        In how many runs of each group it was found; empty for a single run.
    where : str
        Scenarios, recordings or judge that it concerns, if not all.
    """

    kind: FindingKind
    subject: str = ''
    numbers: Mapping[str, Number] = dataclasses.field(default_factory=dict)
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)
    runs: tuple[tuple[str, int, int], ...] = ()
    where: str = ''

    def __hash__(self) -> int:
        return hash((self._key, self.where, self.runs, tuple(sorted(self.numbers.items()))))

    def __repr__(self) -> str:
        return f'<{self.severity.name.lower()} {self.code}: {self}>'

    def __str__(self) -> str:
        """Return the text: where, how many runs, subject, what was found, remedy."""
        who = ' and '.join(f'{count} of {total} {group} runs' for group, count, total in self.runs)
        about = ': '.join(filter(None, (self.where, who, self.subject, self.problem)))
        return '; '.join(filter(None, (about, self.remedy)))

    @property
    def code(self) -> str:
        """Code of the declaration."""
        return self.kind.code

    @property
    def severity(self) -> Severity:
        """Severity of the declaration."""
        return self.kind.severity

    @property
    def remedy(self) -> str:
        """What the user can do; where runs need different numbers, VALUE stands for them."""
        text, differ = self._filled(self.kind.remedy, 'VALUE')
        return f'{text}; the VALUE of each recording: sim2real check' if differ else text

    @property
    def problem(self) -> str:
        """What was found: the text without subject and remedy."""
        return self._filled(self._template)[0]

    def _filled(self, template: str, between: str = '') -> tuple[str, bool]:
        """Return a template with its values, and whether one of them is a range, for which
        `between` may stand.
        """
        text, differ = '', False
        for literal, name, form, _ in string.Formatter().parse(template):
            text += literal
            if name and form:
                ends = _range_texts(self.numbers[name], form)
                differ |= len(ends) > 1
                unit = _form_and_unit(form)[1]
                number = between if between and len(ends) > 1 else ' to '.join(ends)
                text += number + (f' {unit}' if unit else '')
            elif name:
                text += self.words[name]
        return text, differ

    @property
    def _template(self) -> str:
        """The text of the kind with its remarks put in."""
        return re.sub(r'\{(\w+)!s\}', lambda found: self.words[found[1]], self.kind.text)

    @property
    def _key(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        return self.code, self.subject, tuple(sorted(self.words.items()))

    def is_like(self, other: Finding) -> bool:
        """Whether both say the same but for numbers, so that runs are merged."""
        return self._key == other._key

    def of(self, where: str) -> Finding:
        """Return the same, said of a part: a judge, a scenario, a recording."""
        return dataclasses.replace(self, where=': '.join(filter(None, (where, self.where))))

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        units = {name: unit for name, _, unit in [*self.kind.fields, *_fields(self._template)]}
        record: dict[str, Any] = {
            'code': self.code,
            'severity': self.severity.name.lower(),
            'subject': self.subject,
            'numbers': {
                name: {'value': _to_json(number), 'unit': units[name]}
                for name, number in self.numbers.items()
            },
            'words': dict(self.words),
            'text': str(self),
            'remedy': self.remedy,
        }
        if self.runs:
            record['runs'] = [list(each) for each in self.runs]
        if self.where:
            record['where'] = self.where
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_record` wrote; an unknown code is a Sim2RealError."""
        kind = _KINDS.get(record['code']) or declared_kinds().get(record['code'])
        if kind is None:
            raise Sim2RealError(
                f'finding {record["code"]!r} is unknown; see docs/reference/findings.md'
            )
        numbers = {name: _from_json(each['value']) for name, each in record['numbers'].items()}
        runs = tuple((group, count, total) for group, count, total in record.get('runs', ()))
        return cls(
            kind, record['subject'], numbers, record['words'], runs, record.get('where', '')
        )


def decisive(
    code: str, text: str, meaning: str, remedy: str = '', *, per_model: bool = False
) -> FindingKind:
    """Declare a finding without which the result would be misread; see `FindingKind`."""
    return _declare(FindingKind(code, Severity.DECISIVE, text, meaning, remedy, per_model))


def assumed(
    code: str, text: str, meaning: str, remedy: str = '', *, per_model: bool = False
) -> FindingKind:
    """Declare a finding about a value that was assumed; see `FindingKind`."""
    return _declare(FindingKind(code, Severity.ASSUMED, text, meaning, remedy, per_model))


def routine(code: str, text: str, meaning: str, remedy: str = '') -> FindingKind:
    """Declare a finding that needs no action; see `FindingKind`."""
    return _declare(FindingKind(code, Severity.ROUTINE, text, meaning, remedy))


def _declare(kind: FindingKind) -> FindingKind:
    if _KINDS.setdefault(kind.code, kind) != kind:
        raise ValueError(f'finding {kind.code!r} is declared twice')
    return kind


def declared_kinds() -> dict[str, FindingKind]:
    """Return every declaration of the package, and of plugins loaded so far, sorted by code."""
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob('findings.py')):
        importlib.import_module('.'.join(path.relative_to(package.parent).with_suffix('').parts))
    return dict(sorted(_KINDS.items()))


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, the most severe first, equal ones in the order given."""
    return sorted(dict.fromkeys(findings), key=lambda finding: finding.severity)


def findings_text(findings: Iterable[Finding], left_out: Iterable[object] = ()) -> str:
    """Return a line for each recording that was left out, with the reason, and for each finding
    with its severity, as findings.txt has them.
    """
    lines = [f'left out: {one}' for one in left_out]
    lines += [f'{one.severity.name.lower()}: {one}' for one in findings]
    return ''.join(f'{line}\n' for line in lines)


def to_records(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as plain values, the most severe first."""
    return [finding.to_record() for finding in by_severity(findings)]


def from_records(records: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Return the findings that `to_records` wrote."""
    return tuple(map(Finding.from_record, records))


def merge_findings(runs: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Merge the findings of many runs, each of a group such as `real`, by code, subject and words.

    Returns
    -------
    list of Finding
        Sorted by severity, code and subject, with the number of runs of each group and the range
        of each number. The order of the runs does not matter.
    """
    return _merge((group, group, findings) for group, findings in runs)


def shared_findings(found: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Say once what all judges, the keys, share, and of the rest which judge it is about."""
    shared = set.intersection(*(set(findings) for findings in found.values()))
    return by_severity(
        finding if finding in shared else finding.of(f'judge {judge}')
        for judge, findings in found.items()
        for finding in findings
    )


def merge_models(runs: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Merge as `merge_findings`, for runs of several models and `real` ones.

    All models form the group `simulated`, except for a kind with `per_model`.
    """
    return _merge(
        ('real', 'real', findings)
        if model == 'real'
        else ('simulated', f'simulated {model}', findings)
        for model, findings in runs
    )


def _merge(runs: Iterable[tuple[str, str, Sequence[Finding]]]) -> list[Finding]:
    totals: dict[str, int] = {}
    found: dict[Any, tuple[dict[str, int], list[Finding]]] = {}
    for group, own_group, findings in runs:
        for name in {group, own_group}:
            totals[name] = totals.get(name, 0) + 1
        for key in dict.fromkeys((finding._key, finding.where) for finding in findings):
            same = [each for each in findings if (each._key, each.where) == key]
            counts, members = found.setdefault(key, ({}, []))
            members += same
            name = own_group if same[0].kind.per_model else group
            counts[name] = counts.get(name, 0) + 1
    merged = []
    for counts, members in found.values():
        numbers: dict[str, Number] = {}
        for name in members[0].numbers:
            lows, highs = zip(*(_ends(member.numbers[name]) for member in members), strict=True)
            low, high = min(lows), max(highs)
            numbers[name] = low if low == high else (low, high)
        shares = tuple((group, count, totals[group]) for group, count in sorted(counts.items()))
        merged.append(dataclasses.replace(members[0], numbers=numbers, runs=shares))
    return sorted(merged, key=lambda finding: (finding.severity, finding._key, finding.where))


def _ends(number: Number) -> tuple[float, float]:
    return number if isinstance(number, tuple) else (number, number)


def _plain(value: Any) -> float:
    # Stamps in nanoseconds have more digits than a float.
    return int(value) if hasattr(value, '__index__') else float(value)


def _to_json(number: Number) -> Any:
    if isinstance(number, tuple):
        return [_to_json(each) for each in number]
    return number if math.isfinite(number) else str(number)


def _from_json(value: Any) -> Number:
    if isinstance(value, list):
        return _plain(value[0]), _plain(value[1])
    return _plain(value)


def _fields(text: str) -> list[tuple[str, str, str]]:
    parts = [part for part in string.Formatter().parse(text) if part[1]]
    return [(str(name), *_form_and_unit(form or '')) for _, name, form, _ in parts]


def _form_and_unit(form: str) -> tuple[str, str]:
    form, _, unit = form.partition(' ')
    return form, unit


def shown(number: float, form: str) -> str:
    """Return a number as text; what is rounded to zero is not negative."""
    text = format(number, form)
    return text if text.strip('-0.%') else format(abs(number), form)


def _range_texts(number: Number, form: str) -> list[str]:
    """Return one text, or two where the ends of a range differ as they are shown."""
    form, _ = _form_and_unit(form)
    return list(dict.fromkeys(shown(end, form) for end in _ends(number)))
