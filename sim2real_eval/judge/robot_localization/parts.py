# SPDX-License-Identifier: Apache-2.0
"""Which parts the inputs of a configuration have, and how a sensor's frame turns them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence, Set

import numpy as np

from sim2real_eval.judge.robot_localization.configuration import FilterConfig, SourceConfig
from sim2real_eval.judge.robot_localization.preparation import ACCELERATION, POSE, TWIST, Parts
from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.measurements import FloatArray, IntArray

__all__ = ['Part', 'PartName', 'new_parts', 'part_names', 'parts_of', 'place', 'without_attitude']

_KIND_NAMES = ('pose', 'twist', 'acceleration')


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
    """One part of one input, as configured.

    Attributes
    ----------
    kind : int
        POSE, TWIST or ACCELERATION.
    source : SourceConfig
    threshold : float
        Mahalanobis threshold.
    mask : (6,) float
        Which of its quantities are fused, in the sensor's axes.
    """

    kind: int
    source: SourceConfig
    threshold: float
    mask: FloatArray


def parts_of(source: SourceConfig, kind: str) -> list[Part]:
    """Return the parts that messages of a kind have, in the order in which they are delivered.

    Parameters
    ----------
    source : SourceConfig
    kind : str
        odom, pose, twist or imu; the source's own, or odom for what navsat_transform publishes.
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


def part_names(parts: Sequence[Part]) -> tuple[PartName, ...]:
    """Return the names under which the parts are counted."""
    return tuple(
        PartName(part.source.name, part.source.topic, _KIND_NAMES[part.kind]) for part in parts
    )


def new_parts(
    parts: Sequence[Part], config: FilterConfig, correct: Set[str] = frozenset()
) -> Parts:
    """Lay out all parts, as if every sensor sat in the origin of base_link with its axes.

    Parameters
    ----------
    parts : sequence of Part
    config : FilterConfig
    correct : set of str
        Deviations of robot_localization that are corrected; see `ReplayOptions`.
    """

    def flags(values: Sequence[bool]) -> IntArray:
        return np.array(values, dtype=np.int64)

    n = len(parts)
    return Parts(
        kind=np.array([part.kind for part in parts], dtype=np.int64),
        imu=flags([part.source.kind == 'imu' for part in parts]),
        differential=flags([part.source.differential for part in parts]),
        relative=flags([part.source.relative for part in parts]),
        remove_gravity=flags([part.source.remove_gravity for part in parts]),
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


def place(
    table: Parts,
    number: int,
    part: Part,
    frame: str,
    config: FilterConfig,
    frames: FrameTree,
    child: str = '',
) -> None:
    """Enter the frame of a part's messages into the table.

    Parameters
    ----------
    table : Parts
        Changed in place.
    number : int
        Number of the part in the table.
    part : Part
    frame : str
        Frame of the messages: that of the twist for a twist, empty for base_link.
    config : FilterConfig
    frames : FrameTree
    child : str
        Body frame whose pose it is, where that is not base_link.

    Raises
    ------
    JudgeError
        When nothing connects the frame to where the filter needs it.
    """
    source, target = part.source, config.base_link_frame
    if part.kind == POSE and source.kind != 'imu':
        # Increments do not depend on the frame that both poses are given in, unless they are seen
        # with the filter's attitude.
        own = source.differential and not table.no_attitude[number]
        target = frame if own else config.world_frame
    user = f'{source.name} ({source.topic})'
    rotation, offset = frames.lookup(target, frame, user)
    turn = rotation
    if part.kind == POSE and source.kind == 'imu':
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        c, s = math.cos(yaw), math.sin(yaw)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    table.mask[number, :3] = _turned_mask(part.mask[:3], turn)
    table.mask[number, 3:] = _turned_mask(part.mask[3:], turn)
    table.rotation[number] = rotation
    table.offset[number] = offset
    if not child:
        return
    # robot_localization takes the pose as it stands when nothing connects the frame.
    child_turn, child_at = frames.lookup(config.base_link_frame, child, user)
    table.of_child[number] = 1
    table.child_turn[number] = child_turn
    table.child_at[number] = child_at
    if source.differential:
        table.mask[number, :3] = _turned_mask(part.mask[:3], child_turn)
        table.mask[number, 3:] = _turned_mask(part.mask[3:], child_turn)


def without_attitude(table: Parts, number: int, part: Part) -> None:
    """Let the increments of a pose be seen with the filter's attitude; its own says nothing.

    Parameters
    ----------
    table : Parts
        Changed in place; before `place`.
    number : int
        Number of the part in the table.
    part : Part
        A differential pose.
    """
    table.no_attitude[number] = 1
    table.mask[number] = part.mask
    # An identity that never changes would measure that the robot does not turn.
    table.mask[number, 3:] = 0.0


def _turned_mask(mask: FloatArray, rotation: FloatArray) -> FloatArray:
    """Turn a mask of 3 axes; an axis counts when its row of R diag(mask) is longer than 1e-6."""
    counts = ((rotation * mask) ** 2).sum(axis=1) >= 1e-12
    return np.asarray(counts, dtype=np.float64)
