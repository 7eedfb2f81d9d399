# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of RotorS, CARLA and gnss-ins-sim. Bounds are 4.5 standard errors; seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from imu_examples import SIGMAS, G, bound, many, moving, still, upstream
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.imu.simulators import (
    CarlaGyroscope,
    CarlaImu,
    GnssInsSimGyroscope,
    GnssInsSimImu,
    RotorsImu,
)
from sim_sensors.motion.trajectory import Trajectory


def test_rotors_defaults_are_those_of_the_adis16448():
    model = load_imu('rotors_adis16448')
    gyro, accel = model.gyroscope, model.accelerometer
    assert gyro.noise_density == pytest.approx(3.394e-4, rel=1e-3)
    assert gyro.random_walk == pytest.approx(3.879e-5, rel=1e-3)
    assert gyro.turn_on_bias_sigma == pytest.approx(8.727e-3, rel=1e-4)
    for part, expected in ((gyro, 8.67e-4), (accel, 0.0735)):
        stationary = part.random_walk * math.sqrt(part.bias_correlation_time / 2.0)
        assert stationary == pytest.approx(expected, rel=1e-3)


def test_rotors_bias_grows_from_the_turn_on_bias():
    """Var b(t) = turn_on^2 + K^2 tau/2 (1 - exp(-2 t/tau)) over 200 sensors of 3 axes."""
    drift = {'turn_on_bias_sigma': 0.1, 'random_walk': 0.2, 'bias_correlation_time': 2.0}
    model = RotorsImu.from_mapping({'rate': 10.0, 'gyroscope': drift}, 'test')
    biases = np.array([r.gyroscope_bias for r in many(model, still(20, 10.0), 200)])
    for k in (0, 19):
        expected = 0.01 + 0.04 * (1.0 - math.exp(-(k + 1) * 0.1))
        tolerance = SIGMAS * math.sqrt(2.0 / 600)
        assert np.mean(biases[:, k] ** 2) == pytest.approx(expected, rel=tolerance)


def test_rotors_yaw_from_noise_alone_spreads_with_the_square_root_of_time():
    """[PX4Classic]: density sqrt(t), over 200 sensors of 3 axes and 1 s."""
    model = load_imu('px4_iim42653')
    angles = np.array([r.angular_velocity.sum(0) * 0.01 for r in many(model, still(100), 200)])
    assert angles.std() == pytest.approx(8.727e-4, rel=bound(600))


def test_rotors_states_squared_densities_and_no_orientation_as_upstream():
    model = load_imu('rotors_adis16448')
    right, wrong = (m.start(1, 'a').measure(still(3)) for m in (model, upstream(model)))
    density = model.gyroscope.noise_density
    stated = np.eye(3) * density**2
    np.testing.assert_allclose(wrong.angular_velocity_covariance[2], stated, rtol=1e-12)
    stated = stated * 100.0
    np.testing.assert_allclose(right.angular_velocity_covariance[2], stated, rtol=1e-9)
    np.testing.assert_array_equal(wrong.orientation_covariance[2], np.full((3, 3), -1.0))
    np.testing.assert_array_equal(right.orientation_covariance[2], np.zeros((3, 3)))
    assert wrong.angular_velocity.tobytes() == right.angular_velocity.tobytes()
    assert wrong.orientation.tobytes() == right.orientation.tobytes()


def test_carla_noise_is_per_sample_and_only_the_gyroscope_has_a_bias():
    part = CarlaGyroscope(bias=(0.1, 0.2, 0.3), stddev=0.05)
    for rate in (50.0, 200.0):
        model = CarlaImu(rate=rate, gyroscope=part, variant='as_upstream')
        rates = model.start(1, 'a').measure(still(20_000, rate)).angular_velocity
        np.testing.assert_allclose(rates.std(0), 0.05, rtol=bound(20_000))
        tolerance = SIGMAS * 0.05 / math.sqrt(20_000)
        np.testing.assert_allclose(rates.mean(0), [0.1, 0.2, 0.3], atol=tolerance)


def test_the_first_two_accelerations_of_carla_as_upstream_are_artefacts():
    """A constant acceleration is exact from the third sample on, with uneven steps too [CARLA]."""
    truth = moving(6, (0.3, -0.2, 0.0), position=(5.0, 0.0, 0.0))
    t = np.array([0.0, 0.01, 0.025, 0.03, 0.05, 0.051])
    path = np.array([5.0, 0.0, 0.0]) + 0.5 * truth.acceleration * (t**2)[:, None]
    truth = dataclasses.replace(truth, time=t, position=path)
    force = upstream(CarlaImu()).start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(force[0], [0.0, 0.0, G], atol=1e-9)
    assert abs(force[1, 0]) > 1e4
    np.testing.assert_allclose(force[2:], np.tile([0.3, -0.2, G], (4, 1)), atol=1e-6)
    exact = CarlaImu().start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(exact, np.tile([0.3, -0.2, G], (6, 1)), atol=1e-12)


