# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plots of a page as plain data, which Bokeh's script draws in the page."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.installation import pip_install
from sim_sensors.core.measurements import FloatArray

_SCRIPTS = ('bokeh.min.js', 'bokeh-api.min.js')
_MAX_POINTS = 1000
_DASHES = ('solid', 'dashed', 'dotted')
_NAME = 24
_FEW = 12


@dataclasses.dataclass(frozen=True)
class SeriesStyle:
    """Name and colour variable of a model, of the real sensors or of the truth.

    `cycle` counts the earlier series with the same hue; each of them has another dash.
    """

    name: str
    colour: str
    cycle: int = 0

    @property
    def kind(self) -> str:
        """Class of its elements in the page."""
        return self.colour.removeprefix('--')


TRUTH = SeriesStyle('truth', '--truth')


@functools.cache
def library() -> str:
    """Return Bokeh's script, 1.4 MB, without importing Bokeh."""
    spec = importlib.util.find_spec('bokeh')
    if spec is None or not spec.submodule_search_locations:
        raise Sim2RealError(f'the report page needs Bokeh; {pip_install("bokeh")}')
    folder = Path(spec.submodule_search_locations[0], 'server', 'static', 'js')
    text = '\n'.join(read_input_text(folder / name).strip() for name in _SCRIPTS)
    # A closing tag in a string of the script would end the script element.
    return text.replace('</script', '<\\/script')


class Plot:
    """A plot as wide as the page; axes are labelled with units.

    `rows` are names at the y axis from top to bottom; y is then the number of a row. `x_range`
    and `y_range` hold fixed limits; by default the limits follow the visible series. Both axes of
    a `plan` have the same scale.
    """

    def __init__(
        self,
        described: str,
        x_label: str,
        y_label: str = '',
        *,
        log: tuple[bool, bool] = (False, False),
        rows: Sequence[str] = (),
        height: int = 320,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
        plan: bool = False,
    ) -> None:
        self.described = described
        self.height = height
        if rows:
            self.height = 66 + (26 if len(rows) <= _FEW else 20) * len(rows)
        self._log = log
        self._axes = {
            'labels': [x_label, y_label], 'log': log, 'rows': [*map(short_name, rows)],
            'ranges': [x_range, y_range], 'plan': plan,
        }  # fmt: skip
        self._layers: list[dict[str, Any]] = []
        self._hover: list[tuple[str, str]] = []

    def lines(
        self,
        source: SeriesStyle,
        x: FloatArray,
        y: FloatArray,
        *,
        width: float = 1.6,
        aside: bool = False,
    ) -> None:
        """Draw a line, thinned for the screen; a line with `aside` does not affect the limits."""
        x, y = thin_line(x, y)
        self._add('line', source, {'x': x, 'y': y}, width=width, aside=aside)

    def band(self, source: SeriesStyle, x: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Fill between two lines."""
        self._add('varea', source, {'x': x, 'y1': low, 'y2': high}, alpha=0.18)

    def dots(
        self, source: SeriesStyle, *, filled: str = '', size: float = 8.0, **columns: Any
    ) -> None:
        """Draw dots at the columns x and y; other columns are for the hover.

        `filled` is the variable of the fill colour; by default it is the translucent line colour.
        """
        alpha = 1.0 if filled else 0.5
        self._add('scatter', source, columns, fill=filled, size=size, width=1.8, alpha=alpha)

    def arrows(self, source: SeriesStyle, **columns: Any) -> None:
        """Draw triangles that point left at the columns x and y, for values beyond the axis."""
        self._add('arrow', source, columns, fill=source.colour, size=9.0, alpha=1.0)

    def segments(self, source: SeriesStyle, *, width: float = 2.0, **columns: Any) -> None:
        """Draw lines from x0, y0 to x1, y1."""
        self._add('segment', source, columns, width=width)

    def boxes(self, source: SeriesStyle, **columns: Any) -> None:
        """Fill boxes from left, bottom to right, top, behind all lines."""
        self._add('quad', source, columns, alpha=0.6)

    def has(self, kind: str, source: SeriesStyle | None = None) -> bool:
        """Return whether anything of a kind, or of a series, is drawn, for the legend."""
        return any(
            layer['kind'] == kind and (source is None or layer['name'] == source.name)
            for layer in self._layers
        )

    def hover(self, tooltips: Mapping[str, str]) -> None:
        """Show values of lines and dots at the pointer: labels to texts like `@x{0.00} m/s`."""
        self._hover = list(tooltips.items())

    def _add(
        self, kind: str, source: SeriesStyle, columns: Mapping[str, Any], **style: Any
    ) -> None:
        if kind in ('line', 'varea'):
            columns = {
                name: values if self._log[name[0] == 'y'] else on_screen(values)
                for name, values in columns.items()
            }
        self._layers.append(
            {
                'kind': kind,
                'name': source.name,
                'colour': source.colour,
                'dash': _DASHES[source.cycle % len(_DASHES)],
                'data': {name: _plain(values) for name, values in columns.items()},
                **style,
            }
        )

    def item(self, place: Callable[[list[Any]], int]) -> dict[str, Any]:
        """Return the plot as plain values for JSON, with a number in place of each column.

        `place` stores a column and returns its number, so that lines can share their times.
        """
        layers = [
            {**layer, 'data': {name: place(column) for name, column in layer['data'].items()}}
            for layer in self._layers
        ]
        return {'height': self.height, **self._axes, 'layers': layers, 'hover': self._hover}


def _plain(column: Any) -> list[Any]:
    """Return a column as a list, with numbers rounded to five digits."""
    if isinstance(column, np.ndarray):
        return [float(f'{number:.5g}') for number in column.tolist()]
    return list(column)


def on_screen(values: FloatArray) -> FloatArray:
    """Return values rounded to the decimals that 4000 points across their range need.

    Examples
    --------
    >>> on_screen(np.array([0.0, 1 / 3, 20.0])).tolist()
    [0.0, 0.333, 20.0]
    """
    span = float(np.ptp(values)) if len(values) else 0.0
    if not 0.0 < span < np.inf:
        return values
    return np.round(values, max(0, math.ceil(-math.log10(span / 4000.0))))


def short_name(name: str) -> str:
    """Return a name shortened to its start and end, so that the plot has enough room."""
    return name if len(name) <= _NAME else f'{name[: _NAME - 11]}…{name[-10:]}'


def thin_line(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return about 1000 points of a line: both ends, and the extremes of each section.

    Examples
    --------
    >>> x = np.arange(1e5)
    >>> kept = thin_line(x, np.where(x == 77_777, 1.0, 0.0))
    >>> len(kept[0]), float(kept[0][0]), float(kept[0][kept[1] == 1.0][0])
    (502, 0.0, 77777.0)
    """
    if len(x) <= _MAX_POINTS:
        return x, y
    edges = np.linspace(0, len(x), _MAX_POINTS // 2 + 1).astype(int)
    extremes = {
        first + int(extreme(y[first:last]))
        for first, last in itertools.pairwise(edges.tolist())
        for extreme in (np.argmin, np.argmax)
    }
    places = sorted({0, *extremes, len(x) - 1})
    return x[places], y[places]
