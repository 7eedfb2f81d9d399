# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs: physics of a perfect one, stepping, covariances and the published orientation.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from sim_sensors.core.errors import MotionError
from sim_sensors.imu.imu import simulate
from sim_sensors.imu.models import AirSimImu, ChronoImu, IdealImu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.motion.scenarios import Circle, FigureEight, Standstill
from sim_sensors.motion.trajectory import Trajectory

SIGMAS = 4.5
G = 9.80665
AHRS = Orientation(mode='ahrs')
MODELS = {
    'chrono': ChronoImu(
        orientation=AHRS, lever_arm=(0.1, 0.2, 0.3), mounting_rpy=(0.1, -0.2, 3.0)
    ),
    'airsim': AirSimImu(orientation=Orientation(mode='truth'), mounting_rpy=(0.0, 0.0, 1.5)),
    'ideal': IdealImu(lever_arm=(1.0, 0.0, 0.0)),
}


def turntable(rate, times, tilt=(0.0, 0.0, 0.0)):
    """A body that turns about the vertical through its own origin, tilted."""
    n = len(times)
    spin = Rotation.from_rotvec(np.outer(times, [0.0, 0.0, rate])) * Rotation.from_rotvec(tilt)
    zero = np.zeros((n, 3))
    body = Rotation.from_rotvec(tilt).inv().apply(np.tile([0.0, 0.0, rate], (n, 1)))
    return Trajectory(times, zero, spin.as_quat(), zero, body, zero, zero)


def test_an_imu_at_rest_and_level_reads_gravity_upward_and_no_rate():
    imu = simulate(IdealImu(), Standstill(duration=1.0), seed=1, run='a')
    np.testing.assert_allclose(imu.linear_acceleration, np.tile([0.0, 0.0, G], (101, 1)))
    assert not imu.angular_velocity.any()


def test_gravity_is_that_of_the_simulated_world():
    imu = simulate(IdealImu(), Standstill(duration=0.1), seed=1, run='a', gravity=1.62)
    np.testing.assert_allclose(imu.linear_acceleration[:, 2], 1.62)


def test_a_circle_gives_centripetal_force_and_yaw_rate():
    """v^2/r to the left and v/r, counter-clockwise, at constant speed and every heading."""
    circle = Circle(duration=20.0)
    truth = circle.at(np.arange(0.0, 20.0, 0.01))
    speed = np.linalg.norm(truth.velocity, axis=1)
    steady = np.abs(speed - speed.max()) < 1e-12
    assert steady.sum() > 500
    v = speed.max()
    r = v / truth.angular_velocity[steady][0, 2]
    result = IdealImu().start(1, 'a').measure(truth)
    expected = np.tile([0.0, v * v / r, G], (steady.sum(), 1))
    np.testing.assert_allclose(result.linear_acceleration[steady], expected, atol=1e-9)
    np.testing.assert_allclose(result.angular_velocity[steady][:, 2], v / r)


def test_lever_arm_forward_on_a_turntable_adds_centripetal_force():
    model = IdealImu(lever_arm=(0.5, 0.0, 0.0))
    result = model.start(1, 'a').measure(turntable(2.0, np.arange(100) * 0.01))
    np.testing.assert_allclose(result.linear_acceleration[:, 0], -(2.0**2) * 0.5)
    np.testing.assert_allclose(result.linear_acceleration[:, 2], G)


def test_forces_and_rates_are_rotated_by_the_mounting():
    """Yawed by 90 degrees, the x axis is the body's left; pitched by 90 degrees, it is down."""
    truth = turntable(0.5, np.arange(10) * 0.01)
    yawed = IdealImu(lever_arm=(0.0, 1.0, 0.0), mounting_rpy=(0.0, 0.0, math.pi / 2))
    result = yawed.start(1, 'a').measure(truth)
    # The arm points left, so the pull is to the right: the sensor's -x.
    expected = np.tile([-0.25, 0.0, G], (10, 1))
    np.testing.assert_allclose(result.linear_acceleration, expected, atol=1e-14)
    pitched = IdealImu(mounting_rpy=(0.0, math.pi / 2, 0.0)).start(1, 'a').measure(truth)
    expected = np.tile([-G, 0.0, 0.0], (10, 1))
    np.testing.assert_allclose(pitched.linear_acceleration, expected, atol=1e-14)
    np.testing.assert_allclose(pitched.angular_velocity[:, 0], -0.5)


@given(st.tuples(*[st.floats(-3.0, 3.0)] * 3), st.tuples(*[st.floats(-1.0, 1.0)] * 3))
def test_a_static_transform_mounts_the_imu_by_its_quaternion(rotvec, translation):
    rotation = Rotation.from_rotvec(rotvec)
    model = IdealImu(orientation=Orientation(mode='truth')).mounted(
        translation, rotation.as_quat()
    )
    assert model.lever_arm == translation
    truth = turntable(1.0, np.array([0.0, 0.4]), tilt=(0.3, 0.0, 0.0))
    result = model.start(1, 'a').measure(truth)
    force = truth.at_lever_arm(translation).specific_force(G)
    np.testing.assert_allclose(
        rotation.apply(result.linear_acceleration), force, atol=1e-8, rtol=0
    )
    attitude = Rotation.from_quat(truth.orientation) * rotation
    assert (Rotation.from_quat(result.orientation) * attitude.inv()).magnitude().max() < 1e-8


