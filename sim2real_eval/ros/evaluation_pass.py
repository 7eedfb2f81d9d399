# SPDX-License-Identifier: Apache-2.0
"""One pass over a recording: it and one twin of it side by side, judged on one clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import TracebackType

from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher

from sim2real_eval.judge import JudgedRun
from sim2real_eval.ros.evaluation_bench import SensorBench
from sim2real_eval.ros.evaluation_broadcast import Broadcast
from sim2real_eval.ros.evaluation_feed import SensorFeed
from sim2real_eval.ros.lockstep import Conductor, GraphJudgeSetup, RecordedFeed, Side
from sim2real_eval.run_plan import PlannedRun, RunPlan

__all__ = ['Pass']

_REAL, _SIMULATED = 'real', 'sim'


class Pass:
    """The real and one simulated run of a recording on the graph.

    A context manager: entering starts judges and sensors, leaving ends them.

    Parameters
    ----------
    node : Node
        Publishes everything that the judges and sensors hear.
    executor : Executor
        Spins it.
    truth : Publisher
        Of ground_truth/odometry, by `node`.
    setup : GraphJudgeSetup
    plan : RunPlan
        Of the recording.
    run : PlannedRun
        The simulated one.
    rate_factor : float
        Seconds of the run per second of the wall; 0: as fast as it goes.
    poll : callable
        Called after each step of the clock, and while sensors are waited for; may raise.

    Attributes
    ----------
    run_s, wall_s : float
        What `play` took, in seconds of the run and of the wall.
    """

    def __init__(
        self,
        node: Node,
        executor: Executor,
        truth: Publisher,
        setup: GraphJudgeSetup,
        plan: RunPlan,
        run: PlannedRun,
        *,
        rate_factor: float,
        poll: Callable[[], None],
    ) -> None:
        self._node = node
        self._executor = executor
        self._truth = truth
        self._setup = setup
        self._plan = plan
        self._run = run
        self._rate_factor = rate_factor
        self._poll = poll
        self._open = contextlib.ExitStack()
        self.run_s = self.wall_s = 0.0

    def __enter__(self) -> Pass:
        with self._open as opened:
            self._start(opened)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _start(self, opened: contextlib.ExitStack) -> None:
        maker, twin = self._plan.maker, self._run.twin
        assert twin is not None
        within = self._node.get_namespace().strip('/')
        spaces = [f'{within}/{name}'.strip('/') for name in (_REAL, _SIMULATED)]
        setup = self._setup.started(
            start_ns=maker.start_ns, start_heading=self._plan.start_heading
        )
        self._bench = SensorBench(
            self._node,
            self._truth,
            maker,
            maker.sensors(twin, self._run.repetition),
            self._run.model,
            namespace=f'/{spaces[1]}/sensors',
            poll=self._poll,
        )
        opened.callback(self._bench.close)
        feeds = (RecordedFeed(maker.real, setup), SensorFeed(self._bench, setup))
        self._real, self._simulated = (
            opened.enter_context(Side(self._node, space, setup, recording, judge=self._setup.kind))
            for space, recording in zip(spaces, (maker.real, self._bench.recording()), strict=True)
        )
        # Inputs of the judge are published by its side.
        taken = {publisher.topic_name for publisher in self._node.publishers}
        self._broadcast = Broadcast(self._node, maker.real, f'/{spaces[0]}', taken)
        opened.callback(self._broadcast.close)
        self._conductor = Conductor(
            self._node,
            (self._real, self._simulated),
            feeds,
            executor=self._executor,
            start_ns=maker.start_ns,
            rate_factor=self._rate_factor,
            on_step=self._step,
        )

    def _step(self, now_ns: int) -> None:
        self._broadcast.until(now_ns)
        self._poll()

    def play(self) -> None:
        """Replay the recording, with the sensors beside it, from beginning to end.

        Raises
        ------
        Sim2RealError
            When a judge ends or does not answer, or a sensor cannot measure.
        """
        began = time.monotonic()
        self._conductor.play()
        self.wall_s = time.monotonic() - began
        maker = self._plan.maker
        self.run_s = (maker.end_ns - maker.start_ns) * 1e-9

    def judged(self) -> tuple[JudgedRun, JudgedRun]:
        """Return what the judges published on the real and on the simulated side."""
        return (
            self._real.judged(self._plan.maker.real),
            self._simulated.judged(self._bench.recording()),
        )
