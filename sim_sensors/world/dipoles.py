# SPDX-License-Identifier: Apache-2.0
"""Magnets and iron that disturb the Earth's field, as point dipoles."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream

# T m / A: mu_0 / (4 pi) of air.
_K = 1e-7


@dataclasses.dataclass(frozen=True, eq=False)
class Dipoles:
    """Any number of dipoles, fixed in the world's frame (east north up).

    Outside its radius a dipole has the field of a point; inside, the field that a uniformly
    magnetised ball of that radius has, mu_0 / (4 pi) 2 m / radius^3, so that nothing is infinite.
    1 cm is about what a neodymium ball of 5 A m^2 measures.

    Parameters
    ----------
    positions : (n, 3)
        m.
    moments : (n, 3)
        Magnetic moments, A m^2.
    radius : float
        m, > 0.

    Raises
    ------
    ParameterError
        When a shape does not fit, a number is not finite or the radius not positive.
    """

    positions: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))
    moments: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))
    radius: float = 0.01

    def __post_init__(self) -> None:
        for name in ('positions', 'moments'):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64).reshape(-1, 3)
            if not np.isfinite(array).all():
                raise ParameterError('dipoles', name, 'holds a number that is not finite')
            object.__setattr__(self, name, array)
        if len(self.positions) != len(self.moments):
            raise ParameterError(
                'dipoles',
                'moments',
                f'are {len(self.moments)}; must be as many as positions, {len(self.positions)}',
            )
        if not (math.isfinite(self.radius) and self.radius > 0.0):
            raise ParameterError(
                'dipoles', 'radius', f'{self.radius!r} is not allowed; must be a number > 0 [m]'
            )

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def scattered(
        cls,
        count: int,
        low: ArrayLike,
        high: ArrayLike,
        moment: float,
        *,
        seed: int,
        radius: float = 0.01,
    ) -> Dipoles:
        """Return dipoles at uniformly random places in a box, in uniformly random directions.

        Parameters
        ----------
        count : int
            How many.
        low, high : (3,)
            Opposite corners of the box, m.
        moment : float
            Of each, A m^2.
        seed : int
            Of the draw; see `sim_sensors.core.seeding.stream`.
        radius : float
            m.
        """
        rng = stream(seed, 'world', 'dipoles', 'scattered')
        corner, opposite = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        places = rng.uniform(corner, opposite, (count, 3))
        normals = rng.standard_normal((count, 3))
        directions = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        return cls(places, moment * directions, radius)

    @classmethod
    def posed(
        cls, positions: ArrayLike, rpy: ArrayLike, moments: ArrayLike, *, radius: float = 0.01
    ) -> Dipoles:
        """Return dipoles with their moments along the z axes of their own frames.

        Parameters
        ----------
        positions : (n, 3)
            m.
        rpy : (n, 3)
            Roll, pitch, yaw about fixed axes of each dipole's frame in the world, rad.
        moments : (n,)
            A m^2.
        """
        angles = np.asarray(rpy, dtype=np.float64).reshape(-1, 3)
        sizes = np.asarray(moments, dtype=np.float64).reshape(-1, 1)
        axes = Rotation.from_euler('xyz', angles).apply([0.0, 0.0, 1.0]) if len(angles) else angles
        return cls(np.asarray(positions), sizes * axes, radius)

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
