# SPDX-License-Identifier: Apache-2.0
"""Everything that a study is to do, as units of work and as plain values that identify it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import file_digest, versions
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.motion.path_following import DRIVES
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.world import World, load_world
from .adapting import adapted
from .judges import StudyJudge
from .options import UNSAID, StudyOptions
from .recordings import PathDrive, StandIn, StudyRecording, read_contents
from .run import EstimateSignals, RunKey, StudyFailure, StudyRun
from .run_plan import Judging, PlannedRun, RunPlan
from .study_file import Overrides, StudyFile
from .variants import Condition

Save = Callable[[StudyRun, EstimateSignals], None]
_Made = tuple[RunPlan, Callable[[PlannedRun], Recording]]
"""The plan of a recording, and what is simulated of it, kept for the next judge."""


class _Case(NamedTuple):
    """Runs of a judge under a condition."""

    judge: StudyJudge
    condition: Condition
    name: str
    group: str


@dataclasses.dataclass(frozen=True, eq=False)
class StudyUnit:
    """A recording, and who judges it and its twins."""

    recording: StudyRecording
    judges: tuple[StudyJudge, ...]
    conditions: tuple[Condition, ...]
    twins: tuple[Twin, ...]  # simulated variants
    options: StudyOptions
    world: World | None = None  # what surrounds simulated sensors

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
                    made[placed] = self._made(setup)
            except Sim2RealError as error:
                failures.append(StudyFailure(case.judge.label, case.name, '', str(error)))
                continue
            failures += self._judge(case, *made[placed], stored, save)
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

    def _made(self, setup: Judge) -> _Made:
        recording = self.recording.read(setup.transforms)
        if self.recording.has_real_run:
            _check_compared(recording, self.twins)
        plan = RunPlan(recording, self.twins, Judging(setup, self.options, self.world))
        return plan, functools.cache(plan.recording)

    def _judge(
        self,
        case: _Case,
        plan: RunPlan,
        recording_of: Callable[[PlannedRun], Recording],
        stored: Collection[RunKey],
        save: Save,
    ) -> list[StudyFailure]:
        failures: dict[str, StudyFailure] = {}
        setup, start_ns = case.judge.setup, plan.maker.start_ns
        start = plan.start_of(setup)._asdict()
        for run in plan if self.recording.has_real_run else plan.twins:
            key = RunKey(case.judge.label, case.name, run.model, run.repetition)
            if key in stored or key.model in failures:
                continue
            try:
                recording = case.condition.apply(recording_of(run), start_ns)
                judged = setup.judge(recording, **start)
                save(*plan.kept(run, setup, recording, judged, key, case.group))
            except Sim2RealError as error:
                failures[key.model] = StudyFailure(key.judge, key.recording, key.model, str(error))
                if key.model == REAL:
                    break
        return list(failures.values())


def _check_compared(recording: Recording, twins: tuple[Twin, ...]) -> None:
    """Refuse a sensor that is simulated and was not recorded: two sides that hear other sensors
    are not compared. IMU and GPS are looked after where twins are made.
    """
    for name in dict.fromkeys(name for twin in twins for name in twin.others):
        topic = f'/{KINDS.get(name).topic}'
        if name not in recording.roles and topic not in recording.messages:
            raise RecordingError(
                f'{recording.path or recording.name}: no {name}, which models simulate; must be '
                f'recorded as {topic}'
            )


_FORMAT = 1
_WORDS = (
    'title', 'about', 'command', 'shipped', 'phrases', 'adapted', 'uncertainty', 'more_metrics',
)  # fmt: skip
"""What may change without changing a run."""
_NOTHING = 'nothing'


@dataclasses.dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study file carried out as far as nothing is judged.

    Attributes
    ----------
    file : StudyFile
    recordings : tuple of StudyRecording
        Those of the file, then the drives that simulated sensors follow, if they follow any.
    record : mapping
        What identifies the study, as plain values; see `StudyOutcome.record`.
    """

    file: StudyFile
    recordings: tuple[StudyRecording, ...]
    record: Mapping[str, Any]

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Overrides | None = None) -> StudyPlan:
        """Read a study file and plan it; see `StudyFile.read` for what is raised."""
        return cls.of(StudyFile.read(name_or_path, overrides))

    @classmethod
    def of(cls, file: StudyFile) -> StudyPlan:
        """Plan a study; read its recordings.

        Raises
        ------
        Sim2RealError
            When simulated sensors cannot follow drives as the file asks.
        """
        file = dataclasses.replace(file, recordings=read_contents(file.recordings))
        options, told = adapted(file.options, file.recordings, file.twins, file.judges)
        file = dataclasses.replace(file, options=options)
        recordings = file.recordings
        if file.drive is not None:
            drives = _drives(file, file.drive)
            taken = {one.name for one in recordings} & {one.name for one in drives}
            if taken:
                raise Sim2RealError(
                    f'{min(taken)}: is the name of a simulated drive, so no recording may have '
                    'it; rename it, or --simulate-on truth'
                )
            recordings = (*recordings, *drives)
        record = {**_record(file, recordings), 'adapted': to_records(told)}
        return cls(file, recordings, record)

    def units(self, jobs: int) -> list[StudyUnit]:
        """Return the work in pieces, recording by recording.

        Judges that take milliseconds share what is read and simulated, unless there are fewer
        recordings than keep `jobs` processes busy.
        """
        file = self.file
        fast = tuple(judge for judge in file.judges if judge.is_fast)
        if len(self.recordings) < 2 * jobs:
            fast = ()
        alone = [(judge,) for judge in file.judges if judge not in fast]
        parts = [fast, *alone] if fast else alone
        return [self._unit(recording, part) for recording in self.recordings for part in parts]

    def run_groups(self) -> dict[RunKey, str]:
        """Return the group of each run, judge by judge, in each recording by recording."""
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
        return StudyUnit(recording, judges, file.conditions, twins, file.options, self._world)


