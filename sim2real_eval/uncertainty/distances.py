# SPDX-License-Identifier: Apache-2.0
"""The Wasserstein distance between two sets of runs, for thousands of ways to weigh them at once.

With F and G the distribution functions of the two sets, W1 is the integral of |F - G| (S. S.
Vallender, Theory Probab. Appl. 18, 1974). On the gaps between the sorted values of all runs both
are constant and linear in the weights of the runs, so that one matrix product gives them for all
weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.measurements import FloatArray

__all__ = ['MeanWasserstein', 'side_weights']

_ROUNDING = 1e-12  # equal sets, added up in another order
_ROWS = 4096  # at once: what a product needs stays in the cache of the processor


@dataclasses.dataclass(frozen=True, eq=False)
class MeanWasserstein:
    """Mean over the coordinates of W1 between two weighted sets of the same runs.

    Attributes
    ----------
    share : (runs, gaps) float
        Whether (or by which share) the value of each run is at or below each gap between
        neighbouring values, coordinate after coordinate.
    width : (gaps,) float
        Of each gap, divided by the number of coordinates.
    """

    share: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> MeanWasserstein:
        """Prepare the distance from the values `(runs, coordinates)` of all runs."""
        shares, widths = [], []
        for column in values.T:
            points = np.unique(column)
            shares.append(column[:, None] <= points[None, :-1])
            widths.append(np.diff(points) / values.shape[1])
        return cls(np.concatenate(shares, axis=1).astype(np.float64), np.concatenate(widths))

    def weighted(self, difference: FloatArray) -> FloatArray:
        """Return the distance, `(p,)`, for weights `(p, runs)` of one set less the other's."""
        found = np.empty(len(difference))
        for start in range(0, len(difference), _ROWS):
            gaps = difference[start : start + _ROWS] @ self.share
            found[start : start + _ROWS] = np.abs(gaps, out=gaps) @ self.width
        return np.where(found > _ROUNDING * self.width.sum(), found, 0.0)

    def linear(self, difference: FloatArray, around: FloatArray) -> FloatArray:
        """Return the distance for weights `difference` to first order about weights `around`.

        Which set is ahead at each gap is taken from `around` `(runs,)`: the distance is then the
        difference of two means.
        """
        slope = self.share @ (np.sign(around @ self.share) * self.width)
        return np.asarray(difference @ slope)

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        one, other = side_weights(first)
        return self.weighted(one - other)


def side_weights(first: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the runs in either set, each summing up to 1, `(p, runs)`."""
    one, other = first.astype(np.float64), (~first).astype(np.float64)
    return one / one.sum(axis=1, keepdims=True), other / other.sum(axis=1, keepdims=True)
