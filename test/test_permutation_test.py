# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Further motions, shared permutations and ties of the permutation test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sim2real_eval.metrics import permutation_test
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.permutation_test import joint_p_values, permute_labels
from sim_sensors.core.seeding import stream


@pytest.mark.parametrize('level', [0.9, 0.95])
@pytest.mark.parametrize('power', [0.5, 0.8])
def test_further_motions_are_the_fewest_that_a_t_test_with_that_power_needs(
    level: float, power: float
) -> None:
    """One by one with scipy.stats; the error falls with the root of the number of motions."""
    options = UncertaintyOptions(level=level, power=power)
    critical, error = 2.4, 0.5
    for motions in (4, 12):
        for difference in (0.3, 0.8, 1.6, 3.0):

            def suffices(
                total: int, difference: float = difference, motions: int = motions
            ) -> bool:
                student = stats.t.ppf(0.5 + level / 2.0, total - 1)
                normal = stats.norm.ppf(0.5 + level / 2.0)
                errors = critical * student / normal + stats.norm.ppf(power)
                return bool(difference >= errors * error * math.sqrt(motions / total))

            # Six motions are the fewest that can reach a p-value of 5 %.
            totals = range(max(motions + 1, 6), motions + options.most_motions + 1)
            expected = next((total - motions for total in totals if suffices(total)), None)
            assert (
                permutation_test._more(difference, error, critical, motions, options) == expected
            )
    assert permutation_test._more(0.0, error, critical, 12, options) is None


def test_permutations_are_shared_and_cannot_be_changed() -> None:
    names = ['a', 'b', 'c']
    first = permute_labels(names, names, 100, 0)
    assert permute_labels(names, names, 100, 0).packed is first.packed
    with pytest.raises(ValueError, match='read-only'):
        first.packed[0, 0] = 0


@pytest.mark.parametrize('constant', [0.0, 0.3, 1e-12])
def test_a_distance_that_no_permutation_changes_has_no_effect_on_others(constant: float) -> None:
    """0.3 has no exact mean: its spread is rounding, which must not be standardised."""
    values = stream(9, 'constant', 'test', 'distances').exponential(size=(1, 200))
    alone = joint_p_values(values.copy())
    both = joint_p_values(np.concatenate([values, np.full((1, 200), constant)]))
    assert both.single == (alone.single[0], 1.0)
    assert both.adjusted == (alone.adjusted[0], 1.0)


@pytest.mark.parametrize('count', [1, 4])
def test_adjusted_p_values_are_those_of_the_largest_standardised_distance(count: int) -> None:
    """Single-step maxT [Westfall1993] in loops. The true labels count as a permutation."""
    rng = stream(6, f'{count}', 'test', 'adjusted')
    smallest = 0
    for trial in range(50):
        values = rng.exponential(size=(count, 40))
        values[0, 0] += trial % 3 * 4.0
        standard = [(row - np.mean(row)) / np.std(row) for row in values]
        largest = [max(row[k] for row in standard) for k in range(40)]
        p_values = joint_p_values(values.copy())
        for row, single, adjusted in zip(
            standard, p_values.single, p_values.adjusted, strict=True
        ):
            assert single == pytest.approx(sum(value >= row[0] for value in row) / 40)
            assert adjusted == pytest.approx(sum(value >= row[0] for value in largest) / 40)
            assert adjusted >= single >= 1 / 40
        smallest += min(p_values.adjusted) == 1 / 40
    assert smallest >= 10


def test_few_runs_are_permuted_exhaustively_and_many_are_sampled() -> None:
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


def test_repetitions_of_one_motion_are_not_independent_runs() -> None:
    """Runs of one motion are exchanged among themselves, so 1/9 is the least p-value. With free
    exchange, half of all comparisons of identical sensors had a p-value below 5 %.
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
