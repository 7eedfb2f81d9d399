# SPDX-License-Identifier: Apache-2.0
"""What a recording says to a declared estimator, in the messages that it hears."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.recording.message_types import (
    MESSAGE_TYPES,
    MessageType,
    default_type,
    known_type,
)
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.recording.truth import frame_at_first, valid_fixes
from sim_sensors.core.errors import not_among
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from .declaration import GPS_ODOMETRY, INITIAL_POSE, RosStack, StackFrames

_UNKNOWN = 1e6
"""Variance of what the fixes do not say: rotation and velocity."""
_TILT, _HEADING = 0.1, 0.02
"""Deviations of the initial rotation, rad: level, and the heading that is given."""


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
        orientation=np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
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
