# SPDX-License-Identifier: Apache-2.0
"""From a recording and a configuration to the arrays that the compiled event loop reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.robot_localization.configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    SourceConfig,
)
from sim2real_eval.judge.robot_localization.fixes import (
    Plane,
    enter_fixes,
    new_navsat,
    place_antenna,
    place_heading,
    plane_of,
)
from sim2real_eval.judge.robot_localization.navsat import Navsat
from sim2real_eval.judge.robot_localization.parts import (
    ACCELERATION,
    COMMAND_PART,
    FIX_PART,
    HEADING_PART,
    POSE,
    TWIST,
    Messages,
    Part,
    PartName,
    Parts,
    new_parts,
    part_names,
    parts_of,
    place,
    without_attitude,
)
from sim2real_eval.judge.robot_localization.topics import TopicParts, covariance_rows, merge, plain
from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)

_TYPES: Mapping[str, type[MessageArray]] = {
    'odom': OdometryArray,
    'pose': PoseArray,
    'twist': TwistArray,
    'imu': ImuArray,
}
_ROS_TYPES: Mapping[type[MessageArray], str] = {
    FixArray: 'sensor_msgs/NavSatFix',
    ImuArray: 'sensor_msgs/Imu',
    OdometryArray: 'nav_msgs/Odometry',
    PoseArray: 'geometry_msgs/PoseWithCovarianceStamped',
    TwistArray: 'geometry_msgs/TwistWithCovarianceStamped',
}


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that the event loop reads but timing and filter.

    Attributes
    ----------
    parts, messages, navsat
        As `replay` takes them.
    names : tuple of PartName
        One per part.
    navsat_part : (2,) int64
        Parts that odometry/gps feeds.
    plane : Plane or None
        In which navsat_transform works.
    """

    parts: Parts
    messages: Messages
    navsat: Navsat
    names: tuple[PartName, ...]
    navsat_part: IntArray
    plane: Plane | None


def build_inputs(
    config: FilterConfig,
    navsat: NavsatConfig | None,
    sources: Mapping[str, MessageArray | None],
    fixes: FixArray | None,
    headings: ImuArray | None,
    commands: TwistArray | None,
    frames: FrameTree,
    correct: Set[str] = frozenset(),
) -> Inputs:
    """Lay out all messages in order of arrival.

    Parameters
    ----------
    config, navsat
        The nodes' parameters.
    sources : mapping
        Source name (`odom0`) to its messages, in the order in which messages that arrive
        together are delivered; None for what navsat_transform publishes.
    fixes, headings : FixArray, ImuArray or None
        What navsat_transform subscribes to.
    commands : TwistArray or None
        Velocity commands.
    frames : FrameTree
        Static transforms.
    correct : set of str
        Deviations of robot_localization that are corrected; see `ReplayOptions`.

    Raises
    ------
    JudgeError
        When a message type does not fit its input or a frame cannot be resolved.
    """
    by_name = {source.name: source for source in config.sources}
    parts: list[Part] = []
    used: list[tuple[int, list[Part], MessageArray]] = []
    blocks: list[TopicParts] = []
    covariances: list[FloatArray] = [np.zeros((1, 6, 6))]
    navsat_part = np.array([-1, -1], dtype=np.int64)
    for name, array in sources.items():
        source = by_name[name]
        first = len(parts)
        if array is None:
            parts += parts_of(source, gps_kind(navsat))
            for number in range(first, len(parts)):
                navsat_part[parts[number].kind] = number
            continue
        check_type(source, array)
        parts += parts_of(source, source.kind)
        used.append((first, parts[first:], array))
    table = new_parts(parts, config, correct)
    if 'differential' in correct:
        for number, part in enumerate(parts):
            if lacks_attitude(part, sources[part.source.name]):
                without_attitude(table, number, part)
    for first, own, array in used:
        for number, part in enumerate(own, first):
            frame, child = part_frame(part, array, config), child_frame(part, array, config)
            place(table, number, part, frame, config, frames, child)
        blocks += source_blocks(own, first, array, covariances)
    if fixes is not None:
        number_of = np.arange(len(fixes), dtype=np.float64)
        blocks.append(plain(fixes, FIX_PART, number_of[:, None]))
    if headings is not None and navsat is not None and navsat.needs_heading:
        blocks.append(plain(headings, HEADING_PART, headings.orientation))
    if commands is not None:
        twist = np.hstack([commands.linear_velocity, commands.angular_velocity])
        blocks.append(plain(commands, COMMAND_PART, twist))
    if not blocks:
        raise JudgeError(f'{config.where}: measures nothing that the recording has')
    return Inputs(
        parts=table,
        messages=merge(blocks, covariances),
        navsat=_navsat(navsat, fixes, headings, config, frames),
        names=part_names(parts),
        navsat_part=navsat_part,
        plane=None if navsat is None or fixes is None else plane_of(navsat, fixes),
    )


def gps_kind(navsat: NavsatConfig | None) -> str:
    """Return which parts odometry/gps has: navsat_transform's comes with a twist, of zero."""
    return 'odom' if navsat is None or navsat.timed else 'pose'


