# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Low passes of sensors are found in the spectrum, and white noise is told from behind them."""

from __future__ import annotations

import numpy as np
import pytest
from allan_examples import record, truth
from scipy.signal import butter, firwin, lfilter

from sim2real_eval.characterization.allan import allan_curve
from sim2real_eval.characterization.allan_covariance import AllanCovariance, term_shapes
from sim2real_eval.characterization.analysis import analyse
from sim2real_eval.characterization.axis_fit import AxisFit, fit_axis
from sim2real_eval.characterization.imu_file import chain_model
from sim2real_eval.characterization.low_pass import LowPassShape, find_low_pass
from sim2real_eval.characterization.noise_terms import term_variances
from sim2real_eval.characterization.recovered_parameters import simulated_standstill
from sim2real_eval.characterization.signals import Signals
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.noise.electronics import LowPass as SimulatedLowPass

LONG, SHORT = 200_000, 30_000
Filter = tuple[FloatArray, FloatArray]


def white(n: int, seed: int) -> FloatArray:
    return stream(seed, 'white', 'test', 'low pass').standard_normal(n + 4000)


def behind(coefficients: Filter, n: int, seed: int) -> FloatArray:
    """White noise of density 1 at 1 Hz behind a filter, its start left out."""
    return np.asarray(lfilter(*coefficients, white(n, seed)))[4000:]


def fitted(values: FloatArray, rate: float = 1.0) -> AxisFit:
    fit = fit_axis(values, rate)
    assert fit is not None
    return fit


def false_terms(fit: AxisFit) -> set[str]:
    coefficients = fit.choice.fit.terms.coefficients()
    return {name for name, one in coefficients.items() if one.observable} - {'white', 'bandwidth'}


