# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a comparison of signals, each against its textbook law.

Seeds are fixed; bands of random results have false-alarm rates of 1e-3 or less, given beside them.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sim2real_eval.metrics.error_curves import default_segment, spectrum
from sim2real_eval.signals import lag
from sim2real_eval.signals.agreement import (
    agreements,
    grid,
    median_rate,
    median_trend,
    off_grid,
    resample,
    wrap,
)
from sim2real_eval.signals.lag import find_lag
from sim2real_eval.signals.options import SignalComparisonError
from sim_sensors.core.blocks import seconds
from sim_sensors.core.seeding import stream


def noise(label: str, *shape: int) -> np.ndarray:
    return stream(3, label, 'test', 'signals').normal(size=shape)


@pytest.mark.parametrize('window', [1, 3, 101])
def test_the_median_filter_does_not_change_a_ramp(window: int) -> None:
    ramp = 0.25 * np.arange(300) - 7.0
    assert np.array_equal(median_trend(ramp, window), ramp)


@given(st.integers(1, 20), st.integers(0, 150), st.sampled_from([-1e6, 3.0]))
def test_the_median_filter_removes_spikes_of_up_to_k_samples(
    k: int, place: int, height: float
) -> None:
    """At every place but the very first and last sample."""
    values = np.zeros(200)
    start = 1 + min(place, 198 - k)
    values[start : start + k] = height
    assert not median_trend(values, 2 * k + 1).any()


def test_the_median_filter_keeps_steps_and_pulses_of_k_plus_one_samples() -> None:
    step = np.where(np.arange(100) < 40, 0.0, 2.0)
    assert np.array_equal(median_trend(step, 11), step)
    spike = np.zeros(100)
    spike[50:56] = 1.0
    assert median_trend(spike, 11).any()


@pytest.mark.parametrize('window', [0, 4, 201])
def test_an_even_empty_or_too_long_window_is_refused(window: int) -> None:
    with pytest.raises(SignalComparisonError, match='trend window'):
        median_trend(np.zeros(100), window)


def test_the_spectrum_of_one_segment_obeys_parseval() -> None:
    values = noise('parseval', 4001, 2) * [1.0, 5.0] + [3.0, -100.0]
    power = spectrum(values, 100.0, len(values), 'boxcar')
    step = power.frequency[1] - power.frequency[0]
    assert power.segments == 1
    np.testing.assert_allclose(power.density.sum(axis=0) * step, values.var(axis=0), rtol=1e-12)


def test_averaged_spectra_obey_parseval() -> None:
    """A bin of 77 segments scatters by 12 %, the sum by 1 %; bounds are 5 sigma or more (1e-4)."""
    sigma, rate = 0.3, 200.0
    power = spectrum(sigma * noise('welch', 20000, 1), rate, 512)
    step = power.frequency[1] - power.frequency[0]
    assert power.segments == 77
    assert power.density.sum() * step == pytest.approx(sigma**2, rel=0.05)
    level = 2.0 * sigma**2 / rate
    assert np.abs(power.density[2:-2] / level - 1.0).max() < 0.7


def test_a_sine_has_half_its_square_at_its_frequency() -> None:
    time = np.arange(4096) / 64.0
    power = spectrum(np.sin(2 * np.pi * 4.0 * time)[:, None] * 3.0, 64.0, 1024)
    assert power.frequency[np.argmax(power.density[:, 0])] == pytest.approx(4.0)
    assert power.density.sum() * power.frequency[0] == pytest.approx(4.5, rel=1e-3)


