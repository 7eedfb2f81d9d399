# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Noise coefficients in other units and files, and their recovery from a simulated standstill."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.characterization.imu_file import chain_model, discrete, dithered_white
from sim2real_eval.characterization.noise_terms import COEFFICIENTS, Coefficient, NoiseTerms
from sim2real_eval.characterization.recovered_parameters import reidentify, simulated_standstill
from sim2real_eval.characterization.sheet_units import sheet_units, si_unit
from sim2real_eval.characterization.signals import AXES, quantity_of
from sim2real_eval.common.model_files import model_yaml
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.world.geodesy import STANDARD_GRAVITY

QUANTITIES = st.sampled_from(['gyroscope', 'accelerometer'])


def some_terms(scale: float, **coefficients: float) -> NoiseTerms:
    """White noise, a plateau after 1 s and a walk after 15 s; 0 is not observable."""
    values = {'quantisation': 0.0, 'white': scale, 'bias_instability': scale, 'rate_ramp': 0.0}
    values |= {'random_walk': 0.3 * scale, **coefficients}
    terms = {
        name: Coefficient(value, 0.1 * value, 0.0, max(2.0 * value, 1e-3), value > 0.0)
        for name, value in values.items()
    }
    return NoiseTerms(**terms, seconds=300.0)


def all_terms() -> dict[str, NoiseTerms]:
    return {
        axis: some_terms(1e-3 * (1 + k) * (1.0 if k < 3 else 10.0)) for k, axis in enumerate(AXES)
    }


@given(st.floats(1e-12, 1e12), QUANTITIES, st.sampled_from(COEFFICIENTS))
def test_units_of_one_quantity_are_proportional(value: float, quantity: str, name: str) -> None:
    for unit in sheet_units(quantity, name):
        assert unit.size * unit.of(value) == pytest.approx(value, rel=1e-15)
        assert unit.of(2.0 * value) == pytest.approx(2.0 * unit.of(value), rel=1e-15)


def test_units_equal_those_of_data_sheets() -> None:
    """Conversions that can be checked by hand; the last two: [Cesenek2019], table 3.2."""

    degree, g = math.radians(1.0), STANDARD_GRAVITY
    for quantity, name, value, unit, expected in (
        ('gyroscope', 'white', 0.1 * degree, 'deg/sqrt(h)', 6.0),
        ('gyroscope', 'white', 0.1 * degree, 'deg/s/sqrt(Hz)', 0.1),
        ('gyroscope', 'bias_instability', degree, 'deg/h', 3600.0),
        ('gyroscope', 'random_walk', degree, 'deg/h/sqrt(h)', 3600.0 * 60.0),
        ('accelerometer', 'white', g, 'ug/sqrt(Hz)', 1e6),
        ('accelerometer', 'bias_instability', g, 'mg', 1e3),
        ('accelerometer', 'white', 9.0e-5, 'm/s/sqrt(h)', 0.0054),
        ('accelerometer', 'random_walk', 2.25e-5, 'm/s/h/sqrt(h)', 4.86),
    ):
        units = {sheet.name: sheet.of(value) for sheet in sheet_units(quantity, name)}
        assert units[unit] == pytest.approx(expected, rel=2e-3 if expected == 4.86 else 1e-6)
    assert si_unit('accelerometer', 'random_walk') == 'm/s^3/sqrt(Hz)'


@given(st.floats(1.0, 1e4), QUANTITIES)
def test_discrete_noise_values_are_per_sample(rate: float, quantity: str) -> None:
    assert discrete('white', 1.0, rate) ** 2 == pytest.approx(rate)
    assert discrete('random_walk', 1.0, rate) ** 2 == pytest.approx(1.0 / rate)
    assert discrete('bias_instability', 3.0, rate) == 3.0
    assert discrete('rate_ramp', 1.0, rate) * rate == pytest.approx(1.0)
    assert discrete('quantisation', 1.0, rate) == pytest.approx(math.sqrt(2.0) * rate)


