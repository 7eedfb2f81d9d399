# SPDX-License-Identifier: Apache-2.0
"""Plots of a page as SVG: scales, panels, and small multiples of panels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from sim2real_eval.report.page.markup import element, joined, path
from sim_sensors.core.measurements import FloatArray


@dataclasses.dataclass(frozen=True)
class Captioned:
    """A panel with the name of what is in it (a model or `real`), the class of its colour, and a
    few words after the name.
    """

    name: str
    colour: str
    svg: Markup
    remark: str = ''


@dataclasses.dataclass(frozen=True)
class Multiples:
    """Panels with a common heading, such as those of a scenario; it is empty for none."""

    heading: str
    panels: Sequence[Captioned]

    @property
    def across(self) -> int:
        """How many panels stand side by side on a wide screen, so that rows are even."""
        count = len(self.panels)
        return count if count <= 4 else 4 if count in (7, 8) or count > 9 else 3


# From values to places in a drawing, and the numbers that stand at an axis.

MINUS = '\N{MINUS SIGN}'
NONE = '\N{EN DASH}'
"""Stands where there is no number."""

_NEGLIGIBLE = 1e-6

_RAISED = str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Scale:
    """A range of values laid over a length.

    The values at its ends are low < high, above 0 if logarithmic; the places there start and end,
    with end < start for an axis that grows upwards.
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


# A small plot as SVG: axes, grid, and lines that take their colours from the page.

FINE = 10.0
"""Units of the drawing inside a panel per unit of the panel: lines are integers there."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 8.0, 8.0, 22.0


@dataclasses.dataclass(frozen=True)
class Panel:
    """Frame of a small plot over ranges of x and y, with units after the last number of an axis.

    Width and height are of the whole, in units of the SVG; it is drawn as wide as its place.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 300.0
    height: float = 180.0
    log_x: bool = False
    log_y: bool = False
    unit_x: str = ''
    unit_y: str = ''

    @property
    def inner(self) -> tuple[float, float]:
        """Width and height of the part with data."""
        return self.width - _LEFT - _RIGHT, self.height - _TOP - _BOTTOM

    @property
    def across(self) -> Scale:
        """Scale of x, in fine units."""
        return Scale(*self.x, 0.0, self.inner[0] * FINE, self.log_x)

    @property
    def up(self) -> Scale:
        """Scale of y, in fine units."""
        return Scale(*self.y, self.inner[1] * FINE, 0.0, self.log_y)

    def line(self, x: FloatArray, y: FloatArray, kind: str) -> Markup:
        """Return a line through (n,) values; `kind` is its class."""
        return element('path', class_=kind, d=path(self.across(x), self.up(y)))

    def band(self, x: FloatArray, low: FloatArray, high: FloatArray, kind: str) -> Markup:
        """Return the area between two lines."""
        there = path(self.across(x), self.up(high))
        back = path(self.across(x[::-1]), self.up(low[::-1]))
        return element('path', class_=kind, d=f'{there}L{back[1:]}z' if there and back else '')

    def bars(self, edges: FloatArray, counts: FloatArray, kind: str, *, step: bool) -> Markup:
        """Return a histogram, filled, or as an outline if `step`."""
        places, tops = self.across(edges), self.up(counts)
        ground = f'{float(self.up(0.0)):.0f}'
        d = f'M{places[0]:.0f} {ground}'
        for right, top, count in zip(places[1:], tops, counts, strict=True):
            if step or count:
                d += f'V{top:.0f}H{right:.0f}'
                d += '' if step else f'V{ground}'
            else:
                d += f'M{right:.0f} {ground}'
        return element('path', class_=kind, d=f'{d}V{ground}')

    def svg(self, *marks: object, label: str) -> Markup:
        """Return the plot with its marks; `label` says what it shows to who cannot see it."""
        wide, high = self.inner
        inside = element(
            'svg', *marks, x=_LEFT, y=_TOP, width=wide, height=high,
            viewBox=f'0 0 {wide * FINE:.0f} {high * FINE:.0f}', preserveAspectRatio='none',
        )  # fmt: skip
        # Units last: they stay readable on a bar.
        return element(
            'svg', self._axes(), inside, self._units(), class_='plot', role='img',
            aria_label=label, viewBox=f'0 0 {self.width:.0f} {self.height:.0f}',
        )  # fmt: skip

    def _units(self) -> Markup:
        right, bottom = self.width - _RIGHT - 3, self.height - _BOTTOM - 4
        up = element('text', self.unit_y, x=_LEFT + 3, y=_TOP + 9)
        across = element('text', self.unit_x, x=right, y=bottom, text_anchor='end')
        texts = (up if self.unit_y else None, across if self.unit_x else None)
        return element('g', *texts, class_='units')

    def _axes(self) -> Markup:
        wide, high = self.inner
        marks: list[Markup] = []
        grid = ''
        for value, text in self.up.ticks(4):
            at = _TOP + float(self.up(value)) / FINE
            grid += f'M{_LEFT:.0f} {at:.1f}h{wide:.0f}'
            marks.append(element('text', text, x=_LEFT - 5, y=at + 3.5, text_anchor='end'))
        for value, text in self.across.ticks(5):
            at = _LEFT + float(self.across(value)) / FINE
            grid += f'M{at:.1f} {_TOP:.0f}v{high:.0f}'
            anchor = 'end' if at > self.width - 14 else 'middle'
            at = min(at, self.width - 1) if anchor == 'end' else at
            marks.append(element('text', text, x=at, y=self.height - 7, text_anchor=anchor))
        base = f'M{_LEFT:.0f} {_TOP + high:.1f}h{wide:.0f}'
        lines = [element('path', class_=kind, d=d) for kind, d in (('grid', grid), ('axis', base))]
        return joined([*lines, element('g', *marks, class_='ticks')])
