# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Several sensor nodes in one process, each with its namespace and model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sim_sensors.core.errors import ParameterError
from sim_sensors.sensor.catalogue import KINDS
from .outputs import OUTPUTS
from .parameters import NodeParameters, ParameterNode
from .running import run
from .sensor_node import SensorNode
from .truth_topics import ODOMETRY_TOPIC

_NAME = 'sensors_node'


def sensor_nodes(**node_options: Any) -> list[Node]:
    """Return a parent node with the parameter `sensors`, and a node for each listed sensor.

    A sensor is NAMESPACE/KIND or KIND, with a kind of `KINDS`: `front/imu` is an `imu_node` in the
    namespace `front` below that of the process. The text is also the default of the label
    `sensor`, so that two sensors draw different noise. All sensors subscribe to the topic that
    `ground_truth/odometry` is for the process. A wrong parameter raises ParameterError.
    """
    parent = ParameterNode(
        _NAME, automatically_declare_parameters_from_overrides=True, **node_options
    )
    declared = NodeParameters(parent)
    labels = parent.declare_parameter(
        'sensors',
        ['imu', 'gps'],
        ParameterDescriptor(
            description=f'Sensors: NAMESPACE/KIND or KIND, one of {", ".join(KINDS.names())}.',
            read_only=True,
            dynamic_typing=True,
        ),
    ).value
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ParameterError(
            _NAME, 'sensors', f'{labels!r} is not allowed; must be a list such as [imu, front/gps]'
        )
    duplicates = sorted({label for label in labels if labels.count(label) > 1})
    if duplicates:
        raise ParameterError(_NAME, 'sensors', f'{duplicates[0]!r} is listed twice')
    sensors = [_create_sensor(parent, label, **node_options) for label in labels]
    _refuse_unknown([*(sensor.declared for sensor in sensors), declared])
    return [parent, *sensors]


def _refuse_unknown(nodes: Sequence[NodeParameters]) -> None:
    """Refuse unknown parameters; one that is set for all nodes must be known to one of them."""
    common = set.intersection(*(set(node.overrides) for node in nodes))
    allowed = {name for name in common if any(node.has(name) for node in nodes)}
    for node in nodes:
        node.refuse_unknown(allowed=allowed)


def _create_sensor(
    parent: Node, label: str, *, cli_args: Sequence[str] = (), **node_options: Any
) -> SensorNode:
    relative_namespace, _, kind = label.rpartition('/')
    parts = relative_namespace.split('/') if relative_namespace else []
    if kind not in KINDS.names() or not all(part.isidentifier() for part in parts):
        allowed = f'{", ".join(KINDS.names())}, or one in a namespace, such as front/imu'
        raise ParameterError(_NAME, 'sensors', f'{label!r} is not allowed; must be {allowed}')
    namespace = '/'.join([parent.get_namespace().rstrip('/'), *parts]) or '/'
    odometry = parent.resolve_topic_name(ODOMETRY_TOPIC)
    # Rules of the node precede those of the process, which may rename the parent.
    sensor_kind = KINDS.get(kind)
    rules = [f'__node:={sensor_kind.node}', f'__ns:={namespace}', f'{ODOMETRY_TOPIC}:={odometry}']
    arguments = ['--ros-args', *(word for rule in rules for word in ('-r', rule))]
    settings = OUTPUTS.get(kind).settings(sensor=label)
    arguments += cli_args
    return SensorNode(sensor_kind, settings, strict=False, cli_args=arguments, **node_options)


def main(args: Sequence[str] | None = None) -> int:
    """Run the sensors until they are stopped; return the exit status."""
    return run(_NAME, sensor_nodes, args)


if __name__ == '__main__':
    sys.exit(main())
