# SPDX-License-Identifier: Apache-2.0
"""One pass over a recording: it and one twin of it side by side, judged on one clock."""

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
from sim2real_eval.judge.external.follower import PendingMessage, RecordedFeed, last_arrival_ns
from sim2real_eval.judge.external.graph import Conductor, GraphJudgeSetup
from sim2real_eval.judge.external.side import Side
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.topics import route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, default_type
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.run_plan import PlannedRun, RunPlan
from sim_sensors.core.measurements import MessageArray
from sim_sensors.ros.messages import message_class
from .bench import SensorBench
from .tally import Pace

# What is on the graph for whoever looks on: the messages of the recording as it is replayed.

_QOS = QoSProfile(depth=100)
# What the judges publish or obey to; a bag may hold those of the judge that ran on the robot.
_OF_THE_JUDGE = (
    'accel/filtered',
    'cmd_vel',
    'gps/filtered',
    'odometry/filtered',
    'odometry/gps',
    'set_pose',
)
_ASIDE = 'recorded'


class Broadcast:
    """Publishes the topics of a recording in a namespace, each message at its arrival.

    Topics that the judge in that namespace publishes or obeys to go below `recorded` there. Those
    of the full names in `leave_out` are published by somebody else.
    """

    def __init__(
        self, node: Node, recording: Recording, namespace: str, leave_out: Collection[str] = ()
    ) -> None:
        self._node = node
        self._publishers: list[Any] = []
        rows: list[tuple[int, Any, bytes]] = []
        for topic, array in recording.messages.items():
            below = topic.strip('/')
            name = f'{namespace}/{below}'
            if name in leave_out or not len(array):
                continue
            if below in _OF_THE_JUDGE:
                name = f'{namespace}/{_ASIDE}/{below}'
            named = MESSAGE_TYPES.get(recording.ros_types.get(topic, ''))
            kind = named if named and named.array is type(array) else default_type(array)
            publisher = node.create_publisher(message_class(kind.name), name, _QOS)
            self._publishers.append(publisher)
            data = encode(kind, array, topic)
            rows += [
                (arrival, publisher, one)
                for arrival, one in zip(array.arrival_ns.tolist(), data, strict=True)
            ]
        # Those that arrive together stay in order.
        self._rows = collections.deque(sorted(rows, key=lambda row: row[0]))

    def until(self, now_ns: int) -> None:
        """Publish what has arrived by now."""
        while self._rows and self._rows[0][0] <= now_ns:
            _, publisher, data = self._rows.popleft()
            publisher.publish(data)

    def close(self) -> None:
        """Take the topics off the graph."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)
        self._publishers.clear()


class SensorFeed:
    """Deliveries of a twin that a bench measures, in the order of a batch run over the same
    messages: `setup` decides which topics are heard. That the recording lacks one is an error.
    """

    def __init__(self, bench: SensorBench, setup: JudgeSetup) -> None:
        self._bench = bench
        self._setup = setup
        self._waiting: list[tuple[int, int, int, str, MessageArray, int]] = []
        self._last_ns: int | None = None
        recording = bench.recording()
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        # Of messages that arrive together those of the earlier taker come first.
        self._takers: dict[str, list[tuple[int, str]]] = {}
        for rank, (taker, topic) in enumerate(routing.takers):
            self._takers.setdefault(topic, []).append((rank, taker))
        self._topics = {role: recording.roles[role] for role in bench.roles}
        for topic, array in recording.messages.items():
            self._take(topic, array, 0)
        self._count = dict.fromkeys(bench.roles, 0)

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return what arrives up to now and was not returned before; errors as of the bench."""
        self._bench.measure(now_ns)
        for role, array in self._bench.news().items():
            self._take(self._topics[role], array, self._count[role])
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

    def _take(self, topic: str, array: MessageArray, first: int) -> None:
        for rank, taker in self._takers.get(topic, ()):
            for index, arrival in enumerate(array.arrival_ns.tolist()):
                entry = (arrival, rank, first + index, taker, array, index)
                heapq.heappush(self._waiting, entry)


