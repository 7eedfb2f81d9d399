# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A ROS graph for judges: a DDS domain of its own, one clock, and the runs on it."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording
from .connections import GraphEstimator
from .declaration import RosStack
from .expected import ArrayFeed, Feed, RecordedFeed
from .graph_estimators import DeclaredEstimator, FilterEstimator
from .messages import stack_inputs
from .publishers import PublisherWatch
from .waits import Work

# Ports of higher domains are in the range of ephemeral ports of Linux.
_DOMAINS = range(1, 102)
_OTHER_DISCOVERY = ('ROS_LOCALHOST_ONLY', 'ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')
_FIRST_PORT, _PORTS_PER_DOMAIN = 7400, 250
# Offsets of the ports of discovery: of multicast, which graphs on this machine alone do not use,
# and of each participant, such as a process that ends after the first one.
_DISCOVERY_PORTS = (0, *range(10, 74, 2))
# Offset of the port of participant 115, which no graph has.
_RESERVED_PORT = 240

# On a machine under load one answer may take this long; a node that takes longer is dead.
_TIMEOUT_S = 20.0
# A node imports and compiles before it subscribes.
_START_TIMEOUT_S = 90.0
_POLL_S = 0.05
_RETRY_S = 0.5
# After a replay in real time an estimate may still be on its way. Required ones are waited for.
_QUIET_S, _LATE_S = 0.3, 3.0

WITHOUT_TYPE_DESCRIPTIONS = Parameter('start_type_description_service', value=False)
"""For short-lived nodes: rclpy destroys that service twice, which sometimes crashes."""


@contextlib.contextmanager
def free_domain() -> Iterator[int]:
    """Reserve a ROS domain that no other process of ours and no foreign graph uses.

    Our processes hold a port of the domain that DDS does not need; bound ports of discovery show
    other users. JudgeError if all domains are in use.
    """
    for number in range(len(_DOMAINS)):
        domain = _DOMAINS[(os.getpid() + number) % len(_DOMAINS)]
        first = _FIRST_PORT + _PORTS_PER_DOMAIN * domain
        with _udp_socket() as reservation:
            if _binds(reservation, first + _RESERVED_PORT) and all(
                _is_free(first + offset) for offset in _DISCOVERY_PORTS
            ):
                yield domain
                return
    raise JudgeError(
        f'ROS domains {_DOMAINS[0]} to {_DOMAINS[-1]} are all in use; stop the nodes of one'
    )


def _udp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def _is_free(port: int) -> bool:
    with _udp_socket() as probe:
        return _binds(probe, port)


def _binds(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind(('', port))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def private_context(domain: int) -> Iterator[Context]:
    """Provide a ROS context on a domain that does not leave the machine.

    Processes that are started in the block are on the same domain.
    """
    variables: dict[str, str | None] = dict.fromkeys(_OTHER_DISCOVERY)
    variables |= {'ROS_DOMAIN_ID': str(domain), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    before = {name: os.environ.get(name) for name in variables}
    context = Context()
    _set_environment(variables)
    try:
        rclpy.init(args=[], context=context, domain_id=domain)
        try:
            yield context
        finally:
            rclpy.try_shutdown(context=context)
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str | None]) -> None:
    for name, setting in variables.items():
        if setting is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = setting


@contextlib.contextmanager
def judging_node() -> Iterator[tuple[Node, Executor]]:
    """Provide a node on a graph of its own, and the executor that spins it."""
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


