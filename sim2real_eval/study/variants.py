# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judges, simulated variants and conditions of a study, and how a study file names them."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.digests import file_digest
from sim2real_eval.common.findings import RecordingError
from sim2real_eval.judge.protocol import (
    JUDGES,
    Judge,
    JudgeRequest,
    judge_class,
    judge_label,
    load_judge,
)
from sim2real_eval.judge.robot_localization.configuration import FRONT_ENDS
from sim2real_eval.judge.robot_localization.release import Release
from sim2real_eval.judge.robot_localization.replay_options import Options, corrections, latency_ns
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import REAL_SENSOR, STAND_IN, Twin
from sim_sensors.core.errors import ParameterError, UnknownNameError, did_you_mean, not_among
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.parameters import (
    Parameter,
    from_variant,
    override,
    set_parameter,
    to_variant,
)
from sim_sensors.core.registry import Registry, file_of, is_in_file
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import PAPER_MODELS
from sim_sensors.sensor.catalogue import KINDS, preset_names
from sim_sensors.sensor.sensor import SensorModel


@dataclasses.dataclass(eq=False)
class Entry:
    """A value of a YAML file and its place."""

    where: str  # file
    key: str  # path of the value, such as `recordings[0].path`; empty for the whole file
    value: Any

    def refuse(self, problem: str) -> NoReturn:
        """Raise a ParameterError that names the place."""
        raise ParameterError(self.where, self.key, problem)

    def refuse_value(self, allowed: str, known_names: Sequence[str] = ()) -> NoReturn:
        """Raise a ParameterError with place, value, nearest known name and allowed values."""
        value = ' '.join(repr(self.value).split())
        short = value if len(value) <= 60 else f'{value[:57]}...'
        hint = did_you_mean(self.value, known_names)
        self.refuse(f'{short} is not allowed{hint}; must be {allowed}')

    @contextlib.contextmanager
    def add_place_to_errors(self) -> Iterator[None]:
        """Convert an UnknownNameError of the `with` block to a ParameterError with the place."""
        try:
            yield
        except UnknownNameError as error:
            self.refuse(error.problem)

    def fields(
        self, allowed_keys: Sequence[str], *, required: Sequence[str] = ()
    ) -> dict[str, Entry]:
        """Return the values of a mapping by key; refuse unknown and missing keys."""
        if not isinstance(self.value, dict):
            self.refuse_value(f'a mapping with keys of {", ".join(allowed_keys)}')
        for name in self.value:
            if name not in allowed_keys:
                self.field(name).refuse(not_among('unknown key', name, allowed_keys))
        for name in required:
            if name not in self.value:
                self.field(name).refuse('is missing')
        return {name: self.field(name) for name in self.value}

    def field(self, name: object) -> Entry:
        """Return the entry of a key; its value is None if the key is missing."""
        key = f'{self.key}.{name}' if self.key else str(name)
        return Entry(self.where, key, self.value.get(name))

    def items(self, content: str) -> list[Entry]:
        """Return the entries of a list that is not empty; `content` names them in errors."""
        if not isinstance(self.value, list) or not self.value:
            self.refuse_value(f'a list of one or more {content}')
        return [
            Entry(self.where, f'{self.key}[{number}]', value)
            for number, value in enumerate(self.value)
        ]

    def refuse_twice(self, labels: Sequence[str], role: str) -> None:
        """Refuse duplicate labels; `role` is a phrase like `label of several judges`."""
        for label in labels:
            if labels.count(label) > 1:
                self.refuse(f'{label!r} is the {role}; must be unique')

    def class_name(self, registry: Registry[Any], folder: Path) -> str:
        """Return the name of a registered class, with its whole path if it is in a file."""
        name = self.text()
        kind = registry.get(name, where=self.where, key=self.key, folder=folder)
        path = file_of(kind)
        return name if path is None else f'{path}:{kind.__name__}'

    def text(self, choices: Sequence[str] = ()) -> str:
        """Return a non-empty string, one of `choices` if given."""
        value = self.value
        if not isinstance(value, str) or not value or (choices and value not in choices):
            self.refuse_value(f'one of {", ".join(choices)}' if choices else 'a string', choices)
        return value

    def label(self, *reserved: str) -> str:
        """Return a label that is valid as a file name and as a row of a table."""
        value = self.value
        # YAML reads a scenario called 8 as a number, and a day as a date.
        is_converted = isinstance(value, (int, datetime.date)) and not isinstance(value, bool)
        label = str(value) if is_converted else value
        reserved = ('all', *reserved)
        if (
            not isinstance(label, str)
            or not label
            or label in reserved
            or label[0] == '.'
            or not label.isprintable()
            or set(label) & set('/\\')
        ):
            self.refuse_value(
                f'a label other than {" or ".join(reserved)}, without / and \\ and without a '
                'dot at the beginning'
            )
        return label

    def integer(self, minimum: int, maximum: int | None = None) -> int:
        """Return an integer within bounds."""
        declared = Parameter(minimum, '1', '', minimum=minimum, maximum=maximum)
        return int(declared.parse(self.value, self.where, self.key))

    def number(self, unit: str, *, minimum: float | None = None, above: bool = False) -> float:
        """Return a finite number >= `minimum`, or > `minimum` if `above`."""
        declared = Parameter(0.0, unit, '', minimum=minimum, minimum_excluded=above)
        return float(declared.parse(self.value, self.where, self.key))


