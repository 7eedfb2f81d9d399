# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The truth is aligned with the world of a judge before its errors are computed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_examples import run_of
from judge_examples import filter_config, fixes, mask, odometry, stamps
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.inputs import WorldPoses
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.consistency import check_consistency, nees_at
from sim2real_eval.metrics.judged_world import Alignment, truth_in_world
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FixArray, OdometryArray
from sim_sensors.world.geodesy import LocalFrame

FRAME = LocalFrame(latitude_deg=43.0, longitude_deg=-89.4, altitude_m=260.0)
ARM = np.array([0.6, -0.3, 1.2])
TURN = 0.7
SHIFT = np.array([12.0, -5.0, 3.0])


def circle() -> OdometryArray:
    stamp_ns = stamps(50.0, 40.0)
    angle = 0.3 * (stamp_ns - stamp_ns[0]) * 1e-9
    position = 20.0 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    velocity, rate = np.zeros((2, len(stamp_ns), 3))
    velocity[:, 0], rate[:, 2] = 6.0, 0.3
    return odometry(
        stamp_ns, position=position, yaw=angle + np.pi / 2, velocity=velocity, rate=rate
    )


def in_world(truth: OdometryArray) -> tuple[np.ndarray, np.ndarray]:
    turn = Rotation.from_euler('z', TURN)
    attitude = turn * Rotation.from_quat(truth.orientation)
    return turn.apply(truth.position) + SHIFT, attitude.as_quat()


def measured(truth: OdometryArray, noise: np.ndarray | float) -> FixArray:
    """Fixes of the antenna at every tenth stamp."""
    observed = truth.take(slice(None, None, 10))
    antenna = observed.position + Rotation.from_quat(observed.orientation).apply(ARM) + noise
    latitude, longitude, altitude = FRAME.to_geodetic(antenna)
    return fixes(observed.stamp_ns, latitude, longitude, altitude=altitude)


def perfect(truth: OdometryArray, noise: np.ndarray | None) -> JudgedRun:
    """Return an exact estimate in a rotated and shifted world, with the fixes of base_link."""
    position, orientation = in_world(truth)
    gps = np.zeros((0, 3))
    if noise is not None:
        gps = position[::10] + Rotation.from_euler('z', TURN).apply(noise)
    n, g = len(truth), len(gps)
    return JudgedRun(
        stamp_ns=truth.stamp_ns,
        tick_ns=truth.stamp_ns,
        position=position,
        orientation=orientation,
        linear_velocity=truth.linear_velocity,
        angular_velocity=truth.angular_velocity,
        pose_covariance=np.broadcast_to(np.eye(6), (n, 6, 6)),
        twist_covariance=np.broadcast_to(np.eye(6), (n, 6, 6)),
        gps_stamp_ns=truth.stamp_ns[::10][:g],
        gps_position=gps,
        gps_covariance=np.zeros((g, 6, 6)),
        parts=(),
        notes=(),
    )


