# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The generic IMU. Bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import allantools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal
from stepping_examples import assert_stepping_gives_the_same_bits

from sim_sensors.core.seeding import stream
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain
from sim_sensors.imu.models import IdealImu
from sim_sensors.motion.scenarios import FigureEight, Standstill
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.noise.electronics import (
    IncrementQuantiser,
    LowPass,
    Ramp,
    Supply,
    Temperature,
    saturate,
)
from sim_sensors.noise.processes import Flicker

SIGMAS = 4.5
PLATEAU = math.sqrt(2.0 * math.log(2.0) / math.pi)
EVERYTHING = {
    'scale': (0.01, -0.02, 0.03), 'cross_axis_upper': (0.001, 0.002, 0.003),
    'cross_axis_lower': (-0.001, 0.004, 0.005), 'temperature_scale': 1e-4, 'quadratic': 1e-3,
    'cubic': (1e-4, -1e-4, 0.0), 'supply_scale': 0.01, 'supply_bias': 0.02,
    'constant_bias': (0.1, 0.2, -0.3), 'turn_on_std': 0.1, 'gauss_markov_std': 0.02,
    'gauss_markov_time': (1.0, 2.0, 3.0), 'random_walk': 0.01, 'bias_instability': 0.005,
    'rate_ramp': 1e-3, 'temperature_bias': 0.01, 'noise_density': 0.02,
    'quantisation_noise': 1e-4, 'bandwidth': 30.0, 'range': 15.0, 'quantisation': 1e-3,
    'increment_quantisation': 1e-5,
}  # fmt: skip
FULL = ImuChain(
    gyroscope=GyroscopeChain(**EVERYTHING),
    accelerometer=AccelerometerChain(**{**EVERYTHING, 'filter_order': 1}),
    temperature=Temperature(profile='warm_up', initial=20.0, final=45.0, time=0.7),
    supply=Supply(profile='ramp', initial=3.5, final=3.0, time=0.5),
)


def still(n, rate=100.0):
    return Standstill(duration=n / rate).at(np.arange(n) / rate)


def mean_allan(rates, rate, taus):
    """Allan deviation by allantools at each tau, over all axes."""
    deviations = [
        allantools.oadev(axis, rate=rate, data_type='freq', taus=taus)[1] for axis in rates.T
    ]
    return np.sqrt(np.mean(np.square(deviations), axis=0))


def gyroscope(n, rate=100.0, *, temperature=None, **errors):
    """Rates of a gyroscope at rest with these errors, `(n, 3)` rad/s."""
    temperature = temperature or Temperature()
    model = ImuChain(rate=rate, gyroscope=GyroscopeChain(**errors), temperature=temperature)
    return model.start(1, 'a').measure(still(n, rate)).angular_velocity


@given(st.lists(st.integers(0, 120), max_size=8))
@settings(max_examples=15)
def test_results_do_not_depend_on_the_chunking(cuts):
    truth = FigureEight(duration=20.0).at(5.0 + np.arange(120) * 0.0103)
    for temperature in (
        FULL.temperature,
        Temperature(profile='ramp', initial=20.0, final=30.0, time=0.8),
    ):
        model = dataclasses.replace(FULL, temperature=temperature)
        sensor, whole = assert_stepping_gives_the_same_bits(model, truth, cuts)
        assert sensor.gyroscope_bias.tobytes() == whole.gyroscope_bias[-1].tobytes()


def test_a_chain_without_errors_equals_the_ideal_imu():
    truth = FigureEight(duration=5.0).at(np.arange(400) * 0.01)
    ours, ideal = (model.start(1, 'a').measure(truth) for model in (ImuChain(), IdealImu()))
    np.testing.assert_allclose(ours.angular_velocity, ideal.angular_velocity, atol=1e-15)
    np.testing.assert_allclose(ours.linear_acceleration, ideal.linear_acceleration, atol=1e-13)
    assert not ours.gyroscope_bias.any()


