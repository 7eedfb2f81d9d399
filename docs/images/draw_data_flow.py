# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw data_flow.svg: from a recording to VEPD.

Run it in this folder, from an environment with the package: `python draw_data_flow.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from draw_graph import INK, arrow, box
from matplotlib.axes import Axes
from matplotlib.figure import Figure

REAL, SIMULATED, MIDDLE = 1.75, 5.15, 3.45
# Centres of the rows.
RECORDING, MODELS, JUDGES, SCORES, DISTANCE = 8.2, 6.5, 4.7, 2.7, 0.7


def main() -> None:
    """Write data_flow.svg beside this file."""
    # Letters are drawn, to look alike everywhere. Ids and date are fixed for equal bytes.
    mpl.rcParams.update({'svg.fonttype': 'path', 'svg.hashsalt': 'data_flow', 'font.size': 9})
    figure = Figure(figsize=(5.4, 6.85))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 6.9)
    axes.set_ylim(0.05, 8.8)
    axes.set_axis_off()
    boxes(axes)
    arrows(axes)
    # A ground of its own: the lines would be lost on a dark page.
    target = Path(__file__).parent / 'data_flow.svg'
    figure.savefig(target, facecolor='white', metadata={'Date': None})


def boxes(axes: Axes) -> None:
    """Draw what computes, the real side on the left."""
    box(axes, MIDDLE, RECORDING, 'recording', 'IMU, GPS and true motion', 'outside', 3.0)
    box(axes, SIMULATED, MODELS, 'sensor models', 'GPS and IMU, with a seed', 'sensor', 2.7)
    for x, name in ((REAL, 'judge'), (SIMULATED, 'the same judge')):
        box(axes, x, JUDGES, name, 'estimates the velocity', 'judge', 2.7)
        box(axes, x, SCORES, 'score of the run', 'RMSE and entropy\ndifference', 'evaluation', 2.7)
    text = 'mean of the distances of RMSE and of entropy\ndifference, with interval and p-value'
    box(axes, MIDDLE, DISTANCE, 'VEPD', text, 'evaluation', 4.6)


def arrows(axes: Axes) -> None:
    """Draw what is handed on."""
    arrow(axes, (2.6, 7.72), (REAL, 5.18), 'recorded\nIMU, GPS', (1.45, 6.5))
    arrow(axes, (4.3, 7.72), (SIMULATED, 6.98), 'true motion', (5.55, 7.4))
    arrow(axes, (SIMULATED, 6.02), (SIMULATED, 5.18), 'IMU, GPS', (5.85, 5.6))
    for x in (REAL, SIMULATED):
        arrow(axes, (x, 4.22), (x, 3.29), 'speed', (x + 0.45, 3.75))
    # The true motion goes between the judges to both scores.
    arrow(axes, (MIDDLE, 7.72), (MIDDLE - 0.35, 3.1))
    arrow(axes, (MIDDLE, 7.72), (MIDDLE + 0.35, 3.1))
    axes.text(
        MIDDLE, 6.2, 'true\nspeed', color=INK, ha='center', size=8, family='monospace',
        bbox={'facecolor': 'white', 'edgecolor': 'none', 'pad': 1.5},
    )  # fmt: skip
    for x, end in ((REAL, 2.6), (SIMULATED, 4.3)):
        side = -1 if x == REAL else 1
        arrow(axes, (x, 2.11), (end, 1.31), 'all runs', (x + side * 0.35, 1.65))


if __name__ == '__main__':
    main()
