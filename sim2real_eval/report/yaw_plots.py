# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Yaw of each run beside that of its simulated sensors: over time, error and spectra."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real_eval.common.results import Field
from sim2real_eval.signals.comparison import SignalComparison
from sim2real_eval.signals.prepared import GriddedRun, PreparedQuantity, followed_name
from sim_sensors.core.measurements import FloatArray
from . import palette, style

YAW_COLUMNS = (
    'run', 'path', 'sensor', 'largest_1_min_deg', 'largest_11_min_deg', 'last_trend_deg',
    'rmse_deg',
)  # fmt: skip
"""Errors of yaw in degrees: largest of the first 1 and 11 minutes, trend at the end, RMSE."""

_MAX_RUNS = 12
_DETAIL_S = 20.0
_POINTS = 4000
_DECADES = 12


class _Line(NamedTuple):
    """Yaw of a run by one sensor."""

    sensor: str  # `real` or the label of a model
    ready: PreparedQuantity
    run: GriddedRun
    densities: tuple[FloatArray, FloatArray]  # of yaw and of its error, rad^2/Hz


def save_yaw_plots(folder: Path, comparison: SignalComparison) -> None:
    """Write `yaw_RUN.png` of the first 12 real runs."""
    for name in comparison.names['real'][:_MAX_RUNS]:
        figure = yaw_run_figure(comparison, name)
        style.save_png(figure, folder / f'yaw_{name.replace("/", "_")}.png')


def yaw_rows(comparison: SignalComparison) -> Iterator[tuple[Field, ...]]:
    """Yield the rows of yaw.csv, run by run; see `YAW_COLUMNS`."""
    for name in comparison.names['real']:
        for line in _lines(comparison, name):
            even = line.run.even
            error = np.degrees(np.abs(even.error[:, 0]))
            trend = line.run.trend(line.ready.trend_window(comparison.options))
            largest = [float(error[even.time <= end].max()) for end in (60.0, 660.0)]
            yield (
                name, name.rpartition('_')[0] or name, line.sensor, *largest,
                float(np.degrees(trend[-1, 0])), float(np.sqrt(np.mean(error**2))),
            )  # fmt: skip


def _lines(comparison: SignalComparison, name: str) -> list[_Line]:
    """Return the real run of a name, and the first simulated run of each model that follows it."""
    lines: list[_Line] = []
    real_names = comparison.names['real']
    for label, side, ready in comparison.sides():
        if ready.quantity.name != 'yaw':
            continue
        followed = [followed_name(run, real_names) for run in comparison.names[label]]
        if name not in followed:
            continue
        number = followed.index(name)
        place = number + (len(ready.real) if side != 'real' else 0)
        densities = tuple(
            ready.spectra[kind][place].density[ready.shown, 0] for kind in ('signal', 'error')
        )
        lines.append(_Line(label, ready, ready.runs(side)[number], (densities[0], densities[1])))
    return lines


def yaw_run_figure(comparison: SignalComparison, name: str) -> Figure:
    """Return six panels about the yaw of a run by the real sensor and by each model.

    Yaw over the whole run, after a minute (at the start of runs below 80 s) and at the end, as
    figures 4.2, 4.4 and 4.7 of [Cesenek2019]; the size of the error with its running median (4.9);
    spectra of yaw (4.10) and of its error (4.11).
    """
    figure = style.new_figure(12.0, 6.4)
    (whole, early, end), (error, yaw_psd, error_psd) = figure.subplots(2, 3)
    lines = _lines(comparison, name)
    colours = {'real': palette.REAL_COLOUR, **palette.model_colours(comparison.models)}
    last = min(float(line.run.even.time[-1]) for line in lines)
    minute = 60.0 if last >= 60.0 + _DETAIL_S else 0.0
    parts = ((0.0, last), (minute, minute + _DETAIL_S), (last - _DETAIL_S, last))
    panels = [*zip((whole, early, end), parts, strict=True)]
    window = lines[0].ready.trend_window(comparison.options)
    for line in (*lines[1:], lines[0]):
        wide = 1.6 if line.sensor == 'real' else 0.8
        look: dict[str, Any] = {'color': colours[line.sensor], 'linewidth': wide}
        for panel, (first, final) in panels:
            _draw_part(panel, line, first, final, look)
        step = max(1, len(line.run.even.time) // _POINTS)
        trend = np.degrees(line.run.trend(window)[::step, 0])
        error.plot(line.run.even.time[::step], trend, **look)
        for panel, density in zip((yaw_psd, error_psd), line.densities, strict=True):
            shown = density > 0.0
            panel.loglog(line.ready.frequency[line.ready.shown][shown], density[shown], **look)
    truth = lines[0].run.even
    for panel, (first, final) in panels:
        inside = (truth.time >= first) & (truth.time <= final)
        step = max(1, int(inside.sum()) // _POINTS)
        panel.plot(
            truth.time[inside][::step], np.degrees(truth.true[inside, 0][::step]), '--',
            color=palette.TRUTH_COLOUR, linewidth=0.8,
        )  # fmt: skip
    titles = ('yaw', 'after a minute' if minute else 'at the start', 'at the end')
    for (panel, _), title in zip(panels, titles, strict=True):
        panel.set_title(f'{title} [deg]', fontsize=9)
        panel.set_xlabel('time [s]', fontsize=8)
    error.set_title(f'size of the yaw error [deg], median of {window} samples', fontsize=9)
    error.set_xlabel('time [s]', fontsize=8)
    for panel, title in ((yaw_psd, 'spectrum of yaw'), (error_psd, 'spectrum of its error')):
        panel.set_title(f'{title} [rad²/Hz]', fontsize=9)
        panel.set_xlabel('frequency [Hz]', fontsize=8)
        low, high = panel.get_ylim()
        panel.set_ylim(max(low, high * 10.0**-_DECADES), high)
        panel.minorticks_off()
    for panel in (whole, early, end, error, yaw_psd, error_psd):
        style.tidy(panel, grid=True)
    handles = [style.legend_line(line.sensor, colours[line.sensor]) for line in lines]
    handles.append(style.legend_line('truth', palette.TRUTH_COLOUR, linewidth=0.8, linestyle='--'))
    style.figure_legend(figure, handles, min(len(handles), 6), f'{name}: yaw')
    return figure


def _draw_part(panel: Axes, line: _Line, first: float, final: float, look: dict[str, Any]) -> None:
    even = line.run.even
    inside = (even.time >= first) & (even.time <= final)
    step = max(1, int(inside.sum()) // _POINTS)
    panel.plot(even.time[inside][::step], np.degrees(even.measured[inside, 0][::step]), **look)
