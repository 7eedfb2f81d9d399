# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""ROS message types of a recording: array class, serialised field order and CSV columns.

The field order is that of common_interfaces; ROS 2 Humble to Rolling agree on it. The CSV columns
are those of the judge's reference traces.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)

TF_TYPE = 'tf2_msgs/msg/TFMessage'
CMD_VEL_TYPE = 'geometry_msgs/msg/TwistStamped'


_OPTIONAL_SHAPES = {
    'pose_covariance': (6, 6),
    'linear_velocity': (3,),
    'angular_velocity': (3,),
    'twist_covariance': (6, 6),
}
"""Array fields that some types lack: TwistStamped has no covariance, TransformStamped no twist."""


class Field(NamedTuple):
    """Field of a message: array attribute (empty if not kept), CSV columns, shape, NumPy type."""

    attribute: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    code: str = 'f8'


@dataclasses.dataclass(frozen=True)
class MessageType:
    """Layout of one ROS message type.

    Attributes
    ----------
    name : str
        Full ROS name, such as `sensor_msgs/msg/Imu`.
    array : type
        Array class that holds messages of this type.
    fields : tuple of Field
        Fields in CDR order, after the header and the child frame.
    has_header : bool
        False for a type without stamp and frame; the time of arrival is then the stamp.
    has_child : bool
        True when a `child_frame_id` follows the header.
    text : str
        Attribute with one text for all messages, and name of its CSV column; may be empty.
    """

    name: str
    array: type[MessageArray]
    fields: tuple[Field, ...] = ()
    has_header: bool = True
    has_child: bool = False
    text: str = ''

    @property
    def kept_fields(self) -> list[Field]:
        """Fields that the array class holds, in CDR order."""
        return [field for field in self.fields if field.attribute]

    @property
    def has_covariance(self) -> bool:
        """Whether the type has a covariance."""
        return any(field.attribute.endswith('covariance') for field in self.fields)

    @property
    def csv_fields(self) -> list[Field]:
        """Kept fields in CSV order, after arrival_ns, stamp_ns, frame, child and `text`."""
        return sorted(
            self.kept_fields,
            key=lambda field: ('covariance' in field.attribute, field.attribute == 'status'),
        )

    def make_array(
        self,
        stamp_ns: IntArray,
        arrival_ns: IntArray,
        frame: str,
        child: str,
        fields: dict[str, Any],
    ) -> MessageArray:
        """Return an array of n messages; fields that the type lacks are zero."""
        for name in {field.name for field in dataclasses.fields(self.array)} - set(fields):
            if name in _OPTIONAL_SHAPES:
                fields[name] = np.broadcast_to(0.0, (len(stamp_ns), *_OPTIONAL_SHAPES[name]))
        if self.has_child:
            fields['child_frame'] = child
        return self.array(stamp_ns=stamp_ns, arrival_ns=arrival_ns, frame=frame, **fields)


def vector_field(attribute: str, columns: str, code: str = 'f8') -> Field:
    """Return a field with one named column per component; one column is a scalar."""
    names = tuple(columns.split())
    return Field(attribute, names, (len(names),) if len(names) > 1 else (), code)


def matrix_field(attribute: str, prefix: str, rows: int, columns: int) -> Field:
    """Return a matrix with numbered columns in CSV, row by row."""
    names = tuple(f'{prefix}{index}' for index in range(rows * columns))
    return Field(attribute, names, (rows, columns))


_ORIENTATION = vector_field('orientation', 'qx qy qz qw')
_ANGULAR = vector_field('angular_velocity', 'wx wy wz')
_POSE = (vector_field('position', 'x y z'), _ORIENTATION)
_TWIST = (vector_field('linear_velocity', 'vx vy vz'), _ANGULAR)

