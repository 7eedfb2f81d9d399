# SPDX-License-Identifier: Apache-2.0
"""The parts that messages have: their configuration, mounting and memory, and their table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.measurements import (
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)
from .configuration import FilterConfig, NavsatConfig, SourceConfig
from .state import NO_STAMP

POSE, TWIST, ACCELERATION = range(3)
FIX_PART, HEADING_PART, COMMAND_PART = -1, -2, -3
"""In place of the number of a part: messages for navsat_transform, and velocity commands."""

_KIND_NAMES = ('pose', 'twist', 'acceleration')


class Parts(NamedTuple):
    """Configuration of all message parts; arrays over the part number."""

    kind: IntArray  # (p,) POSE, TWIST or ACCELERATION
    # (p,) bool Whether the part comes from an Imu message, and its switches.
    imu: IntArray
    differential: IntArray
    relative: IntArray
    remove_gravity: IntArray
    threshold: FloatArray  # (p,) Mahalanobis threshold
    # (p, 6) Which of the part's quantities are fused, turned into the target frame.
    mask: FloatArray
    # (p, 3, 3) From the message's frame to the target frame: world for poses, base_link else.
    rotation: FloatArray
    offset: FloatArray  # (p, 3) Position of the message's frame in the target frame
    of_child: IntArray  # (p,) bool Whether a pose is that of another body frame than base_link
    # (p, 3, 3) From that frame to base_link, and (p, 3) its position in base_link.
    child_turn: FloatArray
    child_at: FloatArray
    # (p,) bool Whether a differential pose comes without an orientation, and increments are to be
    # seen with the filter's attitude; only with correct_differential.
    no_attitude: IntArray
    gravity: float  # m/s^2
    two_d: bool  # two_d_mode
    # Whether these deviations of robot_localization are corrected.
    correct_gravity: bool
    correct_differential: bool


class PartState(NamedTuple):
    """State of the preparation between messages; changed in place."""

    seen: IntArray  # (p, 2) Whether a previous and an initial pose exist
    stamp_ns: IntArray  # (p,) Stamp of the previous message of each part
    # (p, 4, 3) Rotation matrix (first three rows) and position (last row).
    previous: FloatArray
    initial: FloatArray
    previous_covariance: FloatArray  # (p, 6, 6)
    # (2, 3) Angular velocity at the last output tick; angular acceleration there.
    rates: FloatArray
    tick_ns: IntArray  # (1,) Time of the last output tick
    # (6,) Command that came last; the filter may hold an older one after it went back.
    command: FloatArray
    command_ns: IntArray  # (1,) Its stamp
    # (4, 4, 3), (2, 3), (6, 6) Scratch space.
    poses: FloatArray
    vectors: FloatArray
    work: FloatArray


def new_part_state(parts: int) -> PartState:
    """Return the memory of a node that has seen nothing."""
    return PartState(
        seen=np.zeros((parts, 2), dtype=np.int64),
        stamp_ns=np.full(parts, NO_STAMP, dtype=np.int64),
        previous=np.zeros((parts, 4, 3)),
        initial=np.zeros((parts, 4, 3)),
        previous_covariance=np.zeros((parts, 6, 6)),
        rates=np.zeros((2, 3)),
        tick_ns=np.zeros(1, dtype=np.int64),
        command=np.zeros(6),
        command_ns=np.full(1, NO_STAMP, dtype=np.int64),
        poses=np.zeros((4, 4, 3)),
        vectors=np.zeros((2, 3)),
        work=np.zeros((6, 6)),
    )


@dataclasses.dataclass(frozen=True)
class PartName:
    """Which input and which part of it a number in the loop stands for."""

    source: str
    topic: str
    kind: str

    def __str__(self) -> str:
        return f'{self.source} {self.kind}'


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One part of one input, as configured."""

    kind: int  # POSE, TWIST or ACCELERATION
    source: SourceConfig
    threshold: float  # Mahalanobis threshold
    mask: FloatArray  # (6,) Which of its quantities are fused, in the sensor's axes

    def lacks_attitude(self, array: MessageArray | None) -> bool:
        """Say whether it is a differential pose whose messages have no orientation of their own.

        Those of navsat_transform (`array` None) have none; nor have those of which no rotation is
        measured and every orientation is the identity.
        """
        source = self.source
        if self.kind != POSE or not source.differential or source.kind == 'imu':
            return False
        if array is None:
            return True
        if self.mask[3:].any() or not isinstance(array, (OdometryArray, PoseArray)):
            return False
        return not array.orientation[:, :3].any()

    def frame(self, array: MessageArray, base: str) -> str:
        """Return the frame in which messages give it: the base for a twist without a frame."""
        if self.kind != TWIST:
            return array.frame
        return (array.child_frame if isinstance(array, OdometryArray) else array.frame) or base

    def child_frame(self, array: MessageArray, base: str) -> str:
        """Return the body frame whose pose it gives; empty for that of the base."""
        if self.kind != POSE or not self.source.of_child or not isinstance(array, OdometryArray):
            return ''
        child = array.child_frame.strip('/')
        return '' if child == base else child


