# SPDX-License-Identifier: Apache-2.0
"""What evaluation_node is told: its parameters, and the study that they describe."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sim2real_eval.cli.arguments import scenario_label, sources, topic_roles, twins
from sim2real_eval.comparison import ComparisonOptions, Source
from sim2real_eval.comparison_folder import check_target
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.metrics import MetricOptions
from sim2real_eval.metrics.speeds import SPEED_COMPONENTS
from sim2real_eval.ros.lockstep import JUDGES, GraphJudgeSetup
from sim_sensors.errors import ParameterError
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.ros.parameters import NodeParameters

__all__ = ['EvaluationSettings', 'Study']

# Every ROS node has these.
_OF_ALL_NODES = ('use_sim_time', 'start_type_description_service')
_QOS = 'qos_overrides.'


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(Parameters):
    """Parameters of evaluation_node that are no lists; `real` and `topics` are."""

    models: str = parameter(
        'paper',
        '',
        'GPS models, by comma: presets, YAML files, paper, all, or real to keep the recorded GPS.',
        read_only=True,
    )
    imu: str = parameter('chrono', '', 'IMU models likewise, or real.', read_only=True)
    judge: str = parameter(
        'judge_node',
        '',
        'Which nodes judge: ours, or ekf_node of robot_localization.',
        choices=JUDGES,
        read_only=True,
    )
    profile: str = parameter(
        'paper_released', '', 'Parameters of the judge that are shipped.', read_only=True
    )
    params_file: str = parameter(
        '', '', 'Parameter file of ekf_node instead of a profile.', read_only=True
    )
    navsat_params_file: str = parameter(
        '',
        '',
        'Parameter file of navsat_transform_node; empty: that which belongs to the other.',
        read_only=True,
    )
    case_file: str = parameter(
        '', '', 'case.yaml that sets clock, timers and delivery order.', read_only=True
    )
    out: str = parameter('', '', 'Folder to write.', read_only=True)
    overwrite: bool = parameter(False, '', 'Replace an older result in it.', read_only=True)
    seed: int = parameter(0, '1', 'Seed of all random draws.', minimum=0, read_only=True)
    repetitions: int = parameter(
        1, '1', 'Simulated runs per recording and model.', minimum=1, read_only=True
    )
    match_rates: bool = parameter(
        False, '', 'Simulate at the rates of the real sensors.', read_only=True
    )
    start_heading: bool = parameter(
        False, '', 'Start the filters with the true heading.', read_only=True
    )
    component: str = parameter(
        'horizontal', '', 'Speed that is compared.', choices=SPEED_COMPONENTS, read_only=True
    )
    scenario: str = parameter(
        '', '', 'Scenario label of all recordings; empty: their own.', read_only=True
    )
    rate_factor: float = parameter(
        0.0,
        '1',
        'Seconds of a run per second of wall time; 0: as fast as all keep up.',
        minimum=0.0,
        maximum=1e3,
        read_only=True,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Study:
    """What is to be evaluated.

    Attributes
    ----------
    settings : EvaluationSettings
    sources : tuple of Source
    options : ComparisonOptions
        Its set-up knows how to put judges on a graph.
    """

    settings: EvaluationSettings
    sources: tuple[Source, ...]
    options: ComparisonOptions

    @property
    def setup(self) -> GraphJudgeSetup:
        """The judge."""
        setup = self.options.setup
        assert isinstance(setup, GraphJudgeSetup)
        return setup

    @property
    def judge(self) -> str:
        """What the judge is called on the command line: its profile or file."""
        return self.settings.params_file or self.settings.profile

    @classmethod
    def of(cls, node: Node) -> Study:
        """Declare the parameters of a node and read everything that they name but recordings.

        The node must have been made with `automatically_declare_parameters_from_overrides`, so
        that a parameter of another name is seen, and refused.

        Raises
        ------
        Sim2RealError
            For what is unknown, wrong, missing, or there already.
        """
        given = [
            name
            for name in node.get_parameters_by_prefix('')
            if name not in _OF_ALL_NODES and not name.startswith(_QOS)
        ]
        for name in given:
            node.undeclare_parameter(name)
        declared = NodeParameters(node)
        settings = declared.declare(EvaluationSettings())
        metric = declared.declare(MetricOptions(), 'metric', skip=('drop_zeros',), read_only=True)
        real = _texts(node, 'real', 'Real recordings with ground truth: paths of bags.')
        topics = _texts(node, 'topics', 'Topics of the imu, gps or truth, each ROLE=TOPIC.')
        for name in given:
            if not node.has_parameter(name):
                raise ParameterError(node.get_name(), name, 'is not a parameter of this node')
        return cls._read(node.get_name(), settings, metric, real, topics)

    @classmethod
    def _read(
        cls,
        name: str,
        settings: EvaluationSettings,
        metric: MetricOptions,
        real: list[str],
        topics: list[str],
    ) -> Study:
        if not settings.out:
            raise ParameterError(name, 'out', 'is missing; must be the folder to write')
        if not real:
            raise ParameterError(name, 'real', 'is missing; must be one recording or more')
        try:
            topic_roles(topics)
        except ParameterError as error:
            raise ParameterError(name, 'topics', error.problem) from None
        try:
            scenario = scenario_label(settings.scenario) if settings.scenario else None
        except argparse.ArgumentTypeError as error:
            raise ParameterError(name, 'scenario', str(error)) from None
        recordings = sources(real, topics, scenario)
        for source in recordings:
            if not Path(source.path).exists():
                raise ParameterError(name, 'real', f'{source.path}: no such file or folder')
        check_target(settings.out, overwrite=settings.overwrite)
        options = ComparisonOptions(
            twins=twins(settings.models, settings.imu),
            setup=GraphJudgeSetup.of(
                JudgeSetup.load(
                    settings.params_file or settings.profile,
                    settings.navsat_params_file or None,
                    settings.case_file or None,
                ),
                settings.judge,
            ),
            metric=metric,
            component=settings.component,
            seed=settings.seed,
            repetitions=settings.repetitions,
            match_rates=settings.match_rates,
            start_heading=settings.start_heading,
        )
        return cls(settings, tuple(recordings), options)


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
