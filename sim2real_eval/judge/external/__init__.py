# SPDX-License-Identifier: Apache-2.0
"""Real judge nodes fed message by message and tick by tick, waiting for what they answer.

The judges are declared here, where ROS need not be installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar

from sim2real_eval.judge.protocol import Judge, JudgeRequest
from sim2real_eval.judge.setup import JudgeSetup

__all__: list[str] = []


class JudgeNode:
    """The embedded judge as a node, fed in lockstep on a ROS domain of its own."""

    kind: ClassVar[str] = 'judge_node'
    takes_node_options = True

    @classmethod
    def from_request(cls, request: JudgeRequest) -> Judge:
        """Return the judge; see `load_judge`."""
        setup = JudgeSetup.from_request(request)
        if find_spec('rclpy') is None:
            request.refuse(
                'judge',
                f'{cls.kind!r} needs rclpy: source the setup file of ROS, or pip install '
                "'sim2real_sensors[ros]'; embedded needs nothing",
            )
        from .graph import GraphJudgeSetup

        navsat_node = request.node_options.get('navsat_node', 'embedded')
        return GraphJudgeSetup.of(setup, cls.kind, navsat_node=navsat_node)


class RobotLocalizationNodes(JudgeNode):
    """The real ekf_node or ukf_node of robot_localization."""

    kind = 'robot_localization'
