# SPDX-License-Identifier: Apache-2.0
"""Merged findings keep every code, count and number."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sim2real_eval
from sim2real_eval.common.findings import (
    Finding,
    FindingKind,
    Severity,
    by_severity,
    declared_kinds,
    from_records,
    merge_findings,
    merge_models,
    shared_findings,
    to_records,
)
from sim_sensors.core.errors import Remark

KINDS = declared_kinds()
SOURCES = Path(sim2real_eval.__file__).parent
NUMBERS = st.integers(-(2**62), 2**62) | st.floats(-1e6, 1e6, allow_nan=False)


def example(kind: FindingKind, number: float = 2.0, word: str = 'this') -> Finding:
    """Make a finding of any kind."""
    values = {
        name: (int(number) if form.endswith('d') else number) if form else word
        for name, form, _ in kind.fields
    }
    return kind('/imu', **values)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    kind = draw(st.sampled_from(sorted(KINDS.values(), key=lambda kind: kind.code)[::9]))
    number, word = draw(NUMBERS), draw(st.sampled_from(['imu0', 'imu1']))
    return example(kind, number, word)


RUNS = st.lists(
    st.tuples(st.sampled_from(['real', 'ch_rw', 'airsim']), st.lists(findings(), max_size=4)),
    max_size=6,
)


@pytest.mark.parametrize('code', KINDS)
def test_each_declaration_shows_itself_alone_and_merged(code: str) -> None:
    kind = KINDS[code]
    assert re.fullmatch(r'[a-z_]+\.[a-z0-9_]+', code)
    assert kind.meaning.endswith('.')
    assert not kind.remedy.endswith('.')
    low, high = example(kind, 2.0), example(kind, 3.0)
    (merged,) = merge_findings([('real', [low]), ('real', [high])])
    assert str(merged).startswith('2 of 2 real runs: /imu: ')
    assert str(low).endswith(low.remedy)
    assert from_records(json.loads(json.dumps(to_records([low, merged])))) == (low, merged)


def test_all_codes_are_declared_where_declared_kinds_looks() -> None:
    makers = re.compile(
        r'\bFindingKind\(|(?<![\w.])Finding\(|^ +.*\b(?:decisive|assumed|routine)\('
    )
    for path in SOURCES.rglob('*.py'):
        if path.name != 'findings.py':
            lines = path.read_text(encoding='utf-8').splitlines()
            assert not any(map(makers.search, lines)), path


def test_every_declared_code_has_a_producer() -> None:
    texts = {path: path.read_text(encoding='utf-8') for path in SOURCES.rglob('*.py')}
    words = {path: set(re.findall(r'\w+', text)) for path, text in texts.items()}
    for path, text in texts.items():
        for name in re.findall(r'^(\w+) = (?:decisive|assumed|routine)\(', text, re.MULTILINE):
            is_used_here = len(re.findall(rf'\b{name}\b', text)) > 1
            assert is_used_here or any(
                name in names for file, names in words.items() if file != path
            ), name


def test_a_finding_needs_the_values_of_its_template() -> None:
    kind = KINDS['recording.gap']
    with pytest.raises(ValueError, match='do not fit'):
        kind('/imu', count=3)
    with pytest.raises(ValueError, match='do not fit'):
        KINDS['recording.stamp_zero']('/imu', count=3, more=1)


def test_records_of_other_versions_keep_their_text() -> None:
    former = {
        'code': 'nothing.known',
        'severity': 'assumed',
        'subject': '/imu',
        'numbers': {},
        'words': {},
        'text': '/imu: 3 {strange} messages; wait',
        'remedy': 'wait',
    }
    finding = Finding.from_record(former)
    assert (str(finding), finding.code) == (former['text'], former['code'])
    assert finding.severity is Severity.ASSUMED


def test_numbers_become_ranges_and_runs_are_counted_by_group() -> None:
    kind = KINDS['recording.stamp_zero']
    runs = [
        ('real', [kind('/imu', count=3), kind('/gps', count=1)]),
        ('real', [kind('/imu', count=12), kind('/imu', count=20)]),
        ('simulated', [kind('/imu', count=5)]),
        ('simulated', []),
    ]
    gps, imu = merge_findings(runs)
    assert str(gps).startswith('1 of 2 real runs: /gps: header stamp is zero (1x)')
    assert imu.runs == (('real', 2, 2), ('simulated', 1, 2))
    assert imu.numbers == {'count': (3, 20)}
    assert '(3 to 20x)' in str(imu)


def test_remarks_of_a_sensor_model_merge_by_their_numbers() -> None:
    kind = KINDS['truth.inconsistent']

    def gaps(count: int, longest: float) -> Finding:
        return kind('/truth', problem=Remark('{n:d} gaps up to {s:.3g} s', n=count, s=longest))

    runs = [('real', [gaps(1, 0.5)]), ('real', [gaps(3, 2.5), kind(problem=Remark('no {{}}'))])]
    first, both = merge_findings(runs)
    assert str(first) == '1 of 2 real runs: no {}'
    assert str(both) == '2 of 2 real runs: /truth: 1 to 3 gaps up to 0.5 to 2.5 s'
    assert from_records(json.loads(json.dumps(to_records([first, both])))) == (first, both)


def test_kinds_with_per_model_keep_the_models_apart() -> None:
    too_fast, stamp_zero = (
        KINDS['estimate.too_fast'],
        KINDS['recording.stamp_zero']('/imu', count=3),
    )
    diverged = too_fast(limit=100, first=2.0, speed=500.0)
    runs = [
        ('real', [stamp_zero]),
        ('ch_rw', [stamp_zero]),
        ('airsim', [stamp_zero, diverged]),
        ('airsim', [diverged]),
    ]
    first, second = merge_models(runs)
    assert first.runs == (('simulated airsim', 2, 2),)
    assert second.runs == (('real', 1, 1), ('simulated', 2, 3))


def test_findings_that_all_judges_share_appear_once() -> None:
    shared, gap = example(KINDS['recording.stamp_zero']), example(KINDS['recording.gap'])
    merged = shared_findings({'a': [shared], 'b': [gap, shared]})
    assert {finding.code: finding.where for finding in merged} == {
        shared.code: '', gap.code: 'judge b'
    }  # fmt: skip
    assert len(merged) == 2


def test_the_most_severe_come_first() -> None:
    ordered = by_severity(example(kind) for kind in KINDS.values())
    severities = [finding.severity for finding in ordered]
    assert severities == sorted(severities)
    assert set(severities) == set(Severity)


@given(RUNS, st.randoms())
def test_the_order_of_runs_changes_nothing(
    runs: list[tuple[str, list[Finding]]], random: object
) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert merge_findings(runs) == merge_findings(shuffled)
    assert merge_models(runs) == merge_models(shuffled)


@given(RUNS)
def test_merging_keeps_every_code_and_every_number(runs: list[tuple[str, list[Finding]]]) -> None:
    merged = merge_findings(runs)
    run_findings = [finding for _, some in runs for finding in some]
    codes = {(finding.code, *finding.words.values()) for finding in run_findings}
    assert {(finding.code, *finding.words.values()) for finding in merged} == codes
    for finding in merged:
        same = [
            other
            for other in run_findings
            if (other.code, other.words) == (finding.code, finding.words)
        ]
        for name, number in finding.numbers.items():
            values = [other.numbers[name] for other in same]
            ends = number if isinstance(number, tuple) else (number, number)
            assert ends == (min(values), max(values))
    assert from_records(to_records(merged)) == tuple(merged)
