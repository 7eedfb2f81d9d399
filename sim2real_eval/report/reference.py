# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plot of a reference trajectory: track and speed with their uncertainties."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.smoother.smoother import horizontal_speed
from sim_sensors.core.measurements import FloatArray
from .palette import BLUE, REAL_COLOUR, TRUTH_COLOUR
from .style import mark_log, new_figure, tidy

# 95 % of a normal distribution in one and in two dimensions, in deviations.
_BAND = 1.95996
_ELLIPSE = 2.44775
_ELLIPSES = 40
_SHOWN = 0.1


def reference_figure(judged: JudgedRun, title: str) -> Figure:
    """Return the track with 95 % ellipses and, over time, the speed and both 95 % half-widths.

    The half-widths are those of position and speed. `judged` must have at least three estimates.
    """
    figure = new_figure(11.0, 5.6)
    grid = figure.add_gridspec(3, 2, width_ratios=(1.15, 1.0))
    _track(figure.add_subplot(grid[:, 0]), judged)
    time = (judged.stamp_ns - judged.stamp_ns[0]) * 1e-9
    speeds = figure.add_subplot(grid[0, 1])
    speed, deviation = horizontal_speed(judged)
    _line(speeds, time, speed, 'horizontal speed [m/s]')
    speeds.fill_between(
        time, np.maximum(speed - _BAND * deviation, 0.0), speed + _BAND * deviation,
        color=BLUE, alpha=0.35, linewidth=0.0,
    )  # fmt: skip
    half = figure.add_subplot(grid[1, 1], sharex=speeds)
    worst = _worst(judged.pose_covariance)
    _line(half, time, _BAND * worst, 'position [m]', colour=TRUTH_COLOUR, label='position [m]')
    half.plot(time, _BAND * deviation, color=BLUE, linewidth=0.9, label='speed [m/s]')
    half.set_ylabel('95 % half-width', fontsize=9)
    half.set_yscale('log')
    mark_log(half.yaxis)
    half.tick_params(labelsize=7)
    half.legend(fontsize=8, frameon=False, ncols=2)
    angle = figure.add_subplot(grid[2, 1], sharex=speeds)
    heading = np.degrees(_BAND * np.sqrt(judged.pose_covariance[:, 5, 5]))
    _line(angle, time, heading, '95 % half-width of heading [deg]', colour=TRUTH_COLOUR)
    angle.set_ylim(bottom=0.0)
    angle.set_xlabel('time since the first fix [s]', fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def _track(panel: Axes, judged: JudgedRun) -> None:
    tidy(panel)
    panel.plot(
        *judged.gps_position[:, :2].T, '.', color=REAL_COLOUR, markersize=2.5, label='fixes'
    )
    panel.plot(*judged.position[:, :2].T, color=BLUE, linewidth=1.0, label='reference')
    marks = np.unique(np.linspace(0, len(judged) - 1, _ELLIPSES).astype(int))
    width = 2.0 * _ELLIPSE * float(np.median(_worst(judged.pose_covariance[marks])))
    extent = float(np.max(np.ptp(judged.position[:, :2], axis=0)))
    # Magnification that makes the ellipses visible; a power of ten is easy to convert back.
    times = 10.0 ** max(0.0, np.floor(np.log10(max(_SHOWN * extent / width, 1.0))))
    for number in marks.tolist():
        values, axes = np.linalg.eigh(judged.pose_covariance[number, :2, :2])
        major, minor = 2.0 * _ELLIPSE * times * np.sqrt(values[::-1])
        panel.add_patch(
            Ellipse(
                (float(judged.position[number, 0]), float(judged.position[number, 1])),
                float(major), float(minor),
                angle=float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))),
                facecolor=BLUE, edgecolor=TRUTH_COLOUR, alpha=0.35, linewidth=0.6,
            )
        )  # fmt: skip
    panel.plot(*judged.position[0, :2], 'o', color=TRUTH_COLOUR, markersize=5, label='start')
    panel.set_aspect('equal', adjustable='datalim')
    panel.set_xlabel('east [m]', fontsize=9)
    panel.set_ylabel('north [m]', fontsize=9)
    enlarged = f', enlarged {times:g} times' if times > 1.0 else ''
    panel.set_title(f'base_link, with 95 % ellipses{enlarged}', fontsize=9)
    panel.legend(fontsize=8, frameon=False)


def _worst(covariance: FloatArray) -> FloatArray:
    """Return the deviation along the worst direction of the plane, (n,)."""
    return np.asarray(np.sqrt(np.linalg.eigvalsh(covariance[:, :2, :2])[:, -1]))


def _line(
    panel: Axes,
    time: FloatArray,
    values: FloatArray,
    label_y: str,
    *,
    colour: str = BLUE,
    label: str = '',
) -> None:
    tidy(panel, grid=True)
    panel.plot(time, values, color=colour, linewidth=0.9, label=label)
    panel.set_ylabel(label_y, fontsize=9)
