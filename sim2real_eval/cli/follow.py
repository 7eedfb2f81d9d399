# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real follow`: a simulated robot drives a recorded path again."""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.signals.options import SignalOptions
from sim_sensors.core.errors import MotionError, ParameterError, not_among
from sim_sensors.core.parameters import Parameters, parameter
from . import arguments, sensors
from .options import OptionSet
from .output import attempt_each, conclude, print_notes, print_signals, print_table, progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sim2real_eval.benches.following import FollowedRun
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.recording.recording import Recording
    from sim2real_eval.signals.comparison import SignalComparison
    from sim_sensors.following.follower import FollowSettings
    from sim_sensors.motion.waypoints import Waypoints
    from sim_sensors.world.geodesy import LocalFrame

_CONTROLLERS = (
    'open_loop', 'yaw_pid', 'yaw_distance_pid', 'pure_pursuit', 'nonlinear', 'lqr',
    'neural_network',
)  # fmt: skip

DESCRIPTION = (
    'Take waypoints from recordings or CSV tables (t,x,y[,theta]), let a simulated '
    'differential-drive robot follow them, and report the tracking errors of each controller.'
)
EPILOG = """\
controllers: open_loop, yaw_pid, yaw_distance_pid (as in [Cesenek2019]), pure_pursuit,
             nonlinear (with a proof of convergence), lqr (optimal), neural_network (trained on
             lqr and pure_pursuit, as [Mahajan2024] drove), or all

examples:
  sim2real follow my_bag
  sim2real follow my_bag --controllers all --set robot.slip=0.02 --imu chrono --out driven
  sim2real follow waypoints.csv --controllers nonlinear --out driven
  sim2real follow my_bag --controllers yaw_pid --imu bno055_fusion --out driven --compare
  sim2real follow my_bag --mag bmm150 --wheels differential --world room.yaml --out driven
"""


@dataclasses.dataclass(frozen=True)
class FollowOptions(Parameters):
    """Path, controllers and sensors of a simulated robot."""

    controllers: str = parameter('all', '', 'Controllers, separated by commas; see below.')
    waypoints: str = parameter(
        'auto',
        '',
        'Source of the waypoints: truth or gps; auto: truth if recorded.',
        choices=('auto', 'truth', 'gps'),
    )
    rate: float = parameter(
        5.0, 'Hz', 'Largest number of waypoints per second of a recording.', above=0.0
    )
    start: float = parameter(0.0, 's', 'Time skipped at the beginning.', minimum=0.0)
    duration: float | None = parameter(
        None, 's', 'Longest time followed.', optional=float, above=0.0
    )
    config: str = parameter('', '', 'YAML file with robot, controllers and pose (see the docs).')
    imu: str = parameter('none', '', 'IMU for the recordings: none, name or file.')
    gps: str = parameter('none', '', 'GPS for the recordings: none, name or file.')


