# SPDX-License-Identifier: Apache-2.0
"""Static transforms between the frames of a robot."""

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
from .findings import FRAMES_ASSUMED, MOVING_JOINTS, TRANSFORM_REPLACED
from .metadata import read_transforms
from .recording import StaticTransform


class FrameTree:
    """Frames connected by static transforms.

    Parameters
    ----------
    transforms : sequence
        Poses of child frames in parent frames.
    assume_identity : bool
        Whether frames that nothing connects are taken to coincide; `assumed` then lists them.
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
        """Connect two frames; where they are connected already, which way counts is open."""
        R = Rotation.from_quat(np.asarray(transform.rotation, dtype=np.float64)).as_matrix()
        p = np.asarray(transform.translation, dtype=np.float64)
        parent, child = transform.parent.strip('/'), transform.child.strip('/')
        self._neighbours.setdefault(parent, []).append((child, R, p))
        self._neighbours.setdefault(child, []).append((parent, R.T, -R.T @ p))

    def __contains__(self, frame: str) -> bool:
        """Whether a transform names that frame."""
        return frame.strip('/') in self._neighbours

    def lookup(self, target: str, source: str, user: str) -> tuple[FloatArray, FloatArray]:
        """Return rotation (3, 3) and position (3,) of frame `source` in frame `target`.

        Raises
        ------
        JudgeError
            When nothing connects the frames, naming both and the `user`, who needs them.
        """
        target, source = target.strip('/'), source.strip('/')
        known: dict[str, tuple[FloatArray, FloatArray]] = {target: (np.eye(3), np.zeros(3))}
        waiting = [target]
        while waiting and source not in known:
            frame = waiting.pop(0)
            R, p = known[frame]
            for neighbour, turn, shift in self._neighbours.get(frame, []):
                if neighbour not in known:
                    known[neighbour] = (R @ turn, R @ shift + p)
                    waiting.append(neighbour)
        if source in known:
            return known[source]
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
        """Which frames were assumed to be equal, if any."""
        pairs = ', '.join(f'{source} = {target}' for target, source in self.assumed)
        return [FRAMES_ASSUMED(frames=pairs)] if pairs else []


# Static transforms from a robot description: the fixed joints of a URDF.

_TURNING = ('revolute', 'continuous', 'prismatic')
_FREE = ('floating', 'planar')


def read_urdf(path: Path) -> tuple[tuple[StaticTransform, ...], tuple[str, ...]]:
    """Read the joints of a URDF file.

    The pose of a joint's child in its parent is `origin`: xyz in metres, and roll, pitch, yaw in
    radians about the parent's fixed axes. A file that is no URDF, one that xacro has still to
    expand, or a wrong joint is a RecordingError.

    Returns
    -------
    transforms : tuple of StaticTransform
        Of all joints but floating and planar ones, which connect nothing firmly.
    moving : tuple of str
        Names of revolute, continuous and prismatic joints, which are taken at zero.
    """
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise RecordingError(f'{path}: is no XML: {error}') from None
    # A declared name space that nothing uses, as xacro leaves it behind, does not show here.
    if any('xacro' in str(one.tag).rpartition('}')[0] for one in root.iter()) or any(
        '${' in value for one in root.iter() for value in one.attrib.values()
    ):
        raise RecordingError(
            f'{path}: is for xacro; run `xacro {path.name} > robot.urdf` and give that file'
        )
    if root.tag != 'robot':
        raise RecordingError(f'{path}: {root.tag!r} is not allowed at the top; must be robot')
    transforms: dict[str, StaticTransform] = {}
    moving = []
    for number, joint in enumerate(root.findall('joint')):
        name = joint.get('name') or f'joint[{number}]'
        kind = joint.get('type')
        if kind not in ('fixed', *_TURNING, *_FREE):
            allowed = ', '.join(('fixed', *_TURNING, *_FREE))
            raise RecordingError(
                f'{path}: {name}: type {kind!r} is not allowed; must be one of {allowed}'
            )
        if kind in _FREE:
            continue
        parent, child = (_link(path, name, joint, end) for end in ('parent', 'child'))
        if child in transforms:
            raise RecordingError(f'{path}: {name}: link {child} has two parents; must have one')
        if parent == child:
            raise RecordingError(f'{path}: {name}: link {child} is its own parent')
        if kind in _TURNING:
            moving.append(name)
        origin = joint.find('origin')
        turn = Rotation.from_euler('xyz', _numbers(path, name, origin, 'rpy'))
        x, y, z, w = turn.as_quat().tolist()
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


# Static transforms that the user gives in a file, in place of or beside a recording's own.

_DESCRIPTIONS = ('.urdf', '.xacro', '.xml')
_SAME = 1e-9


@dataclasses.dataclass(frozen=True)
class TransformFile:
    """Content of a file with static transforms.

    Attributes
    ----------
    name : str
        Of the file, without its folder.
    sha256 : str
        Of its bytes, hexadecimal.
    transforms : tuple of StaticTransform
    notes : tuple of Finding
        What the user should know about them.
    """

    name: str
    sha256: str
    transforms: tuple[StaticTransform, ...]
    notes: tuple[Finding, ...] = ()

    @classmethod
    def from_file(cls, path: str | Path) -> TransformFile:
        """Read a URDF, or a YAML file in the form of a recording's static_transforms.yaml.

        A file that cannot be read, or a wrong entry, is a Sim2RealError.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ParameterError(str(path), '', f'cannot be read: {error.strerror}') from None
        except ValueError:
            raise ParameterError(repr(str(path)), '', 'is no name of a file') from None
        digest = hashlib.sha256(content).hexdigest()
        moving: tuple[str, ...] = ()
        if path.suffix.lower() in _DESCRIPTIONS or content.lstrip()[:1] == b'<':
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
        notes = (MOVING_JOINTS(path.name, joints=', '.join(moving)),)
        return cls(path.name, digest, transforms, notes if moving else ())

    def over(
        self, found: Sequence[StaticTransform]
    ) -> tuple[tuple[StaticTransform, ...], tuple[Finding, ...]]:
        """Complete a recording's own transforms, or replace those that contradict.

        Returns
        -------
        transforms : tuple of StaticTransform
            Those of the file, and of the recording those that connect what they leave open.
        notes : tuple of Finding
            One for each of the recording's that says otherwise.
        """
        merged, notes = list(self.transforms), []
        tree = FrameTree(merged)
        stated = {transform.child.strip('/') for transform in self.transforms}
        # First of all the file's word on a frame counts, then what else connects the frames.
        for transform in sorted(found, key=lambda one: one.child.strip('/') in stated):
            if transform in self.transforms:
                continue
            parent, child = transform.parent.strip('/'), transform.child.strip('/')
            try:
                pose = tree.lookup(parent, child, '')
            except JudgeError:
                merged.append(transform)
                tree.add(transform)
                continue
            own = FrameTree([transform]).lookup(parent, child, '')
            if not all(
                np.allclose(*pair, rtol=0.0, atol=_SAME) for pair in zip(pose, own, strict=True)
            ):
                notes.append(TRANSFORM_REPLACED(self.name, frames=f'{parent} -> {child}'))
        return tuple(merged), tuple(notes)

    def settings(self) -> dict[str, str]:
        """Return what identifies the file, as plain values."""
        return {'name': self.name, 'sha256': self.sha256}