P = TypeVar('P', bound='SensorModel[Any]')


def read_twins(models: Entry, folder: Path) -> tuple[Twin, ...]:
    """Read the entry `models` of a study file.

    Parameters
    ----------
    models : Entry
        A list of variants, or lists of models by kind of sensor. The combinations of these lists
        are then the variants.
    folder : Path
        Folder that paths of model files are relative to.

    Raises
    ------
    ParameterError
        When a model is invalid, a variant simulates no sensor, or a label is given twice.
    """
    if isinstance(models.value, list):
        twins = [_read_variant(entry, folder) for entry in models.items('variants')]
    else:
        twins = _combine(models, folder)
    models.refuse_twice([twin.label for twin in twins], 'label of several variants')
    return tuple(twins)


_BASIC = ('gps', 'imu')
"""Kinds that are required unless another kind is given; they then stay real by default."""


def _by_kind(entry: Entry, *more_keys: str) -> dict[str, Entry]:
    """Return the models of a variant, or the lists of models, by kind of sensor."""
    other_kinds = [name for name in KINDS.names() if name not in _BASIC]
    values = entry.value if isinstance(entry.value, dict) else {}
    required = () if any(name in values for name in other_kinds) else _BASIC
    fields = entry.fields((*more_keys, *_BASIC, *other_kinds), required=(*more_keys, *required))
    real = {name: Entry(entry.where, entry.key, REAL_SENSOR) for name in _BASIC}
    return {**real, **{name: fields[name] for name in (*_BASIC, *other_kinds) if name in fields}}


def _read_variant(entry: Entry, folder: Path) -> Twin:
    models = _by_kind(entry, 'label')
    return _make_twin(entry, entry.field('label').label(REAL_SENSOR), models, folder)


def _combine(models: Entry, folder: Path) -> list[Twin]:
    """Return the variants of all combinations of the listed models."""
    lists = {kind: _expand_list(entry, kind) for kind, entry in _by_kind(models).items()}
    twins = []
    for combination in itertools.product(*lists.values()):
        entries = dict(zip(lists, combination, strict=True))
        labelled = [kind for kind, entry in entries.items() if entry.value != REAL_SENSOR]
        # A model that all variants share is not part of their labels.
        if len(lists) > len(_BASIC):
            labelled = [kind for kind in labelled if len(lists[kind]) > 1] or labelled
        elif len(lists['imu']) == 1 and 'gps' in labelled:
            labelled = ['gps']
        label = '+'.join(_label(entries[kind]) for kind in labelled)
        twin = _make_twin(models, label, entries, folder)
        phrases = [_phrase(KINDS.get(kind), entries[kind], folder) for kind in labelled]
        is_shared = twin.imu is not None and len(lists['imu']) == 1
        shared = _label(entries['imu']) if is_shared else ''
        phrase = '; '.join(filter(None, phrases))
        twins.append(dataclasses.replace(twin, phrase=phrase, shared_imu=shared))
    return twins


