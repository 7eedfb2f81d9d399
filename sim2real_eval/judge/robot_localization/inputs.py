# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays for the compiled event loop from a recording and a configuration."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.recording.message_types import default_type
from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.blocks import BLOCK, by_blocks
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    MessageParts,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from sim_sensors.core.rotations import conjugate, heading, multiply, rotate, rotate_back
from .configuration import NAVSAT_TOPIC, FilterConfig, NavsatConfig, SourceConfig
from .fixes import Plane, navsat_of, plane_of
from .navsat import Navsat
from .parts import (
    ACCELERATION,
    COMMAND_PART,
    FIX_PART,
    HEADING_PART,
    POSE,
    TWIST,
    Messages,
    Part,
    PartName,
    PartTable,
)
from .state import YAW, RecordArray, Timing

_TYPES: Mapping[str, str] = {
    'odom': 'nav_msgs/msg/Odometry',
    'pose': 'geometry_msgs/msg/PoseWithCovarianceStamped',
    'twist': 'geometry_msgs/msg/TwistWithCovarianceStamped',
    'imu': 'sensor_msgs/msg/Imu',
}
"""Message type that the nodes subscribe to, by kind of input."""


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """Messages and configuration for the event loop, besides timing and filter."""

    parts: RecordArray  # (p,) of type PART
    arrivals: Arrivals
    navsat: Navsat
    names: tuple[PartName, ...]  # one per part
    navsat_part: IntArray  # (2,) Parts that odometry/gps feeds
    plane: Plane | None  # plane of navsat_transform


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
    """Arrange all messages in order of arrival.

    JudgeError when a message type does not fit its input or a frame cannot be resolved.

    Parameters
    ----------
    sources : messages of each input (`odom0`), in the order in which simultaneous messages are
        delivered; None for those of navsat_transform, which subscribes to `fixes` and `headings`.
    correct : deviations of robot_localization that are corrected; see `ReplayOptions`.
    """
    layout = PartTable(
        config, navsat, {name: array is None for name, array in sources.items()}, correct
    )
    by_name = {source.name: source for source in config.sources}
    arrivals = Arrivals()
    for number, part in enumerate(layout.parts):
        if 'differential' in correct and part.lacks_attitude(sources[part.source.name]):
            layout.without_attitude(number)
    for name, array in sources.items():
        if array is not None:
            check_type(by_name[name], by_name[name].topic, array)
            layout.place(name, array, frames)
            first, parts = layout.of[name]
            if parts:
                arrivals.add(array, partial(_of_source, first, parts))
    if fixes is not None:
        numbers = np.arange(len(fixes), dtype=np.float64)[:, None]
        arrivals.add(fixes, partial(_as_messages, FIX_PART, numbers))
    if headings is not None and navsat is not None and navsat.needs_heading:
        arrivals.add(headings, partial(_as_messages, HEADING_PART, headings.orientation))
    if commands is not None:
        twist = np.hstack([commands.linear_velocity, commands.angular_velocity])
        arrivals.add(commands, partial(_as_messages, COMMAND_PART, twist))
    if not arrivals.topics:
        raise JudgeError(f'{config.where}: the recording has none of its topics; change them')
    return Inputs(
        parts=layout.table,
        arrivals=arrivals,
        navsat=navsat_of(navsat, fixes, headings, config.base_link_frame, frames),
        names=layout.names,
        navsat_part=layout.navsat_part,
        plane=None if navsat is None or fixes is None else plane_of(navsat, fixes),
    )


_Index = slice | IntArray
_LayOut = Callable[[MessageArray, _Index], Messages]


