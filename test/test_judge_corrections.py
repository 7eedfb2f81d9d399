# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Deviations that can be corrected: gravity in the right axes, increments as body velocities."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_examples import (
    START_NS,
    YAW,
    filter_config,
    fixes,
    imu,
    mask,
    navsat_config,
    odometry,
    recording,
    stamps,
)
from preparation_examples import mounted, prepared
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.robot_localization.state import ROLL, VROLL, N
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import OdometryArray, PoseArray
from sim_sensors.world.geodesy import LocalFrame

G = 9.80665
GRAVITY = ReplayOptions(correct=frozenset({'gravity'}))
DIFFERENTIAL = ReplayOptions(correct=frozenset({'differential'}))

angle = st.floats(-3.1, 3.1)
# Away from 90 degrees of pitch, where the filter's own angles are not defined.
attitudes = st.tuples(angle, st.floats(-1.5, 1.5), angle)


@pytest.fixture(scope='module')
def gravity_configs(tmp_path_factory: pytest.TempPathFactory) -> list[FilterConfig]:
    """Both values of `relative`."""
    imu0 = {'imu0': 'imu', 'imu0_config': mask('ax', 'ay', 'az')}
    imu0['imu0_remove_gravitational_acceleration'] = True
    return [
        filter_config(tmp_path_factory.mktemp('gravity'), imu0_relative=relative, **imu0)
        for relative in (False, True)
    ]


@given(
    body=attitudes,
    mounting=attitudes,
    with_attitude=st.booleans(),
    relative=st.booleans(),
    north=angle,
)
def test_corrected_gravity_removal_leaves_no_acceleration_at_rest(
    gravity_configs: list[FilterConfig], body: tuple[float, float, float],
    mounting: tuple[float, float, float], with_attitude: bool, relative: bool, north: float,
) -> None:  # fmt: skip
    """The attitude of the message is used; without one, that of the filter."""
    sensor = Rotation.from_euler('xyz', body) * Rotation.from_euler('xyz', mounting)
    message = dataclasses.replace(
        imu(stamps(1.0, 1.0), force=sensor.inv().apply([[0.0, 0.0, G]]), attitude=with_attitude),
        orientation=(Rotation.from_euler('z', north) * sensor).as_quat()[None],
    )
    x = np.zeros(N)
    x[ROLL : ROLL + 3] = (0.1, -0.2, 0.3) if with_attitude else body
    config = gravity_configs[relative]
    (accelerations,) = prepared(config, message, mounted(mounting), x=x, correct=GRAVITY.correct)
    assert np.abs(accelerations.z).max() < 1e-12 * G


def test_corrected_gravity_removal_keeps_accelerations_of_a_tilted_body(
    gravity_configs: list[FilterConfig],
) -> None:
    """A body pitched by 0.2 rad accelerates forward by 1.5 m/s^2."""
    mounting = (0.5, -0.4, 2.0)
    sensor = Rotation.from_euler('y', 0.2) * Rotation.from_euler('xyz', mounting)
    felt = Rotation.from_euler('y', 0.2).apply([1.5, 0.0, 0.0]) + np.array([0.0, 0.0, G])
    force = sensor.inv().apply(felt)[None]
    message = dataclasses.replace(
        imu(stamps(1.0, 1.0), force=force), orientation=sensor.as_quat()[None]
    )
    place = mounted(mounting)
    (measurements,) = prepared(gravity_configs[0], message, place, correct=GRAVITY.correct)
    np.testing.assert_allclose(measurements.z, [1.5, 0.0, 0.0], atol=1e-13)
    (upstream,) = prepared(gravity_configs[0], message, place)
    assert np.abs(upstream.z - measurements.z).max() > 1.0


def random_pairs(n: int, seed: int) -> tuple[PoseArray, np.ndarray]:
    """Poses 0.1 s apart, two by two with independent errors, and the true body twists between."""
    rng = np.random.default_rng(seed)
    root = rng.normal(0.0, 1.0, (6, 6)) * np.array([0.02] * 3 + [0.004] * 3)[:, None]
    covariance = root @ root.T
    first = Rotation.from_euler('xyz', rng.uniform(-1.0, 1.0, (n, 3)))
    step = Rotation.from_rotvec(0.02 * rng.standard_normal((n, 3)))
    at = rng.uniform(-10.0, 10.0, (n, 3))
    ahead = rng.uniform(-1.0, 1.0, (n, 3))
    truth = np.hstack([ahead, step.as_euler('xyz')]) / 0.1
    position = np.stack([at, at + first.apply(ahead)], axis=1).reshape(-1, 3)
    attitude = Rotation.concatenate([first, first * step])
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    error = rng.standard_normal((2 * n, 6)) @ root.T
    stamp_ns = stamps(10.0, 0.2 * n)
    poses = PoseArray(
        stamp_ns, stamp_ns, 'odom', position=position + error[:, :3],
        orientation=(Rotation.from_rotvec(error[:, 3:]) * attitude[order]).as_quat(),
        pose_covariance=np.broadcast_to(covariance, (2 * n, 6, 6)),
    )  # fmt: skip
    return poses, truth


