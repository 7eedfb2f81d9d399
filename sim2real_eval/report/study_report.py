# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The report of a study: its page, its tables for a paper, and its answer and findings."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.common.findings import (
    FINDINGS,
    Finding,
    by_severity,
    findings_text,
    from_records,
)
from sim2real_eval.common.new_files import write_text
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.uncertainty import uncertainty_notes
from sim2real_eval.study.answer import Answer, study_answer
from sim2real_eval.study.outcome import StudyOutcome, describe_failures
from sim2real_eval.study.secondary_results import side_results
from sim2real_eval.study.transfer_record import read_transfer
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input_text
from .answer import read_record, undetected_text
from .console import MINUS, NONE, DataTable, TableColumn, numeric
from .page.page import study_page
from .page.tables import Standing, by_scenario, overview, ranking, standings
from .ranking_tables import pair_lines
from .study_plots import begin_plots

PAGE = 'report.html'
TABLES = ('tables.md', 'tables.tex')

_STUDY_FILE = 'study.yaml'


@dataclasses.dataclass(frozen=True, eq=False)
class StudyReport:
    """Contents of the report."""

    page: str
    markdown: str
    latex: str
    standings: Sequence[Standing]
    answer: Answer
    findings: Sequence[Finding]
    sensitivity: Mapping[str, Any] | None = None  # from `sim2real sensitivity`

    @property
    def undetected_text(self) -> str:
        """Text about what the judge of the answer cannot detect; empty if unknown."""
        return undetected_text(self.sensitivity, self.answer.view.judge)


def study_report(outcome: StudyOutcome, folder: str | Path) -> StudyReport:
    """Return the report of a study, which includes the study file in `folder`.

    Sim2RealError is raised if no judge has both a real and a simulated run.
    """
    side = side_results(outcome)
    standing = standings(outcome, side)
    if not standing:
        raise Sim2RealError('no runs to show; needs at least one real and one simulated run')
    file = Path(folder) / _STUDY_FILE
    text = read_input_text(file) if file.is_file() else ''
    sensitivity, transfer = read_record(folder), read_transfer(folder)
    answer = study_answer(outcome).with_transfer(transfer)
    findings = _findings(outcome, standing)
    page = study_page(
        outcome,
        study_file=text,
        command=shlex.join(map(str, outcome.record.get('command') or [])),
        side=side,
        transfer=transfer,
        standing=standing,
        answer=answer,
        unseen=undetected_text(sensitivity, answer.view.judge),
        findings=findings,
    )
    synthetic = bool(outcome.record.get('synthetic'))
    tables = paper_tables(standing)
    label = 'SYNTHETIC stand-in for real sensors' if synthetic else ''
    return StudyReport(
        page,
        '\n'.join([*([f'{label}\n'] if label else []), *map(markdown_table, tables)]),
        '\n'.join(
            [
                '% needs \\usepackage{booktabs}',
                *([f'% {label}'] if label else []),
                *map(latex_table, tables),
            ]
        ),
        tuple(standing),
        answer,
        findings,
        sensitivity,
    )


def _findings(outcome: StudyOutcome, standings: Sequence[Standing]) -> list[Finding]:
    """Return all findings about the runs and the ranking."""
    record = outcome.record
    findings = [*from_records(record['notes']), *from_records(record.get('adapted', ()))]
    for standing in standings:
        notes = uncertainty_notes(standing.uncertainty, standing.scenarios)
        notes += pair_lines(standing.pooled_uncertainty, standing.whole)
        findings += (
            [note.restrict_to(standing.label) for note in notes] if len(standings) > 1 else notes
        )
    return by_severity(findings)


def finish_study(
    outcome: StudyOutcome, folder: str | Path, plots: Callable[[], object] | None = None
) -> StudyReport:
    """Write the report into the folder of a study: page, tables for a paper and plots.

    `plots` waits for plots that were begun; by default they are drawn in this process.
    """
    folder = Path(folder)
    report = study_report(outcome, folder)
    write_report(report, folder / PAGE)
    text = findings_text(report.findings, describe_failures(outcome.record))
    write_text(folder / FINDINGS, text)
    (begin_plots(folder, outcome, Workers()) if plots is None else plots)()
    return report


