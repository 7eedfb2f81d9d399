# SPDX-License-Identifier: Apache-2.0
"""Tables of text, and elements of HTML and SVG with everything escaped."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from markupsafe import Markup, escape

from sim_sensors.core.measurements import FloatArray


@dataclasses.dataclass(frozen=True)
class Column:
    """A column; numbers are aligned on the right and sorted as numbers."""

    label: str
    unit: str = ''
    numeric: bool = False

    @property
    def head(self) -> str:
        """Label with unit."""
        return f'{self.label} [{self.unit}]' if self.unit else self.label


def numeric(label: str, unit: str = '') -> Column:
    """Return a column of numbers."""
    return Column(label, unit, numeric=True)


@dataclasses.dataclass(frozen=True)
class DataTable:
    """Rows under columns, of as many cells as there are columns.

    Attributes
    ----------
    headed : bool
        Whether the first cell of a row names it.
    kind : str
        Class of the table in a page: `runs` can be filtered, `sorted` sorted.
    colours : mapping
        Text of a cell to the class of the colour that stands before it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    headed: bool = True
    kind: str = 'plain'
    colours: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows)


# Elements of HTML and SVG from values: whatever a label holds, it comes out as text.

_LIMIT = 100_000.0


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; children that are no Markup and all attributes are escaped.

    The name never comes from user's data; children and attributes that are None are left out. An
    underscore in an attribute's name stands for a hyphen, one at the end for nothing (`class_`).

    Examples
    --------
    >>> str(element('text', 'a<b', class_='tick', x=1))
    '<text class="tick" x="1">a&lt;b</text>'
    """
    words = ''.join(
        f' {key.rstrip("_").replace("_", "-")}='
        f'"{coordinate(value) if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined(child for child in children if child is not None)
    return Markup(f'<{name}{words}>{inside}</{name}>')


def joined(parts: Iterable[object]) -> Markup:
    """Return parts one after the other, escaped where they are no Markup."""
    return Markup('').join(parts)  # type: ignore[arg-type]


def coordinate(value: float) -> str:
    """Return a coordinate with a tenth of a unit."""
    return f'{value:.1f}'.rstrip('0').rstrip('.') if value == value else '0'


def path(x: FloatArray, y: FloatArray) -> str:
    """Return the `d` of a line through points in units of the drawing, broken at NaN.

    Points are rounded to integers and written as steps, which is half the bytes of a list of
    coordinates; where many fall on one x, their extremes stand for them. What is further out than
    1e5 is drawn there: digits are bytes.
    """
    known = np.isfinite(x) & np.isfinite(y)
    columns, rows = (
        np.rint(np.clip(np.where(known, places, 0.0), -_LIMIT, _LIMIT)).astype(np.int64)
        for places in (x, y)
    )
    parts = []
    edges = np.flatnonzero(np.diff(np.r_[False, known, False]))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        points = _thinned(columns[first:last], rows[first:last])
        steps = np.diff(points, axis=0).ravel()
        start = f'M{points[0, 0]} {points[0, 1]}'
        parts.append(f'{start}l{" ".join(map(str, steps.tolist()))}' if len(steps) else start)
    return ''.join(parts)


def _thinned(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Drop points that repeat the one before; keep first, extremes and last of each column."""
    points = np.stack([columns, rows], axis=1)
    if len(points) < 3:
        return points
    keep = np.ones(len(points), dtype=bool)
    keep[1:-1] = np.any(points[1:-1] != points[:-2], axis=1)
    points = points[keep]
    # A point between two on the same column and between their rows draws nothing of its own.
    x, y = points[:, 0], points[:, 1]
    same = (x[1:-1] == x[:-2]) & (x[1:-1] == x[2:])
    between = (y[1:-1] - y[:-2]) * (y[2:] - y[1:-1]) >= 0
    keep = np.ones(len(points), dtype=bool)
    keep[1:-1] = ~(same & between)
    return points[keep]
