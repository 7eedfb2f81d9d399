# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a study, and the options that are derived from them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sim2real_eval.common.digests import ChangedError
from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import STARTING_SPEED, is_slow
from sim2real_eval.recording.digest import RecordingFiles
from sim2real_eval.recording.drives import DriveSpan
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.simulation.twin import STAND_IN, Twin, add_noise_free_imu, find_common_span
from sim2real_eval.simulation.twin_maker import median_rate, synthetic_recording
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import match_paths
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import is_in_file
from sim_sensors.motion.motions import SCENARIOS, motion_of, truth_of
from sim_sensors.motion.paths import DRIVES, RunVariation, drive
from sim_sensors.motion.trajectory import Motion
from sim_sensors.motion.vehicles import ART, AckermannVehicle
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.world import World
from .options import (
    MATCHED_RATES,
    MAX_RUNS,
    OFF_TICKS,
    START_HEADING,
    TRUTH_RATE,
    WARMUP,
    StudyOptions,
)
from .variants import Entry, StudyJudge, read_model

_DURATION_S = 20.0
_DRIVE_KEYS = ('duration', 'vehicle', 'variation', 'controller')
_NAME_ROLE = 'name of several recordings'

P = TypeVar('P', bound=Parameters)


@dataclasses.dataclass(frozen=True)
class PathDrive:
    """A vehicle that follows a path."""

    scenario: str  # one of DRIVES or of the other scenarios; empty if not chosen yet
    seed: int
    run: str  # label of the random streams
    duration: float = _DURATION_S  # s
    vehicle: AckermannVehicle = ART
    # Differences between runs.
    variation: RunVariation = dataclasses.field(default_factory=RunVariation)
    controller: str = ''  # one of TRACKERS; empty: pure pursuit for DRIVES, else exact motion

    @property
    def label(self) -> str:
        """Name of the scenario without its file."""
        return self.scenario.rpartition(':')[2]

    def motion(self) -> Motion:
        """Return the true motion."""
        if self.scenario in DRIVES or self.controller:
            return _drive_path(self)
        return self._scenario_motion()

    def _scenario_motion(self) -> Motion:
        return motion_of(
            self.scenario, seed=self.seed, run=self.run, duration=self.duration, parameters={}
        )

    def read(self) -> Recording:
        """Return the truth at 100 Hz as a recording, with a noise-free IMU if there is one."""
        motion = self.motion()
        truth = Recording.of_truth(truth_of(motion), self.run, self.label)
        return add_noise_free_imu(truth, motion)

    def to_mapping(self) -> dict[str, Any]:
        """Return the drive as plain values."""
        return {
            'drive': self.label,
            'run': self.run,
            'duration': self.duration,
            'vehicle': self.vehicle.to_mapping(),
            'variation': self.variation.to_mapping(),
            **({'controller': self.controller} if self.controller else {}),
        }


@functools.lru_cache(maxsize=4)
def _drive_path(plan: PathDrive) -> Motion:
    # Simulating a drive takes longer than judging it, and successive units share it.
    if plan.scenario not in DRIVES:
        from sim_sensors.following.drives import drive_robot

        return drive_robot(
            plan._scenario_motion(),
            plan.controller,
            seed=plan.seed,
            run=plan.run,
            variation=plan.variation,
        )
    labels: Any = {'seed': plan.seed, 'run': plan.run, 'duration': plan.duration}
    if plan.controller:
        from sim_sensors.following.drives import pilot_of

        labels['pilot'] = pilot_of(plan.controller)
    if type(plan.vehicle) is not AckermannVehicle:
        from sim_sensors.motion.roads import SprungCar, drive_on_springs

        assert isinstance(plan.vehicle, SprungCar)
        return drive_on_springs(
            plan.scenario, car=plan.vehicle, variation=plan.variation, **labels
        )
    return drive(plan.scenario, vehicle=plan.vehicle, variation=plan.variation, **labels)


@dataclasses.dataclass(frozen=True)
class StandIn:
    """Synthetic recording of a drive with simulated sensors in place of real ones."""

    drive: PathDrive
    sensors: Twin
    world: World | None = None

    def read(self) -> Recording:
        """Simulate the recording."""
        return synthetic_recording(
            self.drive.motion(),
            self.sensors,
            seed=self.drive.seed,
            run=self.drive.run,
            scenario=self.drive.label,
            world=self.world,
        )

    def to_mapping(self) -> dict[str, Any]:
        """Return the stand-in as plain values."""
        models = self.sensors.models
        sensors = {
            kind: models[kind].to_mapping() for kind in ('gps', 'imu', *self.sensors.others)
        }
        return {'stand_in': self.drive.to_mapping(), **sensors}


