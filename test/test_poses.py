# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration from poses recovers known errors of an IMU within their standard errors."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from sim2real_eval.characterization.imu_file import chain_model
from sim2real_eval.characterization.options import PoseOptions
from sim2real_eval.characterization.poses import PoseCalibration, calibrate_poses
from sim2real_eval.characterization.signals import AXES, SignalFileError, Signals
from sim_sensors.core import rotations
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain
from sim_sensors.motion.trajectory import Trajectory

RATE, HELD, TURNING = 100.0, 4.0, 2.0
GYROSCOPE = {
    'scale': (0.01, -0.02, 0.005),
    'cross_axis_upper': (0.01, -0.005, 0.02),
    'cross_axis_lower': (-0.01, 0.015, 0.004),
    'constant_bias': (0.01, -0.02, 0.005),
}
ACCELEROMETER = {
    'scale': (0.02, -0.01, 0.003),
    'cross_axis_upper': (0.005, -0.01, 0.02),
    'constant_bias': (0.1, -0.2, 0.05),
}
IMU = ImuChain(
    rate=RATE,
    gyroscope=GyroscopeChain(**GYROSCOPE, noise_density=1e-4),
    accelerometer=AccelerometerChain(**ACCELEROMETER, noise_density=1e-3),
)


def turned_by_hand(poses: int, seed: int, tilt: float = np.pi) -> Trajectory:
    """Return poses of an IMU, at most `tilt` rad from level, with smooth turns between them."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(poses, 3))
    vectors *= (tilt * rng.uniform(0.3, 1.0, poses) / np.linalg.norm(vectors, axis=1))[:, None]
    pose_rotations = rotations.exp(vectors)
    held, moved = round(HELD * RATE), round(TURNING * RATE)
    s = np.arange(1, moved + 1) / moved
    angle = s - np.sin(2.0 * np.pi * s) / (2.0 * np.pi)
    speed = (1.0 - np.cos(2.0 * np.pi * s)) / TURNING
    orientation, rate = [np.tile(pose_rotations[0], (held, 1))], [np.zeros((held, 3))]
    for k, vector in enumerate(
        rotations.rotation_between(pose_rotations[:-1], pose_rotations[1:])
    ):
        start = np.tile(pose_rotations[k], (moved, 1))
        orientation.append(rotations.multiply(start, rotations.exp(angle[:, None] * vector)))
        rate.append(speed[:, None] * vector)
        orientation.append(np.tile(pose_rotations[k + 1], (held, 1)))
        rate.append(np.zeros((held, 3)))
    turns, rates = np.concatenate(orientation), np.concatenate(rate)
    still = np.zeros_like(rates)
    time = np.arange(len(rates)) / RATE
    return Trajectory(time, still, turns, still, rates, still, still)


@functools.cache
def recorded(poses: int, seed: int, tilt: float = np.pi) -> Signals:
    measured = IMU.start(seed, 'a').measure(turned_by_hand(poses, seed, tilt))
    values = np.hstack([measured.angular_velocity, measured.linear_acceleration])
    return Signals('poses', AXES, values, None, RATE)


def z_scores(calibration: PoseCalibration) -> np.ndarray:
    """Return the errors of the known values over their standard errors."""
    scores = []
    triads = calibration.gyroscope, calibration.accelerometer
    for triad, true in zip(triads, (GYROSCOPE, ACCELEROMETER), strict=True):
        for name, values in true.items():
            off = np.subtract(triad.values[name], values)
            scores.append(off / np.array(triad.errors[name]))
    return np.concatenate(scores)


def test_calibration_errors_are_recovered_within_their_standard_errors() -> None:
    scores = np.concatenate([z_scores(calibrate_poses(recorded(36, seed))) for seed in (1, 2)])
    # 42 of Student's distribution with 27 degrees of freedom and more: one of them beyond 4.6 in
    # 300 seeds.
    assert np.abs(scores).max() < 4.6
    assert 0.5 < np.mean(scores**2) < 1.7
    calibration = calibrate_poses(recorded(36, 1))
    assert calibration.poses == 36
    assert max(calibration.gyroscope.errors['scale']) < 1e-3
    assert max(calibration.accelerometer.errors['constant_bias']) < 3e-3


def test_another_gravity_changes_the_fitted_scale() -> None:
    calibration = calibrate_poses(recorded(36, 1))
    other = calibrate_poses(recorded(36, 1), PoseOptions(gravity=9.78))
    ratio = (1.0 + np.array(other.accelerometer.values['scale'])) / (
        1.0 + np.array(calibration.accelerometer.values['scale'])
    )
    np.testing.assert_allclose(ratio, 9.80665 / 9.78, rtol=1e-6)
    np.testing.assert_allclose(
        other.gyroscope.values['scale'], calibration.gyroscope.values['scale'], atol=1e-6
    )


def test_the_calibrated_model_keeps_its_noise() -> None:
    calibration = calibrate_poses(recorded(36, 1))
    model = calibration.applied(ImuChain(gyroscope=GyroscopeChain(noise_density=0.3)))
    assert model.gyroscope.noise_density == (0.3, 0.3, 0.3)
    assert model.accelerometer.scale == calibration.accelerometer.values['scale']


def test_the_bias_from_many_poses_excludes_the_rotation_of_the_earth() -> None:
    still = chain_model({}, rate=RATE, biases={'gyroscope_x': (0.01, 0.0)})
    assert still.gyroscope.earth_in_bias
    calibration = calibrate_poses(recorded(36, 1))
    model = calibration.applied(still)
    assert model.gyroscope.constant_bias == calibration.gyroscope.values['constant_bias']
    assert not model.gyroscope.earth_in_bias


@pytest.mark.parametrize(('poses', 'tilt'), [(8, np.pi), (20, 0.1)])
def test_few_or_similar_poses_are_refused(poses: int, tilt: float) -> None:
    with pytest.raises(SignalFileError):
        calibrate_poses(recorded(poses, 1, tilt))
