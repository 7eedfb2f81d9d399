# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Differential drive, waypoints, controllers and their errors obey kinematics and control laws."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.following.follower import (
    Follower,
    FollowSettings,
    LiveFollower,
    OdometryUse,
    PoseSensor,
    drive_along,
)
from sim_sensors.following.tracking import (
    TRACKERS,
    DistancePid,
    ErrorStatistics,
    LqrTracker,
    OpenLoop,
    Pid,
    ReferenceMotion,
    YawDistancePid,
    YawPid,
    tracking_error,
)
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.planar import Pose, advance, heading_of, relative, twist_between, wrap
from sim_sensors.motion.time_line import NEW_LINE_COUNT
from sim_sensors.motion.vehicles import DifferentialDrive, WheelRates
from sim_sensors.motion.waypoints import Waypoints, repair_waypoints

PERFECT = DifferentialDrive(wheel_lag=0.0)
SIZES = st.floats(0.01, 2.0)
SPEEDS = st.floats(-20.0, 20.0)


def circle(radius: float, speed: float, duration: float, rate: float = 5.0) -> Waypoints:
    t = np.arange(0.0, duration + 1e-9, 1.0 / rate)
    angle = speed * t / radius
    x, y = radius * np.sin(angle), radius * (1.0 - np.cos(angle))
    return repair_waypoints(t, x, y, angle)


def line(speed: float, duration: float, heading: float = 0.0) -> Waypoints:
    t = np.arange(0.0, duration + 1e-9, 0.2)
    way = speed * t
    return repair_waypoints(
        t, way * math.cos(heading), way * math.sin(heading), np.full(len(t), heading)
    )


@given(SIZES, SIZES, SPEEDS, SPEEDS)
def test_inverse_kinematics_undo_forward_kinematics(
    radius: float, half_track: float, speed: float, yaw_rate: float
) -> None:
    """Equations (3.18)-(3.19) of [Cesenek2019] fail this: they turn the other way."""
    robot = DifferentialDrive(wheel_radius=radius, half_track=half_track)
    back = robot.forward(robot.inverse(speed, yaw_rate))
    assert back == pytest.approx((speed, yaw_rate), rel=1e-9, abs=1e-9 / half_track + 1e-9)


def test_the_right_wheel_turns_the_robot_left() -> None:
    robot = DifferentialDrive(wheel_radius=0.1, half_track=0.25)
    assert robot.forward(WheelRates(1.0, 2.0)) == pytest.approx((0.15, 0.2))
    assert robot.inverse(0.15, 0.2) == pytest.approx((1.0, 2.0))


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-3.1, 3.1), st.floats(-7, 7))
def test_poses_advance_by_the_exponential_of_se2(
    forward: float, leftward: float, turn: float, heading: float
) -> None:
    start = Pose(1.0, -2.0, heading)
    twist = np.array([[0.0, -turn, forward], [turn, 0.0, leftward], [0.0, 0.0, 0.0]])
    frame = np.eye(3)
    frame[:2, :2] = Rotation.from_euler('z', heading).as_matrix()[:2, :2]
    frame[:2, 2] = start[:2]
    expected = frame @ expm(twist)
    got = advance(start, forward, leftward, turn)
    assert got[:2] == pytest.approx(expected[:2, 2], abs=1e-9), 'scipy expm, 1e-9'
    turned = got.heading - math.atan2(expected[1, 0], expected[0, 0])
    assert wrap(turned) == pytest.approx(0, abs=1e-9), 'scipy expm, 1e-9'
    assert twist_between(start, got) == pytest.approx((forward, leftward, turn), abs=1e-8)


def test_one_long_step_equals_many_short_ones() -> None:
    wheels = WheelRates(3.0, 5.0)
    long = PERFECT.step(PERFECT.at(Pose(0, 0, 0), wheels), wheels, 10.0, (0.0, 0.0))
    short = PERFECT.at(Pose(0, 0, 0), wheels)
    for _ in range(1000):
        short = PERFECT.step(short, wheels, 0.01, (0.0, 0.0))
    assert long.pose == pytest.approx(short.pose, abs=1e-10)


