# SPDX-License-Identifier: Apache-2.0
"""One judged side of a graph: a judge node, what it hears, and what it publishes."""

from __future__ import annotations

from types import TracebackType

from rclpy.node import Node

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.recording import Recording

__all__ = ['Side']


class Side:
    """A judge node in a namespace, its inputs, and what it published.

    A context manager: entering starts the node, leaving ends it and removes everything from
    `node`, so that a side of the same namespace can follow.

    Parameters
    ----------
    node : Node
        Publishes the inputs and hears the estimate; its executor is spun by the Conductor.
    namespace : str
        Such as `real`; topics are `/<namespace>/<topic of the configuration>`.
    setup : JudgeSetup
        As `JudgeSetup.started` returns it.
    recording : Recording
        Its topics, roles, frames and transforms count; its arrays may be empty and still to come.
    judge : str
        One of JUDGES.

    Raises
    ------
    JudgeError
        When the judge is not installed, or cannot be run so.
    """

    def __init__(
        self,
        node: Node,
        namespace: str,
        setup: JudgeSetup,
        recording: Recording,
        *,
        judge: str = 'judge_node',
    ) -> None:
        raise NotImplementedError

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the node; may be called twice."""

    def judged(self, recording: Recording) -> JudgedRun:
        """Return what was published; counts and notes are those of a batch run on `recording`."""
        raise NotImplementedError
