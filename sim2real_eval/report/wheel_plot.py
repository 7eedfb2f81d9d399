# SPDX-License-Identifier: Apache-2.0
"""Drift of wheels alone and with a camera: the way of one run, and the error of all over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim2real_eval.report.figures import REAL_COLOUR, new_figure, save_png, tidy
from sim2real_eval.wheel_study import WheelStudy

__all__ = ['save_wheel_plot', 'wheel_figure']

_ALONE = '#D55E00'
_FUSED = '#0072B2'


def wheel_figure(study: WheelStudy) -> Figure:
    """Return a column per variant: the first run from above, below it the errors of all runs."""
    count = len(study.variants)
    figure = new_figure(max(2.6 * count, 5.2) + 0.6, 5.9)
    panels = figure.subplots(2, count, squeeze=False, sharey='row')
    motion = study.driven[0].drive.motion
    time = np.linspace(motion.start, motion.end, 2000)
    true = motion.at(time).position
    for ways, errors, variant in zip(*panels, study.variants, strict=True):
        ways.plot(true[:, 0], true[:, 1], color=REAL_COLOUR, linewidth=2.5, alpha=0.5)
        for drifts, colour in ((variant.odometry, _ALONE), (variant.fused, _FUSED)):
            place = drifts[0].position
            ways.plot(place[:, 0], place[:, 1], color=colour, linewidth=0.9)
            for drift in drifts:
                error = np.maximum(drift.error, 1e-3)
                errors.semilogy(drift.time, error, color=colour, linewidth=0.6, alpha=0.35)
        ways.set_aspect('equal', adjustable='datalim')
        ways.set_title(variant.label, fontsize=9)
        ways.set_xlabel('x [m]', fontsize=8)
        errors.set_xlabel('time [s]', fontsize=8)
        for axes in (ways, errors):
            axes.grid(visible=True, color='#e5e5e5', linewidth=0.6)
            axes.tick_params(labelsize=8)
            tidy(axes)
    first = 'first run' if len(study.driven) == 1 else f'first run of {study.driven[0].drive.name}'
    panels[0, 0].set_ylabel(f'y [m], {first}', fontsize=8)
    panels[1, 0].set_ylabel('error of the place [m], all runs', fontsize=8)
    figure.legend(
        handles=[
            Line2D([], [], color=REAL_COLOUR, linewidth=2.5, alpha=0.5, label='true'),
            Line2D([], [], color=_ALONE, label='wheels alone'),
            Line2D([], [], color=_FUSED, label='wheels and camera'),
        ],
        title=f'{study.title}, {len(study.variants[0].runs)} runs of each',
        title_fontsize=10,
        fontsize=8,
        ncols=3,
        loc='outside upper center',
        frameon=False,
    )
    return figure


def save_wheel_plot(path: str | Path, study: WheelStudy) -> Path:
    """Write the figure as PNG; return its path."""
    return save_png(wheel_figure(study), path)
