# SPDX-License-Identifier: Apache-2.0
"""ROS messages from the arrays of `sim_sensors.core.measurements`; every bit survives."""

from __future__ import annotations

import dataclasses
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
# Where in a message the field of an array goes, where that is not its name.
_PLACES: dict[type[MessageArray], dict[str, str]] = {
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
    """Return nanoseconds as a builtin_interfaces/Time; any that fit its 32 bits of seconds."""
    return Time(sec=stamp // _NS, nanosec=stamp % _NS)


def message_class(name: str) -> Any:
    """Return the class of a type such as sensor_msgs/msg/Imu."""
    package, _, own = name.partition('/msg/')
    return getattr(import_module(f'{package}.msg'), own)


def messages_of(array: MessageArray) -> Iterator[Any]:
    """Return the rows as ROS messages of the type that the array is of; the service is GPS."""
    kind, own = type(array), [field.name for field in dataclasses.fields(array)]
    places = _PLACES.get(kind, {})
    columns = [
        (getattr(array, name), *_place(places.get(name, name)))
        for name in own
        if name not in ('stamp_ns', 'arrival_ns', 'frame')
    ]
    for k in range(len(array)):
        message = _TYPES[kind](header=_header(int(array.stamp_ns[k]), array.frame))
        for values, parts, name in columns:
            part = message
            for one in parts:
                part = getattr(part, one)
            _set(part, name, values if isinstance(values, str) else values[k])
        if kind is FixArray:
            message.status.service = message.status.SERVICE_GPS
        yield message


def _place(path: str) -> tuple[list[str], str]:
    *parts, name = path.split('.')
    return parts, name


def _set(message: Any, name: str, value: Any) -> None:
    """Set a field: to a text or number, or what is in it to a vector, quaternion or covariance."""
    if np.ndim(value) == 0:
        setattr(message, name, value if isinstance(value, str) else value.item())
    elif np.ndim(value) == 1:
        _fill(getattr(message, name), value)
    else:
        setattr(message, name, value.ravel())


def array_of(messages: Sequence[Any]) -> MessageArray:
    """Return ROS messages of one type, at least one, as the array that `messages_of` is of.

    They arrive at their stamps; the frame is the first's.
    """
    kind = next(one for one, message in _TYPES.items() if isinstance(messages[0], message))
    stamps = np.array([stamp_ns(message.header.stamp) for message in messages])
    columns: dict[str, Any] = {
        'stamp_ns': stamps, 'arrival_ns': stamps, 'frame': messages[0].header.frame_id
    }  # fmt: skip
    for field in dataclasses.fields(kind):
        if field.name in columns:
            continue
        path = _PLACES.get(kind, {}).get(field.name, field.name)
        values = [_get(message, path) for message in messages]
        columns[field.name] = values[0] if isinstance(values[0], str) else np.array(values)
    return kind(**columns)


def _get(message: Any, path: str) -> Any:
    """Return a field: text, number, parts of a vector or quaternion, or square matrix."""
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
    """Return a sensor_msgs/JointState of joints and their positions, rad; no velocities."""
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


def _header(stamp: int, frame: str) -> Header:
    return Header(stamp=time_message(stamp), frame_id=frame)


def _fill(message: object, values: FloatArray) -> None:
    """Set x, y, z, and w where there is one."""
    for name, value in zip('xyzw', values.tolist(), strict=False):
        setattr(message, name, value)


# Feature tracks as sensor_msgs/PointCloud2, and camera info; every bit survives.
#
# sensor_msgs/PointCloud, which VINS takes, is deprecated and its channels have 32 bits, which cut
# a pixel to some 1e-5. A PointCloud2 says what its fields are, and RViz shows its x, y, z.


def feature_messages(features: FeatureArray) -> Iterator[PointCloud2]:
    """Return one sensor_msgs/PointCloud2 for each frame; `camera.features` lays out."""
    fields = [
        PointField(name=name, offset=offset, datatype=kind, count=1)
        for name, offset, kind in FIELDS
    ]
    rows = feature_rows(features)
    for k in range(len(features)):
        here = rows[features.rows(k)]
        yield PointCloud2(
            header=_header(int(features.stamp_ns[k]), features.frame),
            height=1,
            width=len(here),
            fields=fields,
            is_bigendian=False,
            point_step=ROW.itemsize,
            row_step=ROW.itemsize * len(here),
            data=here.tobytes(),
            is_dense=is_dense(here),
        )


def camera_info(intrinsics: Intrinsics, stamp: int, frame: str) -> CameraInfo:
    """Return a sensor_msgs/CameraInfo (`plumb_bob`) of a monocular camera."""
    # Of the same function as in recordings; the message's other fields are zero.
    at = np.array([stamp])
    info = CameraInfoArray.from_intrinsics(intrinsics, at, at, frame)
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
