# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""GTSAM's random numbers: what its documentation prints, and what its runner draws here."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scenario_examples import (
    ESTIMATED_BIAS,
    PAGE,
    TRUE_BIAS,
    gtsam_bias,
    gtsam_params,
    gtsam_scenario,
    load_gtsam,
    params,
)
from scipy.stats import kstest

from sim2real_eval.benches.preintegration.gtsam_normals import GtsamNormals, _words
from sim2real_eval.benches.preintegration.params import PreintegrationError
from sim2real_eval.benches.preintegration.runner import ScenarioRunner

PRINTED = {
    'delta_pij': [0.70090612, -0.06192379, 19.6232812],
    'delta_vij': [0.62536677, -0.17585342, 19.47976488],
    'error': [
        *(-0.02086757, 0.01881111, -0.00681348, 0.29938178, 0.05974434, -0.01018013),
        *(0.37836933, 0.1761023, 0.12947973),
    ],
}  # [ScenarioRunner]


def test_the_documentation_of_gtsam_was_made_on_macos() -> None:
    """All printed digits; a draw more or less would change the first of them."""
    runner = ScenarioRunner(PAGE, params(), 0.01, TRUE_BIAS, noise='gtsam_macos')
    pim = runner.integrate(2.0, ESTIMATED_BIAS, corrupted=True)
    error = runner.predict(pim, ESTIMATED_BIAS).local_coordinates(PAGE.nav_state(2.0))
    found = {'delta_pij': pim.delta_pij(), 'delta_vij': pim.delta_vij(), 'error': error}
    for name, printed in PRINTED.items():
        np.testing.assert_array_equal(found[name].round(8), printed, err_msg=name)


@pytest.mark.skipif(sys.platform not in ('linux', 'darwin'), reason='another C++ library')
def test_draws_equal_those_of_gtsam_one_integration_after_the_other() -> None:
    gtsam = load_gtsam()
    unequal = params(
        accelerometer_covariance=np.diag([0.01, 0.04, 0.02]), gyroscope_covariance=1e-5
    )
    scenario = gtsam_scenario(gtsam, PAGE)
    theirs = gtsam.ScenarioRunner(
        scenario, gtsam_params(gtsam, unequal), 0.01, gtsam_bias(gtsam, TRUE_BIAS)
    )
    noise = 'gtsam_macos' if sys.platform == 'darwin' else 'gtsam'
    ours = ScenarioRunner(PAGE, unequal, 0.01, TRUE_BIAS, noise=noise, seed=7)
    for t in (0.5, 1.5):
        np.testing.assert_allclose(
            ours.measured_specific_force(t), theirs.measuredSpecificForce(t), rtol=1e-12
        )
    for length in (0.5, 2.0):
        pim = theirs.integrate(length, gtsam_bias(gtsam, ESTIMATED_BIAS), True)
        mine = ours.integrate(length, ESTIMATED_BIAS, corrupted=True)
        np.testing.assert_allclose(mine.delta_pij(), pim.deltaPij(), rtol=0.0, atol=1e-11)


def test_words_are_those_that_the_standard_of_c_plus_plus_states() -> None:
    """The 10,000th of the default seed, [rand.predef] of the standard."""
    words = _words(5489)
    assert [next(words) for _ in range(10_000)][-1] == 9981545732273789042


@pytest.mark.parametrize('macos', [False, True])
def test_numbers_are_standard_normal(macos: bool) -> None:
    """False alarms: 0.1 %, but the seed is fixed."""
    assert kstest(GtsamNormals(1, macos=macos).standard_normal((20_000,)), 'norm').pvalue > 1e-3


@pytest.mark.parametrize('variances', [[[0.01, 0.001, 0], [0.001, 0.01, 0], [0, 0, 0.01]],
                                       [[0.01, 0, 0], [0, 0, 0], [0, 0, 0.01]]])  # fmt: skip
def test_covariances_that_gtsam_cannot_draw_are_refused(variances: list[list[float]]) -> None:
    settings = params(accelerometer_covariance=np.array(variances))
    with pytest.raises(PreintegrationError, match='accelerometer_covariance'):
        ScenarioRunner(PAGE, settings, noise='gtsam')
