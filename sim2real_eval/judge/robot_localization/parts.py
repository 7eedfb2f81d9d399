# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of messages (pose, twist, acceleration): configuration, mounting and memory."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.measurements import (
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)
from .configuration import FilterConfig, NavsatConfig, SourceConfig
from .state import NO_STAMP, RecordArray, record_type

POSE, TWIST, ACCELERATION = range(3)
FIX_PART, HEADING_PART, COMMAND_PART = -1, -2, -3
"""Numbers of messages that are no part: for navsat_transform, and velocity commands."""

_KIND_NAMES = ('pose', 'twist', 'acceleration')


PART = record_type(
    ('kind', 'i8'),  # POSE, TWIST or ACCELERATION
    # Whether the part comes from an Imu message, and its switches (0 or 1).
    ('imu', 'i8'),
    ('differential', 'i8'),
    ('relative', 'i8'),
    ('remove_gravity', 'i8'),
    ('threshold', 'f8'),  # Mahalanobis threshold
    # 1 for each fused quantity, along the axes of the target frame.
    ('mask', 'f8', (6,)),
    # From the message's frame to the target frame: the world for poses, else base_link.
    ('rotation', 'f8', (3, 3)),
    ('offset', 'f8', (3,)),  # position of the message's frame in the target frame
    # Whether a pose is that of another body frame than base_link (0 or 1); the rotation
    # from that frame to base_link, and its position in base_link.
    ('of_child', 'i8'),
    ('child_rotation', 'f8', (3, 3)),
    ('child_offset', 'f8', (3,)),
    # Whether a differential pose has no orientation, so that its increments are rotated
    # by the filter's attitude (0 or 1); only with correct_differential.
    ('no_attitude', 'i8'),
    # Settings of the filter, the same for all parts.
    ('gravity', 'f8'),  # m/s^2
    ('two_d', 'i8'),
    # Whether these deviations of robot_localization are corrected.
    ('correct_gravity', 'i8'),
    ('correct_differential', 'i8'),
    # Whether gravity is corrected by robot_localization, which takes a relative attitude as that
    # since a level start of base_link.
    ('starts_level', 'i8'),
)
"""Configuration of one message part."""

PART_MEMORY = record_type(
    ('seen', 'i8', (2,)),  # whether a previous and an initial pose exist
    ('stamp_ns', 'i8'),  # stamp of the previous message
    # Rotation matrix (first three rows) and position (last row).
    ('previous', 'f8', (4, 3)),
    ('initial', 'f8', (4, 3)),
    ('previous_covariance', 'f8', (6, 6)),
)
"""Memory of one message part between messages."""

NODE_MEMORY = record_type(
    # Angular velocity at the last output tick; angular acceleration there.
    ('rates', 'f8', (2, 3)),
    ('tick_ns', 'i8'),  # time of the last output tick
    # Latest command and its stamp; after going back the filter may hold an older one.
    ('command', 'f8', (6,)),
    ('command_ns', 'i8'),
    # Scratch space.
    ('pose', 'f8', (4, 3)),
    ('increment_pose', 'f8', (4, 3)),
    ('attitude', 'f8', (4, 3)),
    ('rotation', 'f8', (3, 3)),
    ('vectors', 'f8', (2, 3)),
    ('work', 'f8', (6, 6)),
)
"""Memory of a node between messages, besides that of the parts."""


class Memory(NamedTuple):
    """Memory of the preparation of messages; changed in place."""

    parts: RecordArray  # (p,) of type PART_MEMORY
    node: np.record  # of type NODE_MEMORY


def new_memory(parts: int, tick_ns: int = 0) -> Memory:
    """Return the memory of a node that has received nothing; `tick_ns` is its previous tick."""
    memory = Memory(np.zeros(parts, PART_MEMORY), np.zeros(1, NODE_MEMORY)[0])
    memory.parts['stamp_ns'] = NO_STAMP
    memory.node.command_ns = NO_STAMP
    memory.node.tick_ns = tick_ns
    return memory


