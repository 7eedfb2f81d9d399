# SPDX-License-Identifier: Apache-2.0
"""YAML files beside the data: recording.yaml and static_transforms.yaml."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.errors import RecordingError
from sim_sensors.core.config_files import read_yaml
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.parameters import LARGEST
from .corrections import CORRECTIONS
from .message_types import MESSAGE_TYPES, NAMED_TYPES, normalise_type_name
from .recording import DEFAULT_TOPICS, ROLE_CLASSES, ReferenceTruth, StaticTransform

_KEYS = (
    *('name', 'scenario', 'topics', 'arrival', 'base_frame', 'frames', 'lever_arms'),
    *('transforms', 'files', 'truth', 'corrections'),
)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """Content of a recording.yaml; every key is optional.

    Attributes
    ----------
    name, scenario : str or None
        Labels of the run.
    topics : mapping of str to (str or None)
        Topic by role (`imu`, `gps`, `truth`), or None if the run has no such role.
    arrival : str or None
        Source of the times of arrival: `stamp` or `recorded`.
    base_frame : str
        Frame in which lever arms are given.
    frames : mapping of str to str
        Frame by role; replaces the frame in the message headers.
    lever_arms : mapping of str to tuple of 3 float
        Position of the sensor in the base frame by role, m.
    transforms : tuple of StaticTransform
        Static transforms; they replace those in the data with the same child frame.
    files : mapping of str to (str, str)
        Topic and message type by file of a CSV folder.
    reference : ReferenceTruth or None
        Content of `truth` if its nature is `reference`.
    low_pass : float or None
        Cutoff of the truth's low-pass filter in `truth`, Hz; see `low_pass_truth`.
    corrections : mapping of str to correction
        Corrections by role; see `CORRECTIONS`.
    """

    name: str | None = None
    scenario: str | None = None
    topics: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    arrival: str | None = None
    base_frame: str = 'base_link'
    frames: Mapping[str, str] = dataclasses.field(default_factory=dict)
    lever_arms: Mapping[str, tuple[float, float, float]] = dataclasses.field(default_factory=dict)
    transforms: tuple[StaticTransform, ...] = ()
    files: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    reference: ReferenceTruth | None = None
    low_pass: float | None = None
    corrections: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def load_yaml(path: Path) -> Any:
    """Parse a YAML file; raises RecordingError when it cannot be read."""
    try:
        return read_yaml(path)
    except ParameterError as error:
        raise RecordingError(str(error)) from None


def find_metadata(path: Path) -> Path | None:
    """Return the recording.yaml of a folder or file, or None if there is none.

    Search order: `recording.yaml` in the folder, then `<name>.recording.yaml` beside the folder or
    file, then (for a single file) `recording.yaml` beside it.
    """
    name = path.stem if path.is_file() else path.name
    inside = [path / 'recording.yaml'] if path.is_dir() else []
    outside = [path.parent / f'{name}.recording.yaml']
    beside = [path.parent / 'recording.yaml'] if path.is_file() else []
    return next((file for file in [*inside, *outside, *beside] if file.is_file()), None)


def find_own_metadata(path: Path) -> tuple[Path, Path | None]:
    """Return the recording.yaml that belongs to one folder or file only, and the shared one.

    The first need not exist. The second is in force for several files of a folder, or None.
    """
    current = find_metadata(path)
    if not path.is_file():
        return current or path / 'recording.yaml', None
    own_path = path.parent / f'{path.stem}.recording.yaml'
    return own_path, None if current == own_path else current


def read_metadata(path: Path) -> Metadata:
    """Read a recording.yaml; unknown keys and forbidden values are a RecordingError."""
    content = load_yaml(path)
    table = _mapping(path, '', {} if content is None else content)
    _check_keys(path, '', table, _KEYS)
    values: dict[str, Any] = {
        key: _text(path, key, table[key])
        for key in ('name', 'scenario', 'arrival', 'base_frame')
        if key in table
    }
    for key in ('name', 'scenario'):
        label = values.get(key, 'label')
        # Both become parts of file names; `all` is the table row of the pooled scenarios.
        is_name = label.isprintable() and not set(label) & set('/\\')
        if not is_name or label.startswith('.') or label == 'all':
            raise RecordingError(
                f'{path}: {key}: {label!r} is not allowed; must not be all, begin with a dot, or '
                'hold /, \\ or control characters'
            )
    if values.get('arrival', 'stamp') not in ('stamp', 'recorded'):
        raise RecordingError(
            f'{path}: arrival: {values["arrival"]!r} is not allowed; must be stamp or recorded'
        )
    readers = {'topics': _text_or_none, 'frames': _text, 'lever_arms': _numbers}
    for key, read in readers.items():
        by_role = _mapping(path, key, table.get(key) or {})
        _check_keys(path, f'{key}.', by_role, ROLE_CLASSES, 'role')
        values[key] = {role: read(path, f'{key}.{role}', raw) for role, raw in by_role.items()}
    corrections = _mapping(path, 'corrections', table.get('corrections') or {})
    _check_keys(path, 'corrections.', corrections, CORRECTIONS, 'role')
    try:
        values['corrections'] = {
            role: CORRECTIONS[role].from_mapping(raw, str(path), f'corrections.{role}')
            for role, raw in corrections.items()
        }
    except ParameterError as error:
        raise RecordingError(str(error)) from None
    values['transforms'] = _transforms(path, 'transforms', table.get('transforms') or [])
    values['files'] = read_files(path, 'files', table.get('files') or {})
    if table.get('truth') is not None:
        values['low_pass'], values['reference'] = _truth(path, table['truth'])
    return Metadata(**values)


def read_files(path: Path, where: str, content: object) -> dict[str, tuple[str, str]]:
    """Read a mapping of CSV file -> {topic, type}, as in recording.yaml and case.yaml."""
    files = {}
    for file, target in _mapping(path, where, content).items():
        key = f'{where}.{file}'
        table = _mapping(path, key, target)
        topic = _text(path, f'{key}.topic', table.get('topic'))
        ros_type = normalise_type_name(_text(path, f'{key}.type', table.get('type')))
        allowed = (*MESSAGE_TYPES, *NAMED_TYPES)
        if ros_type not in allowed:
            problem = not_among(f'{ros_type} is not allowed', ros_type, allowed)
            raise RecordingError(f'{path}: {key}.type: {problem}')
        files[str(file)] = (topic, ros_type)
    return files


def read_transforms(path: Path) -> tuple[StaticTransform, ...]:
    """Read a static_transforms.yaml: a list of parent, child, translation, rotation_xyzw."""
    return _transforms(path, '', load_yaml(path) or [])


def transform_mappings(transforms: tuple[StaticTransform, ...]) -> list[dict[str, Any]]:
    """Return transforms as mappings for YAML, which `read_transforms` reads back."""
    return [
        {
            'parent': transform.parent,
            'child': transform.child,
            'translation': list(map(float, transform.translation)),
            'rotation_xyzw': list(map(float, transform.rotation)),
        }
        for transform in transforms
    ]


def _truth(path: Path, content: object) -> tuple[float | None, ReferenceTruth | None]:
    """Read the cutoff of the truth's low-pass filter, and its origin if it is a reference."""
    table = _mapping(path, 'truth', content)
    allowed = ('low_pass', 'nature', *(field.name for field in dataclasses.fields(ReferenceTruth)))
    _check_keys(path, 'truth.', table, allowed)
    cutoff = table.get('low_pass')
    if cutoff is not None:
        is_number = isinstance(cutoff, (int, float)) and not isinstance(cutoff, bool)
        if not is_number or not 0.0 < cutoff <= LARGEST:
            raise RecordingError(
                f'{path}: truth.low_pass: {_shorten(cutoff)} is not allowed; must be a frequency '
                'above 0 Hz'
            )
    # A truth with only a low-pass filter is independent.
    nature = table.get('nature', 'independent' if set(table) == {'low_pass'} else None)
    if nature not in ('reference', 'independent'):
        raise RecordingError(
            f'{path}: truth.nature: {_shorten(nature)} is not allowed; must be reference or '
            'independent'
        )
    return cutoff, None if nature == 'independent' else _reference(path, table)


