# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Truth without velocities: a topic of poses, two frames of /tf, or a TUM or KITTI file."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from sim2real_eval.common.findings import Finding, RecordingError
from sim_sensors.core.blocks import blocks, seconds
from sim_sensors.core.errors import MotionError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import (
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)
from sim_sensors.core.parameters import parse_float, parse_number
from sim_sensors.core.rotations import rotate_back
from sim_sensors.motion.odometry import OdometryMotion
from .checks import TRUTH_FROM_POSES
from .message_types import POSE_TYPES, default_type
from .recording import DEFAULT_TOPICS, Content, StaticTransform

TRAJECTORY_SUFFIXES = ('.tum', '.kitti', '.txt')
"""Suffixes of trajectory files; the number of columns tells TUM from KITTI."""

_TUM_COLUMNS, _KITTI_COLUMNS = 8, 12
_MAP = 'map'
_UNITS = {'milliseconds': 1e3, 'microseconds': 1e6, 'nanoseconds': 1e9}
_PRESENT_S = 9e8
"""Stamp in the year 1998; earlier ones are not of the clock of a computer."""


def read_truth_of_poses(path: Path, content: Content, chosen_topics: dict[str, str | None]) -> str:
    """Replace a truth that is named as poses by an odometry without twist.

    `content` receives its messages and `chosen_topics` its topic, which is returned. The topic is
    empty if there is no truth or it has velocities.

    Raises
    ------
    RecordingError
        When the truth is a file that is missing or not a trajectory.
    """
    topic = DEFAULT_TOPICS['truth']
    name = chosen_topics.get('truth', topic) or ''
    odometry: MessageArray | None = None
    if path.suffix in TRAJECTORY_SUFFIXES and path.is_file():
        odometry = read_trajectory(path)
    elif Path(name).suffix in TRAJECTORY_SUFFIXES:
        odometry = read_trajectory(find_trajectory(path, name))
    elif parse_frame_pair(name):
        odometry = content.messages.pop(name, None)
        if odometry is None:
            raise RecordingError(f'{path}: truth: {name} is not in it; must be frames of a bag')
    elif name.strip('/') == 'tf':
        raise RecordingError(
            f'{path}: truth: {name} is not allowed; must name two frames, such as '
            '/tf:map.base_link'
        )
    else:
        topic = next((key for key in content.messages if key.strip('/') == name.strip('/')), '')
        poses = content.messages.get(topic)
        if isinstance(poses, PoseArray) and 'truth' in chosen_topics:
            odometry = odometry_from_poses(poses)
        elif isinstance(poses, OdometryArray) and _has_no_twist(poses):
            odometry = dataclasses.replace(
                poses,
                linear_velocity=np.zeros((len(poses), 3)),
                angular_velocity=np.zeros((len(poses), 3)),
            )
        elif content.ros_types.get(topic) in POSE_TYPES:
            odometry = poses
    if odometry is None:
        return ''
    content.messages[topic] = odometry
    content.ros_types[topic] = default_type(odometry).name
    chosen_topics['truth'] = topic
    return topic


def _has_no_twist(odometry: OdometryArray) -> bool:
    """Return whether the linear or the angular velocity of every message is NaN."""
    twist = np.hstack([odometry.linear_velocity, odometry.angular_velocity])
    return len(odometry) > 0 and bool(np.isnan(twist).any(axis=1).all())


def find_trajectory(path: Path, name: str) -> Path:
    """Return the file `name` in or beside a recording, else in the current folder."""
    for file in (path / name, path.parent / name, Path(name)):
        if file.is_file():
            return file
    raise RecordingError(
        f'{path}: truth: file {name} is not there; must be in {path.parent}, in the folder of the '
        'recording, or a path'
    )


def odometry_from_arrays(
    stamp_ns: IntArray,
    position: FloatArray,
    orientation: FloatArray,
    frame: str = _MAP,
    child_frame: str = '',
) -> OdometryArray:
    """Return n poses as odometry with zero twist, which stands for an absent one."""
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


def odometry_from_poses(poses: PoseArray) -> OdometryArray:
    """Return the poses of a topic as odometry without twist."""
    odometry = odometry_from_arrays(poses.stamp_ns, poses.position, poses.orientation, poses.frame)
    return dataclasses.replace(
        odometry, arrival_ns=poses.arrival_ns, pose_covariance=poses.pose_covariance
    )


