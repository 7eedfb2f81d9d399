# SPDX-License-Identifier: Apache-2.0
"""Gravity of the simulated world: standard, normal by WGS84, or a value of one's own."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.environment import STANDARD_GRAVITY, LocalFrame
from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import Parameters, parameter

__all__ = ['Gravity', 'normal_gravity']

# WGS84 [NIMA2000], tables 3.1, 3.3 and 3.4: semi-major axis (m), flattening, normal
# gravity at the equator (m/s^2), Somigliana's constant, and m = omega^2 a^2 b / GM.
_A = 6378137.0
_F = 1.0 / 298.257223563
_E2 = _F * (2.0 - _F)
_EQUATOR = 9.7803253359
_K = 0.00193185265241
_M = 0.00344978650684


def normal_gravity(latitude_deg: ArrayLike, altitude_m: ArrayLike = 0.0) -> FloatArray:
    """Return the magnitude of WGS84's normal gravity, m/s^2, with the shape of the arguments.

    On the ellipsoid it is Somigliana's closed formula; above it the second-order series in
    height, which at 10 km is within 1e-5 m/s^2 of the exact field of the ellipsoid. Source:
    [NIMA2000], equations 4-1 and 4-3.

    Parameters
    ----------
    latitude_deg : float or array
        WGS84 latitude, degrees.
    altitude_m : float or array
        Height above the ellipsoid, m.
    """
    sin2 = np.sin(np.radians(np.asarray(latitude_deg, dtype=np.float64))) ** 2
    h = np.asarray(altitude_m, dtype=np.float64) / _A
    on_ellipsoid = _EQUATOR * (1.0 + _K * sin2) / np.sqrt(1.0 - _E2 * sin2)
    series = 1.0 - 2.0 * (1.0 + _F + _M - 2.0 * _F * sin2) * h + 3.0 * h * h
    return np.asarray(on_ellipsoid * series)


@dataclasses.dataclass(frozen=True)
class Gravity(Parameters):
    """Which gravity the world has; along -z of its frame, the same everywhere in it.

    Over the extent of a local frame it changes by 3e-6 m/s^2 per metre of height, and by up to
    8e-6 m/s^2 per kilometre north or south, which no IMU here resolves.
    """

    model: str = parameter(
        'standard',
        '',
        'standard: 9.80665 m/s^2; normal: that of WGS84 at the latitude and height of the origin; '
        'constant: value.',
        choices=('standard', 'normal', 'constant'),
    )
    value: float = parameter(
        STANDARD_GRAVITY, 'm/s^2', 'Gravity of the model constant.', minimum=0.0
    )

    def at(self, frame: LocalFrame) -> float:
        """Return the gravity at the origin of `frame`, m/s^2."""
        if self.model == 'normal':
            return float(normal_gravity(frame.latitude_deg, frame.altitude_m))
        return self.value if self.model == 'constant' else STANDARD_GRAVITY
