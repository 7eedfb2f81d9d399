# SPDX-License-Identifier: Apache-2.0
"""Does a fitted model help on recordings that it was not fitted to?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.fitting.evaluations import Evaluations
from sim2real_eval.fitting.objective import Objective
from sim2real_eval.fitting.search import chosen
from sim2real_eval.uncertainty import ScoredRuns, Uncertainty, UncertaintyOptions, uncertainty
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['AFTER', 'BEFORE', 'HELD_OUT', 'Validation', 'validate']

BEFORE, AFTER, HELD_OUT = 'before', 'after', 'held out'


@dataclasses.dataclass(frozen=True, eq=False)
class Validation:
    """A fit, and the fits of folds on what they did not see.

    Attributes
    ----------
    fitted : int
        Candidate that is best on all recordings.
    of_fold : tuple of int
        Candidate that is best without the recordings of each fold.
    before, after : float
        Objective of the start and of the fit, over all recordings.
    held_out : float or None
        Objective of the runs of every fold's candidate on the recordings it did not see, all folds
        together; None without folds.
    points : dict
        RMSE and entropy difference `(n, r, 2)` of the runs before, after and held out.
    known : Uncertainty
        Of the VEPD of these three, and of each pair.
    """

    fitted: int
    of_fold: tuple[int, ...]
    before: float
    after: float
    held_out: float | None
    points: dict[str, FloatArray]
    known: Uncertainty

    @property
    def chance(self) -> float | None:
        """Chance of so large a difference between before and held out if there were none."""
        return None if self.held_out is None else self.known.pair(BEFORE, HELD_OUT).chance

    @property
    def verdict(self) -> str:
        """`better`, `unproven`, `over-fits`, `unchanged` or `not validated`.

        `better`: held out, the fit is closer than the start, and so large a difference has at most
        the chance of one minus the level if start and fit are equally close: that is the rate of
        false alarms. `over-fits`: on the recordings that it was fitted to it is closer, held out
        it is not. `unproven`: closer held out too, but no more than by chance.
        """
        if self.fitted == 0:
            return 'unchanged'
        if self.held_out is None:
            return 'not validated'
        if self.held_out >= self.before:
            return 'over-fits'
        least = 1.0 - self.known.options.level
        return 'better' if self.chance is not None and self.chance <= least else 'unproven'


def validate(
    evaluations: Evaluations,
    objective: Objective,
    folds: Sequence[IntArray],
    *,
    options: UncertaintyOptions | None = None,
    seed: int = 0,
) -> Validation:
    """Compare start, fit and the fits of folds, from candidates that have been judged.

    Parameters
    ----------
    evaluations : Evaluations
    objective : Objective
    folds : sequence of (m,) int
        Recordings that each fold holds out.
    options : UncertaintyOptions, optional
    seed : int
    """
    real = evaluations.real
    everything = np.arange(len(real.names))
    points = evaluations.points
    fitted = chosen(evaluations, objective, everything)
    of_fold = [chosen(evaluations, objective, np.setdiff1d(everything, held)) for held in folds]
    runs = {BEFORE: points[0], AFTER: points[fitted]}
    if folds:
        runs[HELD_OUT] = np.empty_like(points[0])
        for held, candidate in zip(folds, of_fold, strict=True):
            runs[HELD_OUT][held] = points[candidate][held]
    distances = {name: float(objective(real.points, one[None])[0]) for name, one in runs.items()}
    repetitions = points.shape[2]
    known = uncertainty(
        ScoredRuns(real.points, real.names, real.scenarios),
        {
            name: ScoredRuns(
                one.reshape(-1, 2),
                tuple(np.repeat(real.names, repetitions).tolist()),
                tuple(np.repeat(real.scenarios, repetitions).tolist()),
            )
            for name, one in runs.items()
        },
        options,
        seed=seed,
    )
    return Validation(
        fitted,
        tuple(of_fold),
        distances[BEFORE],
        distances[AFTER],
        distances.get(HELD_OUT),
        runs,
        known,
    )
