# SPDX-License-Identifier: Apache-2.0
"""Tables of a fit for the terminal: its parameters, and how close the model is."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from sim2real_eval.fitting.fit import Fit
from sim2real_eval.fitting.validation import AFTER, BEFORE, HELD_OUT
from sim2real_eval.report.plain_table import plain_table

__all__ = ['fit_gain_table', 'fit_parameter_table']


def fit_parameter_table(fit: Fit) -> Table:
    """Return a row per parameter: start, fitted value with interval, and what is known of it."""
    level = f'{fit.options.uncertainty.level:.0%}'
    table = plain_table('Parameters', gap=1)
    table.add_column('parameter', overflow='fold')
    for head in ('start', 'fitted', f'{level}\nfrom', '\nto'):
        table.add_column(head, justify='right', no_wrap=True)
    table.add_column('unit', no_wrap=True)
    table.add_column('known', overflow='fold')
    values = fit.evaluations.values[fit.validation.fitted]
    for one, value in zip(fit.parameters, values, strict=True):
        table.add_row(
            Text(one.tuned.name),
            f'{one.tuned.start:.4g}',
            f'{value:.4g}',
            '-' if one.low_open else f'{one.low:.3g}',
            '-' if one.high_open else f'{one.high:.3g}',
            one.tuned.unit,
            one.verdict,
        )
    return table


def fit_gain_table(fit: Fit) -> Table:
    """Return the objective, and VEPD with its interval, before, after and held out."""
    validation = fit.validation
    known = validation.known
    level = f'{known.options.level:.0%}'
    table = plain_table('Real runs against simulated ones: smaller is closer', gap=1)
    table.add_column('model', overflow='fold')
    table.add_column('runs\nreal/sim', justify='right', no_wrap=True)
    own = fit.options.metric != 'vepd'
    if own:
        table.add_column(f'\n{fit.options.metric}', justify='right', style='bold', no_wrap=True)
    table.add_column('\nscore', justify='right', no_wrap=True)
    heads = ('\nVEPD', f'{level}\nfrom', '\nto', 'null\nmedian', '\np-value')
    for head in heads:
        table.add_column(head, justify='right', no_wrap=True)
    objectives = {
        BEFORE: validation.before,
        AFTER: validation.after,
        HELD_OUT: validation.held_out,
    }
    for one in known.models:
        table.add_row(
            one.model,
            f'{one.n_real}/{one.n_sim}',
            *([_number(objectives[one.model])] if own else []),
            _number(validation.scores[one.model]),
            _number(one.distance),
            _number(one.low),
            _number(one.high),
            _number(one.null_median),
            '-' if one.p_value is None else f'{one.p_value:.2g}',
        )
    return table


def _number(value: float | None) -> str:
    return '-' if value is None else f'{value:.4f}'
