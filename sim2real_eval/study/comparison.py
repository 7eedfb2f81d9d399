# SPDX-License-Identifier: Apache-2.0
"""Real recordings against their simulated twins: judge both, score both, compare the scores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sim2real_eval.common.findings import Finding, by_severity, merge_models
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.distances import POOLED, VepdRow, vepd_table
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series_folder import REAL, SeriesKey
from sim2real_eval.metrics.uncertainty.by_scenario import (
    uncertainty_by_scenario,
    uncertainty_notes,
)
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.run_plan import ComparisonOptions, JudgedScore, RunPlan
from sim_sensors.core.errors import Sim2RealError

__all__ = [
    'Comparison',
    'ComparisonOptions',
    'Failure',
    'JudgedScore',
    'Source',
    'assemble',
    'compare',
    'compare_one',
]

_MOST_REASONS = 5


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a recording is and what it is called.

    Attributes
    ----------
    path : str
    name : str or None
        Label of rows and random streams that overrides the recording's own.
    topics : tuple of (role, topic)
        Topics that override the recording's own roles.
    scenario : str or None
        Label that overrides the recording's own.
    transforms : TransformFile or None
        Static transforms that replace or complete the recording's own.
    """

    path: str
    name: str | None = None
    topics: tuple[tuple[str, str], ...] = ()
    scenario: str | None = None
    transforms: TransformFile | None = None

    def read(self) -> Recording:
        """Read the recording."""
        recording = read_recording(
            self.path, topics=dict(self.topics) or None, scenario=self.scenario
        )
        if self.transforms is not None:
            transforms, notes = self.transforms.over(recording.transforms)
            recording = dataclasses.replace(
                recording, transforms=transforms, notes=(*recording.notes, *notes)
            )
        # Afterwards: the scenario may follow from the recording's own name, never from this one.
        return recording if self.name is None else dataclasses.replace(recording, name=self.name)


@dataclasses.dataclass(frozen=True)
class Failure:
    """A recording that could not be compared, and why."""

    recording: str
    reason: str

    def __str__(self) -> str:
        known = self.reason.startswith(self.recording)
        return self.reason if known else f'{self.recording}: {self.reason}'


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Result of a comparison.

    Attributes
    ----------
    runs : tuple of JudgedScore
        Real and simulated runs, in the order of the recordings.
    rows : tuple of VepdRow
    failures : tuple of Failure
    resampling : UncertaintyOptions
    seed : int
        Of the resamples.
    """

    runs: tuple[JudgedScore, ...]
    rows: tuple[VepdRow, ...]
    failures: tuple[Failure, ...]
    resampling: UncertaintyOptions = dataclasses.field(default_factory=UncertaintyOptions)
    seed: int = 0

    @functools.cached_property
    def uncertainty(self) -> dict[str, Uncertainty]:
        """Uncertainty of the rows, by scenario; found when first asked for."""

        def scored(model: str) -> ScoredRuns:
            runs = [run for run in self.runs if run.model == model]
            return ScoredRuns.of_scores(
                [run.score for run in runs],
                [run.recording for run in runs],
                [run.scenario for run in runs],
            )

        models = dict.fromkeys(row.model for row in self.rows)
        return uncertainty_by_scenario(
            scored(REAL),
            {model: scored(model) for model in models},
            self.resampling,
            seed=self.seed,
        )

    def scores(self, model: str, scenario: str | None = None) -> list[RunScore]:
        """Return the scores of a model (or `real`), of one scenario or of all."""
        return [
            run.score
            for run in self.runs
            if run.model == model and scenario in (None, run.scenario)
        ]

    def keys(self) -> list[SeriesKey]:
        """Return the key of each run in the paper's layout: runs count per source and scenario."""
        counts: dict[tuple[str, str], int] = {}
        keys = []
        for run in self.runs:
            group = (run.model, run.scenario)
            counts[group] = counts.get(group, 0) + 1
            keys.append(SeriesKey(*group, counts[group]))
        return keys

    def forward_rmse(self) -> dict[tuple[str, str], float]:
        """Return the mean body-forward RMSE in m/s by (model, scenario), `all` for pooled."""
        groups: dict[tuple[str, str], list[float]] = {}
        for run in self.runs:
            for scenario in (run.scenario, 'all'):
                groups.setdefault((run.model, scenario), []).append(run.forward.rmse)
        return {group: float(np.mean(values)) for group, values in groups.items()}

    def notes(self) -> list[Finding]:
        """Return what the user should know, merged over the runs, the most severe first."""
        scenarios = list(dict.fromkeys(row.scenario for row in self.rows))
        return by_severity(
            [
                *merge_models((run.model, run.notes) for run in self.runs),
                *uncertainty_notes(
                    self.uncertainty, [name for name in scenarios if name != POOLED]
                ),
            ]
        )


