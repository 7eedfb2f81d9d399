# SPDX-License-Identifier: Apache-2.0
"""`sim2real scenario`: preintegration of a scenario, its covariance against Monte Carlo."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from sim2real_eval.cli.arguments import add_json, add_overwrite, add_seed, at_least
from sim2real_eval.cli.output import print_json, print_table, progress_bar
from sim2real_eval.cli.sensor_arguments import add_set, motion_parameters
from sim_sensors.core.errors import ParameterError

if TYPE_CHECKING:
    from sim2real_eval.benches.preintegration.params import PreintegrationParams
    from sim2real_eval.benches.preintegration.study import ScenarioSetup, ScenarioStudy
    from sim_sensors.motion.trajectory import Motion

__all__ = ['add_arguments', 'run']

HELP = 'preintegrate the IMU of a scenario as in GTSAM; covariance against Monte Carlo'
DESCRIPTION = (
    'Measure a scenario with an IMU, preintegrate, predict, and compare the '
    'covariance of the prediction with that of many runs (docs/scenarios.md).'
)
EPILOG = """\
Without options it is the example on GTSAM's page about ScenarioRunner: 0.5 m/s^2
along x for 2 s, an IMU at 100 Hz, biases known to (0.01, 0.005).

examples:
  sim2real scenario
  sim2real scenario --noise libc++
  sim2real scenario --motion constant_twist --set 'angular_velocity=[0,0,1]' --out twist
  sim2real scenario --accelerometer-walk 0.03 --gyroscope-walk 0.003 --runs 5000 --out walk
  sim2real scenario --table motion.csv --duration 5 --form manifold --json
"""

_TRUE = '0.05,-0.05,0.1,0.01,-0.01,0.02'
_ESTIMATED = '0.04,-0.04,0.09,0.005,-0.005,0.015'
# Square root of the page's 1e-9 m^2/s.
_INTEGRATION = 3.1622776601683795e-05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        '--motion',
        default='accelerating',
        metavar='NAME',
        help='motion, as for simulate (default accelerating)',
    )
    where.add_argument(
        '--table',
        metavar='FILE',
        help="CSV table of a motion with the columns of GTSAM's DiscreteScenario",
    )
    parser.add_argument(
        '--as-upstream',
        action='store_true',
        help='interpolate each column of the table for itself, as GTSAM does',
    )
    add_set(parser)
    _add_imu(parser)
    parser.add_argument(
        '--runs', type=at_least(20, int), default=1000, metavar='N',
        help='Monte Carlo runs (default 1000)',
    )  # fmt: skip
    parser.add_argument(
        '--noise',
        choices=('seed', 'libc++', 'libstdc++'),
        default='seed',
        help='noise of the first run: from --seed (default), or the very numbers of GTSAM on '
        "macOS (libc++, with which its page was made) or Linux (libstdc++), which don't change",
    )
    parser.add_argument('--out', metavar='DIR', help='folder for plot, record and series')
    add_overwrite(parser)
    add_json(parser)
    add_seed(parser)


def _add_imu(parser: argparse.ArgumentParser) -> None:
    positive = at_least(0, float, above=True)
    density = at_least(0, float)
    for option, kind, default, metavar, text in (
        ('--duration', positive, 2.0, 'S', 'time to integrate (default 2)'),
        ('--sample-time', positive, 0.01, 'S', 'between samples of the IMU (default 0.01)'),
        ('--gravity', density, 9.81, 'G', 'm/s^2, downwards (default 9.81)'),
        ('--accelerometer-noise', density, 0.1, 'D', 'density, m/s^2/sqrt(Hz) (default 0.1)'),
        ('--gyroscope-noise', density, 0.01, 'D', 'density, rad/s/sqrt(Hz) (default 0.01)'),
        ('--integration-noise', density, _INTEGRATION, 'D',
         'density of the position that the filter adds, m/sqrt(s) (default 3.2e-5)'),
        ('--accelerometer-walk', density, None, 'D', 'the bias walks: m/s^2/sqrt(s)'),
        ('--gyroscope-walk', density, None, 'D', 'the bias walks: rad/s/sqrt(s)'),
        ('--bias', _six, _TRUE, 'LIST',
         f'true bias: 3 x m/s^2, 3 x rad/s (default {_TRUE})'),
        ('--estimated-bias', _six, _ESTIMATED, 'LIST',
         f'bias taken off every sample (default {_ESTIMATED})'),
    ):  # fmt: skip
        parser.add_argument(option, type=kind, default=default, metavar=metavar, help=text)
    parser.add_argument(
        '--form',
        choices=('tangent', 'manifold'),
        default='tangent',
        help="how rotation is integrated (default tangent, GTSAM's own)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.preintegration.study import PAGE_ERROR, run_study
    from sim2real_eval.report.scenario import (
        check_scenario_folder,
        scenario_record,
        write_scenario,
    )

    setup = _setup(options)
    if options.out:
        check_scenario_folder(options.out, overwrite=options.overwrite)
    with progress_bar(setup.runs, 'runs') as advance:
        study = run_study(setup, advance)
    if options.out:
        write_scenario(options.out, study, overwrite=options.overwrite)
    if options.json:
        print_json(scenario_record(study))
    else:
        _show(study, PAGE_ERROR if _is_page(options) else ())
        if options.out:
            print(f'Plot, record and series: {options.out}')
    return 0


def _show(study: ScenarioStudy, page: tuple[float, ...]) -> None:
    from sim2real_eval.report.scenario import covariance_table, state_table

    print_table(state_table(study))
    print()
    print_table(covariance_table(study, page))
    found = study.agreement
    verdict = (
        'as one and the same would'
        if found.probability >= 0.01
        else 'which one and the same would hardly do'
    )
    print(
        f'The covariances, predicted and of {study.setup.runs} runs, differ by a statistic of '
        f'{found.statistic:.1f} for {found.freedom} degrees of freedom, {verdict} '
        f'(p = {found.probability:.2g}).'
    )


def _is_page(options: argparse.Namespace) -> bool:
    """Tell whether the first run is the page's: only what it does not depend on is given."""
    standard = argparse.ArgumentParser()
    _add_imu(standard)
    defaults = vars(standard.parse_args([]))
    return (
        all(getattr(options, key) == value for key, value in defaults.items())
        and options.noise == 'libc++'
        and options.motion == 'accelerating'
        and not options.set
        and options.table is None
    )


