# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Exact conversion between ROS messages and the arrays of `sim_sensors.core.measurements`."""

from __future__ import annotations

import array
import dataclasses
import functools
import math
import operator
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped, TwistStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import (
    CameraInfo,
    Imu,
    JointState,
    MagneticField,
    NavSatFix,
    PointCloud2,
    PointField,
)
from std_msgs.msg import Header

from sim_sensors.camera.features import FIELDS, ROW, FeatureArray, feature_rows, is_dense
from sim_sensors.camera.pinhole import CameraInfoArray, Intrinsics
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)

_NS = 1_000_000_000

_TYPES: dict[type[MessageArray], Any] = {
    FixArray: NavSatFix,
    ImuArray: Imu,
    MagneticFieldArray: MagneticField,
    OdometryArray: Odometry,
    PoseArray: PoseWithCovarianceStamped,
}
_POSE = {
    'position': 'pose.pose.position',
    'orientation': 'pose.pose.orientation',
    'pose_covariance': 'pose.covariance',
}
# Path in a message of a field of an array, if it differs from the name of the field.
_PATHS: dict[type[MessageArray], dict[str, str]] = {
    FixArray: {'status': 'status.status'},
    OdometryArray: {
        **_POSE,
        'child_frame': 'child_frame_id',
        'linear_velocity': 'twist.twist.linear',
        'angular_velocity': 'twist.twist.angular',
        'twist_covariance': 'twist.covariance',
    },
    PoseArray: _POSE,
}


def stamp_ns(time: Time) -> int:
    """Return a builtin_interfaces/Time in nanoseconds."""
    return int(time.sec) * _NS + int(time.nanosec)


