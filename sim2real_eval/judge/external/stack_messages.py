# SPDX-License-Identifier: Apache-2.0
"""What a recording says to a declared estimator, and what the estimator's messages say of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.findings import BY_DIFFERENCES, LEVEL, OUT_OF_ORDER
from sim2real_eval.judge.protocol import Estimate
from sim2real_eval.recording.cdr import decode, decode_transforms
from sim2real_eval.recording.message_types import (
    MESSAGE_TYPES,
    TF_TYPE,
    MessageType,
    default_type,
    known_type,
)
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.recording.truth import frame_at_first, valid_fixes
from sim_sensors.core.errors import not_among
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from .declaration import GPS_ODOMETRY, INITIAL_POSE, RosStack, StackFrames, StackOutput

_UNKNOWN = 1e6
"""Variance of what the fixes do not say: rotation and velocity."""
_TILT, _HEADING = 0.1, 0.02
"""Deviations of the initial rotation, rad: level, and the heading that is given."""
_LEVEL = np.array([0.0, 0.0, 0.0, 1.0])


def stack_inputs(
    stack: RosStack,
    recording: Recording,
    start_ns: int | None = None,
    start_heading: float | None = None,
) -> Mapping[str, tuple[MessageType, MessageArray]]:
    """Return messages and their type by input; the initial pose is the first from `start_ns` on.

    Raises JudgeError when the recording lacks an input, or it cannot be sent as the declared type.
    """
    found = {}
    array: MessageArray
    for name, one in stack.inputs.items():
        if name == INITIAL_POSE:
            fixes, kind = _messages(GPS_ODOMETRY, stack.frames, recording)
            array = initial_pose(fixes, start_ns, start_heading)
        else:
            array, kind = _messages(name, stack.frames, recording)
        wanted = kind if one.type is None else known_type(one.type)
        found[name] = (wanted, _converted(name, array, wanted))
    return found


def _messages(
    name: str, frames: StackFrames, recording: Recording
) -> tuple[MessageArray, MessageType]:
    if name == GPS_ODOMETRY:
        fixes = recording.require('gps')
        assert isinstance(fixes, FixArray)
        array: MessageArray = odometry_of_fixes(fixes, frames)
        return array, default_type(array)
    topics = {topic.strip('/'): topic for topic in recording.messages}
    topic = recording.roles.get(name) or topics.get(name.strip('/'))
    if topic is None:
        if name in ROLE_CLASSES:
            recording.require(name)
        known = [GPS_ODOMETRY, INITIAL_POSE, *recording.roles, *recording.messages]
        raise JudgeError(f'inputs.{name}: {not_among("is not in the recording", name, known)}')
    array = recording.messages[topic]
    named = recording.ros_types.get(topic, '')
    return array, MESSAGE_TYPES.get(named) or default_type(array)


def _converted(name: str, array: MessageArray, kind: MessageType) -> MessageArray:
    """Return the messages as those of a type, which may hold less."""
    if isinstance(array, kind.array):
        return array
    fields = [field.name for field in dataclasses.fields(kind.array)]
    if not kind.has_header or any(not hasattr(array, field) for field in fields):
        raise JudgeError(
            f'inputs.{name}: {default_type(array).name} cannot be sent as {kind.name}'
        )
    values = {field: getattr(array, field) for field in fields}
    if isinstance(array, OdometryArray) and not hasattr(kind.array, 'position'):
        # A twist is of the child frame.
        values['frame'] = array.child_frame
    return kind.array(**values)


def odometry_of_fixes(fixes: FixArray, frames: StackFrames) -> OdometryArray:
    """Return positions east, north and up of the first fix, m, without attitude or velocity.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    >>> odometry_of_fixes(drive.gps, StackFrames()).position[0].tolist()
    [0.0, 0.0, 0.0]
    """
    valid = valid_fixes(fixes)
    n = len(valid)
    position = np.zeros((n, 3))
    if n:
        world = frame_at_first(valid)
        position = world.to_enu(valid.latitude, valid.longitude, valid.altitude)
    pose = np.tile(np.eye(6) * _UNKNOWN, (n, 1, 1))
    pose[:, :3, :3] = valid.position_covariance
    return OdometryArray(
        stamp_ns=valid.stamp_ns,
        arrival_ns=valid.arrival_ns,
        frame=frames.world,
        child_frame=frames.base,
        position=position,
        orientation=np.tile(_LEVEL, (n, 1)),
        linear_velocity=np.zeros((n, 3)),
        angular_velocity=np.zeros((n, 3)),
        pose_covariance=pose,
        twist_covariance=np.tile(np.eye(6) * _UNKNOWN, (n, 1, 1)),
    )


def initial_pose(
    fixes: MessageArray, start_ns: int | None, start_heading: float | None
) -> OdometryArray:
    """Return the first position from a time on, level, with a heading in radians from east.

    Without a heading it is 0, with the variance of one that is not known.
    """
    assert isinstance(fixes, OdometryArray)
    later = np.flatnonzero(fixes.arrival_ns >= (start_ns or 0))[:1]
    first = fixes.take(later)
    heading = start_heading or 0.0
    pose = first.pose_covariance.copy()
    pose[:, [3, 4, 5], [3, 4, 5]] = (
        _TILT**2, _TILT**2, _UNKNOWN if start_heading is None else _HEADING**2,
    )  # fmt: skip
    turned = [0.0, 0.0, np.sin(heading / 2.0), np.cos(heading / 2.0)]
    return dataclasses.replace(
        first, orientation=np.tile(turned, (len(first), 1)), pose_covariance=pose
    )


def estimated_run(
    data: Sequence[bytes], heard_ns: IntArray, output: StackOutput, frames: StackFrames
) -> JudgedRun:
    """Return the estimate of a run.

    Parameters
    ----------
    data : sequence of bytes
        Messages in the order in which they came.
    heard_ns : (n,) int64
        What /clock showed when they came.
    output, frames : StackOutput, StackFrames
        As they are declared.

    Raises
    ------
    JudgeError
        When there is none, or too few for differences.
    """
    if output.type == TF_TYPE:
        array: MessageArray = _transforms(data, heard_ns, output.topic, frames)
    else:
        array = decode(known_type(output.type), data, heard_ns, output.topic).array
    # A stamp of 0 was not set.
    newer = np.diff(np.maximum.accumulate(array.stamp_ns), prepend=0) > 0
    late = int(np.sum(~newer))
    array = array.take(newer)
    if isinstance(array, PoseArray):
        array = array.take(_spaced(array.stamp_ns, output.spacing))
    least = 2 if isinstance(array, PoseArray) else 1
    if len(array) < least:
        raise JudgeError(f'{output.topic}: {len(array)} estimates came; must be at least {least}')
    run = _run(array, output)
    notes = [OUT_OF_ORDER(output.topic, count=late)] if late else []
    return dataclasses.replace(run, tick_ns=array.arrival_ns, notes=(*run.notes, *notes))


def _spaced(stamp_ns: IntArray, spacing: float) -> list[int]:
    """Return the estimates that are at least so many seconds apart, from the first one on."""
    kept: list[int] = []
    due = 0
    for i, stamp in enumerate(stamp_ns.tolist()):
        if stamp >= due:
            kept.append(i)
            due = stamp + round(spacing * 1e9)
    return kept


def _run(array: MessageArray, output: StackOutput) -> JudgedRun:
    if isinstance(array, PoseArray):
        # From the first on: in seconds since 1970 a double has no microseconds.
        times = (array.stamp_ns - array.stamp_ns[0]) * 1e-9
        velocity = np.gradient(array.position, times, axis=0)
        return Estimate(
            array.stamp_ns, velocity, array.orientation, position=array.position,
            position_covariance=array.pose_covariance[:, :3, :3],
            notes=(BY_DIFFERENCES(output.topic),),
        ).judged()  # fmt: skip
    assert isinstance(array, (OdometryArray, TwistArray))
    in_world = output.velocity == 'world'
    if isinstance(array, OdometryArray):
        if in_world:
            return Estimate(
                array.stamp_ns, array.linear_velocity, array.orientation,
                position=array.position, velocity_covariance=array.twist_covariance[:, :3, :3],
                position_covariance=array.pose_covariance[:, :3, :3],
            ).judged()  # fmt: skip
        return _of_body(array, array.position, array.orientation, array.pose_covariance, ())
    if in_world:
        covariance = array.twist_covariance[:, :3, :3]
        return Estimate(
            array.stamp_ns, array.linear_velocity, velocity_covariance=covariance
        ).judged()
    n = len(array)
    unknown = ('position', 'orientation', 'pose_covariance')
    run = _of_body(
        array,
        np.full((n, 3), np.nan),
        np.tile(_LEVEL, (n, 1)),
        np.full((n, 6, 6), np.nan),
        unknown,
    )
    return dataclasses.replace(run, notes=(LEVEL(output.topic),))


def _of_body(
    array: OdometryArray | TwistArray,
    position: FloatArray,
    orientation: FloatArray,
    covariance: FloatArray,
    unknown: Sequence[str],
) -> JudgedRun:
    return JudgedRun(
        stamp_ns=array.stamp_ns,
        tick_ns=array.arrival_ns,
        position=position,
        orientation=orientation,
        linear_velocity=array.linear_velocity,
        angular_velocity=array.angular_velocity,
        pose_covariance=covariance,
        twist_covariance=array.twist_covariance,
        unknown=frozenset(unknown),
    )


def _transforms(
    data: Sequence[bytes], heard_ns: IntArray, topic: str, frames: StackFrames
) -> PoseArray:
    """Return the transforms from the world to the base frame."""
    rows = [
        (stamp, heard, one)
        for message, heard in zip(data, heard_ns.tolist(), strict=True)
        for stamp, one in decode_transforms(message, topic)
        if (one.parent, one.child) == (frames.world, frames.base)
    ]
    if data and not rows:
        raise JudgeError(f'{topic}: holds no transform from {frames.world} to {frames.base}')
    n = len(rows)
    return PoseArray(
        stamp_ns=np.array([stamp for stamp, _, _ in rows], dtype=np.int64),
        arrival_ns=np.array([heard for _, heard, _ in rows], dtype=np.int64),
        frame=frames.world,
        position=np.array([one.translation for _, _, one in rows]).reshape(n, 3),
        orientation=np.array([one.rotation for _, _, one in rows]).reshape(n, 4),
        pose_covariance=np.full((n, 6, 6), np.nan),
    )