def _setup(options: argparse.Namespace) -> ScenarioSetup:
    import numpy as np

    from sim2real_eval.benches.preintegration.params import ConstantBias
    from sim2real_eval.benches.preintegration.study import ScenarioSetup

    if options.duration < options.sample_time:
        raise ParameterError(
            '--duration',
            '',
            f'{options.duration:g} is not allowed; must be >= --sample-time, '
            f'{options.sample_time:g} [s]',
        )
    motion, name = _motion(options)
    if options.duration > (lasts := motion.end - motion.start) + 1e-9:
        raise ParameterError(
            '--duration',
            '',
            f'{options.duration:g} is not allowed; must be <= {lasts:g} s, which {name} lasts',
        )
    true, estimated = np.array(options.bias), np.array(options.estimated_bias)
    return ScenarioSetup(
        scenario=motion,
        name=name,
        duration=options.duration,
        dt=options.sample_time,
        params=_params(options),
        bias=ConstantBias(true[:3], true[3:]),
        estimated_bias=ConstantBias(estimated[:3], estimated[3:]),
        runs=options.runs,
        seed=options.seed,
        library=None if options.noise == 'seed' else options.noise,
    )


def _params(options: argparse.Namespace) -> PreintegrationParams:
    from sim2real_eval.benches.preintegration.params import (
        PreintegrationCombinedParams,
        PreintegrationParams,
    )

    given: dict[str, Any] = {
        'accelerometer_covariance': options.accelerometer_noise**2,
        'gyroscope_covariance': options.gyroscope_noise**2,
        'integration_covariance': options.integration_noise**2,
        'form': options.form,
    }
    walks = options.accelerometer_walk, options.gyroscope_walk
    if walks == (None, None):
        return PreintegrationParams.make_shared_u(options.gravity, **given)
    if options.noise != 'seed':
        raise ParameterError(
            '--noise', '', f'{options.noise} goes without walks, which GTSAM does not simulate'
        )
    return PreintegrationCombinedParams.make_shared_u(
        options.gravity,
        bias_acc_covariance=(walks[0] or 0.0) ** 2,
        bias_omega_covariance=(walks[1] or 0.0) ** 2,
        **given,
    )


def _motion(options: argparse.Namespace) -> tuple[Motion, str]:
    from pathlib import Path

    from sim_sensors.motion.discrete_scenario import DiscreteScenario
    from sim_sensors.motion.motions import motion_of

    if options.table is not None:
        if options.set:
            raise ParameterError('--set', '', 'goes with --motion only')
        made = DiscreteScenario.from_csv(options.table, as_upstream=options.as_upstream)
        return made, Path(options.table).stem
    if options.as_upstream:
        raise ParameterError('--as-upstream', '', 'goes with --table only')
    parameters = motion_parameters(options)
    motion = motion_of(
        options.motion,
        seed=options.seed,
        run='scenario',
        duration=options.duration,
        parameters=parameters,
    )
    return motion, options.motion


def _six(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(','))
    except ValueError:
        numbers = ()
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(f'{text!r} must be 6 numbers, separated by commas')
    return numbers