def read_stand_ins(
    entry: Entry,
    folder: Path,
    *,
    seed: int,
    group: str,
    runs: int | None,
    world: World | None = None,
) -> list[StandIn]:
    """Return the recordings of a `stand_in` in a study file; see `read_recordings`.

    `group` becomes a prefix of the names of the runs. Raises ParameterError for an invalid entry.
    """
    kinds = KINDS.names()
    fields = entry.fields(('scenarios', 'runs', *kinds, *_DRIVE_KEYS))
    default = Entry(entry.where, entry.key, STAND_IN)
    sensors = Twin(
        STAND_IN,
        gps=read_model(KINDS.get('gps'), fields.get('gps', default), folder),
        imu=read_model(KINDS.get('imu'), fields.get('imu', default), folder),
        others={
            kind: read_model(KINDS.get(kind), fields[kind], folder)
            for kind in kinds
            if kind in fields and kind not in ('gps', 'imu')
        },
    )
    scenarios = list(DRIVES)
    if 'scenarios' in fields:
        scenarios = [
            _read_scenario(scenario, folder) for scenario in fields['scenarios'].items('scenarios')
        ]
    count = fields['runs'].integer(1, MAX_RUNS) if 'runs' in fields else 10
    count = count if runs is None else runs
    prefix = f'{group}_' if group else ''
    return [
        StandIn(
            _read_path_drive(
                fields, scenario, seed, f'{prefix}{scenario.rpartition(":")[2]}_{number}'
            ),
            sensors,
            world,
        )
        for scenario in dict.fromkeys(scenarios)
        for number in range(1, count + 1)
    ]


def _read_scenario(entry: Entry, folder: Path) -> str:
    """Return the name of a scenario, with its whole path if it is in a file."""
    name = entry.text()
    if name in DRIVES:
        return name
    if not is_in_file(name) and name not in SCENARIOS.names():
        names = list(dict.fromkeys([*DRIVES, *SCENARIOS.names()]))
        entry.refuse_value(f'one of {", ".join(names)}, or a class in a file', names)
    return entry.class_name(SCENARIOS, folder)


def read_drive(entry: Entry, seed: int) -> PathDrive:
    """Return the drive of `simulate_on: {drive: ...}`, without scenario and run."""
    return _read_path_drive(entry.fields(_DRIVE_KEYS), '', seed, '')


def _read_path_drive(fields: dict[str, Entry], scenario: str, seed: int, run: str) -> PathDrive:
    duration = _DURATION_S
    if 'duration' in fields:
        duration = fields['duration'].number('s', minimum=0.0, above=True)
    vehicle = _change(_vehicle(fields.get('vehicle')), fields.get('vehicle'))
    variation = _change(RunVariation(), fields.get('variation'))
    controller = ''
    if 'controller' in fields:
        from sim_sensors.following.tracking import TRACKERS

        controller = fields['controller'].text(tuple(TRACKERS))
    return PathDrive(scenario, seed, run, duration, vehicle, variation, controller)


def _vehicle(entry: Entry | None) -> AckermannVehicle:
    """Return the default vehicle, with springs if the entry sets springs or the ground."""
    if entry is None:
        return ART
    from sim_sensors.motion.roads import SprungCar

    keys = SprungCar.declarations().keys() - AckermannVehicle.declarations().keys()
    values = entry.value if isinstance(entry.value, dict) else {}
    return SprungCar() if keys & values.keys() else ART


def _change(base: P, entry: Entry | None) -> P:
    """Return `base` with the values of an entry."""
    if entry is None:
        return base
    fields = entry.fields(tuple(base.declarations()))
    values = {name: field.value for name, field in fields.items()}
    return base.from_mapping({**base.to_mapping(), **values}, entry.where, entry.key)


