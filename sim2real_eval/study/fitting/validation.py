# SPDX-License-Identifier: Apache-2.0
"""Does a fitted model help on recordings that it was not fitted to?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions
from sim2real_eval.study.fitting.evaluations import Evaluations
from sim2real_eval.study.fitting.objective import METRICS, prediction_scores, sign_flip_p_value
from sim2real_eval.study.fitting.search import chosen
from sim_sensors.core.measurements import FloatArray, IntArray

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
        together, which flatters (see `prediction`); None without folds.
    points : dict
        RMSE and entropy difference `(n, r, 2)` of the runs before, after and held out.
    scores : dict
        Mean of `prediction_scores` of each.
    p_value : float or None
        Of so much better scores held out than before if neither were better; None without folds.
    known : Uncertainty
        Of the VEPD of the three, and of each pair.
    """

    fitted: int
    of_fold: tuple[int, ...]
    before: float
    after: float
    held_out: float | None
    points: dict[str, FloatArray]
    scores: dict[str, float]
    p_value: float | None
    known: Uncertainty

    @property
    def verdict(self) -> str:
        """`better`, `unproven`, `over-fits`, `unchanged` or `not validated`.

        `better`: on recordings held out, the fit predicts the real runs better than the start,
        and so much better has at most the chance of one minus the level if neither were: that
        bounds the rate of false alarms. `over-fits`: on the recordings that it was fitted to it is
        closer, on those held out it is no better. `unproven`: better there too, but no more than
        by chance.
        """
        if self.fitted == 0:
            return 'unchanged'
        if self.p_value is None:
            return 'not validated'
        if self.scores[HELD_OUT] >= self.scores[BEFORE]:
            return 'over-fits'
        return 'better' if self.p_value <= 1.0 - self.known.options.level else 'unproven'


def validate(
    evaluations: Evaluations,
    metric: str,
    folds: Sequence[IntArray],
    *,
    options: UncertaintyOptions | None = None,
    seed: int = 0,
) -> Validation:
    """Compare start, fit and the fits of folds, from candidates that have been judged.

    Parameters
    ----------
    evaluations : Evaluations
    metric : str
        Name in `objective.METRICS`.
    folds : sequence of (m,) int
        Recordings that each fold holds out.
    options : UncertaintyOptions, optional
    seed : int
    """
    real = evaluations.real
    objective = METRICS[metric]
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
    scores = {name: prediction_scores(real.points, one, metric) for name, one in runs.items()}
    p_value = None
    if folds:
        p_value = sign_flip_p_value(scores[BEFORE] - scores[HELD_OUT], seed)
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
        {name: float(one.mean()) for name, one in scores.items()},
        p_value,
        known,
    )