def _reference(path: Path, table: Mapping[str, Any]) -> ReferenceTruth:
    sensors = table.get('made_from') or []
    if not isinstance(sensors, list):
        raise RecordingError(f'{path}: truth.made_from: must be a list of topics')
    return ReferenceTruth(
        topic=_text(path, 'truth.topic', table.get('topic', DEFAULT_TOPICS['truth'])),
        made_by=_text(path, 'truth.made_by', table.get('made_by', 'somebody')),
        made_from=tuple(_text(path, 'truth.made_from', topic) for topic in sensors),
        deviation=_mapping(path, 'truth.deviation', table.get('deviation') or {}),
        settings=_mapping(path, 'truth.settings', table.get('settings') or {}),
    )


def _transforms(path: Path, where: str, content: object) -> tuple[StaticTransform, ...]:
    if not isinstance(content, list):
        raise RecordingError(f'{path}: {where or "content"}: must be a list of transforms')
    transforms = []
    for index, raw in enumerate(content):
        key = f'{where}[{index}]'
        table = _mapping(path, key, raw)
        _check_keys(path, f'{key}.', table, ('parent', 'child', 'translation', 'rotation_xyzw'))
        parent, child = (
            _text(path, f'{key}.{end}', table.get(end)) for end in ('parent', 'child')
        )
        translation = _numbers(path, f'{key}.translation', table.get('translation', [0, 0, 0]))
        quaternion = table.get('rotation_xyzw', [0, 0, 0, 1])
        rotation = _numbers(path, f'{key}.rotation_xyzw', quaternion, 4)
        transforms.append(StaticTransform(parent, child, translation, rotation))
    return tuple(transforms)


