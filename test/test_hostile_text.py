# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Names come from files of others: plots, tables, pages and terminals show them as they stand."""

from __future__ import annotations

import datetime
import io
import json
import os
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli_examples import environment, run_of
from matplotlib.text import Text
from report_examples import renamed, small_study, with_record

from sim2real_eval.cli.output import PrintableOutput, print_table
from sim2real_eval.common.results import json_text, write_csv, write_json
from sim2real_eval.common.workers import Workers
from sim2real_eval.recording.checks import LEFT_OUT
from sim2real_eval.recording.reading import label_from_path
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report import style
from sim2real_eval.report.console import add_words, plain_table
from sim2real_eval.report.study_plots import begin_plots
from sim2real_eval.report.study_report import study_report, write_report
from sim2real_eval.study.gate_verdict import Cell, GateCase, GateOptions, GateVerdict, LimitCheck
from sim2real_eval.study.junit import junit_xml

# Labels of study files and of recording.yaml must be printable and without / and \.
LABELS = (
    '$x^{$', '$frac{a}$ $', '<script>alert(1)<script>', '&amp; &lt;', '=cmd()', '| pipe',
    'input{x} 5 % of _a_ #~^&', '`code` ]( javascript:alert(2)) ]]>', '[red]x[red] :smile:',
    '\U0001f600 \u6f22\u5b57', 'x' * 120,
)  # fmt: skip
NAMES = (
    *LABELS, r'$\frac$', r'\input{}', '</script>', '[red]x[/red]', 'two\nlines',
    'tab\t\x00\x7f\x9b',
    '\u202eevil\u2066', '\x1b[31m\x1b]0;title\x07', '\udcff\ud800', '\u2028\u2029', '',
)  # fmt: skip
"""Texts of data that nobody checks, such as topics, frames and paths."""
_UNSAFE = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]')


@pytest.mark.parametrize('scale', ['linear', 'log'])
@pytest.mark.parametrize('name', NAMES)
def test_every_text_of_a_figure_is_drawn_as_it_stands(name: str, scale: str) -> None:
    figure = style.new_figure(5.0, 4.0)
    axes = figure.add_subplot()
    axes.plot([1.0, 1e4], [1.0, 1e3], label=name)
    axes.set(title=name, xlabel=name, ylabel=name, xscale=scale)
    axes.set_yticks([1.0, 500.0], [name, name])
    axes.text(2.0, 2.0, name)
    axes.annotate(name, (1.0, 1.0))
    axes.legend([name])
    style.figure_legend(figure, [style.legend_line(name, 'red')], 1, name)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.filterwarnings('ignore', 'constrained_layout not applied')
        # As a user of a figure does, and as the commands do.
        figure.canvas.draw()
        with style.plain_texts(figure):
            drawn = [text for text in figure.findobj(Text) if isinstance(text, Text)]
            assert not any(text.get_parse_math() or text.get_usetex() for text in drawn)
            assert not any(_UNSAFE.search(text.get_text()) for text in drawn)
            assert '$' not in ''.join(text.get_text() for text in drawn) or '$' in name


def test_powers_of_a_logarithmic_axis_need_no_formula() -> None:
    axes = style.new_figure(5.0, 4.0).add_subplot()
    axes.loglog([1e-5, 1e3], [20.0, 37.0])
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.canvas.draw()
    labels = {text.get_text() for text in axes.xaxis.get_majorticklabels()}
    assert {'10⁻⁵', '10³'} <= labels
    minor = {text.get_text() for text in axes.yaxis.get_minorticklabels()}
    assert '3·10¹' in minor


def test_a_study_with_hostile_labels_keeps_its_report_and_draws_every_plot(tmp_path: Path) -> None:
    plain = small_study(
        judges=('one',), scenarios=('line', 'circle'), runs=3, groups=('g',),
        models={f'm{number}': 0.03 * (number + 1) for number in range(5)},
    )  # fmt: skip
    hostile = renamed(
        plain,
        judge={'one': LABELS[0]},
        model={f'm{number}': LABELS[number + 1] for number in range(5)},
        recording={f'gline_{number}': f'{LABELS[7]} {number}' for number in (1, 2, 3)},
        scenario={'line': LABELS[8], 'circle': LABELS[9]},
        group={'g': LABELS[6]},
    )
    hostile = with_record(hostile, title=NAMES[13], description=NAMES[12])
    drawn = []
    for study, folder in ((plain, tmp_path / 'plain'), (hostile, tmp_path / 'hostile')):
        with Workers(1) as workers:
            begin_plots(folder, study, workers)()
        drawn.append(sorted(path.name for path in folder.rglob('*.png')))
        write_report(study_report(study, folder), folder / 'report.html')
    assert len(drawn[0]) > 6
    assert drawn[1] == drawn[0]
    rows = (tmp_path / 'hostile' / 'tables.md').read_text('utf-8').splitlines()
    heads = [row for row in rows if row.startswith('| ---')]
    counts = [len(re.findall(r'(?<!\\)\|', row)) for row in rows if row.startswith('|')]
    assert heads
    assert {*counts} == {len(re.findall(r'\|', head)) for head in heads}
    latex = (tmp_path / 'hostile' / 'tables.tex').read_text('utf-8')
    assert r'\input' not in latex
    body = [row for row in latex.splitlines() if row.startswith('    ') and row.endswith(r'\\')]
    cells = {len(re.findall(r'(?<!\\)&', row)) for row in body}
    assert cells == {len(re.findall(r'(?<!\\)&', row)) for row in body if 'VEPD' in row}


