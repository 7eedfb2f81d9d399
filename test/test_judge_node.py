# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The whole judge against traces of the real nodes, through files as a user gives them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from judge_examples import read_rows

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.reading import read_recording

ALONE = (
    'd_wheel_imu', 'e_differential_pose', 'f_relative_pose', 'g_mounted_imu_lever',
    'h_smooth_lagged', 'i_predict_to_current_time', 'l_control',
)  # fmt: skip
WITH_NAVSAT = ('a_paper_circle_gauss', 'b_paper_airsim', 'c_clean_navsat')


def trace(reference_dir: Path, name: str) -> Path:
    folder = reference_dir / 'judge' / 'node' / name
    if not folder.is_dir():
        pytest.skip(f'no trace {folder}')
    return folder


def run(folder: Path) -> JudgedRun:
    navsat_file = folder / 'navsat_params.yaml'
    case = ReplayOptions.from_file(folder / 'case.yaml')
    return judge(
        read_recording(folder),
        FilterConfig.from_file(folder / 'params.yaml', unscented=case.unscented),
        NavsatConfig.from_file(navsat_file) if navsat_file.exists() else None,
        case,
    )


def expected_filtered(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _, rows = read_rows(folder / 'expected_filtered.csv.gz')
    return (
        np.array([int(row[0]) for row in rows]),
        np.array([int(row[1]) for row in rows]),
        np.array([[float(field) for field in row[2:]] for row in rows]),
    )


def covariance_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest error of an entry (i, j), relative to the largest deviations of i and j so far."""
    deviation = np.sqrt(np.diagonal(expected, axis1=1, axis2=2))
    deviation = np.maximum.accumulate(deviation, axis=0)
    return float((np.abs(actual - expected) / (deviation[:, :, None] * deviation[:, None])).max())


@pytest.mark.parametrize('name', [*ALONE, *WITH_NAVSAT])
def test_the_judge_reproduces_the_output_of_the_original_node(
    reference_dir: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    """Same rows and ticks, to 1e-9; to 1e-6 behind navsat_transform with its UTM coordinates."""
    folder = trace(reference_dir, name)
    judged = run(folder)
    stamp_ns, tick_ns, expected = expected_filtered(folder)
    assert judged.stamp_ns.tolist() == stamp_ns.tolist()
    assert judged.tick_ns.tolist() == tick_ns.tolist()
    tolerance = 1e-6 if name in WITH_NAVSAT else 1e-9
    published = np.hstack([judged.position, judged.orientation])
    close = {'rtol': 0.0, 'atol': tolerance, 'err_msg': 'robot_localization'}
    np.testing.assert_allclose(published, expected[:, :7], **close)
    velocity = np.hstack([judged.linear_velocity, judged.angular_velocity])
    np.testing.assert_allclose(velocity, expected[:, 7:13], **close)
    n = len(judged)
    pose, twist = expected[:, 13:49].reshape(n, 6, 6), expected[:, 49:].reshape(n, 6, 6)
    record_property('position', np.abs(published[:, :3] - expected[:, :3]).max())
    record_property('velocity', np.abs(velocity - expected[:, 7:13]).max())
    pairs = ((judged.pose_covariance, pose), (judged.twist_covariance, twist))
    errors = [covariance_error(*pair) for pair in pairs]
    record_property('covariance', max(errors))
    assert max(errors) < tolerance, f'covariances of robot_localization, relative: {tolerance}'


@pytest.mark.parametrize('name', WITH_NAVSAT)
def test_navsat_transform_reproduces_the_output_of_the_original_node(
    reference_dir: Path, name: str
) -> None:
    """Same fixes; positions to 1e-6 m, covariances to 1e-9 of the largest."""
    folder = trace(reference_dir, name)
    judged = run(folder)
    _, rows = read_rows(folder / 'expected_odometry_gps.csv.gz')
    assert judged.gps_stamp_ns.tolist() == [int(row[0]) for row in rows]
    expected = np.array([[float(field) for field in row[2:]] for row in rows])
    np.testing.assert_allclose(judged.gps_position, expected[:, :3], rtol=0, atol=1e-6)
    covariance = expected[:, 7:].reshape(-1, 6, 6)
    assert np.abs(judged.gps_covariance - covariance).max() <= 1e-9 * max(covariance.max(), 1e-9)


def test_the_csv_output_has_the_columns_of_the_traces_and_all_digits(
    reference_dir: Path, tmp_path: Path
) -> None:
    folder = trace(reference_dir, 'a_paper_circle_gauss')
    judged = run(folder)
    header, rows = read_rows(judged.write_csv(tmp_path / 'judged.csv'))
    assert header == read_rows(folder / 'expected_filtered.csv.gz')[0]
    n = len(judged)
    numbers = np.array([[float(field) for field in row[2:]] for row in rows])
    written = np.hstack([
        judged.position, judged.orientation, judged.linear_velocity, judged.angular_velocity,
        judged.pose_covariance.reshape(n, 36), judged.twist_covariance.reshape(n, 36),
    ])  # fmt: skip
    assert numbers.tobytes() == written.tobytes()


def test_every_message_of_an_input_is_counted_once(reference_dir: Path) -> None:
    judged = run(trace(reference_dir, 'a_paper_circle_gauss'))
    parts = {part.name: part for part in judged.parts}
    assert set(parts) == {
        'odom0 pose', 'odom0 twist', 'imu0 pose', 'imu0 twist', 'imu0 acceleration'
    }  # fmt: skip
    for part in judged.parts:
        assert part.received == part.older + part.unusable + part.fused + part.rejected
    assert parts['imu0 twist'].rejected > parts['imu0 twist'].fused
    assert any(note.subject.startswith('imu0 twist') for note in judged.notes)
    # Increments: the first fix gives none.
    assert parts['odom0 pose'].unusable == 1
