# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real study`: a whole experiment from a file, and the tables that it prints."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.findings import FINDINGS
from sim2real_eval.common.workers import Workers
from sim2real_eval.study.options import MOST_RUNS, PAPER_PROFILE
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.shipped import config_path
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_scenario,
    add_shared,
    named_judges,
    sources,
)
from .options import OptionSet, add_study_options, command_words, optional_text, study_options
from .output import (
    MOST_FINDINGS,
    PRELOADED,
    conclude,
    lines_text,
    print_table,
    progress_bar,
    report_failures,
    wrap_text,
)

if TYPE_CHECKING:
    from sim2real_eval.metrics.scores import VepdRow
    from sim2real_eval.report.page.tables import Standing
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.runner import Beside
    from sim2real_eval.study.study_file import Overrides

_MOST_TABLES = 4


def print_study(
    outcome: StudyOutcome,
    report: StudyReport,
    folder: str | Path,
    *,
    published: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    explained: bool = False,
) -> None:
    """Print the ranking of a study, the answer below it, and the names of its files.

    `verbose` prints every table before the answer and its reasons below it, and `quiet` only the
    answer. `explained` prints the answer in plain words instead of the ranking.
    """
    from sim2real_eval.report.answer import adapted_text, answer_lines, detail_lines, plain_answer
    from sim2real_eval.report.study_report import PAGE
    from sim2real_eval.study.secondary_results import has_many_recordings

    folder, synthetic = Path(folder), bool(outcome.record['synthetic'])
    if quiet:
        print(lines_text(answer_lines(report.answer)))
        return
    print(outcome.record['title'])
    if synthetic:
        print('Recordings are SYNTHETIC stand-ins: the numbers show how a study works and do not')
        print('describe a real sensor.')
    if adapted := adapted_text(outcome.record):
        print(wrap_text(adapted))
    print()
    if verbose:
        _show_all(outcome, report, folder, published=published)
    elif not explained:
        judge = report.answer.view.judge
        # The printed numbers name their own judge, which need not be that of the answer.
        shown_judges = (judge, PAPER_PROFILE) if published else (judge,)
        standings = [standing for standing in report.standings if standing.judge in shown_judges]
        for standing in standings[:_MOST_TABLES]:
            _show_ranking(outcome, standing, published=published)
    if explained:
        print(wrap_text(plain_answer(report.answer)) + '\n')
    details = detail_lines(report.answer, report.undetected_text) if verbose else []
    print(lines_text([*answer_lines(report.answer), *details]))
    doubts = report.answer.doubts[1 : 1 + MOST_FINDINGS] if verbose else ()
    if doubts:
        print('\nAlso decisive:')
    for finding in doubts:
        print(wrap_text(str(finding), '- '))
    more_findings = len(report.findings) - len(doubts) - bool(report.answer.doubts)
    print()
    if more_findings > 0:
        print(
            f'{more_findings} more finding{"" if more_findings == 1 else "s"}: {folder / FINDINGS}'
        )
    print(f'Report: {folder / PAGE}' + ('' if verbose else '; more tables: -v'))
    if has_many_recordings(outcome):
        print(f'Other options, position and heading: sim2real report {shlex.quote(str(folder))}')


def _show_ranking(outcome: StudyOutcome, standing: Standing, *, published: bool) -> None:
    """Print the distances of the models from the real sensors, under one judge in one group."""
    from sim2real_eval.metrics.published import published_vepd
    from sim2real_eval.metrics.scores import POOLED
    from sim2real_eval.report.ranking_tables import ranking_table

    component = str(outcome.record['component'])
    means = {component: outcome.mean_rmse(standing.judge, standing.group, 'rmse')}
    means['forward'] = outcome.mean_rmse(standing.judge, standing.group)
    print_table(
        ranking_table(
            standing.pooled_uncertainty,
            {
                name: {
                    model: value
                    for (model, place), value in means_by_model.items()
                    if place == POOLED
                }
                for name, means_by_model in means.items()
            },
            title=f'VEPD of {component} speed {standing.where}, judge {standing.label}: '
            'smaller is closer',
            real='stand-in' if outcome.record['synthetic'] else 'real sensors',
            metrics=standing.metrics,
            published={model: published_vepd(model, standing.whole) for model in outcome.models}
            if published and standing.judge == PAPER_PROFILE
            else None,
        )
    )
    if standing.metrics and any(map(standing.metrics.detected_by, standing.metrics.models)):
        print('  * differs from the real sensors, in one test of all metrics')
    print()


