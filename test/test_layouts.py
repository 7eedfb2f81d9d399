# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of viewers name published topics and existing fields."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
import yaml
from layout_examples import (
    ODOMETRY,
    TOPICS,
    field_of,
    foxglove_fields,
    plotjuggler_fields,
    rviz_fields,
    text,
    values_of_key,
)

from sim_sensors.gps.gps import PAPER_MODELS


def test_the_layout_check_detects_a_wrong_field() -> None:
    field_of('/imu/data.linear_acceleration.x', '.')
    for wrong in ('/imu/data.acceleration.x', '/imu/raw.orientation.x', '/imu/data.orientation'):
        with pytest.raises(AssertionError):
            field_of(wrong, '.')


def test_rviz_shows_only_published_topics() -> None:
    config = yaml.safe_load(text('sim2real.rviz'))
    manager = config['Visualization Manager']
    assert manager['Global Options']['Fixed Frame'] == 'map'
    for display in manager['Displays']:
        assert re.fullmatch(r'rviz_default_plugins/\w+', display['Class'])
        if display['Class'].endswith('Odometry'):
            # A reliable subscription does not match a best-effort publisher.
            assert display['Topic']['Reliability Policy'] == 'Best Effort'
    topics = {topic for topic, _ in rviz_fields()}
    assert {'/ground_truth/odometry', '/odometry/filtered'} <= topics
    assert {TOPICS[topic] for topic in topics} == {ODOMETRY}


def test_foxglove_shows_existing_fields_in_existing_panels() -> None:
    layout = json.loads(text('foxglove.json'))
    panels = layout['configById']
    placed = {layout['layout']}
    for key in ('first', 'second', 'layout'):
        placed |= {value for value in values_of_key(panels, key) if isinstance(value, str)}
    assert placed == set(panels)
    fields = foxglove_fields()
    assert {topic for topic, _ in fields} <= set(TOPICS)
    assert len(fields) > 10


def test_plotjuggler_plots_existing_series() -> None:
    root = ElementTree.fromstring(text('plotjuggler.xml'))
    computed = {}
    for snippet in root.iter('snippet'):
        sources = [snippet.findtext('linked_source')]
        sources += [source.text for source in snippet.find('additional_sources') or ()]
        computed[snippet.get('name')] = sources
        # Every source has its variable in the function.
        variables = set(re.findall(r'\bv\d\b|\bvalue\b', str(snippet.findtext('function'))))
        assert variables == {'value', *(f'v{k}' for k in range(1, len(sources)))}
    (plugin,) = root.iter('plugin')
    assert plugin.get('ID') == root.find('previouslyLoaded_Streamer').get('name')
    subscribed = plugin.find('selected_topics').get('value').split(';')
    assert set(subscribed) <= set(TOPICS)
    assert {topic for topic, _ in plotjuggler_fields()} <= set(subscribed)
    assert len(plotjuggler_fields()) > 10
    plotted = {curve.get('name') for curve in root.iter('curve')}
    assert set(computed) <= plotted
    diagnostics = {series for series in plotted if series.startswith('/diagnostics/')}
    vepd = '/diagnostics//evaluation_node: evaluation/VEPD '
    assert diagnostics == {vepd + model for model in PAPER_MODELS}
