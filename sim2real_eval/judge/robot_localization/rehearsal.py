# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rehearsal of a live judge: every code path that its configuration can reach, before it starts.

numba compiles a function, or loads it from its cache, at the first call with arguments of their
types. In a callback that would stop all estimates, for as long as another process compiles.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import default_type
from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from .configuration import NAVSAT_TOPIC, FilterConfig, NavsatConfig
from .live import LiveJudge

_START_NS = 10**9
_STEP_NS = 10**8
_TICKS = 3  # navsat_transform publishes at the second one


def rehearse(
    config: FilterConfig, navsat: NavsatConfig | None, correct: Set[str] = frozenset()
) -> None:
    """Load all kernels that a live judge needs, or compile them, which takes half a minute.

    A judge of its own gets invented messages of every configured kind, encoded and decoded as
    those of a live graph. Parameters are those of `LiveJudge`.
    """
    judge = LiveJudge(config, navsat, FrameTree((), assume_identity=True), correct)
    for number in range(_TICKS):
        now = _START_NS + number * _STEP_NS
        _deliver(judge, now)
        judge.tick(now)
        judge.navsat_tick()
        judge.filtered_fix(now)
    now = _START_NS + _TICKS * _STEP_NS
    pose = _pose(now)
    assert isinstance(pose, PoseArray)
    judge.set_pose(pose, now)
    judge.processing = False
    judge.tick(now + _STEP_NS)


def _deliver(judge: LiveJudge, stamp_ns: int) -> None:
    """Pass one message of every input."""
    for source in judge.config.sources:
        if judge.navsat is None or source.topic != NAVSAT_TOPIC:
            judge.receive(source.name, _MESSAGES[source.kind](stamp_ns))
    fix, heading, command = (_MESSAGES[kind](stamp_ns) for kind in ('fix', 'imu', 'command'))
    assert isinstance(fix, FixArray)
    assert isinstance(heading, ImuArray)
    assert isinstance(command, TwistArray)
    judge.receive_fix(fix)
    judge.receive_heading(heading)
    judge.receive_command(command)


_LEVEL = np.array([[0.0, 0.0, 0.0, 1.0]])
_FRAME = 'rehearsal'


def _as_received(array: MessageArray) -> MessageArray:
    """Return a message as it is decoded from the graph: numba tells read-only arrays apart."""
    kind = default_type(array)
    return decode(kind, encode(kind, array, _FRAME), array.arrival_ns, _FRAME).array


def _odometry(stamp_ns: int) -> MessageArray:
    stamps = np.array([stamp_ns])
    return _as_received(
        OdometryArray(
            stamps, stamps, _FRAME, _FRAME, np.zeros((1, 3)), _LEVEL, np.zeros((1, 3)),
            np.zeros((1, 3)), np.eye(6)[None], np.eye(6)[None],
        )
    )  # fmt: skip


def _pose(stamp_ns: int) -> MessageArray:
    stamps = np.array([stamp_ns])
    return _as_received(
        PoseArray(stamps, stamps, _FRAME, np.zeros((1, 3)), _LEVEL, np.eye(6)[None])
    )


def _twist(stamp_ns: int) -> MessageArray:
    stamps = np.array([stamp_ns])
    return _as_received(
        TwistArray(stamps, stamps, _FRAME, np.zeros((1, 3)), np.zeros((1, 3)), np.eye(6)[None])
    )


def _imu(stamp_ns: int) -> MessageArray:
    stamps, covariance = np.array([stamp_ns]), np.eye(3)[None]
    return _as_received(
        ImuArray(
            stamps, stamps, _FRAME, _LEVEL, np.zeros((1, 3)), np.array([[0.0, 0.0, 9.8]]),
            covariance, covariance, covariance,
        )
    )  # fmt: skip


def _fix(stamp_ns: int) -> MessageArray:
    stamps, one, zero = np.array([stamp_ns]), np.ones(1), np.zeros(1, dtype=np.int64)
    return _as_received(
        FixArray(stamps, stamps, _FRAME, one, one, one, zero, np.eye(3)[None], zero)
    )


_MESSAGES = {
    'odom': _odometry,
    'pose': _pose,
    'twist': _twist,
    'imu': _imu,
    'fix': _fix,
    'command': _twist,
}
