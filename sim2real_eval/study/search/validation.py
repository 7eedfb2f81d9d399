# SPDX-License-Identifier: Apache-2.0
"""Folds, blocks, held-out gains, permutation tests and resamples of recordings.

The means of all subsets of held-out gains give an interval and a p-value. If gains are symmetric
about a true mean, it lies between any two neighbouring subset means with the same probability
(J. A. Hartigan, J. Am. Stat. Assoc. 64, 1969). The test of zero flips signs (R. A. Fisher, The
Design of Experiments, 1935). Gains of blocks may have different distributions.
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
"""Longest pause between two recordings of one drive."""


def deal_folds(scenarios: Sequence[str], folds: int, seed: int) -> list[IntArray]:
    """Return the indices of the recordings that each fold holds out.

    `scenarios` has the scenario of each recording. Recordings are shuffled within a scenario and
    dealt in turn over all scenarios, so that fold sizes differ by one at most, in total and per
    scenario. There are at most as many folds as recordings, and none for fewer than two of either.
    """
    folds = min(folds, len(scenarios))
    if folds < 2:
        return []
    dealt: list[int] = []
    for scenario in dict.fromkeys(scenarios):
        members = [i for i, name in enumerate(scenarios) if name == scenario]
        order = stream(seed, 'fit', 'folds', scenario).permutation(len(members))
        dealt += [members[i] for i in order]
    return [np.array(sorted(dealt[fold::folds]), dtype=np.int64) for fold in range(folds)]


def group_drives(begin: Sequence[int], end: Sequence[int]) -> list[list[int]]:
    """Return groups of recordings that were made in one drive, each in the order of time.

    A recording that begins within a minute after another has ended belongs to the same drive.
    Overlapping recordings do not: simulated ones all begin at the same time.

    Examples
    --------
    >>> minute = 60 * 10**9
    >>> group_drives([0, minute, 9 * minute], [minute, 2 * minute, 10 * minute])
    [[0, 1], [2]]
    """
    drives: list[list[int]] = []
    for i in np.argsort(begin, kind='stable').tolist():
        before = [drive for drive in drives if 0 <= begin[i] - end[drive[-1]] <= _GAP_NS]
        if before:
            before[-1].append(i)
        else:
            drives.append([i])
    return drives


def deal_blocks(drives: Sequence[Sequence[int]], windows: int, count: int) -> list[IntArray]:
    """Return the windows of each held-out block; every recording has `windows` windows.

    Blocks are whole drives where there are at least `count` drives, else consecutive parts.

    Examples
    --------
    >>> [block.tolist() for block in deal_blocks([[1, 0, 2]], 1, 3)]
    [[1], [0], [2]]
    >>> [block.tolist() for block in deal_blocks([[0], [1, 2], [3]], 1, 3)]
    [[0], [1, 2], [3]]
    """
    drive_windows = [
        [windows * recording + k for recording in drive for k in range(windows)]
        for drive in drives
    ]
    if len(drive_windows) >= count:
        dealt = [drive_windows[first::count] for first in range(count)]
        return [np.array(sorted(itertools.chain(*block))) for block in dealt]
    return list(np.array_split(np.array([*itertools.chain(*drive_windows)]), count))


_EXACT_SUBSETS = 12
_EXACT_SIGNS = 13
_DRAWS = 10_000


class Gain(NamedTuple):
    """Reduction of a loss on blocks that were held out.

    `low` and `high` are the ends of its interval, infinite with too few blocks; `p_value` is
    one-sided.
    """

    mean: float
    low: float
    high: float
    p_value: float


def estimate_gain(
    gains: FloatArray, level: float = 0.95, weights: FloatArray | None = None
) -> Gain:
    """Return the mean gain of blocks with its interval and p-value.

    The mean is the sum of the gains over the sum of `weights` `(k,)`. If the weights are the
    errors at the start, the mean is the share by which the errors shrink.

    Examples
    --------
    >>> estimate_gain(np.array([0.2, 0.3, 0.1, 0.2, 5.0, 0.4])).p_value
    0.015625
    """
    weights = np.ones(len(gains)) if weights is None else weights
    means = np.sort(_subset_means(gains, weights))
    rank = math.floor(0.5 * (1.0 - level) * (len(means) + 1))
    low, high = (means[rank - 1], means[-rank]) if rank else (-np.inf, np.inf)
    p_value = float(1 + np.count_nonzero(means <= 0.0)) / (len(means) + 1)
    return Gain(float(gains.sum() / weights.sum()), float(low), float(high), p_value)


def standardised_gain(gains: FloatArray) -> float:
    """Return the distance of the mean gain of blocks from zero, in standard deviations."""
    means = _subset_means(gains, np.ones(len(gains)))
    below = (0.5 + np.count_nonzero(means <= 0.0)) / (len(means) + 1)
    return float(norm.isf(below))


def least_blocks(level: float) -> int:
    """Return the number of blocks that a p-value of one minus the level needs.

    Examples
    --------
    >>> least_blocks(0.975), least_blocks(1.0 - 0.05 / 20)
    (6, 9)
    """
    return math.ceil(-math.log2(1.0 - level) - 1e-9)


def _subset_means(gains: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the means of all non-empty subsets; of 10 000 drawn ones for more than 12 blocks."""
    n = len(gains)
    if n <= _EXACT_SUBSETS:
        members = np.arange(1, 2**n)[:, None] >> np.arange(n) & 1
    else:
        members = stream(0, 'tune', 'subsets', '').integers(0, 2, (_DRAWS - 1, n))
        members = members[members.any(axis=1)]
    return np.asarray(members @ gains / (members @ weights))


