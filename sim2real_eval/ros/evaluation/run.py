# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Replay of a recording together with one of its twins, and the progress of the evaluation."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import heapq
import json
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

from sim2real_eval.common.findings import to_records
from sim2real_eval.judge.estimate import Corrections, JudgedRun
from sim2real_eval.judge.external import NodeJudgeSetup
from sim2real_eval.judge.external.expected import PendingMessage, RecordedFeed, last_arrival_ns
from sim2real_eval.judge.external.graph import ReplayClock
from sim2real_eval.judge.external.graph_estimators import FilterEstimator
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.topics import route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.scores import POOLED, RunScore, VepdRow, vepd_table
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, default_type
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.outcome import StudyFailure
from sim2real_eval.study.run import StudyRun
from sim2real_eval.study.run_plan import PlannedRun, RunPlan
from sim_sensors.core.measurements import MessageArray
from sim_sensors.ros.diagnostics import diagnostic
from sim_sensors.ros.messages import message_class
from .bench import SensorBench

_ROW_FIELDS = ('model', 'scenario', 'n_real', 'n_sim', 'w_rmse', 'w_entropy', 'vepd')
_RUN_FIELDS = ('rmse', 'entropy_difference', 'forward_rmse', 'duration', 'estimates', 'fixes_used')


@dataclasses.dataclass(frozen=True)
class Pace:
    """Duration of one run and the wall time that it took, s."""

    run_s: float
    wall_s: float

    @property
    def factor(self) -> float:
        """Real-time factor."""
        return self.run_s / self.wall_s if self.wall_s > 0.0 else 0.0


class Tally:
    """Results of the runs of an evaluation, recording by recording.

    A recording is part of the result once all its runs are done, so that all models are compared
    on the same recordings. Until then its runs only count in the provisional VEPD of `rows`.

    Parameters
    ----------
    judge : str
        Label of the judge.
    recordings : sequence of str
        Names in the order of evaluation.
    models : sequence of str
        Labels of the twins.
    repetitions : int
        Runs of each twin per recording.
    """

    def __init__(
        self, judge: str, recordings: Sequence[str], models: Sequence[str], repetitions: int
    ) -> None:
        self._judge = judge
        self._recordings = list(recordings)
        self._models = list(models)
        self._per_recording = len(models) * repetitions
        self._outcomes: list[list[StudyRun] | StudyFailure] = []
        self._current: list[StudyRun] = []
        self._last: dict[str, Any] | None = None
        self._pace: Pace | None = None
        self.done = 0  # number of judged simulated runs
        self.total = self._per_recording * len(self._recordings)
        self.running = ''  # current run; empty between runs
        self.finished = False  # True if no more runs follow
        self.notes: list[str] = []  # about the evaluation as a whole

    @property
    def current(self) -> str | None:
        """Current or next recording; None after the last."""
        remaining = self._recordings[len(self._outcomes) :]
        return remaining[0] if remaining else None

    def add(self, run: StudyRun, pace: Pace | None = None) -> None:
        """Add a run of the current recording; simulated runs have a `pace`."""
        self._current.append(run)
        if run.is_real:
            return
        self.done += 1
        self._pace = pace
        real = self._current[0]
        self._last = {
            'recording': run.key.recording,
            'scenario': run.scenario,
            'model': run.key.model,
            'repetition': run.key.repetition,
            'real': _scores(real),
            'simulated': _scores(run),
            'notes': to_records(real.notes + run.notes),
        }
        if pace is not None:
            self._last['wall_s'] = pace.wall_s
            self._last['real_time_factor'] = pace.factor

    def complete(self) -> None:
        """Close the current recording, whose runs are all done."""
        self._outcomes.append(self._current)
        self._current = []

    def fail(self, reason: str) -> None:
        """Close the current recording, which could not be evaluated."""
        recording = self.current
        assert recording is not None
        self._outcomes.append(StudyFailure(self._judge, recording, '', reason))
        self._current = []

    def interrupt(self) -> None:
        """Close all remaining recordings of an evaluation that was stopped."""
        while self.current is not None:
            done = sum(not run.is_real for run in self._current)
            self.fail(f'stopped after {done} of {self._per_recording} runs')

    @property
    def complete_recordings(self) -> int:
        """Number of recordings in the result."""
        return sum(not isinstance(outcome, StudyFailure) for outcome in self._outcomes)

    @property
    def failures(self) -> list[StudyFailure]:
        """Recordings that are not in the result, with the reason."""
        return [outcome for outcome in self._outcomes if isinstance(outcome, StudyFailure)]

    def rows(self) -> list[VepdRow]:
        """Return the VEPD of each model so far, against the real runs of the same recordings.

        Ranks are meaningless here, since some models have more runs than others.
        """
        runs = [
            run
            for outcome in [*self._outcomes, self._current]
            if not isinstance(outcome, StudyFailure)
            for run in outcome
        ]
        rows: list[VepdRow] = []
        for model in self._models:
            simulated = [run for run in runs if run.key.model == model]
            names = {run.key.recording for run in simulated}
            real = [run for run in runs if run.is_real and run.key.recording in names]
            if simulated:
                rows += vepd_table(_by_scenario(real), {model: _by_scenario(simulated)})
        return rows

    def to_json(self) -> str:
        """Return the progress and the provisional result as one line of JSON."""
        return json.dumps(
            {
                'done': self.done,
                'total': self.total,
                'finished': self.finished,
                'running': self.running,
                'vepd': [
                    {name: getattr(row, name) for name in _ROW_FIELDS} for row in self.rows()
                ],
                'last': self._last,
                'failures': [
                    {'recording': failure.recording, 'reason': failure.reason}
                    for failure in self.failures
                ],
                'notes': self.notes,
            },
            ensure_ascii=False,
        )

    def status(self, name: str) -> DiagnosticStatus:
        """Return the diagnostic status: ERROR with a failure, WARN with a note, otherwise OK."""
        failures = self.failures
        notes = list(self.notes)
        if self._last is not None:
            notes += [note['text'] for note in self._last['notes']]
        level, message = DiagnosticStatus.OK, self.running or 'between runs'
        if self.finished:
            message = 'finished'
        if failures:
            level, message = DiagnosticStatus.ERROR, f'left out: {failures[-1].message}'
        elif notes:
            level, message = DiagnosticStatus.WARN, '; '.join(notes)
        values: list[tuple[str, object]] = [
            ('runs done', self.done),
            ('runs', self.total),
            ('running', self.running),
            ('recordings left out', len(failures)),
        ]
        if self._pace is not None:
            values.append(('real-time factor', f'{self._pace.factor:.3g}'))
        values += [
            (f'VEPD {row.model}', f'{row.vepd:.6g}')
            for row in self.rows()
            if row.scenario == POOLED
        ]
        return diagnostic(f'{name}: evaluation', level, message, values)


