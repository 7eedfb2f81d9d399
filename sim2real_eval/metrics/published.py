# SPDX-License-Identifier: Apache-2.0
"""Numbers printed in [Mahajan2024], to be shown beside ours.

Origin: [Mahajan2024], tables I and II and section III-D. They are facts about the paper's own
robot, data and judge: orderings can be expected to carry over, the values cannot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.series_folder import PAPER_SCENARIOS

__all__ = [
    'MODEL_LABELS',
    'ROBUSTNESS',
    'TABLE_1',
    'TABLE_2',
    'PublishedDistance',
    'PublishedVepd',
    'published_vepd',
]

MODEL_LABELS: Mapping[str, str] = {
    'ch_gauss': 'Ch:Gauss',
    'ch_rw': 'Ch:RW',
    'airsim': 'AirSim',
    'ch_gauss_airsim': 'Ch:Gauss+AirSim',
    'ch_rw_airsim': 'Ch:RW+AirSim',
}
"""Our model names to the names printed in the paper, in its order."""


@dataclasses.dataclass(frozen=True)
class PublishedDistance:
    """Row of Table I: W1 of the RMSE [m/s], W2 of the entropy differences, and their mean."""

    w_rmse: float
    w_entropy: float
    vepd: float


@dataclasses.dataclass(frozen=True)
class PublishedVepd:
    """Entry of Table II: VEPD and rank among the five models."""

    vepd: float
    rank: int


TABLE_1: Mapping[str, PublishedDistance] = {
    'ch_gauss': PublishedDistance(0.2242, 0.0859, 0.155),
    'ch_rw': PublishedDistance(0.0836, 0.0025, 0.043),
    'airsim': PublishedDistance(0.0725, 0.0054, 0.039),
    'ch_gauss_airsim': PublishedDistance(0.1069, 0.0185, 0.0627),
    'ch_rw_airsim': PublishedDistance(0.092, 0.0044, 0.0482),
}
"""Experiment B: three scenarios pooled, 30 real against 30 simulated runs."""

TABLE_2: Mapping[str, Mapping[str, PublishedVepd]] = {
    'line': {
        'ch_gauss': PublishedVepd(0.1387, 5),
        'ch_rw': PublishedVepd(0.0048, 1),
        'airsim': PublishedVepd(0.0066, 2),
        'ch_gauss_airsim': PublishedVepd(0.026, 4),
        'ch_rw_airsim': PublishedVepd(0.0085, 3),
    },
    'circle': {
        'ch_gauss': PublishedVepd(0.1763, 5),
        'ch_rw': PublishedVepd(0.0488, 2),
        'airsim': PublishedVepd(0.0459, 1),
        'ch_gauss_airsim': PublishedVepd(0.0842, 4),
        'ch_rw_airsim': PublishedVepd(0.0574, 3),
    },
    'sine': {
        'ch_gauss': PublishedVepd(0.1501, 5),
        'ch_rw': PublishedVepd(0.0796, 2),
        'airsim': PublishedVepd(0.066, 1),
        'ch_gauss_airsim': PublishedVepd(0.0796, 3),
        'ch_rw_airsim': PublishedVepd(0.0799, 4),
    },
}
"""Experiment C: scenario to model, 10 real against 10 simulated runs each."""

ROBUSTNESS: Mapping[str, float] = {'grass': 0.0796, 'concrete': 0.0867}
"""Experiment D: VEPD of ch_rw, sine, simulated on flat ground against two real surfaces."""


def published_vepd(model: str, scenario: str) -> float | None:
    """Return the paper's VEPD of a model in a scenario (`all` is Table I), None if not printed."""
    if scenario == POOLED:
        row = TABLE_1.get(model)
        return row.vepd if row is not None else None
    entry = TABLE_2.get(PAPER_SCENARIOS.get(scenario, scenario), {}).get(model)
    return entry.vepd if entry is not None else None
