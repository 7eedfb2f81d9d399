# SPDX-License-Identifier: Apache-2.0
"""Tables of a comparison of signals, for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim2real_eval.report.console import plain_table
from sim2real_eval.signals.options import LIGORIO_2015

if TYPE_CHECKING:
    from sim2real_eval.signals.comparison import SignalComparison, SignalRow


def signal_tables(comparison: SignalComparison, *, published: bool = False) -> Group:
    """Return two tables per kind of sensor: agreement with truth, and how different the sets are.

    Models of which the same signals are known share a table, one below the other. Split-half
    distances, p-values and verdicts are shown where there are any.

    Parameters
    ----------
    comparison : SignalComparison
    published : bool
        Add RMSE and R between real and simulated signals as printed in [Ligorio2015].

    Returns
    -------
    rich.console.Group
        Each table fits a terminal of 80 characters.
    """
    groups: dict[tuple[object, ...], dict[str, list[SignalRow]]] = {}
    for model in comparison.models:
        rows = [row for row in comparison.rows if row.model == model]
        alike = (rows[0].n_real, rows[0].n_simulated, *(row.signal for row in rows))
        groups.setdefault(alike, {})[model] = rows
    tables: list[Table | Text] = []
    for models in groups.values():
        for table in (_agreement(models, published=published), _distances(models)):
            tables += [table, Text()]
    return Group(*tables[:-1])


def _title(models: Mapping[str, list[SignalRow]]) -> str:
    """Return the model, or how many there are and of what."""
    if len(models) == 1:
        return next(iter(models))
    signals = {row.signal for rows in models.values() for row in rows}
    kinds = {_KINDS.get(signal.rpartition('_')[0], 'IMU') for signal in signals}
    kind = f'{kinds.pop()} ' if len(kinds) == 1 else ''
    return f'{len(models)} {kind}models'


def _fill(
    table: Table,
    models: Mapping[str, list[SignalRow]],
    cells: Callable[[SignalRow], list[Text | str]],
) -> None:
    """Add the rows of each model, below its name where there are several."""
    for model, rows in models.items():
        if len(models) > 1:
            table.add_row(Text(model, style='bold'))
        for row in rows:
            table.add_row(_name(row), *cells(row))


def _new(title: str) -> Table:
    table = plain_table(title, min_width=min(len(title) + 1, 78))
    table.add_column('signal', no_wrap=True)
    return table


def _agreement(models: Mapping[str, list[SignalRow]], *, published: bool) -> Table:
    everything = [row for rows in models.values() for row in rows]
    first = everything[0]
    table = _new(
        f'{_title(models)}: {first.n_simulated} simulated and {first.n_real} real runs, each '
        'against its truth'
    )
    headings = ['RMSE\nreal', '\nsim', 'R\nreal', '\nsim']
    if not published:
        headings += ['lag ms\nreal', '\nsim']
    between = any(row.between is not None for row in everything)
    if between:
        headings += ['between\nRMSE', '\nR']
    if published:
        headings += ['Ligorio2015\nRMSE', '\nR']
    for heading in headings:
        table.add_column(heading, justify='right', no_wrap=True)

    def cells(row: SignalRow) -> list[Text | str]:
        found: list[Text | str] = [
            _number(row.real.rmse, row.unit),
            _number(row.simulated.rmse, row.unit),
            _share(row.real.correlation),
            _share(row.simulated.correlation),
        ]
        if not published:
            found += [_lag(row.lag_real), _lag(row.lag_simulated)]
        if between:
            both = row.between
            found += (
                [_NONE, _NONE]
                if both is None
                else [_number(both.rmse, row.unit), _share(both.correlation)]
            )
        if published:
            known = LIGORIO_2015.get(row.signal)
            found += (
                [_number(known.rmse, row.unit), f'{known.correlation:.2f}']
                if known
                else [_NONE, _NONE]
            )
        return found

    _fill(table, models, cells)
    return table


def _distances(models: Mapping[str, list[SignalRow]]) -> Table:
    everything = [row for rows in models.values() for row in rows]
    split_half = any(row.error_split_half is not None for row in everything)
    judged = any(row.p_adjusted is not None for row in everything)
    table = _new(
        f'{_title(models)}: how different the errors are'
        + (', and halves of the real runs (split)' if split_half else '')
    )
    for name in ('errors\nW1', 'spectra\ndB'):
        table.add_column(name, justify='right', no_wrap=True)
        if split_half:
            table.add_column('\nsplit', justify='right', no_wrap=True)
        if judged:
            table.add_column('\np', justify='right', no_wrap=True)
    if judged:
        table.add_column('verdict', no_wrap=True)
        table.add_column('\np', justify='right', no_wrap=True)

    def cells(row: SignalRow) -> list[Text | str]:
        found: list[Text | str] = []
        for distance, low, p_value in (
            (
                _number(row.error_distance, row.unit),
                _number(row.error_split_half, row.unit),
                row.error_p,
            ),
            (
                f'{row.spectrum_distance:.1f}',
                _NONE if row.spectrum_split_half is None else f'{row.spectrum_split_half:.1f}',
                row.spectrum_p,
            ),
        ):
            found.append(distance)
            if split_half:
                found.append(low)
            if judged:
                found.append(_p_value(p_value))
        if judged:
            found += [row.verdict, _p_value(row.p_adjusted)]
        return found

    _fill(table, models, cells)
    return table


_NONE = '-'
# As shown, and how many of them are one.
_UNITS = {'m/s^2': ('m/s²', 1.0), 'T': ('µT', 1e6)}
_SHORT = {
    'angular_rate': 'rate',
    'specific_force': 'force',
    'position': 'position',
    'magnetic_field': 'field',
}
_KINDS = {'position': 'GPS', 'magnetic_field': 'magnetometer'}


def _name(row: SignalRow) -> Text:
    """Return the signal in few characters, with its unit."""
    quantity, _, axis = row.signal.rpartition('_')
    short = _SHORT.get(quantity)
    name = row.signal if short is None else f'{short} {axis}'
    return Text(f'{name} [{_UNITS.get(row.unit, (row.unit, 1.0))[0]}]')


def _number(value: float | None, unit: str) -> str:
    """Return three digits in eight characters at most, of the unit that is shown."""
    if value is None:
        return _NONE
    value *= _UNITS.get(unit, (unit, 1.0))[1]
    if value == 0.0 or 1e-3 <= abs(value) < 1e4:
        return f'{value:.3g}'
    return f'{value:.2e}'


def _share(value: float | None) -> str:
    return _NONE if value is None else f'{value:.3f}'


def _lag(value: float | None) -> str:
    return _NONE if value is None else f'{1e3 * value:.1f}'


def _p_value(value: float | None) -> str:
    return _NONE if value is None else f'{value:.3f}' if value >= 0.001 else '<.001'
