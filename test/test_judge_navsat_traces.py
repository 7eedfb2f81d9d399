# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""navsat_transform against traces of the real node that come with the tests; traces/README.md."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from judge_examples import YAW
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.fixes import LiveNavsat
from sim2real_eval.judge.robot_localization.parameter_file import ParameterReader
from sim2real_eval.recording.metadata import FrameTree, read_transforms
from sim_sensors.core.measurements import FixArray, ImuArray, OdometryArray

TRACES = Path(__file__).parent / 'traces' / 'navsat'
CASES = sorted(path.name for path in TRACES.iterdir())
Row = dict[str, str]


def rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def numbers(row: Row, *names: str) -> np.ndarray:
    return np.array([float(row[name]) for name in names])


def fix(row: Row) -> FixArray:
    stamp_ns = np.array([int(row['stamp_ns'])])
    latitude, longitude, altitude = numbers(row, 'lat', 'lon', 'alt')
    covariance = numbers(row, *(f'cov{k}' for k in range(9))).reshape(1, 3, 3)
    return FixArray(
        stamp_ns=stamp_ns, arrival_ns=stamp_ns, frame=row['frame'], latitude=[latitude],
        longitude=[longitude], altitude=[altitude], status=[int(row['status'])],
        position_covariance=covariance, position_covariance_type=[2],
    )  # fmt: skip


def attitude(row: Row) -> ImuArray:
    stamp_ns = np.array([int(row['stamp_ns'])])
    zeros, unknown = np.zeros((1, 3)), np.zeros((1, 3, 3))
    return ImuArray(
        stamp_ns=stamp_ns, arrival_ns=stamp_ns, frame=row['frame'],
        orientation=numbers(row, 'qx', 'qy', 'qz', 'qw')[None], angular_velocity=zeros,
        linear_acceleration=zeros, orientation_covariance=unknown,
        angular_velocity_covariance=unknown, linear_acceleration_covariance=unknown,
    )  # fmt: skip


def played(folder: Path) -> tuple[list[OdometryArray], list[FixArray]]:
    """Return odometry/gps and gps/filtered for ticks at the times of the node's own ticks.

    The first tick comes twice, because the tick that fixes the transform publishes nothing.
    """
    navsat = LiveNavsat(
        NavsatConfig.from_file(folder / 'navsat_params.yaml'),
        FilterConfig.from_parameters(ParameterReader('filter', YAW)),
        FrameTree(read_transforms(folder / 'static_transforms.yaml')),
    )
    events = [
        (int(row['seq']), kind, row)
        for kind in ('fix', 'imu', 'odom')
        for row in rows(folder / f'{kind}.csv')
    ]
    outputs = ('expected_odometry_gps', 'expected_gps_filtered')
    ticks = {int(row['after_seq']) for name in outputs for row in rows(folder / f'{name}.csv')}
    published, filtered, odometry = [], [], None
    for seq, kind, row in sorted(events, key=lambda event: event[0]):
        if kind == 'fix':
            navsat.receive_fix(fix(row))
        elif kind == 'imu':
            navsat.receive_heading(attitude(row))
        else:
            angles = Rotation.from_quat(numbers(row, 'qx', 'qy', 'qz', 'qw')).as_euler('xyz')
            odometry = row
            navsat.receive_odometry(np.append(numbers(row, 'x', 'y', 'z'), angles))
        for _ in range((seq in ticks) + (seq == min(ticks))):
            position = navsat.tick()
            if position is not None:
                published.append(position)
            if odometry is None:
                continue
            covariance = numbers(odometry, *(f'pcov{k}' for k in range(36))).reshape(6, 6)
            stamp_ns, position = int(odometry['stamp_ns']), numbers(odometry, 'x', 'y', 'z')
            estimate = OdometryArray(
                stamp_ns=[stamp_ns], arrival_ns=[stamp_ns], frame='odom',
                child_frame='base_link', position=position[None], orientation=np.zeros((1, 4)),
                linear_velocity=np.zeros((1, 3)), angular_velocity=np.zeros((1, 3)),
                pose_covariance=covariance[None], twist_covariance=np.zeros((1, 6, 6)),
            )  # fmt: skip
            back = navsat.filtered_fix(estimate, stamp_ns)
            if back is not None:
                filtered.append(back)
    return published, filtered


@pytest.mark.parametrize('name', CASES)
def test_navsat_transform_reproduces_the_output_of_the_original_node(name: str) -> None:
    """Positions to 1e-6 m (UTM coordinates are 5e6 m), covariances to 1e-9 of the largest."""
    folder = TRACES / name
    published, _ = played(folder)
    expected = rows(folder / 'expected_odometry_gps.csv')
    assert len(expected) >= 2
    stamps = [int(odometry.stamp_ns[0]) for odometry in published]
    assert stamps == [int(row['stamp_ns']) for row in expected]
    for odometry, row in zip(published, expected, strict=True):
        position = numbers(row, 'x', 'y', 'z')
        np.testing.assert_allclose(odometry.position[0], position, rtol=0, atol=1e-6)
        names = [f'Ppose_{i}_{j}' for i in range(6) for j in range(6)]
        covariance = numbers(row, *names).reshape(6, 6)
        assert np.abs(odometry.pose_covariance[0] - covariance).max() <= 1e-9 * covariance.max()


@pytest.mark.parametrize('name', CASES)
def test_navsat_transform_reproduces_the_filtered_gps_of_the_original_node(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """Latitude and longitude to 1e-9 degrees, altitude to 1e-8 m, covariance to 1e-12."""
    folder = TRACES / name
    _, filtered = played(folder)
    expected = rows(folder / 'expected_gps_filtered.csv')
    assert len(expected) >= 2
    assert [int(fix.stamp_ns[0]) for fix in filtered] == [int(row['stamp_ns']) for row in expected]
    for fixes, row in zip(filtered, expected, strict=True):
        latitude, longitude, altitude = numbers(row, 'lat', 'lon', 'alt')
        record_property('latitude', abs(fixes.latitude[0] - latitude))
        assert fixes.latitude[0] == pytest.approx(latitude, rel=0, abs=1e-9)
        assert fixes.longitude[0] == pytest.approx(longitude, rel=0, abs=1e-9)
        assert fixes.altitude[0] == pytest.approx(altitude, rel=0, abs=1e-8)
        covariance = numbers(row, *(f'cov{k}' for k in range(9))).reshape(3, 3)
        np.testing.assert_allclose(fixes.position_covariance[0], covariance, rtol=0, atol=1e-12)
        assert fixes.frame == row['frame']
        assert fixes.status[0] == int(row['status'])
        assert fixes.position_covariance_type[0] == int(row['cov_type'])
