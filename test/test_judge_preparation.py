# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""From messages to measurements, calculated by hand: frames, lever arms, gravity, masks."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, imu, mask, odometry, stamps
from preparation_examples import mounted, prepared
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.state import ROLL, VROLL, N
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import PoseArray, TwistArray

G = 9.80665
GRAVITY_REMOVED = {
    'imu0': 'imu', 'imu0_config': mask('ax', 'ay', 'az'),
    'imu0_remove_gravitational_acceleration': True,
}  # fmt: skip


def at_rest(rpy: tuple[float, float, float], *, attitude: bool = True):
    """One message of an ideal IMU mounted with rpy on a level robot that heads east."""
    R = Rotation.from_euler('xyz', rpy)
    message = imu(stamps(1.0, 1.0), force=R.inv().apply([[0.0, 0.0, G]]), attitude=attitude)
    return dataclasses.replace(message, orientation=R.as_quat()[None])


def test_a_message_yields_pose_then_twist_then_acceleration(tmp_path: Path) -> None:
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('yaw', 'vyaw', 'ax'))
    measurements = prepared(config, imu(stamps(10.0, 0.2)))
    assert [m.part for m in measurements] == ['pose', 'twist', 'acceleration'] * 2
    assert [m.states for m in measurements[:3]] == [[5], [11], [12]]


def test_absent_quantities_are_left_out(tmp_path: Path) -> None:
    """They have -1 in the first element of their covariance."""
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('yaw', 'vyaw', 'ax'))
    message = imu(stamps(10.0, 0.1), attitude=False)
    assert [m.part for m in prepared(config, message)] == ['twist', 'acceleration']
    absent = np.diag([-1.0, 0.0, 0.0])[None]
    no_rate = dataclasses.replace(message, angular_velocity_covariance=absent)
    assert [m.part for m in prepared(config, no_rate)] == ['acceleration']


def test_a_twist_is_rotated_and_moved_to_base_link(tmp_path: Path) -> None:
    """v_base = R v + p x w: sensor 1 m ahead, turned by 90 degrees, at 2 rad/s: (0, -2, 0)."""
    config = filter_config(
        tmp_path, twist0='dvl', twist0_config=mask('vx', 'vy', 'vz', 'vroll', 'vpitch', 'vyaw')
    )
    covariance = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    array = TwistArray(
        stamp_ns=stamps(1.0, 1.0), arrival_ns=stamps(1.0, 1.0), frame='imu_link',
        linear_velocity=np.array([[3.0, 0.0, 0.5]]), angular_velocity=np.array([[0.1, 0.2, 0.3]]),
        twist_covariance=covariance[None],
    )  # fmt: skip
    x = np.zeros(N)
    x[VROLL + 2] = 2.0
    (twist,) = prepared(config, array, mounted((0, 0, math.pi / 2), (1, 0, 0)), x=x)
    assert twist.states == [6, 7, 8, 9, 10, 11]
    np.testing.assert_allclose(twist.z, [0.0, 3.0 - 2.0, 0.5, -0.2, 0.1, 0.3], atol=1e-14)
    np.testing.assert_allclose(np.diag(twist.R), [2.0, 1.0, 3.0, 5.0, 4.0, 6.0], atol=1e-14)


def test_covariances_are_rotated_as_matrices(tmp_path: Path) -> None:
    """R C R' with scipy's rotation, of a full acceleration covariance."""
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('ax', 'ay', 'az'))
    C = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 3.0]])
    message = dataclasses.replace(imu(stamps(1.0, 1.0)), linear_acceleration_covariance=C[None])
    rpy = (0.4, -0.3, 1.0)
    (covariance,) = prepared(config, message, mounted(rpy))
    R = Rotation.from_euler('xyz', rpy).as_matrix()
    np.testing.assert_allclose(covariance.R, R @ C @ R.T, atol=1e-14)


