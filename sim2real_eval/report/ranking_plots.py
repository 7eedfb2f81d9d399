# SPDX-License-Identifier: Apache-2.0
"""Plots of rankings: distances with intervals, and ranks by many metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.uncertainty.result import Uncertainty
from sim2real_eval.report.ranking_tables import RankLines, short_number
from sim2real_eval.report.style import REAL_COLOUR, model_colours, new_figure, save_png, tidy

_ROW = 0.3  # inches


def ranking_figure(
    known: Mapping[str, Uncertainty], *, real_label: str = 'real', about: str = ''
) -> Figure:
    """Return a panel per scenario: a row per model, the closest on top.

    Parameters
    ----------
    known : mapping
        Scenario to what is known; with one scenario, `all` is left out.
    real_label : str
        What the recordings are.
    about : str
        Under what it was judged.
    """
    panels = {name: one for name, one in known.items() if name != POOLED or len(known) > 2}
    rows = [len(one.models) for one in panels.values()]
    figure = new_figure(7.2, 1.5 + _ROW * sum(rows) + 0.5 * len(rows))
    colours = model_colours(dict.fromkeys(m.model for one in known.values() for m in one.models))
    axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)
    level = next(iter(known.values())).options.level
    for axis, (scenario, one) in zip(axes.flat, panels.items(), strict=True):
        _panel(axis, one, colours)
        label = 'all scenarios pooled' if scenario == POOLED else scenario
        paired = ', in pairs' if one.paired else ''
        axis.set_title(
            f'{label} ({one.motions} {real_label} motions{paired})', fontsize=9, loc='left'
        )
    axes.flat[0].set_xlim(left=0.0)
    axes.flat[-1].set_xlabel('VEPD', fontsize=9)
    figure.legend(
        handles=[
            Line2D([], [], marker='o', color='black', linewidth=0, label='VEPD as measured'),
            Line2D([], [], color='black', linewidth=2.0, label=f'true VEPD, {level:.3g} interval'),
            Patch(
                color=REAL_COLOUR,
                alpha=0.3,
                label=f'what identical sensors score, up to {level:.3g}',
            ),
        ],
        loc='outside lower center',
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    title = 'Distance from reality; models with a common letter do not differ significantly'
    figure.suptitle(f'{title}\n{about}' if about else title, fontsize=10)
    return figure


def _panel(axis: Axes, known: Uncertainty, colours: Mapping[str, str]) -> None:
    order = list(known.order)
    for row, one in enumerate(order):
        if one.null_median is not None and one.null_high is not None:
            axis.barh(row, one.null_high, height=0.9, color=REAL_COLOUR, alpha=0.3, linewidth=0)
            axis.plot(
                [one.null_median] * 2, [row - 0.45, row + 0.45], color=REAL_COLOUR, linewidth=1.0
            )
        colour = colours[one.model]
        if one.low is not None and one.high is not None:
            axis.plot([one.low, one.high], [row, row], color=colour, linewidth=2.0)
        axis.plot(one.distance, row, 'o', color=colour, markersize=5)
    axis.set_yticks(
        range(len(order)),
        [f'{one.model}  {one.significance_groups}'.rstrip() for one in order],
        fontsize=8,
    )
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.grid(axis='x', alpha=0.3)
    tidy(axis)


def save_ranking(
    path: str | Path,
    known: Mapping[str, Uncertainty],
    *,
    real_label: str = 'real',
    about: str = '',
) -> Path:
    """Write the figure as PNG; return the path."""
    return save_png(ranking_figure(known, real_label=real_label, about=about), path)


# Picture of many rankings of the same models: who is near reality in whose eyes.

# One hue: pale is near reality. A rank is an order, and two hues would suggest a middle.
_COLOURS = LinearSegmentedColormap.from_list('ranks', ['#EAF2F9', '#9CC4E4', '#3B82B8', '#0B3C68'])
_DARK = 0.55
_ACROSS = 2


def save_ranks(path: str | Path, panels: Sequence[RankLines]) -> Path:
    """Write a panel per table: a line per metric or option, a column per model.

    The colour is the rank, the number the value, and * says that the distance is significant.

    Parameters
    ----------
    path : str or Path
    panels : sequence of RankLines
    """
    across = min(_ACROSS, len(panels))
    down = -(-len(panels) // across)
    models = max(len(panel.models) for panel in panels)
    lines = max(len(panel.lines) for panel in panels)
    figure = new_figure(across * (2.3 + 1.0 * models), down * (1.3 + 0.27 * lines))
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, panel)
    return save_png(figure, path)


def _draw(axes: Axes, panel: RankLines) -> None:
    ranks = np.array(
        [[np.nan if rank is None else rank for rank in line.ranks] for line in panel.lines]
    )
    most = max(2, len(panel.models))
    share = (ranks - 1.0) / (most - 1.0)
    axes.imshow(share, cmap=_COLOURS, vmin=0.0, vmax=1.0, aspect='auto')
    for y, line in enumerate(panel.lines):
        for x, (value, mark) in enumerate(zip(line.values, line.marks, strict=True)):
            if value is None:
                axes.text(x, y, '-', ha='center', va='center', fontsize=7.5, color='#666666')
                continue
            axes.text(
                x,
                y,
                short_number(value) + ('*' if mark else ''),
                ha='center',
                va='center',
                fontsize=7.5,
                color='white' if share[y, x] > _DARK else 'black',
            )
    labels = [model.replace('_', ' ') for model in panel.models]
    axes.set_xticks(range(len(labels)), labels, fontsize=8, rotation=20, ha='right')
    axes.set_yticks(range(len(panel.lines)), [line.label for line in panel.lines], fontsize=8)
    for y, line in enumerate(panel.lines[1:], start=1):
        tau = line.agreement.kendall
        told = '' if tau is None else f'{tau:.2f}'
        axes.text(len(labels) - 0.42, y, told, fontsize=8, va='center')
    axes.text(len(labels) - 0.42, 0, 'tau', fontsize=8, va='center', style='italic')
    axes.set_title(panel.title, fontsize=9, loc='left')
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(1, len(labels)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(panel.lines)) - 0.5, minor=True)
    axes.grid(which='minor', color='white', linewidth=1.5)
    axes.tick_params(which='minor', length=0)
