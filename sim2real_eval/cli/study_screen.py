# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Console output of `vepd`, `study` and `demo`: one screen, or every table with --verbose."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.findings import FINDINGS, Severity
from sim2real_eval.study.options import PAPER_PROFILE
from .output import MAX_FINDINGS, lines_text, print_table, table_lines, wrap_text

if TYPE_CHECKING:
    from rich.table import Table

    from sim2real_eval.metrics.scores import VepdRow
    from sim2real_eval.report.page.tables import Standing
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.outcome import StudyOutcome

MAX_LINES = 25
"""Largest number of lines that fit on one screen."""

_MAX_TABLES = 4
_MAX_TITLE_LINES = 2
# Limits on the lines of each entry of the answer, tried in turn until the screen has enough space.
_ANSWER_LINE_LIMITS = (8, 6, 4)


def print_study(
    outcome: StudyOutcome,
    report: StudyReport,
    folder: str | Path,
    *,
    published: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    plain_language: bool = False,
    next_step: Sequence[str] = (),
) -> None:
    """Print the ranking of a study, the answer below it, and the names of its files.

    The output has at most `MAX_LINES` lines: the first models and tables that fit, and the second
    doubt if there is space left. `verbose` prints every table before the answer and its reasons
    below it; `quiet` prints only the answer. `plain_language` prints the answer as a sentence
    instead of the ranking. The lines of `next_step` are printed last.
    """
    from sim2real_eval.report.answer import AnswerLine, answer_lines, detail_lines, plain_answer

    folder = Path(folder)
    answer = answer_lines(report.answer)
    if quiet:
        print(lines_text(answer))
        return
    head = _head(outcome, verbose=verbose)
    foot = [*_foot(outcome, report, folder, verbose=verbose), *next_step]
    if verbose:
        print(*head, '', sep='\n')
        _show_all(outcome, report, folder, published=published)
        print(lines_text([*answer, *detail_lines(report.answer, report.undetected_text)]))
        for finding in report.answer.doubts[1 : 1 + MAX_FINDINGS]:
            print(wrap_text(str(finding), '- '))
        print(*foot, sep='\n')
        return
    if plain_language:
        # The sentence already names the nearest model.
        answer = answer[1:]
    for max_lines in _ANSWER_LINE_LIMITS:
        text = lines_text(answer, max_lines=max_lines, end=f' ... {FINDINGS}').splitlines()
        space = MAX_LINES - len(head) - len(text) - len(foot) - 2
        if plain_language:
            middle, is_complete = wrap_text(plain_answer(report.answer)).splitlines(), True
        else:
            middle, is_complete = _rankings(outcome, report, folder, space, published=published)
        if is_complete and len(middle) <= space:
            break
    if len(report.answer.doubts) > 1:
        longer = [*answer, AnswerLine('Second doubt', str(report.answer.doubts[1]))]
        lines = lines_text(longer, max_lines=max_lines, end=f' ... {FINDINGS}').splitlines()
        if len(lines) - len(text) <= space - len(middle):
            text = lines
            foot = [*_foot(outcome, report, folder, verbose=verbose, printed=2), *next_step]
    print(*head, '', *middle, '', *text, *foot, sep='\n')


def _head(outcome: StudyOutcome, *, verbose: bool) -> list[str]:
    """Return the title, and the options that the study adapted to its recordings."""
    from sim2real_eval.report.answer import adapted_options, adapted_text

    max_lines = None if verbose else _MAX_TITLE_LINES
    lines = [wrap_text(str(outcome.record['title']), max_lines=max_lines)]
    if outcome.record['synthetic']:
        lines.append('SYNTHETIC stand-ins for real sensors: the numbers describe no real sensor.')
    if adapted := (adapted_text if verbose else adapted_options)(outcome.record):
        lines.append(wrap_text(adapted, max_lines=max_lines))
    return '\n'.join(lines).splitlines()


def _foot(
    outcome: StudyOutcome, report: StudyReport, folder: Path, *, verbose: bool, printed: int = 1
) -> list[str]:
    """Return the number of findings besides the first doubts, and the names of the files."""
    from sim2real_eval.report.study_report import PAGE
    from sim2real_eval.study.secondary_results import has_many_runs

    lines = []
    others = [
        finding for finding in report.findings if finding not in report.answer.doubts[:printed]
    ]
    if others:
        actions = sum(finding.severity is not Severity.ROUTINE for finding in others)
        count = f'{len(others)} more finding{"" if len(others) == 1 else "s"}'
        suffix = f', {actions} to act on' if actions else ''
        lines.append(f'{count}{suffix}: {folder / FINDINGS}')
    lines.append(f'Report: {folder / PAGE}' + ('' if verbose else '; more tables: -v'))
    if has_many_runs(outcome):
        lines.append(
            'For position, heading and other metric options, run: '
            f'sim2real report {shlex.quote(str(folder))}'
        )
    return lines


