# SPDX-License-Identifier: Apache-2.0
"""Several sensors in one process, each a node of its own with its namespace and model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sim_sensors.core.errors import ParameterError
from sim_sensors.sensor.catalogue import KINDS
from .outputs import OUTPUTS
from .parameters import NodeParameters
from .running import run
from .sensor_node import SensorNode
from .truth_topics import ODOMETRY_TOPIC

_NAME = 'sensors_node'


def sensor_nodes(**node_options: Any) -> list[Node]:
    """Return a node that names the sensors, and the sensors.

    Its parameter `sensors` lists them as NAMESPACE/KIND or KIND, with the names of `KINDS`.

    `front/imu` is an `imu_node` in the namespace `front` below that of this process. The entry is
    also the default of the label `sensor`, so that two sensors draw different noise. All measure
    the same odometry: the topic that `ground_truth/odometry` is for this process. A wrong
    parameter raises ParameterError.
    """
    parent = Node(_NAME, automatically_declare_parameters_from_overrides=True, **node_options)
    declared = NodeParameters(parent)
    given = parent.declare_parameter(
        'sensors',
        ['imu', 'gps'],
        ParameterDescriptor(
            description=f'Sensors, each NAMESPACE/KIND or KIND, of {", ".join(KINDS.names())}.',
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
    sensors = [_sensor(parent, entry, **node_options) for entry in given]
    _check([*(sensor.declared for sensor in sensors), declared])
    return [parent, *sensors]


def _check(declared: Sequence[NodeParameters]) -> None:
    """Refuse parameters that a node does not have; one for all nodes is that of one of them."""
    of_all = set.intersection(*(set(one.given) for one in declared))
    known = {name for name in of_all if any(one.has(name) for one in declared)}
    for one in declared:
        one.finish(allowed=known)


def _sensor(
    parent: Node, entry: str, *, cli_args: Sequence[str] = (), **node_options: Any
) -> SensorNode:
    space, _, kind = entry.rpartition('/')
    parts = space.split('/') if space else []
    if kind not in KINDS.names() or not all(part.isidentifier() for part in parts):
        allowed = f'{", ".join(KINDS.names())}, or one in a namespace, such as front/imu'
        raise ParameterError(_NAME, 'sensors', f'{entry!r} is not allowed; must be {allowed}')
    namespace = '/'.join([parent.get_namespace().rstrip('/'), *parts]) or '/'
    odometry = parent.resolve_topic_name(ODOMETRY_TOPIC)
    # Rules of the node itself go before those of the process, which may rename the parent.
    one = KINDS.get(kind)
    rules = [f'__node:={one.node}', f'__ns:={namespace}', f'{ODOMETRY_TOPIC}:={odometry}']
    arguments = ['--ros-args', *(word for rule in rules for word in ('-r', rule))]
    settings = OUTPUTS.get(kind).settings(sensor=entry)
    arguments += cli_args
    return SensorNode(one, settings, strict=False, cli_args=arguments, **node_options)


def main(args: Sequence[str] | None = None) -> int:
    """Run the sensors until they are stopped; return the exit status."""
    return run(_NAME, sensor_nodes, args)


if __name__ == '__main__':
    sys.exit(main())
