# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""WGS 84: places, gravity and a dipole for the magnetic field. Angles in degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Place = tuple[float, float, float]
"""Latitude and longitude in degrees, ellipsoidal height in m."""

_A, _F = 6378137.0, 1.0 / 298.257223563
_E2 = _F * (2.0 - _F)


def _ecef(latitude: Array, longitude: Array, height: Array) -> Array:
    lat, lon = np.radians(latitude), np.radians(longitude)
    n = _A / np.sqrt(1.0 - _E2 * np.sin(lat) ** 2)
    flat = (n + height) * np.cos(lat)
    z = (n * (1.0 - _E2) + height) * np.sin(lat)
    return np.stack([flat * np.cos(lon), flat * np.sin(lon), z], axis=-1)


def _axes(origin: Place) -> Array:
    """Return east, north and up of a place as rows."""
    lat, lon = np.radians(origin[:2])
    return np.array(
        [
            [-np.sin(lon), np.cos(lon), 0.0],
            [-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)],
            [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)],
        ]
    )


def to_geodetic(enu: Array, origin: Place) -> tuple[Array, Array, Array]:
    """Return latitude, longitude and height of positions in the tangent plane of a place."""
    x, y, z = (_ecef(*np.array(origin)) + enu @ _axes(origin)).T
    flat = np.hypot(x, y)
    lat = np.arctan2(z, flat * (1.0 - _E2))
    for _ in range(6):
        n = _A / np.sqrt(1.0 - _E2 * np.sin(lat) ** 2)
        height = flat / np.cos(lat) - n
        lat = np.arctan2(z, flat * (1.0 - _E2 * n / (n + height)))
    return np.degrees(lat), np.degrees(np.arctan2(y, x)), height


def to_enu(latitude: Array, longitude: Array, height: Array, origin: Place) -> Array:
    """Return positions in the tangent plane of a place."""
    across: Array = _ecef(latitude, longitude, height) - _ecef(*np.array(origin))
    return np.asarray(across @ _axes(origin).T)


def gravity(place: Place) -> float:
    """Return normal gravity (Somigliana) with the free-air gradient, m/s^2."""
    square = np.sin(np.radians(place[0])) ** 2
    at_sea = 9.7803253359 * (1.0 + 0.00193185265241 * square) / np.sqrt(1.0 - _E2 * square)
    return float(at_sea - 3.086e-6 * place[2])


def magnetic_field(place: Place) -> Array:
    """Return the field of a centred dipole along the axis of rotation, T, in world axes."""
    lat = np.radians(place[0])
    return 3.05e-5 * np.array([0.0, np.cos(lat), -2.0 * np.sin(lat)])
