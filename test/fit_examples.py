# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Candidates of a fit whose scores follow a known law."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.fitting.assessment import (
    FitValidation,
    ParameterEstimate,
    estimate_parameters,
    validate_fit,
)
from sim2real_eval.study.fitting.fit import CandidateScores, RealRuns
from sim2real_eval.study.fitting.model_parameters import ModelParameter, ParameterTarget
from sim2real_eval.study.fitting.surface import METRICS, search_surface
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.run_plan import Judging
from sim2real_eval.study.search.engine import deal_folds

Law = Callable[[np.ndarray], np.ndarray]
SPREAD = 0.15


def gps_noise(name: str, *, start: float, low: float = 0.01, high: float = 1.0) -> ModelParameter:
    return ModelParameter((ParameterTarget('gps', ('noise', name)),), low, high, True, 'm', start)


class DrawnScores(CandidateScores):
    """Candidates with RMSE = law(parameters) times lognormal factors that all candidates share."""

    def __init__(
        self,
        law: Law,
        truth: Sequence[float],
        parameters: tuple[ModelParameter, ...],
        *,
        recordings: int,
        repetitions: int,
        seed: int,
        blocks: tuple[str, ...] = (),
    ) -> None:
        rng = np.random.default_rng(seed)
        self._law = law
        self._factors = rng.normal(size=(recordings, repetitions, 2))
        names = tuple(f'run_{i}' for i in range(recordings))
        scenarios = tuple(('line', 'circle')[i % 2] for i in range(recordings))
        scores = _scores(law(np.array([truth])), rng.normal(size=(recordings, 1, 2)))[0, :, 0]
        real = RealRuns((), names, scenarios, scores, (), (), blocks)
        options = Judging(JudgeSetup.load('clean'), StudyOptions(repetitions=repetitions))
        super().__init__(real, Twin('drawn', None, None), parameters, options)

    def twin(self, values: np.ndarray) -> Twin:
        return Twin('drawn', None, None)

    def begin(self, coordinates: np.ndarray) -> None:
        super().begin(coordinates)
        self.is_informative[:] = True

    def _judge(self, twins: Sequence[Twin], values: np.ndarray) -> None:
        self.extend(values, _scores(self._law(values), self._factors))


def _scores(sigma: np.ndarray, factors: np.ndarray) -> np.ndarray:
    rmse = sigma[:, None, None] * np.exp(SPREAD * factors[None, ..., 0])
    entropy = 0.3 + 0.05 * np.log(rmse) + 0.01 * factors[None, ..., 1]
    return np.stack([rmse, entropy, np.full_like(rmse, 0.6)], axis=-1)


def drawn_fit(
    law: Law,
    truth: Sequence[float],
    parameters: tuple[ModelParameter, ...],
    *,
    recordings: int = 10,
    repetitions: int = 2,
    folds: int = 5,
    budget: int = 20,
    seed: int = 0,
    resamples: int = 1000,
    blocks: tuple[str, ...] = (),
) -> tuple[FitValidation, tuple[ParameterEstimate, ...]]:
    """Fit to drawn runs; the truth is `law(truth)`."""
    candidates = DrawnScores(
        law, truth, parameters, recordings=recordings, repetitions=repetitions, seed=seed,
        blocks=blocks,
    )  # fmt: skip
    real = candidates.real
    folds_held_out = deal_folds(real.scenarios, folds, 0, real.units)
    all_recordings = np.arange(recordings)
    surface, error = search_surface(
        candidates,
        METRICS['vepd'],
        [all_recordings, *(np.setdiff1d(all_recordings, held) for held in folds_held_out)],
        budget=budget,
    )
    validation = validate_fit(
        candidates, 'vepd', folds_held_out, options=UncertaintyOptions(resamples=resamples)
    )
    estimates = estimate_parameters(
        surface, parameters, candidates.coordinates[validation.fitted], real.scenarios,
        repetitions=repetitions, error=error, units=real.units,
    )  # fmt: skip
    return validation, estimates
