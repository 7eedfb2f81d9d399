# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real simulate`: recordings with simulated sensors."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.common.findings import from_records, to_records
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.parameters import Parameters, parameter
from . import arguments, sensors
from .options import OptionSet, optional_text
from .output import attempt_each, conclude, print_notes

if TYPE_CHECKING:
    from sim2real_eval.recording.recording import Recording
    from sim2real_eval.recording.writing import Storage
    from sim2real_eval.simulation.twin import Twin
    from sim_sensors.world.geodesy import LocalFrame
    from sim_sensors.world.world import World

DESCRIPTION = (
    'Write recordings (rosbag2 or CSV folders) with ground truth, IMU and GPS, '
    'and on request a magnetometer, a camera, wheels and poses from tags. Repeating the command '
    'adds missing recordings; existing recordings that differ are an error.'
)
EPILOG = """\
motions: drive_line, drive_circle, drive_half_sine (the ART vehicle, with variation between runs);
         sprung_line, sprung_circle, sprung_half_sine (the same on springs, --set road=C);
         mjcf (a site of a MuJoCo model, --set file=robot.xml --set site=imu);
         standstill, line, circle, half_sine, figure_eight (analytic, with --set KEY=VALUE);
         constant_twist, accelerating, swaying (the same in space);
         hand_held (swaying before the board of --world chessboard, for --camera)

examples:
  sim2real simulate --motion drive_circle --runs 10 --gps ch_rw --imu chrono --out circles
  sim2real simulate --motion circle --set radius=5 --set speed=2 --duration 30 --out circle
  sim2real simulate --motion sprung_circle --set road=C --imu xsens_mtx --out rough
  sim2real simulate --motion circle --gps zed_f9p_rtk --set gps.rate=5 --out circle_5hz
  sim2real simulate --motion circle --origin 48.137,11.575,520 --out munich
  sim2real simulate --motion circle --mag bmm150 --world dipole_room --out room
  sim2real simulate --motion hand_held --imu xsens_mtx --mag xsens_mtx \
      --camera webcam_vga --world chessboard --gps none --out box
  sim2real simulate my_bag --camera webcam_vga --world my_room.yaml --out seen
  sim2real simulate my_bag --gps my_receiver.yaml --imu airsim --out twin
  sim2real simulate --motion circle --duration 60 --faults tunnel.yaml --out tunnel
  sim2real simulate motion_capture --gps none --imu xsens_mtx --mag xsens_mtx --out indoors
"""


@dataclasses.dataclass(frozen=True)
class SimulateOptions(Parameters):
    """Motion, number of runs and models of a simulation."""

    motion: str | None = optional_text(
        'Motion to simulate instead of that of recordings, see below.'
    )
    duration: float = parameter(20.0, 's', 'Duration of the motion.', above=0.0)
    runs: int = parameter(1, '1', 'Number of recordings.', minimum=1)
    gps: str = parameter('ch_rw', '', 'GPS: real (with recordings), none, name or file.')
    imu: str = parameter('chrono', '', 'IMU: real (with recordings), none, name or file.')
    faults: str | None = optional_text('File of faults of IMU and GPS, by time.')