@pytest.mark.parametrize('name', MODELS)
def test_stepping_equals_simulate_bit_for_bit(name):
    motion = FigureEight(duration=2.0)
    whole = simulate(MODELS[name], motion, seed=3, run='run', origin_ns=1_700_000_000_000_000_000)
    times = (whole.stamp_ns - 1_700_000_000_000_000_000) * 1e-9
    sensor = MODELS[name].start(3, 'run')
    for k, time in enumerate(times):
        step = sensor.measure(motion.at([time]))
        for field in ('orientation', 'angular_velocity', 'linear_acceleration'):
            assert getattr(step, field)[0].tobytes() == getattr(whole, field)[k].tobytes()


def test_noise_depends_on_seed_run_and_sensor_only():
    motion = Standstill(duration=0.2)

    def rates(**changes):
        labels = {'seed': 1, 'run': 'a', 'sensor': 'imu', **changes}
        return simulate(ChronoImu(), motion, **labels).angular_velocity

    assert rates().tobytes() == rates().tobytes()
    for change in ({'seed': 2}, {'run': 'b'}, {'sensor': 'imu2'}):
        assert (rates(**change) != rates()).all()


def test_gyroscope_and_accelerometer_do_not_share_draws():
    """Correlation of 20000 pairs per axis errs by 0.7 %."""
    imu = simulate(ChronoImu(), Standstill(duration=200.0), seed=1, run='a')
    rate, force = imu.angular_velocity, np.diff(imu.linear_acceleration, axis=0)
    for axis in range(3):
        correlation = np.corrcoef(rate[1:, axis], force[:, axis])[0, 1]
        assert abs(correlation) < SIGMAS / math.sqrt(20_000)


def test_stamps_lie_on_the_grid_of_the_sensor():
    model = dataclasses.replace(ChronoImu(), rate=30.0, latency=0.05)
    imu = simulate(model, Standstill(duration=1.0), seed=1, run='a', origin_ns=7, start_ns=100)
    expected = [100 + round(k * 1e9 / 30.0) for k in range(30)]
    assert imu.stamp_ns.tolist() == expected
    assert (imu.arrival_ns - imu.stamp_ns == 50_000_000).all()
    assert imu.frame == 'imu_link'


def test_the_last_stamp_may_equal_the_end_of_the_motion():
    origin = 1_699_999_999_123_456_789
    imu = simulate(IdealImu(), Standstill(duration=20.0), seed=1, run='a', origin_ns=origin)
    assert imu.stamp_ns[0] == origin
    assert imu.stamp_ns[-1] == origin + 20_000_000_000
    assert len(imu) == 2001


def test_a_start_outside_the_motion_is_refused():
    with pytest.raises(MotionError, match=r'start stamp -1 ns is outside'):
        simulate(IdealImu(), Standstill(duration=1.0), seed=1, run='a', start_ns=-1)


def test_repeated_times_of_the_truth_are_refused():
    sensor = IdealImu().start(1, 'a')
    sensor.measure(turntable(0.0, np.array([0.0, 0.01])))
    with pytest.raises(MotionError, match=r'truth at 0\.01 s'):
        sensor.measure(turntable(0.0, np.array([0.01])))


def test_covariance_is_the_variance_of_the_white_noise_or_unknown():
    imu = simulate(ChronoImu(), Standstill(duration=0.1), seed=1, run='a')
    for k in range(len(imu)):
        np.testing.assert_allclose(imu.angular_velocity_covariance[k], np.eye(3) * 0.0025)
        np.testing.assert_allclose(
            imu.linear_acceleration_covariance[k], np.diag([0.09, 0.09, 0.0001])
        )
    unknown = dataclasses.replace(ChronoImu(), covariance='unknown')
    imu = simulate(unknown, Standstill(duration=0.1), seed=1, run='a')
    assert not imu.angular_velocity_covariance.any()
    assert not imu.linear_acceleration_covariance.any()


def test_orientation_is_absent_by_default():
    imu = simulate(ChronoImu(), Circle(duration=2.0), seed=1, run='a')
    np.testing.assert_array_equal(imu.orientation, np.tile([0.0, 0.0, 0.0, 1.0], (201, 1)))
    expected = np.zeros((201, 3, 3))
    expected[:, 0, 0] = -1.0
    np.testing.assert_array_equal(imu.orientation_covariance, expected)