_FOLLOW = OptionSet(
    FollowOptions,
    controllers='--controllers LIST',
    config='--controller-config FILE',
    rate='--waypoint-rate',
    imu='--imu MODEL',
    gps='--gps MODEL',
)
_COMPARISON = OptionSet(SignalOptions, 'yaw')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    arguments.add_recordings(parser, 'source of the waypoints: a recording, or a CSV table')
    _FOLLOW.add(parser, kept=True)
    arguments.add_list(
        parser, '--set', 'KEY=VALUE', 'parameter of --controller-config, such as robot.slip=0.02'
    )
    sensors.add_other_sensors(
        parser,
        world='starting at the first waypoint (default: standard gravity and the field of the '
        'Earth, no objects)',
        origin='geodetic position of the first waypoint, for --gps and --mag (default: that on '
        'the recorded drive; without recorded fixes that of the world, 43.07,-89.4,260)',
        words='none',
        default='none',
    )
    arguments.add_shared(parser, 'storage')
    arguments.add_out(
        parser,
        'folder for follow.json, errors.csv, plots and recordings (default: none)',
        'overwrite',
    )
    parser.add_argument(
        '--compare',
        action='store_true',
        help='compare the simulated IMU with the recorded one, as `sim2real compare` does: yaw '
        'error, trend, spectra; in DIR/compare',
    )
    _COMPARISON.add(parser)
    arguments.add_shared(parser, 'topic', 'json', 'seed')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches import following as benches
    from sim2real_eval.common.findings import merge_findings
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import following as report
    from sim2real_eval.simulation.twin import Twin
    from sim_sensors.sensor.catalogue import KINDS
    from sim_sensors.world.geodesy import DEFAULT_ORIGIN

    controllers = _controllers(options.controllers)
    settings = _settings(options)
    for name in (*KINDS.names(), 'world'):
        if getattr(options, name) not in (None, '', sensors.NONE) and not options.out:
            raise ParameterError(f'--{name}', '', 'needs --out')
    refused = {'real': 'the robot drives the path again'}
    origin, world, other_models = sensors.surroundings(options, refused)
    twin = Twin(
        'driven',
        gps=sensors.load_single('gps', options.gps, refused),
        imu=sensors.load_single('imu', options.imu, refused),
        others=other_models,
    )
    if options.origin is not None and not twin.models.keys() & {'gps', 'mag'}:
        raise ParameterError('--origin', '', 'needs --gps or --mag, and --out')
    if options.compare and twin.imu is None:
        raise ParameterError('--compare', '', 'needs --imu and --out')
    if options.yaw is not None and not options.compare:
        raise ParameterError('--yaw', '', 'needs --compare, --imu and --out')
    if options.out:
        check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    names: list[str] = []

    def attempt(source: RecordingSource) -> tuple[_RunInput, FollowedRun]:
        run_input = _waypoints(source, options, DEFAULT_ORIGIN if world is None else world.frame)
        if run_input.name in names:
            raise MotionError(
                f'{source.path}: {run_input.name!r} is also the name of another run; rename one'
            )
        followed = benches.follow_waypoints(
            run_input.name,
            run_input.waypoints,
            settings,
            controllers,
            seed=options.seed,
            start_ns=run_input.start_ns,
            origin=run_input.origin if origin is None else origin,
        )
        names.append(run_input.name)
        return run_input, followed

    done, failures = attempt_each(
        arguments.sources(options.recordings, options.topic), attempt, 'runs'
    )
    followed, runs = [run_input for run_input, _ in done], [run for _, run in done]
    notes = merge_findings(
        ('followed', benches.waypoint_findings(run_input.waypoints)) for run_input in followed
    )
    record = report.following_record(runs, settings, seed=options.seed, notes=notes)
    comparison = None

    def compare(fresh: Path, recordings: Mapping[str, Sequence[Recording]]) -> None:
        nonlocal comparison
        if options.compare:
            folder = fresh / 'compare'
            comparison, record['compare'] = _comparison(followed, recordings, folder, options)

    if options.out:
        with progress_bar(len(runs), 'writing') as advance:
            report.write_following(
                options.out,
                runs,
                record,
                twin,
                world,
                seed=options.seed,
                scenarios={run_input.name: run_input.scenario for run_input in followed},
                storage=options.storage,
                overwrite=options.overwrite,
                advance=advance,
                beside=compare,
            )

    def print_result() -> None:
        what = runs[0].name if len(runs) == 1 else f'{len(runs)} runs together'
        title = f'Tracking errors, {what}'
        print_table(report.following_console_table(benches.pooled_statistics(runs), title=title))
        if comparison is not None:
            print_signals(comparison, Path(options.out) / 'compare')
        print_notes(notes)

    return conclude(options, record, print_result, 'Tables, plots and recordings', failures)


