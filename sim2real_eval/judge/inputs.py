# SPDX-License-Identifier: Apache-2.0
"""From a recording and a configuration to the arrays that the compiled event loop reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.blocks import Block, covariance_rows, merge, padded, plain
from sim2real_eval.judge.configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    SourceConfig,
)
from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.judge.navsat import Navsat
from sim2real_eval.judge.preparation import ACCELERATION, POSE, TWIST, Parts
from sim2real_eval.judge.replay import COMMAND, FIX, HEADING, Messages
from sim2real_eval.judge.utm import to_utm
from sim_sensors.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)

__all__ = ['Inputs', 'PartName', 'build_inputs']

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


@dataclasses.dataclass(frozen=True)
class PartName:
    """Which input and which part of it a number in the loop stands for."""

    source: str
    topic: str
    kind: str

    def __str__(self) -> str:
        return f'{self.source} {self.kind}'


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
    """

    parts: Parts
    messages: Messages
    navsat: Navsat
    names: tuple[PartName, ...]
    navsat_part: IntArray


@dataclasses.dataclass
class _Row:
    """One part while the table is being built."""

    kind: int
    source: SourceConfig
    threshold: float
    mask: FloatArray
    rotation: FloatArray
    offset: FloatArray


def _turned_mask(mask: FloatArray, rotation: FloatArray) -> FloatArray:
    """Turn a mask of 3 axes; an axis counts when its row of R diag(mask) is longer than 1e-6."""
    counts = np.linalg.norm(rotation @ np.diag(mask), axis=1) >= 1e-6
    return np.asarray(counts, dtype=np.float64)