@given(st.integers(1, 10**7))
def test_the_default_segment_gives_at_least_seven_segments(samples: int) -> None:
    nperseg = default_segment(samples)
    assert 1 <= nperseg <= samples
    if samples >= 32:
        assert nperseg & (nperseg - 1) == 0
        assert (samples - nperseg // 2) // (nperseg - nperseg // 2) >= 7


@settings(max_examples=25)
@given(st.integers(-40, 40), st.floats(-100, 100))
def test_a_shift_is_found_to_the_sample(shift: int, drift: float) -> None:
    """The series have a common slope and noise of a tenth of the signal."""
    both = np.cumsum(noise('walk', 2100, 3), axis=0) + drift * np.linspace(0, 1, 2100)[:, None]
    reference = both[50:2050]
    series = both[50 - shift : 2050 - shift] + 0.1 * noise('on top', 2000, 3)
    estimate = find_lag(series, reference, 100.0, 0.5)
    assert round(estimate.seconds * 100.0) == shift


@pytest.mark.parametrize(
    ('n', 'offset', 'most', 'part'),
    [(60, 0.0, 52, 1 << 16), (2000, 1e5, 40, 1 << 16), (2000, 0.0, 40, 1)],
)
def test_the_correlation_at_each_lag_is_computed_over_the_overlap(
    n: int, offset: float, most: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lag is that of numpy's largest coefficient, also if products are added up in parts."""
    monkeypatch.setattr(lag, '_AT_ONCE', part)
    reference = offset + np.cumsum(noise(f'walk {n}', n, 1), axis=0)
    series = np.roll(reference, 7, axis=0) + 0.3 * noise(f'on it {n}', n, 1)
    expected = [
        np.corrcoef(
            series[max(k, 0) : n + min(k, 0), 0], reference[max(-k, 0) : n - max(k, 0), 0]
        )[0, 1]
        for k in range(-most, most + 1)
    ]
    estimate = find_lag(series, reference, 1.0, most)
    assert abs(estimate.seconds - (int(np.argmax(expected)) - most)) <= 0.5
    alike = lag._correlations(*(np.tile(column, 3) for column in (series, reference)), most)
    np.testing.assert_allclose(alike, np.tile(expected, (3, 1)).T, rtol=0.0, atol=1e-9)


def test_axes_without_motion_do_not_change_the_lag() -> None:
    """The vehicle vibrates about them; 40 lags within five uncertainties (2e-4, Student)."""
    time = np.arange(2000) / 100.0
    turn = np.sin(0.7 * time) + 0.4 * np.sin(1.9 * time)
    reference = np.stack([1e-3 * np.sin(3.1 * time), np.zeros_like(time), turn], axis=1)
    for k in range(40):
        shaken = noise(f'shaken {k}', 2000, 3) * (0.3, 0.3, 0.02)
        shaken[:20, :2] *= 20.0
        estimate = find_lag(reference + shaken, reference, 100.0, 0.5)
        assert abs(estimate.seconds) < 5.0 * estimate.std < 0.05


@pytest.mark.parametrize('samples', [16, 40, 100])
def test_unrelated_noise_gives_no_lag(samples: int) -> None:
    """One search of 10,000 finds a lag; 300 find none for 97 % of seeds."""
    for k in range(300):
        both = (noise(f'{side} {samples} {k}', samples, 3) for side in ('one', 'other'))
        assert find_lag(*both, 100.0, 0.5) is None, k


def test_correlation_over_a_short_overlap_is_not_reported_as_a_lag() -> None:
    """Lags of up to 30 s in 40 s of noise as large as the signal: none of 100 runs is 5 s off."""
    time = np.arange(40.0)
    reference = np.stack([np.sin(0.31 * time), np.cos(0.23 * time)], axis=1)
    estimates = [
        find_lag(reference + noise(f'{k}', 40, 2), reference, 1.0, 30.0) for k in range(100)
    ]
    assert all(estimate is None or abs(estimate.seconds) < 5.0 for estimate in estimates)


@pytest.mark.parametrize('slow', [1e-3, 1e-2])
def test_equal_series_that_hardly_change_give_no_lag(slow: float) -> None:
    series = np.sin(slow * np.arange(100_000) / 1000.0)[:, None]
    estimate = find_lag(series, series, 1000.0, 0.2)
    assert estimate is None or abs(estimate.seconds) < 1e-3


def test_the_lag_is_found_to_a_fraction_of_a_sample() -> None:
    time = np.arange(1000) / 50.0

    def signal(t: np.ndarray) -> np.ndarray:
        return np.stack([np.sin(3 * t) + np.cos(5.1 * t), np.sin(1.7 * t)], axis=1)

    estimate = find_lag(signal(time - 0.0437), signal(time), 50.0, 0.5)
    assert estimate.seconds == pytest.approx(0.0437, abs=1e-3)


def test_lags_lie_within_twice_their_uncertainty() -> None:
    """93.6 % by Student's distribution with 15 degrees of freedom; bounds two-sided at 1e-5."""
    time = np.arange(1500) / 50.0
    reference = np.stack([np.sin(1.3 * time), np.cos(2.9 * time)], axis=1)
    inside = 0
    for k in range(200):
        wide = np.apply_along_axis(np.convolve, 0, noise(f'{k}', 1504, 2), np.ones(5), 'valid')
        estimate = find_lag(reference + 0.2 * wide, reference, 50.0, 0.5)
        inside += not estimate.is_certain
    assert 170 <= inside <= 199


def test_unrelated_or_constant_signals_give_no_lag() -> None:
    """A correlation with its peak at the end of the range has none either."""
    a, b = noise('a', 1000, 1), noise('b', 1000, 1)
    assert find_lag(0 * a, 0 * a, 100.0, 0.5) is None
    assert find_lag(a, b, 100.0, 0.5) is None
    assert find_lag(a[:-60], a[60:], 100.0, 0.3) is None
    assert find_lag(a[:5], a[:5], 100.0, 0.5) is None
    # As much of another wave leaves it open by 0.4 s, which is more than was asked for.
    time = np.arange(1000)[:, None] * 0.01
    slow, other = (np.sin(2.0 * np.pi * time / period) for period in (10.0, 5.0))
    assert find_lag(slow + other, slow, 100.0, 0.05) is None
    assert find_lag(slow + other, slow, 100.0, 0.5) is not None


@given(st.floats(-1e4, 1e4))
def test_angles_are_wrapped_into_plus_minus_half_a_turn(angle: float) -> None:
    wrapped = float(wrap(angle))
    assert -np.pi <= wrapped < np.pi
    turns = (angle - wrapped) / (2 * np.pi)
    assert turns == pytest.approx(round(turns), abs=1e-9)
    if -np.pi <= angle < np.pi:
        assert wrapped == angle


steps = st.lists(st.floats(1e-3, 10.0), min_size=2, max_size=40)


@given(steps, st.floats(-5, 5), st.floats(-5, 5), st.floats(0.1, 300.0))
def test_interpolation_keeps_straight_lines(
    gaps: list[float], slope: float, offset: float, rate: float
) -> None:
    time = np.cumsum(gaps)
    at = grid(time, min(rate, 1e4 / (time[-1] - time[0])))
    assert at[0] == time[0]
    assert at[-1] <= time[-1] + 1e-6 / rate * 2 or len(at) == 1
    resampled = resample(time, (slope * time + offset)[:, None], at)
    np.testing.assert_allclose(
        resampled[:, 0], slope * np.minimum(at, time[-1]) + offset, atol=1e-9
    )


@given(st.integers(2, 300), st.floats(1.0, 200.0), st.floats(-100, 100))
def test_resampling_at_the_original_stamps_changes_no_value(
    n: int, rate: float, start: float
) -> None:
    time = start + np.arange(n) / rate
    values = noise('samples', 300, 2)[:n]
    at = grid(time, rate)
    assert len(at) == n
    np.testing.assert_allclose(resample(time, values, at), values, atol=1e-9 * rate)
    assert off_grid(time, rate) < 1e-9 * rate
    assert median_rate(time) == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize('step_ns', [1_000_000, 2_500_001])
def test_evenly_spaced_stamps_stay_on_their_grid_after_hours(step_ns: int) -> None:
    """Seconds after 20 hours are rounded to 1e-11 s."""
    stamps = 72_000_000_000_000 + step_ns * np.arange(100_000)
    time, values = seconds(stamps, 0), noise('samples', 100_000, 1)
    assert median_rate(time) == 1e9 / step_ns
    assert resample(time, values, grid(time, median_rate(time))) is values


def test_interpolation_removes_a_third_of_the_white_noise_power() -> None:
    """A third of the variance on average over all phases: 2/3, to 4 sigma (7e-5)."""
    values = noise('white', 200_000, 1)
    time = np.arange(200_000.0)
    at = np.arange(0.0, 199_000.0, 1.0 + 1e-4)
    resampled = resample(time, values, at)
    assert resampled.var() == pytest.approx(2 / 3, rel=4 * np.sqrt(2.5 / 199_000))


def test_equal_stamps_are_interpolated() -> None:
    time = np.array([0.0, 1.0, 1.0, 2.0])
    resampled = resample(time, np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0.5, 1.0, 1.5]))
    assert resampled[:, 0].tolist() == [1.5, 3.0, 3.5]


