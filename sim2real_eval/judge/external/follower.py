# SPDX-License-Identifier: Apache-2.0
"""What arrives at a judge node, message by message, and what the embedded judge beside it makes
of that: what the node is to publish, and when.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.external.published import pose_of
from sim2real_eval.judge.robot_localization.configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
)
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.fixes import LiveNavsat
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import NAVSAT_PHASE_NS, Clock, Grids
from sim2real_eval.judge.robot_localization.state import Timing
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING, route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    TwistArray,
)

PendingMessage = tuple[str, MessageArray]
"""One message for one taker: an input of the filter (`imu0`), or `fix`, `heading`, `command`."""


class Feed(Protocol):
    """What arrives at one side; it may be made while the run goes on."""

    def until(self, now_ns: int) -> Sequence[PendingMessage]:
        """Return what arrives up to a time and was not returned before.

        In order of arrival; what arrives together in the order of `Routing.takers`. Everything
        that arrives by then must be in it, so this waits where it has to.
        """
        ...

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message of all, None while more may come."""
        ...


def last_arrival_ns(timing: Timing, setup: JudgeSetup) -> int:
    """Return the arrival of the last message that counts; a batch run ends `run_on_ns` later."""
    return timing.end - setup.case.clock.run_on_ns


class RecordedFeed:
    """A feed of everything that a recording holds, of the topics that a batch run hears.

    JudgeError when the recording lacks what the configuration of the set-up needs.
    """

    def __init__(self, recording: Recording, setup: JudgeSetup) -> None:
        case = setup.case
        timing = prepare(recording, setup.filter, setup.navsat, case).timing
        self.start_ns = timing.start
        self._last_ns = last_arrival_ns(timing, setup)
        takers = route(recording, setup.filter, setup.navsat, case).takers
        arrays = [(taker, recording.messages[topic]) for taker, topic in takers]
        arrival = np.concatenate([array.arrival_ns for _, array in arrays])
        rows = [(taker, array, row) for taker, array in arrays for row in range(len(array))]
        order = np.argsort(arrival, kind='stable')
        self._arrival, self._rows = arrival[order], [rows[k] for k in order.tolist()]
        self._given = 0

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return what arrives up to a time and was not returned before."""
        first = self._given
        self._given = max(int(np.searchsorted(self._arrival, now_ns, side='right')), first)
        return [
            (taker, array.take([row])) for taker, array, row in self._rows[first : self._given]
        ]

    @property
    def last_ns(self) -> int:
        """Arrival of the last message that counts."""
        return self._last_ns


# The timers of a side that is a node, which has its own idea of them.


def node_grids(
    clock: Clock, config: FilterConfig, navsat: NavsatConfig | None, start_ns: int, *, inside: bool
) -> Grids:
    """Return the timers of nodes that start at a time, unless the clock says so.

    With `inside` navsat_transform runs in the filter's node, which then sets its timer. JudgeError
    when a node cannot tick as the clock says.
    """
    grids = Grids(config, navsat, start_ns, clock)
    fixed = [('filter_timer_period_ns', grids.filter.period_ns, int(1e9 / config.frequency))]
    if inside and navsat is not None and grids.navsat is not None:
        origin = grids.filter.origin_ns + NAVSAT_PHASE_NS
        fixed += [
            ('navsat_timer_origin_ns', grids.navsat.origin_ns, origin),
            ('navsat_timer_period_ns', grids.navsat.period_ns, int(1e9 / navsat.frequency)),
        ]
    for key, value, must in fixed:
        if value != must:
            raise JudgeError(
                f'case: clock.{key}: {value} is not allowed with a judge that is a node; must be '
                f'{must}, as the node has it, or absent'
            )
    return grids


class ExpectedJudge:
    """Takes the same messages and ticks as a node.

    Where navsat_transform is not `inside` the node it is here, and hears the node's own odometry.

    Attributes
    ----------
    grids : Grids
        Timers of the run.
    navsat_inputs : list of str
        Inputs that the navsat_transform here feeds.
    expected : OdometryArray or None
        What the last step publishes.
    position : OdometryArray or None
        The odometry/gps of the last step, where navsat_transform is inside the node.
    """

    def __init__(self, setup: JudgeSetup, frames: FrameTree, *, inside: bool) -> None:
        config, navsat = setup.filter, setup.navsat
        self._setup, self._inside = setup, inside
        self._judge = LiveJudge(config, navsat if inside else None, frames, setup.case.correct)
        self._navsat: LiveNavsat | None = None
        self.navsat_inputs: list[str] = []
        if navsat is not None and not inside:
            self._navsat = LiveNavsat(navsat, config, frames)
            self.navsat_inputs = [
                source.name for source in config.sources if source.topic == NAVSAT_TOPIC
            ]

    def begin(self, start_ns: int, *, warm_up: bool = True) -> None:
        """Start afresh, with timers that begin at a time unless the set-up says otherwise.

        Without `warm_up` the kernels are not loaded now: only the timers are of use.
        """
        setup = self._setup
        self.grids = node_grids(
            setup.case.clock, setup.filter, setup.navsat, start_ns, inside=self._inside
        )
        if warm_up:
            self._judge.warm_up()
            if self._navsat is not None:
                self._navsat.warm_up()
        self._navsat_ticks = False
        self.expected: OdometryArray | None = None
        self.position: OdometryArray | None = None

    def take(self, taker: str, array: MessageArray) -> int:
        """Take a message; return how many odometry/gps a node publishes at once for it."""
        fixes = self._navsat or self._judge
        if taker == FIX:
            assert isinstance(array, FixArray)
            return len(fixes.receive_fix(array))
        if taker == HEADING:
            assert isinstance(array, ImuArray)
            fixes.receive_heading(array)
        elif taker == COMMAND:
            assert isinstance(array, TwistArray)
            self._judge.receive_command(array)
        else:
            self._judge.receive(taker, array)
        return 0

    def step(self, now_ns: int) -> bool:
        """Tick what is due; say whether the node has something to do at this time.

        Before the filter has taken a measurement ticks do nothing.
        """
        ticks = self.grids.filter.take(now_ns)
        self.expected = self._judge.tick(now_ns) if ticks else None
        self._navsat_ticks = self.grids.take_navsat(now_ns)
        inside = self._navsat_ticks and self._inside
        self.position = self._judge.navsat_tick() if inside else None
        return self._judge.initialised and (ticks or inside)

    def receive_odometry(self, data: bytes) -> None:
        """Take a serialised odometry of the node, for the navsat_transform here."""
        if self._navsat is not None:
            self._navsat.receive_odometry(pose_of(data))

    def navsat_step(self, now_ns: int) -> OdometryArray | None:
        """Tick the navsat_transform here if it is due; return what is delivered next."""
        if self._navsat is None or not self._navsat_ticks:
            return None
        found = self._navsat.tick()
        if found is not None:
            found = dataclasses.replace(found, arrival_ns=np.array([now_ns]))
        return found
