# SPDX-License-Identifier: Apache-2.0
"""What arrives at a judge node, what the embedded judge beside it makes of that, and what came.

The one says what the node is to publish, and when; the other is held against it.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import ODOMETRY_FIELDS, JudgedRun
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
from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.compiled_rotations import angles_from_matrix, matrix_from_quaternion
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    TwistArray,
)

ODOMETRY = MESSAGE_TYPES['nav_msgs/msg/Odometry']
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


class ArrayFeed:
    """A feed of messages that are known beforehand, by taker.

    Takers of what arrives at once take it in their order.
    """

    def __init__(self, arrays: Sequence[tuple[str, MessageArray]], last_ns: int) -> None:
        self.last_ns = last_ns
        arrival = np.concatenate([array.arrival_ns for _, array in arrays])
        order = np.argsort(arrival, kind='stable')
        self._arrays = list(arrays)
        self._firsts = np.cumsum([0, *(len(array) for _, array in arrays[:-1])])
        self._arrival, self._order = arrival[order], order
        self._given = 0

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return what arrives up to a time and was not returned before."""
        first = self._given
        self._given = max(int(np.searchsorted(self._arrival, now_ns, side='right')), first)
        numbers = self._order[first : self._given]
        places = np.searchsorted(self._firsts, numbers, side='right') - 1
        rows = numbers - self._firsts[places]
        found = []
        for place, row in zip(places.tolist(), rows.tolist(), strict=True):
            taker, array = self._arrays[place]
            found.append((taker, array.take([row])))
        return found

    @property
    def next_ns(self) -> int | None:
        """Arrival of what was not returned yet; None when all was."""
        return int(self._arrival[self._given]) if self._given < len(self._arrival) else None


