# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The unit of work of a study: runs of one recording that one process judges."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from sim2real_eval.common.digests import ChangedError
from sim2real_eval.common.findings import RecordingError
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.options import REAL
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.world import World
from .identity import require_same, run_identity, this_process
from .options import StudyOptions
from .outcome import StudyFailure
from .recordings import StudyRecording
from .run import EstimateSignals, RunKey, StudyRun
from .run_plan import Judging, PlannedRun, RunPlan, Start
from .variants import Condition, StudyJudge

Save = Callable[[StudyRun, EstimateSignals], None]


class _UnitCase(NamedTuple):
    """The runs of a judge under a condition."""

    judge: StudyJudge
    condition: Condition
    name: str  # of the recording under the condition
    group: str


@dataclasses.dataclass(eq=False)
class _Prepared:
    """Plan of a recording, its runs and starts, for judges with the same mountings."""

    plan: RunPlan
    starts: dict[str, Start] = dataclasses.field(default_factory=dict)  # by label of the judge
    # The last simulated recording, which consecutive runs of judges and conditions share.
    _run: PlannedRun | None = None
    _recording: Recording | None = None

    @functools.cached_property
    def runs(self) -> dict[tuple[str, int], PlannedRun]:
        """All runs, by model and repetition."""
        return {(run.model, run.repetition): run for run in self.plan}

    def recording(self, run: PlannedRun) -> Recording:
        """Return the recording that is judged in a run."""
        if self._recording is None or self._run is not run:
            # Release the old one first: a recording may have hundreds of megabytes.
            self._recording = None
            self._run, self._recording = run, self.plan.recording(run)
        return self._recording

    def start(self, judge: StudyJudge) -> Start:
        """Return the start of a judge."""
        if judge.label not in self.starts:
            self.starts[judge.label] = self.plan.start_of(judge.setup)
        return self.starts[judge.label]


class _PreparedPlans(threading.local):
    """Prepared plans of the last recording that a thread judged, by mounting."""

    def __init__(self) -> None:
        self.token = ''
        self.plans: dict[Any, _Prepared | Sim2RealError] = {}


_PREPARED = _PreparedPlans()


