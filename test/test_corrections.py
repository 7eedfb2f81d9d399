# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Corrections of recorded messages by numbers."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from judge_examples import fixes, imu, odometry, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval.recording.corrections import FixCorrection, ImuCorrection, TruthCorrection
from sim_sensors.core.measurements import OdometryArray

TIMES = stamps(20.0, 1.0)


@pytest.mark.parametrize('has_attitude', [True, False])
def test_orientation_std_replaces_the_covariance_of_the_orientation_only(
    has_attitude: bool,
) -> None:
    messages = imu(TIMES, yaw=0.3, attitude=has_attitude)
    corrected = ImuCorrection(orientation_std=0.05).apply(messages)
    expected = np.broadcast_to(0.0025 * np.eye(3), (len(TIMES), 3, 3))
    np.testing.assert_allclose(corrected.orientation_covariance, expected, rtol=1e-12)
    for name in ('orientation', 'angular_velocity_covariance', 'linear_acceleration_covariance'):
        np.testing.assert_array_equal(getattr(corrected, name), getattr(messages, name))


def test_a_later_orientation_std_replaces_an_earlier_one() -> None:
    first, later = ImuCorrection(orientation_std=0.1), ImuCorrection(rate_scale=2.0)
    assert first.followed_by(later).orientation_std == 0.1
    assert first.followed_by(ImuCorrection(orientation_std=0.2)).orientation_std == 0.2


def motion() -> OdometryArray:
    """A motion in which no axis is like another, with attitude and rates."""
    rng = np.random.default_rng(3)
    rotation = Rotation.random(len(TIMES), random_state=4)
    still = odometry(TIMES)
    return dataclasses.replace(
        still,
        position=rng.normal(size=(len(TIMES), 3)),
        orientation=rotation.as_quat(),
        linear_velocity=rng.normal(size=(len(TIMES), 3)),
        angular_velocity=rng.normal(size=(len(TIMES), 3)),
    )


def assert_equal_motions(once: OdometryArray, twice: OdometryArray) -> None:
    for name in ('position', 'linear_velocity', 'angular_velocity'):
        np.testing.assert_allclose(getattr(once, name), getattr(twice, name), atol=1e-9)
    difference = Rotation.from_quat(once.orientation).inv() * Rotation.from_quat(twice.orientation)
    assert difference.magnitude().max() < 1e-7


@pytest.mark.parametrize('first_axes', ['enu', 'ned'])
@pytest.mark.parametrize('later_axes', ['enu', 'ned'])
def test_two_corrections_of_a_truth_combine_into_one(first_axes: str, later_axes: str) -> None:
    rng, truth = np.random.default_rng(5), motion()

    def drawn(axes: str) -> TruthCorrection:
        turn, heading, yaw = rng.uniform(-180.0, 180.0, 3)
        position, speed = rng.uniform(0.5, 2.0, 2)
        return TruthCorrection(
            axes=axes, turn=turn, heading=heading, body_yaw=yaw, position_scale=position,
            speed_scale=speed,
        )  # fmt: skip

    for _ in range(5):
        first, later = drawn(first_axes), drawn(later_axes)
        assert_equal_motions(
            first.followed_by(later).apply(truth), later.apply(first.apply(truth))
        )


@pytest.mark.parametrize('axes', ['ned', 'camera'])
def test_axes_of_a_truth_are_corrected_as_vectors_of_world_and_body(axes: str) -> None:
    """Velocity and rates in world axes turn as the positions do; lists of axes by hand."""
    truth = motion()
    corrected = TruthCorrection(axes=axes).apply(truth)
    # East, north, up of (north, east, down); forward, left, up of (right, down, forward).
    order, signs = {'ned': ([1, 0, 2], [1, 1, -1]), 'camera': ([2, 0, 1], [1, -1, -1])}[axes]
    np.testing.assert_allclose(corrected.position, truth.position[:, order] * signs, atol=1e-12)
    for name in ('linear_velocity', 'angular_velocity'):
        before, after = (
            Rotation.from_quat(part.orientation).apply(getattr(part, name))
            for part in (truth, corrected)
        )
        np.testing.assert_allclose(after, before[:, order] * signs, atol=1e-9)


