# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""World that all sensors of a simulation share: its contents, and worlds by name."""

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

from sim_sensors.core.compilation import row_loop
from sim_sensors.core.config_files import check_keys, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameter, Parameters, non_negative, parameter, positive
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.core.shipped import config_names, config_path
from .earth import EarthField, Gravity, TurningEarth
from .geodesy import DEFAULT_ORIGIN, LocalFrame

# mu_0 / (4 pi) of air, T m / A.
_K = 1e-7


def _no_vectors() -> FloatArray:
    return np.zeros((0, 3))


def _no_ids() -> IntArray:
    return np.zeros(0, dtype=np.int64)


def _set_fields(scene: object, where: str, count: int, widths: dict[str, int]) -> None:
    """Convert the fields to arrays and check their shapes; a width of 0 stands for `(count,)`."""
    for name, width in widths.items():
        array = np.ascontiguousarray(getattr(scene, name), dtype=np.float64)
        shape = (count, width) if width else (count,)
        if array.shape != shape:
            raise ParameterError(where, name, f'has shape {array.shape}; must be {shape}')
        if not np.isfinite(array).all():
            raise ParameterError(
                where, name, 'contains a number that is not finite; all must be finite'
            )
        object.__setattr__(scene, name, array)


@dataclasses.dataclass(frozen=True, eq=False)
class Dipoles:
    """Magnets and iron as point dipoles, fixed in the world's frame (east north up).

    Outside `radius` a magnet has the field of a point dipole. Inside it has that of a uniformly
    magnetised ball of that radius, mu_0 / (4 pi) 2 m / radius^3, which is finite. A neodymium ball
    of 5 A m^2 has a radius of about 1 cm.

    Parameters
    ----------
    positions : (n, 3)
        Positions, m.
    moments : (n, 3)
        Magnetic moments, A m^2.
    radius : float
        Radius, m, > 0.

    Raises
    ------
    ParameterError
        When a shape does not fit, a number is not finite or the radius is not positive.
    """

    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)
    moments: FloatArray = dataclasses.field(default_factory=_no_vectors)
    radius: float = 0.01

    def __post_init__(self) -> None:
        _set_fields(self, 'dipoles', len(self.positions), {'positions': 3, 'moments': 3})
        if not (math.isfinite(self.radius) and self.radius > 0.0):
            raise ParameterError(
                'dipoles', 'radius', f'{self.radius!r} is not allowed; must be a number > 0 [m]'
            )

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def draw_random(
        cls, count: int, low: ArrayLike, high: ArrayLike, moment: float, *, seed: int
    ) -> Dipoles:
        """Return dipoles at uniformly random positions in a box, in uniformly random directions.

        The box has the opposite corners `low` and `high`, `(3,)` m; each dipole has the `moment`,
        A m^2. For `seed` see `sim_sensors.core.seeding.stream`.
        """
        rng = stream(seed, 'world', 'dipoles', 'scattered')
        corner, opposite = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        positions = rng.uniform(corner, opposite, (count, 3))
        normals = rng.standard_normal((count, 3))
        return cls(positions, moment * (normals / np.linalg.norm(normals, axis=1, keepdims=True)))

    @classmethod
    def from_frames(
        cls, positions: ArrayLike, rpy: ArrayLike, moments: ArrayLike, *, radius: float = 0.01
    ) -> Dipoles:
        """Return dipoles with their moments `(n,)`, A m^2, along the z axes of their frames.

        The frames have the `positions` `(n, 3)` m and the rotations `rpy` `(n, 3)`: roll, pitch,
        yaw about fixed axes of the world, rad.
        """
        axes = np.asarray(rpy, dtype=np.float64).reshape(-1, 3)
        sizes = np.asarray(moments, dtype=np.float64).reshape(-1, 1)
        if len(axes):
            from scipy.spatial.transform import Rotation

            axes = Rotation.from_euler('xyz', axes).apply([0.0, 0.0, 1.0])
        return cls(np.asarray(positions).reshape(-1, 3), sizes * axes, radius)

    def concatenate(self, other: Dipoles) -> Dipoles:
        """Return these dipoles and the others, all with the radius of these."""
        return Dipoles(
            np.concatenate([self.positions, other.positions]),
            np.concatenate([self.moments, other.moments]),
            self.radius,
        )

    def field(self, points: FloatArray) -> FloatArray:
        """Return the field of all dipoles, `(n, 3)` T, at points `(n, 3)` m, in the world's axes.

        B = mu_0 / (4 pi) (3 (m.r) r / r^5 - m / r^3) with r from the dipole to the point:
        [Ligorio2015], equation 1.
        """
        positions = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 3)
        return _field(positions, self.positions, self.moments, self.radius)


