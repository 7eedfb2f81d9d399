# SPDX-License-Identifier: Apache-2.0
"""Overlays of true and estimated speed, a row of panels per scenario and a column per model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim2real_eval.metrics.options import MetricError
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.report.style import (
    REAL_COLOUR,
    TRUTH_COLOUR,
    model_colours,
    new_figure,
    save_png,
    tidy,
)

_COLUMNS = 5
_RANGES = 2.0
"""How far beyond the true speeds estimates are drawn, in ranges of the true speeds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Overlay:
    """One real run and the simulated runs to hold against it.

    Attributes
    ----------
    real : VelocitySeries
        Truth and estimate from the real sensors.
    sim : mapping
        Model to truth and estimate from the simulated sensors.
    """

    real: VelocitySeries
    sim: Mapping[str, VelocitySeries]


def overlay_figure(
    overlays: Mapping[str, Overlay],
    *,
    speed_label: str = 'horizontal speed',
    real_label: str = 'real',
    about: str = '',
) -> Figure:
    """Return small multiples of speed over time.

    Black is the truth of the real run, grey the estimate from real sensors, colour the estimate
    from simulated ones. A simulated run with a truth of its own (another drive, not the real truth
    replayed) shows that truth dashed.

    Parameters
    ----------
    overlays : mapping
        Label of the row, such as a scenario or a run, to the runs in it.
    speed_label : str
        What the speed is, for the axis.
    real_label : str
        What the runs that count as real are, such as `real` or a label of stand-ins.
    about : str
        Judge and warm-up, for the title.

    Raises
    ------
    MetricError
        When there is nothing to plot.
    """
    models = list(dict.fromkeys(model for overlay in overlays.values() for model in overlay.sim))
    if not models:
        raise MetricError('no runs to plot; need at least one overlay with one model')
    colours = model_colours(models)
    # Many models are wrapped, so that the page keeps a readable width.
    columns = min(len(models), _COLUMNS)
    blocks = [models[i : i + columns] for i in range(0, len(models), columns)]
    rows = len(overlays) * len(blocks)
    figure = new_figure(max(2.5 * columns + 0.4, 5.2), 1.9 * rows + 1.1)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    lines = [(*item, block) for block in blocks for item in overlays.items()]
    own_truth = False
    for line, (label, overlay, block) in enumerate(lines):
        for column, model in enumerate(block):
            panel: Axes = panels[line][column]
            tidy(panel)
            panel.tick_params(labelbottom=True)
            panel.grid(visible=True, color='#e5e5e5', linewidth=0.6)
            if line % len(overlays) == 0:
                panel.set_title(model, fontsize=9, color=colours[model])
            if column == 0:
                panel.set_ylabel(label, fontsize=9)
            own_truth |= _draw(panel, overlay, model, colours[model])
        for unused in panels[line][len(block) :]:
            unused.remove()
    _clip(panels, lines)
    figure.supxlabel('time since the start of what is compared [s]', fontsize=9)
    figure.supylabel(f'{speed_label} [m/s]', fontsize=9)
    handles = [
        Line2D([], [], color=TRUTH_COLOUR, linewidth=1.1, label='truth'),
        Line2D([], [], color=REAL_COLOUR, linewidth=1.6, label=f'estimate, {real_label} sensors'),
        Line2D([], [], color=colours[models[0]], linewidth=1.1),
    ]
    if own_truth:
        handles.append(
            Line2D([], [], color='black', linewidth=0.9, linestyle='--', label='truth, simulated')
        )
    handles[2].set_label('estimate, simulated sensors (colour of the model)')
    figure.legend(
        handles=handles,
        title=f'True and estimated speed{", " if about else ""}{about}',
        title_fontsize=10,
        loc='outside upper center',
        ncols=len(handles) if columns > 2 else 2,
        fontsize=8,
        frameon=False,
    )
    return figure


def _draw(panel: Axes, overlay: Overlay, model: str, colour: str) -> bool:
    """Draw one panel; say whether the simulated run has a truth of its own."""
    real, sim = overlay.real, overlay.sim.get(model)
    # Truth lies on top but thin, so that an estimate that follows it stays visible around it.
    _plot_estimate(panel, real, color=REAL_COLOUR, linewidth=1.8, zorder=2)
    panel.plot(real.gt_time, real.gt_vel, color=TRUTH_COLOUR, linewidth=0.9, zorder=4)
    if sim is None:
        panel.text(0.5, 0.5, 'no run', transform=panel.transAxes, ha='center', fontsize=8)
        return False
    _plot_estimate(panel, sim, color=colour, linewidth=1.1, zorder=3)
    if np.array_equal(sim.gt_time, real.gt_time) and np.array_equal(sim.gt_vel, real.gt_vel):
        return False
    panel.plot(sim.gt_time, sim.gt_vel, color='black', linewidth=0.9, linestyle='--', zorder=5)
    return True


def _clip(panels: Any, lines: Sequence[tuple[str, Overlay, list[str]]]) -> None:
    """Limit the common axis where an estimate leaves the truth by far, and say so in its panel."""
    speeds = np.concatenate([overlay.real.gt_vel for _, overlay, _ in lines])
    low, high = float(speeds.min()), float(speeds.max())
    span = max(high - low, abs(high), 0.1)
    floor, top = low - _RANGES * span, high + _RANGES * span
    seen = [low, high]
    clipped = False
    for line, (_, overlay, block) in enumerate(lines):
        for column, model in enumerate(block):
            series = [overlay.real, *([overlay.sim[model]] if model in overlay.sim else [])]
            shown = np.concatenate([one.se_vel[one.se_time <= one.gt_time[-1]] for one in series])
            if not len(shown):
                continue
            seen += [max(float(shown.min()), floor), min(float(shown.max()), top)]
            if shown.min() >= floor and shown.max() <= top:
                continue
            clipped = True
            panel: Axes = panels[line][column]
            text = f'clipped, up to {np.abs(shown).max():.2g} m/s'
            panel.text(0.5, 0.97, text, transform=panel.transAxes, ha='center', va='top',
                       fontsize=7, zorder=6)  # fmt: skip
    if clipped:
        margin = 0.05 * (max(seen) - min(seen))
        panels[0][0].set_ylim(min(seen) - margin, max(seen) + 2.0 * margin)


def _plot_estimate(panel: Axes, series: VelocitySeries, **style: Any) -> None:
    """Plot an estimate as far as there is truth; beyond it the judge only predicts."""
    known = series.se_time <= series.gt_time[-1]
    panel.plot(series.se_time[known], series.se_vel[known], **style)


def save_overlays(
    path: str | Path,
    overlays: Mapping[str, Overlay],
    *,
    speed_label: str = 'horizontal speed',
    real_label: str = 'real',
    about: str = '',
) -> Path:
    """Write the overlays as PNG; see `overlay_figure`."""
    figure = overlay_figure(overlays, speed_label=speed_label, real_label=real_label, about=about)
    return save_png(figure, path)
