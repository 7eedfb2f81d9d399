# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real wheels`: drift of wheel odometry alone and with a camera, by noise model."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.core.parameters import Parameters, parameter, parse_number
from . import output
from .arguments import add_out, add_recordings, add_shared, motion_parameters, sources
from .options import OptionSet
from .sensors import load_single

if TYPE_CHECKING:
    from sim2real_eval.benches.wheels import RecordedMotion, WheelStudy
    from sim2real_eval.recording.reading import RecordingSource
    from sim_sensors.wheels.wheel_odometry import WheelOdometryModel

DESCRIPTION = (
    'Simulate a drive with wheel odometry and tag poses, and judge it with the profiles wheels '
    'and wheels_vision. Prints the drift of both and the VEPD of each noise model '
    '(docs/reference/sensors/wheels.md).'
)
EPILOG = """\
The first model stands for the real robot: VEPD compares the other models with its runs.
MODEL@HZ sets the rate, on which the noise of frc_swerve depends. The word errors stands
for six models of that robot with one error each: squared, per_distance, slip, radius,
steering_text, steering_code.

The default is 50 runs of 60 s, which take about 10 s. The first run also compiles the
judge, which takes a minute or more.

examples:
  sim2real wheels
  sim2real wheels --wheels swerve,errors
  sim2real wheels --wheels differential,my_robot.yaml --motion circle --runs 20 --out drift
  sim2real wheels my_bag --wheels my_robot.yaml,differential --world my_room.yaml
  sim2real wheels --vision frc_2024 --world frc_2023_field --motion line --json
"""


@dataclasses.dataclass(frozen=True)
class WheelOptions(Parameters):
    """Motion, sensors and statistics of a comparison of wheel models."""

    models: str = parameter(
        'swerve,swerve@100,frc_swerve,frc_swerve@100',
        '',
        'Wheel odometry, separated by commas: names or files, also as MODEL@HZ, or errors (see '
        'below).',
    )
    vision: str = parameter('tags', '', 'Vision pose: name or file.')
    world: str = parameter('tag_ring', '', 'World or file with tags.')
    motion: str = parameter(
        'figure_eight', '', 'Motion of the robot, named as for `sim2real simulate`.'
    )
    duration: float = parameter(60.0, 's', 'Duration of the motion.', above=0.0)
    runs: int = parameter(
        10,
        '1',
        'Runs of each model, each with its own noise. The first model gets as many more, which '
        'stand for the real robot.',
        minimum=2,
    )


