# SPDX-License-Identifier: Apache-2.0
"""Tables of a comparison of signals, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim2real_eval.signals.published import SEED_002

if TYPE_CHECKING:
    from sim2real_eval.signals.comparison import SignalComparison, SignalRow

__all__ = ['signal_tables']


def signal_tables(comparison: SignalComparison, *, published: bool = False) -> Group:
    """Return two tables per model: agreement with truth, and how unlike the sets are.

    Parameters
    ----------
    comparison : SignalComparison
    published : bool
        Add RMSE and R between real and simulated signals as printed in seed 002.

    Returns
    -------
    rich.console.Group
        Each table fits a terminal of 80 characters.
    """
    tables = []
    for model in comparison.models:
        rows = [row for row in comparison.rows if row.model == model]
        tables += [_agreement(model, rows, published=published), _distances(model, rows)]
    return Group(*tables)


def _new(title: str) -> Table:
    table = Table(
        title=title,
        title_justify='left',
        title_style='bold',
        box=SIMPLE,
        padding=0,
        show_edge=False,
        min_width=min(len(title) + 1, 78),  # else a long title breaks above a narrow table
    )
    table.add_column('signal', no_wrap=True)
    return table


def _agreement(model: str, rows: list[SignalRow], *, published: bool) -> Table:
    first = rows[0]
    table = _new(
        f'{model}: {first.n_simulated} simulated and {first.n_real} real runs, each against its '
        'truth'
    )
    headings = ['RMSE\nreal', '\nsim', 'R\nreal', '\nsim']
    if not published:
        headings += ['lag s\nreal', '\nsim']
    for heading in headings:
        table.add_column(heading, justify='right', no_wrap=True)
    between = any(row.between is not None for row in rows)
    if between:
        table.add_column('between\nRMSE', justify='right', no_wrap=True)
        table.add_column('\nR', justify='right', no_wrap=True)
    if published:
        table.add_column('seed 002\nRMSE', justify='right', no_wrap=True)
        table.add_column('\nR', justify='right', no_wrap=True)
    for row in rows:
        cells: list[Text | str] = [
            _name(row),
            _number(row.real.rmse),
            _number(row.simulated.rmse),
            _share(row.real.correlation),
            _share(row.simulated.correlation),
        ]
        if not published:
            cells += [_lag(row.lag_real), _lag(row.lag_simulated)]
        if between:
            both = row.between
            cells += (
                [_NONE, _NONE] if both is None else [_number(both.rmse), _share(both.correlation)]
            )
        if published:
            known = SEED_002.get(row.signal)
            cells += [f'{known.rmse:.2f}', f'{known.correlation:.2f}'] if known else [_NONE, _NONE]
        table.add_row(*cells)
    return table


def _distances(model: str, rows: list[SignalRow]) -> Table:
    table = _new(f'{model}: how unlike the errors are, and halves of the real runs (floor)')
    for heading in ('errors\nW1', '\nfloor', '\np', 'spectra\ndB', '\nfloor', '\np'):
        table.add_column(heading, justify='right', no_wrap=True)
    table.add_column('together', no_wrap=True)
    table.add_column('\np', justify='right', no_wrap=True)
    for row in rows:
        table.add_row(
            _name(row),
            _number(row.error_distance),
            _number(row.error_floor),
            _chance(row.error_p),
            f'{row.spectrum_distance:.1f}',
            _NONE if row.spectrum_floor is None else f'{row.spectrum_floor:.1f}',
            _chance(row.spectrum_p),
            row.verdict,
            _chance(row.p_adjusted),
        )
    return table


_NONE = '-'
_SHORT = {'angular_rate': 'rate', 'specific_force': 'force', 'position': 'position'}


def _name(row: SignalRow) -> Text:
    """Return the signal in few characters, with its unit."""
    quantity, _, axis = row.signal.rpartition('_')
    short = _SHORT.get(quantity)
    name = row.signal if short is None else f'{short} {axis}'
    return Text(f'{name} [{row.unit.replace("^2", "²")}]')


def _number(value: float | None) -> str:
    """Return three digits in eight characters at most."""
    if value is None:
        return _NONE
    if value == 0.0 or 1e-3 <= abs(value) < 1e4:
        return f'{value:.3g}'
    return f'{value:.2e}'


def _share(value: float | None) -> str:
    return _NONE if value is None else f'{value:.3f}'


def _lag(value: float | None) -> str:
    return _NONE if value is None else f'{value:.3f}'


def _chance(value: float | None) -> str:
    return _NONE if value is None else f'{value:.3f}' if value >= 0.001 else '<.001'