@dataclasses.dataclass(frozen=True, eq=False)
class StudyUnit:
    """Runs of one recording that one process judges.

    Attributes
    ----------
    recording : StudyRecording
    judges : tuple of StudyJudge
    conditions : tuple of Condition
    twins : tuple of Twin
        Simulated variants.
    options : StudyOptions
    world : World or None
        Surroundings of simulated sensors.
    token : str
        Units with the same token share the recording, which a process then prepares once.
    keys : tuple of RunKey
        Runs to be judged. Runs of the same simulated recording are consecutive.
    identity : mapping or None
        Identity of the study, see `study_identity`; None if code and inputs may change.
    """

    recording: StudyRecording
    judges: tuple[StudyJudge, ...]
    conditions: tuple[Condition, ...]
    twins: tuple[Twin, ...]
    options: StudyOptions
    world: World | None
    token: str
    keys: tuple[RunKey, ...] = ()
    identity: Mapping[str, str] | None = None

    def with_all_keys(self) -> StudyUnit:
        """Return the unit with all runs of its judges."""
        cases = [self._keys(case) for case in self._cases()]
        # Runs of the same simulated recording become consecutive.
        keys = tuple(key for run_keys in zip(*cases, strict=True) for key in run_keys)
        return dataclasses.replace(self, keys=keys)

    def run_groups(self) -> dict[RunKey, str]:
        """Return the group of each run of its judges, by judge and condition."""
        return {key: case.group for case in self._cases() for key in self._keys(case)}

    def split(self, parts: int) -> list[StudyUnit]:
        """Divide the runs into at most `parts` units, never those of one simulated recording."""
        runs: dict[tuple[str, int], list[RunKey]] = {}
        for key in self.keys:
            runs.setdefault((key.model, key.repetition), []).append(key)
        bounds = [len(runs) * number // parts for number in range(parts + 1)]
        all_keys = list(runs.values())
        return [
            dataclasses.replace(self, keys=tuple(itertools.chain(*all_keys[first:end])))
            for first, end in itertools.pairwise(bounds)
            if first < end
        ]

    def judge(
        self, save: Save, is_over: Callable[[], bool] = lambda: False
    ) -> tuple[list[StudyFailure], StudyUnit]:
        """Judge the runs of `keys`, and save each with its signals.

        Parameters
        ----------
        save : callable
        is_over : callable, optional
            Called after each run; if it returns True, the remaining runs are not judged.

        Returns
        -------
        list of StudyFailure
            One for a recording that cannot be read or judged. After a failed run of a variant,
            its other repetitions are skipped.
        StudyUnit
            The unit with the remaining runs.

        Raises
        ------
        ChangedError
            When code or inputs are not those of the study. Runs that were saved are valid.
        """
        self.identities()
        cases = {(case.judge.label, case.name): case for case in self._cases()}
        failures: dict[tuple[str, str, str], StudyFailure] = {}

        def is_futile(key: RunKey) -> bool:
            # A failure of the recording or of its real run concerns all models.
            return any((*key[:2], model) in failures for model in ('', REAL, key.model))

        for number, key in enumerate(self.keys):
            if is_futile(key):
                continue
            if failure := self._judge_run(cases[key[:2]], key, save):
                failures[failure[:3]] = failure
            if is_over():
                rest = tuple(key for key in self.keys[number + 1 :] if not is_futile(key))
                return list(failures.values()), dataclasses.replace(self, keys=rest)
        return list(failures.values()), dataclasses.replace(self, keys=())

    def _judge_run(self, case: _UnitCase, key: RunKey, save: Save) -> StudyFailure | None:
        setup, model = case.judge.setup, ''
        try:
            prepared = self._prepare(setup)
            model = key.model
            plan, run = prepared.plan, prepared.runs[key.model, key.repetition]
            recording = case.condition.apply(prepared.recording(run), plan.maker.start_ns)
            judged = setup.judge(recording, **prepared.start(case.judge)._asdict())
            result, signals = plan.evaluate(run, setup, recording, judged, key, case.group)
            # After the run, because it may have imported more code.
            identity = self._identity(case.judge, run.twin)
            save(dataclasses.replace(result, identity=identity), signals)
        except ChangedError:
            raise
        except Sim2RealError as error:
            return StudyFailure(key.judge, key.recording, model, str(error))
        return None

    def identities(self) -> dict[tuple[str, str], Mapping[str, str]]:
        """Return the identities of the runs in this process, by labels of judge and model.

        Raises ChangedError if one is not that of the study.
        """
        return {
            (judge.label, REAL if twin is None else twin.label): self._identity(judge, twin)
            for judge in self.judges
            for twin in (None, *self.twins)
        }

    def _identity(self, judge: StudyJudge, twin: Twin | None) -> Mapping[str, str]:
        identity = run_identity(self.recording, judge, twin)
        if self.identity is not None:
            require_same(identity, self.identity, self.recording, this_process())
        return identity

    def _cases(self) -> Iterator[_UnitCase]:
        name, group = self.recording.name, self.recording.group
        for judge in self.judges:
            for condition in self.conditions:
                label = condition.label
                yield _UnitCase(
                    judge,
                    condition,
                    f'{name}@{label}' if label else name,
                    '+'.join(part for part in (group, label) if part),
                )

    def _keys(self, case: _UnitCase) -> list[RunKey]:
        real = [RunKey(case.judge.label, case.name, REAL, 1)]
        return (real if self.recording.has_real_run else []) + [
            RunKey(case.judge.label, case.name, twin.label, repetition)
            for twin in self.twins
            for repetition in range(1, self.options.repetitions + 1)
        ]

    def _prepare(self, setup: Judge) -> _Prepared:
        """Return the plan of the recording, which this thread may have prepared before."""
        if _PREPARED.token != self.token:
            release_recording()
            _PREPARED.token = self.token
        topics = tuple(getattr(setup, 'subscribed_topics', ()))
        mounting = (setup.base_link_frame, setup.transforms, topics)
        prepared = _PREPARED.plans
        if mounting not in prepared:
            try:
                recording = self.recording.read(setup.transforms)
                if self.recording.has_real_run:
                    _check_compared(recording, self.twins)
                judging = Judging(setup, self.options, self.world)
                prepared[mounting] = _Prepared(RunPlan(recording, self.twins, judging))
            except ChangedError:
                raise
            except Sim2RealError as error:
                prepared[mounting] = error
        result = prepared[mounting]
        if isinstance(result, Sim2RealError):
            raise result
        return result


def release_recording() -> None:
    """Release the recording that this thread has prepared."""
    _PREPARED.token, _PREPARED.plans = '', {}


def _check_compared(recording: Recording, twins: tuple[Twin, ...]) -> None:
    """Raise RecordingError if a sensor other than IMU and GPS is simulated but was not recorded.

    Real and simulated runs with different sensors cannot be compared.
    """
    for name in dict.fromkeys(name for twin in twins for name in twin.others):
        topic = f'/{KINDS.get(name).topic}'
        if name not in recording.roles and topic not in recording.messages:
            raise RecordingError(
                f'{recording.path or recording.name}: has no {name}, which models simulate; '
                f'must be recorded as {topic}'
            )
