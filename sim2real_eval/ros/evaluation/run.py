# SPDX-License-Identifier: Apache-2.0
"""One pass over a recording: it and one twin of it side by side, judged on one clock."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from types import TracebackType

import numpy as np
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher

from sim2real_eval.judge.estimate import Corrections, JudgedRun
from sim2real_eval.judge.external.follower import RecordedFeed
from sim2real_eval.judge.external.graph import Conductor, GraphJudgeSetup
from sim2real_eval.judge.external.side import Side
from sim2real_eval.recording.recording import Recording
from sim2real_eval.ros.evaluation.bench import SensorBench
from sim2real_eval.ros.evaluation.feed import Broadcast, SensorFeed
from sim2real_eval.study.run_plan import PlannedRun, RunPlan

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

    def recording(self) -> Recording:
        """Return what was simulated, as the judge was given it."""
        return self._bench.recording()

    def judged(self) -> tuple[JudgedRun, JudgedRun]:
        """Return what the judges published on the real and on the simulated side."""
        return (
            self._real.judged(self._plan.maker.real),
            self._simulated.judged(self._bench.recording()),
        )


# Whether two judges that were given the same messages said the same.

# Velocities, in m/s and rad/s, are what is scored. Positions are the sum of many, and covariances
# of what is not observed grow without bound, so these may differ by a part of their size, too.
_VELOCITIES = ('linear_velocity', 'angular_velocity')
_VELOCITY_TOLERANCE = 1e-4
_TOLERANCE = 1e-3


def first_difference(one: JudgedRun, other: JudgedRun, *, exact: bool) -> str | None:
    """Name the first field in which two runs differ; None when they are alike.

    Parameters
    ----------
    one, other : JudgedRun
    exact : bool
        Every bit and every note counts, as with judge_node. Otherwise stamps and counts do, but
        velocities may lie 1e-4 m/s or rad/s apart, other numbers 1e-3 and a thousandth of
        themselves.
    """
    for field in dataclasses.fields(JudgedRun):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, Corrections) or field.name == 'filtered_gps':
            # Of the embedded judge, whose measurements both runs had; and what follows from the
            # positions, which are compared.
            continue
        if not isinstance(a, np.ndarray):
            # Notes about a real node's numbers hold numbers too.
            if a != b and (exact or field.name != 'notes'):
                return f'{field.name} differ'
        elif a.shape != b.shape:
            return f'{field.name}: {len(a)} and {len(b)} rows'
        elif a.tobytes() != b.tobytes() and (exact or not _near(field.name, a, b)):
            return f'{field.name}: up to {np.abs(a - b).max():.3g} apart'
    return None


def _near(name: str, a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == 'i':
        return False
    if name in _VELOCITIES:
        return np.allclose(a, b, rtol=0.0, atol=_VELOCITY_TOLERANCE)
    return np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)
