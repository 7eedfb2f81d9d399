# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameter files are read as ROS reads them, or refused in one line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from judge_examples import IMU, mask, parameter_file, write

from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.parameter_file import read_node_parameters
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim_sensors.core.errors import ParameterError, Sim2RealError


@pytest.mark.parametrize('node', ['/**', 'ekf_filter_node', '/ekf_filter_node', 'any_other_name'])
def test_parameters_are_read_under_all_names_of_a_node(tmp_path: Path, node: str) -> None:
    """A file may name all nodes, the node, or a single other node."""
    config = FilterConfig.from_file(parameter_file(tmp_path, {**IMU, 'frequency': 12.5}, node))
    assert config.frequency == 12.5


def test_parameters_are_read_in_a_namespace(tmp_path: Path) -> None:
    tree = {'robot': {'ekf_filter_node': {'ros__parameters': IMU}}}
    path = write(tmp_path, yaml.safe_dump(tree))
    assert FilterConfig.from_file(path).sources[0].name == 'imu0'


def test_parameters_of_a_node_override_those_of_all_nodes(tmp_path: Path) -> None:
    tree = {
        'ekf_filter_node': {'ros__parameters': {'frequency': 50.0}},
        '/**': {'ros__parameters': {**IMU, 'frequency': 10.0, 'two_d_mode': True}},
    }
    config = FilterConfig.from_file(write(tmp_path, yaml.safe_dump(tree)))
    assert config.frequency == 50.0
    assert config.two_d_mode


def test_one_file_can_hold_several_nodes(tmp_path: Path) -> None:
    """Each node takes its own section; the upstream example has ekf_filter_node_odom and _map."""
    tree = {
        'ekf_filter_node_map': {'ros__parameters': {**IMU, 'frequency': 20.0}},
        'navsat_transform': {'ros__parameters': {'frequency': 7.0}},
    }
    path = write(tmp_path, yaml.safe_dump(tree))
    assert FilterConfig.from_file(path).frequency == 20.0
    assert NavsatConfig.from_file(path).frequency == 7.0
    tree['ekf_filter_node_odom'] = {'ros__parameters': IMU}
    path = write(tmp_path, yaml.safe_dump(tree))
    with pytest.raises(ParameterError, match=r'ekf_filter_node_map.*ekf_filter_node_odom'):
        FilterConfig.from_file(path)
    assert FilterConfig.from_file(path, 'ekf_filter_node_map').frequency == 20.0


WHEELS = {'odom0': '/wheels', 'odom0_config': mask('vx', 'vyaw')}
NAVSAT = {'delay': 2.0, 'zero_altitude': True, 'frequency': 7.0}


@pytest.mark.parametrize(
    'names',
    [
        ('/**/ekf_filter_node', '/**/navsat_transform'),
        ('/**/localization', '/**/gps_to_odometry'),
        ('/robot1/ekf_node', '/robot1/navsat_transform_node'),
        ('fusion', 'gps'),
    ],
)
@pytest.mark.parametrize('nested', [True, False], ids=['nested', 'one key'])
def test_sections_of_different_nodes_stay_separate(
    tmp_path: Path, names: tuple[str, str], nested: bool
) -> None:
    """Inputs identify the filter, and parameters navsat_transform, in any namespace."""
    tree: dict[str, Any] = {}
    for name, entries in zip(names, ({**IMU, 'frequency': 20.0}, NAVSAT), strict=True):
        space, _, last = name.rpartition('/')
        section = {'ros__parameters': entries}
        if nested and space:
            tree.setdefault(space, {})[last] = section
        else:
            tree[name] = section
    path = write(tmp_path, yaml.safe_dump(tree))
    assert FilterConfig.from_file(path).frequency == 20.0
    assert NavsatConfig.from_file(path).frequency == 7.0
    last = names[0].rpartition('/')[2]
    assert FilterConfig.from_file(path, last, strictly=True).frequency == 20.0
    with pytest.raises(ParameterError, match=f'did you mean {last}'):
        FilterConfig.from_file(path, f'{last}x', strictly=True)


