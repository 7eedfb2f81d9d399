# SPDX-License-Identifier: Apache-2.0
"""Magnetic field of the Earth: the World Magnetic Model, or a vector of one's own."""

from __future__ import annotations

import dataclasses
import datetime
import functools

import numpy as np

from sim_sensors.environment import LocalFrame
from sim_sensors.errors import ParameterError, SensorError
from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import Parameters, parameter

__all__ = ['EarthField', 'decimal_year', 'wmm_epoch', 'wmm_field']

# First year of each set of coefficients in pygeomag; each serves five years. 2015 was revised.
_EPOCHS = {2010: '2010', 2015: '2015v2', 2020: '2020', 2025: '2025'}
_LAST = 2030.0
# m above the ellipsoid; the WMM holds from 1 km below the surface to 850 km (its report, 2025).
_LOWEST, _HIGHEST = -1e3, 850e3


def decimal_year(date: datetime.date) -> float:
    """Return the start of a day as a year with fraction, as the WMM counts time."""
    first = datetime.date(date.year, 1, 1)
    days = (datetime.date(date.year + 1, 1, 1) - first).days
    return date.year + (date - first).days / days


def wmm_epoch(year: float) -> str:
    """Return which World Magnetic Model is in force at a decimal year: 2010, 2015v2, 2020 or 2025.

    Raises
    ------
    ParameterError
        When there are none: years are 2010 to 2030.
    """
    if not min(_EPOCHS) <= year <= _LAST:
        raise ParameterError(
            'World Magnetic Model', 'year', f'{year!r} is not allowed; must be 2010 to 2030'
        )
    return _EPOCHS[max(first for first in _EPOCHS if first <= year)]


@functools.lru_cache(maxsize=64)
def wmm_field(frame: LocalFrame, year: float) -> tuple[float, float, float]:
    """Return the field of the World Magnetic Model at the origin of `frame`: east, north, up, T.

    Coefficients are those in force at that time; see `wmm_epoch`.

    Parameters
    ----------
    frame : LocalFrame
        Its origin, -1 to 850 km above the ellipsoid.
    year : float
        Decimal year, 2010 to 2030.

    Raises
    ------
    SensorError
        When pygeomag, which holds the model, is not installed.
    ParameterError
        When the time or the height is outside the model.
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
            "the Earth's field 'wmm' needs pygeomag, which is not installed; pip install "
            "pygeomag, or give the world's earth_field the model constant"
        ) from None
    model = GeoMag(coefficients_file=f'wmm/WMM_{epoch}.COF')
    # Kilometres in, nanotesla out: x north, y east, z down.
    found = model.calculate(
        glat=frame.latitude_deg,
        glon=frame.longitude_deg,
        alt=frame.altitude_m / 1000.0,
        time=year,
    )
    return found.y * 1e-9, found.x * 1e-9, -found.z * 1e-9


@dataclasses.dataclass(frozen=True)
class EarthField(Parameters):
    """Which field the Earth has; the same everywhere in a local frame.

    The real one changes by about 1e-8 T per kilometre, below the noise of any magnetometer here.
    """

    model: str = parameter(
        'wmm',
        '',
        'wmm: World Magnetic Model at the origin of the frame and at the year; constant: value.',
        choices=('wmm', 'constant'),
    )
    year: float = parameter(
        2026.0, 'a', 'Time of the WMM as decimal year.', minimum=2010.0, maximum=2030.0
    )
    value: tuple[float, float, float] = parameter(
        (0.0, 2.0e-5, -4.5e-5), 'T', 'East, north, up of the model constant.'
    )

    def at(self, frame: LocalFrame) -> FloatArray:
        """Return the field at the origin of `frame`, `(3,)` T, east north up.

        Raises
        ------
        SensorError, ParameterError
            See `wmm_field`.
        """
        return np.array(wmm_field(frame, self.year) if self.model == 'wmm' else self.value)
