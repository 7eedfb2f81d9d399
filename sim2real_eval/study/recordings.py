# SPDX-License-Identifier: Apache-2.0
"""Recordings of a study: those that a study file names by path, glob or stand-in."""

from __future__ import annotations

import dataclasses
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.study.entry import Entry
from sim2real_eval.study.stand_in import PathDrive, StandIn, read_stand_ins
from sim_sensors.core.errors import Sim2RealError


@dataclasses.dataclass(frozen=True)
class StudyRecording:
    """A recording of a study, which is read when it is needed.

    Attributes
    ----------
    name : str
        Of rows and random streams; of one recording only.
    group : str
        What it has in common with others, such as the surface; empty if nothing.
    origin : Source, StandIn or PathDrive
        A PathDrive has no real run: it is there for simulated sensors alone.
    """

    name: str
    group: str
    origin: Source | StandIn | PathDrive

    @property
    def has_real_run(self) -> bool:
        """Whether it has sensors of its own."""
        return not isinstance(self.origin, PathDrive)

    @property
    def synthetic(self) -> bool:
        """Whether it only stands in for a real one."""
        return not isinstance(self.origin, Source)

    def read(self) -> Recording:
        """Read or make the recording; one of a drive has the name of the drive.

        That is the label of its random streams, so that all groups meet the same simulation.

        Raises
        ------
        Sim2RealError
            When it cannot be.
        """
        return self.origin.read()

    def to_mapping(self) -> dict[str, Any]:
        """Return what identifies it, as plain values; what cannot be read has no digest."""
        about: dict[str, Any] = {'name': self.name, 'group': self.group}
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
    recordings: Entry, folder: Path, *, seed: int, runs: int | None = None
) -> tuple[StudyRecording, ...]:
    """Return the recordings that `recordings` of a study file stands for, in its order.

    Parameters
    ----------
    recordings : Entry
    folder : Path
        Paths are relative to it.
    seed : int
        Of stand-ins.
    runs : int or None
        Stand-ins per scenario in place of those of the file.

    Raises
    ------
    Sim2RealError
        For a wrong entry, a glob that finds nothing, or a name given twice.
    """
    found: list[StudyRecording] = []
    for entry in recordings.items('recordings'):
        fields = entry.fields(('path', 'stand_in', 'name', 'scenario', 'group', 'topics'))
        if ('path' in fields) == ('stand_in' in fields):
            entry.refuse('must have either path or stand_in')
        group = fields['group'].label() if 'group' in fields else ''
        if 'path' in fields:
            found += _of_path(fields, folder, group)
            continue
        for name in fields:
            if name not in ('stand_in', 'group'):
                fields[name].refuse('does not go with stand_in')
        made = read_stand_ins(fields['stand_in'], folder, seed=seed, group=group, runs=runs)
        found += [StudyRecording(one.drive.run, group, one) for one in made]
    return _distinct(found, recordings)


def of_sources(sources: Sequence[Source]) -> tuple[StudyRecording, ...]:
    """Return recordings of the command line, in place of those of the study file.

    Raises
    ------
    Sim2RealError
        When two have one name.
    """
    found = [StudyRecording(source.own_name(), '', source) for source in sources]
    return _distinct(found, Entry('--real', '', None))


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


def _distinct(found: Sequence[StudyRecording], entry: Entry) -> tuple[StudyRecording, ...]:
    names = [recording.name for recording in found]
    for name in names:
        if names.count(name) > 1:
            entry.refuse(f'{name!r} is the name of several recordings; must be of one')
    return tuple(found)
