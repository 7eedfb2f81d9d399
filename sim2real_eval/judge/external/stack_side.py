# SPDX-License-Identifier: Apache-2.0
"""A declared estimator on its graph: it starts, takes recordings, and is listened to."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rclpy.node import Node
from std_srvs.srv import Empty, Trigger

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.findings import LOST, NO_TRANSFORMS, REAL_TIME, UNANSWERED
from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import TF_TYPE, MessageType, known_type
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.measurements import MessageArray
from .declaration import RosStack
from .follower import ArrayFeed, PendingMessage
from .process import JudgeProcess, node_folder
from .senders import Inbox, Questions, Senders, StaticFrames, interface
from .stack_messages import estimated_run
from .waits import AGAIN_S, Wait, Work, answered

# rclcpp takes the clock in a thread of its own, whose work no answer proves; see `Side`.
_ANSWERS_AFTER_CLOCK = 3
_NEVER = 2**63
_PARAMETERS = 'ros__parameters'
_LIFECYCLE_STEPS = {'unconfigured': 1, 'inactive': 3}
"""Transitions on the way to `active`, by state: configure and activate."""


def stack_command(stack: RosStack, where: Path, folder: Path) -> list[str]:
    """Write the parameters of an estimator into a folder; return the command that starts it.

    `where` is the file that declares it.
    """
    values = {**stack.parameters, 'use_sim_time': True}
    file: dict[str, Any] = {}
    if stack.parameters_file:
        file = read_yaml_mapping(where.parent / stack.parameters_file)
    if not isinstance(file.get('/**'), dict):
        file['/**'] = {}
    file['/**'].setdefault(_PARAMETERS, {})
    path = folder / 'params.yaml'
    path.write_text(yaml.safe_dump(_with(values, file), default_flow_style=None), 'utf-8')
    if stack.launch:
        words = ['ros2', 'launch', *shlex.split(stack.launch)]
        return [*words, 'use_sim_time:=true', f'params_file:={path}']
    words = shlex.split(stack.command)
    if words[0] in ('python', 'python3'):
        words[0] = sys.executable
    return [*words, '--ros-args', '--params-file', str(path)]


def _with(values: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree of namespaces and nodes with values replaced in the parameters of each."""
    found = {}
    for name, below in tree.items():
        if name == _PARAMETERS:
            found[name] = {**(below or {}), **values}
        else:
            found[name] = _with(values, below) if isinstance(below, dict) else below
    return found


def _ended_or_paused(done: Any, what: str) -> Wait:
    """Wait for an answer, or for a time after which it may be lost."""
    end = time.monotonic() + AGAIN_S
    return Wait(lambda: (done is not None and done.done()) or time.monotonic() > end, what)


