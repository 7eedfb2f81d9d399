# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The verdict of a gate as JUnit XML, with a test case per number.

The XML follows the schema of Ant's JUnitReport, which most readers accept.
"""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET

from sim_sensors.core.errors import printable
from .gate_verdict import GateVerdict

_SUITE = 'sim2real.gate'


def junit_xml(verdict: GateVerdict, when: datetime.datetime) -> bytes:
    """Return the verdict as JUnit XML; `when` is the time of the check with its time zone."""
    faults = []
    if verdict.left_out:
        faults.append(('recordings', f'left out: {", ".join(verdict.left_out)}'))
    if verdict.decisive:
        faults.append(('findings', f'decisive: {", ".join(verdict.decisive)}'))
    root = ET.Element('testsuites')
    suite = ET.SubElement(
        root,
        'testsuite',
        {
            'name': _SUITE,
            'package': _SUITE,
            'id': '0',
            'tests': str(len(verdict.cases) + len(faults)),
            'failures': str(sum(bool(case.broken) for case in verdict.cases) + len(faults)),
            'errors': '0',
            'skipped': str(sum(bool(case.skipped) for case in verdict.cases)),
            'time': '0',
            'timestamp': when.astimezone(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S'),
            'hostname': 'localhost',
        },
    )
    properties = ET.SubElement(suite, 'properties')
    for name in (
        'max_vepd', 'max_ratio_to_null', 'max_increase', 'max_transfer_loss', 'by', 'confidence',
    ):  # fmt: skip
        value = getattr(verdict.options, name)
        if value is not None:
            ET.SubElement(properties, 'property', {'name': name, 'value': str(value)})
    for name, text in faults:
        _add_failure(_add_test_case(suite, name, f'{_SUITE}.{name}'), text)
    for case in verdict.cases:
        place = '.'.join(filter(None, (_SUITE, case.cell.judge, case.cell.group)))
        element = _add_test_case(suite, f'{case.cell.model} {case.cell.scenario}', place)
        if case.broken:
            _add_failure(element, '; '.join(case.broken))
        elif case.skipped:
            ET.SubElement(element, 'skipped', {'message': _clean(case.skipped)})
    ET.SubElement(suite, 'system-out').text = _clean('\n'.join(verdict.lines))
    ET.SubElement(suite, 'system-err').text = ''
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding='utf-8', xml_declaration=True)
    return body + b'\n'


def _add_test_case(suite: ET.Element, name: str, place: str) -> ET.Element:
    return ET.SubElement(
        suite, 'testcase', {'name': _clean(name), 'classname': _clean(place), 'time': '0'}
    )


def _add_failure(element: ET.Element, text: str) -> None:
    failure = ET.SubElement(element, 'failure', {'message': _clean(text), 'type': 'limit'})
    failure.text = _clean(text)


def _clean(text: str) -> str:
    """Return a text without characters that XML 1.0 does not allow; labels may contain any."""
    return printable(text, '\n')
