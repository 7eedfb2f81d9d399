# SPDX-License-Identifier: Apache-2.0
"""The node that measures as an IMU does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from geometry_msgs.msg import TwistStamped, Vector3
from sensor_msgs.msg import Imu
from std_srvs.srv import Trigger

from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import IntArray
from sim_sensors.imu.imu import ImuMeasurement
from sim_sensors.ros.messages import imu_messages, twist_message
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.sensor_settings import ImuSettings

__all__ = ['ImuNode', 'main']


class ImuNode(SensorNode):
    """Publishes sensor_msgs/Imu on `imu/data`, and the biases in it on `~/truth/bias`.

    Parameters
    ----------
    settings : ImuSettings
        Defaults of the parameters besides those of the model.
    **node_options
        For `rclpy.node.Node`.
    """

    node_name = 'imu_node'
    settings_type = ImuSettings
    prefix = 'imu'
    topic = 'imu/data'
    message_type = Imu
    truth_topic = '~/truth/bias'
    truth_type = TwistStamped

    def __init__(self, settings: ImuSettings | None = None, **node_options: Any) -> None:
        super().__init__(settings, **node_options)
        if self._live.sensor.has_settable_bias:
            # Hector's three services. Of its own type hector_gazebo_plugins/SetBias is not on
            # PyPI and no standard service takes a vector, so that two of them are topics.
            self.create_service(Trigger, '~/calibrate', self._on_calibrate)
            self.create_subscription(Vector3, '~/set_rate_bias', self._on_rate_bias, 10)
            self.create_subscription(Vector3, '~/set_accel_bias', self._on_accel_bias, 10)

    def _on_calibrate(self, request: object, response: Any) -> Any:
        self._live.sensor.calibrate()
        response.success = True
        response.message = 'the drift of the gyroscope is zero from the next measurement on'
        return response

    def _on_rate_bias(self, bias: Any) -> None:
        self._set(self._live.sensor.set_gyroscope_bias, bias)

    def _on_accel_bias(self, bias: Any) -> None:
        self._set(self._live.sensor.set_accelerometer_bias, bias)

    def _set(self, change: Callable[[list[float]], None], bias: Any) -> None:
        try:
            change([bias.x, bias.y, bias.z])
        except SensorError as error:
            self.get_logger().error(str(error))

    def world_arguments(self) -> dict[str, Any]:
        """Return the gravity that it measures."""
        return {'gravity': self.declared.get().gravity}

    def messages(
        self, stamp_ns: IntArray, measurement: ImuMeasurement
    ) -> Iterator[tuple[object, object]]:
        """Return measurements, and biases: angular of the gyroscope, linear of the other."""
        frame: str = self.declared.get(self.prefix).frame_id
        rows = imu_messages(measurement.messages(stamp_ns, frame))
        for k, (stamp, row) in enumerate(zip(stamp_ns.tolist(), rows, strict=True)):
            yield (
                row,
                twist_message(
                    stamp,
                    frame,
                    linear=measurement.accelerometer_bias[k],
                    angular=measurement.gyroscope_bias[k],
                ),
            )


def main(args: Sequence[str] | None = None) -> int:
    """Run an IMU node until it is stopped; return the exit status."""
    return run(ImuNode.node_name, lambda: [ImuNode()], args)


if __name__ == '__main__':
    sys.exit(main())
