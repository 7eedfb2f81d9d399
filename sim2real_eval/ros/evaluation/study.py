# SPDX-License-Identifier: Apache-2.0
"""What evaluation_node is to evaluate, read from its parameters."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sim2real_eval.cli.arguments import scenario_problem, sources, topic_roles
from sim2real_eval.cli.models import twins
from sim2real_eval.cli.options import study_words
from sim2real_eval.cli.vepd import comparison_title, vepd_command
from sim2real_eval.judge.external.graph import GraphJudgeSetup
from sim2real_eval.judge.external.process import JUDGES
from sim2real_eval.judge.robot_localization.configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.recording.reading import Source
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import PROFILE, ComparedSensors, StudyOptions
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.recordings import recordings_from_sources
from sim2real_eval.study.runner import check_folder
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.parameters import non_negative, parameter
from sim_sensors.ros.parameters import NodeParameters


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(ComparedSensors):
    """Parameters of evaluation_node that are no lists; `real` and `topics` are."""

    judge: str = parameter(
        'judge_node',
        '',
        'Which nodes judge: ours, or ekf_node of robot_localization.',
        choices=JUDGES,
    )
    profile: str = parameter(PROFILE, '', 'Parameters of the judge that are shipped.')
    params_file: str = parameter('', '', 'Parameter file of ekf_node instead of a profile.')
    navsat_params_file: str = parameter(
        '', '', 'Parameter file of navsat_transform_node; empty: that which belongs to the other.'
    )
    case_file: str = parameter('', '', 'case.yaml that sets clock, timers and delivery order.')
    out: str = parameter('', '', 'Folder to write.')
    overwrite: bool = parameter(False, '', 'Replace an older result in it.')
    scenario: str = parameter('', '', 'Scenario label of all recordings; empty: their own.')
    rate_factor: float = non_negative(
        0.0,
        '1',
        'Seconds of a run per second of wall time; 0: as fast as all keep up.',
        maximum=1e3,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Study:
    """What is to be evaluated, by one judge, whose set-up knows how to put judges on a graph."""

    settings: EvaluationSettings
    plan: StudyPlan

    @property
    def judge(self) -> StudyJudge:
        """The judge."""
        (judge,) = self.plan.file.judges
        return judge

    @property
    def setup(self) -> GraphJudgeSetup:
        """How the judge is put on a graph."""
        setup = self.judge.setup
        assert isinstance(setup, GraphJudgeSetup)
        return setup

    @classmethod
    def of(cls, node: Node) -> Study:
        """Declare the parameters of a node and read everything that they name but recordings.

        The node must have been made with `automatically_declare_parameters_from_overrides`, so
        that a parameter of another name is seen. What is unknown, wrong, missing, or there already
        is refused.
        """
        declared = NodeParameters(node)
        settings = declared.declare(EvaluationSettings(), read_only=True)
        options = declared.declare(StudyOptions(), skip=('metric',), read_only=True)
        metric = declared.declare(MetricOptions(), 'metric', skip=('drop_zeros',), read_only=True)
        given = [name.removeprefix('metric.') for name in declared.given]
        asked = dataclasses.replace(options, metric=metric)
        options = asked.given(given)
        # What is not the default says so itself, and --adapt need not.
        said = asked if asked.given(_changed(asked)) == options else options
        real = _texts(node, 'real', 'Real recordings with ground truth: paths of bags.')
        topics = _texts(node, 'topics', 'Topics of the imu, gps or truth, each ROLE=TOPIC.')
        declared.finish()
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
            # Beside a GPS model that is right, what is wrong is the IMU's.
            twins('baseline', settings.imu)
        with _parameter(name, 'models'):
            variants = twins(settings.models, settings.imu)
        setup = _setup(name, settings)
        # judge_node says the very same as the embedded judge: so does what is written.
        kind = 'embedded' if settings.judge == 'judge_node' else settings.judge
        label = Path(settings.params_file or settings.profile).stem
        file = StudyFile(
            title=comparison_title(recordings, variants),
            options=options,
            recordings=recordings_from_sources(recordings),
            twins=variants,
            judges=(StudyJudge(label, kind, setup),),
            command=_command(settings, said, real, topics),
        )
        plan = StudyPlan.of(file)
        out, overwrite = settings.out, settings.overwrite
        try:
            check_folder(Path(out), plan, overwrite=overwrite)
        except Sim2RealError as error:
            problem = str(error)
            if Path(out).exists() and not overwrite:
                problem = f'{out}: exists; must be another folder, unless overwrite is true'
            raise ParameterError(name, 'out', problem) from None
        return cls(settings, plan)


def _changed(options: StudyOptions) -> list[str]:
    """Return the names of options, and of those of the metric, that are not the default."""
    now, default = (
        {**one.to_mapping(), **one.metric.to_mapping()} for one in (options, StudyOptions())
    )
    return [name for name, value in now.items() if value != default[name]]


def _command(
    settings: EvaluationSettings, options: StudyOptions, real: list[str], topics: list[str]
) -> tuple[str, ...]:
    """Return the words of `sim2real vepd` that do the same in batch."""
    words = ['--models', settings.models, '--imu', settings.imu]
    words += ['--judge-config', settings.params_file or settings.profile]
    if settings.judge != 'judge_node':
        words += ['--judge', settings.judge]
    for option, value in (
        ('--navsat-config', settings.navsat_params_file),
        ('--case', settings.case_file),
        ('--scenario', settings.scenario),
    ):
        words += [option, value] if value else []
    for topic in topics:
        words += ['--topic', topic]
    return vepd_command([*words, *study_words(options), '--real', *real])


def _setup(node: str, settings: EvaluationSettings) -> GraphJudgeSetup:
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
        return GraphJudgeSetup.of(setup, settings.judge)


def _check_names(recordings: Sequence[Source]) -> None:
    """Refuse a name that would be of two recordings."""
    known: dict[str, str] = {}
    for source in recordings:
        name = source.own_name()
        if name in known:
            raise Sim2RealError(
                f'{name}: is the name of {known[name]} and of {source.path}; must be of one '
                'recording'
            )
        known[name] = source.path


@contextlib.contextmanager
def _parameter(node: str, key: str) -> Iterator[None]:
    """Name the parameter in an error about what it names."""
    try:
        yield
    except Sim2RealError as error:
        raise ParameterError(node, key, str(error).removeprefix(f'{key}: ')) from None


def _texts(node: Node, name: str, doc: str) -> list[str]:
    """Declare a list of texts, and return it; a single text counts as a list of one."""
    described = ParameterDescriptor(description=doc, read_only=True, dynamic_typing=True)
    value: Any = node.declare_parameter(name, [''], described).value
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ParameterError(
            node.get_name(), name, f'{value!r} is not allowed; must be a list of texts'
        )
    return [text for text in texts if text]