def test_model_file_is_read_back_to_the_same_model(tmp_path: Path) -> None:
    terms = all_terms()
    steps = {'gyroscope_x': 1e-4}
    model = chain_model(terms, rate=100.0, steps=steps, biases={'gyroscope_z': (-0.01, 0.002)})
    path = tmp_path / 'mine.yaml'
    path.write_text(model_yaml(model, ['made by a test']), encoding='utf-8')
    assert load_imu(path) == model
    assert model.gyroscope.constant_bias == (0.0, 0.0, -0.01)
    assert model.gyroscope.quantisation == (1e-4, 0.0, 0.0)
    walks = tuple(terms[f'accelerometer_{axis}'].random_walk.value for axis in 'xyz')
    assert model.accelerometer.random_walk == walks


def test_a_record_of_one_triad_gives_a_model_of_that_triad() -> None:
    model = chain_model({'gyroscope_y': some_terms(1e-3)}, rate=50.0)
    assert model.gyroscope.noise_density == (0.0, 1e-3, 0.0)


def test_quantisation_noise_is_subtracted_from_the_white_noise() -> None:
    density, step = dithered_white(0.1, 100.0, 1.0)
    assert step == 1.0
    assert density**2 * 100.0 + 1.0 / 12.0 == pytest.approx(0.1**2 * 100.0)
    assert dithered_white(0.1, 100.0, 2.0) == (0.1, 0.0)
    assert dithered_white(0.1, 100.0, 0.0) == (0.1, 0.0)


def test_the_simulated_standstill_equals_the_output_of_simulate() -> None:
    model = chain_model(all_terms(), rate=100.0)
    whole = imu.simulate(model, Standstill(duration=1.0), seed=4, run='allan')
    standstill = simulated_standstill(model, 100, seed=4)
    assert np.array_equal(standstill[:, :3], whole.angular_velocity[:100])
    assert np.array_equal(standstill[:, 3:], whole.linear_acceleration[:100])


def test_a_simulated_model_is_recovered() -> None:
    """30 coefficients at 3 sigma: 8 % of seeds lose one; this one does not."""
    terms = all_terms()
    model = chain_model(terms, rate=100.0)
    identification = reidentify(model, terms, 30_000, seed=1)
    assert identification.lost == ()
    recovered = identification.recovered_parameters
    assert [parameter.axis for parameter in recovered[::5]] == list(AXES)
    observable = {parameter.coefficient for parameter in recovered if parameter.observable}
    assert observable >= {'white', 'bias_instability', 'random_walk'}


def test_a_wrong_model_is_not_recovered() -> None:
    terms = all_terms()
    wrong = {axis: some_terms(2.0 * row.white.value) for axis, row in terms.items()}
    identification = reidentify(chain_model(wrong, rate=100.0), terms, 30_000, seed=1)
    lost = {(parameter.axis, parameter.coefficient) for parameter in identification.lost}
    assert {(axis, 'white') for axis in AXES} <= lost


def test_models_with_rounded_rates_or_rounded_integrals_are_recovered() -> None:
    """Rounding of rates and of their integral are separate terms of the model."""
    terms = {
        axis: some_terms(1e-2, bias_instability=0.0, random_walk=0.0, quantisation=1e-3)
        for axis in AXES
        if quantity_of(axis) == 'gyroscope'
    }
    steps = dict.fromkeys(terms, 0.15)
    model = chain_model(terms, rate=100.0, steps=steps)
    assert model.gyroscope.quantisation == (0.15,) * 3
    assert model.gyroscope.noise_density[0] < 1e-2
    alone = chain_model(terms, rate=100.0)
    identification = reidentify(alone, terms, 30_000, seed=3)
    assert identification.lost == ()
    recovered = identification.recovered_parameters
    assert all(term.observable for term in recovered if term.coefficient == 'quantisation')
