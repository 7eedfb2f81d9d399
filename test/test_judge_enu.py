# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The plain front end: fixes become positions in the local frame, at once and all of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import (
    START_NS,
    filter_config,
    fixes,
    imu,
    mask,
    navsat_config,
    recording,
    stamps,
)
from live_examples import batch_bits, curve, everything, live_judge, step_through

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, with_front_end
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import FixArray
from sim_sensors.world.geodesy import LocalFrame

ENU = ReplayOptions(front_end='enu')
ANTENNA = (0.5, -0.3, 1.2)
MOUNTED = (
    StaticTransform('base_link', 'imu_link'),
    StaticTransform('base_link', 'gps_link', ANTENNA),
)
RADIUS, RATE = 5.0, 0.4


def config_of(folder: Path, *states: str) -> FilterConfig:
    """Fixes and the attitude of an IMU; frequency 50 Hz."""
    return filter_config(
        folder, frequency=50.0, odom0='odometry/gps', odom0_config=mask(*states), imu0='imu',
        imu0_config=mask('roll', 'pitch', 'yaw', 'vroll', 'vpitch', 'vyaw'),
    )  # fmt: skip


def fixes_at(stamp_ns: np.ndarray, enu: np.ndarray, frame: LocalFrame) -> FixArray:
    latitude, longitude, altitude = frame.to_geodetic(enu)
    return fixes(stamp_ns, latitude, longitude, altitude=altitude)


def angle(stamp_ns: np.ndarray) -> np.ndarray:
    return RATE * (stamp_ns - START_NS) * 1e-9


def centre_of_base(stamp_ns: np.ndarray) -> np.ndarray:
    """On a circle about (0, 0), heading along it."""
    a = angle(stamp_ns)
    return RADIUS * np.stack([np.sin(a), -np.cos(a), 0.0 * a], axis=1)


def antenna_on_circle(stamp_ns: np.ndarray) -> np.ndarray:
    a = angle(stamp_ns)
    x, y, z = ANTENNA
    arm = [np.cos(a) * x - np.sin(a) * y, np.sin(a) * x + np.cos(a) * y, np.full(len(a), z)]
    return centre_of_base(stamp_ns) + np.stack(arm, axis=1)


def circle(
    folder: Path, *, rate: float = 10.0, transforms: tuple[StaticTransform, ...] = MOUNTED
) -> JudgedRun:
    """Two thirds of a turn in 10 s; the heading is measured."""
    frame = LocalFrame(43.0, -89.4, 260.0)
    fix_ns, imu_ns = stamps(rate, 10.0), stamps(100.0, 10.0)
    rates = np.array([[0.0, 0.0, RATE]] * len(imu_ns))
    fix = fixes_at(fix_ns, antenna_on_circle(fix_ns), frame)
    messages = {'imu': imu(imu_ns, yaw=angle(imu_ns), rate=rates), 'fix': fix}
    run = recording(messages, transforms)
    return judge(run, config_of(folder, 'x', 'y', 'z'), None, ENU)


@pytest.mark.parametrize(
    ('latitude', 'longitude', 'altitude'),
    [(43.0, -89.4, 260.0), (0.0, 0.0, -30.0), (-33.9, 179.99999, 4000.0), (89.9999, 10.0, 0.0),
     (-90.0, 0.0, 2800.0)],
)  # fmt: skip
def test_a_robot_at_rest_is_at_the_origin_anywhere_on_earth(
    tmp_path: Path, latitude: float, longitude: float, altitude: float
) -> None:
    """Zero to the bit, for every fix and every estimate."""
    run = recording({
        'imu': imu(stamps(100.0, 1.0)),
        'fix': fixes(stamps(10.0, 1.0), latitude, longitude, altitude=altitude),
    })  # fmt: skip
    judged = judge(run, config_of(tmp_path, 'x', 'y', 'z'), None, ENU)
    assert len(judged.gps_position) == 10
    assert not judged.gps_position.any()
    assert not judged.position.any()


def test_the_lever_arm_of_the_antenna_is_removed_with_the_attitude(tmp_path: Path) -> None:
    """The attitude is that of the last tick, 20 ms before at most: 0.4 rad/s of 0.6 m are 5 mm."""
    judged = circle(tmp_path)
    truth = centre_of_base(judged.gps_stamp_ns) - antenna_on_circle(judged.gps_stamp_ns[:1])
    assert np.abs(judged.gps_position - truth).max() < 6e-3
    without = circle(tmp_path, transforms=())
    assert np.abs(without.gps_position - truth).max() > 0.5


