# SPDX-License-Identifier: Apache-2.0
"""`sim2real wheels`: drift of wheels alone and with a camera, by the law of their noise."""

from __future__ import annotations

import argparse
import functools
import itertools
from typing import TYPE_CHECKING

from sim2real_eval.cli.arguments import (
    add_json,
    add_overwrite,
    add_seed,
    add_topics,
    at_least,
    sources,
)
from sim2real_eval.cli.output import (
    print_json,
    print_notes,
    print_table,
    progress_bar,
    report_failures,
)
from sim2real_eval.cli.sensor_arguments import add_set, motion_parameters
from sim_sensors.core.errors import MotionError, ParameterError, Sim2RealError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim2real_eval.benches.wheels.run import RecordedMotion
    from sim2real_eval.benches.wheels.study import Driven, WheelSetup, WheelStudy
    from sim2real_eval.recording.reading import Source
    from sim_sensors.wheels.wheel_odometry import WheelOdometryModel

_MOTION = 'figure_eight'
_DURATION = 60.0
_MODELS = 'swerve,swerve@100,frc_swerve,frc_swerve@100'

HELP = 'drift of wheel odometry alone and with poses from tags, by noise model'
DESCRIPTION = (
    'Drive, measure wheels and tags, and judge with the profiles wheels and '
    'wheels_vision: drift of both, and the VEPD of each noise model (docs/sensors/wheels.md).'
)
EPILOG = """\
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
  sim2real wheels --truth my_bag --models my_robot.yaml,differential --world my_room.yaml
  sim2real wheels --vision frc_2024 --world frc_2023_field --motion line --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
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
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        '--motion',
        metavar='NAME',
        help=f'motion, as for simulate, that drives (default {_MOTION})',
    )
    where.add_argument(
        '--truth',
        nargs='+',
        metavar='PATH',
        help='recordings whose true motion is driven instead; the coordinates of --world are '
        'those of the truth',
    )
    add_set(parser)
    parser.add_argument(
        '--duration', type=at_least(0, float, above=True), metavar='S',
        help=f'of a motion (default {_DURATION:g})',
    )  # fmt: skip
    parser.add_argument(
        '--runs', type=at_least(2, int), default=10, metavar='N',
        help='of each model on the motion or on each truth, with other noise, and as many more '
        'of the first, which stand for the real robot (default 10)',
    )  # fmt: skip
    add_topics(parser)
    parser.add_argument('--out', metavar='DIR', help='folder for plot, record and runs')
    add_overwrite(parser)
    add_json(parser)
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.wheels.study import study_of
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report.wheels import MARK, wheel_record, write_wheels

    setup = _setup(options)
    drives = _recorded(options) if options.truth else [_simulated(options)]
    if options.out:
        check_result_folder(options.out, MARK, overwrite=options.overwrite)
    failures: list[str] = []
    driven = _driven(setup, drives, failures)
    report_failures(failures, of=len(drives))
    study = study_of(setup, driven)
    if options.out:
        write_wheels(options.out, study, overwrite=options.overwrite)
    if options.json:
        print_json(wheel_record(study))
    else:
        _show(study)
        if options.out:
            print(f'Plot, record and runs: {options.out}')
    return 1 if failures else 0


def _show(study: WheelStudy) -> None:
    from sim2real_eval.report.wheels import wheel_table

    print_table(wheel_table(study))
    first = next(iter(study.setup.variants))
    print(f'VEPD: distance from runs of {first} that stand for the real robot.')
    frames, in_view, poses, taken = (
        sum(getattr(each, name) for each in study.driven)
        for name in ('frames', 'in_view', 'poses', 'taken')
    )
    blind = max(each.longest_blind for each in study.driven)
    print(
        f'Camera: a tag in view in {in_view} of {frames} frames; {poses:.0f} poses passed its '
        f'gate, the judge took {taken:.0f}; none for {blind:.1f} s at most.'
    )
    print_notes(study.notes())


def _driven(
    setup: WheelSetup, drives: list[Callable[[], RecordedMotion]], failures: list[str]
) -> list[Driven]:
    """Return what became of each drive but of those that failed, which name the reason."""
    from sim2real_eval.benches.wheels.study import drive_variants

    each = setup.runs * (len(setup.variants) + 1)
    driven = []
    with progress_bar(each * len(drives), 'runs') as advance:
        for drive in drives:
            left = itertools.count(each, -1)

            def count(left: itertools.count[int] = left) -> None:
                next(left)
                advance()

            try:
                driven.append(drive_variants(setup, drive(), count))
            except Sim2RealError as error:
                failures.append(str(error))
                # A truth that is broken takes all its runs along.
                for _ in range(next(left)):
                    advance()
    return driven


def _setup(options: argparse.Namespace) -> WheelSetup:
    from sim2real_eval.benches.wheels.study import WheelSetup
    from sim_sensors.vision.vision_pose import load_vision
    from sim_sensors.world.world import load_world

    return WheelSetup(
        variants=_variants(options.models),
        vision=load_vision(options.vision),
        world=load_world(options.world),
        runs=options.runs,
        seed=options.seed,
    )


def _simulated(options: argparse.Namespace) -> Callable[[], RecordedMotion]:
    """Return what gives the drive of --motion, which is made here: wrong options are refused."""
    from sim2real_eval.benches.wheels.run import RecordedMotion
    from sim_sensors.motion.motions import motion_of

    if options.topic:
        raise ParameterError('--topic', '', 'goes with --truth only')
    name = options.motion or _MOTION
    motion = motion_of(
        name,
        seed=options.seed,
        run='wheels',
        duration=_DURATION if options.duration is None else options.duration,
        parameters=motion_parameters(options),
    )
    drive = RecordedMotion.of_motion(motion, name)
    if drive.stands:
        raise ParameterError(
            '--motion',
            '',
            f'{name!r} never leaves its place, so that there is no speed to compare; must drive, '
            'as figure_eight, circle and line do',
        )
    return lambda: drive


def _recorded(options: argparse.Namespace) -> list[Callable[[], RecordedMotion]]:
    """Return what gives the drive of each truth when called, so that one may fail."""
    from sim2real_eval.benches.wheels.run import RecordedMotion

    for flag, value in (('--set', options.set), ('--duration', options.duration)):
        if value:
            raise ParameterError(flag, '', 'goes without --truth only')

    def read(source: Source) -> RecordedMotion:
        drive = RecordedMotion.of_recording(source.read())
        if drive.stands:
            raise MotionError(
                f'{source.path}: the truth never leaves its place, so that there is no speed to '
                'compare; must drive'
            )
        return drive

    found = sources(options.truth, options.topic, None)
    return [functools.partial(read, source) for source in found]


def _variants(models: str) -> dict[str, WheelOdometryModel]:
    """Return the models of --models by label."""
    from sim2real_eval.benches.wheels.study import SINGLE_ERRORS, single_errors

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

    from sim_sensors.wheels.wheel_odometry import load_wheels

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
