# SPDX-License-Identifier: Apache-2.0
"""A verdict as JUnit XML, which every CI shows: a case per judge, group, model and scenario.

The form is that of Ant's JUnitReport (the schema that most readers are written for): attributes
and elements of a testsuite as required there, in its order.
"""

from __future__ import annotations

import datetime
import re
import xml.etree.ElementTree as ET

from sim2real_eval.study.gate.result import GateCase
from sim2real_eval.study.gate.verdict import GateVerdict

_SUITE = 'sim2real.gate'
_NOT_IN_XML = re.compile('[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')


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
        text = f'left out: {", ".join(verdict.left_out)}'
        _fail(case, text)
    for one in verdict.cases:
        _case(suite, one)
    ET.SubElement(suite, 'system-out').text = _clean(verdict.reason)
    ET.SubElement(suite, 'system-err').text = ''
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding='utf-8', xml_declaration=True)
    return body + b'\n'


def _case(suite: ET.Element, one: GateCase) -> None:
    where = '.'.join(filter(None, (_SUITE, one.cell.judge, one.cell.group)))
    element = _element(suite, f'{one.cell.model} {one.cell.scenario}', where)
    if one.broken:
        _fail(element, '; '.join(one.broken))
    elif one.skipped:
        ET.SubElement(element, 'skipped', {'message': one.skipped})


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