def build_inputs(
    config: FilterConfig,
    navsat: NavsatConfig | None,
    sources: Mapping[str, MessageArray | None],
    fixes: FixArray | None,
    headings: ImuArray | None,
    commands: TwistArray | None,
    frames: FrameTree,
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

    Raises
    ------
    JudgeError
        When a message type does not fit its input or a frame cannot be resolved.
    """
    by_name = {source.name: source for source in config.sources}
    rows: list[_Row] = []
    blocks: list[Block] = []
    covariances: list[FloatArray] = [np.zeros((1, 6, 6))]
    navsat_part = np.array([-1, -1], dtype=np.int64)
    for name, array in sources.items():
        source = by_name[name]
        if array is None:
            for slot, (kind, mask) in enumerate(
                ((POSE, source.mask[:6]), (TWIST, source.mask[6:12]))
            ):
                if mask.any():
                    navsat_part[slot] = len(rows)
                    threshold = (source.pose_threshold, source.twist_threshold)[slot]
                    rows.append(_Row(kind, source, threshold, mask, np.eye(3), np.zeros(3)))
            continue
        if not isinstance(array, _TYPES[source.kind]):
            hint = (
                f'; fixes enter through navsat_transform, as the topic {NAVSAT_TOPIC}'
                if isinstance(array, FixArray)
                else ''
            )
            raise JudgeError(
                f'{source.topic}: {name} needs {_ROS_TYPES[_TYPES[source.kind]]} messages, '
                f'the topic has {_ROS_TYPES[type(array)]}{hint}'
            )
        blocks.extend(_source_blocks(source, array, config, frames, rows, covariances))
    if fixes is not None:
        number = np.arange(len(fixes), dtype=np.float64)
        blocks.append(plain(fixes, FIX, number[:, None]))
    if headings is not None and navsat is not None and not navsat.use_odometry_yaw:
        blocks.append(plain(headings, HEADING, headings.orientation))
    if commands is not None:
        twist = np.hstack([commands.linear_velocity, commands.angular_velocity])
        blocks.append(plain(commands, COMMAND, twist))
    if not blocks:
        raise JudgeError(f'{config.where}: measures nothing that the recording has')
    return Inputs(
        parts=_parts(rows, config),
        messages=merge(blocks, covariances),
        navsat=_navsat(navsat, fixes, headings, config, frames),
        names=tuple(
            PartName(
                row.source.name, row.source.topic, ('pose', 'twist', 'acceleration')[row.kind]
            )
            for row in rows
        ),
        navsat_part=navsat_part,
    )


def _source_blocks(
    source: SourceConfig,
    array: MessageArray,
    config: FilterConfig,
    frames: FrameTree,
    rows: list[_Row],
    covariances: list[FloatArray],
) -> list[Block]:
    """Interleave the parts of one topic: pose, twist, acceleration of each message in turn."""
    parts: list[tuple[int, FloatArray, FloatArray, np.ndarray]] = []
    n = len(array)
    everywhere = np.ones(n, dtype=bool)
    attitude = np.zeros(n, dtype=np.int64)
    base = config.base_link_frame
    pose_mask, twist_mask, acceleration_mask = source.mask[:6], source.mask[6:12], source.mask[12:]

    def add(kind: int, threshold: float, mask: FloatArray, frame: str, target: str) -> None:
        rotation, offset = frames.lookup(target, frame, f'{source.name} ({source.topic})')
        turn = rotation
        if kind == POSE and source.kind == 'imu':
            yaw = Rotation.from_matrix(rotation).as_euler('xyz')[2]
            turn = Rotation.from_euler('z', yaw).as_matrix()
        turned = np.concatenate([_turned_mask(mask[:3], turn), _turned_mask(mask[3:], turn)])
        rows.append(_Row(kind, source, threshold, turned, rotation, offset))

    if isinstance(array, (OdometryArray, PoseArray)) and pose_mask.any():
        # Increments do not depend on the frame that both poses are given in.
        target = array.frame if source.differential else config.world_frame
        add(POSE, source.pose_threshold, pose_mask, array.frame, target)
        value = np.hstack([array.position, array.orientation])
        parts.append((len(rows) - 1, value, array.pose_covariance, everywhere))
    if isinstance(array, ImuArray) and pose_mask.any():
        valid = np.abs(array.orientation_covariance[:, 0, 0] + 1.0) > 1e-9
        add(POSE, source.pose_threshold, pose_mask, array.frame, base)
        value = np.hstack([np.zeros((n, 3)), array.orientation])
        parts.append((len(rows) - 1, value, padded(array.orientation_covariance, 3), valid))
    if isinstance(array, (OdometryArray, TwistArray)) and twist_mask.any():
        frame = array.child_frame if isinstance(array, OdometryArray) else array.frame
        add(TWIST, source.twist_threshold, twist_mask, frame or base, base)
        value = np.hstack([array.linear_velocity, array.angular_velocity, np.zeros((n, 1))])
        parts.append((len(rows) - 1, value, array.twist_covariance, everywhere))
    if isinstance(array, ImuArray):
        if twist_mask[3:].any():
            valid = np.abs(array.angular_velocity_covariance[:, 0, 0] + 1.0) > 1e-9
            mask = np.concatenate([np.zeros(3), twist_mask[3:]])
            add(TWIST, source.twist_threshold, mask, array.frame, base)
            value = np.hstack([np.zeros((n, 3)), array.angular_velocity, np.zeros((n, 1))])
            covariance = padded(array.angular_velocity_covariance, 3)
            parts.append((len(rows) - 1, value, covariance, valid))
        if acceleration_mask.any():
            valid = np.abs(array.linear_acceleration_covariance[:, 0, 0] + 1.0) > 1e-9
            attitude = (np.abs(array.orientation_covariance[:, 0, 0] + 1.0) > 1e-9).astype(
                np.int64
            )
            mask = np.concatenate([acceleration_mask, np.zeros(3)])
            add(ACCELERATION, source.acceleration_threshold, mask, array.frame, base)
            value = np.hstack([array.linear_acceleration, array.orientation])
            covariance = padded(array.linear_acceleration_covariance, 0)
            parts.append((len(rows) - 1, value, covariance, valid))
    if not parts:
        return []
    message = np.concatenate([np.flatnonzero(valid) for *_, valid in parts])
    order = np.argsort(message, kind='stable')
    part = np.concatenate([np.full(valid.sum(), number) for number, _, _, valid in parts])
    rows_of = [
        covariance_rows(covariance, covariances)[valid] for _, _, covariance, valid in parts
    ]
    value = np.concatenate([value[valid] for _, value, _, valid in parts])
    picked = message[order]
    return [
        Block(
            array.arrival_ns[picked],
            array.stamp_ns[picked],
            part[order].astype(np.int64),
            value[order],
            attitude[picked],
            np.concatenate(rows_of)[order],
        )
    ]


def _parts(rows: Sequence[_Row], config: FilterConfig) -> Parts:
    def flags(values: Sequence[bool]) -> IntArray:
        return np.array(values, dtype=np.int64)

    return Parts(
        kind=np.array([row.kind for row in rows], dtype=np.int64),
        imu=flags([row.source.kind == 'imu' for row in rows]),
        differential=flags([row.source.differential for row in rows]),
        relative=flags([row.source.relative for row in rows]),
        remove_gravity=flags([row.source.remove_gravity for row in rows]),
        threshold=np.array([row.threshold for row in rows], dtype=np.float64),
        mask=np.array([row.mask for row in rows], dtype=np.float64).reshape(-1, 6),
        rotation=np.array([row.rotation for row in rows], dtype=np.float64).reshape(-1, 3, 3),
        offset=np.array([row.offset for row in rows], dtype=np.float64).reshape(-1, 3),
        gravity=config.gravity,
        two_d=config.two_d_mode,
    )


def _navsat(
    config: NavsatConfig | None,
    fixes: FixArray | None,
    headings: ImuArray | None,
    filter_config: FilterConfig,
    frames: FrameTree,
) -> Navsat:
    none = np.zeros(0)
    if config is None or fixes is None:
        return Navsat(
            none, none, none, none, np.zeros((0, 3, 3)), np.zeros(0, dtype=np.int64),
            0.0, 0.0, np.zeros(3), np.zeros(3), False, False, False,
        )  # fmt: skip
    base = filter_config.base_link_frame
    _, antenna = frames.lookup(base, fixes.frame, 'navsat_transform (fix)')
    mounting = np.zeros(3)
    if headings is not None and not config.use_odometry_yaw:
        rotation, _ = frames.lookup(base, headings.frame, 'navsat_transform (imu)')
        mounting = Rotation.from_matrix(rotation).as_euler('xyz')
    easting, northing, convergence = to_utm(fixes.latitude, fixes.longitude)
    return Navsat(
        easting=easting,
        northing=northing,
        altitude=fixes.altitude,
        convergence=convergence,
        covariance=fixes.position_covariance,
        stamp_ns=fixes.stamp_ns,
        declination=config.magnetic_declination,
        yaw_offset=config.yaw_offset,
        mounting=np.asarray(mounting, dtype=np.float64),
        antenna=np.asarray(antenna, dtype=np.float64),
        use_odometry_yaw=config.use_odometry_yaw,
        zero_altitude=config.zero_altitude,
        publish_filtered_gps=config.publish_filtered_gps,
    )
