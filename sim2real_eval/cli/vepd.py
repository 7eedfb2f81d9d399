# SPDX-License-Identifier: Apache-2.0
"""`sim2real vepd`: real recordings against simulated sensors."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from sim2real_eval.cli.arguments import (
    add_jobs,
    add_json,
    add_overwrite,
    add_topics,
    scenario_label,
    sources,
)
from sim2real_eval.cli.declared import add_study_options, command_words, study_options
from sim2real_eval.cli.judge_arguments import add_judge, add_judge_kind, judges
from sim2real_eval.cli.output import print_json, print_notes, print_table
from sim2real_eval.common.findings import to_records
from sim_sensors.core.errors import ParameterError

TITLE = 'Real recordings against simulated sensors'

HELP = 'real recordings against sensors simulated on their true motion'
DESCRIPTION = (
    'For each real recording, simulate the sensors on its true motion, judge '
    'both, and compare the two sets of velocity errors: VEPD, smaller is closer. Given again, '
    'the same command continues where it was interrupted.'
)
EPILOG = """\
examples:
  sim2real vepd --real bags/* --models paper --out result
  sim2real vepd --real bags/* --judge-config clean --warmup 5 --start-heading --out result
  sim2real vepd --real bags/* --judge-config paper_released --judge-config clean --out both
  sim2real vepd --real bags/* --gps real --imu chrono,airsim --out result_imu
  sim2real vepd --real run7 --topic truth=/ins/odometry --models my_receiver.yaml --out result
  sim2real vepd --series published_data --drop-zeros
"""


_WITH_REAL = {
    'topic': '--topic',
    'scenario': '--scenario',
    'gps': '--models',
    'imu': '--imu',
    'match_rates': '--match-rates',
    'repetitions': '--repetitions',
    'config': '--judge-config',
    'navsat_config': '--navsat-config',
    'case': '--case',
    'filter_kind': '--filter',
    'section': '--section',
    'correct': '--correct',
    'latency': '--latency',
    'transforms': '--transforms',
    'front_end': '--front-end',
    'judge_kind': '--judge',
    'navsat_node': '--navsat-node',
    'start_heading': '--start-heading',
    'component': '--component',
}
"""Options that mean nothing to a folder of series, where all that has happened."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('input')
    where = inputs.add_mutually_exclusive_group(required=True)
    where.add_argument(
        '--real', nargs='+', metavar='PATH', help='real recordings with ground truth'
    )
    where.add_argument(
        '--series',
        metavar='DIR',
        help='recompute from a folder of speeds in the layout of the published data '
        '(Real/, Sim/<model>/)',
    )
    add_topics(inputs)
    inputs.add_argument(
        '--scenario', type=scenario_label, metavar='LABEL', help='scenario label of all recordings'
    )
    sensors = parser.add_argument_group('sensors')
    sensors.add_argument(
        '--models',
        '--gps',
        dest='gps',
        default='paper',
        metavar='LIST',
        help='GPS models, by comma: presets (see `sim2real models`), YAML files, paper, all, or '
        'real to keep the recorded GPS (default paper)',
    )
    sensors.add_argument(
        '--imu',
        default='chrono',
        metavar='LIST',
        help='IMU models likewise, or real (default chrono, as in the paper)',
    )
    judge = parser.add_argument_group('judge')
    add_judge(judge, '--judge-config', 'paper_released', several=True)
    add_judge_kind(judge)
    add_study_options(parser)
    inputs.add_argument(
        '--drop-zeros', action='store_true', help='with --series: drop the zero padding'
    )
    output = parser.add_argument_group('output')
    output.add_argument(
        '--out', metavar='DIR', help='folder of the result: tables, runs, series, plots and page'
    )
    add_overwrite(output)
    output.add_argument(
        '--published', action='store_true', help="show the paper's numbers beside ours"
    )
    add_json(output)
    add_jobs(parser)
    of_real = {dest: parser.get_default(dest) for dest in _WITH_REAL}
    parser.set_defaults(of_real=of_real, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    if options.series:
        for dest, default in options.of_real.items():
            if getattr(options, dest) != default:
                raise ParameterError(_WITH_REAL[dest], '', 'goes with --real only')
        return _recompute(options)
    if not options.out:
        raise ParameterError('--out', '', 'is missing; must be the folder to write')
    if options.drop_zeros:
        raise ParameterError('--drop-zeros', '', 'goes with --series only')
    from sim2real_eval.cli.model_lists import twins
    from sim2real_eval.cli.study_run import carry_out
    from sim2real_eval.judge.protocol import takes_inputs
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.recordings import of_sources
    from sim2real_eval.study.study_file import StudyFile

    recordings = sources(
        options.real,
        options.topic,
        options.scenario,
        inputs=takes_inputs(options.judge_kind),
        option='--real',
    )
    file = StudyFile(
        title=TITLE,
        options=study_options(options),
        recordings=of_sources(recordings),
        twins=twins(options.gps, options.imu),
        judges=judges(options),
        command=_command(options),
    )
    return carry_out(StudyPlan.of(file), options, published=options.published)


def _command(options: argparse.Namespace) -> tuple[str, ...]:
    if options.config == [options.config_default]:
        # The same study, whether the default was given or not.
        options = argparse.Namespace(**{**vars(options), 'config': None})
    return ('sim2real', 'vepd', *command_words(options.parser, options))


def vepd_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command with these options as the record of its result has it."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return _command(parser.parse_args(words))


def _recompute(options: argparse.Namespace) -> int:
    from sim2real_eval.cli.output import print_uncertainty, shown
    from sim2real_eval.common.tables import write_csv
    from sim2real_eval.metrics.published import vepd_from_series
    from sim2real_eval.metrics.uncertainty.assessment import (
        UNCERTAINTY_COLUMNS,
        series_uncertainty,
        uncertainty_fields,
        uncertainty_notes,
    )
    from sim2real_eval.report.console import vepd_console_table

    given = study_options(options)
    metric = dataclasses.replace(given.metric, drop_zeros=options.drop_zeros)
    result = vepd_from_series(options.series, metric)
    known = series_uncertainty(result, given.uncertainty, seed=given.seed)
    if options.out:
        from pathlib import Path

        from sim2real_eval.common.results import check_result_files

        target = Path(options.out)
        check_result_files(target, ('vepd.csv',), overwrite=options.overwrite)
        rows = [uncertainty_fields(row, known) for row in result.rows]
        write_csv(target / 'vepd.csv', UNCERTAINTY_COLUMNS, rows)
    if options.json:
        print_json(
            {
                'vepd': [dataclasses.asdict(row) for row in result.rows],
                'uncertainty': {name: one.to_mapping() for name, one in known.items()},
                'notes': to_records(result.notes),
            }
        )
    else:
        print_table(vepd_console_table(shown(result.rows), published=options.published))
        print()
        suggestions = print_uncertainty(known, shown(result.rows))
        told = uncertainty_notes(known, list(known)[:-1])
        print_notes([*result.notes, *told, *suggestions])
    return 0
