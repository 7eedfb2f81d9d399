# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real compare`: signals of real sensors against those of simulated ones."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim2real_eval.signals.options import SignalOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter
from .arguments import (
    add_out,
    add_patterns,
    add_recordings,
    add_shared,
    matched_paths,
    sources,
    world_of,
)
from .options import STUDY, OptionSet
from .output import conclude, print_signals, progress_bar, report_failures
from .sensors import add_sensor_set, sensor_settings, set_parameters

if TYPE_CHECKING:
    from sim2real_eval.benches.signals import SignalStudy, Source

DESCRIPTION = (
    'Compare angular rate, specific force, yaw, position and magnetic field of real and simulated '
    'recordings with their own truth: RMSE, correlation, trend and spectrum of the errors, and a '
    'significance test of the differences. Camera features are compared without a test.'
)
EPILOG = """\
examples:
  sim2real compare bags/* --models ch_rw --imu chrono,airsim --out signals
  sim2real compare bags/* --imu my_imu.yaml --match-rates --out signals
  sim2real compare bags/* --imu xsens_mtx --mag xsens_mtx --published --out signals
  sim2real compare field/* --sim 'gazebo/*' --align apply --out signals
"""


@dataclasses.dataclass(frozen=True)
class ComparedModels(Parameters):
    """Models that are simulated on the true motion and compared."""

    gps: str = parameter(
        '',
        '',
        'Without --sim: GPS to simulate on the real truth: names and files, separated by commas, '
        'each compared once; real or none: not compared (default: ch_rw and the IMU chrono, if no '
        'sensor is named).',
    )
    imu: str = parameter('', '', 'IMU, in the same way.')
    mag: str = parameter('', '', 'Magnetometer, in the same way.')
    camera: str = parameter(
        '',
        '',
        'Camera, in the same way; features are compared with those of an ideal '
        'camera that sees the landmarks of --world.',
    )


_MODELS = OptionSet(
    ComparedModels,
    gps='--models --gps LIST',
    imu='--imu LIST',
    mag='--mag LIST',
    camera='--camera LIST',
)
_METHOD = OptionSet(SignalOptions, base_frame='--base-frame FRAME', feature='--feature ID')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('input')
    add_recordings(inputs, 'real recording with ground truth')
    where = inputs.add_mutually_exclusive_group()
    add_patterns(where, '--sim', 'simulated recording with its own truth')
    _MODELS.add(where, 'gps')
    _MODELS.add(inputs, 'imu', 'mag', 'camera')
    add_sensor_set(inputs)
    inputs.add_argument(
        '--world',
        metavar='WORLD',
        help='world or file with the true magnetic field, which is also simulated (default: the '
        'field measured in the first 2 s, by a noise-free magnetometer if there is one)',
    )
    STUDY.add(inputs, 'match_rates', 'repetitions')
    add_shared(inputs, 'topic')
    method = parser.add_argument_group('method')
    _METHOD.add(method, 'quantities', 'sizes', 'rate', 'trend_window', 'align', 'max_lag')
    _METHOD.add(method, 'yaw', 'gravity', 'base_frame', 'feature')
    # The declaration uses 0 and -1 for these words.
    method.add_argument(
        '--nperseg',
        type=_segment,
        metavar='N|max',
        help='samples per segment of the spectra; max: one segment, as in [Cesenek2019] (default: '
        'the largest power of two that leaves at least 7 segments)',
    )
    output = parser.add_argument_group('output')
    add_out(
        output,
        'folder for comparison.json, comparison.csv, further tables, series and plots',
        'overwrite',
        required=True,
    )
    output.add_argument(
        '--published', action='store_true', help='also show RMSE and R of [Ligorio2015]'
    )
    add_shared(output, 'json', 'quiet')
    add_shared(parser, 'seed', 'jobs')


def _segment(text: str) -> int:
    """Argparse type for the length of segments: at least 8 samples, or -1 for `max`."""
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
    from sim2real_eval.benches.signals import SignalStudy
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import signals as report
    from .sensors import single_sensors

    if options.sim:
        problem = 'cannot be used with --sim, only with --models'
        if options.set:
            raise ParameterError('--set', '', problem)
        _MODELS.refuse(options, problem)
        STUDY.refuse(options, problem, 'match_rates', 'repetitions')
    check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    method = _METHOD.make(options)
    world = world_of(options)
    real = sources(options.recordings, options.topic, option='recordings')
    if options.sim:
        simulated = sources(matched_paths(options.sim, '--sim'), options.topic)
        study = SignalStudy(simulated=tuple(simulated), world=world)
    else:
        for name, text in _MODELS.explicit_values(options).items():
            if not text.strip():
                raise ParameterError(
                    _MODELS.flag(name), '', 'is empty; must name one or more models'
                )
        models, runs = _MODELS.make(options), STUDY.make(options)
        if models == ComparedModels():
            models = ComparedModels(gps='ch_rw', imu='chrono')
        study = SignalStudy(
            twins=set_parameters(
                single_sensors(models.gps, models.imu, models.mag, models.camera), options.set
            ),
            repetitions=runs.repetitions,
            match_rates=runs.match_rates,
            world=world,
        )
    more = {'set': sensor_settings(options.set)} if options.set else {}
    return compare_and_write(options, real, study, method, more, published=options.published)


def compare_and_write(
    options: argparse.Namespace,
    real: Sequence[Source],
    study: SignalStudy,
    method: SignalOptions,
    more: Mapping[str, Any],
    *,
    heading: str = '',
    published: bool = False,
) -> int:
    """Compare signals into the folder --out, print them, and return the exit status.

    `options` have out, overwrite, jobs, json and quiet. `more` are further entries of the record,
    and `heading` is printed above the tables.
    """
    from sim2real_eval.benches.signals import study_record, study_signals
    from sim2real_eval.report.signals import write_signals

    total = len(real) + len(study.simulated)
    with progress_bar(total, 'recordings', quiet=options.quiet) as progress:
        comparison, failures = study_signals(
            real, study, method, jobs=options.jobs, progress=progress
        )
    record = {**study_record(comparison, failures, real, study), **more}
    write_signals(options.out, comparison, record, overwrite=options.overwrite)
    report_failures([str(failure) for failure in failures], of=total)

    def print_result() -> None:
        if heading and not options.quiet:
            print(f'{heading}\n')
        print_signals(comparison, options.out, published=published, quiet=options.quiet)

    where = None if options.quiet else 'Tables, series and plots'
    return conclude(options, record, print_result, where, failures)
