# SPDX-License-Identifier: Apache-2.0
"""The report of a study: page and tables as files, and what to say of it in a line."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path

from sim2real_eval.common.tables import write_bytes
from sim2real_eval.report.page.page import study_page
from sim2real_eval.report.page.standing import Standing, standings
from sim2real_eval.report.page.summary import answer
from sim2real_eval.report.paper_tables import latex_table, markdown_table, paper_tables
from sim2real_eval.report.study_plots import save_plots
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import SideResults, side_results
from sim_sensors.core.errors import Sim2RealError

PAGE = 'report.html'
TABLES = ('tables.md', 'tables.tex')

_STUDY_FILE = 'study.yaml'


@dataclasses.dataclass(frozen=True, eq=False)
class StudyReport:
    """Contents of the report.

    Attributes
    ----------
    page, markdown, latex : str
    standings : tuple of Standing
    answer : tuple of str
        Which model is closest, and whether it is significantly different, under the first judge.
    """

    page: str
    markdown: str
    latex: str
    standings: Sequence[Standing]
    answer: Sequence[str]


def study_report(
    outcome: StudyOutcome,
    *,
    folder: str | Path | None = None,
    standing: Sequence[Standing] | None = None,
    side: SideResults | None = None,
) -> StudyReport:
    """Make the report of a study.

    Parameters
    ----------
    outcome : StudyOutcome
    folder : path, optional
        Of the study, whose study file is shown.
    standing : sequence of Standing, optional
        From `standings`; made when omitted.
    side : SideResults, optional
        Made when omitted.

    Raises
    ------
    Sim2RealError
        When no judge has both a real and a simulated run.
    """
    standing = standings(outcome) if standing is None else standing
    if not standing:
        raise Sim2RealError('no runs to show; need at least one real and one simulated run')
    side = side_results(outcome) if side is None else side
    file = None if folder is None else Path(folder) / _STUDY_FILE
    text = file.read_text(encoding='utf-8') if file is not None and file.is_file() else ''
    page = study_page(
        outcome,
        study_file=text,
        command=shlex.join(map(str, outcome.record.get('command') or [])),
        side=side,
        standing=standing,
    )
    synthetic = bool(outcome.record.get('synthetic'))
    tables = paper_tables(standing)
    real = 'the stand-in' if synthetic else 'the real sensors'
    said = tuple(line.striptags() for line in answer(standing[0], real))
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
        said,
    )


def finish_study(outcome: StudyOutcome, folder: str | Path) -> StudyReport:
    """Write the report into the folder of a study: page, tables for a paper and plots."""
    folder = Path(folder)
    report = study_report(outcome, folder=folder)
    write_report(report, folder / PAGE)
    save_plots(folder, outcome, list(report.standings), side_results(outcome))
    return report


def write_report(report: StudyReport, page: str | Path) -> tuple[Path, Path, Path]:
    """Write the page and, beside it, the tables; each appears whole or not at all."""
    page = Path(page)
    markdown, latex = (page.with_name(name) for name in TABLES)
    return (
        write_bytes(page, report.page.encode()),
        write_bytes(markdown, report.markdown.encode()),
        write_bytes(latex, report.latex.encode()),
    )
