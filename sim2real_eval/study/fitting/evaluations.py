# SPDX-License-Identifier: Apache-2.0
"""Candidates judged: each is simulated on every recording with the very same random draws."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import FitError
from sim2real_eval.common.findings import Finding
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.recording.reading import Failure, Source
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.run_plan import Judging, PlannedRun, RunPlan
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from .objective import coordinates
from .tuned import Tuned, set_values


class _Task(NamedTuple):
    source: Source
    twins: tuple[Twin, ...]


class _Simulated(NamedTuple):
    scores: FloatArray  # (c, r, 3)
    notes: tuple[tuple[tuple[Finding, ...], ...], ...]  # of every candidate's repetitions


@dataclasses.dataclass(frozen=True, eq=False)
class RealRuns:
    """Scores of the recordings themselves, each judged once."""

    sources: tuple[Source, ...]
    names: tuple[str, ...]
    scenarios: tuple[str, ...]
    scores: FloatArray  # (n, 3) RMSE in m/s, entropy of the estimate and of the truth
    failures: tuple[Failure, ...]  # recordings that are not among them, and why
    notes: tuple[tuple[Finding, ...], ...]  # of each recording

    @property
    def points(self) -> FloatArray:
        """RMSE and entropy difference, `(n, 2)`."""
        return coordinates(self.scores)


def judge_real(
    sources: Sequence[Source],
    judging: Judging,
    workers: Workers,
    *,
    progress: Callable[[], None] | None = None,
) -> RealRuns:
    """Judge every recording as it is.

    Raises FitError when none can be judged, or two have one name.
    """
    found = workers.map(functools.partial(_real, judging=judging), sources, progress=progress)
    outcomes = list(zip(sources, found, strict=True))
    failures = tuple(Failure(source.path, one) for source, one in outcomes if isinstance(one, str))
    kept = [(source, *one) for source, one in outcomes if not isinstance(one, str)]
    if not kept:
        raise FitError('; '.join(dict.fromkeys(str(failure) for failure in failures)))
    judged, names, scenarios, scores, notes = zip(*kept, strict=True)
    for name in names:
        if names.count(name) > 1:
            raise FitError(f'{name}: is the name of several recordings; must be of one')
    return RealRuns(judged, names, scenarios, np.array(scores), failures, notes)


def _real(
    source: Source, judging: Judging
) -> tuple[str, str, list[float], tuple[Finding, ...]] | str:
    try:
        plan = RunPlan(source.read(), (), judging)
        scored = plan.score(plan.real, plan.judge(plan.real))
    except Sim2RealError as error:
        return str(error)
    real = plan.maker.real
    return real.name, real.scenario, _three(scored.score), scored.notes


class Evaluations:
    """Scores of every candidate that was judged, in the order in which they were asked for.

    `twin` is the model to start from. `workers` judge, and are kept over all rounds: to start them
    takes seconds.
    """

    def __init__(
        self,
        real: RealRuns,
        twin: Twin,
        tuned: tuple[Tuned, ...],
        judging: Judging,
        workers: Workers | None = None,
    ) -> None:
        self.real = real
        self.tuned = tuned
        # (c, d) Parameters of each candidate, the start first, and their `Tuned.coordinate`.
        self.values = np.empty((0, len(tuned)))
        self.units = np.empty((0, len(tuned)))
        # (c, n, r, 3) As `RealRuns.scores`, per recording and repetition; NaN: the judge failed.
        self.scores = np.empty((0, len(real.names), judging.options.repetitions, 3))
        # What every candidate's runs told, recording by recording and repetition by repetition.
        self.notes: list[tuple[tuple[Finding, ...], ...]] = []
        # (c,) Whether a candidate tells of its coordinates: the start does not when axes that are
        # tuned as one differ in it.
        self.tells = np.empty(0, dtype=np.bool_)
        self._twin = twin
        self._judging = judging
        self._workers = workers or Workers()

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Which candidates the judge could judge on every recording, `(c,)` bool."""
        return np.asarray(np.isfinite(self.scores).all(axis=(1, 2, 3)))

    @property
    def points(self) -> FloatArray:
        """RMSE and entropy difference of every run, `(c, n, r, 2)`."""
        return coordinates(self.scores)

    def begin(self, units: FloatArray, progress: Callable[[], None] | None = None) -> None:
        """Judge the model as it was given, and the first candidates `(c, d)`.

        Raises FitError when the model cannot be judged on every recording.
        """
        given = np.array([one.start for one in self.tuned])
        values = self._values(units)
        twins = [self._twin, *(self.twin(row) for row in values)]
        self._judge(twins, np.concatenate([given[None], values]), progress)
        self.tells[0] = self.twin(given) == self._twin
        if not self.usable[0]:
            raise FitError('the model to start from cannot be judged on every recording')

    def add(self, units: FloatArray, progress: Callable[[], None] | None = None) -> None:
        """Judge candidates by their coordinates, `(c, d)`."""
        values = self._values(units)
        self._judge([self.twin(row) for row in values], values, progress)

    def _values(self, units: FloatArray) -> FloatArray:
        rows = [[one.value(u) for one, u in zip(self.tuned, row, strict=True)] for row in units]
        return np.array(rows).reshape(-1, len(self.tuned))

    def twin(self, values: FloatArray) -> Twin:
        """Return the sensors with parameters set."""
        return set_values(self._twin, self.tuned, values)

    def tasks(self, candidates: int) -> int:
        """Return how often progress is told when so many candidates are judged."""
        return len(self.real.sources) * len(self._pieces(candidates))

    def _pieces(self, candidates: int) -> list[slice]:
        # A few recordings alone would not keep all processes busy.
        pieces = min(candidates, -(-2 * self._workers.jobs // len(self.real.sources)))
        edges = np.linspace(0, candidates, pieces + 1).astype(int)
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]

    def _judge(
        self, twins: Sequence[Twin], values: FloatArray, progress: Callable[[], None] | None
    ) -> None:
        labelled = tuple(
            dataclasses.replace(twin, label=f'candidate_{len(self.values) + i}')
            for i, twin in enumerate(twins)
        )
        pieces = self._pieces(len(twins))
        tasks = [_Task(source, labelled[p]) for source in self.real.sources for p in pieces]
        found = self._workers.map(
            functools.partial(_simulated, judging=self._judging), tasks, progress=progress
        )
        of_sources = [found[i : i + len(pieces)] for i in range(0, len(tasks), len(pieces))]
        rows = [np.concatenate([piece.scores for piece in one]) for one in of_sources]
        notes = [[told for piece in one for told in piece.notes] for one in of_sources]
        self.notes += [tuple(itertools.chain(*told)) for told in zip(*notes, strict=True)]
        self.scores = np.concatenate([self.scores, np.stack(rows, axis=1)])
        self.values = np.concatenate([self.values, values])
        units = [
            [one.coordinate(v) for one, v in zip(self.tuned, row, strict=True)] for row in values
        ]
        self.units = np.concatenate([self.units, np.array(units)])
        self.tells = np.concatenate([self.tells, np.ones(len(values), dtype=np.bool_)])


def _simulated(task: _Task, judging: Judging) -> _Simulated:
    """Return what candidates came to on one recording."""
    plan = RunPlan(task.source.read(), task.twins, judging)
    rows, notes = zip(*(_attempt(plan, run) for run in plan.twins), strict=True)
    draws = judging.options.repetitions
    return _Simulated(
        np.array(rows).reshape(len(task.twins), draws, 3),
        tuple(notes[i : i + draws] for i in range(0, len(notes), draws)),
    )


def _attempt(plan: RunPlan, run: PlannedRun) -> tuple[list[float], tuple[Finding, ...]]:
    try:
        scored = plan.score(run, plan.judge(run))
    except Sim2RealError:
        # A candidate may be so bad that the judge fails; the search then leaves it.
        return [np.nan] * 3, ()
    return _three(scored.score), scored.notes


def _three(score: RunScore) -> list[float]:
    return [score.rmse, score.entropy_se, score.entropy_gt]