def _make_twin(owner: Entry, label: str, entries: Mapping[str, Entry], folder: Path) -> Twin:
    models: dict[str, Any] = {
        kind: read_model(KINDS.get(kind), entry, folder)
        for kind, entry in entries.items()
        if entry.value != REAL_SENSOR
    }
    if not models:
        owner.refuse('simulates no sensor; must have at least one model other than real')
    return Twin(label, gps=models.pop('gps', None), imu=models.pop('imu', None), others=models)


def _phrase(kind: type[SensorModel[Any]], entry: Entry, folder: Path) -> str:
    """Return a short description of a named model; empty for one given by parameters."""
    if not isinstance(entry.value, str) or entry.value in (REAL_SENSOR, STAND_IN):
        return ''
    return kind.phrase(entry.value, folder=folder)


def _expand_list(entry: Entry, kind: str) -> list[Entry]:
    """Return the entries of a list of models, with `paper` and `all` replaced by their models."""
    models: list[Entry] = []
    for item in entry.items('models') if isinstance(entry.value, list) else [entry]:
        sets = {'all': preset_names(kind), **({'paper': PAPER_MODELS} if kind == 'gps' else {})}
        values = sets.get(str(item.value), [item.value])
        models += [Entry(item.where, item.key, value) for value in values]
    return models


def _label(entry: Entry) -> str:
    if isinstance(entry.value, dict):
        if 'label' not in entry.value:
            entry.field('label').refuse('is missing; a model given by its parameters needs one')
        return entry.field('label').label(REAL_SENSOR)
    name = entry.text()
    stem = Path(name).stem if name.endswith(('.yaml', '.yml')) else Path(name).name
    if is_in_file(name):
        stem = name.rpartition(':')[2]
    return Entry(entry.where, entry.key, stem.replace(':', '_')).label(REAL_SENSOR)


def read_model(kind: type[P], entry: Entry, folder: Path) -> P:
    """Return the model that an entry names or describes; paths are relative to `folder`."""
    if isinstance(entry.value, str):
        return _load_model(kind, entry, folder)
    if not isinstance(entry.value, dict):
        entry.refuse_value('a name, a file, or a mapping with the key base')
    values = {key: value for key, value in entry.value.items() if key not in ('label', 'base')}
    if 'base' in entry.value:
        base = _load_model(kind, entry.field('base'), folder)
        values = override(to_variant(base), values)
    model: P = from_variant(kind.models, values, entry.where, entry.key)
    return model


def _load_model(kind: type[P], entry: Entry, folder: Path) -> P:
    name = entry.text()
    with entry.add_place_to_errors():
        if name == STAND_IN:
            return kind.load(config_path('demo', f'{kind.name}.yaml'))
        return kind.load(name, folder=folder)


def set_parameters(
    twins: Sequence[Twin], settings: Mapping[str, Any], where: str, prefix: str = ''
) -> tuple[Twin, ...]:
    """Return the variants with changed parameters of their models.

    Parameters
    ----------
    twins : sequence of Twin
    settings : mapping
        Values by kind and parameter, such as `gps.noise.std`. A variant that does not simulate
        the kind stays as it is.
    where, prefix : str
        Option or file, and the key before those of `settings`, for messages.

    Raises
    ------
    ParameterError
        When no variant simulates the kind, or the parameter or its value is invalid.
    """
    changed = list(twins)
    for setting, value in settings.items():
        kind = _simulated_kind(changed, setting, where, prefix)
        changed = [_set_parameter(twin, kind, setting, value, where, prefix) for twin in changed]
    return tuple(changed)


