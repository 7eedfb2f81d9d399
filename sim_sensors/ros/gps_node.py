# SPDX-License-Identifier: Apache-2.0
"""The node that measures as a GPS receiver does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from geometry_msgs.msg import Vector3Stamped
from sensor_msgs.msg import NavSatFix

from sim_sensors.core.measurements import IntArray
from sim_sensors.gps.gps import GpsMeasurement
from sim_sensors.ros.messages import fix_messages, vector_message
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.sensor_settings import GpsSettings

__all__ = ['GpsNode', 'main']


class GpsNode(SensorNode):
    """Publishes sensor_msgs/NavSatFix on `gps/fix`, and its errors on `~/truth/position_error`."""

    node_name = 'gps_node'
    settings_type = GpsSettings
    prefix = 'gps'
    topic = 'gps/fix'
    message_type = NavSatFix
    truth_topic = '~/truth/position_error'
    truth_type = Vector3Stamped
    # A position that cannot be converted must not take its neighbours with it.
    chunk = 1

    def world_arguments(self) -> dict[str, Any]:
        """Return where on the Earth it is."""
        return {'frame': self.declared.get().datum}

    def messages(
        self, stamp_ns: IntArray, measurement: GpsMeasurement
    ) -> Iterator[tuple[object, object]]:
        """Return fixes, and their errors east, north, up in the frame that the datum fixes."""
        frame: str = self.declared.get(self.prefix).frame_id
        rows = fix_messages(measurement.messages(stamp_ns, frame))
        for k, (stamp, row) in enumerate(zip(stamp_ns.tolist(), rows, strict=True)):
            yield row, vector_message(stamp, 'map', measurement.position_error[k])


def main(args: Sequence[str] | None = None) -> int:
    """Run a GPS node until it is stopped; return the exit status."""
    return run(GpsNode.node_name, lambda: [GpsNode()], args)


if __name__ == '__main__':
    sys.exit(main())
