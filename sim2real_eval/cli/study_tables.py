# SPDX-License-Identifier: Apache-2.0
"""Printed tables of a study: its ranking, its answer and, with -v, everything else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.findings import FINDINGS
from sim2real_eval.study.options import PAPER_PROFILE
from .output import MOST_FINDINGS, print_table

if TYPE_CHECKING:
    from sim2real_eval.metrics.scores import VepdRow
    from sim2real_eval.report.page.ranking import Standing
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.outcome import StudyOutcome

_MOST_TABLES = 4


def print_study(
    outcome: StudyOutcome,
    report: StudyReport,
    folder: str | Path,
    *,
    published: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    explained: bool = False,
) -> None:
    """Print the ranking of a study, the answer below it, and where the rest is.

    `verbose` prints every table before the answer, and `quiet` the answer alone. `explained`
    prints the meaning of the answer in place of the ranking.
    """
    from sim2real_eval.report.answer import adapted_text, answer_text, meaning, wrapped
    from sim2real_eval.report.study_report import PAGE

    folder, synthetic = Path(folder), bool(outcome.record['synthetic'])
    if quiet:
        print(answer_text(report.answer, report.unseen))
        return
    print(outcome.record['title'])
    if synthetic:
        print('Recordings are SYNTHETIC stand-ins: the numbers show how the study works, not how')
        print('good a sensor model is.')
    if adapted := adapted_text(outcome.record):
        print(wrapped(adapted))
    print()
    if verbose:
        _show_all(outcome, report, folder, published=published)
    elif not explained:
        judge = report.answer.view.judge
        # The printed numbers stand beside the judge that they belong to, whoever answers.
        shown_judges = (judge, PAPER_PROFILE) if published else (judge,)
        standings = [standing for standing in report.standings if standing.judge in shown_judges]
        for standing in standings[:_MOST_TABLES]:
            _show_ranking(outcome, standing, published=published)
    print(answer_text(report.answer, report.unseen))
    if explained:
        print('\n' + wrapped(meaning(report.answer)))
    doubts = report.answer.doubts[1 : 1 + MOST_FINDINGS]
    more_findings = len(report.findings) - len(doubts) - (report.answer.doubt is not None)
    if doubts:
        print('\nAlso decisive:')
    for finding in doubts:
        print(wrapped(str(finding), '- '))
    print()
    if more_findings > 0:
        print(
            f'{more_findings} more finding{"" if more_findings == 1 else "s"}: {folder / FINDINGS}'
        )
    print(f'Report: {folder / PAGE}' + ('' if verbose else '; more tables: -v'))


def _show_ranking(outcome: StudyOutcome, standing: Standing, *, published: bool) -> None:
    """Print how far the models are from the real sensors, under one judge in one group."""
    from sim2real_eval.metrics.published import published_vepd
    from sim2real_eval.metrics.scores import POOLED
    from sim2real_eval.report.ranking_tables import ranking_table

    component = str(outcome.record['component'])
    means = {component: outcome.mean_rmse(standing.judge, standing.group, 'rmse')}
    means['forward'] = outcome.mean_rmse(standing.judge, standing.group)
    print_table(
        ranking_table(
            standing.known,
            {
                name: {
                    model: value
                    for (model, place), value in means_by_model.items()
                    if place == POOLED
                }
                for name, means_by_model in means.items()
            },
            title=f'VEPD of {component} speed {standing.where}, judge {standing.label}: '
            'smaller is closer',
            real='stand-in' if outcome.record['synthetic'] else 'real sensors',
            published={model: published_vepd(model, standing.whole) for model in outcome.models}
            if published and standing.judge == PAPER_PROFILE
            else None,
        )
    )
    print()


def _show_all(
    outcome: StudyOutcome, report: StudyReport, folder: Path, *, published: bool
) -> None:
    """Print every table; `folder` has those that are too many."""
    from sim2real_eval.report.console import vepd_console_table
    from sim2real_eval.report.ranking_tables import uncertainty_table

    for standing in report.standings:
        _show_ranking(outcome, standing, published=published)
        rows = shown(standing.rows)
        if len(standing.scenarios) > 1:
            print_table(
                vepd_console_table(
                    rows,
                    forward_rmse=outcome.mean_rmse(standing.judge, standing.group),
                    title=f'By scenario, judge {standing.label}',
                    published=published and standing.judge == PAPER_PROFILE,
                )
            )
            print()
        print_table(
            uncertainty_table({name: standing.uncertainty[name] for name in standing.scenarios})
        )
        print()
    _show_secondary(outcome, folder)


def shown(rows: Sequence[VepdRow]) -> list[VepdRow]:
    """Leave the pooled rows out when there is one scenario: they would say the same again."""
    pooled = len({row.scenario for row in rows}) > 2
    return [row for row in rows if pooled or row.scenario != 'all']


def _show_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Print metrics, their options' weight and rankings; `folder` has more of them.

    Only the rows over all scenarios are printed; the files have the others.
    """
    from sim2real_eval.metrics.scores import POOLED
    from sim2real_eval.report.console import console_table
    from sim2real_eval.report.ranking_tables import (
        metric_lines,
        pose_difference_table,
        ranking_pairs_table,
        ranks_table,
        sensitivity_text,
    )
    from sim2real_eval.report.study_plots import MOST_DRAWN
    from sim2real_eval.study.secondary_results import side_results

    results = side_results(outcome)
    metrics = results.overall_metrics
    for lines in map(metric_lines, metrics[:MOST_DRAWN]):
        print_table(ranks_table(lines))
        print('  * significant; tau: agreement of the ranking with that by VEPD')
        for note in lines.notes:
            print(f'  {note}')
        print()
    if len(metrics) > MOST_DRAWN:
        print(f'{len(metrics) - MOST_DRAWN} more such tables: {folder / "metrics.csv"}\n')
    if results.poses:
        print_table(console_table(pose_difference_table(results.poses)))
        print()
    for table in results.overall_sensitivity:
        print(sensitivity_text(table))
    scenarios = list(dict.fromkeys(pair.scenario for pair in results.rankings))
    chosen = POOLED if POOLED in scenarios else ''.join(scenarios[:1])
    pairs = [pair for pair in results.rankings if pair.scenario == chosen]
    if pairs:
        print()
        print_table(
            ranking_pairs_table(pairs, 'Do the rankings agree? (p-value: over all orders)')
        )
        print()
