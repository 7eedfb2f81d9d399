# SPDX-License-Identifier: Apache-2.0
"""`sim2real compare`: signals of real sensors against those of simulated ones."""

from __future__ import annotations

import argparse

from sim2real_eval.cli.arguments import (
    add_jobs,
    add_json,
    add_overwrite,
    add_seed,
    add_simulated_runs,
    add_topics,
    sources,
)
from sim2real_eval.cli.options import OptionSet
from sim2real_eval.cli.output import (
    print_json,
    print_notes,
    print_table,
    progress_bar,
    report_failures,
)
from sim2real_eval.signals.options import SignalOptions
from sim_sensors.core.errors import ParameterError

HELP = 'signals of real sensors against simulated ones, each against its own truth'
DESCRIPTION = (
    'Hold angular rate, specific force, yaw, position and magnetic field of real '
    'and of simulated recordings against their own truth: RMSE, correlation, trend and '
    'spectrum of the errors, how different they are, and whether that is significant.'
)
EPILOG = """\
examples:
  sim2real compare --real bags/* --models ch_rw --imu chrono,airsim --out signals
  sim2real compare --real bags/* --models real --imu my_imu.yaml --match-rates --out signals
  sim2real compare --real bags/* --imu xsens_mtx --mag xsens_mtx --published --out signals
  sim2real compare --real field/* --sim gazebo/* --align apply --out signals
"""

_WITH_MODELS = {
    'imu': '--imu',
    'mag': '--mag',
    'match_rates': '--match-rates',
    'repetitions': '--repetitions',
}


_METHOD = OptionSet(
    SignalOptions, 'rate', 'trend_window', 'align', 'max_lag', 'yaw', 'gravity', 'base_frame'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('input')
    inputs.add_argument(
        '--real', nargs='+', required=True, metavar='PATH', help='recordings with ground truth'
    )
    where = inputs.add_mutually_exclusive_group()
    where.add_argument(
        '--sim', nargs='+', metavar='PATH', help='simulated recordings, with their own truth'
    )
    where.add_argument(
        '--models',
        '--gps',
        dest='gps',
        metavar='LIST',
        help='without --sim: GPS models to simulate on the real truth, by comma, or real (default '
        'ch_rw); each GPS and each IMU model is compared once',
    )
    inputs.add_argument(
        '--imu', default='chrono', metavar='LIST', help='IMU models likewise (default chrono)'
    )
    inputs.add_argument(
        '--mag',
        default='',
        metavar='LIST',
        help='magnetometer models likewise (default: magnetometers are not compared)',
    )
    inputs.add_argument(
        '--world',
        metavar='WORLD',
        help='world or file whose magnetic field is the true one, and is simulated (default: the '
        'field that each magnetometer measures in its first 2 s)',
    )
    add_simulated_runs(inputs)
    add_topics(inputs)
    method = parser.add_argument_group('method')
    _METHOD.add(method)
    method.add_argument(
        '--nperseg',
        type=_segment,
        default=0,
        metavar='N|max',
        help='samples per segment of the spectra; max: one segment, as in [Cesenek2019] (default: '
        'a power of two that leaves 7 segments or more)',
    )
    output = parser.add_argument_group('output')
    output.add_argument(
        '--out', required=True, metavar='DIR', help='folder for tables, series and plots'
    )
    add_overwrite(output)
    output.add_argument(
        '--published', action='store_true', help='show RMSE and R of [Ligorio2015] beside ours'
    )
    add_json(output)
    add_seed(parser)
    add_jobs(parser)
    of_models = {dest: parser.get_default(dest) for dest in _WITH_MODELS}
    parser.set_defaults(of_models=of_models)


def _segment(text: str) -> int:
    """Argparse type: samples, at least 8, or -1 for `max`."""
    if text == 'max':
        return -1
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 8:
        raise argparse.ArgumentTypeError(f'{text!r} must be max or an integer >= 8')
    return value


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    if options.sim:
        for dest, default in options.of_models.items():
            if getattr(options, dest) != default:
                raise ParameterError(_WITH_MODELS[dest], '', 'goes with --models, not with --sim')
    from sim2real_eval.benches.signals import SignalStudy, study_record, study_signals
    from sim2real_eval.cli.model_lists import single_sensors
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report.signals import MARK
    from sim_sensors.world.world import load_world

    check_result_folder(options.out, MARK, overwrite=options.overwrite)
    method = _METHOD.make(options, nperseg=options.nperseg, seed=options.seed)
    world = load_world(options.world) if options.world else None
    real = sources(options.real, options.topic, None, option='--real')
    if options.sim:
        study = SignalStudy(
            simulated=tuple(sources(options.sim, options.topic, None, option='--sim')), world=world
        )
    else:
        study = SignalStudy(
            twins=single_sensors(options.gps or 'ch_rw', options.imu, options.mag),
            repetitions=options.repetitions,
            match_rates=options.match_rates,
            world=world,
        )
    total = len(real) + len(study.simulated)
    with progress_bar(total, 'recordings') as progress:
        comparison, failures = study_signals(
            real, study, method, jobs=options.jobs, progress=progress
        )
    record = study_record(comparison, failures, real, study)
    from sim2real_eval.report.signals import write_signals

    folder = write_signals(options.out, comparison, record, overwrite=options.overwrite)
    report_failures([str(failure) for failure in failures], of=total)
    if options.json:
        print_json(record)
    else:
        from sim2real_eval.report.signals import signal_tables

        print_table(signal_tables(comparison, published=options.published))
        print_notes(comparison.notes)
        print(f'Tables, series and plots: {folder}')
    return 1 if failures else 0