def test_errors_act_in_the_stated_order():
    """Sensitivity, bias, range, rounding: computed by hand for 9.80665 m/s^2 upward."""
    chain = AccelerometerChain(
        scale=(0.0, 0.0, 0.1), cross_axis_upper=(0.0, 0.01, -0.02),
        constant_bias=(0.5, 0.0, 1.0), range=11.0, quantisation=0.03,
    )  # fmt: skip
    result = ImuChain(accelerometer=chain).start(1, 'a').measure(still(3))
    clean = np.array([0.0980665 + 0.5, -0.196133, 10.787315 + 1.0])
    clean[2] = 11.0
    expected = np.rint(clean / 0.03) * 0.03
    np.testing.assert_allclose(result.linear_acceleration, np.tile(expected, (3, 1)))
    np.testing.assert_array_equal(result.accelerometer_bias, np.tile([0.5, 0.0, 1.0], (3, 1)))


def test_regression_on_the_truth_recovers_sensitivity_and_bias():
    """[Ligorio2015], equation 4: y regressed on truth gives S and the bias, residuals cov(v)."""
    n = 20_000
    rng = np.random.default_rng(1)
    zero = np.zeros((n, 3))
    spin = rng.standard_normal((n, 3))
    truth = Trajectory(
        np.arange(n) * 0.01, zero, np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)), zero, spin, zero, zero
    )
    keys = ('scale', 'cross_axis_upper', 'cross_axis_lower', 'constant_bias')
    errors = {key: EVERYTHING[key] for key in keys}
    chain = GyroscopeChain(**errors, noise_density=(0.01, 0.02, 0.03))
    measured = ImuChain(gyroscope=chain).start(1, 'a').measure(truth).angular_velocity
    fitted, *_ = np.linalg.lstsq(np.column_stack([spin, np.ones(n)]), measured, rcond=None)
    sensitivity = [[1.01, 0.001, 0.002], [-0.001, 0.98, 0.003], [0.004, 0.005, 1.03]]
    sigma = np.array([0.1, 0.2, 0.3])
    bound = SIGMAS * sigma / math.sqrt(n)
    assert (np.abs(fitted[:3].T - sensitivity) < bound[:, None]).all()
    assert (np.abs(fitted[3] - [0.1, 0.2, -0.3]) < bound).all()
    residuals = measured - np.column_stack([spin, np.ones(n)]) @ fitted
    np.testing.assert_allclose(residuals.std(0), sigma, rtol=SIGMAS * math.sqrt(0.5 / n))


def test_the_bias_variance_is_the_sum_of_walk_and_gauss_markov():
    """Var b(t) = turn_on^2 + sigma_m^2 + K^2 t, over 300 sensors of 3 axes."""
    chain = GyroscopeChain(
        turn_on_std=0.1, gauss_markov_std=0.2, gauss_markov_time=5.0, random_walk=0.3
    )
    model = ImuChain(rate=10.0, gyroscope=chain)
    truth = still(20, 10.0)
    biases = np.array([model.start(1, f'{k}').measure(truth).gyroscope_bias for k in range(300)])
    for k in (0, 19):
        expected = 0.01 + 0.04 + 0.09 * (k + 1) * 0.1
        tolerance = SIGMAS * math.sqrt(2.0 / 900)
        assert np.mean(biases[:, k] ** 2) == pytest.approx(expected, rel=tolerance)


def test_an_error_source_does_not_change_the_draws_of_another():
    plain = gyroscope(100, noise_density=0.01)
    more = gyroscope(100, noise_density=0.01, turn_on_std=0.1, bias_instability=0.1)
    constant = more - plain
    alone = gyroscope(100, turn_on_std=0.1, bias_instability=0.1)
    np.testing.assert_allclose(constant, alone, atol=1e-12)


@pytest.mark.parametrize('tau', [1.0, 30.0, 1000.0])
def test_flicker_has_its_allan_plateau_over_the_stated_span_at_every_rate(tau):
    """Allan deviation of 2 clusters of 1, 2 or 16 samples over 20000 axes; to 2 %."""
    for m in (1, 2, 16):
        flicker = Flicker(stream(1, 'a', 'b', f'{tau} {m}'), 2.0, 1.0, 1000.0, axes=20_000)
        clusters = flicker.advance(np.full(2 * m, tau / m)).reshape(2, m, -1).mean(1)
        deviation = math.sqrt(np.mean((clusters[1] - clusters[0]) ** 2) / 2.0)
        error = SIGMAS / math.sqrt(2.0 * 20_000)
        assert deviation == pytest.approx(PLATEAU * 2.0, rel=0.02 + error)


