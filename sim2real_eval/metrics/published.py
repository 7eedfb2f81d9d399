# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Numbers printed in [Mahajan2024], for comparison with ours.

Origin: [Mahajan2024], tables I and II and section III-D. They are facts about the paper's own
robot, data and judge: orderings can be expected to carry over, the values cannot.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from .options import REAL, MetricOptions
from .scores import POOLED, RunScore, VepdRow, coverage_notes, ranks, score_run, vepd_table
from .series import PAPER_SCENARIOS, SeriesKey, read_series_folder


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


def published_vepd(model: str, scenario: str) -> float | None:
    """Return the paper's VEPD of a model in a scenario (`all` is Table I), None if not printed."""
    if scenario == POOLED:
        row = TABLE_1.get(model)
        return row.vepd if row is not None else None
    entry = TABLE_2.get(PAPER_SCENARIOS.get(scenario, scenario), {}).get(model)
    return entry.vepd if entry is not None else None


@dataclasses.dataclass(frozen=True)
class SeriesVepd:
    """Rows of `vepd_table`, the score of every run, and what was skipped, repaired or uneven."""

    rows: list[VepdRow]
    scores: Mapping[SeriesKey, RunScore]
    notes: tuple[Finding, ...]

    def by_source(self) -> dict[str, list[RunScore]]:
        """Return the scores of each model and of `real`, all scenarios pooled."""
        scores_by_scenario: dict[str, list[RunScore]] = {}
        for key, score in self.scores.items():
            scores_by_scenario.setdefault(key.source, []).append(score)
        return scores_by_scenario

    def mean_rmse(self) -> dict[str, float]:
        """Return the mean RMSE in m/s of the runs of each model and of `real`."""
        return {
            source: float(np.mean([score.rmse for score in scores]))
            for source, scores in self.by_source().items()
        }


def vepd_from_series(folder: str | Path, options: MetricOptions | None = None) -> SeriesVepd:
    """Recompute the VEPD table from a folder in the layout of the published data.

    Tables I and II from the published `data2` folder: `MetricOptions(drop_zeros=True)`.

    Raises SeriesError, MetricError when the folder or a file cannot be read, or a run cannot be
    scored; the file is named.
    """
    options = options or MetricOptions()
    read = read_series_folder(folder, drop_zeros=options.drop_zeros)
    scores = {key: score_run(series, options) for key, series in read.series.items()}
    real: dict[str, list[RunScore]] = {}
    sim: dict[str, dict[str, list[RunScore]]] = {}
    for key, score in scores.items():
        runs = real if key.source == REAL else sim.setdefault(key.source, {})
        runs.setdefault(key.scenario, []).append(score)
    return SeriesVepd(vepd_table(real, sim), scores, (*read.notes, *coverage_notes(real, sim)))


_ALL_ORDERS = 5040  # 7!
_DRAWN = 10_000


@dataclasses.dataclass(frozen=True)
class RankAgreement:
    """Agreement of two rankings."""

    models: int  # how many were ranked by both
    # Kendall's tau-b, -1 to 1: the share of pairs that both order alike less the share that they
    # order contrarily, corrected for ties (M. G. Kendall, Biometrika 33, 1945). None where one of
    # the rankings ties all.
    kendall: float | None
    # Spearman's rho: the correlation of the ranks, ties sharing their mean rank
    spearman: float | None
    # Share of all orders of one ranking whose tau-b is at least as large: of 5 models even the
    # same order has 1 in 120. For more than 7 models, 10 000 orders are drawn.
    p_value: float | None


def rank_agreement(first: Sequence[float], second: Sequence[float]) -> RankAgreement:
    """Compare the orders of the same models by two numbers each.

    A model with a NaN among its numbers has none, and does not count.
    """
    values = np.array([first, second], dtype=np.float64)
    values = values[:, np.isfinite(values).all(axis=0)]
    n = values.shape[1]
    if n < 2 or (np.ptp(values, axis=1) == 0.0).any():
        return RankAgreement(n, None, None, None)
    ranked = ranks(values.T).T
    # The first order stays unchanged.
    permuted = kendall_taus(ranked[:1], ranked[1][_orders(n)])
    kendall = float(permuted[0])
    spearman = float(np.corrcoef(ranked)[0, 1])
    # Drawn orders include the observed one (B. Phipson and G. K. Smyth, 2010).
    p_value = float(np.mean(permuted >= kendall - 1e-9))
    return RankAgreement(n, kendall, spearman, p_value)


def kendall_taus(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Kendall's tau-b between corresponding rows of two arrays `(p, models)`.

    If one array has a single row, it is compared with all rows of the other. The result `(p,)` is
    NaN where all values of a row are tied.

    Examples
    --------
    >>> kendall_taus(np.array([[1.0, 2.0, 3.0]]), np.array([[0.1, 0.3, 0.2]])).round(3).tolist()
    [0.333]
    """
    # Pairs of models, each counted once; the sign says which of the two is ahead.
    pairs = np.triu_indices(first.shape[1], 1)
    first_signs, second_signs = (
        np.sign(row[:, pairs[0]] - row[:, pairs[1]]) for row in (first, second)
    )
    scale = np.sqrt((first_signs**2).sum(axis=1) * (second_signs**2).sum(axis=1))
    agreeing = (first_signs * second_signs).sum(axis=1)
    return np.asarray(np.divide(agreeing, scale, out=np.full(len(scale), np.nan), where=scale > 0))


@functools.lru_cache(maxsize=1)
def _orders(n: int) -> IntArray:
    """Return all or drawn orders of n items, `(p, n)`; the first is the identity."""
    if math.factorial(n) <= _ALL_ORDERS:
        return np.array(list(itertools.permutations(range(n))))
    rng = stream(0, 'rankings', 'models', 'orders')
    drawn = rng.random((_DRAWN - 1, n)).argsort(axis=1)
    return np.concatenate([np.arange(n)[None], drawn])
