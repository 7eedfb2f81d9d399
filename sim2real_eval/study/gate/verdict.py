# SPDX-License-Identifier: Apache-2.0
"""What came of a result that was held against limits, as text, JSON and JUnit XML.

JUnit XML is what every CI shows: a case per judge, group, model and scenario. The form is that of
Ant's JUnitReport (the schema that most readers are written for): attributes and elements of a
testsuite as required there, in its order.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
import xml.etree.ElementTree as ET
from typing import Any, NamedTuple

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.study.options import GateOptions

_MOST = 5
_SUITE = 'sim2real.gate'
_NOT_IN_XML = re.compile('[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')


class Cell(NamedTuple):
    """One number that a gate holds against a limit."""

    # The group is empty where there is none; scenario `all` is all of them pooled.
    judge: str
    group: str
    model: str
    scenario: str

    def __str__(self) -> str:
        where = f'{self.judge}, {self.group}' if self.group else self.judge
        scenario = 'all scenarios' if self.scenario == POOLED else self.scenario
        return f'{self.model} in {scenario} (judge {where})'


@dataclasses.dataclass(frozen=True)
class GateCase:
    """One number, held against its limits."""

    cell: Cell
    vepd: float | None  # None: the baseline has it, the result has not
    # From `uncertainty`; None where that cannot be told.
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    null_median: float | None = None
    # VEPD of the baseline, and how much more it is now, with its interval.
    baseline: float | None = None
    increase: float | None = None
    increase_low: float | None = None
    increase_high: float | None = None
    broken: tuple[str, ...] = ()  # limits that are broken, in words; empty: passed
    skipped: str = ''  # why nothing was held against it; empty as a rule

    def told(self, options: GateOptions) -> str:
        """Return its VEPD and what is known of that, in words."""
        text = f'VEPD {self.vepd:.4g}{interval(self.low, self.high, options)}'
        if self.p_value is not None:
            text += f', p-value under a perfect model {self.p_value:.2g}'
        return text

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        fields = {**vars(self), 'broken': list(self.broken)}
        del fields['cell']
        passed = not self.broken and not self.skipped
        return {**self.cell._asdict(), 'passed': passed, **fields}


@dataclasses.dataclass(frozen=True)
class GateVerdict:
    """All cases, and what to make of them.

    Attributes
    ----------
    options : GateOptions
    cases : tuple of GateCase
    left_out : tuple of str
        Recordings that are not in the result: it then does not pass.
    notes : tuple of str
    """

    options: GateOptions
    cases: tuple[GateCase, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no limit is broken and no recording is missing."""
        return not self.left_out and not any(case.broken for case in self.cases)

    @property
    def reason(self) -> str:
        """One paragraph: what broke which limit, or how close the nearest came to one."""
        broken = [case for case in self.cases if case.broken]
        held = [case for case in self.cases if not case.skipped]
        numbers = f'{len(held)} number{"" if len(held) == 1 else "s"}'
        sentences = []
        if self.left_out:
            sentences.append(f'Recordings were left out: {", ".join(self.left_out)}')
        if broken:
            breaks = 'breaks' if len(broken) == 1 else 'break'
            worst = sorted(broken, key=lambda case: -_beyond(case, self.options))[:_MOST]
            order = ', worst first' if len(broken) > 1 else ''
            sentences.append(f'{len(broken)} of {numbers} {breaks} a limit{order}')
            sentences += [f'{case.cell}: {"; ".join(case.broken)}' for case in worst]
            if len(broken) > _MOST:
                sentences.append(f'So do {len(broken) - _MOST} more')
        elif not self.left_out:
            # Compared by its increase, where a case has one.
            nearest = max(
                held, key=lambda one: one.vepd or 0.0 if one.increase is None else one.increase
            )
            sentences.append(
                f'{numbers} within the limits; the closest to its limit is '
                f'{nearest.cell}: {nearest.told(self.options)}{_over(nearest)}'
            )
        sentences += self.notes
        return f'{"PASS" if self.passed else "FAIL"}: {". ".join(sentences)}.'

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            'passed': self.passed,
            'reason': self.reason,
            'options': {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in dataclasses.asdict(self.options).items()
            },
            'cases': [case.to_mapping() for case in self.cases],
            'left_out': list(self.left_out),
            'notes': list(self.notes),
        }