def derive_velocities(
    where: str, topic: str, truth: OdometryArray
) -> tuple[OdometryArray, Finding]:
    """Return poses with the velocities that `OdometryMotion` derives from them.

    The velocity of a sample is the slope of the parabola through three positions, and the angular
    velocity that of three attitudes. Fewer than three poses raise RecordingError.
    """
    origin_ns = int(truth.stamp_ns[0])
    try:
        motion = OdometryMotion(truth, origin_ns=origin_ns, velocity='position')
    except MotionError as error:
        raise RecordingError(f'{where}: {topic}: {error}') from None
    times = seconds(truth.stamp_ns, origin_ns)
    linear, angular = np.empty((2, len(truth), 3))
    for part in blocks(len(truth)):
        state = motion.at(times[part])
        linear[part] = rotate_back(state.orientation, state.velocity)
        angular[part] = state.angular_velocity
    rate = 1e9 / float(np.median(np.diff(truth.stamp_ns)))
    # The slope at an even spacing h is (p[k+1] - p[k-1]) / 2h.
    note = TRUTH_FROM_POSES(topic, rate=rate, noise=rate / np.sqrt(2.0))
    return dataclasses.replace(truth, linear_velocity=linear, angular_velocity=angular), note


# Two frames of /tf, in the notation of evo: /tf:map.base_link.


def parse_frame_pair(name: str) -> tuple[str, str, str] | None:
    """Return topic, parent and child of `/tf:PARENT.CHILD`, or None for any other name.

    Examples
    --------
    >>> parse_frame_pair('/tf:map.base_link'), parse_frame_pair('/odom')
    (('/tf', 'map', 'base_link'), None)
    """
    topic, colon, frames = name.partition(':')
    parent, dot, child = frames.partition('.')
    if not (colon and dot):
        return None
    return f'/{topic.strip("/")}', parent.strip('/'), child.strip('/')


def interpolate_transforms(
    where: str,
    parent: str,
    child: str,
    moving: Sequence[tuple[int, StaticTransform]],
    fixed: Sequence[StaticTransform],
) -> OdometryArray:
    """Return the poses of frame `child` in a frame `parent` above it.

    The chain of frames is followed from the child upwards. Poses have the stamps of the transform
    that was sent most often; the other transforms are interpolated, as in tf2. Times outside the
    span of any transform are left out. A missing chain, or no common time, raises RecordingError.
    """
    stamps: dict[str, list[int]] = {}
    links: dict[str, list[StaticTransform]] = {
        transform.child.strip('/'): [transform] for transform in fixed
    }
    for stamp, transform in moving:
        name = transform.child.strip('/')
        if name not in stamps:
            stamps[name], links[name] = [], []
        stamps[name].append(stamp)
        links[name].append(transform)
    chain = _chain_upwards(where, parent, child, links)
    tracks = {frame: _TransformTrack(stamps.get(frame, []), links[frame]) for frame in chain}
    moving_stamps = [tracks[frame].stamp_ns for frame in chain if frame in stamps]
    if not moving_stamps:
        raise RecordingError(f'{where}: {parent} to {child} is static; a true motion must move')
    times = max(moving_stamps, key=len)
    first = max(int(stamp_ns[0]) for stamp_ns in moving_stamps)
    last = min(int(stamp_ns[-1]) for stamp_ns in moving_stamps)
    times = times[(times >= first) & (times <= last)]
    if not len(times):
        raise RecordingError(
            f'{where}: the transforms from {parent} to {child} have no time in common'
        )
    rotation, position = Rotation.identity(len(times)), np.zeros((len(times), 3))
    for frame in chain:
        link_rotation, link_position = tracks[frame].at(times)
        position = link_rotation.apply(position) + link_position
        rotation = link_rotation * rotation
    return odometry_from_arrays(times, position, rotation.as_quat(), parent, child)


def _chain_upwards(
    where: str, parent: str, child: str, links: Mapping[str, Sequence[StaticTransform]]
) -> list[str]:
    """Return the frames from `child` up to below `parent`; errors are RecordingErrors."""
    chain: list[str] = []
    frame = child
    while frame != parent:
        if frame not in links or frame in chain:
            pairs = sorted(f'{name} in {link[0].parent}' for name, link in links.items())
            raise RecordingError(
                f'{where}: no transforms lead from {child} up to {parent}; its frames and their '
                f'parents are {", ".join(pairs) or "none"}'
            )
        if not all(any(transform.rotation) for transform in links[frame]):
            raise RecordingError(
                f'{where}: a transform from {links[frame][0].parent} to {frame} has the rotation '
                '0 0 0 0; must be a quaternion of length 1'
            )
        chain.append(frame)
        frame = links[frame][0].parent.strip('/')
    return chain


