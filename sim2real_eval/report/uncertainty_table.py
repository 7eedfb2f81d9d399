# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of distances, on the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.report.plain_table import plain_table
from sim2real_eval.uncertainty.result import DistanceUncertainty, PairUncertainty, Uncertainty

__all__ = ['pair_lines', 'uncertainty_table']

_MOST_PAIRS = 3


def uncertainty_table(
    known: Mapping[str, Uncertainty],
    *,
    title: str = 'Uncertainty: models of one group are not significantly different',
) -> Table:
    """Return a table of intervals, null quantiles, p-values and groups, one block per scenario.

    The null distribution is that of identical sensors: its median, and its quantile at the level.
    P-values are adjusted for how many models there are; the last column has the probability to be
    closest.

    Parameters
    ----------
    known : mapping
        Scenario, or other label of a block, to what is known; at least one.
    title : str
    """
    level = next(iter(known.values())).options.level
    table = plain_table(title)
    table.add_column('scenario', overflow='fold')
    table.add_column('group', no_wrap=True)
    table.add_column('model', overflow='fold')
    table.add_column('\nVEPD', justify='right', style='bold', no_wrap=True)
    table.add_column(f'true VEPD\n{level:.3g} level', justify='right', no_wrap=True)
    table.add_column(f'null dist.\nmed. {level:.3g}', justify='right', no_wrap=True)
    # Wider than their words, which would run into each other.
    table.add_column('p-value\nadj.', justify='right', no_wrap=True, min_width=8)
    table.add_column('best\nprob.', justify='right', no_wrap=True, min_width=7)
    for scenario, one in known.items():
        label = f'{scenario} pooled' if scenario == POOLED else scenario
        for model in one.order:
            table.add_row(
                Text(label),
                model.significance_groups or '-',
                Text(model.model),
                f'{model.distance:.4f}',
                _range(model.low, model.high),
                _range(model.null_median, model.null_high, ' '),
                _p_value(model),
                f'{model.ranks[0]:.2f}' if model.ranks else '-',
            )
            label = ''
        table.add_section()
    return table


def _range(low: float | None, high: float | None, between: str = '-') -> str:
    return '?' if low is None or high is None else f'{low:.3f}{between}{high:.3f}'


def _p_value(model: DistanceUncertainty) -> str:
    if model.adjusted is None:
        return '?'
    return '<0.001' if model.adjusted < 0.001 else f'{model.adjusted:.3f}'


def pair_lines(known: Uncertainty, scenario: str) -> list[str]:
    """Say which neighbours of the ranking do not differ significantly, and what would do it."""
    order = known.order
    lines = []
    for near, far in itertools.pairwise(order):
        pair = known.pair(near.model, far.model)
        if pair.distinguishable is False:
            lines.append(f'{near.model} and {far.model}: {_more(known, pair)}')
    if not lines:
        return []
    shown = lines[:_MOST_PAIRS]
    if len(lines) > _MOST_PAIRS:
        shown.append(f'and {len(lines) - _MOST_PAIRS} more pairs')
    where = 'pooled' if scenario == POOLED else scenario
    return [f'not significantly different ({where}): {"; ".join(shown)}']


def _more(known: Uncertainty, pair: PairUncertainty) -> str:
    motions = known.more(pair)
    return f'{motions} more motions would, at {known.options.power:.0%} power'
