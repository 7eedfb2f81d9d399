# SPDX-License-Identifier: Apache-2.0
"""A judge that runs on a graph of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.conductor import Conductor
from sim2real_eval.judge.external.delivery import RecordedFeed
from sim2real_eval.judge.external.domain import free_domain, private_context
from sim2real_eval.judge.external.paced_side import PacedSide
from sim2real_eval.judge.external.process import executable, filter_node
from sim2real_eval.judge.external.side import Side
from sim2real_eval.judge.setup import JudgeSetup, check_for_nodes
from sim2real_eval.recording.recording import Recording

__all__ = ['GraphJudgeSetup']


@dataclasses.dataclass(frozen=True, eq=False)
class GraphJudgeSetup(JudgeSetup):
    """JudgeSetup whose `judge` starts a judge node and feeds it in lockstep.

    Attributes
    ----------
    kind : str
        One of JUDGES.
    navsat_node : str
        `embedded`, or `robot_localization` for the real navsat_transform_node beside the real
        filter, at the speed of the wall clock.
    """

    is_fast: ClassVar[bool] = False

    kind: str = 'judge_node'
    navsat_node: str = 'embedded'

    @classmethod
    def of(cls, setup: JudgeSetup, kind: str, *, navsat_node: str = 'embedded') -> GraphJudgeSetup:
        """Return a set-up that a node carries out.

        Raises
        ------
        Sim2RealError
            When the node is not installed, and says what to do; for options of the embedded judge.
        """
        check_for_nodes(setup.case, kind)
        executable(kind, filter_node(setup))
        fields = {field.name: getattr(setup, field.name) for field in dataclasses.fields(setup)}
        return cls(**{**fields, 'kind': kind, 'navsat_node': navsat_node})

    def settings(self) -> Mapping[str, Any]:
        """Return the case; and the nodes, where their bits are not the embedded judge's."""
        settings = dict(super().settings())
        if self.kind == 'robot_localization':
            settings['nodes'] = {'judge': self.kind}
            if self.navsat is not None:
                ours = self.navsat_node == 'embedded'
                settings['nodes']['navsat_transform'] = 'sim2real_sensors' if ours else self.kind
        return settings

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording on a graph of its own; parameters as in the base class.

        Raises
        ------
        JudgeError
            Also when the node does not do what it should.
        """
        setup = self.started(start_ns=start_ns, start_heading=start_heading)
        feed = RecordedFeed(recording, setup)
        paced = self.navsat is not None and self.navsat_node != 'embedded'
        with _private_node() as (node, executor):
            side = (
                PacedSide(node, 'judge', setup, recording)
                if paced
                else Side(node, 'judge', setup, recording, judge=self.kind)
            )
            with side:
                Conductor(
                    node,
                    [side],
                    [feed],
                    executor=executor,
                    start_ns=feed.start_ns,
                    rate_factor=1.0 if paced else 0.0,
                ).play()
            return side.judged(recording)


@contextlib.contextmanager
def _private_node() -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    with free_domain() as domain, private_context(domain) as context:
        node = Node(
            f'sim2real_{os.getpid()}', context=context, use_global_arguments=False,
            enable_rosout=False, start_parameter_services=False,
        )  # fmt: skip
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        try:
            yield node, executor
        finally:
            executor.shutdown()
            node.destroy_node()
