# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit of sensor models to recordings: judge candidates, search, and assess the result."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import (
    Finding,
    FindingKind,
    FitError,
    UnusableFitError,
    by_severity,
    merge_findings,
)
from sim2real_eval.judge.estimate import UNUSABLE_CODES
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.recording.drives import recording_blocks
from sim2real_eval.recording.reading import Failure, RecordingSource
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.blocks import block_findings
from sim2real_eval.study.options import (
    BETTER,
    CANDIDATES_LEFT_OUT,
    FEW_RECORDINGS,
    NOT_IDENTIFIED,
    NOT_VALIDATED,
    ONE_DRIVE,
    OVER_FITS,
    UNCHANGED,
    UNPROVEN,
    FitOptions,
)
from sim2real_eval.study.run_plan import Judging, PlannedRun, RunPlan
from sim2real_eval.study.search.engine import (
    MIN_RECORDINGS,
    EvaluationPool,
    EvaluationStore,
    Progress,
    SearchSpace,
    deal_folds,
    independent_units,
)
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray
from .assessment import (
    BEFORE,
    HELD_OUT,
    FitValidation,
    ParameterEstimate,
    estimate_parameters,
    validate_fit,
)
from .model_parameters import ModelParameter, set_values
from .surface import METRICS, default_budget, score_points, search_surface


@dataclasses.dataclass(frozen=True, eq=False)
class RealRuns:
    """Scores of the judged recordings with their own sensors.

    Attributes
    ----------
    sources : tuple of RecordingSource
    names, scenarios : tuple of str
    scores : (n, 3) array
        RMSE in m/s, entropy of the estimate and of the truth.
    failures : tuple of Failure
        Recordings that could not be judged.
    notes : tuple of tuple of Finding
        Findings of each recording.
    blocks : tuple of str
        See `recording_blocks`; may be empty.
    """

    sources: tuple[RecordingSource, ...]
    names: tuple[str, ...]
    scenarios: tuple[str, ...]
    scores: FloatArray
    failures: tuple[Failure, ...]
    notes: tuple[tuple[Finding, ...], ...]
    blocks: tuple[str, ...] = ()

    @property
    def units(self) -> list[IntArray]:
        """Indices of the recordings that are held out and resampled together."""
        return independent_units(self.blocks or [''] * len(self.names))

    @property
    def points(self) -> FloatArray:
        """RMSE and entropy difference, `(n, 2)`."""
        return score_points(self.scores)


def judge_recordings(
    sources: Sequence[RecordingSource], judging: Judging, pool: EvaluationPool
) -> RealRuns:
    """Judge every recording with its own sensors, and recognise recordings of one drive.

    Raises FitError when no recording can be judged, or two have the same name.
    """
    outcomes = pool.map(
        functools.partial(_judge_recording, judging=judging),
        sources,
        keys=[('real', index) for index in range(len(sources))],
    )
    failures, judged = [], []
    for source, outcome in zip(sources, outcomes, strict=True):
        if isinstance(outcome, str):
            failures.append(Failure(source.path, outcome))
        else:
            judged.append((source, *outcome))
    if not judged:
        raise FitError('; '.join(dict.fromkeys(str(failure) for failure in failures)))
    judged_sources, names, scenarios, scores, notes = zip(*judged, strict=True)
    for name in names:
        if names.count(name) > 1:
            raise FitError(f'{name}: several recordings have this name; rename one')
    blocks = tuple(recording_blocks(judged_sources, judging.options.block))
    return RealRuns(
        judged_sources, names, scenarios, np.array(scores), tuple(failures), notes,
        blocks if any(blocks) else (),
    )  # fmt: skip


def _judge_recording(
    source: RecordingSource, judging: Judging
) -> tuple[str, str, list[float], tuple[Finding, ...]] | str:
    """Return name, scenario, scores and findings of a recording, or the error message."""
    try:
        plan = RunPlan(source.read(), (), judging)
        scored = plan.score(plan.real, plan.judge(plan.real))
    except Sim2RealError as error:
        return str(error)
    real = plan.maker.real
    return real.name, real.scenario, _score_row(scored.score), scored.notes


