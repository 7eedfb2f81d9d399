# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The Gazebo world is consistent and has the topics of a recording; Gazebo is not run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml


@pytest.fixture(scope='module')
def world(repository: Path) -> ElementTree.Element:
    path = repository / 'gazebo_ws_plugins' / 'worlds' / 'sim2real_field.sdf'
    element = ElementTree.parse(path).getroot().find('world')
    assert element is not None
    return element


def test_joints_connect_links_that_exist(world: ElementTree.Element) -> None:
    model = world.find("model[@name='car']")
    links = {link.get('name') for link in model.findall('link')}
    children = [joint.findtext('child') for joint in model.findall('joint')]
    assert {joint.findtext('parent') for joint in model.findall('joint')} <= links
    # A tree: every link but the base is the child of exactly one joint.
    assert sorted(children) == sorted(links - {'base_link'})
    joints = {joint.get('name') for joint in model.findall('joint')}
    steering = model.find("plugin[@name='gz::sim::systems::AckermannSteering']")
    assert steering is not None
    assert {part.text for part in steering if part.tag.endswith('_joint')} == joints


def test_inertias_are_physically_possible(world: ElementTree.Element) -> None:
    for inertial in world.iter('inertial'):
        moments = sorted(
            float(inertial.findtext(f'inertia/{axis}')) for axis in ('ixx', 'iyy', 'izz')
        )
        assert float(inertial.findtext('mass')) > 0
        assert moments[0] > 0
        assert moments[0] + moments[1] >= moments[2]


def test_wheels_stand_on_the_ground_where_the_steering_expects_them(
    world: ElementTree.Element,
) -> None:
    model = world.find("model[@name='car']")
    steering = model.find("plugin[@name='gz::sim::systems::AckermannSteering']")
    height = float(model.findtext('pose').split()[2])
    assert height == pytest.approx(float(steering.findtext('wheel_radius')), abs=1e-3)
    poses = {
        link.get('name'): np.array(link.findtext('pose').split(), float)
        for link in model.findall('link')
        if link.get('name').endswith('wheel')
    }
    front, rear = poses['front_left_wheel'], poses['rear_left_wheel']
    assert front[0] - rear[0] == pytest.approx(float(steering.findtext('wheel_base')), abs=1e-4)
    track = front[1] - poses['front_right_wheel'][1]
    assert track == pytest.approx(float(steering.findtext('wheel_separation')))
    # The axle (z of the rolled cylinder) points left, so positive speed drives forward.
    roll = front[3]
    assert [0, -np.sin(roll), np.cos(roll)] == pytest.approx([0, 1, 0], abs=1e-5)


def test_every_bridged_topic_exists_in_the_world(
    world: ElementTree.Element, repository: Path
) -> None:
    text = (repository / 'gazebo_ws_plugins' / 'config' / 'bridge.yaml').read_text('utf-8')
    bridge = {entry['ros_topic_name']: entry for entry in yaml.safe_load(text)}
    topics = {element.text for tag in ('topic', 'odom_topic') for element in world.iter(tag)}
    truth = {f'ground_truth/{name}' for name in ('odometry', 'imu', 'fix')}
    assert {*truth, '/clock'} <= set(bridge)
    # Gazebo publishes /clock by itself.
    assert {entry['gz_topic_name'] for entry in bridge.values()} <= topics | {'/clock'}


def test_sensor_periods_are_whole_simulation_steps(world: ElementTree.Element) -> None:
    step = float(world.findtext('physics/max_step_size'))
    for sensor in world.iter('sensor'):
        steps = 1 / float(sensor.findtext('update_rate')) / step
        assert steps == pytest.approx(round(steps), abs=1e-9)
