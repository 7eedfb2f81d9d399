# SPDX-License-Identifier: Apache-2.0
"""Tables of text, and how numbers read in them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

MINUS = '\N{MINUS SIGN}'
NONE = '\N{EN DASH}'
"""Stands where there is no number."""

_NEGLIGIBLE = 1e-6


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