def _score_row(score: RunScore) -> list[float]:
    return [score.rmse, score.entropy_se, score.entropy_gt]


class CandidateScores:
    """Scores of every candidate model so far, the given model first.

    Attributes
    ----------
    real : RealRuns
    space : SearchSpace of ModelParameter
    values, coordinates : (c, d) array
        Parameters of each candidate.
    scores : (c, n, r, 3) array
        Scores as in `RealRuns`, by recording and repetition; NaN where the judge failed.
    notes : list of tuple of tuple of Finding
        Findings of every run of each candidate.
    is_informative : (c,) bool
        False for a given model whose axes have different values but are fitted with a common one:
        its scores do not belong to its coordinates.
    """

    def __init__(
        self,
        real: RealRuns,
        twin: Twin,
        parameters: tuple[ModelParameter, ...],
        judging: Judging,
        pool: EvaluationPool | None = None,
    ) -> None:
        self.real = real
        self.space = SearchSpace(parameters)
        self.values = np.empty((0, len(parameters)))
        self.coordinates = np.empty((0, len(parameters)))
        self.scores = np.empty((0, len(real.names), judging.options.repetitions, 3))
        self.notes: list[tuple[tuple[Finding, ...], ...]] = []
        self.is_informative = np.empty(0, dtype=np.bool_)
        self._twin = twin
        self._judging = judging
        self._pool = pool or EvaluationPool()

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each candidate could be judged on every recording, `(c,)`."""
        return np.asarray(np.isfinite(self.scores).all(axis=(1, 2, 3)))

    @property
    def points(self) -> FloatArray:
        """RMSE and entropy difference of every run, `(c, n, r, 2)`."""
        return score_points(self.scores)

    def begin(self, coordinates: FloatArray) -> None:
        """Judge the given model and the first candidates `(c, d)`.

        Raises FitError when the given model cannot be judged on every recording.
        """
        start = np.array(self.space.start)
        values = self.space.values(coordinates)
        twins = [self._twin, *(self.twin(row) for row in values)]
        self._judge(twins, np.concatenate([start[None], values]))
        self.is_informative[0] = self.twin(start) == self._twin
        if not self.usable[0]:
            raise FitError('the model to start from cannot be judged on every recording')

    def add(self, coordinates: FloatArray) -> None:
        """Judge candidates by their coordinates, `(c, d)`."""
        values = self.space.values(coordinates)
        self._judge([self.twin(row) for row in values], values)

    def twin(self, values: FloatArray) -> Twin:
        """Return the sensors with parameters set."""
        return set_values(self._twin, self.space.parameters, values)

    def _split(self, candidates: int) -> list[slice]:
        """Divide the candidates into parts, so that few recordings occupy all processes, too."""
        parts = min(candidates, math.ceil(2 * self._pool.jobs / len(self.real.sources)))
        edges = np.linspace(0, candidates, parts + 1).astype(int)
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]

    def _judge(self, twins: Sequence[Twin], values: FloatArray) -> None:
        first = len(self.values)
        labelled = tuple(
            dataclasses.replace(twin, label=f'candidate_{first + i}')
            for i, twin in enumerate(twins)
        )
        parts = self._split(len(twins))
        runs = self._pool.map(
            functools.partial(_simulate_candidates, judging=self._judging),
            [(source, labelled[part]) for source in self.real.sources for part in parts],
            keys=[
                ('simulated', name, first + part.start, values[part].tolist())
                for name in self.real.names
                for part in parts
            ],
        )
        runs = [SimulatedRuns(*run) for run in runs]
        by_source = [runs[i : i + len(parts)] for i in range(0, len(runs), len(parts))]
        scores = [
            np.concatenate([part.scores for part in source_parts]) for source_parts in by_source
        ]
        notes = [
            [note for part in source_parts for note in part.notes] for source_parts in by_source
        ]
        self.notes += [tuple(itertools.chain(*rows)) for rows in zip(*notes, strict=True)]
        self.extend(values, np.stack(scores, axis=1))

    def extend(self, values: FloatArray, scores: FloatArray) -> None:
        """Add judged candidates: values `(c, d)` and scores `(c, n, r, 3)`."""
        self.scores = np.concatenate([self.scores, scores])
        self.values = np.concatenate([self.values, values])
        self.coordinates = np.concatenate([self.coordinates, self.space.coordinates(values)])
        informative = np.ones(len(values), dtype=np.bool_)
        self.is_informative = np.concatenate([self.is_informative, informative])


class SimulatedRuns(NamedTuple):
    """Scores `(c, r, 3)` of candidates on one recording, and the findings of each run."""

    scores: FloatArray
    notes: tuple[tuple[tuple[Finding, ...], ...], ...]


def _simulate_candidates(
    task: tuple[RecordingSource, tuple[Twin, ...]], judging: Judging
) -> SimulatedRuns:
    """Simulate candidates on one recording and judge them."""
    source, twins = task
    plan = RunPlan(source.read(), twins, judging)
    rows, notes = zip(*(_score_run(plan, run) for run in plan.twins), strict=True)
    repetitions = judging.options.repetitions
    return SimulatedRuns(
        np.array(rows).reshape(len(twins), repetitions, 3),
        tuple(notes[i : i + repetitions] for i in range(0, len(notes), repetitions)),
    )


def _score_run(plan: RunPlan, run: PlannedRun) -> tuple[list[float], tuple[Finding, ...]]:
    try:
        scored = plan.score(run, plan.judge(run))
    except Sim2RealError:
        # The judge may fail with an extreme candidate, which the search then ignores.
        return [np.nan] * 3, ()
    return _score_row(scored.score), scored.notes


@dataclasses.dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model and its credibility.

    Attributes
    ----------
    options : FitOptions
    twin : Twin
        Sensors with the fitted parameters.
    parameters : tuple of ParameterEstimate
    validation : FitValidation
    candidates : CandidateScores
        All candidates that were judged.
    folds : tuple of (m,) int
        Indices of the recordings that each fold holds out.
    error : float
        Largest error of the interpolated objective at the last candidates.
    notes : tuple of Finding
        The most severe first.
    """

    options: FitOptions
    twin: Twin
    parameters: tuple[ParameterEstimate, ...]
    validation: FitValidation
    candidates: CandidateScores
    folds: tuple[IntArray, ...]
    error: float
    notes: tuple[Finding, ...]

    @property
    def real(self) -> RealRuns:
        """The recordings as judged."""
        return self.candidates.real


