# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fits to a receiver at standstill recover the simulated noise, as far as it is observable."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from gps_standstill_examples import (
    KINDS,
    errors,
    known_errors,
    recording_of,
    run_of_errors,
    standing,
)
from scipy.linalg import cholesky, solve_triangular, toeplitz

from sim2real_eval.characterization.gps_characterization import (
    SIMULATIONS,
    characterize_gps,
    check_models,
)
from sim2real_eval.characterization.markov_fit import fit_markov, innovations, likelihood_terms
from sim2real_eval.characterization.standstill_fixes import standing_runs
from sim2real_eval.characterization.stated_covariance import (
    CovarianceConsistency,
    covariance_consistency,
    fit_stated,
    square_moments,
)
from sim2real_eval.characterization.walk_fit import fit_walk
from sim2real_eval.common.findings import Severity
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.gps.gps import (
    ConstantCovariance,
    GaussianNoise,
    GnssNoise,
    GpsModel,
    HdopCovariance,
    PositionNoise,
    load_gps,
)
from sim_sensors.gps.simulators import RandomWalkNoise

RATE = 10.0


def test_the_filter_likelihood_equals_that_of_the_dense_covariance() -> None:
    """Sums over innovations against a Cholesky factor, at uneven times."""
    rng = stream(1, 'dense', 'test', 'characterize')
    time = np.cumsum(rng.uniform(0.05, 2.0, 80))
    y = rng.standard_normal(80)
    white, wander, tau = 0.3, 1.7, 5.0
    dense = wander * np.exp(-np.abs(time[:, None] - time[None, :]) / tau) + white * np.eye(80)
    factor = cholesky(dense, lower=True)
    ey, e1 = (solve_triangular(factor, x, lower=True) for x in (y, np.ones(80)))
    expected = [ey @ ey, ey @ e1, e1 @ e1, 2.0 * np.log(np.diag(factor)).sum()]
    filtered = innovations(y, np.r_[0.0, np.diff(time)], white, wander, tau)
    np.testing.assert_allclose(filtered, expected, rtol=1e-11, err_msg='scipy.linalg.cholesky')
    terms = likelihood_terms(y, np.r_[0.0, np.diff(time)], white, wander, tau)
    assert terms.sum() == pytest.approx(expected[0] + expected[3], rel=1e-11)


def test_white_noise_is_fitted_without_a_gauss_markov_error() -> None:
    """12 seeds of 3 axes within 3 sigma: 2 of 36 fail by chance in 0.4 % of all cases."""
    std, wrong = 0.03, 0
    for seed in range(12):
        error = errors(GaussianNoise(std=(std,) * 3), 600, RATE, seed)
        for column in error.T:
            fit = fit_markov([(np.arange(600) / RATE, column)])
            assert not fit.wander.observable
            assert not fit.time.observable
            wrong += not fit.white.agrees_with(std)
    assert wrong <= 1


def test_white_noise_and_a_gauss_markov_error_are_recovered() -> None:
    """8 seeds of 3 axes, 200 correlation times: 3 sigma in all but 2 of 96."""
    w, g, tau, n, rate = 0.01, 0.05, 5.0, 2000, 2.0
    noise = GnssNoise(white_std=(w,) * 3, gauss_markov_std=(g,) * 3, gauss_markov_time=(tau,) * 3)
    truth = {'white': w, 'wander': g, 'time': tau, 'walk': g * math.sqrt(2.0 / tau)}
    wrong, off = 0, {key: [] for key in truth}  # type: dict[str, list[float]]
    for seed in range(8):
        for column in errors(noise, n, rate, seed).T:
            fit = fit_markov([(np.arange(n) / rate, column)])
            for key, value in truth.items():
                parameter = getattr(fit, key)
                if key == 'white' and not parameter.observable:
                    continue
                assert parameter.observable, key
                wrong += not parameter.agrees_with(value)
                scale = parameter.std / parameter.value
                off[key].append(math.log(parameter.value / value) / scale)
    assert wrong <= 2
    for key, scores in off.items():
        assert abs(np.mean(scores)) < 4.0 / math.sqrt(len(scores)), key


def test_a_record_shorter_than_the_correlation_time_gives_a_walk_and_a_bound() -> None:
    """T = 400 s in a record of 60 s: a bound for T, and the density within 3 sigma."""
    noise = GnssNoise(
        white_std=(0.01,) * 3, gauss_markov_std=(1.0,) * 3, gauss_markov_time=(400.0,) * 3
    )
    wrong = 0
    for seed in range(4):
        for column in errors(noise, 600, RATE, seed).T:
            fit = fit_markov([(np.arange(600) / RATE, column)])
            assert not fit.time.observable
            assert fit.time.lower < 400.0
            wrong += not fit.walk.agrees_with(math.sqrt(2.0 / 400.0))
            assert (fit.time.value, fit.wander.value) == (0.0, 0.0)  # nothing is extrapolated
    assert wrong <= 1


