# SPDX-License-Identifier: Apache-2.0
"""ROS messages from and to the arrays of `sim_sensors.core.measurements`; every bit survives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    OdometryArray,
    PoseArray,
)

_NS = 1_000_000_000


def stamp_ns(time: Time) -> int:
    """Return a builtin_interfaces/Time in nanoseconds."""
    return int(time.sec) * _NS + int(time.nanosec)


def time_message(stamp: int) -> Time:
    """Return nanoseconds as a builtin_interfaces/Time; any that fit its 32 bits of seconds."""
    return Time(sec=stamp // _NS, nanosec=stamp % _NS)


def odometry_array(messages: Sequence[Odometry]) -> OdometryArray:
    """Return nav_msgs/Odometry messages, at least one, as an array; frames are the first's."""
    stamps = [stamp_ns(message.header.stamp) for message in messages]
    poses = [message.pose.pose for message in messages]
    twists = [message.twist.twist for message in messages]
    return OdometryArray(
        stamp_ns=np.array(stamps, dtype=np.int64),
        arrival_ns=np.array(stamps, dtype=np.int64),
        frame=messages[0].header.frame_id,
        child_frame=messages[0].child_frame_id,
        position=np.array([[p.position.x, p.position.y, p.position.z] for p in poses]),
        orientation=np.array(
            [[p.orientation.x, p.orientation.y, p.orientation.z, p.orientation.w] for p in poses]
        ),
        linear_velocity=np.array([[t.linear.x, t.linear.y, t.linear.z] for t in twists]),
        angular_velocity=np.array([[t.angular.x, t.angular.y, t.angular.z] for t in twists]),
        pose_covariance=np.array([m.pose.covariance for m in messages]).reshape(-1, 6, 6),
        twist_covariance=np.array([m.twist.covariance for m in messages]).reshape(-1, 6, 6),
    )


def odometry_messages(odometry: OdometryArray) -> Iterator[Odometry]:
    """Return the rows as nav_msgs/Odometry."""
    for k in range(len(odometry)):
        message = Odometry(child_frame_id=odometry.child_frame)
        message.header = _header(int(odometry.stamp_ns[k]), odometry.frame)
        pose, twist = message.pose.pose, message.twist.twist
        pose.position.x, pose.position.y, pose.position.z = odometry.position[k].tolist()
        _fill_quaternion(pose.orientation, odometry.orientation[k])
        _fill(twist.linear, odometry.linear_velocity[k])
        _fill(twist.angular, odometry.angular_velocity[k])
        message.pose.covariance = odometry.pose_covariance[k].ravel()
        message.twist.covariance = odometry.twist_covariance[k].ravel()
        yield message


def imu_messages(imu: ImuArray) -> Iterator[Imu]:
    """Return the rows as sensor_msgs/Imu."""
    for k in range(len(imu)):
        message = Imu(header=_header(int(imu.stamp_ns[k]), imu.frame))
        _fill_quaternion(message.orientation, imu.orientation[k])
        _fill(message.angular_velocity, imu.angular_velocity[k])
        _fill(message.linear_acceleration, imu.linear_acceleration[k])
        message.orientation_covariance = imu.orientation_covariance[k].ravel()
        message.angular_velocity_covariance = imu.angular_velocity_covariance[k].ravel()
        message.linear_acceleration_covariance = imu.linear_acceleration_covariance[k].ravel()
        yield message


def magnetic_field_messages(fields: MagneticFieldArray) -> Iterator[MagneticField]:
    """Return the rows as sensor_msgs/MagneticField."""
    for k in range(len(fields)):
        message = MagneticField(header=_header(int(fields.stamp_ns[k]), fields.frame))
        _fill(message.magnetic_field, fields.magnetic_field[k])
        message.magnetic_field_covariance = fields.magnetic_field_covariance[k].ravel()
        yield message


def fix_messages(fixes: FixArray) -> Iterator[NavSatFix]:
    """Return the rows as sensor_msgs/NavSatFix; the service is GPS."""
    for k in range(len(fixes)):
        message = NavSatFix(header=_header(int(fixes.stamp_ns[k]), fixes.frame))
        message.status.status = int(fixes.status[k])
        message.status.service = message.status.SERVICE_GPS
        message.latitude = float(fixes.latitude[k])
        message.longitude = float(fixes.longitude[k])
        message.altitude = float(fixes.altitude[k])
        message.position_covariance = fixes.position_covariance[k].ravel()
        message.position_covariance_type = int(fixes.position_covariance_type[k])
        yield message


def pose_messages(poses: PoseArray) -> Iterator[PoseWithCovarianceStamped]:
    """Return the rows as geometry_msgs/PoseWithCovarianceStamped."""
    for k in range(len(poses)):
        header = _header(int(poses.stamp_ns[k]), poses.frame)
        message = PoseWithCovarianceStamped(header=header)
        _fill(message.pose.pose.position, poses.position[k])
        _fill_quaternion(message.pose.pose.orientation, poses.orientation[k])
        message.pose.covariance = poses.pose_covariance[k].ravel()
        yield message


def pose_message(
    stamp: int, frame: str, position: FloatArray, orientation: FloatArray
) -> PoseStamped:
    """Return a geometry_msgs/PoseStamped of a position `(3,)` and a quaternion `(4,)`."""
    message = PoseStamped(header=_header(stamp, frame))
    _fill(message.pose.position, position)
    _fill_quaternion(message.pose.orientation, orientation)
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


def _fill(message: Any, values: FloatArray) -> None:
    message.x, message.y, message.z = values.tolist()


def _fill_quaternion(message: object, values: FloatArray) -> None:
    for name, value in zip('xyzw', values.tolist(), strict=True):
        setattr(message, name, value)


# Feature tracks as sensor_msgs/PointCloud2, and camera poses; every bit survives.
#
# sensor_msgs/PointCloud, which VINS takes, is deprecated and its channels have 32 bits,
# which cut a
# pixel to some 1e-5. A PointCloud2 says what its fields are, and RViz shows its x, y,
# z.


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
    info = CameraInfoArray.of(intrinsics, at, at, frame)
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