def fit(
    sources: Sequence[RecordingSource],
    twin: Twin,
    parameters: tuple[ModelParameter, ...],
    judging: Judging,
    options: FitOptions | None = None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    store: EvaluationStore | None = None,
) -> FittedModel:
    """Fit parameters so that the scores of simulated runs come closest to those of real runs.

    Parameters
    ----------
    sources : sequence of RecordingSource
        Real recordings with truth.
    twin : Twin
        Models to start from.
    parameters : tuple of ModelParameter
    judging : Judging
        Judge, metric, seed and repetitions.
    jobs : int
        Processes; the result does not depend on it.
    progress : Progress, optional
    store : EvaluationStore, optional
        Evaluations of an interrupted fit, which are not repeated.

    Raises
    ------
    Sim2RealError
        When no recording can be judged, or the given model fails on one of them.
    UnusableFitError
        When most recordings or most candidates have no usable estimate.
    """
    options = options or FitOptions()
    seed, repetitions = judging.options.seed, judging.options.repetitions
    budget = options.candidates or default_budget(len(parameters))
    least = 2 * len(parameters) + 6
    if budget < least:
        raise FitError(
            f'{budget} candidates for {len(parameters)} parameters are too few; must be '
            f'{least} or more'
        )
    with EvaluationPool(jobs, progress, store) as pool:
        real = judge_recordings(sources, judging, pool)
        _check_estimates(real)
        candidates = CandidateScores(real, twin, parameters, judging, pool)
        folds = deal_folds(real.scenarios, options.folds, seed, real.units)
        recordings = np.arange(len(real.names))
        surface, error = search_surface(
            candidates,
            METRICS[options.metric],
            [recordings, *(np.setdiff1d(recordings, held) for held in folds)],
            budget=budget,
            seed=seed,
        )
    unusable = int((~candidates.usable).sum())
    if 2 * unusable > len(candidates.usable):
        raise UnusableFitError(
            f'no fit: the judge failed with {unusable} of {len(candidates.usable)} candidates; '
            'narrow the bounds of --tune'
        )
    validation = validate_fit(
        candidates, options.metric, folds, options=options.uncertainty, seed=seed
    )
    fitted = validation.fitted
    estimates = estimate_parameters(
        surface,
        parameters,
        candidates.coordinates[fitted],
        real.scenarios,
        repetitions=repetitions,
        error=error,
        units=real.units,
        level=options.uncertainty.level,
        seed=seed,
    )
    runs = [('real', notes) for notes in real.notes]
    runs += [('simulated', notes) for notes in candidates.notes[fitted]]
    notes = [*_findings(candidates, estimates, validation), *merge_findings(runs)]
    return FittedModel(
        options,
        twin if fitted == 0 else candidates.twin(candidates.values[fitted]),
        estimates,
        validation,
        candidates,
        tuple(folds),
        error,
        tuple(by_severity(notes)),
    )