def _by_scenario(runs: Sequence[StudyRun]) -> dict[str, list[RunScore]]:
    scores: dict[str, list[RunScore]] = {}
    for run in runs:
        scores.setdefault(run.scenario, []).append(run.score)
    return scores


def _scores(run: StudyRun) -> dict[str, float]:
    return {name: run.values[name] for name in _RUN_FIELDS}


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Raised when a signal has asked the process to stop."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        self.word = 'interrupted' if number == signal.SIGINT else 'terminated'
        super().__init__(self.word)


class Stop:
    """Request to stop by SIGINT or SIGTERM, which `check` raises as an exception.

    An exception in a signal handler may interrupt the start of a process. It may also be lost
    where Python drops exceptions, such as after a fork. So only a second signal raises at once.
    """

    def __init__(self) -> None:
        self._number: int | None = None

    def check(self) -> None:
        """Raise Stopped if the process was asked to stop."""
        if self._number is not None:
            raise Stopped(self._number)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals inside the block.

        SIGINT is handled even in a background process, which ignores it by default, since
        `ros2 launch` sends it.
        """
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self._number = number


_QOS = QoSProfile(depth=100)
# Topics that the judges publish or subscribe to; a bag may contain those of the robot's own judge.
_JUDGE_TOPICS = (
    'accel/filtered',
    'cmd_vel',
    'gps/filtered',
    'odometry/filtered',
    'odometry/gps',
    'set_pose',
)
_RECORDED = 'recorded'


class Broadcast:
    """Publisher of the topics of a recording in a namespace, for viewers.

    Topics that the judge in that namespace uses are published below `recorded`. `leave_out` has
    the full names of topics that have another publisher; these are left out.
    """

    def __init__(
        self, node: Node, recording: Recording, namespace: str, leave_out: Collection[str] = ()
    ) -> None:
        self._node = node
        self._publishers: list[Any] = []
        rows: list[tuple[int, Any, bytes]] = []
        for topic, array in recording.messages.items():
            relative = topic.strip('/')
            name = f'{namespace}/{relative}'
            if name in leave_out or not len(array):
                continue
            if relative in _JUDGE_TOPICS:
                name = f'{namespace}/{_RECORDED}/{relative}'
            kind = MESSAGE_TYPES.get(recording.ros_types.get(topic, ''))
            if kind is None or kind.array is not type(array):
                kind = default_type(array)
            publisher = node.create_publisher(message_class(kind.name), name, _QOS)
            self._publishers.append(publisher)
            arrivals, messages = array.arrival_ns.tolist(), encode(kind, array, topic)
            rows += [
                (arrival, publisher, data)
                for arrival, data in zip(arrivals, messages, strict=True)
            ]
        # The sort is stable: messages that arrive together stay in order.
        self._rows = collections.deque(sorted(rows, key=lambda row: row[0]))

    def until(self, now_ns: int) -> None:
        """Publish all messages that have arrived by `now_ns`."""
        while self._rows and self._rows[0][0] <= now_ns:
            _, publisher, data = self._rows.popleft()
            publisher.publish(data)

    def close(self) -> None:
        """Remove the publishers from the graph."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)
        self._publishers.clear()


