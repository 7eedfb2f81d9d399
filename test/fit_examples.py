# SPDX-License-Identifier: Apache-2.0
"""What tests of fits share: candidates whose scores follow a known law instead of a judge's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.fitting.evaluations import Evaluations, RealRuns
from sim2real_eval.study.fitting.fit import deal_folds
from sim2real_eval.study.fitting.objective import METRICS
from sim2real_eval.study.fitting.search import search
from sim2real_eval.study.fitting.tuned import ParameterTarget, Tuned
from sim2real_eval.study.fitting.validation import Identified, Validation, identify, validate
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.run_plan import Judging

Law = Callable[[np.ndarray], np.ndarray]
SPREAD = 0.15


def tuned(name: str, *, start: float, low: float = 0.01, high: float = 1.0) -> Tuned:
    return Tuned((ParameterTarget('gps', ('noise', name)),), low, high, True, 'm', start)


class DrawnEvaluations(Evaluations):
    """Candidates with RMSE = law(parameters) times a lognormal factor, one per run and draw.

    The factors are those of all candidates, as with common random numbers. The entropy falls with
    the logarithm of the RMSE.
    """

    def __init__(
        self,
        law: Law,
        truth: Sequence[float],
        parameters: tuple[Tuned, ...],
        *,
        recordings: int,
        repetitions: int,
        seed: int,
    ) -> None:
        rng = np.random.default_rng(seed)
        self._law = law
        self._factors = rng.normal(size=(recordings, repetitions, 2))
        names = tuple(f'run_{i}' for i in range(recordings))
        scenarios = tuple(('line', 'circle')[i % 2] for i in range(recordings))
        scores = _scores(law(np.array([truth])), rng.normal(size=(recordings, 1, 2)))[0, :, 0]
        real = RealRuns((), names, scenarios, scores, (), ())
        options = Judging(JudgeSetup.load('clean'), StudyOptions(repetitions=repetitions))
        super().__init__(real, Twin('drawn', None, None), parameters, options)

    def tasks(self, candidates: int) -> int:
        return candidates

    def twin(self, values: np.ndarray) -> Twin:
        return Twin('drawn', None, None)

    def _judge(self, twins: Sequence[Twin], values: np.ndarray, progress: object) -> None:
        self.values = np.concatenate([self.values, values])
        units = [[t.coordinate(v) for t, v in zip(self.tuned, row, strict=True)] for row in values]
        self.units = np.concatenate([self.units, np.array(units)])
        self.tells = np.ones(len(self.values), dtype=bool)
        self.scores = np.concatenate([self.scores, _scores(self._law(values), self._factors)])


def _scores(sigma: np.ndarray, factors: np.ndarray) -> np.ndarray:
    rmse = sigma[:, None, None] * np.exp(SPREAD * factors[None, ..., 0])
    entropy = 0.3 + 0.05 * np.log(rmse) + 0.01 * factors[None, ..., 1]
    return np.stack([rmse, entropy, np.full_like(rmse, 0.6)], axis=-1)


def drawn_fit(
    law: Law,
    truth: Sequence[float],
    parameters: tuple[Tuned, ...],
    *,
    recordings: int = 10,
    repetitions: int = 2,
    folds: int = 5,
    budget: int = 20,
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[Validation, tuple[Identified, ...]]:
    """Fit to drawn runs; the truth is `law(truth)`."""
    evaluations = DrawnEvaluations(
        law, truth, parameters, recordings=recordings, repetitions=repetitions, seed=seed
    )
    real = evaluations.real
    objective = METRICS['vepd']
    held = deal_folds(real.scenarios, folds, 0)
    everything = np.arange(recordings)
    surface, error = search(
        evaluations,
        objective,
        [everything, *(np.setdiff1d(everything, one) for one in held)],
        budget=budget,
    )
    validation = validate(
        evaluations, 'vepd', held, options=UncertaintyOptions(resamples=resamples)
    )
    found = identify(
        surface,
        parameters,
        evaluations.units[validation.fitted],
        real.scenarios,
        repetitions=repetitions,
        error=error,
    )
    return validation, found
