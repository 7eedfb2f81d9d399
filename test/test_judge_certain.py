# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fused quantities without a variance are named, and can be given one."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from judge_examples import imu, mask, odometry, parameter_file, recording, stamps

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.corrections import ImuCorrection, correct_recording
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import PoseArray, TwistArray

TIMES = stamps(20.0, 2.0)
_N = len(TIMES)


def without(rows: slice, size: int = 6) -> np.ndarray:
    """Covariances of 0.01 with zero variances in some rows, every second message."""
    covariance = np.broadcast_to(0.01 * np.eye(size), (_N, size, size)).copy()
    covariance[::2, rows, rows] = 0.0
    return covariance


FIRST, LAST = slice(0, 3), slice(3, 6)
_ZEROS = np.zeros((_N, 3))
_UNIT = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (_N, 4))


def messages(rows: slice) -> Recording:
    odom = odometry(TIMES)
    return recording({
        '/odom': dataclasses.replace(
            odom, pose_covariance=without(rows), twist_covariance=without(rows)
        ),
        '/dvl': TwistArray(TIMES, TIMES, 'base_link', _ZEROS, _ZEROS, without(rows)),
        '/vio': PoseArray(TIMES, TIMES, 'odom', _ZEROS, _UNIT, without(rows)),
        '/imu': dataclasses.replace(
            imu(TIMES, frame='base_link'), angular_velocity_covariance=without(FIRST, 3)
        ),
        '/imu2': dataclasses.replace(
            imu(TIMES, frame='base_link'), orientation_covariance=without(FIRST, 3)
        ),
    })  # fmt: skip