class SensorFeed:
    """Inputs of the judge from a simulated recording, while a bench measures its sensors.

    The order is that of a batch run over the same messages. `setup` selects the topics; JudgeError
    if the recording lacks one.
    """

    def __init__(self, bench: SensorBench, setup: JudgeSetup) -> None:
        self._bench = bench
        self._setup = setup
        self._waiting: list[tuple[int, int, int, str, MessageArray, int]] = []
        self._last_ns: int | None = None
        recording = bench.recording()
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        # Messages that arrive at the same time are in the order of the inputs.
        self._inputs_by_topic: dict[str, list[tuple[int, str]]] = {}
        for rank, (input_name, topic) in enumerate(routing.topic_inputs):
            self._inputs_by_topic.setdefault(topic, []).append((rank, input_name))
        self._topics = {role: recording.roles[role] for role in bench.roles}
        for topic, array in recording.messages.items():
            self._push(topic, array, 0)
        self._count = dict.fromkeys(bench.roles, 0)

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return the messages that arrive by `now_ns` and were not returned before."""
        self._bench.measure(now_ns)
        for role, array in self._bench.take_new().items():
            self._push(self._topics[role], array, self._count[role])
            self._count[role] += len(array)
        due = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, _, input_name, array, index = heapq.heappop(self._waiting)
            due.append((input_name, array.take([index])))
        return due

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message that the judge uses; None until all is measured."""
        if self._last_ns is None and self._bench.finished:
            setup = self._setup
            timing = prepare(
                self._bench.recording(), setup.filter, setup.navsat, setup.case
            ).timing
            self._last_ns = last_arrival_ns(timing, setup)
        return self._last_ns

    def _push(self, topic: str, array: MessageArray, first: int) -> None:
        for rank, input_name in self._inputs_by_topic.get(topic, ()):
            for index, arrival in enumerate(array.arrival_ns.tolist()):
                heapq.heappush(
                    self._waiting, (arrival, rank, first + index, input_name, array, index)
                )


_REAL, _SIMULATED = 'real', 'sim'