def test_scores_of_known_laws_have_the_stated_uncertainty() -> None:
    """45 logs of nine kinds, steps and rounding too: 60 scores have a std of 1 +- 0.09.

    Of 60 normal scores one is beyond 3 in 15 %, two in 1 %.
    """
    scores = []
    for seed in range(45):
        rng = np.random.default_rng(seed)
        error, truth = known_errors(KINDS[seed % len(KINDS)], rng, 1800, 1.0)
        fit = fit_markov([(np.arange(1800.0), error)])
        for name, value in truth.items():
            estimate = getattr(fit, name)
            if estimate.observable:
                scores.append(math.log(estimate.value / value) * estimate.value / estimate.std)
    assert len(scores) > 90
    assert 0.8 < np.std(scores) < 1.25
    assert np.sum(np.abs(scores) > 3.0) <= 1


def test_white_noise_with_outliers_is_less_sure() -> None:
    """A tenth of the fixes ten times as noisy: 20 of 20 within 3 sigma of the root mean square."""
    truth = math.sqrt(0.9 + 0.1 * 100.0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        error = rng.normal(0.0, np.where(rng.random(400) < 0.1, 10.0, 1.0))
        white = fit_markov([(np.arange(400.0), error)]).white
        assert white.agrees_with(truth)
        assert white.std > 1.5 * white.value / math.sqrt(800.0)


def test_noise_from_short_records_is_not_biased_low() -> None:
    """200 records of 5 fixes: the fit equals the pooled deviation."""
    rng = stream(3, 'short', 'test', 'characterize')
    records = [(np.arange(5.0), rng.standard_normal(5) + 100.0 * k) for k in range(200)]
    fit = fit_markov(records)
    pooled = math.sqrt(sum(np.var(y, ddof=1) for _, y in records) / 200)
    assert fit.white.value == pytest.approx(pooled, rel=1e-7)
    assert fit.white.agrees_with(1.0)


@pytest.mark.parametrize('steps', [1, 2, 10])
def test_the_second_difference_of_a_walk_has_its_theoretical_distribution(steps: int) -> None:
    """A free walk with `steps` steps per fix; 4 sigma of 60,000 correlated values."""
    noise = RandomWalkNoise(
        acceleration_std=0.02, model_rate=RATE * steps, speed_limit=0.0, acceleration_limit=0.0,
        pull=0.0,
    )  # fmt: skip
    error = errors(noise, 20_000, RATE, 5)
    acceleration_std = np.std(np.diff(error, 2, axis=0)) * RATE**2
    expected = 0.02 * math.sqrt(steps * (2.0 * steps**2 + 1.0) / 3.0) / steps**2
    assert acceleration_std == pytest.approx(expected, rel=4.0 * math.sqrt(1.5 / 120_000))


@pytest.mark.parametrize(('std', 'speed', 'limit'), [(0.047, 0.016, 0.152), (0.01, 0.016, 0.03)])
def test_a_bounded_walk_is_recovered(std: float, speed: float, limit: float) -> None:
    """8 seeds of the paper's walk: limits are reached and read off; acceleration to 3 sigma."""
    noise = RandomWalkNoise(
        acceleration_std=std, model_rate=RATE, speed_limit=speed, acceleration_limit=limit
    )
    wrong = 0
    for seed in range(8):
        fit = fit_walk([run_of_errors(errors(noise, 3000, RATE, seed), RATE)])
        wrong += not fit.acceleration_std.agrees_with(std)
        assert fit.speed_limit.value == pytest.approx(speed, rel=1e-6)
        assert limit * 0.9 < fit.acceleration_limit.value < limit * 1.15
        assert fit.second_difference.value < fit.acceleration_std.value
    assert wrong <= 1


def test_a_clipped_acceleration_yields_only_a_lower_bound() -> None:
    """The library's default, where three quarters of the draws are clipped."""
    noise = RandomWalkNoise(
        acceleration_std=0.016, model_rate=RATE, speed_limit=0.03, acceleration_limit=0.005
    )
    fit = fit_walk([run_of_errors(errors(noise, 3000, RATE, 1), RATE)])
    assert not fit.acceleration_std.observable
    assert fit.acceleration_std.lower < 0.016


def test_a_noise_free_hdop_is_recovered_to_1e_6() -> None:
    model = dataclasses.replace(load_gps('airsim'), rate=RATE)
    fixes = standing(60.0, gps_model=model).gps
    assert fixes is not None
    fit = fit_stated(fixes, k=0.02)
    assert (fit.kind, fit.type) == ('airsim', 'approximated')
    fitted = (fit.start, fit.limit, fit.time_constant, fit.vertical_factor)
    values = [parameter.value for parameter in fitted]
    assert values == pytest.approx([100.0, 0.85, 12.4, 2.0], rel=1e-6)
    assert fit_stated(fixes, k=0.04).start.value == pytest.approx(50.0, rel=1e-6)


def test_a_noisy_hdop_is_recovered() -> None:
    """20 seeds with 10 % of noise: within 3 sigma in 59 of 60."""
    model = GpsModel(rate=2.0, covariance=HdopCovariance(hdop_initial=20.0, time_constant=8.0))
    fixes = standing(120.0, gps_model=model).gps
    flat = np.broadcast_to(np.eye(3) * 0.02**2, fixes.position_covariance.shape)
    wrong = 0
    for seed in range(20):
        rng = stream(seed, 'hdop', 'test', 'characterize')
        factor = np.exp(0.2 * rng.standard_normal(len(fixes)))[:, None, None]
        noisy = dataclasses.replace(fixes, position_covariance=fixes.position_covariance * factor)
        fit = fit_stated(noisy)
        assert fit.kind == 'airsim'
        truths = ((fit.start, 20.0), (fit.limit, 0.85), (fit.time_constant, 8.0))
        wrong += sum(not estimate.agrees_with(value) for estimate, value in truths)
        plain = fit_stated(dataclasses.replace(fixes, position_covariance=flat * factor))
        assert plain.kind == 'constant'
    assert wrong <= 1


def judged(error: FloatArray, stated: float = 0.0) -> CovarianceConsistency:
    """Errors against one stated deviation, m, with the fits of their axes."""
    run = run_of_errors(error, RATE, stated)
    fits = [fit_markov([(run.time, column)]) for column in run.error.T]
    return covariance_consistency([run], fits)


def test_the_interval_of_the_variance_ratio_contains_the_truth() -> None:
    """95 % intervals miss the true ratio in at most 4 of 24 records (chance 3 %)."""
    noises: list[PositionNoise] = [GaussianNoise(std=(0.02,) * 3)]
    noises += [GnssNoise(gauss_markov_std=(0.02,) * 3, gauss_markov_time=(t,) * 3) for t in (1, 5)]
    missed = 0
    for seed in range(8):
        for noise in noises:
            consistency = judged(errors(noise, 1000, RATE, seed), 0.02)
            missed += not consistency.lower <= 1.0 <= consistency.upper
    assert missed <= 4
    error = errors(noises[1], 1000, RATE, 0)
    assert judged(error, 0.01).verdict == 'overconfident'
    assert judged(error, 0.04).verdict == 'underconfident'
    assert judged(error).verdict == 'nothing stated'


@pytest.mark.parametrize('seed', range(4))
def test_the_variance_of_a_slow_wander_has_a_lower_bound_only(seed: int) -> None:
    """T = 400 s in 60 s: the ratio is 1, 9 or 1/25, and the bound is below it."""
    noise = GnssNoise(gauss_markov_std=(3.0,) * 3, gauss_markov_time=(400.0,) * 3)
    error = errors(noise, 600, RATE, seed)
    for stated, ratio in ((3.0, 1.0), (1.0, 9.0), (15.0, 0.04)):
        consistency = judged(error, stated)
        assert math.isnan(consistency.ratio)
        assert math.isinf(consistency.upper)
        assert 0.0 < consistency.lower < ratio
        assert consistency.verdict in ('not bounded', 'overconfident')
    assert judged(error, 0.1).verdict == 'overconfident'


def test_moments_of_the_sum_of_squares_equal_those_of_dense_matrices() -> None:
    n, step, share, time = 40, 0.5, 0.3, 6.0
    lags = np.arange(n) * step
    dense = toeplitz((1.0 - share) * np.exp(-lags / time)) + share * np.eye(n)
    centring = np.eye(n) - 1.0 / n
    product = centring @ dense
    expected = np.trace(product), 2.0 * np.trace(product @ product)
    assert square_moments(n, step, share, time) == pytest.approx(expected, rel=1e-12)


def test_fitted_models_are_consistent_with_the_record() -> None:
    """The fitted model passes its check; white noise and Chrono's walk do not."""
    noise = GnssNoise(
        white_std=(0.01,) * 3, gauss_markov_std=(0.05, 0.05, 0.1), gauss_markov_time=(5.0,) * 3
    )
    model = GpsModel(rate=5.0, noise=noise, covariance=ConstantCovariance(std=(0.05,) * 3))
    transforms = (StaticTransform('base_link', 'gps_link', (0.1, 0.0, 1.2)),)
    result = characterize_gps([standing(300.0, gps_model=model, seed=4, transforms=transforms)])
    assert result.rate == pytest.approx(5.0)
    assert result.lever_arm.tolist() == [0.1, 0.0, 1.2]
    passes = {check.model: check.is_consistent for check in check_models(result, 0)}
    assert passes == {'gps': True, 'gps_gaussian': False, 'gps_random_walk': False}


def test_a_noisy_receiver_at_rest_is_classified_as_at_rest() -> None:
    """3 m of white noise at 1 Hz for 20 minutes is no motion: all fixes are used, for 10 seeds."""
    model = GpsModel(rate=1.0, noise=GaussianNoise(std=(3.0, 3.0, 6.0)))
    for seed in range(10):
        runs, notes = standing_runs(standing(1200.0, gps_model=model, seed=seed))
        assert len(runs) == 1
        assert len(runs[0].time) >= 1200
        assert notes == []


def test_constant_fixes_give_an_error_model_without_error() -> None:
    """AirSim's receiver states a covariance but has no error."""
    result = characterize_gps([standing(30.0, gps_model=GpsModel(covariance=HdopCovariance()))])
    for fit in result.axes:
        assert not fit.white.observable
        assert fit.white.value == 0.0
        assert fit.white.upper <= 1e-6
    for name, noise in result.noises().items():
        drawn = errors(noise, 100, result.rate, 0)
        assert np.abs(drawn).max() < 1e-6, name
    assert all(check.is_consistent for check in check_models(result, 0)[:2])


def test_invalid_covariances_are_left_out_of_the_consistency_check() -> None:
    """Not finite, or negative in two axes, where the determinant is positive."""
    rng = stream(9, 'none', 'test', 'characterize')
    run = run_of_errors(0.5 * rng.standard_normal((400, 3)), RATE, 0.5)
    covariance = run.covariance.copy()
    covariance[:100, 0, 0], covariance[100:200] = np.nan, -np.eye(3)
    fits = [fit_markov([(run.time, column)]) for column in run.error.T]
    consistency = covariance_consistency(
        [dataclasses.replace(run, covariance=covariance)], fits, 'horizontal', (0, 1)
    )
    assert consistency.samples == 200
    assert consistency.verdict == 'consistent'


LAWS = [kind for kind in KINDS if kind not in ('steps', 'rounded')]


def passing(kind: str, seed: int, n: int = 900) -> bool:
    """Whether gps.yaml of three axes of a kind passes its check."""
    rng = np.random.default_rng(seed)
    error = np.stack([known_errors(kind, rng, n, 1.0)[0] for _ in range(3)], axis=1)
    return check_models(characterize_gps([recording_of(error, 1.0)]), seed)[0].is_consistent


def test_the_model_of_a_record_of_its_own_law_passes_the_check() -> None:
    """21 records, of which 1 % may fail: more than one by chance in 1.9 %."""
    assert SIMULATIONS == 99
    assert sum(not passing(kind, seed) for seed in range(3) for kind in LAWS) <= 1


def test_steps_and_smooth_errors_fail_the_check() -> None:
    """Jumps between levels, a drift at a steady speed, and noise that doubles: 9 of 9."""
    for seed in range(3):
        assert not passing('steps', seed)
        rng = np.random.default_rng(seed)
        slow = np.cumsum(rng.normal(0.0, 0.01, (900, 3)), axis=0)
        drift = slow + np.arange(900.0)[:, None] * np.array([0.01, -0.02, 0.03])
        louder = rng.normal(0.0, np.repeat([0.1, 0.3], 450)[:, None], (900, 3))
        for error in (drift, louder):
            result = characterize_gps([recording_of(error, 1.0)])
            assert not check_models(result, seed)[0].is_consistent


def test_a_time_that_is_not_bounded_becomes_a_random_walk_and_a_finding() -> None:
    rng = np.random.default_rng(2)
    error = np.stack([known_errors('both 600 s', rng, 600, 1.0)[0] for _ in range(3)], axis=1)
    result = characterize_gps([recording_of(error, 1.0)])
    noise = result.noises()['gps']
    assert noise.gauss_markov_std == (0.0, 0.0, 0.0)
    for density, fit in zip(noise.random_walk, result.axes, strict=True):
        assert density == fit.walk.value
        assert fit.walk.agrees_with(math.sqrt(2.0 / 600.0))
    (doubt,) = (note for note in result.notes if note.code == 'gps.wander_unbounded')
    assert doubt.severity == Severity.DECISIVE
    assert doubt.numbers['needed'] >= 2.0 * 599.0
