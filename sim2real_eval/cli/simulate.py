# SPDX-License-Identifier: Apache-2.0
"""`sim2real simulate`: recordings with simulated sensors."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sim2real_eval.cli.arguments import (
    add_json,
    add_seed,
    add_storage,
    add_topics,
    at_least,
    sources,
)
from sim2real_eval.cli.output import print_json, print_notes, progress_bar, report_failures
from sim2real_eval.cli.sensor_arguments import (
    add_origin,
    add_other_sensors,
    add_set,
    motion_parameters,
    origin_of,
    other_sensors,
    world_of,
)
from sim2real_eval.common.findings import from_records, to_records
from sim_sensors.core.errors import ParameterError, Sim2RealError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sim2real_eval.recording.reading import Source
    from sim2real_eval.recording.recording import Recording
    from sim2real_eval.simulation.twin import Twin
    from sim_sensors.world.world import World

HELP = 'a motion or a recorded truth -> recordings with simulated sensors'
DESCRIPTION = (
    'Write recordings (rosbag2 or CSV folders) with ground truth, IMU and GPS, '
    'and a magnetometer, a camera, wheels and poses from tags where asked for.'
)
EPILOG = """\
motions: drive_line, drive_circle, drive_half_sine (the ART vehicle, each run a little different);
         standstill, line, circle, half_sine, figure_eight (analytic, with --set KEY=VALUE);
         constant_twist, accelerating, swaying (the same in space)

examples:
  sim2real simulate --motion drive_circle --runs 10 --gps ch_rw --imu chrono --out circles
  sim2real simulate --motion circle --set radius=5 --set speed=2 --duration 30 --out circle
  sim2real simulate --motion circle --origin 48.137,11.575,520 --out munich
  sim2real simulate --motion circle --mag bmm150 --world dipole_room --out room
  sim2real simulate --truth my_bag --camera webcam_vga --world my_room.yaml --out seen
  sim2real simulate --truth my_bag --gps my_receiver.yaml --imu airsim --out twin
  sim2real simulate --truth motion_capture --gps none --imu xsens_mtx --mag xsens_mtx --out indoors
"""


_DURATION = 20.0
_NONE = 'none'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument('--motion', metavar='NAME', help='motion to simulate, see below')
    where.add_argument(
        '--truth', nargs='+', metavar='PATH', help='recordings whose true motion is measured anew'
    )
    add_set(parser)
    parser.add_argument(
        '--duration',
        type=at_least(0, float, above=True),
        metavar='S',
        help=f'of a motion (default {_DURATION:g})',
    )
    parser.add_argument(
        '--runs', type=at_least(1, int), default=1, metavar='N', help='recordings (default 1)'
    )
    parser.add_argument(
        '--gps',
        default='ch_rw',
        metavar='MODEL',
        help='GPS model, file, real or none (default ch_rw)',
    )
    parser.add_argument(
        '--imu', default='chrono', metavar='MODEL', help='IMU model, file or real (default chrono)'
    )
    add_other_sensors(parser, world='origin (default: standard gravity, the Earth alone)')
    add_origin(
        parser,
        'where the coordinates of the motion begin (default that of the world, 43.07,-89.4,260; '
        'with --truth where the recorded fixes say)',
    )
    add_topics(parser)
    add_storage(parser)
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the recordings')
    add_json(parser)
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    import dataclasses
    from pathlib import Path

    from sim2real_eval.cli.model_lists import twins
    from sim2real_eval.recording.writing import write_recording
    from sim2real_eval.simulation.twin import REAL_SENSOR

    if options.gps == _NONE and options.imu == REAL_SENSOR:
        raise ParameterError('--imu', '', "'real' does not go with --gps none; must be a model")
    variants = twins(REAL_SENSOR if options.gps == _NONE else options.gps, options.imu)
    world = world_of(options)
    beside = other_sensors(options, world)
    if len(variants) > 1:
        raise ParameterError('--gps, --imu', '', 'name several models; must name one each')
    if options.motion and REAL_SENSOR in (options.gps, options.imu):
        raise ParameterError('--gps, --imu', '', 'real goes with --truth only')
    if options.origin is not None and options.gps == REAL_SENSOR:
        raise ParameterError('--origin', '', 'goes with simulated GPS only, not with --gps real')
    out = Path(options.out)
    twin = dataclasses.replace(variants[0], others=beside)
    groups = _twins(options, twin, world) if options.truth else _motions(options, twin, world, out)
    written: list[dict[str, Any]] = []
    failures = []
    with progress_bar(options.runs * len(groups), 'recordings') as advance:
        for group in groups:
            left = options.runs
            try:
                for recording in group:
                    if options.gps == _NONE:
                        # Of the sensors that a reference may be made from, none is left then.
                        recording = dataclasses.replace(
                            recording.with_messages('gps', None), reference=None
                        )
                    target = out / recording.name
                    write_recording(recording, target, storage=options.storage)
                    notes = to_records(recording.notes)
                    written.append(
                        {'path': str(target), 'scenario': recording.scenario, 'notes': notes}
                    )
                    advance()
                    left -= 1
            except Sim2RealError as error:
                failures.append(str(error))
                # A truth that is broken takes all its runs along.
                for _ in range(left):
                    advance()
    report_failures(failures, of=len(failures) + len(written))
    if options.json:
        print_json(written)
    else:
        for one in written:
            print(one['path'])
            print_notes(from_records(one['notes']))
    return 1 if failures else 0


def _motions(
    options: argparse.Namespace, twin: Twin, world: World | None, out: Path
) -> list[Iterator[Recording]]:
    """Return one group: the runs of a motion. Nothing is made when one of them is there."""
    from sim2real_eval.simulation.synthetic import synthetic_recording
    from sim_sensors.motion.motions import motion_of
    from sim_sensors.world.geodesy import DEFAULT_ORIGIN

    if options.topic:
        raise ParameterError('--topic', '', 'goes with --truth only')
    parameters = motion_parameters(options)
    scenario = options.motion.removeprefix('drive_')
    origin = origin_of(options) or (DEFAULT_ORIGIN if world is None else world.frame)
    names = [f'{scenario}_{number}' for number in range(1, options.runs + 1)]
    for name in names:
        if (out / name).exists():
            raise Sim2RealError(f'{out / name}: exists already; choose another --out')

    def runs() -> Iterator[Recording]:
        for name in names:
            motion = motion_of(
                options.motion,
                seed=options.seed,
                run=name,
                duration=_DURATION if options.duration is None else options.duration,
                parameters=parameters,
            )
            yield synthetic_recording(
                motion,
                twin,
                seed=options.seed,
                run=name,
                scenario=scenario,
                origin=origin,
                world=world,
            )

    return [runs()]


def _twins(
    options: argparse.Namespace, twin: Twin, world: World | None
) -> list[Iterator[Recording]]:
    """Return a group for each recorded truth, so that one that is broken spoils no other."""
    import dataclasses

    from sim2real_eval.simulation.twin_maker import TwinMaker

    for flag, value in (('--set', options.set), ('--duration', options.duration)):
        if value:
            raise ParameterError(flag, '', 'goes with --motion only')

    origin = origin_of(options)

    def runs(source: Source) -> Iterator[Recording]:
        maker = TwinMaker(
            source.read(), seed=options.seed, purpose='recording', origin=origin, world=world
        )
        for number in range(1, options.runs + 1):
            recording = maker.make(twin, number)
            if options.runs > 1:
                name = f'{recording.name}_{number}'
                recording = dataclasses.replace(recording, name=name)
            yield recording

    return [runs(source) for source in sources(options.truth, options.topic, None)]
