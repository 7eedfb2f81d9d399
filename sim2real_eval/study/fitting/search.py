# SPDX-License-Identifier: Apache-2.0
"""Which candidates are judged: some all over the bounds, then where the best ones should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.stats import qmc

from sim2real_eval.common.errors import FitError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from .evaluations import Evaluations
from .objective import Objective, coordinates

# How the scores of every run depend on the parameters, between the candidates that were judged.
#
# All candidates meet the same random draws, so the scores of one run are smooth functions of the
# parameters, and the objective of any choice of recordings follows from them without judging
# anything again: that is what folds, resamples and profiles are made of.

_LEAST_RMSE = 1e-12
_CLOUD = 1024
_KEPT = 6
_RADII = (0.1, 0.03, 0.01, 0.003)
_AROUND = 24
_NEIGHBOURS = 60


class Surface:
    """Scores of every run as functions of the coordinates.

    Interpolated by radial basis functions, cubic in one dimension and thin plates in more: RMSE by
    its logarithm, which is nearly linear in that of a noise, and both entropies, whose difference
    has a kink that they have not.
    """

    def __init__(self, evaluations: Evaluations, objective: Objective, *, seed: int = 0) -> None:
        kept = evaluations.usable & evaluations.tells
        scores = evaluations.scores[kept]
        self.seed = seed  # of the points at which it is looked at
        self.units = evaluations.units[kept]
        self.size = self.units.shape[1]
        self._shape = scores.shape[1:]
        self._real = evaluations.real.points
        self._objective = objective
        flat = np.concatenate(
            [np.log(np.maximum(scores[..., :1], _LEAST_RMSE)), scores[..., 1:]], axis=-1
        ).reshape(len(scores), -1)
        few = len(self.units) > _NEIGHBOURS and self.size > 2
        self._interpolate = RBFInterpolator(
            self.units,
            flat,
            kernel='cubic' if self.size == 1 else 'thin_plate_spline',
            neighbors=_NEIGHBOURS if few else None,
            degree=1 if len(self.units) > self.size else 0,
        )

    def points(self, units: FloatArray) -> FloatArray:
        """Return RMSE and entropy difference of every run, `(p, n, r, 2)`."""
        flat = self._interpolate(units).reshape(len(units), *self._shape)
        flat[..., 0] = np.exp(flat[..., 0])
        return coordinates(flat)

    def objective(
        self,
        points: FloatArray,
        recordings: IntArray | None = None,
        repetitions: IntArray | None = None,
    ) -> FloatArray:
        """Return the objective of simulated runs, (p, n, r, 2), as `(p,)`.

        `recordings`, (m,), says which count, any number of times each, and `repetitions`, (m, r),
        which simulated runs of each.
        """
        if recordings is None:
            return self._objective(self._real, points)
        chosen = points[:, recordings]
        if repetitions is not None:
            chosen = np.take_along_axis(chosen, repetitions[None, :, :, None], axis=2)
        return self._objective(self._real[recordings], chosen)

    def best(self, recordings: IntArray | None = None) -> FloatArray:
        """Return the coordinates with the smallest objective, `(d,)`."""

        def objective(units: FloatArray) -> FloatArray:
            return self.objective(self.points(units), recordings)

        inside = self.units[((self.units >= 0.0) & (self.units <= 1.0)).all(axis=1)]
        return lowest(objective, spread(self.size, _CLOUD, self.seed), inside, self.seed)[0]

    def lowest_at(self, fixed: int, value: float, near: FloatArray) -> tuple[FloatArray, float]:
        """Return the coordinates with the smallest objective where number `fixed` has a value.

        `near`, (k, d), has coordinates to begin from beside those spread over the whole.
        """
        begin = np.concatenate([spread(self.size, 8 * 4**self.size, self.seed), near])
        begin[:, fixed] = value

        def objective(units: FloatArray) -> FloatArray:
            units = units.copy()
            units[:, fixed] = value
            return self.objective(self.points(units))

        if self.size == 1:
            return begin[0], float(objective(begin[:1])[0])
        found, least = lowest(objective, begin, begin[:0], self.seed)
        found[fixed] = value
        return found, least


def spread(size: int, count: int, seed: int) -> FloatArray:
    """Return points spread evenly over the unit cube, `(count, size)` (I. M. Sobol, 1967)."""
    if size == 1:
        return np.linspace(0.0, 1.0, count)[:, None]
    power = int(np.ceil(np.log2(max(count, 2))))
    source = stream(seed, 'fit', 'search', 'spread')
    return np.asarray(qmc.Sobol(size, rng=source).random_base2(power)[:count])


def lowest(
    objective: Callable[[FloatArray], FloatArray], begin: FloatArray, more: FloatArray, seed: int
) -> tuple[FloatArray, float]:
    """Return the point of the unit cube with the smallest objective, and that.

    The best of many points, then the best of points drawn ever closer around the best few.
    """
    units = np.concatenate([more, begin])
    values = objective(units)
    source = stream(seed, 'fit', 'search', 'around')
    for radius in _RADII:
        best = np.argsort(values, kind='stable')[:_KEPT]
        steps = source.normal(0.0, radius, (_KEPT, _AROUND, units.shape[1]))
        around = np.clip(units[best, None] + steps[: len(best)], 0.0, 1.0)
        around = around.reshape(-1, units.shape[1])
        units = np.concatenate([units[best], around])
        values = np.concatenate([values[best], objective(around)])
    index = int(np.argmin(values))
    return units[index].copy(), float(values[index])


_CLOSE = 0.004
_ROUNDS = 6


def default_budget(size: int) -> int:
    """Return how many candidates are judged at most for so many parameters."""
    return 15 + 20 * size


def design(size: int, count: int, seed: int) -> FloatArray:
    """Return the first candidates `(m, size)`: corners or middles of the sides, and points inside.

    On the bounds too, since nothing is known beyond the outermost candidates.
    """
    if size == 1:
        return spread(1, count, seed)
    if 2**size <= count // 3:
        outer = np.array(list(itertools.product((0.0, 1.0), repeat=size)))
    else:
        sides = itertools.product(range(size), (0.0, 1.0))
        outer = np.full((2 * size, size), 0.5)
        for row, (axis, value) in zip(outer, sides, strict=True):
            row[axis] = value
        outer = outer[: max(count // 3, 1)]
    return np.concatenate([outer, spread(size, count - len(outer), seed)])


def search(
    evaluations: Evaluations,
    objective: Objective,
    sets: Sequence[IntArray],
    *,
    budget: int,
    seed: int = 0,
    progress: Callable[[int], Callable[[], None] | None] | None = None,
) -> tuple[Surface, float]:
    """Judge candidates until the best of every set of recordings is known, or `budget` is used up.

    `evaluations` is empty, and grows, the start first. The objective is to be small over `sets` of
    recordings, (m,): all, and those of every fold. `progress` takes the number of tasks of the
    next round and returns what is to be called after each. FitError when the judge cannot judge
    the start, or too few candidates.

    Returns the surface through all candidates, and by how much it was wrong in the objective of
    candidates that it proposed last, as the largest difference, in the unit of the objective.
    """

    def told(candidates: int) -> Callable[[], None] | None:
        return None if progress is None else progress(evaluations.tasks(candidates))

    size = len(evaluations.tuned)
    given = np.array([[one.coordinate(one.start) for one in evaluations.tuned]])
    first = _distinct(design(size, max(budget * 2 // 3, size + 2), seed), given)
    evaluations.begin(first, told(len(first) + 1))
    error = 0.0
    for _ in range(_ROUNDS):
        usable = int((evaluations.usable & evaluations.tells).sum())
        if usable < size + 2:
            raise FitError(
                f'{len(evaluations.values) - usable} of {len(evaluations.values)} candidates '
                'cannot be judged on every recording; narrower bounds may help'
            )
        surface = Surface(evaluations, objective, seed=seed)
        wanted = _distinct((surface.best(one) for one in sets), evaluations.units)
        wanted = wanted[: budget - len(evaluations.values)]
        if not len(wanted):
            break
        before = len(evaluations.values)
        expected = surface.objective(surface.points(wanted))
        evaluations.add(wanted, told(len(wanted)))
        now = objective(evaluations.real.points, evaluations.points[before:])
        known = np.isfinite(now)
        if known.any():
            error = float(np.abs(now - expected)[known].max())
    return Surface(evaluations, objective, seed=seed), error


def _distinct(wanted: Iterable[FloatArray], there: FloatArray) -> FloatArray:
    """Leave out points next to others: they tell nothing new, and nothing passes through both."""
    kept: list[FloatArray] = []
    for point in wanted:
        others = [*there, *kept]
        if not others or np.abs(np.array(others) - point).max(axis=1).min() > _CLOSE:
            kept.append(np.asarray(point))
    return np.array(kept).reshape(-1, there.shape[1])


def chosen(evaluations: Evaluations, objective: Objective, recordings: IntArray) -> int:
    """Return the candidate that is best on some recordings, as judged; the start where it is."""
    points = evaluations.points[:, recordings]
    values = np.full(len(points), np.inf)
    usable = evaluations.usable
    values[usable] = objective(evaluations.real.points[recordings], points[usable])
    return int(np.argmin(values))
