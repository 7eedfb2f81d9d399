# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Stepwise selection of the parameters whose change the recordings support, and their values.

Each parameter is tried alone while the others keep their present values. Its gain is measured on
held-out blocks: for each block, its value is the best one on the other blocks. A gain counts as
significant at the level divided by the number of parameters (C. E. Bonferroni). The significant
parameter with the largest gain is selected, and all selected parameters are fitted together. The
others are then tried again, until no gain is significant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.interpolate import Akima1DInterpolator
from scipy.optimize import minimize
from scipy.stats import t

from sim_sensors.core.measurements import FloatArray, IntArray
from .engine import (
    Gain,
    SearchParameter,
    SearchSpace,
    Values,
    estimate_gain,
    interpolate_crossing,
    standardised_gain,
)

MIN_GAIN = 0.002
"""Gain on held-out blocks below which a parameter is not selected: 0.2 % of an error."""

_FINE = 241
_SIMPLEX_STEP = 0.3
# Tolerance of coordinates of the final values, and of values that are only compared.
_FINAL_TOLERANCE, _COARSE_TOLERANCE = 0.01, 0.05
_EVALUATIONS_PER_PARAMETER = 60
_PROFILE_STEPS = (-2.0, -0.7, -0.2, -0.05, 0.05, 0.2, 0.7, 2.0)


class StepwiseParameter(SearchParameter, Protocol):
    """A parameter with levels to try alone; `scale` is `log`, `linear` or `choice`."""

    @property
    def levels(self) -> tuple[float, ...]:
        """Values other than the start that are tried."""

    @property
    def scale(self) -> str:
        """`log`, `linear` or `choice`; a choice has no values between its levels."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value."""


class SingleGain(NamedTuple):
    """Gain of changing one parameter alone.

    `value` is the best value on all windows, `training` its gain there, `held_out` the gain on
    held-out blocks.
    """

    value: float
    training: float
    held_out: Gain


def measure_single_gain(
    parameter: StepwiseParameter,
    values: Sequence[float],
    losses: FloatArray,
    blocks: Sequence[IntArray],
) -> SingleGain:
    """Measure the gain of one parameter from its losses `(v, p)` at some values.

    The first of the values is the present one. Losses between the values of a scale are
    interpolated (H. Akima, J. ACM 17, 1970).
    """
    candidates, curves = np.array(values), losses
    if parameter.scale != 'choice':
        coordinates = np.array([parameter.coordinate(value) for value in values])
        order = np.argsort(coordinates)
        fine = np.linspace(coordinates.min(), coordinates.max(), _FINE)
        fine = np.append(coordinates[:1], fine)
        curves = Akima1DInterpolator(coordinates[order], losses[order])(fine)
        # The present value keeps its own losses.
        curves[0] = losses[0]
        candidates = np.array([values[0], *map(parameter.value, fine[1:].tolist())])
    everywhere = curves.mean(axis=1)
    best = int(np.argmin(everywhere))
    gains = []
    for block in blocks:
        training = np.delete(curves, block, axis=1).mean(axis=1)
        held_out = curves[:, block].mean(axis=1)
        gains.append(held_out[0] - held_out[np.argmin(training)])
    return SingleGain(
        float(candidates[best]),
        float(everywhere[0] - everywhere[best]),
        estimate_gain(np.array(gains)),
    )


class Minimisation(NamedTuple):
    """Request for the values of free parameters with the least mean loss in some windows."""

    windows: IntArray
    begin: Values
    free: tuple[int, ...]  # indices of the parameters that may change
    tolerance: float  # of the coordinates
    most_evaluations: int | None = None  # by default 60 per free parameter

    @property
    def key(self) -> tuple[object, ...]:
        """Content as plain values, the key of a stored result."""
        return 'minimum', tuple(self.windows.tolist()), *self[1:]


