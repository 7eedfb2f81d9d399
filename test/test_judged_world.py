# SPDX-License-Identifier: Apache-2.0
"""The truth is found in whatever world a judge works in, and errors are those of the judge."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cli_examples import run_of
from judge_examples import fixes, odometry, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.consistency import check_consistency
from sim2real_eval.metrics.normalised_squares import truth_in_world
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.recording import Recording, StaticTransform
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


def measured(truth: OdometryArray, noise: np.ndarray) -> FixArray:
    """Fixes of the antenna at every tenth stamp."""
    seen = truth.take(slice(None, None, 10))
    antenna = seen.position + Rotation.from_quat(seen.orientation).apply(ARM) + noise
    latitude, longitude, altitude = FRAME.to_geodetic(antenna)
    return fixes(seen.stamp_ns, latitude, longitude, altitude=altitude)


def perfect(truth: OdometryArray, noise: np.ndarray | None) -> JudgedRun:
    """A judge without error in a world of its own, to which it took the fixes of base_link."""
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


def test_the_truth_is_turned_as_the_fixes_were_and_laid_through_them() -> None:
    """Noise of 2 m leaves the turn exact, and the position as far off as the mean of the noise."""
    truth = circle()
    noise = np.random.default_rng(1).normal(scale=2.0, size=(len(truth) // 10, 3))
    judged = perfect(truth, noise)
    moved, remarks = truth_in_world(judged, truth, measured(truth, noise), ARM)
    position, orientation = in_world(truth)
    turned = Rotation.from_quat(moved.orientation).inv() * Rotation.from_quat(orientation)
    assert np.abs(turned.as_rotvec()).max() < 1e-5
    mean = Rotation.from_euler('z', TURN).apply(noise.mean(axis=0))
    np.testing.assert_allclose(
        moved.position - position, np.tile(mean, (len(truth), 1)), atol=1e-3
    )
    np.testing.assert_array_equal(moved.linear_velocity, truth.linear_velocity)
    assert 'turned by 40.1 degrees' in str(remarks[0])
    # A receiver that has no fix yet says NaN, which tells nothing.
    given = measured(truth, noise)
    latitude, status = given.latitude.copy(), given.status.copy()
    latitude[0], status[0] = np.nan, -1
    late = dataclasses.replace(given, latitude=latitude, status=status)
    same, _ = truth_in_world(judged, truth, late, ARM)
    np.testing.assert_allclose(same.position, moved.position, atol=1.0)


def test_without_fixes_the_truth_goes_through_the_first_estimate() -> None:
    truth = circle()
    judged = perfect(truth, None)
    late = dataclasses.replace(judged, stamp_ns=judged.stamp_ns + 7_000_000)
    moved, remarks = truth_in_world(judged, truth, None, np.zeros(3))
    np.testing.assert_allclose(moved.position, judged.position, atol=1e-9)
    np.testing.assert_allclose(moved.orientation, judged.orientation, atol=1e-9)
    assert 'start at zero' in str(remarks[0])
    # Fixes that do not move, or that the judge was not given, tell no turn.
    for given in (fixes(judged.stamp_ns[::10]), fixes(judged.stamp_ns[::10] + 5)):
        still = dataclasses.replace(
            perfect(truth, np.zeros((len(truth) // 10, 3))),
            gps_position=np.zeros((len(truth) // 10, 3)),
        )
        assert truth_in_world(still, truth, given, ARM)[1] == remarks
    never = dataclasses.replace(late, stamp_ns=late.stamp_ns + 10**12)
    with pytest.raises(MetricError, match='no estimate that is a number lies within the truth'):
        truth_in_world(never, truth, None, np.zeros(3))


def test_the_world_of_navsat_transform_is_found() -> None:
    """An IMU without orientation counts as heading east; a filter that starts at 0.7 rad then has
    its world turned by 0.7 rad, less what the filter turned until the transform was fixed.
    """
    recording = run_of('drive_line', 1, gps='baseline', imu='chrono')
    setup = JudgeSetup.load('clean').started(start_heading=TURN)
    assert setup.navsat is not None
    navsat = dataclasses.replace(setup.navsat, use_odometry_yaw=False)
    setup = dataclasses.replace(setup, navsat=navsat)
    judged = setup.judge(recording)
    assert recording.truth is not None
    moved, remarks = truth_in_world(judged, recording.truth, recording.gps, np.zeros(3))
    first = (
        Rotation.from_quat(moved.orientation[0])
        * Rotation.from_quat(recording.truth.orientation[0]).inv()
    )
    assert first.as_euler('xyz')[2] == pytest.approx(TURN, abs=0.02)
    checked = check_consistency(setup, recording, judged)
    names = [squares.name for squares in checked.squares]
    assert names[-4:] == [
        f'NEES {name}' for name in ('position', 'orientation', 'velocity', 'angular velocity')
    ]
    assert [int(squares.freedom[0]) for squares in checked.squares[-4:]] == [2, 1, 2, 1]
    assert any('two_d_mode' in str(note) for note in checked.notes)
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
    setup = dataclasses.replace(
        JudgeSetup.load('clean'),
        filter=dataclasses.replace(JudgeSetup.load('clean').filter, two_d_mode=False),
    )
    # Or the transform comes from a file of the user's.
    file = TransformFile('car.yaml', '', recording.transforms)
    case = dataclasses.replace(setup.case, transforms=file)
    bare = dataclasses.replace(recording, transforms=())
    for judge, given in ((setup, recording), (dataclasses.replace(setup, case=case), bare)):
        for squares in check_consistency(judge, given, perfect(truth, None)).squares:
            assert len(squares) == len(truth)
            np.testing.assert_allclose(squares.squares, 0.0, atol=1e-12)
