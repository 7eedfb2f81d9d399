# SPDX-License-Identifier: Apache-2.0
"""The node that measures as an IMU does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from geometry_msgs.msg import TwistStamped
from sensor_msgs.msg import Imu

from sim_sensors.catalogue import load_imu
from sim_sensors.imu import ImuModel, ImuSensor
from sim_sensors.imu_measurement import ImuMeasurement
from sim_sensors.measurements import IntArray
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

    prefix = 'imu'
    topic = 'imu/data'
    message_type = Imu
    truth_topic = '~/truth/bias'
    truth_type = TwistStamped

    def __init__(self, settings: ImuSettings | None = None, **node_options: Any) -> None:
        super().__init__('imu_node', settings or ImuSettings(), **node_options)

    def load(self, model: str) -> ImuModel:
        """Return the model by name or path."""
        return load_imu(model)

    def switch_on(self) -> ImuSensor:
        """Return the IMU in its initial state, with the parameters in force."""
        settings: ImuSettings = self.declared.get()
        model: ImuModel = self.declared.get(self.prefix)
        return model.start(settings.seed, settings.run, settings.sensor, gravity=settings.gravity)

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
    return run('imu_node', lambda: [ImuNode()], args)


if __name__ == '__main__':
    sys.exit(main())
