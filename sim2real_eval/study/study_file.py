# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Study files: experiments as YAML files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from sim2real_eval.common.digests import file_digest
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.drives import AUTO, NONE
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.input_files import read_input
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.shipped import config_names, config_path
from sim_sensors.world.world import load_world, world_names
from .metric import METRICS
from .options import PROFILE, SHARED_IMU, StudyOptions, TransferOptions
from .recordings import (
    PathDrive,
    StudyRecording,
    read_drive,
    read_recordings,
    recordings_from_sources,
)
from .variants import (
    Condition,
    Entry,
    StudyJudge,
    read_conditions,
    read_judges,
    read_sweep,
    read_twins,
)

KEYS = MappingProxyType(
    {
        'title': 'Name of the study.',
        'about': 'Question of the study, and limits of its answer.',
        **{name: option.doc for name, option in StudyOptions.declarations().items()},
        'metric': 'Options of the metric.',
        'recordings': 'Real recordings, or stand-ins for them.',
        'models': 'Simulated variants.',
        'set': 'Parameters of the models, such as {gps.rate: [1, 5]}; a list makes a sweep.',
        'world': 'World of the simulated sensors, by name or file: field, tags, landmarks.',
        'simulate_on': 'truth (default) or drive: which motion simulated sensors follow.',
        'judges': 'State estimators; default clean.',
        'conditions': 'Changes of the fixes of both real and simulated runs.',
        'uncertainty': 'Options of the statistics.',
        'transfer': 'Also measure the transfer loss under the first judge: {} or options of '
        '`sim2real transfer`, such as {objective: position}.',
        'signals': 'Compare the signals of the sensors, in place of judges: options of '
        '`sim2real compare`, such as {quantities: yaw}.',
        'more_metrics': 'Metrics in files, such as my_metric.py:MyMetric.',
    }
)
"""Keys of a study file and their meaning."""

_WITH_SIGNALS = (
    *('title', 'about', 'seed', 'repetitions', 'recordings', 'models', 'set', 'world', 'signals'),
)
_OPTIONS = (*StudyOptions.declarations(), 'metric', 'uncertainty')