def test_increments_of_whole_poses_have_the_stated_covariance(tmp_path: Path) -> None:
    """Mean NEES of 1500 increments: 6 to 5 sigma (0.09 each). Upstream is off by dt^3 = 1000."""
    states = ('x', 'y', 'z', 'roll', 'pitch', 'yaw')
    pose = {'pose0': 'pose', 'pose0_config': mask(*states), 'pose0_differential': True}
    config = filter_config(tmp_path, **pose)
    poses, truth = random_pairs(1500, seed=1)

    def mean_square(correct: frozenset[str]) -> float:
        increments = prepared(config, poses, correct=correct)[::2]
        errors = np.array([increment.z for increment in increments]) - truth
        R = np.array([increment.R for increment in increments])
        return float(np.einsum('ni,nij,nj->n', errors, np.linalg.inv(R), errors).mean())

    assert mean_square(DIFFERENTIAL.correct) == pytest.approx(6.0, abs=5 * math.sqrt(12 / 1500))
    assert mean_square(frozenset()) > 500.0


def test_increments_without_orientation_are_rotated_by_the_attitude_of_the_filter(
    tmp_path: Path,
) -> None:
    """The frame is turned in the world; the covariance turns with the increment."""
    pose = {'pose0': 'pose', 'pose0_config': mask('x', 'y', 'z'), 'pose0_differential': True}
    config = filter_config(tmp_path, **pose)
    C = np.zeros((6, 6))
    C[:3, :3] = [[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 3.0]]
    clock = stamps(2.0, 1.0)
    array = PoseArray(
        clock, clock, 'marker', position=np.array([[5.0, 6.0, 7.0], [6.0, 8.0, 6.5]]),
        orientation=np.array([[0.0, 0.0, 0.0, 1.0]] * 2), pose_covariance=np.stack([C, 2.0 * C]),
    )  # fmt: skip
    frame, angles = Rotation.from_euler('xyz', (0.2, 0.1, -2.0)), (0.1, -0.3, 1.2)
    link = StaticTransform('odom', 'marker', (1, 2, 3), tuple(frame.as_quat().tolist()))
    x = np.zeros(N)
    x[ROLL : ROLL + 3] = angles
    (measurements,) = prepared(config, array, (link,), x=x, correct=DIFFERENTIAL.correct)
    turn = (Rotation.from_euler('xyz', angles).inv() * frame).as_matrix()
    assert measurements.states == [6, 7, 8]
    np.testing.assert_allclose(measurements.z, turn @ [2.0, 4.0, -1.0], atol=1e-13)
    expected = turn @ (3.0 * C[:3, :3] / 0.25) @ turn.T
    np.testing.assert_allclose(measurements.R, expected, atol=1e-12)


def test_increments_with_orientation_are_independent_of_the_filter_heading(tmp_path: Path) -> None:
    odom = {'odom0': 'odom', 'odom0_config': mask('x', 'y'), 'odom0_differential': True}
    config = filter_config(tmp_path, **odom)
    position = np.array([[5.0, 6.0, 0.0], [5.0, 8.0, 0.0]])
    yaw = math.pi / 2 + np.array([0.0, 0.3])
    array = odometry(stamps(2.0, 1.0), position=position, yaw=yaw)
    x = np.zeros(N)
    x[ROLL + 2] = 2.0
    (measurements,) = prepared(config, array, x=x, correct=DIFFERENTIAL.correct)
    np.testing.assert_allclose(measurements.z, [4.0, 0.0], atol=1e-14)


