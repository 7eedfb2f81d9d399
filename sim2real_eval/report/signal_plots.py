# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plots of a comparison of signals: errors, trends, spectra, and signals over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim2real_eval.signals.comparison import SignalComparison
from sim2real_eval.signals.measured import SensorSeries
from sim2real_eval.signals.prepared import PreparedQuantity
from . import palette, style
from .yaw_plots import save_yaw_plots

UNITS = {'m/s^2': ('m/s²', 1.0), 'T': ('µT', 1e6)}
"""Displayed units and their number per SI unit; ticks in tesla would need exponents."""

_QUANTITIES = ('angular_rate', 'specific_force', 'magnetic_field')


def save_series_plots(folder: Path, comparison: SignalComparison) -> None:
    """Write `signals_<quantity>.png` of the first model that has the quantity."""
    for quantity in _QUANTITIES:
        for model, quantities in comparison.prepared.items():
            if quantity in quantities:
                ready = quantities[quantity]
                series = ready.real[0].sampled, ready.simulated[0].sampled
                figure = series_figure(*series, model, comparison.names['real'][0])
                style.save_png(figure, folder / f'signals_{quantity}.png')
                break


def series_figure(real: SensorSeries, simulated: SensorSeries, model: str, name: str) -> Figure:
    """Return a row of panels per axis: signals over time, and simulated over real.

    `model` and `name` are those of the simulated set and of the real run.
    """
    labels = real.quantity.labels()
    colour = palette.model_colours([model])[model]
    figure = style.new_figure(10.0, 2.2 * len(labels) + 0.9)
    panels = figure.subplots(len(labels), 2, squeeze=False, width_ratios=[3.0, 1.0])
    unit, scale = UNITS.get(real.quantity.unit, (real.quantity.unit, 1.0))
    step = max(1, len(real.time) // _POINTS)
    time = real.time[::step]
    for column, label in enumerate(labels):
        series, dots = panels[column]
        measured = scale * real.measured[::step, column]
        other = scale * np.interp(time, simulated.time, simulated.measured[:, column])
        series.plot(time, measured, color=palette.REAL_COLOUR, linewidth=0.8)
        series.plot(time, other, color=colour, linewidth=0.8, alpha=0.7)
        true = scale * real.true[::step, column]
        series.plot(time, true, '--', color=palette.TRUTH_COLOUR, linewidth=0.8)
        series.set_title(f'{label} [{unit}]', fontsize=9)
        dots.plot(measured, other, '.', color=colour, markersize=1.5, alpha=0.5)
        centre = float(np.nanmean(measured))
        dots.axline((centre, centre), slope=1.0, color=palette.TRUTH_COLOUR, linewidth=0.7)
        dots.set_title('simulated over real', fontsize=9)
        dots.locator_params(nbins=4)
        for panel in (series, dots):
            style.tidy(panel, grid=True)
    handles = [
        style.legend_line('real', palette.REAL_COLOUR),
        style.legend_line(f'simulated: {model}', colour),
        style.legend_line('truth', palette.TRUTH_COLOUR, linewidth=0.8, linestyle='--'),
    ]
    style.figure_legend(figure, handles, 3, f'{name}: real and simulated on the same true motion')
    figure.supxlabel('time since the start of the truth [s]', fontsize=9)
    return figure


_COLUMNS = 4
_POINTS = 3000
_LINE_POINTS = 4000
_OWN_SCALE = 8.0
_DECADES = 12
_TRUTH = 'truth (real runs)'
_KINDS = {'error': 'errors', 'signal': 'signals'}

PLOTS = ('yaw_*.png', 'psd_*.png', 'scatter.png', 'signals_*.png')
"""Globs of all possible plots."""


def save_signal_plots(folder: Path, comparison: SignalComparison) -> None:
    """Write the plots of all available signals."""
    quantities = [name for ready in comparison.prepared.values() for name in ready]
    if 'yaw' in quantities:
        style.save_png(yaw_figure(comparison), folder / 'yaw_error.png')
        save_yaw_plots(folder, comparison)
    for kind, name in _KINDS.items():
        style.save_png(psd_figure(comparison, kind), folder / f'psd_{name}.png')
    if {'angular_rate', 'specific_force'} & {*quantities}:
        style.save_png(scatter_figure(comparison), folder / 'scatter.png')
    if 'magnetic_field' in quantities:
        save_series_plots(folder, comparison)


def save_track_plot(folder: Path, comparison: SignalComparison) -> None:
    """Write `signals_feature.png` of the compared feature, as figure 6 of [Ligorio2015]."""
    if comparison.track is not None:
        model, real, simulated = comparison.track
        figure = series_figure(real, simulated, model, comparison.names['real'][0])
        style.save_png(figure, folder / 'signals_feature.png')


def _panels(
    comparison: SignalComparison, quantity: str
) -> list[tuple[str, PreparedQuantity, str]]:
    """Return label, quantity and side of the panels: the real runs, then each model."""
    return [
        (label, ready, side)
        for label, side, ready in comparison.sides()
        if ready.quantity.name == quantity
    ]


def _colours(comparison: SignalComparison) -> dict[str, str]:
    return {'real': palette.REAL_COLOUR, **palette.model_colours(comparison.models)}


def yaw_figure(comparison: SignalComparison) -> Figure:
    """Return the yaw error over time, real and simulated side by side.

    Thin lines are the errors of the runs, thick lines their running medians. All panels have one
    scale, unless the largest errors of two panels differ more than eightfold.
    """
    panels = _panels(comparison, 'yaw')
    rows = math.ceil(len(panels) / _COLUMNS)
    # The rows have similar lengths: five panels are three and two, not four and one.
    columns = math.ceil(len(panels) / rows)
    largest = [
        max(float(np.abs(run.even.error).max()) for run in ready.runs(side))
        for _, ready, side in panels
    ]
    # A panel without any error fits every scale.
    errors = [error for error in largest if error > 1e-9] or [0.0]
    shared = max(errors) <= _OWN_SCALE * min(errors)
    figure, axes = style.small_multiples(
        len(panels), columns, (3.2, 2.7), (0.0, 0.7), narrowest=6.4, sharex=True, sharey=shared
    )
    colours = _colours(comparison)
    windows = set()
    for panel, (label, ready, side) in zip(axes, panels, strict=True):
        window = ready.trend_window(comparison.options)
        windows.add(f'{window} samples ({window / ready.rate:.2g} s)')
        runs = ready.runs(side)
        dark = palette.TRUTH_COLOUR if side == 'real' else colours[label]
        for run in runs:
            step = max(1, len(run.even.time) // _LINE_POINTS)
            error = np.degrees(np.abs(run.even.error[::step, 0]))
            trend = np.degrees(run.trend(window)[::step, 0])
            time = run.even.time[::step].copy()
            panel.plot(time, error, color=colours[label], linewidth=0.5, alpha=0.45)
            panel.plot(time, trend, color=dark, linewidth=1.1, alpha=1.0 if len(runs) < 4 else 0.7)
        title = f'{label} ({len(runs)} run{"s" if len(runs) > 1 else ""})'
        panel.set_title(title, fontsize=9, color=dark)
        panel.tick_params(labelbottom=True, labelleft=True)
        style.tidy(panel, grid=True)
    for panel, highest in zip(axes, largest, strict=True):
        panel.set_ylim(0.0, 1.05 * math.degrees(max(largest) if shared else highest) or 1.0)
    scales = '' if shared else '; each panel has its own scale'
    figure.suptitle(
        f'Yaw error: thin, and its median over {" or ".join(sorted(windows))}: thick{scales}',
        fontsize=10,
    )
    figure.supxlabel('time since the start of the truth [s]', fontsize=9)
    figure.supylabel('|measured - true yaw| [deg]', fontsize=9)
    return figure


def psd_figure(comparison: SignalComparison, kind: str) -> Figure:
    """Return a panel per signal with the spectra of real and simulated runs.

    Each panel spans at most 12 decades, because smaller values are due to rounding. `kind` is
    `error` or `signal`. With `signal`, the true signal of the real runs is drawn as a dashed line.
    """
    signals = list(dict.fromkeys(row.signal for row in comparison.rows))
    figure, axes = style.small_multiples(
        len(signals), 3, (3.3, 2.3), (0.0, 0.8), narrowest=6.6, sharex=True
    )
    # Each quantity with three axes fills a row; scalar quantities follow.
    order = sorted(signals, key=lambda signal: (signal == 'yaw', signals.index(signal)))
    panels = dict(zip(order, axes, strict=True))
    colours = _colours(comparison)
    styles: dict[str, dict[str, Any]] = {
        label: {'color': colour, 'linewidth': 0.9} for label, colour in colours.items()
    }
    styles['real'] |= {'linewidth': 2.2, 'zorder': 1.9}
    if kind == 'signal':
        styles[_TRUTH] = {
            'color': palette.TRUTH_COLOUR,
            'linewidth': 0.8,
            'linestyle': '--',
            'zorder': 1,
        }
    units = {row.signal: _unit(row.unit) for row in comparison.rows}
    for label, side, ready in comparison.sides():
        rows = ready.shown
        drawn = {label: ready.density(kind, side)[rows]}
        if side == 'real' and kind == 'signal':
            drawn[_TRUTH] = ready.density('true', side)[rows]
        for column, signal in enumerate(ready.quantity.labels()):
            for name, density in drawn.items():
                if not np.any(density[:, column] > 0.0):
                    continue  # a zero error cannot be drawn on a logarithmic axis
                panels[signal].loglog(ready.frequency[rows], density[:, column], **styles[name])
    for signal, panel in panels.items():
        unit = f'({units[signal]})' if '/' in units[signal] else units[signal]
        panel.set_title(f'{signal} [{unit}²/Hz]', fontsize=9)
        if panel.lines:
            low, high = panel.get_ylim()
            panel.set_ylim(max(low, high * 10.0**-_DECADES), high)
        else:
            panel.set_yticks([])
            panel.text(0.5, 0.5, 'nil', transform=panel.transAxes, ha='center', fontsize=8)
        # Minor ticks have no room between the powers of ten and are slow to place.
        panel.minorticks_off()
        panel.tick_params(labelbottom=True)
        style.tidy(panel, grid=True)
    title = f'Power spectral density of the {_KINDS[kind]} (Welch, mean over runs)'
    handles = [Line2D([], [], label=name, **look) for name, look in styles.items()]
    columns = math.ceil(len(styles) / math.ceil(len(styles) / 5))
    style.figure_legend(figure, handles, columns, title)
    figure.supxlabel('frequency [Hz]', fontsize=9)
    return figure


def _unit(unit: str) -> str:
    return unit.replace('^2', '²')


def scatter_figure(comparison: SignalComparison) -> Figure:
    """Return measured over true rates and forces, a row for the real runs and for each model.

    R is the same as in the tables: the mean over the runs. The correlation of all dots together is
    larger if the motions of the runs differ, and smaller if their biases differ.
    """
    found = (_panels(comparison, name) for name in ('angular_rate', 'specific_force'))
    blocks = [panels for panels in found if panels]
    rows = len(blocks[0])
    figure = style.new_figure(6.0 * len(blocks), 2.0 * rows + 0.8)
    axes = figure.subplots(rows, 3 * len(blocks), squeeze=False, sharex='col', sharey='col')
    colours = _colours(comparison)
    for row, beside in enumerate(zip(*blocks, strict=True)):
        for block, (label, ready, side) in enumerate(beside):
            for column, signal in enumerate(ready.quantity.labels()):
                panel = axes[row][3 * block + column]
                runs = ready.runs(side)
                points_per_run = max(1, _POINTS // len(runs))
                for run in runs:
                    sampled = run.sampled
                    step = max(1, len(sampled.time) // points_per_run)
                    points = []
                    for values in (sampled.true, sampled.measured):
                        points.append(values[::step, column].copy())
                    panel.plot(
                        *points, '.',
                        color=colours[label], markersize=1.5, alpha=0.5, zorder=2,
                    )  # fmt: skip
                # The line passes through the data, so that the plot need not contain the origin.
                centre = float(runs[0].sampled.true[0, column])
                panel.axline(
                    (centre, centre),
                    slope=1.0,
                    color=palette.TRUTH_COLOUR,
                    linewidth=0.7,
                    zorder=3,
                )
                correlation = _correlation(comparison, label, signal)
                text = 'R -' if correlation is None else f'R {correlation:.3f}'
                panel.text(0.04, 0.95, text, transform=panel.transAxes, fontsize=8, va='top')
                if row == 0:
                    panel.set_title(f'{signal} [{_unit(ready.quantity.unit)}]', fontsize=8)
                if block == column == 0:
                    panel.set_ylabel(label, fontsize=9)
                style.tidy(panel)
    several = any(len(ready.runs(side)) > 1 for _, ready, side in blocks[0])
    meaning = 'mean over the runs' if several else 'correlation coefficient'
    figure.suptitle(
        f'Measured over true values; on the line they are equal. R: {meaning}', fontsize=10
    )
    figure.supxlabel('true', fontsize=9)
    figure.supylabel('measured', fontsize=9)
    return figure


def _correlation(comparison: SignalComparison, label: str, signal: str) -> float | None:
    for row in comparison.rows:
        if row.signal == signal and label in ('real', row.model):
            return row.real.correlation if label == 'real' else row.simulated.correlation
    return None