def _show_all(
    outcome: StudyOutcome, report: StudyReport, folder: Path, *, published: bool
) -> None:
    """Print every table; `folder` is named for tables that are too large."""
    from sim2real_eval.report.console import vepd_console_table
    from sim2real_eval.report.ranking_tables import uncertainty_table

    for standing in report.standings:
        _show_ranking(outcome, standing, published=published)
        rows = without_repetition(standing.rows)
        if len(standing.scenarios) > 1:
            print_table(
                vepd_console_table(
                    rows,
                    forward_rmse=outcome.mean_rmse(standing.judge, standing.group),
                    title=f'By scenario, judge {standing.label}',
                    published=published and standing.judge == PAPER_PROFILE,
                )
            )
            print()
        print_table(
            uncertainty_table({name: standing.uncertainty[name] for name in standing.scenarios})
        )
        print()
    _show_secondary(outcome, folder)


def without_repetition(rows: Sequence[VepdRow]) -> list[VepdRow]:
    """Return the rows without the pooled ones if there is only one scenario."""
    pooled = len({row.scenario for row in rows}) > 2
    return [row for row in rows if pooled or row.scenario != 'all']


def _show_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Print the other metrics, metric options and rankings.

    Only the rows over all scenarios are printed; the files in `folder` have the others.
    """
    from sim2real_eval.metrics.scores import POOLED
    from sim2real_eval.report.console import console_table
    from sim2real_eval.report.ranking_tables import (
        metric_lines,
        pose_difference_table,
        ranking_pairs_table,
        ranks_table,
        sensitivity_text,
    )
    from sim2real_eval.report.study_plots import MOST_DRAWN
    from sim2real_eval.study.secondary_results import side_results

    results = side_results(dataclasses.replace(outcome, complete=True))
    metrics = results.overall_metrics
    for lines in map(metric_lines, metrics[:MOST_DRAWN]):
        print_table(ranks_table(lines))
        print('  * significant; tau: agreement of the ranking with that by VEPD')
        for note in lines.notes:
            print(f'  {note}')
        print()
    if len(metrics) > MOST_DRAWN:
        print(f'{len(metrics) - MOST_DRAWN} more of these tables: {folder / "metrics.csv"}\n')
    if results.poses:
        print_table(console_table(pose_difference_table(results.poses)))
        print()
    for table in results.overall_sensitivity:
        print(sensitivity_text(table))
    scenarios = list(dict.fromkeys(pair.scenario for pair in results.rankings))
    chosen = POOLED if POOLED in scenarios else ''.join(scenarios[:1])
    pairs = [pair for pair in results.rankings if pair.scenario == chosen]
    if pairs:
        print()
        print_table(ranking_pairs_table(pairs, 'Agreement of rankings (p-value: over all orders)'))
        print()


DESCRIPTION = (
    'Run a study file: judge every real recording and its simulated counterparts with every '
    'judge and under every condition, and compare them. Repeat the command to continue an '
    'interrupted study. See docs/howto/study.md.'
)
_EXAMPLES = """\
examples:
  sim2real study b_gps_models --out study_b
  sim2real study b_gps_models --real bags/* --out study_b_mine
  sim2real study judge_sensitivity --runs 2 --out quick
  sim2real study b_gps_models --judge-config clean --warmup 5 --out study_b_clean
  sim2real study my_study.yaml --jobs 8 --out result
  sim2real study --verify result
"""


def EPILOG() -> str:  # noqa: N802 - one of the names that a verb may have
    """Return the shipped studies by name and title, and examples."""
    lines = ['shipped studies:']
    for path in sorted(config_path('studies').glob('*.yaml')):
        # Read without YAML, which is too slow for a help text.
        title = read_input_text(path).partition('\ntitle:')[2].partition('\n')[0]
        lines.append(f'  {path.stem:<22}' + title.strip(' \'"').replace("''", "'"))
    return '\n'.join([*lines, '', _EXAMPLES])


@dataclasses.dataclass(frozen=True)
class InPlaceOptions(Parameters):
    """Options that replace entries of the study file."""

    runs: int | None = parameter(
        None, '1', 'Stand-in recordings per scenario, instead of those of the study file.',
        optional=int, minimum=1, maximum=MOST_RUNS,
    )  # fmt: skip
    simulate_on: str | None = optional_text(
        'Simulate on the true motion of the recordings or on independent drives, instead of the '
        'choice of the study file.',
        choices=('truth', 'drive'),
    )
    cluster: str | None = optional_text(
        'Scheduler of dask.distributed, such as tcp://host:8786. Its workers are used instead of '
        'local processes; the result is the same.',
        common=False,
    )


_IN_PLACE = OptionSet(InPlaceOptions, cluster='--cluster ADDRESS')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'study', metavar='NAME|FILE', nargs='?', help='name of a shipped study, or a YAML file'
    )
    parser.add_argument(
        '--real',
        nargs='+',
        metavar='PATH',
        help='real recordings with ground truth, instead of those of the study file',
    )
    add_shared(parser, 'topic')
    add_scenario(parser, 'with --real: ')
    _IN_PLACE.add(parser, 'runs', 'simulate_on')
    judge = parser.add_argument_group('judges, instead of those of the study file')
    add_judge(judge, '--judge-config', None, several=True)
    add_judge_kind(judge)
    add_study_options(parser, of='that of the study file, otherwise ')
    folder = parser.add_mutually_exclusive_group(required=True)
    add_out(folder, 'folder of the study')
    folder.add_argument(
        '--verify',
        metavar='DIR',
        help='say whether code and inputs are still those of a finished study, and judge all of '
        'its runs again, in the folder where its command was given; exit status 1 if anything '
        'differs',
    )
    add_shared(parser, 'overwrite', 'json', 'verbose', 'quiet', 'jobs')
    _IN_PLACE.add(parser, 'cluster')
    add_shared(parser, 'published')
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    if not (options.study or options.verify):
        raise ParameterError('study', '', 'is missing; give a name or a file')
    with Workers(options.jobs) as workers:
        workers.start(PRELOADED)
        if options.verify:
            from .verification import verify

            return verify(options, workers)
        from sim2real_eval.study.plan import StudyPlan
        from sim2real_eval.study.study_file import StudyFile

        over = overrides(options)
        file = StudyFile.read(options.study, over)
        if file.signals is not None:
            from .signal_study import carry_out_signals

            return carry_out_signals(file, over, options)
        return carry_out(StudyPlan.from_file(file), options, workers)


def plan_of(options: argparse.Namespace) -> StudyPlan:
    """Return the plan of the study that the options name."""
    from sim2real_eval.study.plan import StudyPlan

    return StudyPlan.load(options.study, overrides(options))


def overrides(options: argparse.Namespace) -> Overrides:
    """Return the options that override the study file."""
    from sim2real_eval.judge.protocol import takes_inputs
    from sim2real_eval.study.study_file import Overrides

    real, chosen = None, named_judges(options)
    if options.real is None:
        for option, value in (('--topic', options.topic), ('--scenario', options.scenario)):
            if value:
                raise ParameterError(option, '', 'needs --real')
    else:
        if options.runs is not None:
            raise ParameterError(
                '--runs', '', 'is the number of stand-ins; cannot be used with --real'
            )
        inputs = chosen is not None and takes_inputs(options.judge_kind)
        real = sources(
            options.real, options.topic, options.scenario, inputs=inputs, option='--real'
        )
    return Overrides(
        real,
        options.runs,
        options.simulate_on,
        chosen,
        lambda base: study_options(options, base),
        tuple(command_words(options.parser, options)),
    )


# Shared with `vepd` and `demo`: a study and its result.


def carry_out(
    plan: StudyPlan,
    options: argparse.Namespace,
    workers: Workers,
    *,
    explained: bool = False,
    beside: Beside | None = None,
) -> int:
    """Run a study into the folder --out, print it, and return the exit status.

    `options` have out, overwrite, jobs, json, verbose and quiet, and may have cluster and
    published. `explained`: see `print_study`; `beside`: see `Beside` of
    `sim2real_eval.study.runner`.
    """
    from sim2real_eval.study.outcome import describe_failures

    published = getattr(options, 'published', False)
    if published and PAPER_PROFILE not in [judge.label for judge in plan.file.judges]:
        problem = f'needs --judge-config {PAPER_PROFILE}, the judge of the published numbers'
        raise ParameterError('--published', '', problem)
    if plan.file.transfer is not None:
        _check_transfer(plan)
    outcome, report = _run_and_write(plan, options, workers, beside)
    if plan.file.transfer is not None:
        from .transfer_request import add_transfer

        report = add_transfer(plan, outcome, options.out, options.jobs, quiet=options.quiet)
    from sim2real_eval.study.secondary_results import uncertainty_records

    failures = describe_failures(outcome.record)
    report_failures(failures, of=len(failures) + 1)
    record = {
        **outcome.record,
        'vepd': [
            {'judge': judge, 'group': group, **dataclasses.asdict(row)}
            for judge, group in outcome.compared_pairs
            for row in outcome.table(judge, group)
        ],
        'uncertainty': uncertainty_records(outcome),
        'answer': report.answer.to_mapping(),
        'sensitivity': report.sensitivity,
    }

    def tell() -> None:
        print_study(
            outcome, report, options.out, published=published, verbose=options.verbose,
            quiet=options.quiet, explained=explained,
        )  # fmt: skip

    return conclude(options, record, tell, failures=failures)


def _check_transfer(plan: StudyPlan) -> None:
    """Refuse a judge without the parameters to tune before anything is judged."""
    from sim2real_eval.benches.tuning.parameters import tunables

    assert plan.file.transfer is not None
    tunables(plan.file.judges[0].setup, plan.file.transfer.names)


def _run_and_write(
    plan: StudyPlan, options: argparse.Namespace, workers: Workers, beside: Beside | None
) -> tuple[StudyOutcome, StudyReport]:
    """Run a study and write all its files."""
    from sim2real_eval.report.study_plots import begin_plots
    from sim2real_eval.report.study_report import finish_study
    from sim2real_eval.study.runner import run_study

    reports: list[StudyReport] = []
    advance: list[Callable[[], None]] = []
    with contextlib.ExitStack() as stack:

        def begin(runs: int, finished: int, units: int) -> Callable[[], None]:
            if finished:
                print(
                    f'{options.out}: {finished} of {runs} runs are already finished',
                    file=sys.stderr,
                )
            bar = progress_bar(units + 1, 'judging, statistics and report', quiet=options.quiet)
            advance.append(stack.enter_context(bar))
            return advance[0]

        @contextlib.contextmanager
        def write_rest(outcome: StudyOutcome) -> Iterator[None]:
            plots = begin_plots(Path(options.out), outcome, workers)
            with contextlib.nullcontext() if beside is None else beside(outcome):
                yield
                reports.append(finish_study(outcome, options.out, plots))
            advance[0]()

        outcome = run_study(
            plan, options.out, workers=workers, cluster=getattr(options, 'cluster', None),
            overwrite=options.overwrite, begin=begin, beside=write_rest,
        )  # fmt: skip
    return outcome, reports[0]
