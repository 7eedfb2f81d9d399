# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real attitude`: the quaternion filter of [Ligorio2015] and its consistency."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sim2real_eval.benches.settings import AttitudeSettings, SimulationSettings
from sim2real_eval.common.findings import Finding
from sim_sensors.core.errors import ParameterError
from . import arguments
from .options import OptionSet
from .output import attempt_each, conclude, print_notes, print_table, progress_bar
from .sensors import NONE, load_single

if TYPE_CHECKING:
    from sim2real_eval.benches.attitude.study import AttitudeRun, AttitudeStudy
    from sim2real_eval.recording.reading import RecordingSource
    from sim_sensors.motion.trajectory import Motion

    # Study, inputs, notes, and the reasons for recordings that were left out.
    _Studied = tuple[AttitudeStudy, dict[str, Any], list[Finding], list[str]]

DESCRIPTION = (
    'Estimate attitude from gyroscope, accelerometer, magnetometer and camera '
    'with the extended Kalman filter of [Ligorio2015], and compare its errors with their '
    'stated covariance (docs/explanation/attitude.md).'
)
EPILOG = """\
Without recordings, the case study of [Ligorio2015] is simulated: a box with an MTx
and a webcam that is turned in front of a chessboard.

examples:
  sim2real attitude --out attitude
  sim2real attitude --camera none --runs 200 --duration 140 --out many
  sim2real attitude --mag disturbed --world dipole_room --camera none
  sim2real attitude --validation --duration 140 --out mimu
  sim2real attitude my_bag --without magnetometer --acceleration 1 --out real
"""

