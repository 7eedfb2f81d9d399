# SPDX-License-Identifier: Apache-2.0
"""What a fit makes small: a distance between the scores of real and of simulated runs.

Every real run has the same number of simulated ones, so that the Wasserstein distance of a
coordinate is the mean difference of sorted values, for thousands of parameter values at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream

Objective = Callable[[FloatArray, FloatArray], FloatArray]
"""Takes the scores of real runs `(n, 2)` (RMSE in m/s, entropy difference) and of simulated ones
`(p, n, r, 2)`, r of each real run, and returns a distance for each of the p, `(p,)`."""


def coordinates(scores: FloatArray) -> FloatArray:
    """Return RMSE and entropy difference `(..., 2)` of (RMSE, entropies of both) `(..., 3)`."""
    return np.stack([scores[..., 0], np.abs(scores[..., 1] - scores[..., 2])], axis=-1)


def _wasserstein(real: FloatArray, simulated: FloatArray) -> FloatArray:
    """Return W1 of either coordinate, `(p, 2)`."""
    p, n, r, k = simulated.shape
    pooled = np.sort(simulated.reshape(p, n * r, k), axis=1)
    wanted = np.repeat(np.sort(real, axis=0), r, axis=0)
    return np.asarray(np.mean(np.abs(pooled - wanted), axis=1))


def _energy(real: FloatArray, simulated: FloatArray) -> FloatArray:
    # Coordinates in units of their spread over the real runs, else a speed meets a pure number.
    spread = real.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    x = real / spread
    y = simulated.reshape(len(simulated), -1, simulated.shape[-1]) / spread

    def apart(a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(
            np.sqrt(np.sum((a[..., :, None, :] - b[..., None, :, :]) ** 2, axis=-1)).mean((-2, -1))
        )

    within = apart(x, x)
    # Part by part: all pairs of all candidates at once would need gigabytes.
    squares = np.concatenate([2.0 * apart(x, one) - within - apart(one, one)
                              for one in np.array_split(y, max(1, len(y) // 16))])  # fmt: skip
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


METRICS: Mapping[str, Objective] = {
    'vepd': lambda real, simulated: np.asarray(_wasserstein(real, simulated).mean(axis=1)),
    'rmse': lambda real, simulated: _wasserstein(real, simulated)[:, 0],
    'entropy': lambda real, simulated: _wasserstein(real, simulated)[:, 1],
    'energy': _energy,
}
"""By name: VEPD; its two parts alone; the energy distance between the points (RMSE, entropy
difference), each coordinate divided by its deviation over the real runs."""


# How well simulated runs predict the real run of their own motion, recording by recording.
#
# VEPD cannot be taken from one recording, and pooled over folds it flatters: each fold is shifted
# by what the others are off, so that together they are off by nothing. The continuous ranked
# probability score of each recording, E|x - y| - E|y - y'| / 2 with real x and simulated y, is
# smallest in the mean for the true law (T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102,
# 2007) and can be averaged over recordings.

_EXACT = 13
_DRAWS = 10_000


def prediction_scores(real: FloatArray, simulated: FloatArray, metric: str) -> FloatArray:
    """Return the score of each recording, `(n,)`; smaller is better.

    `real`, (n, 2), holds RMSE in m/s and entropy difference, `simulated`, (n, r, 2), the same:
    with one repetition the second term is missing, and too narrow a law is not punished. The
    metrics `rmse` and `entropy` of `objective.METRICS` score one coordinate; others the mean of
    both, for `energy` in units of their deviation over the real runs.
    """
    r = simulated.shape[1]
    missed = np.abs(simulated - real[:, None]).mean(axis=1)
    if r > 1:
        pairs = np.abs(simulated[:, :, None] - simulated[:, None, :]).sum(axis=(1, 2))
        missed = missed - pairs / (2.0 * r * (r - 1))
    if metric == 'rmse':
        return np.asarray(missed[:, 0])
    if metric == 'entropy':
        return np.asarray(missed[:, 1])
    if metric == 'energy':
        spread = real.std(axis=0)
        missed = missed / np.where(spread > 0.0, spread, 1.0)
    return np.asarray(missed.mean(axis=1))


def sign_flip_p_value(differences: FloatArray, seed: int) -> float:
    """Return the chance of so large a mean if every sign were as likely as the other.

    Of all signs up to 13 differences, else of 10 000 draws and the signs as they are (R. A.
    Fisher, The Design of Experiments, 1935).
    """
    n = len(differences)
    if n <= _EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    else:
        drawn = stream(seed, 'fit', 'signs', '').choice((1.0, -1.0), (_DRAWS - 1, n))
        signs = np.concatenate([np.ones((1, n)), drawn])
    sums = signs @ differences
    return float(np.mean(sums >= sums[0] - 1e-12 * np.abs(differences).sum()))
