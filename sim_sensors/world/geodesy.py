# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Standard gravity, local frames, and the conversions of simulators from metres to degrees."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sim_sensors.core.compilation import compiled, row_loop
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, parameter

if TYPE_CHECKING:
    from pyproj import Transformer

# Standard gravity, m/s^2, CGPM 1901; robot_localization removes it and AirSim adds it.
STANDARD_GRAVITY = 9.80665
# WGS84 (EPSG:7030): semi-major axis in m, flattening and first eccentricity squared.
WGS84_A = 6378137.0
WGS84_F = 1.0 / 298.257223563
WGS84_E2 = WGS84_F * (2.0 - WGS84_F)


@dataclasses.dataclass(frozen=True)
class LocalFrame(Parameters):
    """East-north-up frame that touches the WGS84 ellipsoid's parallel surface at its origin.

    z is measured from the tangent plane, not along the ellipsoid. A point with z = 0 at the
    distance d from the origin has an altitude of about `altitude_m + d^2 / (2 R)` with R = 6.37e6
    m. The difference is 0.8 mm at 100 m, 78 mm at 1 km and 7.8 m at 10 km.

    Parameters
    ----------
    latitude_deg, longitude_deg : float
        Origin, WGS84, degrees.
    altitude_m : float
        Height of the origin above the ellipsoid, m.

    Examples
    --------
    >>> frame = LocalFrame(43.07, -89.4, 260.0)
    >>> latitude, longitude, altitude = frame.to_geodetic(np.array([[0.0, 100.0, 0.0]]))
    >>> round(float(latitude[0]), 6)
    43.0709
    """

    latitude_deg: float = parameter(
        0.0, 'deg', 'Latitude of the origin.', minimum=-90.0, maximum=90.0
    )
    longitude_deg: float = parameter(
        0.0, 'deg', 'Longitude of the origin.', minimum=-180.0, maximum=180.0
    )
    altitude_m: float = parameter(0.0, 'm', 'Height of the origin above the WGS84 ellipsoid.')

    def to_geodetic(self, enu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Convert positions in this frame, `(n, 3)` m, to geodetic coordinates.

        Returns latitude (deg), longitude (deg) and ellipsoidal altitude (m), each `(n,)`.

        Raises
        ------
        MotionError
            When a position is not finite or so far away that it has no geodetic coordinates.
        """
        points = np.asarray(enu, dtype=np.float64).reshape(-1, 3)
        longitude, latitude, altitude = _transformer(self).transform(
            points[:, 0], points[:, 1], points[:, 2], direction='INVERSE'
        )
        geodetic = np.stack([latitude, longitude, altitude], axis=1)
        self._check_finite(points, geodetic)
        # PROJ uses Earth-centred coordinates, whose last bit is 1 nm. Each repetition removes the
        # remaining error, down to the last bit of a degree.
        for _ in range(2):
            geodetic += _small_step(geodetic, points - _to_enu(geodetic, self._origin()))
        self._check_finite(points, geodetic)
        return geodetic[:, 0].copy(), geodetic[:, 1].copy(), geodetic[:, 2].copy()

    def to_enu(
        self, latitude_deg: FloatArray, longitude_deg: FloatArray, altitude_m: FloatArray
    ) -> FloatArray:
        """Return positions in this frame, `(n, 3)` m; the inverse of `to_geodetic`."""
        columns = (latitude_deg, longitude_deg, altitude_m)
        geodetic = np.stack([np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in columns], 1)
        self._check_finite(geodetic, geodetic)
        enu: FloatArray = _to_enu(geodetic, self._origin())
        self._check_finite(geodetic, enu)
        return enu

    def with_origin(self, enu: FloatArray) -> LocalFrame:
        """Return the frame whose origin is at `enu`, `(3,)` m, in this frame.

        The result is exact up to terms of the square of that distance over the radius of the
        Earth. It does not go beyond a pole.
        """
        origin = self._origin()[None]
        latitude, longitude, altitude = (origin + _small_step(origin, enu[None]))[0].tolist()
        latitude = min(max(latitude, -90.0), 90.0)
        return LocalFrame(latitude, math.remainder(longitude, 360.0), altitude)

    def _origin(self) -> FloatArray:
        return np.array([self.latitude_deg, self.longitude_deg, self.altitude_m])

    def _check_finite(self, points: FloatArray, converted: FloatArray) -> None:
        is_bad = ~np.isfinite(converted).all(axis=1)
        if is_bad.any():
            first = int(np.argmax(is_bad))
            raise MotionError(
                f'position {first} = {points[first].tolist()} cannot be converted by WGS84; '
                'must be finite and near the Earth'
            )


@functools.lru_cache(maxsize=32)
def _transformer(frame: LocalFrame) -> Transformer:
    """Return the PROJ pipeline from longitude, latitude, altitude to east, north, up."""
    from pyproj import Transformer

    return Transformer.from_pipeline(
        '+proj=pipeline +step +proj=unitconvert +xy_in=deg +xy_out=rad '
        '+step +proj=cart +ellps=WGS84 '
        f'+step +proj=topocentric +ellps=WGS84 +lat_0={frame.latitude_deg!r} '
        f'+lon_0={frame.longitude_deg!r} +h_0={frame.altitude_m!r}'
    )


@row_loop
def _to_enu(geodetic: FloatArray, origin: FloatArray) -> FloatArray:
    """Return east, north, up of latitude, longitude (deg), altitude (m), each `(n, 3)`.

    The textbook formula subtracts two Earth-centred vectors of 6.4e6 m. Here each difference is
    computed before it is scaled (cos a - cos b = -2 sin((a + b)/2) sin((a - b)/2) and so on).
    Therefore the error is relative to the distance from the origin, not to the Earth's radius.
    """
    out = np.empty_like(geodetic)
    f0 = math.radians(origin[0])
    sin0, cos0 = math.sin(f0), math.cos(f0)
    w0 = math.sqrt(1.0 - WGS84_E2 * sin0 * sin0)
    for k in range(geodetic.shape[0]):
        f = math.radians(geodetic[k, 0])
        half = 0.5 * math.radians(geodetic[k, 0] - origin[0])
        # Across the date line, each longitude is first measured from that line. The difference of
        # nearly 360 degrees would be rounded to 6 nm.
        turn = geodetic[k, 1] - origin[1]
        if turn > 180.0:
            turn = (geodetic[k, 1] - 180.0) - (origin[1] + 180.0)
        elif turn < -180.0:
            turn = (geodetic[k, 1] + 180.0) - (origin[1] - 180.0)
        dl = math.radians(turn)
        h = geodetic[k, 2]
        dh = h - origin[2]
        sine = math.sin(f)
        w = math.sqrt(1.0 - WGS84_E2 * (sine * sine))
        n = WGS84_A / w
        dn = WGS84_A * WGS84_E2 * math.sin(f + f0) * math.sin(2.0 * half) / (w * w0 * (w + w0))
        dcos = -2.0 * math.sin(f0 + half) * math.sin(half)
        dsin = 2.0 * math.cos(f0 + half) * math.sin(half)
        p = (n + h) * math.cos(f)
        # Outward from the axis in the origin's meridian plane, and along the axis.
        turned = math.sin(0.5 * dl)
        dx = (n + h) * dcos + (dn + dh) * cos0 - 2.0 * p * (turned * turned)
        dz = (n * (1.0 - WGS84_E2) + h) * dsin + (dn * (1.0 - WGS84_E2) + dh) * sin0
        out[k, 0] = p * math.sin(dl)
        out[k, 1] = cos0 * dz - sin0 * dx
        out[k, 2] = cos0 * dx + sin0 * dz
    return out


@row_loop
def _small_step(geodetic: FloatArray, enu: FloatArray) -> FloatArray:
    """Return the change of latitude, longitude, altitude for a small shift `enu`, `(n, 3)` m."""
    out = np.empty_like(geodetic)
    for k in range(geodetic.shape[0]):
        f = math.radians(geodetic[k, 0])
        sine = math.sin(f)
        w = math.sqrt(1.0 - WGS84_E2 * (sine * sine))
        h = geodetic[k, 2]
        out[k, 0] = math.degrees(enu[k, 1] / (WGS84_A * (1.0 - WGS84_E2) / (w * w * w) + h))
        # At a pole the longitude has no effect, so the radius is bounded.
        radius = max((WGS84_A / w + h) * math.cos(f), 1.0)
        out[k, 1] = math.degrees(enu[k, 0] / radius)
        out[k, 2] = enu[k, 2]
    return out


# Origin of the vehicle demo of [ART], a parking lot in Madison, Wisconsin.
DEFAULT_ORIGIN = LocalFrame(43.070, -89.400, 260.0)


# Conversions of simulators from metres to degrees. All but WGS84 err by up to a few parts in a
# thousand; they repeat what those simulators report, for any origin. Each is a closed formula of
# east, north, up in metres; R is the radius, f0 and l0 are latitude and longitude of the origin.
#
# chrono_sphere
#     latitude = f0 + n / R, longitude = l0 + e / (R cos(latitude)), R = 6371000 m.
# hector
#     n over the meridian's radius and e over that of the parallel, both at the origin, WGS84.
# px4_classic
#     Azimuthal equidistant projection of a sphere of 6353000 m.
# carla_mercator
#     Mercator projection of a sphere of 6378137 m, scaled to be true at the origin.
# carla_transverse_mercator
#     Transverse Mercator projection of that sphere with the scale 0.9996; the altitude of the
#     origin is added twice, as in CARLA's code.
#
# Sources, in this order: [Chrono] ChGPSUtils; [Hector]; [PX4Classic]; [CARLA] GeoLocation.cpp.

_WGS84 = 'wgs84'
_CHRONO_RADIUS = 6371000.0
_PX4_RADIUS = 6353000.0
_CARLA_SCALE = 0.9996


def to_geodetic(
    geodesy: str, frame: LocalFrame, enu: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return latitude (deg), longitude (deg) and altitude (m), each `(n,)`, of `enu` `(n, 3)` m.

    `geodesy` is one of `GEODESIES`; the origin of the conversion is that of the frame.

    Raises MotionError for a position that WGS84 cannot convert.
    """
    if geodesy == _WGS84:
        return frame.to_geodetic(enu)
    rows = _FORMULAS[geodesy](frame.latitude_deg, frame.longitude_deg, np.ascontiguousarray(enu))
    times = 2.0 if geodesy == 'carla_transverse_mercator' else 1.0
    return rows[:, 0].copy(), rows[:, 1].copy(), times * frame.altitude_m + enu[:, 2]


@row_loop
def _chrono_sphere(latitude0: float, longitude0: float, enu: FloatArray) -> FloatArray:
    out = np.empty((len(enu), 2))
    for k in range(len(enu)):
        latitude = latitude0 + math.degrees(enu[k, 1] / _CHRONO_RADIUS)
        parallel = _CHRONO_RADIUS * math.cos(math.radians(latitude))
        out[k] = latitude, longitude0 + math.degrees(enu[k, 0] / parallel)
    return out


@row_loop
def _hector(latitude0: float, longitude0: float, enu: FloatArray) -> FloatArray:
    sine, cosine = math.sin(math.radians(latitude0)), math.cos(math.radians(latitude0))
    w = math.sqrt(1.0 - WGS84_E2 * sine * sine)
    meridian, parallel = WGS84_A * (1.0 - WGS84_E2) / (w * w * w), WGS84_A / w * cosine
    out = np.empty((len(enu), 2))
    for k in range(len(enu)):
        out[k, 0] = latitude0 + math.degrees(enu[k, 1] / meridian)
        out[k, 1] = longitude0 + math.degrees(enu[k, 0] / parallel)
    return out


@compiled
def _px4_classic(latitude0: float, longitude0: float, enu: FloatArray) -> FloatArray:
    sine, cosine = math.sin(math.radians(latitude0)), math.cos(math.radians(latitude0))
    out = np.empty((len(enu), 2))
    for k in range(len(enu)):
        east, north = enu[k, 0] / _PX4_RADIUS, enu[k, 1] / _PX4_RADIUS
        c = math.hypot(east, north)
        ratio = math.sin(c) / c if c > 0.0 else 1.0
        across = math.cos(c) * cosine - north * ratio * sine
        out[k, 0] = math.degrees(math.asin(math.cos(c) * sine + north * ratio * cosine))
        out[k, 1] = longitude0 + math.degrees(math.atan2(east * ratio, across))
    return out


@compiled
def _carla_mercator(latitude0: float, longitude0: float, enu: FloatArray) -> FloatArray:
    f0 = math.radians(latitude0)
    radius = WGS84_A * math.cos(f0)
    start = math.asinh(math.tan(f0))
    out = np.empty((len(enu), 2))
    for k in range(len(enu)):
        out[k, 0] = math.degrees(math.atan(math.sinh(start + enu[k, 1] / radius)))
        out[k, 1] = longitude0 + math.degrees(enu[k, 0] / radius)
    return out


@compiled
def _carla_transverse_mercator(latitude0: float, longitude0: float, enu: FloatArray) -> FloatArray:
    f0, radius = math.radians(latitude0), WGS84_A * _CARLA_SCALE
    out = np.empty((len(enu), 2))
    for k in range(len(enu)):
        east, foot = enu[k, 0] / radius, f0 + enu[k, 1] / radius
        out[k, 0] = math.degrees(math.asin(math.sin(foot) / math.cosh(east)))
        out[k, 1] = longitude0 + math.degrees(math.atan2(math.sinh(east), math.cos(foot)))
    return out


_FORMULAS: dict[str, Callable[[float, float, FloatArray], FloatArray]] = {
    'chrono_sphere': _chrono_sphere,
    'hector': _hector,
    'px4_classic': _px4_classic,
    'carla_mercator': _carla_mercator,
    'carla_transverse_mercator': _carla_transverse_mercator,
}
GEODESIES = (_WGS84, *_FORMULAS)
