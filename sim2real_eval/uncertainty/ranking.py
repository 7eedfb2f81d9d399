# SPDX-License-Identifier: Apache-2.0
"""Ranks of models over resamples, and groups of models that are not significantly different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['rank_distribution', 'significance_groups']


def rank_distribution(distances: FloatArray) -> FloatArray:
    """Return the probability of each rank, `(models, ranks)`, from `(models, resamples)`.

    Models that tie share their ranks: half a rank counts as half of either neighbour.
    """
    from scipy.stats import rankdata

    models = len(distances)
    ranks = rankdata(distances, method='average', axis=0)
    # The share of a rank between two whole ones goes to both.
    whole = np.arange(1, models + 1)
    return np.stack(
        [np.clip(1.0 - np.abs(ranks - one), 0.0, 1.0).mean(axis=1) for one in whole], 1
    )


def significance_groups(
    order: Sequence[str], distinguishable: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the letters of each model: two models share one unless they differ significantly.

    Insert and absorb (H.-P. Piepho, J. Comput. Graph. Stat. 13, 2004): all models start in one
    group; each significantly different pair splits the groups that hold both; groups inside others
    go.

    Parameters
    ----------
    order : sequence of str
        Models, the closest first; it gets the first letters.
    distinguishable : iterable of pairs
    """
    groups = [frozenset(order)]
    for first, second in distinguishable:
        split: list[frozenset[str]] = []
        for group in groups:
            both = first in group and second in group
            split += [group - {first}, group - {second}] if both else [group]
        groups = []
        for group in sorted(set(split), key=len, reverse=True):
            if not any(group <= other for other in groups):
                groups.append(group)
    groups.sort(key=lambda group: sorted(order.index(model) for model in group))
    return {
        model: ''.join(_group_name(k) for k, group in enumerate(groups) if model in group)
        for model in order
    }


def _group_name(number: int) -> str:
    """Return a, b, ... z, a2, b2, ..."""
    turn, place = divmod(number, 26)
    return chr(ord('a') + place) + (str(turn + 1) if turn else '')