class _TransformTrack:
    """One transform over time; a static one is constant."""

    def __init__(self, stamps: Sequence[int], links: Sequence[StaticTransform]) -> None:
        # Several senders, and late messages, put stamps out of order.
        self.stamp_ns, first = np.unique(np.array(stamps or [0], np.int64), return_index=True)
        self._positions = np.array([links[k].translation for k in first])
        self._rotations = Rotation.from_quat([links[k].rotation for k in first])

    def at(self, times: IntArray) -> tuple[Rotation, FloatArray]:
        """Return rotations and positions (n, 3) at stamps within the track."""
        if len(self.stamp_ns) == 1:
            index = np.zeros(len(times), np.intp)
            return self._rotations[index], self._positions[index]
        known_s, wanted_s = (self.stamp_ns - times[0]) * 1e-9, (times - times[0]) * 1e-9
        positions = np.stack(
            [np.interp(wanted_s, known_s, axis) for axis in self._positions.T], axis=1
        )
        return Slerp(known_s, self._rotations)(wanted_s), positions


# Trajectory files: lines of numbers; # begins a comment.


def read_trajectory(path: Path) -> OdometryArray:
    """Read a TUM or KITTI file as odometry without twist.

    TUM: `stamp x y z qx qy qz qw`, in seconds and metres. KITTI: the first three rows of the
    4 x 4 pose, and the seconds of each from `<name>_times.txt` or `times.txt` beside the file.
    Axes are those of ROS, x forward and z up. Use `corrections` in recording.yaml for the camera
    axes of KITTI. Another file raises RecordingError.
    """
    rows = _read_rows(path)
    if not rows:
        raise RecordingError(f'{path}: not a trajectory: holds no pose; must hold 3 or more')
    columns = len(rows[0][1])
    if columns not in (_TUM_COLUMNS, _KITTI_COLUMNS):
        raise RecordingError(
            f'{path}: not a trajectory: line {rows[0][0]} has {columns} columns; must have '
            f'{_TUM_COLUMNS} (TUM: stamp x y z qx qy qz qw) or {_KITTI_COLUMNS} (KITTI: rows of '
            'the pose)'
        )
    times = [_nanoseconds(path, line, row[0]) for line, row in rows if columns == _TUM_COLUMNS]
    values = np.array([_numbers(path, line, row, columns) for line, row in rows])
    if columns == _TUM_COLUMNS:
        return odometry_from_arrays(np.array(times, np.int64), values[:, 1:4], values[:, 4:])
    candidates = [path.with_name(f'{path.stem}_times.txt'), path.with_name('times.txt')]
    times_file = next((file for file in candidates if file.is_file() and file != path), None)
    if times_file is None:
        raise RecordingError(
            f'{path}: KITTI poses have no times; {candidates[0].name} or {candidates[1].name} '
            'must be beside them'
        )
    times = [_nanoseconds(times_file, line, row[0]) for line, row in _read_rows(times_file)]
    if len(times) != len(rows):
        raise RecordingError(
            f'{times_file}: has {len(times)} times; must have {len(rows)}, as {path.name} has '
            'poses'
        )
    pose = values.reshape(-1, 3, 4)
    if len(improper := np.flatnonzero(np.linalg.det(pose[:, :, :3]) <= 0.0)):
        raise RecordingError(
            f'{path}: line {rows[improper[0]][0]}: the first three columns are no rotation; must '
            'be right-handed axes of length 1'
        )
    orientation = Rotation.from_matrix(pose[:, :, :3]).as_quat()
    return odometry_from_arrays(np.array(times, np.int64), pose[:, :, 3], orientation)


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return line numbers and values of the lines that are neither empty nor comments."""
    try:
        lines = read_input_text(path).splitlines()
    except OSError as error:
        raise RecordingError(f'{path}: {error.strerror}') from None
    split = ((number, line.replace(',', ' ').split()) for number, line in enumerate(lines, 1))
    return [(number, row) for number, row in split if row and row[0][0] != '#']


def _numbers(path: Path, line: int, row: Sequence[str], count: int) -> list[float]:
    numbers = [number for number in map(parse_number, row) if number is not None]
    if len(row) != count or len(numbers) != count:
        text = ' '.join(row)[:60]
        raise RecordingError(
            f'{path}: line {line}: {text!r} is not allowed; must be {count} finite numbers'
        )
    return numbers


def _nanoseconds(path: Path, line: int, text: str) -> int:
    """Convert seconds to nanoseconds exactly, which a float cannot for present-day stamps."""
    try:
        return int(np.int64(int((decimal.Decimal(text) * 10**9).to_integral_value())))
    except (decimal.InvalidOperation, ValueError, OverflowError):
        number = parse_float(text) or 0.0
        units = (unit for unit, factor in _UNITS.items() if _PRESENT_S < number / factor < 4e9)
        guess = next((f'; these are {unit}' for unit in units), '')
        raise RecordingError(
            f'{path}: line {line}: stamp {text!r} is not allowed; must be seconds{guess}'
        ) from None
