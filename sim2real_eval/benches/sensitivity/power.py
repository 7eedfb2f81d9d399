# SPDX-License-Identifier: Apache-2.0
"""How often a study would reveal a difference of two sets of runs, from many runs of each.

A trial takes as many runs as a study has, and tests them as a study does: by the permutation test
of their VEPD. Trials share runs. What the few runs leave open follows from how the outcome of a
trial depends on the runs in it: the infinitesimal jackknife for subsamples, less what chance adds
(S. Wager, T. Hastie and B. Efron, J. Mach. Learn. Res. 15, 2014).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein, side_weights
from sim2real_eval.metrics.uncertainty.permutation_test import joint_p_values, permute_labels
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from .options import LEVEL


class Power(NamedTuple):
    """Share of trials that reveal, its standard error and that one's degrees of freedom."""

    share: float
    error: float
    degrees: int


@dataclasses.dataclass(frozen=True, eq=False)
class Trials:
    """Studies drawn from the runs `(recordings, draws)` of either side.

    `recording` and `draw` `(trials, 2 n)` say which runs are taken, first of the side without the
    error. `weights` `(permutations, 2 n)` divide them, the first row as it is. `blocks` are
    strata: runs of one are drawn from each other.
    """

    recording: IntArray
    draw: IntArray
    weights: FloatArray
    shape: tuple[int, int]
    paired: bool

    @classmethod
    def of(cls, recordings: int, draws: int, trials: int, permutations: int, seed: int) -> Trials:
        """Draw trials.

        With several draws the two runs of each recording are a pair; with one, which is measured,
        half of the recordings stand against the other half.
        """
        rng = stream(seed, 'sensitivity', 'trials', '')
        paired = draws > 1
        if paired:
            n = recordings
            order = rng.random((trials, n, draws)).argsort(axis=2)[:, :, :2]
            draw = np.concatenate([order[:, :, 0], order[:, :, 1]], axis=1)
            recording = np.tile(np.arange(n), (trials, 2))
        else:
            n = unpaired_runs(recordings)
            recording = rng.random((trials, recordings)).argsort(axis=1)[:, : 2 * n]
            draw = np.zeros_like(recording)
        real = [f'{i}' for i in range(n)]
        simulated = real if paired else [f'other {i}' for i in range(n)]
        labels = permute_labels(real, simulated, permutations, seed).real
        one, other = side_weights(labels)
        return cls(recording, draw, one - other, (recordings, draws), paired)

    def power(self, base: FloatArray, changed: FloatArray) -> Power:
        """Return the power for runs `(recordings, draws, coordinates)` without and with an error.

        Scores that are not numbers, as of a judge that failed, count as revealed.
        """
        outcome = np.array([self._reveals(base, changed, k) for k in range(len(self.draw))])
        return Power(float(outcome.mean()), self._error(outcome), self._degrees)

    def _reveals(self, base: FloatArray, changed: FloatArray, trial: int) -> bool:
        n = self.recording.shape[1] // 2
        at, draw = self.recording[trial], self.draw[trial]
        values = np.concatenate([base[at[:n], draw[:n]], changed[at[n:], draw[n:]]])
        if not np.isfinite(values).all():
            return True
        distances = MeanWasserstein.of(values).weighted(self.weights)
        return joint_p_values(distances[None]).single[0] <= LEVEL

    @property
    def _degrees(self) -> int:
        recordings, draws = self.shape
        return recordings * (draws - 1) if self.paired else recordings - 1

    def _error(self, outcome: FloatArray) -> float:
        trials, (recordings, draws) = len(outcome), self.shape
        taken = np.zeros((trials, recordings, draws))
        np.put_along_axis(
            taken.reshape(trials, -1), self.recording * draws + self.draw, 1.0, axis=1
        )
        # A stratum of so many runs, of which every trial takes so many.
        size, part = (draws, 2) if self.paired else (recordings, self.recording.shape[1])
        share = part / size
        centred = np.asarray(outcome - outcome.mean(), dtype=np.float64)
        covariance = np.tensordot(centred, taken - share, axes=1) / trials
        noise = recordings * draws * share * (1.0 - share) * centred.var() / trials
        factor = (size - 1) / size * (size / (size - part)) ** 2 if size > part else 0.0
        of_runs = max(factor * (float(np.sum(covariance**2)) - noise), 0.0)
        return float(np.sqrt(of_runs + centred.var() / trials))


def unpaired_runs(recordings: int) -> int:
    """Return how many of the recordings stand on each side; one at least is left out."""
    return (recordings - 1) // 2
