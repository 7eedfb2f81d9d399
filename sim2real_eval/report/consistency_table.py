# SPDX-License-Identifier: Apache-2.0
"""The table of NIS and NEES on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from sim2real_eval.metrics.consistency import Consistency
from sim2real_eval.report.plain_table import plain_table

__all__ = ['consistency_table', 'short_ratio']

_STYLES = {'consistent': 'green', 'overconfident': 'red', 'underconfident': 'yellow'}


def consistency_table(rows: Iterable[Consistency], title: str) -> Table:
    """Return one line per part and quantity.

    Parameters
    ----------
    rows : iterable of Consistency
    title : str
        Line above the table.
    """
    table = plain_table(title)
    table.add_column('', overflow='fold')
    table.add_column('samples', justify='right', no_wrap=True)
    table.add_column('inde-\npendent', justify='right', no_wrap=True)
    table.add_column('degrees of\nfreedom', justify='right', no_wrap=True)
    table.add_column('ratio', justify='right', style='bold', no_wrap=True)
    table.add_column('bounds', justify='right', no_wrap=True)
    table.add_column('inside', justify='right', no_wrap=True)
    table.add_column('verdict')
    for row in rows:
        verdict = Text(row.verdict, style=_STYLES.get(row.verdict, 'dim'))
        if row.samples:
            table.add_row(
                Text(row.name),
                str(row.samples),
                f'{row.effective:.0f}',
                f'{row.freedom:.3g}',
                short_ratio(row.ratio),
                f'{row.lower:.2f}..{row.upper:.2f}',
                f'{100.0 * row.inside:.0f} %',
                verdict,
            )
        else:
            table.add_row(Text(row.name), '0', '', '', '', '', '', verdict)
    return table


def short_ratio(ratio: float) -> str:
    """Return a ratio with two decimals; with an exponent where it needs one."""
    return f'{ratio:.2f}' if 0.1 <= ratio < 1e4 else f'{ratio:.2g}'
