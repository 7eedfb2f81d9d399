# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real allan`: noise terms of an IMU from recordings in which it stands still."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim2real_eval.characterization.options import AllanOptions, TableOptions
from sim2real_eval.common.findings import Finding, merge_subjects
from . import arguments
from .options import OptionSet
from .output import attempt_each, conclude, print_notes, print_table, progress_bar

if TYPE_CHECKING:
    from sim2real_eval.characterization.analysis import RecordingResult
    from sim2real_eval.characterization.recovered_parameters import Reidentified
    from sim2real_eval.characterization.signals import Signals

DESCRIPTION = (
    'Compute the overlapping Allan deviation of every axis, fit noise terms, and write a sensor '
    'model. The model is checked by simulating and analysing it again. Motion and outliers are '
    'removed first, with a finding.'
)
EPILOG = """\
examples:
  sim2real allan my_static_bag --out noise
  sim2real allan night_1 night_2 --topic imu=/imu/raw --weights length --out noise
  sim2real allan log.csv --sample-rate 100 --gyro-unit deg/s --accel-unit g --out noise
  sim2real allan counts.csv --gyro-unit deg/s --gyro-scale 16.4 --accel-unit g --accel-scale 16384
  sim2real allan log.csv --columns time,gyroscope_x,gyroscope_y,gyroscope_z,- --axis gyroscope_z
  sim2real simulate --motion circle --imu noise/imu.yaml --out twins
"""


ALLAN = OptionSet(AllanOptions, factor='--outlier-factor')
TABLE = OptionSet(
    TableOptions,
    rate='--sample-rate',
    gyroscope_unit='--gyro-unit',
    accelerometer_unit='--accel-unit',
    gyroscope_scale='--gyro-scale LSB',
    accelerometer_scale='--accel-scale LSB',
)
UNITS = ('gyroscope_unit', 'accelerometer_unit', 'gyroscope_scale', 'accelerometer_scale')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('input')
    arguments.add_recordings(
        inputs, 'bags, CSV folders, or tables of numbers: .csv, .txt, .npy, .npz'
    )
    arguments.add_shared(inputs, 'topic')
    arguments.add_list(inputs, '--axis', 'NAME', 'axis such as gyroscope_z (default: all)')
    add_table(inputs)
    screening = parser.add_argument_group('screening')
    arguments.add_shared(screening, 'motion')
    ALLAN.add(screening, 'outliers', 'factor')
    estimate = parser.add_argument_group('estimate')
    ALLAN.add(estimate, 'points', 'fit_from', 'detrend', 'weights')
    estimate.add_argument(
        '--no-check', action='store_true', help='do not simulate and re-identify the model'
    )
    output = parser.add_argument_group('output')
    arguments.add_out(
        output,
        'folder for allan.csv, allan.json, allan.png, imu.yaml, kalibr_imu.yaml and noise.sdf',
        'overwrite',
        'json',
    )
    arguments.add_shared(parser, 'seed')


def add_table(group: argparse._ActionsContainer) -> None:
    """Add the options that say what the numbers of a table mean."""
    group.add_argument(
        '--columns',
        metavar='LIST',
        help='names of the columns of a table, separated by commas: gyroscope_x ..., '
        'accelerometer_x ..., time (s), time_ms, time_us, stamp_ns, - for an unused column '
        '(default: its first line)',
    )
    TABLE.add(group)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.characterization.analysis import analyse
    from sim2real_eval.characterization.recovered_parameters import blocks, fit_imu, reidentify
    from sim2real_eval.common.results import check_result_files
    from sim2real_eval.recording.recording import DEFAULT_TOPICS
    from sim2real_eval.report import allan as report

    arguments.refuse_duplicates(options.recordings)
    if options.out:
        check_result_files(options.out, report.FILES, overwrite=options.overwrite)
    settings = ALLAN.make(options, reject_motion=options.motion == 'reject')
    results, failures = attempt_each(
        options.recordings, lambda path: analyse(_signals(options, path), settings)
    )
    fitted = fit_imu(results, settings.weights)
    terms, model = fitted.terms, fitted.model
    again = None
    if not options.no_check:
        with progress_bar(blocks(fitted.samples), 'simulating the model') as advance:
            again = reidentify(model, terms, fitted.samples, seed=options.seed, progress=advance)
    record = report.allan_record(results, terms, model.rate, settings, again, options.seed)
    topic = dict(arguments.topic_roles(options.topic)).get('imu', DEFAULT_TOPICS['imu'])
    if options.out:
        report.write_allan_folder(
            options.out, results, terms, model, record, again, topic, overwrite=options.overwrite
        )

    def print_result() -> None:
        recovered = again.recovered_parameters if again is not None else ()
        print_table(report.allan_console_table(terms, results, recovered))
        print(report.units_legend(terms))
        print_notes(_notes(results, again))

    return conclude(options, record, print_result, 'Curves, terms, plot and models', failures)


def _signals(options: argparse.Namespace, path: str) -> Signals:
    from sim2real_eval.characterization.signal_files import read_signals

    columns = tuple(options.columns.split(',')) if options.columns else ()
    table = TABLE.make(options, columns=columns)
    signals = read_signals(path, table, dict(arguments.topic_roles(options.topic)))
    return signals.only(tuple(options.axis)) if options.axis else signals


def _notes(results: list[RecordingResult], again: Reidentified | None) -> list[Finding]:
    from sim2real_eval.characterization.findings import NOT_RECOVERED

    several = len(results) > 1
    notes = [
        note.restrict_to(result.name) if several else note
        for result in results
        for note in result.notes
    ]
    if again is not None and again.lost:
        lost = ', '.join(f'{term.axis} {term.coefficient}' for term in again.lost)
        notes.append(NOT_RECOVERED(terms=lost))
    return merge_subjects(notes)
