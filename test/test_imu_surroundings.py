# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Effects of temperature, supply voltage and large values on the generic IMU."""

from __future__ import annotations

import numpy as np
import pytest
from test_imu_chain import gyroscope, still

from sim_sensors.imu.chain import AccelerometerChain, ImuChain
from sim_sensors.noise.electronics import Supply, Temperature


def test_temperature_moves_bias_and_scale():
    """A ramp of 10 K in 1 s, then constant; a warm-up with its exponential."""
    ramp = Temperature(profile='ramp', initial=30.0, final=20.0, time=1.0, reference=25.0)
    rates = gyroscope(200, temperature=ramp, temperature_bias=(1.0, 2.0, 0.0))
    t = 0.01 * np.arange(1, 201)
    expected = np.clip(5.0 - 10.0 * t, -5.0, 5.0)
    np.testing.assert_allclose(rates[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(rates[:, 1], 2.0 * expected, atol=1e-12)
    assert not rates[:, 2].any()
    warm = Temperature(profile='warm_up', initial=15.0, final=45.0, time=2.0, reference=25.0)
    chain = AccelerometerChain(temperature_scale=(0.0, 0.0, 0.01))
    model = ImuChain(accelerometer=chain, temperature=warm)
    force = model.start(1, 'a').measure(still(200)).linear_acceleration[:, 2]
    excess = 20.0 - 30.0 * np.exp(-t / 2.0)
    np.testing.assert_allclose(force, 9.80665 * (1.0 + 0.01 * excess))
    hot = Temperature(initial=35.0)
    assert gyroscope(1, temperature=hot, temperature_bias=0.1)[0, 0] == pytest.approx(1.0)


def test_supply_voltage_moves_bias_and_scale():
    """5 V to 3 V in 1 s, of a sensor that is right at 3.3 V."""
    chain = AccelerometerChain(supply_bias=(0.5, 0.0, 0.0), supply_scale=(0.0, 0.0, 0.01))
    supply = Supply(profile='ramp', initial=5.0, final=3.0, time=1.0)
    force = ImuChain(accelerometer=chain, supply=supply).start(1, 'a').measure(still(200))
    volts = np.clip(1.7 - 2.0 * 0.01 * np.arange(1, 201), -0.3, None)
    np.testing.assert_allclose(force.linear_acceleration[:, 0], 0.5 * volts, atol=1e-12)
    expected = 9.80665 * (1.0 + 0.01 * volts)
    np.testing.assert_allclose(force.linear_acceleration[:, 2], expected)


def test_a_cubic_error_has_its_nonlinearity_in_percent_of_full_scale():
    full, share = 40.0, 0.005
    chain = AccelerometerChain(cubic=4.0 * share / full**2, quadratic=0.0)
    values = np.linspace(-full, full, 4001)[:, None] * np.ones(3)
    model = ImuChain(accelerometer=chain)
    measured, _, _ = model.triads(1, 'a', 'imu')[1].corrupt(values, np.full(4001, 0.01))
    # The best straight line by its largest deviation: Chebyshev's polynomial is left.
    off = [
        np.abs(measured[:, 0] - slope * values[:, 0]).max() for slope in np.linspace(1, 1.03, 301)
    ]
    assert min(off) == pytest.approx(share * full, rel=1e-3)
    square = ImuChain(accelerometer=AccelerometerChain(quadratic=1e-3))
    measured, _, _ = square.triads(1, 'a', 'imu')[1].corrupt(values, np.full(4001, 0.01))
    np.testing.assert_allclose(measured, values + 1e-3 * values**2)