def parts_of(source: SourceConfig, kind: str) -> list[Part]:
    """Return the parts that messages of a kind have, in the order in which they are delivered.

    `kind` is odom, pose, twist or imu: the source's, or that of what navsat_transform publishes.
    """
    pose, twist, acceleration = source.mask[:6], source.mask[6:12], source.mask[12:]
    if kind == 'imu':
        # An Imu has no linear velocity.
        twist = np.concatenate([np.zeros(3), twist[3:]])
    parts = []
    if kind != 'twist' and pose.any():
        parts.append(Part(POSE, source, source.pose_threshold, pose))
    if kind != 'pose' and twist.any():
        parts.append(Part(TWIST, source, source.twist_threshold, twist))
    if kind == 'imu' and acceleration.any():
        mask = np.concatenate([acceleration, np.zeros(3)])
        parts.append(Part(ACCELERATION, source, source.acceleration_threshold, mask))
    return parts


class PartTable:
    """The parts of all inputs, numbered, and where the sensors sit.

    `by_navsat` has the inputs in the order of the numbers, and whether navsat_transform makes
    their messages; `correct` the deviations of robot_localization that are corrected; see
    `ReplayOptions`.
    """

    def __init__(
        self,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        by_navsat: Mapping[str, bool],
        correct: Set[str],
    ) -> None:
        self._config = config
        # The odometry/gps of navsat_transform comes with a twist, of zero.
        gps_kind = 'odom' if navsat is None or navsat.timed else 'pose'
        sources = {source.name: source for source in config.sources}
        self.parts: list[Part] = []
        # Input to the number of its first part, and its parts.
        self.of: dict[str, tuple[int, list[Part]]] = {}
        # Parts that odometry/gps feeds: pose and twist, -1 where it feeds none.
        self.navsat_part = np.array([-1, -1], dtype=np.int64)
        for name, made in by_navsat.items():
            own = parts_of(sources[name], gps_kind if made else sources[name].kind)
            self.of[name] = len(self.parts), own
            for number, part in enumerate(own if made else (), len(self.parts)):
                self.navsat_part[part.kind] = number
            self.parts += own
        # Every sensor is in the origin of base_link with its axes until it is placed.
        self.table = _table_of(self.parts, config, correct)

    @property
    def names(self) -> tuple[PartName, ...]:
        """Names under which the parts are counted."""
        return tuple(
            PartName(part.source.name, part.source.topic, _KIND_NAMES[part.kind])
            for part in self.parts
        )

    def frames(self, name: str, array: MessageArray) -> list[tuple[str, str]]:
        """Return frame and child frame of each part of an input's messages."""
        base = self._config.base_link_frame
        return [
            (part.frame(array, base), part.child_frame(array, base)) for part in self.of[name][1]
        ]

    def place(self, name: str, array: MessageArray, frames: FrameTree) -> None:
        """Enter the frames of an input's messages.

        JudgeError when nothing connects a frame to where the filter needs it.
        """
        first, own = self.of[name]
        for number, (frame, child) in enumerate(self.frames(name, array), first):
            self._place(number, own[number - first], frame, child, frames)

    def _place(self, number: int, part: Part, frame: str, child: str, frames: FrameTree) -> None:
        table, source, target = self.table, part.source, self._config.base_link_frame
        if part.kind == POSE and source.kind != 'imu':
            # Increments do not depend on the frame that both poses are given in, unless they are
            # seen with the filter's attitude.
            own = source.differential and not table.no_attitude[number]
            target = frame if own else self._config.world_frame
        user = f'{source.name} ({source.topic})'
        rotation, offset = frames.lookup(target, frame, user)
        turn = rotation
        if part.kind == POSE and source.kind == 'imu':
            yaw = math.atan2(rotation[1, 0], rotation[0, 0])
            c, s = math.cos(yaw), math.sin(yaw)
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        table.mask[number] = _turned_mask(part.mask, turn)
        table.rotation[number], table.offset[number] = rotation, offset
        if not child:
            return
        # robot_localization takes the pose as it stands when nothing connects the frame.
        child_turn, child_at = frames.lookup(self._config.base_link_frame, child, user)
        table.of_child[number] = 1
        table.child_turn[number], table.child_at[number] = child_turn, child_at
        if source.differential:
            table.mask[number] = _turned_mask(part.mask, child_turn)

    def without_attitude(self, number: int) -> None:
        """Let the increments of a pose be seen with the filter's attitude; its own says nothing.

        To be called before `place`.
        """
        self.table.no_attitude[number] = 1
        self.table.mask[number, :3] = self.parts[number].mask[:3]
        # An identity that never changes would measure that the robot does not turn.
        self.table.mask[number, 3:] = 0.0


