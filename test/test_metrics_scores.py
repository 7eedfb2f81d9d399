# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Laws of the score of one run: resampling, RMSE, Wiener entropy [Mahajan2024]."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.scores import prepare, resample, score_run, wiener_entropy
from sim2real_eval.metrics.series import SeriesError, VelocitySeries
from sim_sensors.core.seeding import stream

POWER = MetricOptions(spectrum='power')
signals = st.lists(
    st.floats(-10, 10).filter(lambda value: value == 0 or abs(value) > 1e-3),
    min_size=2,
    max_size=40,
).filter(any)


def noisy_run(seed: int = 1, duration: float = 20.0) -> VelocitySeries:
    rng = stream(seed, 'run', 'test', 'speed')
    se = np.cumsum(rng.uniform(0.02, 0.04, int(duration / 0.03)))
    gt = np.cumsum(rng.uniform(0.04, 0.06, int(duration / 0.05)))
    return VelocitySeries(se, np.sin(se) + 0.1 * rng.normal(size=len(se)), gt, np.sin(gt))


def independent_score(series: VelocitySeries) -> tuple[float, float]:
    """RMSE and entropy difference from the text of [Mahajan2024], in sums and loops."""
    end = min(series.gt_time[-1], series.se_time[-1])
    grid = [k / 15 for k in range(10**5) if k / 15 < end]

    def line(t: float, times: list[float], values: list[float]) -> float:
        if t <= times[0]:
            return values[0]
        for i in range(1, len(times)):
            if t <= times[i]:
                share = (t - times[i - 1]) / (times[i] - times[i - 1])
                return values[i - 1] + share * (values[i] - values[i - 1])
        return values[-1]

    def average(values: np.ndarray) -> list[float]:
        return [(a + b) / 2 for a, b in itertools.pairwise(values)]

    gt = [line(t, list(series.gt_time), list(series.gt_vel)) for t in grid]
    se = [line(t, average(series.se_time), average(series.se_vel)) for t in grid]

    def flatness(values: list[float]) -> float:
        n = len(values)
        angle = -2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n
        amplitude = np.abs(np.exp(angle) @ np.array(values))  # the DFT by its definition
        return float(np.exp(sum(np.log(amplitude + 1e-10)) / n) / (sum(amplitude) / n))

    square = sum((a - b) ** 2 for a, b in zip(gt, se, strict=True))
    return float(np.sqrt(square / len(grid))), abs(flatness(gt) - flatness(se))


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_the_score_agrees_with_an_independent_computation(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    """The FFT against a DFT by definition: 1e-10 on the entropy is the DFT's own rounding."""
    series = noisy_run(seed)
    score = score_run(series)
    rmse, entropy = independent_score(series)
    record_property('entropy', abs(score.entropy_difference - entropy))
    assert score.rmse == pytest.approx(rmse, abs=1e-12), '[Mahajan2024], 1e-12'
    assert score.entropy_difference == pytest.approx(entropy, abs=1e-10), '[Mahajan2024], 1e-10'
    assert score.entropy_difference == abs(score.entropy_gt - score.entropy_se)


def test_a_perfect_slow_estimate_scores_zero() -> None:
    """A straight line is not changed by averaging or interpolation, whatever the two rates."""
    se, gt = np.arange(0.0, 10.01, 0.1), np.arange(0.0, 10.3, 0.25)
    score = score_run(VelocitySeries(se, 2 + 3 * se, gt, 2 + 3 * gt), MetricOptions(warmup=1.0))
    assert score.rmse < 1e-12
    assert score.entropy_difference < 1e-12


def test_moving_average_halves_the_variance_and_delays_nothing() -> None:
    """Estimate on the grid itself shifted by half a step, so interpolation adds nothing.

    20 000 independent samples: the variance of a 2-sample average has a relative standard
    deviation of sqrt(3 / n) = 1.2 %; 5 % is 4 sigma, a false alarm in 16 000.
    """
    grid = np.arange(20_000) / 15
    time = np.arange(-0.5, 20_000) / 15
    rng = stream(3, 'run', 'test', 'white')
    noise = rng.normal(size=len(time))
    run = resample(VelocitySeries(time, noise, grid, np.zeros(len(grid))))
    assert np.var(run.se_vel) == pytest.approx(0.5, rel=0.05)
    ramp = resample(VelocitySeries(time, time, grid, grid))
    np.testing.assert_allclose(ramp.se_vel, ramp.time, atol=1e-9)
    shifted = VelocitySeries(time + 0.5 / 15, noise, grid, grid)
    raw = resample(shifted, MetricOptions(moving_average=1))
    assert np.var(raw.se_vel) == pytest.approx(1.0, rel=0.05)


def test_the_time_grid_starts_at_zero_and_ends_before_the_shorter_series_ends() -> None:
    run = resample(VelocitySeries([0.5, 0.6, 1.03], [1.0, 3.0, 3.0], [0.0, 5.0], [1.0, 1.0]))
    np.testing.assert_allclose(run.time, np.arange(16) / 15, atol=1e-12)
    assert run.duration == 1.03
    np.testing.assert_array_equal(run.se_vel[:9], 2.0)  # held back to 0 from (0.55 s, 2.0)


def test_rezero_shifts_each_series_or_both_by_the_same_time() -> None:
    time = np.arange(0, 10, 0.1)
    late = VelocitySeries(time + 100.5, time, time + 100.0, time)
    plain = VelocitySeries(time, time, time, time)
    shifted_scores = dataclasses.asdict(score_run(late, MetricOptions(rezero='each')))
    assert shifted_scores == pytest.approx(dataclasses.asdict(score_run(plain)), abs=1e-9)
    common = resample(late, MetricOptions(rezero='common', moving_average=1))
    at_5 = int(np.searchsorted(common.time, 5.0 - 1e-9))
    assert common.gt_vel[at_5] - common.se_vel[at_5] == pytest.approx(0.5, abs=1e-9)
    unshifted = resample(late)
    assert len(unshifted.time) == int(np.ceil(109.9 * 15))  # the held start dominates, as given


def test_the_warm_up_only_removes_the_start_of_unchanged_curves() -> None:
    """Grid points after the cut hold what they hold in the whole run; 3 s is a grid point."""
    series = noisy_run()
    for window in (1, 2, 5):
        options = MetricOptions(moving_average=window)
        whole = resample(series, options)
        trimmed = resample(series, dataclasses.replace(options, warmup=3.0))
        np.testing.assert_allclose(trimmed.gt_vel, whole.gt_vel[45:], atol=1e-12)
        np.testing.assert_allclose(trimmed.se_vel, whole.se_vel[45:], atol=1e-12)


def test_an_error_at_the_start_affects_the_score_only_without_warm_up() -> None:
    time = np.arange(0, 20, 0.05)
    estimate = 5.0 - 5.0 * np.exp(-time / 0.3)
    series = VelocitySeries(time, estimate, time, np.full(len(time), 5.0))
    assert score_run(series).rmse > 0.3
    assert score_run(series, MetricOptions(warmup=5.0)).rmse < 1e-6


def test_prepared_series_have_the_same_score_with_default_options() -> None:
    options = MetricOptions(warmup=2.3, rezero='common')
    series = noisy_run()
    assert score_run(prepare(series, options)) == score_run(series, options)


@pytest.mark.parametrize(
    ('series', 'options', 'complaint'),
    [
        (VelocitySeries([0.0], [1.0], [0.0, 9.0], [1.0, 1.0]), {}, '1 samples; must be >= 2'),
        (VelocitySeries([-2.0, -1.0], [1.0] * 2, [0.0, 9.0], [1.0] * 2), {}, 'grid points'),
        (VelocitySeries([0.0, 0.05], [1.0] * 2, [0.0, 9.0], [1.0] * 2), {}, 'grid points'),
        (VelocitySeries([1.7e9, 1.8e9], [1.0] * 2, [1.7e9, 1.8e9], [1.0] * 2), {}, 'rezero'),
        (VelocitySeries([0.0, 9.0], [1.0] * 2, [0.0, 9.0], [0.0] * 2), {}, 'truth'),
        (VelocitySeries([0.0, 9.0], [0.0] * 2, [0.0, 9.0], [1.0] * 2), {}, 'estimate'),
        (VelocitySeries([0.0, 9.0], [1.0] * 2, [0.0, 9.0], [1.0] * 2), {'warmup': 9.0}, 'warm-up'),
        (
            VelocitySeries([0.0, 9.0], [1.0, 2.0], [0.0, 9.0], [1.0] * 2),
            {'detrend': 'mean'},
            'truth',
        ),
    ],
)
def test_runs_that_have_no_score_are_refused(
    series: VelocitySeries, options: dict[str, object], complaint: str
) -> None:
    named = dataclasses.replace(series, name='line_1')
    with pytest.raises((MetricError, SeriesError), match=f'^line_1: .*{complaint}'):
        score_run(named, MetricOptions.from_mapping(options, 'test'))


@given(signals, st.floats(0.1, 1000.0), st.booleans())
def test_entropy_is_scale_invariant_and_between_0_and_1(
    signal: list[float], scale: float, power: bool
) -> None:
    """To the floor of 1e-10: no frequency of the signal may be near it for exact invariance."""
    options = MetricOptions(spectrum='power' if power else 'magnitude')
    entropy = wiener_entropy(signal, options)
    assert 0.0 <= entropy <= 1.0 + 1e-6
    amplitude = np.abs(np.fft.fft(signal))
    if amplitude.min() > 1e-3:
        scaled = wiener_entropy(scale * np.array(signal), options)
        assert scaled == pytest.approx(entropy, rel=1e-3)
        assert wiener_entropy(-np.array(signal), options) == pytest.approx(entropy, rel=1e-9)


@pytest.mark.parametrize('n', [2, 15, 300])
def test_an_impulse_has_entropy_1_and_a_constant_nearly_0(n: int) -> None:
    impulse = np.zeros(n)
    impulse[n // 2] = 3.0
    assert wiener_entropy(impulse) == pytest.approx(1.0, abs=1e-9)
    assert wiener_entropy(impulse, POWER) == pytest.approx(1.0, abs=1e-9)
    if n > 2:  # two bins, one at the floor: sqrt(2 * 1e-10), the geometric mean of just two
        assert wiener_entropy(np.full(n, 3.0)) < 1e-7
    without_mean = MetricOptions(detrend='mean')
    expected = wiener_entropy(impulse, without_mean)
    assert wiener_entropy(impulse + 5.0, without_mean) == pytest.approx(expected, rel=1e-5)


def test_white_gaussian_noise_has_the_entropy_of_rayleigh_amplitudes() -> None:
    """exp(E ln A) / E A = exp((ln 2 - gamma) / 2) / sqrt(pi / 2) = 0.8455; power: exp(-gamma).

    There are n / 2 independent amplitudes for n = 2^16 samples; the ratio has a relative standard
    deviation of sqrt(v / (n / 2)) by the delta method, v = pi^2 / 24 + 4 / pi - 1
    - (digamma(3/2) - digamma(1)) = 0.0707 and, for the power, pi^2 / 6 + 1 - 2 = 0.645. Four
    standard deviations: a false alarm in 16 000 each.
    """
    n = 2**16
    noise = stream(7, 'run', 'test', 'white').normal(size=n)
    v = np.pi**2 / 24 + 4 / np.pi - 1 - (digamma(1.5) - digamma(1.0))
    expected = np.exp((np.log(2) - np.euler_gamma) / 2) / np.sqrt(np.pi / 2)
    assert expected == pytest.approx(0.8455, abs=5e-5)
    assert wiener_entropy(noise) == pytest.approx(expected, rel=4 * np.sqrt(2 * v / n))
    expected, v = np.exp(-np.euler_gamma), np.pi**2 / 6 + 1 - 2
    assert wiener_entropy(noise, POWER) == pytest.approx(expected, rel=4 * np.sqrt(2 * v / n))


@pytest.mark.parametrize('signal', [[], [np.nan, 1.0], [[1.0, 2.0]], [0.0, 0.0]])
def test_signals_without_a_spectrum_are_refused(signal: list[float]) -> None:
    with pytest.raises(MetricError):
        wiener_entropy(signal)


@pytest.mark.parametrize(('estimate_start', 'truth_start'), [(7.0, 5.0), (5.0, 7.0)])
def test_with_a_common_zero_the_earlier_series_starts_at_zero_and_the_other_keeps_its_delay(
    estimate_start: float, truth_start: float
) -> None:
    time = np.arange(0, 10, 0.1)
    series = VelocitySeries(time + estimate_start, time, time + truth_start, time)
    zeroed = prepare(series, MetricOptions(rezero='common'))
    starts = zeroed.se_time[0], zeroed.gt_time[0]
    assert starts == pytest.approx((estimate_start - 5.0, truth_start - 5.0), abs=1e-9)
