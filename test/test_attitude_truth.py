# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors of a body at rest: comparison with the truth, and detection of motion.

Every noise is drawn with a fixed seed. A sensor that is right is named in 0.1 % of spans.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.attitude.filter import (
    AttitudeError,
    AttitudeInput,
    events_of,
    without_zero_rate,
)
from sim2real_eval.benches.attitude.study import find_suspects
from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import FloatArray, ImuArray, MagneticFieldArray, PoseArray

GRAVITY, NORTH = 9.8, np.array([0.0, 2e-5, -4e-5])
STD = {'rate': 1e-2, 'force': 2e-2, 'field': 3e-7, 'pose': 1e-2}
ATTITUDE = Rotation.from_euler('xyz', [0.3, -0.5, 2.0])


def stated(std: float, n: int) -> FloatArray:
    return np.tile(std**2 * np.eye(3), (n, 1, 1))


def at_rest(seconds: float = 20.0, rate: float = 50.0) -> AttitudeInput:
    """IMU, magnetometer and camera at the same stamps, all as noisy as they state."""
    n = round(seconds * rate)
    rng = np.random.default_rng(7)
    stamps = np.round(np.arange(n) * 1e9 / rate).astype(np.int64)
    noise = {kind: std * rng.standard_normal((n, 3)) for kind, std in STD.items()}
    none = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    imu = ImuArray(
        stamps, stamps, 'imu', none, noise['rate'],
        noise['force'] + ATTITUDE.inv().apply([0.0, 0.0, GRAVITY]),
        stated(1.0, n), stated(STD['rate'], n), stated(STD['force'], n),
    )  # fmt: skip
    field = noise['field'] + ATTITUDE.inv().apply(NORTH)
    mag = MagneticFieldArray(stamps, stamps, 'imu', field, stated(STD['field'], n))
    covariance = np.zeros((n, 6, 6))
    covariance[:, 3:, 3:] = stated(STD['pose'], n)
    turned = (Rotation.from_rotvec(noise['pose']) * ATTITUDE).as_quat()
    poses = PoseArray(stamps, stamps, 'map', np.zeros((n, 3)), turned, covariance)
    return AttitudeInput(imu, mag, poses)


def suspects_of(inputs: AttitudeInput) -> tuple[Finding, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        events = events_of(inputs, AttitudeSettings())
        truth = lambda at: np.tile(ATTITUDE.as_quat(), (len(at), 1))  # noqa: E731
        return find_suspects(events, truth, gravity=GRAVITY, field=NORTH)


def test_sensors_with_their_stated_noise_are_not_suspected() -> None:
    assert suspects_of(at_rest()) == ()


def test_poses_in_a_rotated_frame_are_suspected_with_the_angle() -> None:
    inputs = at_rest()
    poses = inputs.poses
    turn = Rotation.from_rotvec([0.03, 0.0, 0.04])
    askew = (turn * Rotation.from_quat(poses.orientation)).as_quat()
    rotated = dataclasses.replace(poses, orientation=askew)
    (finding,) = suspects_of(dataclasses.replace(inputs, poses=rotated))
    assert finding.subject == 'camera'
    assert finding.numbers['off'] == pytest.approx(0.05, rel=0.05), 'turn of 0.05 rad, 5 %'


def test_a_small_offset_is_detected_in_the_mean_over_the_whole_run() -> None:
    """Half the noise of a second's mean: its squares are 1.25 instead of 1, not twice that."""
    inputs = at_rest(seconds=60.0)
    off = 0.5 * STD['force'] / np.sqrt(50.0) * np.array([1.0, -1.0, 1.0])
    force = inputs.imu.linear_acceleration + off
    biased = dataclasses.replace(inputs.imu, linear_acceleration=force)
    (finding,) = suspects_of(dataclasses.replace(inputs, imu=biased))
    assert finding.subject == 'accelerometer'
    assert finding.numbers['span'] == pytest.approx(60.0, rel=0.01)


@pytest.mark.parametrize(('more', 'named'), [(1.25, False), (1.75, True)])
def test_a_sensor_is_suspected_if_its_squared_error_is_twice_the_stated_variance(
    more: float, named: bool
) -> None:
    """1.25 and 1.75 times the noise: 1.56 and 3.06 times the squares."""
    inputs = at_rest(seconds=60.0)
    mag, poses = inputs.mag, inputs.poses
    true = ATTITUDE.inv().apply(NORTH)
    louder = dataclasses.replace(mag, magnetic_field=true + more * (mag.magnetic_field - true))
    off = (Rotation.from_quat(poses.orientation) * ATTITUDE.inv()).as_rotvec()
    turned = (Rotation.from_rotvec(more * off) * ATTITUDE).as_quat()
    wider = dataclasses.replace(poses, orientation=turned)
    for wrong, sensor in (
        (dataclasses.replace(inputs, mag=louder), 'magnetometer'),
        (dataclasses.replace(inputs, poses=wider), 'camera'),
    ):
        assert [finding.subject for finding in suspects_of(wrong)] == [sensor] * named


def test_windows_without_elapsed_time_are_skipped() -> None:
    """A second with a sample but no time since the previous one is skipped."""
    slow = at_rest(rate=0.5)
    assert suspects_of(slow) == ()
    rate = slow.imu.angular_velocity + np.array([0.5, 0.0, 0.0])
    imu = dataclasses.replace(slow.imu, angular_velocity=rate)
    (finding,) = suspects_of(dataclasses.replace(slow, imu=imu))
    assert finding.subject == 'gyroscope'
    assert finding.numbers['off'] == pytest.approx(0.5, rel=0.05)


def test_the_offset_is_the_mean_rate_at_rest() -> None:
    imu = at_rest().imu
    is_resting = imu.stamp_ns < 4 * 10**9
    corrected = without_zero_rate(imu, 4.0)
    mean_rate = imu.angular_velocity[is_resting].mean(axis=0)
    removed = imu.angular_velocity - corrected.angular_velocity
    np.testing.assert_allclose(removed, np.tile(mean_rate, (len(imu), 1)), atol=1e-15)


@pytest.mark.parametrize(
    ('field', 'limit'), [('angular_velocity', 0.02), ('linear_acceleration', 0.3)]
)
def test_a_rest_with_motion_in_a_tenth_of_it_is_refused(field: str, limit: float) -> None:
    """Limits are those of a standstill; noise of a tenth's mean is a sixth of them at most."""
    imu = at_rest().imu
    for size, moves in ((0.7 * limit, False), (1.3 * limit, True)):
        values = getattr(imu, field).copy()
        values[120:160] += np.array([0.0, size, 0.0])
        moved = dataclasses.replace(imu, **{field: values})
        if moves:
            with pytest.raises(AttitudeError):
                without_zero_rate(moved, 8.0)
        else:
            without_zero_rate(moved, 8.0)