def test_a_wheel_follows_its_command_with_its_lag_and_within_its_limits() -> None:
    robot = DifferentialDrive(wheel_lag=0.2, max_wheel_rate=4.0, max_wheel_acceleration=15.0)
    state = robot.at(Pose(0, 0, 0), WheelRates(0, 0))
    rates = []
    for _ in range(300):
        state = robot.step(state, WheelRates(9.0, 9.0), 0.01, (0.0, 0.0))
        rates.append(state.wheels.right)
    # It ramps until what is left to the limit of 4 falls under 15 * 0.2 = 3, then it is a lag.
    assert np.diff(rates[:6]) == pytest.approx(0.15)
    assert rates[-1] == pytest.approx(4.0, abs=1e-5)
    lag = np.array(rates[20:])
    assert np.diff(np.log(4.0 - lag[:100])) == pytest.approx(-0.01 / 0.2)
    assert max(rates) <= 4.0


def test_slip_and_unequal_wheels_change_the_motion_but_not_the_wheel_rates() -> None:
    robot = DifferentialDrive(wheel_lag=0.0, slip=0.1, radius_difference=0.02)
    state = robot.at(Pose(0, 0, 0), WheelRates(10.0, 10.0))
    assert state.speed == pytest.approx(0.9)
    assert state.yaw_rate == pytest.approx(0.9 * 10 * 0.1 * 0.02 / 0.4)
    assert state.wheels == (10.0, 10.0)


def test_grip_noise_has_the_stated_density() -> None:
    """Distance after 1 s of 100 steps: std = v density / sqrt(2); 5 sigma of 400 runs."""
    robot = DifferentialDrive(wheel_lag=0.0, slip_noise=0.01)
    ends = []
    for seed in range(400):
        state = robot.at(Pose(0, 0, 0), WheelRates(10.0, 10.0))
        for pair in robot.noise(np.random.default_rng(seed), 100):
            state = robot.step(state, WheelRates(10.0, 10.0), 0.01, pair)
        ends.append(state.pose.x)
    assert np.std(ends) == pytest.approx(0.01 / math.sqrt(2.0), rel=5.0 / math.sqrt(800))


def test_poses_of_the_reference_at_many_times_equal_those_at_each_time() -> None:
    """And before the start and after the end it rests."""
    times = np.linspace(-1.0, 21.0, 45)
    for interpolation in ('spline', 'twist'):
        reference = ReferenceMotion(circle(2.0, 1.0, 20.0), interpolation)
        expected = np.array([reference.at(time).pose for time in times.tolist()])
        assert reference.poses(times) == pytest.approx(expected, abs=1e-12)
        assert reference.at(-1.0).speed == reference.at(21.0).yaw_rate == 0.0
        # Speed and yaw rate are the derivatives of the pose, to the error of the difference.
        before, here, after = (reference.at(9.9 + h) for h in (-1e-4, 0.0, 1e-4))
        moved = relative(before.pose, after.pose)
        assert moved.x / 2e-4 == pytest.approx(here.speed, rel=1e-3)
        assert moved.heading / 2e-4 == pytest.approx(here.yaw_rate, rel=1e-6)


@pytest.mark.parametrize('waypoints', [line(1.5, 10.0, 0.7), circle(2.0, 1.0, 20.0)])
def test_open_loop_drives_a_line_and_a_circle_exactly_with_a_perfect_robot(
    waypoints: Waypoints,
) -> None:
    setting = FollowSettings(interpolation='twist', robot=PERFECT)
    drive = drive_along(ReferenceMotion(waypoints, 'twist'), setting, 'open_loop')
    assert drive.errors.distance.max() < 1e-9
    assert np.abs(drive.errors.yaw).max() < 1e-9


def test_wheel_rates_from_waypoint_to_waypoint_reach_each_waypoint() -> None:
    """Inverse and forward kinematics, held between the waypoints of an arc, forward and back."""
    path = circle(2.0, 1.0, 8.0)
    for waypoints in (path, dataclasses.replace(path, x=path.x[::-1], y=path.y[::-1],
                                                heading=path.heading[::-1])):  # fmt: skip
        rates = ReferenceMotion(waypoints).wheel_rates(PERFECT)
        assert rates.shape == (len(waypoints), 2)
        assert rates[-1] == pytest.approx(0.0)
        pose = Pose(float(waypoints.x[0]), float(waypoints.y[0]), float(waypoints.heading[0]))
        for k, span in enumerate(np.diff(waypoints.time)):
            speed, yaw_rate = PERFECT.forward(WheelRates(*rates[k]))
            pose = advance(pose, speed * span, 0.0, yaw_rate * span)
            place = (waypoints.x[k + 1], waypoints.y[k + 1], waypoints.heading[k + 1])
            assert pose == pytest.approx(place, abs=1e-9)