def _simulated_kind(twins: Sequence[Twin], setting: str, where: str, prefix: str) -> str:
    kind, dot, path = setting.partition('.')
    if not dot or not path or not kind:
        problem = 'is not allowed; must be KIND.PARAMETER, such as gps.rate'
        raise ParameterError(where, f'{prefix}{setting}', problem)
    if kind not in KINDS.names():
        problem = not_among(f'{kind!r} is not a kind of sensor', kind, KINDS.names())
        raise ParameterError(where, f'{prefix}{setting}', problem)
    simulated = dict.fromkeys(name for twin in twins for name in twin.models)
    if kind not in simulated:
        problem = f'{kind} is not simulated; must be a parameter of {" or ".join(simulated)}'
        raise ParameterError(where, f'{prefix}{setting}', problem)
    return kind


def _set_parameter(
    twin: Twin, kind: str, setting: str, value: object, where: str, prefix: str
) -> Twin:
    model = twin.models.get(kind)
    if model is None:
        return twin
    path = setting.partition('.')[2]
    registry = KINDS.get(kind).models
    try:
        model = set_parameter(registry, model, path, value, where, f'{prefix}{kind}')
    except ParameterError as error:
        problem = f'{error.problem} ({kind} model {model.kind} of variant {twin.label})'
        raise ParameterError(error.where, error.key, problem) from None
    assignment = f'{setting}={_format_value(value)}'
    phrase = f'{twin.phrase}; {assignment}' if twin.phrase else assignment
    if kind in ('gps', 'imu'):
        changes: dict[str, Any] = {kind: model}
    else:
        changes = {'others': {**twin.others, kind: model}}
    chosen = twin.chosen | {setting}
    return dataclasses.replace(twin, phrase=phrase, chosen=chosen, **changes)


def read_sweep(entry: Entry | None, twins: Sequence[Twin]) -> tuple[Twin, ...]:
    """Return the variants with the parameters that the entry `set` of a study file changes.

    A list of values makes a variant per value, whose label ends with the setting; several lists
    make all combinations. To set one value per axis of a sensor, nest a list in the list.

    Raises
    ------
    ParameterError
        When a parameter or value is wrong, or no variant simulates the kind.
    """
    if entry is None:
        return tuple(twins)
    if not isinstance(entry.value, dict) or not entry.value:
        entry.refuse_value('a mapping such as {gps.rate: [1, 5, 10]}')
    variants = list(twins)
    for setting, values in entry.value.items():
        kind = _simulated_kind(variants, str(setting), entry.where, f'{entry.key}.')
        listed = entry.field(setting).items('values') if isinstance(values, list) else []
        swept: list[Twin] = []
        for twin in variants:
            is_simulated = kind in twin.models
            swept_values = [item.value for item in listed] if is_simulated and listed else [values]
            for value in swept_values:
                changed = _set_parameter(twin, kind, setting, value, entry.where, f'{entry.key}.')
                if is_simulated and len(listed) > 1:
                    label = f'{twin.label}+{setting}={_format_value(value)}'
                    name = Entry(entry.where, f'{entry.key}.{setting}', label)
                    changed = dataclasses.replace(changed, label=name.label(REAL_SENSOR))
                swept.append(changed)
        variants = swept
    entry.refuse_twice([twin.label for twin in variants], 'label of several variants')
    return tuple(variants)


def _format_value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return '_'.join(map(_format_value, value))
    if isinstance(value, Mapping):
        return '_'.join(f'{key}_{_format_value(part)}' for key, part in value.items())
    return f'{value:g}' if isinstance(value, float) else str(value)


