# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of ekf_node and navsat_transform_node: defaults and refusals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_examples import IMU, mask, parameter_file

from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim_sensors.core.errors import ParameterError


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
    """Diagonal Q, P = 1e-9 I, 30 Hz, a timeout of one period ([robot_localization], ekf.yaml)."""
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
    for option in (
        'two_d_mode', 'predict_to_current_time', 'permit_corrected_publication',
        'dynamic_process_noise',
    ):  # fmt: skip
        assert not getattr(config, option), option
    (source,) = config.sources
    assert source.pose_threshold == source.twist_threshold == math.inf
    assert source.acceleration_threshold == math.inf
    assert [source.differential, source.relative, source.remove_gravity] == [False] * 3
    assert source.mask.tolist() == [float(flag) for flag in mask('yaw', 'vyaw')]


def test_the_default_timeout_follows_from_the_frequency(tmp_path: Path) -> None:
    assert read(tmp_path, frequency=50).sensor_timeout == 0.02
    assert read(tmp_path, frequency=50, sensor_timeout=0.5).sensor_timeout == 0.5


def test_the_world_frame_defaults_to_the_odom_frame(tmp_path: Path) -> None:
    assert read(tmp_path, odom_frame='o').world_frame == 'o'
    assert read(tmp_path, odom_frame='o', map_frame='m', world_frame='m').world_frame == 'm'


def test_differential_wins_over_relative(tmp_path: Path) -> None:
    (source,) = read(tmp_path, imu0_differential=True, imu0_relative=True).sources
    assert source.differential
    assert not source.relative


@pytest.mark.parametrize(
    ('key', 'value'), [('odom1_config', mask('x')), ('disabled_at_startup', True)]
)
def test_a_parameter_of_an_absent_input_or_feature_is_refused(
    tmp_path: Path, key: str, value: object
) -> None:
    refused(tmp_path, key, **{key: value})


WRONG_VALUES = {
    'frequency': [0.0, -5, 1e10, math.nan, 'fast', True, [30.0], 10**18],
    'sensor_timeout': [-0.1],
    'control_timeout': [1e12],
    'two_d_mode': [1, 'true'],
    'world_frame': [3],
    'imu0': [7],
    'imu0_config': [[True] * 14, [1] * 15, 'all'],
    'imu0_twist_rejection_threshold': [-1.0],
    'process_noise_covariance': [[0.1] * 14, 0.1, ['x'] * 15],
    'initial_estimate_covariance': [[math.inf] * 225],
    'initial_state': [[0.0] * 16],
    'control_config': [[True] * 5],
    'acceleration_limits': [[1.0] * 7],
}


@pytest.mark.parametrize('key', WRONG_VALUES)
def test_a_wrong_value_is_refused_by_file_and_key(tmp_path: Path, key: str) -> None:
    for value in WRONG_VALUES[key]:
        assert len(refused(tmp_path, key, **{key: value})) < 160


def test_an_empty_topic_or_a_filter_without_inputs_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, 'imu0', imu0='/')
    with pytest.raises(ParameterError, match='no input'):
        FilterConfig.from_file(parameter_file(tmp_path, {'frequency': 30.0}))


def test_covariance_is_given_by_its_diagonal_or_in_full(tmp_path: Path) -> None:
    """225 numbers go column by column."""
    diagonal = [float(k) for k in range(1, 16)]
    full = np.diag(diagonal)
    short = read(tmp_path, process_noise_covariance=diagonal)
    long = read(tmp_path, process_noise_covariance=full.ravel().tolist())
    assert short.process_noise.tolist() == long.process_noise.tolist() == full.tolist()
    full[0, 3] = 0.5
    covariance = read(tmp_path, process_noise_covariance=full.ravel().tolist()).process_noise
    assert (covariance[3, 0], covariance[0, 3]) == (0.5, 0.0)


def test_control_of_a_measured_acceleration_is_switched_off(tmp_path: Path) -> None:
    """vx and vyaw controlled, ax measured: only vyaw remains; without use_control none."""
    control = {'control_config': [True, *[False] * 4, True], 'acceleration_gains': [1.0] * 6}
    measured = {'imu0_config': mask('vyaw', 'ax')}
    assert read(tmp_path, use_control=True, **control).control_mask.tolist() == [1, 0, 0, 0, 0, 1]
    both = read(tmp_path, use_control=True, **control, **measured)
    assert both.control_mask.tolist() == [0, 0, 0, 0, 0, 1]
    assert not read(tmp_path, **control).control_mask.any()


def test_deceleration_limits_default_to_those_of_acceleration(tmp_path: Path) -> None:
    limits = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    gains = [0.5] * 6
    config = read(tmp_path, use_control=True, acceleration_limits=limits, acceleration_gains=gains)
    assert config.control_limits.tolist() == [limits, gains, limits, gains]
    assert 'missing' in refused(tmp_path, 'acceleration_gains', use_control=True)


def test_rejection_thresholds_have_the_parameter_names_of_their_input_type(tmp_path: Path) -> None:
    config = read(
        tmp_path, imu0_pose_rejection_threshold=1.0, imu0_twist_rejection_threshold=2.0,
        imu0_linear_acceleration_rejection_threshold=3.0, pose0='p', pose0_rejection_threshold=4.0,
        twist0='t', twist0_rejection_threshold=5.0, odom0='o', odom0_pose_rejection_threshold=6.0,
        odom0_twist_rejection_threshold=7.0,
    )  # fmt: skip
    source = {
        s.name: (s.pose_threshold, s.twist_threshold, s.acceleration_threshold)
        for s in config.sources
    }
    assert source == {
        'odom0': (6.0, 7.0, math.inf),
        'pose0': (4.0, math.inf, math.inf),
        'twist0': (math.inf, 5.0, math.inf),
        'imu0': (1.0, 2.0, 3.0),
    }
    assert list(source) == ['odom0', 'pose0', 'twist0', 'imu0']


def test_navsat_defaults_equal_the_original_and_wrong_values_are_refused(tmp_path: Path) -> None:
    config = NavsatConfig.from_file(parameter_file(tmp_path, {}))
    assert config == NavsatConfig(10.0, 0.0, 0.0, False, False, True, False, None)
    assert config.needs_heading
    datum = {'wait_for_datum': True, 'datum': [43.07, -89.4, 0.3]}
    config = NavsatConfig.from_file(parameter_file(tmp_path, datum))
    assert config.datum == (43.07, -89.4, 0.3)
    assert not config.needs_heading
    for wrong, key in (
        ({'publish_tf': False}, 'publish_tf'),
        ({'wait_for_datum': True}, 'datum'),
        ({**datum, 'datum': [43.07, -89.4]}, 'datum'),
        ({**datum, 'datum': [143.07, -89.4, 0.0]}, 'datum'),
        ({'yaw_offsett': 0.1}, 'yaw_offset'),
        ({'frequency': 0}, 'frequency'),
    ):
        with pytest.raises(ParameterError, match=key):
            NavsatConfig.from_file(parameter_file(tmp_path, wrong))