def test_the_wheels_of_a_drive_follow_their_commands_with_the_lag() -> None:
    robot = DifferentialDrive(wheel_lag=0.2)
    drive = drive_along(
        ReferenceMotion(circle(2.0, 1.0, 8.0)), FollowSettings(robot=robot), 'nonlinear'
    )
    rates, commands = drive.wheel_rates, drive.wheel_commands
    decay = math.exp(-0.01 / 0.2)
    expected = commands[:-1] + (rates[:-1] - commands[:-1]) * decay
    np.testing.assert_allclose(rates[1:], expected, atol=1e-9)
    # A command is held for a control period, 5 samples.
    assert np.count_nonzero(np.any(np.diff(commands, axis=0), axis=1)) <= len(commands) / 5


def test_differences_as_in_the_thesis_give_the_chord_of_an_arc() -> None:
    """Per step of turn a the projected chord is R sin(a), the arc R a."""
    radius, period, rate = 2.0, 0.2, 5.0
    reference = ReferenceMotion(circle(radius, 1.0, 20.0), 'twist')
    open_loop = OpenLoop(differences='as_given')
    setting = FollowSettings(control_rate=rate, robot=PERFECT, open_loop=open_loop)
    drive = drive_along(reference, setting, 'open_loop')
    angle = period / radius
    assert np.mean(drive.speed[1:]) == pytest.approx(math.sin(angle) / angle, rel=1e-9)


def test_the_yaw_pid_equals_a_hand_calculation() -> None:
    """Robot at rest, reference at rest with heading 0: only the correction is left."""
    reference = ReferenceMotion(repair_waypoints([0, 10], [0, 1e-12], [0, 0], [0, 0]), 'twist')
    model = YawPid(yaw=Pid(kp=2.0, ki=0.5, kd=3.0))
    tracker = model.start(reference, PERFECT, 0.1)
    # e = -0.2: E = -0.2, d = -0.2, |2 e + 0.5 E + 3 d| = 1.1, to the right.
    assert tracker.command(0.0, Pose(0, 0, 0.2)) == pytest.approx((1.1, -1.1))
    # e = -0.1: E = -0.3, d = 0.1: |-0.2 - 0.15 + 0.3| = 0.05, to the right although it pulls left.
    assert tracker.command(0.1, Pose(0, 0, 0.1)) == pytest.approx((0.05, -0.05))
    # e = +0.1: E = -0.2, d = 0.2: |0.2 - 0.1 + 0.6| = 0.7, to the left.
    assert tracker.command(0.2, Pose(0, 0, -0.1)) == pytest.approx((-0.7, 0.7))
    # e = 0 counts as left: E = -0.2, d = -0.1: |-0.1 - 0.3| = 0.4.
    assert tracker.command(0.3, Pose(0, 0, 0.0)) == pytest.approx((-0.4, 0.4))
    # 350 degrees to the left are 10 to the right.
    error = math.radians(-10.0)
    expected = abs(2.0 * error + 0.5 * (-0.2 + error) + 3.0 * error)
    got = tracker.command(0.4, Pose(0, 0, -math.radians(350.0)))
    assert got == pytest.approx((expected, -expected))


def test_the_distance_pid_steers_towards_the_bearing() -> None:
    reference = ReferenceMotion(repair_waypoints([0, 10], [0, 1e-12], [0, 0], [0, 0]), 'twist')
    model = YawDistancePid(yaw=Pid(kp=0.0), distance=DistancePid(kp=1.0, ki=0.5, kd=2.0))
    tracker = model.start(reference, PERFECT, 0.1)
    # The reference is 5 m away, to the left of a robot at (3, -4): E = 5, d = 5, u = 17.5.
    assert tracker.command(0.0, Pose(3, -4, 0)) == pytest.approx((-17.5, 17.5))
    # Now 5 m away to the right: E = 10, d = 0, u = 10.
    assert tracker.command(0.1, Pose(-3, 4, 0)) == pytest.approx((10.0, -10.0))