def test_flicker_does_not_depend_on_the_division_of_time_into_steps():
    """Deviation of a mean over 2 s, in one step or in 25, far from the ends of the span."""
    whole, divided = (
        np.mean(
            Flicker(stream(1, 'a', 'b', f'{n}'), 1.0, 0.1, 100.0, axes=20_000).advance(
                np.full(n, 2.0 / n)
            ),
            axis=0,
        ).std()
        for n in (1, 25)
    )
    assert divided == pytest.approx(whole, rel=SIGMAS / math.sqrt(20_000))


@pytest.mark.parametrize('rate', [5.0, 50.0])
def test_allantools_finds_the_flicker_plateau_of_a_gyroscope(rate):
    """2000 s of 3 axes; the error of flicker is below twice 1/sqrt(2 T/tau) [Lesage1973]."""
    n = round(2000.0 * rate)
    rates = gyroscope(n, rate, bias_instability=0.01, bias_instability_to=1000.0)
    taus = [2.0, 6.0, 20.0, 60.0]
    error = SIGMAS * 2.0 / np.sqrt(2.0 * 3.0 * 2000.0 / np.array(taus)) + 0.02
    ratio = mean_allan(rates, rate, taus) / (PLATEAU * 0.01)
    assert (np.abs(ratio - 1.0) < error).all(), f'allantools / plateau: {ratio}, tolerance {error}'


def test_flicker_has_a_one_over_f_spectrum():
    """Welch density times 2 pi f is 2 B^2 (one-sided) over three decades, averaged per decade."""
    flicker = Flicker(stream(1, 'a', 'b', 'c'), 1.0, 0.1, 1000.0, axes=1)
    samples = flicker.advance(np.full(1_000_000, 0.05))
    f, density = signal.welch(samples[:, 0], 20.0, nperseg=2**15, detrend=False)
    for low in (0.003, 0.03, 0.3):
        band = (f > low) & (f < 10.0 * low)
        level = np.mean(density[band] * 2.0 * math.pi * f[band]) / 2.0
        assert level == pytest.approx(1.0, rel=0.15 if low < 0.01 else 0.06)


