# SPDX-License-Identifier: Apache-2.0
"""A receiver at standstill: its fixes, their autocorrelation and stated covariance."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from sim2real_eval.characterization.expected_autocovariance import (
    autocovariance_scatter,
    expected_autocovariance,
)
from sim2real_eval.characterization.gps_characterization import AXIS_NAMES, GpsResult
from sim2real_eval.characterization.markov_likelihood import autocovariance
from sim2real_eval.characterization.walk_fit import even_errors
from sim2real_eval.report.figures import new_figure, save_png, tidy
from sim_sensors.measurements import FloatArray

__all__ = ['gps_figure', 'save_gps_plot']

_COLOURS = ('#0072B2', '#D55E00', '#009E73')
_FIT = '#222222'
_MOST_DOTS = 5000


def gps_figure(result: GpsResult) -> Figure:
    """Return position scatter with 95 % ellipses, autocorrelation with fit, stated deviation with
    fit.
    """
    figure = new_figure(11.5, 4.0)
    scatter, memory, stated = figure.subplots(1, 3)
    _scatter(scatter, result)
    _memory(memory, result)
    _stated(stated, result)
    for panel in (scatter, memory, stated):
        tidy(panel)
    return figure


def save_gps_plot(path: str | Path, result: GpsResult) -> Path:
    """Write the figure as PNG; see `gps_figure`."""
    return save_png(gps_figure(result), path)


def _scale(result: GpsResult) -> tuple[float, str]:
    largest = max(float(np.abs(run.error).max()) for run in result.runs)
    return (1000.0, 'mm') if largest < 0.2 else (1.0, 'm')


def _scatter(panel: Axes, result: GpsResult) -> None:
    factor, unit = _scale(result)
    error = np.concatenate([run.error for run in result.runs])[:, :2] * factor
    thin = max(len(error) // _MOST_DOTS, 1)
    time = np.concatenate([run.time for run in result.runs])
    dots = panel.scatter(
        error[::thin, 0], error[::thin, 1], s=5, c=time[::thin], cmap='viridis', linewidths=0
    )
    bar = panel.figure.colorbar(dots, ax=panel, shrink=0.7)
    bar.set_label('time at standstill [s]', fontsize=8)
    bar.ax.tick_params(labelsize=7)
    blocks = np.concatenate([run.covariance[:, :2, :2] for run in result.runs])
    _ellipse(panel, np.cov(error.T), _FIT, '-', '95 % ellipse of the fixes')
    if result.stated.kind != 'zero' and np.isfinite(blocks).all(axis=(1, 2)).any():
        # A receiver that has just started states far more than it usually does.
        known = blocks[np.isfinite(blocks).all(axis=(1, 2))]
        usual = np.median(known, axis=0) * factor**2
        _ellipse(panel, usual, '#D55E00', '--', '95 % ellipse as usually stated')
    panel.set_aspect('equal', adjustable='datalim')
    panel.autoscale_view()
    panel.set_xlabel(f'east of the mean [{unit}]', fontsize=9)
    panel.set_ylabel(f'north of the mean [{unit}]', fontsize=9)
    panel.set_title(f'{len(error)} fixes, {result.seconds:.4g} s', fontsize=9)
    panel.legend(fontsize=7, frameon=False, loc='upper left')


def _ellipse(panel: Axes, covariance: FloatArray, colour: str, style: str, label: str) -> None:
    values, vectors = np.linalg.eigh(covariance)
    # 95 % of two normal variables: chi-square with two degrees of freedom, 5.991.
    width, height = 2.0 * np.sqrt(5.991 * np.maximum(values, 0.0))
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    patch = Ellipse((0.0, 0.0), width, height, angle=angle, fill=False)
    patch.set(edgecolor=colour, linestyle=style, linewidth=1.2, label=label)
    panel.add_patch(patch)


def _memory(panel: Axes, result: GpsResult) -> None:
    factor, unit = _scale(result)
    pieces, period = even_errors(result.runs)
    if not pieces:
        panel.set_title('no even piece to correlate', fontsize=9)
        return
    longest = max(len(piece) for piece in pieces)
    memory = max((fit.time.value for fit in result.axes if fit.time.observable), default=np.inf)
    lags = int(min(longest // 2, 2000, max(6.0 * memory / period, 20)))
    lag = np.arange(lags + 1) * period
    for axis, name in enumerate(AXIS_NAMES):
        found = autocovariance([piece[:, axis] for piece in pieces], lags)
        panel.plot(
            lag, found * factor**2, color=_COLOURS[axis], linewidth=0, marker='.', markersize=3,
            label=name,
        )  # fmt: skip
        lengths = [len(piece) for piece in pieces]
        model = expected_autocovariance(result.axes[axis], lengths, period, lags)
        scatter = 1.96 * autocovariance_scatter(result.axes[axis], lengths, period, lags)
        panel.plot(lag, model * factor**2, color=_COLOURS[axis], linewidth=1.2)
        panel.fill_between(
            lag, (model - scatter) * factor**2, (model + scatter) * factor**2,
            color=_COLOURS[axis], alpha=0.13, linewidth=0,
        )  # fmt: skip
    panel.axhline(0.0, color='#bbbbbb', linewidth=0.6, zorder=0)
    panel.set_xlabel('lag [s]', fontsize=9)
    panel.set_ylabel(f'autocovariance about the mean [{unit}²]', fontsize=9)
    about = 'dots: fixes; lines: fit, about a mean too\nbands: 95 % of records of the fit'
    panel.set_title(about, fontsize=9)
    panel.legend(fontsize=7, frameon=False)


def _stated(panel: Axes, result: GpsResult) -> None:
    fit = result.stated
    panel.set_title('stated horizontal deviation', fontsize=9)
    if fit.kind == 'zero':
        panel.text(0.5, 0.5, 'none is stated', ha='center', transform=panel.transAxes)
        panel.set_axis_off()
        return
    panel.plot(fit.time, fit.deviation, '.', color='#0072B2', markersize=3, label='stated')
    if fit.kind == 'airsim':
        start, limit, lag = (one.value for one in (fit.start, fit.limit, fit.time_constant))
        hdop = limit + (start - limit) * np.exp(-fit.time / lag)
        panel.set_xlim(0.0, min(12.0 * lag, float(fit.time[-1])))
        label = f'HDOP {start:.3g} → {limit:.3g}, {lag:.3g} s, k = {fit.k:g} m'
        panel.plot(fit.time, fit.k * hdop, color=_FIT, linewidth=1.2, label=label)
    else:
        value = float(np.sqrt(0.5 * (fit.constant[0].value ** 2 + fit.constant[1].value ** 2)))
        panel.axhline(value, color=_FIT, linewidth=1.2, label=f'constant: {value:.3g} m')
    total = np.sqrt(0.5 * sum(one.total.value**2 for one in result.axes[:2]))
    panel.axhline(total, color='#D55E00', linestyle='--', linewidth=1.0, label='as the fixes err')
    panel.set_yscale('log')
    low, high = panel.get_ylim()
    if high < 10.0 * low:
        # Within a decade no power of ten may be left to label.
        middle = math.sqrt(low * high)
        panel.set_ylim(middle / 5.0, middle * 5.0)
    panel.set_xlabel('time since the first fix [s]', fontsize=9)
    panel.set_ylabel('deviation [m]', fontsize=9)
    panel.legend(fontsize=7, frameon=False)