@settings(max_examples=6)
@given(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0), st.floats(-2.5, 2.5), st.sampled_from([-1, 1]))
def test_the_nonlinear_tracker_converges_from_an_offset_forward_and_backward(
    dx: float, dy: float, turn: float, way: int
) -> None:
    """Its Lyapunov function never grows by more than the hold of the command, and ends at 0."""
    t = np.arange(0.0, 40.0, 0.2)
    angle = 0.25 * t
    waypoints = repair_waypoints(
        t, way * 4.0 * np.sin(angle), way * 4.0 * (1.0 - np.cos(angle)), angle
    )
    reference = ReferenceMotion(waypoints, 'twist')
    setting = FollowSettings(control_rate=100.0, interpolation='twist', robot=PERFECT)
    drive = drive_along(reference, setting, 'nonlinear', offset=(dx, dy, turn))
    k2 = (2.0 / reference.top_speed) ** 2
    value = 0.5 * (k2 * drive.errors.distance**2 + drive.errors.yaw**2)
    assert np.diff(value).max() < 1e-3 * max(value[0], 1e-6)
    assert drive.errors.distance[-1] < 5e-3
    assert abs(drive.errors.yaw[-1]) < 5e-3


@pytest.mark.parametrize('way', [-1, 1])
def test_the_regulator_returns_at_a_lower_cost_than_the_nonlinear_tracker(way: int) -> None:
    """For small errors no controller reaches a smaller sum of squares."""
    t = np.arange(0.0, 20.0, 0.2)
    waypoints = repair_waypoints(t, way * 0.8 * t, np.zeros(100), np.zeros(100))
    reference = ReferenceMotion(waypoints, 'twist')
    setting = FollowSettings(interpolation='twist', robot=PERFECT)
    weights = LqrTracker()
    costs = {}
    for name in ('lqr', 'nonlinear'):
        drive = drive_along(reference, setting, name, rate=20.0, offset=(0.05, 0.05, 0.05))
        errors = drive.errors
        efforts = np.hypot(
            (drive.speed - way * 0.8) / weights.speed_effort,
            drive.yaw_rate / weights.yaw_rate_effort,
        )
        costs[name] = float(
            np.sum(errors.distance**2) / weights.position_error**2
            + np.sum(errors.yaw**2) / weights.yaw_error**2
            + np.sum(efforts[:-1] ** 2)
        )
        assert errors.distance[-20] < 1e-3
    assert costs['lqr'] < 0.95 * costs['nonlinear']


