# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages for a judge node, and the comparison of its output with the embedded judge."""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import ODOMETRY_FIELDS, JudgedRun
from sim2real_eval.judge.robot_localization.configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
)
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.fixes import LiveNavsat
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.rehearsal import rehearse
from sim2real_eval.judge.robot_localization.replay_options import NAVSAT_PHASE_NS, Clock, Grids
from sim2real_eval.judge.robot_localization.state import Timing
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING, route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.metadata import FrameTree
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
"""One message for one input: an input of the filter (`imu0`), or `fix`, `heading`, `command`."""

_FIX_FIELDS = ('gps_stamp_ns', 'gps_position', 'gps_covariance')
# Largest difference between ekf_node and the embedded judge, m/s and rad/s, and relative. Rounding
# gives up to 5e-6 m/s. A single lost message may change a velocity by little, but always changes
# the variances by percents.
_TOLERANCE = 1e-3
_VARIANCE_TOLERANCE = 1e-3
# Smaller differences do not count, nor do differences in smaller variances.
_ROUNDING = 1e-9


class Feed(Protocol):
    """Source of the messages for one estimator, which may be generated during the run."""

    def until(self, now_ns: int) -> Sequence[PendingMessage]:
        """Return all messages that arrive up to a time and were not returned before.

        They are in order of arrival; messages that arrive together are in the order of
        `Routing.topic_inputs`. The call blocks until all of them are known.
        """
        ...

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message, None while more may come."""
        ...


def last_arrival_ns(timing: Timing, setup: JudgeSetup) -> int:
    """Return the arrival of the last message that counts; a batch run ends `run_on_ns` later."""
    return timing.end - setup.case.clock.run_on_ns


class ArrayFeed:
    """Source of stored messages, given as (input, messages) pairs.

    Messages that arrive together are returned in the order of the pairs.
    """

    def __init__(self, arrays: Sequence[tuple[str, MessageArray]], last_ns: int) -> None:
        self.last_ns = last_ns
        self._arrays = list(arrays)
        arrival = np.concatenate([array.arrival_ns for _, array in arrays])
        self._order = np.argsort(arrival, kind='stable')
        self._arrival = arrival[self._order]
        lengths = [len(array) for _, array in arrays]
        self._input_index = np.repeat(np.arange(len(lengths)), lengths)
        self._row = np.concatenate([np.arange(length) for length in lengths])
        self._next = 0

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return all messages that arrive up to a time and were not returned before."""
        end = max(int(np.searchsorted(self._arrival, now_ns, side='right')), self._next)
        rows = self._order[self._next : end]
        self._next = end
        messages = []
        for index, row in zip(
            self._input_index[rows].tolist(), self._row[rows].tolist(), strict=True
        ):
            input_name, array = self._arrays[index]
            messages.append((input_name, array.take([row])))
        return messages

    @property
    def next_ns(self) -> int | None:
        """Arrival of the next message; None after the last."""
        return int(self._arrival[self._next]) if self._next < len(self._arrival) else None


class RecordedFeed(ArrayFeed):
    """Feed of all messages in a recording that a batch run would use.

    JudgeError if the recording lacks an input of the set-up.
    """

    def __init__(self, recording: Recording, setup: JudgeSetup) -> None:
        case = setup.case
        timing = prepare(recording, setup.filter, setup.navsat, case).timing
        self.start_ns = timing.start
        input_names = route(recording, setup.filter, setup.navsat, case).topic_inputs
        arrays = [(input_name, recording.messages[topic]) for input_name, topic in input_names]
        super().__init__(arrays, last_arrival_ns(timing, setup))