_WORLD = 'chessboard'
_SIMULATION = OptionSet(
    SimulationSettings, imu='--imu MODEL', mag='--mag MODEL', camera='--camera MODEL'
)
_FILTER = OptionSet(
    AttitudeSettings,
    'rate',
    'initial_std',
    'rest',
    'gyroscope_density',
    'accelerometer_std',
    'magnetometer_std',
    'acceleration_std',
    rate='--between-samples',
    gyroscope_density='--gyroscope-noise',
    acceleration_std='--acceleration',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    meaning = 'bags or CSV folders with IMU and truth (default: simulated runs)'
    arguments.add_recordings(parser, meaning, nargs='*')
    simulation = parser.add_argument_group('simulation')
    _SIMULATION.add(simulation)
    arguments.add_shared(simulation, 'set')
    simulation.add_argument(
        '--world',
        metavar='WORLD',
        help='world or file: gravity, magnetic field, dipoles, landmarks and tags (default '
        f'{_WORLD}); with recordings, the field that the filter expects (default: the mean '
        'measured in the first 2 s)',
    )
    arguments.add_shared(parser, 'topic', 'base_frame')
    parser.add_argument(
        '--validation',
        action='store_true',
        help='tables 2 to 4 of [Ligorio2015]: simulate the sensors on the truth of each recording '
        'and compare both; without recordings, a stand-in is used: a simulated unit with errors '
        'of calibration, delays and noisy motion capture',
    )
    filter_group = parser.add_argument_group('filter')
    filter_group.add_argument(
        '--without',
        action='append',
        default=[],
        choices=('accelerometer', 'magnetometer', 'camera'),
        help='sensor that the filter does not use; repeatable',
    )
    _FILTER.add(filter_group)
    meaning = (
        'folder for attitude.json, errors.csv, errors.png and consistency.png; with --validation '
        'for validation.json and plots'
    )
    arguments.add_out(parser, meaning, 'overwrite', 'json', 'seed', 'jobs')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.findings import to_records
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report.attitude import MARK, attitude_record, write_attitude

    used: dict[str, Any] = dict.fromkeys(options.without, False)
    settings = _FILTER.make(options, **used)
    if options.validation:
        return _run_validation(options, settings)
    if options.out:
        check_result_folder(options.out, MARK, overwrite=options.overwrite)
    make = _run_recorded if options.recordings else _run_simulated
    study, inputs, more, failures = make(options, settings)
    notes = [*study.notes(), *more]
    record = attitude_record(
        study, {**inputs, 'filter': settings.to_mapping(), 'notes': to_records(notes)}
    )
    if options.out:
        write_attitude(options.out, study, record, overwrite=options.overwrite)

    def print_result() -> None:
        _show(study, recorded=bool(options.recordings))
        print_notes(notes)

    return conclude(options, record, print_result, 'Plots, record and errors', failures)


def _show(study: AttitudeStudy, *, recorded: bool) -> None:
    from sim2real_eval.report.attitude import attitude_table
    from sim2real_eval.report.consistency import consistency_table

    n = len(study.names)
    kind = 'recorded' if recorded else 'simulated'
    runs = f'{n} {kind} runs' if n > 1 else study.names[0]
    print_table(attitude_table(study, f'Attitude errors, {runs}'))
    print()
    print_table(consistency_table(study.consistency(), f'Consistency, {runs}: 1 is consistent'))
    shares = ', '.join(
        f'{name} {100.0 * share:.1f} %'
        for name, share in zip('xyzw', study.inside.mean(axis=0), strict=True)
    )
    print(f'Share of quaternion errors within the 99 % bounds: {shares}')


def _run_validation(options: argparse.Namespace, settings: AttitudeSettings) -> int:
    from sim2real_eval.benches.attitude.validation import (
        ValidatedModels,
        simulate_stand_in,
        validate,
    )
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import validation as report
    from sim_sensors.world.world import load_world

    if options.recordings:
        _SIMULATION.refuse(options, 'cannot be used with recordings', 'motion', 'duration')
        if options.set:
            raise ParameterError('--set', '', 'cannot be used with recordings')
    elif options.topic:
        raise ParameterError('--topic', '', 'needs recordings')
    _SIMULATION.refuse(options, 'cannot be used with --validation', 'runs')
    if options.out:
        check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    chosen = _SIMULATION.make(options)
    models = ValidatedModels(*_models(chosen))
    world = load_world(options.world or _WORLD)
    if options.recordings:
        recordings = [
            source.read() for source in arguments.sources(options.recordings, options.topic)
        ]
    else:
        recordings = [simulate_stand_in(_motion(options, chosen), world, seed=options.seed)]
    with progress_bar(len(recordings), 'recordings') as progress:
        validation = validate(
            recordings,
            models,
            settings,
            world,
            seed=options.seed,
            base_frame=options.base_frame,
            progress=progress,
        )
    record = report.validation_record(
        validation,
        {
            'recordings': options.recordings or ['stand-in'],
            **chosen.to_mapping(),
            'world': options.world or _WORLD,
            'seed': options.seed,
            'filter': settings.to_mapping(),
        },
    )
    real = 'real' if options.recordings else 'stand-in'
    if options.out:
        report.write_validation(
            options.out, validation, record, real=real, overwrite=options.overwrite
        )
    return conclude(
        options,
        record,
        lambda: print_table(report.validation_tables(record, real=real)),
        'Figures 5 to 7 and record',
    )


def _models(chosen: SimulationSettings) -> tuple[Any, Any, Any]:
    """Return IMU, magnetometer or None, and camera or None."""
    refused = {'real': 'this verb simulates the sensors'}
    of_imu = {**refused, NONE: 'the filter integrates its angular rate'}
    return (
        load_single('imu', chosen.imu, of_imu),
        load_single('mag', chosen.mag, refused),
        load_single('camera', chosen.camera, refused),
    )


def _motion(options: argparse.Namespace, chosen: SimulationSettings) -> Motion:
    from sim_sensors.motion.motions import motion_of

    return motion_of(
        chosen.motion,
        seed=options.seed,
        run='attitude',
        duration=chosen.duration,
        parameters=arguments.motion_parameters(options.set),
    )


def _run_simulated(options: argparse.Namespace, settings: AttitudeSettings) -> _Studied:
    from sim2real_eval.benches.attitude.study import AttitudeSetup, run_simulated_study
    from sim_sensors.world.world import load_world

    if options.topic:
        raise ParameterError('--topic', '', 'needs recordings')
    chosen = _SIMULATION.make(options)
    motion_settings = arguments.motion_parameters(options.set)
    world = options.world or _WORLD
    imu, mag, camera = _models(chosen)
    setup = AttitudeSetup(
        motion=_motion(options, chosen),
        name=chosen.motion,
        imu=imu,
        mag=mag,
        camera=camera,
        world=load_world(world),
        runs=chosen.runs,
        seed=options.seed,
        settings=settings,
    )
    with progress_bar(setup.runs, 'runs') as progress:
        study = run_simulated_study(setup, jobs=options.jobs, progress=progress)
    inputs = {**chosen.to_mapping(), 'set': motion_settings, 'world': world, 'seed': options.seed}
    return study, inputs, [], []


def _run_recorded(options: argparse.Namespace, settings: AttitudeSettings) -> _Studied:
    from sim2real_eval.benches.attitude.study import combine_runs, estimate_recorded_run
    from sim2real_eval.common.findings import merge_findings

    _SIMULATION.refuse(options, 'cannot be used with recordings')
    if options.set:
        raise ParameterError('--set', '', 'cannot be used with recordings')
    world = arguments.world_of(options)
    recordings = arguments.sources(options.recordings, options.topic)

    def attempt(source: RecordingSource) -> AttitudeRun:
        return estimate_recorded_run(
            source.read(), settings, world=world, seed=options.seed, base_frame=options.base_frame
        )

    runs, failures = attempt_each(recordings, attempt)
    inputs = {
        'recordings': [source.path for source in recordings],
        'world': options.world,
        'seed': options.seed,
    }
    notes = list(runs[0].notes)
    if len(runs) > 1:
        notes = merge_findings(('recorded', run.notes) for run in runs)
    return combine_runs(runs), inputs, notes, failures