@pytest.mark.parametrize(('kind', 'order'), [('sampled', 2), ('bilinear', 1), ('held', 2)])
def test_sums_of_filtered_noise_have_the_variance_of_the_shape(kind: str, order: int) -> None:
    """Against the filters themselves: scipy's, our sensors', and one that is oversampled."""
    cutoff, n = 0.03, LONG
    noise = white(n, 1)
    if kind == 'bilinear':
        values = lfilter(*butter(order, cutoff, fs=1.0), noise)
    elif kind == 'held':
        low_pass = SimulatedLowPass(cutoff, order, axes=1)
        column = noise[:, None]
        values = low_pass.filter(0.0 * column, column, column**0, np.ones(len(noise)))[0][:, 0]
    else:
        fast = stream(1, 'fast', 'test', 'low pass').standard_normal(16 * (n + 4000))
        values = 4.0 * lfilter(*butter(order, cutoff, fs=16.0), fast)[::16]
    sums = LowPassShape(cutoff, order, kind).sum_variances
    for count in (1, 5, 20, 100):
        whole = values[4000:][: n // count * count].reshape(-1, count).sum(axis=1)
        # A variance of n / count sums, correlated over 1 / cutoff samples at most.
        error = np.sqrt(2.0 * max(count, 1.0 / cutoff) / n)
        assert np.var(whole) == pytest.approx(sums[count], rel=4.0 * error)


def test_the_allan_variance_of_filtered_noise_and_its_covariance_are_exact() -> None:
    """Means and covariances over 400 records; a deviation of 5 errors in 1 of 1e6."""
    shape, n = LowPassShape(0.1, 2, 'bilinear'), 600
    factors = np.array([1, 4, 16, 64])
    rng = stream(0, 'records', 'test', 'low pass')
    noise = rng.standard_normal((400, n + 200))
    records = lfilter(*butter(2, 0.1, fs=1.0), noise)[:, 200:]
    found = np.array([allan_curve(one, 1.0, factors).variance for one in records])
    expected = term_shapes(factors, low_pass=shape)[:, 1]
    covariance = AllanCovariance(n, factors, low_pass=shape).at(np.eye(6)[1])
    np.testing.assert_array_less(
        np.abs(found.mean(axis=0) - expected), 5.0 * np.sqrt(np.diag(covariance) / 400)
    )
    scatter = np.cov(found.T)
    np.testing.assert_allclose(np.diag(scatter), np.diag(covariance), rtol=0.45)


@pytest.mark.parametrize('order', [1, 2, 4])
@pytest.mark.parametrize('ratio', [3.0, 12.0, 50.0])
def test_density_and_bandwidth_are_found_at_any_ratio(ratio: float, order: int) -> None:
    """17 % of the record per ratio of 50 is left to see: 2 % of uncertainty at most, 4 of it."""
    fit = fitted(behind(butter(order, 1.0 / ratio, fs=1.0), LONG, 2))
    terms = fit.choice.fit.terms
    assert terms.white.value == pytest.approx(1.0, abs=4.0 * terms.white.std)
    assert terms.white.std < 0.02
    assert false_terms(fit) == set()
    assert fit.low_pass is not None
    assert fit.low_pass.shape.order == order
    assert fit.low_pass.shape.cutoff == pytest.approx(1.0 / ratio, rel=0.08)
    # The model has order 2 at most, and the noise of the same power.
    assert terms.low_pass is not None
    model = LowPassShape(terms.low_pass.bandwidth.value, terms.low_pass.order)
    assert model.noise_bandwidth == pytest.approx(fit.low_pass.shape.noise_bandwidth, rel=1e-6)


@pytest.mark.parametrize(
    'coefficients',
    [
        (np.ones(8) / 8.0, np.ones(1)),
        (firwin(31, 0.1, fs=1.0), np.ones(1)),
        (np.convolve(np.ones(16), np.ones(16)) / 256.0, np.ones(1)),
    ],
    ids=['mean of 8', 'window', 'two decimators'],
)
def test_density_is_right_behind_filters_of_other_kinds(coefficients: Filter) -> None:
    """Filters that are no Butterworth: within 4 uncertainties, and no terms that are not there."""
    for seed in range(3):
        fit = fitted(behind(coefficients, LONG, seed))
        white_noise = fit.choice.fit.terms.white
        assert fit.low_pass is not None
        assert white_noise.value == pytest.approx(1.0, abs=4.0 * white_noise.std)
        assert white_noise.value == pytest.approx(1.0, abs=0.05)
        assert not false_terms(fit) & {'bias_instability', 'random_walk', 'gauss_markov'}


def test_other_noise_is_not_taken_for_a_low_pass() -> None:
    """None in 120 records of white noise, flicker, walk, quantisation, hum and a ramp."""
    for seed in range(20):
        rng = stream(seed, 'others', 'test', 'low pass')
        noise = rng.standard_normal(SHORT)
        flicker = record(truth(SHORT, 100.0), SHORT, 100.0, rng)
        for values in (
            noise,
            flicker,
            noise + 0.02 * np.cumsum(rng.standard_normal(SHORT)),
            np.cumsum(rng.standard_normal(SHORT)),
            noise + 2.0 * np.diff(rng.standard_normal(SHORT + 1)),
            noise + 0.5 * np.sin(0.3 * np.arange(SHORT)) + 1e-4 * np.arange(SHORT),
        ):
            assert find_low_pass(values) is None


def test_density_scatters_by_its_uncertainty_behind_a_low_pass() -> None:
    """Of 60 scores: the deviation errs by 0.09, and 0.75 to 1.3 is left in 0.3 % of runs."""
    scores = []
    for seed in range(60):
        ratio = (5.0, 12.0, 30.0)[seed % 3]
        fit = fitted(behind(butter(1 + seed % 2, 1.0 / ratio, fs=1.0), SHORT, 100 + seed))
        one = fit.choice.fit.terms.white
        scores.append((one.value - 1.0) / one.std)
    assert 0.75 < np.std(scores) < 1.3
    assert abs(np.mean(scores)) < 0.45


def test_a_walk_behind_a_low_pass_is_recovered_with_it() -> None:
    """The filter passes it, so that it must not be taken for a part of the shape."""
    rng = stream(3, 'walk', 'test', 'low pass')
    noise = rng.standard_normal(LONG) + 3e-3 * np.cumsum(rng.standard_normal(LONG))
    terms = fitted(lfilter(*butter(2, 0.05, fs=1.0), noise)).choice.fit.terms
    assert terms.random_walk.observable
    assert terms.random_walk.agrees_with(3e-3)
    assert terms.white.agrees_with(1.0)


def test_the_model_of_a_filtered_sensor_has_its_density_bandwidth_and_scatter() -> None:
    """Simulated again: density within 2 %, bandwidth and scatter of samples within 3 %."""
    rate = 100.0
    values = 1e-2 * behind(butter(2, 0.12, fs=1.0), 100_000, 4)
    terms = fitted(values, rate).choice.fit.terms
    model = chain_model({'gyroscope_x': terms}, rate=rate)
    assert model.gyroscope.bandwidth == pytest.approx(12.0, rel=0.03)
    again = simulated_standstill(model, 100_000, seed=1)[2000:, 0]
    assert np.std(again) == pytest.approx(np.std(values), rel=0.03)
    found = fitted(np.ascontiguousarray(again), rate).choice.fit.terms
    assert found.white.value == pytest.approx(1e-3, rel=0.02)
    assert found.low_pass is not None
    assert found.low_pass.bandwidth.value == pytest.approx(12.0, rel=0.03)


def test_the_curve_of_the_terms_includes_the_filter() -> None:
    """The drawn line follows the measured curve within 10 % down to two samples."""
    fit = fitted(behind(butter(1, 0.02, fs=1.0), LONG, 5))
    early = (fit.curve.factors > 1) & (fit.curve.factors <= 1000)
    drawn = term_variances(fit.choice.fit.terms, fit.curve.tau[early])['white']
    np.testing.assert_allclose(np.sqrt(drawn), fit.curve.deviation[early], rtol=0.1)


def test_the_finding_has_the_low_pass_of_the_model() -> None:
    """Two axes behind a filter of order 2 and one of order 1: the model has order 2."""
    filters = (butter(2, 0.10, fs=1.0), butter(1, 0.12, fs=1.0), butter(2, 0.20, fs=1.0))
    values = np.stack([behind(each, 60_000, seed) for seed, each in enumerate(filters)], axis=1)
    axes = tuple(f'gyroscope_{axis}' for axis in 'xyz')
    signals = Signals('test', axes, 1e-2 * values, None, 100.0)
    result = analyse(signals)
    model = chain_model({axis.axis: axis.terms for axis in result.axes}, rate=100.0).gyroscope
    (finding,) = [note for note in result.notes if note.code == 'allan.low_pass']
    assert finding.numbers['order'] == model.filter_order == 2
    assert finding.numbers['bandwidth'] == pytest.approx(model.bandwidth)
    # One axis of three has none in the model, and none is reported.
    one = Signals(
        'test',
        axes,
        1e-2 * np.column_stack([values[:, 0], white(56_000, 7), white(56_000, 8)]),
        None,
        100.0,
    )
    assert not [note for note in analyse(one).notes if note.code == 'allan.low_pass']