@pytest.mark.parametrize('sigma', [0.01, 0.5, 4.0])
def test_rmse_and_correlation_of_white_noise_equal_theory(sigma: float) -> None:
    """RMSE in its chi-square band, R = 1 / sqrt(1 + sigma^2 / power): 1e-3 false alarms each."""
    n = 20_000
    true = np.sqrt(2.0) * np.sin(np.arange(n) * 0.1)
    error = sigma * noise(f'error {sigma}', n)
    (agreement,) = agreements(*(samples[:, None] for samples in (true + error, true, error)))
    low, high = sigma * np.sqrt(chi2.ppf([5e-4, 1 - 5e-4], n) / n)
    assert low < agreement.rmse < high
    expected = 1.0 / np.sqrt(1.0 + sigma**2)
    assert agreement.correlation is not None
    # Fisher: artanh R is normal with variance 1/(n - 3).
    assert abs(np.arctanh(agreement.correlation) - np.arctanh(expected)) < 3.3 / np.sqrt(n - 3)


def test_the_correlation_of_a_constant_is_undefined() -> None:
    values = noise('values', 100)
    still = np.column_stack([np.full(100, 9.80665), np.zeros(100), values])
    correlations = [
        agreement.correlation
        for agreement in agreements(np.tile(values[:, None], 3), still, still)
    ]
    assert correlations == [None, None, pytest.approx(1.0)]
