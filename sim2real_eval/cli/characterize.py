# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real characterize`: a calibration recording becomes a set of sensor models."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim2real_eval.characterization.options import PoseOptions
from sim_sensors.core.parameters import Parameters, parameter
from . import arguments, output
from .allan import ALLAN, TABLE, UNITS
from .options import OptionSet
from .parser import complain

if TYPE_CHECKING:
    from sim2real_eval.characterization.calibration import Calibration
    from sim2real_eval.common.findings import Finding
    from sim2real_eval.recording.recording import Recording

DESCRIPTION = (
    'Identify the errors of the GPS and the IMU from a recording with standstills: '
    'white noise, wander, random walk, stated covariance, Allan terms. Writes models for '
    'simulate and vepd, and checks them by simulations. A GPS or an IMU alone is enough.'
)
EPILOG = """\
examples:
  sim2real characterize calibration_bag --out sensors
  sim2real characterize calibration_bag --poses poses_bag --out sensors
  sim2real characterize drive_1 drive_2 --topic gps=/ublox/fix --out sensors
  sim2real vepd drive_1 --models sensors/gps.yaml --imu sensors/imu.yaml --out result
"""


@dataclasses.dataclass(frozen=True)
class CovarianceOptions(Parameters):
    """Relation of the covariances of a GPS to its HDOP."""

    k: float = parameter(
        0.02,
        'm',
        'Horizontal standard deviation at HDOP 1; recorded covariances give only k times HDOP '
        '(RTK in nmea_navsat_driver: 0.02).',
        above=0.0,
    )


_COVARIANCE = OptionSet(CovarianceOptions)
_POSES = OptionSet(PoseOptions)

_OF_UNITS = ('check.acceleration_unit', 'check.gravity_scale', 'check.gravity_scale_large')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    meaning = 'bags or CSV folders of one vehicle that stands still for all or part of the time'
    arguments.add_recordings(parser, meaning)
    arguments.add_shared(parser, 'topic')
    _COVARIANCE.add(parser)
    arguments.add_shared(parser, 'base_frame')
    inertial = parser.add_argument_group('IMU, as for `sim2real allan`')
    TABLE.add(inertial, *UNITS)
    arguments.add_shared(inertial, 'motion')
    ALLAN.add(inertial, 'fit_from')
    inertial.add_argument(
        '--poses',
        metavar='RECORDING',
        help='recording of the IMU held still by hand in at least 12 poses, better 36; adds bias, '
        'scale and misalignment with standard errors to imu.yaml [Tedaldi2014]',
    )
    _POSES.add(inertial)
    meaning = 'folder for imu.yaml, gps.yaml, characterization.json and plots'
    arguments.add_out(parser, meaning, 'overwrite', 'json', 'seed')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.characterization.calibration import calibrate
    from sim2real_eval.common.results import check_result_files
    from sim2real_eval.preflight.checks import remarks
    from sim2real_eval.recording.reading import read_recording
    from sim2real_eval.report import sensor_set_folder as report

    arguments.refuse_duplicates(options.recordings)
    if options.out:
        check_result_files(options.out, report.FILES, overwrite=options.overwrite)
    read = functools.partial(read_recording, topics=dict(arguments.topic_roles(options.topic)))
    recordings, failures = output.attempt_each(options.recordings, read, 'reading')
    with output.progress_bar(3, 'characterizing') as advance:
        calibration = calibrate(
            recordings,
            k=_COVARIANCE.make(options).k,
            base=options.base_frame,
            options=ALLAN.make(options, reject_motion=options.motion == 'reject'),
            units=TABLE.make(options).si_factors,
            seed=options.seed,
            progress=advance,
            poses=None if options.poses is None else read(options.poses),
            held=_POSES.make(options),
        )
    for problem in calibration.problems:
        complain(f'not characterised: {problem}')
    record = report.calibration_record(calibration)
    notes = [
        note
        for recording in recordings
        for note in remarks(recording, (), base_frame=options.base_frame)
        # Units of the IMU are estimated from standstill unless they are given.
        if note.code not in _OF_UNITS
    ]
    if options.out:
        report.write_calibration(options.out, calibration, record, overwrite=options.overwrite)

    def print_result() -> None:
        _print(calibration, notes)
        if options.out:
            print(f'Models, plots and report: {options.out}')
            print('Next:', report.next_command(calibration, options.out, _drive(recordings)))

    return output.conclude(
        options, record, print_result, failures=[*failures, *calibration.problems]
    )


def _print(calibration: Calibration, recording_notes: Sequence[Finding]) -> None:
    from sim2real_eval.characterization.findings import NOT_RECOVERED

    notes = [*recording_notes, *calibration.notes]
    if calibration.gps is not None:
        from sim2real_eval.report import gps_noise

        output.print_table(gps_noise.gps_noise_table(calibration.gps))
        if (consistency := gps_noise.gps_consistency_table(calibration.gps)) is not None:
            output.print_table(consistency)
        output.print_table(gps_noise.gps_checks_table(calibration.gps_checks))
        notes += [note.restrict_to('GPS') for note in calibration.gps.notes]
    if calibration.imu is not None:
        from sim2real_eval.report.allan import allan_console_table, units_legend

        imu = calibration.imu
        output.print_table(
            allan_console_table(imu.terms, imu.results, imu.again.recovered_parameters)
        )
        print(units_legend(imu.terms))
        if imu.poses is not None:
            from sim2real_eval.report.sensor_set_folder import pose_table

            output.print_table(pose_table(imu.poses))
        notes += [note.restrict_to('IMU') for note in imu.notes]
        notes += [
            NOT_RECOVERED(terms=f'{term.axis} {term.coefficient}').restrict_to('IMU')
            for term in imu.again.lost
        ]
    output.print_notes(notes)


def _drive(recordings: list[Recording]) -> str:
    """Return the recording on which models can be compared: it has a truth and moves."""
    import shlex

    import numpy as np

    for recording in recordings:
        truth = recording.truth
        if truth is not None and np.linalg.norm(truth.linear_velocity, axis=1).max() > 0.5:
            return shlex.quote(recording.path)
    return 'A_DRIVE'
