# SPDX-License-Identifier: Apache-2.0
"""Histograms of the scores of real and simulated runs, as [Mahajan2024], figure 3."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sim2real_eval.metrics.options import MetricError
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.report.style import REAL_COLOUR, model_colours, new_figure, save_png, tidy
from sim_sensors.core.measurements import FloatArray

_MAX_BINS = 64
_LEAST_BINS = 6


@dataclasses.dataclass(frozen=True)
class HistogramAxis:
    """What a histogram shows.

    Attributes
    ----------
    field : str
        Field of `RunScore`.
    label : str
        Text under the axis, with unit.
    title : str
        Text above the figure.
    bin_width, upper : float
        Bins of the paper, from 0 to `upper`; fewer when the data end before, more when they lie
        beyond, wider when they become too many.
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


# Histograms of the scores of real and simulated runs, as figure 3 of the VEPD paper.

_COLUMNS = 3


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
    edges = axis.edges([*real_values, *(v for values in sim_values.values() for v in values)])
    columns = min(_COLUMNS, len(sim))
    rows = math.ceil(len(sim) / columns)
    figure = new_figure(max(3.1 * columns, 4.6), 2.1 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    colours = model_colours(sim)
    for index, (model, values) in enumerate(sim_values.items()):
        panel = panels.flat[index]
        panel.hist(values, bins=edges, color=colours[model], alpha=0.75)
        panel.hist(real_values, bins=edges, color=REAL_COLOUR, alpha=0.25)
        panel.hist(real_values, bins=edges, histtype='step', color='black', linewidth=1.0)
        panel.set_title(f'{model} ({len(values)} runs)', fontsize=9, color=colours[model])
        panel.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        panel.tick_params(labelbottom=True)
        tidy(panel)
    for panel in panels.flat[len(sim) :]:
        panel.remove()
    panels.flat[0].set_xlim(edges[0], edges[-1])
    separator = ': ' if columns == _COLUMNS else '\n'
    figure.suptitle(
        f'{axis.title}{separator}simulated (colour) '
        f'against {len(real)} {real_label} runs (grey, outlined)',
        fontsize=10,
    )
    width = f'{edges[1]:.5g}'
    figure.supxlabel(f'{axis.label}, bins of {width}', fontsize=9)
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
