# SPDX-License-Identifier: Apache-2.0
"""Arguments that several verbs share, and how their texts become values."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sim2real_eval.cli.inertial_judge import INERTIAL, inertial_judge
from sim_sensors.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real_eval.comparison import Source
    from sim2real_eval.judge.options import Options
    from sim2real_eval.judge_setup import Judge
    from sim2real_eval.twin import Twin

__all__ = [
    'add_jobs',
    'add_json',
    'add_judge',
    'add_judge_kind',
    'add_seed',
    'add_topics',
    'at_least',
    'judge_options',
    'judge_setup',
    'scenario_label',
    'scenario_problem',
    'sources',
    'topic_roles',
    'twins',
]

PAPER_MODELS = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim')


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add --seed."""
    parser.add_argument(
        '--seed',
        type=at_least(0, int),
        default=0,
        metavar='N',
        help='seed of all random draws (default 0); equal seeds give equal bytes',
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add --jobs."""
    parser.add_argument(
        '--jobs',
        type=at_least(1, int),
        default=os.cpu_count() or 1,
        metavar='N',
        help='processes (default: one per core); the result does not depend on it',
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument('--json', action='store_true', help='print the result as JSON')


def add_judge(parser: argparse.ArgumentParser, name: str, default: str | None) -> None:
    """Add the judge's parameter files."""
    shown = f' (default {default})' if default else ''
    parser.add_argument(
        name,
        dest='config',
        metavar='NAME|FILE',
        help='profile (paper_released, clean) or parameter file of ekf_node' + shown + '; with '
        '--judge error_state or gtsam their settings (default default)',
    )
    # Not the default of the option: which one it is follows from --judge.
    parser.set_defaults(config_option=name, config_default=default)
    parser.add_argument(
        '--navsat-config',
        metavar='FILE',
        help='parameter file of navsat_transform_node (default: that of the profile, or '
        'NAME_navsat.yaml beside the file)',
    )
    parser.add_argument(
        '--case',
        metavar='FILE',
        help='case.yaml that sets clock, timers, delivery order and the options below',
    )
    parser.add_argument(
        '--filter',
        dest='filter_kind',
        choices=('ekf', 'ukf'),
        help='filter (default: as case.yaml or the parameter file says, else ekf)',
    )
    parser.add_argument(
        '--correct',
        metavar='LIST',
        help='oddities of robot_localization to mend, by comma: gravity, differential, unscented, '
        'or none (default none: as the original does)',
    )
    parser.add_argument(
        '--latency',
        action='append',
        default=[],
        metavar='TOPIC=SECONDS',
        help='how much later than in the recording messages of a topic arrive; repeatable',
    )
    parser.add_argument(
        '--transforms',
        metavar='FILE',
        help='static transforms, YAML or URDF, that replace or complete those of the recording',
    )
    parser.add_argument(
        '--front-end',
        choices=('navsat_transform', 'enu'),
        help='what turns fixes into odometry/gps (default navsat_transform)',
    )


def add_judge_kind(parser: argparse._ActionsContainer) -> None:
    """Add --judge and --navsat-node: who carries the parameter files out."""
    parser.add_argument(
        '--judge',
        dest='judge_kind',
        choices=('embedded', 'robot_localization', 'judge_node', *INERTIAL),
        default='embedded',
        help='who judges: embedded (default, needs nothing); robot_localization, the real '
        'ekf_node, which must be installed; judge_node, the embedded judge as a node; '
        'error_state, a GNSS/INS filter with bias states; gtsam, a smoother. Nodes run in '
        'lockstep on a ROS domain of their own',
    )
    parser.add_argument(
        '--navsat-node',
        choices=('embedded', 'robot_localization'),
        default='embedded',
        help='with --judge robot_localization, which navsat_transform: ours (default), or the '
        'real one, whose timer is the wall clock, so that the run takes as long as the recording',
    )


def judge_options(options: argparse.Namespace) -> Options:
    """Return what --filter, --correct, --latency, --transforms and --front-end say.

    Raises
    ------
    Sim2RealError
        For a value that is not allowed, or a file of transforms that cannot be read.
    """
    from sim2real_eval.judge.options import Options, corrections, latency_ns
    from sim2real_eval.judge.transform_file import TransformFile

    correct = None
    if options.correct is not None:
        names = [] if options.correct == 'none' else options.correct.split(',')
        correct = corrections((name.strip() for name in names), '--correct', '')
    seconds: dict[str, float] = {}
    for text in options.latency:
        topic, equals, value = text.rpartition('=')
        try:
            if not equals:
                raise ValueError
            seconds[topic] = float(value)
        except ValueError:
            problem = f'{text!r} is not allowed; must be a topic, = and seconds'
            raise ParameterError('--latency', '', problem) from None
    return Options(
        unscented=None if options.filter_kind is None else options.filter_kind == 'ukf',
        correct=correct,
        latency_ns=latency_ns(seconds, '--latency', ''),
        transforms=None
        if options.transforms is None
        else TransformFile.from_file(options.transforms),
        front_end=options.front_end,
    )


def judge_setup(options: argparse.Namespace, case: str | Path | None = None) -> Judge:
    """Return the judge that --judge, --navsat-node, the parameter files and options ask for.

    Parameters
    ----------
    options : argparse.Namespace
    case : str, Path or None
        case.yaml that counts when --case names none; options count more than either.

    Raises
    ------
    Sim2RealError
        Also when ROS or robot_localization is needed and not installed.
    """
    from sim2real_eval.judge_setup import JudgeSetup

    kind, navsat_node = options.judge_kind, options.navsat_node
    if navsat_node != 'embedded' and kind != 'robot_localization':
        raise ParameterError('--navsat-node', '', 'goes with --judge robot_localization only')
    if kind in INERTIAL:
        return inertial_judge(options)
    config = options.config or options.config_default
    if config is None:
        raise ParameterError(
            options.config_option, '', 'is missing; must be a profile or a parameter file'
        )
    setup = JudgeSetup.load(
        config, options.navsat_config, options.case or case, judge_options(options)
    )
    if kind == 'embedded':
        return setup
    if find_spec('rclpy') is None:
        raise ParameterError(
            '--judge',
            '',
            f"{kind!r} needs rclpy: source the setup file of ROS, or pip install '.[ros]'; "
            'embedded needs nothing',
        )
    from sim2real_eval.ros.lockstep import GraphJudgeSetup

    return GraphJudgeSetup.of(setup, kind, navsat_node=navsat_node)


def add_topics(parser: argparse._ActionsContainer) -> None:
    """Add --topic."""
    parser.add_argument(
        '--topic',
        action='append',
        default=[],
        metavar='ROLE=TOPIC',
        help='topic of the imu, gps or truth, such as truth=/odom; repeatable',
    )


def at_least(minimum: float, kind: type[int] | type[float], *, above: bool = False):  # type: ignore[no-untyped-def]
    """Return an argparse type: a finite number not below (or above) a bound."""

    def parse(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(minimum) - 1
        # An integer may be too long for a float, and is finite anyway.
        unbounded = isinstance(value, float) and not math.isfinite(value)
        if unbounded or value < minimum or (above and value == minimum):
            name = 'an integer' if kind is int else 'a number'
            bound = '>' if above else '>='
            raise argparse.ArgumentTypeError(f'{text!r} must be {name} {bound} {minimum:g}')
        return value

    return parse


def scenario_problem(text: str) -> str | None:
    """Say what is wrong with a scenario label, which is also a file name; None: nothing."""
    if text in ('', 'all') or text[0] == '.' or not text.isprintable() or set(text) & set('/\\'):
        return (
            f'{text!r} must not be all (the pooled row), empty, hold / or \\ or begin with a dot'
        )
    return None


def scenario_label(text: str) -> str:
    """Argparse type: a scenario label."""
    if problem := scenario_problem(text):
        raise argparse.ArgumentTypeError(problem)
    return text


def topic_roles(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the (role, topic) pairs of --topic.

    Raises
    ------
    ParameterError
        For a text that is no pair, or an unknown role.
    """
    pairs = []
    for text in given:
        role, equals, topic = text.partition('=')
        if not equals or not topic or role not in ('imu', 'gps', 'truth'):
            raise ParameterError(
                '--topic', '', f'{text!r} is not allowed; must be imu=, gps= or truth= and a topic'
            )
        pairs.append((role, topic))
    return tuple(pairs)


def sources(paths: Sequence[str], topics: Sequence[str], scenario: str | None) -> list[Source]:
    """Return one source per path; where last folders are alike, the folder above goes before.

    A label depends on its own path and on which labels are alike, never on the order.
    """
    from pathlib import Path

    from sim2real_eval.comparison import Source
    from sim2real_eval.recording.roles import run_name

    pairs = topic_roles(topics)
    seen: dict[Path, str] = {}
    for path in paths:
        whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are other recordings
        if whole in seen:
            raise ParameterError(
                path, '', f'is given twice (as {seen[whole]}); must be given once'
            )
        seen[whole] = path
    labels = [run_name(Path(path)) for path in paths]
    return [
        Source(
            path,
            f'{_folder_above(Path(path), label)}_{label}' if labels.count(label) > 1 else None,
            pairs,
            scenario,
        )
        for path, label in zip(paths, labels, strict=True)
    ]


def _folder_above(path: Path, label: str) -> str:
    """Name of the folder above the part of a path that gave the label."""
    whole = path.resolve()
    named = next((one for one in (whole, *whole.parents) if one.stem == label), whole)
    return named.parent.name


def twins(gps: str, imu: str) -> tuple[Twin, ...]:
    """Return the variants that lists of GPS and IMU models stand for.

    Parameters
    ----------
    gps, imu : str
        Model names or files, separated by commas; `real` keeps the recording's own sensor;
        `paper` and `all` stand for the paper's five GPS models and for all presets.

    Raises
    ------
    ParameterError
        For an unknown model, or when both sensors would stay real.
    """
    from pathlib import Path

    from sim2real_eval.twin import REAL_SENSOR, Twin
    from sim_sensors.catalogue import load_gps, load_imu, names

    def listed(text: str, kind: str) -> list[str]:
        found: list[str] = []
        for entry in filter(None, (part.strip() for part in text.split(','))):
            if entry == 'all':
                found += names(kind)
            elif entry == 'paper' and kind == 'gps':
                found += PAPER_MODELS
            else:
                found.append(entry)
        return list(dict.fromkeys(found))

    gps_names, imu_names = listed(gps, 'gps'), listed(imu, 'imu')
    if not gps_names or not imu_names:
        raise ParameterError('models', '', 'no model is named; must be one or more')
    if REAL_SENSOR in gps_names and REAL_SENSOR in imu_names:
        raise ParameterError('models', '', 'GPS and IMU cannot both stay real: nothing to compare')
    result = []
    for gps_name in gps_names:
        for imu_name in imu_names:
            labels = [Path(name).stem for name in (gps_name, imu_name) if name != REAL_SENSOR]
            if len(imu_names) == 1 and gps_name != REAL_SENSOR:
                labels = labels[:1]
            result.append(
                Twin(
                    label='+'.join(labels),
                    gps=None if gps_name == REAL_SENSOR else load_gps(gps_name),
                    imu=None if imu_name == REAL_SENSOR else load_imu(imu_name),
                )
            )
    labels = [twin.label for twin in result]
    for label in labels:
        if labels.count(label) > 1 or label == REAL_SENSOR:
            raise ParameterError(
                'models', label, 'is the name of several variants; give the files other names'
            )
    return tuple(result)