@dataclasses.dataclass(frozen=True)
class Condition:
    """Outages of the GPS receiver and a lower rate of its fixes."""

    label: str = ''  # empty for a study without conditions
    outages: tuple[tuple[float, float], ...] = ()  # [start, end) in s since the first true stamp
    gps_rate: float | None = None  # Hz, rate to which fixes are thinned out

    def apply(self, recording: Recording, origin_ns: int) -> Recording:
        """Return the recording under the condition; RecordingError if no fix is left."""
        fixes = recording.gps
        if fixes is None or (not self.outages and self.gps_rate is None):
            return recording
        selected = np.ones(len(fixes), dtype=np.bool_)
        for start, end in self.outages:
            time = (fixes.stamp_ns - origin_ns) * 1e-9
            selected &= (time < start) | (time >= end)
        if self.gps_rate is not None:
            selected[selected] = _thin_out(fixes.stamp_ns[selected], self.gps_rate)
        if not selected.any():
            raise RecordingError(f'{recording.name}: condition {self.label} leaves no fix')
        return recording.with_messages('gps', fixes.take(selected))

    def to_mapping(self) -> dict[str, Any]:
        """Return the condition as plain values."""
        return {
            'label': self.label,
            'outages': [list(outage) for outage in self.outages],
            'gps_rate': self.gps_rate,
        }


def _thin_out(stamp_ns: IntArray, rate: float) -> NDArray[np.bool_]:
    """Return a mask of the fixes nearest to a time grid that begins at the first fix."""
    position = (stamp_ns - stamp_ns[0]) * (rate * 1e-9)
    # The nearest point, so that jitter of stamps does not double every other gap.
    nearest = np.floor(position + 0.5)
    selected = np.zeros(len(stamp_ns), dtype=np.bool_)
    for point in np.unique(nearest):
        candidates = np.flatnonzero(nearest == point)
        selected[candidates[np.argmin(np.abs(position[candidates] - point))]] = True
    return selected


def read_conditions(conditions: Entry | None) -> tuple[Condition, ...]:
    """Return the conditions of a study file; without any, a single one with an empty label.

    Raises ParameterError for an invalid entry or a duplicate label.
    """
    if conditions is None:
        return (Condition(),)
    result = [_read_condition(entry) for entry in conditions.items('conditions')]
    conditions.refuse_twice(
        [condition.label for condition in result], 'label of several conditions'
    )
    return tuple(result)


def _read_condition(entry: Entry) -> Condition:
    fields = entry.fields(('label', 'outages', 'gps_rate'), required=('label',))
    outages = []
    for outage in fields['outages'].items('outages') if 'outages' in fields else []:
        if not isinstance(outage.value, list) or len(outage.value) != 2:
            outage.refuse_value('[start, end] in seconds')
        start, end = (time.number('s', minimum=0.0) for time in outage.items('times'))
        if end <= start:
            outage.refuse_value('[start, end] with start < end')
        outages.append((start, end))
    rate = (
        fields['gps_rate'].number('Hz', minimum=0.0, above=True) if 'gps_rate' in fields else None
    )
    return Condition(fields['label'].label(), tuple(outages), rate)


_KEYS = (
    'label', 'judge', 'config', 'navsat_config', 'case', 'filter', 'section', 'correct', 'latency',
    'transforms', 'front_end', 'rl_version',
)  # fmt: skip
_COMMON_KEYS = ('label', 'judge', 'config', 'transforms')