def compare(
    sources: Sequence[Source],
    options: ComparisonOptions,
    *,
    jobs: int = 1,
    progress: Callable[[], None] | None = None,
) -> Comparison:
    """Judge and score every recording and its twins, and compare the sets.

    Parameters
    ----------
    sources : sequence of Source
        Real recordings with truth.
    options : ComparisonOptions
    jobs : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Called whenever a recording is done.

    Raises
    ------
    Sim2RealError
        When no recording could be compared. A recording that cannot be while others can becomes
        a `Failure`.
    """
    judge_source = functools.partial(_outcome, options=options)
    outcomes = map_in_processes(judge_source, sources, jobs=jobs, progress=progress)
    return assemble(
        (
            Failure(source.path, outcome) if isinstance(outcome, str) else outcome
            for source, outcome in zip(sources, outcomes, strict=True)
        ),
        [twin.label for twin in options.twins],
        options.resampling,
        seed=options.seed,
    )


def assemble(
    outcomes: Iterable[Sequence[JudgedScore] | Failure],
    models: Sequence[str],
    resampling: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> Comparison:
    """Compare the sets of scores.

    Parameters
    ----------
    outcomes : iterable of (sequence of JudgedScore, or Failure)
        What became of each recording, in the order of the recordings.
    models : sequence of str
        Labels of the twins, in the order of the table.
    resampling : UncertaintyOptions, optional
    seed : int
        Of the resamples.

    Raises
    ------
    Sim2RealError
        When no recording could be compared, or two have one name.
    """
    runs: list[JudgedScore] = []
    failures: list[Failure] = []
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            failures.append(outcome)
        else:
            runs.extend(outcome)
    if not runs:
        if not failures:
            raise Sim2RealError('no recording given; must be one or more')
        reasons = list(dict.fromkeys(str(failure) for failure in failures))
        more = f'; and {len(reasons) - _MOST_REASONS} more' if len(reasons) > _MOST_REASONS else ''
        raise Sim2RealError('; '.join(reasons[:_MOST_REASONS]) + more)
    names = [run.recording for run in runs if run.model == REAL]
    for name in names:
        if names.count(name) > 1:
            raise Sim2RealError(f'{name}: is the name of several recordings; must be of one')
    real = _by_scenario(run for run in runs if run.model == REAL)
    sim = {model: _by_scenario(run for run in runs if run.model == model) for model in models}
    return Comparison(
        tuple(runs),
        tuple(vepd_table(real, sim)),
        tuple(failures),
        resampling or UncertaintyOptions(),
        seed,
    )


def _by_scenario(runs: Iterable[JudgedScore]) -> dict[str, list[RunScore]]:
    scores: dict[str, list[RunScore]] = {}
    for run in runs:
        scores.setdefault(run.scenario, []).append(run.score)
    return scores


def _outcome(source: Source, options: ComparisonOptions) -> list[JudgedScore] | str:
    try:
        return compare_one(source.read(), options)
    except Sim2RealError as error:
        return str(error)


def compare_one(recording: Recording, options: ComparisonOptions) -> list[JudgedScore]:
    """Judge and score one recording and its twins.

    Raises
    ------
    Sim2RealError
        When the recording lacks truth or what the judge needs.
    """
    plan = RunPlan(recording, options)
    return [plan.score(run, plan.judge(run)) for run in plan]