@row_loop
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
                inside = 2.0 * _K / (radius * radius * radius)
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
    """Points that a camera can recognise, `(n, 3)` m in the world's frame, with unique ids.

    Raises ParameterError when the shapes do not fit, a number is not finite, or an id is used
    twice.
    """

    ids: IntArray = dataclasses.field(default_factory=_no_ids)
    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)

    def __post_init__(self) -> None:
        _set_named_fields(self, 'landmarks', {'positions': 3})

    def __len__(self) -> int:
        return len(self.ids)


@dataclasses.dataclass(frozen=True, eq=False)
class Tags:
    """Square markers with a number, such as AprilTags.

    The z axis of a tag points out of its face. For an observer of the face, x is to the right and
    y up.

    Parameters
    ----------
    ids : (n,) int
        Unique numbers.
    positions : (n, 3)
        Centres, m, in the world's frame.
    orientations : (n, 4)
        Quaternions x y z w, tag to world.
    sizes : (n,)
        Length of an edge, m.

    Raises
    ------
    ParameterError
        When the shapes do not fit, a number is not finite, or an id is used twice.
    """

    ids: IntArray = dataclasses.field(default_factory=_no_ids)
    positions: FloatArray = dataclasses.field(default_factory=_no_vectors)
    orientations: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 4)))
    sizes: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        _set_named_fields(self, 'tags', {'positions': 3, 'orientations': 4, 'sizes': 0})

    def __len__(self) -> int:
        return len(self.ids)

    def corners(self) -> FloatArray:
        """Return the corners of the tags, `(n, 4, 3)` m.

        Their order for an observer of the face: lower left, lower right, upper right, upper left.
        """
        square = 0.5 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=np.float64)
        local = self.sizes[:, None, None] * square
        if not len(self):
            return local
        from scipy.spatial.transform import Rotation

        rotations = Rotation.from_quat(self.orientations).as_matrix()
        return np.asarray(self.positions[:, None, :] + np.einsum('nij,nkj->nki', rotations, local))


