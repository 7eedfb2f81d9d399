# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Units of data sheets: their size in SI units, and the usual units of each noise term."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.parameters import parse_number
from sim_sensors.world.geodesy import STANDARD_GRAVITY

_DIMENSIONS = ('rad', 'm', 's', 'LSB', 'K', 'V')
_DEGREE = math.pi / 180.0
# Size in SI units, and the powers of `_DIMENSIONS`.
_ATOMS: dict[str, tuple[float, dict[str, float]]] = {
    'rad': (1.0, {'rad': 1.0}),
    'deg': (_DEGREE, {'rad': 1.0}),
    'arcmin': (_DEGREE / 60.0, {'rad': 1.0}),
    'arcsec': (_DEGREE / 3600.0, {'rad': 1.0}),
    'dps': (_DEGREE, {'rad': 1.0, 's': -1.0}),
    'm': (1.0, {'m': 1.0}),
    'g': (STANDARD_GRAVITY, {'m': 1.0, 's': -2.0}),
    's': (1.0, {'s': 1.0}),
    'min': (60.0, {'s': 1.0}),
    'h': (3600.0, {'s': 1.0}),
    'Hz': (1.0, {'s': -1.0}),
    'LSB': (1.0, {'LSB': 1.0}),
    'K': (1.0, {'K': 1.0}),
    'V': (1.0, {'V': 1.0}),
    '%': (1e-2, {}),
    'ppm': (1e-6, {}),
    '1': (1.0, {}),
}
_PREFIXES = {'k': 1e3, 'm': 1e-3, 'u': 1e-6, 'n': 1e-9}
_PREFIXED = ('rad', 'deg', 'dps', 'm', 'g', 's', 'Hz', 'V')
# Other spellings, as regular expressions.
_SPELLINGS = (
    ('[\u00b5\u03bc]', 'u'),
    (r'[\u00b0\u00ba]\s*C\b|\bdegC\b', 'K'),
    ('[\u00b0\u00ba]', 'deg'),
    (r'(?:\u221a|\brt)\s*\(?\s*(Hz|hr?|hour)\b\s*\)?', r'sqrt(\1)'),
    ('[\u00b7\u22c5\u00d7]', '*'),
    ('\u00b2', '^2'),
    (r'\b(hour|hr)\b', 'h'),
    (r'\b(sec|second)\b', 's'),
    (r'\b(lsb|LSb|lsbs)\b', 'LSB'),
)
_TOKEN = re.compile(r'\s*(sqrt\s*\(|\^\s*-?[0-9.]+|[A-Za-z]+|[%1()/*])')


class UnitError(ValueError):
    """A string is not a unit, or is a unit of another quantity."""


@dataclasses.dataclass(frozen=True, eq=False)
class Unit:
    """Size of a unit in SI units, and its powers of rad, m, s, LSB, K and V `(6,)`."""

    size: float
    powers: NDArray[np.float64]

    def is_like(self, other: Unit) -> bool:
        """Return whether two units measure the same quantity."""
        return bool(np.allclose(self.powers, other.powers))

    def raised(self, power: float) -> Unit:
        """Return this unit to a power."""
        return Unit(self.size**power, self.powers * power)

    def times(self, other: Unit) -> Unit:
        """Return the product of two units."""
        return Unit(self.size * other.size, self.powers + other.powers)


def parse_unit(text: str) -> Unit:
    """Parse a unit such as `deg/s/sqrt(Hz)`, `ug/sqrt(Hz)` or `LSB/(deg/s)`.

    Raises
    ------
    UnitError
        If it has an unknown unit or cannot be parsed.

    Examples
    --------
    >>> round(parse_unit('deg/sqrt(h)').size / parse_unit('deg/s/sqrt(Hz)').size, 6)
    0.016667
    >>> parse_unit('deg/sqrt(h)').is_like(parse_unit('dps/\u221aHz'))
    True
    """
    normalised = text
    for pattern, spelling in _SPELLINGS:
        normalised = re.sub(pattern, spelling, normalised)
    tokens: list[str] = []
    position = 0
    while normalised[position:].strip():
        match = _TOKEN.match(normalised, position)
        if match is None:
            raise UnitError(f'{text!r} is not a known unit')
        tokens.append(re.sub(r'\s', '', match[1]))
        position = match.end()
    tokens.reverse()
    try:
        unit = _product(tokens)
    except (IndexError, OverflowError):
        raise UnitError(f'{text!r} is not a known unit') from None
    if tokens or not 0.0 < unit.size < math.inf:
        raise UnitError(f'{text!r} is not a known unit')
    return unit


