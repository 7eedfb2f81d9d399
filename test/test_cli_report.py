# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real report`: page, tables and bags made from result folders of study and vepd."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from cli_examples import call, check_refused, contents, pictures_left_blank, run_of
from report_examples import HOSTILE, small_study
from study_examples import seal

from sim2real_eval.cli.main import main
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.page.tables import gather, standings
from sim2real_eval.report.study_report import (
    latex_table,
    latex_text,
    markdown_table,
    markdown_text,
    paper_tables,
)
from sim2real_eval.study import secondary_results
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import SIDE_FILES

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures('blank_pictures')

STUDY = """\
title: Small
about: two runs
recordings:
  - stand_in: {scenarios: [line], runs: 2, duration: 6.0}
models: {gps: [ch_gauss, ch_rw], imu: [chrono]}
judges: [clean]
uncertainty: {resamples: 200}
"""


@pytest.fixture(scope='module')
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that the command ran, in its own folder."""
    folder = tmp_path_factory.mktemp('study')
    (folder / 'small.yaml').write_text(STUDY, encoding='utf-8')
    words = ['study', str(folder / 'small.yaml'), '--out', str(folder / 'out'), '--jobs', '1']
    with pictures_left_blank():
        assert main(words) == 0
    return folder / 'out'


@pytest.fixture
def study(finished_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(finished_study, tmp_path / 'study'))


def test_the_page_is_written_and_the_answer_is_printed(capsys: Capture, study: Path) -> None:
    outcome = call(capsys, 'report', study)
    assert (outcome.status, outcome.err) == (0, '')
    assert outcome.out.startswith('SYNTHETIC')
    best = min(StudyOutcome.read(study).table('clean'), key=lambda row: row.vepd)
    assert best.model in outcome.out.splitlines()[1]
    first = contents(study)
    assert {'report.html', 'tables.md', 'tables.tex'} <= {Path(name).name for name in first}
    assert call(capsys, 'report', study).status == 0
    assert contents(study) == first


def test_some_results_of_many_runs_are_computed_when_a_report_is_asked_for(
    capsys: Capture, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {name: (study / name).read_bytes() for name in SIDE_FILES}
    assert call(capsys, 'report', study).status == 0
    page = (study / 'report.html').read_text('utf-8')
    monkeypatch.setattr(secondary_results, 'MAX_RUNS', 1)
    words = ('study', study / 'study.yaml', '--jobs', '1', '--out')
    outcome = call(capsys, *words, 'large')
    assert outcome.out.splitlines()[-1].endswith(': sim2real report large')
    large = study.parent / 'large'
    assert {name for name in SIDE_FILES if (large / name).exists()} == {*SIDE_FILES[:2]}
    sections = re.findall('<section id="([^"]*)"', (large / 'report.html').read_text('utf-8'))
    assert 'more' in sections
    assert 'options' not in sections
    assert (large / 'vepd.csv').read_bytes() == (study / 'vepd.csv').read_bytes()
    assert call(capsys, 'report', large).status == 0
    assert {name: (large / name).read_bytes() for name in SIDE_FILES} == whole
    sections = re.findall('<section id="([^"]*)"', (large / 'report.html').read_text('utf-8'))
    assert sections == re.findall('<section id="([^"]*)"', page)
    # With -v, the command of the study prints them, too.
    assert 'other metric options' in call(capsys, *words, 'large', '-v').out


def test_code_named_in_a_result_is_run_only_on_request(capsys: Capture, study: Path) -> None:
    """A user who opens the result of somebody else has not read its metrics."""
    (study.parent / 'theirs.py').write_text("open('ran', 'w').close()\nclass Theirs: pass\n")
    record = json.loads((study / 'study.json').read_text('utf-8'))
    record['more_metrics'] = ['theirs.py:Theirs']
    (study / 'study.json').write_text(json.dumps(record), 'utf-8')
    check_refused(capsys, 'sha256', 'report', study)
    del record['sha256']
    (study / 'study.json').write_text(json.dumps(record), 'utf-8')
    check_refused(capsys, 'sha256', 'report', study)
    (study / 'study.json').write_text(seal(record), 'utf-8')
    outcome = call(capsys, 'report', study)
    assert outcome.status == 0
    assert 'theirs.py:Theirs' in outcome.err
    assert not (study.parent / 'ran').exists()
    call(capsys, 'report', study, '--run-metrics')
    assert (study.parent / 'ran').exists()


def test_json_names_the_page_the_tables_and_the_answer(capsys: Capture, study: Path) -> None:
    outcome = call(capsys, 'report', study, '--out', 'paper', '--mcap', 'bags', '--json')
    summary = json.loads(outcome.out)
    assert summary['page'] == 'paper/report.html'
    assert summary['tables'] == ['paper/tables.md', 'paper/tables.tex']
    assert summary['answer']['models'] == 2
    assert len(list(Path('bags').rglob('*.mcap'))) == 6
    check_refused(capsys, 'paper/report.html: exists', 'report', study, '--out', 'paper')
    check_refused(capsys, 'bags: exists', 'report', study, '--mcap', 'bags')
    again = call(capsys, 'report', study, '--out', 'paper', '--mcap', 'bags', '--overwrite')
    assert again.status == 0


@pytest.mark.parametrize('record', [None, '{}', '{"state": "unfinished"}'])
def test_a_folder_without_a_finished_study_is_refused(
    record: str | None, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if record:
        Path('study.json').write_text(record, encoding='utf-8')
    check_refused(capsys, str(tmp_path), 'report', tmp_path)


def test_a_result_folder_of_vepd_is_read_as_a_study_of_one_judge(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The series of the report give the scores of vepd, also with a warm-up."""
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        write_recording(run_of('line', number), tmp_path / f'line_{number}')
    words = [
        '--models', 'ch_rw,ch_gauss', '--warmup', '1', '--judge-config', 'clean', '--jobs', '1',
    ]  # fmt: skip
    done = call(capsys, 'vepd', 'line_1', 'line_2', *words, '--out', 'result')
    assert done.status == 0
    outcome = StudyOutcome.read('result')
    for series in gather(outcome, outcome.judges[0]).runs:
        rmse = float((series.error**2).mean() ** 0.5)
        assert rmse == pytest.approx(series.run.score.rmse, rel=1e-12)
    with Path('result', 'vepd.csv').open(encoding='utf-8', newline='') as file:
        printed = [float(row['vepd']) for row in csv.DictReader(file)]
    assert [row.vepd for row in outcome.table(outcome.judges[0])] == printed
    assert call(capsys, 'report', 'result').status == 0
    assert Path('result', 'report.html').is_file()


