# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""recording.yaml, static transforms from YAML or URDF files, and the digest of a recording."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, JudgeError, RecordingError
from sim_sensors.core.config_files import read_yaml
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.input_files import read_input
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import LARGEST, parse_number
from .checks import FRAMES_ASSUMED, TRANSFORM
from .corrections import CORRECTIONS
from .message_types import MESSAGE_TYPES, NAMED_TYPES, normalise_type_name
from .recording import DEFAULT_TOPICS, PLACED_ROLES, ROLE_CLASSES, ReferenceTruth, StaticTransform

_KEYS = (
    *('name', 'scenario', 'block', 'topics', 'arrival', 'base_frame', 'frames', 'lever_arms'),
    *('transforms', 'files', 'truth', 'corrections'),
)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """Content of a recording.yaml; every key is optional.

    Attributes
    ----------
    name, scenario : str or None
        Labels of the run.
    block : str
        Label of recordings that are not independent, such as the drive, the day or the receiver.
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
    block: str = ''
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
    return next((file for file in [*inside, *outside, *beside] if file.exists()), None)


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
    """Read a recording.yaml; unknown keys and forbidden values raise RecordingError."""
    content = load_yaml(path)
    table = _mapping(path, '', {} if content is None else content)
    _check_keys(path, '', table, _KEYS)
    values: dict[str, Any] = {
        key: _text(path, key, table[key])
        for key in ('name', 'scenario', 'block', 'arrival', 'base_frame')
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
        allowed = PLACED_ROLES if key == 'lever_arms' else ROLE_CLASSES
        _check_keys(path, f'{key}.', by_role, allowed, 'role')
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
        if parent.strip('/') == child.strip('/'):
            problem = f'{child} is not allowed; must be another frame than the parent'
            raise RecordingError(f'{path}: {key}.child: {problem}')
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
    # YAML reads a scenario called 8 as a number, and a day as a date.
    if isinstance(value, (int, datetime.date)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise RecordingError(f'{path}: {key}: {_shorten(value)} is not allowed; must be a string')
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


class FrameTree:
    """Frames connected by static transforms.

    Parameters
    ----------
    transforms : sequence of StaticTransform
        Poses of child frames in parent frames.
    assume_identity : bool
        Whether unconnected frames are assumed to coincide; `assumed` then lists them.
    """

    def __init__(
        self, transforms: Sequence[StaticTransform], *, assume_identity: bool = False
    ) -> None:
        self._neighbours: dict[str, list[tuple[str, FloatArray, FloatArray]]] = {}
        for transform in transforms:
            self.add(transform)
        self._assume_identity = assume_identity
        self.assumed: list[tuple[str, str]] = []

    def add(self, transform: StaticTransform) -> None:
        """Connect two frames; between connected frames it is undefined which transform is used."""
        R = Rotation.from_quat(np.asarray(transform.rotation, dtype=np.float64)).as_matrix()
        p = np.asarray(transform.translation, dtype=np.float64)
        parent, child = transform.parent.strip('/'), transform.child.strip('/')
        self._neighbours.setdefault(parent, []).append((child, R, p))
        self._neighbours.setdefault(child, []).append((parent, R.T, -R.T @ p))

    def __contains__(self, frame: str) -> bool:
        """Return True if a transform names the frame."""
        return frame.strip('/') in self._neighbours

    def lookup(self, target: str, source: str, user: str) -> tuple[FloatArray, FloatArray]:
        """Return rotation (3, 3) and position (3,) of frame `source` in frame `target`.

        Raises
        ------
        JudgeError
            When nothing connects the frames; the error names both and the `user` that needs them.
        """
        target, source = target.strip('/'), source.strip('/')
        poses: dict[str, tuple[FloatArray, FloatArray]] = {target: (np.eye(3), np.zeros(3))}
        queue = [target]
        while queue and source not in poses:
            frame = queue.pop(0)
            R, p = poses[frame]
            for neighbour, rotation, translation in self._neighbours.get(frame, []):
                if neighbour not in poses:
                    poses[neighbour] = (R @ rotation, R @ translation + p)
                    queue.append(neighbour)
        if source in poses:
            return poses[source]
        if self._assume_identity:
            if (target, source) not in self.assumed:
                self.assumed.append((target, source))
            return np.eye(3), np.zeros(3)
        raise JudgeError(
            f'{user}: no static transform connects frame {source!r} to {target!r}; '
            'add it to the recording, to recording.yaml (lever_arms, transforms), to '
            'static_transforms.yaml, or give a file with --transforms'
        )

    @property
    def assumptions(self) -> list[Finding]:
        """Finding about the frames that were assumed to coincide, if any."""
        pairs = ', '.join(f'{source} = {target}' for target, source in self.assumed)
        return [FRAMES_ASSUMED(frames=pairs)] if pairs else []


# Robot descriptions (URDF).

_MOVING_TYPES = ('revolute', 'continuous', 'prismatic')
_FREE_TYPES = ('floating', 'planar')


def read_urdf(path: Path) -> tuple[tuple[StaticTransform, ...], tuple[str, ...]]:
    """Read the joints of a URDF file.

    The pose of a joint's child in its parent is `origin`: xyz in metres, and roll, pitch, yaw in
    radians about the parent's fixed axes. A file that is not URDF, a xacro file that is not
    expanded, or a wrong joint raises RecordingError.

    Returns
    -------
    transforms : tuple of StaticTransform
        Transforms of all joints except floating and planar ones.
    moving : tuple of str
        Names of revolute, continuous and prismatic joints, whose position is taken as zero.
    """
    try:
        root = ElementTree.fromstring(read_input(path))
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise RecordingError(f'{path}: not XML: {error}') from None
    # ElementTree drops the unused name space that xacro leaves in expanded files.
    if any('xacro' in str(element.tag).rpartition('}')[0] for element in root.iter()) or any(
        '${' in text for element in root.iter() for text in element.attrib.values()
    ):
        raise RecordingError(
            f'{path}: is an unexpanded xacro file; run '
            f'`xacro {path.name} > robot.urdf` and give that file'
        )
    if root.tag != 'robot':
        raise RecordingError(f'{path}: {root.tag!r} is not allowed at the top; must be robot')
    transforms: dict[str, StaticTransform] = {}
    moving = []
    for number, joint in enumerate(root.findall('joint')):
        name = joint.get('name') or f'joint[{number}]'
        kind = joint.get('type')
        if kind not in ('fixed', *_MOVING_TYPES, *_FREE_TYPES):
            allowed = ', '.join(('fixed', *_MOVING_TYPES, *_FREE_TYPES))
            raise RecordingError(
                f'{path}: {name}: type {kind!r} is not allowed; must be one of {allowed}'
            )
        if kind in _FREE_TYPES:
            continue
        parent, child = (_link(path, name, joint, end) for end in ('parent', 'child'))
        if child in transforms:
            raise RecordingError(f'{path}: {name}: link {child} has two parents; must have one')
        if parent == child:
            raise RecordingError(f'{path}: {name}: link {child} is its own parent')
        if kind in _MOVING_TYPES:
            moving.append(name)
        origin = joint.find('origin')
        rotation = Rotation.from_euler('xyz', _finite_numbers(path, name, origin, 'rpy'))
        x, y, z, w = rotation.as_quat().tolist()
        transforms[child] = StaticTransform(
            parent, child, _finite_numbers(path, name, origin, 'xyz'), (x, y, z, w)
        )
    return tuple(transforms.values()), tuple(moving)


def _link(path: Path, name: str, joint: ElementTree.Element, end: str) -> str:
    element = joint.find(end)
    link = None if element is None else element.get('link')
    if not link:
        raise RecordingError(f'{path}: {name}: {end} is missing; must name a link')
    return link


def _finite_numbers(
    path: Path, name: str, origin: ElementTree.Element | None, key: str
) -> tuple[float, float, float]:
    text = '0 0 0' if origin is None else origin.get(key, '0 0 0')
    numbers = [number for number in map(parse_number, text.split()) if number is not None]
    if len(numbers) != 3 or len(text.split()) != 3:
        raise RecordingError(
            f'{path}: {name}: {key} {text!r} is not allowed; must be 3 finite numbers'
        )
    return numbers[0], numbers[1], numbers[2]


# Transform files given by the user.

_URDF_SUFFIXES = ('.urdf', '.xacro', '.xml')
_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True)
class TransformFile:
    """File with static transforms that complete or replace those of a recording.

    Attributes
    ----------
    name : str
        File name without folder.
    sha256 : str
        SHA-256 of the file, hexadecimal.
    transforms : tuple of StaticTransform
        Transforms in the file.
    notes : tuple of Finding
        Findings about the transforms.
    """

    name: str
    sha256: str
    transforms: tuple[StaticTransform, ...]
    notes: tuple[Finding, ...] = ()

    @classmethod
    def from_file(cls, path: str | Path) -> TransformFile:
        """Read a URDF, or a YAML file in the form of a recording's static_transforms.yaml.

        An unreadable file or a wrong transform raises Sim2RealError.
        """
        path = Path(path)
        try:
            content = read_input(path)
        except OSError as error:
            raise ParameterError(str(path), '', f'cannot be read: {error.strerror}') from None
        digest = hashlib.sha256(content).hexdigest()
        moving: tuple[str, ...] = ()
        if path.suffix.lower() in _URDF_SUFFIXES or content.lstrip()[:1] == b'<':
            transforms, moving = read_urdf(path)
        else:
            transforms = read_transforms(path)
        children = [transform.child.strip('/') for transform in transforms]
        for number, transform in enumerate(transforms):
            if children[number] in children[:number]:
                raise ParameterError(
                    str(path), f'[{number}]', f'child {transform.child!r} is given twice'
                )
            if np.linalg.norm(transform.rotation) < 1e-6:
                raise ParameterError(
                    str(path),
                    f'[{number}].rotation_xyzw',
                    f'{list(transform.rotation)} is not allowed; must be a quaternion',
                )
        if not transforms:
            hint = f'; run `xacro {path.name} > robot.urdf` first' if b'xacro' in content else ''
            raise ParameterError(str(path), '', f'has no transform; must have one or more{hint}')
        problem = f'the position of moving joints is taken as zero: {", ".join(moving)}'
        notes = (TRANSFORM(path.name, problem=problem),)
        return cls(path.name, digest, transforms, notes if moving else ())

    def merge_with(
        self, recorded: Sequence[StaticTransform]
    ) -> tuple[tuple[StaticTransform, ...], tuple[Finding, ...]]:
        """Merge the transforms of the file over those of a recording.

        Returns
        -------
        transforms : tuple of StaticTransform
            Transforms of the file, and those of the recording that connect further frames.
        notes : tuple of Finding
            One finding for each transform of the recording that the file contradicts.
        """
        merged, notes = list(self.transforms), []
        tree = FrameTree(merged)
        stated = {transform.child.strip('/') for transform in self.transforms}
        # Children that the file places come last, so that the file decides where they are.
        for transform in sorted(
            recorded, key=lambda transform: transform.child.strip('/') in stated
        ):
            if transform in self.transforms:
                continue
            parent, child = transform.parent.strip('/'), transform.child.strip('/')
            try:
                pose = tree.lookup(parent, child, '')
            except JudgeError:
                merged.append(transform)
                tree.add(transform)
                continue
            recorded_pose = FrameTree([transform]).lookup(parent, child, '')
            if not all(
                np.allclose(a, b, rtol=0.0, atol=_TOLERANCE)
                for a, b in zip(pose, recorded_pose, strict=True)
            ):
                problem = f"replaces the recording's transform {parent} -> {child}"
                notes.append(TRANSFORM(self.name, problem=problem))
        return tuple(merged), tuple(notes)

    def settings(self) -> dict[str, str]:
        """Return name and SHA-256 of the file, for provenance."""
        return {'name': self.name, 'sha256': self.sha256}
