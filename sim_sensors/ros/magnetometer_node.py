# SPDX-License-Identifier: Apache-2.0
"""The node that measures as a magnetometer does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from geometry_msgs.msg import Vector3Stamped
from sensor_msgs.msg import MagneticField

from sim_sensors.core.measurements import IntArray
from sim_sensors.magnetometer.magnetometer import MagneticMeasurement
from sim_sensors.ros.messages import magnetic_field_messages, vector_message
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_settings import MagnetometerSettings
from sim_sensors.ros.world_node import WorldNode

__all__ = ['MagnetometerNode', 'main']


class MagnetometerNode(WorldNode):
    """Publishes sensor_msgs/MagneticField on `imu/mag`, and what in it is not the Earth's field on
    `~/truth/error`.
    """

    node_name = 'magnetometer_node'
    settings_type = MagnetometerSettings
    prefix = 'mag'
    topic = 'imu/mag'
    message_type = MagneticField
    truth_topic = '~/truth/error'
    truth_type = Vector3Stamped

    def messages(
        self, stamp_ns: IntArray, measurement: MagneticMeasurement
    ) -> Iterator[tuple[object, object]]:
        """Return measurements, and their errors in the sensor's axes, T."""
        frame: str = self.declared.get(self.prefix).frame_id
        rows = magnetic_field_messages(measurement.messages(stamp_ns, frame))
        for k, (stamp, row) in enumerate(zip(stamp_ns.tolist(), rows, strict=True)):
            yield row, vector_message(stamp, frame, measurement.error[k])


def main(args: Sequence[str] | None = None) -> int:
    """Run a magnetometer node until it is stopped; return the exit status."""
    return run(MagnetometerNode.node_name, lambda: [MagnetometerNode()], args)


if __name__ == '__main__':
    sys.exit(main())
