# SPDX-License-Identifier: Apache-2.0
"""Real and simulated signals over time and against each other, as in [Ligorio2015], figure 5."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim2real_eval.report.figures import (
    REAL_COLOUR,
    TRUTH_COLOUR,
    model_colours,
    new_figure,
    save_png,
    tidy,
)

if TYPE_CHECKING:
    from sim2real_eval.signals.comparison import SignalComparison
    from sim2real_eval.signals.prepared import PreparedQuantity

__all__ = ['save_series_plots', 'series_figure']

_POINTS = 3000
# Ticks in tesla would need exponents.
_UNITS = {'m/s^2': ('m/s²', 1.0), 'T': ('µT', 1e6)}
_QUANTITIES = ('angular_rate', 'specific_force', 'magnetic_field')


def save_series_plots(folder: str | Path, comparison: SignalComparison) -> list[Path]:
    """Write `signals_<quantity>.png` of the first model that has it; return the paths."""
    written = []
    for quantity in _QUANTITIES:
        for model, found in comparison.prepared.items():
            if quantity in found:
                figure = series_figure(found[quantity], model, comparison.names['real'][0])
                written.append(save_png(figure, Path(folder) / f'signals_{quantity}.png'))
                break
    return written


def series_figure(ready: PreparedQuantity, model: str, name: str) -> Figure:
    """Return a row per axis: real, simulated and true over time; simulated over real.

    Parameters
    ----------
    ready : PreparedQuantity
        One quantity; its first real and first simulated runs are drawn.
    model, name : str
        Of the simulated set and of the real run.
    """
    real, simulated = ready.real[0].sampled, ready.simulated[0].sampled
    labels = ready.quantity.labels()
    colour = model_colours([model])[model]
    figure = new_figure(10.0, 2.2 * len(labels) + 0.9)
    panels = figure.subplots(len(labels), 2, squeeze=False, width_ratios=[3.0, 1.0])
    unit, scale = _UNITS.get(ready.quantity.unit, (ready.quantity.unit, 1.0))
    step = max(1, len(real.time) // _POINTS)
    time = real.time[::step]
    for column, label in enumerate(labels):
        series, dots = panels[column]
        measured = scale * real.measured[::step, column]
        other = scale * np.interp(time, simulated.time, simulated.measured[:, column])
        series.plot(time, measured, color=REAL_COLOUR, linewidth=0.8)
        series.plot(time, other, color=colour, linewidth=0.8, alpha=0.7)
        true = scale * real.true[::step, column]
        series.plot(time, true, '--', color=TRUTH_COLOUR, linewidth=0.8)
        series.set_title(f'{label} [{unit}]', fontsize=9)
        dots.plot(measured, other, '.', color=colour, markersize=1.5, alpha=0.5)
        centre = float(measured[0])
        dots.axline((centre, centre), slope=1.0, color=TRUTH_COLOUR, linewidth=0.7)
        dots.set_title('simulated over real', fontsize=9)
        dots.locator_params(nbins=4)
        for panel in (series, dots):
            panel.grid(visible=True, color='#e5e5e5', linewidth=0.6)
            tidy(panel)
    figure.legend(
        handles=[
            Line2D([], [], color=REAL_COLOUR, label='real'),
            Line2D([], [], color=colour, label=f'simulated: {model}'),
            Line2D([], [], color=TRUTH_COLOUR, linewidth=0.8, linestyle='--', label='truth'),
        ],
        title=f'{name}: real and simulated on the same true motion',
        title_fontsize=10,
        fontsize=8,
        ncols=3,
        loc='outside upper center',
        frameon=False,
    )
    figure.supxlabel('time since the start of the truth [s]', fontsize=9)
    return figure
