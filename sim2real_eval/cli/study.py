# SPDX-License-Identifier: Apache-2.0
"""`sim2real study`: a whole experiment from a file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.cli.arguments import (
    add_jobs,
    add_json,
    add_overwrite,
    add_topics,
    at_least,
    scenario_label,
    sources,
)
from sim2real_eval.cli.metric_arguments import add_resampling
from sim2real_eval.cli.output import (
    complain,
    print_json,
    print_notes,
    print_table,
    progress_bar,
    report_failures,
)
from sim2real_eval.common.findings import from_records
from sim_sensors.core.errors import ParameterError

if TYPE_CHECKING:
    from sim2real_eval.report.ranking_tables import RankLines
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.sensitivity import SensitivityTable
    from sim2real_eval.study.study_file import Overrides


__all__ = [
    'DESCRIPTION',
    'EPILOG',
    'HELP',
    'add_arguments',
    'draw_secondary',
    'overrides',
    'run',
    'show_secondary',
]

# -------- What `sim2real study` shows beside VEPD.

_MOST_TABLES = 4


def draw_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Draw metrics.png, where there is something to draw."""
    from sim2real_eval.report.ranking_plots import save_ranks

    if shown := _lines(outcome):
        save_ranks(folder / 'metrics.png', shown)


def show_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Print metrics, their options' weight and rankings; `folder` has more of them.

    Of every judge and group the row over all scenarios is shown; the files have the others.
    """
    from sim2real_eval.metrics.distances import POOLED
    from sim2real_eval.report.ranking_tables import ranking_pairs_table, ranks_table
    from sim2real_eval.study.secondary_results import side_results

    results = side_results(outcome)
    found = results.overall_metrics
    for lines in _lines(outcome):
        print_table(ranks_table(lines))
        print('  * significant; tau: agreement of the ranking with that by VEPD')
        for note in lines.notes:
            print(f'  {note}')
        print()
    if len(found) > _MOST_TABLES:
        print(f'{len(found) - _MOST_TABLES} more such tables: {folder / "metrics.csv"}\n')
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
    from sim2real_eval.study.secondary_results import side_results

    return [metric_lines(table) for table in side_results(outcome).overall_metrics[:_MOST_TABLES]]


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


HELP = 'a whole experiment from a file: recordings, models, judges, conditions'
DESCRIPTION = (
    'Carry out a study file: judge every real recording and its simulated '
    'counterparts under every judge and condition, and compare them. Given again, the same '
    'command continues where it was interrupted. See docs/study.md.'
)
EPILOG = """\
examples:
  sim2real study b_gps_models --out study_b
  sim2real study b_gps_models --real bags/* --out study_b_mine
  sim2real study judge_sensitivity --runs 2 --out quick
  sim2real study my_study.yaml --jobs 8 --out result
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'study', metavar='NAME|FILE', help='name of a shipped study, or a YAML file'
    )
    parser.add_argument(
        '--real',
        nargs='+',
        metavar='PATH',
        help='real recordings with ground truth, in place of those of the study file',
    )
    add_topics(parser)
    parser.add_argument(
        '--scenario',
        type=scenario_label,
        metavar='LABEL',
        help='with --real: scenario label of all recordings',
    )
    parser.add_argument(
        '--runs',
        type=at_least(1, int),
        metavar='N',
        help='stand-in recordings per scenario, in place of those of the study file',
    )
    parser.add_argument(
        '--simulate-on',
        choices=('truth', 'drive'),
        help='true motion of the recordings, or independent drives, in place of what the study '
        'file says',
    )
    parser.add_argument(
        '--seed',
        type=at_least(0, int),
        metavar='N',
        help='seed of all random draws (default: that of the study file, else 0); equal seeds '
        'give equal bytes',
    )
    add_resampling(parser, of='that of the study file, else ')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the study')
    add_overwrite(parser)
    add_json(parser)
    add_jobs(parser)
    parser.add_argument(
        '--cluster',
        metavar='ADDRESS',
        help='scheduler of dask.distributed, such as tcp://host:8786, whose workers judge in '
        'place of processes of this machine; same bytes',
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.run import told_failures
    from sim2real_eval.study.runner import run_study
    from sim2real_eval.study.secondary_results import uncertainty_records

    plan = StudyPlan.load(options.study, overrides(options))
    reports = []

    def finish(outcome: StudyOutcome) -> None:
        reports.append(_report(outcome, Path(options.out)))

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
                cluster=options.cluster,
                overwrite=options.overwrite,
                begin=begin,
                finish=finish,
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
        _print(outcome, reports[0], options.out)
    return 1 if failures else 0


def _report(outcome: StudyOutcome, folder: Path) -> StudyReport:
    """Write the page, the tables for a paper and the picture of the metrics."""
    from sim2real_eval.report.study_report import PAGE, study_report, write_report

    report = study_report(outcome, folder=folder)
    write_report(report, folder / PAGE)
    draw_secondary(outcome, folder)
    return report


def overrides(options: argparse.Namespace) -> Overrides:
    """Return what the options say in place of the study file."""
    from sim2real_eval.study.study_file import Overrides

    real = None
    if options.real is None:
        for option, value in (('--topic', options.topic), ('--scenario', options.scenario)):
            if value:
                raise ParameterError(option, '', 'goes with --real only')
    else:
        if options.runs is not None:
            raise ParameterError('--runs', '', 'goes with stand-ins only, not with --real')
        real = sources(options.real, options.topic, options.scenario, option='--real')
    return Overrides(
        real, options.seed, options.runs, options.simulate_on, options.resamples, options.level
    )


def _print(outcome: StudyOutcome, report: StudyReport, folder: str) -> None:
    from sim2real_eval.cli.output import print_uncertainty, shown
    from sim2real_eval.report.console import vepd_console_table
    from sim2real_eval.report.study_report import PAGE

    record = outcome.record
    print(record['title'])
    if record['synthetic']:
        print('Recordings are SYNTHETIC stand-ins: the numbers show how the study works, not how')
        print('good a sensor model is. --real PATH... gives it your own.')
    print()
    suggestions = []
    for one in report.standings:
        rows = shown(one.rows)
        print_table(
            vepd_console_table(
                rows,
                title=f'VEPD of {record["component"]} speed, judge '
                f'{one.judge}{f", {one.group}" if one.group else ""}: smaller is closer',
            )
        )
        print()
        told = print_uncertainty(one.uncertainty, rows)
        suggestions += [line.of(one.label) if len(report.standings) > 1 else line for line in told]
    show_secondary(outcome, Path(folder))
    print_notes([*from_records(record['notes']), *suggestions])
    for line in report.answer:
        print(line)
    print(f'Tables, runs and series: {folder}; page: {Path(folder, PAGE)}')
