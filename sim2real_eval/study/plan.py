# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The plan of a study: its units of work, and the record that identifies it."""

from __future__ import annotations

import dataclasses
import functools
import math
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.common.digests import ChangedError, file_digest
from sim2real_eval.common.findings import Finding, to_records
from sim2real_eval.common.results import versions
from sim2real_eval.recording.drives import AUTO
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.motion.paths import DRIVES
from sim_sensors.world.world import World, load_world
from .blocks import assign_blocks
from .identity import code_digests, require_same, study_identity
from .metric import METRICS
from .options import UNSAID
from .record import describe_difference
from .recordings import (
    PathDrive,
    RecordingProperties,
    StandIn,
    StudyRecording,
    adapt_options,
    examine_recordings,
    read_contents,
)
from .run import RunKey
from .run_store import RunStore, run_file
from .study_file import Overrides, StudyFile
from .unit import StudyUnit, release_recording
from .variants import StudyJudge

_FORMAT = 1
_IGNORED = (
    'title', 'about', 'command', 'shipped', 'phrases', 'adapted', 'uncertainty', 'more_metrics',
    'block', 'metrics',
)  # fmt: skip
"""Keys of the record that do not change a run."""
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

    def stored_runs(self, store: RunStore) -> frozenset[RunKey]:
        """Return the runs of the study that are stored.

        ChangedError if one was made with other code or inputs.
        """
        stored: set[RunKey] = set()
        for unit in self.units(1):
            runs = {key: run for key in unit.keys if (run := store.run(key)) is not None}
            stored |= runs.keys()
            # Those of runs that are to be judged are taken by the process that judges them.
            identities = unit.identities() if runs else {}
            for key, run in runs.items():
                if run.identity != identities[key.judge, key.model]:
                    where = f'the stored run {run_file(key)}'
                    require_same(run.identity, self.record['identity'], unit.recording, where)
                    raise ChangedError(
                        f'{where} does not say with which code and inputs it was made; give '
                        '--overwrite to start over'
                    )
        return frozenset(stored)

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
        if self.file.world is None:
            return None
        world = load_world(self.file.world)
        if file_digest(self.file.world) != self.record['world']['sha256']:
            raise ChangedError(f'{self.file.world}: was changed while it was read; begin again')
        return world

    def _unit(self, recording: StudyRecording, judges: tuple[StudyJudge, ...]) -> StudyUnit:
        file = self.file
        twins = file.twins
        if file.drive is not None and recording.has_real_run:
            twins = ()
        token = f'{self._token}/{recording.name}/{"/".join(judge.label for judge in judges)}'
        return StudyUnit(
            recording, judges, file.conditions, twins, file.options, self._world, token,
            identity=self.record['identity'],
        )  # fmt: skip

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
    old_digests, new_digests = old.get('identity', {}), new.get('identity', {})
    for name in new_digests:
        # A file that has changed is named; another one has another name.
        if name in old_digests and old_digests[name] != new_digests[name]:
            return describe_difference(f'identity.{name}', old_digests[name], new_digests[name])
    # Options may be derived from models, recordings and judges, so these come first.
    causes = [name for name in ('models', 'recordings', 'judges') if name in new]
    for name in dict.fromkeys([*causes, *new]):
        if name in _IGNORED:
            continue
        old_value = old.get(name, UNSAID.get(name))
        difference = describe_difference(
            name, _without_ignored(old_value), _without_ignored(new[name])
        )
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
        'world': file.world and {'name': file.world.name, 'sha256': file.world_sha256},
        'conditions': [condition.to_mapping() for condition in file.conditions],
        'more_metrics': list(file.more_metrics),
        'metrics': code_digests(METRICS.get(name) for name in file.more_metrics),
        'judges': [judge.to_mapping() for judge in file.judges],
        'models': {twin.label: twin.to_mapping() for twin in file.twins},
        **({'set': dict(file.settings)} if file.settings else {}),
        'phrases': {twin.label: twin.phrase for twin in file.twins if twin.phrase},
        'recordings': [recording.to_mapping() for recording in recordings],
        # Last, because it raises an error if files were changed meanwhile.
        'identity': study_identity(recordings, file.judges, file.twins),
    }