def test_the_regulator_turns_at_rest_and_ignores_lateral_errors() -> None:
    waypoints = repair_waypoints([0.0, 10.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    reference = ReferenceMotion(waypoints, 'twist')
    setting = FollowSettings(interpolation='twist', robot=PERFECT)
    drive = drive_along(reference, setting, 'lqr', offset=(0.3, 0.2, 0.5))
    assert abs(drive.errors.yaw[-20]) < 1e-3
    assert abs(drive.errors.along[-20]) < 1e-2


def test_feedback_removes_errors_of_the_open_loop() -> None:
    """A wheel 1 % larger turns the open loop away; each feedback holds what it looks at."""
    reference = ReferenceMotion(circle(5.0, 1.0, 40.0))
    setting = FollowSettings(robot=DifferentialDrive(radius_difference=0.01, slip=0.02))
    errors_by_tracker = {name: drive_along(reference, setting, name).errors for name in TRACKERS}
    yaw = {name: np.sqrt(np.mean(errors.yaw**2)) for name, errors in errors_by_tracker.items()}
    distance = {name: errors.distance.mean() for name, errors in errors_by_tracker.items()}
    assert distance['open_loop'] > 1.0
    assert yaw['yaw_pid'] < 0.1 * yaw['open_loop']
    assert distance['yaw_distance_pid'] < 0.8 * distance['yaw_pid']
    assert distance['nonlinear'] < 0.1 * distance['open_loop']
    assert distance['lqr'] < 0.1 * distance['open_loop']


def test_pose_noise_and_delay_affect_the_controller_and_are_repeatable() -> None:
    reference = ReferenceMotion(circle(5.0, 1.0, 20.0))
    rough = FollowSettings(pose=PoseSensor(position_std=0.05, yaw_std=0.02, latency=0.1))
    a, b = (drive_along(reference, rough, 'nonlinear', seed=3) for _ in range(2))
    other = drive_along(reference, rough, 'nonlinear', seed=4)
    plain = drive_along(reference, FollowSettings(), 'nonlinear', seed=3)
    assert a.poses.tobytes() == b.poses.tobytes() != other.poses.tobytes()
    assert a.errors.distance.mean() > plain.errors.distance.mean()
    assert a.errors.distance.mean() < 0.5


def test_a_jump_of_the_stamps_is_processed_as_fast_as_any_other_message() -> None:
    """Counting 3e10 periods of 20 Hz one by one would take hours; the period is kept besides."""
    follower = Follower(ReferenceMotion(line(1.0, 2.0)), PERFECT, TRACKERS['nonlinear'](), 20.0)
    pose, epoch = Pose(0.0, 0.0, 0.0), 1_700_000_000_000_000_000
    assert follower.push(0, pose) is not None
    late = follower.push(epoch, pose)
    assert late is not None
    assert late.finished
    assert follower.push(epoch + 49_000_000, pose) is None
    assert follower.push(epoch + 51_000_000, pose) is not None


def test_tracking_errors_equal_hand_computed_ones() -> None:
    """The reference looks north; the robot is 3 m behind and 4 m to its right, turned right."""
    error = tracking_error(Pose(0, 0, math.pi / 2), Pose(4, -3, math.pi / 2 - 0.1))
    assert (error.along, error.across, error.yaw) == pytest.approx((-3.0, -4.0, 0.1))
    assert error.distance == pytest.approx(5.0)
    assert ErrorStatistics.from_values(np.array([-3.0, 4.0])) == ErrorStatistics(
        3.5, math.sqrt(12.5), 4.0
    )


@given(st.floats(-3, 3), st.floats(-100, 100))
def test_yaw_errors_are_wrapped(error: float, turns: float) -> None:
    whole = 2.0 * math.pi * round(turns)
    offset = tracking_error(Pose(0, 0, whole + error), Pose(0, 0, 0))
    assert offset.yaw == pytest.approx(error, abs=1e-9)


def test_velocities_of_a_simulated_drive_agree_with_its_positions() -> None:
    reference = ReferenceMotion(circle(5.0, 1.0, 20.0))
    drive = drive_along(reference, FollowSettings(), 'nonlinear')
    truth = drive.truth(1_000)
    motion = OdometryMotion(truth, origin_ns=1_000)
    assert motion.velocity_disagreement < 2e-3
    assert motion.rate_disagreement < 2e-3
    assert truth.stamp_ns[0] == 1_000
    assert truth.stamp_ns[-1] == 1_000 + 20_000_000_000


@given(st.floats(-3.1, 3.1), st.floats(-1.2, 1.2), st.floats(-3.1, 3.1), st.floats(0.5, 2.0))
def test_the_heading_equals_the_yaw_of_any_quaternion(
    yaw: float, pitch: float, roll: float, scale: float
) -> None:
    q = scale * Rotation.from_euler('ZYX', [yaw, pitch, roll]).as_quat()
    assert heading_of(*q.tolist()) == pytest.approx(yaw, abs=1e-9)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ParameterError, match=r'yaw_pid\.yaw\.kp.*-1'):
        FollowSettings.from_mapping({'yaw_pid': {'yaw': {'kp': -1}}}, 'follow')
    with pytest.raises(MotionError, match="'step'"):
        ReferenceMotion(line(1.0, 2.0), 'step')
    assert FollowSettings.from_mapping(FollowSettings().to_mapping(), 'x') == FollowSettings()


def test_a_live_follower_refuses_one_wrong_stamp_and_follows_another_time_line() -> None:
    truth = truth_of(motion_of('circle', seed=0, run='', duration=3.0, parameters={}), rate=50.0)

    def follower() -> LiveFollower:
        live = LiveFollower(DifferentialDrive(), TRACKERS['nonlinear'](), control_rate=20.0)
        times = np.arange(4.0)
        live.follow(repair_waypoints(times, times, 0.0 * times, where='path'))
        return live

    rows = [truth.take([k]) for k in range(len(truth))]
    expected = [*map(follower().push, rows)]
    future = dataclasses.replace(rows[50], stamp_ns=np.array([(2**31 - 1) * 10**9]))
    live = follower()
    steps = [live.push(row) for row in [*rows[:50], future, *rows[50:]]]
    assert steps.pop(50).odometry_use is OdometryUse.AHEAD
    assert steps == expected
    again = [live.push(dataclasses.replace(row, stamp_ns=row.stamp_ns - 10**12)) for row in rows]
    assert {step.odometry_use for step in again[: NEW_LINE_COUNT - 1]} == {OdometryUse.LATE}
    assert [step.restarts for step in again].index(True) == NEW_LINE_COUNT - 1
    assert sum(step.restarts for step in again) == 1