class RecordedFeed(ArrayFeed):
    """A feed of everything that a recording holds, of the topics that a batch run hears.

    JudgeError when the recording lacks what the configuration of the set-up needs.
    """

    def __init__(self, recording: Recording, setup: JudgeSetup) -> None:
        case = setup.case
        timing = prepare(recording, setup.filter, setup.navsat, case).timing
        self.start_ns = timing.start
        takers = route(recording, setup.filter, setup.navsat, case).takers
        arrays = [(taker, recording.messages[topic]) for taker, topic in takers]
        super().__init__(arrays, last_arrival_ns(timing, setup))


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
    """

    def __init__(self, setup: JudgeSetup, frames: FrameTree, *, inside: bool) -> None:
        config, navsat = setup.filter, setup.navsat
        self._setup, self._inside = setup, inside
        self._judge = LiveJudge(config, navsat if inside else None, frames, setup.case.correct)
        self._navsat: LiveNavsat | None = None
        self.navsat_inputs: list[str] = []  # that the navsat_transform here feeds
        if navsat is not None and not inside:
            self._navsat = LiveNavsat(navsat, config, frames)
            self.navsat_inputs = [
                source.name for source in config.sources if source.topic == NAVSAT_TOPIC
            ]

    def begin(self, start_ns: int) -> None:
        """Start afresh, with timers that begin at a time unless the set-up says otherwise."""
        setup = self._setup
        self.grids = node_grids(
            setup.case.clock, setup.filter, setup.navsat, start_ns, inside=self._inside
        )
        self._judge.warm_up()
        if self._navsat is not None:
            self._navsat.warm_up()
        self._navsat_ticks = False
        # What the last step publishes, and its odometry/gps where that is made inside the node.
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


def decoded(data: Sequence[bytes]) -> OdometryArray:
    """Decode serialised odometry; arrivals are zero."""
    arrival = np.zeros(len(data), dtype=np.int64)
    array = decode(ODOMETRY, data, arrival, 'odometry').array
    assert isinstance(array, OdometryArray)
    return array


def stamp_of(data: bytes) -> int:
    """Return the stamp of a serialised message."""
    seconds, nanoseconds = struct.unpack_from('<iI' if data[1] & 1 else '>iI', data, 4)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def pose_of(data: bytes) -> FloatArray:
    """Return position and roll, pitch, yaw, (6,), of a serialised odometry."""
    array = decoded([data])
    pose, rotation = np.zeros(6), np.zeros((3, 3))
    pose[:3] = array.position[0]
    matrix_from_quaternion(np.ascontiguousarray(array.orientation[0]), rotation)
    angles_from_matrix(rotation, pose[3:])
    return pose


_BY_FIX = ('gps_stamp_ns', 'gps_position', 'gps_covariance')
# How far ekf_node may be from the embedded judge beside it. Rounding gives up to 5e-6 m/s. One
# message that is lost moves a velocity by anything, but always the variances, by percents.
_TOLERANCE = 1e-3
_VARIANCE_TOLERANCE = 1e-3
# Smaller differences do not count, and in smaller variances none does.
_ROUNDING = 1e-9


class Published:
    """What the node of a name published in one run, beside what was expected of it.

    `moved` are the inputs that the node needs transforms for.
    """

    def __init__(self, name: str, moved: Collection[str] = ()) -> None:
        self._name, self._moved = name, moved
        # Serialised; where navsat_transform is not in the node, gps is what ours published.
        self.odometry: list[bytes] = []
        self.gps: list[bytes] = []
        self.ticks: list[int] = []  # time of the tick of each odometry
        self._expected: list[OdometryArray] = []
        self._given: dict[str, int] = {}

    def give(self, taker: str) -> None:
        """Note that a message was sent, to know where the first of each taker was."""
        self._given.setdefault(taker, len(self.odometry))

    def keep(self, now_ns: int, data: Sequence[bytes], expected: OdometryArray | None) -> None:
        """Keep the odometry of a tick; JudgeError when it is not the one that it must be.

        What the embedded judge publishes at it is `expected`. A real node publishes at every tick,
        to answer; where None is expected it would not have published.
        """
        stamps = [stamp_of(one) for one in data]
        if expected is not None:
            wanted, fits = str(expected.stamp_ns[0]), stamps == expected.stamp_ns.tolist()
        else:
            newest = stamp_of(self.odometry[-1]) if self.odometry else math.inf
            wanted, fits = 'none', all(stamp <= newest for stamp in stamps[-1:])
        if not fits:
            raise JudgeError(
                f'{self._name}: estimates with the stamps {stamps} at the tick at {now_ns} ns, '
                f'expected {wanted}: a message was lost on the way'
                f'{self._unsubscribed(len(self.odometry))}, or this is another version of the '
                'judge'
            )
        if expected is not None:
            self.odometry += data
            self.ticks += expected.arrival_ns.tolist()
            self._expected.append(expected)

    def run(self, embedded: JudgedRun) -> JudgedRun:
        """Put what was published in the place of what the embedded judge did."""
        odometry, gps = decoded(self.odometry), decoded(self.gps)
        return dataclasses.replace(
            embedded,
            tick_ns=np.array(self.ticks, dtype=np.int64),
            gps_stamp_ns=gps.stamp_ns,
            gps_position=gps.position,
            gps_covariance=gps.pose_covariance,
            **{name: getattr(odometry, name) for name in ODOMETRY_FIELDS},
        )

    def same_run(self, embedded: JudgedRun) -> JudgedRun:
        """Return the run, which is that of the embedded judge bit for bit.

        JudgeError, which names the first tick that differs, when it is not.
        """
        run = self.run(embedded)
        for names, what in (
            ((*ODOMETRY_FIELDS, 'tick_ns'), 'estimate'),
            (_BY_FIX, 'odometry/gps'),
        ):
            found = [_first_difference(getattr(run, n), getattr(embedded, n)) for n in names]
            first = min(found)
            if first == math.inf:
                continue
            index, field = int(first), names[found.index(first)]
            of, stamps = ('tick', 'tick_ns') if what == 'estimate' else ('fix', 'gps_stamp_ns')
            times = max(getattr(embedded, stamps), getattr(run, stamps), key=len)
            raise JudgeError(
                f'{self._name}: the {what} of the {of} at {times[index]} ns is not that of the '
                f'embedded judge ({field}): a message was lost on the way, or the node is of '
                'another version'
            )
        return run

    def near_run(self, embedded: JudgedRun) -> tuple[JudgedRun, float]:
        """Return the run, and how far it is from the embedded judge beside it at most, m/s.

        JudgeError, which names the first tick, when it is too far for the same messages.
        """
        run = self.run(embedded)
        if not self._expected:
            return run, 0.0
        off = {
            field: np.abs(getattr(run, field) - self._all(field)).max(axis=1)
            for field in ('linear_velocity', 'angular_velocity')
        }
        apart, spread = np.maximum(*off.values()), np.zeros(len(run))
        for field in ('pose_covariance', 'twist_covariance'):
            one, other = _variances(getattr(run, field)), _variances(self._all(field))
            larger = np.maximum(np.maximum(one, other), _ROUNDING)
            spread = np.maximum(spread, (np.abs(one - other) / larger).max(axis=1))
        mismatch = ~((apart <= _TOLERANCE) & (spread <= _VARIANCE_TOLERANCE))
        if mismatch.any():
            first = int(np.argmax(mismatch))
            raise JudgeError(
                f'{self._name}: the estimate of the tick at {self.ticks[first]} ns is '
                f'{apart[first]:.1g} m/s or rad/s and {spread[first]:.1%} of a variance from '
                f'the embedded judge, {_TOLERANCE:g} and {_VARIANCE_TOLERANCE:.1%} are '
                f'allowed: a message was lost on the way{self._unsubscribed(first)}, or the '
                'node differs'
            )
        return run, float(off['linear_velocity'].max())

    def _unsubscribed(self, index: int) -> str:
        """Say which inputs may not have counted up to an odometry, for want of transforms."""
        never = [name for name in self._moved if self._given.get(name, -1) >= index]
        return f', or transforms not received for {", ".join(never)}' if never else ''

    def _all(self, field: str) -> FloatArray:
        return np.concatenate([getattr(one, field) for one in self._expected])


def rounded_up(apart: float) -> float:
    """Round up to a power of ten, so that runs that are much the same say the same."""
    return float(10.0 ** math.ceil(math.log10(max(apart, _ROUNDING)) - 1e-9))


def _first_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the first row with other bits, or the end of the shorter array, or infinity."""
    if n := min(len(one), len(other)):
        bits = [
            np.ascontiguousarray(array[:n]).view(np.int64).reshape(n, -1) for array in (one, other)
        ]
        rows = np.flatnonzero((bits[0] != bits[1]).any(axis=1))
        if len(rows):
            return float(rows[0])
    return math.inf if len(one) == len(other) else float(n)


def _variances(covariance: FloatArray) -> FloatArray:
    return np.diagonal(covariance, axis1=1, axis2=2)
