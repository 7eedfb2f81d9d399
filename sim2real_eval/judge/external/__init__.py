# SPDX-License-Identifier: Apache-2.0
"""Real judge nodes fed message by message and tick by tick, waiting for what they answer.

The judges are declared here, where ROS need not be installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar

from sim2real_eval.judge.protocol import Judge, JudgeRequest
from sim2real_eval.judge.setup import JudgeSetup
from sim_sensors.core.shipped import config_names, named_file
from .declaration import RosStack

__all__: list[str] = []


class JudgeNode:
    """The embedded judge as a node, fed in lockstep on a ROS domain of its own."""

    kind: ClassVar[str] = 'judge_node'
    takes_node_options = True

    @classmethod
    def from_request(cls, request: JudgeRequest) -> Judge:
        """Return the judge; see `load_judge`."""
        setup = JudgeSetup.from_request(request)
        needs_rclpy(request)
        from .graph import GraphJudgeSetup

        return GraphJudgeSetup.of(setup, cls.kind)


def needs_rclpy(request: JudgeRequest) -> None:
    """Refuse a judge that is a node where there is no ROS."""
    if find_spec('rclpy') is None:
        request.refuse(
            'judge',
            f'{request.judge!r} needs rclpy: source the setup file of ROS, or pip install '
            "'sim2real_sensors[ros]'; embedded needs nothing",
        )


class RobotLocalizationNodes(JudgeNode):
    """The real ekf_node or ukf_node of robot_localization."""

    kind = 'robot_localization'


class RosStackNodes:
    """Any estimator of ROS that a YAML file declares: `--judge my_estimator.yaml`."""

    @classmethod
    def from_request(cls, request: JudgeRequest) -> Judge:
        """Return the judge; see `load_judge`."""
        given = request.config
        if given is None:
            request.refuse('config', f'is missing; must be a file, or {_named()}')
        where = named_file(given, 'estimators', config_names('estimators'), 'estimator of ROS')
        stack = RosStack.from_file(where)
        needs_rclpy(request)
        from .stack import RosStackJudge

        return RosStackJudge(str(given), where.absolute(), stack, request.transforms)


def _named() -> str:
    return ' or '.join(config_names('estimators'))
