# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw transfer_predicts.png: which measure tells the cost of tuning in simulation.

From benchmarks/results/transfer_predicts.json: `python draw_transfer_predicts.py` in this folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from sim2real_eval.report.palette import BLUE, GREEN, REAL_COLOUR, VERMILION
from sim2real_eval.report.style import figure_legend, new_figure, save_png, tidy

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parents[1] / 'benchmarks' / 'results' / 'transfer_predicts.json'
ESTIMATORS = {'clean': BLUE, 'error_state': VERMILION, 'vqf_kalman': GREEN}


def main() -> None:
    """Write transfer_predicts.png beside this file."""
    results = json.loads(FIGURES.read_text(encoding='utf-8'))
    measures = list(dict.fromkeys(
        row['measure'] for name in ESTIMATORS for row in results[name]['rows']
    ))  # fmt: skip
    figure = new_figure(10.0, 4.2)
    taus, costs = figure.subplots(1, 2, sharey=True)
    for offset, (name, colour) in zip((-0.22, 0.0, 0.22), ESTIMATORS.items(), strict=True):
        rows = results[name]['rows']
        draw_intervals(taus, rows, measures, 'tau', name, colour, offset, 1.0)
        draw_intervals(costs, rows, measures, 'first choice', name, colour, offset, 100.0)
    taus.set_yticks(range(len(measures)), measures, fontsize=9)
    taus.set_ylim(len(measures) - 0.5, -0.5)
    taus.set_xlabel("Kendall's tau with the cost on unseen drives", fontsize=9)
    costs.set_xlabel('extra error of the first choice [%]', fontsize=9)
    costs.set_xscale('symlog', linthresh=10.0)
    costs.set_xticks([0, 5, 10, 20, 50, 100], ['0', '5', '10', '20', '50', '100'])
    figure_legend(figure, taus.get_legend_handles_labels()[0], 3, below=True)
    save_png(figure, HERE / 'transfer_predicts.png')


def draw_intervals(
    axes: Axes,
    rows: list[dict[str, Any]],
    measures: list[str],
    column: str,
    name: str,
    colour: str,
    offset: float,
    scale: float,
) -> None:
    """Draw a mean with its interval for every measure of one estimator."""
    for k, row in enumerate(rows):
        mean, low, high = (scale * value for value in row[column])
        place = measures.index(row['measure']) + offset
        axes.plot([low, high], [place, place], color=colour, linewidth=2.0)
        axes.plot(mean, place, 'o', color=colour, ms=4.5, label=name if k == 0 else None)
    axes.axvline(0.0, color=REAL_COLOUR, linewidth=0.8)
    tidy(axes)


if __name__ == '__main__':
    main()
