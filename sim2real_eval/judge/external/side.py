# SPDX-License-Identifier: Apache-2.0
"""One judged side of a graph: a judge node, what it hears, and what it publishes."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Sequence

from rclpy.node import Node

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.findings import REAL_FILTER, REAL_FILTER_OWN_NAVSAT
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING, route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording
from .follower import ODOMETRY, ExpectedJudge, PendingMessage, Published, rounded_up
from .process import NODE_NAME, JudgeProcess, executable, filter_command, filter_node, node_folder
from .senders import (
    FILTERED_TOPIC,
    Inbox,
    Questions,
    Senders,
    StaticFrames,
    coinciding_frames,
    filter_topics,
)
from .waits import Wait, Work, alone

# Questions without an answer yet; the queues of services hold ten.
_MOST_OPEN = 8
# Static transforms and, in rclcpp, the clock are taken in threads of the node's own, whose work
# no answer proves: these give them time. What comes too late all the same shows in the estimate.
_ANSWERS_AFTER_TRANSFORMS = 20
_ANSWERS_AFTER_CLOCK = 3


class Side:
    """A judge node in a namespace, its inputs, and what it published.

    Entering starts the node, leaving ends it and removes everything from `node`, so that a side of
    the same namespace can follow. The steps of a run are the Conductor's to call.

    Beside the node runs the embedded judge on the same messages. It says which ticks publish, so
    that these are waited for and others not; with robot_localization navsat_transform is ours, and
    hears the odometry of the real filter.

    `node` publishes the inputs and hears the estimate; the Conductor spins its executor. Topics
    are `/<namespace>/<topic of the configuration>`. `setup` is as `JudgeSetup.started` returns it;
    of `recording` topics, roles, frames and transforms count: its arrays may be empty and still to
    come. `judge` is one of JUDGES; JudgeError when it is not installed, or cannot be run so.
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
        self._space = f'/{namespace.strip("/")}'
        self.name = f'{judge} in {self._space}'
        self._kind, self._real = judge, judge != 'judge_node'
        self._node, self._setup, self._recording = node, setup, recording
        executable(judge, filter_node(setup))
        self._routing = route(recording, setup.filter, setup.navsat, setup.case)
        self._tree = FrameTree(recording.transforms, assume_identity=not recording.transforms)
        self._follower = ExpectedJudge(setup, self._tree, inside=not self._real)
        sources = self._routing.sources
        inputs = [name for name, topic in sources.items() if topic is not None]
        self._inputs = {*inputs, *self._follower.navsat_inputs}
        if setup.navsat is not None and not setup.navsat.timed:
            # Its fixes are measurements when they arrive.
            self._inputs.add(FIX)
        others = {COMMAND} if self._real else {COMMAND, FIX, HEADING}
        self._takers = self._inputs | (others & dict(self._routing.takers).keys())
        self._frames: dict[str, tuple[str, str]] = {}
        self._moved: dict[str, str] = {}
        if self._real:
            coinciding = coinciding_frames(recording, self._tree, setup.filter, sources)
            self._frames, self._moved = coinciding
        self.run_on_ns = setup.case.clock.run_on_ns
        self._stack = contextlib.ExitStack()
        self._processes: list[JudgeProcess] = []

    def __enter__(self) -> Side:
        try:
            self._enter()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _enter(self) -> None:
        node, closing, space = self._node, self._stack, self._space
        files = node_folder(closing)
        # In this order: once the node answers, it has also heard of what was made before.
        config = self._setup.filter
        topics = filter_topics(space, config, self._takers)
        self._senders = Senders(node, closing, topics, self._frames)
        self._static = StaticFrames(node, closing, space, self._recording, self._moved)
        self._filtered = Inbox(node, closing, f'{space}/{FILTERED_TOPIC}')
        self._positions: Inbox | None = None
        if self._setup.navsat is not None and not self._real:
            self._positions = Inbox(node, closing, f'{space}/{NAVSAT_TOPIC}')
        self._questions = Questions(node, closing, f'{space}/{NODE_NAME}')
        self._files = files
        command = filter_command(self._kind, files.path, space, self._setup, self._recording)
        self._start(self.name, command)

    def _start(self, name: str, command: Sequence[str]) -> None:
        domain = self._node.context.get_domain_id()
        process = JudgeProcess(name, command, {**os.environ, 'ROS_DOMAIN_ID': str(domain)})
        self._processes.append(process)
        process.started(self._stack)

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def next_ns(self) -> int:
        """Clock step at which something is due next."""
        return self._follower.grids.next_ns

    def check(self) -> None:
        """Raise JudgeError when a node has ended."""
        for process in self._processes:
            process.check()

    def begin(self, start_ns: int) -> int:
        """Set the timers for the run; return the first time of the clock."""
        self._follower.begin(start_ns)
        self._carried: list[PendingMessage] = []
        self._latest = ''
        self._published = Published(self.name, self._moved)
        return self._follower.grids.filter.origin_ns

    def ready(self) -> Work:
        """Wait until node and side hear each other and the node has begun; the clock stands."""
        questions, origin = self._questions, self._follower.grids.filter.origin_ns
        yield Wait(lambda: self._senders.heard(self._takers), 'its subscriptions')
        yield Wait(lambda: self._static.heard, 'its subscription to /tf_static')
        yield Wait(lambda: bool(self._filtered.publishers), FILTERED_TOPIC)
        yield from questions.matched()
        # It has read them; so nothing is left when this process is killed.
        self._files.remove()
        own, filtered = f'{self._space}/{NODE_NAME}', f'{self._space}/{FILTERED_TOPIC}'
        yield from alone(self._node, filtered, own, 'it must be the judge alone')
        if not self._real:
            heard = {f'{self._space}/{topic}' for topic in (FILTERED_TOPIC, NAVSAT_TOPIC)}
            yield from questions.status(
                lambda status: (
                    status['now_ns'] == origin
                    and status['next_tick_ns'] > origin
                    and all(n for topic, n in status['subscribers'].items() if topic in heard)
                ),
                'the start of its clock',
            )
        yield from self._settled(_ANSWERS_AFTER_TRANSFORMS if self._static.needed else 1)

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Send messages to the node, at no greater pace than it takes them."""
        follower, questions = self._follower, self._questions
        carried, self._carried = self._carried, []
        for taker, array in (*carried, *deliveries):
            at_once = follower.take(taker, array)
            if taker not in self._takers:
                continue
            # What comes on two topics may be taken the other way round. Which measurement is
            # first decides where a filter starts; after that the order moves the last bits.
            if taker in self._inputs:
                if self._latest not in ('', taker):
                    yield from self.settle()
                self._latest = taker
            self._senders.send(taker, array)
            self._published.give(taker)
            if at_once:
                yield from self._positions_at(int(array.arrival_ns[0]))
            questions.put()
            if questions.pending == _MOST_OPEN:
                yield from self.settle()

    def _positions_at(self, now_ns: int) -> Work:
        """Wait for the odometry/gps that the node publishes at this time."""
        positions = self._positions
        if positions is not None:
            yield Wait(lambda: bool(positions.waiting), f'{NAVSAT_TOPIC} at {now_ns} ns')
            self._published.gps += positions.take()

    def settle(self) -> Work:
        """Wait until the node has dealt with all that was sent."""
        if self._questions.pending:
            yield from self._questions.settled()
        self._latest = ''

    def step(self, now_ns: int) -> bool:
        """Run the embedded judge; say whether the node has something to do at this time."""
        return self._follower.step(now_ns)

    def answer(self, now_ns: int) -> Work:
        """Wait until the node has done what is due; the clock has been set."""
        follower = self._follower
        if self._real or follower.expected is not None:
            yield Wait(lambda: bool(self._filtered.waiting), f'the tick at {now_ns} ns')
            data = self._filtered.take()
            self._published.keep(now_ns, data, follower.expected)
            if follower.expected is not None:
                follower.receive_odometry(data[0])
        if follower.position is not None:
            yield from self._positions_at(now_ns)
        elif not self._real and follower.expected is None:
            yield from self._questions.status(
                lambda status: status['now_ns'] == now_ns and status['next_tick_ns'] > now_ns,
                f'the tick at {now_ns} ns',
            )

    def idle(self) -> Work:
        """Let the node see the clock at a time at which it has nothing to do."""
        yield from self._settled(_ANSWERS_AFTER_CLOCK)

    def _settled(self, answers: int) -> Work:
        for _ in range(answers):
            yield from self._questions.settled()
        self._filtered.take()

    def after(self, now_ns: int) -> None:
        """Run our navsat_transform if it is due; what it publishes is delivered next."""
        position = self._follower.navsat_step(now_ns)
        if position is not None:
            self._carried = [(name, position) for name in self._follower.navsat_inputs]
            self._published.gps += encode(ODOMETRY, position, NAVSAT_TOPIC)

    def judged(self, recording: Recording) -> JudgedRun:
        """Return what was published; counts and notes are those of a batch run on `recording`.

        JudgeError when it is not what the embedded judge makes of the same messages: that of a
        batch run bit for bit, or, for robot_localization, that of the judge beside it to rounding.
        """
        embedded = self._setup.batch_run(recording)
        if not self._real:
            return self._published.same_run(embedded)
        run, apart = self._published.near_run(embedded)
        if not len(run):
            return run
        kind = REAL_FILTER if self._setup.navsat is None else REAL_FILTER_OWN_NAVSAT
        return dataclasses.replace(run, notes=(*run.notes, kind(apart=rounded_up(apart) * 1e6)))
