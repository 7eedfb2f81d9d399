# SPDX-License-Identifier: Apache-2.0
"""The search: which parameters the recordings tell anything of, and their best values.

A parameter is tried alone, the others at their values so far. What it gains is judged where it
was not chosen: for each block of recordings the value is taken that is best on the others. Of
those whose gain is significant (the level divided by the number of parameters: C. E. Bonferroni)
the one that gains most is kept, all that are kept are fitted together, and the rest is tried
again, until none is left that gains anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.interpolate import Akima1DInterpolator
from scipy.optimize import minimize
from scipy.stats import t

from sim2real_eval.common.workers import Workers
from sim_sensors.core.measurements import FloatArray, IntArray
from .evaluations import evaluations_of
from .gains import Gain, gain_of, score_of
from .parameters import Tunable

LEAST_GAIN = 0.002
"""Gain on held-out blocks below which a parameter is not worth a change: 0.2 % of an error."""

_FINE = 241
_STEP = 0.3
# Coordinates are known to that when a fit ends; one that only has to be as good as the best, less.
_CLOSE, _NEAR = 0.01, 0.05
_MOST_PER_PARAMETER = 60
_PROFILE = (-2.0, -0.7, -0.2, -0.05, 0.05, 0.2, 0.7, 2.0)

Values = tuple[float, ...]
Progress = Callable[[int], Callable[[], None] | None]


class Screened(NamedTuple):
    """What one parameter alone would gain."""

    value: float  # best on all windows
    training: float  # what it gains there
    held_out: Gain


def screened(
    one: Tunable, values: Sequence[float], losses: FloatArray, blocks: Sequence[IntArray]
) -> Screened:
    """Judge a parameter by its losses, (v, p), at some values, that in force first.

    Between the values of a scale losses are interpolated (H. Akima, J. ACM 17, 1970).
    """
    tried, curves = np.array(values), losses
    if one.scale != 'choice':
        at = np.array([one.coordinate(value) for value in values])
        order = np.argsort(at)
        fine = np.append(at[:1], np.linspace(at.min(), at.max(), _FINE))
        curves = Akima1DInterpolator(at[order], losses[order])(fine)
        # The first is the value in force, as it is.
        curves[0] = losses[0]
        tried = np.array([values[0], *map(one.value, fine[1:].tolist())])
    everywhere = curves.mean(axis=1)
    best = int(np.argmin(everywhere))
    gains = []
    for block in blocks:
        others = np.delete(curves, block, axis=1).mean(axis=1)
        held = curves[:, block].mean(axis=1)
        gains.append(held[0] - held[np.argmin(others)])
    training = float(everywhere[0] - everywhere[best])
    return Screened(float(tried[best]), training, gain_of(np.array(gains)))


class Search:
    """The search of one task, whose pickle workers have; see the module.

    `values` are those of all parameters, as far as it has come. By number, `kept` are parameters
    that are not left at their start, and `screened` is what the others would gain.
    """

    def __init__(
        self, pickled: bytes, blocks: Sequence[IntArray], workers: Workers, progress: Progress
    ) -> None:
        self._pickled, self._blocks = pickled, blocks
        self._workers, self._progress = workers, progress
        self._evaluations = evaluations_of(pickled)
        self.parameters = self._evaluations.task.parameters
        self.values: Values = tuple(one.start for one in self.parameters)
        self.kept: list[int] = []
        self.screened: dict[int, Screened] = {}

    def run(self, level: float) -> None:
        """Keep parameters until none is left whose gain is significant at a level."""
        while len(self.kept) < len(self.parameters):
            self._screen()
            most = (1.0 - level) / len(self.parameters)
            significant = {
                number: one
                for number, one in self.screened.items()
                if one.held_out.p_value <= most and one.held_out.mean >= LEAST_GAIN
            }
            if not significant:
                return
            number = max(significant, key=lambda i: significant[i].held_out.mean)
            self.kept.append(number)
            del self.screened[number]
            begin = list(self.values)
            begin[number] = significant[number].value
            whole = np.arange(len(self._evaluations.begin))
            (self.values,) = self._fit([_Fit(whole, tuple(begin), self._free(), _CLOSE)])

    def fit(self, begin: Values, sets: Sequence[IntArray]) -> list[Values]:
        """Return the best values of what is kept on each set of windows."""
        return self._fit([_Fit(windows, begin, self._free(), _NEAR) for windows in sets])

    def intervals(self, level: float) -> dict[int, tuple[float | None, float | None]]:
        """Return the ends of the interval of each value that is kept; None: not within bounds.

        It holds every value at which the loss, all others at their best there, is not
        significantly larger than at the best. In a parabola, whose least value was looked for on
        the same blocks, the score of that is half of what it is for the value itself.
        """
        free, whole = self._free(), np.arange(len(self._evaluations.begin))
        points: list[tuple[int, float]] = []
        fits = []
        for i in free:
            one, here = self.parameters[i], self.parameters[i].coordinate(self.values[i])
            low, high = sorted(map(one.coordinate, one.bounds))
            for step in _PROFILE:
                if low <= here + step <= high:
                    begin = (*self.values[:i], one.value(here + step), *self.values[i + 1 :])
                    fits.append(_Fit(whole, begin, tuple(k for k in free if k != i), _NEAR))
                    points.append((i, step))
        values = [self.values, *self._fit(fits)]
        losses = self._workers.map(partial(_judged, pickled=self._pickled), values)
        best, *others = np.array([[row[b].mean() for b in self._blocks] for row in losses])
        means = dict(zip(points, others, strict=True))
        most = float(t.ppf(0.5 + level / 2.0, len(self._blocks) - 1)) / 2.0
        found: dict[int, tuple[float | None, float | None]] = {}
        for i in free:
            one, here = self.parameters[i], self.parameters[i].coordinate(self.values[i])
            ends = []
            for side in (-1.0, 1.0):
                away = sorted(side * step for k, step in points if k == i and side * step > 0.0)
                scores = [0.0, *(score_of(means[i, side * d] - best) for d in away)]
                end = _crossing([0.0, *away], scores, most)
                ends.append(None if end is None else one.value(here + side * end))
            found[i] = (ends[0], ends[1])
        return found

    def _free(self) -> tuple[int, ...]:
        return tuple(i for i in self.kept if self.parameters[i].scale != 'choice')

    def _fit(self, fits: Sequence[_Fit]) -> list[Values]:
        work = partial(_fitted, pickled=self._pickled)
        return self._workers.map(work, fits, progress=self._progress(len(fits)))

    def _screen(self) -> None:
        left = [i for i in range(len(self.parameters)) if i not in self.kept]
        values = {i: [self.values[i], *self.parameters[i].levels] for i in left}
        points = [self.values]
        for i in left:
            points += [(*self.values[:i], v, *self.values[i + 1 :]) for v in values[i][1:]]
        found = self._workers.map(
            partial(_judged, pickled=self._pickled), points, progress=self._progress(len(points))
        )
        rows, first = iter(found[1:]), found[0]
        for i in left:
            losses = np.array([first, *(next(rows) for _ in values[i][1:])])
            self.screened[i] = screened(self.parameters[i], values[i], losses, self._blocks)


class _Fit(NamedTuple):
    """What is fitted: on which windows, from where, and which parameters, by number."""

    windows: IntArray
    begin: Values
    free: tuple[int, ...]
    close: float


def _crossing(at: Sequence[float], scores: Sequence[float], most: float) -> float | None:
    """Return where the scores first exceed a limit, between the places; None: nowhere."""
    for k in range(1, len(at)):
        if scores[k] > most:
            share = (most - scores[k - 1]) / (scores[k] - scores[k - 1])
            return at[k - 1] + (at[k] - at[k - 1]) * share
    return None


def _judged(values: Values, *, pickled: bytes) -> FloatArray:
    return evaluations_of(pickled).losses(values)


def _fitted(fit: _Fit, *, pickled: bytes) -> Values:
    """Return the values of the free parameters with the least mean loss in some windows.

    By the simplex of J. A. Nelder and R. Mead (Comput. J. 7, 1965), on the scales of the
    parameters and within their bounds.
    """
    windows, begin, free, close = fit
    evaluations = evaluations_of(pickled)
    parameters = [evaluations.task.parameters[i] for i in free]
    if not parameters:
        return begin

    def values(coordinates: FloatArray) -> Values:
        found = list(begin)
        for i, one, at in zip(free, parameters, coordinates.tolist(), strict=True):
            found[i] = one.value(at)
        return tuple(found)

    def loss(coordinates: FloatArray) -> float:
        return float(evaluations.losses(values(coordinates), windows).mean())

    bounds = [(one.coordinate(one.bounds[0]), one.coordinate(one.bounds[1])) for one in parameters]
    first: FloatArray = np.array(
        [one.coordinate(begin[i]) for i, one in zip(free, parameters, strict=True)]
    )
    simplex = np.tile(first, (len(first) + 1, 1))
    for axis, (low, high) in enumerate(bounds):
        inward = -1.0 if first[axis] > 0.5 * (low + high) else 1.0
        simplex[1 + axis, axis] += inward * _STEP
    found = minimize(
        loss,
        first,
        method='Nelder-Mead',
        bounds=bounds,
        options={
            'initial_simplex': simplex,
            'xatol': close,
            'fatol': 1e-3 * close,
            'maxfev': _MOST_PER_PARAMETER * len(first),
        },
    )
    return values(found.x) if found.fun < loss(first) else begin
