# SPDX-License-Identifier: Apache-2.0
"""A table of texts, as pages, Markdown and LaTeX show it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

__all__ = ['Column', 'DataTable']


@dataclasses.dataclass(frozen=True)
class Column:
    """A column.

    Attributes
    ----------
    label : str
    unit : str
    numeric : bool
        Numbers are aligned on the right and sorted as numbers.
    """

    label: str
    unit: str = ''
    numeric: bool = False


@dataclasses.dataclass(frozen=True)
class DataTable:
    """Rows under columns.

    Attributes
    ----------
    title : str
    columns : sequence of Column
    rows : sequence of sequence of str
        As many cells as columns.
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
