# SPDX-License-Identifier: Apache-2.0
"""The units in which coefficients are written: SI, discrete, and those of data sheets."""

from __future__ import annotations

import dataclasses
import math

from sim_sensors.environment import STANDARD_GRAVITY

__all__ = ['SheetUnit', 'discrete', 'sheet_units', 'si_unit']

_DEGREE = math.pi / 180.0
_HOUR = 3600.0


@dataclasses.dataclass(frozen=True)
class SheetUnit:
    """A unit and its size in SI.

    Attributes
    ----------
    name : str
    size : float
        What 1 of it is in SI units (rad, m, s).
    """

    name: str
    size: float

    def of(self, value: float) -> float:
        """Return an SI value in this unit."""
        return value / self.size

    def to_si(self, value: float) -> float:
        """Return a value in this unit in SI."""
        return value * self.size


_SI = {
    'gyroscope': {
        'quantisation': 'rad',
        'white': 'rad/s/sqrt(Hz)',
        'bias_instability': 'rad/s',
        'random_walk': 'rad/s^2/sqrt(Hz)',
        'rate_ramp': 'rad/s^2',
    },
    'accelerometer': {
        'quantisation': 'm/s',
        'white': 'm/s^2/sqrt(Hz)',
        'bias_instability': 'm/s^2',
        'random_walk': 'm/s^3/sqrt(Hz)',
        'rate_ramp': 'm/s^3',
    },
}

_G = STANDARD_GRAVITY
_SHEET = {
    'gyroscope': {
        'quantisation': (SheetUnit('deg', _DEGREE), SheetUnit('arcsec', _DEGREE / 3600.0)),
        'white': (
            SheetUnit('deg/sqrt(h)', _DEGREE / math.sqrt(_HOUR)),
            SheetUnit('deg/s/sqrt(Hz)', _DEGREE),
        ),
        'bias_instability': (SheetUnit('deg/h', _DEGREE / _HOUR), SheetUnit('deg/s', _DEGREE)),
        'random_walk': (
            SheetUnit('deg/h/sqrt(h)', _DEGREE / _HOUR / math.sqrt(_HOUR)),
            SheetUnit('deg/s^2/sqrt(Hz)', _DEGREE),
        ),
        'rate_ramp': (SheetUnit('deg/h/h', _DEGREE / _HOUR**2),),
    },
    'accelerometer': {
        'quantisation': (SheetUnit('mm/s', 1e-3),),
        'white': (
            SheetUnit('ug/sqrt(Hz)', 1e-6 * _G),
            SheetUnit('m/s/sqrt(h)', 1.0 / math.sqrt(_HOUR)),
        ),
        'bias_instability': (SheetUnit('mg', 1e-3 * _G), SheetUnit('ug', 1e-6 * _G)),
        'random_walk': (
            SheetUnit('mg/sqrt(h)', 1e-3 * _G / math.sqrt(_HOUR)),
            SheetUnit('m/s/h/sqrt(h)', 1.0 / _HOUR / math.sqrt(_HOUR)),
        ),
        'rate_ramp': (SheetUnit('mg/h', 1e-3 * _G / _HOUR),),
    },
}


def sheet_units(quantity: str, coefficient: str) -> tuple[SheetUnit, ...]:
    """Return the units of data sheets, the commonest first.

    Parameters
    ----------
    quantity : str
        `gyroscope` or `accelerometer`.
    coefficient : str
        Name in `NoiseTerms`.

    Examples
    --------
    >>> unit = sheet_units('gyroscope', 'white')[0]
    >>> unit.name, round(unit.of(math.radians(0.01)), 3)
    ('deg/sqrt(h)', 0.6)
    """
    return _SHEET[quantity][coefficient]


def si_unit(quantity: str, coefficient: str) -> str:
    """Return the SI unit of a coefficient."""
    return _SI[quantity][coefficient]


def discrete(coefficient: str, value: float, rate: float) -> float:
    """Return what a coefficient means for one sample or step at a rate, in the unit of the signal.

    White noise: standard deviation of a sample, N sqrt(rate). Random walk: of a step,
    K / sqrt(rate). Quantisation: of the noise of a sample, sqrt(2) Qz rate. Ramp: change per
    sample. Bias instability: itself, for it has no rate.
    """
    factors = {
        'quantisation': math.sqrt(2.0) * rate,
        'white': math.sqrt(rate),
        'bias_instability': 1.0,
        'random_walk': 1.0 / math.sqrt(rate),
        'rate_ramp': 1.0 / rate,
    }
    return value * factors[coefficient]