class Arrivals:
    """All messages in order of arrival, arranged for `replay` one span of time after another.

    Simultaneous messages keep the order in which their topics were added. `topics` is the number
    of topics.
    """

    def __init__(self) -> None:
        self.topics = 0
        self._times: list[IntArray] = []
        self._laid_out: list[Callable[[slice], Messages]] = []
        # A short recording is a single span that is requested several times.
        self._last: tuple[list[slice], Messages] | None = None

    def add(self, array: MessageArray, lay_out: _LayOut) -> None:
        """Add a topic; `lay_out` gets some of its messages and their indices in the array."""
        self.topics += 1
        is_sorted = bool((np.diff(array.arrival_ns) >= 0).all())
        order = None if is_sorted else np.argsort(array.arrival_ns, kind='stable')

        def lay_out_part(part: slice) -> Messages:
            index = part if order is None else order[part]
            return lay_out(array.take(index), index)

        self._times.append(array.arrival_ns if order is None else array.arrival_ns[order])
        self._laid_out.append(lay_out_part)

    def bounds(self) -> tuple[int, int] | None:
        """Return the first and the last arrival; None without messages."""
        parts = list(_time_spans(self._times, _span_ends(self._times)))
        first, last = (
            next((times for part in ordered if len(times := self._merge(part).arrival_ns)), None)
            for ordered in (parts, reversed(parts))
        )
        return None if first is None or last is None else (int(first[0]), int(last[-1]))

    def __iter__(self) -> Iterator[Messages]:
        """Yield all messages, one span of time after another."""
        return map(self._merge, _time_spans(self._times, _span_ends(self._times)))

    def spans(self, timing: Timing) -> Iterator[tuple[int, Messages]]:
        """Yield the end of each span of time, ns, and its messages.

        Spans end at clock steps, because messages between two steps are delivered at the second.
        """
        ends = _span_ends(self._times)
        ends = np.unique(timing.start + (ends - timing.start) // timing.step * timing.step)
        ends = ends[(ends >= timing.start) & (ends < timing.end)]
        spans = _time_spans(self._times, ends)
        for end, parts in zip([*ends.tolist(), timing.end], spans, strict=True):
            yield end, self._merge(parts)

    def _merge(self, parts: list[slice]) -> Messages:
        if self._last is not None and self._last[0] == parts:
            return self._last[1]
        self._last = None
        merged = _merge(
            [lay_out(part) for lay_out, part in zip(self._laid_out, parts, strict=True)]
        )
        self._last = parts, merged
        return merged


def _span_ends(times: Sequence[IntArray]) -> IntArray:
    """Return times that cut several non-decreasing arrays into some blocks each."""
    cuts = (array[BLOCK::BLOCK] for array in times)
    return np.unique(np.concatenate([np.zeros(0, np.int64), *cuts]))


def _time_spans(times: Sequence[IntArray], ends: IntArray) -> Iterator[list[slice]]:
    """Yield a slice of each of several non-decreasing arrays for one span of time after another.

    A span includes its end, one of `ends` (k,); the last span is the rest.
    """
    cuts = [
        [0, *np.searchsorted(array, ends, side='right').tolist(), len(array)] for array in times
    ]
    for number in range(len(ends) + 1):
        yield [slice(cut[number], cut[number + 1]) for cut in cuts]


def check_type(source: SourceConfig, topic: str, array: MessageArray, ros_type: str = '') -> None:
    """Raise JudgeError when the filter does not subscribe to messages of this type.

    `ros_type` is their full ROS type, if it is not the default of the array.
    """
    actual = ros_type or default_type(array).name
    if actual != _TYPES[source.kind]:
        raise wrong_type(source, topic, actual)


def wrong_type(source: SourceConfig, topic: str, actual: str) -> JudgeError:
    """Return the error about a topic of another full ROS type than that of the input."""
    taken, has = (name.replace('/msg/', '/') for name in (_TYPES[source.kind], actual))
    remedy = 'convert the messages'
    if actual == 'sensor_msgs/msg/NavSatFix':
        remedy = f'fixes enter through navsat_transform, as the topic {NAVSAT_TOPIC}'
    return JudgeError(f'{source.name}: {topic} is {has}; ekf_node takes {taken} only; {remedy}')


def source_messages(first: int, parts: Sequence[Part], array: MessageArray) -> Messages:
    """Interleave the parts of one topic: pose, twist, acceleration of each message in turn.

    `parts` are those of `parts_of`, numbered from `first`.
    """
    n, k = len(array), len(parts)
    value, valid = np.zeros((n, k, 7)), np.ones((n, k), dtype=bool)
    row = np.empty((n, k), dtype=np.int64)
    attitude = np.zeros(n, dtype=np.int64)
    covariances: list[FloatArray] = []
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
        rows, distinct = _distinct_covariances(covariance, 0 if part.kind == ACCELERATION else 3)
        row[:, column] = rows + sum(map(len, covariances))
        covariances.append(distinct)
    is_complete = bool(valid.all())

    def flatten(column: NDArray[Any]) -> NDArray[Any]:
        """Return a value for each valid part of each message."""
        if column.ndim == 1:
            column = np.broadcast_to(column[:, None], (n, k))
        return column.reshape(n * k, *column.shape[2:]) if is_complete else column[valid]

    return Messages(
        flatten(array.arrival_ns), flatten(array.stamp_ns),
        flatten(np.broadcast_to(np.arange(first, first + k), (n, k))), flatten(value),
        flatten(attitude), flatten(row), np.concatenate(covariances),
    )  # fmt: skip


def _of_source(first: int, parts: Sequence[Part], array: MessageArray, index: _Index) -> Messages:
    return source_messages(first, parts, array)


def _as_messages(part: int, values: FloatArray, array: MessageArray, index: _Index) -> Messages:
    """Return messages of one part without covariance.

    Their values are those of `values`, (m, k), at `index`.
    """
    n = len(array)
    value = values[index]
    zeros = np.zeros(n, dtype=np.int64)
    return Messages(
        array.arrival_ns, array.stamp_ns, np.full(n, part, dtype=np.int64),
        np.hstack([value, np.zeros((n, 7 - value.shape[1]))]), zeros, zeros, np.zeros((1, 6, 6)),
    )  # fmt: skip


def _distinct_covariances(matrices: FloatArray, corner: int) -> tuple[IntArray, FloatArray]:
    """Return the row of each covariance among those that differ from the one before, (k, 6, 6).

    (3, 3) covariances are placed at row and column `corner`; the other entries are zero.
    """
    size = matrices.shape[1]
    is_new = np.ones(len(matrices), dtype=bool)
    is_new[1:] = (matrices[1:] != matrices[:-1]).any(axis=(1, 2))
    distinct = matrices[is_new]
    if size < 6:
        blocks, distinct = distinct, np.zeros((len(distinct), 6, 6))
        distinct[:, corner : corner + size, corner : corner + size] = blocks
    return np.cumsum(is_new) - 1, distinct


def _merge(blocks: Sequence[Messages]) -> Messages:
    """Order messages by arrival; simultaneous messages keep the order of the blocks."""
    sizes = np.cumsum([0, *(len(block.covariances) for block in blocks)])
    moved = [
        block._replace(covariance=block.covariance + before)
        for block, before in zip(blocks, sizes, strict=False)
    ]
    arrival, stamp, part, value, attitude, covariance, covariances = map(
        np.concatenate, zip(*moved, strict=True)
    )
    order = np.argsort(arrival, kind='stable')
    return Messages(
        arrival.take(order), stamp.take(order), part.take(order), value.take(order, axis=0),
        attitude.take(order), covariance.take(order), covariances,
    )  # fmt: skip


def _present(covariance: FloatArray) -> NDArray[np.bool_]:
    """Return where an Imu has a quantity: its first covariance is not -1."""
    present = np.abs(covariance[:, 0, 0] + 1.0) > 1e-9
    return np.asarray(present, dtype=np.bool_)


def _imu_part(kind: int, imu: ImuArray, value: FloatArray) -> FloatArray:
    """Fill the values of one part of Imu messages and return its covariances, (n, 3, 3)."""
    if kind == POSE:
        value[:, 3:] = imu.orientation
        return imu.orientation_covariance
    if kind == TWIST:
        value[:, 3:6] = imu.angular_velocity
        return imu.angular_velocity_covariance
    value[:, :3], value[:, 3:] = imu.linear_acceleration, imu.orientation
    return imu.linear_acceleration_covariance


@dataclasses.dataclass(frozen=True, eq=False)
class WorldPoses:
    """Poses of base_link in the world frame that a filter fuses without differences."""

    stamp_ns: IntArray
    # (n, 3), m; NaN for axes that are not fused, and for x and y if one of them is not.
    position: FloatArray
    yaw: FloatArray  # rad; NaN where it is not fused
    # (n, 2) Variance of the horizontal position, m^2, mean of both axes, or of z if these are not
    # fused; and of yaw, rad^2.
    variance: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class _PartPoses:
    """Messages of one pose part, and the two variances of `WorldPoses`."""

    stamp_ns: IntArray
    value: FloatArray
    variance: FloatArray


def world_poses(inputs: Inputs) -> WorldPoses:
    """Return the poses that define a filter's world: neither differential nor of navsat_transform.

    They are converted as in `preparation.prepare`, which does not need the filter's state here.
    """
    parts = inputs.parts
    numbers = np.flatnonzero((parts['kind'] == POSE) & (parts['differential'] == 0)).tolist()
    columns_by_part = {p: MessageParts[_PartPoses]() for p in numbers}
    for messages in inputs.arrivals:
        for p, columns in columns_by_part.items():
            in_part = messages.part == p
            covariance = messages.covariances[messages.covariance[in_part]]
            x, y, z, *_, yaw = np.diagonal(covariance, axis1=1, axis2=2).T
            level = bool((parts[p].mask[:2] > 0.0).all())
            variance = np.stack((0.5 * (x + y) if level else z, yaw), axis=1)
            columns.add(_PartPoses(messages.stamp_ns[in_part], messages.value[in_part], variance))
    pieces = [(np.zeros(0, dtype=np.int64), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 2)))]
    for p, columns in columns_by_part.items():
        of_part = columns.concatenate()
        placed = by_blocks(_to_world(parts, p, of_part.value[:1]), of_part.value)
        pieces.append((of_part.stamp_ns, placed[:, :3], placed[:, 3], of_part.variance))
    return WorldPoses(*map(np.concatenate, zip(*pieces, strict=True)))


def _to_world(parts: RecordArray, p: int, first: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function from values of a part, (n, 7), to positions and yaw, (n, 4)."""
    part = parts[p]
    mask = part.mask > 0.0
    level = bool(mask[:2].all())
    is_fused = mask[:3] & np.array([level, level, True])
    turn = math.atan2(part.rotation[1, 0], part.rotation[0, 0])

    def of_base(value: FloatArray) -> tuple[FloatArray, FloatArray]:
        position, q = value[:, :3], value[:, 3:]
        if part.of_child:
            q = multiply(q, Rotation.from_matrix(part.child_rotation).inv().as_quat()[None])
            position = position - rotate(q, part.child_offset[None])
        return position, q

    def placed(value: FloatArray) -> FloatArray:
        position, q = of_base(value)
        if part.relative and len(q):
            start, at_start = of_base(first)
            position, q = rotate_back(at_start, position - start), multiply(conjugate(at_start), q)
        if not part.imu:
            position = position @ part.rotation.T + part.offset
        yaw = np.full(len(q), np.nan)
        if mask[YAW]:
            yaw = heading(q) + (-turn if part.imu else turn)
        return np.column_stack([np.where(is_fused, position, np.nan), yaw])

    return placed
