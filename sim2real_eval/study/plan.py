# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The plan of a study: its units of work, and the record that identifies it."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.findings import Finding, RecordingError, to_records
from sim2real_eval.common.results import file_digest, versions
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.options import REAL
from sim2real_eval.recording.drives import AUTO
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.motion.paths import DRIVES
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.world import World, load_world
from .blocks import assign_blocks
from .options import UNSAID, StudyOptions
from .outcome import EstimateSignals, RunKey, StudyFailure, StudyRun
from .recordings import (
    PathDrive,
    RecordingProperties,
    StandIn,
    StudyRecording,
    adapt_options,
    examine_recordings,
    read_contents,
)
from .run_plan import Judging, PlannedRun, RunPlan, Start
from .study_file import Overrides, StudyFile
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
    """Plan of a recording for judges with the same mountings, and what they share."""

    plan: RunPlan
    starts: dict[str, Start] = dataclasses.field(default_factory=dict)  # by label of the judge
    # The last simulated recording: several judges and conditions follow one another on it.
    _run: PlannedRun | None = None
    _recording: Recording | None = None

    @functools.cached_property
    def runs(self) -> dict[tuple[str, int], PlannedRun]:
        """All runs, by model and repetition."""
        return {(run.model, run.repetition): run for run in self.plan}

    def recording(self, run: PlannedRun) -> Recording:
        """Return the recording that is judged in a run."""
        if self._recording is None or self._run is not run:
            # Recordings may be hundreds of megabytes each: one at a time.
            self._recording = None
            self._run, self._recording = run, self.plan.recording(run)
        return self._recording

    def start(self, judge: StudyJudge) -> Start:
        """Return the start of a judge."""
        if judge.label not in self.starts:
            self.starts[judge.label] = self.plan.start_of(judge.setup)
        return self.starts[judge.label]


class _Held(threading.local):
    """What this thread has prepared for the last recording that it judged."""

    def __init__(self) -> None:
        self.token = ''
        self.prepared: dict[Any, _Prepared | Sim2RealError] = {}