def test_a_turn_and_a_heading_to_the_left_are_subtracted() -> None:
    """East of axes turned by 90 deg to the left is north; the heading turns no position."""
    truth = odometry(TIMES, position=np.tile([1.0, 0.0, 0.0], (len(TIMES), 1)), yaw=0.3)
    turned = TruthCorrection(turn=-90.0).apply(truth)
    np.testing.assert_allclose(turned.position[0], [0.0, 1.0, 0.0], atol=1e-12)
    headings = {
        'turn': TruthCorrection(turn=-90.0), 'heading': TruthCorrection(heading=-90.0),
        'body_yaw': TruthCorrection(body_yaw=90.0),
    }  # fmt: skip
    for correction in headings.values():
        yaw = Rotation.from_quat(correction.apply(truth).orientation[0]).as_euler('zyx')[0]
        assert yaw == pytest.approx(0.3 + math.pi / 2)
    kept = headings['heading'].apply(truth)
    np.testing.assert_array_equal(kept.position, truth.position)


def test_exchanged_coordinates_and_stds_of_fixes_combine() -> None:
    messages = fixes(TIMES)
    for first, later in itertools.product((False, True), repeat=2):
        corrections = (
            FixCorrection(swapped=first, delay=0.2),
            FixCorrection(swapped=later, std=2.0),
        )
        twice = corrections[1].apply(corrections[0].apply(messages))
        once = corrections[0].followed_by(corrections[1]).apply(messages)
        for array in (once, twice):
            expected = messages.longitude if first != later else messages.latitude
            np.testing.assert_array_equal(array.latitude, expected)
            np.testing.assert_array_equal(array.stamp_ns, messages.stamp_ns - 200_000_000)
            np.testing.assert_array_equal(array.position_covariance[0], 4.0 * np.eye(3))


def test_the_numbers_of_an_imu_are_scaled_then_turned_then_freed_from_bias_and_delay() -> None:
    """A sensor whose x axis points left: its x is the y of the messages after the correction."""
    rates, force = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 9.8])
    count = len(TIMES)
    messages = dataclasses.replace(
        imu(TIMES), angular_velocity=np.tile(rates, (count, 1)),
        linear_acceleration=np.tile(force, (count, 1)),
    )  # fmt: skip
    bias = (0.01, -0.02, 0.03)
    corrected = ImuCorrection(
        delay=0.25, rate_scale=2.0, acceleration_scale=-1.0, rate_bias=bias,
        rotation=(0.0, 0.0, 90.0),
    ).apply(messages)  # fmt: skip
    expected = np.array([-0.4, 0.2, 0.6]) - bias
    np.testing.assert_allclose(corrected.angular_velocity[0], expected, atol=1e-12)
    np.testing.assert_allclose(corrected.linear_acceleration[0], [2.0, -1.0, -9.8], atol=1e-12)
    for name in ('stamp_ns', 'arrival_ns'):
        difference = getattr(messages, name) - getattr(corrected, name)
        np.testing.assert_array_equal(difference, 250_000_000)


def test_an_error_of_the_heading_and_north_east_down_axes_of_an_orientation() -> None:
    """North-east-down: yaw turns right from north; forward-right-down axes of the body."""
    late = ImuCorrection(heading=20.0).apply(imu(TIMES, yaw=0.3, attitude=True))
    yaw = Rotation.from_quat(late.orientation[0]).as_euler('zyx', degrees=True)[0]
    assert yaw == pytest.approx(math.degrees(0.3) - 20.0)
    ned = ImuCorrection(axes='ned', rotation=(180.0, 0.0, 0.0))
    corrected = ned.apply(imu(TIMES, yaw=math.radians(30.0), attitude=True))
    angles = Rotation.from_quat(corrected.orientation[0]).as_euler('zyx', degrees=True)
    np.testing.assert_allclose(angles, [60.0, 0.0, 0.0], atol=1e-9)


def test_scaled_messages_have_scaled_covariances_and_a_std_replaces_them() -> None:
    messages = imu(TIMES)
    scaled = ImuCorrection(rate_scale=3.0, acceleration_std=0.2).apply(messages)
    np.testing.assert_allclose(
        scaled.angular_velocity_covariance, 9.0 * messages.angular_velocity_covariance
    )
    np.testing.assert_allclose(scaled.linear_acceleration_covariance[0], 0.04 * np.eye(3))