_REFUSED = dict.fromkeys(('real', 'none'), 'wheels and vision are compared in simulation')
_WHEELS = OptionSet(
    WheelOptions, models='--wheels --models LIST', vision='--vision MODEL', world='--world WORLD'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    meaning = 'recording whose true motion is driven; --world uses the coordinates of its truth'
    add_recordings(parser, f'{meaning} (default: --motion)', nargs='*')
    _WHEELS.add(parser, 'models', 'vision', 'world')
    _WHEELS.add(parser, 'motion')
    add_shared(parser, 'set')
    _WHEELS.add(parser, 'duration', 'runs')
    add_shared(parser, 'topic')
    add_out(parser, 'folder for wheels.json, wheels.png and runs.csv', 'overwrite', 'json', 'seed')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.wheels import Driven, WheelSetup, drive_variants, study_of
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report.wheels import MARK, wheel_record, write_wheels
    from sim_sensors.world.world import load_world

    chosen = _WHEELS.make(options)
    setup = WheelSetup(
        variants=_variants(chosen.models),
        vision=load_single('vision', chosen.vision, _REFUSED),
        world=load_world(chosen.world),
        runs=chosen.runs,
        seed=options.seed,
    )
    drives = (
        _recorded_drives(options) if options.recordings else [_simulated_drive(options, chosen)]
    )
    if options.out:
        check_result_folder(options.out, MARK, overwrite=options.overwrite)

    def attempt(drive: Callable[[], RecordedMotion], step: Callable[[], None]) -> Driven:
        return drive_variants(setup, drive(), step)

    runs_per_drive = setup.runs * (len(setup.variants) + 1)
    driven, failures = output.attempt_each_in_steps(drives, attempt, 'runs', runs_per_drive)
    output.report_failures(failures, of=len(drives))
    study = study_of(setup, driven)
    if options.out:
        write_wheels(options.out, study, overwrite=options.overwrite)
    record = wheel_record(study)
    return output.conclude(
        options, record, lambda: _show(study), 'Plot, record and runs', failures
    )


def _show(study: WheelStudy) -> None:
    from sim2real_eval.report.wheels import wheel_table

    output.print_table(wheel_table(study))
    first = next(iter(study.setup.variants))
    print(f'VEPD: distance from runs of {first} that stand for the real robot.')
    frames, in_view, poses, accepted = (
        sum(getattr(drive, name) for drive in study.driven)
        for name in ('frames', 'in_view', 'poses', 'fused_poses')
    )
    blind = max(drive.longest_blind for drive in study.driven)
    print(
        f'Camera: a tag in view in {in_view} of {frames} frames; {poses:.0f} poses passed its '
        f'gate, the judge fused {accepted:.0f}; longest time without a pose {blind:.1f} s.'
    )
    output.print_notes(study.notes())


def _simulated_drive(
    options: argparse.Namespace, chosen: WheelOptions
) -> Callable[[], RecordedMotion]:
    """Return a function that simulates the drive of --motion; wrong options are refused now."""
    from sim2real_eval.benches.wheels import RecordedMotion
    from sim_sensors.motion.motions import motion_of

    if options.topic:
        raise ParameterError('--topic', '', 'needs recordings')
    motion = motion_of(
        chosen.motion,
        seed=options.seed,
        run='wheels',
        duration=chosen.duration,
        parameters=motion_parameters(options.set),
    )
    drive = RecordedMotion.of_motion(motion, chosen.motion)
    if drive.stands:
        problem = 'stands still, so there is no speed to compare'
        must = 'must be a motion that drives, such as figure_eight, circle or line'
        raise ParameterError('--motion', '', f'{chosen.motion!r} {problem}; {must}')
    return lambda: drive


def _recorded_drives(options: argparse.Namespace) -> list[Callable[[], RecordedMotion]]:
    """Return a function per truth that reads its drive, so that one drive may fail alone."""
    from sim2real_eval.benches.wheels import RecordedMotion

    if options.set:
        raise ParameterError('--set', '', 'cannot be used with recordings')
    _WHEELS.refuse(options, 'cannot be used with recordings', 'motion', 'duration')

    def read(source: RecordingSource) -> RecordedMotion:
        drive = RecordedMotion.of_recording(source.read())
        if drive.stands:
            raise MotionError(
                f'{source.path}: the robot stands still, so there is no speed to compare; give '
                'a recording of a drive'
            )
        return drive

    recordings = sources(options.recordings, options.topic)
    return [functools.partial(read, source) for source in recordings]


def _variants(models: str) -> dict[str, WheelOdometryModel]:
    """Return the models of --wheels by label."""
    from sim2real_eval.benches.wheels import SINGLE_ERRORS, single_errors

    variants: dict[str, WheelOdometryModel] = {}
    for text in (part.strip() for part in models.split(',')):
        named = single_errors() if text == SINGLE_ERRORS else {text: _model(text)}
        for label, model in named.items():
            if label in variants:
                raise ParameterError('--wheels', '', f'{label!r} is given twice')
            variants[label] = model
    return variants


def _model(text: str) -> WheelOdometryModel:
    """Return the model of MODEL or MODEL@HZ."""
    name, at, rate = text.rpartition('@')
    if not at:
        return cast('WheelOdometryModel', load_single('wheels', text, _REFUSED, '--wheels'))
    value = parse_number(rate)
    if value is None:
        raise ParameterError('--wheels', '', f'{text!r} is not allowed; must be MODEL or MODEL@HZ')
    model: WheelOdometryModel = load_single('wheels', name, _REFUSED, '--wheels')
    try:
        return dataclasses.replace(model, rate=value)
    except ParameterError as error:
        raise ParameterError('--wheels', f'{text}: {error.key}', error.problem) from None