_SIMULATE = OptionSet(
    SimulateOptions, gps='--gps MODEL', imu='--imu MODEL', faults='--faults FILE'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    arguments.add_recordings(
        parser, 'recording whose true motion the simulated sensors measure', nargs='*'
    )
    _SIMULATE.add(parser, 'motion')
    sensors.add_sensor_set(parser, 'parameter of the motion, such as radius=5, or ')
    _SIMULATE.add(parser, 'duration', 'runs', 'gps', 'imu', 'faults')
    sensors.add_other_sensors(
        parser,
        world='origin (default: standard gravity and the field of the Earth, no objects)',
        origin='geodetic position of the coordinate origin (default: that of the world, '
        '43.07,-89.4,260; with recordings: that of the recorded fixes)',
        words='real, none',
        default='real with recordings, otherwise none',
    )
    arguments.add_shared(parser, 'topic', 'storage')
    arguments.add_out(
        parser, 'folder for a recording per run, named after it', 'json', 'seed', required=True
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.recording.writing import write_recording
    from sim2real_eval.simulation.twin import REAL_SENSOR, without_sensor
    from sim_sensors.sensor.catalogue import KINDS
    from sim_sensors.sensor.faults import with_faults

    chosen = _SIMULATE.make(options)
    if bool(options.recordings) == bool(chosen.motion):
        raise ParameterError('simulate', '', 'needs recordings or --motion, and not both')
    refused = {REAL_SENSOR: 'a motion has no recorded sensors'} if chosen.motion else {}
    basic = {
        kind: sensors.sensor_names(kind, getattr(chosen, kind), refused)[0]
        for kind in ('gps', 'imu')
    }
    origin, world, other_models = sensors.surroundings(options, refused)
    twin = sensors.named_twin('simulated', basic)
    twin = dataclasses.replace(twin, others=other_models)
    if not twin.models:
        raise ParameterError('--gps, --imu', '', 'are real or none; give a model of a sensor')
    if options.origin is not None and chosen.gps == REAL_SENSOR:
        raise ParameterError('--origin', '', 'needs a simulated GPS, not --gps real')
    absent = [kind for kind in KINDS.names() if getattr(options, kind) == sensors.NONE]
    out = Path(options.out)
    # Keys of sensors have a dot, those of motions have none.
    settings = [text for text in options.set if '.' in text.partition('=')[0]]
    (twin,) = sensors.set_parameters([twin], settings)
    if chosen.faults:
        models = with_faults(twin.models, chosen.faults)
        twin = dataclasses.replace(twin, imu=models.get('imu'), gps=models.get('gps'))
    options.set = [text for text in options.set if text not in settings]
    runs_of = _twins if options.recordings else _motion
    groups = runs_of(options, chosen, twin, world, origin)
    foreign: list[Path] = []

    def attempt(make: Callable[[], Recording]) -> dict[str, Any]:
        if foreign:
            raise Sim2RealError(
                f'{foreign[0]}: differs from what this command writes; no more are written'
            )
        recording = make()
        for kind in absent:
            recording = without_sensor(recording, kind)
        target = out / recording.name
        if not target.exists():
            write_recording(recording, target, storage=options.storage)
        elif not _is_same(recording, target, options.storage):
            foreign.append(target)
            problem = 'exists and differs from what this command writes'
            raise Sim2RealError(f'{target}: {problem}; choose another --out')
        notes = to_records(recording.notes)
        record = {'path': str(target), 'scenario': recording.scenario, 'notes': notes}
        return {**record, 'set': sensors.sensor_settings(settings)} if settings else record

    written, failures = attempt_each(groups, attempt)

    def print_result() -> None:
        for record in written:
            print(record['path'])
            print_notes(from_records(record['notes']))

    return conclude(options, written, print_result, failures=failures)


def _is_same(recording: Recording, target: Path, storage: Storage) -> bool:
    """Return whether the bag at `target` holds exactly this recording."""
    from sim2real_eval.common.new_files import unfinished_path
    from sim2real_eval.recording.digest import recording_digest
    from sim2real_eval.recording.writing import write_recording

    # Equal recordings give equal bytes, so a second copy is written and compared.
    with unfinished_path(target, target) as again:
        write_recording(recording, again, storage=storage)
        return recording_digest(again) == recording_digest(target)


def _motion(
    options: argparse.Namespace,
    chosen: SimulateOptions,
    twin: Twin,
    world: World | None,
    origin: LocalFrame | None,
) -> list[Callable[[], Recording]]:
    """Return what makes each run of a motion."""
    from sim2real_eval.simulation.twin_maker import synthetic_recording
    from sim_sensors.motion.motions import motion_of
    from sim_sensors.world.geodesy import DEFAULT_ORIGIN

    if options.topic:
        raise ParameterError('--topic', '', 'needs recordings')
    assert chosen.motion is not None
    name, parameters = chosen.motion, arguments.motion_parameters(options.set)
    scenario = name.removeprefix('drive_')
    origin = origin or (DEFAULT_ORIGIN if world is None else world.frame)

    def recording(run: str) -> Recording:
        motion = motion_of(
            name, seed=options.seed, run=run, duration=chosen.duration, parameters=parameters
        )
        return synthetic_recording(
            motion, twin, seed=options.seed, run=run, scenario=scenario, origin=origin, world=world
        )

    names = [f'{scenario}_{number}' for number in range(1, chosen.runs + 1)]
    return [functools.partial(recording, run) for run in names]


def _twins(
    options: argparse.Namespace,
    chosen: SimulateOptions,
    twin: Twin,
    world: World | None,
    origin: LocalFrame | None,
) -> list[Callable[[], Recording]]:
    """Return what makes each run on each recorded truth."""
    from sim2real_eval.preflight.checks import remarks
    from sim2real_eval.simulation.twin_maker import TwinMaker

    if options.set:
        key = options.set[0].partition('=')[0]
        raise ParameterError(
            '--set', key, 'needs --motion; with recordings it must be KIND.PARAMETER'
        )
    _SIMULATE.refuse(options, 'needs --motion', 'duration')

    sources = arguments.sources(options.recordings, options.topic)

    @functools.lru_cache(maxsize=1)
    def maker(place: int) -> TwinMaker:
        truth = sources[place].read()
        truth = dataclasses.replace(truth, notes=remarks(truth, truth.notes))
        return TwinMaker(truth, seed=options.seed, purpose='recording', origin=origin, world=world)

    def recording(place: int, number: int) -> Recording:
        twin_recording = maker(place).make(twin, number)
        if chosen.runs == 1:
            return twin_recording
        return dataclasses.replace(twin_recording, name=f'{twin_recording.name}_{number}')

    return [
        functools.partial(recording, place, number)
        for place in range(len(sources))
        for number in range(1, chosen.runs + 1)
    ]
