# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The comparison that the parameters of evaluation_node describe."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sim2real_eval.cli.arguments import scenario_problem, sources, topic_roles
from sim2real_eval.cli.options import study_words
from sim2real_eval.cli.sensors import twins
from sim2real_eval.cli.vepd import comparison_title, vepd_command
from sim2real_eval.judge.external import NodeJudgeSetup
from sim2real_eval.judge.robot_localization.configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.ros_launch.arguments import EvaluationSettings
from sim2real_eval.study.folder import check_folder
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.recordings import expand_patterns, recordings_from_sources
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.variants import StudyJudge
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.ros.parameters import NodeParameters


@dataclasses.dataclass(frozen=True, eq=False)
class LiveStudy:
    """A study by one judge that is a node."""

    settings: EvaluationSettings
    plan: StudyPlan

    @property
    def judge(self) -> StudyJudge:
        """The judge with its label."""
        (judge,) = self.plan.file.judges
        return judge

    @property
    def setup(self) -> NodeJudgeSetup:
        """The judge as a node."""
        setup = self.judge.setup
        assert isinstance(setup, NodeJudgeSetup)
        return setup

    @classmethod
    def from_node(cls, node: Node) -> LiveStudy:
        """Declare the parameters of a node and read the named files except the recordings.

        The node must be created with `automatically_declare_parameters_from_overrides`.
        ParameterError for an unknown, wrong or missing parameter, or an existing result.
        """
        declared = NodeParameters(node)
        settings = declared.declare(EvaluationSettings(), read_only=True)
        options = declared.declare(StudyOptions(), skip=('metric',), read_only=True)
        metric = declared.declare(MetricOptions(), 'metric', skip=('drop_zeros',), read_only=True)
        names = [name.removeprefix('metric.') for name in declared.overrides]
        declared_options = dataclasses.replace(options, metric=metric)
        options = declared_options.without_deriving(names)
        # The command line needs no --adapt if all set options differ from their defaults.
        command_options = options
        if declared_options.without_deriving(_changed_names(declared_options)) == options:
            command_options = declared_options
        real = expand_patterns(
            _declare_texts(
                node, 'real', 'Real recordings with ground truth: paths or patterns of bags.'
            )
        )
        topics = _declare_texts(
            node, 'topics', 'Topics of the imu, gps or truth, each ROLE=TOPIC.'
        )
        declared.refuse_unknown()
        name = node.get_name()
        if not settings.out:
            raise ParameterError(name, 'out', 'is missing; must be the folder to write')
        if not real:
            raise ParameterError(name, 'real', 'is missing; must be one recording or more')
        try:
            topic_roles(topics)
        except ParameterError as error:
            raise ParameterError(name, 'topics', error.problem) from None
        if settings.scenario and (problem := scenario_problem(settings.scenario)):
            raise ParameterError(name, 'scenario', problem)
        with _parameter(name, 'real'):
            recordings = sources(real, topics, settings.scenario or None, option='real')
            _check_names(recordings)
        with _parameter(name, 'imu'):
            # The GPS model is correct here, so any error is one of the IMU.
            twins('baseline', settings.imu)
        with _parameter(name, 'models'):
            variants = twins(settings.models, settings.imu)
        setup = _setup(name, settings)
        # judge_node gives the output of the embedded judge, so the written result names that.
        kind = 'embedded' if settings.judge == 'judge_node' else settings.judge
        label = Path(settings.params_file or settings.profile).stem
        file = StudyFile(
            title=comparison_title(recordings, variants),
            options=options,
            recordings=recordings_from_sources(recordings),
            twins=variants,
            judges=(StudyJudge(label, kind, setup),),
            command=_command(settings, command_options, real, topics),
        )
        plan = StudyPlan.from_file(file)
        out, overwrite = settings.out, settings.overwrite
        try:
            check_folder(Path(out), plan, overwrite=overwrite)
        except Sim2RealError as error:
            problem = str(error)
            if Path(out).exists() and not overwrite:
                problem = f'{out}: exists; must be another folder, unless overwrite is true'
            raise ParameterError(name, 'out', problem) from None
        return cls(settings, plan)


def _changed_names(options: StudyOptions) -> list[str]:
    """Return the names of all options, also of the metric, that differ from their defaults."""
    current, default = (
        {**option_set.to_mapping(), **option_set.metric.to_mapping()}
        for option_set in (options, StudyOptions())
    )
    return [name for name, setting in current.items() if setting != default[name]]


def _command(
    settings: EvaluationSettings, options: StudyOptions, real: list[str], topics: list[str]
) -> tuple[str, ...]:
    """Return the words of the `sim2real vepd` command that gives the same result."""
    words = ['--models', settings.models, '--imu', settings.imu]
    words += ['--judge-config', settings.params_file or settings.profile]
    if settings.judge != 'judge_node':
        words += ['--judge', settings.judge]
    for option, argument in (
        ('--navsat-config', settings.navsat_params_file),
        ('--case', settings.case_file),
        ('--scenario', settings.scenario),
    ):
        words += [option, argument] if argument else []
    for topic in topics:
        words += ['--topic', topic]
    return vepd_command([*real, *words, *study_words(options)])


def _setup(node: str, settings: EvaluationSettings) -> NodeJudgeSetup:
    navsat, case = settings.navsat_params_file or None, settings.case_file or None
    with _parameter(node, 'navsat_params_file'):
        if navsat:
            NavsatConfig.from_file(navsat)
    with _parameter(node, 'case_file'):
        if case:
            ReplayOptions.from_file(case)
    with _parameter(node, 'params_file' if settings.params_file else 'profile'):
        setup = JudgeSetup.load(settings.params_file or settings.profile, navsat, case)
    with _parameter(node, 'judge'):
        return NodeJudgeSetup.from_setup(setup, settings.judge)


def _check_names(recordings: Sequence[RecordingSource]) -> None:
    """Raise Sim2RealError if two recordings have the same name."""
    paths: dict[str, str] = {}
    for source in recordings:
        name = source.expected_name()
        if name in paths:
            raise Sim2RealError(
                f'{name}: is the name of {paths[name]} and of {source.path}; must be the name of '
                'one recording'
            )
        paths[name] = source.path


@contextlib.contextmanager
def _parameter(node: str, key: str) -> Iterator[None]:
    """Convert an error about the file or model of a parameter to one about the parameter."""
    try:
        yield
    except Sim2RealError as error:
        raise ParameterError(node, key, str(error).removeprefix(f'{key}: ')) from None


def _declare_texts(node: Node, name: str, doc: str) -> list[str]:
    """Declare a list of texts, and return it; a single text counts as a list of one."""
    list_descriptor = ParameterDescriptor(description=doc, read_only=True, dynamic_typing=True)
    value: Any = node.declare_parameter(name, [''], list_descriptor).value
    # ROS passes an empty list as no value.
    texts = [value] if isinstance(value, str) else value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ParameterError(
            node.get_name(), name, f'{value!r} is not allowed; must be a list of texts'
        )
    return [text for text in texts if text]
