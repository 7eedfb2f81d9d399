# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A field that is not finite costs neither the message nor the topic; its remedy works."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, mask
from recording_examples import drive
from test_recording_checks import altered, count_of, edited, note_on, reread

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.recording.fields import complete_messages, fill_covariance
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import ImuArray, OdometryArray, is_absent

FIELD_CODES = {
    f'recording.{code}'
    for code in (
        'field_left_out', 'covariance_filled', 'covariance_assumed', 'nothing_measured',
        'quantity_absent', 'covariance_zero', 'bad_value',
    )
}  # fmt: skip


def field_codes(recording: Recording) -> set[str]:
    return {note.code for note in recording.notes} & FIELD_CODES


def follow_remedy(recording: Recording, folder: Path) -> Recording:
    """Write the corrections of the only remedy to recording.yaml and read again."""
    (remedy,) = {note.remedy for note in recording.notes if note.code in FIELD_CODES}
    match = re.search('`(corrections: .*?)`', remedy)
    assert match, remedy
    with (folder / 'line_3/recording.yaml').open('a', encoding='utf-8') as file:
        file.write(f'{match[1]}\n')
    return read_recording(folder / 'line_3')


def test_fixes_without_any_finite_covariance_are_used_and_the_remedy_works(tmp_path: Path) -> None:
    read = reread(edited('gps', slice(None), position_covariance=np.nan), tmp_path)
    assert read.gps.latitude.tolist() == drive().gps.latitude.tolist()
    assert count_of(read, 'covariance_assumed') == 40
    assert read.gps.position_covariance[7].tolist() == np.eye(3).tolist()
    followed = follow_remedy(read, tmp_path)
    assert field_codes(followed) == set()
    assert len(followed.gps) == 40


def test_some_covariances_that_are_not_finite_take_the_last_finite_one(tmp_path: Path) -> None:
    good = drive()
    covariance = good.gps.position_covariance * np.arange(1, 41)[:, None, None]
    bad = covariance.copy()
    bad[:2], bad[10:15] = np.nan, np.nan
    read = reread(altered(good, 'gps', position_covariance=bad), tmp_path)
    assert count_of(read, 'covariance_filled') == 7
    expected = covariance[[2, 2, *range(2, 10), *[9] * 5, *range(15, 40)]]
    assert read.gps.position_covariance.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ('quantity', 'deviation'),
    [('angular_velocity', 0.01), ('linear_acceleration', 0.1), ('orientation', 0.05)],
)
def test_imu_covariances_that_are_not_finite_are_assumed_and_the_remedy_works(
    tmp_path: Path, quantity: str, deviation: float
) -> None:
    name = f'{quantity}_covariance'
    read = reread(edited('imu', slice(None), **{name: np.nan}), tmp_path)
    assert count_of(read, 'covariance_assumed') == 400
    np.testing.assert_allclose(
        getattr(read.imu, name), deviation**2 * np.eye(3)[None] + np.zeros((400, 1, 1))
    )
    assert getattr(read.imu, quantity).tolist() == getattr(drive().imu, quantity).tolist()
    assert field_codes(follow_remedy(read, tmp_path)) == set()


def test_a_variance_of_one_axis_that_is_nan_keeps_the_other_axes() -> None:
    covariance = np.tile(np.diag([1.0, 2.0, np.nan]), (3, 1, 1))
    covariance[:, 0, 1] = covariance[:, 1, 0] = 0.5
    covariance[:, 0, 2] = covariance[1, 2, 1] = np.nan
    covariance[2, 1, 1] = np.inf
    filled = fill_covariance(covariance, 9.0 * np.eye(3))
    assert filled[0].tolist() == [[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 9.0]]
    assert filled[1].tolist() == filled[0].tolist()
    assert filled[2].tolist() == [[1.0, 0.0, 0.0], [0.0, 1e15, 0.0], [0.0, 0.0, 9.0]]


def test_rates_that_are_nan_are_marked_absent_beside_a_good_orientation(tmp_path: Path) -> None:
    good = drive()
    read = reread(edited('imu', ([5, 17], 1), good, angular_velocity=np.nan), tmp_path)
    note = note_on(read, 'field_left_out')
    assert (note.numbers['count'], note.words['field']) == (2, 'angular_velocity')
    assert note.numbers['stamp'] == good.imu.stamp_ns[5]
    assert len(read.imu) == 400
    assert np.flatnonzero(is_absent(read.imu.angular_velocity_covariance)).tolist() == [5, 17]
    assert read.imu.orientation.tolist() == good.imu.orientation.tolist()
    assert np.isfinite(read.imu.angular_velocity).all()


def test_only_messages_with_rates_and_forces_are_compared_with_the_truth(tmp_path: Path) -> None:
    read = reread(edited('imu', slice(None, None, 4), angular_velocity=np.nan), tmp_path)
    assert read.imu.stamp_ns.tolist() == drive().imu.stamp_ns.tolist()
    expected = np.delete(drive().imu.stamp_ns, np.s_[::4])
    assert complete_messages(read.imu).stamp_ns.tolist() == expected.tolist()
    assert complete_messages(silent_imu()).stamp_ns.tolist() == drive().imu.stamp_ns.tolist()


