# SPDX-License-Identifier: Apache-2.0
"""The smallest error of each kind that a comparison under each judge reveals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.adapting import adapted
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from . import findings
from .injection import ERRORS, InjectedError
from .options import FEWEST_DRAWS, SensitivityOptions
from .power import Power, Trials, unpaired_runs
from .size_search import QUICK, Detectable, SizeSearch

Begin = Callable[[int], Callable[[], None]]
"""Takes the number of tasks that come next and returns what is to be called after each."""

FEWEST = 6
"""Runs of each side; with fewer no p-value is 0.05."""

_PART = 4  # part of the draws that all sizes but the last take


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """What judges can see.

    Attributes
    ----------
    options : SensitivityOptions
    runs : int
        Of each side in a study.
    paired : bool
        Whether both sides follow the same motions.
    found : tuple of Detectable
        Judge by judge.
    false_alarms : mapping of str to float
        Share of studies without an error that reveal one, by judge.
    notes : tuple of Finding
    """

    options: SensitivityOptions
    runs: int
    paired: bool
    found: tuple[Detectable, ...]
    false_alarms: Mapping[str, float]
    notes: tuple[Finding, ...]

    @property
    def kinds(self) -> tuple[InjectedError, ...]:
        """The errors that were injected."""
        return tuple(dict.fromkeys(one.error for one in self.found))


class _Request(NamedTuple):
    judge: int
    error: InjectedError | None  # None: nothing is injected
    size: float
    draws: int


def sensitivity(
    recordings: Sequence[StudyRecording],
    judges: Sequence[StudyJudge],
    twin: Twin | None,
    options: SensitivityOptions | None = None,
    study: StudyOptions | None = None,
    *,
    jobs: int = 1,
    progress: Begin | None = None,
) -> Sensitivity:
    """Find the smallest errors that a comparison of so many recordings reveals.

    Parameters
    ----------
    recordings : sequence of StudyRecording
        With truth.
    judges : sequence of StudyJudge
    twin : Twin or None
        Sensors that are simulated on the true motion of the recordings, with and without errors.
        None: the recordings' own, of which half stand against the other half.
    options : SensitivityOptions, optional
    study : StudyOptions, optional
        How runs are simulated, judged and scored.
    jobs : int
        Processes; the result does not depend on it.
    progress : callable, optional
        See `Begin`.

    Raises
    ------
    Sim2RealError
        For too few recordings, or one that cannot be read or judged.

    Examples
    --------
    >>> try:
    ...     sensitivity([], [], None)
    ... except Sim2RealError as error:
    ...     print(str(error).partition(',')[0])
    0 recordings cannot reveal anything; must be 13 or more
    """
    options, begin = options or SensitivityOptions(), progress or (lambda _: lambda: None)
    runs = len(recordings) if twin is not None else unpaired_runs(len(recordings))
    if runs < FEWEST:
        least = FEWEST if twin is not None else 2 * FEWEST + 1
        raise MetricError(
            f'{len(recordings)} recordings cannot reveal anything; must be {least} or more'
            + ('' if twin is not None else f', or {FEWEST} with simulated sensors (--gps, --imu)')
        )
    twins = () if twin is None else (twin,)
    adapted_study, told = adapted(study or StudyOptions(), recordings, twins, judges)
    draws = 1 if twin is None else options.draws
    task = _Task(
        tuple(judges), twins, dataclasses.replace(adapted_study, repetitions=draws),
    )  # fmt: skip
    seed, kinds = adapted_study.seed, [ERRORS[name] for name in options.names]
    few = min(draws, max(draws // _PART, FEWEST_DRAWS))
    quick, thorough = (
        Trials.of(len(recordings), of_each, count, options.permutations, seed)
        for of_each, count in ((few, QUICK), (draws, options.trials))
    )
    searches = [
        SizeSearch(number, error, options.power)
        for number in range(len(judges))
        for error in kinds
    ]
    with Workers(jobs) as workers:

        def scored(
            requests: Sequence[_Request], more: int
        ) -> tuple[FloatArray, Callable[[], None]]:
            advance = begin(len(recordings) + more)
            work = partial(_scores, requests=tuple(requests), task=task)
            return np.array(workers.map(work, recordings, progress=advance)), advance

        bare = [_Request(number, None, 0.0, draws) for number in range(len(judges))]
        base, advance = scored(bare, len(bare))
        alarms = workers.map(
            partial(_power, trials=thorough), [(one, one) for one in _by_request(base)],
            progress=advance,
        )  # fmt: skip
        there = _applicable(recordings[0], task, kinds)
        active = [one for one in searches if one.error in there]
        while active:
            requests = [
                _Request(one.judge, one.error, one.next, draws if one.is_last else few)
                for one in active
            ]
            made, advance = scored(requests, len(requests))
            pairs = [
                (base[:, request.judge, : request.draws], changed[:, : request.draws])
                for request, changed in zip(requests, _by_request(made), strict=True)
            ]
            # Of the sizes as they are now: what is added chooses the next.
            lasts = [one.is_last for one in active]
            for trials, last in ((quick, False), (thorough, True)):
                chosen = [k for k, one in enumerate(lasts) if one == last]
                powers = workers.map(
                    partial(_power, trials=trials), [pairs[k] for k in chosen], progress=advance
                )
                for k, power in zip(chosen, powers, strict=True):
                    active[k].add(power)
            active = [one for one in active if not one.is_done]
    found = tuple(one.result(judges[one.judge].label) for one in searches)
    notes = [*told, *(_note(one, options, runs) for one in found)]
    return Sensitivity(
        options,
        runs,
        quick.paired,
        found,
        {judge.label: one.share for judge, one in zip(judges, alarms, strict=True)},
        tuple(by_severity(notes)),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    judges: tuple[StudyJudge, ...]
    twins: tuple[Twin, ...]
    study: StudyOptions

    def plan(self, recording: StudyRecording, judge: int) -> RunPlan:
        setup = self.judges[judge].setup
        judging = Judging(setup, self.study)
        return RunPlan(recording.read(setup.transforms), self.twins, judging)


def _applicable(
    recording: StudyRecording, task: _Task, kinds: Sequence[InjectedError]
) -> tuple[InjectedError, ...]:
    plan = task.plan(recording, 0)
    one = plan.recording(plan.twins[0] if task.twins else plan.real)
    return tuple(kind for kind in kinds if kind.applies(one))


def _scores(recording: StudyRecording, *, requests: Sequence[_Request], task: _Task) -> FloatArray:
    """Return RMSE and entropy difference of all draws, (requests, draws, 2)."""
    found = np.full((len(requests), task.study.repetitions, 2), np.nan)
    for number, judge in enumerate(task.judges):
        mine = [k for k, one in enumerate(requests) if one.judge == number]
        if not mine:
            continue
        plan = task.plan(recording, number)
        for run in plan.twins if task.twins else (plan.real,):
            bare = plan.recording(run)
            for k in mine:
                _, error, size, draws = requests[k]
                if run.repetition > draws:
                    continue
                try:
                    changed = bare
                    if error is not None:
                        labels = f'{recording.name} {run.repetition}', error.name
                        rng = stream(task.study.seed, 'sensitivity', *labels)
                        changed = error.change(bare, size, rng)
                    judged = judge.setup.judge(
                        changed, start_ns=plan.maker.start_ns, start_heading=plan.start_heading
                    )
                    score = plan.score(run, judged).score
                except Sim2RealError:
                    if error is None:
                        raise
                    continue
                found[k, run.repetition - 1] = score.rmse, score.entropy_difference
    return found


def _by_request(scores: FloatArray) -> list[FloatArray]:
    """Return (recordings, draws, 2) of each request, from (recordings, requests, draws, 2)."""
    return list(np.moveaxis(scores, 1, 0))


def _power(pair: tuple[FloatArray, FloatArray], *, trials: Trials) -> Power:
    return trials.power(*pair)


def _note(one: Detectable, options: SensitivityOptions, runs: int) -> Finding:
    error = one.error
    if not one.points:
        return findings.NOT_THERE(noun=error.noun).of(f'judge {one.judge}')
    known = {'noun': error.noun, 'unit': '' if error.unit == '1' else error.unit}
    power = 100.0 * options.power
    if one.size is not None and one.low is not None and one.high is not None:
        return findings.SMALLEST(
            **known, size=one.size, low=one.low, high=one.high, runs=runs, power=power
        ).of(f'judge {one.judge}')
    if one.points[-1].power >= options.power:
        note = findings.AT_ONCE(**known, least=one.points[0].size)
    else:
        last = one.points[-1]
        note = findings.UNSEEN(
            **known, most=last.size, runs=runs, power=power, found=100.0 * last.power
        )
    return note.of(f'judge {one.judge}')