def test_tables_show_the_numbers_of_the_paper_beside_ours() -> None:
    ranking = standings(small_study(scenarios=('line', 'circle', 'half_sine'), runs=2))
    tables = paper_tables(ranking)
    assert len(tables) == 5  # ranking and scenarios under two judges, and all judges
    text = markdown_table(tables[1])
    line = next(line for line in text.splitlines() if line.startswith('| ch\\_rw '))
    # Table II: line 0.0048, circle 0.0488, sine 0.0796; Table I: 0.043.
    assert line.split(' | ')[3::3] == ['0.0048', '0.0488', '0.0796', '0.0430 |']
    widths = {line.count(' | ') for line in text.splitlines() if line.startswith('|')}
    assert len(widths) == 1


def test_labels_are_escaped_in_markdown_and_latex() -> None:
    for label in HOSTILE:
        unescaped = re.sub(r'\\([\\`*_{}\[\]<>|#~&$!])', r'\1', markdown_text(label))
        assert unescaped == ''.join(sign if sign.isprintable() else ' ' for sign in label)
        assert not re.search(r'(?<!\\)[<|`*&]', markdown_text(label))
    assert latex_text('a_b & 5% {x} \\y ~ ^ # $') == (
        r'a\_b \& 5\% \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{} \# \$'
    )
    assert latex_text('[x]').startswith('{[}')
    # \textquotedbl needs a font encoding other than the default of LaTeX.
    assert latex_text('"') == r'\symbol{34}'
    table = latex_table(paper_tables(standings(small_study(runs=2)))[0])
    body = [line for line in table.splitlines() if line.endswith(r'\\')]
    assert len({len(re.findall(r'(?<!\\)&', line)) for line in body}) == 1
    assert [line.strip() for line in table.splitlines() if 'rule' in line] == [
        r'\toprule', r'\midrule', r'\bottomrule',
    ]  # fmt: skip
