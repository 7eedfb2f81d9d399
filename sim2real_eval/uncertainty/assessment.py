# SPDX-License-Identifier: Apache-2.0
"""Everything that resampling says of the distances between real runs and those of models."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from sim2real_eval.metrics.options import MetricError
from sim2real_eval.uncertainty.distances import MeanWasserstein
from sim2real_eval.uncertainty.options import UncertaintyOptions
from sim2real_eval.uncertainty.relabelling import floor, relabel
from sim2real_eval.uncertainty.result import DistanceUncertainty, PairUncertainty, Uncertainty
from sim2real_eval.uncertainty.scored_runs import ScoredRuns

__all__ = ['uncertainty']


def uncertainty(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> Uncertainty:
    """Tell how sure the distance of each model, and of each pair of them, is.

    Parameters
    ----------
    real : ScoredRuns
        Of one scenario, or of several, whose runs then change sides inside their scenario only.
    sims : mapping
        Model to its runs.
    options : UncertaintyOptions, optional
    seed : int
        Of the draws; they depend on nothing else but the motions.

    Raises
    ------
    MetricError
        When there is no real run or no model, or a model has no run.
    """
    options = options or UncertaintyOptions()
    if not len(real) or not sims or not all(len(runs) for runs in sims.values()):
        raise MetricError('no runs to compare; need at least one real and one simulated run')
    level = 1.0 - options.level
    found: list[DistanceUncertainty] = []
    rows, told = [], []
    paired = True
    for model, runs in sims.items():
        distance = MeanWasserstein.of(np.concatenate([real.values, runs.values]))
        labels = relabel(
            real.names, runs.names, options.resamples, seed, strata=(real.scenario, runs.scenario)
        )
        paired = paired and labels.paired
        values = distance.between(labels.real)
        rows.append(values)
        told.append(labels.least <= level)
        found.append(DistanceUncertainty(model, len(real), len(runs), float(values[0])))
    pairs = [
        PairUncertainty(a.model, b.model, a.distance - b.distance)
        for a, b in itertools.combinations(found, 2)
    ]
    split = floor(MeanWasserstein.of(real.values), len(real), seed) if len(real) >= 4 else None
    return Uncertainty(options, paired, len(set(real.names)), split, tuple(found), tuple(pairs))