def test_the_true_orientation_is_that_of_the_mounted_sensor():
    motion = Circle(duration=2.0)
    model = IdealImu(orientation=Orientation(mode='truth'), mounting_rpy=(0.0, 0.0, 0.5))
    imu = simulate(model, motion, seed=1, run='a')
    expected = Rotation.from_quat(motion.at(np.arange(201) * 0.01).orientation)
    expected = expected * Rotation.from_euler('z', 0.5)
    difference = (Rotation.from_quat(imu.orientation) * expected.inv()).magnitude()
    assert difference.max() < 1e-7
    assert not imu.orientation_covariance.any()


def attitude_errors(imu, truth):
    """Rotation vectors from true to published attitude, world axes."""
    published = Rotation.from_quat(imu.orientation)
    return (published * Rotation.from_quat(truth.orientation).inv()).as_rotvec()


def test_the_stated_covariance_of_an_ahrs_fits_its_errors():
    """NEES of 20000 independent errors: chi-squared with 3 degrees, mean 3 +- sqrt(6/n)."""
    n = 20_000
    orientation = Orientation(
        mode='ahrs', roll_pitch_std=0.02, yaw_std=0.06, roll_pitch_time_constant=0.05,
        yaw_time_constant=0.05,
    )  # fmt: skip
    truth = turntable(0.7, np.arange(n, dtype=float), tilt=(0.4, 0.2, 0.0))
    result = IdealImu(rate=1.0, orientation=orientation).start(1, 'a').measure(truth)
    errors = attitude_errors(result, truth)
    covariance = result.orientation_covariance
    np.testing.assert_allclose(covariance[7], np.diag([4e-4, 4e-4, 36e-4]))
    nees = np.einsum('ni,nij,nj->n', errors, np.linalg.inv(covariance), errors)
    assert nees.mean() == pytest.approx(3.0, abs=SIGMAS * math.sqrt(6.0 / n))
    inside = np.mean(nees < chi2.ppf(0.95, 3))
    assert inside == pytest.approx(0.95, abs=SIGMAS * math.sqrt(0.0475 / n))
    # Axis by axis in the world, although the body is tilted and turns.
    np.testing.assert_allclose(
        errors.var(0), [4e-4, 4e-4, 36e-4], rtol=SIGMAS * math.sqrt(2.0 / n)
    )


def test_the_ahrs_error_has_its_stated_correlation_times():
    """Autocorrelation at lag T is exp(-1), over 8000 s with T = 2 s: n_eff = 4000, error < 3 %."""
    orientation = Orientation(mode='ahrs', roll_pitch_time_constant=2.0, yaw_time_constant=2.0)
    truth = turntable(0.0, np.arange(160_000) * 0.05)
    result = IdealImu(rate=20.0, orientation=orientation).start(1, 'a').measure(truth)
    errors = attitude_errors(result, truth)
    lagged = np.mean(errors[40:] * errors[:-40], axis=0) / np.mean(errors**2, axis=0)
    np.testing.assert_allclose(lagged, math.exp(-1.0), atol=SIGMAS * 0.02)


def test_the_ahrs_mode_does_not_change_rates_and_forces():
    motion = Circle(duration=2.0)
    plain = simulate(ChronoImu(), motion, seed=1, run='a')
    ahrs = simulate(ChronoImu(orientation=AHRS), motion, seed=1, run='a')
    assert plain.angular_velocity.tobytes() == ahrs.angular_velocity.tobytes()
    assert plain.linear_acceleration.tobytes() == ahrs.linear_acceleration.tobytes()


def test_the_heading_noise_of_two_antennas_follows_from_their_position_noise():
    """Deviation sqrt(2) std / baseline for a level body, over cos(pitch) for a pitched one."""
    orientation = Orientation(
        mode='two_antennas', baseline=2.0, antenna_std=0.02, yaw_time_constant=1.0
    )
    n, pitch = 20_000, 1.0
    zero = np.zeros((n, 3))
    for turn, spread in ((0.0, 1.0), (pitch, 1.0 / np.cos(pitch))):
        attitude = Rotation.from_euler('ZY', [2.5, turn])
        truth = Trajectory(
            np.arange(n) * 5.0, zero, np.tile(attitude.as_quat(), (n, 1)), *([zero] * 4)
        )
        imu = IdealImu(orientation=orientation).start(1, 'a').measure(truth)
        roll, tilt, heading = Rotation.from_quat(imu.orientation).as_euler('xyz').T
        assert max(abs(roll).max(), abs(tilt).max()) < 1e-12
        expected = np.sqrt(2.0) * 0.02 / 2.0
        assert np.std(heading) == pytest.approx(spread * expected, rel=4.5 / np.sqrt(2 * n))
        assert np.mean(heading) == pytest.approx(2.5, abs=4.5 * spread * expected / np.sqrt(n))
        stated = imu.orientation_covariance[0]
        np.testing.assert_allclose(np.diag(stated), [np.pi**2 / 3, np.pi**2 / 3, expected**2])
