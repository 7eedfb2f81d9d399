# SPDX-License-Identifier: Apache-2.0
"""Sections on what is said beside VEPD: other metrics, other options, other judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.report.page.data_table import Column, DataTable
from sim2real_eval.report.page.ranking import p_value_text
from sim2real_eval.report.page.scale import MINUS, NONE
from sim2real_eval.report.ranks_table import (
    RankLines,
    metric_lines,
    sensitivity_lines,
    short_number,
)
from sim2real_eval.study.side_results import SideResults

__all__ = ['AnnotatedTable', 'SideSection', 'side_sections']


@dataclasses.dataclass(frozen=True)
class AnnotatedTable:
    """A table and the notes under it."""

    table: DataTable
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class SideSection:
    """Tables on one matter; `id` is where links lead."""

    id: str
    name: str
    text: str
    blocks: Sequence[AnnotatedTable]


def side_sections(side: SideResults) -> list[SideSection]:
    """Return a section per matter that there is something to say on.

    Of every judge and group over all its scenarios, or over the only one that it has.
    """
    metrics = [metric_lines(table) for table in side.overall_metrics]
    options = [sensitivity_lines(table) for table in side.overall_sensitivity]
    found = [
        SideSection(
            'metrics',
            'Beside VEPD',
            'Other distances between the real and the simulated runs, and the rank that each '
            'gives in brackets. A star: significant. Tau: Kendall rank correlation with '
            'VEPD, 1 for the same order.',
            [_block(lines) for lines in metrics if lines.lines],
        ),
        SideSection(
            'options',
            'Options',
            'VEPD, and its ranks, with other options of the metric. Tau: Kendall rank '
            'correlation with the first line.',
            [_block(lines) for lines in options if lines.lines],
        ),
        SideSection(
            'agreement',
            'Agreement',
            'How alike the judges, and the groups of recordings, rank the models: 1 for the same '
            'order, \N{MINUS SIGN}1 for the reverse. Chance: of so much agreement from orders '
            'that have nothing to do with each other.',
            [_pairs(side)] if side.rankings else [],
        ),
    ]
    return [section for section in found if section.blocks]


def _block(given: RankLines) -> AnnotatedTable:
    columns = [Column('')]
    columns += [Column(model, numeric=True) for model in given.models]
    columns.append(Column('tau', numeric=True))
    rows = []
    for number, line in enumerate(given.lines):
        cells = [line.label]
        for value, rank, mark in zip(line.values, line.ranks, line.marks, strict=True):
            cells.append(
                NONE
                if value is None or rank is None
                else f'{short_number(value)}{"*" if mark else ""} ({rank:g})'
            )
        cells.append('' if number == 0 else _two(line.agreement.kendall))
        rows.append(cells)
    return AnnotatedTable(DataTable(given.title, columns, rows), given.notes)


def _pairs(side: SideResults) -> AnnotatedTable:
    columns = [Column('scenario'), Column('ranking'), Column('and ranking')]
    columns += [
        Column(name, numeric=True) for name in ('models', 'Kendall', 'Spearman', 'p-value')
    ]
    rows = [
        [
            'all pooled' if pair.scenario == POOLED else pair.scenario,
            pair.first,
            pair.second,
            str(pair.agreement.models),
            _two(pair.agreement.kendall),
            _two(pair.agreement.spearman),
            p_value_text(pair.agreement.p_value),
        ]
        for pair in side.rankings
    ]
    return AnnotatedTable(
        DataTable('Agreement of rankings', columns, rows, kind='sorted', headed=False)
    )


def _two(value: float | None) -> str:
    return NONE if value is None else f'{value:.2f}'.replace('-', MINUS)
