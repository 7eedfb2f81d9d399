# SPDX-License-Identifier: Apache-2.0
"""The look that all tables on the terminal share."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.table import Table

__all__ = ['plain_table']


def plain_table(title: str, *, gap: int = 0, min_width: int | None = None) -> Table:
    """Return a table without columns: bold title at the left, a line below the heads, no edges.

    Parameters
    ----------
    title : str
        Line above the table.
    gap : int
        Characters between columns beside the one that the box leaves; 0 keeps a wide table within
        80 characters.
    min_width : int, optional
        Characters; else a long title breaks above a narrow table.
    """
    return Table(
        title=title,
        title_justify='left',
        title_style='bold',
        box=SIMPLE,
        padding=(0, gap, 0, 0),
        show_edge=False,
        min_width=min_width,
    )
