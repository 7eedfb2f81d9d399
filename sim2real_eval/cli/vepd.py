# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real vepd`: real recordings against simulated sensors."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.findings import to_records
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.options import MetricOptions, UncertaintyOptions
from sim2real_eval.study.options import PROFILE, ComparedSensors
from sim_sensors.core.errors import ParameterError
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_recordings,
    add_scenario,
    add_shared,
    judged_sources,
    judges,
)
from .options import OptionSet, add_study_options, command_words, hide_from_help, study_options
from .output import PRELOADED, conclude, lines_text, print_notes, print_table
from .sensors import add_sensor_set, sensor_settings, set_parameters
from .study import carry_out
from .study_screen import without_redundant_pooled_rows

if TYPE_CHECKING:
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.simulation.twin import Twin
    from sim2real_eval.study.plan import StudyPlan

DESCRIPTION = (
    'For each real recording, simulate the sensors on its true motion, judge '
    'both, and compare the two sets of velocity errors: VEPD, smaller is closer. Repeat the '
    'command to continue an interrupted comparison.'
)
EPILOG = """\
examples:
  sim2real vepd bags/* --models paper --out result
  sim2real vepd bags/* --judge-config paper_released --out as_in_the_paper
  sim2real vepd bags/* --judge-config clean --judge-config paper_released --out both
  sim2real vepd bags/* --gps real --imu chrono,airsim --out result_imu
  sim2real vepd run7 --topic truth=/ins/odometry --models my_receiver.yaml --out result
  sim2real vepd bags/* --models ch_rw --set gps.rate=5 --out slow
  sim2real vepd --series published_data --drop-zeros
"""


