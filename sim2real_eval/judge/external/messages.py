# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages to a declared estimator, and the run that its messages describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import (
    COMPLETED,
    LEVEL,
    OUT_OF_ORDER,
    VELOCITY_BY_DIFFERENCES,
    JudgedRun,
)
from sim2real_eval.judge.protocol import Estimate
from sim2real_eval.recording.cdr import decode, decode_transforms
from sim2real_eval.recording.message_types import (
    MESSAGE_TYPES,
    TF_TYPE,
    MessageType,
    default_type,
    find_type,
)
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.recording.truth import local_frame_at_first_fix, select_valid_fixes
from sim_sensors.core.errors import not_among
from sim_sensors.core.measurements import (
    FixArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from .declaration import GPS_ODOMETRY, INITIAL_POSE, RosStack, StackFrames, StackOutput

_UNKNOWN_VARIANCE = 1e6
"""Variance of the rotation and velocity, which fixes do not contain."""
_TILT_DEVIATION, _HEADING_DEVIATION = 0.1, 0.02
"""Deviations of the initial rotation, rad: of roll and pitch, and of a known heading."""
_LEVEL_QUATERNION = np.array([0.0, 0.0, 0.0, 1.0])


def stack_inputs(
    stack: RosStack,
    recording: Recording,
    start_ns: int | None = None,
    start_heading: float | None = None,
) -> Mapping[str, tuple[MessageType, MessageArray]]:
    """Return the message type and the messages of each input.

    The initial pose is that of the first fix from `start_ns` on. JudgeError if the recording lacks
    an input, or it cannot be sent as the declared type.
    """
    inputs = {}
    array: MessageArray
    for name, declared_input in stack.inputs.items():
        if name == INITIAL_POSE:
            fixes, kind = _read_input(GPS_ODOMETRY, stack.frames, recording)
            array = initial_pose(fixes, start_ns, start_heading)
        else:
            array, kind = _read_input(name, stack.frames, recording)
        if declared_input.type is not None:
            kind = find_type(declared_input.type)
        inputs[name] = (kind, _convert_messages(name, array, kind))
    return inputs


def _read_input(
    name: str, frames: StackFrames, recording: Recording
) -> tuple[MessageArray, MessageType]:
    """Return the messages of an input, by role or topic, and their type in the recording."""
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
        names = [GPS_ODOMETRY, INITIAL_POSE, *recording.roles, *recording.messages]
        raise JudgeError(f'inputs.{name}: {not_among("is not in the recording", name, names)}')
    array = recording.messages[topic]
    type_name = recording.ros_types.get(topic, '')
    return array, MESSAGE_TYPES.get(type_name) or default_type(array)


def _convert_messages(name: str, array: MessageArray, kind: MessageType) -> MessageArray:
    """Convert messages to a type that has a subset of their fields."""
    if isinstance(array, kind.array):
        return array
    fields = [field.name for field in dataclasses.fields(kind.array)]
    if not kind.has_header or any(not hasattr(array, field) for field in fields):
        raise JudgeError(
            f'inputs.{name}: {default_type(array).name} cannot be sent as {kind.name}'
        )
    columns = {field: getattr(array, field) for field in fields}
    if isinstance(array, OdometryArray) and not hasattr(kind.array, 'position'):
        # The twist of an odometry is in the child frame.
        columns['frame'] = array.child_frame
    return kind.array(**columns)


def odometry_of_fixes(fixes: FixArray, frames: StackFrames) -> OdometryArray:
    """Return positions east, north and up of the first fix, m; attitude and velocity are unknown.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    >>> odometry_of_fixes(drive.gps, StackFrames()).position[0].tolist()
    [0.0, 0.0, 0.0]
    """
    valid = select_valid_fixes(fixes)
    n = len(valid)
    position = np.zeros((n, 3))
    if n:
        world = local_frame_at_first_fix(valid)
        position = world.to_enu(valid.latitude, valid.longitude, valid.altitude)
    pose = np.tile(np.eye(6) * _UNKNOWN_VARIANCE, (n, 1, 1))
    pose[:, :3, :3] = valid.position_covariance
    return OdometryArray(
        stamp_ns=valid.stamp_ns,
        arrival_ns=valid.arrival_ns,
        frame=frames.world,
        child_frame=frames.base,
        position=position,
        orientation=np.tile(_LEVEL_QUATERNION, (n, 1)),
        linear_velocity=np.zeros((n, 3)),
        angular_velocity=np.zeros((n, 3)),
        pose_covariance=pose,
        twist_covariance=np.tile(np.eye(6) * _UNKNOWN_VARIANCE, (n, 1, 1)),
    )


def initial_pose(
    fixes: MessageArray, start_ns: int | None, start_heading: float | None
) -> OdometryArray:
    """Return a level pose at the first position from a time on.

    The heading is in radians from east. An unknown heading is 0 with a large
    variance.
    """
    assert isinstance(fixes, OdometryArray)
    first = fixes.take(np.flatnonzero(fixes.arrival_ns >= (start_ns or 0))[:1])
    heading = start_heading or 0.0
    pose = first.pose_covariance.copy()
    heading_variance = _UNKNOWN_VARIANCE if start_heading is None else _HEADING_DEVIATION**2
    pose[:, [3, 4], [3, 4]], pose[:, 5, 5] = _TILT_DEVIATION**2, heading_variance
    quaternion = [0.0, 0.0, np.sin(heading / 2.0), np.cos(heading / 2.0)]
    return dataclasses.replace(
        first, orientation=np.tile(quaternion, (len(first), 1)), pose_covariance=pose
    )


def estimated_run(
    messages: Sequence[bytes], received_ns: IntArray, output: StackOutput, frames: StackFrames
) -> JudgedRun:
    """Return the run that an estimator's messages describe.

    Parameters
    ----------
    messages : sequence of bytes
        Serialised messages in order of reception.
    received_ns : (n,) int64
        Time on /clock at reception.
    output, frames : StackOutput, StackFrames
        Declaration of the estimator.

    Raises
    ------
    JudgeError
        If there is no message, or too few for differences.
    """
    if output.type == TF_TYPE:
        array: MessageArray = _decode_transforms(messages, received_ns, output.topic, frames)
    else:
        array = decode(find_type(output.type), messages, received_ns, output.topic).array
    # A stamp of 0 was never set.
    is_newer = np.diff(np.maximum.accumulate(array.stamp_ns), prepend=0) > 0
    late = int(np.sum(~is_newer))
    array = array.take(is_newer)
    required = 1
    if isinstance(array, PoseArray):
        array = array.take(_spaced_rows(array.stamp_ns, output.spacing))
        required = 2
    if len(array) < required:
        problem = f'{len(array)} estimates came; must be at least {required}'
        raise JudgeError(f'{output.topic}: {problem}')
    run = _run_of_messages(array, output)
    notes = [OUT_OF_ORDER(output.topic, count=late)] if late else []
    return dataclasses.replace(run, tick_ns=array.arrival_ns, notes=(*run.notes, *notes))


def _spaced_rows(stamp_ns: IntArray, spacing: float) -> list[int]:
    """Return the rows that are at least `spacing` seconds apart, from the first one on."""
    rows: list[int] = []
    due = 0
    for row, stamp in enumerate(stamp_ns.tolist()):
        if stamp >= due:
            rows.append(row)
            due = stamp + round(spacing * 1e9)
    return rows


def _run_of_messages(array: MessageArray, output: StackOutput) -> JudgedRun:
    if isinstance(array, PoseArray):
        # Relative times: seconds since 1970 have no microseconds as a double.
        times = (array.stamp_ns - array.stamp_ns[0]) * 1e-9
        velocity = np.gradient(array.position, times, axis=0)
        return Estimate(
            array.stamp_ns, velocity, array.orientation, position=array.position,
            position_covariance=array.pose_covariance[:, :3, :3],
            notes=(COMPLETED(output.topic, assumption=VELOCITY_BY_DIFFERENCES),),
        ).to_judged_run()  # fmt: skip
    assert isinstance(array, (OdometryArray, TwistArray))
    if output.velocity == 'world':
        pose: dict[str, Any] = {}
        if isinstance(array, OdometryArray):
            pose = {
                'orientation': array.orientation,
                'position': array.position,
                'position_covariance': array.pose_covariance[:, :3, :3],
            }
        covariance = array.twist_covariance[:, :3, :3]
        return Estimate(
            array.stamp_ns, array.linear_velocity, velocity_covariance=covariance, **pose
        ).to_judged_run()
    twist: dict[str, Any] = {
        'stamp_ns': array.stamp_ns, 'tick_ns': array.arrival_ns,
        'linear_velocity': array.linear_velocity, 'angular_velocity': array.angular_velocity,
        'twist_covariance': array.twist_covariance,
    }  # fmt: skip
    if isinstance(array, OdometryArray):
        return JudgedRun(
            **twist,
            position=array.position,
            orientation=array.orientation,
            pose_covariance=array.pose_covariance,
        )
    n = len(array)
    return JudgedRun(
        **twist,
        position=np.full((n, 3), np.nan),
        orientation=np.tile(_LEVEL_QUATERNION, (n, 1)),
        pose_covariance=np.full((n, 6, 6), np.nan),
        unknown=frozenset(('position', 'orientation', 'pose_covariance')),
        notes=(COMPLETED(output.topic, assumption=LEVEL),),
    )


def _decode_transforms(
    messages: Sequence[bytes], received_ns: IntArray, topic: str, frames: StackFrames
) -> PoseArray:
    """Return the transforms from the world to the base frame."""
    rows = [
        (stamp, received, transform)
        for message, received in zip(messages, received_ns.tolist(), strict=True)
        for stamp, transform in decode_transforms(message, topic)
        if (transform.parent, transform.child) == (frames.world, frames.base)
    ]
    if messages and not rows:
        raise JudgeError(f'{topic}: holds no transform from {frames.world} to {frames.base}')
    n = len(rows)
    return PoseArray(
        stamp_ns=np.array([stamp for stamp, _, _ in rows], dtype=np.int64),
        arrival_ns=np.array([received for _, received, _ in rows], dtype=np.int64),
        frame=frames.world,
        position=np.array([transform.translation for _, _, transform in rows]).reshape(n, 3),
        orientation=np.array([transform.rotation for _, _, transform in rows]).reshape(n, 4),
        pose_covariance=np.full((n, 6, 6), np.nan),
    )
