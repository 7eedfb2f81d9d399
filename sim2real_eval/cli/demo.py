# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real demo`: the main job on synthetic stand-ins for real recordings."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.workers import Workers
from sim2real_eval.study.options import PROFILE
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_json
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.motion.road_classes import ROADS
from .arguments import add_shared
from .options import OptionSet
from .output import PRELOADED

if TYPE_CHECKING:
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.recordings import StudyRecording
    from sim_sensors.motion.vehicles import AckermannVehicle

_COMMAND = ('sim2real', 'demo')
_NEXT_STEP = (
    'Next, with your own bags:',
    '    sim2real vepd MY_BAGS/* --models paper --imu real --out result',
)
_NO_ROAD = 'none'
_LABEL = (
    'The recordings in this folder are synthetic: a simulated vehicle with simulated sensors '
    'stands in\nfor real ones. Made by `sim2real demo`; a new demo replaces this folder.\n'
)


DESCRIPTION = (
    'Drive a vehicle along a line, a circle and a half-sine, record synthetic sensors that '
    'stand in for real ones, and compare the five GPS models of the paper with them. All '
    'results are labelled as synthetic.'
)
EPILOG = """\
examples:
  sim2real demo
  sim2real demo --runs 10 --seed 1 --out my_demo
  sim2real demo --road C --out rough
  sim2real demo --judge-config clean --judge-config paper_released
"""


@dataclasses.dataclass(frozen=True)
class DemoOptions(Parameters):
    """Size and folder of the demo."""

    out: str = parameter(
        'sim2real_demo',
        '',
        'Folder for report.html, study.json, tables, runs and recordings; an older demo is '
        'replaced.',
    )
    runs: int = parameter(5, '1', 'Recordings per manoeuvre.', minimum=1)
    road: str = parameter(
        _NO_ROAD,
        '',
        'ISO 8608 class of the road under a car on springs, simulated in MuJoCo; none: a car that '
        'moves in the plane.',
        choices=(_NO_ROAD, *ROADS),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    OptionSet(DemoOptions, out='--out DIR').add(parser, kept=True)
    parser.add_argument(
        '--judge-config',
        action='append',
        choices=('clean', 'paper_released'),
        metavar='NAME',
        help=f'profile, clean or paper_released (default {PROFILE}); each use adds a judge',
    )
    add_shared(parser, 'json', 'verbose', 'quiet', 'seed', 'jobs')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    with Workers(options.jobs) as workers:
        workers.start(PRELOADED)
        return _demonstrate(options, workers)


def _demonstrate(options: argparse.Namespace, workers: Workers) -> int:
    from sim2real_eval.common.file_list import list_files
    from sim2real_eval.recording.writing import bag_files
    from sim2real_eval.study.outcome import MARK
    from .study import carry_out

    folder = Path(options.out)
    plan = plan_of(options)
    options.overwrite = _is_another(folder, plan)

    @contextlib.contextmanager
    def beside(outcome: StudyOutcome) -> Iterator[None]:
        names = [recording.name for recording in plan.recordings]
        places = [f'recordings/{name}/{file}' for name in names for file in bag_files(name)]
        list_files(folder, MARK, ['SYNTHETIC.txt', *places])
        (folder / 'SYNTHETIC.txt').write_text(_LABEL, encoding='utf-8')
        place = folder / 'recordings'
        place.mkdir(exist_ok=True)
        # Each appears when it is complete, and stays if the demo is interrupted.
        missing = [
            recording for recording in plan.recordings if not (place / recording.name).exists()
        ]
        wait = workers.begin_map(functools.partial(_write, folder=place), missing)
        yield
        wait()

    return carry_out(
        plan, options, workers, plain_language=True, next_step=('', *_NEXT_STEP), beside=beside
    )


def _write(recording: StudyRecording, *, folder: Path) -> None:
    from sim2real_eval.recording.writing import write_recording

    write_recording(recording.read(), folder / recording.name)


def plan_of(options: argparse.Namespace) -> StudyPlan:
    """Return the plan of the demo that the options name."""
    judges = options.judge_config or [PROFILE]
    return _plan(options.seed, options.runs, options.road, judges)


def _plan(seed: int, runs: int, road: str, judges: Sequence[str]) -> StudyPlan:
    """Return the study: stand-ins, the paper's models, and profiles of the judge."""
    from sim2real_eval.judge.setup import JudgeSetup
    from sim2real_eval.simulation.twin import Twin
    from sim2real_eval.study.options import StudyOptions
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.recordings import PathDrive, StandIn, StudyRecording
    from sim2real_eval.study.study_file import StudyFile
    from sim2real_eval.study.variants import StudyJudge
    from sim_sensors.core.shipped import config_path
    from sim_sensors.gps.gps import load_gps
    from sim_sensors.imu.imu import load_imu
    from sim_sensors.motion.paths import DRIVES
    from sim_sensors.motion.vehicles import ART
    from .sensors import twins

    sensors = Twin(
        'stand_in',
        gps=load_gps(config_path('demo', 'gps.yaml')),
        imu=load_imu(config_path('demo', 'imu.yaml')),
    )
    vehicle: AckermannVehicle = ART if road == _NO_ROAD else _on_springs(road)
    drives = [
        PathDrive(scenario, seed, f'{scenario}_{number}', vehicle=vehicle)
        for scenario in DRIVES
        for number in range(1, runs + 1)
    ]
    where = '' if road == _NO_ROAD else f', on springs (road: {road})'
    chosen = [word for name in judges for word in ('--judge-config', name)]
    chosen += [] if road == _NO_ROAD else ['--road', road]
    return StudyPlan.from_file(
        StudyFile(
            title='Demo: the GPS models of the paper against a stand-in for real sensors' + where,
            # Its IMU has no orientation.
            options=StudyOptions(seed=seed, start_heading=True),
            recordings=tuple(
                StudyRecording(drive.run, '', StandIn(drive, sensors)) for drive in drives
            ),
            twins=twins('paper', 'chrono'),
            judges=tuple(
                StudyJudge(Path(name).stem, 'embedded', JudgeSetup.load(name)) for name in judges
            ),
            command=(*_COMMAND, '--seed', str(seed), '--runs', str(runs), *chosen),
        )
    )


def _on_springs(road: str) -> AckermannVehicle:
    from sim_sensors.motion.mujoco_motion import load_mujoco
    from sim_sensors.motion.roads import SprungCar

    # Before anything is written.
    load_mujoco()
    return SprungCar(road=road)


def _is_another(folder: Path, plan: StudyPlan) -> bool:
    """Return True for a folder with another demo, which will be replaced.

    An incomplete run of the same demo is continued. Raises Sim2RealError when the folder holds
    something else.
    """
    from sim2real_eval.study.outcome import MARK
    from sim2real_eval.study.plan import describe_change

    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    try:
        old = read_json(folder / MARK)
        if tuple(old['command'][:2]) != _COMMAND:
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Sim2RealError(
            f'{folder}: exists and is not a demo folder; choose another --out'
        ) from None
    return describe_change(old, plan.record) is not None
