# SPDX-License-Identifier: Apache-2.0
"""What a judge node published, and how it compares with the embedded judge."""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import ODOMETRY_FIELDS, JudgedRun
from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim_sensors.core.compiled_rotations import angles_from_matrix, matrix_from_quaternion
from sim_sensors.core.measurements import FloatArray, OdometryArray

ODOMETRY = MESSAGE_TYPES['nav_msgs/msg/Odometry']
_DEPTH = 100


class OdometryInbox:
    """Serialised nav_msgs/Odometry of one topic that nobody has taken yet."""

    def __init__(self, node: Node, topic: str) -> None:
        self.waiting: list[bytes] = []
        self._node = node
        self._subscription: Any = node.create_subscription(
            Odometry, topic, self.waiting.append, QoSProfile(depth=_DEPTH), raw=True
        )

    @property
    def publishers(self) -> list[str]:
        """Full names of the nodes that publish the topic."""
        return publishers_of(self._node, self._subscription.topic_name)

    def take(self) -> list[bytes]:
        """Return what came, and forget it."""
        taken = self.waiting.copy()
        self.waiting.clear()
        return taken

    def close(self) -> None:
        """Remove the subscription."""
        self._node.destroy_subscription(self._subscription)


def publishers_of(node: Node, topic: str) -> list[str]:
    """Return the full names of the nodes that publish a topic, as far as `node` knows.

    A name that it does not know yet, which comes after the publisher, is empty.
    """
    return [
        '' if 'UNKNOWN' in one.node_name else f'{one.node_namespace.rstrip("/")}/{one.node_name}'
        for one in node.get_publishers_info_by_topic(topic)
    ]


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

    Attributes
    ----------
    odometry, gps : list of bytes
        Serialised; where navsat_transform is not in the node, what ours published.
    ticks : list of int
        Time of the tick of each odometry.
    """

    def __init__(self, name: str, moved: Collection[str] = ()) -> None:
        self._name, self._moved = name, moved
        self.odometry: list[bytes] = []
        self.gps: list[bytes] = []
        self.ticks: list[int] = []
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
                f'embedded judge ({field}): '
                'a message was lost on the way, or the node is of another version'
            )
        return run

    def near_run(self, embedded: JudgedRun) -> tuple[JudgedRun, float]:
        """Return the run, and how far it is from the embedded judge beside it at most, m/s.

        JudgeError, which names the first tick, when it is too far for the same messages.
        """
        run = self.run(embedded)
        if not self._expected:
            return run, 0.0
        apart = np.zeros(len(run))
        for field in ('linear_velocity', 'angular_velocity'):
            difference = np.abs(getattr(run, field) - self._all(field)).max(axis=1)
            apart = np.maximum(apart, difference)
        spread = np.zeros(len(run))
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
        apart = np.abs(run.linear_velocity - self._all('linear_velocity'))
        return run, float(apart.max())

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
    n = min(len(one), len(other))
    bits = [
        np.ascontiguousarray(array[:n]).view(np.int64).reshape(n, -1) for array in (one, other)
    ]
    rows = np.flatnonzero((bits[0] != bits[1]).any(axis=1)) if n else np.zeros(0)
    if len(rows):
        return float(rows[0])
    return math.inf if len(one) == len(other) else float(n)


def _variances(covariance: FloatArray) -> FloatArray:
    return np.diagonal(covariance, axis1=1, axis2=2)
