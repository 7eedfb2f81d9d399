# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Objectives of a fit, and the search over an interpolated response surface.

All candidates meet the same random draws, so that the scores of one run are smooth functions of
the parameters. The objective of any choice of recordings follows from these functions without
further judging: folds, resamples and profiles are computed from them.

Every real run has the same number of simulated ones. The Wasserstein distance of a coordinate is
then the mean difference of sorted values, for thousands of candidates at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator

from sim2real_eval.common.findings import Finding, FitError
from sim2real_eval.study.search.engine import sobol_points
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream


class ScoredCandidates(Protocol):
    """Candidate models with their scores; see `fit.CandidateScores` for the attributes."""

    real: Any
    space: Any
    values: FloatArray
    coordinates: FloatArray
    scores: FloatArray
    notes: list[tuple[tuple[Finding, ...], ...]]
    is_informative: NDArray[np.bool_]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether the judge could judge each candidate on every recording, `(c,)`."""

    @property
    def points(self) -> FloatArray:
        """RMSE and entropy difference of every run, `(c, n, r, 2)`."""

    def begin(self, coordinates: FloatArray) -> None:
        """Judge the given model and the first candidates `(c, d)`."""

    def add(self, coordinates: FloatArray) -> None:
        """Judge candidates by their coordinates, `(c, d)`."""


Objective = Callable[[FloatArray, FloatArray], FloatArray]
"""Takes points of real runs `(n, 2)` (RMSE in m/s, entropy difference) and of simulated ones
`(p, n, r, 2)`, r for each real run. Returns the distance of each of the p candidates, `(p,)`."""


def score_points(scores: FloatArray) -> FloatArray:
    """Return RMSE and entropy difference `(..., 2)` of (RMSE, entropies of both) `(..., 3)`."""
    return np.stack([scores[..., 0], np.abs(scores[..., 1] - scores[..., 2])], axis=-1)


def _wasserstein(real: FloatArray, simulated: FloatArray) -> FloatArray:
    """Return the Wasserstein-1 distance of either coordinate, `(p, 2)`."""
    p, n, r, k = simulated.shape
    pooled = np.sort(simulated.reshape(p, n * r, k), axis=1)
    quantiles = np.repeat(np.sort(real, axis=0), r, axis=0)
    return np.asarray(np.mean(np.abs(pooled - quantiles), axis=1))


def _spread_of(real: FloatArray) -> FloatArray:
    """Return the standard deviation of either coordinate, 1 where it is zero."""
    spread = real.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _energy(real: FloatArray, simulated: FloatArray) -> FloatArray:
    # Without scaling, a speed and a pure number would be added.
    spread = _spread_of(real)
    x = real / spread
    y = simulated.reshape(len(simulated), -1, simulated.shape[-1]) / spread

    def mean_distance(a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(
            np.sqrt(np.sum((a[..., :, None, :] - b[..., None, :, :]) ** 2, axis=-1)).mean((-2, -1))
        )

    within = mean_distance(x, x)
    # All pairs of all candidates at once would need gigabytes.
    squares = np.concatenate([
        2.0 * mean_distance(x, part) - within - mean_distance(part, part)
        for part in np.array_split(y, max(1, len(y) // 16))
    ])  # fmt: skip
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


METRICS: Mapping[str, Objective] = {
    'vepd': lambda real, simulated: np.asarray(_wasserstein(real, simulated).mean(axis=1)),
    'rmse': lambda real, simulated: _wasserstein(real, simulated)[:, 0],
    'entropy': lambda real, simulated: _wasserstein(real, simulated)[:, 1],
    'energy': _energy,
}
"""Objectives by name: VEPD; its two parts alone; the energy distance between the points (RMSE,
entropy difference), each coordinate divided by its deviation over the real runs."""


def prediction_scores(real: FloatArray, simulated: FloatArray, metric: str) -> FloatArray:
    """Return how well simulated runs predict the real run of each recording, `(n,)`.

    The continuous ranked probability score E|x - y| - E|y - y'| / 2 with real x and simulated y;
    smaller is better, and the true law has the smallest mean (T. Gneiting and A. E. Raftery,
    J. Am. Stat. Assoc. 102, 2007). VEPD cannot be used instead: pooled over folds it is too
    small, as the shifts of the folds cancel.

    Parameters
    ----------
    real : (n, 2) array
        RMSE in m/s and entropy difference.
    simulated : (n, r, 2) array
        The same of simulated runs. One repetition gives no second term, so that a law that is too
        narrow is not punished.
    metric : str
        A key of `METRICS`. `rmse` and `entropy` score one coordinate, others the mean of both,
        for `energy` in units of the deviation over the real runs.
    """
    r = simulated.shape[1]
    scores = np.abs(simulated - real[:, None]).mean(axis=1)
    if r > 1:
        pairs = np.abs(simulated[:, :, None] - simulated[:, None, :]).sum(axis=(1, 2))
        scores = scores - pairs / (2.0 * r * (r - 1))
    if metric == 'rmse':
        return np.asarray(scores[:, 0])
    if metric == 'entropy':
        return np.asarray(scores[:, 1])
    if metric == 'energy':
        scores = scores / _spread_of(real)
    return np.asarray(scores.mean(axis=1))


_MIN_RMSE = 1e-12
_CLOUD = 1024
_BEST = 6
_RADII = (0.1, 0.03, 0.01, 0.003)
_AROUND = 24
_NEIGHBOURS = 60


class Surface:
    """Scores of every run as functions of the coordinates.

    Interpolation uses radial basis functions, cubic in one dimension and thin plates in more. RMSE
    is interpolated by its logarithm, which is nearly linear in that of a noise. Both entropies are
    interpolated, as their absolute difference has a kink.

    Parameters
    ----------
    candidates : ScoredCandidates
    objective : Objective
    seed : int
        Of the points at which the surface is searched.
    """

    def __init__(
        self, candidates: ScoredCandidates, objective: Objective, *, seed: int = 0
    ) -> None:
        rows = candidates.usable & candidates.is_informative
        scores = candidates.scores[rows]
        self.seed = seed
        self.coordinates = candidates.coordinates[rows]
        self.size = self.coordinates.shape[1]
        self._shape = scores.shape[1:]
        self._real = candidates.real.points
        self._objective = objective
        flat = np.concatenate(
            [np.log(np.maximum(scores[..., :1], _MIN_RMSE)), scores[..., 1:]], axis=-1
        ).reshape(len(scores), -1)
        count = len(self.coordinates)
        self._interpolate = RBFInterpolator(
            self.coordinates,
            flat,
            kernel='cubic' if self.size == 1 else 'thin_plate_spline',
            neighbors=_NEIGHBOURS if count > _NEIGHBOURS and self.size > 2 else None,
            degree=1 if count > self.size else 0,
        )

    def points(self, coordinates: FloatArray) -> FloatArray:
        """Return RMSE and entropy difference of every run, `(p, n, r, 2)`."""
        flat = self._interpolate(coordinates).reshape(len(coordinates), *self._shape)
        flat[..., 0] = np.exp(flat[..., 0])
        return score_points(flat)

    def objective(
        self,
        points: FloatArray,
        recordings: IntArray | None = None,
        repetitions: IntArray | None = None,
    ) -> FloatArray:
        """Return the objective of simulated runs `(p, n, r, 2)`, `(p,)`.

        `recordings` `(m,)` selects recordings, any number of times each. `repetitions` `(m, r)`
        selects the simulated runs of each.
        """
        if recordings is None:
            return self._objective(self._real, points)
        selected = points[:, recordings]
        if repetitions is not None:
            selected = np.take_along_axis(selected, repetitions[None, :, :, None], axis=2)
        return self._objective(self._real[recordings], selected)

    def best(self, recordings: IntArray | None = None) -> FloatArray:
        """Return the coordinates with the smallest objective, `(d,)`."""

        def objective(coordinates: FloatArray) -> FloatArray:
            return self.objective(self.points(coordinates), recordings)

        is_inside = ((self.coordinates >= 0.0) & (self.coordinates <= 1.0)).all(axis=1)
        start = np.concatenate(
            [self.coordinates[is_inside], spread_points(self.size, _CLOUD, self.seed)]
        )
        return find_lowest(objective, start, self.seed)[0]

    def lowest_at(self, axis: int, coordinate: float, near: FloatArray) -> FloatArray:
        """Return the coordinates `(d,)` with the smallest objective for a given one of an axis.

        `near` `(k, d)` are points to begin from, in addition to points over the whole cube.
        """
        start = np.concatenate([spread_points(self.size, 8 * 4**self.size, self.seed), near])
        start[:, axis] = coordinate
        if self.size == 1:
            return np.asarray(start[0])

        def objective(coordinates: FloatArray) -> FloatArray:
            coordinates = coordinates.copy()
            coordinates[:, axis] = coordinate
            return self.objective(self.points(coordinates))

        lowest, _ = find_lowest(objective, start, self.seed)
        lowest[axis] = coordinate
        return lowest


def spread_points(size: int, count: int, seed: int) -> FloatArray:
    """Return points spread evenly over the unit cube, `(count, size)` (I. M. Sobol, 1967)."""
    if size == 1:
        return np.linspace(0.0, 1.0, count)[:, None]
    return sobol_points(size, count, stream(seed, 'fit', 'search', 'spread'))


def find_lowest(
    objective: Callable[[FloatArray], FloatArray], start: FloatArray, seed: int
) -> tuple[FloatArray, float]:
    """Return the point of the unit cube with the smallest objective, and the objective.

    Points are drawn ever closer around the best few of the points so far, `start` `(k, d)` first.
    """
    points, values = start, objective(start)
    rng = stream(seed, 'fit', 'search', 'around')
    for radius in _RADII:
        best = np.argsort(values, kind='stable')[:_BEST]
        steps = rng.normal(0.0, radius, (_BEST, _AROUND, points.shape[1]))
        around = np.clip(points[best, None] + steps[: len(best)], 0.0, 1.0)
        around = around.reshape(-1, points.shape[1])
        points = np.concatenate([points[best], around])
        values = np.concatenate([values[best], objective(around)])
    index = int(np.argmin(values))
    return points[index].copy(), float(values[index])


_CLOSE = 0.004
_ROUNDS = 6


def default_budget(size: int) -> int:
    """Return the largest number of candidates for a number of parameters."""
    return 15 + 20 * size


def first_candidates(size: int, count: int, seed: int) -> FloatArray:
    """Return the first candidates `(m, size)`: corners or middles of faces, and points inside.

    The outer ones are needed because nothing is interpolated beyond the outermost candidates.
    """
    if size == 1:
        return spread_points(1, count, seed)
    if 2**size <= count // 3:
        outer = np.array(list(itertools.product((0.0, 1.0), repeat=size)))
    else:
        faces = itertools.product(range(size), (0.0, 1.0))
        outer = np.full((2 * size, size), 0.5)
        for row, (axis, coordinate) in zip(outer, faces, strict=True):
            row[axis] = coordinate
        outer = outer[: max(count // 3, 1)]
    return np.concatenate([outer, spread_points(size, count - len(outer), seed)])


def search_surface(
    candidates: ScoredCandidates,
    objective: Objective,
    recording_sets: Sequence[IntArray],
    *,
    budget: int,
    seed: int = 0,
) -> tuple[Surface, float]:
    """Judge candidates until the best one of every set of recordings is known.

    The search also ends when the budget is used up.

    Parameters
    ----------
    candidates : ScoredCandidates
        Empty at first; the start and all candidates are added.
    recording_sets : sequence of (m,) int
        Recordings over which the objective is to be small: all, and those of every fold.
    budget : int
        Largest number of candidates.

    Returns
    -------
    surface : Surface
        Through all candidates.
    error : float
        Largest error of the surface in the objective of the candidates that it proposed last.

    Raises
    ------
    FitError
        If the judge cannot judge the start, or too few candidates.
    """
    size = len(candidates.space)
    start = candidates.space.coordinates(np.array([candidates.space.start]))
    design = first_candidates(size, max(budget * 2 // 3, size + 2), seed)
    candidates.begin(_drop_duplicates(design, start))
    error = 0.0
    for _ in range(_ROUNDS):
        count = len(candidates.values)
        usable = int((candidates.usable & candidates.is_informative).sum())
        if usable < size + 2:
            raise FitError(
                f'{count - usable} of {count} candidates cannot be judged on every recording; '
                'narrower bounds may help'
            )
        surface = Surface(candidates, objective, seed=seed)
        proposals = _drop_duplicates(
            (surface.best(recordings) for recordings in recording_sets), candidates.coordinates
        )[: budget - count]
        if not len(proposals):
            break
        predicted = surface.objective(surface.points(proposals))
        candidates.add(proposals)
        judged = objective(candidates.real.points, candidates.points[count:])
        finite = np.isfinite(judged)
        if finite.any():
            error = float(np.abs(judged - predicted)[finite].max())
    return Surface(candidates, objective, seed=seed), error


def _drop_duplicates(points: Iterable[FloatArray], present: FloatArray) -> FloatArray:
    """Leave out points next to others, through which no surface could be interpolated."""
    selected: list[FloatArray] = []
    for point in points:
        neighbours = [*present, *selected]
        if not neighbours or np.abs(np.array(neighbours) - point).max(axis=1).min() > _CLOSE:
            selected.append(np.asarray(point))
    return np.array(selected).reshape(-1, present.shape[1])


def best_candidate(
    candidates: ScoredCandidates, objective: Objective, recordings: IntArray
) -> int:
    """Return the candidate with the smallest judged objective on some recordings."""
    points = candidates.points[:, recordings]
    values = np.full(len(points), np.inf)
    usable = candidates.usable
    values[usable] = objective(candidates.real.points[recordings], points[usable])
    return int(np.argmin(values))