@dataclasses.dataclass(eq=False, kw_only=True)
class Pass:
    """The real run of a recording and one simulated run, judged by ROS nodes side by side.

    Entering the context starts the judges and sensors; leaving it ends them.
    """

    node: Node  # publishes everything that the judges and sensors receive
    executor: Executor  # spins the node
    truth: Publisher  # publisher of ground_truth/odometry, of `node`
    setup: NodeJudgeSetup
    plan: RunPlan  # plan of the recording
    run: PlannedRun  # simulated run
    rate_factor: float  # seconds of the run per wall second; 0: unlimited
    # Called after each step of the clock and while waiting for the sensors; it may raise.
    poll: Callable[[], None]
    # Duration of `play`.
    pace: Pace = dataclasses.field(init=False, default_factory=lambda: Pace(0.0, 0.0))
    _open: contextlib.ExitStack = dataclasses.field(
        init=False, default_factory=contextlib.ExitStack
    )

    def __enter__(self) -> Pass:
        with self._open as opened:
            self._start(opened)
            self._open = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _start(self, opened: contextlib.ExitStack) -> None:
        maker, twin = self.plan.maker, self.run.twin
        assert twin is not None
        parent = self.node.get_namespace().strip('/')
        namespaces = [f'{parent}/{name}'.strip('/') for name in (_REAL, _SIMULATED)]
        setup = self.setup.with_start(**self.plan.start_of(self.setup)._asdict())
        self._bench = SensorBench(
            self.node,
            self.truth,
            maker,
            maker.sensors(twin, self.run.repetition),
            self.run.model,
            namespace=f'/{namespaces[1]}/sensors',
            poll=self.poll,
        )
        opened.callback(self._bench.close)
        feeds = (RecordedFeed(maker.real, setup), SensorFeed(self._bench, setup))
        self._real, self._simulated = (
            opened.enter_context(
                FilterEstimator(self.node, namespace, setup, recording, judge=self.setup.kind)
            )
            for namespace, recording in zip(
                namespaces, (maker.real, self._bench.recording()), strict=True
            )
        )
        # The estimator publishes the inputs of the judge.
        published = {publisher.topic_name for publisher in self.node.publishers}
        broadcast = Broadcast(self.node, maker.real, f'/{namespaces[0]}', published)
        opened.callback(broadcast.close)

        def on_step(now_ns: int) -> None:
            broadcast.until(now_ns)
            self._bench.refuse_other_publishers()
            self.poll()

        self._replay_clock = ReplayClock(
            self.node,
            (self._real, self._simulated),
            feeds,
            executor=self.executor,
            start_ns=maker.start_ns,
            rate_factor=self.rate_factor,
            on_step=on_step,
        )

    def play(self) -> None:
        """Replay the recording with the simulated sensors beside it.

        Raises Sim2RealError if a judge ends or does not answer, or a sensor cannot measure, and
        OtherPublisherError if another node publishes one of the topics.
        """
        wall_start = time.monotonic()
        self._replay_clock.play()
        self._bench.refuse_other_publishers(is_last=True)
        maker = self.plan.maker
        run_s = (maker.end_ns - maker.start_ns) * 1e-9
        self.pace = Pace(run_s, time.monotonic() - wall_start)

    def recording(self) -> Recording:
        """Return the simulated recording as the judge received it."""
        return self._bench.recording()

    def judged_runs(self) -> tuple[JudgedRun, JudgedRun]:
        """Return the real and the simulated run as the judges estimated them."""
        return (
            self._real.judged_run(self.plan.maker.real),
            self._simulated.judged_run(self._bench.recording()),
        )


# Only velocities, m/s and rad/s, are scored. Positions are sums of many velocities, and
# covariances of unobserved states grow without bound, so all other fields also have a relative
# tolerance.
_VELOCITIES = ('linear_velocity', 'angular_velocity')


def first_difference(first: JudgedRun, second: JudgedRun, *, exact: bool) -> str | None:
    """Return a description of the first field in which two runs differ, or None.

    If `exact`, as for judge_node, every bit and note counts. Otherwise stamps and counts must be
    equal, velocities may differ by 1e-4 m/s or rad/s, and other numbers by 1e-3 plus a thousandth
    of their size.
    """
    for field in dataclasses.fields(JudgedRun):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, Corrections) or field.name == 'filtered_gps':
            # Only the embedded judge has corrections; filtered fixes follow from the positions.
            continue
        if not isinstance(a, np.ndarray):
            # Notes of a real node contain numbers that vary.
            if a != b and (exact or field.name != 'notes'):
                return f'{field.name} differ'
        elif a.shape != b.shape:
            return f'{field.name}: {len(a)} and {len(b)} rows'
        elif a.tobytes() != b.tobytes() and (exact or not _are_close(field.name, a, b)):
            return f'{field.name}: up to {np.abs(a - b).max():.3g} apart'
    return None


def _are_close(name: str, a: np.ndarray, b: np.ndarray) -> bool:
    relative, absolute = (0.0, 1e-4) if name in _VELOCITIES else (1e-3, 1e-3)
    return a.dtype.kind != 'i' and np.allclose(a, b, rtol=relative, atol=absolute)
