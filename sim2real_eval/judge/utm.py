# SPDX-License-Identifier: Apache-2.0
"""Universal Transverse Mercator: the plane in which navsat_transform works."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pyproj

from sim_sensors.measurements import FloatArray

__all__ = ['from_utm', 'to_utm', 'utm_zone']


def utm_zone(latitude: float, longitude: float) -> int:
    """Return the zone of a position in degrees, with the exceptions for Norway and Svalbard."""
    longitude = (longitude + 180.0) % 360.0 - 180.0
    if 56.0 <= latitude < 64.0 and 3.0 <= longitude < 12.0:
        return 32
    if 72.0 <= latitude < 84.0 and 0.0 <= longitude < 42.0:
        return 31 + 2 * int((longitude + 3.0) // 12.0)
    return int((longitude + 180.0) // 6.0) + 1


@functools.lru_cache(maxsize=32)
def _projection_of(zone: int, south: bool, _thread: int) -> pyproj.Proj:
    return pyproj.Proj(proj='utm', zone=zone, south=south, ellps='WGS84')


def _projection(zone: int, south: bool) -> pyproj.Proj:
    """Return a projection for this thread alone: pyproj promises no more."""
    return _projection_of(zone, south, threading.get_ident())


def to_utm(
    latitude: FloatArray, longitude: FloatArray, datum: tuple[float, float] | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Project positions into one zone.

    Parameters
    ----------
    latitude, longitude : (n,) float
        Degrees, WGS84.
    datum : tuple of float or None
        Latitude and longitude of the position whose zone it is; None for the first.

    Returns
    -------
    easting, northing : (n,) float
        Metres on the plane, whose scale is 0.9996 at the zone's central meridian.
    convergence : (n,) float
        Angle from grid north to true north, radians, positive east of the central meridian on
        the northern hemisphere.
    """
    if len(latitude) == 0:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    first = datum or (float(latitude[0]), float(longitude[0]))
    projection = _projection(utm_zone(*first), first[0] < 0.0)
    easting, northing = projection(longitude, latitude)
    factors = projection.get_factors(longitude, latitude)
    convergence = np.radians(np.asarray(factors.meridian_convergence, dtype=np.float64))
    return np.asarray(easting), np.asarray(northing), convergence


def from_utm(
    easting: FloatArray, northing: FloatArray, datum: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return latitude and longitude in degrees, (n,) each, of positions in the datum's zone."""
    if len(easting) == 0:
        return np.zeros(0), np.zeros(0)
    projection = _projection(utm_zone(*datum), datum[0] < 0.0)
    longitude, latitude = projection(easting, northing, inverse=True)
    return np.asarray(latitude), np.asarray(longitude)