def test_centripetal_and_tangential_acceleration_are_subtracted(tmp_path: Path) -> None:
    """IMU 1 m ahead, 2 rad/s, 3 rad/s^2: p x alpha - (p x w) x w = (4, -3, 0) is added."""
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('ax', 'ay', 'az'))
    message = imu(stamps(1.0, 1.0), force=np.array([[-4.0, 3.0, 0.0]]))
    x = np.zeros(N)
    x[VROLL + 2] = 2.0
    (acceleration,) = prepared(
        config, message, mounted((0, 0, 0), (1, 0, 0)), x=x, acceleration=(0.0, 0.0, 3.0)
    )
    np.testing.assert_allclose(acceleration.z, [0.0, 0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize('yaw', [0.0, 0.7, 3.0])
def test_gravity_is_removed_from_a_level_sensor(tmp_path: Path, yaw: float) -> None:
    """The yaw of the mounting does not matter."""
    config = filter_config(tmp_path, **GRAVITY_REMOVED)
    (acceleration,) = prepared(config, at_rest((0.0, 0.0, yaw)), mounted((0.0, 0.0, yaw)))
    np.testing.assert_allclose(acceleration.z, 0.0, atol=1e-14)


def test_gravity_of_a_tilted_sensor_is_subtracted_in_wrong_axes_as_in_the_original(
    tmp_path: Path,
) -> None:
    """Gravity in the sensor frame is subtracted in base_link: (0, -4.70, 1.20) [run]."""
    config = filter_config(tmp_path, **GRAVITY_REMOVED)
    (acceleration,) = prepared(config, at_rest((0.5, 0.0, 0.0)), mounted((0.5, 0.0, 0.0)))
    expected = [0.0, -G * math.sin(0.5), G * (1.0 - math.cos(0.5))]
    np.testing.assert_allclose(acceleration.z, expected, atol=1e-13)
    np.testing.assert_allclose(acceleration.z, [0.0, -4.70, 1.20], atol=5e-3)


def test_without_orientation_gravity_is_removed_with_the_attitude_of_the_filter(
    tmp_path: Path,
) -> None:
    """The error for a robot pitched by 0.2 rad is g sin(0.2) if the filter does not know it."""
    config = filter_config(tmp_path, **GRAVITY_REMOVED, gravitational_acceleration=10.0)
    force = Rotation.from_euler('y', 0.2).inv().apply([[0.0, 0.0, 10.0]])
    message = imu(stamps(1.0, 1.0), force=force, attitude=False)
    x = np.zeros(N)
    x[ROLL + 1] = 0.2
    np.testing.assert_allclose(prepared(config, message, x=x)[0].z, 0.0, atol=1e-14)
    np.testing.assert_allclose(prepared(config, message)[0].z[0], -10.0 * math.sin(0.2))


def test_the_mask_of_measured_components_is_rotated_with_the_sensor(tmp_path: Path) -> None:
    """x of a sensor turned by 90 degrees measures y; turned by 45 degrees it counts as both."""
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('ax'))
    message = imu(stamps(1.0, 1.0))
    for yaw, states in ((0.0, [12]), (math.pi / 2, [13]), (math.pi / 4, [12, 13])):
        (measurement,) = prepared(config, message, mounted((0.0, 0.0, yaw)))
        assert measurement.states == states


def test_mounting_angles_are_subtracted_from_the_orientation(tmp_path: Path) -> None:
    """Yaw mounting: exact; roll and pitch of the robot are turned into base_link's axes."""
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('roll', 'pitch', 'yaw'))
    message = dataclasses.replace(
        imu(stamps(1.0, 1.0)),
        orientation=Rotation.from_euler('xyz', (0.05, 0.0, 1.5)).as_quat()[None],
    )
    (pose,) = prepared(config, message, mounted((0.0, 0.0, math.pi / 2)))
    np.testing.assert_allclose(pose.z, [0.0, 0.05, 1.5 - math.pi / 2], atol=1e-14)


def test_relative_poses_start_at_the_origin(tmp_path: Path) -> None:
    """Later poses are relative to the first one."""
    config = filter_config(
        tmp_path, odom0='odom', odom0_config=mask('x', 'y', 'yaw'), odom0_relative=True
    )
    clock = stamps(1.0, 2.0)
    array = odometry(
        clock,
        position=np.array([[5.0, 6.0, 0.0], [5.0, 8.0, 0.0]]),
        yaw=np.array([math.pi / 2, math.pi / 2 + 0.3]),
    )
    first, second = prepared(config, array)
    np.testing.assert_allclose(first.z, 0.0, atol=1e-15)
    np.testing.assert_allclose(second.z, [2.0, 0.0, 0.3], atol=1e-14)