def _table_of(parts: Sequence[Part], config: FilterConfig, correct: Set[str]) -> Parts:
    def switch(name: str) -> IntArray:
        return np.array([getattr(part.source, name) for part in parts], dtype=np.int64)

    n = len(parts)
    return Parts(
        kind=np.array([part.kind for part in parts], dtype=np.int64),
        imu=np.array([part.source.kind == 'imu' for part in parts], dtype=np.int64),
        differential=switch('differential'),
        relative=switch('relative'),
        remove_gravity=switch('remove_gravity'),
        threshold=np.array([part.threshold for part in parts], dtype=np.float64),
        mask=np.array([part.mask for part in parts], dtype=np.float64).reshape(-1, 6),
        rotation=np.tile(np.eye(3), (n, 1, 1)),
        offset=np.zeros((n, 3)),
        of_child=np.zeros(n, dtype=np.int64),
        child_turn=np.tile(np.eye(3), (n, 1, 1)),
        child_at=np.zeros((n, 3)),
        no_attitude=np.zeros(n, dtype=np.int64),
        gravity=config.gravity,
        two_d=config.two_d_mode,
        correct_gravity='gravity' in correct,
        correct_differential='differential' in correct,
    )


def _turned_mask(mask: FloatArray, rotation: FloatArray) -> FloatArray:
    """Turn two masks of 3 axes; one counts when its row of R diag(mask) is longer than 1e-6."""
    counts = ((rotation * mask.reshape(2, 1, 3)) ** 2).sum(axis=2) >= 1e-12
    return np.asarray(counts, dtype=np.float64).ravel()


class Messages(NamedTuple):
    """All message parts of a run in order of arrival."""

    # (n,)
    arrival_ns: IntArray
    stamp_ns: IntArray
    part: IntArray  # (n,) Number of the part, or FIX_PART, HEADING_PART, COMMAND_PART
    # (n, 7) As `preparation.prepare` takes it. FIX_PART: number of the fix. HEADING_PART:
    # quaternion. COMMAND_PART: the six velocities.
    value: FloatArray
    has_attitude: IntArray  # (n,) bool For accelerations: the message's orientation is valid
    covariance: IntArray  # (n,) Row of `covariances`
    covariances: FloatArray  # (k, 6, 6)
