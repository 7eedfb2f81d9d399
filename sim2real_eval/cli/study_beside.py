# SPDX-License-Identifier: Apache-2.0
"""What `sim2real study` shows beside VEPD."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.cli.output import print_table

if TYPE_CHECKING:
    from sim2real_eval.report.ranks_table import RankLines
    from sim2real_eval.study import StudyOutcome
    from sim2real_eval.study.sensitivity import SensitivityTable

__all__ = ['draw_secondary', 'show_secondary']

_MOST_TABLES = 4


def draw_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Draw metrics.png, where there is something to draw."""
    from sim2real_eval.report.ranks_plot import save_ranks

    if shown := _lines(outcome):
        save_ranks(folder / 'metrics.png', shown)


def show_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Print metrics, their options' weight and rankings; `folder` has more of them.

    Of every judge and group the row over all scenarios is shown; the files have the others.
    """
    from sim2real_eval.metrics.distances import POOLED
    from sim2real_eval.report.ranks_table import ranking_pairs_table, ranks_table
    from sim2real_eval.study.side_results import side_results

    results = side_results(outcome)
    found = results.overall_metrics
    for lines in _lines(outcome):
        print_table(ranks_table(lines))
        print('  * significant; tau: agreement of the ranking with that by VEPD')
        for note in lines.notes:
            print(f'  {note}')
        print()
    if len(found) > _MOST_TABLES:
        print(f'{len(found) - _MOST_TABLES} more such tables: {folder / "metrics.csv"}\n')
    for table in results.overall_sensitivity:
        print(_sensitivity(table))
    scenarios = list(dict.fromkeys(pair.scenario for pair in results.rankings))
    chosen = POOLED if POOLED in scenarios else ''.join(scenarios[:1])
    pairs = [pair for pair in results.rankings if pair.scenario == chosen]
    if pairs:
        print()
        print_table(
            ranking_pairs_table(pairs, 'Do the rankings agree? (p-value: over all orders)')
        )
        print()


def _lines(outcome: StudyOutcome) -> list[RankLines]:
    from sim2real_eval.report.ranks_table import metric_lines
    from sim2real_eval.study.side_results import side_results

    return [metric_lines(table) for table in side_results(outcome).overall_metrics[:_MOST_TABLES]]


def _sensitivity(table: SensitivityTable) -> str:
    known = [row for row in table.rows[1:] if row.with_own.kendall is not None]
    where = f'{table.judge}, {table.group}' if table.group else table.judge
    if not known:
        return f'{where}: the ranking cannot be compared with that by other metric options'
    worst = min(known, key=lambda row: row.with_own.kendall or 0.0)
    same = sum(row.with_own.kendall == 1.0 for row in known)
    text = f'{where}: {same} of {len(known)} other metric options rank the models alike'
    if same == len(known):
        return text
    return f'{text}; least alike {worst.label} (tau {worst.with_own.kendall:.2f})'
