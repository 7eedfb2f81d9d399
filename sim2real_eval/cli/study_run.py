# SPDX-License-Identifier: Apache-2.0
"""Carries out the study of a verb, and prints what came of it."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.cli.output import (
    complain,
    print_json,
    print_notes,
    print_table,
    print_uncertainty,
    progress_bar,
    report_failures,
    shown,
)

if TYPE_CHECKING:
    from sim2real_eval.report.ranking_tables import RankLines
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.sensitivity import SensitivityTable


def carry_out(
    plan: StudyPlan,
    options: argparse.Namespace,
    *,
    published: bool = False,
    finish: Callable[[StudyOutcome], None] | None = None,
) -> int:
    """Run a study into the folder --out, print it, and return the exit status.

    Parameters
    ----------
    plan : StudyPlan
    options : argparse.Namespace
        With out, overwrite, jobs and json, and cluster where there is one.
    published : bool
        Show the paper's numbers beside ours.
    finish : callable, optional
        Writes what else is to lie in the folder, before the report.

    Raises
    ------
    Sim2RealError
        See `run_study`.
    """
    from sim2real_eval.report.study_report import finish_study
    from sim2real_eval.study.run import told_failures
    from sim2real_eval.study.runner import run_study
    from sim2real_eval.study.secondary_results import uncertainty_records

    reports = []

    def write_rest(outcome: StudyOutcome) -> None:
        if finish is not None:
            finish(outcome)
        reports.append(finish_study(outcome, options.out))

    with contextlib.ExitStack() as stack:

        def begin(runs: int, known: int, units: int) -> Callable[[], None]:
            if known:
                print(f'{options.out}: {known} of {runs} runs were there already', file=sys.stderr)
            return stack.enter_context(progress_bar(units, 'study'))

        try:
            outcome = run_study(
                plan,
                options.out,
                jobs=options.jobs,
                cluster=getattr(options, 'cluster', None),
                overwrite=options.overwrite,
                begin=begin,
                finish=write_rest,
            )
        except KeyboardInterrupt:
            complain(
                f'interrupted; runs that were finished are in {options.out}, and the same command '
                'continues'
            )
            return 130
    failures = told_failures(outcome.record)
    report_failures(failures, of=len(failures) + 1)
    if options.json:
        print_json(
            {
                **outcome.record,
                'vepd': [
                    {'judge': judge, 'group': group, **dataclasses.asdict(row)}
                    for judge, group in outcome.compared
                    for row in outcome.table(judge, group)
                ],
                'uncertainty': uncertainty_records(outcome),
            }
        )
    else:
        print_study(outcome, reports[0], options.out, published=published)
    return 1 if failures else 0


def print_study(
    outcome: StudyOutcome, report: StudyReport, folder: str | Path, *, published: bool = False
) -> None:
    """Print the tables of a study, its notes, the answer and where everything is.

    Parameters
    ----------
    outcome : StudyOutcome
    report : StudyReport
    folder : str or Path
        Of the study.
    published : bool
        Show the paper's numbers beside ours.
    """
    from sim2real_eval.common.findings import from_records
    from sim2real_eval.metrics.distances import POOLED
    from sim2real_eval.metrics.uncertainty.assessment import uncertainty_notes
    from sim2real_eval.report.console import vepd_console_table
    from sim2real_eval.report.study_plots import PLOTS
    from sim2real_eval.report.study_report import PAGE

    record, folder = outcome.record, Path(folder)
    synthetic = bool(record['synthetic'])
    print(record['title'])
    if synthetic:
        print('Recordings are SYNTHETIC stand-ins: the numbers show how the study works, not how')
        print('good a sensor model is.')
    print()
    suggestions = []
    for one in report.standings:
        rows = shown(one.rows)
        print_table(
            vepd_console_table(
                rows,
                forward_rmse=outcome.forward_rmse(one.judge, one.group),
                title=f'VEPD of {record["component"]} speed, judge {one.label}: smaller is closer'
                + (' (SYNTHETIC stand-in)' if synthetic else ''),
                published=published,
            )
        )
        print()
        scenarios = [name for name in one.uncertainty if name != POOLED]
        told = [
            *uncertainty_notes(one.uncertainty, scenarios),
            *print_uncertainty(one.uncertainty, rows),
        ]
        print()
        suggestions += [line.of(one.label) if len(report.standings) > 1 else line for line in told]
    _show_secondary(outcome, folder)
    print_notes([*from_records(record['notes']), *suggestions])
    for line in report.answer:
        print(line)
    print(f'Tables, runs and series: {folder}; plots: {folder / PLOTS}; page: {folder / PAGE}')


# What is shown beside VEPD.


def _show_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Print metrics, their options' weight and rankings; `folder` has more of them.

    Of every judge and group the row over all scenarios is shown; the files have the others.
    """
    from sim2real_eval.metrics.distances import POOLED
    from sim2real_eval.report.ranking_tables import ranking_pairs_table, ranks_table
    from sim2real_eval.report.study_plots import MOST_DRAWN
    from sim2real_eval.study.secondary_results import side_results

    results = side_results(outcome)
    found = results.overall_metrics
    for lines in _lines(outcome):
        print_table(ranks_table(lines))
        print('  * significant; tau: agreement of the ranking with that by VEPD')
        for note in lines.notes:
            print(f'  {note}')
        print()
    if len(found) > MOST_DRAWN:
        print(f'{len(found) - MOST_DRAWN} more such tables: {folder / "metrics.csv"}\n')
    for table in results.overall_sensitivity:
        print(_sensitivity(table))
    scenarios = list(dict.fromkeys(pair.scenario for pair in results.rankings))
    chosen = POOLED if POOLED in scenarios else ''.join(scenarios[:1])
    pairs = [pair for pair in results.rankings if pair.scenario == chosen]
    if pairs:
        print()
        print_table(
            ranking_pairs_table(pairs, 'Do the rankings agree? (p-value: over all orders)')
        )
        print()


def _lines(outcome: StudyOutcome) -> list[RankLines]:
    from sim2real_eval.report.ranking_tables import metric_lines
    from sim2real_eval.report.study_plots import MOST_DRAWN
    from sim2real_eval.study.secondary_results import side_results

    return [metric_lines(table) for table in side_results(outcome).overall_metrics[:MOST_DRAWN]]


def _sensitivity(table: SensitivityTable) -> str:
    known = [row for row in table.rows[1:] if row.with_own.kendall is not None]
    where = f'{table.judge}, {table.group}' if table.group else table.judge
    if not known:
        return f'{where}: the ranking cannot be compared with that by other metric options'
    worst = min(known, key=lambda row: row.with_own.kendall or 0.0)
    same = sum(row.with_own.kendall == 1.0 for row in known)
    text = f'{where}: {same} of {len(known)} other metric options rank the models alike'
    if same == len(known):
        return text
    return f'{text}; least alike {worst.label} (tau {worst.with_own.kendall:.2f})'
