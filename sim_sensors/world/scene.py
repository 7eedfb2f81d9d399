# SPDX-License-Identifier: Apache-2.0
"""What stands in the world: magnets that disturb its field, points, boards and tags to see, and
boxes that hide them.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream

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