_REAL, _SIMULATED = 'real', 'sim'


@dataclasses.dataclass(eq=False, kw_only=True)
class Pass:
    """The real and one simulated run of a recording on the graph.

    A context manager: entering starts judges and sensors, leaving ends them.
    """

    node: Node  # publishes everything that the judges and sensors hear
    executor: Executor  # spins it
    truth: Publisher  # its publisher of ground_truth/odometry
    setup: GraphJudgeSetup
    plan: RunPlan  # of the recording
    run: PlannedRun  # the simulated one
    rate_factor: float  # seconds of the run per second of the wall; 0: as fast as it goes
    # Called after each step of the clock, and while sensors are waited for; may raise.
    poll: Callable[[], None]
    # Of `play`.
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
        within = self.node.get_namespace().strip('/')
        spaces = [f'{within}/{name}'.strip('/') for name in (_REAL, _SIMULATED)]
        setup = self.setup.started(**self.plan.start_of(self.setup)._asdict())
        self._bench = SensorBench(
            self.node,
            self.truth,
            maker,
            maker.sensors(twin, self.run.repetition),
            self.run.model,
            namespace=f'/{spaces[1]}/sensors',
            poll=self.poll,
        )
        opened.callback(self._bench.close)
        feeds = (RecordedFeed(maker.real, setup), SensorFeed(self._bench, setup))
        self._real, self._simulated = (
            opened.enter_context(Side(self.node, space, setup, recording, judge=self.setup.kind))
            for space, recording in zip(spaces, (maker.real, self._bench.recording()), strict=True)
        )
        # Inputs of the judge are published by its side.
        taken = {publisher.topic_name for publisher in self.node.publishers}
        broadcast = Broadcast(self.node, maker.real, f'/{spaces[0]}', taken)
        opened.callback(broadcast.close)

        def step(now_ns: int) -> None:
            broadcast.until(now_ns)
            self.poll()

        self._conductor = Conductor(
            self.node,
            (self._real, self._simulated),
            feeds,
            executor=self.executor,
            start_ns=maker.start_ns,
            rate_factor=self.rate_factor,
            on_step=step,
        )

    def play(self) -> None:
        """Replay the recording, with the sensors beside it, from beginning to end.

        That a judge ends or does not answer, or a sensor cannot measure, is an error.
        """
        began = time.monotonic()
        self._conductor.play()
        maker = self.plan.maker
        run_s = (maker.end_ns - maker.start_ns) * 1e-9
        self.pace = Pace(run_s, time.monotonic() - began)

    def recording(self) -> Recording:
        """Return what was simulated, as the judge was given it."""
        return self._bench.recording()

    def judged(self) -> tuple[JudgedRun, JudgedRun]:
        """Return what the judges published on the real and on the simulated side."""
        return (
            self._real.judged(self.plan.maker.real),
            self._simulated.judged(self._bench.recording()),
        )


# Whether two judges that were given the same messages said the same.

# Velocities, in m/s and rad/s, are what is scored. Positions are the sum of many, and covariances
# of what is not observed grow without bound, so these may differ by a part of their size, too.
_VELOCITIES = ('linear_velocity', 'angular_velocity')


def first_difference(one: JudgedRun, other: JudgedRun, *, exact: bool) -> str | None:
    """Name the first field in which two runs differ; None when there is none.

    With `exact` every bit and every note counts, as with judge_node. Otherwise stamps and counts
    do, but velocities may lie 1e-4 m/s or rad/s apart, other numbers 1e-3 and a thousandth of
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
        elif a.tobytes() != b.tobytes() and (exact or not _close(field.name, a, b)):
            return f'{field.name}: up to {np.abs(a - b).max():.3g} apart'
    return None


def _close(name: str, a: np.ndarray, b: np.ndarray) -> bool:
    relative, absolute = (0.0, 1e-4) if name in _VELOCITIES else (1e-3, 1e-3)
    return a.dtype.kind != 'i' and np.allclose(a, b, rtol=relative, atol=absolute)
