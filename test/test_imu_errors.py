# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Statistics of the errors of Chrono's and AirSim's IMU, on a body at rest.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import math

import allantools
import numpy as np
import pytest

from sim_sensors.imu.models import (
    AirSimAccelerometer,
    AirSimGyroscope,
    AirSimImu,
    ChronoAccelerometer,
    ChronoGyroscope,
    ChronoImu,
)
from sim_sensors.motion.scenarios import Standstill

SIGMAS = 4.5
G = 9.80665


def still(n, rate=100.0, first=0):
    """The truth of samples `first` to `first + n` of a body at rest."""
    return Standstill(duration=(first + n) / rate).at(np.arange(first, first + n) / rate)


def test_the_first_sample_of_chrono_already_has_a_drifted_bias():
    sensor = ChronoImu().start(1, 'a')
    assert not sensor.accelerometer_bias.any()
    result = sensor.measure(still(3))
    assert (result.accelerometer_bias[0] != 0.0).all()
    np.testing.assert_array_equal(sensor.accelerometer_bias, result.accelerometer_bias[-1])
    np.testing.assert_array_equal(sensor.gyroscope_bias, result.gyroscope_bias[-1])


def test_chrono_bias_variance_grows_linearly_with_the_samples():
    """Var b[k] = k drift^2 dt/tau; a variance of n >= 3000 increments errs by sqrt(2/n)."""
    bias = ChronoImu().start(1, 'a').measure(still(40_000)).accelerometer_bias
    for k in (1, 10, 40):
        expected = k * 0.1**2 * 0.01 / 0.1
        moved = np.diff(bias[k - 1 :: k], axis=0, prepend=0.0)
        error = SIGMAS * math.sqrt(2.0 / moved.size)
        assert np.mean(moved**2) == pytest.approx(expected, rel=error)


def test_chrono_white_noise_is_per_sample_at_every_rate():
    """This is the upstream variant; the exact one is this at 100 Hz, see test_imu_catalogue."""
    for rate in (50.0, 200.0):
        model = ChronoImu(
            rate=rate,
            variant='as_upstream',
            gyroscope=ChronoGyroscope(drift=0.0),
            accelerometer=ChronoAccelerometer(drift_time=0.0, mean=(0.0, 0.0, 1.0)),
        )
        result = model.start(1, 'a').measure(still(50_000, rate))
        bound = SIGMAS * math.sqrt(0.5 / 50_000)
        np.testing.assert_allclose(result.angular_velocity.std(0), 0.05, rtol=bound)
        np.testing.assert_allclose(result.linear_acceleration.std(0), [0.3, 0.3, 0.01], rtol=bound)
        assert result.linear_acceleration[:, 2].mean() == pytest.approx(G + 1.0, abs=3e-4)


def test_the_allan_deviation_of_chrono_has_both_slopes_of_its_parameters():
    """allantools: sigma sqrt(dt) and K/sqrt(3) at 1 s; bounds are 4.5 / sqrt(2 * 4000 s/tau)."""
    model = ChronoImu(gyroscope=ChronoGyroscope(std=0.05, drift=0.002, drift_time=0.1))
    rate = model.start(1, 'a').measure(still(400_000)).angular_velocity[:, 0]
    taus, deviation, _, _ = allantools.oadev(
        rate, rate=100.0, data_type='freq', taus=[0.05, 0.2, 1.0, 10.0, 40.0]
    )
    N, K = 0.05 * math.sqrt(0.01), 0.002 / math.sqrt(0.1)
    expected = np.sqrt(N**2 / taus + K**2 * taus / 3.0)
    error = SIGMAS / np.sqrt(2.0 * 4000.0 / taus)
    assert (np.abs(deviation / expected - 1.0) < error).all()
    # Each end is ruled by one of the two terms.
    assert N / math.sqrt(0.05) / expected[0] > 0.97
    assert K * math.sqrt(40.0 / 3.0) / expected[-1] > 0.97


def test_the_drift_of_chrono_follows_the_nominal_rate():
    model = ChronoImu()
    regular = model.start(1, 'a').measure(still(50)).gyroscope_bias
    stretched = model.start(1, 'a').measure(still(50, rate=20.0)).gyroscope_bias
    assert regular.tobytes() == stretched.tobytes()


