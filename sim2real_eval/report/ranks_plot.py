# SPDX-License-Identifier: Apache-2.0
"""Picture of many rankings of the same models: who is near reality in whose eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from sim2real_eval.report.figures import new_figure, save_png
from sim2real_eval.report.ranks_table import RankLines, short_number

__all__ = ['save_ranks']

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