def test_the_heading_mode_gives_only_the_true_yaw():
    yaw = np.array([-3.0, -1.0, 0.0, 0.5, 2.0, 3.1])
    tilted = Rotation.from_euler('ZYX', np.column_stack([yaw, [0.3] * 6, [-0.2] * 6]))
    zero = np.zeros((6, 3))
    truth = Trajectory(np.arange(6) * 0.01, zero, tilted.as_quat(), zero, zero, zero, zero)
    model = CarlaImu(orientation=Orientation(mode='heading'))
    result = model.start(1, 'a').measure(truth)
    expected = Rotation.from_euler('z', yaw[:, None])
    difference = Rotation.from_quat(result.orientation) * expected.inv()
    assert difference.magnitude().max() < 1e-7
    stated = result.orientation_covariance[0]
    np.testing.assert_allclose(stated, np.diag([math.pi**2 / 3, math.pi**2 / 3, 0.0]))


def test_gnss_ins_sim_grades_equal_those_of_its_table():
    """[GnssInsSim], in the units printed there."""
    expected = {
        'low': (10.0, 0.75, 2e-4, 0.05),
        'mid': (3.5, 0.25, 5e-5, 0.03),
        'high': (0.1, 2e-3, 3.6e-6, 2.5e-5),
    }
    for grade, (drift, arw, accel_drift, vrw) in expected.items():
        model = load_imu(f'gnss_ins_sim_{grade}')
        assert math.degrees(model.gyroscope.drift_std[0]) * 3600 == pytest.approx(drift, rel=1e-5)
        assert math.degrees(model.gyroscope.noise_density[1]) * 60 == pytest.approx(arw, rel=1e-5)
        assert model.accelerometer.drift_std[2] == pytest.approx(accel_drift, rel=1e-5)
        assert model.accelerometer.noise_density[0] * 60 == pytest.approx(vrw, rel=1e-5)
        assert model.gyroscope.drift_time == model.accelerometer.drift_time == 100.0


def test_gnss_ins_sim_as_upstream_draws_white_noise_for_an_infinite_drift_time():
    """Independent from sample to sample with the full deviation; the exact limit stays zero."""
    model = GnssInsSimImu(gyroscope=GnssInsSimGyroscope(drift_std=0.2, drift_time=0.0))
    assert not model.start(1, 'a').measure(still(100)).gyroscope_bias.any()
    bias = upstream(model).start(1, 'a').measure(still(20_000)).gyroscope_bias
    np.testing.assert_allclose(bias.std(0), 0.2, rtol=bound(20_000))
    lagged = np.mean(bias[1:] * bias[:-1]) / 0.04
    assert abs(lagged) < SIGMAS / math.sqrt(60_000)


def test_the_euler_step_of_gnss_ins_sim_as_upstream_increases_the_drift():
    """Var = sigma^2 (1 - exp(-2 x))/(1 - (1 - x)^2), x = dt/T = 0.5: 8 % less than sigma here."""
    part = GnssInsSimGyroscope(drift_std=0.2, drift_time=1.0)
    model = GnssInsSimImu(rate=2.0, gyroscope=part)
    for variant, factor in (
        (model, 1.0),
        (upstream(model), math.sqrt((1.0 - math.exp(-1.0)) / 0.75)),
    ):
        bias = variant.start(1, 'a').measure(still(10_000, 2.0)).gyroscope_bias[20:]
        # Correlated over 1 s: half as many independent ones.
        assert bias.std() == pytest.approx(0.2 * factor, rel=bound(3 * 3500))


def test_a_drift_that_would_diverge_in_gnss_ins_sim_as_upstream_is_refused():
    """|1 - dt/T| >= 1 from T = dt/2 down; the exact law takes any T."""
    mapping = {'rate': 100.0, 'gyroscope': {'drift_std': 0.1, 'drift_time': 0.005}}
    assert np.isfinite(
        GnssInsSimImu.from_mapping(mapping, 'f').start(1, 'a').measure(still(500)).gyroscope_bias
    ).all()
    with pytest.raises(ParameterError, match=r'gyroscope.drift_time: 0.005 is not allowed'):
        GnssInsSimImu.from_mapping({**mapping, 'variant': 'as_upstream'}, 'f')
