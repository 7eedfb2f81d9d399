# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Covariances of wheel odometry include errors that are drawn once per run.

Seeds are fixed. Another one would be a false alarm in less than 5 % of the five tests of NEES, and
in 8 % of those of `frc_swerve`, whose mean over 2000 runs is 2.73.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats
from wheel_examples import perfect, straight

from sim_sensors.motion.planar import pose_covariances
from sim_sensors.motion.scenarios import FigureEight
from sim_sensors.wheels.encoders import DifferentialWheels, Slip, SteeringOffset, SwerveWheels
from sim_sensors.wheels.wheel_odometry import load_wheels, points_of

LAWS = [[], [3.0], [3.0, 3.0, 1.8], [1.8] * 4, [3.0] * 4 + [1.8] * 4]


@pytest.mark.parametrize('kurtosis', LAWS)
def test_cubature_points_have_the_moments_of_independent_random_numbers(kurtosis) -> None:
    """All products of up to four of them."""
    points, weights = points_of(kurtosis)
    assert weights.min() >= 0.0
    columns = range(len(kurtosis))
    for degree in range(5):
        for of in itertools.combinations_with_replacement(columns, degree):
            powers = [of.count(column) for column in columns]
            moments = [{0: 1.0, 2: 1.0, 4: kurtosis[i]}.get(k, 0.0) for i, k in enumerate(powers)]
            mean = weights @ np.prod(points**powers, axis=1)
            assert mean == pytest.approx(math.prod(moments), abs=1e-12)


def test_the_variance_from_radius_errors_grows_with_the_square_of_the_distance() -> None:
    """By hand: s D / sqrt(2) ahead, s D / (sqrt(2) L) in heading, half of that times D aside."""
    error, half_track, rate = 1e-4, 0.3, 50.0
    model = perfect(DifferentialWheels(half_track=half_track), radius_error=error)
    sensor = dataclasses.replace(model, speed_floor=0.0, yaw_rate_floor=0.0).start(1, 'run')
    odometry = sensor.measure(straight(501, rate, 0.02))
    for n in (100, 500):
        way = 0.02 * n
        turned = error * way / math.sqrt(2.0) / half_track
        aside = 0.5 * way * turned
        ahead = (error * way) ** 2 / 2.0
        expected = [ahead, aside**2, turned**2, aside * turned]
        stated = odometry.pose_covariance[n][[0, 1, 2, 1], [0, 1, 2, 2]]
        np.testing.assert_allclose(stated, expected, rtol=5e-3)
    expected = np.array([1.0, 0.0, 1.0 / half_track**2]) * error**2 / 2.0
    np.testing.assert_allclose(np.diag(odometry.velocity_covariance[7]), expected, rtol=1e-3)


def test_covariances_include_the_mean_of_whole_degree_steering() -> None:
    """Straight ahead by D, four wheels of mean m and variance V each at the corners of a square of
    side 2 h: aside D^2 (m^2 + V / 4) of a step; variance of the heading V D^2 / (16 h^2).
    """
    offset = SteeringOffset(bound=0.2, variant='as_upstream')
    mean, variance = math.radians(-0.2), 0.0
    model = perfect(SwerveWheels(), steering_offset=offset, speed_floor=0.0, yaw_rate_floor=0.0)
    odometry = model.start(1, 'run').measure(straight(101, 50.0, 0.02))
    assert (offset.mean, offset.variance) == pytest.approx((mean, variance))
    assert math.sqrt(odometry.pose_covariance[-1, 1, 1]) == pytest.approx(2.0 * math.sin(-mean))
    np.testing.assert_allclose(odometry.velocity_covariance[:, 1, 1], math.sin(mean) ** 2)
    offset = SteeringOffset(bound=4.0, variant='as_upstream')
    wide = dataclasses.replace(model, steering_offset=offset)
    odometry = wide.start(1, 'run').measure(straight(101, 50.0, 0.02))
    mean, variance = math.radians(-0.5), math.radians(1.0) ** 2 * 5.25
    ratio = odometry.velocity_covariance[:, 1, 1] / (mean**2 + variance / 4.0)
    np.testing.assert_allclose(ratio, 1.0, rtol=0.02)
    turned = variance / (16.0 * 0.27**2) * 2.0**2
    assert odometry.pose_covariance[-1, 2, 2] == pytest.approx(turned, rel=0.02)


def nees_of(model, truth, runs):
    """Mean NEES of the last pose as stated, and as if what stays changed from step to step."""
    stated, changing = [], []
    for run in range(runs):
        odometry = model.start(9, f'{run}').measure(truth)
        error = odometry.pose[-1] - odometry.true_pose[-1]
        steps = odometry.velocity[1:] / model.rate
        noise = odometry.velocity_covariance[1:] / model.rate**2
        yaw = odometry.pose[:-1, 2].copy()
        without_constants = pose_covariances(yaw, steps, noise, np.zeros((3, 3)))
        stated.append(error @ np.linalg.solve(odometry.pose_covariance[-1], error))
        changing.append(error @ np.linalg.solve(without_constants[-1], error))
    return np.mean(stated), np.mean(changing)


@pytest.mark.parametrize(
    'name', ['differential', 'ackermann', 'swerve', 'frc_swerve:as_upstream', 'frc_swerve']
)
def test_the_normalised_pose_error_has_its_chi_square_mean(name: str) -> None:
    """NEES over 150 runs of a figure eight of 12 m, without whole counts and slips."""
    runs = 150
    model = dataclasses.replace(
        load_wheels(name), encoder_counts=0.0, speed_floor=0.0, yaw_rate_floor=0.0, slip=Slip()
    )
    eight = FigureEight(length=4.0, width=2.0, speed=1.0, ramp_time=0.0, duration=12.2)
    truth = eight.at(np.arange(0.0, 12.2, 1.0 / model.rate))
    assert np.linalg.norm(truth.position[-1] - truth.position[0]) < 0.5
    low, high = stats.chi2(3 * runs).ppf([0.025, 0.975]) / runs
    stated, changing = nees_of(model, truth, runs)
    # The moments are of fourth order only and use noisy velocities, so the band is 0.2 wider.
    assert low - 0.2 < stated < high + 0.2
    assert changing > high + 0.2
