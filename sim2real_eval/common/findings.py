# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings about a recording or a run: records with a code, merged over many runs.

Each code is declared once, by `decisive`, `assumed` or `routine`, in a module of the package that
reports it. Values are filled into its text when a finding is shown.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim_sensors.core.errors import Remark, Sim2RealError, printable
from sim_sensors.core.input_files import read_input_text

FINDINGS = 'findings.txt'
"""File of a result that lists all findings."""
Number = float | tuple[float, float]
"""A number of one run, or the smallest and the largest of several."""


class Severity(enum.IntEnum):
    """Severity of a finding; the most severe findings are shown first."""

    DECISIVE = 0
    """The result, or a part of it, is misleading unless the user acts."""
    ASSUMED = 1
    """A value was assumed because the recording does not contain it."""
    ROUTINE = 2
    """Worth knowing; no action is needed."""


_KINDS: dict[str, FindingKind] = {}
_DECLARATION = re.compile(r'^\w+ = (decisive|assumed|routine)\(', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class FindingKind:
    """The declaration of a finding; calling it makes a finding.

    Attributes
    ----------
    code : str
        Unique code, such as `navsat.no_fix`.
    severity : Severity
    text : str
        Template. `{speed:.3g m/s}` is a number with its format and unit, `{node}` a string, and
        `{problem!s}` a `Remark` with numbers of its own. Findings of several runs are merged when
        their words are equal; their numbers become ranges.
    meaning : str
        Consequence for the result, shown in docs/reference/findings.md.
    remedy : str
        Template of an action for the user; empty if there is none.
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

        The values must be those named in text and remedy, otherwise a ValueError is raised.
        """
        if values.keys() != {name for name, _, _ in self.fields}:
            raise ValueError(f'{self.code}: {sorted(values)} do not fit {self.text!r}')
        numbers = {name: values[name] for name, form, _ in self.fields if form}
        words = {name: str(values[name]) for name, form, _ in self.fields if not form}
        for name, value in values.items():
            if isinstance(value, Remark):
                words[name] = value.template
                numbers |= value.numbers
        numbers = {name: _to_python_number(number) for name, number in numbers.items()}
        return Finding(self, subject, numbers, words)

    @property
    def fields(self) -> list[tuple[str, str, str]]:
        """Name, format and unit of each value in both templates; format and unit may be empty."""
        fields = {field[0]: field for field in [*_fields(self.remedy), *_fields(self.text)]}
        names = [name for name, _, _ in [*_fields(self.text), *_fields(self.remedy)]]
        return [fields[name] for name in dict.fromkeys(names)]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fact about a recording, a run or several runs that the user should know.

    Attributes
    ----------
    kind : FindingKind
    subject : str
        Topic, input or file concerned; may be empty.
    numbers : mapping of str to (float or (float, float))
        Numbers in the units of the declaration; ranges for merged runs.
    words : mapping of str to str
        Strings in the template, by name.
    runs : tuple of (group, count, total)
        Number of runs of each group with the finding; empty for a single run.
    where : str
        Scenarios, recordings or judge to which it is restricted; empty if it is not.
    withheld : str
        Replacement for a remedy that must not be proposed; empty if it may be.
    """

    kind: FindingKind
    subject: str = ''
    numbers: Mapping[str, Number] = dataclasses.field(default_factory=dict)
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)
    runs: tuple[tuple[str, int, int], ...] = ()
    where: str = ''
    withheld: str = ''

    def __hash__(self) -> int:
        return hash((self._key, self.where, self.runs, tuple(sorted(self.numbers.items()))))

    def __repr__(self) -> str:
        return f'<{self.severity.name.lower()} {self.code}: {self}>'

    def __str__(self) -> str:
        """Return place, number of runs, subject, problem and remedy in one line."""
        counts = ' and '.join(
            f'{group} run' if total == 1 else f'{_share_text(count, total)} {group} runs'
            for group, count, total in self.runs
        )
        problem = ': '.join(filter(None, (self.where, counts, self.subject, self.problem)))
        return printable('; '.join(filter(None, (problem, self.remedy))))

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
        """Action for the user; VALUE stands for a number that differs between runs."""
        if self.withheld:
            return self.withheld
        text, has_ranges = self._fill(self.kind.remedy, 'VALUE')
        return (
            f'{text}; `sim2real check` prints the VALUE for each recording' if has_ranges else text
        )

    @property
    def problem(self) -> str:
        """The text without subject and remedy."""
        return self._fill(self._template)[0]

    def _fill(self, template: str, range_text: str = '') -> tuple[str, bool]:
        """Return a template with its values, and whether one of them is a range.

        `range_text` replaces ranges, if it is not empty.
        """
        text, has_ranges = '', False
        for literal, name, form, _ in string.Formatter().parse(template):
            text += literal
            if name and form:
                number_form, _, unit = form.partition(' ')
                ends = [format_number(end, number_form) for end in _ends(self.numbers[name])]
                # The ends of a range may be equal after rounding.
                is_range = ends[0] != ends[1]
                has_ranges |= is_range
                number = ' to '.join(ends) if is_range else ends[0]
                text += range_text if range_text and is_range else number
                text += f' {unit}' if unit else ''
            elif name:
                text += self.words[name]
        return text, has_ranges

    @property
    def _template(self) -> str:
        """Text of the declaration with the templates of its remarks put in."""
        return re.sub(r'\{(\w+)!s\}', lambda match: self.words[match[1]], self.kind.text)

    @property
    def _key(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        words = tuple(sorted({**self.words, '': self.withheld}.items()))
        return self.code, self.subject, words

    def is_like(self, other: Finding) -> bool:
        """Return whether two findings differ at most in their numbers."""
        return self._key == other._key

    def restrict_to(self, where: str) -> Finding:
        """Return the finding restricted to a judge, scenario or recording."""
        return dataclasses.replace(self, where=': '.join(filter(None, (where, self.where))))

    def to_record(self) -> dict[str, Any]:
        """Return the finding as plain values for JSON."""
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
            record['runs'] = [list(group) for group in self.runs]
        if self.where:
            record['where'] = self.where
        if self.withheld:
            record['withheld'] = self.withheld
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_record` wrote.

        A record from another version whose code or values are not declared keeps its stored text.
        """
        kind = _find_kind(record['code'])
        stored = {*record['numbers'], *record['words']}
        if kind is None or not stored.issuperset(name for name, _, _ in kind.fields):
            text = record['text'].replace('{', '{{').replace('}', '}}')
            return cls(FindingKind(record['code'], Severity[record['severity'].upper()], text, ''))
        numbers = {name: _from_json(number['value']) for name, number in record['numbers'].items()}
        runs = tuple((group, count, total) for group, count, total in record.get('runs', ()))
        where, withheld = record.get('where', ''), record.get('withheld', '')
        return cls(kind, record['subject'], numbers, record['words'], runs, where, withheld)


def decisive(
    code: str, text: str, meaning: str, remedy: str = '', *, per_model: bool = False
) -> FindingKind:
    """Declare a finding that makes a result misleading; see `FindingKind`."""
    return _declare(FindingKind(code, Severity.DECISIVE, text, meaning, remedy, per_model))


def assumed(
    code: str, text: str, meaning: str, remedy: str = '', *, per_model: bool = False
) -> FindingKind:
    """Declare a finding about an assumed value; see `FindingKind`."""
    return _declare(FindingKind(code, Severity.ASSUMED, text, meaning, remedy, per_model))


def routine(code: str, text: str, meaning: str, remedy: str = '') -> FindingKind:
    """Declare a finding that needs no action; see `FindingKind`."""
    return _declare(FindingKind(code, Severity.ROUTINE, text, meaning, remedy))


def _declare(kind: FindingKind) -> FindingKind:
    if _KINDS.setdefault(kind.code, kind) != kind:
        raise ValueError(f'finding {kind.code!r} is declared twice')
    return kind


def declared_kinds() -> dict[str, FindingKind]:
    """Return the declarations of this package and of loaded plugins, sorted by code."""
    _import_declarations()
    return dict(sorted(_KINDS.items()))


def _find_kind(code: str) -> FindingKind | None:
    """Return the declaration of a code, or None; import its module if necessary."""
    area = code.partition('.')[0]
    # Importing all of these modules takes seconds.
    for text in (f"'{code}'", f"'{area}.", ''):
        if code not in _KINDS:
            _import_declarations(text)
    return _KINDS.get(code)


@functools.cache
def _import_declarations(text: str = '') -> None:
    """Import the modules of this package that declare findings and contain a string."""
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob('*.py')):
        source = read_input_text(path)
        if text in source and _DECLARATION.search(source):
            module = path.relative_to(package.parent).with_suffix('')
            importlib.import_module('.'.join(module.parts))


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, the most severe first, otherwise in the given order."""
    return sorted(dict.fromkeys(findings), key=lambda finding: finding.severity)


def findings_text(findings: Iterable[Finding], left_out: Iterable[object] = ()) -> str:
    """Return the content of findings.txt: a line per left-out recording and per finding."""
    lines = [f'left out: {recording}' for recording in left_out]
    lines += [f'{finding.severity.name.lower()}: {finding}' for finding in findings]
    return ''.join(f'{line}\n' for line in lines)


def to_records(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as plain values, the most severe first."""
    return [finding.to_record() for finding in by_severity(findings)]


