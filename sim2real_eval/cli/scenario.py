# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real scenario`: preintegration covariance of a scenario against Monte Carlo runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.benches.settings import ScenarioSettings
from sim_sensors.core.errors import ParameterError
from .arguments import add_out, add_shared, motion_parameters
from .options import OptionSet
from .output import conclude, print_table, progress_bar

if TYPE_CHECKING:
    from sim2real_eval.benches.preintegration.params import PreintegrationParams
    from sim2real_eval.benches.preintegration.runner import ScenarioSetup, ScenarioStudy
    from sim_sensors.motion.trajectory import Motion

DESCRIPTION = (
    'Simulate an IMU in a scenario, preintegrate it, predict the state, and compare the '
    'predicted covariance with that of many runs (docs/explanation/scenarios.md).'
)
EPILOG = """\
The default is the example on GTSAM's page about ScenarioRunner: 0.5 m/s^2 along x for
2 s, an IMU at 100 Hz, biases known to (0.01, 0.005).

examples:
  sim2real scenario
  sim2real scenario --noise gtsam_macos --out page
  sim2real scenario --motion constant_twist --set 'angular_velocity=[0,0,1]' --out twist
  sim2real scenario --accelerometer-walk 0.03 --gyroscope-walk 0.003 --runs 5000 --out walk
  sim2real scenario --table motion.csv --duration 5 --form manifold --json
"""

_SETTINGS = OptionSet(ScenarioSettings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        '--motion',
        default='accelerating',
        metavar='NAME',
        help='motion, named as for `sim2real simulate` (default accelerating)',
    )
    where.add_argument(
        '--table',
        metavar='FILE',
        help="CSV table of a motion with the columns of GTSAM's DiscreteScenario",
    )
    parser.add_argument(
        '--as-upstream',
        action='store_true',
        help='interpolate each column of the table separately, as GTSAM does',
    )
    add_shared(parser, 'set')
    _SETTINGS.add(parser)
    add_out(
        parser,
        'folder for scenario.json, scenario.png, measurements.csv and errors.csv',
        'overwrite',
        'json',
        'seed',
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.preintegration.runner import run_study
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report.scenario import MARK, scenario_record, write_scenario

    settings = _SETTINGS.make(options)
    setup = _setup(options, settings)
    if options.out:
        check_result_folder(options.out, MARK, overwrite=options.overwrite)
    with progress_bar(setup.runs, 'runs') as advance:
        study = run_study(setup, advance)
    if options.out:
        write_scenario(options.out, study, overwrite=options.overwrite)
    record = scenario_record(study)
    return conclude(options, record, lambda: _show(study), 'Plot, record and series')


def _show(study: ScenarioStudy) -> None:
    from sim2real_eval.report.scenario import covariance_table, state_table

    print_table(state_table(study))
    print()
    print_table(covariance_table(study))
    agreement = study.agreement
    verdict = (
        'as expected of equal covariances'
        if agreement.probability >= 0.01
        else 'more than expected of equal covariances'
    )
    print(
        f'The predicted covariance and that of {study.setup.runs} runs differ {verdict}: '
        f'statistic {agreement.statistic:.1f} for {agreement.freedom} degrees of freedom, '
        f'p = {agreement.probability:.2g}.'
    )


def _setup(options: argparse.Namespace, settings: ScenarioSettings) -> ScenarioSetup:
    import numpy as np

    from sim2real_eval.benches.preintegration.params import ConstantBias
    from sim2real_eval.benches.preintegration.runner import ScenarioSetup

    motion, name = _motion(options, settings.duration)
    if settings.duration > (lasts := motion.end - motion.start) + 1e-9:
        allowed = f'must be <= {lasts:g} s, the duration of {name}'
        raise ParameterError('--duration', '', f'{settings.duration:g} is not allowed; {allowed}')
    true, estimated = np.array(settings.bias), np.array(settings.estimated_bias)
    return ScenarioSetup(
        scenario=motion,
        name=name,
        duration=settings.duration,
        dt=settings.sample_time,
        params=_params(settings),
        bias=ConstantBias(true[:3], true[3:]),
        estimated_bias=ConstantBias(estimated[:3], estimated[3:]),
        runs=settings.runs,
        seed=options.seed,
        noise=settings.noise,
    )


def _params(settings: ScenarioSettings) -> PreintegrationParams:
    from sim2real_eval.benches.preintegration import params

    given: dict[str, Any] = {
        'accelerometer_covariance': settings.accelerometer_noise**2,
        'gyroscope_covariance': settings.gyroscope_noise**2,
        'integration_covariance': settings.integration_noise**2,
        'form': settings.form,
    }
    walks = settings.accelerometer_walk, settings.gyroscope_walk
    if walks == (None, None):
        return params.PreintegrationParams.make_shared_u(settings.gravity, **given)
    return params.PreintegrationCombinedParams.make_shared_u(
        settings.gravity,
        bias_acc_covariance=(walks[0] or 0.0) ** 2,
        bias_omega_covariance=(walks[1] or 0.0) ** 2,
        **given,
    )


def _motion(options: argparse.Namespace, duration: float) -> tuple[Motion, str]:
    from sim_sensors.motion.motions import motion_of
    from sim_sensors.motion.spatial_scenarios import DiscreteScenario

    if options.table is not None:
        if options.set:
            raise ParameterError('--set', '', 'needs --motion')
        table = DiscreteScenario.from_csv(options.table, as_upstream=options.as_upstream)
        return table, Path(options.table).stem
    if options.as_upstream:
        raise ParameterError('--as-upstream', '', 'needs --table')
    parameters = motion_parameters(options.set)
    motion = motion_of(
        options.motion, seed=options.seed, run='scenario', duration=duration, parameters=parameters
    )
    return motion, options.motion
