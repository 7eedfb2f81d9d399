# SPDX-License-Identifier: Apache-2.0
"""Recordings of a study: of paths and globs, synthetic stand-ins, and drives."""

from __future__ import annotations

import dataclasses
import functools
import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sim2real_eval.common.workers import Workers
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.simulation.spans import with_noise_free
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import is_in_file
from sim_sensors.motion.motions import SCENARIOS, motion_of, truth_of
from sim_sensors.motion.path_following import DRIVES, RunVariation, drive
from sim_sensors.motion.trajectory import Motion
from sim_sensors.motion.vehicles import ART, AckermannVehicle
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.world import World
from .entry import Entry
from .options import MOST_RUNS
from .variants import STAND_IN, read_model

_DURATION_S = 20.0
_OF_DRIVE = ('duration', 'vehicle', 'variation')
_TWICE = 'name of several recordings'

P = TypeVar('P', bound=Parameters)


@dataclasses.dataclass(frozen=True)
class PathDrive:
    """A vehicle that follows a path."""

    scenario: str  # of DRIVES, or another scenario; empty where it is still to be chosen
    seed: int
    run: str  # label of the random streams
    duration: float = _DURATION_S  # s
    vehicle: AckermannVehicle = ART
    # How one run differs from the next.
    variation: RunVariation = dataclasses.field(default_factory=RunVariation)

    @property
    def label(self) -> str:
        """The scenario's name alone, without the file that it is in."""
        return self.scenario.rpartition(':')[2]

    def motion(self) -> Motion:
        """Return the true motion."""
        if self.scenario in DRIVES:
            return _driven(self)
        return motion_of(
            self.scenario, seed=self.seed, run=self.run, duration=self.duration, parameters={}
        )

    def read(self) -> Recording:
        """Return the truth, at 100 Hz, as a recording without sensors."""
        motion = self.motion()
        truth = Recording.of_truth(truth_of(motion), self.run, self.label)
        return with_noise_free(truth, motion)

    def to_mapping(self) -> dict[str, Any]:
        """Return the drive as plain values."""
        return {
            'drive': self.label,
            'run': self.run,
            'duration': self.duration,
            'vehicle': self.vehicle.to_mapping(),
            'variation': self.variation.to_mapping(),
        }


@functools.lru_cache(maxsize=4)
def _driven(one: PathDrive) -> Motion:
    # Units of one recording come one after the other, and the drive takes longer than a judge.
    labels: Any = {'seed': one.seed, 'run': one.run, 'duration': one.duration}
    if type(one.vehicle) is not AckermannVehicle:
        from sim_sensors.motion.sprung_car import SprungCar, drive_on_springs

        assert isinstance(one.vehicle, SprungCar)
        return drive_on_springs(one.scenario, car=one.vehicle, variation=one.variation, **labels)
    return drive(one.scenario, vehicle=one.vehicle, variation=one.variation, **labels)


