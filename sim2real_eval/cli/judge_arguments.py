# SPDX-License-Identifier: Apache-2.0
"""Options that choose a judge, and the judge that they describe."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, number_of, parameter
from .arguments import add_list, add_shared, input_topics, sources, transforms_of
from .options import OptionSet, optional_text, rarely

if TYPE_CHECKING:
    from sim2real_eval.judge.protocol import Judge
    from sim2real_eval.judge.robot_localization.replay_options import Options
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.study.variants import StudyJudge


@dataclasses.dataclass(frozen=True)
class JudgeOptions(Parameters):
    """Choice of the judge; all options but the first belong to robot_localization."""

    judge_kind: str = parameter(
        'embedded',
        '',
        'Who judges: embedded, which needs nothing; robot_localization, the real ekf_node, which '
        'must be installed; judge_node, the embedded judge as a node; error_state, a GNSS/INS '
        'filter with bias states; gtsam, a smoother; one of another package; a class in a '
        'file, such as my_filter.py:MyFilter (docs/howto/extend.md); or any estimator of ROS, '
        'as a file such as my_estimator.yaml declares it (docs/howto/own_estimator.md). Nodes '
        'run on a ROS domain of their own.',
    )
    navsat_config: str | None = optional_text(
        'Parameter file of navsat_transform_node (that of the profile, or NAME_navsat.yaml beside '
        'the file, where it is not given).',
        common=False,
    )
    case: str | None = optional_text(
        'case.yaml of clock, timers, delivery order and the options below.', common=False
    )
    filter_kind: str | None = optional_text(
        'Filter (as case.yaml or the parameter file says, else ekf, where it is not given).',
        choices=('ekf', 'ukf'),
        common=False,
    )
    section: str | None = optional_text(
        'Node whose parameters count, in a file of several filters.', common=False
    )
    correct: str | None = optional_text(
        'Deviations of robot_localization to correct, by comma: gravity, differential, unscented, '
        'or none (none, as the original does, where it is not given).',
        common=False,
    )
    front_end: str | None = optional_text(
        'What turns fixes into odometry/gps (navsat_transform where it is not given).',
        choices=('navsat_transform', 'enu'),
        common=False,
    )


_JUDGE = OptionSet(
    JudgeOptions,
    judge_kind='--judge JUDGE',
    navsat_config='--navsat-config FILE',
    case='--case FILE',
    filter_kind='--filter',
    section='--section NODE',
    correct='--correct LIST',
)
# Names of a request for a judge, in the order in which they are refused where no node judges.
_OF_NODES = (
    'navsat_config', 'case', 'filter_kind', 'section', 'correct', 'latency',
    'front_end', 'filtered_gps',
)  # fmt: skip


def add_judge(
    parser: argparse._ActionsContainer, name: str, default: str | None, *, several: bool = False
) -> None:
    """Add the judge's parameter files; with `several`, `name` may be given more than once."""
    default_text = f' (default {default})' if default else ''
    if several:
        default_text += '; repeatable: one judge each'
    parser.add_argument(
        *dict.fromkeys((name, '--judge-config')),
        dest='config',
        action='append' if several else 'store',
        metavar='NAME|FILE',
        help='profile (paper_released, clean) or parameter file of ekf_node'
        + default_text
        + '. With '
        '--judge error_state or gtsam another kind of file: inertial settings, such as chrono '
        '(default default)',
    )
    # Not the default of the option: which one it is follows from --judge.
    parser.set_defaults(config_option=name, config_default=default)
    _JUDGE.add(parser, 'navsat_config', 'case', 'filter_kind', 'section', 'correct')
    meaning = 'how much later than in the recording messages of a topic arrive'
    rarely(add_list(parser, '--latency', 'TOPIC=SECONDS', meaning))
    add_shared(parser, 'transforms')
    _JUDGE.add(parser, 'front_end')


def add_judge_kind(parser: argparse._ActionsContainer) -> None:
    """Add --judge: who carries the parameter files out."""
    _JUDGE.add(parser, 'judge_kind', kept=True)


