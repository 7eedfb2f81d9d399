# SPDX-License-Identifier: Apache-2.0
"""Leads one or more sides through a run on one clock, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.external.delivery import Feed
from sim2real_eval.judge.external.published import publishers_of
from sim2real_eval.judge.external.senders import Work
from sim2real_eval.judge.external.side import Side

__all__ = ['Conductor']

# A machine under load may take this long for one answer; a node that does is dead.
_TIMEOUT_S = 20.0
# A node imports and compiles before it subscribes.
_START_TIMEOUT_S = 90.0
_POLL_S = 0.05
_AGAIN_S = 0.5


class Conductor:
    """One /clock for one or more sides.

    At each step the sides are given what has arrived, the clock is set when a node has something
    to do, and the next step waits until every node has done it. Nothing sleeps for a fixed time.

    Parameters
    ----------
    node : Node
        Publishes /clock.
    executor : Executor
        Spins `node` and whatever else must go on; nobody else may spin it during `play`. It is
        never spun while `Feed.until` runs, which may spin it itself.
    sides, feeds : sequences of equal length
        Entered sides, and what arrives at each.
    start_ns : int
        When the nodes start, unless the case of a side's set-up says so.
    rate_factor : float
        Seconds of the run per second of the wall, at most: time that is lost is not made up for;
        0: as fast as it goes.
    on_step : callable, optional
        Called with the time of each step that is done.
    """

    def __init__(
        self,
        node: Node,
        sides: Sequence[Side],
        feeds: Sequence[Feed],
        *,
        executor: Executor,
        start_ns: int,
        rate_factor: float = 0.0,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self._node, self._executor = node, executor
        self._sides = list(sides)
        self._feeds = dict(zip(sides, feeds, strict=True))
        self._start_ns, self._rate = start_ns, rate_factor
        self._on_step = on_step

    def play(self) -> None:
        """Run until every feed has ended and its judge has run on as the case says.

        Raises
        ------
        JudgeError
            When a judge ends or does not answer, or another node sets the clock.
        """
        self._refuse_another_clock()
        self._clock = self._node.create_publisher(Clock, '/clock', QoSProfile(depth=10))
        try:
            self._play()
        finally:
            self._node.destroy_publisher(self._clock)

    def _play(self) -> None:
        origins = {side.begin(self._start_ns) for side in self._sides}
        if len(origins) > 1:
            raise JudgeError(f'sides start at {sorted(origins)} ns; must start at one time')
        (origin,) = origins
        # Nodes subscribe once they have seen a time, which is the origin of their ticks.
        self._drive(
            {side: side.ready() for side in self._sides}, origin, _POLL_S, _START_TIMEOUT_S
        )
        # Who has come on the graph meanwhile is known by now.
        self._refuse_another_clock()
        began = time.monotonic()
        playing = list(self._sides)
        while playing:
            now = min(side.next_ns for side in playing)
            if self._rate > 0.0:
                began += self._pace(began + (now - origin) * 1e-9 / self._rate)
            arrived = {side: self._feeds[side].until(now) for side in playing}
            playing = [side for side in playing if not self._ended(side, now)]
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

    def _ended(self, side: Side, now_ns: int) -> bool:
        last = self._feeds[side].last_ns
        return last is not None and now_ns > last + side.run_on_ns

    def _set_clock(self, now_ns: int) -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(now_ns, 1_000_000_000)
        self._clock.publish(message)

    def _refuse_another_clock(self) -> None:
        setters = publishers_of(self._node, '/clock')
        own = self._node.get_fully_qualified_name()
        if own in setters:
            setters.remove(own)
        if setters:
            names = ', '.join(name or 'another node' for name in setters)
            raise JudgeError(
                f'/clock: {names} publishes it too; end that, or take another '
                'ROS_DOMAIN_ID: the clock must have one publisher, which waits for the judges'
            )

    def _pace(self, until: float) -> float:
        """Wait for a time of the wall; return how late it is already."""
        late = time.monotonic() - until
        while (left := until - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=min(left, _POLL_S))
        return max(late, 0.0)

    def _drive(
        self,
        works: dict[Side, Work],
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
                    wait = next(works[side], None)
                    if wait is None:
                        del waits[side]
                    else:
                        waits[side] = wait
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
