# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal: uncertainty of distances, and rankings by other metrics."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.options import NOT_SIGNIFICANT, REAL
from sim2real_eval.metrics.published import RankAgreement
from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.metrics.uncertainty import DistanceUncertainty, Uncertainty
from sim2real_eval.study.metric import NIS, VEPD
from sim2real_eval.study.secondary_results import LEVEL, MetricTable, PoseRanking
from sim2real_eval.study.sensitivity import RankingPair, SensitivityTable
from .console import (
    NONE,
    DataTable,
    TableColumn,
    add_numbers,
    add_words,
    decimal,
    numeric,
    p_value_text,
    plain_table,
    round_text,
    scenario_name,
    short_number,
    span,
)

_MAX_PAIRS = 3
_MAX_COLUMNS = 8
_MAX_NAMES = 3


def ranking_table(
    uncertainty: Uncertainty,
    rmse: Mapping[str, Mapping[str, float]],
    *,
    real: str = 'real sensors',
    published: Mapping[str, float | None] | None = None,
    metrics: MetricTable | None = None,
    most: int | None = None,
) -> Table:
    """Return a table of each model's distance from the real sensors, the nearest model first.

    It has at most `most` models, or all. Columns without any number are omitted. Tied models do
    not differ significantly. A star marks a significant VEPD or NIS in the joint test of all
    `metrics`.

    `rmse` maps a component of speed to the mean RMSE of each model and of the real sensors.
    `real` is the label of the real sensors; `published` maps a model to its VEPD in the paper.
    """
    if published is not None and set(published.values()) <= {None}:
        published = None
    order = uncertainty.order
    has_intervals = any(model.low is not None for model in order)
    has_ties = len(order) > 1 and all(model.significance_groups for model in order)
    table = plain_table('')
    add_numbers(table, 'rank')
    add_words(table, 'model')
    add_numbers(table, 'VEPD', style='bold')
    nis = {model.model: nis_text(metrics, model.model) for model in order}
    has_nis = set(nis.values()) != {NONE}
    if has_intervals:
        add_numbers(table, f'{100 * uncertainty.options.level:g} %\ninterval')
    if has_nis:
        add_numbers(table, 'NIS\ndecades')
    if has_ties:
        table.add_column('tied\nwith', justify='right', min_width=6, overflow='fold')
    has_equal_runs = {model.n_sim for model in order} == {order[0].n_real}
    if not has_equal_runs:
        add_numbers(table, 'runs')
    add_numbers(table, *(f'RMSE m/s\n{name}' for name in rmse))
    if published is not None:
        add_numbers(table, 'paper\nVEPD')

    def add(source: str, runs: int, name: str, *numbers: str) -> None:
        place, *statistics = numbers
        means = [round_text(by_source.get(source)) for by_source in rmse.values()]
        paper = [] if published is None else [round_text(published.get(source))]
        count = [] if has_equal_runs else [str(runs)]
        table.add_row(place, Text(name), *statistics, *count, *means, *paper)

    add(REAL, order[0].n_real, real, *[''] * (2 + has_intervals + has_nis + has_ties))
    for place, model in enumerate(order[:most], 1):
        statistics = [_range(model.low, model.high)] if has_intervals else []
        statistics += [nis[model.model] + _star(metrics, model, NIS)] if has_nis else []
        statistics += [tied_ranks(uncertainty, model)] if has_ties else []
        vepd = f'{model.distance:.4f}{_star(metrics, model, VEPD)}'
        add(model.model, model.n_sim, model.model, str(place), vepd, *statistics)
    return table


def nis_text(metrics: MetricTable | None, model: str) -> str:
    """Return the distance of the NIS of a model from that of the real sensors, decades."""
    for row in metrics.rows if metrics else ():
        if metrics and row.metric.name == NIS:
            return decimal(row.distances[metrics.models.index(model)], 3)
    return NONE


