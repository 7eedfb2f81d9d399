# SPDX-License-Identifier: Apache-2.0
"""Static transforms between the frames of a robot, also from URDF and YAML files."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import JudgeError, RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import number_of
from .findings import FRAMES_ASSUMED, TRANSFORM
from .metadata import read_transforms
from .recording import StaticTransform


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
    expanded, or a wrong joint is a RecordingError.

    Returns
    -------
    transforms : tuple of StaticTransform
        Transforms of all joints except floating and planar ones.
    moving : tuple of str
        Names of revolute, continuous and prismatic joints, whose position is taken as zero.
    """
    try:
        root = ElementTree.fromstring(path.read_bytes())
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
        rotation = Rotation.from_euler('xyz', _numbers(path, name, origin, 'rpy'))
        x, y, z, w = rotation.as_quat().tolist()
        transforms[child] = StaticTransform(
            parent, child, _numbers(path, name, origin, 'xyz'), (x, y, z, w)
        )
    return tuple(transforms.values()), tuple(moving)


def _link(path: Path, name: str, joint: ElementTree.Element, end: str) -> str:
    element = joint.find(end)
    link = None if element is None else element.get('link')
    if not link:
        raise RecordingError(f'{path}: {name}: {end} is missing; must name a link')
    return link


def _numbers(
    path: Path, name: str, origin: ElementTree.Element | None, key: str
) -> tuple[float, float, float]:
    text = '0 0 0' if origin is None else origin.get(key, '0 0 0')
    numbers = [number for number in map(number_of, text.split()) if number is not None]
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

        An unreadable file or a wrong transform is a Sim2RealError.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ParameterError(str(path), '', f'cannot be read: {error.strerror}') from None
        except ValueError:
            raise ParameterError(repr(str(path)), '', 'is not a file name') from None
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

    def over(
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