class StepwiseSearch:
    """Stepwise selection over a space; see the module.

    `values` are the present values of all parameters. `selected` are the indices of parameters
    that are not at their start, and `single_gains` the gains of the others by index.

    Parameters
    ----------
    space : SearchSpace
    blocks : sequence of (k,) int
        Windows of each held-out block.
    evaluate : callable
        Takes candidates and returns their losses in all windows, `(p,)` each.
    minimise : callable
        Takes requests and returns the values of each; see `minimise_loss`.
    """

    def __init__(
        self,
        space: SearchSpace[StepwiseParameter],
        blocks: Sequence[IntArray],
        evaluate: Callable[[Sequence[Values]], list[FloatArray]],
        minimise: Callable[[Sequence[Minimisation]], list[Values]],
    ) -> None:
        self._parameters, self._blocks = space.parameters, blocks
        self._evaluate, self._minimise = evaluate, minimise
        self._windows = np.sort(np.concatenate(blocks))
        self.values: Values = space.start
        self.selected: list[int] = []
        self.single_gains: dict[int, SingleGain] = {}

    def run(self, level: float) -> None:
        """Select parameters until no gain is significant at a level."""
        while len(self.selected) < len(self._parameters):
            self._measure_single_gains()
            most = (1.0 - level) / len(self._parameters)
            significant = {
                index: gain
                for index, gain in self.single_gains.items()
                if gain.held_out.p_value <= most and gain.held_out.mean >= MIN_GAIN
            }
            if not significant:
                return
            index = max(significant, key=lambda i: significant[i].held_out.mean)
            self.selected.append(index)
            del self.single_gains[index]
            begin = _replace(self.values, index, significant[index].value)
            request = Minimisation(self._windows, begin, self._free_indices(), _FINAL_TOLERANCE)
            (self.values,) = self._minimise([request])

    def fit_folds(self) -> list[Values]:
        """Return the values without each block: of the selected parameters, best on the others."""
        if not self.selected:
            return [self.values] * len(self._blocks)
        return self._minimise(
            [
                Minimisation(
                    np.setdiff1d(self._windows, block), self.values, self._free_indices(),
                    _COARSE_TOLERANCE,
                )
                for block in self._blocks
            ]
        )  # fmt: skip

    def intervals(self, level: float) -> dict[int, tuple[float | None, float | None]]:
        """Return the interval of each selected value; None for an end beyond the bounds.

        An interval holds every value at which the loss is not significantly larger than at the
        best, all others at their best there. In a parabola whose minimum was found on the same
        blocks, the standardised gain is half of that of the value itself.
        """
        free = self._free_indices()
        places: list[tuple[int, float]] = []
        requests = []
        for i in free:
            parameter = self._parameters[i]
            here = parameter.coordinate(self.values[i])
            low, high = sorted(map(parameter.coordinate, parameter.bounds))
            other_indices = tuple(k for k in free if k != i)
            for step in _PROFILE_STEPS:
                if low <= here + step <= high:
                    begin = _replace(self.values, i, parameter.value(here + step))
                    request = Minimisation(self._windows, begin, other_indices, _COARSE_TOLERANCE)
                    requests.append(request)
                    places.append((i, step))
        losses = self._evaluate([self.values, *self._minimise(requests)])
        best, *others_means = np.array([[row[b].mean() for b in self._blocks] for row in losses])
        means = dict(zip(places, others_means, strict=True))
        most = float(t.ppf(0.5 + level / 2.0, len(self._blocks) - 1)) / 2.0
        intervals: dict[int, tuple[float | None, float | None]] = {}
        for i in free:
            parameter = self._parameters[i]
            here = parameter.coordinate(self.values[i])
            ends = []
            for side in (-1.0, 1.0):
                away = sorted(side * step for k, step in places if k == i and side * step > 0.0)
                scores = [standardised_gain(means[i, side * d] - best) for d in away]
                end = _first_crossing([0.0, *away], [0.0, *scores], most)
                ends.append(None if end is None else parameter.value(here + side * end))
            intervals[i] = (ends[0], ends[1])
        return intervals

    def _free_indices(self) -> tuple[int, ...]:
        return tuple(i for i in self.selected if self._parameters[i].scale != 'choice')

    def _measure_single_gains(self) -> None:
        unselected = [i for i in range(len(self._parameters)) if i not in self.selected]
        values = {i: [self.values[i], *self._parameters[i].levels] for i in unselected}
        candidates = [self.values]
        for i in unselected:
            candidates += [_replace(self.values, i, value) for value in values[i][1:]]
        present, *other_losses = self._evaluate(candidates)
        rows = iter(other_losses)
        for i in unselected:
            losses = np.array([present, *(next(rows) for _ in values[i][1:])])
            self.single_gains[i] = measure_single_gain(
                self._parameters[i], values[i], losses, self._blocks
            )


def _replace(values: Values, index: int, value: float) -> Values:
    return (*values[:index], value, *values[index + 1 :])


def _first_crossing(x: Sequence[float], y: Sequence[float], limit: float) -> float | None:
    """Return where y first exceeds a limit, interpolated; None if it never does."""
    for k in range(1, len(x)):
        if y[k] > limit:
            return interpolate_crossing(x[k - 1 : k + 1], y[k - 1 : k + 1], limit)
    return None


def minimise_loss(
    parameters: Sequence[StepwiseParameter],
    losses: Callable[[Values, IntArray], FloatArray],
    request: Minimisation,
) -> Values:
    """Return the values of a request by the Nelder-Mead method, inside the bounds.

    `losses` takes values and windows `(k,)` and returns the loss in each. Parameters that are not
    free keep their value of `begin`. The values stay at `begin` if no better ones are found.
    """
    windows, begin, free, tolerance, most = request
    space = SearchSpace(tuple(parameters[i] for i in free))
    if not len(space):
        return begin

    def fill_in(coordinates: FloatArray) -> Values:
        values = list(begin)
        for i, value in zip(free, space.values(coordinates[None])[0].tolist(), strict=True):
            values[i] = value
        return tuple(values)

    def mean_loss(coordinates: FloatArray) -> float:
        return float(losses(fill_in(coordinates), windows).mean())

    low, high = space.coordinates(np.array([p.bounds for p in space.parameters]).T)
    first = space.coordinates(np.array([[begin[i] for i in free]]))[0]
    simplex = np.tile(first, (len(first) + 1, 1))
    inward = np.where(first > 0.5 * (low + high), -1.0, 1.0)
    simplex[1:] += np.diag(inward * _SIMPLEX_STEP)
    minimum = minimize(
        mean_loss,
        first,
        method='Nelder-Mead',
        bounds=list(zip(low, high, strict=True)),
        options={
            'initial_simplex': simplex,
            'xatol': tolerance,
            'fatol': 1e-3 * tolerance,
            'maxfev': most or _EVALUATIONS_PER_PARAMETER * len(first),
        },
    )
    return fill_in(minimum.x) if minimum.fun < mean_loss(first) else begin