def _star(metrics: MetricTable | None, model: DistanceUncertainty, name: str) -> str:
    """Return `*` if a metric differs significantly, else a space to keep numbers aligned."""
    if metrics is None or model.p_value is None:
        return ''
    return '*' if name in metrics.detected_by(model.model) else ' '


def detected_text(metrics: MetricTable | None, model: DistanceUncertainty) -> str:
    """Return the metrics by which a model differs from the real sensors in the joint test."""
    if metrics is None or model.p_value is None:
        return NONE
    names = metrics.detected_by(model.model)
    return metric_names(names) if names else 'no metric'


def metric_names(names: Sequence[str]) -> str:
    """Join names of metrics, with VEPD, NIS and transfer first; many others are only counted.

    Examples
    --------
    >>> metric_names(['VEPD', 'yaw', 'NIS'])
    'VEPD, NIS and yaw'
    >>> metric_names(['bias', 'yaw', 'NEES', 'energy', 'VEPD'])
    'VEPD and 4 others'
    """
    first = [name for name in (VEPD, NIS, 'transfer') if name in names]
    others = [name for name in names if name not in first]
    shown = (
        others
        if len(names) <= _MAX_NAMES
        else [f'{len(others)} {"others" if first else "metrics"}']
    )
    words = [*first, *(shown if others else [])]
    return words[0] if len(words) == 1 else f'{", ".join(words[:-1])} and {words[-1]}'


def tied_ranks(uncertainty: Uncertainty, model: DistanceUncertainty) -> str:
    """Return the ranks of the models that do not differ from a model, or `none`.

    The string, such as `1 to 3, 5`, is empty if the ranks are unknown. For more than two ranges it
    is the number of ranks with the first and last, such as `4 of 1 to 9`.
    """
    if not model.significance_groups:
        return ''
    own = 1 + [other.model for other in uncertainty.order].index(model.model)
    ranges: list[list[int]] = []
    for number in uncertainty.ranks_not_distinguishable(model.model):
        if number == own:
            continue
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    if len(ranges) > 2:
        return f'{sum(map(len, ranges))} of {ranges[0][0]} to {ranges[-1][-1]}'
    parts = [
        f'{ranks[0]} to {ranks[-1]}' if len(ranks) > 2 else ', '.join(map(str, ranks))
        for ranks in ranges
    ]
    return ', '.join(parts) or 'none'


def uncertainty_table(uncertainties: Mapping[str, Uncertainty]) -> Table:
    """Return a table of intervals, null quantiles and p-values, one block per scenario.

    The null distribution is that of identical sensors; the table has its median and its quantile
    at the level of the intervals. P-values are adjusted for the number of models, intervals are
    not. The last column is the probability of being the closest model.
    `uncertainties` maps at least one scenario, or another label, to its uncertainty.
    """
    level = next(iter(uncertainties.values())).options.level
    table = plain_table('Uncertainty: models that are tied do not differ significantly')
    add_words(table, 'scenario', 'model')
    add_numbers(table, 'tied\nwith', min_width=5)
    add_numbers(table, '\nVEPD', style='bold')
    add_numbers(table, f'true VEPD\n{level:.3g} level', f'null dist.\nmed. {level:.3g}')
    # The columns are wider than their headings, which would otherwise touch.
    add_numbers(table, 'p-value\nadj.', min_width=8)
    add_numbers(table, 'best\nprob.', min_width=7)
    for scenario, uncertainty in uncertainties.items():
        label = scenario_name(scenario)
        for model in uncertainty.order:
            table.add_row(
                Text(label),
                Text(model.model),
                tied_ranks(uncertainty, model) or '-',
                f'{model.distance:.4f}',
                _range(model.low, model.high),
                _range(model.null_median, model.null_high, ' '),
                p_value_text(model.adjusted, '?'),
                f'{model.ranks[0]:.2f}' if model.ranks else '-',
            )
            label = ''
        table.add_section()
    return table


