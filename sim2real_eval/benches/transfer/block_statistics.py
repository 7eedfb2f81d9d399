# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Statistics of a transfer loss over blocks, and distances between loss landscapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sim2real_eval.metrics.permutation_test import joint_p_values, significance_groups
from sim2real_eval.study.search.engine import estimate_gain, sign_flips
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream


class BlockStatistics(NamedTuple):
    """Loss of a model over blocks; see `ModelTransfer`."""

    loss: float
    low: float
    high: float
    p_value: float
    adjusted: float
    group: str


def block_statistics(
    errors: Mapping[str, FloatArray],
    reference: FloatArray,
    blocks: Sequence[IntArray],
    level: float,
    *,
    is_error: bool,
) -> dict[str, BlockStatistics]:
    """Return the loss of each model, with its interval, tests and group.

    Parameters
    ----------
    errors : mapping of str to (p,) float
        Error, or score, of each model in every window.
    reference : (p,) float
        Error, or score, of the filter tuned on real recordings.
    blocks : sequence of (k,) int
        Indices of the windows of each block.
    level : float
        Confidence level of the intervals.
    is_error : bool
        True if the values are errors, whose losses are divided by the reference; False for scores.

    Examples
    --------
    >>> blocks = [np.array([k]) for k in range(6)]
    >>> reference = np.array([1.0, 1.1, 0.9, 1.0, 1.2, 0.8])
    >>> worse = reference * [1.1, 1.2, 1.15, 1.1, 1.2, 1.05]
    >>> losses = block_statistics({'a': worse}, reference, blocks, 0.95, is_error=True)
    >>> round(losses['a'].loss, 3), losses['a'].low > 0.0, losses['a'].p_value
    (0.139, True, 0.03125)
    """
    names = list(errors)
    sums = np.array([[errors[name][block].sum() for block in blocks] for name in names])
    scale = np.array(
        [reference[block].sum() if is_error else float(len(block)) for block in blocks]
    )
    differences = sums - np.array([reference[block].sum() for block in blocks])
    signs = sign_flips(len(blocks), stream(0, 'transfer', 'signs', ''))
    adjusted = joint_p_values(np.abs(differences @ signs.T)).adjusted
    order = sorted(range(len(names)), key=lambda k: float(differences[k].sum()))
    pairs = list(itertools.combinations(order, 2))
    distinct = []
    if pairs:
        pair_differences = np.array([differences[i] - differences[k] for i, k in pairs])
        p_values = joint_p_values(np.abs(pair_differences @ signs.T)).adjusted
        distinct = [
            (names[i], names[k])
            for (i, k), p_value in zip(pairs, p_values, strict=True)
            if p_value <= 1.0 - level
        ]
    groups = significance_groups([names[k] for k in order], distinct)
    statistics = {}
    for k, name in enumerate(names):
        gain = estimate_gain(differences[k], level, scale)
        opposite_p_value = estimate_gain(-differences[k], level, scale).p_value
        p_value = min(1.0, 2.0 * min(gain.p_value, opposite_p_value))
        statistics[name] = BlockStatistics(
            gain.mean, gain.low, gain.high, p_value, adjusted[k], groups[name]
        )
    return statistics


def landscape_distance(real: FloatArray, simulated: FloatArray, is_error: bool) -> float:
    """Return the distance between two loss landscapes `(t,)`; see `ModelTransfer.landscape`.

    A constant factor on all errors does not change which tuning is best, so it is ignored.

    Examples
    --------
    >>> real = np.array([1.0, 2.0, 4.0])
    >>> landscape_distance(real, 3.0 * real, True) < 1e-12
    True
    """
    deviations = np.log(simulated / real) if is_error else simulated - real
    return float(deviations.std())


def landscape_correlation(real: FloatArray, simulated: FloatArray) -> float:
    """Return Pearson's correlation between two landscapes; NaN if either is constant."""
    if real.std() == 0.0 or simulated.std() == 0.0:
        return math.nan
    return float(np.corrcoef(real, simulated)[0, 1])