@pytest.mark.parametrize('rate', [1.0, 10.0, 20.0, 50.0])
def test_every_fix_is_fused_at_any_rate(tmp_path: Path, rate: float) -> None:
    judged = circle(tmp_path, rate=rate)
    assert judged.gps_stamp_ns.tolist() == stamps(rate, 10.0).tolist()
    (pose,) = [part for part in judged.parts if str(part.name) == 'odom0 pose']
    assert pose.received == pose.fused == 10.0 * rate


@pytest.mark.parametrize(('cartesian', 'scale'), [(True, 5e-5), (False, 5e-4)])
def test_the_enu_front_end_agrees_with_navsat_transform_near_the_origin(
    tmp_path: Path, cartesian: bool, scale: float
) -> None:
    """Except for the scale of a plane at height 0 (4e-5 at 260 m) or of UTM (4e-4)."""
    fix_ns, frame = stamps(10.0, 10.0), LocalFrame(43.0, -89.4, 260.0)
    path = np.stack([np.linspace(0.0, 80.0, 100), np.linspace(0.0, -30.0, 100), np.zeros(100)], 1)
    run = recording({'imu': imu(stamps(100.0, 10.0)), 'fix': fixes_at(fix_ns, path, frame)})
    config = config_of(tmp_path, 'x', 'y')
    navsat = navsat_config(tmp_path, use_local_cartesian=cartesian, frequency=10.0)
    by_timer, plain = judge(run, config, navsat), judge(run, config, navsat, ENU)
    assert len(by_timer.gps_position) > 90
    same = np.isin(plain.gps_stamp_ns, by_timer.gps_stamp_ns)
    ours, navsat_run = plain.gps_position[same], by_timer.gps_position
    # navsat_transform puts its first fix where the filter was at that tick.
    apart = (ours - ours[0]) - (navsat_run - navsat_run[0])
    assert np.abs(apart[:, :2]).max() < scale * 86.0
    np.testing.assert_allclose(plain.gps_position, path, atol=2e-8)


def test_the_position_covariance_equals_that_of_the_fix(tmp_path: Path) -> None:
    judged = circle(tmp_path)
    expected = np.zeros((6, 6))
    expected[:3, :3] = np.diag([1e-4, 2e-4, 3e-4])
    assert (judged.gps_covariance == expected).all()


def test_a_datum_is_the_origin_and_its_yaw_is_not_used(tmp_path: Path) -> None:
    latitude, longitude, _ = LocalFrame(43.0, -89.4, 0.0).to_geodetic(np.array([[100.0, 0, 7.0]]))
    run = recording({
        'imu': imu(stamps(100.0, 1.0)),
        'fix': fixes(stamps(10.0, 1.0), latitude[0], longitude[0], altitude=7.0),
    })  # fmt: skip
    config = config_of(tmp_path, 'x', 'y')
    datum = {'wait_for_datum': True, 'datum': [43.0, -89.4, 0.5]}
    judged = judge(run, config, navsat_config(tmp_path, **datum), ENU)
    np.testing.assert_allclose(judged.gps_position[0], [100.0, 0.0, 7.0], atol=1e-3)
    assert any(note.code == 'navsat.datum_yaw' for note in judged.notes)


@pytest.mark.parametrize('differential', [False, True])
def test_the_live_front_end_equals_the_batch(tmp_path: Path, differential: bool) -> None:
    """Every input is used, with mounted sensors, a gate, and fixes that come 0.15 s late."""
    run, config = curve(), everything(tmp_path, odom1_differential=differential)
    late = dataclasses.replace(run.gps, arrival_ns=run.gps.stamp_ns + 150_000_000)
    run = dataclasses.replace(run, messages={**run.messages, '/gps/fix': late})
    judged = judge(run, config, None, ENU)
    live = live_judge(run, config, with_front_end(None, 'enu'))
    for _ in range(2):
        assert step_through(live, run).bits() == batch_bits(judged)
        assert live.parts == judged.parts
        assert live.notes() == list(judged.notes)
        live.reset()
    assert len(judged.gps_position) == len(run.gps)