@dataclasses.dataclass(frozen=True, eq=False)
class Boxes:
    """Solid boxes that hide points in them and behind them from a camera.

    They have centres `(n, 3)` m in the world's frame, quaternions x y z w `(n, 4)`, box to world,
    and edge lengths `(n, 3)` m.

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
        _set_fields(self, 'boxes', len(self.positions), widths)

    def __len__(self) -> int:
        return len(self.positions)

    def hide(self, cameras: FloatArray, points: FloatArray) -> NDArray[np.bool_]:
        """Return which points `(n, 3)` a box hides from cameras at `(3,)` or `(n, 3)` m, `(n,)`.

        Points on the surface of a box are visible from outside.
        """
        from scipy.spatial.transform import Rotation

        hidden = np.zeros(len(points), dtype=np.bool_)
        for position, orientation, size in zip(
            self.positions, self.orientations, self.sizes, strict=True
        ):
            box = Rotation.from_quat(orientation).as_matrix()
            # Slab method in the axes of the box; a ray along a face meets it at infinity.
            start = np.atleast_2d(cameras - position) @ box
            ray = np.atleast_2d(points - position) @ box - start
            ray = np.where(np.abs(ray) < 1e-12, 1e-12, ray)
            crossings = np.stack([(-0.5 * size - start) / ray, (0.5 * size - start) / ray])
            entry, exit_ = crossings.min(axis=0).max(axis=1), crossings.max(axis=0).min(axis=1)
            hidden |= (entry < exit_) & (exit_ > 0.0) & (entry < 1.0 - 1e-9)
        return hidden


def chessboard(
    rows: int, columns: int, square: float, position: ArrayLike, rpy: ArrayLike
) -> FloatArray:
    """Return the inner corners of a chessboard, `(rows * columns, 3)` m, row by row.

    In its own frame the board lies in the plane x = 0 with the first corner at the origin. Columns
    are along y and rows along z, as in the scene of [Ligorio2015]. `square` is the edge of a
    square, m, `position` `(3,)` m the first corner in the world, and `rpy` roll, pitch, yaw of the
    board about fixed axes of the world, rad.
    """
    from scipy.spatial.transform import Rotation

    grid = np.zeros((rows, columns, 3))
    grid[:, :, 1] = square * np.arange(columns)
    grid[:, :, 2] = square * np.arange(rows)[:, None]
    corners = Rotation.from_euler('xyz', np.asarray(rpy)).apply(grid.reshape(-1, 3))
    return np.asarray(np.asarray(position) + corners)


def _set_named_fields(scene: Landmarks | Tags, where: str, widths: dict[str, int]) -> None:
    ids = np.ascontiguousarray(scene.ids, dtype=np.int64).reshape(-1)
    object.__setattr__(scene, 'ids', ids)
    _set_fields(scene, where, len(ids), widths)
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        repeated = int(values[counts > 1][0])
        raise ParameterError(where, 'ids', f'{repeated} is used twice; each id must be unique')


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """Surroundings of the sensors of a simulation. Its frame is east north up.

    Parameters
    ----------
    frame : LocalFrame
        Position of the origin on the Earth.
    gravity_model : Gravity
        Standard, normal or a constant.
    earth_field : EarthField
        World Magnetic Model or a constant.
    dipoles : Dipoles
        Magnetic disturbances.
    landmarks : Landmarks
        Points that cameras recognise.
    tags : Tags
        Square markers that cameras recognise.
    chessboards : tuple of (rows, columns) int
        Ids of the landmarks that are the inner corners of each chessboard.
    boxes : Boxes
        Boxes that hide landmarks and tags from cameras.

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
        """Gravity along -z of the frame, m/s^2."""
        return self.gravity_model.at(self.frame)

    @functools.cached_property
    def turning_earth(self) -> TurningEarth | None:
        """Rotation and curvature of the Earth; None for a flat Earth at rest."""
        earth = self.gravity_model.earth
        if earth == 'flat':
            return None
        return TurningEarth.from_frame(self.frame, self.gravity, automatic=earth == 'auto')

    @functools.cached_property
    def undisturbed_field(self) -> FloatArray:
        """Magnetic field of the Earth alone, `(3,)` T, east north up.

        Raises
        ------
        SensorError, ParameterError
            When the World Magnetic Model is needed and not installed, or not valid there.
        """
        return self.earth_field.at(self.frame)

    def magnetic_field(self, points: FloatArray) -> FloatArray:
        """Return the field of Earth and dipoles, `(n, 3)` T, at points `(n, 3)` m of the frame."""
        return np.asarray(self.dipoles.field(points) + self.undisturbed_field)


_FOLDER = 'worlds'
_RADIUS = Parameter(0.01, 'm', 'Radius of the dipoles.', minimum=0.0, minimum_excluded=True)


