# SPDX-License-Identifier: Apache-2.0
"""Static transforms from a robot description: the fixed joints of a URDF."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

from scipy.spatial.transform import Rotation

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.recording import StaticTransform

__all__ = ['read_urdf']

_TURNING = ('revolute', 'continuous', 'prismatic')
_FREE = ('floating', 'planar')


def read_urdf(path: Path) -> tuple[tuple[StaticTransform, ...], tuple[str, ...]]:
    """Read the joints of a URDF file.

    The pose of a joint's child in its parent is `origin`: xyz in metres, and roll, pitch, yaw in
    radians about the parent's fixed axes.

    Parameters
    ----------
    path : Path

    Returns
    -------
    transforms : tuple of StaticTransform
        Of all joints but floating and planar ones, which connect nothing firmly.
    moving : tuple of str
        Names of revolute, continuous and prismatic joints, which are taken at zero.

    Raises
    ------
    RecordingError
        For a file that is no URDF, one that xacro has still to expand, or a wrong joint.
    """
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise RecordingError(f'{path}: is no XML: {" ".join(str(error).split())}') from None
    if any(_is_of_xacro(element) for element in root.iter()):
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


def _is_of_xacro(element: ElementTree.Element) -> bool:
    # A declared name space that nothing uses, as xacro leaves it behind, does not show here.
    tag = element.tag if isinstance(element.tag, str) else ''
    namespace = tag.rpartition('}')[0]
    return 'xacro' in namespace or any('${' in value for value in element.attrib.values())


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
    try:
        x, y, z = (float(part) for part in text.split())
        if not math.isfinite(x + y + z):
            raise ValueError
    except ValueError:
        raise RecordingError(
            f'{path}: {name}: {key} {text!r} is not allowed; must be 3 finite numbers'
        ) from None
    return x, y, z