def test_an_orientation_that_is_stated_absent_may_be_nan_in_any_message(tmp_path: Path) -> None:
    absent = np.zeros((400, 3, 3))
    absent[:, 0, 0], absent[:, 1, 1] = -1.0, np.nan
    orientation = drive().imu.orientation.copy()
    orientation[::3] = np.nan
    values = {'orientation_covariance': absent, 'orientation': orientation}
    read = reread(altered(drive(), 'imu', **values), tmp_path)
    assert field_codes(read) == {'recording.quantity_absent'}
    assert np.isfinite(read.imu.orientation_covariance).all()
    assert np.isfinite(read.imu.orientation).all()


def test_an_imu_message_without_any_finite_field_is_dropped(tmp_path: Path) -> None:
    values = {'angular_velocity': np.nan, 'linear_acceleration': np.nan, 'orientation': np.nan}
    read = reread(edited('imu', 3, **values), tmp_path)
    assert (count_of(read, 'bad_value'), len(read.imu)) == (1, 399)


def test_positions_that_are_nan_are_missing_fixes_however_many(tmp_path: Path) -> None:
    read = reread(edited('gps', slice(10, 30), latitude=np.nan), tmp_path)
    assert (count_of(read, 'bad_value'), len(read.gps)) == (20, 20)


def odometry_of(recording: Recording) -> OdometryArray:
    array = recording.messages['/odom']
    assert isinstance(array, OdometryArray)
    return array


def test_positions_that_no_filter_fuses_may_be_nan(tmp_path: Path) -> None:
    """The judge fuses the twist alone; the estimates do not depend on the position."""
    good = drive()
    wheels = odometry_of(good)
    bad = dataclasses.replace(wheels, position=np.full_like(wheels.position, np.nan))
    messages = {**good.messages, '/odom': bad}
    read = reread(dataclasses.replace(good, messages=messages), tmp_path)
    note = note_on(read, 'field_left_out')
    assert (note.subject, note.words['field']) == ('/odom', 'position')
    assert odometry_of(read).linear_velocity.tolist() == wheels.linear_velocity.tolist()
    config = filter_config(
        tmp_path, frequency=50.0, world_frame='odom', odom_frame='odom',
        base_link_frame='base_footprint', odom0='/odom', odom0_config=mask('vx', 'vyaw'),
    )  # fmt: skip
    estimates = [judge(run, config) for run in (good, read)]
    assert len(estimates[0].stamp_ns) > 100
    assert np.array_equal(estimates[0].position, estimates[1].position)


@pytest.mark.parametrize('rows', [slice(0, 3), slice(50, 60)])
def test_positions_that_are_nan_for_a_while_do_not_spoil_the_estimates(
    tmp_path: Path, rows: slice
) -> None:
    good = drive()
    wheels = odometry_of(good)
    position = wheels.position.copy()
    position[rows] = np.nan
    bad = dataclasses.replace(wheels, position=position)
    read = reread(dataclasses.replace(good, messages={**good.messages, '/odom': bad}), tmp_path)
    config = filter_config(
        tmp_path, frequency=50.0, world_frame='odom', odom_frame='odom',
        base_link_frame='base_footprint', odom0='/odom', odom0_config=mask('x', 'y', 'yaw', 'vx'),
    )  # fmt: skip
    judged = judge(read, config)
    assert len(judged.stamp_ns) > 100
    assert np.isfinite(judged.position).all()
    codes = {'bad_value': 3} if rows.start == 0 else {'field_left_out': 10}
    for code, count in codes.items():
        assert count_of(read, code) == count


def test_covariances_of_wheels_that_are_nan_are_assumed(tmp_path: Path) -> None:
    good = drive()
    wheels = odometry_of(good)
    nothing = np.full((len(wheels), 6, 6), np.nan)
    bad = dataclasses.replace(wheels, twist_covariance=nothing)
    read = reread(dataclasses.replace(good, messages={**good.messages, '/odom': bad}), tmp_path)
    assert count_of(read, 'covariance_assumed') == len(wheels)
    np.testing.assert_allclose(odometry_of(read).twist_covariance[3], 0.01 * np.eye(6))


def silent_imu() -> ImuArray:
    absent = np.zeros((400, 3, 3))
    absent[:, 0, 0] = -1.0
    imu = drive().imu
    assert imu is not None
    return dataclasses.replace(
        imu,
        orientation_covariance=absent,
        angular_velocity_covariance=absent,
        linear_acceleration_covariance=absent,
    )


def test_an_imu_whose_covariances_are_all_minus_one_is_named_and_the_remedy_works(
    tmp_path: Path,
) -> None:
    read = reread(drive().with_messages('imu', silent_imu()), tmp_path)
    assert field_codes(read) == {'recording.nothing_measured'}
    assert note_on(read, 'nothing_measured').severity.name == 'DECISIVE'
    config = filter_config(
        tmp_path, frequency=50.0, world_frame='odom', odom_frame='odom',
        base_link_frame='base_link', imu0='/imu/data', imu0_config=mask('vyaw'),
    )  # fmt: skip
    with pytest.raises(JudgeError, match='rate_std'):
        judge(read, config)
    followed = follow_remedy(read, tmp_path)
    assert 'recording.nothing_measured' not in field_codes(followed)
    assert len(judge(followed, config).stamp_ns) > 100


def test_a_truth_whose_twist_is_nan_is_a_truth_of_poses(tmp_path: Path) -> None:
    nothing = {'linear_velocity': np.nan, 'angular_velocity': np.nan}
    read = reread(edited('truth', slice(None), **nothing), tmp_path)
    assert count_notes(read, 'truth.from_poses') == 1
    assert np.isfinite(read.truth.linear_velocity).all()


def count_notes(recording: Recording, code: str) -> int:
    return sum(note.code == code for note in recording.notes)