def _rankings(
    outcome: StudyOutcome, report: StudyReport, folder: Path, space: int, *, published: bool
) -> tuple[list[str], bool]:
    """Return the lines of the rankings that fit into `space`, and whether the first is complete.

    The first ranking has at least one model. The last line counts the omitted models and rankings.
    """
    from sim2real_eval.report.study_report import TABLES

    judge = report.answer.view.judge
    # The published values belong to the judge of the paper, so its ranking is shown too.
    judges = (judge, PAPER_PROFILE) if published else (judge,)
    standings = sorted(report.standings, key=lambda standing: standing.judge not in judges)
    component = str(outcome.record['component'])

    def first_rankings(count: int, most: int | None = None) -> list[str]:
        """Return the first `count` rankings as lines, with at most `most` models in the last."""
        lines: list[str] = []
        for standing in standings[:count]:
            table = _ranking_lines(
                outcome, standing, (component,), published=published,
                most=most if standing is standings[count - 1] else None,
            )  # fmt: skip
            lines += [*([''] if lines else []), *table]
        models = len(standings[count - 1].pooled_uncertainty.order)
        missing = [
            f'{omitted} more {name}{"" if omitted == 1 else "s"}'
            for omitted, name in (
                (models - min(most or models, models), 'model'),
                (len(standings) - count, 'ranking'),
            )
            if omitted
        ]
        return lines + ([f'{" and ".join(missing)}: {folder / TABLES[0]}'] if missing else [])

    complete = [first_rankings(count) for count in range(1, min(len(standings), _MAX_TABLES) + 1)]
    if fitting := [lines for lines in complete if len(lines) <= space]:
        return fitting[-1], True
    models = len(standings[0].pooled_uncertainty.order)
    # Each model takes at least one line, so no more than `space` models fit.
    parts = (first_rankings(1, most) for most in range(min(models - 1, space), 1, -1))
    return next((lines for lines in parts if len(lines) <= space), first_rankings(1, 1)), False


def _ranking_lines(
    outcome: StudyOutcome,
    standing: Standing,
    components: Sequence[str],
    *,
    published: bool,
    most: int | None = None,
) -> list[str]:
    """Return the title and the table of one ranking, and a legend of its stars."""
    component = str(outcome.record['component'])
    count = standing.pooled_uncertainty.order[0].n_real
    recordings = f'{count} recording{"" if count == 1 else "s"}'
    title = f'VEPD of {component} speed {standing.where}, {recordings}, judge {standing.label}'
    table = _ranking(outcome, standing, components, published=published, most=most)
    lines = [*wrap_text(title, max_lines=_MAX_TITLE_LINES).splitlines(), *table_lines(table)]
    if any('*' in line for line in lines):
        lines.append(
            '  * differs significantly from the real sensors, in one joint test of all metrics'
        )
    return lines


def _ranking(
    outcome: StudyOutcome,
    standing: Standing,
    components: Sequence[str],
    *,
    published: bool,
    most: int | None = None,
) -> Table:
    """Return the distances of the models from the real sensors, under one judge in one group.

    `components` are the components of speed whose RMSE is a column.
    """
    from sim2real_eval.metrics.published import published_vepd
    from sim2real_eval.metrics.scores import POOLED
    from sim2real_eval.report.ranking_tables import ranking_table

    component = str(outcome.record['component'])
    means = {
        name: outcome.mean_rmse(
            standing.judge, standing.group, *(['rmse'] if name == component else [])
        )
        for name in components
    }
    return ranking_table(
        standing.pooled_uncertainty,
        {
            name: {
                model: value for (model, scenario), value in by_model.items() if scenario == POOLED
            }
            for name, by_model in means.items()
        },
        real='stand-in' if outcome.record['synthetic'] else 'real sensors',
        metrics=standing.metrics,
        published={model: published_vepd(model, standing.whole) for model in outcome.models}
        if published and standing.judge == PAPER_PROFILE
        else None,
        most=most,
    )


def _show_all(
    outcome: StudyOutcome, report: StudyReport, folder: Path, *, published: bool
) -> None:
    """Print every table; a line below a shortened table names its file in `folder`."""
    from sim2real_eval.report.console import vepd_console_table
    from sim2real_eval.report.ranking_tables import uncertainty_table

    for standing in report.standings:
        component = str(outcome.record['component'])
        components = tuple(dict.fromkeys((component, 'forward')))
        print(*_ranking_lines(outcome, standing, components, published=published), '', sep='\n')
        rows = without_redundant_pooled_rows(standing.rows)
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


def without_redundant_pooled_rows(rows: Sequence[VepdRow]) -> list[VepdRow]:
    """Return the rows without pooled rows that would repeat a single scenario."""
    pooled = len({row.scenario for row in rows}) > 2
    return [row for row in rows if pooled or row.scenario != 'all']


def _show_secondary(outcome: StudyOutcome, folder: Path) -> None:
    """Print the other metrics, metric options and rankings.

    Only the rows over all scenarios are printed; the files in `folder` have the others.
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
    from sim2real_eval.report.study_plots import MAX_DRAWN
    from sim2real_eval.study.secondary_results import has_many_runs, side_results

    # A new outcome has no cached results, so it is created only if more results are needed.
    complete = has_many_runs(outcome) and not outcome.complete
    results = side_results(dataclasses.replace(outcome, complete=True) if complete else outcome)
    metrics = results.overall_metrics
    for lines in map(metric_lines, metrics[:MAX_DRAWN]):
        print_table(ranks_table(lines))
        print('  * significant; tau: agreement of the ranking with that by VEPD')
        for note in lines.notes:
            print(f'  {note}')
        print()
    if len(metrics) > MAX_DRAWN:
        print(f'{len(metrics) - MAX_DRAWN} more of these tables: {folder / "metrics.csv"}\n')
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
        print_table(ranking_pairs_table(pairs, 'Agreement of rankings (p-value: over all orders)'))
        print()
