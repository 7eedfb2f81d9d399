# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of the viewers: the topics and fields that they show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import yaml
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from sim_sensors.core.shipped import config_path

ODOMETRY = 'nav_msgs/msg/Odometry'
# Topics that launches and nodes publish in the root namespace; test_ros_* check the nodes.
TOPICS = {
    '/ground_truth/odometry': ODOMETRY, '/odometry/filtered': ODOMETRY, '/odometry/gps': ODOMETRY,
    '/wheel/odometry': ODOMETRY, '/wheel_odometry_node/truth/odometry': ODOMETRY,
    '/real/odometry/filtered': ODOMETRY,
    '/sim/odometry/filtered': ODOMETRY, '/imu/data': 'sensor_msgs/msg/Imu',
    '/gps/fix': 'sensor_msgs/msg/NavSatFix',
    '/imu_node/truth/bias': 'geometry_msgs/msg/TwistStamped',
    '/gps_node/truth/position_error': 'geometry_msgs/msg/Vector3Stamped',
    '/evaluation_node/vepd': 'std_msgs/msg/String',
    '/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
}  # fmt: skip
EVALUATION = ('/real/', '/sim/', '/evaluation_node/')
"""Beginnings of the topics of evaluate.launch.py; all others are those of demo.launch.py."""
STORE = get_typestore(Stores.ROS2_JAZZY)
Field = tuple[str, tuple[str, ...]]
"""Topic and path of a field in its message; an empty path for the whole message."""


def text(name: str) -> str:
    return config_path('layouts', name).read_text(encoding='utf-8')


def field_of(path: str, separator: str) -> Field:
    """Return topic and field of a path such as /imu/data.linear_acceleration.x.

    The path must end at a number or text.
    """
    topic = max((t for t in TOPICS if path.startswith(t + separator)), key=len, default=None)
    assert topic is not None, path
    kind = TOPICS[topic]
    names = path[len(topic) + 1 :].split(separator)
    for k, name in enumerate(names):
        fields = dict(STORE.fielddefs[kind][1])
        assert name in fields, f'{path}: {kind} has no {name}'
        node, inner = fields[name]
        assert node in (Nodetype.BASE, Nodetype.NAME), path
        assert (node is Nodetype.BASE) == (k == len(names) - 1), path
        if node is Nodetype.NAME:
            kind = inner
    return topic, tuple(names)


def values_of_key(tree: Any, key: str) -> Iterator[Any]:
    """Yield all values of a key at any depth."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key:
                yield value
            yield from values_of_key(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from values_of_key(value, key)


def rviz_fields() -> set[Field]:
    displays = yaml.safe_load(text('sim2real.rviz'))['Visualization Manager']['Displays']
    return {(display['Topic']['Value'], ()) for display in displays if 'Topic' in display}


def foxglove_fields() -> set[Field]:
    fields: set[Field] = set()
    for panel in json.loads(text('foxglove.json'))['configById'].values():
        settings = [*panel.get('paths', ())]
        settings += [panel[key] for key in ('xAxisPath', 'topicPath') if key in panel]
        for setting in settings:
            path = setting['value'] if isinstance(setting, dict) else setting
            fields.add(field_of(path, '.'))
        whole = [*panel.get('topics', ()), *panel.get('topicColors', ())]
        whole += [panel[key] for key in ('topicToRender', 'followTopic') if key in panel]
        fields |= {(topic, ()) for topic in whole}
    return fields


def plotjuggler_fields() -> set[Field]:
    """Fields of the curves and of the computed series, without those of the diagnostics."""
    root = ElementTree.fromstring(text('plotjuggler.xml'))
    series: set[str] = set()
    for snippet in root.iter('snippet'):
        series.add(str(snippet.findtext('linked_source')))
        series |= {str(source.text) for source in snippet.find('additional_sources') or ()}
    computed = {snippet.get('name') for snippet in root.iter('snippet')}
    for curve in root.iter('curve'):
        xy = {curve.get('curve_x'), curve.get('curve_y')} - {None}
        series |= {str(name) for name in xy or {curve.get('name')} - computed}
    return {field_of(name, '/') for name in series if not name.startswith('/diagnostics/')}


def demo_fields() -> set[Field]:
    """Fields in any layout that the demo publishes."""
    fields = rviz_fields() | foxglove_fields() | plotjuggler_fields()
    return {field for field in fields if not field[0].startswith(EVALUATION)}
