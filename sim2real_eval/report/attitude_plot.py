# SPDX-License-Identifier: Apache-2.0
"""Errors of an estimated attitude over time: quaternion components in their bounds, and angles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim2real_eval.attitude.errors import ANGLES, BOUND
from sim2real_eval.attitude.study import AttitudeRun
from sim2real_eval.report.figures import TRUTH_COLOUR, new_figure, save_png, tidy

__all__ = ['attitude_figure', 'save_attitude_plot']

_POINTS = 4000
_ERROR = '#0072B2'
# Scalar part first, as in figure 7 of [Ligorio2015].
_COMPONENTS = (('w', 3), ('x', 0), ('y', 1), ('z', 2))


def attitude_figure(run: AttitudeRun, title: str) -> Figure:
    """Return eight panels: components with 99 % bounds as in [Ligorio2015], and angles.

    The first attitude is far less certain than later ones; the scale is that of the later ones.
    """
    errors = run.errors
    step = max(1, len(errors.stamp_ns) // _POINTS)
    time = errors.time[::step]
    figure = new_figure(11.0, 7.2)
    panels = figure.subplots(4, 2, sharex=True)
    settled = errors.time >= 0.1 * errors.time[-1]
    for (name, i), panel in zip(_COMPONENTS, panels[:, 0], strict=True):
        bound = BOUND * errors.quaternion_std[:, i]
        for side in (-bound, bound):
            panel.plot(time, side[::step], color=TRUTH_COLOUR, linewidth=0.7)
        panel.plot(time, errors.quaternion[::step, i], color=_ERROR, linewidth=0.7)
        inside = 100.0 * errors.inside[i]
        panel.set_title(f'q{name}: {inside:.1f} % inside', fontsize=9)
        most = np.concatenate([bound[settled], np.abs(errors.quaternion[settled, i])]).max()
        panel.set_ylim(-1.4 * most, 1.4 * most)
        _finish(panel)
    for i, name in enumerate(ANGLES):
        panel = panels[i, 1]
        panel.plot(time, np.degrees(errors.angles[::step, i]), color=_ERROR, linewidth=0.7)
        panel.axhline(0.0, color=TRUTH_COLOUR, linewidth=0.5)
        panel.set_title(f'{name} [deg]: RMSE {np.degrees(errors.rmse[i]):.3f}', fontsize=9)
        most = np.degrees(np.abs(errors.angles[settled, i]).max())
        # Of the whole rotation there is an angle without a sign.
        panel.set_ylim(-1.4 * most if name != 'rotation' else 0.0, 1.4 * most)
        _finish(panel)
    figure.legend(
        handles=[
            Line2D([], [], color=_ERROR, label='estimated - true'),
            Line2D([], [], color=TRUTH_COLOUR, linewidth=0.7, label='99 % bounds of the filter'),
        ],
        title=title,
        title_fontsize=10,
        fontsize=8,
        ncols=2,
        loc='outside upper center',
        frameon=False,
    )
    figure.supxlabel(
        'time since the first sample [s]; scales are those after the first tenth', fontsize=9
    )
    return figure


def _finish(panel: Axes) -> None:
    panel.grid(visible=True, color='#e5e5e5', linewidth=0.6)
    panel.locator_params(axis='y', nbins=5)
    tidy(panel)


def save_attitude_plot(path: str | Path, run: AttitudeRun, title: str) -> Path:
    """Write the figure as PNG; return its path."""
    return save_png(attitude_figure(run, title), path)
