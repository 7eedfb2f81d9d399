# SPDX-License-Identifier: Apache-2.0
"""The node that sees as a camera with a feature tracker does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CameraInfo, PointCloud2

from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.measurement import CameraMeasurement
from sim_sensors.camera.scene import Scene
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import IntArray
from sim_sensors.ros.messages import camera_info, feature_messages, pose_messages
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_node import MEASUREMENT_QOS
from sim_sensors.ros.sensor_settings import CameraSettings
from sim_sensors.ros.world_node import WorldNode

__all__ = ['CameraNode', 'main']


class CameraNode(WorldNode):
    """Publishes feature tracks (sensor_msgs/PointCloud2) on `camera/features`, the camera's
    numbers with each on `camera/camera_info`, the body's pose on `camera/pose` where the features
    give one, and what is really at the features' places on `~/truth/features`.

    Parameters
    ----------
    settings : CameraSettings
        Defaults of the parameters besides those of the model.
    **node_options
        For `rclpy.node.Node`.
    """

    node_name = 'camera_node'
    settings_type = CameraSettings
    prefix = 'camera'
    topic = 'camera/features'
    message_type = PointCloud2
    truth_topic = '~/truth/features'
    truth_type = PointCloud2

    def __init__(self, settings: CameraSettings | None = None, **node_options: Any) -> None:
        super().__init__(settings, **node_options)
        if not len(Scene.of(self.world)):
            raise ParameterError(
                self.get_name(),
                'world',
                f'{self.declared.get().world!r} has nothing to see; must be one with landmarks, '
                'chessboards or tags',
            )
        overridable = QoSOverridingOptions.with_default_policies()
        self._pose_publisher = self.create_publisher(
            PoseWithCovarianceStamped,
            'camera/pose',
            MEASUREMENT_QOS,
            qos_overriding_options=overridable,
        )
        self._info_publisher = self.create_publisher(
            CameraInfo, 'camera/camera_info', MEASUREMENT_QOS, qos_overriding_options=overridable
        )

    def messages(
        self, stamp_ns: IntArray, measurement: CameraMeasurement
    ) -> Iterator[tuple[object, object]]:
        """Return frames (features, camera info, pose or None each), and the true features."""
        model: CameraModel = self.declared.get(self.prefix)
        frame = model.frame_id
        rows = feature_messages(measurement.messages(stamp_ns, frame))
        truths = feature_messages(measurement.true_messages(stamp_ns, frame))
        poses = pose_messages(measurement.poses(stamp_ns, self.declared.get().world_frame))
        for k, (row, truth) in enumerate(zip(rows, truths, strict=True)):
            pose = next(poses) if measurement.has_pose[k] else None
            yield (row, camera_info(model.intrinsics, int(stamp_ns[k]), frame), pose), truth

    def publish(self, measurement: Any) -> None:
        """Publish one frame: the pose follows the features that it comes from."""
        features, info, pose = measurement
        self._info_publisher.publish(info)
        super().publish(features)
        if pose is not None:
            self._pose_publisher.publish(pose)


def main(args: Sequence[str] | None = None) -> int:
    """Run a camera node until it is stopped; return the exit status."""
    return run(CameraNode.node_name, lambda: [CameraNode()], args)


if __name__ == '__main__':
    sys.exit(main())