class StackSide:
    """A declared estimator, from entering to leaving a `with` block, for the Conductor.

    `take` gives it a recording; `node` publishes and listens, and the Conductor spins it.
    """

    def __init__(self, node: Node, stack: RosStack, where: Path) -> None:
        self.name, self._where = where.stem, where
        self._node, self._stack = node, stack
        self._lockstep = stack.clock.mode == 'lockstep'
        self.run_on_ns = round(stack.clock.run_on * 1e9)
        self._closing = contextlib.ExitStack()
        self._process: JudgeProcess | None = None
        self._topics: dict[str, tuple[str, str]] = {}
        self._transforms: tuple[StaticTransform, ...] = ()
        self._fresh = False
        self._resetting: Any = None

    def __enter__(self) -> StackSide:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def take(
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
        self._data, self._heard = list[bytes](), list[int]()
        self._asked_ns, self._skipped = list[int](), 0
        topics = {
            name: (_absolute(self._stack.inputs[name].topic), kind.name)
            for name, (kind, _) in inputs.items()
        }
        if not recording.transforms and find_spec('tf2_msgs'):
            recording = dataclasses.replace(recording, transforms=self._identities(inputs))
        if (topics, recording.transforms) != (self._topics, self._transforms):
            self._closing.close()
            self._start(recording, topics)
            self._topics, self._transforms = topics, recording.transforms
        if recording.transforms and find_spec('tf2_msgs') is None:
            self._findings.append(NO_TRANSFORMS(count=len(recording.transforms)))

    def _identities(
        self, inputs: Mapping[str, tuple[MessageType, MessageArray]]
    ) -> tuple[StaticTransform, ...]:
        """Place the sensors of a recording without transforms at the base, as other judges do."""
        frames = {array.frame.strip('/') for _, array in inputs.values()}
        base, world = self._stack.frames.base, self._stack.frames.world
        names = sorted(frames - {base, world, ''})
        return tuple(StaticTransform(base, name, (0.0, 0.0, 0.0)) for name in names)

    def _start(self, recording: Recording, topics: Mapping[str, tuple[str, str]]) -> None:
        node, closing, stack = self._node, self._closing, self._stack
        self._questions: Questions | None = None
        self._fresh = True
        files = node_folder(closing)
        self._senders = Senders(node, closing, topics, {})
        known = recording.transforms if find_spec('tf2_msgs') else ()
        StaticFrames(node, closing, '', recording, {one.child: one.parent for one in known})
        output = stack.output
        message = interface(output.type, 'output.type')
        self._inbox = Inbox(node, closing, _absolute(output.topic), message)
        self._run(stack_command(stack, self._where, files.path))

    def _run(self, command: Sequence[str]) -> None:
        domain = self._node.context.get_domain_id()
        environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
        process = JudgeProcess(self.name, command, environment, self._where.parent.resolve())
        self._process = process.started(self._closing)

    def check(self) -> None:
        """Raise JudgeError when the estimator has ended."""
        if self._process is not None:
            self._process.check()

    def begin(self, start_ns: int) -> int:
        """Begin the clock; return its first time."""
        self._now_ns = self._upcoming_ns = start_ns
        self._origin_ns, self._ticks = start_ns, 0
        self._arrived: Sequence[PendingMessage] = ()
        self._ticking = False
        self._began = self._stepped = time.monotonic()
        self._until = self._began + self._stack.time_limit + self._stack.ready.timeout
        self._lost_before = self._inbox.lost
        return start_ns

    def ready(self) -> Work:
        """Wait until the estimator is ready."""
        ready, stack, node = self._stack.ready, self._stack, self._node
        if ready.lifecycle:
            yield from self._activated(_absolute(ready.lifecycle))
        if ready.topic:
            topic = _absolute(ready.topic)
            yield Wait(lambda: node.count_publishers(topic) > 0, f'ready.topic {topic}')
        for key, service in (('ready.service', ready.service), ('reset', stack.reset)):
            if service:
                name = _absolute(service)
                yield Wait(partial(self._offers, name), f'{key} {name}')
        if stack.reset and self._resetting is None:
            self._resetting = self._client_of_reset(_absolute(stack.reset))
            yield Wait(self._resetting.service_is_ready, f'reset {stack.reset}')
        for taker, one in stack.inputs.items():
            yield Wait(
                partial(self._senders.heard, [taker]),
                f'a subscription to {_absolute(one.topic)} (inputs.{taker})',
            )
        topic = _absolute(stack.output.topic)
        yield Wait(lambda: self._inbox.matched, f'a publisher of {topic} (output.topic)')
        if self._lockstep:
            yield Wait(lambda: all(self._inbox.publishers), f'the name of who publishes {topic}')
            stepped = stack.clock.node or self._inbox.publishers[0]
            if self._questions is None:
                self._questions = Questions(node, self._closing, _absolute(stepped))
            yield from self._questions.matched()
            yield from self._settled(_ANSWERS_AFTER_CLOCK)
        self._inbox.take()
        self._began = time.monotonic()
        self._until = self._began + stack.time_limit

    def _client_of_reset(self, name: str) -> Any:
        """Return a client that the service knows long before it is first called."""
        known = dict(self._node.get_service_names_and_types())
        kind = Trigger if 'std_srvs/srv/Trigger' in known.get(name, ()) else Empty
        client = self._node.create_client(kind, name)
        self._closing.callback(self._node.destroy_client, client)
        return client

    def _offers(self, service: str) -> bool:
        return service in dict(self._node.get_service_names_and_types())

    def _activated(self, name: str) -> Work:
        """Lead a lifecycle node to the state `active`."""
        who = 'ready.lifecycle'
        changes = interface('lifecycle_msgs/srv/ChangeState', who)
        states = interface('lifecycle_msgs/srv/GetState', who)
        ask = self._node.create_client(states, f'{name}/get_state')
        change = self._node.create_client(changes, f'{name}/change_state')
        with contextlib.ExitStack() as ends:
            for client in (ask, change):
                ends.callback(self._node.destroy_client, client)
            yield Wait(
                lambda: ask.service_is_ready() and change.service_is_ready(),
                f'the lifecycle services of {name}',
            )
            end = time.monotonic() + self._stack.ready.timeout
            left, done, unchanged = '', None, 0
            while True:
                # Before the state is asked for, which then is the one after it.
                ended = done is not None and done.done()
                answer = yield from answered(ask, states.Request(), f'the state of {name}')
                state = answer.current_state.label
                if state == 'active':
                    return
                if done is not None and ended:
                    # Of two requests, of which the first was late and not lost, one is refused.
                    refused = not done.result().success
                    if refused and _LIFECYCLE_STEPS.get(state, 0) <= _LIFECYCLE_STEPS[left]:
                        raise JudgeError(f'{self.name}: {name} does not leave the state {left}')
                    done = None
                if state == 'finalized' or time.monotonic() > end:
                    raise JudgeError(f'{self.name}: {name} is {state}; must become active')
                # A node has dealt with a request before it answers the second question after it.
                unchanged = unchanged + 1 if state == left else 0
                if state in _LIFECYCLE_STEPS and (done is None or unchanged > 1):
                    request = changes.Request()
                    request.transition.id = _LIFECYCLE_STEPS[state]
                    left, done, unchanged = state, change.call_async(request), 0
                yield _ended_or_paused(done, f'a transition of {name} from {left}')

    def reset(self) -> Work:
        """Call the service that resets the estimator, unless it has just been started."""
        if self._fresh:
            self._fresh = False
            return
        assert self._resetting is not None
        answer = self._resetting.call_async(self._resetting.srv_type.Request())
        yield Wait(answer.done, f'an answer of reset {_absolute(self._stack.reset)}')

    @property
    def next_ns(self) -> int:
        """Next time of the clock: a message, a tick, or a step."""
        step, tick = self._now_ns + round(self._stack.clock.step * 1e9), self._tick_ns
        # A node whose timer is known sees no other steps of the clock.
        due = min(step if tick is None else tick, self._feed.next_ns or _NEVER)
        self._upcoming_ns = max(due, self._now_ns)
        return self._upcoming_ns

    @property
    def _tick_ns(self) -> int | None:
        """Time of the next tick of the node's timer."""
        frequency = self._stack.clock.frequency
        if not (self._lockstep and frequency):
            return None
        return self._origin_ns + (self._ticks + 1) * int(1e9 / frequency)

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Take what arrives: it is sent before a tick of its time, and else after the clock."""
        self._arrived = deliveries
        self._ticking = self._upcoming_ns == self._tick_ns
        if self._ticking:
            self._ticks += 1
            yield from self._send()

    def _send(self) -> Work:
        arrived, self._arrived = self._arrived, ()
        for taker, array in arrived:
            self._senders.send(taker, array)
            if taker == self._stack.output.answers:
                self._asked_ns += array.stamp_ns.tolist()
            if self._lockstep and self._questions is not None:
                self._questions.put()
                yield from self._questions.settled()

    def settle(self) -> Work:
        """Do nothing: every message has been waited for."""
        yield from ()

    def step(self, now_ns: int) -> bool:
        """Note the time."""
        self._now_ns, self._stepped = now_ns, time.monotonic()
        if self._stepped > self._until:
            limit = self._stack.time_limit
            raise JudgeError(f'{self.name}: the replay took longer than time_limit, {limit:g} s')
        return True

    def answer(self, now_ns: int) -> Work:
        """Let the estimator see the clock, and what arrived."""
        if self._lockstep:
            if self._ticking and self._data:
                yield Wait(lambda: bool(self._inbox.waiting), f'the tick at {now_ns} ns')
            else:
                yield from self._settled(_ANSWERS_AFTER_CLOCK if self._ticking else 1)
        yield from self._send()

    idle = settle

    def _settled(self, answers: int) -> Work:
        assert self._questions is not None
        for _ in range(answers):
            yield from self._questions.settled()

    def after(self, now_ns: int) -> None:
        """Take what was published."""
        taken = self._inbox.take()
        if taken and not self._data:
            self._skipped = self._unheard_before(taken)
        self._data += taken
        self._heard += [now_ns] * len(taken)

    @property
    def missing(self) -> int:
        """Messages of the input that the estimator answers, without an answer yet."""
        answered = self._skipped + len(self._data) + len(self._inbox.waiting)
        return max(len(self._asked_ns) - answered, 0)

    def _unheard_before(self, taken: Sequence[bytes]) -> int:
        """Return how many messages went by before the estimator first answered one."""
        unanswered = max(len(self._asked_ns) - len(taken), 0)
        output = self._stack.output
        if output.type == TF_TYPE or not unanswered:
            return unanswered
        # Some that came after the first one answered may be late, or lost.
        now_ns = np.array([self._now_ns])
        first = decode(known_type(output.type), taken[:1], now_ns, output.topic).array
        first_ns = int(first.stamp_ns[0])
        return min(unanswered, sum(stamp < first_ns for stamp in self._asked_ns))

    def judged(self) -> JudgedRun:
        """Return the estimate of the recording, with what was noticed."""
        wall = max(self._stepped - self._began, 1e-9)
        self.after(self._now_ns)
        stack = self._stack
        if not self._data:
            topic = _absolute(stack.output.topic)
            raise JudgeError(f'{self.name}: no estimate came on {topic}: {self._last_words}')
        found = self._findings
        if not self._lockstep:
            # In lockstep it is a matter of the machine, and equal runs are to be equal in all.
            found.append(REAL_TIME(rate=(self._now_ns - self._origin_ns) * 1e-9 / wall))
        missing = self.missing
        # What is answered was heard.
        for topic in self._senders.unheard(but='' if missing else stack.output.answers).values():
            found.append(LOST(topic))
        if self._inbox.lost > self._lost_before:
            found.append(LOST(_absolute(stack.output.topic)))
        if missing:
            found.append(
                UNANSWERED(stack.output.answers, missing=missing, count=len(self._asked_ns))
            )
        heard = np.array(self._heard, dtype=np.int64)
        run = estimated_run(self._data, heard, stack.output, stack.frames)
        return dataclasses.replace(run, notes=(*run.notes, *found))

    @property
    def _last_words(self) -> str:
        return (self._process.log() if self._process else '') or 'it printed nothing'


def _absolute(name: str) -> str:
    return f'/{name.strip("/")}'