def sign_flip_p_value(differences: FloatArray, seed: int) -> float:
    """Return the probability of a mean at least this large if signs were random.

    All signs are tried for up to 13 differences, else 10 000 draws (R. A. Fisher, The Design of
    Experiments, 1935).
    """
    n = len(differences)
    if n <= _EXACT_SIGNS:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    else:
        drawn = stream(seed, 'fit', 'signs', '').choice((1.0, -1.0), (_DRAWS - 1, n))
        signs = np.concatenate([np.ones((1, n)), drawn])
    sums = signs @ differences
    return float(np.mean(sums >= sums[0] - 1e-12 * np.abs(differences).sum()))


LEAST_RECORDINGS = 5
"""With fewer recordings only the draws of the simulated noise are resampled."""

_LEAST_FREEDOM = 3


def resampling_strata(scenarios: Sequence[str]) -> tuple[list[IntArray], float]:
    """Return groups of recordings to resample within, and the degrees of freedom of that."""
    n = len(scenarios)
    if n < LEAST_RECORDINGS:
        return [np.array([i]) for i in range(n)], np.inf
    names = list(dict.fromkeys(scenarios))
    if n - len(names) < _LEAST_FREEDOM:
        # A scenario that was driven once cannot be resampled within itself.
        return [np.arange(n)], n - 1.0
    strata = [
        np.array([i for i, scenario in enumerate(scenarios) if scenario == name]) for name in names
    ]
    return strata, float(n - len(names))


def draw_resamples(
    strata: Sequence[IntArray], repetitions: int, count: int, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return bootstrap resamples: recordings `(n,)` and simulated runs of each `(n, r)`.

    Each stratum keeps its number of recordings.
    """
    shape = (sum(map(len, strata)), repetitions)
    rng = stream(seed, 'fit', 'resamples', '')
    return [
        (
            np.concatenate([rng.choice(stratum, len(stratum)) for stratum in strata]),
            rng.integers(0, repetitions, shape),
        )
        for _ in range(count)
    ]


def interpolate_crossing(x: Sequence[float], y: Sequence[float], level: float) -> float:
    """Return where a line through two points `(x, y)` has a level, between the two."""
    if y[0] == y[1]:
        return float(0.5 * (x[0] + x[1]))
    share = min(max((level - y[0]) / (y[1] - y[0]), 0.0), 1.0)
    return float(x[0] + share * (x[1] - x[0]))
