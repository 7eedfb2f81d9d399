# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimators on a ROS graph: judge nodes that are checked, and estimators that a file declares.

Both are processes that receive messages and a clock from the `ReplayClock` of `graph.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from std_srvs.srv import Empty, Trigger

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.judge.estimate import (
    LOST,
    NO_TRANSFORMS,
    REAL_FILTER,
    REAL_TIME,
    RELEASE_DIFFERS,
    UNANSWERED,
    JudgedRun,
)
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING, route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import TF_TYPE, MessageType, find_type
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.measurements import MessageArray
from .connections import (
    GraphEstimator,
    Inbox,
    ProcessingProbe,
    Senders,
    StaticFrames,
    coinciding_frames,
    filter_topics,
    interface_class,
)
from .declaration import RosStack
from .expected import (
    ODOMETRY,
    ArrayFeed,
    ExpectedJudge,
    NodeOutput,
    PendingMessage,
    round_up_to_decade,
)
from .installed import find_robot_localization
from .lifecycle import activate
from .messages import estimated_run
from .process import (
    FILTERED_TOPIC,
    NODE_NAME,
    executable,
    filter_command,
    filter_node,
    make_scratch_folder,
    stack_command,
)
from .publishers import PublisherWatch
from .waits import RETRY_S, Wait, Work

# Service queues hold ten requests.
_MAX_PENDING = 8
# In rclcpp, static transforms and the clock are processed in threads of their own, so no answer
# proves that they were. These numbers of answers give them time. If that is not enough, the
# estimate shows it.
_ANSWERS_AFTER_TRANSFORMS = 20
_ANSWERS_AFTER_CLOCK = 3
_NEVER_NS = 2**63
_ACTIVATION_TIMEOUT_S = 60.0


class FilterEstimator(GraphEstimator):
    """A judge node in a namespace that is checked against the embedded judge.

    The embedded judge runs beside the node on the same messages. It determines which ticks
    publish, so that only these are waited for. For robot_localization, navsat_transform is ours
    and receives the odometry of the real filter.

    Parameters
    ----------
    node : Node
        Publishes the inputs and receives the estimates.
    namespace : str
        Topics are `/<namespace>/<topic of the configuration>`.
    setup : JudgeSetup
        As `JudgeSetup.with_start` returns it.
    recording : Recording
        Its topics, roles, frames and transforms are used; its arrays may be empty.
    judge : str
        One of JUDGES. JudgeError if it is not installed, or cannot be run with the set-up.
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
        self._namespace = f'/{namespace.strip("/")}'
        super().__init__(node, f'{judge} in {self._namespace}')
        self._kind, self._is_real = judge, judge != 'judge_node'
        self._installed = find_robot_localization() if self._is_real else None
        self._setup, self._recording = setup, recording
        executable(judge, filter_node(setup))
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        tree = FrameTree(recording.transforms, assume_identity=not recording.transforms)
        self._expected = ExpectedJudge(setup, tree, inside=not self._is_real)
        inputs = [name for name, topic in routing.sources.items() if topic is not None]
        self._inputs = {*inputs, *self._expected.navsat_inputs}
        if setup.navsat is not None and not setup.navsat.has_timer:
            # Its fixes are measurements as soon as they arrive.
            self._inputs.add(FIX)
        no_inputs = {COMMAND} if self._is_real else {COMMAND, FIX, HEADING}
        self._all_inputs = self._inputs | (no_inputs & dict(routing.topic_inputs).keys())
        self._frames: dict[str, tuple[str, str]] = {}
        self._transformed: dict[str, str] = {}
        if self._is_real:
            self._frames, self._transformed = coinciding_frames(
                recording, tree, setup.filter, routing.sources
            )
        self.run_on_ns = setup.case.clock.run_on_ns

    def __enter__(self) -> FilterEstimator:
        try:
            self._start()
        except BaseException:
            self._closing.close()
            raise
        return self

    def _start(self) -> None:
        node, closing, namespace = self._node, self._closing, self._namespace
        self._files = contextlib.ExitStack()
        closing.push(self._files)
        folder = make_scratch_folder(self._files)
        # The order counts: once the node answers, it also knows what was created before.
        topics = filter_topics(namespace, self._setup.filter, self._all_inputs)
        self._watched = {topic for topic, _ in topics.values()} | {f'{namespace}/{FILTERED_TOPIC}'}
        self._senders = Senders(node, closing, topics, self._frames)
        self._static = StaticFrames(node, closing, namespace, self._recording, self._transformed)
        self._filtered = Inbox(node, closing, self._watch, f'{namespace}/{FILTERED_TOPIC}')
        self._positions: Inbox | None = None
        if self._setup.navsat is not None and not self._is_real:
            self._positions = Inbox(node, closing, self._watch, f'{namespace}/{NAVSAT_TOPIC}')
            self._watched.add(f'{namespace}/{NAVSAT_TOPIC}')
        self._probe: ProcessingProbe = ProcessingProbe(node, closing, f'{namespace}/{NODE_NAME}')
        command = filter_command(self._kind, folder, namespace, self._setup, self._recording)
        self._start_process(command, folder)

    def begin(self, start_ns: int) -> int:
        """Set the timers for the run; return the first time of the clock."""
        self._expected.begin(start_ns)
        self._carried: list[PendingMessage] = []
        self._latest_input = ''
        other_release = str(note) if (note := self._release_note()) else ''
        self._output = NodeOutput(self.name, self._transformed, other_release)
        return self._expected.grids.filter.origin_ns

    def ready(self) -> Work:
        """Wait until the node is discovered and the node has started; the clock stands."""
        probe, origin = self._probe, self._expected.grids.filter.origin_ns
        if self._installed is not None and self._installed.is_lifecycle:
            name = f'{self._namespace}/{NODE_NAME}'
            yield from activate(self._node, name, self.name, _ACTIVATION_TIMEOUT_S)
        yield Wait(lambda: self._senders.have_subscribers(self._all_inputs), 'its subscriptions')
        yield Wait(lambda: self._static.are_received, 'its subscription to /tf_static')
        yield Wait(lambda: bool(self._filtered.publishers), FILTERED_TOPIC)
        yield from probe.match()
        # The node has read its files.
        self._files.close()
        for topic in sorted(self._watched):
            yield from self._watch.begin_alone(topic, f'{self._namespace}/{NODE_NAME}')
        if not self._is_real:
            ours = {f'{self._namespace}/{topic}' for topic in (FILTERED_TOPIC, NAVSAT_TOPIC)}
            yield from probe.wait_for_status(
                lambda status: (
                    status['now_ns'] == origin
                    and status['next_tick_ns'] > origin
                    and all(n for topic, n in status['subscribers'].items() if topic in ours)
                ),
                'the start of its clock',
            )
        yield from self._settle(_ANSWERS_AFTER_TRANSFORMS if self._static.are_needed else 1)
        self._filtered.take()

    @property
    def next_ns(self) -> int:
        """Next time at which a timer of the node is due."""
        return self._expected.grids.next_ns

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Send messages to the node no faster than it processes them."""
        probe = self._probe
        carried, self._carried = self._carried, []
        for input_name, array in (*carried, *deliveries):
            positions = self._expected.take(input_name, array)
            if input_name not in self._all_inputs:
                continue
            # A node may take messages on two topics in either order. The first measurement
            # decides where a filter starts; later, the order changes the last bits.
            if input_name in self._inputs:
                if self._latest_input not in ('', input_name):
                    yield from self.settle()
                self._latest_input = input_name
            self._senders.send(input_name, array)
            self._output.note_sent(input_name)
            if positions:
                yield from self._take_positions(int(array.arrival_ns[0]))
            probe.send()
            if probe.pending == _MAX_PENDING:
                yield from self.settle()

    def _take_positions(self, now_ns: int) -> Work:
        """Wait for the odometry/gps that the node publishes at this time."""
        inbox = self._positions
        if inbox is not None:
            yield Wait(lambda: bool(inbox.waiting), f'{NAVSAT_TOPIC} at {now_ns} ns')
            self._output.gps += inbox.take()

    def step(self, now_ns: int) -> bool:
        """Run the embedded judge; return True if the node has something to do at this time."""
        return self._expected.step(now_ns)

    def settle(self) -> Work:
        """Wait until the node has processed all messages."""
        if self._probe.pending:
            yield from self._probe.settle()
        self._latest_input = ''

    def answer(self, now_ns: int) -> Work:
        """Wait until the node has done what is due; the clock has been set."""
        estimate = self._expected.expected
        if self._is_real or estimate is not None:
            yield Wait(lambda: bool(self._filtered.waiting), f'the tick at {now_ns} ns')
            messages = self._filtered.take()
            self._output.add_tick(now_ns, messages, estimate)
            if estimate is not None:
                self._expected.receive_odometry(messages[0])
        if self._expected.position is not None:
            yield from self._take_positions(now_ns)
        elif not self._is_real and estimate is None:
            yield from self._probe.wait_for_status(
                lambda status: status['now_ns'] == now_ns and status['next_tick_ns'] > now_ns,
                f'the tick at {now_ns} ns',
            )

    def idle(self) -> Work:
        """Let the node see the clock at a time at which it has nothing to do."""
        yield from self._settle(_ANSWERS_AFTER_CLOCK)
        self._filtered.take()

    def finish_step(self, now_ns: int) -> None:
        """Run our navsat_transform if it is due; its message is delivered in the next step."""
        position = self._expected.navsat_step(now_ns)
        if position is not None:
            self._carried = [(name, position) for name in self._expected.navsat_inputs]
            self._output.gps += encode(ODOMETRY, position, NAVSAT_TOPIC)

    def judged_run(self, recording: Recording) -> JudgedRun:
        """Return the published run; counts and notes are those of a batch run on `recording`.

        JudgeError if it differs from the embedded judge: for judge_node in any bit of the batch
        run, for robot_localization by more than rounding from the judge beside it.
        """
        embedded = self._setup.batch_run(recording)
        if not self._is_real:
            return self._output.identical_run(embedded)
        run, difference = self._output.close_run(embedded)
        if not len(run):
            return run
        navsat = '' if self._setup.navsat is None else ', with the embedded navsat_transform'
        note = REAL_FILTER(navsat=navsat, apart=round_up_to_decade(difference) * 1e6)
        notes = [*run.notes, note]
        if (other_release := self._release_note()) is not None:
            notes.append(other_release)
        return dataclasses.replace(run, notes=tuple(notes))

    def _release_note(self) -> Finding | None:
        """Return the finding about another release than the one that is reproduced, if any."""
        package, stated = self._installed, self._setup.filter.release
        if package is None or package.release is stated:
            return None
        return RELEASE_DIFFERS(
            version=package.version, installed=package.release.value, stated=stated.value
        )


class DeclaredEstimator(GraphEstimator):
    """An estimator that a file declares, for one recording after another.

    `set_recording` prepares a replay. `node` publishes the inputs and receives the estimates.
    """

    def __init__(self, node: Node, stack: RosStack, declaration: Path) -> None:
        super().__init__(node, declaration.stem)
        self._declaration, self._stack = declaration, stack
        self._is_lockstep = stack.clock.mode == 'lockstep'
        self.run_on_ns = round(stack.clock.run_on * 1e9)
        self._topics: dict[str, tuple[str, str]] = {}
        self._transforms: tuple[StaticTransform, ...] = ()
        self._is_fresh = False
        self._reset_client: Any = None

    def set_recording(
        self,
        recording: Recording,
        inputs: Mapping[str, tuple[MessageType, MessageArray]],
        feed: ArrayFeed,
    ) -> None:
        """Prepare for a recording.

        The estimator is started if it does not run yet, or runs with other message types or
        transforms.
        """
        self._feed, self._findings = feed, list[Finding]()
        self._estimates, self._received_ns = list[bytes](), list[int]()
        self._sent_ns, self._skipped = list[int](), 0
        topics = {
            name: (_absolute_name(self._stack.inputs[name].topic), kind.name)
            for name, (kind, _) in inputs.items()
        }
        has_tf2 = find_spec('tf2_msgs') is not None
        if not recording.transforms and has_tf2:
            transforms = self._identity_transforms(inputs)
            recording = dataclasses.replace(recording, transforms=transforms)
        if (topics, recording.transforms) != (self._topics, self._transforms):
            self._closing.close()
            self._start(recording, topics)
            self._topics, self._transforms = topics, recording.transforms
        if recording.transforms and not has_tf2:
            self._findings.append(NO_TRANSFORMS(count=len(recording.transforms)))

    def _identity_transforms(
        self, inputs: Mapping[str, tuple[MessageType, MessageArray]]
    ) -> tuple[StaticTransform, ...]:
        """Place the sensors of a recording without transforms at the base, as other judges do."""
        frames = {array.frame.strip('/') for _, array in inputs.values()}
        base, world = self._stack.frames.base, self._stack.frames.world
        names = sorted(frames - {base, world, ''})
        return tuple(StaticTransform(base, name, (0.0, 0.0, 0.0)) for name in names)

    def _start(self, recording: Recording, topics: Mapping[str, tuple[str, str]]) -> None:
        node, closing, output = self._node, self._closing, self._stack.output
        self._probe = self._reset_client = None
        self._is_fresh = True
        folder = make_scratch_folder(closing)
        self._senders = Senders(node, closing, topics, {})
        transforms = recording.transforms if find_spec('tf2_msgs') else ()
        parents = {transform.child: transform.parent for transform in transforms}
        StaticFrames(node, closing, '', recording, parents)
        message = interface_class(output.type, 'output.type')
        self._watch = PublisherWatch(node)
        self._inbox = Inbox(node, closing, self._watch, _absolute_name(output.topic), message)
        command = stack_command(self._stack, self._declaration, folder)
        self._start_process(command, folder, self._declaration.parent.resolve())

    def reset(self) -> Work:
        """Call the service that resets the estimator, unless it has just been started."""
        if self._is_fresh:
            self._is_fresh = False
            return
        assert self._reset_client is not None
        answer = self._reset_client.call_async(self._reset_client.srv_type.Request())
        yield Wait(answer.done, f'an answer of reset {_absolute_name(self._stack.reset)}')

    def begin(self, start_ns: int) -> int:
        """Begin the clock; return its first time."""
        self._now_ns = self._upcoming_ns = start_ns
        self._origin_ns, self._ticks = start_ns, 0
        self._arrived: Sequence[PendingMessage] = ()
        self._is_tick = False
        self._began = self._stepped = time.monotonic()
        self._deadline = self._began + self._stack.time_limit + self._stack.ready.timeout
        self._lost_before = self._inbox.lost
        return start_ns

    def ready(self) -> Work:
        """Wait until the estimator is ready."""
        ready, stack, node = self._stack.ready, self._stack, self._node
        if ready.lifecycle:
            name = _absolute_name(ready.lifecycle)
            is_lifecycle = partial(self._has_service, f'{name}/change_state')
            # A node that publishes and offers no such service is no lifecycle node.
            yield Wait(
                lambda: is_lifecycle() or self._inbox.is_matched,
                f'the lifecycle services of {name}',
            )
            # Its services may be discovered later than its publishers.
            end = time.monotonic() + RETRY_S
            yield Wait(
                lambda: is_lifecycle() or time.monotonic() > end,
                f'the lifecycle services of {name}',
            )
            if is_lifecycle():
                yield from activate(node, name, self.name, ready.timeout)
        if ready.topic:
            topic = _absolute_name(ready.topic)
            yield Wait(lambda: node.count_publishers(topic) > 0, f'ready.topic {topic}')
        for key, service in (('ready.service', ready.service), ('reset', stack.reset)):
            if service:
                name = _absolute_name(service)
                yield Wait(partial(self._has_service, name), f'{key} {name}')
        if stack.reset and self._reset_client is None:
            self._reset_client = self._create_reset_client(_absolute_name(stack.reset))
            yield Wait(self._reset_client.service_is_ready, f'reset {stack.reset}')
        for input_name, declared_input in stack.inputs.items():
            yield Wait(
                partial(self._senders.have_subscribers, [input_name]),
                f'a subscription to {_absolute_name(declared_input.topic)} (inputs.{input_name})',
            )
        topic = _absolute_name(stack.output.topic)
        yield Wait(lambda: self._inbox.is_matched, f'a publisher of {topic} (output.topic)')
        if self._is_lockstep:
            publisher = f'the name of the publisher of {topic}'
            yield Wait(lambda: all(self._inbox.publishers), publisher)
            stepped_node = stack.clock.node or self._inbox.publishers[0]
            if self._probe is None:
                self._probe = ProcessingProbe(node, self._closing, _absolute_name(stepped_node))
            yield from self._probe.match()
            yield from self._settle(_ANSWERS_AFTER_CLOCK)
        watched = [topic for topic, _ in self._topics.values()]
        if stack.output.type != TF_TYPE:  # several nodes may publish transforms
            watched.append(_absolute_name(stack.output.topic))
        for watched_topic in watched:
            self._watch.begin(watched_topic)
        self._inbox.take()
        self._began = time.monotonic()
        self._deadline = self._began + stack.time_limit

    def _create_reset_client(self, name: str) -> Any:
        """Return a client of the reset service.

        It is created long before the first call, so that discovery is complete by then.
        """
        types = dict(self._node.get_service_names_and_types()).get(name, ())
        service_type = Trigger if 'std_srvs/srv/Trigger' in types else Empty
        client = self._node.create_client(service_type, name)
        self._closing.callback(self._node.destroy_client, client)
        return client

    def _has_service(self, service: str) -> bool:
        return service in dict(self._node.get_service_names_and_types())

    @property
    def next_ns(self) -> int:
        """Next time of the clock: that of a message, a tick, or a step."""
        step, tick = self._now_ns + round(self._stack.clock.step * 1e9), self._tick_ns
        # If the timer of the node is known, the clock makes no other steps.
        due = min(step if tick is None else tick, self._feed.next_ns or _NEVER_NS)
        self._upcoming_ns = max(due, self._now_ns)
        return self._upcoming_ns

    @property
    def _tick_ns(self) -> int | None:
        """Time of the next tick of the node's timer, None without a declared timer."""
        frequency = self._stack.clock.frequency
        if not (self._is_lockstep and frequency):
            return None
        return self._origin_ns + (self._ticks + 1) * int(1e9 / frequency)

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Take messages, which are sent before a tick of the same time, else after the clock."""
        self._arrived = deliveries
        self._is_tick = self._upcoming_ns == self._tick_ns
        if self._is_tick:
            self._ticks += 1
            yield from self._send()

    def _send(self) -> Work:
        messages, self._arrived = self._arrived, ()
        for input_name, array in messages:
            self._senders.send(input_name, array)
            if input_name == self._stack.output.answers:
                self._sent_ns += array.stamp_ns.tolist()
            if self._is_lockstep and self._probe is not None:
                self._probe.send()
                yield from self._probe.settle()

    def step(self, now_ns: int) -> bool:
        """Note the time; JudgeError after the time limit."""
        self._now_ns, self._stepped = now_ns, time.monotonic()
        if self._stepped > self._deadline:
            limit = self._stack.time_limit
            raise JudgeError(f'{self.name}: the replay took longer than time_limit, {limit:g} s')
        return True

    def answer(self, now_ns: int) -> Work:
        """Let the estimator see the clock and the messages."""
        if self._is_lockstep:
            if self._is_tick and self._estimates:
                yield Wait(lambda: bool(self._inbox.waiting), f'the tick at {now_ns} ns')
            else:
                yield from self._settle(_ANSWERS_AFTER_CLOCK if self._is_tick else 1)
        yield from self._send()

    def finish_step(self, now_ns: int) -> None:
        """Take the published estimates."""
        estimates = self._inbox.take()
        if estimates and not self._estimates:
            self._skipped = self._count_skipped(estimates)
        self._estimates += estimates
        self._received_ns += [now_ns] * len(estimates)

    @property
    def missing(self) -> int:
        """Number of messages that the estimator has to answer and has not answered yet."""
        answered = self._skipped + len(self._estimates) + len(self._inbox.waiting)
        return max(len(self._sent_ns) - answered, 0)

    def _count_skipped(self, estimates: Sequence[bytes]) -> int:
        """Return how many messages were sent before the first one that was answered."""
        unanswered = max(len(self._sent_ns) - len(estimates), 0)
        output = self._stack.output
        if output.type == TF_TYPE or not unanswered:
            return unanswered
        # Messages after the first answered one may be late or lost; these do not count.
        now_ns = np.array([self._now_ns])
        first = decode(find_type(output.type), estimates[:1], now_ns, output.topic).array
        first_ns = int(first.stamp_ns[0])
        return min(unanswered, sum(stamp < first_ns for stamp in self._sent_ns))

    def judged_run(self) -> JudgedRun:
        """Return the run with its findings."""
        wall_s = max(self._stepped - self._began, 1e-9)
        self.finish_step(self._now_ns)
        stack = self._stack
        if not self._estimates:
            log = (self._process.log() if self._process else '') or 'it printed nothing'
            topic = _absolute_name(stack.output.topic)
            raise JudgeError(f'{self.name}: no estimate came on {topic}: {log}')
        notes = self._findings
        if not self._is_lockstep:
            # In lockstep the rate depends on the machine, and equal runs must be equal in all.
            notes.append(REAL_TIME(rate=(self._now_ns - self._origin_ns) * 1e-9 / wall_s))
        missing = self.missing
        # Answered messages were received.
        answered_input = '' if missing else stack.output.answers
        lossy = self._senders.unacknowledged_topics(except_input=answered_input)
        if self._inbox.lost > self._lost_before:
            lossy.append(_absolute_name(stack.output.topic))
        notes += [LOST(topic) for topic in lossy]
        if missing:
            count = len(self._sent_ns)
            notes.append(UNANSWERED(stack.output.answers, missing=missing, count=count))
        received_ns = np.array(self._received_ns, dtype=np.int64)
        run = estimated_run(self._estimates, received_ns, stack.output, stack.frames)
        return dataclasses.replace(run, notes=(*run.notes, *notes))


def _absolute_name(name: str) -> str:
    return f'/{name.strip("/")}'
