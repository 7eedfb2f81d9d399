# SPDX-License-Identifier: Apache-2.0
"""Real recordings against their simulated twins: judge both, score both, compare the scores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge_setup import JudgeSetup, velocity_series
from sim2real_eval.metrics import MetricOptions, RunScore, VepdRow, advice, score_run, vepd_table
from sim2real_eval.metrics.scores import prepare
from sim2real_eval.recording import Recording, read_recording
from sim2real_eval.run_notes import merge_notes
from sim2real_eval.series import VelocitySeries
from sim2real_eval.series_folder import REAL, SeriesKey
from sim2real_eval.twin import Twin, TwinMaker
from sim2real_eval.workers import map_in_processes
from sim_sensors.errors import Sim2RealError

__all__ = [
    'Comparison',
    'ComparisonOptions',
    'Failure',
    'JudgedScore',
    'Source',
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
    """

    path: str
    name: str | None = None
    topics: tuple[tuple[str, str], ...] = ()
    scenario: str | None = None

    def read(self) -> Recording:
        """Read the recording."""
        recording = read_recording(
            self.path, topics=dict(self.topics) or None, scenario=self.scenario
        )
        # Afterwards: the scenario may follow from the recording's own name, never from this one.
        return recording if self.name is None else dataclasses.replace(recording, name=self.name)


@dataclasses.dataclass(frozen=True, eq=False)
class ComparisonOptions:
    """What is compared and how.

    Attributes
    ----------
    twins : tuple of Twin
        Simulated variants, with distinct labels.
    setup : JudgeSetup
    metric : MetricOptions
    component : str
        Speed that is compared; see `sim2real_eval.metrics.speed`.
    seed : int
    repetitions : int
        Simulated runs per recording and variant.
    match_rates : bool
        Give simulated sensors the rates of the real ones instead of their models' own.
    start_heading : bool
        Start the judge with the true heading, in real and simulated runs alike.
    """

    twins: tuple[Twin, ...]
    setup: JudgeSetup
    metric: MetricOptions = dataclasses.field(default_factory=MetricOptions)
    component: str = 'horizontal'
    seed: int = 0
    repetitions: int = 1
    match_rates: bool = False
    start_heading: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class JudgedScore:
    """One judged run.

    Attributes
    ----------
    model : str
        `real` or the label of a twin.
    recording, scenario : str
    repetition : int
        1 for real runs.
    series : VelocitySeries
        What was scored: re-zeroed, warm-up left out.
    score : RunScore
    forward : RunScore
        The same with body-forward speed, which unlike horizontal speed sees the heading.
    estimates, fixes_used : int
    notes : tuple of str
    """

    model: str
    recording: str
    scenario: str
    repetition: int
    series: VelocitySeries
    score: RunScore
    forward: RunScore
    estimates: int
    fixes_used: int
    notes: tuple[str, ...]


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
    """

    runs: tuple[JudgedScore, ...]
    rows: tuple[VepdRow, ...]
    failures: tuple[Failure, ...]

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

    def notes(self) -> list[str]:
        """Return what the user should know, alike notes of many runs merged into one line."""
        return merge_notes(
            ('real' if run.model == REAL else 'simulated', run.notes) for run in self.runs
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
    runs: list[JudgedScore] = []
    failures: list[Failure] = []
    judge_source = functools.partial(_outcome, options=options)
    outcomes = map_in_processes(judge_source, sources, jobs=jobs, progress=progress)
    for source, outcome in zip(sources, outcomes, strict=True):
        if isinstance(outcome, str):
            failures.append(Failure(source.path, outcome))
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
    sim = {
        twin.label: _by_scenario(run for run in runs if run.model == twin.label)
        for twin in options.twins
    }
    return Comparison(tuple(runs), tuple(vepd_table(real, sim)), tuple(failures))


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
    base = options.setup.filter.base_link_frame
    maker = TwinMaker(recording, seed=options.seed, base_frame=base)
    about = tuple(str(note) for note in recording.notes) + maker.remarks
    runs = [_judged_score(maker, maker.real, REAL, 1, options, about)]
    for twin in options.twins:
        fitted = maker.at_real_rates(twin) if options.match_rates else twin
        for repetition in range(1, options.repetitions + 1):
            simulated = maker.make(fitted, repetition)
            notes = maker.likeness_notes(fitted)
            runs.append(_judged_score(maker, simulated, twin.label, repetition, options, notes))
    return runs


def _judged_score(
    maker: TwinMaker,
    recording: Recording,
    model: str,
    repetition: int,
    options: ComparisonOptions,
    notes: tuple[str, ...],
) -> JudgedScore:
    truth = maker.truth
    heading = None
    if options.start_heading:
        heading = float(Rotation.from_quat(truth.orientation[0]).as_euler('xyz')[2])
    judged = options.setup.judge(recording, start_ns=maker.start_ns, start_heading=heading)

    def series_of(component: str) -> VelocitySeries:
        return velocity_series(
            judged,
            truth,
            origin_ns=maker.start_ns,
            component=component,
            name=f'{recording.name} ({model})',
        )

    whole = series_of(options.component)
    series = prepare(whole, options.metric)
    # What `prepare` did must not be done twice.
    rest = dataclasses.replace(options.metric, warmup=0.0, rezero='none')
    return JudgedScore(
        model=model,
        recording=recording.name,
        scenario=recording.scenario,
        repetition=repetition,
        series=series,
        score=score_run(series, rest),
        forward=score_run(series_of('forward'), options.metric),
        estimates=len(judged),
        fixes_used=len(judged.gps_stamp_ns),
        notes=notes + judged.notes + tuple(advice(whole, options.metric)),
    )
