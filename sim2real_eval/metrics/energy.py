# SPDX-License-Identifier: Apache-2.0
"""Energy distance between two sets of points: zero only where the two distributions are one.

The Wasserstein distances of VEPD look at RMSE and entropy difference one by one; two sets can
agree in both and yet differ in which run has which. The energy distance sees the points as they
are [Szekely2013].
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.measurements import FloatArray

__all__ = ['EnergyDistance', 'energy_distance']


@dataclasses.dataclass(frozen=True, eq=False)
class EnergyDistance:
    """Energy distance for many ways to divide the same runs into two sets.

    sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|), as `scipy.stats.energy_distance` has it in one
    dimension. Like that one it counts each point against itself, so it is not free of the sizes of
    the sets.

    Attributes
    ----------
    apart : (runs, runs) float
        Euclidean distance of any two runs.
    """

    apart: FloatArray

    @classmethod
    def of(cls, values: FloatArray, scale: FloatArray | None = None) -> EnergyDistance:
        """Prepare the distance from the values `(runs, coordinates)` of all runs.

        Parameters
        ----------
        values : (runs, coordinates) float
        scale : (coordinates,) float, optional
            What each coordinate is divided by; a coordinate with scale 0 does not count.
        """
        if scale is not None:
            values = values[:, scale > 0.0] / scale[scale > 0.0]
        steps = values[:, None, :] - values[None, :, :]
        return cls(np.sqrt(np.sum(steps**2, axis=2)))

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        one = first / first.sum(axis=1, keepdims=True)
        difference = one - ~first / (~first).sum(axis=1, keepdims=True)
        square = -np.sum((difference @ self.apart) * difference, axis=1)
        # Equal sets leave rounding, of either sign.
        least = 1e-12 * max(float(self.apart.max(initial=0.0)), 1e-300)
        return np.sqrt(np.where(square > least, square, 0.0))


def energy_distance(first: FloatArray, second: FloatArray) -> float:
    """Return the energy distance between two sets of points, (n, k) and (m, k)."""
    labels = np.arange(len(first) + len(second)) < len(first)
    return float(EnergyDistance.of(np.concatenate([first, second])).between(labels[None])[0])
