# SPDX-License-Identifier: Apache-2.0
"""Plots of runs: histograms of their scores, as [Mahajan2024], figure 3, and their speeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sim2real_eval.metrics.options import MetricError
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.report.style import (
    REAL_COLOUR,
    TRUTH_COLOUR,
    figure_legend,
    legend_line,
    model_colours,
    new_figure,
    save_png,
    small_multiples,
    tidy,
)
from sim_sensors.core.measurements import FloatArray

_MAX_BINS = 64
_LEAST_BINS = 6


@dataclasses.dataclass(frozen=True)
class HistogramAxis:
    """What a histogram shows: a field of `RunScore`, text under the axis and above the figure.

    Bins are those of the paper, from 0 to `upper`; fewer when the data end before, more when they
    lie beyond, wider when they become too many.
    """

    field: str
    label: str
    title: str
    bin_width: float
    upper: float

    def edges(self, values: Sequence[float]) -> FloatArray:
        """Return bin edges that hold all values, of the paper's width, at least 6 bins.

        The width is doubled until at most 64 bins are left.
        """
        width = self.bin_width
        largest = max(values, default=self.upper)
        count = max(math.floor(largest / width) + 1, _LEAST_BINS)
        while count > _MAX_BINS:
            width *= 2
            count = math.floor(largest / width) + 1
        return np.arange(count + 1, dtype=np.float64) * width


RMSE = HistogramAxis('rmse', 'RMSE of speed [m/s]', 'RMSE of estimated speed', 0.025, 0.8)
ENTROPY = HistogramAxis(
    'entropy_difference',
    'Wiener entropy difference [1]',
    'Wiener entropy difference of estimated and true speed',
    0.00675,
    0.2,
)


def histogram_figure(
    real: Sequence[RunScore],
    sim: Mapping[str, Sequence[RunScore]],
    axis: HistogramAxis,
    *,
    real_label: str = 'real',
) -> Figure:
    """Return small multiples: one panel per model, the real runs as an outline behind each.

    Parameters
    ----------
    real : sequence of RunScore
        Real runs, pooled or of one scenario.
    sim : mapping
        Model to scores.
    axis : HistogramAxis
        `RMSE` or `ENTROPY`.
    real_label : str
        What the runs that count as real are, such as `real` or a label of stand-ins.

    Raises
    ------
    MetricError
        When there is no model, or no real run.

    Examples
    --------
    >>> scores = [RunScore(rmse, 0.2, 0.3, 0.1, 300, 20.0) for rmse in (0.1, 0.2, 0.3)]
    >>> figure = histogram_figure(scores, {'ch_gauss': scores}, RMSE)
    >>> len(figure.axes)
    1
    """
    if not sim or not real:
        raise MetricError('no runs to plot; need real runs and at least one model')
    real_values = [float(getattr(score, axis.field)) for score in real]
    sim_values = {
        model: [float(getattr(score, axis.field)) for score in scores]
        for model, scores in sim.items()
    }
    everything = [*real_values, *(v for values in sim_values.values() for v in values)]
    edges = axis.edges(everything).tolist()
    figure, panels = small_multiples(
        len(sim), 3, (3.1, 2.1), (0.0, 0.9), narrowest=4.6, sharex=True, sharey=True
    )
    colours = model_colours(sim)
    for panel, (model, values) in zip(panels, sim_values.items(), strict=True):
        panel.hist(values, bins=edges, color=colours[model], alpha=0.75)
        panel.hist(real_values, bins=edges, color=REAL_COLOUR, alpha=0.25)
        panel.hist(real_values, bins=edges, histtype='step', color='black', linewidth=1.0)
        panel.set_title(f'{model} ({len(values)} runs)', fontsize=9, color=colours[model])
        panel.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        panel.tick_params(labelbottom=True)
        tidy(panel)
    panels[0].set_xlim(edges[0], edges[-1])
    separator = ': ' if len(sim) >= 3 else '\n'
    figure.suptitle(
        f'{axis.title}{separator}simulated (colour) '
        f'against {len(real)} {real_label} runs (grey, outlined)',
        fontsize=10,
    )
    figure.supxlabel(f'{axis.label}, bins of {edges[1]:.5g}', fontsize=9)
    figure.supylabel('runs', fontsize=9)
    return figure


def save_histograms(
    folder: str | Path,
    real: Sequence[RunScore],
    sim: Mapping[str, Sequence[RunScore]],
    *,
    real_label: str = 'real',
) -> list[Path]:
    """Write `histogram_rmse.png` and `histogram_entropy.png`; return their paths."""
    return [
        save_png(histogram_figure(real, sim, axis, real_label=real_label), Path(folder) / name)
        for name, axis in (('histogram_rmse.png', RMSE), ('histogram_entropy.png', ENTROPY))
    ]


# True and estimated speed, a row of panels per scenario and a column per model.

_ACROSS = 5
_RANGES = 2.0
"""How far beyond the true speeds estimates are drawn, in ranges of the true speeds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Overlay:
    """One real run and, by model, the simulated runs to hold against it: truth and estimate."""

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
    replayed) shows that truth dashed. MetricError when there is nothing to plot.

    The overlays are by label of the row, such as a scenario or a run. `speed_label` says for the
    axis what the speed is, `real_label` what the runs that count as real are, and `about` for the
    title judge and warm-up.
    """
    models = list(dict.fromkeys(model for overlay in overlays.values() for model in overlay.sim))
    if not models:
        raise MetricError('no runs to plot; need at least one overlay with one model')
    colours = model_colours(models)
    # Many models are wrapped, so that the page keeps a readable width.
    columns = min(len(models), _ACROSS)
    blocks = [models[i : i + columns] for i in range(0, len(models), columns)]
    rows = len(overlays) * len(blocks)
    figure = new_figure(max(2.5 * columns + 0.4, 5.2), 1.9 * rows + 1.1)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    lines = [(*item, block) for block in blocks for item in overlays.items()]
    own_truth = False
    for line, (label, overlay, block) in enumerate(lines):
        for column, model in enumerate(block):
            panel: Axes = panels[line][column]
            tidy(panel, grid=True)
            panel.tick_params(labelbottom=True)
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
    simulated = 'estimate, simulated sensors (colour of the model)'
    handles = [
        legend_line('truth', TRUTH_COLOUR, linewidth=1.1),
        legend_line(f'estimate, {real_label} sensors', REAL_COLOUR, linewidth=1.6),
        legend_line(simulated, colours[models[0]], linewidth=1.1),
    ]
    if own_truth:
        handles.append(legend_line('truth, simulated', 'black', linewidth=0.9, linestyle='--'))
    title = f'True and estimated speed{", " if about else ""}{about}'
    figure_legend(figure, handles, len(handles) if columns > 2 else 2, title)
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
