# SPDX-License-Identifier: Apache-2.0
"""Distances between sets of signals, and how sure they are: each held to what its textbook says.

Seeds are fixed; bands of random results have false-alarm rates of 1e-3 or less, given beside them.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from sim2real_eval.metrics.permutation_test import (
    distance_p_values,
    permute_labels,
    split_half_distance,
)
from sim2real_eval.signals.agreement import (
    ErrorDistance,
    SpectrumDistance,
    log_spectral_distance,
    wasserstein,
)
from sim_sensors.core.seeding import stream


def noise(label: str, *shape: int) -> np.ndarray:
    return stream(3, label, 'test', 'signals').normal(size=shape)


# --- distances -----------------------------------------------------------------------------------


def test_wasserstein_of_shifted_and_scaled_errors() -> None:
    """A shift by d is a distance of d; runs count alike whatever their length."""
    a = noise('w', 1000)
    assert wasserstein([a], [a + 0.7]) == pytest.approx(0.7)
    assert wasserstein([a], [-3.0 * np.abs(a)]) == pytest.approx(np.mean(3 * np.abs(a) + a), 0.5)
    assert wasserstein([a[:10], a], [np.tile(a[:10], 50), a]) == pytest.approx(0.0, abs=1e-12)


def test_fast_distances_are_the_plain_ones() -> None:
    runs = [noise(f'run {i}', 500) * (1 + 0.2 * i) for i in range(5)]
    first = np.array([[True, True, False, False, False], [False, True, False, False, True]])
    plain = [
        wasserstein_distance(
            np.concatenate([run for run, in_first in zip(runs, row, strict=True) if in_first]),
            np.concatenate([run for run, in_first in zip(runs, row, strict=True) if not in_first]),
        )
        for row in first
    ]
    distances = ErrorDistance.of(runs).between(first)
    np.testing.assert_allclose(distances, plain, rtol=0.02)
    density = np.abs(noise('density', 5, 40))
    for row, distance in zip(first, SpectrumDistance(density).between(first), strict=True):
        means = density[row].mean(axis=0), density[~row].mean(axis=0)
        assert distance == pytest.approx(float(log_spectral_distance(*means)))


def test_log_spectral_distance_of_a_factor() -> None:
    density = np.abs(noise('psd', 100)) + 0.1
    assert log_spectral_distance(density, 100.0 * density) == pytest.approx(20.0)
    assert log_spectral_distance(0 * density, 0 * density) == 0.0
    assert np.isfinite(log_spectral_distance(density, 0 * density))


# --- confidence ----------------------------------------------------------------------------------


def test_all_permutations_of_few_runs_and_some_of_many() -> None:
    pairs = permute_labels(['a', 'b', 'c'], ['c', 'a', 'b'], 1000, 0)
    assert pairs.paired
    assert pairs.real.shape == (8, 6)
    assert pairs.least == 2 / 8
    apart = permute_labels(['a', 'b', 'c'], ['x', 'y'], 1000, 0)
    assert not apart.paired
    assert apart.real.shape == (10, 5)
    assert apart.least == 1 / 10
    many = permute_labels([f'{i}' for i in range(20)], [f's{i}' for i in range(20)], 500, 0)
    assert many.real.shape == (500, 40)
    for labels in (pairs, apart, many):
        assert (labels.real.sum(axis=1) == labels.real[0].sum()).all()
        n = labels.real[0].sum()
        assert labels.real[0, :n].all()
    again = permute_labels(['a', 'b', 'c'], ['c', 'a', 'b', 'a'], 1000, 0)
    assert again.real.shape == (3 * 2 * 2, 7)
    exchanged = again.real[:, [0, 4, 6]]
    assert (exchanged.sum(axis=1) == 1).all()


def test_repetitions_of_one_motion_are_no_independent_runs() -> None:
    """Five real motions, eight simulated runs of the first: exchanged freely, half of all
    comparisons of identical sensors came out below 5 %; among those of one motion 1 in 9 is
    the least.
    """
    real = [f'{i}' for i in range(5)]
    labels = permute_labels(real, ['0'] * 8, 2000, 0)
    assert labels.paired
    assert labels.real.shape == (9, 13)
    assert labels.real[:, 1:5].all()
    assert labels.least == 1 / 9
    with_others = permute_labels(real, ['0', '0', 'alone'], 2000, 0)
    assert with_others.real.shape == (3, 8)
    assert not with_others.real[:, 7].any()


@pytest.mark.parametrize('paired', [True, False])
def test_false_alarms_come_as_often_as_stated(paired: bool) -> None:
    """400 comparisons of alike runs, 6 distances each: any of them below 5 % in 5 % of the
    comparisons at most (binomial: 35 or more with a probability of 1e-3). Of 1000: 4.3 and 4.1 %.
    """
    rng = stream(11, f'paired {paired}', 'test', 'false alarms')
    n, alarms = 7, 0
    names = [f'{i}' for i in range(n)]
    labels = permute_labels(names, names if paired else [f's{i}' for i in range(n)], 300, 1)
    for _ in range(400):
        motion = np.exp(rng.normal(size=(n, 1, 1)))
        scale = np.concatenate([motion, motion]) if paired else np.exp(rng.normal(size=(14, 1, 1)))
        errors = scale * rng.normal(size=(2 * n, 3, 40))
        density = scale * rng.chisquare(8, size=(2 * n, 3, 16))
        distances = [ErrorDistance.of(list(errors[:, axis])) for axis in range(3)]
        spectra = [SpectrumDistance(density[:, axis]) for axis in range(3)]
        alarms += min(distance_p_values([*distances, *spectra], labels).adjusted) <= 0.05
    assert alarms <= 34


def test_a_difference_is_seen() -> None:
    """Errors three times as large in one of three axes: that axis, and only that one."""
    rng = stream(5, 'power', 'test', 'signals')
    names = [f'{i}' for i in range(8)]
    errors = rng.normal(size=(16, 3, 400))
    errors[8:, 1] *= 3.0
    distances = [ErrorDistance.of(list(errors[:, axis])) for axis in range(3)]
    p_values = distance_p_values(distances, permute_labels(names, names, 2000, 0))
    assert p_values.adjusted[1] == 2 / 2**8
    assert min(p_values.adjusted[0], p_values.adjusted[2]) > 0.05


def test_equal_runs_are_never_different() -> None:
    runs = [noise(f'equal {i}', 300) for i in range(7)]
    names = [f'{i}' for i in range(7)]
    density = np.abs(noise('equal density', 7, 30))
    distances = [ErrorDistance.of([*runs, *runs]), SpectrumDistance(np.tile(density, (2, 1)))]
    p_values = distance_p_values(distances, permute_labels(names, names, 2000, 0))
    assert p_values.single == (1.0, 1.0)
    assert p_values.adjusted == (1.0, 1.0)


def test_floor_is_that_of_halves() -> None:
    runs = [noise(f'floor {i}', 2000) for i in range(6)]
    floor = split_half_distance(ErrorDistance.of(runs), 6, 0)
    assert floor is not None
    assert 0.0 < floor < 0.1
    assert split_half_distance(ErrorDistance.of(runs[:1]), 1, 0) is None
    # Of three drives with two runs one is set against the others.
    drives = split_half_distance(ErrorDistance.of(runs), 6, 0, list('aabbcc'))
    halves = [(0, 1), (2, 3), (4, 5)]
    ways = np.array([[k in half for k in range(6)] for half in halves])
    assert drives == pytest.approx(float(np.median(ErrorDistance.of(runs).between(ways))))