def pose_difference_table(rankings: Sequence[PoseRanking]) -> DataTable:
    """Return a table of distances of position, heading and attitude, per judge and model."""
    heads = ('judge', 'by', 'model')
    numbers = ('distance', 'interval', 'identical sensors up to', 'p-value', 'tied with rank')
    rows = [
        [
            row.label,
            f'{row.difference.name} ({row.difference.quantity})',
            model.model,
            decimal(model.distance, 3),
            span(model.low, model.high),
            decimal(model.null_high, 3),
            p_value_text(model.adjusted, NONE),
            tied_ranks(row.uncertainty, model) or NONE,
        ]
        for row in rankings
        for model in row.uncertainty.order
    ]
    columns = [*map(TableColumn, heads), *map(numeric, numbers)]
    return DataTable('Position, heading and attitude', columns, rows, headed=False)


def _range(low: float | None, high: float | None, between: str = '-') -> str:
    return '?' if low is None or high is None else f'{decimal(low, 3)}{between}{decimal(high, 3)}'


def pair_lines(uncertainty: Uncertainty, scenario: str) -> list[Finding]:
    """Report adjacent models that do not differ, and how many motions would distinguish them."""
    lines = []
    for near, far in itertools.pairwise(uncertainty.order):
        pair = uncertainty.pair(near.model, far.model)
        if pair.distinguishable is False:
            needed = (
                f'{uncertainty.more(pair)} more motions for {uncertainty.options.power:.0%} power'
            )
            lines.append(f'{near.model} and {far.model}: {needed}')
    if not lines:
        return []
    printed_lines = lines[:_MAX_PAIRS]
    if len(lines) > _MAX_PAIRS:
        printed_lines.append(f'and {len(lines) - _MAX_PAIRS} more pairs')
    where = 'pooled' if scenario == POOLED else scenario
    return [NOT_SIGNIFICANT(pairs='; '.join(printed_lines)).restrict_to(where)]


class RankLine(NamedTuple):
    """A ranking of the models, with value, rank and mark of significance of each.

    `agreement` compares it with the first ranking of the table.
    """

    label: str
    values: tuple[float | None, ...]
    ranks: tuple[float | None, ...]
    marks: tuple[bool, ...]
    agreement: RankAgreement


class RankLines(NamedTuple):
    """Several rankings of the same models, one per line of a table."""

    title: str
    models: tuple[str, ...]
    lines: tuple[RankLine, ...]
    notes: tuple[str, ...]


def metric_lines(table: MetricTable) -> RankLines:
    """Return the rankings by all metrics that any model has; significant distances are marked."""
    lines = []
    for row in table.rows:
        if any(value is not None for value in row.distances):
            unit = f' {row.metric.unit}' if row.metric.unit else ''
            has_adjusted = any(p_value is not None for p_value in row.adjusted)
            p_values = row.adjusted if has_adjusted else row.p_values
            marks = tuple(p_value is not None and p_value <= LEVEL for p_value in p_values)
            label = f'{row.metric.name}{unit}'
            lines.append(RankLine(label, row.distances, row.ranks, marks, row.with_vepd))
    notes = tuple(
        f'{model}: VEPD finds no significant difference from reality, but {", ".join(names)} do'
        for model, names in table.undetected_by_vepd().items()
    )
    where = _where(table.judge, table.group, table.scenario)
    return RankLines(f'Other metrics, {where}', table.models, tuple(lines), notes)


def sensitivity_lines(table: SensitivityTable) -> RankLines:
    """Return the rankings by all metric options; an option that failed becomes a note."""
    lines, notes = [], []
    for row in table.rows:
        if row.problem:
            notes.append(f'{row.label}: not scored: {row.problem}')
        else:
            marks = (False,) * len(row.vepd)
            lines.append(RankLine(row.label, row.vepd, row.ranks, marks, row.with_own))
    where = _where(table.judge, table.group, table.scenario)
    return RankLines(f'VEPD by metric option, {where}', table.models, tuple(lines), tuple(notes))