def test_increments_of_another_body_frame_are_corrected_for_the_lever_arm(tmp_path: Path) -> None:
    """v_base = R v + p x w with the filter's rates, covariance R C R'."""
    config = filter_config(
        tmp_path, odom0='odom', odom0_config=mask('x', 'y', 'z'), odom0_differential=True,
        odom0_pose_use_child_frame=True,
    )  # fmt: skip
    position = np.array([[0.0, 0.0, 0.0], [1.0, 0.5, 0.2]])
    array = odometry(stamps(2.0, 1.0), position=position, child_frame='imu_link')
    C = np.diag([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    array = dataclasses.replace(array, pose_covariance=np.stack([C, C]))
    x = np.zeros(N)
    x[ROLL : ROLL + 3] = angles = (0.1, -0.3, 1.2)
    x[VROLL + 2] = 0.7
    place = mounted((0.3, 0.0, 1.0), (0.4, -0.2, 0.1))
    (measurements,) = prepared(config, array, place, x=x, correct=DIFFERENTIAL.correct)
    turn = Rotation.from_euler('xyz', angles).inv().as_matrix()
    expected = turn @ [2.0, 1.0, 0.4] + np.cross((0.4, -0.2, 0.1), (0.0, 0.0, 0.7))
    np.testing.assert_allclose(measurements.z, expected, atol=1e-13)
    np.testing.assert_allclose(measurements.R, turn @ (8.0 * C[:3, :3]) @ turn.T, atol=1e-12)


SPEED, RATE, RADIUS = 2.0, 0.25, 8.0


def around(seconds: float, deviation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stamps at 10 Hz and noisy positions on a circle that begins eastward."""
    clock = stamps(10.0, seconds)
    heading = RATE * (clock - START_NS) * 1e-9
    position = RADIUS * np.stack([np.sin(heading), 1.0 - np.cos(heading), 0.0 * heading], axis=1)
    noise = np.random.default_rng(seed).normal(0.0, deviation, position.shape)
    return clock, position + noise


def circle(folder: Path, case: ReplayOptions, seed: int = 0) -> JudgedRun:
    """Heading and rate from an IMU, speed from increments of positions alone."""
    seconds, deviation = 25.0, 0.02
    clock, position = around(seconds, deviation, seed)
    imu_ns = stamps(100.0, seconds)
    t = (imu_ns - START_NS) * 1e-9
    rate = np.zeros((len(t), 3))
    rate[:, 2] = RATE
    positions: OdometryArray = odometry(
        clock, position=position, variance=deviation**2, child_frame=''
    )
    config = filter_config(
        folder, frequency=100.0, two_d_mode=True, odom0='odometry/gps',
        odom0_config=mask('x', 'y'), odom0_differential=True,
        process_noise_covariance=[1e-4] * 15, initial_estimate_covariance=[1.0] * 15, **YAW,
    )  # fmt: skip
    run = recording({'odometry/gps': positions, 'imu': imu(imu_ns, yaw=RATE * t, rate=rate)})
    return judge(run, config, None, case)


def test_a_circle_from_increments_alone_goes_forward(tmp_path: Path) -> None:
    """Increments are half an interval old: 0.025 m/s to the right. Upstream: 2 m/s wrong."""
    corrected, upstream = circle(tmp_path, DIFFERENTIAL), circle(tmp_path, ReplayOptions())
    late = corrected.stamp_ns > START_NS + 5 * 10**9
    smear = np.array([SPEED, -SPEED * RATE * 0.05])
    assert np.abs(corrected.linear_velocity[late, :2] - smear).max() < 0.1
    assert np.abs(corrected.linear_velocity[late, :2].mean(axis=0) - smear).max() < 0.02
    assert np.abs(upstream.linear_velocity[late, 0] - SPEED).max() > SPEED


def test_innovations_of_increments_match_their_covariance(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Mean NIS over two degrees of freedom is 1; it scatters by 0.02 over 20 runs of 25 s."""

    def mean(case: ReplayOptions) -> float:
        values = []
        for seed in range(20):
            samples = circle(tmp_path, case, seed=seed).corrections
            late = (samples.part == 0) & (samples.stamp_ns > START_NS + 2 * 10**9)
            # two_d_mode adds seven measurements of zero, which are met.
            values.append(samples.nis[late] / 2.0)
        return float(np.concatenate(values).mean())

    right, upstream = mean(DIFFERENTIAL), mean(ReplayOptions())
    record_property('corrected', right)
    record_property('upstream', upstream)
    assert right == pytest.approx(1.0, abs=0.1)
    assert upstream > 50.0


def test_increments_of_navsat_transform_are_fused_as_body_velocities(tmp_path: Path) -> None:
    clock, position = around(25.0, 0.0, 0)
    imu_ns = stamps(100.0, 25.0)
    t = (imu_ns - START_NS) * 1e-9
    latitude, longitude, altitude = LocalFrame(43.0, -89.4, 260.0).to_geodetic(position)
    fix = fixes(clock, latitude, longitude, altitude=altitude)
    run = recording({'imu': imu(imu_ns, yaw=RATE * t), 'fix': fix})
    config = filter_config(
        tmp_path, frequency=100.0, two_d_mode=True, odom0='odometry/gps',
        odom0_config=mask('x', 'y', 'yaw'), odom0_differential=True, imu0='imu',
        imu0_config=mask('yaw'),
    )  # fmt: skip
    navsat = navsat_config(tmp_path, zero_altitude=True)
    corrected, upstream = (
        judge(run, config, navsat, case) for case in (DIFFERENTIAL, ReplayOptions())
    )
    late = corrected.stamp_ns > START_NS + 5 * 10**9
    assert np.abs(corrected.linear_velocity[late, 0] - SPEED).max() < 0.1
    assert np.abs(corrected.angular_velocity[late, 2] - RATE).max() < 0.05
    assert any(note.code == 'rl.differential_gps' for note in upstream.notes)
    assert not any(note.code == 'rl.differential_gps' for note in corrected.notes)
