# SPDX-License-Identifier: Apache-2.0
"""How different two sets of runs are: in their errors, and in the spectra of their errors.

Both distances are taken between mixtures over runs in which every run counts alike, whatever its
length, so that runs can change sides in a permutation test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray

_POINTS = 2048
_ROUNDING = 1e-12  # equal sets, added up in another order
_LEAST_RATIO = 1e-24  # of the largest density: -240 dB, below what rounding leaves


def wasserstein(first: Sequence[FloatArray], second: Sequence[FloatArray]) -> float:
    """Return the first Wasserstein distance between the errors of two sets of runs.

    In the unit of the errors: how far errors must be moved on average to make one set the other
    (C. Villani, Optimal Transport, 2009, chapter 6; `scipy.stats.wasserstein_distance`).

    Parameters
    ----------
    first, second : sequence of (n,) float
        Errors of each run.

    Examples
    --------
    >>> wasserstein([np.array([0.0, 1.0])], [np.array([2.0, 3.0])])
    2.0
    """
    from scipy.stats import wasserstein_distance

    sides = [
        (np.concatenate(runs), np.concatenate([np.full(len(run), 1 / len(run)) for run in runs]))
        for runs in (first, second)
    ]
    return float(wasserstein_distance(sides[0][0], sides[1][0], sides[0][1], sides[1][1]))


def log_spectral_distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the root mean square over frequency of 10 log10 (P1 / P2), dB.

    [Gray1976]: the rms log spectral measure.

    Parameters
    ----------
    first, second : (..., m) float
        Densities on the same frequencies. What is below -240 dB of the largest counts as that.

    Examples
    --------
    >>> float(log_spectral_distance(np.full(4, 10.0), np.ones(4)))
    10.0
    """
    largest = max(float(np.max(first)), float(np.max(second)))
    if largest == 0.0:
        return np.zeros(np.broadcast_shapes(first.shape, second.shape)[:-1])
    least = _LEAST_RATIO * largest
    ratio = 10.0 * np.log10(np.maximum(first, least) / np.maximum(second, least))
    return np.asarray(np.sqrt(np.mean(ratio**2, axis=-1)))


@dataclasses.dataclass(frozen=True, eq=False)
class ErrorDistance:
    """Wasserstein distance for many ways to divide the same runs into two sets.

    The distribution functions are taken at 2048 of the errors of all runs, at even ranks.

    Attributes
    ----------
    share : (runs, points) float
        Share of the errors of each run up to each point.
    width : (points - 1,) float
        From each point to the next.
    """

    share: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, runs: Sequence[FloatArray]) -> ErrorDistance:
        """Prepare the distance from the errors `(n,)` of all runs."""
        pooled = np.sort(np.concatenate(runs))
        ranks = np.linspace(0, len(pooled) - 1, min(_POINTS, len(pooled))).round().astype(np.intp)
        points = pooled[ranks]
        share = [np.searchsorted(np.sort(run), points, side='right') / len(run) for run in runs]
        return cls(np.stack(share)[:, :-1], np.diff(points))

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        one, other = _weights(first)
        distance = np.abs((one - other) @ self.share) @ self.width
        return np.where(distance > _ROUNDING * self.width.sum(), distance, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class SpectrumDistance:
    """Log spectral distance for many ways to divide the same runs into two sets.

    Attributes
    ----------
    density : (runs, m) float
        Of each run, on the same frequencies; densities are averaged over the runs of a set.
    """

    density: FloatArray

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance, dB, as `ErrorDistance.between` does."""
        one, other = _weights(first)
        distance = log_spectral_distance(one @ self.density, other @ self.density)
        return np.where(distance > _ROUNDING, distance, 0.0)


def _weights(first: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    one, other = first.astype(np.float64), (~first).astype(np.float64)
    return one / one.sum(axis=1, keepdims=True), other / other.sum(axis=1, keepdims=True)