_LOADED: list[tuple[tuple[StudyJudge, ...], tuple[Twin, ...]]] = []


def load_compiled(file: StudyFile) -> None:
    """Compile or load what a study needs, once, before processes are started that each need it.

    That is done by judging 1 s of every model, and of one by every judge.
    """
    if any(judges is file.judges and twins is file.twins for judges, twins in _LOADED):
        return
    _LOADED.append((file.judges, file.twins))
    drive = StudyRecording('short', '', PathDrive('accelerating', 0, 'short', duration=1.0))
    options = dataclasses.replace(file.options, repetitions=1)
    world = None if file.world is None else load_world(file.world)
    fast = tuple(judge for judge in file.judges if judge.is_fast)
    for judges, twins in ((fast[:1], file.twins), (fast[1:], file.twins[:1])):
        unit = StudyUnit(drive, judges, file.conditions[:1], twins, options, world)
        unit.judge((), lambda run, signals: None)


def change(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Say in which two records are not of one study; None when they are.

    The place of a recording does not count, its digest does.
    """
    # Options may follow from models and recordings: the cause is told, not what came of it.
    causes = [name for name in ('models', 'recordings', 'judges') if name in new]
    for name in dict.fromkeys([*causes, *new]):
        if name in _WORDS:
            continue
        given = old.get(name, UNSAID.get(name))
        found = _difference(name, _plain(given), _plain(new[name]))
        if found is not None:
            return found
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if key != 'path'}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _difference(key: str, old: Any, new: Any) -> str | None:
    if isinstance(old, dict) and isinstance(new, dict):
        if key == 'models' and old.keys() != new.keys():
            return f'{key}: were {_short(old)}, are {_short(new)}'
        found = (
            _difference(f'{key}.{name}', old.get(name, _NOTHING), new.get(name, _NOTHING))
            for name in dict.fromkeys([*new, *old])
        )
        return next((one for one in found if one is not None), None)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f'{key}: were {len(old)}, are {len(new)}'
        pairs = enumerate(zip(old, new, strict=True))
        found = (_difference(f'{key}[{number}]', *pair) for number, pair in pairs)
        return next((one for one in found if one is not None), None)
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
                f'{file.where}: models: {twin.label} keeps a real sensor, which is nowhere on a '
                'simulated drive; must simulate both, or --simulate-on truth'
            )
    counts: dict[tuple[str, str], int] = {}
    found = []
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
        # The same drives for every group: only the real side differs.
        run = f'drive_{scenario}_{number}'
        name = f'drive_{recording.group}_{scenario}_{number}' if recording.group else run
        origin = dataclasses.replace(drive, scenario=scenario, run=run)
        found.append(StudyRecording(name, recording.group, origin))
    return found


def _scenario(recording: StudyRecording) -> str | None:
    """Return the scenario of a recording; None for one that cannot be read."""
    if isinstance(recording.origin, StandIn):
        return recording.origin.drive.scenario
    if isinstance(recording.origin, Source) and recording.origin.scenario is not None:
        return recording.origin.scenario
    try:
        return recording.read().scenario
    except Sim2RealError:
        return None


def _record(file: StudyFile, recordings: tuple[StudyRecording, ...]) -> dict[str, Any]:
    return {
        'format': _FORMAT,
        'title': file.title,
        'about': file.about,
        'command': list(file.command),
        'shipped': file.is_shipped,
        'synthetic': any(one.synthetic for one in recordings if one.has_real_run),
        'versions': versions(),
        **file.options.to_mapping(),
        'simulate_on': 'truth' if file.drive is None else 'drive',
        'world': file.world and {'name': file.world.name, 'sha256': file_digest(file.world)},
        'conditions': [one.to_mapping() for one in file.conditions],
        'more_metrics': list(file.more_metrics),
        'judges': [judge.to_mapping() for judge in file.judges],
        'models': {twin.label: twin.to_mapping() for twin in file.twins},
        'phrases': {twin.label: twin.phrase for twin in file.twins if twin.phrase},
        'recordings': [one.to_mapping() for one in recordings],
    }
