# SPDX-License-Identifier: Apache-2.0
"""A judge on a graph of its own: a DDS domain that nobody else is on, and one clock."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import rclpy
from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.setup import JudgeSetup, check_for_nodes
from sim2real_eval.recording.recording import Recording
from .follower import Feed, PendingMessage, RecordedFeed
from .process import executable, filter_node
from .side import Side
from .waits import Work, alone

# Ports of higher domains lie among those that Linux gives to whoever asks for any.
_DOMAINS = range(1, 102)
_OTHER_WAYS_OUT = ('ROS_LOCALHOST_ONLY', 'ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')
_FIRST_PORT, _PORTS_PER_DOMAIN = 7400, 250
# Multicast discovery, which everybody shares, and what belongs to the first participant.
_PROBED = (0, 10)

WITHOUT_TYPE_DESCRIPTIONS = Parameter('start_type_description_service', value=False)
"""For nodes that come and go: rclpy takes that service down twice, at times with a crash."""


@contextlib.contextmanager
def free_domain() -> Iterator[int]:
    """Hold a domain that no other process of ours holds and no foreign graph is on.

    A lock on a file tells our processes apart, and goes with the process that has it; the ports
    of the domain tell of all others. JudgeError when all are taken.
    """
    for number in range(len(_DOMAINS)):
        domain = _DOMAINS[(os.getpid() + number) % len(_DOMAINS)]
        lock = _locked(Path(tempfile.gettempdir(), f'sim2real_domain_{domain}.lock'))
        if lock is None:
            continue
        try:
            if _unused(domain):
                yield domain
                return
        finally:
            os.close(lock)
    raise JudgeError(
        f'ROS domains {_DOMAINS[0]} to {_DOMAINS[-1]} are all in use; end what runs on one'
    )


@contextlib.contextmanager
def private_context(domain: int) -> Iterator[Context]:
    """Provide a ROS context on a domain that does not leave the machine.

    Processes started meanwhile are on it too.
    """
    wanted: dict[str, str | None] = dict.fromkeys(_OTHER_WAYS_OUT)
    wanted |= {'ROS_DOMAIN_ID': str(domain), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    before = {name: os.environ.get(name) for name in wanted}
    context = Context()
    _set(wanted)
    try:
        rclpy.init(args=[], context=context, domain_id=domain)
        try:
            yield context
        finally:
            rclpy.try_shutdown(context=context)
    finally:
        _set(before)


@contextlib.contextmanager
def judging_node() -> Iterator[tuple[Node, Executor]]:
    """Provide a node on a graph of its own, and what spins it."""
    with free_domain() as domain, private_context(domain) as context:
        node = Node(
            f'sim2real_{os.getpid()}', context=context, use_global_arguments=False,
            enable_rosout=False, start_parameter_services=False,
            parameter_overrides=[WITHOUT_TYPE_DESCRIPTIONS],
        )  # fmt: skip
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        try:
            yield node, executor
        finally:
            executor.shutdown()
            node.destroy_node()


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _locked(path: Path) -> int | None:
    """Return an open file that holds the lock, or None when another has it."""
    # In shared folders another's file may be opened for reading only, and not with O_CREAT.
    create = 0 if path.exists() else os.O_CREAT
    try:
        file = os.open(path, os.O_RDONLY | create | os.O_CLOEXEC, 0o644)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _unused(domain: int) -> bool:
    for offset in _PROBED:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', _FIRST_PORT + _PORTS_PER_DOMAIN * domain + offset))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return False
    return True


# A machine under load may take this long for one answer; a node that does is dead.
_TIMEOUT_S = 20.0
# A node imports and compiles before it subscribes.
_START_TIMEOUT_S = 90.0
_POLL_S = 0.05
_AGAIN_S = 0.5


class Played(Protocol):
    """A judge on the graph; at each time its methods are called in the order of their lines."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def run_on_ns(self) -> int:
        """How long the clock goes on after the last message."""

    def begin(self, start_ns: int) -> int:
        """Prepare for a run; return the first time of the clock."""

    def ready(self) -> Work:
        """Wait until it has begun; the clock stands."""

    @property
    def next_ns(self) -> int:
        """Time at which something is due next."""

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Take what has arrived."""

    def step(self, now_ns: int) -> bool:
        """Say whether the node has something to do at this time."""

    def settle(self) -> Work:
        """Wait until the node has dealt with all that was sent."""

    def answer(self, now_ns: int) -> Work:
        """Wait until the node has done what is due; the clock has been set."""

    def idle(self) -> Work:
        """Let the node see the clock at a time at which it has nothing to do."""

    def after(self, now_ns: int) -> None:
        """Finish the step."""

    def check(self) -> None:
        """Raise JudgeError when a node has ended."""


class Conductor:
    """One /clock for one or more sides.

    At each step the sides are given what has arrived, the clock is set when a node has something
    to do, and the next step waits until every node has done it. Nothing sleeps for a fixed time.

    `node` publishes /clock; `executor` spins it and whatever else must go on: nobody else may
    during `play`, and it does not while `Feed.until` runs, which may spin it itself. `sides` are
    entered, and `feeds` what arrives at each. The nodes start at `start_ns`, unless the case of a
    side's set-up says otherwise. `rate_factor` is how many seconds of the run a second of the wall
    has at most: time that is lost is not made up for; 0: as fast as it goes. Nodes must be ready
    after `start_timeout_s`. `on_step` is called with the time of each step that is done.
    """

    def __init__(
        self,
        node: Node,
        sides: Sequence[Played],
        feeds: Sequence[Feed],
        *,
        executor: Executor,
        start_ns: int,
        rate_factor: float = 0.0,
        start_timeout_s: float | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self._node, self._executor = node, executor
        self._feeds = dict(zip(sides, feeds, strict=True))
        self._start_ns, self._rate = start_ns, rate_factor
        self._start_timeout_s = start_timeout_s or _START_TIMEOUT_S
        self._on_step = on_step

    def play(self) -> None:
        """Run until every feed has ended and its judge has run on as the case says.

        JudgeError when a judge ends or does not answer, or another node sets the clock.
        """
        self._clock = self._node.create_publisher(Clock, '/clock', QoSProfile(depth=10))
        try:
            self._refuse_another_clock()
            self._play()
        finally:
            self._node.destroy_publisher(self._clock)

    def _play(self) -> None:
        playing = list(self._feeds)
        origins = {side.begin(self._start_ns) for side in playing}
        if len(origins) > 1:
            raise JudgeError(f'sides start at {sorted(origins)} ns; must start at one time')
        (origin,) = origins
        # Nodes subscribe once they have seen a time, which is the origin of their ticks.
        ready = {side: side.ready() for side in playing}
        self._drive(ready, origin, _POLL_S, self._start_timeout_s)
        # Who has come on the graph meanwhile is known by now.
        self._refuse_another_clock()
        began = time.monotonic()
        while playing:
            now = min(side.next_ns for side in playing)
            if self._rate > 0.0:
                # What was late already is not made up for.
                until = began + (now - origin) * 1e-9 / self._rate
                began += max(time.monotonic() - until, 0.0)
                while (left := until - time.monotonic()) > 0.0:
                    self._executor.spin_once(timeout_sec=min(left, _POLL_S))
            arrived = {side: self._feeds[side].until(now) for side in playing}
            playing = [
                side
                for side in playing
                if (last := self._feeds[side].last_ns) is None or now <= last + side.run_on_ns
            ]
            self._drive({side: side.deliver(arrived[side]) for side in playing})
            busy = {side: side.step(now) for side in playing}
            if any(busy.values()):
                self._drive({side: side.settle() for side in playing})
                self._set_clock(now)
                answers = {
                    side: side.answer(now) if busy[side] else side.idle() for side in playing
                }
                self._drive(answers, now)
            for side in playing:
                side.after(now)
            if self._on_step is not None:
                self._on_step(now)

    def work(self, side: Played, work: Work) -> None:
        """Let a side do something before or after a run."""
        self._drive({side: work})

    def _set_clock(self, now_ns: int) -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(now_ns, 1_000_000_000)
        self._clock.publish(message)

    def _refuse_another_clock(self) -> None:
        reason = 'the clock must have one publisher, which waits for the judges'
        own = self._node.get_fully_qualified_name()
        for wait in alone(self._node, '/clock', own, reason):
            while not wait.met():
                self._executor.spin_once(timeout_sec=_POLL_S)

    def _drive(
        self,
        works: dict[Played, Work],
        clock_ns: int | None = None,
        again_s: float = _AGAIN_S,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        """Let the works go on side by side until all are done.

        While they wait the clock is set again and again, to the same time: where a message was
        lost that repairs it, and where not it does nothing.
        """
        waits = {side: wait for side, work in works.items() if (wait := next(work, None))}
        moved = shown = time.monotonic()
        while waits:
            progress = False
            for side in list(waits):
                while side in waits and waits[side].met():
                    progress = True
                    if wait := next(works[side], None):
                        waits[side] = wait
                    else:
                        del waits[side]
            if not waits:
                break
            now = time.monotonic()
            if progress:
                moved = now
            elif now > moved + timeout_s:
                what = '; '.join(f'{side.name}: {wait.what}' for side, wait in waits.items())
                raise JudgeError(f'waited {timeout_s:g} s in vain for {what}')
            if clock_ns is not None and now > shown + again_s:
                self._set_clock(clock_ns)
                shown = now
            self._executor.spin_once(timeout_sec=_POLL_S)
            if not progress and now > moved + _POLL_S:
                for side in waits:
                    side.check()


@dataclasses.dataclass(frozen=True, eq=False)
class GraphJudgeSetup(JudgeSetup):
    """JudgeSetup whose `judge` starts a judge node and feeds it in lockstep.

    Attributes
    ----------
    kind : str
        One of JUDGES.
    """

    is_fast: ClassVar[bool] = False

    kind: str = 'judge_node'

    @classmethod
    def of(cls, setup: JudgeSetup, kind: str) -> GraphJudgeSetup:
        """Return a set-up that a node carries out.

        Sim2RealError, which says what to do, when the node is not installed; for options of the
        embedded judge.
        """
        check_for_nodes(setup.case, kind)
        executable(kind, filter_node(setup))
        fields = {field.name: getattr(setup, field.name) for field in dataclasses.fields(setup)}
        return cls(**{**fields, 'kind': kind})

    def settings(self) -> Mapping[str, Any]:
        """Return the case; and the nodes, where their bits are not the embedded judge's."""
        settings = dict(super().settings())
        if self.kind == 'robot_localization':
            settings['nodes'] = {'judge': self.kind}
            if self.navsat is not None:
                settings['nodes']['navsat_transform'] = 'sim2real_sensors'
        return settings

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording on a graph of its own, as the base class does.

        JudgeError also when the node does not do what it should.
        """
        setup = self.started(start_ns=start_ns, start_heading=start_heading)
        feed = RecordedFeed(recording, setup)
        with judging_node() as (node, executor):
            with Side(node, 'judge', setup, recording, judge=self.kind) as side:
                Conductor(
                    node, [side], [feed], executor=executor, start_ns=feed.start_ns
                ).play()  # fmt: skip
            return side.judged(recording)