@dataclasses.dataclass(frozen=True)
class StandIn:
    """A drive recorded by sensors that stand in for real ones; synthetic, and labelled so."""

    drive: PathDrive
    sensors: Twin
    world: World | None = None

    def read(self) -> Recording:
        """Make the recording."""
        one = self.drive
        return synthetic_recording(
            one.motion(),
            self.sensors,
            seed=one.seed,
            run=one.run,
            scenario=one.label,
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
    """Return the recordings that a `stand_in` of a study file stands for.

    Raises ParameterError for a wrong entry.

    `folder`: paths of model files are relative to it; `seed`: of the study; `group`: becomes part
    of the names of the runs; `runs`: recordings per scenario in place of those of the file;
    `world`: what surrounds the sensors.
    """
    kinds = KINDS.names()
    fields = entry.fields(('scenarios', 'runs', *kinds, *_OF_DRIVE))
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
        scenarios = [_scenario(one, folder) for one in fields['scenarios'].items('scenarios')]
    count = fields['runs'].integer(1, MOST_RUNS) if 'runs' in fields else 10
    count = count if runs is None else runs
    before = f'{group}_' if group else ''
    return [
        StandIn(
            _drive(fields, one, seed, f'{before}{one.rpartition(":")[2]}_{number}'), sensors, world
        )
        for one in dict.fromkeys(scenarios)
        for number in range(1, count + 1)
    ]


def _scenario(entry: Entry, folder: Path) -> str:
    """Return a scenario's name; that of one in a file with its whole path."""
    name = entry.text()
    if name in DRIVES:
        return name
    if not is_in_file(name) and name not in SCENARIOS.names():
        known = list(dict.fromkeys([*DRIVES, *SCENARIOS.names()]))
        entry.refuse_value(f'one of {", ".join(known)}, or a class in a file', known)
    return entry.class_name(SCENARIOS, folder)


def read_drive(entry: Entry, seed: int) -> PathDrive:
    """Return what `simulate_on: {drive: ...}` says of the drives, without scenario and run."""
    return _drive(entry.fields(_OF_DRIVE), '', seed, '')


def _drive(fields: dict[str, Entry], scenario: str, seed: int, run: str) -> PathDrive:
    duration = _DURATION_S
    if 'duration' in fields:
        duration = fields['duration'].number('s', minimum=0.0, above=True)
    vehicle = _changed(_vehicle(fields.get('vehicle')), fields.get('vehicle'))
    variation = _changed(RunVariation(), fields.get('variation'))
    return PathDrive(scenario, seed, run, duration, vehicle, variation)


def _vehicle(entry: Entry | None) -> AckermannVehicle:
    """Return the vehicle before changes: on springs where one concerns these or the ground."""
    if entry is None:
        return ART
    from sim_sensors.motion.sprung_car import SprungCar

    own = SprungCar.declared().keys() - AckermannVehicle.declared().keys()
    given = entry.value if isinstance(entry.value, dict) else {}
    return SprungCar() if own & given.keys() else ART


def _changed(base: P, entry: Entry | None) -> P:
    if entry is None:
        return base
    given = {name: one.value for name, one in entry.fields(tuple(base.declared())).items()}
    return base.from_mapping({**base.to_mapping(), **given}, entry.where, entry.key)


@dataclasses.dataclass(frozen=True)
class StudyRecording:
    """A recording of a study, which is read when it is needed."""

    name: str  # of rows and random streams; of one recording only
    group: str  # what it has in common with others, such as the surface; empty if nothing
    # A PathDrive has no real run: it is there for simulated sensors alone.
    origin: Source | StandIn | PathDrive
    # What recordings share that are not independent: a drive, a day, a receiver.
    block: str = ''
    # What was read of it, see `begin_reading`.
    content: Recording | None = dataclasses.field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Another process reads a large recording in less time than it takes to send it.
        large = isinstance(self.origin, Source) and _size(self.origin) > _MOST_KEPT
        return {**vars(self), 'content': None if large else self.content}

    @property
    def has_real_run(self) -> bool:
        """Whether it has sensors of its own."""
        return not isinstance(self.origin, PathDrive)

    @property
    def synthetic(self) -> bool:
        """Whether it only stands in for a real one."""
        return not isinstance(self.origin, Source)

    def read(self, transforms: TransformFile | None = None) -> Recording:
        """Read or make the recording; one of a drive has the name of the drive.

        That is the label of its random streams, so that all groups meet the same simulation.
        The sensors of twins sit where `transforms`, which a judge is told, say that they do.

        Raises Sim2RealError when it cannot be.
        """
        if transforms is not None and isinstance(self.origin, Source):
            return dataclasses.replace(self.origin, transforms=transforms).read()
        return self.origin.read() if self.content is None else self.content

    def to_mapping(self) -> dict[str, Any]:
        """Return what identifies it, as plain values; what cannot be read has no digest."""
        about: dict[str, Any] = {'name': self.name, 'group': self.group}
        if self.block:
            about['block'] = self.block
        if not isinstance(self.origin, Source):
            return {**about, **self.origin.to_mapping()}
        try:
            digest = recording_digest(self.origin.path)
        except Sim2RealError:
            digest = None
        return {
            **about,
            'path': self.origin.path,
            'scenario': self.origin.scenario,
            'topics': dict(self.origin.topics),
            'sha256': digest,
        }


def read_recordings(
    recordings: Entry,
    folder: Path,
    *,
    seed: int,
    runs: int | None = None,
    world: World | None = None,
) -> tuple[StudyRecording, ...]:
    """Return the recordings that `recordings` of a study file stands for, in its order.

    Raises Sim2RealError for a wrong entry, a glob that finds nothing, or a name given twice.

    `folder`: paths are relative to it; `seed`: of stand-ins; `runs`: stand-ins per scenario in
    place of those of the file; `world`: what surrounds their sensors.
    """
    found: list[StudyRecording] = []
    for entry in recordings.items('recordings'):
        fields = entry.fields(('path', 'stand_in', 'name', 'scenario', 'group', 'topics', 'block'))
        if ('path' in fields) == ('stand_in' in fields):
            entry.refuse('must have either path or stand_in')
        group = fields['group'].label() if 'group' in fields else ''
        if 'path' in fields:
            block = fields['block'].label() if 'block' in fields else ''
            found += [
                dataclasses.replace(one, block=block) for one in _of_path(fields, folder, group)
            ]
            continue
        for name in fields:
            if name not in ('stand_in', 'group'):
                fields[name].refuse('does not go with stand_in')
        made = read_stand_ins(
            fields['stand_in'], folder, seed=seed, group=group, runs=runs, world=world
        )
        found += [StudyRecording(one.drive.run, group, one) for one in made]
    recordings.refuse_twice([one.name for one in found], _TWICE)
    return tuple(found)


def of_sources(sources: Sequence[Source]) -> tuple[StudyRecording, ...]:
    """Return recordings of the command line, in place of those of the study file.

    Raises Sim2RealError when two have one name.
    """
    found = tuple(StudyRecording(source.own_name(), '', source) for source in sources)
    Entry('--real', '', None).refuse_twice([one.name for one in found], _TWICE)
    return found


_MOST_KEPT = 1 << 25  # bytes of files of all recordings


def begin_reading(
    recordings: Sequence[StudyRecording], workers: Workers
) -> Callable[[], tuple[StudyRecording, ...]]:
    """Begin to read recordings; return what waits for them, with what is in them.

    So they are read once. Where several are large they are not read here: what needs one reads it,
    and one at a time is in memory. A recording that cannot be read fails where it is needed.
    """
    sources = [one.origin for one in recordings if isinstance(one.origin, Source)]
    if len(sources) > 1 and sum(map(_size, sources)) > _MOST_KEPT:
        sources = []
    wait = workers.begin_map(_content, sources)

    def read() -> tuple[StudyRecording, ...]:
        found: dict[int, Recording | None] = dict(zip(map(id, sources), wait(), strict=True))
        return tuple(
            dataclasses.replace(one, content=found.get(id(one.origin))) for one in recordings
        )

    return read


def _content(source: Source) -> Recording | None:
    try:
        return source.read()
    except Sim2RealError:
        return None


def _size(source: Source) -> int:
    path = Path(source.path)
    files = path.rglob('*') if path.is_dir() else [path]
    return sum(one.stat().st_size if one.is_file() else 0 for one in files)


def _of_path(fields: dict[str, Entry], folder: Path, group: str) -> list[StudyRecording]:
    pattern = fields['path'].text()
    paths = sorted(glob.glob(str(folder / pattern)))  # noqa: PTH207 - of any path, also absolute
    if not paths:
        fields['path'].refuse_value('the path of a recording, or a pattern of several; none found')
    name = fields['name'].label() if 'name' in fields else None
    if name is not None and len(paths) > 1:
        fields['name'].refuse(f'{name!r} would be the name of {len(paths)} recordings')
    topics: tuple[tuple[str, str], ...] = ()
    if 'topics' in fields:
        given = fields['topics'].fields(tuple(ROLE_CLASSES))
        topics = tuple((role, topic.text()) for role, topic in given.items())
    scenario = fields['scenario'].label() if 'scenario' in fields else None
    sources = [Source(path, name, topics, scenario) for path in paths]
    return [StudyRecording(source.own_name(), group, source) for source in sources]
