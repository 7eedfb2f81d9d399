# SPDX-License-Identifier: Apache-2.0
"""Static transforms that the user gives in a file, in place of or beside a recording's own."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.recording import StaticTransform
from sim2real_eval.recording.metadata import read_transforms
from sim2real_eval.recording.urdf import read_urdf
from sim_sensors.errors import ParameterError

__all__ = ['TransformFile']

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
    notes : tuple of str
        What the user should know about them.
    """

    name: str
    sha256: str
    transforms: tuple[StaticTransform, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_file(cls, path: str | Path) -> TransformFile:
        """Read a URDF, or a YAML file in the form of a recording's static_transforms.yaml.

        Raises
        ------
        Sim2RealError
            For a file that cannot be read, or a wrong entry.
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
        notes = (f'{path.name}: joints that move are taken at zero: {", ".join(moving)}',)
        return cls(path.name, digest, transforms, notes if moving else ())

    def over(
        self, found: Sequence[StaticTransform]
    ) -> tuple[tuple[StaticTransform, ...], tuple[str, ...]]:
        """Complete a recording's transforms, or replace those that contradict.

        Parameters
        ----------
        found : sequence of StaticTransform
            The recording's own.

        Returns
        -------
        transforms : tuple of StaticTransform
            Those of the file, and of the recording those that connect what they leave open.
        notes : tuple of str
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
                notes.append(f"{self.name} replaces the recording's transform {parent} -> {child}")
        return tuple(merged), tuple(notes)

    def settings(self) -> dict[str, str]:
        """Return what identifies the file, as plain values."""
        return {'name': self.name, 'sha256': self.sha256}
