# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Gravity, magnetic field, rotation and curvature of the Earth."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import ParameterError, SensorError
from sim_sensors.core.installation import pip_install
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.motion.trajectory import Trajectory
from .geodesy import STANDARD_GRAVITY, WGS84_A, WGS84_E2, WGS84_F, LocalFrame

EARTH_RATE = 7.292115e-5
"""Rotation rate of the Earth, rad/s, WGS84 [NIMA2000]: 15.04 degrees an hour."""

LONG_RECORD = 600.0
"""Length of a record, s, from which `auto` includes the rotation: 2.5 degrees."""

EARTHS = ('auto', 'flat', 'rotating')
"""Values of the parameter `earth`."""


def simulates_rotation(earth: str, bias: float, duration: float) -> bool:
    """Return whether the rotation of the Earth is simulated, under a value of `EARTHS`.

    `auto` includes it in records of 10 minutes and more for gyroscopes of tactical grade and
    better. These declare a `bias` at the end of the record, rad/s, below `EARTH_RATE`; 0 stands
    for an unknown grade.

    Examples
    --------
    >>> tactical, consumer = np.radians([1.0, 100.0]) / 3600.0
    >>> [simulates_rotation('auto', bias, 3600.0) for bias in (tactical, consumer)]
    [True, False]
    >>> simulates_rotation('auto', tactical, 60.0)
    False
    """
    if earth == 'auto':
        return duration >= LONG_RECORD and bool(0.0 < bias < EARTH_RATE)
    return earth == 'rotating'


@dataclasses.dataclass(frozen=True, eq=False)
class TurningEarth:
    """Rotation and curvature of the Earth in a local frame, east north up.

    Inertial sensors measure, with the rate W of the Earth, the velocity v and the position p in
    the frame ([Groves2013], chapter 5)::

        rate + R^T W        specific force R^T (a + 2 W x v - g(p))
        g(p) = (0, 0, -g) + (-k_e east, -k_n north, (k_e + k_n + 2 W^2) up)

    k_e = g / (N + h) and k_n = g / (M + h), where N and M are the radii of curvature: the plumb
    line turns with the position, to first order. In a frame that stays level along the way this
    effect is the transport rate. g includes the centrifugal acceleration.

    Attributes
    ----------
    rate : (3,) float
        W, rad/s.
    gradient : (3,) float
        -k_e, -k_n, k_e + k_n + 2 W^2, 1/s^2.
    automatic : bool
        Whether a sensor includes it only under the conditions of `auto`, see `simulates_rotation`.

    Examples
    --------
    >>> earth = TurningEarth.from_frame(LocalFrame(45.0, 0.0, 0.0), 9.80665)
    >>> (np.degrees(earth.rate) * 3600.0).round(2)
    array([ 0.  , 10.64, 10.64])
    """

    rate: FloatArray
    gradient: FloatArray
    automatic: bool = False

    @classmethod
    def from_frame(
        cls, frame: LocalFrame, gravity: float, *, automatic: bool = False
    ) -> TurningEarth:
        """Return the rotation and curvature at the origin of a frame, for its gravity, m/s^2."""
        latitude = math.radians(frame.latitude_deg)
        factor = 1.0 - WGS84_E2 * math.sin(latitude) ** 2
        east = gravity / (WGS84_A / math.sqrt(factor) + frame.altitude_m)
        north = gravity / (WGS84_A * (1.0 - WGS84_E2) / factor**1.5 + frame.altitude_m)
        rate = EARTH_RATE * np.array([0.0, math.cos(latitude), math.sin(latitude)])
        gradient = np.array([-east, -north, east + north + 2.0 * EARTH_RATE**2])
        return cls(rate, gradient, automatic)

    def sensed_motion(self, motion: Trajectory) -> Trajectory:
        """Return the motion with the rates and accelerations that inertial sensors measure.

        The angular acceleration includes the rotation of W in the body, so that the acceleration
        at a lever arm is right too.
        """
        earth_rate = np.tile(self.rate, (len(motion.time), 1))
        rate = rotations.rotate_back(motion.orientation, earth_rate)
        return dataclasses.replace(
            motion,
            angular_velocity=motion.angular_velocity + rate,
            angular_acceleration=motion.angular_acceleration
            - rotations.cross(motion.angular_velocity, rate),
            acceleration=motion.acceleration
            + 2.0 * rotations.cross(earth_rate, motion.velocity)
            - self.gradient * motion.position,
        )


# WGS84 [NIMA2000], tables 3.1, 3.3 and 3.4: normal gravity at the equator (m/s^2), Somigliana's
# constant, and m = omega^2 a^2 b / GM.
_EQUATOR = 9.7803253359
_K = 0.00193185265241
_M = 0.00344978650684


