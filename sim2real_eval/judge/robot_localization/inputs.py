# SPDX-License-Identifier: Apache-2.0
"""From a recording and a configuration to the arrays that the compiled event loop reads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.blocks import by_blocks, is_steady, span_ends, time_spans
from sim_sensors.core.measurements import (
    Columns,
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from sim_sensors.core.rotations import conjugate, heading, multiply, rotate, rotate_back
from sim_sensors.core.scratch import joined
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
    Parts,
    PartTable,
)
from .state import YAW, Timing

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
    """Everything that the event loop reads but timing and filter."""

    parts: Parts  # as `replay` takes them, and `navsat`
    arrivals: Arrivals
    navsat: Navsat
    names: tuple[PartName, ...]  # one per part
    navsat_part: IntArray  # (2,) Parts that odometry/gps feeds
    plane: Plane | None  # in which navsat_transform works


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

    `sources` gives each source name (`odom0`) its messages, in the order in which messages that
    arrive together are delivered; None for what navsat_transform publishes. That subscribes to
    `fixes` and `headings`. `correct` has the deviations of robot_localization that are corrected;
    see `ReplayOptions`. JudgeError when a message type does not fit its input or a frame cannot be
    resolved.
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
            check_type(by_name[name], array)
            layout.place(name, array, frames)
            first, parts = layout.of[name]
            if parts:
                arrivals.add(array, partial(_of_source, first, parts))
    if fixes is not None:
        numbers = np.arange(len(fixes), dtype=np.float64)[:, None]
        arrivals.add(fixes, partial(_plain, FIX_PART, numbers))
    if headings is not None and navsat is not None and navsat.needs_heading:
        arrivals.add(headings, partial(_plain, HEADING_PART, headings.orientation))
    if commands is not None:
        twist = np.hstack([commands.linear_velocity, commands.angular_velocity])
        arrivals.add(commands, partial(_plain, COMMAND_PART, twist))
    if not arrivals.topics:
        raise JudgeError(f'{config.where}: measures nothing that the recording has')
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
    """All messages in order of arrival, laid out for `replay` a span of time at a time.

    What arrives together keeps the order in which its topics were added, `topics` of them.
    """

    def __init__(self) -> None:
        self.topics = 0
        self._times: list[IntArray] = []
        self._laid_out: list[Callable[[slice], Messages]] = []
        # Of a short recording all is one span, which is asked for several times.
        self._last: tuple[list[slice], Messages] | None = None

    def add(self, array: MessageArray, lay_out: _LayOut) -> None:
        """Add a topic; `lay_out` gets its messages, and which of all in the array they are."""
        self.topics += 1
        is_sorted = bool((np.diff(array.arrival_ns) >= 0).all())
        order = None if is_sorted else np.argsort(array.arrival_ns, kind='stable')

        def laid_out(part: slice) -> Messages:
            index = part if order is None else order[part]
            return lay_out(array.take(index), index)

        self._times.append(array.arrival_ns if order is None else array.arrival_ns[order])
        self._laid_out.append(laid_out)

    def bounds(self) -> tuple[int, int] | None:
        """Return the first and the last arrival of what measures anything; None without any."""
        parts = list(time_spans(self._times))
        first, last = (
            next((found for one in each if len(found := self._merged(one).arrival_ns)), None)
            for each in (parts, reversed(parts))
        )
        return None if first is None or last is None else (int(first[0]), int(last[-1]))

    def __iter__(self) -> Iterator[Messages]:
        """Yield all messages, a span of time at a time."""
        return map(self._merged, time_spans(self._times))

    def spans(self, timing: Timing) -> Iterator[tuple[int, Messages]]:
        """Yield the end of each span of time, ns, and what arrives in it.

        Spans end at steps of the clock, for what arrives between two is delivered at the second.
        """
        ends = span_ends(self._times)
        ends = np.unique(timing.start + (ends - timing.start) // timing.step * timing.step)
        ends = ends[(ends >= timing.start) & (ends < timing.end)]
        spans = time_spans(self._times, ends)
        for end, parts in zip([*ends.tolist(), timing.end], spans, strict=True):
            yield end, self._merged(parts)

    def _merged(self, parts: list[slice]) -> Messages:
        if self._last is not None and self._last[0] == parts:
            return self._last[1]
        self._last = None
        found = _merged(
            [laid_out(part) for laid_out, part in zip(self._laid_out, parts, strict=True)]
        )
        self._last = parts, found
        return found


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


def source_messages(first: int, parts: Sequence[Part], array: MessageArray) -> Messages:
    """Interleave the parts of one topic: pose, twist, acceleration of each message in turn.

    The parts, one or more, are those of `parts_of`, the first of them with the number `first`.
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
        rows, kept = _runs_of(covariance, 0 if part.kind == ACCELERATION else 3)
        row[:, column] = rows + sum(map(len, covariances))
        covariances.append(kept)
    whole = bool(valid.all())

    def chosen(each: NDArray[Any]) -> NDArray[Any]:
        """Messages in turn, of each the parts that it has."""
        if each.ndim == 1:
            each = np.broadcast_to(each[:, None], (n, k))
        return each.reshape(n * k, *each.shape[2:]) if whole else each[valid]

    return Messages(
        chosen(array.arrival_ns), chosen(array.stamp_ns),
        chosen(np.broadcast_to(np.arange(first, first + k), (n, k))), chosen(value),
        chosen(attitude), chosen(row), np.concatenate(covariances),
    )  # fmt: skip