def node_grids(
    clock: Clock, config: FilterConfig, navsat: NavsatConfig | None, start_ns: int, *, inside: bool
) -> Grids:
    """Return the timers of nodes that start at `start_ns`, unless the clock sets them.

    If `inside`, navsat_transform runs in the filter's node, which determines its timer.
    JudgeError if a node cannot tick as the clock says.
    """
    grids = Grids(config, navsat, start_ns, clock)
    fixed = [('filter_timer_period_ns', grids.filter.period_ns, int(1e9 / config.frequency))]
    if inside and navsat is not None and grids.navsat is not None:
        origin = grids.filter.origin_ns + NAVSAT_PHASE_NS
        fixed += [
            ('navsat_timer_origin_ns', grids.navsat.origin_ns, origin),
            ('navsat_timer_period_ns', grids.navsat.period_ns, int(1e9 / navsat.frequency)),
        ]
    for key, setting, required in fixed:
        if setting != required:
            raise JudgeError(
                f'case: clock.{key}: {setting} is not allowed with a judge that is a node; must '
                f'be {required}, as the node has it, or absent'
            )
    return grids


class ExpectedJudge:
    """Embedded judge that gets the same messages and ticks as a node.

    If navsat_transform is not `inside` the node, it runs here on the odometry of the node.
    """

    def __init__(self, setup: JudgeSetup, frames: FrameTree, *, inside: bool) -> None:
        config, navsat = setup.filter, setup.navsat
        self._setup, self._inside = setup, inside
        self._judge = LiveJudge(config, navsat if inside else None, frames, setup.case.correct)
        self._navsat: LiveNavsat | None = None
        self.navsat_inputs: list[str] = []  # inputs that the navsat_transform here feeds
        if navsat is not None and not inside:
            self._navsat = LiveNavsat(navsat, config, frames)
            self.navsat_inputs = [
                source.name for source in config.sources if source.topic == NAVSAT_TOPIC
            ]

    def begin(self, start_ns: int) -> None:
        """Start a run with timers that begin at a time unless the set-up sets them."""
        setup = self._setup
        self.grids = node_grids(
            setup.case.clock, setup.filter, setup.navsat, start_ns, inside=self._inside
        )
        # Compiles what either side of the comparison needs here.
        rehearse(setup.filter, setup.navsat, setup.case.correct)
        self._judge.reset()
        self._judge.start(self.grids.filter.origin_ns)
        if self._navsat is not None:
            self._navsat.reset()
        self._navsat_ticks = False
        # Output of the last step, and its odometry/gps if the node itself publishes that.
        self.expected: OdometryArray | None = None
        self.position: OdometryArray | None = None

    def take(self, input_name: str, array: MessageArray) -> int:
        """Take a message; return how many odometry/gps a node publishes at once for it."""
        fix_user = self._navsat or self._judge
        if input_name == FIX:
            assert isinstance(array, FixArray)
            return len(fix_user.receive_fix(array))
        if input_name == HEADING:
            assert isinstance(array, ImuArray)
            fix_user.receive_heading(array)
        elif input_name == COMMAND:
            assert isinstance(array, TwistArray)
            self._judge.receive_command(array)
        else:
            self._judge.receive(input_name, array)
        return 0

    def step(self, now_ns: int) -> bool:
        """Run the ticks that are due; return True if the node has something to do then.

        Ticks before the first measurement of the filter do nothing.
        """
        is_tick = self.grids.filter.take(now_ns)
        self.expected = self._judge.tick(now_ns) if is_tick else None
        self._navsat_ticks = self.grids.take_navsat(now_ns)
        node_has_navsat_tick = self._navsat_ticks and self._inside
        self.position = self._judge.navsat_tick() if node_has_navsat_tick else None
        return self._judge.initialised and (is_tick or node_has_navsat_tick)

    def receive_odometry(self, data: bytes) -> None:
        """Pass a serialised odometry of the node to the navsat_transform here."""
        if self._navsat is not None:
            self._navsat.receive_odometry(_decode_pose(data))

    def navsat_step(self, now_ns: int) -> OdometryArray | None:
        """Run the tick of the navsat_transform here if it is due; return its message."""
        if self._navsat is None or not self._navsat_ticks:
            return None
        position = self._navsat.tick()
        if position is None:
            return None
        return dataclasses.replace(position, arrival_ns=np.array([now_ns]))


