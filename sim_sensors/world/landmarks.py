# SPDX-License-Identifier: Apache-2.0
"""What there is to see in the world: points, chessboards and square tags."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray


@dataclasses.dataclass(frozen=True, eq=False)
class Landmarks:
    """Points that a camera can recognise.

    Parameters
    ----------
    ids : (n,) int
        Each once.
    positions : (n, 3)
        m, in the world's frame.

    Raises
    ------
    ParameterError
        When the shapes do not fit, a number is not finite, or an id is there twice.
    """

    ids: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    positions: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))

    def __post_init__(self) -> None:
        _keep(self, 'landmarks', {'positions': 3})

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

    ids: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    positions: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))
    orientations: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 4)))
    sizes: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        _keep(self, 'tags', {'positions': 3, 'orientations': 4, 'sizes': 0})

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
        turned = np.einsum(
            'nij,nkj->nki', Rotation.from_quat(self.orientations).as_matrix(), local
        )
        return np.asarray(self.positions[:, None, :] + turned)


def chessboard(
    rows: int, columns: int, square: float, position: ArrayLike, rpy: ArrayLike
) -> FloatArray:
    """Return the inner corners of a chessboard, `(rows * columns, 3)` m, row by row.

    In its own frame the board lies in the plane x = 0 with the first corner at the origin; columns
    go along y and rows along z, as in the scene of [Ligorio2015].

    Parameters
    ----------
    rows, columns : int
        Numbers of inner corners.
    square : float
        Edge of a square, m.
    position : (3,)
        Of the first corner, m.
    rpy : (3,)
        Roll, pitch, yaw about fixed axes of the board in the world, rad.
    """
    grid = np.zeros((rows, columns, 3))
    grid[:, :, 1] = square * np.arange(columns)
    grid[:, :, 2] = square * np.arange(rows)[:, None]
    turned = Rotation.from_euler('xyz', np.asarray(rpy)).apply(grid.reshape(-1, 3))
    return np.asarray(np.asarray(position) + turned)


def _keep(scene: Landmarks | Tags, where: str, widths: dict[str, int]) -> None:
    """Make arrays of the fields and refuse what does not fit; a width of 0 is a number each."""
    ids = np.ascontiguousarray(scene.ids, dtype=np.int64).reshape(-1)
    object.__setattr__(scene, 'ids', ids)
    for name, width in widths.items():
        array = np.ascontiguousarray(getattr(scene, name), dtype=np.float64)
        shape = (len(ids), width) if width else (len(ids),)
        if array.shape != shape:
            raise ParameterError(where, name, f'have shape {array.shape}; must be {shape}')
        if not np.isfinite(array).all():
            raise ParameterError(where, name, 'holds a number that is not finite')
        object.__setattr__(scene, name, array)
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = int(values[counts > 1][0])
        raise ParameterError(where, 'ids', f'{twice} is there twice; each must be there once')
