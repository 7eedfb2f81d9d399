# SPDX-License-Identifier: Apache-2.0
"""Several sensors in one process, each a node of its own with its namespace and model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sim_sensors.core.errors import ParameterError
from sim_sensors.ros.camera_node import CameraNode
from sim_sensors.ros.gps_node import GpsNode
from sim_sensors.ros.imu_node import ImuNode
from sim_sensors.ros.magnetometer_node import MagnetometerNode
from sim_sensors.ros.odometry_topic import ODOMETRY_TOPIC
from sim_sensors.ros.running import run
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.vision_node import VisionNode
from sim_sensors.ros.wheel_odometry_node import WheelOdometryNode

__all__ = ['main', 'sensor_nodes']

_NAME = 'sensors_node'
_KINDS: dict[str, type[SensorNode]] = {
    node.prefix: node
    for node in (ImuNode, GpsNode, MagnetometerNode, CameraNode, WheelOdometryNode, VisionNode)
}


def sensor_nodes(**node_options: Any) -> list[Node]:
    """Return a node that names the sensors, and the sensors.

    Its parameter `sensors` lists them as NAMESPACE/KIND or KIND; kinds: imu, gps, mag, camera,
    wheels, vision.

    `front/imu` is an `imu_node` in the namespace `front` below that of this process. The entry is
    also the default of the label `sensor`, so that two sensors draw different noise. All measure
    the same odometry: the topic that `ground_truth/odometry` is for this process.

    Raises
    ------
    ParameterError
        When a parameter is wrong.
    """
    parent = Node(_NAME, **node_options)
    given = parent.declare_parameter(
        'sensors',
        ['imu', 'gps'],
        ParameterDescriptor(
            description=f'Sensors, each NAMESPACE/KIND or KIND; kinds: {", ".join(_KINDS)}.',
            read_only=True,
            dynamic_typing=True,
        ),
    ).value
    if not isinstance(given, list) or not all(isinstance(entry, str) for entry in given):
        raise ParameterError(
            _NAME, 'sensors', f'{given!r} is not allowed; must be a list such as [imu, front/gps]'
        )
    doubled = sorted({entry for entry in given if given.count(entry) > 1})
    if doubled:
        raise ParameterError(_NAME, 'sensors', f'{doubled[0]!r} is named twice')
    return [parent, *(_sensor(parent, entry, node_options) for entry in given)]


def _sensor(parent: Node, entry: str, node_options: dict[str, Any]) -> SensorNode:
    space, _, kind = entry.rpartition('/')
    parts = space.split('/') if space else []
    if kind not in _KINDS or not all(part.isidentifier() for part in parts):
        allowed = f'{", ".join(_KINDS)}, or one in a namespace, such as front/imu'
        raise ParameterError(_NAME, 'sensors', f'{entry!r} is not allowed; must be {allowed}')
    namespace = '/'.join([parent.get_namespace().rstrip('/'), *parts]) or '/'
    odometry = parent.resolve_topic_name(ODOMETRY_TOPIC)
    # Rules of the node itself go before those of the process, which may rename the parent.
    node: Any = _KINDS[kind]
    rules = [f'__node:={node.node_name}', f'__ns:={namespace}', f'{ODOMETRY_TOPIC}:={odometry}']
    arguments = ['--ros-args', *(word for rule in rules for word in ('-r', rule))]
    sensor: SensorNode = node(node.settings_type(sensor=entry), cli_args=arguments, **node_options)
    return sensor


def main(args: Sequence[str] | None = None) -> int:
    """Run the sensors until they are stopped; return the exit status."""
    return run(_NAME, sensor_nodes, args)


if __name__ == '__main__':
    sys.exit(main())
