# SPDX-License-Identifier: Apache-2.0
"""Uneven ground: heights with the spectrum of a road of a roughness class ([ISO8608])."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import spline_filter

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.errors import MotionError, not_among
from sim_sensors.core.measurements import FloatArray, IntArray
from .road_classes import REFERENCE_FREQUENCY, ROADS, ROUGHNESS, SMOOTH


def road_heights(
    road: str, rows: int, columns: int, spacing: float, rng: np.random.Generator
) -> FloatArray:
    """Return heights `(rows, columns)` m, on a square grid, of zero mean.

    Along any straight line they have the one-sided spectrum of [ISO8608]::

        G_d(n) = G_d(n_0) (n / n_0)^-2        n_0 = 0.1 cycles/m

    An isotropic field has this spectrum along lines if its two-sided spectrum over the plane is
    G_d(n_0) n_0^2 / (4 k^3), where k is the length of the wave vector in cycles/m. Waves shorter
    than two spacings are absent, which multiplies G_d(n) by m / sqrt(n^2 + m^2), m = 1 / (2
    spacing). Waves longer than the smaller side, which would be hills, are absent, too. The field
    is periodic.

    Parameters
    ----------
    road : str
        Class `A` (very good) to `D`, or `smooth`.
    rows, columns : int
        Size of the grid.
    spacing : float
        Spacing of the grid, m.
    rng : numpy.random.Generator
        Generator of the heights.

    Raises
    ------
    MotionError
        For an unknown class.

    Examples
    --------
    >>> heights = road_heights('C', 64, 64, 0.05, np.random.default_rng(1))
    >>> heights.shape, bool(abs(heights.mean()) < 1e-12)
    ((64, 64), True)
    """
    if road == SMOOTH:
        return np.zeros((rows, columns))
    if road not in ROUGHNESS:
        raise MotionError(not_among(f'road {road!r} is unknown', road, ROADS))
    along, across = np.fft.fftfreq(rows, spacing), np.fft.rfftfreq(columns, spacing)
    waves = np.hypot(along[:, None], across[None])
    shortest = 1.0 / (min(rows, columns) * spacing)
    strength = ROUGHNESS[road] * REFERENCE_FREQUENCY**2 / 4.0
    density = np.zeros_like(waves)
    is_kept = waves >= shortest
    density[is_kept] = strength / waves[is_kept] ** 3
    # White noise of unit variance has the density spacing^2.
    white = np.fft.rfft2(rng.standard_normal((rows, columns)))
    return np.asarray(np.fft.irfft2(white * np.sqrt(density) / spacing, (rows, columns)))


class Road:
    """Unbounded ground of a roughness class, smooth between the points of a grid.

    Cubic splines interpolate a square of heights, which repeats itself, so the slope is
    continuous. There are no waves shorter than two spacings.

    Parameters
    ----------
    road : str
        Roughness class, see `road_heights`.
    rng : numpy.random.Generator
        Generator of the heights.
    side : int
        Number of grid points along a side.
    spacing : float
        Distance between grid points, m.

    Raises
    ------
    MotionError
        For an unknown class.

    Examples
    --------
    >>> ground = Road('C', np.random.default_rng(1), side=64)
    >>> height, slope = ground.at(np.array([[0.0, 0.0], [64 * 0.02, 0.0]]))
    >>> bool(abs(height[0] - height[1]) < 1e-12), slope.shape
    (True, (2, 2))
    """

    def __init__(
        self, road: str, rng: np.random.Generator, *, side: int = 1024, spacing: float = 0.02
    ) -> None:
        self.heights = road_heights(road, side, side, spacing, rng)
        self._spacing = spacing
        self._coefficients = np.asarray(
            spline_filter(self.heights, order=3, mode='grid-wrap'), dtype=np.float64
        )

    def at(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return heights `(n,)` m and slopes along x and y `(n, 2)` at places `(n, 2)` m."""
        surface = np.empty((len(places), 3))
        _heights(self._coefficients, self._spacing, np.asarray(places, np.float64), surface)
        return surface[:, 0], surface[:, 1:]

    def lay_planes(
        self, places: FloatArray, rows: IntArray, points: FloatArray, turns: FloatArray
    ) -> None:
        """Write the tangent planes below selected places.

        Planes are written for the `rows` `(m,)` of `places` `(n, 3)` m: a point `(m, 3)` m into
        `points`, and the quaternion w x y z that rotates the vertical to the normal into `turns`
        `(m, 4)`.
        """
        _planes(self._coefficients, self._spacing, places, rows, points, turns)


@kernel
def _weights(s: float) -> tuple[float, float, float, float]:
    """Return the weights of the four cubic B-spline coefficients around a place, 0 <= s < 1."""
    r = 1.0 - s
    return (
        r * r * r / 6.0,
        (3.0 * s * s * s - 6.0 * s * s + 4.0) / 6.0,
        (3.0 * r * r * r - 6.0 * r * r + 4.0) / 6.0,
        s * s * s / 6.0,
    )


@kernel
def _slopes(s: float) -> tuple[float, float, float, float]:
    """Return the derivatives of `_weights`."""
    r = 1.0 - s
    return -0.5 * r * r, 1.5 * s * s - 2.0 * s, 2.0 * r - 1.5 * r * r, 0.5 * s * s


@kernel
def _height(
    coefficients: FloatArray, spacing: float, x: float, y: float
) -> tuple[float, float, float]:
    """Return height and slopes of the spline; coefficient columns run along x, rows along y."""
    rows, columns = coefficients.shape
    column, row = math.floor(x / spacing), math.floor(y / spacing)
    s, t = x / spacing - column, y / spacing - row
    along, across, along_slope, across_slope = _weights(s), _weights(t), _slopes(s), _slopes(t)
    height = slope_x = slope_y = 0.0
    for i in range(4):
        for j in range(4):
            value = coefficients[(int(row) + i - 1) % rows, (int(column) + j - 1) % columns]
            height += value * across[i] * along[j]
            slope_x += value * across[i] * along_slope[j]
            slope_y += value * across_slope[i] * along[j]
    return height, slope_x / spacing, slope_y / spacing


@compiled
def _heights(
    coefficients: FloatArray, spacing: float, places: FloatArray, surface: FloatArray
) -> None:
    for k in range(len(places)):
        height, slope_x, slope_y = _height(coefficients, spacing, places[k, 0], places[k, 1])
        surface[k, 0], surface[k, 1], surface[k, 2] = height, slope_x, slope_y


@compiled
def _planes(
    coefficients: FloatArray,
    spacing: float,
    places: FloatArray,
    rows: IntArray,
    points: FloatArray,
    turns: FloatArray,
) -> None:
    for k in range(len(rows)):
        x, y = places[rows[k], 0], places[rows[k], 1]
        height, slope_x, slope_y = _height(coefficients, spacing, x, y)
        points[k, 0], points[k, 1], points[k, 2] = x, y, height
        # The shortest rotation from the vertical to the normal (-slope, 1).
        w = 1.0 + math.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
        norm = math.sqrt(w * w + slope_x * slope_x + slope_y * slope_y)
        turns[k, 0], turns[k, 1] = w / norm, slope_y / norm
        turns[k, 2], turns[k, 3] = -slope_x / norm, 0.0
