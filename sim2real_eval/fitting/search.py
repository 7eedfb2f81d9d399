# SPDX-License-Identifier: Apache-2.0
"""Which candidates are judged: some all over the bounds, then where the best ones should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sim2real_eval.fitting.errors import FitError
from sim2real_eval.fitting.evaluations import Evaluations
from sim2real_eval.fitting.objective import Objective
from sim2real_eval.fitting.surface import Surface, spread
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['chosen', 'default_budget', 'design', 'search']

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
    """Judge candidates until the best of every set of recordings is known.

    Parameters
    ----------
    evaluations : Evaluations
        Empty; grows, the start first.
    objective : Objective
    sets : sequence of (m,) int
        Recordings over which the objective is to be small: all, and those of every fold.
    budget : int
        Candidates at most.
    seed : int
    progress : callable, optional
        Takes the number of tasks of the next round and returns what is to be called after each.

    Returns
    -------
    Surface
        Through all candidates.
    float
        By how much the surface was wrong in the objective of candidates that it proposed last, as
        the largest difference; in the unit of the objective.

    Raises
    ------
    FitError
        When the judge cannot judge the start, or too few candidates.
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
