# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Arguments that several verbs share, with those that choose a judge, and their conversion."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sim_sensors.core.errors import ParameterError, did_you_mean
from sim_sensors.core.input_files import match_paths
from sim_sensors.core.parameters import Parameters, parameter, parse_number
from .options import STUDY, OptionSet, hide_from_help, optional_text

if TYPE_CHECKING:
    from sim2real_eval.judge.protocol import Judge
    from sim2real_eval.judge.robot_localization.replay_options import Options
    from sim2real_eval.recording.metadata import TransformFile
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.study.variants import StudyJudge
    from sim_sensors.world.world import World

_ROLES = (
    'imu', 'gps', 'truth', 'mag', 'camera_pose', 'features', 'camera_info',
    'ideal_imu', 'ideal_gps', 'ideal_mag',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class SharedOptions(Parameters):
    """Options with the same meaning in every verb that has them."""

    jobs: int | None = parameter(
        None,
        '1',
        'Number of processes (default: one per core); it does not affect the result.',
        optional=int,
        minimum=1,
    )
    json: bool = parameter(False, '', 'Print the result as JSON.')
    verbose: bool = parameter(False, '', 'Print every table.')
    quiet: bool = parameter(False, '', 'Print only the answer.')
    overwrite: bool = parameter(False, '', 'Replace an older result.')
    storage: str = parameter(
        'mcap', '', 'Storage format of the recordings.', choices=('mcap', 'sqlite3', 'csv')
    )
    base_frame: str = parameter(
        'base_link', '', 'Body frame of the robot, the origin of lever arms.', common=False
    )
    motion: str = parameter(
        'reject',
        '',
        'reject: analyse standstills only (for the IMU the longest); keep: the whole recording.',
        choices=('reject', 'keep'),
    )
    straight: float | None = parameter(
        None,
        's',
        'Compare the true speed with the distance over time of the fixes, on straight segments of '
        'this duration; the paper has 20 segments of 30 s.',
        optional=float,
        above=0.0,
    )
    transforms: str | None = optional_text(
        'Static transforms that replace or complete those of the recording: a URDF, or YAML such '
        'as "- {parent: base_link, child: imu_link, translation: [0.1, 0, 0.2], rotation_xyzw: '
        '[0, 0, 0, 1]}".',
        common=False,
    )


_SHARED = OptionSet(
    SharedOptions,
    verbose='--verbose -v',
    quiet='--quiet -q',
    base_frame='--base-frame FRAME',
    transforms='--transforms FILE',
    motion='--moving',
    straight='--straight SECONDS',
)


def add_shared(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add options by name: fields of `SharedOptions`, or topic, set, published or seed.

    An option that is not given has its declared default.
    """
    for name in names:
        if name == 'topic':
            meaning = (
                'topic of the imu, gps, truth, mag, camera_pose or features, such as truth=/odom, '
                'truth=/tf:map.base_link or truth=drive.tum (the truth may be poses), '
                "or of an input of the judge's parameter file, such as odom0=/wheel/odometry"
            )
            add_list(parser, '--topic', 'ROLE=TOPIC', meaning)
        elif name == 'set':
            add_list(parser, '--set', 'KEY=VALUE', 'parameter of an analytic motion')
        elif name == 'published':
            meaning = 'also show the numbers of the paper'
            hide_from_help(parser.add_argument('--published', action='store_true', help=meaning))
        elif name == 'seed':
            STUDY.add(parser, name, kept=True)
        else:
            _SHARED.add(parser, name, kept=True)
    if 'jobs' in names:
        # Not declared, because the default depends on the machine.
        parser.set_defaults(jobs=os.cpu_count() or 1)


def add_list(
    parser: argparse._ActionsContainer, flag: str, metavar: str, meaning: str
) -> argparse.Action:
    """Add an option that may be given several times."""
    return parser.add_argument(
        flag, action='append', default=[], metavar=metavar, help=f'{meaning}; repeatable'
    )


def add_recordings(
    parser: argparse._ActionsContainer, meaning: str = 'bag or CSV folder', *, nargs: str = '+'
) -> None:
    """Add the recordings that a verb works on."""
    default: list[str] | None = [] if nargs == '*' else None
    parser.add_argument(
        'recordings', nargs=nargs, default=default, metavar='RECORDING', help=meaning
    )


def add_patterns(parser: argparse._ActionsContainer, flag: str, meaning: str) -> None:
    """Add an option for further recordings; see `matched_paths`."""
    add_list(parser, flag, 'PATTERN', f'{meaning}: a path or a pattern in quotes')


def matched_paths(patterns: Sequence[str], option: str) -> list[str]:
    """Return the paths that the patterns of an option match; each must match one or more."""
    paths: list[str] = []
    for pattern in patterns:
        matches = match_paths(pattern)
        if not matches:
            raise ParameterError(option, pattern, 'matches no recording')
        paths += matches
    return paths


def add_out(
    parser: argparse._ActionsContainer, meaning: str, *shared: str, required: bool = False
) -> None:
    """Add --out, a folder whose files `meaning` names, and options of `add_shared`."""
    parser.add_argument('--out', required=required, metavar='DIR', help=meaning)
    add_shared(parser, *shared)


def scenario_problem(label: str) -> str | None:
    """Return what is wrong with a scenario label, which is also a file name, or None."""
    is_reserved = label in ('', 'all') or label[0] == '.'
    if is_reserved or not label.isprintable() or set(label) & set('/\\'):
        return (
            f'{label!r} must not be empty, be "all" (the pooled row), contain / or \\, or begin '
            'with a dot'
        )
    return None


def add_scenario(parser: argparse._ActionsContainer, where: str = '') -> None:
    """Add --scenario; `where` is the condition under which it applies."""

    def label(text: str) -> str:
        if problem := scenario_problem(text):
            raise argparse.ArgumentTypeError(problem)
        return text

    meaning = f'{where}scenario label of all recordings'
    parser.add_argument('--scenario', type=label, metavar='LABEL', help=meaning)


def topic_roles(arguments: Sequence[str], *, inputs: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the (role, topic) pairs of --topic.

    The keys may also be inputs of the filter if `inputs` is True. An argument that is not a pair,
    or has an unknown key, is refused.
    """
    pairs = _topics(arguments)
    for name in pairs:
        if name not in _ROLES and not inputs:
            raise ParameterError(
                '--topic', '', f"{name} is an input of robot_localization's filters; here only "
                f'{", ".join(f"{role}=" for role in _ROLES)} are allowed'
            )  # fmt: skip
    return tuple(pair for pair in pairs.items() if pair[0] in _ROLES)


def input_topics(arguments: Sequence[str]) -> dict[str, str]:
    """Return the topics of --topic by input of the filter, such as odom0; see `topic_roles`."""
    return {name: topic for name, topic in _topics(arguments).items() if name not in _ROLES}


def _topics(arguments: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for argument in arguments:
        name, equals, topic = argument.partition('=')
        is_known = name in _ROLES or re.fullmatch(r'(odom|pose|twist|imu)\d+', name)
        if not equals or not topic.strip('/') or not is_known:
            hint = '' if is_known else did_you_mean(name, _ROLES)
            must = f'must be ROLE=TOPIC with {", ".join(_ROLES)} or an input such as odom0'
            raise ParameterError('--topic', '', f'{argument!r} is not allowed{hint}; {must}')
        if name in pairs:
            raise ParameterError('--topic', '', f'{name} is given twice; must be given once')
        pairs[name] = topic
    return pairs


def refuse_duplicates(paths: Sequence[str]) -> None:
    """Refuse a recording that is named twice, which would count as two independent ones."""
    places = [Path(path).resolve() for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise ParameterError('recordings', path, 'is given twice; must be given once')


def sources(
    paths: Sequence[str],
    topics: Sequence[str],
    scenario: str | None = None,
    *,
    inputs: bool = False,
    option: str | None = None,
) -> list[RecordingSource]:
    """Return one source per path, labelled by the last folder.

    Equal labels are preceded by the name of the folder above. Labels do not depend on the order of
    the paths. `option` is the option that gave the paths: if it is given, a path that does not
    exist is refused at once. Otherwise reading that source fails later, and other sources can
    still be read.
    """
    from sim2real_eval.recording.reading import RecordingSource, label_from_path

    pairs = topic_roles(topics, inputs=inputs)
    earlier_paths: dict[Path, str] = {}
    for path in paths:
        whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are other recordings
        if whole in earlier_paths:
            raise ParameterError(
                path, '', f'is given twice (as {earlier_paths[whole]}); must be given once'
            )
        if option is not None and not whole.exists():
            raise ParameterError(option, '', f'{path}: no such file or folder')
        earlier_paths[whole] = path
    labels = [label_from_path(Path(path)) for path in paths]
    return [
        RecordingSource(
            path,
            f'{_folder_above(Path(path), label)}_{label}' if labels.count(label) > 1 else None,
            pairs,
            scenario,
        )
        for path, label in zip(paths, labels, strict=True)
    ]


def _folder_above(path: Path, label: str) -> str:
    """Return the name of the folder above the part of a path that gave the label."""
    whole = path.resolve()
    named = next((folder for folder in (whole, *whole.parents) if folder.stem == label), whole)
    return named.parent.name


# Options of the simulation: world and motions.


def world_of(options: argparse.Namespace) -> World | None:
    """Return the world of --world; an invalid one is refused."""
    from sim_sensors.world.world import load_world

    return load_world(options.world) if options.world else None


def transforms_of(options: argparse.Namespace) -> TransformFile | None:
    """Return the static transforms of --transforms; an invalid file is refused."""
    from sim2real_eval.recording.metadata import TransformFile

    return None if options.transforms is None else TransformFile.from_file(options.transforms)


def motion_parameters(arguments: Sequence[str]) -> dict[str, object]:
    """Return the parameters of a motion in --set, by key.

    The duration is refused, because it has its own option.
    """
    parameters = dict(map(key_value, arguments))
    if 'duration' in parameters:
        raise ParameterError('--set', 'duration', 'cannot be set here; use --duration')
    return parameters


def key_value(argument: str) -> tuple[str, object]:
    """Return key and value of KEY=VALUE; the value is parsed as YAML."""
    from sim_sensors.core.config_files import parse_yaml

    key, equals, value = argument.partition('=')
    if not equals:
        raise ParameterError('--set', '', f'{argument!r} is not allowed; must be KEY=VALUE')
    parsed = parse_yaml(value, f'--set {key}')
    number = parse_number(parsed) if isinstance(parsed, str) else None
    return key, parsed if number is None else number


@dataclasses.dataclass(frozen=True)
class JudgeOptions(Parameters):
    """Choice of the judge; all options but the first belong to robot_localization."""

    judge_kind: str = parameter(
        'embedded',
        '',
        'Judge: embedded (needs no ROS); robot_localization, the real ekf_node, which must be '
        'installed; judge_node, the embedded judge as a node; error_state, a GNSS/INS filter '
        'with bias states; gtsam, a smoother; a judge of another package; a class in a file, '
        'such as my_filter.py:MyFilter (docs/howto/extend.md); or any ROS estimator, declared '
        'in a file such as my_estimator.yaml (docs/howto/own_estimator.md). Nodes run on a '
        'separate ROS domain.',
    )
    navsat_config: str | None = optional_text(
        'Parameter file of navsat_transform_node (default: that of the profile, or '
        'NAME_navsat.yaml in the folder of the parameter file).',
        common=False,
    )
    case: str | None = optional_text(
        'case.yaml with the clock, timers, delivery order and the options below.', common=False
    )
    filter_kind: str | None = optional_text(
        'Filter (default: that of case.yaml or the parameter file, otherwise ekf).',
        choices=('ekf', 'ukf'),
        common=False,
    )
    section: str | None = optional_text(
        'Node whose parameters are used if the file has several filters.', common=False
    )
    correct: str | None = optional_text(
        'Errors of robot_localization to correct, separated by commas: gravity, differential, '
        'unscented; or none (default: none, as in robot_localization).',
        common=False,
    )
    rl_version: str | None = optional_text(
        'Release of robot_localization to reproduce: 3.8, 3.10 or rolling (default 3.8).',
        common=False,
    )
    front_end: str | None = optional_text(
        'Conversion of fixes into odometry/gps (default navsat_transform).',
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
    rl_version='--rl-version VERSION',
)
# Options of judges with the parameters of robot_localization, in the order in which they are
# refused for other judges.
_NODE_OPTIONS = (
    'navsat_config', 'case', 'filter_kind', 'section', 'correct', 'latency',
    'rl_version', 'front_end', 'filtered_gps',
)  # fmt: skip


def add_judge(
    parser: argparse._ActionsContainer, name: str, default: str | None, *, several: bool = False
) -> None:
    """Add the options of the judge; with `several`, `name` may be given more than once."""
    default_text = f' (default {default})' if default else ''
    if several:
        default_text += '; each use adds a judge'
    parser.add_argument(
        *dict.fromkeys((name, '--judge-config')),
        dest='config',
        action='append' if several else 'store',
        metavar='NAME|FILE',
        help='profile (paper_released, clean) or parameter file of ekf_node'
        + default_text
        + '. For --judge error_state and gtsam: inertial settings or a file of them, such as '
        'chrono (default: default)',
    )
    # Not a default of the option, because it depends on --judge.
    parser.set_defaults(config_option=name, config_default=default)
    _JUDGE.add(parser, 'navsat_config', 'case', 'filter_kind', 'section', 'correct')
    meaning = 'additional latency of the messages of a topic'
    hide_from_help(add_list(parser, '--latency', 'TOPIC=SECONDS', meaning))
    add_shared(parser, 'transforms')
    _JUDGE.add(parser, 'rl_version', 'front_end')


def add_judge_kind(parser: argparse._ActionsContainer) -> None:
    """Add --judge, the implementation that runs the parameter files."""
    _JUDGE.add(parser, 'judge_kind', kept=True)


def judge_options(options: argparse.Namespace) -> Options:
    """Return the values of --filter, --correct, --latency, --rl-version and the like."""
    from sim2real_eval.judge.robot_localization import replay_options
    from sim2real_eval.judge.robot_localization.release import Release

    correct = None
    if options.correct is not None:
        names = [] if options.correct == 'none' else options.correct.split(',')
        correct = replay_options.corrections((name.strip() for name in names), '--correct', '')
    seconds: dict[str, float] = {}
    for argument in options.latency:
        topic, equals, value = argument.rpartition('=')
        if equals and topic.strip('/') in (other.strip('/') for other in seconds):
            raise ParameterError('--latency', '', f'{topic} is given twice; must be given once')
        delay = parse_number(value)
        if not equals or delay is None:
            problem = f'{argument!r} is not allowed; must be a topic, = and seconds'
            raise ParameterError('--latency', '', problem)
        seconds[topic] = delay
    release = None
    if options.rl_version is not None:
        release = Release.from_value(options.rl_version, '', '--rl-version')
    return replay_options.Options(
        unscented=None if options.filter_kind is None else options.filter_kind == 'ukf',
        correct=correct,
        latency_ns=replay_options.latency_ns(seconds, '--latency', ''),
        transforms=transforms_of(options),
        front_end=options.front_end,
        section=options.section,
        release=release,
        topics=input_topics(options.topic),
    )


def named_judges(options: argparse.Namespace) -> tuple[StudyJudge, ...] | None:
    """Return the judges that the options name.

    The result is None if no option names a judge or sets one of its parameters.
    """
    if options.config is not None or options.judge_kind != 'embedded':
        return judges(options)
    for name in (*_NODE_OPTIONS, 'transforms'):
        if getattr(options, name, None) not in (None, [], 'embedded'):
            raise ParameterError(_option(name), '', f'goes with {options.config_option} only')
    return None


def _option(name: str) -> str:
    """Return the command-line option with the name of a field of `argparse.Namespace`."""
    return '--filter' if name == 'filter_kind' else f'--{name.replace("_", "-")}'


def judged_sources(
    options: argparse.Namespace, paths: Sequence[str], option: str | None = None
) -> list[RecordingSource]:
    """Return the sources of paths with the topics that the chosen judge reads; see `sources`."""
    from sim2real_eval.judge.protocol import takes_inputs

    scenario = getattr(options, 'scenario', None)
    inputs = takes_inputs(options.judge_kind)
    return sources(paths, options.topic, scenario, inputs=inputs, option=option)


def judges(options: argparse.Namespace) -> tuple[StudyJudge, ...]:
    """Return the judges that the options of `add_judge(..., several=True)` name.

    There is one judge per parameter file; two with the same label are refused.
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
    """Return the judge that --judge, its parameter file and further options describe.

    The file `case` is used if --case is not given; options override either file. Raises
    Sim2RealError when ROS or robot_localization is needed and not installed.
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
            explicit_options=tuple(
                name
                for name in _NODE_OPTIONS
                if getattr(options, name, None) not in (None, '', [], False, 'embedded')
            ),
            refuse=refuse,
        )
    )
