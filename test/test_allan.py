# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The Allan estimator against published numbers and allantools."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import allantools
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.characterization import allan
from sim2real_eval.characterization.allan import (
    AllanCurve,
    allan_curve,
    averaging_factors,
    confidence_band,
    local_slopes,
    simple_relative_error,
)
from sim2real_eval.characterization.allan_covariance import AllanCovariance, degrees_of_freedom
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.seeding import stream
from sim_sensors.noise.processes import GaussMarkov

Record = Callable[[str, object], None]


def factors(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_nbs14_deviations_equal_all_published_digits() -> None:
    """The 1000-point set of NIST SP 1065, section 12.4: a congruential generator over 2^31-1."""
    numbers = [1234567890]
    while len(numbers) < 1000:
        numbers.append(16807 * numbers[-1] % 2147483647)
    curve = allan_curve(np.array(numbers) / 2147483647, 1.0, factors(1, 10, 100))
    assert [f'{value:.6e}' for value in curve.deviation] == [
        '2.922319e-01',
        '9.159953e-02',
        '3.241343e-02',
    ]


def test_deviations_and_bounds_of_phase_dat_equal_those_of_stable32(reference_dir: Path) -> None:
    """All digits of the deviations; its 68.3 % bounds (white noise at every point) to 1 %."""
    raw = reference_dir / 'allan' / 'raw'
    phase = np.loadtxt(raw / 'phasedat_PHASE.DAT')
    table = np.loadtxt(raw / 'phasedat_phase_dat_oadev_octave.txt')
    curve = allan_curve(np.diff(phase), 1.0, table[:, 0].astype(np.int64))
    assert [f'{value:.4e}' for value in curve.deviation] == [f'{row[5]:.4e}' for row in table]
    assert np.array_equal(curve.terms, table[:, 2])
    white = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    low, high = confidence_band(curve, degrees_of_freedom(curve.n, curve.factors, white))
    np.testing.assert_allclose(low, table[:, 4], rtol=0.01)
    np.testing.assert_allclose(high, table[:, 6], rtol=0.01)


@pytest.mark.parametrize('axis', range(6))
def test_variances_of_a_real_sensor_equal_the_published_ones(
    real_dir: Path, axis: int, record_property: Record
) -> None:
    """ADIS16405, 1e6 samples; published to 8 digits of data in other units, hence 3e-6."""
    folder = real_dir / 'adis16405_static'
    with np.load(folder / 'adis16405_imu1_si.npz') as content:
        values = np.concatenate([content['gyro'], content['acc']], axis=1)[:, axis]
    names = ['Gyro. X', 'Gyro. Y', 'Gyro. Z', 'Accel. X', 'Accel. Y', 'Accel. Z']
    unit = np.pi / 180 if axis < 3 else 9.80665
    with (folder / 'adev_published_vs_allantools.csv').open(encoding='utf-8') as file:
        rows = [row for row in csv.DictReader(file) if row['axis'] == names[axis]]
    rows = [row for row in rows if row['imu'] == '1']
    taus = np.array([float(row['tau_s']) for row in rows])
    curve = allan_curve(values, 100.0, np.rint(taus * 100).astype(np.int64))
    published = np.array([float(row['adev_published']) for row in rows])
    record_property('relative', np.abs(curve.deviation / unit / published - 1.0).max())
    np.testing.assert_allclose(curve.deviation / unit, published, rtol=5e-6)


@pytest.mark.parametrize(('spacing', 'count'), [('octave', None), ('log', 50)])
def test_deviations_agree_with_allantools_to_1e_12(
    spacing: str, count: int | None, record_property: Record
) -> None:
    """A walk on a large constant loses the most digits."""
    rng = stream(5, spacing, 'test', 'allan')
    values = 9.8 + np.cumsum(rng.standard_normal(50_000)) * 1e-4 + rng.standard_normal(50_000)
    grid = averaging_factors(len(values), count)
    grid = grid[grid <= 0.49 * len(values)]
    curve = allan_curve(values, 200.0, grid)
    _, expected, _, terms = allantools.oadev(
        values, rate=200.0, data_type='freq', taus=grid / 200.0
    )
    record_property('relative', np.abs(curve.deviation / expected - 1.0).max())
    np.testing.assert_allclose(curve.deviation, expected, rtol=1e-12, err_msg='allantools, 1e-12')
    assert np.array_equal(curve.terms, terms)
    assert np.array_equal(curve.factors, grid)


def test_a_memory_mapped_record_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = stream(6, 'disk', 'test', 'allan').standard_normal(20_000).astype(np.float32)
    np.save(tmp_path / 'values.npy', values)
    grid = averaging_factors(len(values), 20)
    expected = allan_curve(values, 100.0, grid)
    monkeypatch.setattr(allan, '_IN_MEMORY_BYTES', 0)
    mapped = np.load(tmp_path / 'values.npy', mmap_mode='r')
    assert np.array_equal(allan_curve(mapped, 100.0, grid).variance, expected.variance)


@given(
    st.floats(1e-6, 1e6), st.floats(-1e3, 1e3), st.floats(0.1, 1e4), st.integers(16, 700),
    st.integers(0, 2**32),
)  # fmt: skip
def test_deviations_scale_with_the_signal_and_ignore_a_constant(
    scale: float, constant: float, rate: float, n: int, seed: int
) -> None:
    values = np.random.default_rng(seed).standard_normal(n)
    plain = allan_curve(values, rate)
    moved = allan_curve(scale * (values + constant), rate)
    np.testing.assert_allclose(moved.deviation, scale * plain.deviation, rtol=1e-9)
    direct = []
    for m in plain.factors.tolist():
        means = np.convolve(values, np.full(m, 1.0 / m), 'valid')
        direct.append(0.5 * np.mean((means[m:] - means[:-m]) ** 2))
    np.testing.assert_allclose(plain.variance, direct, rtol=1e-9)


def test_averaging_factors_reach_half_of_the_record() -> None:
    for n in (8, 9, 100, 1001):
        for count in (None, 50):
            grid = averaging_factors(n, count)
            assert grid[0] == 1
            assert grid[-1] <= (n - 1) // 2
            assert (np.diff(grid) > 0).all()
    assert averaging_factors(100).tolist() == [1, 2, 4, 8, 16, 32]
    with pytest.raises(ParameterError, match='7 samples are too few'):
        averaging_factors(7)


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_a_sample_that_is_not_finite_is_refused(bad: float) -> None:
    values = np.ones(100)
    values[42] = bad
    with pytest.raises(ParameterError, match='sample 42'):
        allan_curve(values, 1.0)
    with pytest.raises(ParameterError, match='averaging factors 1 to 60'):
        allan_curve(np.ones(100), 1.0, factors(1, 60))


def test_the_simple_relative_error_equals_that_of_the_thesis() -> None:
    curve = AllanCurve(1001, 1.0, factors(1, 100), np.ones(2))
    expected = [1 / np.sqrt(2 * (1001 / 1 - 1)), 1 / np.sqrt(2 * (1001 / 100 - 1))]
    np.testing.assert_allclose(simple_relative_error(curve), expected)


@pytest.mark.parametrize(
    ('term', 'alpha', 'tolerance'), [(0, 2, 1e-9), (1, 0, 0.01), (2, -1, 0.01), (3, -2, 0.01)]
)
def test_degrees_of_freedom_equal_those_of_greenhall_and_riley(
    term: int, alpha: int, tolerance: float
) -> None:
    """allantools has their formulas, with continuous noise at short averaging times."""
    grid = factors(64, 256, 1024, 4096)
    alone = np.eye(6)[term]
    dof = degrees_of_freedom(20_000, grid, alone)
    expected = [allantools.edf_greenhall(alpha, 2, m, 20_001, overlapping=True) for m in grid]
    np.testing.assert_allclose(dof, expected, rtol=tolerance)


@pytest.mark.parametrize(
    ('term', 'name'), [(0, 'quantisation'), (1, 'white'), (3, 'walk'), (4, 'gauss_markov')]
)
def test_covariance_of_curve_points_agrees_with_simulated_records(term: int, name: str) -> None:
    """800 records: variances to 20 % (4 sigma of 5 %), correlations to 0.14 (4 sigma)."""
    rng = stream(7, name, 'test', 'allan')
    n, count = 512, 800
    grid = averaging_factors(n)
    grid = grid[grid <= 0.3 * n]
    make = {
        'quantisation': lambda: np.diff(rng.standard_normal(n + 1)),
        'white': lambda: rng.standard_normal(n),
        'walk': lambda: np.cumsum(rng.standard_normal(n)),
        'gauss_markov': lambda: GaussMarkov(rng, 1.0, 12.0, axes=1).advance(np.ones(n))[:, 0],
    }[name]
    variances = np.array([allan_curve(make(), 1.0, grid).variance for _ in range(count)])
    alone = np.eye(6)[term]
    covariance = AllanCovariance(n, grid, 12.0)
    expected = covariance.at(alone)
    scatter = np.sqrt(np.diagonal(expected))
    mean = covariance.shapes[:, term]
    assert (np.abs(variances.mean(axis=0) - mean) < 4 * scatter / np.sqrt(count)).all()
    np.testing.assert_allclose(variances.var(axis=0), scatter**2, rtol=0.3)
    correlation = expected / np.outer(scatter, scatter)
    assert np.abs(np.corrcoef(variances.T) - correlation).max() < 0.14
    assert np.linalg.eigvalsh(correlation).min() > 0.0


@pytest.mark.parametrize('n', [1000, 2_160_000, 600_000_000])
def test_covariances_are_positive_definite_for_any_length(n: int) -> None:
    """Correlations are within 1, also for a week at 1 kHz."""
    grid = averaging_factors(n)
    covariance = AllanCovariance(n, grid)
    for term in range(4):
        term_covariance = covariance.at(np.eye(6)[term])
        scatter = np.sqrt(np.diagonal(term_covariance))
        correlation = term_covariance / np.outer(scatter, scatter)
        assert np.abs(correlation).max() < 1.0 + 1e-9
        assert np.linalg.eigvalsh(correlation).min() > 1e-3


def test_the_band_contains_the_truth_in_68_percent_of_records() -> None:
    """White noise, true deviation known; 400 records, each point within 4 sigma (0.093)."""
    rng = stream(8, 'band', 'test', 'allan')
    grid = averaging_factors(1024)
    grid = grid[grid <= 256]
    hits = np.zeros(len(grid))
    for _ in range(400):
        curve = allan_curve(rng.standard_normal(1024), 1.0, grid)
        freedom = degrees_of_freedom(1024, grid, np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
        low, high = confidence_band(curve, freedom)
        truth = 1.0 / np.sqrt(grid)
        hits += (low <= truth) & (truth <= high)
    assert (np.abs(hits / 400 - 0.683) < 0.093).all()


def test_local_slopes_match_the_type_of_noise() -> None:
    """Within half of the distance to the next kind of noise, except at the first two points."""
    rng = stream(9, 'slope', 'test', 'allan')
    white = rng.standard_normal(20_000)
    grid = averaging_factors(20_000)
    grid = grid[grid <= 400]
    for values, slope in (
        (np.diff(white), -1.0), (white, -0.5), (np.cumsum(white), 0.5), (np.arange(20_000.0), 1.0),
    ):  # fmt: skip
        slopes = local_slopes(allan_curve(values, 1.0, grid))
        assert np.abs(slopes[2:] - slope).max() < 0.25
