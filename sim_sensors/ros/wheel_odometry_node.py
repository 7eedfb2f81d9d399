# SPDX-License-Identifier: Apache-2.0
"""The node that measures as the encoders of a robot's wheels do."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState

from sim_sensors.core.measurements import IntArray
from sim_sensors.ros.messages import joint_message, odometry_messages
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_node import MEASUREMENT_QOS, SensorNode
from sim_sensors.ros.sensor_settings import WheelSettings
from sim_sensors.wheels.noise import WheelMeasurement
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel

__all__ = ['WheelOdometryNode', 'main']


class WheelOdometryNode(SensorNode):
    """Publishes nav_msgs/Odometry on `wheel/odometry`, that of wheels without error on
    `~/truth/odometry`, and on `wheel/joint_states` what the encoders tell, in rad.

    Parameters
    ----------
    settings : WheelSettings
        Defaults of the parameters besides those of the model.
    **node_options
        For `rclpy.node.Node`.
    """

    node_name = 'wheel_odometry_node'
    settings_type = WheelSettings
    prefix = 'wheels'
    topic = 'wheel/odometry'
    message_type = Odometry
    truth_topic = '~/truth/odometry'
    truth_type = Odometry

    def __init__(self, settings: WheelSettings | None = None, **node_options: Any) -> None:
        super().__init__(settings, **node_options)
        self._joint_publisher = self.create_publisher(
            JointState,
            'wheel/joint_states',
            MEASUREMENT_QOS,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def messages(
        self, stamp_ns: IntArray, measurement: WheelMeasurement
    ) -> Iterator[tuple[object, object]]:
        """Return odometry with the positions of the joints, and that of wheels without error."""
        model: WheelOdometryModel = self.declared.get(self.prefix)
        frames = (model.frame_id, model.child_frame_id)
        rows = zip(
            stamp_ns.tolist(),
            odometry_messages(measurement.messages(stamp_ns, *frames)),
            np.hstack([measurement.wheel_angle, measurement.steering_angle]),
            odometry_messages(measurement.true_messages(stamp_ns, *frames)),
            strict=True,
        )
        for stamp, told, joints, truth in rows:
            yield (told, joint_message(stamp, model.drive.names, joints)), truth

    def publish(self, measurement: Any) -> None:
        """Publish what was told, and the joints behind it."""
        told, joints = measurement
        super().publish(told)
        self._joint_publisher.publish(joints)


def main(args: Sequence[str] | None = None) -> int:
    """Run a wheel odometry node until it is stopped; return the exit status."""
    return run(WheelOdometryNode.node_name, lambda: [WheelOdometryNode()], args)


if __name__ == '__main__':
    sys.exit(main())
