# SPDX-License-Identifier: Apache-2.0
"""The smallest error of each kind that a comparison under each judge reveals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

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

Begin = Callable[[int], Callable[[], None]]
"""Takes the number of tasks that come next and returns what is to be called after each."""

FEWEST = 6
"""Runs of each side; with fewer no p-value is 0.05."""

_STEP = 4.0  # from size to size until one is seen and another is not
_NARROW = 1.35  # ratio of the two below which the last size is chosen between them
_SMALLEST = 1e-4  # least size, as a share of the first
_QUICK = 400  # trials of all sizes but the last
_PART = 4  # part of the draws that these take
_LASTS = 3  # sizes at most that take all
_CLOSE = 0.04  # difference of logarithms at which the last size is that looked for
_LEAST_SLOPE = 0.2


class Point(NamedTuple):
    """A size that was tried, and the share of studies that reveal it."""

    size: float
    power: float


@dataclasses.dataclass(frozen=True)
class Detectable:
    """The smallest error of a kind that a judge reveals.

    Attributes
    ----------
    judge : str
    error : InjectedError
    size : float or None
        With the wanted power, in the unit of the error; None where none of the points has it, or
        all have.
    low, high : float or None
        Interval of 95 %.
    points : tuple of Point
        Sizes that were tried, rising; none where the messages do not hold the quantity.
    """

    judge: str
    error: InjectedError
    size: float | None
    low: float | None
    high: float | None
    points: tuple[Point, ...]


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
        for of_each, count in ((few, _QUICK), (draws, options.trials))
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


class SizeSearch:
    """Sizes of one error under one judge, tried until one has the wanted power."""

    def __init__(self, judge: int, error: InjectedError, power: float) -> None:
        self.judge, self.error = judge, error
        self.next = error.start
        self.is_last = self.is_done = False
        self._wanted = power
        self._lasts = 0
        self._known: dict[float, Power] = {}

    def add(self, power: Power) -> None:
        """Take the power of the size that was next, and choose another one, or end."""
        self._known[self.next] = power
        if self.is_last:
            centre, _ = self._centre()
            self._lasts += 1
            self.is_done = self._lasts == _LASTS or abs(centre - math.log(self.next)) < _CLOSE
            if not self.is_done:
                self.next = math.exp(centre)
            return
        low, high = self._bracket()
        if low is None or high is None:
            size = min(self.next * _STEP, self.error.most)
            if low is None:
                size = max(self.next / _STEP, _SMALLEST * self.error.start)
            self.is_done = size in self._known
            self.next = size
            return
        level, slope = self._fit(low, high)
        share = (level - math.log(low)) / math.log(high / low) if slope > 0.0 else 0.5
        self.is_last = high / low <= _NARROW
        share = min(max(share, 0.0), 1.0) if self.is_last else min(max(share, 0.2), 0.8)
        self.next = low * (high / low) ** share
        if self.next in self._known:
            self.next *= 1.0 + 1e-6

    def result(self, judge: str) -> Detectable:
        """Return what was found."""
        points = tuple(Point(size, one.share) for size, one in sorted(self._known.items()))
        if not self.is_last:
            return Detectable(judge, self.error, None, None, None, points)
        centre, spread = self._centre()
        half = float(stats.t.ppf(0.975, self._known[self.next].degrees)) * spread
        ends = [math.exp(centre + sign * half) for sign in (0.0, -1.0, 1.0)]
        return Detectable(judge, self.error, ends[0], ends[1], ends[2], points)

    def _centre(self) -> tuple[float, float]:
        """Return the logarithm of the size that is looked for, and its standard error: from the
        last size, which was tried most often, along the fit.
        """
        last = self._known[self.next]
        low, high = self._bracket()
        _, slope = self._fit(low or self.next, high or self.next)
        share = min(max(last.share, 0.01), 0.99)
        probit = float(stats.norm.ppf(share))
        slope = max(slope, _LEAST_SLOPE)
        centre = math.log(self.next) + (float(stats.norm.ppf(self._wanted)) - probit) / slope
        return centre, last.error / float(stats.norm.pdf(probit)) / slope

    def _bracket(self) -> tuple[float | None, float | None]:
        """Return the largest size that is not seen, and the smallest above it that is."""
        low = max((s for s, one in self._known.items() if one.share < self._wanted), default=None)
        above = [s for s, one in self._known.items() if one.share >= self._wanted]
        high = min((s for s in above if low is None or s > low), default=None)
        return low, high

    def _fit(self, low: float, high: float) -> tuple[float, float]:
        """Return where the probit of the power, linear in the logarithm of the size, has the
        wanted power, and its slope; from sizes near the two ends.
        """
        near = {s: one for s, one in self._known.items() if low / 2.0 <= s <= 2.0 * high}
        share = np.clip([one.share for one in near.values()], 0.5 / _QUICK, 1.0 - 0.5 / _QUICK)
        probit = stats.norm.ppf(share)
        # A probit is known the better the less extreme it is.
        weight = stats.norm.pdf(probit) / np.sqrt(share * (1.0 - share))
        slope, level = np.polyfit(np.log(list(near)), probit, 1, w=weight)
        if slope <= 0.0:
            return math.log(math.sqrt(low * high)), 0.0
        return float((stats.norm.ppf(self._wanted) - level) / slope), float(slope)


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
