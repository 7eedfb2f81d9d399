# SPDX-License-Identifier: Apache-2.0
"""A fit: tables and plot."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from sim2real_eval.report.console import plain_table
from sim2real_eval.report.style import REAL_COLOUR, new_figure, save_png, tidy
from sim2real_eval.study.fitting.fit import Fit
from sim2real_eval.study.fitting.identification import Identified
from sim2real_eval.study.fitting.objective import METRICS
from sim2real_eval.study.fitting.validation import AFTER, BEFORE, HELD_OUT


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


# Plot of a fit: the objective over each tuned parameter, with what resampling makes of
# it.

_LINE = '#0072B2'
_FITTED = '#D55E00'
_GRID = '#e5e5e5'
_COLUMNS = 2
_STEEP = 20.0


def profile_figure(fit: Fit) -> Figure:
    """Return a panel per parameter: its profile, the band of resamples, start, fit and interval.

    The profile is the objective at each value with all other parameters at their best; the band is
    what 90 % of the resamples say of how much worse than the fit it is. A flat profile inside its
    band is a parameter of which the recordings say nothing.
    """
    columns = min(_COLUMNS, len(fit.parameters))
    rows = math.ceil(len(fit.parameters) / columns)
    figure = new_figure(5.2 * columns + 0.4, 3.3 * rows + 0.9)
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel, one in zip(panels.flat, fit.parameters, strict=False):
        _draw(panel, one, fit)
    for panel in panels.flat[len(fit.parameters) :]:
        panel.remove()
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=3, fontsize=8, frameon=False)
    validation = fit.validation
    held = '' if validation.held_out is None else f', held out {validation.held_out:.3g}'
    figure.suptitle(
        f'{fit.options.metric}: before {validation.before:.3g}, after {validation.after:.3g}'
        f'{held}: {validation.verdict}',
        fontsize=10,
    )
    figure.supylabel(f'objective ({fit.options.metric}), others at their best', fontsize=9)
    return figure


def _draw(panel: Axes, one: Identified, fit: Fit) -> None:
    tidy(panel)
    panel.grid(visible=True, color=_GRID, linewidth=0.6)
    level = f'{fit.options.uncertainty.level:.0%}'
    panel.axvspan(
        one.low, one.high, color=_FITTED, alpha=0.10, linewidth=0.0, label=f'{level} interval'
    )
    panel.fill_between(
        one.values, *np.maximum(one.band, 1e-9), color=_LINE, alpha=0.20, linewidth=0.0,
        label='90 % of resamples',
    )  # fmt: skip
    panel.plot(one.values, one.profile, color=_LINE, linewidth=1.4, label='profile')
    evaluations = fit.evaluations
    kept = evaluations.usable & evaluations.tells
    if len(fit.parameters) == 1:
        values = METRICS[fit.options.metric](fit.real.points, evaluations.points[kept])
        panel.plot(
            evaluations.values[kept, 0], values, 'o', color='black', markersize=3,
            label='judged',
        )  # fmt: skip
    panel.axvline(one.value, color=_FITTED, linewidth=1.2, label='fitted')
    if one.tuned.low <= one.tuned.start <= one.tuned.high:
        panel.axvline(
            one.tuned.start, color=REAL_COLOUR, linewidth=1.2, linestyle='--', label='start'
        )
    if one.tuned.log:
        panel.set_xscale('log')
    panel.set_xlim(one.tuned.low, one.tuned.high)
    top, bottom = float(max(one.profile.max(), one.band[1].max())), float(one.profile.min())
    if bottom > 0.0 and top > _STEEP * bottom:
        # Else the neighbourhood of the fit, which is what matters, lies on the axis.
        panel.set_yscale('log')
        panel.set_ylim(0.5 * bottom, 1.5 * top)
    else:
        panel.set_ylim(0.0, 1.05 * top)
    unit = f' [{one.tuned.unit}]' if one.tuned.unit else ''
    panel.set_xlabel(f'{one.tuned.name}{unit}', fontsize=9)
    panel.set_title(f'{one.value:.4g}: {_short(one)}', fontsize=9)


def _short(one: Identified) -> str:
    return one.verdict.split(':')[0]


def save_profiles(path: str | Path, fit: Fit) -> Path:
    """Write the plot as PNG; see `profile_figure`."""
    return save_png(profile_figure(fit), path)
