# SPDX-License-Identifier: Apache-2.0
"""A truth of poses alone: a topic of them, two frames of /tf, or a TUM or KITTI file."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.core.blocks import blocks, seconds, steps_of
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import (
    Columns,
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)
from sim_sensors.core.parameters import number_of
from sim_sensors.core.rotations import rotate_back
from sim_sensors.motion.odometry import OdometryMotion
from .findings import TRUTH_FROM_POSES
from .message_types import POSE_TYPES, default_type
from .recording import DEFAULT_TOPICS, Content, StaticTransform

TRAJECTORY_SUFFIXES = ('.tum', '.kitti', '.txt')
"""Endings of trajectory files; what they hold shows in the number of their columns."""

_TUM, _KITTI = 8, 12
_MAP = 'map'


def truth_of_poses(path: Path, content: Content, chosen: dict[str, str | None]) -> str:
    """Give a recording whose truth is named as poses alone an odometry in their place.

    `content` gets its messages and `chosen` the topic, which is returned; it is empty where the
    truth is none or holds velocities.

    Raises
    ------
    RecordingError
        When the truth is a file that is not there, or not a trajectory.
    """
    topic = DEFAULT_TOPICS['truth']
    name = chosen.get('truth') or ''
    found: MessageArray | None = None
    if path.suffix in TRAJECTORY_SUFFIXES and path.is_file():
        found = read_trajectory(path)
    elif Path(name).suffix in TRAJECTORY_SUFFIXES:
        found = read_trajectory(_file_beside(path, name))
    elif frame_pair(name):
        found = content.messages.pop(name, None)
        if found is None:
            raise RecordingError(f'{path}: truth: {name} is not in it; must be frames of a bag')
    elif name.strip('/') == 'tf':
        raise RecordingError(
            f'{path}: truth: {name} is not allowed; must name two frames, such as '
            '/tf:map.base_link'
        )
    else:
        topic = next((one for one in content.messages if one.strip('/') == name.strip('/')), '')
        poses = content.messages.get(topic)
        if isinstance(poses, PoseArray):
            found = odometry_of_poses(poses)
        elif content.ros_types.get(topic) in POSE_TYPES:
            found = poses
    if found is None:
        return ''
    content.messages[topic], content.ros_types[topic] = found, default_type(found).name
    chosen['truth'] = topic
    return topic


def _file_beside(path: Path, name: str) -> Path:
    """Return the file of that name in or beside a recording, else in the current folder."""
    for file in (path / name, path.parent / name, Path(name)):
        if file.is_file():
            return file
    raise RecordingError(
        f'{path}: truth: file {name} is not there; must be in {path.parent}, in the folder of the '
        'recording, or a path'
    )


def odometry_of(
    stamp_ns: IntArray,
    position: FloatArray,
    orientation: FloatArray,
    frame: str = _MAP,
    child_frame: str = '',
) -> OdometryArray:
    """Return n poses as odometry whose twist is zero, that is absent, until it is derived."""
    count = len(stamp_ns)
    return OdometryArray(
        stamp_ns=stamp_ns,
        arrival_ns=stamp_ns,
        frame=frame,
        child_frame=child_frame,
        position=position,
        orientation=orientation,
        pose_covariance=np.broadcast_to(0.0, (count, 6, 6)),
        linear_velocity=np.zeros((count, 3)),
        angular_velocity=np.zeros((count, 3)),
        twist_covariance=np.broadcast_to(0.0, (count, 6, 6)),
    )


def odometry_of_poses(poses: PoseArray) -> OdometryArray:
    """Return the poses of a topic as odometry without twist."""
    found = odometry_of(poses.stamp_ns, poses.position, poses.orientation, poses.frame)
    return dataclasses.replace(
        found, arrival_ns=poses.arrival_ns, pose_covariance=poses.pose_covariance
    )


def with_velocities(where: str, topic: str, truth: OdometryArray) -> tuple[OdometryArray, Finding]:
    """Return poses with the velocities that follow from them, as `OdometryMotion` derives them.

    At every sample the velocity is the slope of the parabola through three positions, and the
    angular velocity that of three attitudes. Fewer than three poses are a RecordingError.
    """
    origin_ns = int(truth.stamp_ns[0])
    try:
        motion = OdometryMotion(truth, origin_ns=origin_ns, velocity='position')
    except MotionError as error:
        raise RecordingError(f'{where}: {topic}: {error}') from None
    times, made = seconds(truth.stamp_ns, origin_ns), Columns[OdometryArray]()
    for part in blocks(len(truth)):
        found = motion.at(times[part])
        made.add(
            dataclasses.replace(
                truth.take(part),
                linear_velocity=rotate_back(found.orientation, found.velocity),
                angular_velocity=found.angular_velocity,
            )
        )
    rate = 1e9 / float(np.median(steps_of(truth.stamp_ns)))
    # The slope at an even spacing h is (p[k+1] - p[k-1]) / 2h.
    return made.joined(), TRUTH_FROM_POSES(topic, rate=rate, noise=rate / np.sqrt(2.0))


# Two frames of /tf, named as evo names them: /tf:map.base_link.


def frame_pair(name: str) -> tuple[str, str, str] | None:
    """Return topic, parent and child of `/tf:PARENT.CHILD`; None for any other name.

    Examples
    --------
    >>> frame_pair('/tf:map.base_link'), frame_pair('/odom')
    (('/tf', 'map', 'base_link'), None)
    """
    topic, colon, frames = name.partition(':')
    parent, dot, child = frames.partition('.')
    if not (colon and dot):
        return None
    return f'/{topic.strip("/")}', parent.strip('/'), child.strip('/')


def poses_between(
    where: str,
    parent: str,
    child: str,
    moving: Sequence[tuple[int, StaticTransform]],
    fixed: Sequence[StaticTransform],
) -> OdometryArray:
    """Return the poses of frame `child` in a frame `parent` above it.

    The frames between are followed upwards. The transform of the way that is sent most often says
    when poses are; others are interpolated, as tf2 does. Times that not all of them span are left
    out. RecordingError when there is no way up, or no time in common.
    """
    stamps: dict[str, list[int]] = {}
    links: dict[str, list[StaticTransform]] = {one.child.strip('/'): [one] for one in fixed}
    for stamp, one in moving:
        name = one.child.strip('/')
        if name not in stamps:
            stamps[name], links[name] = [], []
        stamps[name].append(stamp)
        links[name].append(one)
    way: list[str] = []
    frame = child
    while frame != parent:
        if frame not in links or frame in way:
            raise RecordingError(
                f'{where}: no transforms lead from {child} up to {parent}; its frames and their '
                f'parents are {_shown(links)}'
            )
        way.append(frame)
        frame = links[frame][0].parent.strip('/')
    for frame in way:
        if not all(any(one.rotation) for one in links[frame]):
            raise RecordingError(
                f'{where}: a transform from {links[frame][0].parent} to {frame} has the rotation '
                '0 0 0 0; must be a quaternion of length 1'
            )
    paths = {frame: _Path(stamps.get(frame, []), links[frame]) for frame in way}
    times = max((paths[frame].stamp_ns for frame in way if frame in stamps), key=len, default=None)
    if times is None:
        raise RecordingError(f'{where}: {parent} to {child} is static; a true motion must move')
    first = max(int(paths[frame].stamp_ns[0]) for frame in way if frame in stamps)
    last = min(int(paths[frame].stamp_ns[-1]) for frame in way if frame in stamps)
    times = times[(times >= first) & (times <= last)]
    if not len(times):
        raise RecordingError(
            f'{where}: the transforms from {parent} to {child} have no time in common'
        )
    turn, place = Rotation.identity(len(times)), np.zeros((len(times), 3))
    for frame in way:
        step, shift = paths[frame].at(times)
        turn, place = step * turn, step.apply(place) + shift
    return odometry_of(times, place, turn.as_quat(), parent, child)


class _Path:
    """One transform over time; a static one is the same at all times."""

    def __init__(self, stamps: Sequence[int], links: Sequence[StaticTransform]) -> None:
        # Several senders, and a late message, put stamps out of order.
        self.stamp_ns, first = np.unique(np.array(stamps or [0], np.int64), return_index=True)
        self._place = np.array([links[k].translation for k in first])
        self._turn = Rotation.from_quat([links[k].rotation for k in first])

    def at(self, times: IntArray) -> tuple[Rotation, FloatArray]:
        """Return rotations and positions (n, 3) at stamps within."""
        if len(self.stamp_ns) == 1:
            index = np.zeros(len(times), np.intp)
            return self._turn[index], self._place[index]
        own, at = (self.stamp_ns - times[0]) * 1e-9, (times - times[0]) * 1e-9
        place = np.stack([np.interp(at, own, axis) for axis in self._place.T], axis=1)
        return Slerp(own, self._turn)(at), place


def _shown(links: Mapping[str, Sequence[StaticTransform]]) -> str:
    pairs = sorted(f'{name} in {found[0].parent}' for name, found in links.items())
    return ', '.join(pairs) or 'none'


# Trajectory files: lines of numbers, with # before a comment.


def read_trajectory(path: Path) -> OdometryArray:
    """Read a TUM or KITTI file as odometry without twist.

    TUM: `stamp x y z qx qy qz qw`, in seconds and metres. KITTI: the first three rows of the
    4 x 4 pose, and the seconds of each from `<name>_times.txt` or `times.txt` beside the file.
    Axes are those of ROS, x forward and z up; those of a camera, as in KITTI, are for
    `corrections` in recording.yaml. What is not such a file is a RecordingError.
    """
    rows = _rows(path)
    if not rows:
        raise RecordingError(f'{path}: not a trajectory: holds no pose; must hold 3 or more')
    columns = len(rows[0][1])
    if columns not in (_TUM, _KITTI):
        raise RecordingError(
            f'{path}: not a trajectory: line {rows[0][0]} has {columns} columns; must have {_TUM} '
            f'(TUM: stamp x y z qx qy qz qw) or {_KITTI} (KITTI: rows of the pose)'
        )
    values = np.array([_numbers(path, line, row, columns) for line, row in rows])
    if columns == _TUM:
        times = [_nanoseconds(path, line, row[0]) for line, row in rows]
        return odometry_of(np.array(times, np.int64), values[:, 1:4], values[:, 4:])
    beside = [path.with_name(f'{path.stem}_times.txt'), path.with_name('times.txt')]
    found = next((one for one in beside if one.is_file() and one != path), None)
    if found is None:
        raise RecordingError(
            f'{path}: KITTI poses have no times; {beside[0].name} or {beside[1].name} must be '
            'beside them'
        )
    times = [_nanoseconds(found, line, row[0]) for line, row in _rows(found)]
    if len(times) != len(rows):
        raise RecordingError(
            f'{found}: has {len(times)} times; must have {len(rows)}, as {path.name} has poses'
        )
    pose = values.reshape(-1, 3, 4)
    if len(wrong := np.flatnonzero(np.linalg.det(pose[:, :, :3]) <= 0.0)):
        raise RecordingError(
            f'{path}: line {rows[wrong[0]][0]}: the first three columns are no rotation; must be '
            'right-handed axes of length 1'
        )
    turn = Rotation.from_matrix(pose[:, :, :3]).as_quat()
    return odometry_of(np.array(times, np.int64), pose[:, :, 3], turn)


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    try:
        lines = path.read_text(encoding='utf-8').splitlines()
    except UnicodeDecodeError as error:
        raise RecordingError(f'{path}: byte {error.start} is not UTF-8 text') from None
    split = ((number, line.replace(',', ' ').split()) for number, line in enumerate(lines, 1))
    return [(number, row) for number, row in split if row and row[0][0] != '#']


def _numbers(path: Path, line: int, row: Sequence[str], count: int) -> list[float]:
    numbers = [number for number in map(number_of, row) if number is not None]
    if len(row) != count or len(numbers) != count:
        shown = ' '.join(row)[:60]
        raise RecordingError(
            f'{path}: line {line}: {shown!r} is not allowed; must be {count} finite numbers'
        )
    return numbers


def _nanoseconds(path: Path, line: int, text: str) -> int:
    """Return seconds as whole nanoseconds, exactly, which a float of today's stamps is not."""
    try:
        return int(np.int64(int((decimal.Decimal(text) * 10**9).to_integral_value())))
    except (decimal.InvalidOperation, ValueError, OverflowError):
        raise RecordingError(
            f'{path}: line {line}: {text!r} is not allowed; must be seconds'
        ) from None
