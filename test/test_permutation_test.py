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
    assert permute_labels(names, names, 100, 0).real is first.real
    with pytest.raises(ValueError, match='read-only'):
        first.real[0, 0] = False


@pytest.mark.parametrize('constant', [0.0, 0.3, 1e-12])
def test_a_distance_that_no_permutation_changes_has_no_effect_on_others(constant: float) -> None:
    """0.3 has no exact mean: its spread is rounding, which must not be standardised."""
    values = stream(9, 'constant', 'test', 'distances').exponential(size=(1, 200))
    alone = joint_p_values(values.copy())
    both = joint_p_values(np.concatenate([values, np.full((1, 200), constant)]))
    assert both.single == (alone.single[0], 1.0)
    assert both.adjusted == (alone.adjusted[0], 1.0)