_HELD = _Held()


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
        Runs that are to be judged. Those of one simulated recording follow one another.
    """

    recording: StudyRecording
    judges: tuple[StudyJudge, ...]
    conditions: tuple[Condition, ...]
    twins: tuple[Twin, ...]
    options: StudyOptions
    world: World | None
    token: str
    keys: tuple[RunKey, ...] = ()

    def with_all_keys(self) -> StudyUnit:
        """Return the unit with all runs of its judges."""
        cases = [self._keys(case) for case in self._cases()]
        keys = tuple(key for same in zip(*cases, strict=True) for key in same)
        return dataclasses.replace(self, keys=keys)

    def run_groups(self) -> dict[RunKey, str]:
        """Return the group of each run of its judges, by judge and condition."""
        return {key: case.group for case in self._cases() for key in self._keys(case)}

    def split(self, parts: int) -> list[StudyUnit]:
        """Divide the runs into at most so many units; those of one simulated recording stay."""
        runs: dict[tuple[str, int], list[RunKey]] = {}
        for key in self.keys:
            runs.setdefault((key.model, key.repetition), []).append(key)
        bounds = [len(runs) * number // parts for number in range(parts + 1)]
        all_keys = list(runs.values())
        return [
            dataclasses.replace(self, keys=tuple(key for keys in all_keys[a:b] for key in keys))
            for a, b in itertools.pairwise(bounds)
            if a < b
        ]

    def judge(
        self, save: Save, is_over: Callable[[], bool] = lambda: False
    ) -> tuple[list[StudyFailure], StudyUnit]:
        """Judge the runs of `keys`, and save each with its signals.

        Parameters
        ----------
        save : callable
        is_over : callable, optional
            Asked after each run whether the rest is left to another call.

        Returns
        -------
        list of StudyFailure
            One for a recording that cannot be read or judged. After a failed run of a variant,
            its other repetitions are not tried.
        StudyUnit
            The unit with the runs that are left.
        """
        cases = {(case.judge.label, case.name): case for case in self._cases()}
        failures: dict[tuple[str, str, str], StudyFailure] = {}

        def is_futile(key: RunKey) -> bool:
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
            save(*plan.evaluate(run, setup, recording, judged, key, case.group))
        except Sim2RealError as error:
            return StudyFailure(key.judge, key.recording, model, str(error))
        return None

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
        """Read and check the recording, unless this thread did so for this unit or another."""
        if _HELD.token != self.token:
            release_recording()
            _HELD.token = self.token
        topics = tuple(getattr(setup, 'subscribed_topics', ()))
        mounting = (setup.base_link_frame, setup.transforms, topics)
        prepared = _HELD.prepared
        if mounting not in prepared:
            try:
                recording = self.recording.read(setup.transforms)
                if self.recording.has_real_run:
                    _check_compared(recording, self.twins)
                judging = Judging(setup, self.options, self.world)
                prepared[mounting] = _Prepared(RunPlan(recording, self.twins, judging))
            except Sim2RealError as error:
                prepared[mounting] = error
        result = prepared[mounting]
        if isinstance(result, Sim2RealError):
            raise result
        return result


def release_recording() -> None:
    """Forget the recording that this thread has prepared."""
    _HELD.token, _HELD.prepared = '', {}


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


_FORMAT = 1
_IGNORED = (
    'title', 'about', 'command', 'shipped', 'phrases', 'adapted', 'uncertainty', 'more_metrics',
    'block',
)  # fmt: skip
"""Keys of the record that do not change a run."""
_MISSING = 'nothing'
_UNITS_PER_WORKER = 8
_RUNS_PER_UNIT = 8


@dataclasses.dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study file with the contents of its recordings and all derived options.

    Attributes
    ----------
    file : StudyFile
    recordings : tuple of StudyRecording
        Recordings of the file, then the drives that simulated sensors follow, if any.
    record : mapping
        Plain values that identify the study; see `StudyOutcome.record`.
    notes : tuple of Finding
        Findings about the blocks of the recordings.
    """

    file: StudyFile
    recordings: tuple[StudyRecording, ...]
    record: Mapping[str, Any]
    notes: tuple[Finding, ...] = ()

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Overrides | None = None) -> StudyPlan:
        """Read and plan a study file; see `StudyFile.read` for errors."""
        return cls.from_file(StudyFile.read(name_or_path, overrides))

    @classmethod
    def from_file(cls, file: StudyFile) -> StudyPlan:
        """Plan a study; read its recordings.

        Raises
        ------
        Sim2RealError
            When simulated sensors cannot follow drives as the file asks.
        """
        if file.signals is not None:
            problem = 'compares signals without judges; run it by `sim2real study`'
            raise ParameterError(file.where, 'signals', problem)
        file = dataclasses.replace(file, recordings=read_contents(file.recordings))
        examined: dict[str, RecordingProperties] = {}
        if file.options.adapts or file.options.block == AUTO:
            examined = examine_recordings(file.recordings, file.twins, file.judges)
        options, notes = adapt_options(
            file.options, file.recordings, file.twins, file.judges, examined
        )
        spans = {name: properties.span for name, properties in examined.items()}
        recordings, block_notes = assign_blocks(file.recordings, options.block, spans)
        file = dataclasses.replace(file, options=options, recordings=recordings)
        if file.drive is not None:
            drives = _drives(file, file.drive)
            common = {recording.name for recording in recordings} & {
                drive.name for drive in drives
            }
            if common:
                raise Sim2RealError(
                    f'{min(common)}: is the name of a simulated drive and of a recording; rename '
                    'the recording, or --simulate-on truth'
                )
            recordings = (*recordings, *drives)
        record = {**_record(file, recordings), 'adapted': to_records(notes)}
        return cls(file, recordings, record, block_notes)

    def units(self, workers: int, stored: Collection[RunKey] = frozenset()) -> list[StudyUnit]:
        """Return the work that is left when some runs are stored, recording by recording.

        Judges that are fast share a unit, so that they share its simulated recordings. Units are
        divided if there are few for so many workers. Runs do not depend on how they are divided.
        """
        fast = tuple(judge for judge in self.file.judges if judge.is_fast)
        slow = [(judge,) for judge in self.file.judges if judge not in fast]
        parts = [fast, *slow] if fast else slow
        units = []
        for recording in self.recordings:
            for part in parts:
                unit = self._unit(recording, part).with_all_keys()
                left = tuple(key for key in unit.keys if key not in stored)
                if left:
                    units.append(dataclasses.replace(unit, keys=left))
        if workers > 1 and units:
            units = [part for unit in units for part in unit.split(_parts(unit, units, workers))]
        return units

    def run_groups(self) -> dict[RunKey, str]:
        """Return the group of each run, sorted by judge and recording."""
        return {
            key: group
            for judge in self.file.judges
            for recording in self.recordings
            for key, group in self._unit(recording, (judge,)).run_groups().items()
        }

    @functools.cached_property
    def _world(self) -> World | None:
        return None if self.file.world is None else load_world(self.file.world)

    def _unit(self, recording: StudyRecording, judges: tuple[StudyJudge, ...]) -> StudyUnit:
        file = self.file
        twins = file.twins
        if file.drive is not None and recording.has_real_run:
            twins = ()
        token = f'{self._token}/{recording.name}/{"/".join(judge.label for judge in judges)}'
        return StudyUnit(
            recording, judges, file.conditions, twins, file.options, self._world, token
        )

    @functools.cached_property
    def _token(self) -> str:
        return uuid.uuid4().hex