_ALL = (
    MessageType(
        'sensor_msgs/msg/Imu',
        ImuArray,
        (
            _ORIENTATION,
            matrix_field('orientation_covariance', 'ocov', 3, 3),
            _ANGULAR,
            matrix_field('angular_velocity_covariance', 'wcov', 3, 3),
            vector_field('linear_acceleration', 'ax ay az'),
            matrix_field('linear_acceleration_covariance', 'acov', 3, 3),
        ),
    ),
    MessageType(
        'sensor_msgs/msg/MagneticField',
        MagneticFieldArray,
        (
            vector_field('magnetic_field', 'mx my mz'),
            matrix_field('magnetic_field_covariance', 'mcov', 3, 3),
        ),
    ),
    MessageType(
        'sensor_msgs/msg/NavSatFix',
        FixArray,
        (
            vector_field('status', 'status', 'i1'),
            vector_field(
                '', '', 'u2'
            ),  # status.service names the constellations, which nothing uses
            vector_field('latitude', 'lat'),
            vector_field('longitude', 'lon'),
            vector_field('altitude', 'alt'),
            matrix_field('position_covariance', 'cov', 3, 3),
            vector_field('position_covariance_type', 'cov_type', 'u1'),
        ),
    ),
    MessageType(
        'nav_msgs/msg/Odometry',
        OdometryArray,
        (
            *_POSE,
            matrix_field('pose_covariance', 'pcov', 6, 6),
            *_TWIST,
            matrix_field('twist_covariance', 'tcov', 6, 6),
        ),
        has_child=True,
    ),
    MessageType(
        'geometry_msgs/msg/PoseWithCovarianceStamped',
        PoseArray,
        (*_POSE, matrix_field('pose_covariance', 'cov', 6, 6)),
    ),
    MessageType(
        'geometry_msgs/msg/TwistWithCovarianceStamped',
        TwistArray,
        (*_TWIST, matrix_field('twist_covariance', 'cov', 6, 6)),
    ),
    MessageType(CMD_VEL_TYPE, TwistArray, _TWIST),
    MessageType('geometry_msgs/msg/Twist', TwistArray, _TWIST, has_header=False),
)

MESSAGE_TYPES: dict[str, MessageType] = {kind.name: kind for kind in _ALL}

# Read only on the topics of the camera, since other topics have these types too. Their messages
# differ in length.
FEATURES = MessageType('sensor_msgs/msg/PointCloud2', FeatureArray)
CAMERA_INFO = MessageType('sensor_msgs/msg/CameraInfo', CameraInfoArray)
NAMED_TYPES: dict[str, MessageType] = {kind.name: kind for kind in (FEATURES, CAMERA_INFO)}

# Read where the truth or the GPS is one of these types, and converted to Odometry or NavSatFix.
GPS_FIX = MessageType('gps_msgs/msg/GPSFix', FixArray)
POSE_TYPES: dict[str, MessageType] = {
    kind.name: kind
    for kind in (
        MessageType('geometry_msgs/msg/PoseStamped', PoseArray, _POSE),
        MessageType('geometry_msgs/msg/TransformStamped', OdometryArray, _POSE, has_child=True),
    )
}
_TYPES_BY_NAME = {**MESSAGE_TYPES, **NAMED_TYPES, **POSE_TYPES, GPS_FIX.name: GPS_FIX}
_ROS1_NAMES = {'gps_common/msg/GPSFix': GPS_FIX.name, 'tf/msg/tfMessage': TF_TYPE}
"""ROS 2 names of message types that ROS 1 names differently."""


def normalise_type_name(name: str) -> str:
    """Return the full name of a message type: `sensor_msgs/Imu` becomes `sensor_msgs/msg/Imu`."""
    parts = name.split('/')
    full = f'{parts[0]}/msg/{parts[1]}' if len(parts) == 2 else name
    return _ROS1_NAMES.get(full, full)


def find_type(name: str) -> MessageType:
    """Return the message type with a full name; an unsupported type is a KeyError."""
    return _TYPES_BY_NAME[name]


def default_type(array: MessageArray) -> MessageType:
    """Return the message type that an array is written as unless another one is recorded."""
    return next(kind for kind in (*_ALL, *NAMED_TYPES.values()) if kind.array is type(array))