def test_the_first_sample_of_airsim_has_the_turn_on_bias():
    turn_on = (0.1, -0.2, 0.3)
    model = AirSimImu(gyroscope=AirSimGyroscope(turn_on_bias=turn_on))
    sensor = model.start(1, 'a')
    result = sensor.measure(still(3))
    np.testing.assert_array_equal(result.gyroscope_bias[0], turn_on)
    assert (result.gyroscope_bias[1] != turn_on).all()
    # The state is that of the next sample.
    following = sensor.measure(still(1, first=3))
    sensor_state = model.start(1, 'a')
    sensor_state.measure(still(3))
    np.testing.assert_array_equal(sensor_state.gyroscope_bias, following.gyroscope_bias[0])


@pytest.mark.parametrize('rate', [50.0, 200.0])
def test_airsim_white_noise_is_a_density(rate):
    model = AirSimImu(rate=rate)
    result = model.start(1, 'a').measure(still(50_000, rate))
    bound = SIGMAS * math.sqrt(0.5 / 50_000)
    arw = math.radians(0.30) / 60.0
    vrw = 0.24e-3 * G
    np.testing.assert_allclose(result.angular_velocity.std(0), arw * math.sqrt(rate), rtol=bound)
    np.testing.assert_allclose(
        result.linear_acceleration.std(0), vrw * math.sqrt(rate), rtol=bound + 1e-3
    )
    np.testing.assert_allclose(
        result.angular_velocity_covariance[:, [0, 1, 2], [0, 1, 2]], arw**2 * rate, rtol=1e-9
    )


def test_airsim_defaults_are_those_of_an_mpu_6000():
    """The figures of [AirSim] ImuSimpleParams, to their printed digits."""
    assert AirSimGyroscope().angle_random_walk == pytest.approx(8.727e-5, rel=1e-4)
    assert AirSimGyroscope().bias_stability == pytest.approx(2.230e-5, rel=1e-4)
    assert AirSimAccelerometer().velocity_random_walk == pytest.approx(2.354e-3, rel=2e-4)
    assert AirSimAccelerometer().bias_stability == pytest.approx(3.530e-4, rel=2e-4)


def test_airsim_bias_variance_grows_with_real_time_at_every_rate():
    """Var b(t) = bs^2 t/tau; 1000 increments of 2 s in 3 axes."""
    for dt in (0.02, 0.1):
        steps = round(2.0 / dt)
        bias = AirSimImu().start(1, 'a').measure(still(1000 * steps + 2, 1.0 / dt)).gyroscope_bias
        # The bias of sample k is k steps old, of which the first is 1/rate of the model long.
        moved = np.diff(bias[1::steps], axis=0)
        assert len(moved) == 1000
        expected = (math.radians(4.6) / 3600.0) ** 2 * 2.0 / 500.0
        error = SIGMAS * math.sqrt(2.0 / moved.size)
        assert np.mean(moved**2) == pytest.approx(expected, rel=error)


def test_airsim_interval_is_never_below_a_millisecond():
    model = AirSimImu(rate=1e4)
    result = model.start(1, 'a').measure(still(20_000, 1e4))
    expected = math.radians(0.30) / 60.0 / math.sqrt(1e-3)
    np.testing.assert_allclose(result.angular_velocity.std(0), expected, rtol=0.03)


def test_airsim_and_chrono_agree_with_equal_numbers():
    """sigma = density/sqrt(dt), drift = bias stability: the bias is one sample later [AirSim]."""
    dt, arw, bs, tau = 0.01, 0.002, 0.003, 5.0
    airsim = AirSimImu(
        gyroscope=AirSimGyroscope(angle_random_walk=arw, bias_stability=bs, bias_time=tau)
    )
    chrono = ChronoImu(
        gyroscope=ChronoGyroscope(std=arw / math.sqrt(dt), drift=bs, drift_time=tau)
    )
    a, c = (model.start(1, 'a').measure(still(200)) for model in (airsim, chrono))
    np.testing.assert_allclose(a.gyroscope_bias[1:], c.gyroscope_bias[:-1], rtol=1e-9)
    np.testing.assert_allclose(
        a.angular_velocity - a.gyroscope_bias, c.angular_velocity - c.gyroscope_bias, atol=1e-12
    )
