# SPDX-License-Identifier: Apache-2.0
"""The node that tells its pose as a vision system does that sees tags."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped

from sim_sensors.core.measurements import IntArray
from sim_sensors.ros.messages import pose_message, pose_messages
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_settings import VisionSettings
from sim_sensors.ros.world_node import WorldNode
from sim_sensors.vision.gate import VisionMeasurement

__all__ = ['VisionNode', 'main']


class VisionNode(WorldNode):
    """Publishes geometry_msgs/PoseWithCovarianceStamped on `vision/pose` while tags are in view
    and the pose is accepted, and the true pose then on `~/truth/pose`.
    """

    node_name = 'vision_node'
    settings_type = VisionSettings
    prefix = 'vision'
    topic = 'vision/pose'
    message_type = PoseWithCovarianceStamped
    truth_topic = '~/truth/pose'
    truth_type = PoseStamped

    def messages(
        self, stamp_ns: IntArray, measurement: VisionMeasurement
    ) -> Iterator[tuple[object, object]]:
        """Return poses, and what there was to measure."""
        frame: str = self.declared.get(self.prefix).frame_id
        rows = pose_messages(measurement.messages(stamp_ns, frame))
        for k, (stamp, row) in enumerate(zip(stamp_ns.tolist(), rows, strict=True)):
            place, turn = measurement.true_position[k], measurement.true_orientation[k]
            yield row, pose_message(stamp, frame, place, turn)


def main(args: Sequence[str] | None = None) -> int:
    """Run a vision node until it is stopped; return the exit status."""
    return run(VisionNode.node_name, lambda: [VisionNode()], args)


if __name__ == '__main__':
    sys.exit(main())
