# SPDX-License-Identifier: Apache-2.0
"""The smallest error of each kind that a comparison under each judge reveals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sim2real_eval.benches import findings
from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.adapting import adapt_options
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from .injection import ERRORS, InjectedError
from .options import SensitivityOptions
from .power import Detectable, Power, SizeSearch, Trials, unpaired_runs

Begin = Callable[[int], Callable[[], None]]
"""Takes the number of tasks that come next and returns what is to be called after each."""

FEWEST = 6
"""Pairs of runs; with fewer no p-value is 0.05."""

FEWEST_UNPAIRED = 4
"""Runs of each side, where they are not pairs."""


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
    0 recordings cannot reveal anything; must be 9 or more
    """
    options, begin = options or SensitivityOptions(), progress or (lambda _: lambda: None)
    count, least, more = len(recordings), FEWEST, ''
    if twin is None:
        least = 2 * FEWEST_UNPAIRED + 1
        more = f', or {FEWEST} with simulated sensors (--gps, --imu)'
    if count < least:
        raise MetricError(
            f'{count} recordings cannot reveal anything; must be {least} or more{more}'
        )
    runs = unpaired_runs(count) if twin is None else count
    twins = () if twin is None else (twin,)
    adapted_study, told = adapt_options(study or StudyOptions(), recordings, twins, judges)
    draws = 1 if twin is None else options.draws
    task = _Task(tuple(judges), twins, adapted_study)
    kinds = [ERRORS[name] for name in options.names]
    searches = [
        SizeSearch(number, error, options.power, same_runs=twin is None)
        for number in range(len(judges))
        for error in kinds
    ]
    there = _applicable(recordings[0], task, kinds)
    active = [one for one in searches if one.error in there]
    bare = [_Request(number, None, 0.0) for number in range(len(judges))]
    without: list[FloatArray] = []
    with Workers(jobs) as workers:

        def drawn(draws: int, seed: int) -> Trials:
            return Trials.of(len(recordings), draws, options.trials, options.permutations, seed)

        first = 0
        while active or not without:
            requests = [*bare, *(_Request(one.judge, one.error, one.next) for one in active)]
            advance = begin(len(recordings) + len(active))
            work = partial(
                _scores, requests=tuple(requests), task=task, draws=range(first, first + draws)
            )
            made = np.array(workers.map(work, recordings, progress=advance)).swapaxes(0, 1)
            without.append(made[: len(judges)])
            trials = drawn(draws, adapted_study.seed + first)
            pairs = [
                (made[one.judge], changed)
                for one, changed in zip(active, made[len(judges) :], strict=True)
            ]
            powers = workers.map(partial(_power, trials=trials), pairs, progress=advance)
            for one, power in zip(active, powers, strict=True):
                one.add(power)
            active = [one for one in active if not one.is_done]
            # Recordings that keep their own sensors have no further runs.
            first += draws if twins else 0
        base = np.concatenate(without if twins else without[:1], axis=2)
        trials = drawn(base.shape[2], adapted_study.seed)
        alarms = workers.map(
            partial(_power, trials=trials), [(one, one) for one in base], progress=begin(len(base))
        )
    found = tuple(one.result(judges[one.judge].label) for one in searches)
    notes = [*told, *(_note(one, options, runs) for one in found)]
    return Sensitivity(
        options,
        runs,
        twin is not None,
        found,
        {judge.label: one.share for judge, one in zip(judges, alarms, strict=True)},
        tuple(by_severity(notes)),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    judges: tuple[StudyJudge, ...]
    twins: tuple[Twin, ...]
    study: StudyOptions

    def plan(self, recording: StudyRecording, judge: int, draws: int = 1) -> RunPlan:
        setup = self.judges[judge].setup
        judging = Judging(setup, dataclasses.replace(self.study, repetitions=draws))
        return RunPlan(recording.read(setup.transforms), self.twins, judging)


def _applicable(
    recording: StudyRecording, task: _Task, kinds: Sequence[InjectedError]
) -> tuple[InjectedError, ...]:
    plan = task.plan(recording, 0)
    one = plan.recording(plan.twins[0] if task.twins else plan.real)
    return tuple(kind for kind in kinds if kind.applies(one))


def _scores(
    recording: StudyRecording, *, requests: Sequence[_Request], task: _Task, draws: range
) -> FloatArray:
    """Return RMSE and entropy difference of these draws, (requests, draws, 2)."""
    found = np.full((len(requests), len(draws), 2), np.nan)
    for number, judge in enumerate(task.judges):
        mine = [k for k, one in enumerate(requests) if one.judge == number]
        if not mine:
            continue
        plan = task.plan(recording, number, draws.stop)
        runs = plan.twins[draws.start :] if task.twins else (plan.real,)
        start = plan.start_of(judge.setup)._asdict()
        for at, run in enumerate(runs):
            bare = plan.recording(run)
            for k in mine:
                _, error, size = requests[k]
                try:
                    changed = bare
                    if error is not None:
                        labels = f'{recording.name} {run.repetition}', error.name
                        rng = stream(task.study.seed, 'sensitivity', *labels)
                        changed = error.change(bare, size, rng)
                    judged = judge.setup.judge(changed, **start)
                    score = plan.vepd_score(run, judged)
                except Sim2RealError:
                    if error is None:
                        raise
                    continue
                found[k, at] = score.rmse, score.entropy_difference
    return found


def _power(pair: tuple[FloatArray, FloatArray], *, trials: Trials) -> Power:
    return trials.power(*pair)


def _note(one: Detectable, options: SensitivityOptions, runs: int) -> Finding:
    error = one.error
    known = {'noun': error.noun, 'unit': '' if error.unit == '1' else error.unit}
    asked = {'runs': runs, 'power': 100.0 * options.power}
    if not one.points:
        note = findings.NOT_THERE(noun=error.noun)
    elif one.jump is not None:
        before, after = (100.0 * share for share in one.jump)
        ends = {'size': one.size, 'low': one.low}
        note = findings.JUMP(**known, **asked, **ends, before=before, after=after)
    elif one.size is not None:
        ends = {'size': one.size, 'low': one.low, 'high': one.high}
        note = findings.SMALLEST(**known, **asked, **ends)
    elif one.points[-1].power >= options.power:
        note = findings.AT_ONCE(**known, least=one.points[0].size)
    else:
        last = one.points[-1]
        note = findings.UNSEEN(**known, **asked, most=last.size, found=100.0 * last.power)
    return note.of(f'judge {one.judge}')