@dataclasses.dataclass(frozen=True)
class StudyRecording:
    """A recording of a study, which is read on demand."""

    name: str  # unique label of rows and random streams
    group: str  # label of recordings compared together, such as a surface; may be empty
    origin: RecordingSource | StandIn | PathDrive  # a PathDrive has simulated runs only
    block: str = ''  # label of recordings that depend on each other, such as a day or a receiver
    # Set by `read_contents`.
    content: Recording | None = dataclasses.field(default=None, compare=False, repr=False)
    files: RecordingFiles | None = dataclasses.field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Reading a large recording again is faster than sending it to another process.
        is_large = self.files is not None and self.files.size > _MAX_KEPT
        return {**vars(self), 'content': None if is_large else self.content}

    @property
    def has_real_run(self) -> bool:
        """Whether a run with recorded or stand-in sensors exists."""
        return not isinstance(self.origin, PathDrive)

    @property
    def synthetic(self) -> bool:
        """Whether the recording is simulated: a stand-in or a drive."""
        return not isinstance(self.origin, RecordingSource)

    def read(self, transforms: TransformFile | None = None) -> Recording:
        """Read or simulate the recording.

        `transforms` replaces the mountings of its sensors by those of a judge. The recording of a
        drive has the name of the drive, so that all groups share its random streams. Raises
        ChangedError if the files differ from `files` before or after reading, and Sim2RealError
        for other failures.
        """
        source = self.origin
        if self.content is not None and transforms is None:
            return self.content
        if not isinstance(source, RecordingSource):
            return source.read()
        if transforms is not None:
            source = dataclasses.replace(source, transforms=transforms)
        with contextlib.nullcontext() if self.files is None else self.files.unchanged():
            return source.read()

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values that identify the recording; unreadable files have no digest."""
        labels: dict[str, Any] = {'name': self.name, 'group': self.group}
        if self.block:
            labels['block'] = self.block
        if not isinstance(self.origin, RecordingSource):
            return {**labels, **self.origin.to_mapping()}
        files = self.files or _files_of(self.origin)
        return {
            **labels,
            'path': self.origin.path,
            'scenario': self.origin.scenario,
            'topics': dict(self.origin.topics),
            'sha256': files.digest or None,
        }


def read_recordings(
    recordings: Entry,
    folder: Path,
    *,
    seed: int,
    runs: int | None = None,
    world: World | None = None,
) -> tuple[StudyRecording, ...]:
    """Return the recordings of the entry `recordings` of a study file, in its order.

    Parameters
    ----------
    recordings : Entry
    folder : Path
        Folder that paths are relative to.
    seed : int
        Seed of stand-ins.
    runs : int, optional
        Number of stand-ins per scenario, which overrides that of the file.
    world : World, optional
        Surroundings of the sensors of stand-ins.

    Raises
    ------
    Sim2RealError
        When an entry is wrong, a pattern matches nothing, or a name is given twice.
    """
    result: list[StudyRecording] = []
    for entry in recordings.items('recordings'):
        fields = entry.fields(('path', 'stand_in', 'name', 'scenario', 'group', 'topics', 'block'))
        if ('path' in fields) == ('stand_in' in fields):
            entry.refuse('must have either path or stand_in')
        group = fields['group'].label() if 'group' in fields else ''
        if 'path' in fields:
            block = fields['block'].label() if 'block' in fields else ''
            result += [
                dataclasses.replace(recording, block=block)
                for recording in _match_path(fields, folder, group)
            ]
            continue
        for name in fields:
            if name not in ('stand_in', 'group'):
                fields[name].refuse('cannot be combined with stand_in')
        stand_ins = read_stand_ins(
            fields['stand_in'], folder, seed=seed, group=group, runs=runs, world=world
        )
        result += [StudyRecording(stand_in.drive.run, group, stand_in) for stand_in in stand_ins]
    recordings.refuse_twice([recording.name for recording in result], _NAME_ROLE)
    return tuple(result)


def expand_patterns(patterns: Iterable[str]) -> list[str]:
    """Return the files and folders that patterns such as `bags/*` match, in order.

    Existing paths and patterns without a match are returned unchanged.
    """
    paths = []
    for pattern in patterns:
        paths += match_paths(pattern) or [pattern]
    return paths


def recordings_from_sources(sources: Sequence[RecordingSource]) -> tuple[StudyRecording, ...]:
    """Return the recordings of the command line; raise Sim2RealError for duplicate names."""
    recordings = tuple(StudyRecording(source.expected_name(), '', source) for source in sources)
    Entry('recordings', '', None).refuse_twice(
        [recording.name for recording in recordings], _NAME_ROLE
    )
    return recordings


_MAX_KEPT = 1 << 25
"""Largest total size in bytes of the files of recordings that stay in memory."""


def read_contents(recordings: Sequence[StudyRecording]) -> tuple[StudyRecording, ...]:
    """Return recordings with their contents, so that each is read once.

    If their files are too large to stay in memory together, each recording is read on demand. An
    unreadable recording raises its error when it is needed.
    """
    recordings = tuple(map(_with_files, recordings))
    sizes = [recording.files.size for recording in recordings if recording.files is not None]
    if len(sizes) > 1 and sum(sizes) > _MAX_KEPT:
        return recordings
    return tuple(
        dataclasses.replace(recording, content=_read_or_none(recording))
        if isinstance(recording.origin, RecordingSource)
        else recording
        for recording in recordings
    )


def _with_files(recording: StudyRecording) -> StudyRecording:
    if not isinstance(recording.origin, RecordingSource):
        return recording
    return dataclasses.replace(recording, files=_files_of(recording.origin))


def _files_of(source: RecordingSource) -> RecordingFiles:
    return RecordingFiles.of(source.path, dict(source.topics))


def _read_or_none(recording: StudyRecording) -> Recording | None:
    try:
        return recording.read()
    except ChangedError:
        raise
    except Sim2RealError:
        return None


def _match_path(fields: dict[str, Entry], folder: Path, group: str) -> list[StudyRecording]:
    pattern = fields['path'].text()
    paths = match_paths(pattern, folder)
    if not paths:
        fields['path'].refuse_value('the path of a recording, or a pattern of several; none found')
    name = fields['name'].label() if 'name' in fields else None
    if name is not None and len(paths) > 1:
        fields['name'].refuse(f'{name!r} would be the name of {len(paths)} recordings')
    topics: tuple[tuple[str, str], ...] = ()
    if 'topics' in fields:
        roles = fields['topics'].fields(tuple(ROLE_CLASSES))
        topics = tuple((role, topic.text()) for role, topic in roles.items())
    scenario = fields['scenario'].label() if 'scenario' in fields else None
    sources = [RecordingSource(path, name, topics, scenario) for path in paths]
    return [StudyRecording(source.expected_name(), group, source) for source in sources]


OFF_TICKS_NS = 10_000
"""Delay of the start of a judge whose ticks coincide with the stamps of fixes.

