# SPDX-License-Identifier: Apache-2.0
"""Layouts of viewers name published topics and existing fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import PAPER_MODELS

ODOMETRY = 'nav_msgs/msg/Odometry'
# Topics that launches and nodes publish in the root namespace; test_ros_* check the nodes.
TOPICS = {
    '/ground_truth/odometry': ODOMETRY, '/odometry/filtered': ODOMETRY, '/odometry/gps': ODOMETRY,
    '/wheel/odometry': ODOMETRY, '/real/odometry/filtered': ODOMETRY,
    '/sim/odometry/filtered': ODOMETRY, '/imu/data': 'sensor_msgs/msg/Imu',
    '/gps/fix': 'sensor_msgs/msg/NavSatFix',
    '/imu_node/truth/bias': 'geometry_msgs/msg/TwistStamped',
    '/gps_node/truth/position_error': 'geometry_msgs/msg/Vector3Stamped',
    '/evaluation_node/vepd': 'std_msgs/msg/String',
    '/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
}  # fmt: skip
STORE = get_typestore(Stores.ROS2_JAZZY)


def check_field(path: str, separator: str) -> None:
    """Check that a path such as /imu/data.linear_acceleration.x ends at a number or text."""
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


def text(name: str) -> str:
    return config_path('layouts', name).read_text(encoding='utf-8')


def test_the_layout_check_detects_a_wrong_field() -> None:
    check_field('/imu/data.linear_acceleration.x', '.')
    for wrong in ('/imu/data.acceleration.x', '/imu/raw.orientation.x', '/imu/data.orientation'):
        with pytest.raises(AssertionError):
            check_field(wrong, '.')


def test_rviz_shows_only_published_topics() -> None:
    config = yaml.safe_load(text('sim2real.rviz'))
    manager = config['Visualization Manager']
    assert manager['Global Options']['Fixed Frame'] == 'map'
    topics = {}
    for display in manager['Displays']:
        assert re.fullmatch(r'rviz_default_plugins/\w+', display['Class'])
        if display['Class'].endswith('Odometry'):
            topic = display['Topic']
            # A reliable subscription does not match a best-effort publisher.
            assert topic['Reliability Policy'] == 'Best Effort'
            topics[topic['Value']] = ODOMETRY
    assert topics
    assert topics.items() <= TOPICS.items()
    assert {'/ground_truth/odometry', '/odometry/filtered'} <= set(topics)


def test_foxglove_shows_existing_fields_in_existing_panels() -> None:
    layout = json.loads(text('foxglove.json'))
    panels = layout['configById']
    placed = {layout['layout']}
    for key in ('first', 'second', 'layout'):
        placed |= {value for value in values_of_key(panels, key) if isinstance(value, str)}
    assert placed == set(panels)
    paths = 0
    for name, panel in panels.items():
        for line in panel.get('paths', ()):
            check_field(line['value'], '.')
            paths += 1
        for key in ('xAxisPath', 'topicPath'):
            if key in panel:
                setting = panel[key]
                check_field(setting['value'] if isinstance(setting, dict) else setting, '.')
        for topic in (*panel.get('topics', ()), *panel.get('topicColors', ())):
            assert topic in TOPICS, name
        assert panel.get('topicToRender', '/diagnostics') == '/diagnostics'
        assert panel.get('followTopic', '/gps/fix') == '/gps/fix'
    assert paths > 10


def test_plotjuggler_plots_existing_series() -> None:
    root = ElementTree.fromstring(text('plotjuggler.xml'))
    computed = {}
    for snippet in root.iter('snippet'):
        sources = [snippet.findtext('linked_source')]
        sources += [source.text for source in snippet.find('additional_sources') or ()]
        for source in sources:
            check_field(str(source), '/')
        computed[snippet.get('name')] = sources
        # Every source has its variable in the function.
        variables = set(re.findall(r'\bv\d\b|\bvalue\b', str(snippet.findtext('function'))))
        assert variables == {'value', *(f'v{k}' for k in range(1, len(sources)))}
    (plugin,) = root.iter('plugin')
    assert plugin.get('ID') == root.find('previouslyLoaded_Streamer').get('name')
    subscribed = plugin.find('selected_topics').get('value').split(';')
    assert set(subscribed) <= set(TOPICS)
    plotted = set()
    for curve in root.iter('curve'):
        xy = curve.get('curve_x'), curve.get('curve_y')
        plotted |= set(xy) if xy[0] else {curve.get('name')}
    assert len(plotted) > 10
    assert set(computed) <= plotted
    diagnostics = {series for series in plotted if series.startswith('/diagnostics/')}
    for series in plotted - set(computed) - diagnostics:
        check_field(series, '/')
        assert any(series.startswith(f'{topic}/') for topic in subscribed)
    vepd = '/diagnostics//evaluation_node: evaluation/VEPD '
    assert diagnostics == {vepd + model for model in PAPER_MODELS}
