# SPDX-License-Identifier: Apache-2.0
"""Recordings held out in turn, so that a model meets some that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim_sensors.measurements import IntArray
from sim_sensors.seeding import stream

__all__ = ['deal_folds']


def deal_folds(scenarios: Sequence[str], folds: int, seed: int) -> list[IntArray]:
    """Return the recordings that each fold holds out.

    Those of a scenario are shuffled and dealt in turn, each scenario going on where the one before
    ended: sizes differ by one at most, within every scenario and over all.

    Parameters
    ----------
    scenarios : sequence of str
        Of each recording.
    folds : int
        At most as many as there are recordings; none with fewer than two recordings or folds.
    seed : int
    """
    folds = min(folds, len(scenarios))
    if folds < 2:
        return []
    dealt: list[int] = []
    for scenario in dict.fromkeys(scenarios):
        own = [i for i, one in enumerate(scenarios) if one == scenario]
        order = stream(seed, 'fit', 'folds', scenario).permutation(len(own))
        dealt += [own[i] for i in order]
    return [np.array(sorted(dealt[fold::folds]), dtype=np.int64) for fold in range(folds)]
