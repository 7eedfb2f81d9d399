# SPDX-License-Identifier: Apache-2.0
"""The node that measures as a GPS receiver does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from geometry_msgs.msg import Vector3Stamped
from sensor_msgs.msg import NavSatFix

from sim_sensors.catalogue import load_gps
from sim_sensors.gps import GpsMeasurement, GpsModel, GpsSensor
from sim_sensors.measurements import IntArray
from sim_sensors.ros.messages import fix_messages, vector_message
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.sensor_settings import GpsSettings

__all__ = ['GpsNode', 'main']


class GpsNode(SensorNode):
    """Publishes sensor_msgs/NavSatFix on `gps/fix`, and its errors on `~/truth/position_error`.

    Parameters
    ----------
    settings : GpsSettings
        Defaults of the parameters besides those of the model.
    **node_options
        For `rclpy.node.Node`.
    """

    prefix = 'gps'
    topic = 'gps/fix'
    message_type = NavSatFix
    truth_topic = '~/truth/position_error'
    truth_type = Vector3Stamped
    # A position that cannot be converted must not take its neighbours with it.
    chunk = 1

    def __init__(self, settings: GpsSettings | None = None, **node_options: Any) -> None:
        super().__init__('gps_node', settings or GpsSettings(), **node_options)

    def load(self, model: str) -> GpsModel:
        """Return the model by name or path."""
        return load_gps(model)

    def switch_on(self) -> GpsSensor:
        """Return the receiver in its initial state, with the parameters in force."""
        settings: GpsSettings = self.declared.get()
        model: GpsModel = self.declared.get(self.prefix)
        return model.start(settings.seed, settings.run, settings.sensor, frame=settings.datum)

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
    return run('gps_node', lambda: [GpsNode()], args)


if __name__ == '__main__':
    sys.exit(main())