def _check_estimates(real: RealRuns) -> None:
    """Raise UnusableFitError if most recordings have no usable estimate."""
    problems = [str(failure) for failure in real.failures]
    for name, notes in zip(real.names, real.notes, strict=True):
        problems += [f'{name}: {note}' for note in notes if note.code in UNUSABLE_CODES][:1]
    count = len(real.names) + len(real.failures)
    if 2 * len(problems) > count:
        raise UnusableFitError(
            f'no fit: {len(problems)} of {count} recordings have no usable estimate, such as '
            f'{problems[0]}; check them with `sim2real check`'
        )


def _findings(
    candidates: CandidateScores, estimates: Sequence[ParameterEstimate], validation: FitValidation
) -> list[Finding]:
    real, scores = candidates.real, validation.scores
    count = len(real.units)
    gain = {
        'before': validation.before,
        'after': validation.after,
        'given': scores.get(BEFORE),
        'fitted': scores.get(HELD_OUT),
    }
    verdicts: dict[str, tuple[FindingKind, dict[str, Any]]] = {
        'unchanged': (UNCHANGED, {}),
        'better': (BETTER, {**gain, 'p': validation.p_value}),
        'over-fits': (OVER_FITS, gain),
        'unproven': (UNPROVEN, {**gain, 'p': validation.p_value}),
        'not validated': (NOT_VALIDATED, {}),
    }
    kind, values = verdicts[validation.verdict]
    notes = [kind(**values)]
    notes += [
        NOT_IDENTIFIED(estimate.parameter.name, verdict=estimate.verdict)
        for estimate in estimates
        if estimate.verdict != 'identified'
    ]
    if count < MIN_RECORDINGS:
        notes.append(FEW_RECORDINGS(count=count))
    if real.blocks:
        is_one = len(set(real.blocks)) == 1
        notes += [ONE_DRIVE(count=count)] if is_one else block_findings(real.names, real.blocks)
    failed = int((~candidates.usable).sum())
    if failed:
        notes.append(CANDIDATES_LEFT_OUT(count=failed))
    return notes