def test_a_filter_of_one_robot_is_chosen_by_its_namespace(tmp_path: Path) -> None:
    tree = {
        '/**': {'ros__parameters': {'two_d_mode': True}},
        '/robot1/**': {'ros__parameters': {'sensor_timeout': 1.0}},
        '/robot1/ekf_filter_node': {'ros__parameters': {**IMU, 'frequency': 10.0}},
        '/robot2/ekf_filter_node': {'ros__parameters': {**WHEELS, 'frequency': 20.0}},
    }
    path = write(tmp_path, yaml.safe_dump(tree))
    with pytest.raises(ParameterError, match=r'robot1/ekf_filter_node, robot2/ekf_filter_node'):
        FilterConfig.from_file(path)
    first, second = (
        FilterConfig.from_file(path, f'/robot{number}/ekf_filter_node', strictly=True)
        for number in (1, 2)
    )
    assert (first.frequency, first.sensor_timeout, first.two_d_mode) == (10.0, 1.0, True)
    assert (second.frequency, second.sensor_timeout, second.two_d_mode) == (20.0, 0.05, True)


def test_a_pattern_completes_the_node_that_it_matches(tmp_path: Path) -> None:
    tree = {
        '/**/ekf_filter_node': {'ros__parameters': {**IMU, 'frequency': 10.0}},
        '/cart/ekf_filter_node': {'ros__parameters': {'frequency': 40.0}},
    }
    config = FilterConfig.from_file(write(tmp_path, yaml.safe_dump(tree)))
    assert config.frequency == 40.0
    assert [source.name for source in config.sources] == ['imu0']


@pytest.mark.parametrize(
    ('tree', 'node'),
    [
        ({**IMU, 'frequency': 20.0}, 'ekf_filter_node'),
        ({'ekf_se_odom': {**IMU, 'frequency': 20.0}, 'navsat_transform': NAVSAT}, 'ekf_se_odom'),
        ({'base': {'ekf_localization': {**IMU, 'frequency': 20.0}, 'wheels': {'radius': 0.1}}},
         '/base/ekf_localization'),
    ],
    ids=['flat', 'beside navsat_transform', 'among other nodes'],
)  # fmt: skip
def test_the_layout_of_ros_1_is_read_and_told(tmp_path: Path, tree: Any, node: str) -> None:
    path = write(tmp_path, yaml.safe_dump(tree))
    config = FilterConfig.from_file(path)
    assert config.frequency == 20.0
    assert [(note.code, note.words['node']) for note in config.notes] == [('rl.ros1_layout', node)]
    if 'navsat_transform' in tree:
        assert NavsatConfig.from_file(path).frequency == 7.0
    # The remedy: the same parameters under ros__parameters need no finding.
    moved = parameter_file(tmp_path, {**IMU, 'frequency': 20.0}, node)
    assert not FilterConfig.from_file(moved).notes


@pytest.mark.parametrize(
    ('text', 'cause'),
    [
        ('ekf_filter_node:\n  ros__parameters:\n  imu0: imu\n', 'indent the parameters below it'),
        ('ukf_node:\n  ros__parameters:\n  frequency: 9.0\n', 'indent the parameters below it'),
        ('ekf_filter_node:\nros__parameters:\n  imu0: imu\n', 'below the name of a node'),
        ('ekf_filter_node:\nros__parameters:\nimu0: imu\n', 'below the name of a node'),
        (
            'ekf_filter_node: {odom0: odom, odom0_config: [true]}\n'
            'navsat_transform: {ros__parameters: {frequency: 7.0}}\n',
            'must stand under ekf_filter_node: ros__parameters:',
        ),
    ],
)
def test_misplaced_parameters_are_refused_by_their_cause(
    tmp_path: Path, text: str, cause: str
) -> None:
    with pytest.raises(ParameterError, match=cause):
        FilterConfig.from_file(write(tmp_path, text))


@pytest.mark.parametrize('name', ['imu0_pose_covariance', 'odom1_twist_covariance'])
def test_a_covariance_of_an_input_is_no_parameter(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError) as error:
        FilterConfig.from_file(parameter_file(tmp_path, {**IMU, name: [0.1, 0.1, 0.1]}))
    assert error.value.key == name
    assert 'corrections' in error.value.problem
    assert 'process_noise' not in error.value.problem


