# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal, all with the same look; tables of text for pages; numbers in both."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sim2real_eval.metrics.published import published_vepd
from sim2real_eval.metrics.scores import POOLED, VepdRow


def plain_table(title: str, *, gap: int = 0, min_width: int | None = None) -> Table:
    """Return a table without columns: bold title at the left, a line below the heads, no edges.

    `gap` is the number of characters between columns in addition to that of the box; 0 keeps a
    wide table within 80 characters. `min_width` keeps the title of a narrow table in one line.
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


def add_words(table: Table, *heads: str) -> None:
    """Add columns of text; long text continues in the next line."""
    for head in heads:
        table.add_column(head, overflow='fold')


def add_numbers(table: Table, *heads: str, **more: Any) -> None:
    """Add columns of right-aligned numbers that are never broken."""
    for head in heads:
        table.add_column(head, justify='right', no_wrap=True, **more)


def vepd_console_table(
    rows: Iterable[VepdRow],
    *,
    forward_rmse: Mapping[tuple[str, str], float] | None = None,
    title: str = 'VEPD of simulated and real runs: smaller is closer',
    published: bool = False,
) -> Table:
    """Return a table of VEPD rows, one block per scenario, sorted by rank.

    Parameters
    ----------
    rows : iterable of VepdRow
        As from `sim2real_eval.metrics.scores.vepd_table`; blocks come in the order of the rows.
    forward_rmse : mapping, optional
        `(model, scenario)` to the mean RMSE of body-forward speed, m/s, shown as an extra column,
        because horizontal speed is blind to heading. A missing entry is shown as a dash.
    title : str
        Line above the table.
    published : bool
        True adds the VEPD printed in the paper, where it prints one.

    Returns
    -------
    rich.table.Table
        Values with four decimals, of which two are significant (docs/explanation/metric.md).

    Examples
    --------
    >>> from sim2real_eval.metrics.scores import VepdRow
    >>> row = VepdRow(8, 8, 0.1, 0.02, 0.06, 'ch_gauss', 'all', 1.0)
    >>> vepd_console_table([row], title='VEPD').row_count
    1
    """
    # Even with every column, the table must fit 80 characters without broken numbers.
    table = plain_table(title)
    add_words(table, 'scenario')
    add_numbers(table, 'rank')
    add_words(table, 'model')
    add_numbers(table, 'runs\nreal/sim', 'W1\nRMSE\nm/s', 'W2\nentropy')
    add_numbers(table, '\nVEPD', style='bold')
    if forward_rmse is not None:
        add_numbers(table, 'forward\nRMSE\nm/s')
    if published:
        add_numbers(table, 'paper\nVEPD')
    blocks: dict[str, list[VepdRow]] = {}
    for row in rows:
        blocks.setdefault(row.scenario, []).append(row)
    for scenario, block in blocks.items():
        label = scenario_name(scenario)
        for row in sorted(block, key=lambda row: row.rank):
            cells: list[Text | str] = [
                Text(label),
                f'{row.rank:g}',
                Text(row.model),
                f'{row.n_real}/{row.n_sim}',
                f'{row.w_rmse:.4f}',
                f'{row.w_entropy:.4f}',
                f'{row.vepd:.4f}',
            ]
            if forward_rmse is not None:
                cells.append(round_text(forward_rmse.get((row.model, scenario))))
            if published:
                cells.append(round_text(published_vepd(row.model, scenario)))
            table.add_row(*cells)
            label = ''
        table.add_section()
    return table


def scenario_name(scenario: str) -> str:
    """Return the label of a scenario, or of all scenarios together, in a table."""
    return f'{scenario} pooled' if scenario == POOLED else scenario


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends in s."""
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def list_text(names: Iterable[str], most: int) -> str:
    """Return at most `most` names with commas, and the number of further names."""
    every = list(names)
    more = f' and {len(every) - most} more' if len(every) > most else ''
    return ', '.join(every[:most]) + more


def p_value_text(p_value: float | None, unknown: str = '-') -> str:
    """Return a probability for a table or a sentence."""
    if p_value is None:
        return unknown
    return '< 0.001' if p_value < 0.001 else f'{p_value:.3f}'


def round_text(value: float | None, digits: int = 4) -> str:
    """Return a number for a table, with fixed decimals; a dash for none."""
    return '-' if value is None else f'{value:.{digits}f}'


def short_number(value: float | None) -> str:
    """Return three significant digits, without an exponent if that is short; a dash for none.

    Examples
    --------
    >>> [short_number(value) for value in (0.04, 123.4, 1234.0, -2e-5)]
    ['0.0400', '123', '1234', '-2.0e-05']
    """
    if value is None:
        return '-'
    if 1e-3 <= abs(value) < 1e3:
        return f'{value:#.3g}'.rstrip('.')
    return f'{value:.0f}' if value == 0.0 or 1e3 <= abs(value) < 1e4 else f'{value:.1e}'


MINUS = '\N{MINUS SIGN}'
NONE = '\N{EN DASH}'
"""Text of a cell without a number."""


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """A column; numbers are aligned on the right and sorted as numbers."""

    label: str
    unit: str = ''
    numeric: bool = False

    @property
    def head(self) -> str:
        """Label with unit."""
        return f'{self.label} [{self.unit}]' if self.unit else self.label


def numeric(label: str, unit: str = '') -> TableColumn:
    """Return a column of numbers."""
    return TableColumn(label, unit, numeric=True)


@dataclasses.dataclass(frozen=True)
class DataTable:
    """A title, columns, and rows with a cell per column."""

    title: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str]]
    headed: bool = True  # whether the first cell of a row names it
    kind: str = 'plain'  # class of the table in a page: `runs` can be filtered, `sorted` sorted
    # Text of a cell to the class of the colour that stands before it.
    colours: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: Sequence[str] = ()  # under it

    def __bool__(self) -> bool:
        return bool(self.rows)


def console_table(data: DataTable) -> Table:
    """Return a table of texts for the terminal."""
    table = plain_table(data.title, gap=1)
    for column in data.columns:
        (add_numbers if column.numeric else add_words)(table, column.head)
    for row in data.rows:
        table.add_row(*map(Text, row))
    return table


def decimal(value: float | None, digits: int = 4) -> str:
    """Return a number for a table with fixed decimals, or with an exponent if it is too small."""
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


def span(low: float | None, high: float | None) -> str:
    """Return an interval."""
    if low is None or high is None:
        return NONE
    return f'{decimal(low)} to {decimal(high)}'
