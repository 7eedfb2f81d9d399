# SPDX-License-Identifier: Apache-2.0
"""Leads one or more sides through a run on one clock, tick by tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.executors import Executor
from rclpy.node import Node

from sim2real_eval.ros.lockstep.delivery import Feed
from sim2real_eval.ros.lockstep.side import Side

__all__ = ['Conductor']


class Conductor:
    """One /clock for one or more sides.

    Parameters
    ----------
    node : Node
        Publishes /clock.
    executor : Executor
        Spins `node` and whatever else must go on; nobody else may spin it during `play`. It is
        never spun while `Feed.until` runs, which may spin it itself.
    sides, feeds : sequences of equal length
        Entered sides, and what arrives at each.
    start_ns : int
        When the nodes start, unless the case of a side's set-up says so.
    rate_factor : float
        Seconds of the run per second of the wall; 0: as fast as it goes.
    on_step : callable, optional
        Called with the time of each step that is done.
    """

    def __init__(
        self,
        node: Node,
        sides: Sequence[Side],
        feeds: Sequence[Feed],
        *,
        executor: Executor,
        start_ns: int,
        rate_factor: float = 0.0,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        raise NotImplementedError

    def play(self) -> None:
        """Run until every feed has ended and its judge has run on as the case says.

        Raises
        ------
        JudgeError
            When a judge ends or does not answer.
        """