def normal_gravity(latitude_deg: ArrayLike, altitude_m: ArrayLike = 0.0) -> FloatArray:
    """Return the magnitude of the normal gravity of WGS84, m/s^2, with the shape of the arguments.

    On the ellipsoid it is the closed formula of Somigliana. Above it is the second-order series in
    height, which at 10 km is within 1e-5 m/s^2 of the exact field. Source: [NIMA2000], equations
    4-1 and 4-3.

    Parameters
    ----------
    latitude_deg : float or array
        WGS84 latitude, degrees.
    altitude_m : float or array
        Height above the ellipsoid, m.

    Examples
    --------
    >>> round(float(normal_gravity(45.0, 0.0)), 4)
    9.8062
    """
    sin2 = np.sin(np.radians(np.asarray(latitude_deg, dtype=np.float64))) ** 2
    h = np.asarray(altitude_m, dtype=np.float64) / WGS84_A
    on_ellipsoid = _EQUATOR * (1.0 + _K * sin2) / np.sqrt(1.0 - WGS84_E2 * sin2)
    series = 1.0 - 2.0 * (1.0 + WGS84_F + _M - 2.0 * WGS84_F * sin2) * h + 3.0 * h * h
    return np.asarray(on_ellipsoid * series)


@dataclasses.dataclass(frozen=True)
class Gravity(Parameters):
    """Gravity of the world, uniform along -z of its frame, and the rotation of the Earth.

    The real gravity changes by 3e-6 m/s^2 per metre of height and by up to 8e-6 m/s^2 per
    kilometre to the north, which no IMU here resolves.
    """

    model: str = parameter(
        'standard',
        '',
        'standard: 9.80665 m/s^2; normal: WGS84 at the latitude and height of the origin; '
        'constant: the parameter value.',
        choices=('standard', 'normal', 'constant'),
    )
    value: float = non_negative(STANDARD_GRAVITY, 'm/s^2', 'Gravity for the model constant.')
    earth: str = parameter(
        'auto',
        '',
        'flat: no rotation; rotating: IMUs measure the rotation and curvature of the '
        'Earth; auto: rotating for records of 10 minutes and more with a gyroscope whose '
        'declared bias is below 15.04 deg/h.',
        choices=EARTHS,
    )

    def at(self, frame: LocalFrame) -> float:
        """Return the gravity at the origin of `frame`, m/s^2."""
        if self.model == 'normal':
            return float(normal_gravity(frame.latitude_deg, frame.altitude_m))
        return self.value if self.model == 'constant' else STANDARD_GRAVITY


# First year of each set of coefficients in pygeomag; each serves five years. 2015 was revised.
_EPOCHS = {2010: '2010', 2015: '2015v2', 2020: '2020', 2025: '2025'}
_LAST = 2030.0
# Height range of the WMM, m above the ellipsoid (its report, 2025).
_LOWEST, _HIGHEST = -1e3, 850e3


def wmm_epoch(year: float) -> str:
    """Return the epoch of the World Magnetic Model at a decimal year: 2010, 2015v2, 2020 or 2025.

    Raises ParameterError for a year outside 2010 to 2030.
    """
    if not min(_EPOCHS) <= year <= _LAST:
        raise ParameterError(
            'World Magnetic Model', 'year', f'{year!r} is not allowed; must be 2010 to 2030'
        )
    return _EPOCHS[max(first for first in _EPOCHS if first <= year)]


@functools.lru_cache(maxsize=64)
def wmm_field(frame: LocalFrame, year: float) -> tuple[float, float, float]:
    """Return the field of the World Magnetic Model at the origin of `frame`: east, north, up, T.

    The origin is -1 to 850 km above the ellipsoid, the decimal year 2010 to 2030; see `wmm_epoch`.

    Raises SensorError when pygeomag, which contains the model, is not installed. Raises
    ParameterError when the time or the height is outside the model.
    """
    epoch = wmm_epoch(year)
    if not _LOWEST <= frame.altitude_m <= _HIGHEST:
        raise ParameterError(
            'World Magnetic Model',
            'altitude_m',
            f'{frame.altitude_m!r} is not allowed; must be -1000 to 850000 [m]',
        )
    try:
        from pygeomag import GeoMag
    except ModuleNotFoundError:
        raise SensorError(
            "the Earth's field 'wmm' needs pygeomag, which is not installed; run "
            f"{pip_install('pygeomag')}, or give the world's earth_field the model constant"
        ) from None
    model = GeoMag(coefficients_file=f'wmm/WMM_{epoch}.COF')
    # Kilometres in, nanotesla out: x north, y east, z down.
    field = model.calculate(
        glat=frame.latitude_deg, glon=frame.longitude_deg, alt=frame.altitude_m / 1000.0, time=year
    )
    return field.y * 1e-9, field.x * 1e-9, -field.z * 1e-9


@dataclasses.dataclass(frozen=True)
class EarthField(Parameters):
    """Magnetic field of the Earth, uniform in the local frame.

    The real field changes by about 1e-8 T per kilometre, below the noise of any magnetometer here.
    """

    model: str = parameter(
        'wmm',
        '',
        'wmm: World Magnetic Model at the origin of the frame and at the year; constant: the '
        'parameter value.',
        choices=('wmm', 'constant'),
    )
    year: float = parameter(
        2026.0, 'a', 'Decimal year of the WMM.', minimum=2010.0, maximum=2030.0
    )
    value: tuple[float, float, float] = parameter(
        (0.0, 2.0e-5, -4.5e-5), 'T', 'Field east, north, up for the model constant.'
    )

    def at(self, frame: LocalFrame) -> FloatArray:
        """Return the field at the origin of `frame`, `(3,)` T, east north up; see `wmm_field`."""
        return np.array(wmm_field(frame, self.year) if self.model == 'wmm' else self.value)