def test_differential_poses_become_body_velocities(tmp_path: Path) -> None:
    """Increment seen from the previous pose over dt; covariance (previous + current) dt."""
    config = filter_config(
        tmp_path, odom0='odom', odom0_config=mask('x', 'y', 'yaw'), odom0_differential=True
    )
    array = odometry(
        stamps(2.0, 1.0),
        position=np.array([[5.0, 6.0, 0.0], [5.0, 8.0, 0.0]]),
        yaw=np.array([math.pi / 2, math.pi / 2 + 0.3]),
        variance=0.5,
    )
    (measurements,) = prepared(config, array)
    assert measurements.states == [6, 7, 11]
    np.testing.assert_allclose(measurements.z, [4.0, 0.0, 0.6], atol=1e-14)
    np.testing.assert_allclose(measurements.R, 0.5 * np.eye(3), atol=1e-15)


def test_poses_of_another_frame_are_rotated_into_the_world(tmp_path: Path) -> None:
    """A pose in a frame 10 m north of odom and turned by 90 degrees."""
    config = filter_config(tmp_path, pose0='pose', pose0_config=mask('x', 'y', 'yaw'))
    array = PoseArray(
        stamp_ns=stamps(1.0, 1.0), arrival_ns=stamps(1.0, 1.0), frame='marker',
        position=np.array([[1.0, 2.0, 0.0]]), orientation=np.array([[0.0, 0.0, 0.0, 1.0]]),
        pose_covariance=np.diag([1.0, 2, 3, 4, 5, 6])[None],
    )  # fmt: skip
    half = math.sqrt(0.5)
    link = StaticTransform('odom', 'marker', (0.0, 10.0, 0.0), (0.0, 0.0, half, half))
    (pose,) = prepared(config, array, (link,))
    np.testing.assert_allclose(pose.z, [-2.0, 11.0, math.pi / 2], atol=1e-14)
    np.testing.assert_allclose(np.diag(pose.R), [2.0, 1.0, 6.0], atol=1e-14)


def test_two_d_mode_adds_zero_measurements_for_height_roll_and_pitch(tmp_path: Path) -> None:
    """The states out of the plane are 0 with variance 1e-6, uncorrelated with the others."""
    config = filter_config(
        tmp_path, two_d_mode=True, odom0='odom', odom0_config=mask('x', 'z', 'roll', 'yaw')
    )
    full = np.full((6, 6), 0.1) + np.eye(6)
    array = odometry(stamps(1.0, 1.0), position=np.array([[1.0, 2.0, 3.0]]), yaw=0.4)
    array = dataclasses.replace(array, pose_covariance=full[None])
    (measurement,) = prepared(config, array)
    assert measurement.states == [0, 2, 3, 4, 5, 8, 9, 10, 14]
    np.testing.assert_allclose(measurement.z, [1.0, 0, 0, 0, 0.4, 0, 0, 0, 0], atol=1e-14)
    expected = np.diag([1.1, 1e-6, 1e-6, 1e-6, 1.1, 1e-6, 1e-6, 1e-6, 1e-6])
    expected[0, 4] = expected[4, 0] = 0.1
    np.testing.assert_allclose(measurement.R, expected, atol=1e-14)


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_entries_that_are_not_finite_are_left_out(tmp_path: Path, bad: float) -> None:
    """NaN spreads over its vector; the first measurement is copied, as in the original."""
    config = filter_config(tmp_path, odom0='odom', odom0_config=mask('vx', 'vy', 'vyaw'))
    array = odometry(
        stamps(1.0, 1.0), velocity=np.array([[bad, 2.0, 0.0]]), rate=np.array([[0.0, 0.0, 0.5]])
    )
    (later,) = prepared(config, array)
    assert later.states == [11]
    assert later.z.tolist() == [0.5]
    assert later.R.shape == (1, 1)
    (first,) = prepared(config, array, initialised=False)
    assert first.states == [6, 7, 11]


def test_an_increment_over_zero_time_yields_no_measurement(tmp_path: Path) -> None:
    config = filter_config(
        tmp_path, odom0='odom', odom0_config=mask('x', 'y'), odom0_differential=True
    )
    array = odometry(stamps(1.0, 1.0).repeat(2), position=np.array([[0.0] * 3, [1.0, 0.0, 0.0]]))
    (measurements,) = prepared(config, array)
    assert measurements.states == []


def test_messages_of_another_type_than_the_input_are_refused(tmp_path: Path) -> None:
    config = filter_config(tmp_path, imu0='odom', imu0_config=mask('yaw'))
    with pytest.raises(JudgeError, match=r'nav_msgs.*sensor_msgs/Imu'):
        prepared(config, odometry(stamps(1.0, 1.0)))
