# SPDX-License-Identifier: Apache-2.0
"""Launch files start nodes that exist, with arguments a user can find out about; without ROS."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import yaml
from catkin_pkg.package import parse_package
from launch_examples import FILES, calls, declared, executables, tree

from sim2real_eval.cli.main import main
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.ros_launch.arguments import ARGUMENTS, NAVSAT, check, required_packages
from sim2real_eval.ros_launch.sensors import world_configuration
from sim_sensors.core.config_files import config_names, config_path
from sim_sensors.core.errors import ParameterError
from sim_sensors.world.earth import DEFAULT_ORIGIN, STANDARD_GRAVITY
from sim_sensors.world.world import load_world

# What to look with and what simulates is the user's choice, and no dependency.
VIEWERS = {'rviz2', 'plotjuggler', 'foxglove_bridge', 'ros_gz_bridge', 'ros_gz_sim'}
# rosbag2_storage_default_plugins brings it; Humble has no package of that name.
UNNAMED = {'rosbag2_storage_sqlite3'}
everyone = pytest.mark.parametrize('file', FILES)


def test_every_argument_has_a_description_and_an_allowed_default() -> None:
    for name, argument in ARGUMENTS.items():
        assert argument.doc.endswith('.'), name
        assert '\n' not in argument.doc
        assert not argument.choices or argument.default in argument.choices, name
    assert [name for name, argument in ARGUMENTS.items() if argument.default is None] == ['real']
    assert set(ARGUMENTS) == {name for file in FILES for name in declared(file)}


@pytest.mark.parametrize(
    ('name', 'value', 'allowed'),
    [
        ('runs', 'x', 'an integer >= 1'),
        ('runs', '0', 'an integer >= 1'),
        ('runs', '1.5', 'an integer >= 1'),
        ('first_run', '-1', 'an integer >= 0'),
        ('settle', 'nan', 'a number >= 0 [s]'),
        ('duration', '-1', 'a number > 0 and <= 100000 [s]'),
        ('gps_z', 'high', 'a number [m]'),
        ('sensors', 'imu', 'a list such as [imu, front/gps]'),
        ('sensors', '5', 'a list such as [imu, front/gps]'),
        ('sensors', '[]', 'a list such as [imu, front/gps]'),
        ('sensors', '[imu', 'a list such as [imu, front/gps]'),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as raised:
        check(name, value)
    # A whole number is shown as one.
    assert str(raised.value).replace("'", '') == (
        f'launch: {name}: {value} is not allowed; must be {allowed}'
    )


def test_one_world_is_that_of_all_sensors_of_a_launch() -> None:
    configuration = world_configuration('chessboard')
    world = load_world('chessboard')
    assert {configuration[f'{kind}_world'] for kind in ('mag', 'camera', 'vision')} == {
        'chessboard'
    }
    assert float(configuration['gravity']) == world.gravity != STANDARD_GRAVITY
    assert float(configuration['latitude_deg']) == world.frame.latitude_deg == 45.48
    default_world = world_configuration('')
    assert (default_world['camera_world'], default_world['vision_world']) == (
        'chessboard',
        'tag_ring',
    )
    assert float(default_world['gravity']) == STANDARD_GRAVITY
    assert float(default_world['altitude_m']) == DEFAULT_ORIGIN.altitude_m


def test_a_file_has_to_be_there_when_one_is_given(tmp_path: Path) -> None:
    check('sensors_params_file', '')
    with pytest.raises(ParameterError, match=r'sensors_params_file: .*gone.yaml. is not a file'):
        check('sensors_params_file', str(tmp_path / 'gone.yaml'))


def test_a_scenario_is_a_name_or_a_class_in_a_file() -> None:
    check('scenario', 'my_motion.py:Spiral')
    with pytest.raises(ParameterError, match=r'did you mean drive_line'):
        check('scenario', 'drive_lin')


@everyone
def test_all_that_is_needed_is_a_dependency_and_looked_for_first(
    file: str, repository: Path
) -> None:
    depends = {d.name for d in parse_package(str(repository / 'package.xml')).exec_depends}
    for judge, view in itertools.product(ARGUMENTS['judge'].choices, ARGUMENTS['view'].choices):
        for storage in ARGUMENTS['storage'].choices:
            arguments = {
                'judge': judge,
                'view': view,
                'storage': storage,
                'sensor_transforms': 'true',
            }
            arguments |= {'bridge_file': 'bridge.yaml', 'robot_file': 'robot.urdf', 'out': 'drive'}
            assert set(required_packages(arguments)) <= depends | VIEWERS | UNNAMED
    # `ros2 launch` itself, too.
    assert 'ros2launch' in depends
    foreign = {package for package, _ in executables(tree(file))} - {'sim2real_sensors'}
    starts = foreign or calls(tree(file), 'include', 'static_transform', 'ExecuteProcess')
    assert bool(calls(tree(file), 'check_packages')) == bool(starts)


def test_a_robot_with_its_own_transforms_needs_no_tf2() -> None:
    nothing_else = {'sensor_transforms': 'false', 'judge': 'judge_node', 'view': 'none'}
    assert required_packages(nothing_else) == {}
    packages = required_packages({'sensor_transforms': 'true', 'judge': 'robot_localization'})
    assert packages['robot_localization'] == ('judge', 'judge:=judge_node')
    assert packages['tf2_ros'] == ('sensor_transforms', 'sensor_transforms:=false')


def test_a_storage_is_needed_only_where_something_is_recorded() -> None:
    assert required_packages({'storage': 'mcap', 'out': ''}) == {}
    assert 'rosbag2_storage_mcap' in required_packages({'storage': 'mcap', 'out': 'drive'})


def test_an_experiment_is_as_long_as_the_command_that_gives_the_same_bits(
    repository: Path, tmp_path: Path
) -> None:
    """Commands shown in docs/reference/ros/launch.md."""
    page = (repository / 'docs' / 'reference' / 'ros' / 'launch.md').read_text('utf-8')
    (command,) = re.findall(r'`sim2real (simulate .*?)`', page)
    (line,) = re.findall(r'^ros2 launch sim2real_sensors experiment.launch.py (.*)$', page, re.M)
    arguments = {name: ARGUMENTS[name].default for name in ('duration', 'imu', 'seed')}
    arguments |= dict(word.split(':=') for word in line.split())
    words = command.split()
    configuration = dict(zip(words[1::2], words[2::2], strict=True))
    assert configuration == {
        '--motion': arguments['scenario'],
        '--runs': arguments['runs'],
        '--gps': arguments['gps'],
    }
    assert main([*command.replace('--runs 5', '--runs 1').split(), '--out', str(tmp_path)]) == 0
    (bag,) = tmp_path.iterdir()
    recording = read_recording(bag)
    assert bag.name == 'line_1'
    truth = recording.truth.stamp_ns
    assert (truth[-1] - truth[0]) / 1e9 == pytest.approx(float(arguments['duration']))


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


def test_the_sensors_get_their_parameters_in_any_namespace() -> None:
    content = yaml.safe_load(config_path('ros', 'sensors.yaml').read_text(encoding='utf-8'))
    assert list(content) == [
        '/**/imu_node',
        '/**/gps_node',
        '/**/magnetometer_node',
        '/**/camera_node',
        '/**/wheel_odometry_node',
        '/**/vision_node',
    ]
    text = config_path('ros', 'sensors.yaml').read_text(encoding='utf-8')
    variables = set(re.findall(r'\$\(var (\w+)\)', text))
    assert variables <= {*declared('sensors.launch.py'), *world_configuration('')}


@everyone
def test_the_page_has_a_line_to_copy_and_lists_exactly_the_arguments(
    file: str, repository: Path
) -> None:
    page = (repository / 'docs' / 'reference' / 'ros' / 'launch.md').read_text('utf-8')
    section = re.search(rf'^## {re.escape(file)}\n(.*?)(?=^## |\Z)', page, re.M | re.S)
    assert section is not None
    lines = re.findall(rf'^ros2 launch sim2real_sensors {re.escape(file)}.*$', section[1], re.M)
    assert lines
    for line in lines:
        assert set(re.findall(r'(\w+):=', line)) <= set(declared(file))
    rows = re.findall(r'^\| `(\w+)` \|', section[1], re.M)
    assert rows == declared(file)
    howto = (repository / 'docs' / 'howto' / 'live_graph.md').read_text('utf-8')
    assert f'ros2 launch sim2real_sensors {file}' in howto
