# SPDX-License-Identifier: Apache-2.0
"""What the node of each kind of sensor publishes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

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

from sim_sensors.camera.camera import CameraModel, Scene
from sim_sensors.camera.features import CameraMeasurement
from sim_sensors.core.errors import ParameterError, SensorError
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.registry import Registry
from sim_sensors.gps.gps import GpsMeasurement, GpsModel
from sim_sensors.imu.imu import ImuMeasurement, ImuModel
from sim_sensors.magnetometer.magnetometer import MagneticMeasurement, Magnetometer
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.vision.vision_pose import VisionMeasurement, VisionModel
from sim_sensors.wheels.wheel_odometry import WheelMeasurement, WheelOdometryModel
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

Messages = Iterator[tuple[tuple[object, ...], object]]


@dataclasses.dataclass(frozen=True, eq=False)
class SensorOutput:
    """What the node of a kind of sensor does beyond what all do."""

    settings: type[SensorSettings]  # its parameters besides those of the model
    truth: tuple[str, type]  # private topic and message type of the errors in the measurements
    # Takes the model, the settings, stamps `(n,)` ns and the measurement. Gives for each sample
    # the messages, as the topics are ordered, with None for one that is not sent, and the error.
    messages: Callable[[Any, Any, IntArray, Any], Messages]
    # Message types of further topics, which are sent before or after that of the measurement
    before: Mapping[str, type] = dataclasses.field(default_factory=dict)
    after: Mapping[str, type] = dataclasses.field(default_factory=dict)
    chunk: int = 1000  # measurements made at once; see `LiveSensor`
    # Called with a node when it is ready, for services of its own and last checks
    opened: Callable[[Any], None] = lambda node: None


def _with_error(error: Callable[[Any, Any, int, int], object]) -> Callable[..., Messages]:
    """Return what gives the measurements and, of model, measurement, stamp and row, the error."""

    def messages(model: Any, settings: object, stamp_ns: IntArray, measured: Any) -> Messages:
        rows = messages_of(measured.messages(stamp_ns, model.frame_id))
        for k, (stamp, row) in enumerate(zip(stamp_ns.tolist(), rows, strict=True)):
            yield (row,), error(model, measured, stamp, k)

    return messages


def _imu_error(model: ImuModel, measured: ImuMeasurement, stamp: int, k: int) -> TwistStamped:
    """Return the biases: angular of the gyroscope, linear of the other."""
    linear, angular = measured.accelerometer_bias[k], measured.gyroscope_bias[k]
    return twist_message(stamp, model.frame_id, linear=linear, angular=angular)


def _imu_opened(node: Any) -> None:
    """Offer Hector's three services where the drift of the biases can be set.

    Of its own type hector_gazebo_plugins/SetBias is not on PyPI and no standard service takes a
    vector, so that two of them are topics.
    """
    if not node.sensor.has_settable_bias:
        return

    def calibrate(request: object, response: Any) -> Any:
        node.sensor.calibrate()
        response.success = True
        response.message = 'the drift of the gyroscope is zero from the next measurement on'
        return response

    def set_by(name: str) -> Callable[[Any], None]:
        def take(bias: Any) -> None:
            try:
                # That of now: a reset switches another one on.
                getattr(node.sensor, name)([bias.x, bias.y, bias.z])
            except SensorError as error:
                node.get_logger().error(str(error))

        return take

    node.create_service(Trigger, '~/calibrate', calibrate)
    node.create_subscription(Vector3, '~/set_rate_bias', set_by('set_gyroscope_bias'), 10)
    node.create_subscription(Vector3, '~/set_accel_bias', set_by('set_accelerometer_bias'), 10)


def _gps_error(model: GpsModel, measured: GpsMeasurement, stamp: int, k: int) -> Vector3Stamped:
    """Return the errors east, north, up in the frame that the datum fixes."""
    return vector_message(stamp, 'map', measured.position_error[k])


def _mag_error(
    model: Magnetometer, measured: MagneticMeasurement, stamp: int, k: int
) -> Vector3Stamped:
    """Return what in it is not the Earth's field, in the sensor's axes, T."""
    return vector_message(stamp, model.frame_id, measured.error[k])


def _camera(
    model: CameraModel, settings: CameraSettings, stamp_ns: IntArray, measured: CameraMeasurement
) -> Messages:
    """Return camera info, features and the pose or None, and what is really at those places."""
    frame = model.frame_id
    rows = feature_messages(measured.messages(stamp_ns, frame))
    truths = feature_messages(measured.true_messages(stamp_ns, frame))
    poses = messages_of(measured.poses(stamp_ns, settings.world_frame))
    for k, (row, truth) in enumerate(zip(rows, truths, strict=True)):
        pose = next(poses) if measured.has_pose[k] else None
        yield (camera_info(model.intrinsics, int(stamp_ns[k]), frame), row, pose), truth


def _camera_opened(node: Any) -> None:
    """Refuse a world with nothing to see."""
    if not len(Scene.from_world(node.world)):
        raise ParameterError(
            node.get_name(),
            'world',
            f'{node.declared.get().world!r} has nothing to see; must be one with landmarks, '
            'chessboards or tags',
        )


def _wheels(
    model: WheelOdometryModel,
    settings: SensorSettings,
    stamp_ns: IntArray,
    measured: WheelMeasurement,
) -> Messages:
    """Return odometry with what the encoders tell, in rad, and that of wheels without error."""
    rows = zip(
        stamp_ns.tolist(),
        messages_of(measured.messages(stamp_ns, model.frame_id)),
        np.hstack([measured.wheel_angle, measured.steering_angle]),
        messages_of(measured.true_messages(stamp_ns, model.frame_id)),
        strict=True,
    )
    for stamp, row, joints, truth in rows:
        yield (row, joint_message(stamp, model.drive.names, joints)), truth


def _true_pose(model: VisionModel, measured: VisionMeasurement, stamp: int, k: int) -> PoseStamped:
    """Return what there was to measure."""
    place, turn = measured.true_position[k], measured.true_orientation[k]
    return pose_message(stamp, model.frame_id, place, turn)


IMU = SensorOutput(
    ImuSettings, ('~/truth/bias', TwistStamped), _with_error(_imu_error), opened=_imu_opened
)
GPS = SensorOutput(
    GpsSettings,
    ('~/truth/position_error', Vector3Stamped),
    _with_error(_gps_error),
    # A position that cannot be converted must not take its neighbours with it.
    chunk=1,
)
MAG = SensorOutput(
    MagnetometerSettings, ('~/truth/error', Vector3Stamped), _with_error(_mag_error)
)
CAMERA = SensorOutput(
    CameraSettings,
    ('~/truth/features', PointCloud2),
    _camera,
    before={'camera/camera_info': CameraInfo},
    # After the features that it comes from.
    after={'camera/pose': PoseWithCovarianceStamped},
    opened=_camera_opened,
)
WHEELS = SensorOutput(
    SensorSettings,
    ('~/truth/odometry', Odometry),
    _wheels,
    after={'wheel/joint_states': JointState},
)
VISION = SensorOutput(WorldSettings, ('~/truth/pose', PoseStamped), _with_error(_true_pose))

OUTPUTS: Registry[SensorOutput] = Registry(
    'sim2real_sensors.sensor_outputs',
    'the output of a kind of sensor',
    lambda one: isinstance(one, SensorOutput),
    {name: f'{__name__}:{name.upper()}' for name in KINDS.names(installed=False)},
)
"""Outputs by kind of sensor."""