def write_report(report: StudyReport, page: str | Path) -> tuple[Path, Path, Path]:
    """Write the page and the tables; each file appears complete or not at all."""
    page = Path(page)
    markdown, latex = (page.with_name(name) for name in TABLES)
    return (
        write_text(page, report.page),
        write_text(markdown, report.markdown),
        write_text(latex, report.latex),
    )


_LATEX = {
    '\\': r'\textbackslash{}',
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    **{sign: f'\\{sign}' for sign in '&%$#_{}'},
    '<': r'\textless{}',
    '>': r'\textgreater{}',
    '|': r'\textbar{}',
    '"': r'\symbol{34}',
    MINUS: '$-$',
    NONE: '--',
    '∞': r'$\infty$',
    'Δ': r'$\Delta$',
    '°': r'$^\circ$',
}


def paper_tables(standings: Sequence[Standing]) -> list[DataTable]:
    """Return a ranking and, with several scenarios, a table by scenario for each judge."""
    tables: list[DataTable | None] = []
    for standing in standings:
        tables += [_ranking_table(standing), by_scenario(standing, {})]
    return [table for table in (*tables, overview(standings, {})) if table is not None]


def _ranking_table(standing: Standing) -> DataTable:
    models = [model.model for model in standing.pooled_uncertainty.models]
    model_ranking = ranking(standing, dict.fromkeys(models, ''))
    level = f'{100 * standing.pooled_uncertainty.options.level:g} % interval'
    columns = {
        'rank': numeric('rank'),
        'name': TableColumn('model'),
        'differs': TableColumn('differs by'),
        'vepd': numeric('VEPD'),
        'interval': TableColumn(level),
        'null_high': numeric('identical sensors up to'),
        'p_value': numeric('p-value'),
        **({'nis': numeric('NIS', 'decades')} if model_ranking.has_nis else {}),
        **({'tied': TableColumn('tied with rank')} if model_ranking.has_ties else {}),
        'w_rmse': numeric('W1 RMSE', 'm/s'),
        'w_entropy': numeric('W2 entropy'),
        'runs': numeric('runs', 'real/sim'),
        **({'published': numeric('paper', 'VEPD')} if model_ranking.has_published else {}),
    }
    rows = [
        [getattr(place, name) or (NONE if name == 'published' else '') for name in columns]
        for place in model_ranking.places
    ]
    title = f'VEPD {standing.where}, judge {standing.label}'
    return DataTable(title, [*columns.values()], rows, headed=False)


def markdown_table(table: DataTable) -> str:
    """Return a table in GitHub's Markdown, with the special characters of labels escaped."""
    heads = [markdown_text(column.head) for column in table.columns]
    lines = [
        f'**{markdown_text(table.title)}**',
        '',
        f'| {" | ".join(heads)} |',
        f'| {" | ".join("---:" if column.numeric else "---" for column in table.columns)} |',
    ]
    lines += [f'| {" | ".join(markdown_text(cell) for cell in row)} |' for row in table.rows]
    return '\n'.join(lines) + '\n'


def latex_table(table: DataTable) -> str:
    """Return a table for LaTeX and booktabs, with the special characters of labels escaped."""
    form = ''.join('r' if column.numeric else 'l' for column in table.columns)
    lines = [
        r'\begin{table}',
        r'  \centering',
        f'  \\caption{{{latex_text(table.title)}}}',
        f'  \\begin{{tabular}}{{@{{}}{form}@{{}}}}',
        r'    \toprule',
        f'    {" & ".join(latex_text(column.head) for column in table.columns)} \\\\',
        r'    \midrule',
        *(f'    {" & ".join(latex_text(cell) for cell in row)} \\\\' for row in table.rows),
        r'    \bottomrule',
        r'  \end{tabular}',
        r'\end{table}',
    ]
    return '\n'.join(lines) + '\n'


def markdown_text(text: str) -> str:
    """Return text with the special characters of Markdown and HTML escaped."""
    return re.sub(r'([\\`*_{}\[\]<>|#~&$!])', r'\\\1', _one_line(text))


def latex_text(text: str) -> str:
    """Return text with the special characters of LaTeX escaped."""
    # A cell that begins with a bracket would be an argument of the line end before it.
    return re.sub(r'^\[', '{[}', ''.join(_LATEX.get(sign, sign) for sign in _one_line(text)))


def _one_line(text: str) -> str:
    printable = ''.join(sign if sign.isprintable() else ' ' for sign in text)
    return re.sub(r'\s+', ' ', printable)