def _beyond(case: GateCase, options: GateOptions) -> float:
    """Return by how much a case is beyond that of its limits which it breaks most.

    By what is held against the limits; by the number itself where a bound cannot be told. A number
    that is gone is beyond everything.
    """
    if case.vepd is None:
        return math.inf
    found = [-math.inf]
    for limit, value, low, high in (
        (options.max_vepd, case.vepd, case.low, case.high),
        (options.max_increase, case.increase, case.increase_low, case.increase_high),
    ):
        if limit is not None and value is not None:
            bound = {'estimate': value, 'low': low, 'high': high}[options.by]
            found.append((value if bound is None else bound) - limit)
    return max(found)


def _over(case: GateCase) -> str:
    if case.increase is None:
        return ''
    if case.increase == 0.0:
        return ', as in the baseline'
    where = 'above' if case.increase > 0.0 else 'below'
    return f', {abs(case.increase):.4g} {where} the baseline'


def interval(low: float | None, high: float | None, options: GateOptions) -> str:
    """Return an interval in words; nothing where it cannot be told."""
    if low is None or high is None:
        return ''
    return f', {options.confidence:.0%} from {low:.4g} to {high:.4g}'


def junit_xml(verdict: GateVerdict, when: datetime.datetime) -> bytes:
    """Return the verdict as XML.

    `when`: of the check, with its time zone.
    """
    failures = sum(bool(case.broken) for case in verdict.cases) + bool(verdict.left_out)
    skipped = sum(bool(case.skipped) for case in verdict.cases)
    count = len(verdict.cases) + bool(verdict.left_out)
    totals = {'tests': count, 'failures': failures, 'errors': 0}
    root = ET.Element('testsuites')
    suite = ET.SubElement(
        root,
        'testsuite',
        {
            'name': _SUITE,
            'package': _SUITE,
            'id': '0',
            **{name: str(number) for name, number in totals.items()},
            'skipped': str(skipped),
            'time': '0',
            'timestamp': when.astimezone(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S'),
            'hostname': 'localhost',
        },
    )
    properties = ET.SubElement(suite, 'properties')
    for name in ('max_vepd', 'max_increase', 'by', 'confidence'):
        value = getattr(verdict.options, name)
        if value is not None:
            ET.SubElement(properties, 'property', {'name': name, 'value': str(value)})
    if verdict.left_out:
        case = _element(suite, 'recordings', f'{_SUITE}.recordings')
        _fail(case, f'left out: {", ".join(verdict.left_out)}')
    for one in verdict.cases:
        where = '.'.join(filter(None, (_SUITE, one.cell.judge, one.cell.group)))
        element = _element(suite, f'{one.cell.model} {one.cell.scenario}', where)
        if one.broken:
            _fail(element, '; '.join(one.broken))
        elif one.skipped:
            ET.SubElement(element, 'skipped', {'message': one.skipped})
    ET.SubElement(suite, 'system-out').text = _clean(verdict.reason)
    ET.SubElement(suite, 'system-err').text = ''
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding='utf-8', xml_declaration=True)
    return body + b'\n'


def _element(suite: ET.Element, name: str, where: str) -> ET.Element:
    return ET.SubElement(
        suite, 'testcase', {'name': _clean(name), 'classname': _clean(where), 'time': '0'}
    )


def _fail(case: ET.Element, text: str) -> None:
    failure = ET.SubElement(case, 'failure', {'message': _clean(text), 'type': 'limit'})
    failure.text = _clean(text)


def _clean(text: str) -> str:
    """Replace what XML 1.0 has no way to write; labels may hold anything."""
    return _NOT_IN_XML.sub('\ufffd', text)
