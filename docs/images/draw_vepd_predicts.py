# SPDX-License-Identifier: Apache-2.0
"""Draw vepd_predicts.png: how well VEPD and simpler measures foretell what a model costs.

From benchmarks/results/vepd_predicts.json: `python draw_vepd_predicts.py` in this folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import rankdata

from sim2real_eval.report.palette import BLUE, REAL_COLOUR, VERMILION
from sim2real_eval.report.style import new_figure, save_png, tidy

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parents[1] / 'benchmarks' / 'results' / 'vepd_predicts.json'
OUTCOMES = {
    'loss': 'extra error of a filter\ntuned in simulation',
    'speed': 'error of the\npredicted speed error',
    'position': 'error of the\npredicted position error',
}
JUDGE = 'VEPD, clean'


def main() -> None:
    """Write vepd_predicts.png beside this file."""
    told = json.loads(FIGURES.read_text(encoding='utf-8'))
    figure = new_figure(11.0, 4.6)
    grid = figure.add_gridspec(1, 4, width_ratios=(1.0, 1.0, 1.0, 1.9))
    panels = [figure.add_subplot(grid[k]) for k in range(4)]
    for axes, (outcome, title) in zip(panels, OUTCOMES.items(), strict=False):
        draw_taus(axes, told['rows'], outcome)
        axes.set_title(title, fontsize=9)
        if outcome != 'loss':
            axes.set_yticklabels([])
    draw_ranks(panels[3], told['found'])
    save_png(figure, HERE / 'vepd_predicts.png')


def draw_taus(axes: Axes, rows: list[dict[str, Any]], outcome: str) -> None:
    """Draw Kendall's tau and its interval of every measure."""
    for k, row in enumerate(rows):
        mean, low, high = row[outcome]
        colour = BLUE if row['indicator'].startswith('VEPD') else VERMILION
        axes.plot([low, high], [k, k], color=colour, linewidth=2.0)
        axes.plot(mean, k, 'o', color=colour, markersize=5)
    axes.axvline(0.0, color=REAL_COLOUR, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row['indicator'] for row in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-0.6, 1.0)
    axes.set_xlabel("Kendall's tau", fontsize=9)
    tidy(axes)


def draw_ranks(axes: Axes, found: list[dict[str, Any]]) -> None:
    """Draw the mean rank of every model by VEPD and by the error of the predicted speed error."""
    models = list(found[0])
    x, y = (
        np.mean([rankdata([one[m][key] for m in models]) for one in found], axis=0)
        for key in (JUDGE, 'speed')
    )
    axes.plot([1, len(models)], [1, len(models)], color=REAL_COLOUR, linewidth=0.8)
    for name, across, up in zip(models, x, y, strict=True):
        axes.plot(across, up, 'o', color=BLUE, markersize=5)
        side, gap = ('right', -5) if name == 'matched' else ('left', 5)
        axes.annotate(
            name, (across, up), (gap, 3), textcoords='offset points', fontsize=8, ha=side
        )
    axes.set_xlim(0.5, len(models) + 2.5)
    axes.set_xlabel(f'mean rank by {JUDGE} (1: nearest)', fontsize=9)
    axes.set_ylabel('mean rank by the predicted speed error', fontsize=9)
    tidy(axes)


if __name__ == '__main__':
    main()
