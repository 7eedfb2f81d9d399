# SPDX-License-Identifier: Apache-2.0
"""How well simulated runs predict the real run of their own motion, recording by recording.

VEPD cannot be taken from one recording, and pooled over folds it flatters: each fold is shifted by
what the others are off, so that together they are off by nothing. The continuous ranked
probability score of each recording, E|x - y| - E|y - y'| / 2 with real x and simulated y, is
smallest in the mean for the true law (T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102,
2007) and can be averaged over recordings.
"""

from __future__ import annotations

import itertools

import numpy as np

from sim_sensors.measurements import FloatArray
from sim_sensors.seeding import stream

__all__ = ['prediction_scores', 'sign_flip_p_value']

_EXACT = 13
_DRAWS = 10_000


def prediction_scores(real: FloatArray, simulated: FloatArray, metric: str) -> FloatArray:
    """Return the score of each recording, `(n,)`; smaller is better.

    Parameters
    ----------
    real : (n, 2) float
        RMSE in m/s and entropy difference.
    simulated : (n, r, 2) float
        With one repetition the second term is missing, and too narrow a law is not punished.
    metric : str
        Name in `objective.METRICS`: `rmse` and `entropy` score one coordinate; else the mean of
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

    Parameters
    ----------
    differences : (n,) float
    seed : int
        Of the draws.
    """
    n = len(differences)
    if n <= _EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    else:
        drawn = stream(seed, 'fit', 'signs', '').choice((1.0, -1.0), (_DRAWS - 1, n))
        signs = np.concatenate([np.ones((1, n)), drawn])
    sums = signs @ differences
    return float(np.mean(sums >= sums[0] - 1e-12 * np.abs(differences).sum()))