class ReplayClock:
    """Publisher of one /clock for one or more estimators.

    At each step the estimators get the messages that have arrived, the clock is set if a node has
    something to do, and the next step waits until all nodes have done it. No wait has a fixed
    duration.

    Parameters
    ----------
    node : Node
        Publishes /clock.
    estimators : sequence of GraphEstimator
        Estimators whose `with` block was entered.
    feeds : sequence of Feed
        Messages for each estimator.
    executor : Executor
        Spins the node. Nothing else may spin it during `play`, except `Feed.until`.
    start_ns : int
        Start of the nodes, unless the case of an estimator's set-up sets it.
    rate_factor : float
        Largest number of run seconds per wall second; lost time is not caught up. 0: unlimited.
    start_timeout_s : float, optional
        Longest time in which nodes must become ready.
    on_step : callable, optional
        Called with the time of each finished step.
    """

    def __init__(
        self,
        node: Node,
        estimators: Sequence[GraphEstimator],
        feeds: Sequence[Feed],
        *,
        executor: Executor,
        start_ns: int,
        rate_factor: float = 0.0,
        start_timeout_s: float | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self._node, self._executor = node, executor
        self._feeds = dict(zip(estimators, feeds, strict=True))
        self._start_ns, self._rate = start_ns, rate_factor
        self._watch = PublisherWatch(node)
        self._start_timeout_s = start_timeout_s or _START_TIMEOUT_S
        self._on_step = on_step

    def play(self) -> None:
        """Replay until all feeds have ended, plus the run-on time of each estimator.

        JudgeError if a node ends or does not answer, OtherPublisherError if another node publishes
        the clock, an input of a judge or its estimates.
        """
        self._clock = self._node.create_publisher(Clock, '/clock', QoSProfile(depth=10))
        try:
            self._refuse_other_clock()
            self._play()
        finally:
            self._watch.end('/clock')
            self._node.destroy_publisher(self._clock)

    def _play(self) -> None:
        playing = list(self._feeds)
        origins = {estimator.begin(self._start_ns) for estimator in playing}
        if len(origins) > 1:
            raise JudgeError(
                f'estimators start at {sorted(origins)} ns; must start at the same time'
            )
        (origin,) = origins
        # Nodes subscribe once they have seen a time, which is the origin of their ticks.
        ready = {estimator: estimator.ready() for estimator in playing}
        self._drive(ready, origin, _POLL_S, self._start_timeout_s)
        # By now, nodes that have joined the graph meanwhile are known.
        self._refuse_other_clock()
        wall_start = time.monotonic()
        while playing:
            now = min(estimator.next_ns for estimator in playing)
            if self._rate > 0.0:
                until = wall_start + (now - origin) * 1e-9 / self._rate
                # Lost time is not caught up: the start moves with it.
                wall_start += max(time.monotonic() - until, 0.0)
                while (remaining_s := until - time.monotonic()) > 0.0:
                    self._executor.spin_once(timeout_sec=min(remaining_s, _POLL_S))
            arrived = {estimator: self._feeds[estimator].until(now) for estimator in playing}
            playing = [
                estimator
                for estimator in playing
                if (last := self._feeds[estimator].last_ns) is None
                or now <= last + estimator.run_on_ns
            ]
            self._drive(
                {estimator: estimator.deliver(arrived[estimator]) for estimator in playing}
            )
            is_busy = {estimator: estimator.step(now) for estimator in playing}
            if any(is_busy.values()):
                self._drive({estimator: estimator.settle() for estimator in playing})
                self._set_clock(now)
                answers = {
                    estimator: estimator.answer(now) if is_busy[estimator] else estimator.idle()
                    for estimator in playing
                }
                self._drive(answers, now)
            for estimator in playing:
                estimator.finish_step(now)
            if self._on_step is not None:
                self._on_step(now)
        self._refuse_other_publishers(is_last=True)

    def _refuse_other_publishers(self, *, is_last: bool = False) -> None:
        self._watch.check(is_last=is_last)
        for estimator in self._feeds:
            estimator.refuse_other_publishers(is_last=is_last)

    def run_work(self, estimator: GraphEstimator, work: Work) -> None:
        """Run work of an estimator before or after a run."""
        self._drive({estimator: work})

    def _set_clock(self, now_ns: int) -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(now_ns, 1_000_000_000)
        self._clock.publish(message)

    def _refuse_other_clock(self) -> None:
        own_name = self._node.get_fully_qualified_name()
        for wait in self._watch.begin_alone('/clock', own_name):
            while not wait.is_met():
                self._executor.spin_once(timeout_sec=_POLL_S)

    def _drive(
        self,
        works: Mapping[GraphEstimator, Work],
        clock_ns: int | None = None,
        retry_s: float = _RETRY_S,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        """Run the works of all estimators in parallel until they are done.

        Meanwhile the clock is set again to the same time, which replaces a lost message and
        otherwise does nothing.
        """
        waits = {
            estimator: wait for estimator, work in works.items() if (wait := next(work, None))
        }
        last_progress = last_clock = time.monotonic()
        while waits:
            has_progress = False
            for estimator in list(waits):
                while estimator in waits and waits[estimator].is_met():
                    has_progress = True
                    if wait := next(works[estimator], None):
                        waits[estimator] = wait
                    else:
                        del waits[estimator]
            if not waits:
                break
            now = time.monotonic()
            if has_progress:
                last_progress = now
            elif now > last_progress + timeout_s:
                problems = '; '.join(
                    f'{estimator.name}: {wait.description}' for estimator, wait in waits.items()
                )
                raise JudgeError(f'waited {timeout_s:g} s in vain for {problems}')
            if clock_ns is not None and now > last_clock + retry_s:
                self._set_clock(clock_ns)
                last_clock = now
            self._executor.spin_once(timeout_sec=_POLL_S)
            self._refuse_other_publishers()
            if not has_progress and now > last_progress + _POLL_S:
                for estimator in waits:
                    estimator.check()


def run_judge_node(setup: JudgeSetup, kind: str, recording: Recording) -> JudgedRun:
    """Judge a recording by a node of a kind on a graph of its own; see `NodeJudgeSetup.judge`."""
    feed = RecordedFeed(recording, setup)
    with judging_node() as (node, executor):
        with FilterEstimator(node, 'judge', setup, recording, judge=kind) as estimator:
            ReplayClock(
                node, [estimator], [feed], executor=executor, start_ns=feed.start_ns
            ).play()
        return estimator.judged_run(recording)


class DeclaredSession:
    """A declared estimator on a graph of its own, which runs until it is closed."""

    def __init__(self, stack: RosStack, declaration: Path) -> None:
        self.stack = stack
        self._closing = contextlib.ExitStack()
        try:
            self._node, self._executor = self._closing.enter_context(judging_node())
            estimator = DeclaredEstimator(self._node, stack, declaration)
            self._estimator = self._closing.enter_context(estimator)
        except BaseException:
            self._closing.close()
            raise

    def __enter__(self) -> DeclaredSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the estimator."""
        self._closing.close()

    def replay(
        self, recording: Recording, start_ns: int | None, start_heading: float | None = None
    ) -> JudgedRun:
        """Replay a recording from a time on, by default from its first message."""
        estimator, clock = self._estimator, self.stack.clock
        inputs = stack_inputs(self.stack, recording, start_ns, start_heading)
        arrival = np.concatenate([array.arrival_ns for _, array in inputs.values()])
        if start_ns is not None:
            arrival = arrival[arrival >= start_ns]
        if not len(arrival):
            raise JudgeError(
                f'{estimator.name}: {recording.name} holds no message of {", ".join(inputs)}'
            )
        start = int(arrival.min()) if start_ns is None else start_ns
        arrays = [
            (name, array.take(array.arrival_ns >= start)) for name, (_, array) in inputs.items()
        ]
        feed = ArrayFeed(arrays, int(arrival.max()))
        estimator.set_recording(recording, inputs, feed)
        is_lockstep = clock.mode == 'lockstep'
        replay_clock = ReplayClock(
            self._node, [estimator], [feed], executor=self._executor, start_ns=start,
            rate_factor=0.0 if is_lockstep else clock.rate,
            start_timeout_s=self.stack.ready.timeout,
        )  # fmt: skip
        replay_clock.run_work(estimator, estimator.reset())
        replay_clock.play()
        end = time.monotonic()
        while not is_lockstep and time.monotonic() - end < (
            _LATE_S if estimator.missing else _QUIET_S
        ):
            self._executor.spin_once(timeout_sec=_QUIET_S)
        return estimator.judged_run()
