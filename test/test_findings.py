# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Merged findings keep every code, count and number."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.characterization.findings import NOT_SEPARATED, WARM_UP
from sim2real_eval.common.findings import (
    Finding,
    FindingKind,
    Severity,
    by_severity,
    declared_kinds,
    from_records,
    merge_findings,
    merge_models,
    merge_subjects,
    shared_findings,
    to_records,
)
from sim_sensors.core.errors import Remark

KINDS = declared_kinds()
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
def test_every_kind_of_finding_can_be_merged_and_stored(code: str) -> None:
    low, high = example(KINDS[code], 2.0), example(KINDS[code], 3.0)
    (merged,) = merge_findings([('real', [low]), ('real', [high])])
    assert (merged.code, merged.runs) == (code, (('real', 2, 2),))
    assert from_records(json.loads(json.dumps(to_records([low, merged])))) == (low, merged)


@pytest.mark.parametrize('values', [{}, {'count': 3, 'more': 1}])
def test_a_finding_is_refused_without_the_values_of_its_template(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match='do not fit'):
        KINDS['recording.stamp_zero']('/imu', **values)


def test_records_of_other_versions_keep_their_text() -> None:
    former = {
        'code': 'nothing.known', 'severity': 'assumed', 'subject': '/imu', 'numbers': {},
        'words': {}, 'text': '/imu: 3 {strange} messages; wait', 'remedy': 'wait',
    }  # fmt: skip
    finding = Finding.from_record(former)
    assert (str(finding), finding.code) == (former['text'], former['code'])
    assert finding.severity is Severity.ASSUMED


def test_merged_findings_have_ranges_of_numbers_and_counts_of_runs_by_group() -> None:
    kind = KINDS['recording.stamp_zero']
    runs = [
        ('real', [kind('/imu', count=3), kind('/gps', count=1)]),
        ('real', [kind('/imu', count=12), kind('/imu', count=20)]),
        ('simulated', [kind('/imu', count=5)]),
        ('simulated', []),
    ]
    gps, imu = merge_findings(runs)
    assert gps.runs == (('real', 1, 2),)
    assert imu.runs == (('real', 2, 2), ('simulated', 1, 2))
    assert imu.numbers == {'count': (3, 20)}


def test_findings_about_a_sensor_model_are_merged_by_their_numbers() -> None:
    kind = KINDS['truth.inconsistent']

    def gaps(count: int, longest: float) -> Finding:
        return kind('/truth', problem=Remark('{n:d} gaps up to {s:.3g} s', n=count, s=longest))

    runs = [('real', [gaps(1, 0.5)]), ('real', [gaps(3, 2.5), kind(problem=Remark('no {{}}'))])]
    first, both = merge_findings(runs)
    assert str(first) == '1 of 2 real runs: no {}'
    assert str(both) == 'both real runs: /truth: 1 to 3 gaps up to 0.5 to 2.5 s'
    assert from_records(json.loads(json.dumps(to_records([first, both])))) == (first, both)


def test_kinds_marked_per_model_are_merged_for_each_model_separately() -> None:
    stamp_zero = KINDS['recording.stamp_zero']('/imu', count=3)
    diverged = KINDS['estimate.too_fast'](limit=100, first=2.0, speed=500.0)
    runs = [('real', [stamp_zero]), ('ch_rw', [stamp_zero])]
    runs += [('airsim', [stamp_zero, diverged]), ('airsim', [diverged])]
    first, second = merge_models(runs)
    assert first.runs == (('simulated airsim', 2, 2),)
    assert second.runs == (('real', 1, 1), ('simulated', 2, 3))


def test_findings_shared_by_all_judges_appear_once() -> None:
    shared, gap = example(KINDS['recording.stamp_zero']), example(KINDS['recording.gap'])
    merged = shared_findings({'a': [shared], 'b': [gap, shared]})
    assert {finding.code: finding.where for finding in merged} == {
        shared.code: '', gap.code: 'judge b'
    }  # fmt: skip
    assert len(merged) == 2


def test_the_most_severe_findings_come_first() -> None:
    ordered = by_severity(example(kind) for kind in KINDS.values())
    severities = [finding.severity for finding in ordered]
    assert severities == sorted(severities)
    assert set(severities) == set(Severity)


@given(RUNS, st.randoms())
def test_merging_does_not_depend_on_the_order_of_runs(
    runs: list[tuple[str, list[Finding]]], random: object
) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)
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


_FILES = re.compile(r'recording\.yaml|case\.yaml|parameters of|file of the model|navsat_transform')
_SETTING = re.compile(r'`[\w{}]+: ?[^`]+`|`imu0_config` false')


def test_a_remedy_that_asks_for_a_key_has_the_key_and_a_form_of_the_value() -> None:
    """`key: value` in back quotes, which can be written into the file that the remedy names.

    A bare key in back quotes needs an option, or such a line, beside it.
    """
    problems = []
    for code, kind in KINDS.items():
        remedy = kind.remedy.replace('{{', '{').replace('}}', '}')
        names_key = bool(_FILES.search(remedy)) or remedy.startswith('set ')
        bare = re.findall(r'(?<!service )`([a-z_]\w*(?:\.\w+)*:?)`', remedy)
        has_line = _SETTING.search(remedy) or ' --' in remedy or '{setting}' in remedy
        if (names_key or bare) and not has_line:
            problems.append(f'{code}: {kind.remedy}')
        if 'VALUE' in remedy and not re.search(
            r'VALUE\b.*(from|such as|prints|above|to) ', remedy
        ):
            problems.append(f'{code} does not say where VALUE comes from: {kind.remedy}')
    assert not problems, '\n'.join(problems)


def test_findings_of_axes_are_merged_unless_their_remedies_differ() -> None:
    """Ranges of numbers and all subjects; a remedy with a number is that of one axis."""
    flicker = [
        NOT_SEPARATED(
            f'gyroscope_{axis}', kind='flicker', std=std, unit='rad/s', time=9.0, ratio=1.0
        )
        for axis, std in (('x', 3.0), ('y', 1.0), ('z', 2.0))
    ]
    other = NOT_SEPARATED(
        'accelerometer_x', kind='flicker', std=1.0, unit='m/s^2', time=9.0, ratio=1.0
    )
    warm = [WARM_UP(axis, change=1.0, unit='rad/s', time=2.0, wait=9.0) for axis in 'xy']
    merged = merge_subjects([*flicker, other, *warm])
    assert [finding.subject for finding in merged] == [
        'gyroscope_x, gyroscope_y, gyroscope_z', 'accelerometer_x', 'x', 'y',
    ]  # fmt: skip
    assert merged[0].numbers == {'std': (1.0, 3.0), 'time': 9.0, 'ratio': 1.0}
