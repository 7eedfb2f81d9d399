# SPDX-License-Identifier: Apache-2.0
"""Launch files start real nodes with arguments that a user can find out about."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
import yaml
from catkin_pkg.package import parse_package

from sim_sensors.resources import config_names, config_path

NAVSAT = '_navsat'


@pytest.fixture(scope='module')
def calls(repository: Path) -> list[ast.Call]:
    tree = ast.parse((repository / 'launch' / 'judge.launch.py').read_text(encoding='utf-8'))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def named(calls: list[ast.Call], function: str) -> list[ast.Call]:
    found = [
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id == function
    ]
    assert found
    return found


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def literal(expression: ast.expr | None) -> object:
    assert expression is not None
    return ast.literal_eval(expression)


def declared(calls: list[ast.Call]) -> dict[str, ast.Call]:
    return {str(literal(call.args[0])): call for call in named(calls, 'DeclareLaunchArgument')}


def test_every_argument_has_a_description_and_a_default(calls: list[ast.Call]) -> None:
    for name, call in declared(calls).items():
        assert str(literal(keyword(call, 'description'))).endswith('.'), name
        assert keyword(call, 'default_value') is not None, name


def test_only_declared_arguments_are_used_and_all_of_them(calls: list[ast.Call]) -> None:
    used = {
        part
        for call in named(calls, 'LaunchConfiguration')
        for part in (
            [str(literal(call.args[0]))]
            if isinstance(call.args[0], ast.Constant)
            # f'{sensor}_x' stands for imu_x and gps_x
            else [ast.unparse(call.args[0])[2:-1].replace('{sensor}', s) for s in ('imu', 'gps')]
        )
    }
    assert used == set(declared(calls))


def test_topics_are_remapped_inside_the_namespace(calls: list[ast.Call]) -> None:
    for node in named(calls, 'Node'):
        remappings = keyword(node, 'remappings')
        pairs = ast.literal_eval(remappings) if remappings is not None else []
        assert not [name for pair in pairs for name in pair if name.startswith('/')]
        assert keyword(node, 'namespace') is not None


def test_the_packages_of_the_nodes_are_dependencies(
    calls: list[ast.Call], repository: Path
) -> None:
    package = parse_package(str(repository / 'package.xml'))
    depends = {depend.name for depend in package.exec_depends}
    assert {str(literal(keyword(node, 'package'))) for node in named(calls, 'Node')} <= depends
    assert {'launch', 'launch_ros'} <= depends


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


def test_the_description_builds_with_the_real_launch_api(repository: Path) -> None:
    pytest.importorskip('launch_ros', reason='no ROS installation')
    path = repository / 'launch' / 'judge.launch.py'
    spec = importlib.util.spec_from_file_location('judge_launch', path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    description = module.generate_launch_description()
    arguments = {argument.name for argument in description.get_launch_arguments()}
    assert {'profile', 'params_file', 'use_sim_time', 'namespace', 'log_level'} <= arguments