def _decode_odometry(messages: Sequence[bytes]) -> OdometryArray:
    """Decode serialised odometry; arrivals are zero."""
    arrival = np.zeros(len(messages), dtype=np.int64)
    array = decode(ODOMETRY, messages, arrival, 'odometry').array
    assert isinstance(array, OdometryArray)
    return array


def _decode_stamp(data: bytes) -> int:
    """Return the stamp of a serialised message, ns."""
    seconds, nanoseconds = struct.unpack_from('<iI' if data[1] & 1 else '>iI', data, 4)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def _decode_pose(data: bytes) -> FloatArray:
    """Return position and roll, pitch, yaw, (6,), of a serialised odometry."""
    array = _decode_odometry([data])
    pose, rotation = np.zeros(6), np.zeros((3, 3))
    pose[:3] = array.position[0]
    matrix_from_quaternion(np.ascontiguousarray(array.orientation[0]), rotation)
    angles_from_matrix(rotation, pose[3:])
    return pose


class NodeOutput:
    """Messages that a node published in one run, beside those expected of it.

    `name` is that of the node in messages; `transformed` are the inputs that it needs transforms
    for; `other_release` tells that the node is of another release than the embedded judge.
    """

    def __init__(
        self, name: str, transformed: Collection[str] = (), other_release: str = ''
    ) -> None:
        self._name, self._transformed = name, transformed
        self._version = other_release or 'the node is of another version'
        # Serialised; if navsat_transform is not in the node, gps is that of the embedded one.
        self.odometry: list[bytes] = []
        self.gps: list[bytes] = []
        self.ticks: list[int] = []  # time of the tick of each odometry
        self._expected: list[OdometryArray] = []
        self._first_sent: dict[str, int] = {}

    def note_sent(self, input_name: str) -> None:
        """Note at which odometry the first message of an input was sent."""
        self._first_sent.setdefault(input_name, len(self.odometry))

    def add_tick(
        self, now_ns: int, messages: Sequence[bytes], expected: OdometryArray | None
    ) -> None:
        """Add the odometry of a tick.

        `expected` is the estimate of the embedded judge. None: there is none, but a real node
        publishes at every tick. JudgeError if the stamps differ.
        """
        stamps = [_decode_stamp(data) for data in messages]
        if expected is not None:
            expected_stamp = str(expected.stamp_ns[0])
            agrees = stamps == expected.stamp_ns.tolist()
        else:
            newest = _decode_stamp(self.odometry[-1]) if self.odometry else math.inf
            expected_stamp, agrees = 'none', all(stamp <= newest for stamp in stamps[-1:])
        if not agrees:
            raise JudgeError(
                f'{self._name}: estimates with the stamps {stamps} at the tick at {now_ns} ns, '
                f'expected {expected_stamp}: a message was lost on the way'
                f'{self._missing_transforms(len(self.odometry))}, or {self._version}'
            )
        if expected is not None:
            self.odometry += messages
            self.ticks += expected.arrival_ns.tolist()
            self._expected.append(expected)

    def run(self, embedded: JudgedRun) -> JudgedRun:
        """Return the embedded judge's run with the messages of the node in place of its own."""
        odometry, gps = _decode_odometry(self.odometry), _decode_odometry(self.gps)
        return dataclasses.replace(
            embedded,
            tick_ns=np.array(self.ticks, dtype=np.int64),
            gps_stamp_ns=gps.stamp_ns,
            gps_position=gps.position,
            gps_covariance=gps.pose_covariance,
            **{name: getattr(odometry, name) for name in ODOMETRY_FIELDS},
        )

    def identical_run(self, embedded: JudgedRun) -> JudgedRun:
        """Return the run of the node, which must equal that of the embedded judge bit for bit.

        JudgeError, which names the first tick that differs, if it does not.
        """
        run = self.run(embedded)
        for fields, message, time_name, stamps in (
            ((*ODOMETRY_FIELDS, 'tick_ns'), 'estimate', 'tick', 'tick_ns'),
            (_FIX_FIELDS, 'odometry/gps', 'fix', 'gps_stamp_ns'),
        ):
            differences = [
                _first_different_row(getattr(run, name), getattr(embedded, name))
                for name in fields
            ]
            first = min(differences)
            if first == math.inf:
                continue
            field = fields[differences.index(first)]
            times = max(getattr(embedded, stamps), getattr(run, stamps), key=len)
            raise JudgeError(
                f'{self._name}: the {message} of the {time_name} at {times[int(first)]} ns is not '
                f'that of the embedded judge ({field}): a message was lost on the way, or '
                f'{self._version}'
            )
        return run

    def close_run(self, embedded: JudgedRun) -> tuple[JudgedRun, float]:
        """Return the run of the node, and its largest velocity difference, m/s.

        The difference is to the embedded judge on the same messages. JudgeError, which names the
        first tick, if it is too large.
        """
        run = self.run(embedded)
        if not self._expected:
            return run, 0.0
        differences = {
            field: np.abs(getattr(run, field) - self._expected_field(field)).max(axis=1)
            for field in ('linear_velocity', 'angular_velocity')
        }
        difference, variance_difference = np.maximum(*differences.values()), np.zeros(len(run))
        for field in ('pose_covariance', 'twist_covariance'):
            variances = _diagonals(getattr(run, field))
            expected = _diagonals(self._expected_field(field))
            larger = np.maximum(np.maximum(variances, expected), _ROUNDING)
            relative = (np.abs(variances - expected) / larger).max(axis=1)
            variance_difference = np.maximum(variance_difference, relative)
        # Negated, so that NaN counts as too far.
        is_far = ~((difference <= _TOLERANCE) & (variance_difference <= _VARIANCE_TOLERANCE))
        if is_far.any():
            first = int(np.argmax(is_far))
            raise JudgeError(
                f'{self._name}: the estimate of the tick at {self.ticks[first]} ns is '
                f'{difference[first]:.1g} m/s or rad/s and {variance_difference[first]:.1%} of a '
                f'variance from the embedded judge, {_TOLERANCE:g} and {_VARIANCE_TOLERANCE:.1%} '
                f'are allowed: a message was lost on the way{self._missing_transforms(first)}, or '
                f'{self._version}'
            )
        return run, float(differences['linear_velocity'].max())

    def _missing_transforms(self, index: int) -> str:
        """Name the inputs that may not have counted before an odometry for lack of transforms."""
        names = [name for name in self._transformed if self._first_sent.get(name, -1) >= index]
        return f', or transforms not received for {", ".join(names)}' if names else ''

    def _expected_field(self, field: str) -> FloatArray:
        return np.concatenate([getattr(estimate, field) for estimate in self._expected])


def round_up_to_decade(difference: float) -> float:
    """Round up to a power of ten, so that similar runs report the same number."""
    return float(10.0 ** math.ceil(math.log10(max(difference, _ROUNDING)) - 1e-9))


def _first_different_row(first: np.ndarray, second: np.ndarray) -> float:
    """Return the first row with other bits, or the end of the shorter array, or infinity."""
    if n := min(len(first), len(second)):
        bits = [
            np.ascontiguousarray(array[:n]).view(np.int64).reshape(n, -1)
            for array in (first, second)
        ]
        rows = np.flatnonzero((bits[0] != bits[1]).any(axis=1))
        if len(rows):
            return float(rows[0])
    return math.inf if len(first) == len(second) else float(n)


def _diagonals(covariance: FloatArray) -> FloatArray:
    return np.diagonal(covariance, axis1=1, axis2=2)
