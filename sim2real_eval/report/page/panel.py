# SPDX-License-Identifier: Apache-2.0
"""A small plot as SVG: axes, grid, and lines that take their colours from the page."""

from __future__ import annotations

import dataclasses

from markupsafe import Markup

from sim2real_eval.report.page.markup import element, joined, path
from sim2real_eval.report.page.scale import Scale
from sim_sensors.measurements import FloatArray

__all__ = ['FINE', 'Panel']

FINE = 10.0
"""Units of the drawing inside a panel per unit of the panel: lines are integers there."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 8.0, 8.0, 22.0


@dataclasses.dataclass(frozen=True)
class Panel:
    """Frame of a small plot.

    Attributes
    ----------
    x, y : (low, high)
        Ranges of values.
    width, height : float
        Of the whole, in units of the SVG; it is drawn as wide as its place.
    log_x, log_y : bool
    unit_x, unit_y : str
        After the last number of an axis.
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
        texts = []
        if self.unit_y:
            texts.append(element('text', self.unit_y, x=_LEFT + 3, y=_TOP + 9))
        if self.unit_x:
            at = (self.width - _RIGHT - 3, self.height - _BOTTOM - 4)
            texts.append(element('text', self.unit_x, x=at[0], y=at[1], text_anchor='end'))
        return element('g', *texts, class_='units')

    def _axes(self) -> Markup:
        wide, high = self.inner
        marks: list[Markup] = []
        grid = ''
        ticks = self.up.ticks(4)
        for value, text in ticks:
            at = _TOP + float(self.up(value)) / FINE
            grid += f'M{_LEFT:.0f} {at:.1f}h{wide:.0f}'
            marks.append(element('text', text, x=_LEFT - 5, y=at + 3.5, text_anchor='end'))
        ticks = self.across.ticks(5)
        for value, text in ticks:
            at = _LEFT + float(self.across(value)) / FINE
            grid += f'M{at:.1f} {_TOP:.0f}v{high:.0f}'
            anchor = 'end' if at > self.width - 14 else 'middle'
            at = min(at, self.width - 1) if anchor == 'end' else at
            marks.append(element('text', text, x=at, y=self.height - 7, text_anchor=anchor))
        base = f'M{_LEFT:.0f} {_TOP + high:.1f}h{wide:.0f}'
        return joined(
            [
                element('path', class_='grid', d=grid),
                element('path', class_='axis', d=base),
                element('g', *marks, class_='ticks'),
            ]
        )
