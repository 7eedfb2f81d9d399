# SPDX-License-Identifier: Apache-2.0
"""One recording of a study under some of its judges: what a process does at a time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.observation import observe
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyFailure, StudyRun
from sim2real_eval.study.run_plan import JudgedScore, Judging, PlannedRun, RunPlan
from sim2real_eval.study.variants import Condition
from sim_sensors.core.errors import Sim2RealError

Save = Callable[[StudyRun, EstimateSignals], None]


class _Case(NamedTuple):
    """Runs of a judge under a condition."""

    judge: StudyJudge
    condition: Condition
    name: str
    group: str


@dataclasses.dataclass(frozen=True, eq=False)
class StudyUnit:
    """A recording, and who judges it and its twins.

    Attributes
    ----------
    twins : tuple of Twin
        Simulated variants.
    """

    recording: StudyRecording
    judges: tuple[StudyJudge, ...]
    conditions: tuple[Condition, ...]
    twins: tuple[Twin, ...]
    options: StudyOptions

    def run_groups(self) -> dict[RunKey, str]:
        """Return the group of each of its runs."""
        return {key: case.group for case in self._cases() for key in self._keys(case)}

    def judge(self, stored: Collection[RunKey], save: Save) -> list[StudyFailure]:
        """Judge what is not stored yet.

        `stored`: runs that are there already; `save`: called with every run and its signals as
        soon as it is judged.

        Returns
        -------
        list of StudyFailure
            Of a recording that cannot be read or judged one; after a run of a variant failed, its
            repetitions are not tried.
        """
        failures = []
        made: dict[tuple[str, TransformFile | None], _Made] = {}
        for case in self._cases():
            if all(key in stored for key in self._keys(case)):
                continue
            setup = case.judge.setup
            placed = (setup.base_link_frame, setup.transforms)
            try:
                if placed not in made:
                    made[placed] = self._made(case.judge)
            except Sim2RealError as error:
                failures.append(StudyFailure(case.judge.label, case.name, '', str(error)))
                continue
            failures += self._judge(case, made[placed], stored, save)
        return failures

    def _cases(self) -> Iterator[_Case]:
        one = self.recording
        for judge in self.judges:
            for condition in self.conditions:
                label = condition.label
                yield _Case(
                    judge,
                    condition,
                    f'{one.name}@{label}' if label else one.name,
                    '+'.join(part for part in (one.group, label) if part),
                )

    def _keys(self, case: _Case) -> list[RunKey]:
        real = [RunKey(case.judge.label, case.name, REAL, 1)]
        return (real if self.recording.has_real_run else []) + [
            RunKey(case.judge.label, case.name, twin.label, repetition)
            for twin in self.twins
            for repetition in range(1, self.options.repetitions + 1)
        ]

    def _made(self, judge: StudyJudge) -> _Made:
        recording = self.recording
        if isinstance(recording.origin, Source):
            # The sensors of twins sit where the judge is told that they do.
            source = dataclasses.replace(recording.origin, transforms=judge.setup.transforms)
            recording = dataclasses.replace(recording, origin=source)
        judging = Judging(judge.setup, self.options)
        return _Made(RunPlan(recording.read(), self.twins, judging))

    def _judge(
        self, case: _Case, made: _Made, stored: Collection[RunKey], save: Save
    ) -> list[StudyFailure]:
        failures: dict[str, StudyFailure] = {}
        for planned in made.plan if self.recording.has_real_run else made.plan.twins:
            key = RunKey(case.judge.label, case.name, planned.model, planned.repetition)
            if key in stored or key.model in failures:
                continue
            try:
                save(*self._run(case, made, planned, key))
            except Sim2RealError as error:
                failures[key.model] = StudyFailure(key.judge, key.recording, key.model, str(error))
                if key.model == REAL:
                    break
        return list(failures.values())

    def _run(
        self, case: _Case, made: _Made, planned: PlannedRun, key: RunKey
    ) -> tuple[StudyRun, EstimateSignals]:
        plan, setup = made.plan, case.judge.setup
        recording = case.condition.apply(made.recording(planned), plan.maker.start_ns)
        judged = setup.judge(
            recording, start_ns=plan.maker.start_ns, start_heading=plan.start_heading
        )
        scored = plan.score(planned, judged)
        return kept_run(key, case.group, setup, recording, judged, scored, self.options)


def kept_run(
    key: RunKey,
    group: str,
    setup: Judge,
    recording: Recording,
    judged: JudgedRun,
    scored: JudgedScore,
    options: StudyOptions,
) -> tuple[StudyRun, EstimateSignals]:
    """Return what is kept of a run: its numbers and signals.

    Raises Sim2RealError see `observe`.

    Parameters
    ----------
    recording : Recording
        What was judged.
    judged : JudgedRun
        What came of it.
    scored : JudgedScore
        From `RunPlan.score`.
    """
    seen = observe(setup, recording, judged, scored, options.metric)
    values = {**_values(scored), **seen.values}
    run = StudyRun(
        key,
        scored.scenario,
        group,
        {name: value for name, value in values.items() if math.isfinite(value)},
        scored.notes,
    )
    return run, seen.signals


class _Made:
    """The plan of a recording; what is simulated is kept for the next judge."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self._recordings: dict[tuple[str, int], Recording] = {}

    def recording(self, run: PlannedRun) -> Recording:
        key = (run.model, run.repetition)
        if key not in self._recordings:
            self._recordings[key] = self.plan.recording(run)
        return self._recordings[key]


def _values(scored: JudgedScore) -> dict[str, float]:
    values = {name: float(value) for name, value in dataclasses.asdict(scored.score).items()}
    return {
        **values,
        'forward_rmse': scored.forward.rmse,
        'estimates': float(scored.estimates),
        'fixes_used': float(scored.fixes_used),
    }
