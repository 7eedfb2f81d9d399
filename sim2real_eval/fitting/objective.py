# SPDX-License-Identifier: Apache-2.0
"""What a fit makes small: a distance between the scores of real and of simulated runs.

Every real run has the same number of simulated ones, so that the Wasserstein distance of a
coordinate is the mean difference of sorted values, for thousands of parameter values at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['METRICS', 'Objective', 'coordinates']

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


def _vepd(real: FloatArray, simulated: FloatArray) -> FloatArray:
    return np.asarray(_wasserstein(real, simulated).mean(axis=1))


def _rmse(real: FloatArray, simulated: FloatArray) -> FloatArray:
    return _wasserstein(real, simulated)[:, 0]


def _entropy(real: FloatArray, simulated: FloatArray) -> FloatArray:
    return _wasserstein(real, simulated)[:, 1]


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
    'vepd': _vepd,
    'rmse': _rmse,
    'entropy': _entropy,
    'energy': _energy,
}
"""By name: VEPD; its two parts alone; the energy distance between the points (RMSE, entropy
difference), each coordinate divided by its deviation over the real runs."""