def test_nested_parameters_have_dotted_names(tmp_path: Path) -> None:
    path = parameter_file(tmp_path, {'a': {'b': {'c': 1}}, 'd': 2})
    assert sorted(read_node_parameters(path, 'x').names()) == ['a.b.c', 'd']


def test_exponents_without_a_dot_are_numbers(tmp_path: Path) -> None:
    """YAML 1.1 reads 1e-9 as a text; robot_localization's own examples write it."""
    values = ', '.join(['1e-9'] * 15)
    path = write(
        tmp_path,
        'ekf_filter_node:\n  ros__parameters:\n    imu0: /imu\n    sensor_timeout: 1e-1\n'
        f'    initial_estimate_covariance: [{values}]\n',
    )
    config = FilterConfig.from_file(path)
    assert config.initial_covariance.tolist() == (1e-9 * np.eye(15)).tolist()
    assert config.sensor_timeout == 0.1


@pytest.mark.parametrize(
    'text',
    [
        '', '3', 'frequency: 30.0', 'a: {ros__parameters: 3}', '[', 'a: \x00', '[' * 600,
        'a: {ros__parameters: {imu0: /imu, frequency: 2001-99-99}}',
        'a: {ros__parameters: {imu0: /imu, frequency: 0x_}}',
        'a: {ros__parameters: {imu0: !!int foo}}',
        'a: {ros__parameters: {frequency: ' + '9' * 5000 + '}}', '&a\nx: *a',
    ],
    ids=range(12),
)  # fmt: skip
def test_a_file_without_parameters_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ParameterError) as error:
        FilterConfig.from_file(path)
    assert str(error.value).startswith(str(path))
    assert '\n' not in str(error.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / 'binary.yaml'
    binary.write_bytes(b'\xff\xfe\xfa')
    for path in (tmp_path / 'missing.yaml', tmp_path, binary):
        for read_file in (FilterConfig.from_file, NavsatConfig.from_file, ReplayOptions.from_file):
            with pytest.raises(ParameterError, match=str(path)):
                read_file(path)


KEYS = st.sampled_from(
    [
        'frequency', 'sensor_timeout', 'two_d_mode', 'world_frame', 'odom0', 'odom0_config',
        'imu0', 'imu0_config', 'imu0_pose_rejection_threshold', 'process_noise_covariance',
        'initial_state', 'use_control', 'control_config', 'acceleration_limits',
        'smooth_lagged_data', 'yaw_offset', 'ros__parameters', '/**', 'ekf_filter_node', 'clock',
        'start_ns', 'period_ns', 'run_on_ns', 'inputs', 'topic', 'navsat', 'fix', 'imu', 'node',
    ]
)  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.dates()
    | st.binary(max_size=4)
    | st.sampled_from(['/imu', 'ekf_node', '1e-9', 10**400, -(2**63)])
)
TREES = st.recursive(
    SCALARS | st.lists(st.booleans() | st.floats(), min_size=15, max_size=15),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(KEYS | st.text(max_size=6) | st.integers(), inner, max_size=6)
    ),
    max_leaves=10,
)
CONFIGURATIONS = st.dictionaries(KEYS, TREES, max_size=4)
FILES = (
    TREES
    | CONFIGURATIONS
    | st.builds(lambda entries: {'/**': {'ros__parameters': entries}}, CONFIGURATIONS)
    | st.builds(lambda entries: {'clock': entries}, CONFIGURATIONS)
)


def refusals(path: Path) -> list[str]:
    """Complaint of each of the three readers about a file; other errors than ours get through."""
    messages = []
    for read_file in (FilterConfig.from_file, NavsatConfig.from_file, ReplayOptions.from_file):
        try:
            read_file(path)
        except Sim2RealError as error:
            messages.append(str(error))
    return messages


@given(FILES)
def test_any_parameter_tree_is_read_or_refused_with_a_message(tree: object) -> None:
    """Any YAML value: a configuration, or an error meant for users; nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), yaml.safe_dump(tree, allow_unicode=True))
        assert all(message.startswith(str(path)) for message in refusals(path))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'file.yaml'
        path.write_bytes(text.encode('utf-8', 'surrogatepass'))
        assert all(message.startswith(str(path)) for message in refusals(path))