_SENSORS = OptionSet(ComparedSensors, models='--models --gps LIST', imu='--imu LIST')
# Other options have no effect on a folder of series, whose runs were judged before.
_WITH_SERIES = {
    'help', 'help_all', 'series', 'seed', 'drop_zeros', 'out', 'overwrite', 'published', 'json',
    'jobs', 'verbose', 'quiet',
    *MetricOptions.declarations(), *UncertaintyOptions.declarations()
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('input')
    add_recordings(inputs, 'real recording with ground truth', nargs='*')
    inputs.add_argument(
        '--series',
        metavar='DIR',
        help='instead of recordings: recompute VEPD from a folder of speeds in the layout of the '
        'published data (Real/, Sim/<model>/); writes vepd.csv and density.png to --out',
    )
    add_shared(inputs, 'topic')
    add_scenario(inputs)
    sensors = parser.add_argument_group('sensors')
    _SENSORS.add(sensors, kept=True)
    add_sensor_set(sensors)
    judge = parser.add_argument_group('judge')
    add_judge(judge, '--judge-config', PROFILE, several=True)
    add_judge_kind(judge)
    add_study_options(parser)
    hide_from_help(
        inputs.add_argument(
            '--drop-zeros', action='store_true', help='with --series: drop the zero padding'
        )
    )
    output = parser.add_argument_group('output')
    add_out(
        output, 'folder for report.html, study.json, tables, runs, series and plots', 'overwrite'
    )
    add_shared(output, 'published', 'json', 'verbose', 'quiet')
    add_shared(parser, 'jobs')
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    if options.series:
        for action in options.parser._actions:
            name = action.dest
            if name not in _WITH_SERIES and getattr(options, name) != action.default:
                raise ParameterError(
                    (action.option_strings or [name])[0], '', 'cannot be used with --series'
                )
        return _recompute(options)
    if not options.recordings:
        raise ParameterError('recordings', '', 'are missing; give bags, or --series DIR')
    if not options.out:
        raise ParameterError('--out', '', 'is missing; give the folder to write')
    if options.drop_zeros:
        raise ParameterError('--drop-zeros', '', 'needs --series')
    with Workers(options.jobs) as workers:
        workers.start(PRELOADED)
        return carry_out(plan_of(options), options, workers)


def plan_of(options: argparse.Namespace) -> StudyPlan:
    """Return the plan of the comparison that the options name."""
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.recordings import recordings_from_sources
    from sim2real_eval.study.study_file import StudyFile
    from .sensors import twins

    recordings = judged_sources(options, options.recordings, 'recordings')
    models = set_parameters(twins(options.models, options.imu), options.set)
    file = StudyFile(
        title=comparison_title(recordings, models),
        options=study_options(options),
        recordings=recordings_from_sources(recordings),
        twins=models,
        judges=judges(options),
        command=_command(options),
        settings=sensor_settings(options.set),
    )
    return StudyPlan.from_file(file)


def comparison_title(recordings: Sequence[RecordingSource], models: Sequence[Twin]) -> str:
    """Return the title of a comparison: `7 models against 9 recordings, drive_1 to drive_9`."""
    names = [recording.expected_name() for recording in recordings]
    subject = f'{len(models)} models' if len(models) > 1 else models[0].label
    if len(names) == 1:
        return f'{subject} against {names[0]}'
    return f'{subject} against {len(names)} recordings, {names[0]} to {names[-1]}'


def _command(options: argparse.Namespace) -> tuple[str, ...]:
    if options.config == [options.config_default]:
        # An explicit default gives the same study.
        options = argparse.Namespace(**{**vars(options), 'config': None})
    return ('sim2real', 'vepd', *command_words(options.parser, options))


def vepd_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command with these options, for the record of its result."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return _command(parser.parse_args(words))


def _recompute(options: argparse.Namespace) -> int:
    from sim2real_eval.common.results import write_csv
    from sim2real_eval.metrics.options import REAL
    from sim2real_eval.metrics.published import vepd_from_series
    from sim2real_eval.metrics.scores import POOLED
    from sim2real_eval.metrics.uncertainty import (
        UNCERTAINTY_COLUMNS,
        series_uncertainty,
        uncertainty_fields,
        uncertainty_notes,
    )
    from sim2real_eval.report.answer import answer_lines, detail_lines
    from sim2real_eval.report.console import vepd_console_table
    from sim2real_eval.report.ranking_tables import pair_lines, uncertainty_table
    from sim2real_eval.study.answer import answer_of

    study = study_options(options)
    result = vepd_from_series(options.series, study.metric)
    uncertainty = series_uncertainty(result, study.uncertainty, seed=study.seed)
    if options.out:
        from sim2real_eval.common.results import fresh_files
        from sim2real_eval.report.run_plots import density_figure
        from sim2real_eval.report.style import save_png

        target = Path(options.out)
        rows = [uncertainty_fields(row, uncertainty) for row in result.rows]
        files = 'vepd.csv', 'density.png'
        with fresh_files(target, files, overwrite=options.overwrite) as folder:
            write_csv(folder / files[0], UNCERTAINTY_COLUMNS, rows)
            models = result.by_source()
            save_png(density_figure(models.pop(REAL), models), folder / files[1])
    answer = answer_of({('', ''): uncertainty[POOLED]}, result.notes, rmse=result.mean_rmse())
    record = {
        'vepd': [dataclasses.asdict(row) for row in result.rows],
        'uncertainty': {name: estimate.to_mapping() for name, estimate in uncertainty.items()},
        'notes': to_records(result.notes),
        'answer': answer.to_mapping(),
    }

    def print_result() -> None:
        if not options.quiet:
            rows = without_redundant_pooled_rows(result.rows)
            scenarios = list(dict.fromkeys(row.scenario for row in rows))
            print_table(vepd_console_table(rows, published=options.published))
            print()
            print_table(uncertainty_table({name: uncertainty[name] for name in scenarios}))
            print()
            notes = uncertainty_notes(uncertainty, list(uncertainty)[:-1])
            notes += pair_lines(uncertainty[scenarios[-1]], scenarios[-1])
            print_notes([*result.notes, *notes])
        more = detail_lines(answer) if options.verbose else []
        print(lines_text([*answer_lines(answer), *more]))

    return conclude(options, record, print_result)
