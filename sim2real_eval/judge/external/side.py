# SPDX-License-Identifier: Apache-2.0
"""One judged side of a graph: a judge node, what it hears, and what it publishes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence

from rclpy.node import Node

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.follower import ExpectedJudge, PendingMessage
from sim2real_eval.judge.external.process import NODE_NAME, JudgeProcess, NodeCommand
from sim2real_eval.judge.external.published import (
    OdometryInbox,
    Published,
    pose_of,
    rounded_up,
    stamp_of,
)
from sim2real_eval.judge.external.senders import (
    FILTERED_TOPIC,
    Questions,
    Senders,
    StaticFrames,
    Wait,
    Work,
    coinciding_frames,
)
from sim2real_eval.judge.findings import REAL_FILTER, REAL_FILTER_OWN_NAVSAT
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING, route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording

# Questions without an answer yet; the queues of services hold ten.
_MOST_OPEN = 8
# Static transforms and, in rclcpp, the clock are taken in threads of the node's own, whose work
# no answer proves: these give them time. What comes too late all the same shows in the estimate.
_ANSWERS_AFTER_TRANSFORMS = 20
_ANSWERS_AFTER_CLOCK = 3


class Side:
    """A judge node in a namespace, its inputs, and what it published.

    A context manager: entering starts the node, leaving ends it and removes everything from
    `node`, so that a side of the same namespace can follow. The steps of a run are the
    Conductor's to call.

    Beside the node runs the embedded judge on the same messages. It says which ticks publish, so
    that these are waited for and others not; with robot_localization navsat_transform is ours,
    and hears the odometry of the real filter.

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

    # Whether the embedded judge runs beside.
    _followed = True

    def __init__(
        self,
        node: Node,
        namespace: str,
        setup: JudgeSetup,
        recording: Recording,
        *,
        judge: str = 'judge_node',
    ) -> None:
        space = f'/{namespace.strip("/")}'
        self.name = f'{judge} in {space}'
        self._real = judge != 'judge_node'
        self._node, self._setup, self._space = node, setup, space
        self._recording = recording
        self._command = self._command_of(judge)
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        tree = FrameTree(recording.transforms, assume_identity=not recording.transforms)
        self._follower = ExpectedJudge(setup, tree, inside=not self._real)
        inputs = [name for name, topic in routing.sources.items() if topic is not None]
        self._inputs = {*inputs, *self._follower.navsat_inputs}
        if setup.navsat is not None and not setup.navsat.timed:
            # Its fixes are measurements when they arrive.
            self._inputs.add(FIX)
        others = {COMMAND: routing.command}
        if not self._real:
            others |= {FIX: routing.fix, HEADING: routing.heading}
        self._takers = self._inputs | {name for name, topic in others.items() if topic is not None}
        self._frames: Mapping[str, tuple[str, str]] = {}
        self._moved: Mapping[str, str] = {}
        if self._real:
            self._frames, self._moved = coinciding_frames(recording, setup.filter, routing.sources)
        self._stack = contextlib.ExitStack()

    def _command_of(self, judge: str) -> NodeCommand:
        domain = self._node.context.get_domain_id()
        return NodeCommand(judge, domain, self._space, self._setup, self._recording)

    def __enter__(self) -> Side:
        node, space = self._node, self._space
        with contextlib.ExitStack() as stack:
            # In this order: once the node answers, it has also heard of what was made before.
            self._senders = Senders(node, space, self._setup.filter, self._takers, self._frames)
            stack.callback(self._senders.close)
            self._static = StaticFrames(node, space, self._recording, self._moved)
            stack.callback(self._static.close)
            self._filtered = OdometryInbox(node, f'{space}/{FILTERED_TOPIC}')
            stack.callback(self._filtered.close)
            self._positions: OdometryInbox | None = None
            if self._setup.navsat is not None and not self._real:
                self._positions = OdometryInbox(node, f'{space}/{NAVSAT_TOPIC}')
                stack.callback(self._positions.close)
            self._questions = Questions(node, f'{space}/{NODE_NAME}')
            stack.callback(self._questions.close)
            stack.callback(self._command.remove_files)
            command = self._command.write_files()
            self._process = JudgeProcess(self.name, *command)
            stack.callback(self._process.close)
            self._process.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the node; may be called twice."""
        self._stack.close()

    @property
    def run_on_ns(self) -> int:
        """How long the node runs on after its last message."""
        return self._setup.case.clock.run_on_ns

    @property
    def next_ns(self) -> int:
        """Clock step at which something is due next."""
        return self._follower.grids.next_ns

    def check(self) -> None:
        """Raise JudgeError when the node has ended."""
        self._process.check()

    def begin(self, start_ns: int) -> int:
        """Set the timers for the run; return the first time of the clock."""
        self._follower.begin(start_ns, warm_up=self._followed)
        self._carried: list[PendingMessage] = []
        self._latest = ''
        self._published = Published(self.name)
        return self._follower.grids.filter.origin_ns

    def ready(self) -> Work:
        """Wait until node and side hear each other and the node has begun; the clock stands."""
        questions, origin = self._questions, self._follower.grids.filter.origin_ns
        yield Wait(lambda: self._senders.heard(self._takers), 'its subscriptions')
        yield Wait(lambda: self._static.heard, 'its subscription to /tf_static')
        yield Wait(lambda: bool(self._filtered.publishers), FILTERED_TOPIC)
        yield from questions.matched()
        # It has read them; so nothing is left when this process is killed.
        self._command.remove_files()
        yield from self._alone()
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
        for _ in range(_ANSWERS_AFTER_TRANSFORMS if self._static.needed else 1):
            yield from questions.settled()
        self._filtered.take()

    def _alone(self) -> Work:
        """Refuse to judge where another node publishes estimates too."""
        own = f'{self._space}/{NODE_NAME}'
        yield Wait(lambda: all(self._filtered.publishers), f'who publishes {FILTERED_TOPIC}')
        others = [name for name in self._filtered.publishers if name != own]
        if others:
            raise JudgeError(
                f'{self._space}/{FILTERED_TOPIC}: {", ".join(others)} publishes it too; end that, '
                'or take another ROS_DOMAIN_ID: it must be the judge alone'
            )
        # One of a run before that did not end well is known for some seconds more.
        yield Wait(lambda: len(self._filtered.publishers) == 1, f'the end of another {own}')

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Send messages to the node, at no greater pace than it takes them."""
        follower, questions = self._follower, self._questions
        carried, self._carried = self._carried, []
        for delivery in (*carried, *deliveries):
            taker = delivery.taker
            at_once = follower.take(delivery)
            if taker not in self._takers:
                continue
            # What comes on two topics may be taken the other way round. Which measurement is
            # first decides where a filter starts; after that the order moves the last bits.
            if taker in self._inputs:
                if self._latest not in ('', taker):
                    yield from self.settle()
                self._latest = taker
            self._senders.send(taker, delivery.array)
            self._published.give(taker)
            if at_once:
                yield from self._positions_at(delivery.arrival_ns)
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
            self._keep(now_ns)
        if follower.position is not None and self._positions is not None:
            yield from self._positions_at(now_ns)
        elif not self._real and follower.expected is None:
            yield from self._questions.status(
                lambda status: status['now_ns'] == now_ns and status['next_tick_ns'] > now_ns,
                f'the tick at {now_ns} ns',
            )

    def idle(self) -> Work:
        """Let the node see the clock at a time at which it has nothing to do."""
        for _ in range(_ANSWERS_AFTER_CLOCK):
            yield from self._questions.settled()
        self._filtered.take()

    def after(self, now_ns: int) -> None:
        """Run our navsat_transform if it is due; what it publishes is delivered next."""
        found = self._follower.navsat_step(now_ns)
        if found is not None:
            position, self._carried = found
            self._published.own_gps.append(position)

    def _keep(self, now_ns: int) -> None:
        """Take the odometry of a tick, and see that it is the one that it must be."""
        follower, data = self._follower, self._filtered.take()
        expected = follower.expected
        stamps = [stamp_of(one) for one in data]
        if expected is None:
            # The node publishes at every tick, to answer; this one it would not have published.
            newest = self._published.newest_ns
            if stamps and newest is not None and stamps[-1] > newest:
                raise self._published.mismatch(now_ns, stamps, 'none', self._moved)
            return
        if stamps != [expected.stamp_ns]:
            raise self._published.mismatch(now_ns, stamps, str(expected.stamp_ns), self._moved)
        self._published.add(data[0], expected)
        if follower.needs_odometry:
            follower.receive_odometry(pose_of(data[0]))

    def judged(self, recording: Recording) -> JudgedRun:
        """Return what was published; counts and notes are those of a batch run on `recording`.

        Raises
        ------
        JudgeError
            When it is not what the embedded judge makes of the same messages: that of a batch run
            bit for bit, or, for robot_localization, that of the judge beside it to rounding.
        """
        setup = self._setup
        embedded = judge(recording, setup.filter, setup.navsat, setup.case)
        if not self._real:
            return self._published.same_run(embedded)
        run, apart = self._published.near_run(embedded, self._moved)
        if not len(run):
            return run
        kind = REAL_FILTER if setup.navsat is None else REAL_FILTER_OWN_NAVSAT
        note = kind(apart=rounded_up(apart) * 1e6)
        return dataclasses.replace(run, notes=(*run.notes, note))