def ranks_table(rankings: RankLines) -> Table:
    """Return a table of `value (rank)` per line and model, with Kendall's tau to the first line.

    A table of more than `_MAX_COLUMNS` models holds only ranks, with a row per model.
    """
    if len(rankings.models) > _MAX_COLUMNS:
        return _table_of_ranks(rankings)
    table = plain_table(rankings.title, gap=1)
    add_words(table, '')
    for model in rankings.models:
        table.add_column(Text(model), justify='right', overflow='fold')
    add_numbers(table, 'tau')
    for number, line in enumerate(rankings.lines):
        cells: list[Text | str] = [Text(line.label)]
        for value, rank, mark in zip(line.values, line.ranks, line.marks, strict=True):
            cells.append(_cell(value, rank, mark=mark))
        cells.append('' if number == 0 else round_text(line.agreement.kendall, 2))
        table.add_row(*cells)
    return table


def _table_of_ranks(rankings: RankLines) -> Table:
    table = plain_table(f'{rankings.title}: ranks (distances: metrics.csv)', gap=1)
    add_words(table, '')
    for line in rankings.lines:
        table.add_column(Text(line.label.replace(' ', '\n')), justify='right', overflow='fold')
    first = rankings.lines[0].ranks
    for k in sorted(range(len(rankings.models)), key=lambda k: (first[k] is None, first[k])):
        cells = [_rank(line.ranks[k], mark=line.marks[k]) for line in rankings.lines]
        table.add_row(Text(rankings.models[k]), *cells)
    table.add_section()
    taus = [round_text(line.agreement.kendall, 2) for line in rankings.lines[1:]]
    table.add_row('tau', '', *taus)
    return table


def ranking_pairs_table(pairs: Iterable[RankingPair], title: str) -> Table:
    """Return a table of agreements, with a row per pair of rankings of a scenario."""
    table = plain_table(title, gap=1)
    add_words(table, 'scenario', 'ranking', 'and ranking')
    add_numbers(table, 'models', 'Kendall', '95 %', 'Spearman', 'p-value', 'adjusted')
    last = None
    for pair in pairs:
        if last not in (None, pair.scenario):
            table.add_section()
        agreement = pair.agreement
        table.add_row(
            Text('' if pair.scenario == last else scenario_name(pair.scenario)),
            Text(pair.first),
            Text(pair.second),
            str(agreement.models),
            round_text(agreement.kendall, 2),
            pair.interval,
            round_text(agreement.spearman, 2),
            p_value_text(agreement.p_value),
            p_value_text(pair.adjusted),
        )
        last = pair.scenario
    return table


def _where(judge: str, group: str, scenario: str) -> str:
    return ', '.join(word for word in (judge, group, scenario_name(scenario)) if word)


def _cell(value: float | None, rank: float | None, *, mark: bool) -> Text:
    if value is None or rank is None:
        return _rank(None, mark=mark)
    return Text(
        f'{short_number(value)}{"*" if mark else " "}({rank:g})', style='bold' if rank == 1 else ''
    )


def _rank(rank: float | None, *, mark: bool) -> Text:
    if rank is None:
        return Text('-', style='dim')
    return Text(f'{rank:g}{"*" if mark else " "}', style='bold' if rank == 1 else '')


def sensitivity_text(table: SensitivityTable) -> str:
    """Return a sentence on how many other metric options give the ranking of the study."""
    comparable = [row for row in table.rows[1:] if row.with_own.kendall is not None]
    where = f'{table.judge}, {table.group}' if table.group else table.judge
    if not comparable:
        return f'{where}: the ranking cannot be compared with rankings by other metric options'
    worst = min(comparable, key=lambda row: row.with_own.kendall or 0.0)
    same = sum(row.with_own.kendall == 1.0 for row in comparable)
    text = f'{where}: {same} of {len(comparable)} other metric options give the same ranking'
    if same == len(comparable):
        return text
    return f'{text}; the most different is {worst.label} (tau {worst.with_own.kendall:.2f})'
