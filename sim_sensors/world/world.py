# SPDX-License-Identifier: Apache-2.0
"""The world that all sensors of a simulation share, and worlds by name."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core.config_files import check_keys, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameter, Parameters, non_negative, parameter, positive
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.core.shipped import config_names, config_path
from .earth import EarthField, Gravity, TurningEarth
from .geodesy import DEFAULT_ORIGIN, LocalFrame
from .scene import Boxes, Dipoles, Landmarks, Tags, chessboard


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """What surrounds the sensors of a simulation. Its frame is east north up.

    Parameters
    ----------
    frame : LocalFrame
        Where on the Earth its origin is.
    gravity_model : Gravity
        Standard, normal or a constant.
    earth_field : EarthField
        World Magnetic Model or a constant.
    dipoles : Dipoles
        Magnetic disturbances.
    landmarks : Landmarks
        Points to see.
    tags : Tags
        Square markers to see.
    chessboards : tuple of (rows, columns) int
        Which landmarks, by their ids, are the inner corners of each chessboard.
    boxes : Boxes
        What hides landmarks and tags from cameras.

    Examples
    --------
    >>> World().gravity
    9.80665
    """

    frame: LocalFrame = DEFAULT_ORIGIN
    gravity_model: Gravity = dataclasses.field(default_factory=Gravity)
    earth_field: EarthField = dataclasses.field(default_factory=EarthField)
    dipoles: Dipoles = dataclasses.field(default_factory=Dipoles)
    landmarks: Landmarks = dataclasses.field(default_factory=Landmarks)
    tags: Tags = dataclasses.field(default_factory=Tags)
    chessboards: tuple[IntArray, ...] = ()
    boxes: Boxes = dataclasses.field(default_factory=Boxes)

    @functools.cached_property
    def gravity(self) -> float:
        """Gravity, m/s^2, along -z of the frame; what an IMU takes as `gravity`."""
        return self.gravity_model.at(self.frame)

    @functools.cached_property
    def turning_earth(self) -> TurningEarth | None:
        """Rotation and curvature of the Earth; None on a flat one at rest."""
        earth = self.gravity_model.earth
        if earth == 'flat':
            return None
        return TurningEarth.of(self.frame, self.gravity, automatic=earth == 'auto')

    @functools.cached_property
    def undisturbed_field(self) -> FloatArray:
        """Magnetic field of the Earth alone, `(3,)` T, east north up.

        Raises
        ------
        SensorError, ParameterError
            When the World Magnetic Model is asked for and not there, or does not reach so far.
        """
        return self.earth_field.at(self.frame)

    def magnetic_field(self, points: FloatArray) -> FloatArray:
        """Return the magnetic field, `(n, 3)` T, east north up, at points `(n, 3)` m of the frame:
        that of the Earth plus those of the dipoles.
        """
        return np.asarray(self.dipoles.field(points) + self.undisturbed_field)


_KIND = 'worlds'
_RADIUS = Parameter(0.01, 'm', 'Radius of the dipoles.', minimum=0.0, minimum_excluded=True)


@dataclasses.dataclass(frozen=True)
class _Dipole(Parameters):
    """A magnet."""

    position: Axes = axes('m', 'Where it is.')
    rpy: Axes = axes('rad', 'Roll, pitch, yaw about fixed axes; the moment is along its z axis.')
    moment: float = parameter(1.0, 'A m^2', 'Magnetic moment.')


@dataclasses.dataclass(frozen=True)
class _Scattered(Parameters):
    """Magnets at random places in a box."""

    count: int = non_negative(0, '1', 'How many.', maximum=1e6)
    low: Axes = axes('m', 'One corner of the box.')
    high: Axes = axes('m', 'The opposite corner.')
    moment: float = parameter(1.0, 'A m^2', 'Magnetic moment of each.')
    seed: int = non_negative(0, '1', 'Of the draw.')

    def _check(self) -> None:
        if any(high < low for low, high in zip(self.low, self.high, strict=True)):
            raise ParameterError(
                'scattered_dipoles', 'high', f'{self.high!r} is below low, {self.low!r}'
            )


@dataclasses.dataclass(frozen=True)
class _Landmark(Parameters):
    """A point that a camera can see."""

    id: int = parameter(0, '1', 'Its number, each once.')
    position: Axes = axes('m', 'Where it is.')


@dataclasses.dataclass(frozen=True)
class _Chessboard(Parameters):
    """A board whose inner corners are landmarks."""

    rows: int = parameter(3, '1', 'Inner corners along its z axis.', minimum=1.0, maximum=1e3)
    columns: int = parameter(3, '1', 'Inner corners along its y axis.', minimum=1.0, maximum=1e3)
    square: float = positive(0.02, 'm', 'Edge of a square.')
    position: Axes = axes('m', 'Of the first corner.')
    rpy: Axes = axes('rad', 'Roll, pitch, yaw about fixed axes; the board is in its plane x = 0.')
    first_id: int = parameter(0, '1', 'Number of the first corner as landmark; others follow.')

    @property
    def ids(self) -> IntArray:
        """Numbers of the corners, `(rows, columns)`."""
        return self.first_id + np.arange(self.rows * self.columns).reshape(self.rows, -1)


@dataclasses.dataclass(frozen=True)
class _Tag(Parameters):
    """A square tag."""

    id: int = parameter(0, '1', 'Its number, each once.')
    position: Axes = axes('m', 'Of its centre.')
    rpy: Axes = axes(
        'rad', 'Roll, pitch, yaw about fixed axes; z comes out of its face, y is up on it.'
    )
    size: float = positive(0.1651, 'm', 'Edge.')


@dataclasses.dataclass(frozen=True)
class _Box(Parameters):
    """A box that hides what is behind it."""

    position: Axes = axes('m', 'Of its centre.')
    rpy: Axes = axes('rad', 'Roll, pitch, yaw about fixed axes.')
    size: Axes = axes('m', 'Edges along its own x, y, z.', (1.0, 1.0, 1.0), above=0.0)


_PARTS: dict[str, Any] = {
    'origin': DEFAULT_ORIGIN,
    'gravity': Gravity(),
    'earth_field': EarthField(),
}
_LISTS: dict[str, type[Parameters]] = {
    'dipoles': _Dipole,
    'scattered_dipoles': _Scattered,
    'landmarks': _Landmark,
    'chessboards': _Chessboard,
    'tags': _Tag,
    'boxes': _Box,
}


def world_names() -> list[str]:
    """Return the names of the preset worlds, sorted."""
    return config_names(_KIND)


def load_world(name_or_path: str | Path) -> World:
    """Return a world by the name of a preset or by the path of a YAML file.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong.

    Examples
    --------
    >>> len(load_world('dipole_room').dipoles)
    500
    """
    given = Path(name_or_path)
    if given.suffix not in ('.yaml', '.yml') and len(given.parts) <= 1:
        known = world_names()
        if str(name_or_path) not in known:
            problem = not_among(f'{str(name_or_path)!r} is unknown', name_or_path, known)
            raise ParameterError('world', '', f'{problem}, or a path of a YAML file')
        given = config_path(_KIND, f'{name_or_path}.yaml')
    return world_of_mapping(read_yaml_mapping(given), str(given))


def world_of_mapping(mapping: Mapping[str, object], where: str) -> World:
    """Build a world from what a world file holds; docs/explanation/world.md lists its keys.

    What is missing takes the defaults of `World`; `where` is the file or option that it came from.

    Raises ParameterError on the first thing that is wrong.
    """
    check_keys(mapping, [*_PARTS, 'dipole_radius', *_LISTS], where)
    parts = {
        key: type(default).from_mapping(mapping[key], where, key) if key in mapping else default
        for key, default in _PARTS.items()
    }
    items = {key: _items(mapping, where, key) for key in _LISTS}
    radius = _RADIUS.parse(mapping.get('dipole_radius', _RADIUS.default), where, 'dipole_radius')
    return World(
        frame=parts['origin'],
        gravity_model=parts['gravity'],
        earth_field=parts['earth_field'],
        dipoles=_dipoles(items['dipoles'], items['scattered_dipoles'], radius),
        landmarks=_landmarks(items['landmarks'], items['chessboards'], where),
        tags=_tags(items['tags'], where),
        chessboards=tuple(board.ids for board in items['chessboards']),
        boxes=_boxes(items['boxes']),
    )


def _dipoles(items: list[_Dipole], boxes: list[_Scattered], radius: float) -> Dipoles:
    dipoles = Dipoles.posed(
        [item.position for item in items],
        [item.rpy for item in items],
        [item.moment for item in items],
        radius=radius,
    )
    for box in boxes:
        dipoles = dipoles.joined(Dipoles.scattered(**box.to_mapping()))
    return dipoles


def _landmarks(items: list[_Landmark], boards: list[_Chessboard], where: str) -> Landmarks:
    ids = [np.array([item.id for item in items], dtype=np.int64)]
    ids += [board.ids.reshape(-1) for board in boards]
    places = [np.array([item.position for item in items]).reshape(-1, 3)]
    places += [chessboard(b.rows, b.columns, b.square, b.position, b.rpy) for b in boards]
    with _naming(where, 'landmarks'):
        return Landmarks(np.concatenate(ids), np.concatenate(places))


def _tags(items: list[_Tag], where: str) -> Tags:
    if not items:
        return Tags()
    with _naming(where, 'tags'):
        return Tags(
            np.array([item.id for item in items]),
            np.array([item.position for item in items]),
            Rotation.from_euler('xyz', [item.rpy for item in items]).as_quat(),
            np.array([item.size for item in items]),
        )


def _boxes(items: list[_Box]) -> Boxes:
    if not items:
        return Boxes()
    turns = Rotation.from_euler('xyz', [item.rpy for item in items]).as_quat()
    return Boxes([item.position for item in items], turns, [item.size for item in items])  # type: ignore[arg-type]


@contextlib.contextmanager
def _naming(where: str, key: str) -> Iterator[None]:
    """Let an error name the file and the list."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(where, f'{key}.{error.key}', error.problem) from None


def _items(mapping: Mapping[str, object], where: str, key: str) -> list[Any]:
    """Return the entries of a list of mappings."""
    given = mapping.get(key) or []
    if not isinstance(given, list):
        raise ParameterError(where, key, f'{given!r} is not allowed; must be a list of mappings')
    return [_LISTS[key].from_mapping(item, where, f'{key}[{k}]') for k, item in enumerate(given)]
