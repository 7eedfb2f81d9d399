# SPDX-License-Identifier: Apache-2.0
"""Launch files start nodes that exist, with arguments a user can find out about; without ROS."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest
import yaml
from catkin_pkg.package import parse_package
from launch_examples import FILES, calls, declared, executables, keyword, mentioned, tree, used

from sim2real_eval.cli.main import main
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.ros_launch.arguments import ARGUMENTS, NAVSAT, as_text, check, needed
from sim2real_eval.ros_launch.sensors import world_configuration
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_names, config_path
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, STANDARD_GRAVITY
from sim_sensors.world.world import load_world

# What to look with and what simulates is the user's choice, and no dependency.
VIEWERS = {'rviz2', 'plotjuggler', 'foxglove_bridge', 'ros_gz_bridge', 'ros_gz_sim'}
# rosbag2_storage_default_plugins brings it; Humble has no package of that name.
UNNAMED = {'rosbag2_storage_sqlite3'}
# What helpers of ros_launch take, beyond what a file names itself.
TAKEN_BY = {
    'node': {'namespace', 'log_level', 'use_sim_time'},
    'trajectory_node': {
        *('scenario', 'duration', 'factor', 'seed', 'motion_params_file'),
        *('namespace', 'log_level'),
    },
    'profile_file': {'profile'},
    'note_mounting': {'imu', 'gps', 'static_transforms_file'},
    'check_packages': {'judge', 'view', 'storage', 'sensor_transforms'},
}
everyone = pytest.mark.parametrize('file', FILES)


def test_the_launch_files_of_the_graph_are_there() -> None:
    names = ('sensors', 'judge', 'experiment', 'evaluate', 'demo', 'path_follower', 'gazebo')
    assert set(FILES) == {f'{name}.launch.py' for name in names}


def test_every_argument_has_a_description_and_an_allowed_default() -> None:
    for name, argument in ARGUMENTS.items():
        assert argument.doc.endswith('.'), name
        assert '\n' not in argument.doc
        assert not argument.choices or argument.default in argument.choices, name
    assert [name for name, argument in ARGUMENTS.items() if argument.default is None] == ['real']
    assert set(ARGUMENTS) == {name for file in FILES for name in declared(file)}


@everyone
def test_only_declared_arguments_are_used(file: str) -> None:
    names = declared(file)
    assert len(names) == len(set(names))
    assert used(file) <= set(names)
    assert {'namespace', 'log_level'} <= set(names)


@everyone
def test_what_is_declared_is_used_or_passed_on(file: str) -> None:
    """An included file takes those of the including one that have its names."""
    included = [str(ast.literal_eval(call.args[0])) for call in calls(tree(file), 'include')]
    seen = used(file) | {name for other in included for name in declared(other)}
    for helper, names in TAKEN_BY.items():
        if calls(tree(file), helper):
            seen |= names
    if file == 'sensors.launch.py':
        seen |= in_sensors_file()
    if file == 'judge.launch.py':
        # In f-strings.
        seen |= {name for name in ARGUMENTS if re.match('(imu|gps)_', name)}
    assert set(declared(file)) <= seen | mentioned(file)


def in_sensors_file() -> set[str]:
    text = config_path('ros', 'sensors.yaml').read_text(encoding='utf-8')
    return set(re.findall(r'\$\(var (\w+)\)', text))


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
    told = world_configuration('chessboard')
    world = load_world('chessboard')
    assert {told[f'{kind}_world'] for kind in ('mag', 'camera', 'vision')} == {'chessboard'}
    assert float(told['gravity']) == world.gravity != STANDARD_GRAVITY
    assert float(told['latitude_deg']) == world.frame.latitude_deg == 45.48
    own = world_configuration('')
    assert (own['camera_world'], own['vision_world']) == ('chessboard', 'tag_ring')
    assert float(own['gravity']) == STANDARD_GRAVITY
    assert float(own['altitude_m']) == DEFAULT_ORIGIN.altitude_m


def test_a_file_has_to_be_there_when_one_is_given(tmp_path: Path) -> None:
    check('sensors_params_file', '')
    with pytest.raises(ParameterError, match=r'sensors_params_file: .*gone.yaml. is not a file'):
        check('sensors_params_file', str(tmp_path / 'gone.yaml'))


def test_a_scenario_is_a_name_or_a_class_in_a_file() -> None:
    check('scenario', 'my_motion.py:Spiral')
    with pytest.raises(ParameterError, match=r'did you mean drive_line'):
        check('scenario', 'drive_lin')


def test_every_default_is_allowed() -> None:
    for name, argument in ARGUMENTS.items():
        if argument.default is not None:
            check(name, as_text(argument.default))


@everyone
def test_all_that_is_needed_is_a_dependency_and_looked_for_first(
    file: str, repository: Path
) -> None:
    depends = {d.name for d in parse_package(str(repository / 'package.xml')).exec_depends}
    for judge, view in itertools.product(ARGUMENTS['judge'].choices, ARGUMENTS['view'].choices):
        for storage in ARGUMENTS['storage'].choices:
            given = {'judge': judge, 'view': view, 'storage': storage, 'sensor_transforms': 'true'}
            given |= {'bridge_file': 'bridge.yaml', 'robot_file': 'robot.urdf', 'out': 'drive'}
            assert set(needed(given)) <= depends | VIEWERS | UNNAMED
    # `ros2 launch` itself, too.
    assert 'ros2launch' in depends
    foreign = {package for package, _ in executables(tree(file))} - {'sim2real_sensors'}
    starts = foreign or calls(tree(file), 'include', 'static_transform', 'ExecuteProcess')
    assert bool(calls(tree(file), 'check_packages')) == bool(starts)


def test_a_robot_with_its_own_transforms_needs_no_tf2() -> None:
    assert needed({'sensor_transforms': 'false', 'judge': 'judge_node', 'view': 'none'}) == {}
    found = needed({'sensor_transforms': 'true', 'judge': 'robot_localization'})
    assert found['robot_localization'] == ('judge', 'judge:=judge_node')
    assert found['tf2_ros'] == ('sensor_transforms', 'sensor_transforms:=false')


def test_a_storage_is_needed_only_where_something_is_recorded() -> None:
    assert needed({'storage': 'mcap', 'out': ''}) == {}
    assert 'rosbag2_storage_mcap' in needed({'storage': 'mcap', 'out': 'drive'})


def test_an_experiment_is_as_long_as_the_command_that_gives_the_same_bits(
    repository: Path, tmp_path: Path
) -> None:
    """Those that docs/reference/ros/launch.md shows, as they stand there."""
    page = (repository / 'docs' / 'reference' / 'ros' / 'launch.md').read_text('utf-8')
    (command,) = re.findall(r'`sim2real (simulate .*?)`', page)
    (line,) = re.findall(r'^ros2 launch sim2real_sensors experiment.launch.py (.*)$', page, re.M)
    given = {name: ARGUMENTS[name].default for name in ('duration', 'imu', 'seed')}
    given |= dict(word.split(':=') for word in line.split())
    words = command.split()
    told = dict(zip(words[1::2], words[2::2], strict=True))
    assert told == {'--motion': given['scenario'], '--runs': given['runs'], '--gps': given['gps']}
    assert main([*command.replace('--runs 5', '--runs 1').split(), '--out', str(tmp_path)]) == 0
    (bag,) = tmp_path.iterdir()
    recording = read_recording(bag)
    assert bag.name == 'line_1'
    truth = recording.truth.stamp_ns
    assert (truth[-1] - truth[0]) / 1e9 == pytest.approx(float(given['duration']))


@everyone
def test_topics_are_remapped_inside_the_namespace(file: str) -> None:
    for call in calls(tree(file), 'node', 'Node'):
        remappings = keyword(call, 'remappings')
        text = '' if remappings is None else ast.unparse(remappings)
        assert not re.search(r"'/", text), text


@everyone
def test_every_executable_is_a_script_of_ours_or_of_a_dependency(
    file: str, repository: Path
) -> None:
    depends = {d.name for d in parse_package(str(repository / 'package.xml')).exec_depends}
    assert {'launch', 'launch_ros', 'ros2bag', 'ros2service', 'tf2_ros'} <= depends
    scripts = set(re.findall(r"'(\w+) = ", (repository / 'setup.py').read_text('utf-8')))
    helpers = repository / 'sim2real_eval' / 'ros_launch' / 'nodes.py'
    for module in (tree(file), ast.parse(helpers.read_text('utf-8'))):
        for package, executable in executables(module):
            if package == 'sim2real_sensors':
                assert executable in scripts
            else:
                assert package in depends | VIEWERS


def test_all_our_nodes_are_started_by_some_file(repository: Path) -> None:
    helpers = repository / 'sim2real_eval' / 'ros_launch' / 'nodes.py'
    modules = [*(tree(file) for file in FILES), ast.parse(helpers.read_text('utf-8'))]
    started = {name for module in modules for _, name in executables(module)}
    # imu_node and gps_node run within sensors_node.
    ours = {
        'trajectory_node', 'sensors_node', 'judge_node', 'evaluation_node', 'path_follower_node',
    }  # fmt: skip
    originals = {'ekf_node', 'navsat_transform_node', 'static_transform_publisher'}
    assert ours | originals <= started


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
    assert in_sensors_file() <= {*declared('sensors.launch.py'), *world_configuration('')}


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
