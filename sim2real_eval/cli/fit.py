# SPDX-License-Identifier: Apache-2.0
"""`sim2real fit`: parameters of a sensor model tuned on real recordings."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from sim2real_eval.study.options import PROFILE, FitOptions, StudyOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter
from .arguments import add_out, add_scenario, add_shared
from .judge_arguments import add_judge, add_judge_kind, judge_setup, judged_sources
from .options import STUDY, UNCERTAINTY, OptionSet, add_metric, study_options
from .output import conclude, print_notes, print_table, progress_rounds, report_failures

HELP = 'tune parameters of a model until simulated runs are judged as real ones'
DESCRIPTION = (
    'Tune chosen parameters of a GPS or IMU model until sensors simulated on the '
    'true motion of real recordings make the judge err as the real ones do. Every candidate '
    'meets the same random draws. Cross-validated on recordings held out; says when it '
    'over-fits and which parameters the recordings say nothing of. See '
    'docs/explanation/characterization.md.'
)
EPILOG = """\
examples:
  sim2real fit --real bags/* --gps ch_gauss --tune gps.noise.std=0.01:3 --out fitted
  sim2real fit --real bags/* --gps sensors --imu sensors --tune gps.noise.white_std.xy --out fitted
  sim2real fit --real bags/* --gps real --imu chrono --tune gyroscope.std,gyroscope.drift --out f
  sim2real vepd --real others/* --models fitted/gps.yaml --imu fitted/imu.yaml --out result
"""


_START = StudyOptions(repetitions=2, adapt='none')
_METHOD = OptionSet(FitOptions)


@dataclasses.dataclass(frozen=True)
class StartModels(Parameters):
    """Models to start from."""

    gps: str = parameter(
        'ch_gauss',
        '',
        'GPS model to start from: name, file, folder that `sim2real characterize` wrote, or real '
        'for the recorded fixes.',
    )
    imu: str = parameter('chrono', '', 'IMU model likewise.')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('recordings and models')
    about = 'real recordings with ground truth'
    inputs.add_argument('--real', nargs='+', required=True, metavar='PATH', help=about)
    add_scenario(inputs)
    OptionSet(StartModels, gps='--gps MODEL', imu='--imu MODEL').add(inputs, kept=True)
    add_shared(inputs, 'topic')
    STUDY.add(inputs, 'match_rates', 'repetitions', base=_START)
    search = parser.add_argument_group('what is tuned, and how')
    search.add_argument(
        '--tune',
        action='append',
        required=True,
        metavar='NAME=LOW:HIGH,...',
        help='parameters and bounds, such as gps.noise.std=0.01:1, by comma. :lin or :log sets '
        'the scale (default log, where bounds are above 0); .x, .xy behind NAME: these axes only; '
        'NAME+NAME: two that get one value; without bounds: a tenth to ten times the start',
    )
    _METHOD.add(search)
    UNCERTAINTY.add(search, 'resamples')
    add_judge_kind(parser.add_argument_group('judge'))
    add_judge(parser, '--judge-config', PROFILE)
    STUDY.add(parser, 'start_heading', 'off_ticks')
    add_metric(parser)
    output = parser.add_argument_group('output')
    about = 'folder for models, tables and plots'
    add_out(output, about, 'overwrite', 'json', required=True)
    add_shared(parser, 'seed', 'jobs')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import fit as report
    from sim2real_eval.study.fitting.fit import fit
    from sim2real_eval.study.fitting.tuned import parse_tuned
    from sim2real_eval.study.run_plan import Judging
    from .models import twins

    given = {
        sensor: _model_of(getattr(options, sensor), f'{sensor}.yaml') for sensor in ('gps', 'imu')
    }
    for sensor, name in given.items():
        if ',' in name or name in ('all', 'paper'):
            raise ParameterError(f'--{sensor}', '', f'{name!r} is not allowed; must be one model')
    (twin,) = twins(given['gps'], given['imu'])
    tuned = parse_tuned(options.tune, twin)
    check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    setup = judge_setup(options)
    recordings = [
        dataclasses.replace(source, transforms=setup.transforms)
        for source in judged_sources(options, options.real, '--real')
    ]
    judging = Judging(setup, study_options(options, _START))
    method = _METHOD.make(options, uncertainty=UNCERTAINTY.make(options))
    with progress_rounds('fitting') as begin:
        found = fit(recordings, twin, tuned, judging, method, jobs=options.jobs, progress=begin)
    record = report.fit_record(found, judging, given)
    report.write_fit(options.out, found, record, overwrite=options.overwrite)
    failures = [str(failure) for failure in found.real.failures]
    report_failures(failures, of=len(recordings))

    def tell() -> None:
        print_table(report.fit_parameter_table(found))
        print()
        print_table(report.fit_gain_table(found))
        print_notes(found.notes)

    where = f'{found.validation.verdict}: model, tables and plots'
    return conclude(options, record, tell, where, failures)


def _model_of(given: str, name: str) -> str:
    """Return the model file of a folder that `characterize` wrote; else what was given."""
    path = Path(given)
    if not path.is_dir():
        return given
    if not (path / name).is_file():
        raise ParameterError(
            given, '', f'holds no {name}; must be a model, or a folder of `sim2real characterize`'
        )
    return str(path / name)