@dataclasses.dataclass(frozen=True)
class _RunInput:
    """Waypoints of one source; the recording is None unless it is compared."""

    name: str
    scenario: str
    waypoints: Waypoints
    start_ns: int
    origin: LocalFrame
    recording: Recording | None


def _comparison(
    followed: Sequence[_RunInput],
    recordings: Mapping[str, Sequence[Recording]],
    folder: Path,
    options: argparse.Namespace,
) -> tuple[SignalComparison, dict[str, Any]]:
    """Compare the driven recordings with the real ones, and write the result into a folder."""
    from sim2real_eval.report.signals import write_signals
    from sim2real_eval.signals.answer import comparison_record
    from sim2real_eval.signals.comparison import compare_signals

    real = [run_input.recording for run_input in followed if run_input.recording is not None]
    comparison = compare_signals(real, recordings, _COMPARISON.make(options, seed=options.seed))
    record = comparison_record(comparison)
    write_signals(folder, comparison, record)
    return comparison, record


def _controllers(text: str) -> tuple[str, ...]:
    controllers: list[str] = []
    for name in filter(None, (part.strip() for part in text.split(','))):
        if name not in (*_CONTROLLERS, 'all'):
            problem = not_among(f'{name!r} is not allowed', name, (*_CONTROLLERS, 'all'))
            raise ParameterError('--controllers', '', problem)
        controllers += _CONTROLLERS if name == 'all' else [name]
    if not controllers:
        raise ParameterError('--controllers', '', 'is empty; must name one or more controllers')
    return tuple(dict.fromkeys(controllers))


def _settings(options: argparse.Namespace) -> FollowSettings:
    from sim_sensors.core.config_files import read_yaml_mapping
    from sim_sensors.following.follower import FollowSettings

    mapping: dict[str, Any] = read_yaml_mapping(Path(options.config)) if options.config else {}
    settings = FollowSettings.from_mapping(mapping, options.config or 'follow')
    for text in options.set:
        key, value = arguments.key_value(text)
        whole = settings.to_mapping()
        place: Any = whole
        *above, last = key.split('.')
        for name in above:
            place = place.setdefault(name, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise ParameterError(
                '--set', key, 'unknown parameter; must be a key of --controller-config'
            )
        place[last] = value
        settings = FollowSettings.from_mapping(whole, '--set')
    return settings


def _waypoints(
    source: RecordingSource, options: argparse.Namespace, unknown: LocalFrame
) -> _RunInput:
    """Return the waypoints of a source; `unknown` is the position of one without fixes."""
    from sim2real_eval.benches.following import place_of, waypoints_of
    from sim2real_eval.recording.reading import scenario_from_name
    from sim_sensors.motion.motions import START_NS
    from sim_sensors.motion.waypoints import read_waypoints

    path = Path(source.path)
    recording = None
    if path.suffix == '.csv' and path.is_file():
        if options.compare:
            raise ParameterError(
                '--compare',
                '',
                f'{path} is a table without an IMU to compare with; give a recording',
            )
        name = (source.name or path.stem).removesuffix('.csv')
        scenario = scenario_from_name(name)
        waypoints, start_ns = read_waypoints(path), START_NS
    else:
        recording = source.read()
        if options.compare:
            recording.require('truth')
            recording.require('imu')
        name, scenario = recording.name, recording.scenario
        waypoints, start_ns = waypoints_of(recording, options.waypoints, rate=options.rate)
    if options.start or options.duration is not None:
        before = waypoints.origin[2]
        try:
            waypoints = waypoints.cut(options.start, options.duration or math.inf)
        except MotionError as error:
            raise MotionError(f'--start, --duration: {name}: {error}') from None
        start_ns += round((waypoints.origin[2] - before) * 1e9)
    origin = unknown
    if recording is not None:
        origin = place_of(recording, waypoints, options.waypoints, unknown=unknown)
    compared = recording if options.compare else None
    return _RunInput(name, scenario, waypoints, start_ns, origin, compared)