def found(setup: JudgeSetup, run: Recording) -> dict[str, str]:
    """Setting by quantity of the findings."""
    notes = setup.certain_parts(run)
    assert {note.code for note in notes} <= {'rl.certain'}
    for note in notes:
        assert (note.numbers['count'], note.numbers['messages']) == (_N // 2, _N)
    return {note.words['quantity']: note.words['setting'] for note in notes}


@pytest.mark.parametrize(
    ('name', 'topic', 'states', 'rows', 'quantity'),
    [
        ('odom0', '/odom', ('x', 'y'), FIRST, 'position'),
        ('odom0', '/odom', ('yaw',), LAST, 'orientation'),
        ('odom0', '/odom', ('vx',), FIRST, 'velocity'),
        ('twist0', '/dvl', ('vyaw', 'vx'), LAST, 'rate'),
        ('pose0', '/vio', ('yaw', 'y'), FIRST, 'position'),
        ('imu0', '/imu2', ('yaw', 'vyaw'), FIRST, 'orientation'),
    ],
)
def test_a_quantity_without_variance_is_named_with_a_setting_that_works(
    tmp_path: Path, name: str, topic: str, states: tuple[str, ...], rows: slice, quantity: str
) -> None:
    config = parameter_file(tmp_path, {name: topic, f'{name}_config': mask(*states)})
    run = messages(rows)
    settings = found(JudgeSetup.load(config), run)
    assert list(settings) == [quantity]
    stated = re.fullmatch('`(.*)` in case.yaml.*', settings[quantity])
    assert stated is not None
    case = tmp_path / 'case.yaml'
    case.write_text(stated[1].replace('VALUE', '0.3'), encoding='utf-8')
    setup = JudgeSetup.load(config, case=case)
    assert found(setup, run) == {}
    part = next(part for part in setup.input_parts(run) if len(part.values))
    variances = np.diagonal(part.covariance[0])
    assert np.isclose(variances, 0.09).sum() == 3
    # It is fused, too.
    assert setup.judge(run).parts[0].fused == _N


def test_the_rates_of_the_imu_are_corrected_in_recording_yaml(tmp_path: Path) -> None:
    config = parameter_file(tmp_path, {'imu0': '/imu', 'imu0_config': mask('yaw', 'vyaw')})
    setup, run = JudgeSetup.load(config), messages(FIRST)
    assert '{imu: {rate_std: VALUE}}' in found(setup, run)['rate']
    corrected = correct_recording(run, {'imu': ImuCorrection(rate_std=0.01)})
    assert found(setup, corrected) == {}


def test_the_orientation_of_the_imu_is_corrected_in_recording_yaml(tmp_path: Path) -> None:
    config = parameter_file(tmp_path, {'imu0': '/imu', 'imu0_config': mask('yaw', 'vyaw')})
    array = dataclasses.replace(imu(TIMES), orientation_covariance=without(FIRST, 3))
    setup, run = JudgeSetup.load(config), recording({'/imu': array})
    assert '{imu: {orientation_std: VALUE}}' in found(setup, run)['orientation']
    corrected = correct_recording(run, {'imu': ImuCorrection(orientation_std=0.01)})
    assert found(setup, corrected) == {}


def test_variances_that_are_not_fused_or_that_two_d_mode_replaces_do_not_count(
    tmp_path: Path,
) -> None:
    run = messages(FIRST)
    for parameters in (
        {'odom0_config': mask('yaw', 'vyaw')},
        {'odom0_config': mask('z', 'vz'), 'two_d_mode': True},
    ):
        config = parameter_file(tmp_path, {'odom0': 'odom', **parameters})
        assert found(JudgeSetup.load(config), run) == {}


@pytest.mark.parametrize(
    ('stated', 'error'),
    [
        ({'/odom': {'speed': 1.0}}, ParameterError),
        ({'/odom': {'velocity': 0}}, ParameterError),
        ({'/odom': 0.1}, ParameterError),
        ({'/odom': {'acceleration': 0.1}}, JudgeError),
        ({'/radar': {'velocity': 0.1}}, JudgeError),
    ],
)
def test_wrong_deviations_are_refused(
    tmp_path: Path, stated: Any, error: type[Sim2RealError]
) -> None:
    config = parameter_file(tmp_path, {'odom0': 'odom', 'odom0_config': mask('vx')})
    case = tmp_path / 'case.yaml'
    case.write_text(yaml.safe_dump({'deviation': stated}), encoding='utf-8')
    with pytest.raises(error, match='deviation'):
        JudgeSetup.load(config, case=case).judge(messages(FIRST))


def test_deviations_are_part_of_the_settings(tmp_path: Path) -> None:
    case = tmp_path / 'case.yaml'
    case.write_text('deviation: {/odom: {velocity: 0.2}}', encoding='utf-8')
    options = ReplayOptions.from_file(case)
    assert options.settings()['deviation'] == {'odom': {'velocity': 0.2}}


@pytest.mark.parametrize(
    ('quantity', 'state', 'field'),
    [
        ('rate', 'vyaw', 'angular_velocity_covariance'),
        ('acceleration', 'ax', 'linear_acceleration_covariance'),
    ],
)
def test_an_imu_that_marks_fused_quantities_as_absent_is_named(
    tmp_path: Path, quantity: str, state: str, field: str
) -> None:
    """The topic has messages; the setting that is named makes the filter use them."""
    absent = np.broadcast_to(np.diag([-1.0, 0.0, 0.0]), (_N, 3, 3))
    array = dataclasses.replace(imu(TIMES, frame='base_link'), **{field: absent})
    run = recording({'/imu': array})
    config = parameter_file(tmp_path, {'imu0': '/imu', 'imu0_config': mask('yaw', state)})
    (note,) = JudgeSetup.load(config).judge(run).notes
    assert (note.code, note.words['quantity']) == ('rl.absent', quantity)
    stated = re.search('`(deviation: .*)` in case.yaml', note.remedy)
    assert stated is not None
    case = tmp_path / 'case.yaml'
    case.write_text(stated[1].replace('VALUE', '0.3'), encoding='utf-8')
    judged = JudgeSetup.load(config, case=case).judge(run)
    assert 'rl.absent' not in {note.code for note in judged.notes}
    assert [part.fused for part in judged.parts] == [_N, _N]
