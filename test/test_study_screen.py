# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""What `vepd`, `study` and `demo` print fits a screen, whatever the study."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_examples import hostile_study, small_study, with_record

from sim2real_eval.cli.study_screen import MAX_LINES, print_study
from sim2real_eval.common.findings import declared_kinds, from_records, to_records
from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.report.page.tables import standings
from sim2real_eval.report.study_report import StudyReport
from sim2real_eval.study.answer import answer_of
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import study_uncertainty

Capture = pytest.CaptureFixture[str]

MANY = {f'a_receiver_with_a_long_name_{number}': 0.05 + 0.01 * number for number in range(20)}
NAMES = tuple(f'judge_with_a_long_name_{number}' for number in range(3))
FINDING = declared_kinds()['study.one_draw']


def report_of(outcome: StudyOutcome) -> StudyReport:
    """Return rankings, answer and findings without the page, which takes long for many models."""
    uncertainties = {
        place: results[POOLED] for place, results in study_uncertainty(outcome).items()
    }
    findings = from_records(outcome.record['notes'])
    answer = answer_of(uncertainties, findings)
    return StudyReport('', '', '', standings(outcome), answer, findings)


def printed(outcome: StudyOutcome, capsys: Capture, **options: bool) -> list[str]:
    report = report_of(outcome)
    capsys.readouterr()
    print_study(outcome, report, 'result', **options)
    return capsys.readouterr().out.splitlines()


def _long_study(**words: object) -> StudyOutcome:
    findings = to_records(FINDING().restrict_to(f'judge {number}') for number in range(40))
    return with_record(
        small_study(models=MANY, **words), title='A title of many words ' * 20, notes=findings
    )


@pytest.mark.parametrize('plain_language', [False, True])
@pytest.mark.parametrize(
    'study',
    [
        {'judges': ('clean',), 'runs': 6},
        {'judges': NAMES, 'scenarios': ('line', 'circle', 'half_sine'), 'runs': 2},
        {'judges': ('clean',), 'groups': NAMES, 'runs': 1},
    ],
    ids=['models', 'judges', 'groups'],
)
def test_large_studies_fit_a_screen(
    study: dict[str, object],
    plain_language: bool,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('COLUMNS', '200')
    outcome = _long_study(**study)
    lines = printed(outcome, capsys, plain_language=plain_language)
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    assert any('result/report.html' in line for line in lines)
    # The tables have what is left out.
    assert plain_language or any('result/tables.md' in line for line in lines)


def test_a_small_study_is_complete(capsys: Capture) -> None:
    outcome = small_study(judges=('clean',), runs=6)
    lines = printed(outcome, capsys)
    assert len(lines) <= MAX_LINES
    ranking = [line.split()[:2] for line in lines if line.split()[:1] in (['1'], ['2'], ['3'])]
    assert sorted(model for _, model in ranking) == sorted(outcome.models)
    assert not any('result/tables.md' in line for line in lines)


def test_names_with_control_characters_fit_a_screen(capsys: Capture) -> None:
    lines = printed(with_record(hostile_study(), notes=[]), capsys)
    assert len(lines) <= MAX_LINES


def test_no_finding_without_an_action_is_printed(capsys: Capture, tmp_path: Path) -> None:
    """The finding is routine; the screen has its count, and findings.txt has its text."""
    note = FINDING()
    lines = printed(with_record(small_study(judges=('clean',)), notes=to_records([note])), capsys)
    assert str(note)[:30] not in '\n'.join(lines)
    assert any('result/findings.txt' in line for line in lines)


def test_a_second_doubt_is_printed_where_there_is_space(capsys: Capture) -> None:
    """Whatever is printed is not counted among the other findings."""
    kinds = declared_kinds()
    notes = [
        kinds['check.frozen']('/imu/data', time=5.0),
        kinds['check.truth_ned']('/truth', axes='ned'),
        FINDING(),
    ]
    small = with_record(small_study(judges=('clean',), runs=6), notes=to_records(notes))
    lines = printed(small, capsys)
    assert len(lines) <= MAX_LINES
    heads = [line[:15].strip() for line in lines]
    assert heads.index('Second doubt') > heads.index('Main doubt')
    assert any(line.startswith('1 more finding:') for line in lines)
    large = with_record(small_study(judges=('clean',), models=MANY), notes=to_records(notes))
    lines = printed(large, capsys)
    assert not any(line.startswith('Second doubt') for line in lines)
    assert any(line.startswith('2 more findings, 1 to act on:') for line in lines)