def judge_options(options: argparse.Namespace) -> Options:
    """Return what --filter, --correct, --latency, --transforms and --front-end say."""
    from sim2real_eval.judge.robot_localization import replay_options

    correct = None
    if options.correct is not None:
        names = [] if options.correct == 'none' else options.correct.split(',')
        correct = replay_options.corrections((name.strip() for name in names), '--correct', '')
    seconds: dict[str, float] = {}
    for text in options.latency:
        topic, equals, value = text.rpartition('=')
        if equals and topic.strip('/') in (other.strip('/') for other in seconds):
            raise ParameterError('--latency', '', f'{topic} is given twice; must be given once')
        delay = number_of(value)
        if not equals or delay is None:
            problem = f'{text!r} is not allowed; must be a topic, = and seconds'
            raise ParameterError('--latency', '', problem)
        seconds[topic] = delay
    return replay_options.Options(
        unscented=None if options.filter_kind is None else options.filter_kind == 'ukf',
        correct=correct,
        latency_ns=replay_options.latency_ns(seconds, '--latency', ''),
        transforms=transforms_of(options),
        front_end=options.front_end,
        section=options.section,
        topics=input_topics(options.topic),
    )


def named_judges(options: argparse.Namespace) -> tuple[StudyJudge, ...] | None:
    """Return the judges that the options ask for; None when they name none, and nothing of one."""
    if options.config is not None or options.judge_kind != 'embedded':
        return judges(options)
    for name in (*_OF_NODES, 'transforms'):
        if getattr(options, name, None) not in (None, [], 'embedded'):
            raise ParameterError(_option(name), '', f'goes with {options.config_option} only')
    return None


def _option(name: str) -> str:
    """Return how the option is written that a request for a judge calls so."""
    return '--filter' if name == 'filter_kind' else f'--{name.replace("_", "-")}'


def judged_sources(
    options: argparse.Namespace, paths: Sequence[str], option: str | None = None
) -> list[RecordingSource]:
    """Return the sources of paths as the judge that is asked for hears them; see `sources`."""
    from sim2real_eval.judge.protocol import takes_inputs

    scenario = getattr(options, 'scenario', None)
    inputs = takes_inputs(options.judge_kind)
    return sources(paths, options.topic, scenario, inputs=inputs, option=option)


def judges(options: argparse.Namespace) -> tuple[StudyJudge, ...]:
    """Return the judges that the options of `add_judge(..., several=True)` ask for: one per
    parameter file, of which no two may have one label.
    """
    from sim2real_eval.judge.protocol import judge_label, takes_inputs
    from sim2real_eval.study.variants import Entry, StudyJudge

    kind, study_judges = options.judge_kind, list[StudyJudge]()
    default = options.config_default if takes_inputs(kind) else None
    for config in options.config or [default]:
        setup = judge_setup(argparse.Namespace(**{**vars(options), 'config': config}))
        label = Entry(options.config_option, '', judge_label(kind, config)).label()
        if any(label == judge.label for judge in study_judges):
            raise ParameterError(
                options.config_option, '', f'{label!r} is the label of several judges'
            )
        study_judges.append(StudyJudge(label, kind, setup))
    return tuple(study_judges)


def judge_setup(options: argparse.Namespace, case: Path | None = None) -> Judge:
    """Return the judge that --judge, the parameter files and the options ask for.

    The case.yaml `case` counts when --case names none; options replace either.

    Raises Sim2RealError when ROS or robot_localization is needed and not installed.
    """
    from sim2real_eval.judge.protocol import JudgeRequest, load_judge, takes_inputs

    def refuse(name: str, problem: str) -> NoReturn:
        option = options.config_option if name == 'config' else _option(name)
        raise ParameterError(option, '', problem)

    is_node = takes_inputs(options.judge_kind)
    return load_judge(
        JudgeRequest(
            judge=options.judge_kind,
            config=options.config or (options.config_default if is_node else None),
            transforms=transforms_of(options),
            node_options={
                'navsat_config': options.navsat_config,
                'case': options.case or case,
                'options': judge_options(options),
            }
            if is_node
            else {},
            given=tuple(
                name
                for name in _OF_NODES
                if getattr(options, name, None) not in (None, '', [], False, 'embedded')
            ),
            refuse=refuse,
        )
    )
