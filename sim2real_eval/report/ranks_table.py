# SPDX-License-Identifier: Apache-2.0
"""Tables beside VEPD on the terminal: a line per metric or option, a column per model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.rankings import RankAgreement
from sim2real_eval.report.plain_table import plain_table
from sim2real_eval.study.ranking_agreement import RankingPair
from sim2real_eval.study.sensitivity import SensitivityTable
from sim2real_eval.study.side_metrics import LEVEL, MetricTable

__all__ = [
    'RankLine',
    'RankLines',
    'metric_lines',
    'ranking_pairs_table',
    'ranks_table',
    'sensitivity_lines',
    'short_number',
]


class RankLine(NamedTuple):
    """One way to rank the models.

    Attributes
    ----------
    label : str
    values, ranks : tuple of float or None
        Model by model.
    marks : tuple of bool
        Whether a value is significant.
    agreement : RankAgreement
        With the ranking that all are compared with.
    """

    label: str
    values: tuple[float | None, ...]
    ranks: tuple[float | None, ...]
    marks: tuple[bool, ...]
    agreement: RankAgreement


class RankLines(NamedTuple):
    """Several ways to rank the same models.

    Attributes
    ----------
    title : str
    models : tuple of str
    lines : tuple of RankLine
    notes : tuple of str
    """

    title: str
    models: tuple[str, ...]
    lines: tuple[RankLine, ...]
    notes: tuple[str, ...]


def metric_lines(table: MetricTable) -> RankLines:
    """Return the metrics of a table that at least one model has; those significant marked."""
    lines = []
    for row in table.rows:
        if any(value is not None for value in row.distances):
            unit = f' {row.metric.unit}' if row.metric.unit else ''
            p_values = (
                row.p_values if row.adjusted.count(None) == len(row.adjusted) else row.adjusted
            )
            marks = tuple(p_value is not None and p_value <= LEVEL for p_value in p_values)
            label = f'{row.metric.name}{unit}'
            lines.append(RankLine(label, row.distances, row.ranks, marks, row.with_vepd))
    notes = tuple(
        f'{model}: VEPD calls it like reality, {", ".join(names)} not'
        for model, names in table.hidden().items()
    )
    where = _where(table.judge, table.group, table.scenario)
    return RankLines(f'Metrics beside VEPD, {where}', table.models, tuple(lines), notes)


def sensitivity_lines(table: SensitivityTable) -> RankLines:
    """Return all ways to score; what could not be scored is a note."""
    lines, notes = [], []
    for row in table.rows:
        if row.problem:
            notes.append(f'{row.label}: not scored: {row.problem}')
        else:
            marks = (False,) * len(row.vepd)
            lines.append(RankLine(row.label, row.vepd, row.ranks, marks, row.with_own))
    where = _where(table.judge, table.group, table.scenario)
    return RankLines(f'VEPD by metric option, {where}', table.models, tuple(lines), tuple(notes))


def ranks_table(given: RankLines) -> Table:
    """Return `value (rank)` per line and model, and Kendall's tau of each line with the first."""
    table = plain_table(given.title, gap=1)
    table.add_column('', overflow='fold')
    for model in given.models:
        table.add_column(Text(model), justify='right', overflow='fold')
    table.add_column('tau', justify='right', no_wrap=True)
    for number, line in enumerate(given.lines):
        cells: list[Text | str] = [Text(line.label)]
        for value, rank, mark in zip(line.values, line.ranks, line.marks, strict=True):
            cells.append(_cell(value, rank, mark=mark))
        cells.append('' if number == 0 else _two(line.agreement.kendall))
        table.add_row(*cells)
    return table


def ranking_pairs_table(pairs: Iterable[RankingPair], title: str) -> Table:
    """Return one line per two rankings of a scenario."""
    table = plain_table(title, gap=1)
    table.add_column('scenario', overflow='fold')
    table.add_column('ranking', overflow='fold')
    table.add_column('and ranking', overflow='fold')
    for name in ('models', 'Kendall', 'Spearman', 'p-value'):
        table.add_column(name, justify='right', no_wrap=True)
    last = None
    for pair in pairs:
        if last not in (None, pair.scenario):
            table.add_section()
        agreement = pair.agreement
        table.add_row(
            Text('' if pair.scenario == last else _scenario(pair.scenario)),
            Text(pair.first),
            Text(pair.second),
            str(agreement.models),
            _two(agreement.kendall),
            _two(agreement.spearman),
            _p_value(agreement.p_value),
        )
        last = pair.scenario
    return table


def _where(judge: str, group: str, scenario: str) -> str:
    return ', '.join(word for word in (judge, group, _scenario(scenario)) if word)


def _scenario(label: str) -> str:
    return 'all pooled' if label == POOLED else label


def _cell(value: float | None, rank: float | None, *, mark: bool) -> Text:
    if value is None or rank is None:
        return Text('-', style='dim')
    return Text(
        f'{short_number(value)}{"*" if mark else " "}({rank:g})', style='bold' if rank == 1 else ''
    )


def short_number(value: float) -> str:
    """Return three significant digits, without an exponent where that stays short."""
    if value == 0.0:
        return '0'
    return f'{value:#.3g}'.rstrip('.') if 1e-3 <= value < 1e4 else f'{value:.1e}'


def _p_value(value: float | None) -> str:
    if value is None:
        return '-'
    return '<0.001' if value < 0.001 else f'{value:.3f}'


def _two(value: float | None) -> str:
    return '-' if value is None else f'{value:.2f}'
