# SPDX-License-Identifier: Apache-2.0
"""`sim2real characterize`: a calibration recording becomes a set of sensor models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim2real_eval.characterization.options import AllanOptions
from sim2real_eval.cli.arguments import (
    add_base_frame,
    add_json,
    add_overwrite,
    add_seed,
    add_topics,
    at_least,
    topic_roles,
)
from sim2real_eval.cli.options import OptionSet
from sim2real_eval.cli.output import (
    complain,
    print_json,
    print_notes,
    print_table,
    progress_bar,
    report_failures,
    successes,
)
from sim2real_eval.cli.sensor_arguments import UNITS, add_motion, given_once

if TYPE_CHECKING:
    from sim2real_eval.characterization.calibration import Calibration
    from sim2real_eval.recording.recording import Recording

HELP = 'a recording with a standstill -> models of its GPS and IMU'
DESCRIPTION = (
    'Find what the GPS and the IMU of a recording do while they stand still: '
    'white noise, wander, random walk, stated covariance, Allan terms. Writes models that '
    'simulate and vepd take, simulated and identified again. A GPS or an IMU alone will do.'
)
EPILOG = """\
examples:
  sim2real characterize calibration_bag --out sensors
  sim2real characterize drive_1 drive_2 --topic gps=/ublox/fix --out sensors
  sim2real vepd --real drive_1 --models sensors/gps.yaml --imu sensors/imu.yaml --out result
"""


_ALLAN = OptionSet(AllanOptions, 'fit_from')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'recordings',
        nargs='+',
        metavar='RECORDING',
        help='bags or CSV folders of one vehicle, standing still all the time or in parts',
    )
    add_topics(parser)
    parser.add_argument(
        '--k',
        type=at_least(0, float, above=True),
        default=0.02,
        metavar='M',
        help='deviation east and north that HDOP 1 stands for; covariances tell k times HDOP only '
        '(default 0.02, RTK in nmea_navsat_driver)',
    )
    add_base_frame(parser)
    inertial = parser.add_argument_group('IMU, as of `sim2real allan`')
    UNITS.add(inertial)
    add_motion(inertial)
    _ALLAN.add(inertial)
    parser.add_argument(
        '--out', metavar='DIR', help='folder for models, plots and characterization.json'
    )
    add_overwrite(parser)
    add_json(parser)
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.characterization.calibration import calibrate
    from sim2real_eval.common.results import check_result_files
    from sim2real_eval.report.sensor_set_folder import (
        FILES,
        calibration_record,
        next_command,
        write_calibration,
    )

    given_once(options.recordings)
    if options.out:
        check_result_files(options.out, FILES, overwrite=options.overwrite)
    recordings, failures = _read(options)
    report_failures(failures, of=len(options.recordings))
    with progress_bar(3, 'characterizing') as advance:
        found = calibrate(
            recordings,
            k=options.k,
            base=options.base_frame,
            options=_ALLAN.make(options, reject_motion=options.motion == 'reject'),
            units=UNITS.make(options).sizes,
            seed=options.seed,
            progress=advance,
        )
    for problem in found.problems:
        complain(f'not characterised: {problem}')
    record = calibration_record(found)
    if options.out:
        write_calibration(options.out, found, record, overwrite=options.overwrite)
    if options.json:
        print_json(record)
    else:
        _print(found)
        if options.out:
            print(f'Models, plots and report: {options.out}')
            print('Next:', next_command(found, options.out, _drive(recordings)))
    return 1 if failures or found.problems else 0


def _read(options: argparse.Namespace) -> tuple[list[Recording], list[str]]:
    from sim2real_eval.recording.reading import read_recording

    topics = dict(topic_roles(options.topic))

    def attempt(path: str) -> Recording:
        return read_recording(path, topics=topics)

    failures: list[str] = []
    with progress_bar(len(options.recordings), 'reading') as advance:
        recordings = list(successes(options.recordings, attempt, failures, advance))
    return recordings, failures


def _print(found: Calibration) -> None:
    from sim2real_eval.characterization.findings import GPS_NOT_RECOVERED, NOT_RECOVERED

    notes = list(found.notes)
    if found.gps is not None:
        from sim2real_eval.report.gps_noise import gps_noise_table, gps_statistics_table

        print_table(gps_noise_table(found.gps))
        print_table(gps_statistics_table(found.simulated_statistics))
        notes += [note.of('GPS') for note in found.gps.notes]
        notes += [
            GPS_NOT_RECOVERED(axis, name=name, given=given, found=again).of('GPS')
            for axis, name, given, again, is_recovered in found.recovered_parameters
            if not is_recovered
        ]
    if found.imu is not None:
        from sim2real_eval.report.allan import allan_console_table, units_legend

        imu = found.imu
        print_table(allan_console_table(imu.terms, imu.results, imu.again.recovered_parameters))
        print(units_legend(imu.terms))
        notes += [note.of('IMU') for note in imu.notes]
        notes += [
            NOT_RECOVERED(terms=f'{one.axis} {one.coefficient}').of('IMU')
            for one in imu.again.lost
        ]
    print_notes(notes)


def _drive(recordings: list[Recording]) -> str:
    """Return the recording on which models can be compared: with truth, and moving."""
    import shlex

    import numpy as np

    for recording in recordings:
        truth = recording.truth
        if truth is not None and np.linalg.norm(truth.linear_velocity, axis=1).max() > 0.5:
            return shlex.quote(recording.path)
    return 'A_DRIVE'
