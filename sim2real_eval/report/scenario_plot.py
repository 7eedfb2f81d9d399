# SPDX-License-Identifier: Apache-2.0
"""Errors of many predictions beside the ellipses of their predicted and their found covariance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import chi2

from sim2real_eval.preintegration.study import ScenarioStudy
from sim2real_eval.report.figures import REAL_COLOUR, new_figure, save_png, tidy
from sim_sensors.measurements import FloatArray

__all__ = ['save_scenario_plot', 'scenario_figure']

_PREDICTED = '#0072B2'
_FOUND = '#D55E00'
_SHARE = 0.95
_LABELS = (
    'rotation about {} [rad]',
    'position {} [m]',
    'velocity {} [m/s]',
    'accelerometer bias {} [m/s²]',
    'gyroscope bias {} [rad/s]',
)
# Pairs of components: rotations, positions and velocities among themselves, and what couples them
# (gravity turns a tilt about y into a velocity along x).
_PAIRS = ((0, 1), (3, 4), (6, 7), (3, 5), (1, 6), (6, 3))
_BIAS_PAIRS = ((9, 6), (13, 1), (13, 6))


def scenario_figure(study: ScenarioStudy) -> Figure:
    """Return small multiples: a dot per run, 95 % ellipses predicted (line) and found (dashes).

    The title of a panel says how many dots are inside the predicted ellipse; 95 % is meant.
    """
    walking = len(study.components) == 15
    pairs = _PAIRS + (_BIAS_PAIRS if walking else ())
    rows = len(pairs) // 3
    figure = new_figure(9.0, 2.7 * rows + 0.7)
    panels = figure.subplots(rows, 3, squeeze=False)
    for panel, pair in zip(panels.flat, pairs, strict=True):
        _draw(panel, study, list(pair))
    figure.legend(
        handles=[
            Line2D([], [], color=REAL_COLOUR, marker='.', linestyle='', label='a run'),
            Line2D([], [], color=_PREDICTED, linewidth=1.6, label='95 %, predicted'),
            Line2D([], [], color=_FOUND, linewidth=1.6, linestyle='--', label='95 %, found'),
        ],
        title=f'{study.setup.name}: prediction errors after {study.pim.delta_tij():g} s, '
        f'{study.setup.runs} runs, in the axes of the body at the end',
        title_fontsize=10,
        fontsize=8,
        ncols=3,
        loc='outside upper center',
        frameon=False,
    )
    return figure


def _draw(panel: Axes, study: ScenarioStudy, pair: list[int]) -> None:
    block = np.ix_(pair, pair)
    predicted, found = study.predicted_covariance[block], study.estimated_covariance[block]
    errors = study.errors[:, pair]
    panel.plot(
        errors[:, 0], errors[:, 1], '.', color=REAL_COLOUR, markersize=2, alpha=0.5,
        rasterized=True,
    )  # fmt: skip
    panel.plot(*_ellipse(predicted), color=_PREDICTED, linewidth=1.6)
    panel.plot(*_ellipse(found) + errors.mean(axis=0)[:, None], '--', color=_FOUND, linewidth=1.6)
    title = 'no predicted ellipse: no variance'
    if np.linalg.matrix_rank(predicted, hermitian=True) == 2:
        distance = np.sum(errors * np.linalg.solve(predicted, errors.T).T, axis=1)
        inside = float(np.mean(distance < chi2.ppf(_SHARE, 2)))
        title = f'{100.0 * inside:.1f} % inside the predicted'
    panel.set_title(title, fontsize=9)
    for name, i in zip(('x', 'y'), pair, strict=True):
        label = _LABELS[i // 3].format('xyz'[i % 3])
        panel.set(**{f'{name}label': label})
    panel.xaxis.label.set_fontsize(8)
    panel.yaxis.label.set_fontsize(8)
    panel.grid(visible=True, color='#e5e5e5', linewidth=0.6)
    panel.locator_params(nbins=5)
    tidy(panel)


def _ellipse(covariance: FloatArray) -> FloatArray:
    """Return the contour, `(2, n)`, that holds 95 % of a Gaussian."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    size = np.sqrt(chi2.ppf(_SHARE, 2) * np.maximum(values, 0.0))
    return np.asarray((vectors * size) @ circle)


def save_scenario_plot(path: str | Path, study: ScenarioStudy) -> Path:
    """Write the figure as PNG; return its path."""
    return save_png(scenario_figure(study), path)
