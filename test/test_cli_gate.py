# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real gate`: exit status, reason, JUnit XML, and refusals."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import Outcome, call, check_refused, run_of
from comparison_examples import study_of, twin, written
from study_examples import seal

from sim2real_eval.common.findings import FindingKind, to_records
from sim2real_eval.metrics.options import REAL, MetricOptions
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.preflight.findings import FIX_KINDS, FROZEN
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.gate import GatedResult, judge_result
from sim2real_eval.study.options import GateOptions

Capture = pytest.CaptureFixture[str]


def write_result(
    folder: Path,
    models: dict[str, float],
    *,
    scenarios: tuple[str, ...] = ('line', 'circle'),
    runs: int = 10,
    seed: int = 0,
    failures: tuple[str, ...] = (),
    judge: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Path:
    """Write study.json; the number of a model is its excess of RMSE over reality."""
    judge = {
        'label': 'clean', 'judge': 'embedded',
        'files': [{'name': 'clean.yaml', 'sha256': 'aa'}], **(judge or {}),
    }  # fmt: skip
    rows = []
    for index, (model, offset) in enumerate({REAL: 0.0, **models}.items()):
        # Real runs do not depend on which models there are, and models on their own name only.
        rng = np.random.default_rng([seed, index and sum(model.encode())])
        for scenario in scenarios:
            for number in range(1, runs + 1):
                rmse = 0.1 + offset + 0.01 * float(rng.random())
                entropy = 0.05 * float(rng.random())
                score = RunScore(rmse, entropy, 0.0, entropy, 300, 20.0)
                values = dataclasses.asdict(score)
                rows.append(
                    {
                        'judge': judge['label'], 'recording': f'{scenario}_{number}',
                        'model': model, 'repetition': 1, 'scenario': scenario, 'group': '',
                        'values': values, 'notes': [],
                    }
                )  # fmt: skip
    record = {
        'state': 'finished', 'component': 'horizontal', 'start_heading': False,
        'metric': MetricOptions().to_mapping(),
        'judges': [judge], **(settings or {}),
        'failures': [{'recording': name, 'reason': 'gone'} for name in failures], 'runs': rows,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'study.json').write_text(seal(record), encoding='utf-8')
    return folder


def gate(capsys: Capture, *arguments: object) -> Outcome:
    return call(capsys, 'gate', *arguments, '--resamples', 500)


def test_the_gate_fails_only_if_a_model_exceeds_the_vepd_limit(
    capsys: Capture, tmp_path: Path
) -> None:
    """A model that is 0.2 m/s off has a VEPD of about 0.1."""
    result = write_result(tmp_path / 'r', {'good': 0.0, 'bad': 0.2})
    failed = gate(capsys, result, '--max-vepd', 0.05)
    assert failed.status == 1
    # The verdict, the limit, and each number that exceeds it.
    assert len(failed.out.splitlines()) == 5
    assert failed.out.startswith('FAIL: 3 of 6 numbers')
    passed = gate(capsys, result, '--max-vepd', 0.05, '--models', 'good')
    assert passed.status == 0
    assert passed.out.startswith('PASS: 3 numbers')


@pytest.mark.parametrize('by', ['estimate', 'low', 'high'])
def test_the_five_worst_violations_are_named(by: str, capsys: Capture, tmp_path: Path) -> None:
    """Models get worse from m6 to m0; one model of the baseline is missing."""
    models = {f'm{k}': 0.2 + 0.1 * (7 - k) for k in (3, 5, 0, 6, 2, 4, 1)}
    result = write_result(tmp_path / 'r', models, scenarios=('line',))
    old = write_result(tmp_path / 'old', {'gone': 0.0}, scenarios=('line',))

    def named(*words: object) -> list[str]:
        failed = gate(capsys, result, '--max-vepd', 0.01, '--by', by, *words)
        assert failed.status == 1
        lines = [line for line in failed.out.splitlines() if ' (judge clean): ' in line]
        return [line.split()[0] for line in lines if line.startswith('  ')]

    assert named() == ['m0', 'm1', 'm2', 'm3', 'm4']
    assert named('--baseline', old) == ['m0', 'm1', 'm2', 'm3', 'm4', 'gone']
    before = write_result(
        tmp_path / 'before', {**models, 'm0': 0.8, 'm6': 0.0}, scenarios=('line',)
    )
    # The increase is a limit of its own, which m0 and m6 exceed.
    assert {*named('--baseline', before, '--max-increase', 0.001)[5:]} == {'m0', 'm6'}


def test_identical_sensors_pass_a_ratio_of_one_in_95_percent(tmp_path: Path) -> None:
    """200 studies of 8 recordings whose real and simulated runs have the same distribution.

    Between 1 and 20 failures: a binomial count of 200 with 5 % is outside in less than 0.2 %.
    """
    options = GateOptions(max_ratio_to_null=1.0, resamples=100)
    failures = 0
    for seed in range(200):
        path = write_result(tmp_path / 'r', {'m': 0.0}, scenarios=('line',), runs=8, seed=seed)
        failures += not judge_result(GatedResult.read(path), options).passed
    assert 1 <= failures <= 20


@pytest.mark.parametrize('by', ['estimate', 'low', 'high'])
def test_different_sensors_exceed_a_ratio_to_the_null_distribution(
    by: str, capsys: Capture, tmp_path: Path
) -> None:
    """VEPD is 0.02 m/s: far below usual limits, but above that of identical sensors."""
    result = write_result(tmp_path / 'r', {'m': 0.04}, scenarios=('line',), runs=20)
    assert gate(capsys, result, '--max-vepd', 0.1).status == 0
    assert gate(capsys, result, '--max-ratio-to-null', 1, '--by', by).status == 1
    outcome = gate(capsys, result, '--max-ratio-to-null', 1000, '--json')
    (case,) = json.loads(outcome.out)['cases']
    assert case['ratio_to_null'] == pytest.approx(case['vepd'] / case['null_high'])
    assert 1.0 < case['ratio_to_null'] < 1000.0


def test_the_ratio_of_equal_runs_is_zero(tmp_path: Path) -> None:
    path = write_result(tmp_path / 'r', {'m': 0.0}, scenarios=('line',))
    record = json.loads((path / 'study.json').read_text('utf-8'))
    first = {run['recording']: run['values'] for run in record['runs'] if run['model'] == REAL}
    for run in record['runs']:
        run['values'] = first['line_1']
    del record['sha256']
    (path / 'study.json').write_text(seal(record), encoding='utf-8')
    verdict = judge_result(
        GatedResult.read(path), GateOptions(max_ratio_to_null=0.0, resamples=100)
    )
    assert [case.ratio_to_null for case in verdict.cases] == [0.0]
    assert verdict.passed


def test_a_result_without_a_null_distribution_has_no_ratio_to_it(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four recordings per scenario are too few, eight in both are enough."""
    monkeypatch.chdir(tmp_path)
    write_result(Path('r'), {'m': 0.0}, runs=4)
    check_refused(capsys, '--max-ratio-to-null', 'gate', 'r', '--max-ratio-to-null', 2)
    words = ('--max-ratio-to-null', 1000, '--scenarios', 'all')
    assert gate(capsys, 'r', *words).status == 0


def test_printed_lines_have_at_most_80_columns(capsys: Capture, tmp_path: Path) -> None:
    models = {f'a_model_with_a_long_name_{k}': 0.1 * k for k in range(9)}
    result = write_result(tmp_path / 'r', models)
    for limits in (('--max-vepd', 0.01, '--max-ratio-to-null', 2), ('--max-vepd', 9)):
        outcome = gate(capsys, result, *limits)
        assert max(map(len, outcome.out.splitlines())) <= 80


def test_the_gate_can_test_a_bound_of_the_interval(capsys: Capture, tmp_path: Path) -> None:
    """Between the bounds, `low` passes and `high` fails; `estimate` compares VEPD."""
    result = write_result(tmp_path / 'r', {'m': 0.05})
    record = json.loads(gate(capsys, result, '--max-vepd', 1, '--scenarios', 'all', '--json').out)
    (case,) = record['cases']
    assert case['low'] < case['vepd'] < case['high']
    for limit, by, status in (
        (0.5 * (case['low'] + case['vepd']), 'low', 0),
        (0.5 * (case['low'] + case['vepd']), 'estimate', 1),
        (0.5 * (case['vepd'] + case['high']), 'estimate', 0),
        (0.5 * (case['vepd'] + case['high']), 'high', 1),
        (0.9 * case['low'], 'low', 1),
        (1.1 * case['high'], 'high', 0),
    ):
        outcome = gate(capsys, result, '--max-vepd', limit, '--by', by, '--scenarios', 'all')
        assert outcome.status == status, (limit, by, outcome.out)


def test_an_unknown_interval_violates_every_limit(capsys: Capture, tmp_path: Path) -> None:
    """One run per scenario gives no interval."""
    result = write_result(tmp_path / 'r', {'m': 0.0}, scenarios=('line',), runs=1)
    assert gate(capsys, result, '--max-vepd', 1).status == 0
    outcome = gate(capsys, result, '--max-vepd', 1, '--by', 'low')
    assert outcome.status == 2
    assert '--by low' in outcome.err
    assert gate(capsys, result, '--max-vepd', 1, '--by', 'high').status == 1


def test_a_vepd_above_the_baseline_fails(capsys: Capture, tmp_path: Path) -> None:
    old = write_result(tmp_path / 'old', {'m': 0.05})
    worse = write_result(tmp_path / 'worse', {'m': 0.08})
    better = write_result(tmp_path / 'better', {'m': 0.02})
    record_file = tmp_path / 'main.json'
    record_file.write_bytes((old / 'study.json').read_bytes())
    for file in (old, record_file):
        assert gate(capsys, old, '--baseline', file).status == 0
        assert gate(capsys, better, '--baseline', file).status == 0
        assert gate(capsys, worse, '--baseline', file, '--by', 'low').status == 1
        assert gate(capsys, worse, '--baseline', file, '--max-increase', 0.02).status == 0
        assert gate(capsys, better, '--baseline', file, '--max-increase', -0.02).status == 1


def test_real_runs_that_differ_from_the_baseline_are_reported(
    capsys: Capture, tmp_path: Path
) -> None:
    result = write_result(tmp_path / 'r', {'m': 0.05})
    other = write_result(tmp_path / 'other', {'m': 0.05}, seed=1)
    remark = 'real runs differ from'
    assert remark in gate(capsys, result, '--baseline', other, '--max-increase', 1).out
    assert remark not in gate(capsys, result, '--baseline', result).out


SIMULATED = {'rate': 100.0, 'noise': {'std': 0.1}}
RECORD: dict[str, Any] = {
    'match_rates': True, 'off_ticks': False, 'simulate_on': 'truth', 'synthetic': False,
    'seed': 0, 'repetitions': 1, 'world': None, 'versions': {'sim2real_sensors': '1.1.0'},
    'conditions': [{'label': '', 'gps_rate': None}], 'identity': {'filter.py': 'aa'},
    'models': {'m': {'gps': SIMULATED, 'imu': SIMULATED}},
}  # fmt: skip


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'models': {'m': {'gps': SIMULATED, 'imu': 'real'}}}, 'models.m.imu'),
        ({'models': {'m': {**RECORD['models']['m'], 'mag': SIMULATED}}}, 'models.m.mag'),
        ({'match_rates': False}, 'match_rates'),
        ({'off_ticks': True}, 'off_ticks'),
        ({'simulate_on': 'drive'}, 'simulate_on'),
        ({'synthetic': True}, 'synthetic'),
        ({'metric': MetricOptions(warmup=5.0).to_mapping()}, 'metric.warmup'),
        ({'conditions': [{'label': '', 'gps_rate': 1.0}]}, 'conditions.gps_rate'),
        ({'judge': {'files': [{'name': 'clean.yaml', 'sha256': 'bb'}]}}, 'clean.yaml'),
        ({'judge': {'judge': 'smoother'}}, 'judges.clean.judge'),
        ({'judge': {'case': {'correct': ['gravity']}}}, 'judges.clean.case'),
        ({'judge': {'label': 'mine'}}, 'judges'),
    ],
)
@pytest.mark.parametrize('is_baseline', [False, True])
def test_another_experiment_is_no_baseline(
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    named: str,
    is_baseline: bool,
) -> None:
    """Recorded against simulated sensors, other judges and other metrics measure other numbers."""
    monkeypatch.chdir(tmp_path)
    write_result(tmp_path / 'one', {'m': 0.05}, settings=RECORD)
    judge = changes.get('judge')
    write_result(tmp_path / 'other', {'m': 0.05}, settings={**RECORD, **changes}, judge=judge)
    names = ('one', 'other') if is_baseline else ('other', 'one')
    result, baseline = (str(tmp_path / name) for name in names)
    limit = ('--max-vepd', '100')
    check_refused(capsys, named, 'gate', result, '--baseline', baseline, *limit)
    assert gate(capsys, result, '--baseline', result).status == 0


def test_the_code_of_an_own_judge_is_part_of_the_experiment(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    judge = {'judge': 'filter.py:MyFilter', 'files': []}
    for name, digest in (('one', 'aa'), ('other', 'bb')):
        identity = {'filter.py': digest, 'model.py': digest}
        write_result(
            tmp_path / name, {'m': 0.05}, settings={**RECORD, 'identity': identity}, judge=judge
        )
    words = (str(tmp_path / 'one'), '--baseline', str(tmp_path / 'other'))
    check_refused(capsys, 'judges.clean.code', 'gate', *words)


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'models': {'m': {'gps': SIMULATED, 'imu': {'rate': 50.0}}}}, 'models.m.imu.rate'),
        ({'models': {'m': {'gps': {'rate': 5.0}, 'imu': SIMULATED}}}, 'models.m.gps.rate'),
        ({'seed': 1}, 'seed'),
        ({'repetitions': 9}, 'repetitions'),
        ({'world': {'name': 'city', 'sha256': 'aa'}}, 'world'),
        ({'versions': {'sim2real_sensors': '1.2.0'}}, 'versions.sim2real_sensors'),
    ],
)
def test_what_a_regression_test_may_change_is_noted(
    capsys: Capture, tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    """A simulator whose sensors change is what a gate in CI is for."""
    old = write_result(tmp_path / 'old', {'m': 0.05}, settings=RECORD)
    new = write_result(tmp_path / 'new', {'m': 0.05}, settings={**RECORD, **changes})
    outcome = gate(capsys, new, '--baseline', old, '--json')
    assert outcome.status == 0
    (note,) = json.loads(outcome.out)['notes']
    assert f' {named}: was ' in note
    assert json.loads(gate(capsys, old, '--baseline', old, '--json').out)['notes'] == []


def test_decisive_findings_of_the_result_are_named(capsys: Capture, tmp_path: Path) -> None:
    """A limit that holds says nothing if the truth is that of another recording."""
    notes = [FROZEN('/imu/data', time=5.0), FIX_KINDS('/gps/fix', share=0.9, status=2)]
    result = write_result(tmp_path / 'result', {'m': 0.05}, settings={'notes': to_records(notes)})
    outcome = gate(capsys, result, '--max-vepd', 1)
    assert outcome.status == 0
    assert FROZEN.code in outcome.out
    assert FIX_KINDS.code not in outcome.out


@pytest.mark.parametrize(('finding', 'status'), [(FROZEN, 1), (FIX_KINDS, 0)])
def test_a_strict_gate_fails_for_a_decisive_finding(
    finding: FindingKind, status: int, capsys: Capture, tmp_path: Path
) -> None:
    """A finding of another severity, and a gate that is not strict, pass."""
    values = {'time': 5.0} if finding is FROZEN else {'share': 0.9, 'status': 2}
    notes = to_records([finding('/imu/data', **values)])
    result = write_result(tmp_path / 'result', {'m': 0.05}, settings={'notes': notes})
    junit = tmp_path / 'gate.xml'
    words = (result, '--max-vepd', 1, '--json', '--junit', junit)
    for more, expected in (((), 0), (('--strict',), status)):
        outcome = gate(capsys, *words, *more)
        record = json.loads(outcome.out)
        assert (outcome.status, record['passed']) == (expected, not expected)
        assert record['decisive'] == ([finding.code] if expected else [])
        (suite,) = ET.parse(junit).getroot()
        assert len(suite.findall('testcase/failure')) == int(suite.get('failures', '')) == expected
        assert len(suite.findall('testcase')) == int(suite.get('tests', ''))


def test_models_and_settings_that_are_not_compared_may_differ(
    capsys: Capture, tmp_path: Path
) -> None:
    """Of two models one is selected; a record of an older version lacks what it did not know."""
    imu = {'gps': SIMULATED, 'imu': 'real'}
    both = {'m': RECORD['models']['m'], 'n': imu}
    new = write_result(
        tmp_path / 'new', {'m': 0.05, 'n': 0.05}, settings={**RECORD, 'models': both}
    )
    both = {'m': RECORD['models']['m'], 'n': RECORD['models']['m']}
    old = write_result(
        tmp_path / 'old', {'m': 0.05, 'n': 0.05}, settings={**RECORD, 'models': both}
    )
    assert gate(capsys, new, '--baseline', old).status == 2
    assert gate(capsys, new, '--baseline', old, '--models', 'm').status == 0
    bare = write_result(tmp_path / 'bare', {'m': 0.05, 'n': 0.05})
    assert gate(capsys, new, '--baseline', bare).status == 0


def test_a_missing_model_or_missing_recordings_fail_the_gate(
    capsys: Capture, tmp_path: Path
) -> None:
    old = write_result(tmp_path / 'old', {'m': 0.05, 'n': 0.05})
    new = write_result(tmp_path / 'new', {'m': 0.05, 'o': 0.9}, failures=('bag_7',))
    junit = tmp_path / 'gate.xml'
    outcome = gate(capsys, new, '--baseline', old, '--junit', junit)
    assert outcome.status == 1
    assert 'bag_7' in outcome.out
    assert 'n in line (judge clean)' in outcome.out
    # n in two scenarios and pooled; no interval is known of what is missing.
    assert '--baseline: 3 numbers ' in outcome.out
    assert ' % interval' not in outcome.out
    suite = check_junit(junit)
    # Three cases for m, three skipped for the new o, three failures for n, one for recordings.
    assert (suite.get('tests'), suite.get('failures'), suite.get('skipped')) == ('10', '4', '3')


def check_junit(path: Path) -> ET.Element:
    """Check a file by Ant's schema (JUnit.xsd of windyroad/JUnit-Schema) and return the suite."""
    root = ET.parse(path).getroot()
    assert root.tag == 'testsuites'
    (suite,) = root
    for name in ('name', 'timestamp', 'hostname', 'tests', 'failures', 'errors', 'time', 'id'):
        assert suite.get(name) is not None, name
    assert len(suite.get('timestamp', '')) == len('2026-01-01T00:00:00')
    tags = [child.tag for child in suite]
    cases = tags.count('testcase')
    assert tags == ['properties', *['testcase'] * cases, 'system-out', 'system-err']
    assert int(suite.get('tests', '')) == cases
    for kind in ('failure', 'skipped'):
        outcomes = suite.findall(f'testcase/{kind}')
        assert int(suite.get(f'{kind}s' if kind == 'failure' else kind, '')) == len(outcomes)
    for case in suite.findall('testcase'):
        assert all(case.get(name) for name in ('name', 'classname', 'time'))
        assert len(case) <= 1
    for failure in suite.findall('testcase/failure'):
        assert failure.get('message')
        assert failure.get('type')
    return suite


def test_labels_may_contain_any_characters(capsys: Capture, tmp_path: Path) -> None:
    label = '<b>&"\x07]]>é'
    result = write_result(tmp_path / 'r', {label: 0.2})
    junit = tmp_path / 'gate.xml'
    assert gate(capsys, result, '--max-vepd', 0.01, '--junit', junit).status == 1
    names = {case.get('name') for case in check_junit(junit).findall('testcase')}
    assert '<b>&"\\x07]]>é line' in names


@pytest.mark.usefixtures('blank_pictures')
def test_a_result_of_the_preset_named_baseline_is_compared(
    capsys: Capture, tmp_path: Path
) -> None:
    paths = []
    for number in (1, 2):
        recording = run_of('drive_line', number)
        write_recording(recording, tmp_path / recording.name)
        paths.append(tmp_path / recording.name)
    result = written(tmp_path / 'result', paths, study_of(twin('baseline', label='baseline')))
    assert gate(capsys, result, '--baseline', result, '--max-vepd', 100).status == 0
    assert gate(capsys, result / 'study.json', '--max-vepd', 0).status == 1


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        ('r', '--max-vepd'),
        ('gone --max-vepd 1', 'gone/study.json'),
        ('empty --max-vepd 1', 'empty/study.json'),
        ('list.json --max-vepd 1', 'list.json'),
        ('deep.json --max-vepd 1', 'deep.json'),
        ('nan.json --max-vepd 1', 'nan.json'),
        ('r --max-vepd -1', "'-1'"),
        ('r --max-vepd nan', "'nan'"),
        ('r --max-increase 0.1', '--max-increase'),
        ('r --max-vepd 1 --models nope', "--models: 'nope'"),
        ('r --max-vepd 1 --scenarios nope', "--scenarios: 'nope'"),
        ('r --max-vepd 1 --judge-names nope', "--judge-names: 'nope'"),
        ('r --max-vepd 1 --confidence 1', '0.999'),
        ('r --max-vepd 1 --junit empty', 'empty'),
        ('parts --max-vepd 1 --models m --scenarios circle', '--scenarios'),
    ],
)
def test_wrong_inputs_are_refused_in_one_line(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_result(tmp_path / 'r', {'m': 0.0})
    Path('empty').mkdir()
    parts = write_result(Path('parts'), {'m': 0.0, 'n': 0.0}) / 'study.json'
    of_parts = json.loads(parts.read_text('utf-8'))
    of_parts['runs'] = [
        run for run in of_parts['runs'] if (run['model'], run['scenario']) != ('m', 'circle')
    ]
    del of_parts['sha256']
    parts.write_text(seal(of_parts), encoding='utf-8')
    Path('list.json').write_text('[]', encoding='utf-8')
    Path('deep.json').write_text('[' * 100_000, encoding='utf-8')
    record = json.loads(Path('r', 'study.json').read_text(encoding='utf-8'))
    record['runs'][0]['values']['rmse'] = float('nan')
    del record['sha256']
    Path('nan.json').write_text(seal(record), encoding='utf-8')
    check_refused(capsys, named, 'gate', *arguments.split())


def test_a_result_that_lacks_recordings_fails_without_a_broken_limit(
    capsys: Capture, tmp_path: Path
) -> None:
    """The same result passes if no recording was left out."""
    for failures, status in (((), 0), (('bag_7',), 1)):
        result = write_result(tmp_path / f'r{status}', {'m': 0.0}, failures=failures)
        outcome = gate(capsys, result, '--max-vepd', 100, '--json')
        assert outcome.status == status
        record = json.loads(outcome.out)
        assert record['passed'] == (status == 0)
        assert record['left_out'] == list(failures)
        assert all(case['passed'] for case in record['cases'])
        first = record['reason'].splitlines()[0]
        assert first.startswith('FAIL: a recording' if failures else 'PASS: 3 numbers')


def test_the_level_of_the_intervals_is_printed_as_it_is_given(
    capsys: Capture, tmp_path: Path
) -> None:
    result = write_result(tmp_path / 'r', {'m': 0.2})
    words = (result, '--max-vepd', 0.01, '--confidence')
    for level, text in ((0.975, '97.5 % '), (0.95, '95 % ')):
        assert f'; {text}' in gate(capsys, *words, level).out
    alone = write_result(tmp_path / 'alone', {'m': 0.2}, scenarios=('line',), runs=1)
    assert ' % ' not in gate(capsys, alone, '--max-vepd', 0.01).out


def test_vepd_is_not_resampled_for_a_limit_of_the_transfer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = GatedResult.read(write_result(tmp_path / 'r', {'m': 0.2}))
    transfer = {
        'options': {'level': 0.95}, 'judge': {'name': 'clean'}, 'quantity': 'score',
        'failures': {}, 'models': [{'model': 'm', 'loss': 0.1, 'low': 0.0, 'high': 0.2}],
    }  # fmt: skip
    monkeypatch.delattr('sim2real_eval.study.gate.uncertainty')
    verdict = judge_result(
        dataclasses.replace(result, transfer=transfer), GateOptions(max_transfer_loss=0.15)
    )
    assert [case.loss for case in verdict.cases] == [0.1]
    assert verdict.passed


def test_the_interval_of_an_increase_over_other_real_runs_is_as_wide_as_both_allow(
    capsys: Capture, tmp_path: Path
) -> None:
    """Lower bound now minus upper bound before, and the reverse: nothing of them is in common."""
    result = write_result(tmp_path / 'r', {'m': 0.08})
    old = write_result(tmp_path / 'old', {'m': 0.05}, seed=1)
    words = ('--max-vepd', 100, '--scenarios', 'line', '--json')
    (now,), (before,) = (json.loads(gate(capsys, r, *words).out)['cases'] for r in (result, old))
    (case,) = json.loads(gate(capsys, result, '--baseline', old, *words).out)['cases']
    assert case['increase'] == pytest.approx(now['vepd'] - before['vepd'])
    assert case['increase_low'] == pytest.approx(now['low'] - before['high'])
    assert case['increase_high'] == pytest.approx(now['high'] - before['low'])


def test_the_interval_of_an_increase_over_the_same_real_runs_is_that_of_the_difference(
    capsys: Capture, tmp_path: Path
) -> None:
    """The runs of both results differ by a constant: half of 0.03, without any uncertainty."""
    result = write_result(tmp_path / 'r', {'m': 0.08})
    old = write_result(tmp_path / 'old', {'m': 0.05})
    words = ('--max-increase', 100, '--scenarios', 'line', '--json')
    for one, other, increase in ((result, old, 0.015), (old, result, -0.015)):
        (case,) = json.loads(gate(capsys, one, '--baseline', other, *words).out)['cases']
        for name in ('increase', 'increase_low', 'increase_high'):
            assert case[name] == pytest.approx(increase, abs=1e-4), name


def test_the_gate_can_test_a_bound_of_the_increase(capsys: Capture, tmp_path: Path) -> None:
    result = write_result(tmp_path / 'r', {'m': 0.08})
    old = write_result(tmp_path / 'old', {'m': 0.05}, seed=1)
    words = ('--max-increase', 100, '--scenarios', 'line', '--json')
    (case,) = json.loads(gate(capsys, result, '--baseline', old, *words).out)['cases']
    assert case['increase_low'] < case['increase'] < case['increase_high']
    # A limit between the bounds: it depends on the bound that is compared whether it is broken.
    for bound, fails in (('low', False), ('estimate', False), ('high', True)):
        limit = 0.5 * (case['increase'] + case['increase_high'])
        words = ('--max-increase', limit, '--scenarios', 'line', '--by', bound)
        assert gate(capsys, result, '--baseline', old, *words).status == fails


def test_without_a_limit_of_the_increase_none_is_allowed(tmp_path: Path) -> None:
    """The function does as the command: any increase over the baseline breaks the gate."""
    worse, old = (
        GatedResult.read(write_result(tmp_path / name, {'m': offset}))
        for name, offset in (('worse', 0.08), ('old', 0.05))
    )
    options = GateOptions(resamples=500)
    assert not judge_result(worse, options, old).passed
    assert judge_result(old, options, worse).passed
    assert judge_result(worse, dataclasses.replace(options, max_increase=1.0), old).passed