It is longer than rounding errors of stamps and shorter than any waiting time.
"""

_WARMUP_S = 5.0
_WARMUP_SHARE = 0.25
"""Largest part of the shortest recording that the warm-up may take."""


def adapt_options(
    options: StudyOptions,
    recordings: Sequence[StudyRecording],
    twins: Sequence[Twin],
    judges: Sequence[StudyJudge],
    examined: Mapping[str, RecordingProperties] | None = None,
) -> tuple[StudyOptions, list[Finding]]:
    """Derive options that the user did not set from the real recordings.

    Only options that are named in `options.adapt` and have their default are changed. Applied to
    the returned options, this function returns them unchanged. Their `adapt` names only options
    that are decided per judge. Stand-ins and unreadable recordings are ignored. `examined`, if
    given, is the result of `examine_recordings`.

    Returns
    -------
    StudyOptions
    list of Finding
        One for each option that was derived.
    """
    names = options.adapts
    if names and examined is None:
        examined = examine_recordings(recordings, twins, judges)
    real = list(examined.values()) if names and examined is not None else []
    metric, notes = _adapt_metric(
        options, [recording.truth for recording in real if recording.truth is not None]
    )
    options = dataclasses.replace(options, metric=metric)
    if 'match_rates' in names and not options.match_rates:
        matched = [note for recording in real for note in recording.rate_notes]
        notes += matched[:1]
        options = dataclasses.replace(options, match_rates=bool(matched))
    by_judge: list[str] = []
    labels = [judge.label for judge in judges]
    if 'start_heading' in names and not options.start_heading:
        affected = [
            label
            for label in labels
            if any(label in recording.without_heading for recording in real)
        ]
        if affected:
            notes.append(START_HEADING(judges=', '.join(affected)))
            by_judge.append('start_heading')
    if 'off_ticks' in names and not options.off_ticks:
        affected = [
            label for label in labels if any(label in recording.on_ticks for recording in real)
        ]
        if affected:
            count = sum(bool(recording.on_ticks) for recording in real)
            notes.append(OFF_TICKS(judges=', '.join(affected), count=count, total=len(real)))
            by_judge.append('off_ticks')
    return dataclasses.replace(options, adapt=','.join(by_judge) or 'none'), notes


def _adapt_metric(
    options: StudyOptions, truths: Sequence[_TruthProperties]
) -> tuple[MetricOptions, list[Finding]]:
    """Return metric options with rate and warm-up derived from the ground truths."""
    metric, default = options.metric, MetricOptions()
    notes = []
    rate = min((truth.rate or metric.rate for truth in truths), default=metric.rate)
    if 'rate' in options.adapts and metric.rate == default.rate and is_slow(rate, metric.rate):
        notes.append(TRUTH_RATE(rate=rate, usual=metric.rate))
        metric = dataclasses.replace(metric, rate=rate)
    speeds = [truth.speed for truth in truths if truth.speed > STARTING_SPEED]
    if 'warmup' in options.adapts and metric.warmup == default.warmup and speeds:
        shortest = min(truth.duration for truth in truths)
        warmup = round(min(_WARMUP_S, _WARMUP_SHARE * shortest), 1)
        notes.append(WARMUP(warmup=warmup, count=len(speeds), most=max(speeds)))
        metric = dataclasses.replace(metric, warmup=warmup)
    return metric, notes


class _TruthProperties(NamedTuple):
    """Properties of a true motion that options are derived from."""

    rate: float | None  # Hz
    speed: float  # initial speed, m/s
    duration: float  # s


class RecordingProperties(NamedTuple):
    """Properties of a recording that options are derived from."""

    truth: _TruthProperties | None
    rate_notes: list[Finding]  # simulated sensors with another rate than the real ones
    without_heading: set[str]  # labels of judges that start with an arbitrary heading
    on_ticks: set[str]  # labels of judges on whose ticks fixes are stamped
    span: DriveSpan


def examine_recordings(
    recordings: Sequence[StudyRecording], twins: Sequence[Twin], judges: Sequence[StudyJudge]
) -> dict[str, RecordingProperties]:
    """Return the properties of the real recordings that can be read, by name."""
    # One recording at a time is in memory.
    examined = {
        recording.name: _examine(recording, twins, judges)
        for recording in recordings
        if isinstance(recording.origin, RecordingSource)
    }
    return {name: properties for name, properties in examined.items() if properties is not None}


def _examine(
    recording: StudyRecording, twins: Sequence[Twin], judges: Sequence[StudyJudge]
) -> RecordingProperties | None:
    """Return the properties of a recording, or None if it cannot be read."""
    try:
        content = recording.read()
    except Sim2RealError:
        return None
    truth = content.truth
    truth_properties, on_ticks = None, set[str]()
    if truth is not None and len(truth) > 1:
        speed = float(np.hypot(*truth.linear_velocity[0, :2]))
        duration = float((truth.stamp_ns[-1] - truth.stamp_ns[0]) * 1e-9)
        truth_properties = _TruthProperties(median_rate(truth), speed, duration)
        with contextlib.suppress(Sim2RealError):
            start_ns, _ = find_common_span(content, truth)
            on_ticks = {
                judge.label
                for judge in judges
                if judge.setup.splits_fixes(content, start_ns, start_ns + OFF_TICKS_NS)
            }
    without_heading = {judge.label for judge in judges if judge.setup.lacks_heading(content)}
    rate_notes, span = _compare_rates(content, twins), DriveSpan.of_recording(content)
    return RecordingProperties(truth_properties, rate_notes, without_heading, on_ticks, span)


def _compare_rates(recording: Recording, twins: Sequence[Twin]) -> list[Finding]:
    """Return a finding for each simulated sensor with another rate than the real one."""
    notes = []
    for kind, real in (('gps', recording.gps), ('imu', recording.imu)):
        rate = median_rate(real)
        for twin in twins:
            model = twin.models.get(kind)
            if model is None or f'{kind}.rate' in twin.chosen:
                continue
            if rate is not None and model.rate != rate:
                notes.append(MATCHED_RATES(real=rate, own=model.rate))
    return notes
