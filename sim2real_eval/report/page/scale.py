# SPDX-License-Identifier: Apache-2.0
"""From values to places in a drawing, and the numbers that stand at an axis."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['MINUS', 'NONE', 'Scale', 'decimal', 'decimals', 'span', 'times']

MINUS = '\N{MINUS SIGN}'
NONE = '\N{EN DASH}'
"""Stands where there is no number."""

_NEGLIGIBLE = 1e-6

_RAISED = str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Scale:
    """A range of values laid over a length.

    Attributes
    ----------
    low, high : float
        The values at its ends, low < high; above 0 if logarithmic.
    start, end : float
        The places there; end < start for an axis that grows upwards.
    logarithmic : bool
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, values: FloatArray | float) -> FloatArray:
        """Return the places of values; NaN of what a logarithmic scale has no place for."""
        array = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.logarithmic:
            with np.errstate(divide='ignore', invalid='ignore'):
                array = np.where(array > 0.0, np.log(array), np.nan)
            low, high = math.log(low), math.log(high)
        return np.asarray(self.start + (array - low) / (high - low) * (self.end - self.start))

    def ticks(self, count: int = 4) -> list[tuple[float, str]]:
        """Return some `count` round values inside, each with its text."""
        if self.logarithmic:
            return self._decades(count)
        raw = (self.high - self.low) / max(count, 1)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(s * power for s in _STEPS if s * power >= raw * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        places = decimals(step)
        return [(k * step, f'{k * step:.{places}f}') for k in range(first, last + 1)]

    def _decades(self, count: int) -> list[tuple[float, str]]:
        first = math.ceil(math.log10(self.low) - 1e-9)
        last = math.floor(math.log10(self.high) + 1e-9)
        values = [10.0**k for k in range(first, last + 1)]
        if len(values) < 2:
            values = [
                m * 10.0**k
                for k in range(first - 1, last + 1)
                for m in (1, 2, 5)
                if self.low * 0.999 <= m * 10.0**k <= self.high * 1.001
            ]
        step = math.ceil(len(values) / max(count, 1))
        return [(value, _power(value)) for value in values[::step]]


def _power(value: float) -> str:
    """Return a number, those far from 1 as a power of ten: axes have no room for zeros."""
    if 1e-3 < value < 1e5:
        return f'{value:g}'
    mantissa, exponent = f'{value:.0e}'.split('e')
    power = f'10{str(int(exponent)).translate(_RAISED)}'
    return power if mantissa == '1' else f'{mantissa}·{power}'


def decimals(step: float) -> int:
    """Return how many decimals a multiple of `step` needs."""
    for places in range(12):
        if abs(round(step, places) - step) < 1e-9 * step:
            return places
    return 12


def decimal(value: float | None, digits: int = 4) -> str:
    """Return a number for a table: fixed decimals, an exponent where they would show nothing."""
    if value is None or value != value:
        return NONE
    if math.isinf(value):
        return '∞' if value > 0 else '\N{MINUS SIGN}∞'
    if value == 0.0:
        text = '0'
    elif not 0.5 * 10.0**-digits <= abs(value) < 1e5:
        text = f'{value:.2g}'
    else:
        text = f'{value:.{digits}f}'
    return text.replace('-', MINUS)


def span(low: float, high: float) -> str:
    """Return an interval; a lower end that rounding makes of zero, next to the upper one, as 0."""
    return f'{decimal(low if low > _NEGLIGIBLE * high else 0.0)} to {decimal(high)}'


def times(ratio: float) -> str:
    """Return a ratio with two digits, all of them before the point where it is large."""
    return f'{ratio:.2g}' if ratio < 10.0 else f'{ratio:.0f}'
