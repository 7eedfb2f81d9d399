# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The Wasserstein distance between two sets of runs, for thousands of weightings at once.

W1 is the integral of |F - G| for the distribution functions F and G of the two sets (S. S.
Vallender, Theory Probab. Appl. 18, 1974). On the gaps between the sorted values of all runs both
are constant and linear in the weights of the runs, so that one matrix product gives them for all
weights. The cost of the product is quadratic, so a compiled loop replaces it for many runs.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.blocks import row_blocks
from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray

_ROUNDING = 1e-12  # relative; sums of equal numbers in different order differ by less
MAX_IN_PRODUCT = 400
"""Largest number of runs for which the matrix product is used."""


def _widths(points: FloatArray) -> FloatArray:
    """Return the gap after each of the sorted points, 0 after the last."""
    return np.diff(points, append=points[-1:])


def integrals(
    weights: FloatArray,
    values: FloatArray,
    owners: NDArray[np.int64],
    masses: FloatArray,
    fixed: FloatArray,
) -> FloatArray:
    """Return the integral of |F - G| for each row of `weights` `(p, runs)`, `(p,)`.

    At each of the `values`, F - G rises by `fixed` and by the weight of the run `owners` times
    `masses`, all `(points,)`.
    """
    order = np.argsort(values, kind='stable')
    # A contiguous array, so that the loop is compiled for one memory layout only.
    weights = np.ascontiguousarray(weights)
    return _sorted_integrals(
        weights, owners[order], masses[order], fixed[order], _widths(values[order])
    )


@compiled
def _sorted_integrals(
    weights: FloatArray,
    owners: NDArray[np.int64],
    masses: FloatArray,
    fixed: FloatArray,
    widths: FloatArray,
) -> FloatArray:
    integrals = np.empty(len(weights))
    for row in range(len(weights)):
        difference = integral = 0.0
        for k in range(len(owners)):
            difference += fixed[k] + masses[k] * weights[row, owners[k]]
            integral += abs(difference) * widths[k]
        integrals[row] = integral
    return integrals


@dataclasses.dataclass(frozen=True, eq=False)
class MeanWasserstein:
    """Mean over the coordinates of W1 between two weighted sets of the same runs.

    `values` has the shape `(runs, coordinates)`. `width` `(gaps,)` is the width of each gap
    between neighbouring values, coordinate after coordinate, divided by the number of coordinates.
    `share` `(runs, gaps)` is 1 where the value of a run is at or below a gap, else 0. It is None
    for more than `MAX_IN_PRODUCT` runs.
    """

    values: FloatArray
    width: FloatArray
    share: FloatArray | None

    @classmethod
    def from_values(cls, values: FloatArray) -> MeanWasserstein:
        """Prepare the distance from the values `(runs, coordinates)` of all runs."""
        points = [np.unique(column) for column in values.T]
        width = np.concatenate([np.diff(column) / values.shape[1] for column in points])
        share = None
        if len(values) <= MAX_IN_PRODUCT:
            shares = [
                column[:, None] <= column_points[None, :-1]
                for column, column_points in zip(values.T, points, strict=True)
            ]
            share = np.concatenate(shares, axis=1).astype(np.float64)
        return cls(values, width, share)

    def distance_from(self, fixed: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the distance, `(p,)`, between runs with fixed weights and runs with `weights`.

        `fixed` `(n,)` belongs to the first runs, `weights` `(p, runs - n)` to the others.
        """
        n = len(fixed)
        if self.share is not None:
            gaps = weights @ self.share[n:]
            gaps -= fixed @ self.share[:n]
            return np.asarray(np.abs(gaps, out=gaps) @ self.width)
        others = np.arange(len(self.values)) - n
        owners, masses = np.maximum(others, 0), (others >= 0).astype(np.float64)
        steps = np.concatenate([-fixed, np.zeros(len(others) - n)])
        columns = [integrals(weights, column, owners, masses, steps) for column in self.values.T]
        return np.asarray(np.mean(columns, axis=0))

    def weighted_distance(self, difference: FloatArray) -> FloatArray:
        """Return the distance, `(p,)`, for differences of the weights of the sets, `(p, runs)`."""
        distances = np.empty(len(difference))
        for rows in row_blocks(*difference.shape):
            distances[rows] = self.distance_from(np.empty(0), difference[rows])
        return np.where(distances > _ROUNDING * self.width.sum(), distances, 0.0)

    def slope(self, around: FloatArray) -> FloatArray:
        """Return the derivative of the distance with respect to the weights, `(runs,)`.

        The weights `around` `(runs,)` fix the sign of F - G at each gap. To first order, the
        distance of other weights is their product with the slope: the difference of two means.
        """
        slope = np.zeros(len(self.values))
        for column in self.values.T:
            order = np.argsort(column, kind='stable')
            difference = np.cumsum(around[order])
            # Rounding must not decide the sign where both sets are equal.
            signs = np.sign(np.where(np.abs(difference) > _ROUNDING, difference, 0.0))
            # A run is at or below all gaps from its own value on.
            slope[order] += np.cumsum((signs * _widths(column[order]))[::-1])[::-1]
        return np.asarray(slope / self.values.shape[1])

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        first_weights, rest_weights = side_weights(first)
        return self.weighted_distance(first_weights - rest_weights)


def side_weights(first: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the runs in both sets, `(p, runs)`; each set sums up to 1."""
    first_weights, rest_weights = first.astype(np.float64), (~first).astype(np.float64)
    first_weights /= first_weights.sum(axis=1, keepdims=True)
    rest_weights /= rest_weights.sum(axis=1, keepdims=True)
    return first_weights, rest_weights
