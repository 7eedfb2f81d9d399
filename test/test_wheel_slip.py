# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Slips of wheels: their mean, their variance, and both in the covariances of odometry.

Statistical bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim_sensors.motion.scenarios import Circle
from sim_sensors.wheels.encoders import DifferentialWheels, NoWheelNoise, Slip
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel

SIGMAS = 4.5


def test_slips_have_the_stated_mean_and_variance() -> None:
    """Over blocks of 50 m, whatever share is locked: of half of them there is no mean."""
    way, wheels = 4000.0, 8
    travels = np.full((8000, wheels), way / 8000)
    for locked, mean in ((0.0, 0.1 / 1.2), (0.5, 0.0), (0.9, -0.08 / 1.2), (1.0, -0.1 / 1.2)):
        slip = Slip(distance=1.0, length=0.2, ratio=0.5, locked=locked)
        assert slip.mean == pytest.approx(mean)
        added = slip.start(1, 'run', 'wheels', wheels).advance(travels)
        blocks = added.reshape(80, 100, wheels).sum(axis=1).ravel()
        expected = math.sqrt(slip.variance_per_metre * 50.0)
        error = SIGMAS * expected / math.sqrt(len(blocks))
        assert blocks.mean() == pytest.approx(50.0 * slip.mean, abs=error)
        # The variance of a variance of exponential sizes is larger than that of normal ones.
        wide = SIGMAS * 0.7 / math.sqrt(len(blocks)) + 0.01
        assert blocks.std() == pytest.approx(expected, rel=wide)
        backward = slip.start(1, 'run', 'wheels', wheels).advance(-travels)
        np.testing.assert_array_equal(backward, -added)


def test_steps_with_very_many_slips_have_the_stated_mean_and_variance() -> None:
    """A wheel far from the centre of a turn rolls 1e13 m; the steps between have their slips."""
    slip = Slip(distance=1.0, length=0.2, ratio=0.5, locked=0.1)
    travels = np.full((2000, 4), 0.5)
    few_slips = slip.start(1, 'run', 'wheels', 4).advance(travels)
    far = np.full((1000, 4), 1e13)
    wheels = slip.start(1, 'run', 'wheels', 4)
    parts = [wheels.advance(travels[:800]), wheels.advance(far), wheels.advance(travels[800:])]
    np.testing.assert_allclose(np.concatenate(parts[::2]), few_slips, atol=1e-12)
    normal = (parts[1] - slip.mean * 1e13) / math.sqrt(slip.variance_per_metre * 1e13)
    assert abs(normal.mean()) < SIGMAS / math.sqrt(normal.size)
    assert normal.std() == pytest.approx(1.0, abs=SIGMAS / math.sqrt(2.0 * normal.size))


@pytest.mark.parametrize('locked', [0.0, 0.8])
def test_the_stated_covariances_include_the_mean_effect_of_slips(locked: float) -> None:
    """300 runs of slips alone; without the mean contribution, the NEES would be 19 and 8, not 3.
    Slips are small and shorter than a step, as the covariance is of first order.
    """
    model = WheelOdometryModel(
        drive=DifferentialWheels(), lever_arm=(0.2, 0.1, 0.0), noise=NoWheelNoise(), rate=10.0,
        slip=Slip(distance=0.1, length=0.01, ratio=0.01, locked=locked), speed_floor=0.0,
        yaw_rate_floor=0.0,
    )  # fmt: skip
    bend = Circle(radius=20.0, speed=1.0, ramp_time=0.0, duration=21.0)
    truth = bend.at(np.arange(0.0, 20.0, 0.1))
    runs = [model.start(9, f'{run}').measure(truth) for run in range(300)]
    errors = np.array([run.pose[-1] - run.true_pose[-1] for run in runs])
    nees = [
        error @ np.linalg.solve(run.pose_covariance[-1], error)
        for run, error in zip(runs, errors, strict=True)
    ]
    assert np.mean(nees) == pytest.approx(3.0, abs=SIGMAS * math.sqrt(6.0 / 300) + 0.15)
    velocity = np.array([run.velocity - run.true_velocity for run in runs])
    mean_square = np.mean(velocity**2, axis=(0, 1))
    stated = np.mean([np.mean(run.velocity_covariance, axis=0) for run in runs], axis=0)
    np.testing.assert_allclose(mean_square, np.diag(stated), rtol=0.15)