@pytest.mark.parametrize('name', NAMES)
def test_a_terminal_gets_no_character_that_controls_it(name: str) -> None:
    buffer = io.BytesIO()
    output = PrintableOutput(buffer, 'utf-8', errors='backslashreplace')
    table = plain_table(name)
    add_words(table, 'name', name)
    table.add_row(name, name)
    before, sys.stdout = sys.stdout, output
    try:
        print_table(table)
        print(name)
        print(json_text({'name': name}))
        output.flush()
    finally:
        sys.stdout = before
    text = buffer.getvalue().decode()
    assert not _UNSAFE.search(text)
    if name in LABELS and len(name) < 100:
        assert text.count(name) >= 4
    assert json.loads(text[text.rindex('{\n') :])['name'] == name


def test_an_output_in_ascii_prints_every_name() -> None:
    buffer = io.BytesIO()
    output = PrintableOutput(buffer, 'ascii', errors='backslashreplace')
    for name in NAMES:
        print(name, file=output)
    output.flush()
    assert b'\\U0001f600' in buffer.getvalue()


@pytest.mark.parametrize('name', NAMES)
def test_files_hold_every_name(tmp_path: Path, name: str) -> None:
    record = {name: [name, float('nan'), -float('inf'), 1.5]}
    text = write_json(tmp_path / 'a.json', record).read_text('utf-8')
    assert json.loads(text, parse_constant=pytest.fail) == {name: [name, None, None, 1.5]}
    table = write_csv(tmp_path / 'a.csv', ['name', 'n'], [[name, 1]]).read_text('utf-8')
    assert not re.search(r'^=|^"=', table, re.MULTILINE)


@pytest.mark.parametrize('name', NAMES)
def test_junit_holds_every_name(name: str) -> None:
    cell = Cell(judge=name, group=name, scenario=name, model=name)
    checks = (LimitCheck('--max-vepd 0.5', name or 'x'),)
    cases = (GateCase(cell, 1.0, checks=checks), GateCase(cell, 1.0, skipped=name or 'x'))
    verdict = GateVerdict(GateOptions(max_vepd=0.5), cases, left_out=(name,))
    root = ET.fromstring(junit_xml(verdict, datetime.datetime.now(datetime.timezone.utc)))
    names = [case.get('name') or '' for case in root.iter('testcase')]
    assert len(names) == 3
    assert not any(_UNSAFE.search(text) for text in names)
    if name in LABELS:
        assert f'{name} {name}' in names


@pytest.mark.parametrize('name', NAMES)
def test_a_finding_is_one_line(name: str) -> None:
    text = str(LEFT_OUT(name, problem=name))
    assert text.isprintable()
    assert name not in LABELS or name in text


@pytest.mark.parametrize('name', [name for name in NAMES if name and '/' not in name])
def test_the_label_of_a_recording_can_be_printed_and_is_a_file_name(name: str) -> None:
    label = label_from_path(Path(name))
    assert label.isprintable()
    assert name not in LABELS or label == name


@pytest.fixture
def odd_folder(tmp_path: Path) -> Path:
    """A folder whose name is not UTF-8 and holds an escape sequence, a newline and a formula."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b'/\xff\x1b[8m\n$x^{$ [1]'))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip('the file system takes names in UTF-8 only')
    return folder


def test_a_command_takes_paths_of_any_bytes(odd_folder: Path) -> None:
    recording = odd_folder / os.fsdecode(b'\xfe$x^{$')
    write_recording(run_of('line', 1), recording)
    words = ['check', str(recording), '--plot', str(odd_folder / 'check.png')]
    done = subprocess.run(
        [sys.executable, '-m', 'sim2real_eval.cli', *words],
        capture_output=True, env=environment(), timeout=120, check=False,
    )  # fmt: skip
    assert b'Traceback' not in done.stderr
    assert b'check.png' in done.stdout
    assert b'\x1b[8m' not in done.stdout + done.stderr
    assert (odd_folder / 'check.png').is_file()