def _product(tokens: list[str]) -> Unit:
    """Return the product of the units up to a closing parenthesis; `tokens` are reversed."""
    unit = _factor(tokens)
    while tokens and tokens[-1] != ')':
        power = 1.0
        if tokens[-1] in '*/':
            power = -1.0 if tokens.pop() == '/' else 1.0
        unit = unit.times(_factor(tokens).raised(power))
    return unit


def _factor(tokens: list[str]) -> Unit:
    token = tokens.pop()
    if token in ('(', 'sqrt('):
        unit = _product(tokens)
        if tokens.pop() != ')':
            raise IndexError
        unit = unit.raised(0.5 if token == 'sqrt(' else 1.0)
    else:
        unit = _atom(token)
    if tokens and tokens[-1].startswith('^'):
        power = parse_number(tokens.pop()[1:])
        if power is None:
            raise IndexError
        unit = unit.raised(power)
    return unit


def _atom(name: str) -> Unit:
    factor, atom = 1.0, name
    if name not in _ATOMS and name[:1] in _PREFIXES and name[1:] in _PREFIXED:
        factor, atom = _PREFIXES[name[0]], name[1:]
    if atom not in _ATOMS:
        raise UnitError(f'{name!r} is not a known unit')
    size, powers = _ATOMS[atom]
    return Unit(factor * size, np.array([powers.get(name, 0.0) for name in _DIMENSIONS]))


_QUANTITY = re.compile(
    r'\s*[\u00b1]?\s*([+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?)\s*(.*)', re.DOTALL
)


def parse_quantity(text: str) -> tuple[float, Unit]:
    """Parse a quantity such as `16,384 LSB/g`; return its value in SI units, and its unit.

    Raises
    ------
    UnitError
        If it does not begin with a number, or its unit is unknown.

    Examples
    --------
    >>> round(parse_quantity('0.5 %')[0], 6)
    0.005
    """
    match = _QUANTITY.fullmatch(text)
    digits = '' if match is None else match[1]
    if re.fullmatch(r'[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?', digits):
        digits = digits.replace(',', '')
    number = parse_number(digits)
    if match is None or number is None:
        raise UnitError(f'{text!r} does not begin with a number')
    unit = parse_unit(match[2] or '1')
    return number * unit.size, unit


@dataclasses.dataclass(frozen=True)
class SheetUnit:
    """Unit of a data sheet and its size in SI units (rad, m, s)."""

    name: str
    size: float

    def of(self, value: float) -> float:
        """Return an SI value in this unit."""
        return value / self.size


# SI unit and data-sheet units, the most common first, by quantity and coefficient.
_UNITS = {
    'gyroscope': {
        'quantisation': ('rad', ('deg', 'arcsec')),
        'white': ('rad/s/sqrt(Hz)', ('deg/sqrt(h)', 'deg/s/sqrt(Hz)')),
        'bias_instability': ('rad/s', ('deg/h', 'deg/s')),
        'random_walk': ('rad/s^2/sqrt(Hz)', ('deg/h/sqrt(h)', 'deg/s^2/sqrt(Hz)')),
        'rate_ramp': ('rad/s^2', ('deg/h/h',)),
        'gauss_markov': ('rad/s', ('deg/h', 'deg/s')),
        'gauss_markov_time': ('s', ('s',)),
        'bandwidth': ('Hz', ('Hz',)),
    },
    'accelerometer': {
        'quantisation': ('m/s', ('mm/s',)),
        'white': ('m/s^2/sqrt(Hz)', ('ug/sqrt(Hz)', 'm/s/sqrt(h)')),
        'bias_instability': ('m/s^2', ('mg', 'ug')),
        'random_walk': ('m/s^3/sqrt(Hz)', ('mg/sqrt(h)', 'm/s/h/sqrt(h)')),
        'rate_ramp': ('m/s^3', ('mg/h',)),
        'gauss_markov': ('m/s^2', ('mg', 'ug')),
        'gauss_markov_time': ('s', ('s',)),
        'bandwidth': ('Hz', ('Hz',)),
    },
}  # fmt: skip


def sheet_units(quantity: str, coefficient: str) -> tuple[SheetUnit, ...]:
    """Return the data-sheet units of a noise term, the most common first.

    `quantity` is `gyroscope` or `accelerometer`, `coefficient` a name in `NoiseTerms`.

    Examples
    --------
    >>> unit = sheet_units('gyroscope', 'white')[0]
    >>> unit.name, round(unit.of(math.radians(0.01)), 3)
    ('deg/sqrt(h)', 0.6)
    """
    return tuple(SheetUnit(name, unit_size(name)) for name in _UNITS[quantity][coefficient][1])


def si_unit(quantity: str, coefficient: str) -> str:
    """Return the SI unit of a coefficient."""
    return _UNITS[quantity][coefficient][0]


def unit_size(name: str) -> float:
    """Return the size of a unit in SI units."""
    return parse_unit(name).size
