# SPDX-License-Identifier: Apache-2.0
"""Plot of a followed run: the paths on a plan, and each error over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sim2real_eval.following import FollowedRun
from sim2real_eval.report.figures import TRUTH_COLOUR, model_colours, new_figure, save_png, tidy

__all__ = ['following_figure', 'save_following']

_LABELS = {
    'distance': 'distance [m]\n(from 1 mm on)',
    'across': 'to the left [m]',
    'along': 'ahead [m]',
    'yaw': 'yaw error [°]',
}
_GRID = '#e5e5e5'
_LEAST_DISTANCE = 1e-3


def following_figure(run: FollowedRun) -> Figure:
    """Return the plan with reference and paths on the left, four errors over time on the right.

    A controller that leaves the reference by far more than its size is cut off on the plan; its
    distance over time, on a logarithmic axis, says how far.
    """
    figure = new_figure(11.0, 6.2)
    plan, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.0, 1.15))[0]
    axes = plan.subplots()
    tidy(axes)
    axes.grid(visible=True, color=_GRID, linewidth=0.6)
    w = run.reference.waypoints
    axes.plot(w.x, w.y, color=TRUTH_COLOUR, linewidth=1.0, label='reference', zorder=5)
    axes.plot(w.x[0], w.y[0], 'o', color=TRUTH_COLOUR, markersize=4, zorder=6)
    panels = right.subplots(len(_LABELS), 1, sharex=True)
    colours = model_colours(run.drives)
    for controller, drive in run.drives.items():
        style = {'color': colours[controller], 'linewidth': 1.2}
        axes.plot(drive.poses[:, 0], drive.poses[:, 1], label=controller, **style)
        for panel, name in zip(panels, _LABELS, strict=True):
            values = getattr(drive.errors, name)
            shown = np.degrees(values) if name == 'yaw' else values
            if name == 'distance':
                # The robot starts on the reference; the logarithm of that says nothing.
                shown = np.where(shown > _LEAST_DISTANCE, shown, np.nan)
            panel.plot(drive.time, shown, **style)
    for panel, label in zip(panels, _LABELS.values(), strict=True):
        tidy(panel)
        panel.grid(visible=True, color=_GRID, linewidth=0.6)
        panel.set_ylabel(label, fontsize=8)
    panels[0].set_yscale('log')
    panels[-1].set_xlabel('time since the first waypoint [s]', fontsize=9)
    margin = 0.15 * max(float(np.ptp(w.x)), float(np.ptp(w.y)), 1.0)
    axes.set_xlim(float(w.x.min()) - margin, float(w.x.max()) + margin)
    axes.set_ylim(float(w.y.min()) - margin, float(w.y.max()) + margin)
    axes.set_aspect('equal', adjustable='box')
    axes.set_anchor('N')
    axes.set_xlabel('x [m]', fontsize=9)
    axes.set_ylabel('y [m]', fontsize=9)
    plan.legend(
        *axes.get_legend_handles_labels(),
        loc='outside upper center',
        ncols=3,
        fontsize=8,
        frameon=False,
        title=f'{run.name}: reference (dot: start) and simulated robot',
        title_fontsize=10,
    )
    right.suptitle('errors of the robot against the reference', fontsize=10)
    return figure


def save_following(path: str | Path, run: FollowedRun) -> Path:
    """Write the plot as PNG; see `following_figure`."""
    return save_png(following_figure(run), path)
