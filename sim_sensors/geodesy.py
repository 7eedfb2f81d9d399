# SPDX-License-Identifier: Apache-2.0
"""How simulators turn metres into degrees: WGS84, or the spheres and projections of others.

Everything but WGS84 is wrong by up to a few parts in a thousand and is offered to repeat what
those simulators report, on any origin. Each is a closed formula of east, north, up in metres;
R is the radius, f0 and l0 are latitude and longitude of the origin.

chrono_sphere
    latitude = f0 + n / R, longitude = l0 + e / (R cos(latitude)), R = 6371000 m.
hector
    n over the meridian's radius and e over that of the parallel, both at the origin, WGS84.
px4_classic
    Azimuthal equidistant projection of a sphere of 6353000 m.
carla_mercator
    Mercator projection of a sphere of 6378137 m, scaled to be true at the origin.
carla_transverse_mercator
    Transverse Mercator projection of that sphere with the scale 0.9996; the altitude of the
    origin is added twice, as in CARLA's code.

Sources, in this order: [Chrono] ChGPSUtils; [Hector]; [PX4Classic]; [CARLA] GeoLocation.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sim_sensors.compilation import compiled
from sim_sensors.environment import LocalFrame
from sim_sensors.measurements import FloatArray

__all__ = ['GEODESIES', 'to_geodetic']

_WGS84 = 'wgs84'
_A = 6378137.0
_E2 = (2.0 - 1.0 / 298.257223563) / 298.257223563
_CHRONO_RADIUS = 6371000.0
_PX4_RADIUS = 6353000.0
_CARLA_SCALE = 0.9996


def to_geodetic(
    geodesy: str, frame: LocalFrame, enu: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return latitude (deg), longitude (deg) and altitude (m), each `(n,)`.

    Parameters
    ----------
    geodesy : str
        One of `GEODESIES`.
    frame : LocalFrame
        Its origin is that of the conversion.
    enu : (n, 3)
        Position, m.

    Raises
    ------
    MotionError
        When WGS84 cannot convert a position.
    """
    if geodesy == _WGS84:
        return frame.to_geodetic(enu)
    origin = np.array([frame.latitude_deg, frame.longitude_deg, frame.altitude_m])
    rows = _FORMULAS[geodesy](origin, np.ascontiguousarray(enu))
    return rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy()


@compiled
def _chrono_sphere(origin: FloatArray, enu: FloatArray) -> FloatArray:
    out = np.empty_like(enu)
    for k in range(len(enu)):
        latitude = origin[0] + math.degrees(enu[k, 1] / _CHRONO_RADIUS)
        parallel = _CHRONO_RADIUS * math.cos(math.radians(latitude))
        out[k, 0] = latitude
        out[k, 1] = origin[1] + math.degrees(enu[k, 0] / parallel)
        out[k, 2] = origin[2] + enu[k, 2]
    return out


@compiled
def _hector(origin: FloatArray, enu: FloatArray) -> FloatArray:
    sine, cosine = math.sin(math.radians(origin[0])), math.cos(math.radians(origin[0]))
    w = math.sqrt(1.0 - _E2 * sine * sine)
    meridian, parallel = _A * (1.0 - _E2) / w**3, _A / w * cosine
    out = np.empty_like(enu)
    for k in range(len(enu)):
        out[k, 0] = origin[0] + math.degrees(enu[k, 1] / meridian)
        out[k, 1] = origin[1] + math.degrees(enu[k, 0] / parallel)
        out[k, 2] = origin[2] + enu[k, 2]
    return out


@compiled
def _px4_classic(origin: FloatArray, enu: FloatArray) -> FloatArray:
    sine, cosine = math.sin(math.radians(origin[0])), math.cos(math.radians(origin[0]))
    out = np.empty_like(enu)
    for k in range(len(enu)):
        east, north = enu[k, 0] / _PX4_RADIUS, enu[k, 1] / _PX4_RADIUS
        c = math.hypot(east, north)
        ratio = math.sin(c) / c if c > 0.0 else 1.0
        latitude = math.asin(math.cos(c) * sine + north * ratio * cosine)
        across = math.cos(c) * cosine - north * ratio * sine
        out[k, 0] = math.degrees(latitude)
        out[k, 1] = origin[1] + math.degrees(math.atan2(east * ratio, across))
        out[k, 2] = origin[2] + enu[k, 2]
    return out


@compiled
def _carla_mercator(origin: FloatArray, enu: FloatArray) -> FloatArray:
    f0 = math.radians(origin[0])
    radius = _A * math.cos(f0)
    start = math.asinh(math.tan(f0))
    out = np.empty_like(enu)
    for k in range(len(enu)):
        out[k, 0] = math.degrees(math.atan(math.sinh(start + enu[k, 1] / radius)))
        out[k, 1] = origin[1] + math.degrees(enu[k, 0] / radius)
        out[k, 2] = origin[2] + enu[k, 2]
    return out


@compiled
def _carla_transverse_mercator(origin: FloatArray, enu: FloatArray) -> FloatArray:
    f0, radius = math.radians(origin[0]), _A * _CARLA_SCALE
    out = np.empty_like(enu)
    for k in range(len(enu)):
        east, foot = enu[k, 0] / radius, f0 + enu[k, 1] / radius
        out[k, 0] = math.degrees(math.asin(math.sin(foot) / math.cosh(east)))
        out[k, 1] = origin[1] + math.degrees(math.atan2(math.sinh(east), math.cos(foot)))
        out[k, 2] = 2.0 * origin[2] + enu[k, 2]
    return out


_FORMULAS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    'chrono_sphere': _chrono_sphere,
    'hector': _hector,
    'px4_classic': _px4_classic,
    'carla_mercator': _carla_mercator,
    'carla_transverse_mercator': _carla_transverse_mercator,
}
GEODESIES = (_WGS84, *_FORMULAS)