def _mapping(path: Path, key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordingError(
            f'{path}: {key or "content"}: {_shorten(value)} is not allowed; must be a mapping'
        )
    return value


def _check_keys(
    path: Path, prefix: str, table: Mapping[str, Any], allowed: Collection[str], noun: str = 'key'
) -> None:
    for key in table:
        if key not in allowed:
            problem = not_among(f'unknown {noun}', key, allowed)
            raise RecordingError(f'{path}: {prefix}{key}: {problem}')


def _text(path: Path, key: str, value: object) -> str:
    # YAML reads a scenario called 8 as a number.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise RecordingError(f'{path}: {key}: {_shorten(value)} is not allowed; must be a text')
    return value


def _text_or_none(path: Path, key: str, value: object) -> str | None:
    return None if value is None else _text(path, key, value)


def _numbers(path: Path, key: str, value: object, count: int = 3) -> Any:
    numbers = value if isinstance(value, list) else []
    if len(numbers) != count or not all(
        isinstance(number, (int, float))
        and not isinstance(number, bool)
        and abs(number) <= LARGEST
        for number in numbers
    ):
        raise RecordingError(
            f'{path}: {key}: {_shorten(value)} is not allowed; must be {count} finite numbers'
        )
    return tuple(float(number) for number in numbers)


def _shorten(value: object) -> str:
    text = ' '.join(repr(value).split())
    return text if len(text) <= 60 else f'{text[:57]}...'


_CHUNK = 1 << 20


def recording_digest(path: str | Path) -> str:
    """Return the SHA-256 (hex) of the names, sizes and contents of a recording's files.

    The recording.yaml in force counts; hidden files and sub-folders do not. A copy elsewhere has
    the same digest. A path that is missing or cannot be read is a RecordingError.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f'{path}: no such file or folder')
    try:
        files = [path]
        if path.is_dir():
            inside = sorted(path.iterdir())
            files = [file for file in inside if file.is_file() and file.name[0] != '.']
        sidecar = find_metadata(path)
        named = [(file.name, file) for file in files]
        if sidecar is not None and sidecar not in files:
            named.append(('recording.yaml', sidecar))
        digest = hashlib.sha256()
        for name, file in named:
            digest.update(f'{name}\x00{file.stat().st_size}\x00'.encode())
            with file.open('rb') as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    return digest.hexdigest()