def time_message(stamp: int) -> Time:
    """Return nanoseconds as a builtin_interfaces/Time, which has 32 bits for the seconds."""
    return Time(sec=stamp // _NS, nanosec=stamp % _NS)


def message_class(name: str) -> Any:
    """Return the class of a type such as sensor_msgs/msg/Imu."""
    package, _, type_name = name.partition('/msg/')
    return getattr(import_module(f'{package}.msg'), type_name)


def messages_of(array: MessageArray) -> Iterator[Any]:
    """Yield the rows of an array as ROS messages; the service of a NavSatFix is GPS."""
    kind, paths = type(array), _PATHS.get(type(array), {})
    columns = [
        (getattr(array, field.name), *_split_path(paths.get(field.name, field.name)))
        for field in dataclasses.fields(array)
        if field.name not in ('stamp_ns', 'arrival_ns', 'frame')
    ]
    for k in range(len(array)):
        message = _TYPES[kind](header=_header(int(array.stamp_ns[k]), array.frame))
        for column, parents, name in columns:
            owner = message
            for parent in parents:
                owner = getattr(owner, parent)
            _set_field(owner, name, column if isinstance(column, str) else column[k])
        if kind is FixArray:
            message.status.service = message.status.SERVICE_GPS
        yield message


def _split_path(path: str) -> tuple[list[str], str]:
    *parents, name = path.split('.')
    return parents, name


def _set_field(message: Any, name: str, value: Any) -> None:
    """Set a field of a message to a text, number, vector, quaternion or covariance."""
    if np.ndim(value) == 0:
        setattr(message, name, value if isinstance(value, str) else value.item())
    elif np.ndim(value) == 1:
        _fill(getattr(message, name), value)
    else:
        setattr(message, name, value.ravel())


def array_of(messages: Sequence[Any]) -> MessageArray:
    """Return one or more ROS messages of one type as an array, the inverse of `messages_of`.

    Arrivals are the stamps; the frame is that of the first message.
    """
    kind = next(array for array, message in _TYPES.items() if isinstance(messages[0], message))
    stamps = np.array([stamp_ns(message.header.stamp) for message in messages])
    columns: dict[str, Any] = {
        'stamp_ns': stamps, 'arrival_ns': stamps, 'frame': messages[0].header.frame_id
    }  # fmt: skip
    for field in dataclasses.fields(kind):
        if field.name in columns:
            continue
        path = _PATHS.get(kind, {}).get(field.name, field.name)
        rows = [_get_field(message, path) for message in messages]
        columns[field.name] = rows[0] if isinstance(rows[0], str) else np.array(rows)
    return kind(**columns)


def _get_field(message: Any, path: str) -> Any:
    """Return a field as a text, number, list of components, or square matrix."""
    value = operator.attrgetter(path)(message)
    if hasattr(value, 'x'):
        return [getattr(value, axis) for axis in 'xyzw' if hasattr(value, axis)]
    if isinstance(value, np.ndarray):
        side = round(math.sqrt(len(value)))
        return value.reshape(side, side)
    return value


def pose_message(
    stamp: int, frame: str, position: FloatArray, orientation: FloatArray
) -> PoseStamped:
    """Return a geometry_msgs/PoseStamped of a position `(3,)` and a quaternion `(4,)`."""
    message = PoseStamped(header=_header(stamp, frame))
    _fill(message.pose.position, position)
    _fill(message.pose.orientation, orientation)
    return message


def joint_message(stamp: int, names: Sequence[str], position: FloatArray) -> JointState:
    """Return a sensor_msgs/JointState with joint positions, rad, and no velocities."""
    header = _header(stamp, '')
    return JointState(header=header, name=list(names), position=position.tolist())


def twist_message(stamp: int, frame: str, linear: FloatArray, angular: FloatArray) -> TwistStamped:
    """Return a geometry_msgs/TwistStamped of two vectors `(3,)`."""
    message = TwistStamped(header=_header(stamp, frame))
    _fill(message.twist.linear, linear)
    _fill(message.twist.angular, angular)
    return message


def vector_message(stamp: int, frame: str, vector: FloatArray) -> Vector3Stamped:
    """Return a geometry_msgs/Vector3Stamped of a vector `(3,)`."""
    message = Vector3Stamped(header=_header(stamp, frame))
    _fill(message.vector, vector)
    return message


def add_frame_prefix(message: Any, prefix: str) -> None:
    """Put a text before the frames that a message names; None is left as it is."""
    for owner, name in (
        (getattr(message, 'header', None), 'frame_id'),
        (message, 'child_frame_id'),
    ):
        if frame := getattr(owner, name, ''):
            setattr(owner, name, prefix + frame)


def _header(stamp: int, frame: str) -> Header:
    return Header(stamp=time_message(stamp), frame_id=frame)


def _fill(message: object, values: FloatArray) -> None:
    """Set x, y, z, and w if there is one."""
    for name, value in zip('xyzw', values.tolist(), strict=False):
        setattr(message, name, value)


def feature_messages(features: FeatureArray) -> Iterator[PointCloud2]:
    """Yield one sensor_msgs/PointCloud2 per frame, with the layout of `camera.features`.

    sensor_msgs/PointCloud, which VINS takes, is deprecated and has channels of 32 bits, which
    round a pixel to about 1e-5. PointCloud2 declares its fields, and RViz shows x, y, z.
    """
    fields = _point_fields()
    rows = feature_rows(features)
    for k in range(len(features)):
        frame_rows = rows[features.rows(k)]
        yield PointCloud2(
            header=_header(int(features.stamp_ns[k]), features.frame),
            height=1,
            width=len(frame_rows),
            fields=fields,
            is_bigendian=False,
            point_step=ROW.itemsize,
            row_step=ROW.itemsize * len(frame_rows),
            # The message checks bytes one by one.
            data=array.array('B', frame_rows.tobytes()),
            is_dense=is_dense(frame_rows),
        )


@functools.cache
def _point_fields() -> list[PointField]:
    return [
        PointField(name=name, offset=offset, datatype=kind, count=1)
        for name, offset, kind in FIELDS
    ]


def camera_info(intrinsics: Intrinsics, stamp: int, frame: str) -> CameraInfo:
    """Return a sensor_msgs/CameraInfo of a monocular camera."""
    info = _camera_info_row(intrinsics)
    width, height = info.size[0].tolist()
    return CameraInfo(
        header=_header(stamp, frame),
        width=width,
        height=height,
        distortion_model=info.distortion_model,
        d=info.distortion[0].tolist(),
        k=info.matrix[0].ravel(),
        r=info.rectification[0].ravel(),
        p=info.projection[0].ravel(),
    )


@functools.lru_cache(maxsize=8)
def _camera_info_row(intrinsics: Intrinsics) -> CameraInfoArray:
    """Return the row of a camera; stamp and frame are those of a message."""
    stamps = np.zeros(1, dtype=np.int64)
    return CameraInfoArray.from_intrinsics(intrinsics, stamps, stamps, '')
