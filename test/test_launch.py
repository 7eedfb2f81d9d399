# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Launch files start nodes that exist, with arguments a user can find out about; without ROS."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from catkin_pkg.package import parse_package
from launch_examples import FILES, calls, executables, tree

from sim2real_eval.ros_launch.arguments import ARGUMENTS, NAVSAT, check, required_packages
from sim2real_eval.ros_launch.sensors import world_configuration
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_names, config_path
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from sim_sensors.world.world import load_world

# What to look with and what simulates is the user's choice, and no dependency.
VIEWERS = {'rviz2', 'plotjuggler', 'foxglove_bridge', 'ros_gz_bridge', 'ros_gz_sim'}
# rosbag2_storage_default_plugins brings it; Humble has no package of that name.
UNNAMED = {'rosbag2_storage_sqlite3'}


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('runs', 'x'),
        ('runs', '0'),
        ('runs', '1.5'),
        ('settle', 'nan'),
        ('duration', '-1'),
        ('gps_z', 'high'),
        ('sensors', 'imu'),
        ('sensors', '[]'),
        ('sensors', '[imu'),
        ('sensors', '[imu, gsp]'),
        ('sensors_params_file', '/gone.yaml'),
        ('scenario', 'drive_lin'),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ParameterError, match=name):
        check(name, value)


def test_all_sensors_of_a_launch_use_one_world() -> None:
    configuration = world_configuration('chessboard')
    world = load_world('chessboard')
    worlds = {configuration[f'{kind}_world'] for kind in ('mag', 'camera', 'vision')}
    assert worlds == {'chessboard'}
    assert float(configuration['gravity']) == world.gravity != STANDARD_GRAVITY
    assert float(configuration['latitude_deg']) == world.frame.latitude_deg == 45.48


def test_a_scenario_can_be_a_class_in_a_file() -> None:
    check('scenario', 'my_motion.py:Spiral')


@pytest.mark.parametrize('file', FILES)
def test_required_packages_are_declared_dependencies_and_are_checked_first(
    file: str, repository: Path
) -> None:
    depends = {d.name for d in parse_package(str(repository / 'package.xml')).exec_depends}
    for judge, view in itertools.product(ARGUMENTS['judge'].choices, ARGUMENTS['view'].choices):
        for storage in ARGUMENTS['storage'].choices:
            arguments = {'judge': judge, 'view': view, 'storage': storage}
            arguments |= dict.fromkeys(('bridge_file', 'robot_file', 'out'), 'any')
            arguments['sensor_transforms'] = 'true'
            assert set(required_packages(arguments)) <= depends | VIEWERS | UNNAMED
    # `ros2 launch` itself, too.
    assert 'ros2launch' in depends
    foreign = {package for package, _ in executables(tree(file))} - {'sim2real_sensors'}
    starts = foreign or calls(tree(file), 'include', 'static_transform', 'ExecuteProcess')
    assert bool(calls(tree(file), 'check_packages')) == bool(starts)


def test_every_profile_has_parameters_for_both_nodes_in_any_namespace() -> None:
    names = config_names('judge')
    profiles = ARGUMENTS['profile'].choices
    assert set(profiles) == {'paper_released', 'clean'}
    for profile in profiles:
        assert {profile, profile + NAVSAT} <= set(names)
        for name in (profile, profile + NAVSAT):
            text = config_path('judge', f'{name}.yaml').read_text(encoding='utf-8')
            content = yaml.safe_load(text)
            # A node name as the key would match in the root namespace only.
            assert list(content) == ['/**'], name
            assert list(content['/**']) == ['ros__parameters'], name
