# SPDX-License-Identifier: Apache-2.0
"""Parameter files of ekf_node and navsat_transform_node, and case.yaml: read as ROS reads them,
refused in one line when wrong.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_examples import mask, parameter_file

from sim2real_eval.judge.clock import Case, Clock
from sim2real_eval.judge.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.ros_parameters import read_node_parameters
from sim_sensors.errors import ParameterError, Sim2RealError

IMU = {'imu0': '/imu/data', 'imu0_config': mask('yaw', 'vyaw')}


def write(folder: Path, text: str) -> Path:
    path = folder / 'file.yaml'
    path.write_text(text, encoding='utf-8')
    return path


def read(folder: Path, **parameters: Any) -> FilterConfig:
    return FilterConfig.from_file(parameter_file(folder, {**IMU, **parameters}))


def refused(folder: Path, key: str, **parameters: Any) -> str:
    """Message of the one-line error that names the file and the key."""
    with pytest.raises(ParameterError) as error:
        read(folder, **parameters)
    assert error.value.key == key
    assert str(error.value).startswith(f'{folder / "params.yaml"}: {key}: ')
    assert '\n' not in str(error.value)
    return error.value.problem


def test_defaults_are_those_of_robot_localization(tmp_path: Path) -> None:
    """Diagonal Q, P = 1e-9 I, 30 Hz, a timeout of one period (judge.md; ekf.yaml of upstream)."""
    config = read(tmp_path)
    assert config.frequency == 30.0
    assert config.sensor_timeout == 1 / 30.0
    assert config.gravity == 9.80665
    assert (config.world_frame, config.base_link_frame) == ('odom', 'base_link')
    diagonal = [0.05, 0.05, 0.06, 0.03, 0.03, 0.06, 0.025, 0.025, 0.04]
    diagonal += [0.01, 0.01, 0.02, 0.01, 0.01, 0.015]
    assert config.process_noise.tolist() == np.diag(diagonal).tolist()
    assert config.initial_covariance.tolist() == (1e-9 * np.eye(15)).tolist()
    assert not config.initial_state.any()
    assert not config.control_mask.any()
    assert not config.two_d_mode
    assert not config.predict_to_current_time
    assert not config.permit_corrected_publication
    assert not config.dynamic_process_noise
    (source,) = config.sources
    assert source.pose_threshold == source.twist_threshold == math.inf
    assert source.acceleration_threshold == math.inf
    assert [source.differential, source.relative, source.remove_gravity] == [False] * 3
    assert source.mask.tolist() == [float(flag) for flag in mask('yaw', 'vyaw')]


def test_timeout_follows_the_frequency(tmp_path: Path) -> None:
    assert read(tmp_path, frequency=50).sensor_timeout == 0.02
    assert read(tmp_path, frequency=50, sensor_timeout=0.5).sensor_timeout == 0.5


def test_world_frame_is_the_odom_frame_unless_named(tmp_path: Path) -> None:
    assert read(tmp_path, odom_frame='o').world_frame == 'o'
    assert read(tmp_path, odom_frame='o', map_frame='m', world_frame='m').world_frame == 'm'


def test_differential_wins_over_relative(tmp_path: Path) -> None:
    (source,) = read(tmp_path, imu0_differential=True, imu0_relative=True).sources
    assert source.differential
    assert not source.relative


@pytest.mark.parametrize('node', ['/**', 'ekf_filter_node', '/ekf_filter_node', 'any_other_name'])
def test_parameters_are_found_under_the_names_of_a_node(tmp_path: Path, node: str) -> None:
    """For all nodes, by name, or under the only name that there is."""
    config = FilterConfig.from_file(parameter_file(tmp_path, {**IMU, 'frequency': 12.5}, node))
    assert config.frequency == 12.5


def test_parameters_are_found_in_a_namespace(tmp_path: Path) -> None:
    tree = {'robot': {'ekf_filter_node': {'ros__parameters': IMU}}}
    path = write(tmp_path, yaml.safe_dump(tree))
    assert FilterConfig.from_file(path).sources[0].name == 'imu0'


def test_own_parameters_override_those_of_all_nodes(tmp_path: Path) -> None:
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


def test_nested_parameters_have_dotted_names(tmp_path: Path) -> None:
    path = parameter_file(tmp_path, {'a': {'b': {'c': 1}}, 'd': 2})
    assert sorted(read_node_parameters(path, 'x').names()) == ['a.b.c', 'd']


@pytest.mark.parametrize(
    ('wrong', 'near'),
    [
        ('frequenzy', 'frequency'),
        ('imu0_conflg', 'imu0_config'),
        ('two_d_mod', 'two_d_mode'),
        ('imu0_remove_gravitational_accelerations', 'imu0_remove_gravitational_acceleration'),
    ],
)
def test_unknown_parameter_is_refused_with_its_nearest_neighbour(
    tmp_path: Path, wrong: str, near: str
) -> None:
    assert refused(tmp_path, wrong, **{wrong: 1.0}) == f'unknown parameter; did you mean {near}?'


def test_option_of_an_input_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """odom1_config without odom1 would measure nothing, silently."""
    assert 'unknown parameter' in refused(tmp_path, 'odom1_config', odom1_config=mask('x'))


@pytest.mark.parametrize(
    ('key', 'value', 'allowed'),
    [
        ('frequency', 0.0, '>= 0.001'),
        ('frequency', -5, '>= 0.001'),
        ('frequency', 1e10, '<= 1e+06'),
        ('frequency', math.nan, 'a number'),
        ('frequency', 'fast', 'a number'),
        ('frequency', True, 'a number'),
        ('frequency', [30.0], 'a number'),
        ('frequency', 10**400, 'a number'),
        ('sensor_timeout', -0.1, '>= 0'),
        ('control_timeout', 1e12, '<= 1e+09'),
        ('two_d_mode', 1, 'true or false'),
        ('two_d_mode', 'true', 'true or false'),
        ('world_frame', 3, 'a text'),
        ('imu0', 7, 'a text'),
        ('imu0_config', [True] * 14, 'a list of 15 true/false'),
        ('imu0_config', [1] * 15, 'a list of 15 true/false'),
        ('imu0_config', 'all', 'a list of 15 true/false'),
        ('imu0_twist_rejection_threshold', -1.0, '>= 0'),
        ('process_noise_covariance', [0.1] * 14, 'a list of 225 or 15 numbers'),
        ('process_noise_covariance', 0.1, 'a list of 225 or 15 numbers'),
        ('process_noise_covariance', ['x'] * 15, 'a list of 15 numbers'),
        ('initial_estimate_covariance', [math.inf] * 225, 'a list of 225 numbers'),
        ('initial_state', [0.0] * 16, 'a list of 15 numbers'),
        ('control_config', [True] * 5, 'a list of 6 true/false'),
        ('acceleration_limits', [1.0] * 7, 'a list of 6 numbers'),
    ],
)
def test_wrong_value_is_refused_with_what_is_allowed(
    tmp_path: Path, key: str, value: object, allowed: str
) -> None:
    problem = refused(tmp_path, key, **{key: value})
    assert allowed in problem
    assert len(problem) < 160


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('smooth_lagged_data', True),
        ('disabled_at_startup', True),
        ('imu0_pose_use_child_frame', True),
    ],
)
def test_unsupported_parameter_is_refused_by_name(tmp_path: Path, key: str, value: object) -> None:
    assert 'not supported' in refused(tmp_path, key, **{key: value})
    assert read(tmp_path, **{key: False}).sources


def test_empty_topic_and_no_input_are_refused(tmp_path: Path) -> None:
    assert 'topic' in refused(tmp_path, 'imu0', imu0='/')
    with pytest.raises(ParameterError, match='no input'):
        FilterConfig.from_file(parameter_file(tmp_path, {'frequency': 30.0}))


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


def test_covariance_is_given_by_its_diagonal_or_in_full(tmp_path: Path) -> None:
    """225 numbers are row-major."""
    diagonal = [float(k) for k in range(1, 16)]
    full = np.diag(diagonal)
    short = read(tmp_path, process_noise_covariance=diagonal)
    long = read(tmp_path, process_noise_covariance=full.ravel().tolist())
    assert short.process_noise.tolist() == long.process_noise.tolist() == full.tolist()
    full[0, 3] = 0.5
    found = read(tmp_path, process_noise_covariance=full.ravel().tolist()).process_noise
    assert (found[0, 3], found[3, 0]) == (0.5, 0.0)


def test_control_of_a_measured_acceleration_is_switched_off(tmp_path: Path) -> None:
    """vx and vyaw controlled, ax measured: only vyaw remains; without use_control none."""
    control = {'control_config': [True, False, False, False, False, True]}
    measured = {'imu0_config': mask('vyaw', 'ax')}
    assert read(tmp_path, use_control=True, **control).control_mask.tolist() == [1, 0, 0, 0, 0, 1]
    both = read(tmp_path, use_control=True, **control, **measured)
    assert both.control_mask.tolist() == [0, 0, 0, 0, 0, 1]
    assert not read(tmp_path, **control).control_mask.any()


def test_deceleration_is_that_of_acceleration_unless_given(tmp_path: Path) -> None:
    limits = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    config = read(tmp_path, use_control=True, acceleration_limits=limits)
    assert config.control_limits.tolist() == [limits, [1.0] * 6, limits, [1.0] * 6]


def test_thresholds_have_the_names_of_their_kind(tmp_path: Path) -> None:
    config = FilterConfig.from_file(
        parameter_file(
            tmp_path,
            {
                **IMU,
                'imu0_pose_rejection_threshold': 1.0,
                'imu0_twist_rejection_threshold': 2.0,
                'imu0_linear_acceleration_rejection_threshold': 3.0,
                'pose0': 'p',
                'pose0_rejection_threshold': 4.0,
                'twist0': 't',
                'twist0_rejection_threshold': 5.0,
                'odom0': 'o',
                'odom0_pose_rejection_threshold': 6.0,
                'odom0_twist_rejection_threshold': 7.0,
            },
        )
    )
    found = {
        s.name: (s.pose_threshold, s.twist_threshold, s.acceleration_threshold)
        for s in config.sources
    }
    assert found == {
        'odom0': (6.0, 7.0, math.inf),
        'pose0': (4.0, math.inf, math.inf),
        'twist0': (math.inf, 5.0, math.inf),
        'imu0': (1.0, 2.0, 3.0),
    }
    assert list(found) == ['odom0', 'pose0', 'twist0', 'imu0']


def test_navsat_defaults_and_refusals(tmp_path: Path) -> None:
    config = NavsatConfig.from_file(parameter_file(tmp_path, {}))
    assert config == NavsatConfig(10.0, 0.0, 0.0, False, False, False)
    for key, value in (
        ('use_local_cartesian', True),
        ('wait_for_datum', True),
        ('publish_tf', False),
    ):
        with pytest.raises(ParameterError, match=rf'{key}.*not supported'):
            NavsatConfig.from_file(parameter_file(tmp_path, {key: value}))
    with pytest.raises(ParameterError, match='did you mean yaw_offset'):
        NavsatConfig.from_file(parameter_file(tmp_path, {'yaw_offsett': 0.1}))
    with pytest.raises(ParameterError, match='frequency'):
        NavsatConfig.from_file(parameter_file(tmp_path, {'frequency': 0}))


@pytest.mark.parametrize('name', ['paper_released', 'clean'])
def test_shipped_profiles_are_readable(repository: Path, name: str) -> None:
    folder = repository / 'config' / 'judge'
    config = FilterConfig.from_file(folder / f'{name}.yaml')
    assert {source.kind for source in config.sources} == {'odom', 'imu'}
    assert config.two_d_mode
    assert NavsatConfig.from_file(folder / f'{name}_navsat.yaml').zero_altitude
    gps = next(source for source in config.sources if source.kind == 'odom')
    assert gps.differential is (name == 'paper_released')


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('', 'section'),
        ('3', 'section'),
        ('frequency: 30.0', 'section'),
        ('a: {ros__parameters: 3}', 'section'),
        ('[', 'not valid YAML'),
        ('a: \x00', 'not valid YAML'),
        ('a: {ros__parameters: {imu0: /imu, frequency: 2001-99-99}}', 'not valid YAML'),
        ('a: {ros__parameters: {imu0: /imu, frequency: 0x_}}', 'not valid YAML'),
        ('a: {ros__parameters: {imu0: !!int foo}}', 'not valid YAML'),
        ('a: {ros__parameters: {frequency: ' + '9' * 5000 + '}}', 'not valid YAML'),
        ('&a\nx: *a', 'refers to itself'),
        ('[' * 5000, 'nested too deeply'),
    ],
)
def test_file_that_is_no_parameter_file_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ParameterError, match=problem) as error:
        FilterConfig.from_file(path)
    assert str(error.value).startswith(str(path))
    assert '\n' not in str(error.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / 'binary.yaml'
    binary.write_bytes(b'\xff\xfe\xfa')
    for path in (tmp_path / 'missing.yaml', tmp_path, binary):
        for read_file in (FilterConfig.from_file, NavsatConfig.from_file, Case.from_file):
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
    max_leaves=25,
)
CONFIGURATIONS = st.dictionaries(KEYS, TREES, max_size=8)
FILES = (
    TREES
    | CONFIGURATIONS
    | st.builds(lambda entries: {'/**': {'ros__parameters': entries}}, CONFIGURATIONS)
    | st.builds(lambda entries: {'clock': entries}, CONFIGURATIONS)
)


def refusals(path: Path) -> list[str]:
    """What each of the three readers has against a file; other errors than ours get through."""
    messages = []
    for read_file in (FilterConfig.from_file, NavsatConfig.from_file, Case.from_file):
        try:
            read_file(path)
        except Sim2RealError as error:
            messages.append(str(error))
    return messages


@settings(deadline=None, max_examples=150)
@given(FILES)
def test_any_tree_is_read_or_refused_in_words(tree: object) -> None:
    """Whatever YAML can hold: a configuration, or an error meant for users; nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), yaml.safe_dump(tree, allow_unicode=True))
        assert all(message.startswith(str(path)) for message in refusals(path))


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'file.yaml'
        path.write_bytes(text.encode('utf-8', 'surrogatepass'))
        assert all(message.startswith(str(path)) for message in refusals(path))


