# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Output of the node of each kind of sensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import (
    PoseStamped,
    PoseWithCovarianceStamped,
    TwistStamped,
    Vector3,
    Vector3Stamped,
)
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CameraInfo, JointState, PointCloud2
from std_srvs.srv import Trigger

from sim_sensors.core.compilation import FEW_ROWS
from sim_sensors.core.errors import ParameterError, SensorError
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.registry import Registry
from sim_sensors.sensor.catalogue import KINDS
from .messages import (
    camera_info,
    feature_messages,
    joint_message,
    messages_of,
    pose_message,
    twist_message,
    vector_message,
)
from .node_settings import (
    CameraSettings,
    GpsSettings,
    ImuSettings,
    MagnetometerSettings,
    SensorSettings,
    WorldSettings,
)

if TYPE_CHECKING:
    from sim_sensors.camera.camera import CameraModel
    from sim_sensors.camera.features import CameraMeasurement
    from sim_sensors.gps.gps import GpsMeasurement, GpsModel
    from sim_sensors.imu.imu import ImuMeasurement, ImuModel
    from sim_sensors.magnetometer.magnetometer import MagneticMeasurement, Magnetometer
    from sim_sensors.vision.vision_pose import VisionMeasurement, VisionModel
    from sim_sensors.wheels.wheel_odometry import WheelMeasurement, WheelOdometryModel

Messages = Iterator[tuple[tuple[object, ...], object]]


@dataclasses.dataclass(frozen=True, eq=False)
class SensorOutput:
    """Behaviour of the node of one kind of sensor that other kinds do not share."""

    settings: type[SensorSettings]  # parameters besides those of the model
    truth: tuple[str, type]  # private topic and message type of the errors of the measurements
    # Takes model, settings, stamps `(n,)` ns and measurement. Yields for each sample its messages,
    # in the order of the topics, with None for a message that is not sent, and its error, or a
    # function that creates the error, which is called if somebody subscribes to it.
    messages: Callable[[Any, Any, IntArray, Any], Messages]
    # Message types of further topics, which are sent before or after the measurement.
    topics_before: Mapping[str, type] = dataclasses.field(default_factory=dict)
    topics_after: Mapping[str, type] = dataclasses.field(default_factory=dict)
    # Measurements made at once, see `LiveSensor`; so few need no numba.
    chunk: int = FEW_ROWS
    # Called when the node is ready, for its own services and last checks.
    on_ready: Callable[[Any], None] = lambda node: None


def _with_error(error_message: Callable[[Any, Any, int, int], object]) -> Callable[..., Messages]:
    """Return a function that yields each measurement with its error.

    `error_message` takes model, measurement, stamp and row.
    """

    def messages(model: Any, settings: object, stamp_ns: IntArray, measured: Any) -> Messages:
        rows = messages_of(measured.messages(stamp_ns, model.frame_id))
        for k, (stamp, row) in enumerate(zip(stamp_ns.tolist(), rows, strict=True)):
            yield (row,), partial(error_message, model, measured, stamp, k)

    return messages


def _item(rows: Callable[[], list[Any]], k: int) -> object:
    return rows()[k]


def _imu_error(model: ImuModel, measured: ImuMeasurement, stamp: int, k: int) -> TwistStamped:
    """Return the biases: gyroscope as angular, accelerometer as linear."""
    linear, angular = measured.accelerometer_bias[k], measured.gyroscope_bias[k]
    return twist_message(stamp, model.frame_id, linear=linear, angular=angular)


def _offer_hector_services(node: Any) -> None:
    """Offer the three services of the Hector plugin if the drift of the biases can be set.

    Two of them are topics: hector_gazebo_plugins/SetBias is not on PyPI, and no standard service
    takes a vector.
    """
    if not node.sensor.has_settable_bias:
        return

    def calibrate(request: object, response: Any) -> Any:
        node.sensor.calibrate()
        response.success = True
        response.message = 'the drift of the gyroscope is zero from the next measurement on'
        return response

    def setter(name: str) -> Callable[[Any], None]:
        def set_bias(bias: Any) -> None:
            try:
                # The sensor is looked up here, since a reset replaces it.
                getattr(node.sensor, name)([bias.x, bias.y, bias.z])
            except SensorError as error:
                node.get_logger().error(str(error))

        return set_bias

    node.create_service(Trigger, '~/calibrate', calibrate)
    node.create_subscription(Vector3, '~/set_rate_bias', setter('set_gyroscope_bias'), 10)
    node.create_subscription(Vector3, '~/set_accel_bias', setter('set_accelerometer_bias'), 10)


