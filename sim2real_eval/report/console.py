# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal, all with the same look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sim2real_eval.metrics.distances import POOLED, VepdRow
from sim2real_eval.metrics.published import published_vepd


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


# Tables for the terminal.


def vepd_console_table(
    rows: Iterable[VepdRow],
    *,
    forward_rmse: Mapping[tuple[str, str], float] | None = None,
    title: str = 'VEPD: simulated against real, smaller is closer',
    published: bool = False,
) -> Table:
    """Return a table of VEPD rows, one block per scenario, sorted by rank.

    Parameters
    ----------
    rows : iterable of VepdRow
        As from `sim2real_eval.metrics.vepd_table`; blocks come in the order of the rows.
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
        Four decimals; in runs, two of them mean something (docs/vepd.md).

    Examples
    --------
    >>> from sim2real_eval.metrics.distances import VepdRow
    >>> row = VepdRow(8, 8, 0.1, 0.02, 0.06, 'ch_gauss', 'all', 1.0)
    >>> vepd_console_table([row], title='VEPD').row_count
    1
    """
    # Narrow: with every column it still fits a terminal of 80 characters, numbers unbroken.
    table = plain_table(title)
    table.add_column('scenario', overflow='fold')
    table.add_column('rank', justify='right', no_wrap=True)
    table.add_column('model', overflow='fold')
    table.add_column('runs\nreal/sim', justify='right', no_wrap=True)
    table.add_column('W1\nRMSE\nm/s', justify='right', no_wrap=True)
    table.add_column('W2\nentropy', justify='right', no_wrap=True)
    table.add_column('\nVEPD', justify='right', style='bold', no_wrap=True)
    if forward_rmse is not None:
        table.add_column('forward\nRMSE\nm/s', justify='right', no_wrap=True)
    if published:
        table.add_column('paper\nVEPD', justify='right', no_wrap=True)
    blocks: dict[str, list[VepdRow]] = {}
    for row in rows:
        blocks.setdefault(row.scenario, []).append(row)
    for scenario, block in blocks.items():
        label = f'{scenario} pooled' if scenario == POOLED else scenario
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
                cells.append(_number(forward_rmse.get((row.model, scenario))))
            if published:
                cells.append(_number(published_vepd(row.model, scenario)))
            table.add_row(*cells)
            label = ''
        table.add_section()
    return table


def _number(value: float | None) -> str:
    return '-' if value is None else f'{value:.4f}'