def _of_source(first: int, parts: Sequence[Part], array: MessageArray, index: _Index) -> Messages:
    return source_messages(first, parts, array)


def _plain(part: int, values: FloatArray, array: MessageArray, index: _Index) -> Messages:
    """Return messages that all belong to one part, or take its place, and need no covariance.

    Their values are those of `values`, (m, k), at `index`.
    """
    n = len(array)
    value = values[index]
    none = np.zeros(n, dtype=np.int64)
    return Messages(
        array.arrival_ns, array.stamp_ns, np.full(n, part, dtype=np.int64),
        np.hstack([value, np.zeros((n, 7 - value.shape[1]))]), none, none, np.zeros((1, 6, 6)),
    )  # fmt: skip


def _runs_of(matrices: FloatArray, corner: int) -> tuple[IntArray, FloatArray]:
    """Keep of each run of equal covariances one, (k, 6, 6); return the row of each, too.

    The first row and column that (3, 3) covariances take is `corner`; the others are zero.
    """
    size = matrices.shape[1]
    new = np.zeros(len(matrices), dtype=bool)
    new[:1] = True
    if not is_steady(matrices):
        flat = matrices.reshape(-1, size * size)
        new[np.flatnonzero(flat[1:] != flat[:-1]) // (size * size) + 1] = True
    kept = matrices[new]
    if size < 6:
        part, kept = kept, np.zeros((len(kept), 6, 6))
        kept[:, corner : corner + size, corner : corner + size] = part
    return np.cumsum(new) - 1, kept


def _merged(blocks: Sequence[Messages]) -> Messages:
    """Order messages by arrival; what arrives together keeps the order of the blocks."""
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
        # `take` gathers rows in a third of the time of an index.
        arrival.take(order), stamp.take(order), part.take(order), value.take(order, axis=0),
        attitude.take(order), covariance.take(order), covariances,
    )  # fmt: skip


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


@dataclasses.dataclass(frozen=True, eq=False)
class WorldPoses:
    """Poses of base_link in the world frame that a filter fuses as they are."""

    stamp_ns: IntArray
    # (n, 3), m; NaN for axes that are not fused, and for x and y if one of them is not.
    position: FloatArray
    yaw: FloatArray  # rad; NaN where it is not fused
    # (n, 2), of the horizontal position, m^2, mean of both axes, or of z alone where these are
    # not fused; and of yaw, rad^2.
    variance: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class _Given:
    """The messages of one part, and the two variances of `WorldPoses`."""

    stamp_ns: IntArray
    value: FloatArray
    variance: FloatArray


def world_poses(inputs: Inputs) -> WorldPoses:
    """Return the poses that define a filter's world: neither differential nor of navsat_transform.

    They are prepared as `preparation.prepare` does it, which no state of the filter is needed for.
    """
    parts = inputs.parts
    numbers = np.flatnonzero((parts.kind == POSE) & (parts.differential == 0)).tolist()
    given = {p: Columns[_Given]() for p in numbers}
    for messages in inputs.arrivals:
        for p, columns in given.items():
            mine = messages.part == p
            covariance = messages.covariances[messages.covariance[mine]]
            x, y, z, *_, yaw = np.diagonal(covariance, axis1=1, axis2=2).T
            level = bool((parts.mask[p, :2] > 0.0).all())
            variance = np.stack((0.5 * (x + y) if level else z, yaw), axis=1)
            columns.add(_Given(messages.stamp_ns[mine], messages.value[mine], variance))
    found = [(np.zeros(0, dtype=np.int64), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 2)))]
    for p, columns in given.items():
        of_part = columns.joined()
        placed = by_blocks(_in_world(parts, p, of_part.value[:1]), of_part.value)
        found.append((of_part.stamp_ns, placed[:, :3], placed[:, 3], of_part.variance))
    return WorldPoses(*(joined(*each) for each in zip(*found, strict=True)))


def _in_world(parts: Parts, p: int, first: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return what makes positions and yaw, (n, 4), of values (n, 7) of a part."""
    mask = parts.mask[p] > 0.0
    level = bool(mask[:2].all())
    seen = mask[:3] & np.array([level, level, True])
    turn = math.atan2(parts.rotation[p, 1, 0], parts.rotation[p, 0, 0])

    def of_base(value: FloatArray) -> tuple[FloatArray, FloatArray]:
        position, q = value[:, :3], value[:, 3:]
        if parts.of_child[p]:
            q = multiply(q, Rotation.from_matrix(parts.child_turn[p]).inv().as_quat()[None])
            position = position - rotate(q, parts.child_at[p][None])
        return position, q

    def placed(value: FloatArray) -> FloatArray:
        position, q = of_base(value)
        if parts.relative[p] and len(q):
            start, at_start = of_base(first)
            position, q = rotate_back(at_start, position - start), multiply(conjugate(at_start), q)
        if not parts.imu[p]:
            position = position @ parts.rotation[p].T + parts.offset[p]
        yaw = np.full(len(q), np.nan)
        if mask[YAW]:
            yaw = heading(q) + (-turn if parts.imu[p] else turn)
        return np.column_stack([np.where(seen, position, np.nan), yaw])

    return placed