@pytest.mark.parametrize('order', [1, 2])
def test_the_low_pass_is_the_zero_order_hold_equivalent_of_the_analogue_filter(order):
    """scipy's cont2discrete as oracle, on a random input."""
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((300, 1))
    ours, _ = LowPass(5.0, order, axes=1).filter(
        np.zeros((300, 1)), inputs, np.ones((300, 1)), np.full(300, 0.01)
    )
    b, a = signal.butter(order, 2.0 * math.pi * 5.0, analog=True)
    bz, az, _ = signal.cont2discrete((b, a), 0.01, method='zoh')
    # scipy holds the value before an interval, we the one after it.
    expected = signal.lfilter(bz[0], az, np.append(inputs[:, 0], 0.0))[1:]
    np.testing.assert_allclose(ours[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize('order', [1, 2])
@pytest.mark.parametrize('rate', [50.0, 1000.0])
def test_the_low_pass_keeps_the_density_in_the_band_and_states_its_variance(order, rate):
    """The variance is N^2 w/2 (order 1) or N^2 w/(2 sqrt 2) (order 2) at a high rate."""
    n = 200_000 if rate > 100.0 else 100_000
    noise = GyroscopeChain(noise_density=0.01, bandwidth=8.0, filter_order=order)
    model = ImuChain(rate=rate, gyroscope=noise)
    result = model.start(1, 'a').measure(still(n, rate))
    rates = result.angular_velocity
    # The filter rounds the edges of a cluster: 1/(w tau) = 2 % of the variance.
    tolerance = SIGMAS / math.sqrt(6.0 * n / rate) + 0.02
    assert mean_allan(rates, rate, [1.0])[0] == pytest.approx(0.01, rel=tolerance), 'allantools'
    stated = result.angular_velocity_covariance[-1, 0, 0]
    independent = 3.0 * n / rate * 8.0
    assert rates.var() == pytest.approx(stated, rel=SIGMAS * math.sqrt(2.0 / independent))
    if rate == 1000.0:
        expected = 0.01**2 * 2.0 * math.pi * 8.0 / 2.0 / (1.0 if order == 1 else math.sqrt(2.0))
        assert stated == pytest.approx(expected, rel=0.03)


def test_the_low_pass_starts_in_steady_state():
    truth = FigureEight(duration=20.0).at(5.0 + np.arange(5) * 0.01)
    chain = AccelerometerChain(constant_bias=1.0, bandwidth=10.0)
    result = ImuChain(accelerometer=chain).start(1, 'a').measure(truth)
    ideal = IdealImu().start(1, 'a').measure(truth)
    expected = ideal.linear_acceleration[0] + 1.0
    np.testing.assert_allclose(result.linear_acceleration[0], expected, atol=1e-12)


def test_values_are_limited_to_the_range_and_zero_means_no_limit():
    values = np.array([[3.0, -3.0, 3.0]])
    np.testing.assert_array_equal(saturate(values, [2.0, 2.0, 0.0]), [[2.0, -2.0, 3.0]])


def test_a_counting_sensor_loses_no_motion_and_has_quantisation_noise():
    """The Allan deviation of the error is sqrt(3) Q/tau with Q = step/sqrt(12); T = 400 s."""
    n, dt, step = 40_000, np.full(40_000, 0.01), 1e-3
    values = 0.3 + 0.5 * np.random.default_rng(1).standard_normal((n, 1))
    reported = IncrementQuantiser(step, axes=1).apply(values, dt)
    np.testing.assert_allclose(
        np.cumsum(reported * 0.01), np.cumsum(values * 0.01), atol=0.5001 * step
    )
    np.testing.assert_allclose(reported * 0.01 / step, np.rint(reported * 0.01 / step), atol=1e-9)
    taus, deviation, _, _ = allantools.oadev(
        (reported - values)[:, 0], rate=100.0, data_type='freq', taus=[0.05, 0.2, 1.0]
    )
    expected = math.sqrt(3.0) * step / math.sqrt(12.0) / taus
    error = SIGMAS / np.sqrt(2.0 * 400.0 / taus)
    assert (np.abs(deviation / expected - 1.0) < error).all()


def test_rate_ramp_has_allan_deviation_r_tau_over_sqrt_2():
    samples = Ramp(3e-4, axes=1).advance(np.full(4000, 0.1))[:, 0]
    taus, deviation, *_ = allantools.oadev(samples, rate=10.0, data_type='freq', taus=[1.0, 10.0])
    np.testing.assert_allclose(deviation, 3e-4 * taus / math.sqrt(2.0))


@pytest.mark.parametrize('rate', [10.0, 100.0])
def test_allan_curve_is_the_sum_of_its_terms_at_every_rate(rate):
    """3 Q^2/tau^2 + N^2/tau + 0.664^2 B^2 + K^2 tau/3 + R^2 tau^2/2 [IEEE952]."""
    Q, N, B, K, R = 1e-3, 1e-3, 4e-4, 5e-5, 1e-6
    n = round(2000.0 * rate)
    errors = {'noise_density': N, 'bias_instability': B, 'random_walk': K, 'rate_ramp': R}
    rates = gyroscope(n, rate, quantisation_noise=Q, **errors)
    taus = np.array([1.0, 4.0, 16.0, 64.0, 200.0])
    expected = 3.0 * Q**2 / taus**2 + N**2 / taus + (PLATEAU * B) ** 2
    expected += K**2 * taus / 3.0 + R**2 * taus**2 / 2.0
    error = SIGMAS * 1.5 / np.sqrt(2.0 * 3.0 * 2000.0 / taus) + 0.02
    ratio = mean_allan(rates, rate, taus) / np.sqrt(expected)
    assert (np.abs(ratio - 1.0) < error).all(), f'allantools / [IEEE952]: {ratio}'