@dataclasses.dataclass(frozen=True)
class PartName:
    """Input and kind of a part, for reports."""

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
    mask: FloatArray  # (6,) 1 for each fused quantity, along the sensor's axes

    def lacks_attitude(self, array: MessageArray | None) -> bool:
        """Return whether it is a differential pose whose messages have no orientation.

        Messages of navsat_transform (`array` None) have none. Neither have messages of which no
        rotation is measured and every orientation is the identity.
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
        """Return the frame of the part in messages: the base for a twist without a frame."""
        if self.kind != TWIST:
            return array.frame
        return (array.child_frame if isinstance(array, OdometryArray) else array.frame) or base

    def child_frame(self, array: MessageArray, base: str) -> str:
        """Return the body frame whose pose is given; empty for the base."""
        if self.kind != POSE or not self.source.of_child or not isinstance(array, OdometryArray):
            return ''
        child = array.child_frame.strip('/')
        return '' if child == base else child


def parts_of(source: SourceConfig, kind: str) -> list[Part]:
    """Return the parts of messages of a kind, in the order in which they are delivered.

    `kind` is odom, pose, twist or imu: that of the source, or of navsat_transform's messages.
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
    """Numbered parts of all inputs, with the mounting of the sensors.

    Parameters
    ----------
    config, navsat : parameters of the nodes.
    by_navsat : inputs in the order of the numbers, and whether navsat_transform publishes their
        messages.
    correct : deviations of robot_localization that are corrected; see `ReplayOptions`.
    """

    def __init__(
        self,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        by_navsat: Mapping[str, bool],
        correct: Set[str],
    ) -> None:
        self._config = config
        # The odometry/gps of navsat_transform has a zero twist.
        gps_kind = 'odom' if navsat is None or navsat.has_timer else 'pose'
        sources = {source.name: source for source in config.sources}
        self.parts: list[Part] = []
        # Number of the first part and all parts of each input.
        self.of: dict[str, tuple[int, list[Part]]] = {}
        # Parts that odometry/gps feeds: pose and twist, -1 for a part that it does not feed.
        self.navsat_part = np.array([-1, -1], dtype=np.int64)
        for name, is_published in by_navsat.items():
            own_parts = parts_of(sources[name], gps_kind if is_published else sources[name].kind)
            self.of[name] = len(self.parts), own_parts
            for number, part in enumerate(own_parts if is_published else (), len(self.parts)):
                self.navsat_part[part.kind] = number
            self.parts += own_parts
        # Until it is placed, every sensor is aligned with base_link.
        self.table = _build_table(self.parts, config, correct)

    @property
    def names(self) -> tuple[PartName, ...]:
        """Names of the parts for reports."""
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
        """Set the mounting of an input's sensor from the frames of its messages.

        JudgeError when no transform connects a frame to the target frame.
        """
        first, own_parts = self.of[name]
        for number, (frame, child) in enumerate(self.frames(name, array), first):
            self._place(number, own_parts[number - first], frame, child, frames)

    def _place(self, number: int, part: Part, frame: str, child: str, frames: FrameTree) -> None:
        row, source, target = self.table[number], part.source, self._config.base_link_frame
        if part.kind == POSE and source.kind != 'imu':
            # Increments do not depend on the frame of both poses, unless they are rotated by the
            # filter's attitude.
            is_relative = source.differential and not row.no_attitude
            target = frame if is_relative else self._config.world_frame
        user = f'{source.name} ({source.topic})'
        rotation, offset = frames.lookup(target, frame, user)
        turn = rotation
        if part.kind == POSE and source.kind == 'imu':
            yaw = math.atan2(rotation[1, 0], rotation[0, 0])
            c, s = math.cos(yaw), math.sin(yaw)
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        row.mask[:] = _rotate_mask(part.mask, turn)
        row.rotation[:], row.offset[:] = rotation, offset
        if not child:
            return
        # Unlike here, robot_localization uses the pose unchanged without a transform.
        row.of_child = 1
        row.child_rotation[:], row.child_offset[:] = frames.lookup(
            self._config.base_link_frame, child, user
        )
        if source.differential:
            row.mask[:] = _rotate_mask(part.mask, row.child_rotation)

    def without_attitude(self, number: int) -> None:
        """Rotate the increments of a pose by the filter's attitude, because it has none.

        Call this before `place`.
        """
        row = self.table[number]
        row.no_attitude = 1
        row.mask[:3] = self.parts[number].mask[:3]
        # A constant identity would measure that the robot does not turn.
        row.mask[3:] = 0.0


def _build_table(parts: Sequence[Part], config: FilterConfig, correct: Set[str]) -> RecordArray:
    table: RecordArray = np.zeros(len(parts), PART)
    for number, part in enumerate(parts):
        row, source = table[number], part.source
        row.kind, row.imu = part.kind, source.kind == 'imu'
        row.differential, row.relative = source.differential, source.relative
        row.remove_gravity, row.threshold = source.remove_gravity, part.threshold
        row.mask[:] = part.mask
        row.rotation[:] = row.child_rotation[:] = np.eye(3)
        row.gravity, row.two_d = config.gravity, config.two_d_mode
        by_release = config.release.has_gravity_in_base and 'gravity' not in correct
        row.correct_gravity = by_release or 'gravity' in correct
        row.starts_level = by_release and source.relative
        row.correct_differential = 'differential' in correct
    return table


def _rotate_mask(mask: FloatArray, rotation: FloatArray) -> FloatArray:
    """Rotate two masks of 3 axes; an axis is used if its row of R diag(mask) exceeds 1e-6."""
    counts = ((rotation * mask.reshape(2, 1, 3)) ** 2).sum(axis=2) >= 1e-12
    return np.asarray(counts, dtype=np.float64).ravel()


class Messages(NamedTuple):
    """Message parts in order of arrival."""

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