def from_records(records: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Return the findings that `to_records` wrote."""
    return tuple(map(Finding.from_record, records))


def merge_findings(runs: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Merge the findings of runs, each of a group such as `real`.

    Findings of equal code, subject and words become one, with the number of runs of each group and
    the range of each number. The result is sorted by severity, code and subject.
    """
    return _merge((group, group, findings) for group, findings in runs)


def shared_findings(judge_findings: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Return the findings that all judges share, and the others with the name of their judge."""
    shared = set.intersection(*(set(findings) for findings in judge_findings.values()))
    return by_severity(
        finding if finding in shared else finding.restrict_to(f'judge {judge}')
        for judge, findings in judge_findings.items()
        for finding in findings
    )


def merge_models(runs: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Merge the findings of runs, each of a model or `real`; see `merge_findings`.

    All models form the group `simulated`, except for kinds with `per_model`.
    """
    return _merge(
        ('real', 'real', findings)
        if model == 'real'
        else ('simulated', f'simulated {model}', findings)
        for model, findings in runs
    )


def _merge(runs: Iterable[tuple[str, str, Sequence[Finding]]]) -> list[Finding]:
    """Merge the findings of runs, each with its group and the group of its model."""
    totals: dict[str, int] = {}
    merged: dict[Any, tuple[dict[str, int], list[Finding]]] = {}
    for group, model_group, findings in runs:
        for name in {group, model_group}:
            totals[name] = totals.get(name, 0) + 1
        counted = set()
        for finding in findings:
            key = (finding._key, finding.where)
            counts, members = merged.setdefault(key, ({}, []))
            members.append(finding)
            name = model_group if finding.kind.per_model else group
            if key not in counted:
                counted.add(key)
                counts[name] = counts.get(name, 0) + 1
    result = []
    for counts, members in merged.values():
        numbers = _merge_numbers(members)
        shares = tuple((group, count, totals[group]) for group, count in sorted(counts.items()))
        result.append(dataclasses.replace(members[0], numbers=numbers, runs=shares))
    return sorted(result, key=lambda finding: (finding.severity, finding._key, finding.where))


def merge_subjects(findings: Iterable[Finding]) -> list[Finding]:
    """Merge the findings that differ only in their subjects and numbers.

    Findings whose remedy has a number stay apart, since each subject needs its own.
    """
    merged: dict[Any, list[Finding]] = {}
    for finding in findings:
        code, subject, words = finding._key
        has_number = any(form for _, form, _ in _fields(finding.kind.remedy))
        key = code, words, finding.where, finding.runs, subject if has_number else ''
        merged.setdefault(key, []).append(finding)
    return [
        dataclasses.replace(
            members[0],
            subject=', '.join(dict.fromkeys(member.subject for member in members)),
            numbers=_merge_numbers(members),
        )
        for members in merged.values()
    ]


def _merge_numbers(findings: Sequence[Finding]) -> dict[str, Number]:
    """Return the numbers of like findings, as ranges where they differ."""
    numbers: dict[str, Number] = {}
    for name in findings[0].numbers:
        lows, highs = zip(*(_ends(finding.numbers[name]) for finding in findings), strict=True)
        low, high = min(lows), max(highs)
        numbers[name] = low if low == high else (low, high)
    return numbers


def _share_text(count: int, total: int) -> str:
    if count != total:
        return f'{count} of {total}'
    return 'both' if total == 2 else f'all {total}'


def _ends(number: Number) -> tuple[float, float]:
    return number if isinstance(number, tuple) else (number, number)


def _to_python_number(value: Any) -> float:
    # Stamps in nanoseconds have more digits than a float.
    return int(value) if hasattr(value, '__index__') else float(value)


def _to_json(number: Number) -> Any:
    if isinstance(number, tuple):
        return [_to_json(end) for end in number]
    return number if math.isfinite(number) else str(number)


def _from_json(value: Any) -> Number:
    if isinstance(value, list):
        return _to_python_number(value[0]), _to_python_number(value[1])
    return _to_python_number(value)


def _fields(template: str) -> list[tuple[str, str, str]]:
    """Return the name, format and unit of each value of a template."""
    parts = string.Formatter().parse(template)
    forms = [(name, (form or '').partition(' ')) for _, name, form, _ in parts if name]
    return [(name, form, unit) for name, (form, _, unit) in forms]


def format_number(number: float, form: str) -> str:
    """Return a formatted number, without a minus sign if it is rounded to zero."""
    text = format(number, form)
    return text if text.strip('-0.%') else format(abs(number), form)


class RecordingError(Sim2RealError):
    """A recording cannot be read, used or written.

    The message is one line: file or folder, topic or key, what is wrong and what is allowed.
    """


class JudgeError(Sim2RealError):
    """The judge cannot run on this recording with this configuration."""


class FitError(Sim2RealError):
    """A model cannot be fitted to these data."""


class UnusableFitError(FitError):
    """A fit did not converge, or contradicts most of its data, so that nothing is written."""