@dataclasses.dataclass(frozen=True)
class _DipoleEntry(Parameters):
    """Magnet."""

    position: Axes = axes('m', 'Position.')
    rpy: Axes = axes('rad', 'Roll, pitch, yaw about fixed axes; the moment is along its z axis.')
    moment: float = parameter(1.0, 'A m^2', 'Magnetic moment.')


@dataclasses.dataclass(frozen=True)
class _ScatteredDipoles(Parameters):
    """Magnets at random positions in a box."""

    count: int = non_negative(0, '1', 'Number of magnets.', maximum=1e6)
    low: Axes = axes('m', 'One corner of the box.')
    high: Axes = axes('m', 'The opposite corner.')
    moment: float = parameter(1.0, 'A m^2', 'Magnetic moment of each magnet.')
    seed: int = non_negative(0, '1', 'Seed of the positions and directions.')

    def _check(self) -> None:
        if any(high < low for low, high in zip(self.low, self.high, strict=True)):
            raise ParameterError(
                'scattered_dipoles',
                'high',
                f'{self.high!r} is below low, {self.low!r}; must be >= low on every axis',
            )


@dataclasses.dataclass(frozen=True)
class _Landmark(Parameters):
    """Point that a camera recognises."""

    id: int = parameter(0, '1', 'Unique number.')
    position: Axes = axes('m', 'Position.')


@dataclasses.dataclass(frozen=True)
class _Chessboard(Parameters):
    """Chessboard whose inner corners are landmarks."""

    rows: int = parameter(3, '1', 'Inner corners along its z axis.', minimum=1.0, maximum=1e3)
    columns: int = parameter(3, '1', 'Inner corners along its y axis.', minimum=1.0, maximum=1e3)
    square: float = positive(0.02, 'm', 'Edge length of a square.')
    position: Axes = axes('m', 'Position of the first corner.')
    rpy: Axes = axes('rad', 'Roll, pitch, yaw about fixed axes; the board is in its plane x = 0.')
    first_id: int = parameter(
        0, '1', 'Landmark id of the first corner; the ids of the others follow.'
    )

    @property
    def ids(self) -> IntArray:
        """Numbers of the corners, `(rows, columns)`."""
        return self.first_id + np.arange(self.rows * self.columns).reshape(self.rows, -1)


@dataclasses.dataclass(frozen=True)
class _Tag(Parameters):
    """Square tag."""

    id: int = parameter(0, '1', 'Unique number.')
    position: Axes = axes('m', 'Position of the centre.')
    rpy: Axes = axes(
        'rad', 'Roll, pitch, yaw about fixed axes; z points out of the face, y is up on it.'
    )
    size: float = positive(0.1651, 'm', 'Edge length.')


@dataclasses.dataclass(frozen=True)
class _Box(Parameters):
    """Box that hides points behind it."""

    position: Axes = axes('m', 'Position of the centre.')
    rpy: Axes = axes('rad', 'Roll, pitch, yaw about fixed axes.')
    size: Axes = axes('m', 'Edge lengths along its x, y, z.', (1.0, 1.0, 1.0), above=0.0)


_PARTS: dict[str, Any] = {
    'origin': DEFAULT_ORIGIN,
    'gravity': Gravity(),
    'earth_field': EarthField(),
}
_LISTS: dict[str, type[Parameters]] = {
    'dipoles': _DipoleEntry,
    'scattered_dipoles': _ScatteredDipoles,
    'landmarks': _Landmark,
    'chessboards': _Chessboard,
    'tags': _Tag,
    'boxes': _Box,
}


def world_names() -> list[str]:
    """Return the names of the preset worlds, sorted."""
    return config_names(_FOLDER)


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
    path = Path(name_or_path)
    if path.suffix not in ('.yaml', '.yml') and len(path.parts) <= 1:
        names = world_names()
        if str(name_or_path) not in names:
            problem = not_among(f'{str(name_or_path)!r} is unknown', name_or_path, names)
            raise ParameterError('world', '', f'{problem}, or a path of a YAML file')
        path = config_path(_FOLDER, f'{name_or_path}.yaml')
    return world_from_mapping(read_yaml_mapping(path), str(path))


