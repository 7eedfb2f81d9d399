# SPDX-License-Identifier: Apache-2.0
"""One pass over a recording: it and one of its twins, judged side by side on one clock."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import heapq
import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

from sim2real_eval.judge.estimate import Corrections, JudgedRun
from sim2real_eval.judge.external import NodeJudgeSetup
from sim2real_eval.judge.external.expected import PendingMessage, RecordedFeed, last_arrival_ns
from sim2real_eval.judge.external.graph import Conductor
from sim2real_eval.judge.external.side import FilterSide
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.replay_options import route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, default_type
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.run_plan import PlannedRun, RunPlan
from sim_sensors.core.measurements import MessageArray
from sim_sensors.ros.messages import message_class
from .bench import SensorBench
from .tally import Pace

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

    Topics that the judge in that namespace uses are published below `recorded`. The topics in
    `leave_out`, full names, have another publisher and are left out.
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
        """Publish all messages that have arrived."""
        while self._rows and self._rows[0][0] <= now_ns:
            _, publisher, data = self._rows.popleft()
            publisher.publish(data)

    def close(self) -> None:
        """Remove the publishers from the graph."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)
        self._publishers.clear()


class SensorFeed:
    """Feed of a twin that a bench measures, in the order of a batch run over the same messages.

    `setup` selects the topics; JudgeError if the recording lacks one.
    """

    def __init__(self, bench: SensorBench, setup: JudgeSetup) -> None:
        self._bench = bench
        self._setup = setup
        self._waiting: list[tuple[int, int, int, str, MessageArray, int]] = []
        self._last_ns: int | None = None
        recording = bench.recording()
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        # Messages that arrive together are ordered by taker.
        self._takers: dict[str, list[tuple[int, str]]] = {}
        for rank, (taker, topic) in enumerate(routing.takers):
            self._takers.setdefault(topic, []).append((rank, taker))
        self._topics = {role: recording.roles[role] for role in bench.roles}
        for topic, array in recording.messages.items():
            self._push(topic, array, 0)
        self._count = dict.fromkeys(bench.roles, 0)

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return all messages that arrive up to now and were not returned before."""
        self._bench.measure(now_ns)
        for role, array in self._bench.take_new().items():
            self._push(self._topics[role], array, self._count[role])
            self._count[role] += len(array)
        due = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, _, taker, array, index = heapq.heappop(self._waiting)
            due.append((taker, array.take([index])))
        return due

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message that counts, once the sensors have measured everything."""
        if self._last_ns is None and self._bench.finished:
            setup = self._setup
            timing = prepare(
                self._bench.recording(), setup.filter, setup.navsat, setup.case
            ).timing
            self._last_ns = last_arrival_ns(timing, setup)
        return self._last_ns

    def _push(self, topic: str, array: MessageArray, first: int) -> None:
        for rank, taker in self._takers.get(topic, ()):
            for index, arrival in enumerate(array.arrival_ns.tolist()):
                heapq.heappush(self._waiting, (arrival, rank, first + index, taker, array, index))


_REAL, _SIMULATED = 'real', 'sim'


@dataclasses.dataclass(eq=False, kw_only=True)
class Pass:
    """The real and one simulated run of a recording on the graph.

    Entering the context starts judges and sensors, leaving it ends them.
    """

    node: Node  # publishes everything that the judges and sensors receive
    executor: Executor  # spins the node
    truth: Publisher  # publisher of ground_truth/odometry of the node
    setup: NodeJudgeSetup
    plan: RunPlan  # plan of the recording
    run: PlannedRun  # simulated run
    rate_factor: float  # seconds of the run per wall second; 0: unlimited
    # Called after each step of the clock, and while the sensors are waited for; it may raise.
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
        setup = self.setup.started(**self.plan.start_of(self.setup)._asdict())
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
                FilterSide(self.node, namespace, setup, recording, judge=self.setup.kind)
            )
            for namespace, recording in zip(
                namespaces, (maker.real, self._bench.recording()), strict=True
            )
        )
        # The side of the judge publishes its inputs.
        published = {publisher.topic_name for publisher in self.node.publishers}
        broadcast = Broadcast(self.node, maker.real, f'/{namespaces[0]}', published)
        opened.callback(broadcast.close)

        def on_step(now_ns: int) -> None:
            broadcast.until(now_ns)
            self.poll()

        self._conductor = Conductor(
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

        Sim2RealError if a judge ends or does not answer, or a sensor cannot measure.
        """
        wall_start = time.monotonic()
        self._conductor.play()
        maker = self.plan.maker
        run_s = (maker.end_ns - maker.start_ns) * 1e-9
        self.pace = Pace(run_s, time.monotonic() - wall_start)

    def recording(self) -> Recording:
        """Return the simulated recording as the judge received it."""
        return self._bench.recording()

    def judged(self) -> tuple[JudgedRun, JudgedRun]:
        """Return the real and the simulated run of the judges."""
        return (
            self._real.judged(self.plan.maker.real),
            self._simulated.judged(self._bench.recording()),
        )


# Velocities, m/s and rad/s, are scored. Positions are sums of many velocities, and covariances of
# unobserved states grow without bound, so these have a relative tolerance, too.
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
            # These are those of the embedded judge, or follow from the compared positions.
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