def check_type(source: SourceConfig, array: MessageArray) -> None:
    """Raise JudgeError when an input's messages are of another type than its name says."""
    if not isinstance(array, _TYPES[source.kind]):
        hint = (
            f'; fixes enter through navsat_transform, as the topic {NAVSAT_TOPIC}'
            if isinstance(array, FixArray)
            else ''
        )
        raise JudgeError(
            f'{source.topic}: {source.name} needs {_ROS_TYPES[_TYPES[source.kind]]} messages, '
            f'the topic has {_ROS_TYPES[type(array)]}{hint}'
        )


def lacks_attitude(part: Part, array: MessageArray | None) -> bool:
    """Say whether a part is a differential pose whose messages have no orientation of their own.

    Those of navsat_transform (`array` None) have none; nor have those of which no rotation is
    measured and every orientation is the identity.
    """
    source = part.source
    if part.kind != POSE or not source.differential or source.kind == 'imu':
        return False
    if array is None:
        return True
    if part.mask[3:].any() or not isinstance(array, (OdometryArray, PoseArray)):
        return False
    return not array.orientation[:, :3].any()


def part_frame(part: Part, array: MessageArray, config: FilterConfig) -> str:
    """Return the frame in which the messages give a part."""
    if part.kind != TWIST:
        return array.frame
    frame = array.child_frame if isinstance(array, OdometryArray) else array.frame
    return frame or config.base_link_frame


def child_frame(part: Part, array: MessageArray, config: FilterConfig) -> str:
    """Return the body frame whose pose a part gives; empty for base_link."""
    if part.kind != POSE or not part.source.of_child or not isinstance(array, OdometryArray):
        return ''
    child = array.child_frame.strip('/')
    return '' if child == config.base_link_frame else child


def source_blocks(
    parts: Sequence[Part], first: int, array: MessageArray, covariances: list[FloatArray]
) -> list[TopicParts]:
    """Interleave the parts of one topic: pose, twist, acceleration of each message in turn.

    Parameters
    ----------
    parts : sequence of Part
        Those of `parts_of`.
    first : int
        Number of the first of them.
    array : MessageArray
    covariances : list of (k, 6, 6) float
        Extended by those of the messages.
    """
    if not parts:
        return []
    n, k = len(array), len(parts)
    value, valid = np.zeros((n, k, 7)), np.ones((n, k), dtype=bool)
    row = np.empty((n, k), dtype=np.int64)
    attitude = np.zeros(n, dtype=np.int64)
    for column, part in enumerate(parts):
        place = value[:, column]
        if isinstance(array, ImuArray):
            covariance = _imu_part(part.kind, array, place)
            valid[:, column] = _present(covariance)
            if part.kind == ACCELERATION:
                attitude = _present(array.orientation_covariance).astype(np.int64)
        elif part.kind == POSE and isinstance(array, (OdometryArray, PoseArray)):
            place[:, :3], place[:, 3:] = array.position, array.orientation
            covariance = array.pose_covariance
        elif isinstance(array, (OdometryArray, TwistArray)):
            place[:, :3], place[:, 3:6] = array.linear_velocity, array.angular_velocity
            covariance = array.twist_covariance
        corner = 0 if part.kind == ACCELERATION else 3
        row[:, column] = covariance_rows(covariance, corner, covariances)
    number = np.broadcast_to(np.arange(first, first + k), (n, k))

    def chosen(each: NDArray[Any]) -> NDArray[Any]:
        """Messages in turn, of each the parts that it has."""
        if each.ndim == 1:
            each = np.broadcast_to(each[:, None], (n, k))
        return each.reshape(n * k, *each.shape[2:]) if whole else each[valid]

    whole = bool(valid.all())
    return [
        TopicParts(
            chosen(array.arrival_ns),
            chosen(array.stamp_ns),
            chosen(number),
            chosen(value),
            chosen(attitude),
            chosen(row),
        )
    ]


def _present(covariance: FloatArray) -> NDArray[np.bool_]:
    """Say where an Imu's covariance block does not say -1, for `no such quantity`."""
    present = np.abs(covariance[:, 0, 0] + 1.0) > 1e-9
    return np.asarray(present, dtype=np.bool_)


def _imu_part(kind: int, imu: ImuArray, value: FloatArray) -> FloatArray:
    """Fill the values of one part of Imu messages; return its covariances, (n, 3, 3)."""
    if kind == POSE:
        value[:, 3:] = imu.orientation
        return imu.orientation_covariance
    if kind == TWIST:
        value[:, 3:6] = imu.angular_velocity
        return imu.angular_velocity_covariance
    value[:, :3], value[:, 3:] = imu.linear_acceleration, imu.orientation
    return imu.linear_acceleration_covariance


def _navsat(
    config: NavsatConfig | None,
    fixes: FixArray | None,
    headings: ImuArray | None,
    filter_config: FilterConfig,
    frames: FrameTree,
) -> Navsat:
    if config is None or fixes is None:
        return new_navsat(None, 0)
    base = filter_config.base_link_frame
    navsat = new_navsat(config, len(fixes))
    place_antenna(navsat, config, fixes.frame, base, frames)
    if headings is not None and config.needs_heading:
        place_heading(navsat, headings.frame, base, frames)
    enter_fixes(navsat, fixes, plane_of(config, fixes))
    return navsat
