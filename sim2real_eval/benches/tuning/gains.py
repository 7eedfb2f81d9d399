# SPDX-License-Identifier: Apache-2.0
"""Blocks of recordings that are held out together, their gain, and whether that is chance.

The means of all subsets of the blocks say both: if gains are symmetric about a true one, it lies
between any two neighbours of them with the same probability (J. A. Hartigan, J. Am. Stat. Assoc.
64, 1969). The test of zero is that of flipped signs (R. A. Fisher, The Design of Experiments,
1935). Blocks may gain as differently as they like.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream

_GAP_NS = 60_000_000_000
"""Recordings of one drive follow each other within this time."""


def drives(begin: Sequence[int], end: Sequence[int]) -> list[list[int]]:
    """Return which recordings were made in one go, each drive in the order of time.

    One that begins within a minute after another has ended belongs to it; recordings that overlap
    do not: simulated ones all begin at the same time.

    Examples
    --------
    >>> minute = 60 * 10**9
    >>> drives([0, minute, 9 * minute], [minute, 2 * minute, 10 * minute])
    [[0, 1], [2]]
    """
    found: list[list[int]] = []
    for i in np.argsort(begin, kind='stable').tolist():
        before = [one for one in found if 0 <= begin[i] - end[one[-1]] <= _GAP_NS]
        if before:
            before[-1].append(i)
        else:
            found.append([i])
    return found


def deal_blocks(of_drive: Sequence[Sequence[int]], windows: int, count: int) -> list[IntArray]:
    """Return the windows of each block; recordings have so many `windows` each.

    Whole drives where there are as many as blocks; else parts of them, in the order of time.

    Examples
    --------
    >>> [block.tolist() for block in deal_blocks([[1, 0, 2]], 1, 3)]
    [[1], [0], [2]]
    >>> [block.tolist() for block in deal_blocks([[0], [1, 2], [3]], 1, 3)]
    [[0], [1, 2], [3]]
    """
    pieces = [
        [windows * recording + k for recording in drive for k in range(windows)]
        for drive in of_drive
    ]
    if len(pieces) >= count:
        dealt = [pieces[first::count] for first in range(count)]
        return [np.array(sorted(itertools.chain(*block))) for block in dealt]
    return list(np.array_split(np.array([*itertools.chain(*pieces)]), count))


_EXACT = 12
_DRAWS = 10_000


class Gain(NamedTuple):
    """How much smaller a loss becomes on blocks that were held out."""

    mean: float
    # Ends of its interval, infinite where there are too few blocks for one; one-sided p-value.
    low: float
    high: float
    p_value: float


def gain_of(gains: FloatArray, level: float = 0.95, weights: FloatArray | None = None) -> Gain:
    """Return the mean of the gains of blocks, with its interval and p-value.

    With `weights`, (k,), it is the sum of the gains over that of the weights: of errors the share
    that they shrink by.

    Examples
    --------
    >>> gain_of(np.array([0.2, 0.3, 0.1, 0.2, 5.0, 0.4])).p_value
    0.015625
    """
    of = np.ones(len(gains)) if weights is None else weights
    means = np.sort(_subset_means(gains, of))
    rank = math.floor(0.5 * (1.0 - level) * (len(means) + 1))
    low, high = (means[rank - 1], means[-rank]) if rank else (-np.inf, np.inf)
    p_value = float(1 + np.count_nonzero(means <= 0.0)) / (len(means) + 1)
    return Gain(float(gains.sum() / of.sum()), float(low), float(high), p_value)


def score_of(gains: FloatArray) -> float:
    """Return how far above zero the mean of the gains is, in standard deviations."""
    means = _subset_means(gains, np.ones(len(gains)))
    below = (0.5 + np.count_nonzero(means <= 0.0)) / (len(means) + 1)
    return float(norm.isf(below))


def least_blocks(level: float) -> int:
    """Return how many blocks it takes for a p-value of one minus the level.

    Examples
    --------
    >>> least_blocks(0.975), least_blocks(1.0 - 0.05 / 20)
    (6, 9)
    """
    return math.ceil(-math.log2(1.0 - level) - 1e-9)


def _subset_means(gains: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the means of all subsets but the empty one; of many blocks of some that are drawn."""
    n = len(gains)
    if n <= _EXACT:
        chosen = np.arange(1, 2**n)[:, None] >> np.arange(n) & 1
    else:
        chosen = stream(0, 'tune', 'subsets', '').integers(0, 2, (_DRAWS - 1, n))
        chosen = chosen[chosen.any(axis=1)]
    return np.asarray(chosen @ gains / (chosen @ weights))
