# SPDX-License-Identifier: Apache-2.0
"""Launch files start nodes that exist, with arguments a user can find out about; without ROS."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml
from catkin_pkg.package import parse_package
from launch_examples import FILES, calls, declared, executables, keyword, tree, used

from sim2real_eval.ros_launch.arguments import ARGUMENTS, NAVSAT
from sim_sensors.resources import config_names, config_path

# What to look with is the user's choice, and no dependency.
VIEWERS = {'rviz2', 'plotjuggler', 'foxglove_bridge'}
# What helpers of ros_launch take, beyond what a file names itself.
TAKEN_BY_HELPERS = {
    'namespace',
    'log_level',
    'scenario',
    'duration',
    'factor',
    'seed',
    'profile',
    'use_sim_time',
}
everyone = pytest.mark.parametrize('file', FILES)


def test_the_launch_files_of_the_graph_are_there() -> None:
    names = ('sensors', 'judge', 'experiment', 'evaluate', 'demo')
    assert set(FILES) == {f'{name}.launch.py' for name in names}


def test_every_argument_has_a_description_and_an_allowed_default() -> None:
    for name, argument in ARGUMENTS.items():
        assert argument.description.endswith('.'), name
        assert '\n' not in argument.description
        assert not argument.choices or argument.default in argument.choices, name
    assert [name for name, argument in ARGUMENTS.items() if argument.default is None] == ['real']
    assert set(ARGUMENTS) == {name for file in FILES for name in declared(file)}


@everyone
def test_only_declared_arguments_are_used(file: str) -> None:
    names = declared(file)
    assert len(names) == len(set(names))
    assert used(file) <= set(names)
    assert {'namespace', 'log_level'} <= set(names)


def test_what_is_declared_is_used_or_passed_on() -> None:
    """An included file takes those of the including one that have its names."""
    for file in FILES:
        included = [str(ast.literal_eval(call.args[0])) for call in calls(tree(file), 'include')]
        passed_on = {name for other in included for name in declared(other)}
        strings = {
            node.value
            for node in ast.walk(tree(file))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        in_f_strings = {name for name in ARGUMENTS if re.match('(imu|gps)_', name)}
        for name in declared(file):
            seen = used(file) | passed_on | TAKEN_BY_HELPERS | in_f_strings
            # Named once more than in its declaration: in a list of parameters.
            assert name in seen or name in strings, f'{file}: {name}'


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
    ours = {'trajectory_node', 'sensors_node', 'judge_node', 'evaluation_node'}
    originals = {'ekf_node', 'navsat_transform_node', 'static_transform_publisher'}
    assert ours | originals <= started


def test_every_profile_has_parameters_for_both_nodes_in_any_namespace() -> None:
    names = config_names('judge')
    profiles = [name for name in names if not name.endswith(NAVSAT)]
    assert 'paper_released' in profiles
    for profile in profiles:
        assert profile + NAVSAT in names
        for name in (profile, profile + NAVSAT):
            text = config_path('judge', f'{name}.yaml').read_text(encoding='utf-8')
            content = yaml.safe_load(text)
            # A node name as the key would match in the root namespace only.
            assert list(content) == ['/**'], name
            assert list(content['/**']) == ['ros__parameters'], name


def test_the_sensors_get_their_parameters_in_any_namespace() -> None:
    text = config_path('ros', 'sensors.yaml').read_text(encoding='utf-8')
    content = yaml.safe_load(text)
    assert list(content) == ['/**/imu_node', '/**/gps_node']
    assert set(re.findall(r'\$\(var (\w+)\)', text)) <= set(declared('sensors.launch.py'))


@everyone
def test_the_page_has_a_line_to_copy_and_lists_exactly_the_arguments(
    file: str, repository: Path
) -> None:
    page = (repository / 'docs' / 'launch.md').read_text('utf-8')
    section = re.search(rf'^## {re.escape(file)}\n(.*?)(?=^## |\Z)', page, re.M | re.S)
    assert section is not None
    lines = re.findall(rf'^ros2 launch sim2real_sensors {re.escape(file)}.*$', section[1], re.M)
    assert lines
    for line in lines:
        assert set(re.findall(r'(\w+):=', line)) <= set(declared(file))
    rows = re.findall(r'^\| `(\w+)` \|', section[1], re.M)
    assert rows == declared(file)
    assert f'ros2 launch sim2real_sensors {file}' in (repository / 'README.md').read_text('utf-8')