def test_the_truth_is_aligned_with_the_fixes_by_rotation_and_shift() -> None:
    """Noise of 2 m leaves the turn exact, and the position as far off as the mean of the noise."""
    truth = circle()
    noise = np.random.default_rng(1).normal(scale=2.0, size=(len(truth) // 10, 3))
    judged = perfect(truth, noise)
    moved, *_ = truth_in_world(judged, truth, measured(truth, noise), ARM)
    position, orientation = in_world(truth)
    turned = Rotation.from_quat(moved.orientation).inv() * Rotation.from_quat(orientation)
    assert np.abs(turned.as_rotvec()).max() < 1e-5
    mean = Rotation.from_euler('z', TURN).apply(noise.mean(axis=0))
    np.testing.assert_allclose(
        moved.position - position, np.tile(mean, (len(truth), 1)), atol=1e-3
    )
    np.testing.assert_array_equal(moved.linear_velocity, truth.linear_velocity)


def test_a_receiver_without_a_fix_does_not_move_the_truth() -> None:
    truth = circle()
    judged, received = perfect(truth, 0.0 * truth.position[::10]), measured(truth, 0.0)
    latitude, status = received.latitude.copy(), received.status.copy()
    latitude[0], status[0] = np.nan, -1
    late = dataclasses.replace(received, latitude=latitude, status=status)
    moved, same = (truth_in_world(judged, truth, gps, ARM).truth for gps in (received, late))
    np.testing.assert_allclose(same.position, moved.position, atol=1.0)


def test_without_fixes_the_truth_starts_at_the_first_estimate() -> None:
    truth = circle()
    judged = perfect(truth, None)
    late = dataclasses.replace(judged, stamp_ns=judged.stamp_ns + 7_000_000)
    moved, remarks, _ = truth_in_world(judged, truth, None, np.zeros(3))
    np.testing.assert_allclose(moved.position, judged.position, atol=1e-9)
    np.testing.assert_allclose(moved.orientation, judged.orientation, atol=1e-9)
    # Fixes that the judge did not use are ignored; fixes at rest give a position but no heading.
    gone = dataclasses.replace(
        perfect(truth, np.zeros((len(truth) // 10, 3))),
        gps_position=np.zeros((len(truth) // 10, 3)),
    )
    other = fixes(judged.stamp_ns[::10] + 5)
    assert truth_in_world(gone, truth, other, ARM).notes == remarks
    still = truth_in_world(gone, truth, fixes(judged.stamp_ns[::10]), ARM)
    np.testing.assert_allclose(still.truth.position[::10].mean(axis=0), 0.0, atol=1e-9)
    never = dataclasses.replace(late, stamp_ns=late.stamp_ns + 10**12)
    with pytest.raises(MetricError, match='truth'):
        truth_in_world(never, truth, None, np.zeros(3))


def test_the_rotated_world_of_navsat_transform_is_recovered() -> None:
    """An IMU without orientation counts as heading east; a filter that starts at 0.7 rad then has
    its world turned by 0.7 rad, less what the filter turned until the transform was fixed.
    """
    recording = run_of('drive_line', 1, gps='baseline', imu='chrono')
    setup = JudgeSetup.load('clean').with_start(start_heading=TURN)
    assert setup.navsat is not None
    navsat = dataclasses.replace(setup.navsat, use_odometry_yaw=False)
    setup = dataclasses.replace(setup, navsat=navsat)
    judged = setup.judge(recording)
    moved, remarks, _ = truth_in_world(judged, recording.truth, recording.gps, np.zeros(3))
    turned = rotations.rotation_between(recording.truth.orientation[:1], moved.orientation[:1])[0]
    assert turned[2] == pytest.approx(TURN, abs=0.02)
    checked = check_consistency(setup, recording, judged)
    names = [squares.name for squares in checked.squares]
    assert names[-4:] == [
        f'NEES {name}' for name in ('position', 'orientation', 'velocity', 'angular velocity')
    ]
    assert [int(squares.freedom[0]) for squares in checked.squares[-4:]] == [2, 1, 2, 1]
    assert remarks[0] in checked.notes
    blind = recording.with_messages('truth', None)
    assert len(check_consistency(setup, blind, judged).squares) == len(names) - 4


def test_a_truth_of_another_body_frame_is_moved_to_the_base() -> None:
    """An INS 1 m ahead of base_link sees other positions and velocities, but the same errors."""
    truth = circle()
    arm = (1.0, 0.4, 0.0)
    body = Rotation.from_quat(truth.orientation)
    ins = dataclasses.replace(
        truth,
        child_frame='ins',
        position=truth.position + body.apply(arm),
        linear_velocity=truth.linear_velocity + np.cross(truth.angular_velocity, arm),
    )
    topic = '/ground_truth/odometry'
    recording = Recording(
        'circle', 'circle', '', {topic: ins}, {'truth': topic},
        (StaticTransform('base_link', 'ins', arm),),
    )  # fmt: skip
    # Or the transform comes from a file of the user's.
    file = TransformFile('car.yaml', '', recording.transforms)
    bare = dataclasses.replace(recording, transforms=())
    for transforms, given_truth in ((None, recording), (file, bare)):
        judge: Any = SimpleNamespace(base_link_frame='base_link', transforms=transforms)
        for squares in check_consistency(judge, given_truth, perfect(truth, None)).squares:
            assert len(squares) == len(truth)
            np.testing.assert_allclose(squares.squares, 0.0, atol=1e-12)


def test_the_uncertainty_of_an_unobservable_rotation_is_added_to_position_errors() -> None:
    """400 filters with positions of inputs and the yaw of their start: NEES of 800 degrees of
    freedom, 99.9 % range. Taken off the covariance, the turn would make it 1.8 times as large.
    """
    rng, truth = np.random.default_rng(4), circle().take(slice(0, 1))
    turn, noise, away = 0.03, 0.02, np.array([0.45, 0.1, 0.0])
    common = np.zeros((6, 6))
    common[5, 5] = turn**2
    pose = np.diag([noise**2, noise**2, 1.0, 1.0, 1.0, turn**2])
    total = 0.0
    for _ in range(400):
        moved = turn * rng.normal() * np.array([-away[1], away[0], 0.0])
        error = np.append(noise * rng.normal(size=2), 0.0)
        judged = dataclasses.replace(
            perfect(truth, None), position=away[None] + error, orientation=truth.orientation,
            pose_covariance=pose[None],
        )  # fmt: skip
        true = dataclasses.replace(truth, position=(away + moved)[None])
        alignment = Alignment(common, np.zeros(3), own_turn=True)
        position, *_ = nees_at(judged, np.array([0]), true, (0, 1), (2,), alignment)
        assert position.shared
        total += float(position.squares[0])
    low, high = chi2.ppf([0.0005, 0.9995], 800)
    assert low < total < high, total / 800


def test_a_barometer_determines_the_height_of_the_world_frame_of_the_judge() -> None:
    """An input of heights alone; all else goes through the first estimate, which is 2 m high."""
    truth = circle()
    judged = perfect(truth, None)
    judged.position[0, 2] += 2.0
    n = len(truth)
    heights = np.full((n, 3), np.nan)
    heights[:, 2] = SHIFT[2] + np.random.default_rng(3).normal(scale=0.5, size=n)
    poses = WorldPoses(truth.stamp_ns, heights, np.full(n, np.nan), np.full((n, 2), 0.25))
    moved, _, alignment = truth_in_world(judged, truth, None, np.zeros(3), lambda: poses)
    np.testing.assert_allclose(moved.position[:, :2], judged.position[:, :2], atol=1e-9)
    assert np.abs(moved.position[:, 2] - SHIFT[2]).max() < 4.0 * 0.5 / n**0.5
    expected = [1.0, 1.0, 0.25 / n, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(alignment.covariance, np.diag(expected))
    assert not alignment.own_turn


@pytest.mark.parametrize(
    ('inputs', 'variance'),
    [('vx vy vyaw', 1.0), ('yaw vx vy vyaw', 1.0), ('x y yaw vx vy vyaw', 1e-9)],
)
def test_a_consistent_filter_without_fixes_has_a_chi_square_nees(
    tmp_path: Path, inputs: str, variance: float
) -> None:
    """NEES in the middle and at the end of 40 runs, in worlds rotated and shifted at random:
    chi-square with 80 degrees of freedom for the position and 40 for the yaw, each within its
    99.9 % range (fixed seed). A covariance that keeps the 1 m^2 of the start fails this.
    """
    noise, start = [1e-9] * 15, [1e-9] * 15
    noise[6], noise[11] = 0.2, 1e-3
    start[0], start[1], start[5], start[6], start[11] = variance, variance, 1e-4, 25.0, 1.0
    config = filter_config(
        tmp_path, frequency=10.0, two_d_mode=True, odom0='odom',
        odom0_config=mask(*inputs.split()),
        process_noise_covariance=noise, initial_estimate_covariance=start,
    )  # fmt: skip
    setup = dataclasses.replace(JudgeSetup.load('clean'), filter=config, navsat=None)
    rng = np.random.default_rng(1)
    ratios: dict[str, list[list[float]]] = {}
    for _ in range(40):
        recording = wandering(rng)
        judged = setup.judge(recording)
        checked = check_consistency(setup, recording, judged)
        for sample in checked.squares:
            assert not sample.shared
            ratios.setdefault(sample.name, []).append([sample.squares[-60], sample.squares[-1]])
    for name, freedom in (('NEES position', 2), ('NEES orientation', 1)):
        low, high = chi2.ppf([0.0005, 0.9995], 40 * freedom)
        total = np.sum(ratios[name], axis=0)
        assert np.all((low < total) & (total < high)), (name, total / 40 / freedom)


def wandering(rng: np.random.Generator) -> Recording:
    """Return a drive with the process noise of the filter, and noisy odometry of it."""
    stamp_ns = stamps(10.0, 15.0)
    n = len(stamp_ns)
    velocity, rate, position = np.zeros((3, n, 3))
    velocity[:, 0] = 3.0 + np.cumsum(rng.normal(scale=0.2**0.5 / 10**0.5, size=n))
    rate[:, 2] = np.cumsum(rng.normal(scale=1e-4**0.5, size=n))
    yaw = rng.uniform(-np.pi, np.pi) + np.concatenate([[0.0], np.cumsum(rate[:-1, 2])]) / 10.0
    steps = velocity[:-1, :1] * np.stack([np.cos(yaw), np.sin(yaw)], axis=1)[:-1] / 10.0
    position[1:, :2] = np.cumsum(steps, axis=0)
    position[:, :2] += rng.normal(scale=10.0, size=2)
    truth = odometry(stamp_ns, position=position, yaw=yaw, velocity=velocity, rate=rate)
    observed, turning, place = velocity.copy(), rate.copy(), position.copy()
    observed[:, 0] += rng.normal(scale=0.3, size=n)
    turning[:, 2] += rng.normal(scale=0.02, size=n)
    place[:, :2] += rng.normal(scale=0.5, size=(n, 2))
    heading = yaw + rng.normal(scale=0.05, size=n)
    measured = odometry(stamp_ns, position=place, yaw=heading, velocity=observed, rate=turning)
    pose = np.diag([0.25, 0.25, 0.25, 1.0, 1.0, 0.0025])
    twist = np.diag([0.09, 1e-9, 1.0, 1.0, 1.0, 4e-4])
    covariances = {
        'pose_covariance': np.tile(pose, (n, 1, 1)),
        'twist_covariance': np.tile(twist, (n, 1, 1)),
    }
    measured = dataclasses.replace(measured, **covariances)
    messages = {'/truth': truth, '/odom': measured}
    return Recording('walk', 'walk', '', messages, {'truth': '/truth'}, ())
