# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real fit`: tune parameters of a sensor model on real recordings."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from sim2real_eval.study.options import PROFILE, FitOptions, StudyOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_recordings,
    add_scenario,
    add_shared,
    judge_setup,
    judged_sources,
)
from .options import STUDY, UNCERTAINTY, OptionSet, add_metric, study_options
from .output import conclude, print_notes, print_table, progress_rounds, report_failures

DESCRIPTION = (
    'Fit chosen parameters of a GPS or IMU model so that sensors simulated on the true motion '
    'of real recordings give the same errors of the judge as the real sensors. All candidates '
    'use the same random draws. The fit is cross-validated on held-out recordings. It reports '
    'over-fitting and parameters that the recordings do not determine. Repeat the command to '
    'continue an interrupted fit. See docs/explanation/characterization.md.'
)
EPILOG = """\
examples:
  sim2real fit bags/* --gps ch_gauss --tune gps.noise.std=0.01:3 --out fitted
  sim2real fit bags/* --gps sensors --imu sensors --tune gps.noise.white_std.xy --out fitted
  sim2real fit bags/* --gps real --imu chrono --tune gyroscope.std,gyroscope.drift --out f
  sim2real vepd others/* --models fitted/gps.yaml --imu fitted/imu.yaml --out result
"""


_START = StudyOptions(repetitions=2, adapt='none')
_METHOD = OptionSet(FitOptions)


@dataclasses.dataclass(frozen=True)
class StartModels(Parameters):
    """Models to start from."""

    gps: str = parameter(
        'ch_gauss',
        '',
        'GPS to start from: real, name, file, or folder written by `sim2real characterize`.',
    )
    imu: str = parameter('chrono', '', 'IMU to start from, as for the GPS.')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('recordings and models')
    add_recordings(inputs, 'real recording with ground truth')
    add_scenario(inputs)
    OptionSet(StartModels, gps='--gps MODEL', imu='--imu MODEL').add(inputs, kept=True)
    add_shared(inputs, 'topic')
    STUDY.add(inputs, 'match_rates', 'repetitions', 'block', base=_START)
    search = parser.add_argument_group('parameters and method')
    search.add_argument(
        '--tune',
        action='append',
        required=True,
        metavar='NAME=LOW:HIGH,...',
        help='parameters with bounds, such as gps.noise.std=0.01:1, separated by commas. :lin or '
        ':log after the bounds sets the scale (default: log if both are above 0); NAME.x or '
        'NAME.xy: only these axes; NAME+NAME: one value for both; without bounds: a tenth to ten '
        'times the start value',
    )
    _METHOD.add(search)
    UNCERTAINTY.add(search, 'resamples')
    add_judge_kind(parser.add_argument_group('judge'))
    add_judge(parser, '--judge-config', PROFILE)
    STUDY.add(parser, 'start_heading', 'off_ticks')
    add_metric(parser)
    output = parser.add_argument_group('output')
    add_out(
        output,
        'folder for gps.yaml, imu.yaml, fit.json, profiles.png, candidates.csv and runs.csv',
        'overwrite',
        'json',
        required=True,
    )
    add_shared(parser, 'seed', 'jobs')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import fit as report
    from sim2real_eval.report.search_layout import search_identity
    from sim2real_eval.study.fitting.fit import fit
    from sim2real_eval.study.fitting.model_parameters import parse_parameters
    from sim2real_eval.study.run_plan import Judging
    from sim2real_eval.study.search.engine import EvaluationStore
    from .sensors import JUDGED, sensor_names, twins

    model_names = {
        sensor: _find_model(getattr(options, sensor), f'{sensor}.yaml')
        for sensor in ('gps', 'imu')
    }
    for sensor, name in model_names.items():
        sensor_names(sensor, name, JUDGED)
    (twin,) = twins(model_names['gps'], model_names['imu'])
    parameters = parse_parameters(options.tune, twin)
    check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    setup = judge_setup(options)
    recordings = [
        dataclasses.replace(source, transforms=setup.transforms)
        for source in judged_sources(options, options.recordings, 'recordings')
    ]
    judging = Judging(setup, study_options(options, _START))
    method = _METHOD.make(options, uncertainty=UNCERTAINTY.make(options))
    identity = search_identity(
        'fit', setup, *recordings, twin, parameters=parameters, method=method,
        judging=judging.options,
    )  # fmt: skip
    with EvaluationStore.for_folder(options.out, identity) as store:
        with progress_rounds('fitting') as begin:
            result = fit(
                recordings, twin, parameters, judging, method, jobs=options.jobs, progress=begin,
                store=store,
            )  # fmt: skip
        record = report.fit_record(result, judging, model_names)
        report.write_fit(options.out, result, record, overwrite=options.overwrite)
    failures = [str(failure) for failure in result.real.failures]
    report_failures(failures, of=len(recordings))

    def print_result() -> None:
        print_table(report.fit_parameter_table(result))
        print()
        print_table(report.fit_gain_table(result))
        print_notes(result.notes)

    contents = f'{result.validation.verdict}: model, tables and plots'
    return conclude(options, record, print_result, contents, failures)


def _find_model(model: str, name: str) -> str:
    """Return the model file `name` of a folder written by `characterize`, otherwise `model`."""
    path = Path(model)
    if not path.is_dir():
        return model
    if not (path / name).is_file():
        raise ParameterError(
            model,
            '',
            f'has no {name}; must be a model or a folder written by `sim2real characterize`',
        )
    return str(path / name)
