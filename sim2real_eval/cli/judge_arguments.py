# SPDX-License-Identifier: Apache-2.0
"""Arguments that say who judges and how, and the judge that they stand for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from sim2real_eval.cli.arguments import add_transforms
from sim_sensors.core.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real_eval.judge.protocol import Judge
    from sim2real_eval.judge.robot_localization.replay_options import Options
    from sim2real_eval.study.judges import StudyJudge


_OPTIONS = {
    'judge': '--judge',
    'config': '--config',
    'navsat_config': '--navsat-config',
    'navsat_node': '--navsat-node',
    'case': '--case',
    'filter_kind': '--filter',
    'section': '--section',
    'correct': '--correct',
    'latency': '--latency',
    'front_end': '--front-end',
    'filtered_gps': '--filtered-gps',
}
"""How options are written; all but the first two are of nodes."""


def add_judge(
    parser: argparse._ActionsContainer, name: str, default: str | None, *, several: bool = False
) -> None:
    """Add the judge's parameter files; with `several`, `name` may be given more than once."""
    shown = f' (default {default})' if default else ''
    if several:
        shown += '; repeatable: one judge each'
    parser.add_argument(
        name,
        dest='config',
        action='append' if several else 'store',
        metavar='NAME|FILE',
        help='profile (paper_released, clean) or parameter file of ekf_node' + shown + '. With '
        '--judge error_state or gtsam another kind of file: inertial settings, such as chrono '
        '(default default)',
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
        '--section',
        metavar='NODE',
        help='node whose parameters count, in a file with those of several filters',
    )
    parser.add_argument(
        '--correct',
        metavar='LIST',
        help='deviations of robot_localization to correct, by comma: gravity, differential, '
        'unscented, or none (default none: as the original does)',
    )
    parser.add_argument(
        '--latency',
        action='append',
        default=[],
        metavar='TOPIC=SECONDS',
        help='how much later than in the recording messages of a topic arrive; repeatable',
    )
    add_transforms(parser)
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
        metavar='JUDGE',
        default='embedded',
        help='who judges: embedded (default, needs nothing); robot_localization, the real '
        'ekf_node, which must be installed; judge_node, the embedded judge as a node; '
        'error_state, a GNSS/INS filter with bias states; gtsam, a smoother; one of another '
        'package; or a class in a file, such as my_filter.py:MyFilter (docs/extending.md). Nodes '
        'run in lockstep on a ROS domain of their own',
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
    from sim2real_eval.cli.arguments import input_topics
    from sim2real_eval.judge.robot_localization.replay_options import (
        Options,
        corrections,
        latency_ns,
    )
    from sim2real_eval.recording.frames import TransformFile

    correct = None
    if options.correct is not None:
        names = [] if options.correct == 'none' else options.correct.split(',')
        correct = corrections((name.strip() for name in names), '--correct', '')
    seconds: dict[str, float] = {}
    for text in options.latency:
        topic, equals, value = text.rpartition('=')
        if equals and topic.strip('/') in (known.strip('/') for known in seconds):
            raise ParameterError('--latency', '', f'{topic} is given twice; must be given once')
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
        section=options.section,
        topics=input_topics(options.topic),
    )


def named_judges(options: argparse.Namespace) -> tuple[StudyJudge, ...] | None:
    """Return the judges that the options ask for; None when they name none.

    Raises
    ------
    Sim2RealError
        As `judges`, and for an option of a judge when none is named.
    """
    if options.config is not None or options.judge_kind != 'embedded':
        return judges(options)
    for dest, option in (*list(_OPTIONS.items())[2:], ('transforms', '--transforms')):
        if getattr(options, dest, None) not in (None, [], 'embedded'):
            raise ParameterError(option, '', f'goes with {options.config_option} only')
    return None


def judges(options: argparse.Namespace) -> tuple[StudyJudge, ...]:
    """Return the judges that the options ask for: one per parameter file.

    Parameters
    ----------
    options : argparse.Namespace
        With `add_judge(..., several=True)`.

    Raises
    ------
    Sim2RealError
        As `judge_setup`, and for a label given twice.
    """
    from pathlib import Path

    from sim2real_eval.judge.protocol import takes_inputs
    from sim2real_eval.study.entry import Entry
    from sim2real_eval.study.judges import StudyJudge

    kind, found = options.judge_kind, list[StudyJudge]()
    default = options.config_default if takes_inputs(kind) else None
    for config in options.config or [default]:
        setup = judge_setup(argparse.Namespace(**{**vars(options), 'config': config}))
        shown = kind.rpartition(':')[2] if config is None else Path(config).stem
        label = Entry(options.config_option, '', shown).label()
        if any(label == one.label for one in found):
            raise ParameterError(
                options.config_option, '', f'{label!r} is the label of several judges'
            )
        found.append(StudyJudge(label, kind, setup))
    return tuple(found)


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
    from sim2real_eval.judge.protocol import JudgeRequest, load_judge, takes_inputs
    from sim2real_eval.recording.frames import TransformFile

    def refuse(name: str, problem: str) -> NoReturn:
        option = options.config_option if name == 'config' else _OPTIONS.get(name, name)
        raise ParameterError(option, '', problem)

    given = [name for name in list(_OPTIONS)[2:] if getattr(options, name, None)]
    is_node = takes_inputs(options.judge_kind)
    return load_judge(
        JudgeRequest(
            judge=options.judge_kind,
            config=options.config or (options.config_default if is_node else None),
            transforms=options.transforms and TransformFile.from_file(options.transforms),
            node_options={
                'navsat_config': options.navsat_config,
                'navsat_node': options.navsat_node,
                'case': options.case or case,
                'options': judge_options(options),
            }
            if is_node
            else {},
            given=tuple(
                name
                for name in given
                if options.navsat_node != 'embedded' or name != 'navsat_node'
            ),
            refuse=refuse,
        )
    )
