# SPDX-License-Identifier: Apache-2.0
"""ekf_node with the real navsat_transform_node, whose timer is the wall clock."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.follower import PendingMessage
from sim2real_eval.judge.external.process import (
    JudgeProcess,
    NodeCommand,
    executable,
    navsat_parameters,
    own_transforms,
    ros_arguments,
    write_parameters,
)
from sim2real_eval.judge.external.published import OdometryInbox
from sim2real_eval.judge.external.senders import Questions, Wait, Work
from sim2real_eval.judge.external.side import Side
from sim2real_eval.judge.findings import REAL_PACED
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.topics import FIX, HEADING, route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording

_NAVSAT_NAME = 'navsat_transform'
# As replay from a bag: the clock is shown often, whatever is due.
_STEP_NS = 5_000_000


class PacedSide(Side):
    """Both nodes of robot_localization, to be led at a rate of 1 and no faster.

    navsat_transform_node looks for a fix at times of the wall clock, so that nothing can wait for
    it: what it does depends on the phase of its timer, and differs from run to run. No embedded
    judge runs beside.

    Parameters
    ----------
    node, namespace, setup, recording
        As `Side` takes them; the set-up has parameters of navsat_transform.
    """

    _followed = False

    def __init__(
        self, node: Node, namespace: str, setup: JudgeSetup, recording: Recording
    ) -> None:
        super().__init__(node, namespace, setup, recording, judge='robot_localization')
        self.name = f'robot_localization with navsat_transform_node in {self._space}'
        executable('robot_localization', 'navsat_transform_node')
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        tree = FrameTree(recording.transforms, assume_identity=not recording.transforms)
        base = setup.filter.base_link_frame
        frames, moved = dict(self._frames), dict(self._moved)
        self._inputs -= set(self._follower.navsat_inputs)
        self._takers -= set(self._follower.navsat_inputs)
        for taker, topic in ((FIX, routing.fix), (HEADING, routing.heading)):
            if topic is None:
                continue
            self._takers.add(taker)
            frame = recording.messages[topic].frame
            rotation, position = tree.lookup(base, frame, taker)
            if np.array_equal(rotation, np.eye(3)) and not position.any():
                frames[taker] = (base, base)
            else:
                moved[taker] = frame
        self._frames, self._moved = frames, moved

    def _command_of(self, judge: str) -> NodeCommand:
        domain = self._node.context.get_domain_id()
        return NodeCommand(
            judge, domain, self._space, self._setup, self._recording, lockstep=False
        )

    def __enter__(self) -> PacedSide:
        super().__enter__()
        node, space, stack = self._node, self._space, self._stack
        try:
            self._positions = OdometryInbox(node, f'{space}/{NAVSAT_TOPIC}')
            stack.callback(self._positions.close)
            self._navsat_questions = Questions(node, f'{space}/{_NAVSAT_NAME}')
            stack.callback(self._navsat_questions.close)
            file = self._command.folder / 'navsat.yaml'
            write_parameters(file, navsat_parameters(self._setup))
            rules = [f'__node:={_NAVSAT_NAME}', f'__ns:={space}', *own_transforms(space)]
            command = executable('robot_localization', 'navsat_transform_node')
            self._navsat_process = JudgeProcess(
                f'navsat_transform_node in {space}',
                [*command, *ros_arguments(file, rules)],
                self._command.environment,
            )
            stack.callback(self._navsat_process.close)
            self._navsat_process.start()
        except BaseException:
            self.close()
            raise
        return self

    def check(self) -> None:
        """Raise JudgeError when a node has ended."""
        super().check()
        self._navsat_process.check()

    @property
    def next_ns(self) -> int:
        """Next time of the clock."""
        return min(self._follower.grids.filter.next_ns, self._now_ns + _STEP_NS)

    def begin(self, start_ns: int) -> int:
        """Set the timers for the run; return the first time of the clock."""
        origin = super().begin(start_ns)
        self._now_ns = self._tick_ns = origin
        self._shown: list[tuple[int, float]] = []
        return origin

    def ready(self) -> Work:
        """Wait until all know each other and the nodes have begun."""
        # First, since then the files are removed.
        yield from self._navsat_questions.matched()
        yield from super().ready()
        yield Wait(
            lambda: self._node.count_publishers(f'{self._space}/{NAVSAT_TOPIC}') > 0, NAVSAT_TOPIC
        )

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Send messages to the nodes."""
        self._collect()
        for delivery in deliveries:
            if delivery.taker not in self._takers:
                continue
            self._senders.send(delivery.taker, delivery.array)
            if delivery.taker in self._inputs:
                yield from self._questions.settled()

    def step(self, now_ns: int) -> bool:
        """Note the time; the nodes see all of it."""
        self._now_ns = now_ns
        self._shown.append((now_ns, time.monotonic()))
        del self._shown[1:-1]
        if self._follower.grids.filter.take(now_ns):
            self._tick_ns = now_ns
        return True

    def answer(self, now_ns: int) -> Work:
        """Let the nodes see the clock."""
        yield from self._questions.settled()

    def after(self, now_ns: int) -> None:
        """Do nothing: navsat_transform_node has a timer of its own."""

    def _collect(self) -> None:
        taken = self._filtered.take()
        self._published.odometry += taken
        self._published.ticks += [self._tick_ns] * len(taken)
        if self._positions is not None:
            self._published.gps += self._positions.take()

    def judged(self, recording: Recording) -> JudgedRun:
        """Return what was published; counts and notes are those of a batch run on `recording`."""
        self._collect()
        setup = self._setup
        embedded = judge(recording, setup.filter, setup.navsat, setup.case)
        (first_ns, began), (last_ns, ended) = self._shown[0], self._shown[-1]
        rate = (last_ns - first_ns) * 1e-9 / max(ended - began, 1e-9)
        note = REAL_PACED(rate=rate)
        return dataclasses.replace(self._published.run(embedded), notes=(*embedded.notes, note))