@dataclasses.dataclass(frozen=True)
class Overrides:
    """Values of the command line that replace those of a study file; None replaces nothing.

    Attributes
    ----------
    real : sequence of Source or None
        Recordings.
    runs : int or None
        Stand-ins per scenario.
    simulate_on : str or None
        `truth` or `drive`.
    judges : tuple of StudyJudge or None
    options : callable or None
        Function from the options of the file to the final options.
    command : tuple of str
        Words after the name of the study in the command.
    """

    real: Sequence[RecordingSource] | None = None
    runs: int | None = None
    simulate_on: str | None = None
    judges: tuple[StudyJudge, ...] | None = None
    options: Callable[[StudyOptions], StudyOptions] | None = None
    command: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class StudyFile:
    """Contents of a study file, with the values that the command line replaced.

    `sim2real vepd`, `sim2real demo` and evaluation_node make one from their own options.

    Attributes
    ----------
    title : str
    options : StudyOptions
    recordings : tuple of StudyRecording
    twins : tuple of Twin
    judges : tuple of StudyJudge
    description : str
    drive : PathDrive or None
        Drives that simulated sensors follow, without scenario and run; None: the true motions of
        the recordings.
    conditions : tuple of Condition
        One without a label if the file has none.
    more_metrics : tuple of str
        Metrics in files, in addition to the installed ones.
    world : Path or None
        File of the surroundings of simulated sensors; None: only gravity and the Earth's field.
    world_sha256 : str
        Digest of that file, taken before it was read.
    where : str
        Path of the file; empty if there is none.
    text : bytes
        Content of the file.
    is_shipped : bool
        Whether it is shipped, so that its name is enough.
    command : tuple of str
        Command of the study; a file that is not shipped is named without its folder.
    transfer : TransferOptions or None
        Whether and how the transfer loss is measured.
    signals : SignalOptions or None
        How the signals of the sensors are compared; None: they are judged.
    settings : mapping
        Parameters set over those of the models, by kind and parameter, such as `gps.rate`.
    """

    title: str
    options: StudyOptions
    recordings: tuple[StudyRecording, ...]
    twins: tuple[Twin, ...]
    judges: tuple[StudyJudge, ...]
    description: str = ''
    drive: PathDrive | None = None
    conditions: tuple[Condition, ...] = (Condition(),)
    more_metrics: tuple[str, ...] = ()
    world: Path | None = None
    world_sha256: str = ''
    where: str = ''
    text: bytes = b''
    is_shipped: bool = False
    command: tuple[str, ...] = ()
    transfer: TransferOptions | None = None
    signals: SignalOptions | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Findings about the choice of models."""
        receivers = [twin.gps for twin in self.twins]
        shared = {twin.shared_imu for twin in self.twins}
        # Simulated drives have no real IMU that could replace it.
        if self.drive is not None or len(receivers) < 2 or None in receivers or len(shared) > 1:
            return ()
        return tuple(SHARED_IMU(imu=name) for name in shared if name)

    @classmethod
    def read(cls, name_or_path: str | Path, overrides: Overrides | None = None) -> StudyFile:
        """Read a study file.

        Parameters
        ----------
        name_or_path : str or Path
            Name of a shipped study, or path of a YAML file, to which its paths are relative.
        overrides : Overrides, optional

        Raises
        ------
        Sim2RealError
            For the first error: file, key, value and what is allowed.
        """
        over = overrides or Overrides()
        path = study_path(name_or_path)
        where, folder = str(path), path.parent
        whole = Entry(where, '', read_yaml_mapping(path))
        fields = whole.fields(tuple(KEYS), required=('title', 'models'))
        if 'signals' in fields:
            for name in fields.keys() - {*_WITH_SIGNALS}:
                fields[name].refuse('cannot be used with signals, which are not judged')
        values = {name: fields[name].value for name in _OPTIONS if name in fields}
        if 'block' in fields and (block := fields['block'].text()) not in (AUTO, NONE):
            values['block'] = str(folder / block)
        options = StudyOptions.from_mapping(values, where)
        metric = values['metric'] if isinstance(values.get('metric'), dict) else {}
        options = options.without_deriving([*values, *metric])
        if over.options is not None:
            options = over.options(options)
        judges = over.judges
        if judges is None:
            default = Entry(where, 'judges', [PROFILE])
            judges = read_judges(fields.get('judges', default), folder)
        more_metrics = fields['more_metrics'].items('metrics') if 'more_metrics' in fields else []
        world = _world_file(fields['world'], folder) if 'world' in fields else None
        world_sha256 = _input_digest(fields['world'], world) if world else ''
        shipped = path.resolve().parent == config_path('studies').resolve()
        name = path.stem if shipped else path.name
        return cls(
            title=fields['title'].text(),
            options=options,
            recordings=_recordings(whole, fields, folder, options.seed, over, world),
            twins=read_sweep(fields.get('set'), read_twins(fields['models'], folder)),
            settings=fields['set'].value if 'set' in fields else {},
            judges=judges,
            description=fields['about'].text() if 'about' in fields else '',
            drive=_read_simulate_on(whole, fields, options.seed, over),
            conditions=read_conditions(fields.get('conditions')),
            more_metrics=tuple(metric.class_name(METRICS, folder) for metric in more_metrics),
            world=world,
            world_sha256=world_sha256,
            where=where,
            text=read_input(path),
            is_shipped=shipped,
            command=('sim2real', 'study', name, *over.command),
            transfer=_read_options(fields.get('transfer'), TransferOptions),
            signals=_read_options(fields.get('signals'), SignalOptions, seed=options.seed),
        )


P = TypeVar('P', bound=Parameters)


def _read_options(entry: Entry | None, kind: type[P], **defaults: object) -> P | None:
    """Return the options of a mapping, or None without one."""
    if entry is None:
        return None
    fields = entry.fields(tuple(kind.declarations()))
    values = {name: field.value for name, field in fields.items()}
    return kind.from_mapping({**defaults, **values}, entry.where, entry.key)


def study_path(name_or_path: str | Path) -> Path:
    """Return the path of a study file, or of a shipped study by its name.

    An unknown name raises Sim2RealError.
    """
    path = Path(name_or_path)
    if path.suffix in ('.yaml', '.yml') or len(path.parts) > 1:
        return path
    name = str(name_or_path)
    shipped_names = config_names('studies')
    if name not in shipped_names:
        Entry('study', '', name).refuse_value(
            f'one of {", ".join(shipped_names)}, or a path of a YAML file', shipped_names
        )
    return config_path('studies', f'{name}.yaml')


def _recordings(
    whole: Entry,
    fields: dict[str, Entry],
    folder: Path,
    seed: int,
    over: Overrides,
    world: Path | None,
) -> tuple[StudyRecording, ...]:
    if over.real is not None:
        return recordings_from_sources(over.real)
    if 'recordings' not in fields:
        whole.field('recordings').refuse(
            'is missing; name the recordings here or after the name of the study'
        )
    return read_recordings(
        fields['recordings'],
        folder,
        seed=seed,
        runs=over.runs,
        world=load_world(world) if world else None,
    )


def _world_file(entry: Entry, folder: Path) -> Path:
    name = entry.text()
    if name.endswith(('.yaml', '.yml')) or len(Path(name).parts) > 1:
        return folder / name
    if name not in world_names():
        entry.refuse_value(f'one of {", ".join(world_names())}, or a file', world_names())
    return config_path('worlds', f'{name}.yaml')


def _input_digest(entry: Entry, path: Path) -> str:
    try:
        return file_digest(path)
    except OSError as error:
        entry.refuse(f'{path}: cannot be read: {error.strerror}')


def _read_simulate_on(
    whole: Entry, fields: dict[str, Entry], seed: int, over: Overrides
) -> PathDrive | None:
    entry = fields.get('simulate_on', Entry(whole.where, 'simulate_on', 'truth'))
    drive = read_drive(Entry(entry.where, entry.key, {}), seed)
    if isinstance(entry.value, dict):
        drive = read_drive(entry.fields(('drive',), required=('drive',))['drive'], seed)
    else:
        entry.text(('truth', 'drive'))
    choice = over.simulate_on or ('drive' if isinstance(entry.value, dict) else entry.value)
    return drive if choice == 'drive' else None