def _parts(unit: StudyUnit, units: Sequence[StudyUnit], workers: int) -> int:
    """Return the number of units into which one is divided, so that no worker is idle for long.

    Every unit reads and checks its recording, which takes as long as a few runs.
    """
    evenly = math.ceil(_UNITS_PER_WORKER * workers / len(units))
    at_least = math.ceil(workers / len(units))
    return max(1, min(evenly, len(unit.keys) // _RUNS_PER_UNIT), min(at_least, len(unit.keys)))


_LOADED: list[tuple[tuple[StudyJudge, ...], tuple[Twin, ...]]] = []


def load_compiled(file: StudyFile) -> None:
    """Compile the loops that a study needs, or load them from the cache.

    This judges 1 s of every model by one judge, and 1 s of one model by every other judge.
    """
    if any(judges is file.judges and twins is file.twins for judges, twins in _LOADED):
        return
    _LOADED.append((file.judges, file.twins))
    drive = StudyRecording('short', '', PathDrive('accelerating', 0, 'short', duration=1.0))
    options = dataclasses.replace(file.options, repetitions=1)
    world = None if file.world is None else load_world(file.world)
    fast = tuple(judge for judge in file.judges if judge.is_fast)
    for judges, twins in ((fast[:1], file.twins), (fast[1:], file.twins[:1])):
        unit = StudyUnit(drive, judges, file.conditions[:1], twins, options, world, 'short')
        unit.with_all_keys().judge(lambda run, signals: None)
    release_recording()


def describe_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return the first difference between the records of two studies, or None.

    Paths and blocks of recordings are not compared, only their digests: no run depends on them.
    """
    # Options may be derived from models, recordings and judges, so these come first.
    causes = [name for name in ('models', 'recordings', 'judges') if name in new]
    for name in dict.fromkeys([*causes, *new]):
        if name in _IGNORED:
            continue
        old_value = old.get(name, UNSAID.get(name))
        difference = _difference(name, _without_ignored(old_value), _without_ignored(new[name]))
        if difference is not None:
            return difference
    return None


def _without_ignored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _without_ignored(part)
            for key, part in value.items()
            if key not in ('path', 'block')
        }
    if isinstance(value, (list, tuple)):
        return [_without_ignored(part) for part in value]
    return value


def _difference(key: str, old: Any, new: Any) -> str | None:
    if isinstance(old, dict) and isinstance(new, dict):
        if key == 'models' and old.keys() != new.keys():
            return f'{key}: were {_short(old)}, are {_short(new)}'
        differences = (
            _difference(f'{key}.{name}', old.get(name, _MISSING), new.get(name, _MISSING))
            for name in dict.fromkeys([*new, *old])
        )
        return next(filter(None, differences), None)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f'{key}: were {len(old)}, are {len(new)}'
        pairs = enumerate(zip(old, new, strict=True))
        differences = (_difference(f'{key}[{number}]', *pair) for number, pair in pairs)
        return next(filter(None, differences), None)
    return None if old == new else f'{key}: was {_short(old)}, is {_short(new)}'


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = ', '.join(map(str, value))
    text = ' '.join(str(value).split())
    return text if len(text) <= 60 else f'{text[:57]}...'


def _drives(file: StudyFile, drive: PathDrive) -> list[StudyRecording]:
    """Return as many drives of each scenario and group as there are recordings of it."""
    for twin in file.twins:
        if twin.gps is None or twin.imu is None:
            raise Sim2RealError(
                f'{file.where}: models: {twin.label} keeps a real sensor, which a simulated drive '
                'does not have; must simulate both, or --simulate-on truth'
            )
    counts: dict[tuple[str, str], int] = {}
    drives = []
    for recording in file.recordings:
        scenario = _scenario(recording)
        if scenario is None:
            continue
        if scenario not in DRIVES:
            raise Sim2RealError(
                f'{recording.name}: scenario {scenario} cannot be driven, only '
                f'{", ".join(DRIVES)}; give its scenario, or --simulate-on truth'
            )
        place = (recording.group, scenario)
        counts[place] = number = counts.get(place, 0) + 1
        # All groups have the same drives, so that only the real side differs.
        run = f'drive_{scenario}_{number}'
        name = f'drive_{recording.group}_{scenario}_{number}' if recording.group else run
        origin = dataclasses.replace(drive, scenario=scenario, run=run)
        drives.append(StudyRecording(name, recording.group, origin))
    return drives


def _scenario(recording: StudyRecording) -> str | None:
    """Return the scenario of a recording, or None if it cannot be read."""
    if isinstance(recording.origin, StandIn):
        return recording.origin.drive.scenario
    if isinstance(recording.origin, RecordingSource) and recording.origin.scenario is not None:
        return recording.origin.scenario
    try:
        return recording.read().scenario
    except Sim2RealError:
        return None


def _record(file: StudyFile, recordings: tuple[StudyRecording, ...]) -> dict[str, Any]:
    return {
        'format': _FORMAT,
        'title': file.title,
        'about': file.description,
        'command': list(file.command),
        'shipped': file.is_shipped,
        'synthetic': any(
            recording.synthetic for recording in recordings if recording.has_real_run
        ),
        'versions': versions(),
        **file.options.to_mapping(),
        'simulate_on': 'truth' if file.drive is None else 'drive',
        'world': file.world and {'name': file.world.name, 'sha256': file_digest(file.world)},
        'conditions': [condition.to_mapping() for condition in file.conditions],
        'more_metrics': list(file.more_metrics),
        'judges': [judge.to_mapping() for judge in file.judges],
        'models': {twin.label: twin.to_mapping() for twin in file.twins},
        **({'set': dict(file.settings)} if file.settings else {}),
        'phrases': {twin.label: twin.phrase for twin in file.twins if twin.phrase},
        'recordings': [recording.to_mapping() for recording in recordings],
    }