@dataclasses.dataclass(frozen=True, eq=False)
class StudyJudge:
    """A judge of a study and the digests of its files."""

    label: str  # name in tables and files
    kind: str  # name in `JUDGES`, or class in a file, `my_filter.py:MyFilter`
    setup: Judge
    file_digests: Mapping[Path, str] = dataclasses.field(init=False, repr=False)  # when read

    def __post_init__(self) -> None:
        digests = {path.absolute(): file_digest(path) for path in self.setup.files}
        object.__setattr__(self, 'file_digests', digests)

    @property
    def is_fast(self) -> bool:
        """Whether it judges a run within milliseconds."""
        return self.setup.is_fast

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values that identify the judge."""
        return {
            'label': self.label,
            'judge': self.kind,
            'name': self.setup.name,
            'files': [
                {'name': path.name, 'sha256': digest, 'text': read_input_text(path)}
                for path, digest in self.file_digests.items()
            ],
            **self.setup.settings(),
        }


def read_judges(judges: Entry, folder: Path) -> tuple[StudyJudge, ...]:
    """Read the judges of a study file; paths are relative to `folder`.

    Raises
    ------
    Sim2RealError
        When an entry or file is wrong, a label is given twice, or a judge is not installed.
    """
    result = [_read_judge(entry, folder) for entry in judges.items('judges')]
    judges.refuse_twice([judge.label for judge in result], 'label of several judges')
    return tuple(result)


def _read_judge(entry: Entry, folder: Path) -> StudyJudge:
    if isinstance(entry.value, str):
        is_judge = entry.text() in JUDGES.names() or is_in_file(entry.text())
        fields = {'judge' if is_judge else 'config': entry}
    else:
        fields = entry.fields(_KEYS)
    kind = fields['judge'].text() if 'judge' in fields else 'embedded'
    config = fields['config'].text() if 'config' in fields else None
    if 'label' in fields:
        label = fields['label'].label()
    else:
        label = Entry(entry.where, entry.key, judge_label(kind, config)).label()

    def refuse(name: str, problem: str) -> NoReturn:
        (fields[name] if name in fields else entry.field(name)).refuse(problem)

    with fields.get('judge', entry).add_place_to_errors():
        is_node = getattr(judge_class(kind, folder=folder), 'takes_node_options', False)
    if is_node and isinstance(entry.value, str) and 'judge' in fields:
        entry.refuse(f'{kind} needs a config; write {{judge: {kind}, config: ...}}')
    path: str | Path | None = config
    if config is not None and (config.endswith(('.yaml', '.yml')) or len(Path(config).parts) > 1):
        path = folder / config
    request = JudgeRequest(
        judge=kind,
        config=path,
        transforms=_transforms(fields, folder),
        node_options=_node_options(fields, folder) if is_node else {},
        explicit_options=tuple(name for name in fields if name not in _COMMON_KEYS),
        refuse=refuse,
        folder=folder,
    )
    with fields.get('config', entry).add_place_to_errors():
        setup = load_judge(request)
    if isinstance(setup, JudgeSetup) and config is not None:
        # The folder of the study must not identify the judge, only the contents of its files.
        setup = dataclasses.replace(setup, name=config)
    return StudyJudge(label, kind, setup)


def _transforms(fields: dict[str, Entry], folder: Path) -> TransformFile | None:
    if 'transforms' not in fields:
        return None
    return TransformFile.from_file(folder / fields['transforms'].text())


def _replay_options(fields: dict[str, Entry], folder: Path) -> Options:
    correct = latency = release = None
    if 'correct' in fields:
        entry = fields['correct']
        names = entry.items('deviations to correct') if entry.value != [] else []
        correct = corrections([name.value for name in names], entry.where, entry.key)
    if 'latency' in fields:
        entry = fields['latency']
        if not isinstance(entry.value, dict):
            entry.refuse_value('a mapping of topics to seconds')
        latency = latency_ns(entry.value, entry.where, entry.key)
    if 'rl_version' in fields:
        entry = fields['rl_version']
        release = Release.from_value(entry.value, entry.where, entry.key)
    return Options(
        unscented=fields['filter'].text(('ekf', 'ukf')) == 'ukf' if 'filter' in fields else None,
        correct=correct,
        latency_ns=latency or {},
        transforms=_transforms(fields, folder),
        front_end=fields['front_end'].text(FRONT_ENDS) if 'front_end' in fields else None,
        section=fields['section'].text() if 'section' in fields else None,
        release=release,
    )


def _node_options(fields: dict[str, Entry], folder: Path) -> dict[str, Any]:
    files: dict[str, Any] = {
        name: folder / fields[name].text() for name in ('navsat_config', 'case') if name in fields
    }
    return {**files, 'options': _replay_options(fields, folder)}
