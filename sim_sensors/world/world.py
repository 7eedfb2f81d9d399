# SPDX-License-Identifier: Apache-2.0
"""The world that all sensors of a simulation share, and worlds by name."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from sim_sensors.core.compilation import compiled
from sim_sensors.core.config_files import check_keys, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameter, Parameters, non_negative, parameter, positive
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.core.shipped import config_names, config_path
from .earth import EarthField, Gravity, TurningEarth
from .geodesy import DEFAULT_ORIGIN, LocalFrame

# T m / A: mu_0 / (4 pi) of air.
_K = 1e-7


def _no_vectors() -> FloatArray:
    return np.zeros((0, 3))


def _no_ids() -> IntArray:
    return np.zeros(0, dtype=np.int64)


def _keep(scene: object, where: str, count: int, widths: dict[str, int]) -> None:
    """Make arrays of the fields and refuse what does not fit; a width of 0 is a number each."""
    for name, width in widths.items():
        array = np.ascontiguousarray(getattr(scene, name), dtype=np.float64)
        shape = (count, width) if width else (count,)
        if array.shape != shape:
            raise ParameterError(where, name, f'have shape {array.shape}; must be {shape}')
        if not np.isfinite(array).all():
            raise ParameterError(where, name, 'holds a number that is not finite')
        object.__setattr__(scene, name, array)


@dataclasses.dataclass(frozen=True, eq=False)
class Dipoles:
    """Magnets and iron as any number of point dipoles, fixed in the world's frame (east north up).

    Outside its radius, m, > 0, a dipole has the field of a point; inside, the field that a
    uniformly magnetised ball of that radius has, mu_0 / (4 pi) 2 m / radius^3, so that nothing is
    infinite. 1 cm is about what a neodymium ball of 5 A m^2 measures. Positions `(n, 3)` are in m,
    magnetic moments `(n, 3)` in A m^2.

    Raises ParameterError when a shape does not fit, a number is not finite or the radius not
    positive.
    """

    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)
    moments: FloatArray = dataclasses.field(default_factory=_no_vectors)
    radius: float = 0.01

    def __post_init__(self) -> None:
        _keep(self, 'dipoles', len(self.positions), {'positions': 3, 'moments': 3})
        if not (math.isfinite(self.radius) and self.radius > 0.0):
            raise ParameterError(
                'dipoles', 'radius', f'{self.radius!r} is not allowed; must be a number > 0 [m]'
            )

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def scattered(
        cls, count: int, low: ArrayLike, high: ArrayLike, moment: float, *, seed: int
    ) -> Dipoles:
        """Return dipoles at uniformly random places in a box, in uniformly random directions.

        The box has the opposite corners `low` and `high`, `(3,)` m; each dipole has the `moment`,
        A m^2. `seed` is that of the draw, see `sim_sensors.core.seeding.stream`.
        """
        rng = stream(seed, 'world', 'dipoles', 'scattered')
        corner, opposite = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        places = rng.uniform(corner, opposite, (count, 3))
        normals = rng.standard_normal((count, 3))
        return cls(places, moment * (normals / np.linalg.norm(normals, axis=1, keepdims=True)))

    @classmethod
    def posed(
        cls, positions: ArrayLike, rpy: ArrayLike, moments: ArrayLike, *, radius: float = 0.01
    ) -> Dipoles:
        """Return dipoles with their moments `(n,)`, A m^2, along the z axes of their own frames.

        The frames are at `(n, 3)` m and turned by `rpy` `(n, 3)`, roll, pitch, yaw about fixed
        axes of the world, rad.
        """
        angles = np.asarray(rpy, dtype=np.float64).reshape(-1, 3)
        sizes = np.asarray(moments, dtype=np.float64).reshape(-1, 1)
        axes = Rotation.from_euler('xyz', angles).apply([0.0, 0.0, 1.0]) if len(angles) else angles
        return cls(np.asarray(positions).reshape(-1, 3), sizes * axes, radius)

    def joined(self, other: Dipoles) -> Dipoles:
        """Return these and the others together, with the radius of these."""
        return Dipoles(
            np.concatenate([self.positions, other.positions]),
            np.concatenate([self.moments, other.moments]),
            self.radius,
        )

    def field(self, points: FloatArray) -> FloatArray:
        """Return the sum of their fields, `(n, 3)` T, at points `(n, 3)` m, in the world's axes.

        B = mu_0 / (4 pi) (3 (m.r) r / r^5 - m / r^3), r from the dipole to the point: the
        field of equation 1 of [Ligorio2015].
        """
        places = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 3)
        return _field(places, self.positions, self.moments, self.radius)


@compiled
def _field(
    points: FloatArray, positions: FloatArray, moments: FloatArray, radius: float
) -> FloatArray:
    out = np.zeros_like(points)
    for k in range(points.shape[0]):
        for j in range(positions.shape[0]):
            x = points[k, 0] - positions[j, 0]
            y = points[k, 1] - positions[j, 1]
            z = points[k, 2] - positions[j, 2]
            mx, my, mz = moments[j, 0], moments[j, 1], moments[j, 2]
            r2 = x * x + y * y + z * z
            if r2 < radius * radius:
                inside = 2.0 * _K / radius**3
                out[k, 0] += inside * mx
                out[k, 1] += inside * my
                out[k, 2] += inside * mz
                continue
            r3 = r2 * math.sqrt(r2)
            along = 3.0 * (mx * x + my * y + mz * z) / r2
            out[k, 0] += _K / r3 * (along * x - mx)
            out[k, 1] += _K / r3 * (along * y - my)
            out[k, 2] += _K / r3 * (along * z - mz)
    return out


@dataclasses.dataclass(frozen=True, eq=False)
class Landmarks:
    """Points that a camera can recognise, `(n, 3)` m in the world's frame, each with an id of its
    own.

    Raises ParameterError when the shapes do not fit, a number is not finite, or an id is there
    twice.
    """

    ids: IntArray = dataclasses.field(default_factory=_no_ids)
    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)

    def __post_init__(self) -> None:
        _keep_named(self, 'landmarks', {'positions': 3})

    def __len__(self) -> int:
        return len(self.ids)


@dataclasses.dataclass(frozen=True, eq=False)
class Tags:
    """Square markers with a number, such as AprilTags.

    The z axis of a tag comes out of its face; x is to the right and y up for who looks at it.

    Parameters
    ----------
    ids : (n,) int
        Each once.
    positions : (n, 3)
        Centres, m, in the world's frame.
    orientations : (n, 4)
        Quaternions x y z w, tag to world.
    sizes : (n,)
        Length of an edge, m.

    Raises
    ------
    ParameterError
        When the shapes do not fit, a number is not finite, or an id is there twice.
    """

    ids: IntArray = dataclasses.field(default_factory=_no_ids)
    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)
    orientations: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 4)))
    sizes: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        _keep_named(self, 'tags', {'positions': 3, 'orientations': 4, 'sizes': 0})

    def __len__(self) -> int:
        return len(self.ids)

    def corners(self) -> FloatArray:
        """Return the corners of each, `(n, 4, 3)` m: left below, right below, right above, left
        above for who looks at the face.
        """
        square = 0.5 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=np.float64)
        local = self.sizes[:, None, None] * square
        if not len(self):
            return local
        turns = Rotation.from_quat(self.orientations).as_matrix()
        return np.asarray(self.positions[:, None, :] + np.einsum('nij,nkj->nki', turns, local))


@dataclasses.dataclass(frozen=True, eq=False)
class Boxes:
    """Solid boxes that hide what is behind or in them from a camera.

    Centres `(n, 3)` m in the world's frame, quaternions x y z w `(n, 4)`, box to world, and
    lengths of the edges `(n, 3)` m.

    Raises ParameterError when a shape does not fit or a number is not finite.

    Examples
    --------
    >>> wall = Boxes([[1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]], [[0.1, 2.0, 2.0]])
    >>> wall.hide(np.zeros(3), np.array([[3.0, 0.0, 0.0], [3.0, 4.0, 0.0], [0.5, 0.0, 0.0]]))
    array([ True, False, False])
    """

    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)
    orientations: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 4)))
    sizes: FloatArray = dataclasses.field(default_factory=_no_vectors)

    def __post_init__(self) -> None:
        widths = {'positions': 3, 'orientations': 4, 'sizes': 3}
        _keep(self, 'boxes', len(self.positions), widths)

    def __len__(self) -> int:
        return len(self.positions)

    def hide(self, eyes: FloatArray, points: FloatArray) -> NDArray[np.bool_]:
        """Return which points `(n, 3)` a box hides from eyes at `(3,)` or `(n, 3)` m, `(n,)`.

        Points on the surface of a box are seen from outside.
        """
        hidden = np.zeros(len(points), dtype=np.bool_)
        for position, orientation, size in zip(
            self.positions, self.orientations, self.sizes, strict=True
        ):
            box = Rotation.from_quat(orientation).as_matrix()
            # In the axes of the box; rays along a face meet it at infinity.
            start, end = (np.atleast_2d(one - position) @ box for one in (eyes, points))
            along = end - start
            along = np.where(np.abs(along) < 1e-12, 1e-12, along)
            meets = np.stack([(-0.5 * size - start) / along, (0.5 * size - start) / along])
            enters, leaves = meets.min(axis=0).max(axis=1), meets.max(axis=0).min(axis=1)
            hidden |= (enters < leaves) & (leaves > 0.0) & (enters < 1.0 - 1e-9)
        return hidden


def chessboard(
    rows: int, columns: int, square: float, position: ArrayLike, rpy: ArrayLike
) -> FloatArray:
    """Return the inner corners of a chessboard, `(rows * columns, 3)` m, row by row.

    In its own frame the board lies in the plane x = 0 with the first corner at the origin; columns
    go along y and rows along z, as in the scene of [Ligorio2015]. A square has the edge `square`,
    m, the first corner is at `position` `(3,)` m, and `rpy` are roll, pitch, yaw about fixed axes
    of the board in the world, rad.
    """
    grid = np.zeros((rows, columns, 3))
    grid[:, :, 1] = square * np.arange(columns)
    grid[:, :, 2] = square * np.arange(rows)[:, None]
    turned = Rotation.from_euler('xyz', np.asarray(rpy)).apply(grid.reshape(-1, 3))
    return np.asarray(np.asarray(position) + turned)


def _keep_named(scene: Landmarks | Tags, where: str, widths: dict[str, int]) -> None:
    ids = np.ascontiguousarray(scene.ids, dtype=np.int64).reshape(-1)
    object.__setattr__(scene, 'ids', ids)
    _keep(scene, where, len(ids), widths)
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = int(values[counts > 1][0])
        raise ParameterError(where, 'ids', f'{twice} is there twice; each must be there once')


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
