# SPDX-License-Identifier: Apache-2.0
"""The tables of a study for a paper: Markdown, and LaTeX with booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sim2real_eval.report.page.figure import MINUS, NONE
from sim2real_eval.report.page.markup import Column, DataTable
from sim2real_eval.report.page.ranking import ranking
from sim2real_eval.report.page.standing import Standing
from sim2real_eval.report.page.tables import by_scenario, overview

_LATEX = {
    '\\': r'\textbackslash{}',
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    **{sign: f'\\{sign}' for sign in '&%$#_{}'},
    '<': r'\textless{}',
    '>': r'\textgreater{}',
    '|': r'\textbar{}',
    '"': r'\symbol{34}',
    MINUS: '$-$',
    NONE: '--',
    '∞': r'$\infty$',
    'Δ': r'$\Delta$',
    '°': r'$^\circ$',
}


def paper_tables(standings: Sequence[Standing]) -> list[DataTable]:
    """Return a ranking and, with several scenarios, a table by scenario for each judge."""
    tables: list[DataTable] = []
    for standing in standings:
        tables.append(_ranking_table(standing))
        scenarios = by_scenario(standing, {})
        if scenarios is not None:
            tables.append(scenarios)
    across = overview(standings, {})
    return tables if across is None else [*tables, across]


def _ranking_table(standing: Standing) -> DataTable:
    models = [one.model for one in standing.known.models]
    found = ranking(standing, dict.fromkeys(models, ''))
    level = f'{100 * standing.known.options.level:g} % interval'
    columns = [Column('rank', numeric=True), Column('model'), Column('VEPD', numeric=True)]
    columns += [
        Column(level),
        Column('null quantile', numeric=True),
        Column('p-value', numeric=True),
    ]
    columns += [Column('group')] if found.has_groups else []
    columns += [
        Column('W1 RMSE', 'm/s', numeric=True),
        Column('W2 entropy', numeric=True),
        Column('runs', 'real/sim', numeric=True),
    ]
    columns += [Column('paper', 'VEPD', numeric=True)] if found.published else []
    rows = []
    for place in found.places:
        cells = [
            place.rank,
            place.name,
            place.vepd,
            place.interval,
            place.null_high,
            place.p_value,
        ]
        cells += [place.significance_groups] if found.has_groups else []
        cells += [place.w_rmse, place.w_entropy, place.runs]
        cells += [place.published or NONE] if found.published else []
        rows.append(cells)
    title = f'VEPD {standing.where}, judge {standing.label}'
    return DataTable(title, columns, rows, headed=False)


def markdown_table(table: DataTable) -> str:
    """Return a table as GitHub's Markdown; labels come out as text."""
    heads = [markdown_text(_head(column)) for column in table.columns]
    lines = [
        f'**{markdown_text(table.title)}**',
        '',
        f'| {" | ".join(heads)} |',
        f'| {" | ".join("---:" if column.numeric else "---" for column in table.columns)} |',
    ]
    lines += [f'| {" | ".join(markdown_text(cell) for cell in row)} |' for row in table.rows]
    return '\n'.join(lines) + '\n'


def latex_table(table: DataTable) -> str:
    """Return a table for LaTeX with the package booktabs; labels come out as text."""
    form = ''.join('r' if column.numeric else 'l' for column in table.columns)
    lines = [
        r'\begin{table}',
        r'  \centering',
        f'  \\caption{{{latex_text(table.title)}}}',
        f'  \\begin{{tabular}}{{@{{}}{form}@{{}}}}',
        r'    \toprule',
        f'    {" & ".join(latex_text(_head(column)) for column in table.columns)} \\\\',
        r'    \midrule',
        *(f'    {" & ".join(latex_text(cell) for cell in row)} \\\\' for row in table.rows),
        r'    \bottomrule',
        r'  \end{tabular}',
        r'\end{table}',
    ]
    return '\n'.join(lines) + '\n'


def _head(column: Column) -> str:
    return f'{column.label} [{column.unit}]' if column.unit else column.label


def markdown_text(text: str) -> str:
    """Return text with what Markdown and HTML would read as marks escaped."""
    flat = re.sub(r'\s+', ' ', _printable(text))
    return re.sub(r'([\\`*_{}\[\]<>|#~&$!])', r'\\\1', flat)


def latex_text(text: str) -> str:
    """Return text with the special characters of LaTeX escaped."""
    flat = re.sub(r'\s+', ' ', _printable(text))
    # A cell that begins with a bracket would be an argument of the line end before it.
    return re.sub(r'^\[', '{[}', ''.join(_LATEX.get(sign, sign) for sign in flat))


def _printable(text: str) -> str:
    return ''.join(sign if sign.isprintable() else ' ' for sign in text)