def world_from_mapping(mapping: Mapping[str, object], where: str) -> World:
    """Return the world that a mapping describes; docs/explanation/world.md lists its keys.

    Missing keys take the defaults of `World`. `where` is the source of the mapping, for messages.

    Raises ParameterError for the first error.
    """
    check_keys(mapping, [*_PARTS, 'dipole_radius', *_LISTS], where)
    parts = {
        key: type(default).from_mapping(mapping[key], where, key) if key in mapping else default
        for key, default in _PARTS.items()
    }
    entries = {key: _read_entries(mapping, where, key) for key in _LISTS}
    radius = _RADIUS.parse(mapping.get('dipole_radius', _RADIUS.default), where, 'dipole_radius')
    return World(
        frame=parts['origin'],
        gravity_model=parts['gravity'],
        earth_field=parts['earth_field'],
        dipoles=_dipoles(entries['dipoles'], entries['scattered_dipoles'], radius),
        landmarks=_landmarks(entries['landmarks'], entries['chessboards'], where),
        tags=_tags(entries['tags'], where),
        chessboards=tuple(board.ids for board in entries['chessboards']),
        boxes=_boxes(entries['boxes']),
    )


def _dipoles(
    magnets: list[_DipoleEntry], boxes: list[_ScatteredDipoles], radius: float
) -> Dipoles:
    dipoles = Dipoles.from_frames(
        [magnet.position for magnet in magnets],
        [magnet.rpy for magnet in magnets],
        [magnet.moment for magnet in magnets],
        radius=radius,
    )
    for box in boxes:
        dipoles = dipoles.concatenate(Dipoles.draw_random(**box.to_mapping()))
    return dipoles


def _landmarks(points: list[_Landmark], boards: list[_Chessboard], where: str) -> Landmarks:
    ids = [np.array([point.id for point in points], dtype=np.int64)]
    ids += [board.ids.reshape(-1) for board in boards]
    positions = [np.array([point.position for point in points]).reshape(-1, 3)]
    positions += [chessboard(b.rows, b.columns, b.square, b.position, b.rpy) for b in boards]
    with _naming_list(where, 'landmarks'):
        return Landmarks(np.concatenate(ids), np.concatenate(positions))


def _tags(tags: list[_Tag], where: str) -> Tags:
    if not tags:
        return Tags()
    from scipy.spatial.transform import Rotation

    with _naming_list(where, 'tags'):
        return Tags(
            np.array([tag.id for tag in tags]),
            np.array([tag.position for tag in tags]),
            Rotation.from_euler('xyz', [tag.rpy for tag in tags]).as_quat(),
            np.array([tag.size for tag in tags]),
        )


def _boxes(boxes: list[_Box]) -> Boxes:
    if not boxes:
        return Boxes()
    from scipy.spatial.transform import Rotation

    rotations = Rotation.from_euler('xyz', [box.rpy for box in boxes]).as_quat()
    return Boxes([box.position for box in boxes], rotations, [box.size for box in boxes])  # type: ignore[arg-type]


@contextlib.contextmanager
def _naming_list(where: str, key: str) -> Iterator[None]:
    """Add the file and the list to a ParameterError."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(where, f'{key}.{error.key}', error.problem) from None


def _read_entries(mapping: Mapping[str, object], where: str, key: str) -> list[Any]:
    """Return the parameter sets of a list of mappings."""
    entries = mapping.get(key) or []
    if not isinstance(entries, list):
        raise ParameterError(where, key, f'{entries!r} is not allowed; must be a list of mappings')
    return [
        _LISTS[key].from_mapping(entry, where, f'{key}[{k}]') for k, entry in enumerate(entries)
    ]