CASE = """
node: ekf_node
inputs:
  b.csv.gz: {topic: /second, type: nav_msgs/Odometry}
  a.csv.gz: {topic: first/, type: sensor_msgs/Imu}
clock:
  start_ns: 5
  hz: 500
  period_ns: 2000000
  filter_timer_origin_ns: 6
  filter_timer_period_ns: 28571428
  navsat_timer_origin_ns: 7
  navsat_timer_period_ns: 100000000
  run_on_ns: 8
navsat: {fix: /fix, imu: null}
"""


def test_case_file_states_delivery_order_clock_and_topics(tmp_path: Path) -> None:
    assert Case.from_file(write(tmp_path, CASE)) == Case(
        clock=Clock(5, 2_000_000, 6, 28_571_428, 7, 100_000_000, 8),
        topics=('second', 'first'),
        fix='fix',
        heading='',
    )
    assert Case.from_file(write(tmp_path, 'navsat: null')) == Case()


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('', ''),
        ('[1]', ''),
        ('node: ukf_node', 'node'),
        ('clocks: {}', 'clocks'),
        ('clock: 3', 'clock'),
        ('clock: {start: 3}', 'clock.start'),
        ('clock: {start_ns: 1.5}', 'clock.start_ns'),
        ('clock: {start_ns: -1}', 'clock.start_ns'),
        ('clock: {start_ns: true}', 'clock.start_ns'),
        ('clock: {start_ns: 10000000000000000000}', 'clock.start_ns'),
        ('clock: {period_ns: 0}', 'clock.period_ns'),
        ('clock: {filter_timer_period_ns: 0}', 'clock.filter_timer_period_ns'),
        ('inputs: [a]', 'inputs'),
        ('inputs: {a.csv: /imu}', 'inputs.a.csv'),
        ('inputs: {a.csv: {type: x}}', 'inputs.a.csv.topic'),
        ('navsat: {fixes: /fix}', 'navsat.fixes'),
        ('navsat: {fix: 3}', 'navsat.fix'),
    ],
)
def test_wrong_case_file_is_refused_with_its_key(tmp_path: Path, text: str, key: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ParameterError) as error:
        Case.from_file(path)
    assert error.value.key == key
    assert error.value.where == str(path)
    assert '\n' not in str(error.value)
