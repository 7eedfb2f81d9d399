# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real study`: a whole experiment from a file, and the tables that it prints."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.workers import Workers
from sim2real_eval.study.options import MAX_RUNS, PAPER_PROFILE
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.shipped import config_path
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_recordings,
    add_scenario,
    add_shared,
    named_judges,
    sources,
)
from .options import OptionSet, add_study_options, command_words, optional_text, study_options
from .output import PRELOADED, conclude, progress_bar, report_failures
from .study_screen import print_study

if TYPE_CHECKING:
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.runner import Beside
    from sim2real_eval.study.study_file import Overrides

DESCRIPTION = (
    'Run a study file: judge every real recording and its simulated counterparts with every '
    'judge and under every condition, and compare them. Repeat the command to continue an '
    'interrupted study. See docs/howto/study.md.'
)
_EXAMPLES = """\
examples:
  sim2real study b_gps_models --out study_b
  sim2real study b_gps_models bags/* --out study_b_mine
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
        optional=int, minimum=1, maximum=MAX_RUNS,
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
    add_recordings(
        parser, 'real recording with ground truth, instead of those of the study file', nargs='*'
    )
    add_shared(parser, 'topic')
    add_scenario(parser, 'with recordings: ')
    _IN_PLACE.add(parser, 'runs', 'simulate_on')
    judge = parser.add_argument_group('judges, instead of those of the study file')
    add_judge(judge, '--judge-config', None, several=True)
    add_judge_kind(judge)
    add_study_options(parser, of='that of the study file, otherwise ')
    folder = parser.add_mutually_exclusive_group(required=True)
    add_out(folder, 'folder for report.html, study.json, tables, runs, series and plots')
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
    if not options.recordings:
        for option, value in (('--topic', options.topic), ('--scenario', options.scenario)):
            if value:
                raise ParameterError(option, '', 'needs recordings')
    else:
        if options.runs is not None:
            raise ParameterError(
                '--runs', '', 'is the number of stand-ins; cannot be used with recordings'
            )
        inputs = chosen is not None and takes_inputs(options.judge_kind)
        real = sources(
            options.recordings, options.topic, options.scenario, inputs=inputs, option='recordings'
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
    plain_language: bool = False,
    next_step: Sequence[str] = (),
    beside: Beside | None = None,
) -> int:
    """Run a study into the folder --out, print it, and return the exit status.

    `options` have out, overwrite, jobs, json, verbose and quiet, and may have cluster and
    published. `plain_language` and `next_step`: see `print_study`; `beside`: see `Beside` of
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

    def print_result() -> None:
        print_study(
            outcome, report, options.out, published=published, verbose=options.verbose,
            quiet=options.quiet, plain_language=plain_language, next_step=next_step,
        )  # fmt: skip

    return conclude(options, record, print_result, failures=failures)


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
