# SPDX-License-Identifier: Apache-2.0
"""`sim2real wheels`: drift of wheels alone and with a camera, by the law of their noise."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sim2real_eval.cli.arguments import add_json, add_seed, at_least
from sim2real_eval.cli.motion_arguments import add_set, motion_parameters
from sim2real_eval.cli.output import print_json, print_notes, print_table, progress_bar
from sim2real_eval.cli.shared_options import add_overwrite
from sim_sensors.errors import ParameterError

if TYPE_CHECKING:
    from sim2real_eval.wheel_study import WheelSetup
    from sim_sensors.wheel_odometry import WheelOdometryModel

__all__ = ['add_parser', 'run']

_MODELS = 'swerve,swerve@100,frc_swerve,frc_swerve@100'

_EPILOG = """\
The first model stands for the real robot: VEPD compares the others with runs of it. A rate
behind @ replaces that of the model: the law of frc_swerve depends on it. The word
errors stands for six models of that robot with one error each: squared, per_distance,
slip, radius, steering_text, steering_code.

Without options it makes 50 runs of 60 s, which takes some 10 s; the first time the
judge is compiled, for a minute or more.

examples:
  sim2real wheels
  sim2real wheels --models swerve,errors
  sim2real wheels --models differential,my_robot.yaml --motion circle --runs 20 --out drift
  sim2real wheels --vision frc_2024 --world frc_2023_field --motion line --json
"""


def add_parser(verbs: Any) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'wheels',
        help='drift of wheel odometry alone and with poses from tags, by noise model',
        description='Drive, measure wheels and tags, and judge with the profiles wheels and '
        'wheels_vision: drift of both, and the VEPD of each noise model (docs/sensors/wheels.md).',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--models',
        default=_MODELS,
        metavar='LIST',
        help='wheel odometry models or files, each MODEL or MODEL@HZ, and the word errors '
        f'(default {_MODELS})',
    )
    parser.add_argument(
        '--vision', default='tags', metavar='MODEL', help='vision model or file (default tags)'
    )
    parser.add_argument(
        '--world', default='tag_ring', metavar='WORLD',
        help='world or file with tags (default tag_ring)',
    )  # fmt: skip
    parser.add_argument(
        '--motion',
        default='figure_eight',
        metavar='NAME',
        help='motion, as for simulate, that drives (default figure_eight)',
    )
    add_set(parser)
    parser.add_argument(
        '--duration', type=at_least(0, float, above=True), default=60.0, metavar='S',
        help='of the motion (default 60)',
    )  # fmt: skip
    parser.add_argument(
        '--runs', type=at_least(2, int), default=10, metavar='N',
        help='of each model, on one motion with other noise, and as many more of the first, '
        'which stand for the real robot (default 10)',
    )  # fmt: skip
    parser.add_argument('--out', metavar='DIR', help='folder for plot, record and runs')
    add_overwrite(parser)
    add_json(parser)
    add_seed(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.report.wheel_table import wheel_table
    from sim2real_eval.wheel_folder import check_wheel_folder, wheel_record, write_wheels
    from sim2real_eval.wheel_notes import wheel_notes
    from sim2real_eval.wheel_study import run_wheel_study

    setup = _setup(options)
    if options.out:
        check_wheel_folder(options.out, overwrite=options.overwrite)
    with progress_bar(setup.runs * (len(setup.variants) + 1), 'runs') as advance:
        study = run_wheel_study(setup, advance)
    if options.out:
        write_wheels(options.out, study, overwrite=options.overwrite)
    if options.json:
        print_json(wheel_record(study))
    else:
        print_table(wheel_table(study))
        first = next(iter(setup.variants))
        print(f'VEPD: distance from runs of {first} that stand for the real robot.')
        if options.out:
            print(f'Plot, record and runs: {options.out}')
        print_notes(wheel_notes(study))
    return 0


def _setup(options: argparse.Namespace) -> WheelSetup:
    from sim2real_eval.wheel_study import WheelSetup
    from sim_sensors.catalogue import load_vision
    from sim_sensors.motions import motion_of, truth_of
    from sim_sensors.world_file import load_world

    variants = _variants(options.models)
    motion = motion_of(
        options.motion,
        seed=options.seed,
        run='wheels',
        duration=options.duration,
        parameters=motion_parameters(options),
    )
    if not truth_of(motion).linear_velocity[:, :2].any():
        raise ParameterError(
            '--motion',
            '',
            f'{options.motion!r} never leaves its place, so that there is no speed to compare; '
            'must drive, as figure_eight, circle and line do',
        )
    return WheelSetup(
        motion=motion,
        name=options.motion,
        variants=variants,
        vision=load_vision(options.vision),
        world=load_world(options.world),
        runs=options.runs,
        seed=options.seed,
    )


def _variants(models: str) -> dict[str, WheelOdometryModel]:
    """Return the models of --models by label."""
    from sim2real_eval.wheel_errors import SINGLE_ERRORS, single_errors

    variants: dict[str, WheelOdometryModel] = {}
    for text in (part.strip() for part in models.split(',')):
        named = single_errors() if text == SINGLE_ERRORS else {text: _model(text)}
        for label, model in named.items():
            if label in variants:
                raise ParameterError('--models', '', f'{label!r} is named twice')
            variants[label] = model
    return variants


def _model(text: str) -> WheelOdometryModel:
    """Return the model of MODEL or MODEL@HZ."""
    import dataclasses

    from sim_sensors.catalogue import load_wheels

    name, at, rate = text.rpartition('@')
    if not at:
        return load_wheels(text)
    try:
        value = float(rate)
    except ValueError:
        raise ParameterError(
            '--models', '', f'{text!r} is not allowed; must be MODEL or MODEL@HZ'
        ) from None
    model = load_wheels(name)
    try:
        return dataclasses.replace(model, rate=value)
    except ParameterError as error:
        raise ParameterError('--models', f'{text}: {error.key}', error.problem) from None