def _gps_error(model: GpsModel, measured: GpsMeasurement, stamp: int, k: int) -> Vector3Stamped:
    """Return the position error east, north, up, m."""
    return vector_message(stamp, 'map', measured.position_error[k])


def _mag_error(
    model: Magnetometer, measured: MagneticMeasurement, stamp: int, k: int
) -> Vector3Stamped:
    """Return the error of the field in sensor axes, T."""
    return vector_message(stamp, model.frame_id, measured.error[k])


def _camera_messages(
    model: CameraModel, settings: CameraSettings, stamp_ns: IntArray, measured: CameraMeasurement
) -> Messages:
    """Yield camera info, features and the pose or None, and the true features."""
    frame = model.frame_id
    truths = cache(lambda: list(feature_messages(measured.true_messages(stamp_ns, frame))))
    poses = messages_of(measured.poses(stamp_ns, settings.world_frame))
    for k, row in enumerate(feature_messages(measured.messages(stamp_ns, frame))):
        pose = next(poses) if measured.has_pose[k] else None
        info = camera_info(model.intrinsics, int(stamp_ns[k]), frame)
        yield (info, row, pose), partial(_item, truths, k)


def _refuse_empty_world(node: Any) -> None:
    """Raise ParameterError if the world has no features for a camera."""
    from sim_sensors.camera.camera import Scene

    if not len(Scene.from_world(node.world)):
        raise ParameterError(
            node.get_name(),
            'world',
            f'{node.declared.get().world!r} has no visible features; it must have '
            'landmarks, chessboards or tags',
        )


def _wheel_messages(
    model: WheelOdometryModel,
    settings: SensorSettings,
    stamp_ns: IntArray,
    measured: WheelMeasurement,
) -> Messages:
    """Yield odometry with the encoder angles, rad, and the odometry of error-free wheels."""
    truths = cache(lambda: list(messages_of(measured.true_messages(stamp_ns, model.frame_id))))
    rows = zip(
        stamp_ns.tolist(),
        messages_of(measured.messages(stamp_ns, model.frame_id)),
        np.hstack([measured.wheel_angle, measured.steering_angle]),
        strict=True,
    )
    for k, (stamp, row, joints) in enumerate(rows):
        yield (row, joint_message(stamp, model.drive.names, joints)), partial(_item, truths, k)


def _true_pose(model: VisionModel, measured: VisionMeasurement, stamp: int, k: int) -> PoseStamped:
    """Return the true pose."""
    position, orientation = measured.true_position[k], measured.true_orientation[k]
    return pose_message(stamp, model.frame_id, position, orientation)


IMU = SensorOutput(
    ImuSettings,
    ('~/truth/bias', TwistStamped),
    _with_error(_imu_error),
    on_ready=_offer_hector_services,
)
GPS = SensorOutput(
    GpsSettings,
    ('~/truth/position_error', Vector3Stamped),
    _with_error(_gps_error),
    # A position that cannot be converted must not affect its neighbours.
    chunk=1,
)
MAG = SensorOutput(
    MagnetometerSettings, ('~/truth/error', Vector3Stamped), _with_error(_mag_error)
)
CAMERA = SensorOutput(
    CameraSettings,
    ('~/truth/features', PointCloud2),
    _camera_messages,
    topics_before={'camera/camera_info': CameraInfo},
    topics_after={'camera/pose': PoseWithCovarianceStamped},
    on_ready=_refuse_empty_world,
)
WHEELS = SensorOutput(
    SensorSettings,
    ('~/truth/odometry', Odometry),
    _wheel_messages,
    topics_after={'wheel/joint_states': JointState},
)
VISION = SensorOutput(WorldSettings, ('~/truth/pose', PoseStamped), _with_error(_true_pose))

OUTPUTS: Registry[SensorOutput] = Registry(
    'sim2real_sensors.sensor_outputs',
    'the output of a kind of sensor',
    lambda candidate: isinstance(candidate, SensorOutput),
    {name: f'{__name__}:{name.upper()}' for name in KINDS.names(installed=False)},
)
"""Output by kind of sensor."""
