# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plots of runs: their scores, and their speeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series import VelocitySeries
from sim_sensors.core.measurements import FloatArray
from . import palette, style


@dataclasses.dataclass(frozen=True)
class ScoreAxis:
    """A field of `RunScore`, with the axis label and the title of its figure."""

    field: str
    label: str
    title: str


RMSE = ScoreAxis('rmse', 'RMSE of speed [m/s]', 'RMSE of estimated speed')
ENTROPY = ScoreAxis(
    'entropy_difference',
    'Wiener entropy difference [1]',
    'Wiener entropy difference of estimated and true speed',
)

_ROW = 0.3  # inches


def scores_figure(
    real: Sequence[RunScore],
    sim: Mapping[str, Sequence[RunScore]],
    axis: ScoreAxis,
    *,
    real_label: str = 'real',
) -> Figure:
    """Return a row of dots per model, one for each run, over the range of the real runs.

    Parameters
    ----------
    real : sequence of RunScore
        Real runs, pooled or of one scenario.
    sim : mapping
        Model to scores, from top to bottom.
    axis : ScoreAxis
        `RMSE` or `ENTROPY`.
    real_label : str
        Label of the runs that count as real, such as `real` or a label of stand-ins.

    Examples
    --------
    >>> scores = [RunScore(rmse, 0.2, 0.3, 0.1, 300, 20.0) for rmse in (0.1, 0.2, 0.3)]
    >>> figure = scores_figure(scores, {'ch_gauss': scores}, RMSE)
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['real (3)', 'ch_gauss (3)']
    """
    colours = {real_label: palette.REAL_COLOUR, **palette.model_colours(sim)}
    values = {
        name: np.array([float(getattr(score, axis.field)) for score in scores])
        for name, scores in [(real_label, real), *sim.items()]
    }
    figure = style.new_figure(7.2, 1.2 + _ROW * len(values))
    panel = figure.subplots()
    if palette.needs_log_axis(np.concatenate(list(values.values())).tolist()):
        style.log_x(panel)
    lowest, highest = values[real_label].min(), values[real_label].max()
    panel.axvspan(lowest, highest, color=palette.REAL_COLOUR, alpha=0.15, linewidth=0)
    for row, (name, run_scores) in enumerate(values.items()):
        panel.plot([np.median(run_scores)] * 2, [row - 0.36, row + 0.36], color=colours[name])
        panel.plot(run_scores, np.full(len(run_scores), row), 'o', color=colours[name], alpha=0.55,
                   markersize=5, markeredgewidth=0)  # fmt: skip
    labels = [f'{name} ({len(scores)})' for name, scores in values.items()]
    panel.set_yticks(range(len(values)), labels, fontsize=8)
    panel.set_ylim(len(values) - 0.4, -0.6)
    style.tidy(panel, grid=True)
    panel.tick_params(axis='y', length=0)
    panel.set_xlabel(axis.label, fontsize=9)
    figure.suptitle(f'{axis.title}: a dot per run, a line at the median', fontsize=10)
    return figure


def draw_scores(
    axes: Axes, real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]], title: str
) -> None:
    """Draw the entropy difference of each run over its RMSE."""
    colours = palette.model_colours(list(sim))
    sides = [('real', real, palette.REAL_COLOUR, 'o')]
    sides += [(model, runs, colours[model], '^') for model, runs in sim.items()]
    for label, runs, colour, marker in sides:
        axes.scatter(
            [run.rmse for run in runs],
            [run.entropy_difference for run in runs],
            label=f'{label} ({len(runs)})',
            color=colour,
            marker=marker,
            s=20,
        )
    axes.set_xlabel(RMSE.label, fontsize=9)
    axes.set_ylabel(ENTROPY.label, fontsize=9)
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    style.tidy(axes)


def density_figure(
    real: Sequence[RunScore],
    sim: Mapping[str, Sequence[RunScore]],
    *,
    real_label: str = REAL,
    subtitle: str = '',
) -> Figure:
    """Return a row per model: densities of RMSE and of entropy difference, over those of reality.

    These are Figures 3a and 3b of [Mahajan2024]. The kernels are those of the published script
    ([SBEL], `computeEPD.py`): Gaussian, of Scott's width, over all scenarios, without correction
    at 0. Here each curve has its own scale, or a narrow one would flatten the others, and what
    lies below 0 is cut off. Ticks are the runs; equal runs have no curve.

    Examples
    --------
    >>> scores = [RunScore(rmse, 0.2, 0.3, 0.1, 300, 20.0) for rmse in (0.1, 0.2, 0.3)]
    >>> figure = density_figure(scores, {'ch_gauss': scores})
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['RMSE of speed [m/s]', 'Wiener entropy difference [1]']
    """
    rows = {real_label: real, **sim}
    colours = {real_label: palette.REAL_COLOUR, **palette.model_colours(sim)}
    figure = style.new_figure(9.0, 1.3 + 1.7 * _ROW * len(rows))
    panels = figure.subplots(1, 2, sharey=True)
    for panel, axis in zip(panels, (RMSE, ENTROPY), strict=True):
        _draw_densities(panel, rows, axis, colours)
    labels = [f'{name} ({len(scores)})' for name, scores in rows.items()]
    panels[0].set_yticks(range(len(rows)), labels, fontsize=8)
    panels[0].set_ylim(len(rows) - 0.75, -0.9)
    first = 'Densities over all runs' + (f', {subtitle}' if subtitle else '')
    figure.suptitle(
        f'{first}\nEach on its own scale, that of {real_label} in grey; a tick per run',
        fontsize=10,
    )
    return figure


def _draw_densities(
    panel: Axes,
    rows: Mapping[str, Sequence[RunScore]],
    axis: ScoreAxis,
    colours: Mapping[str, str],
) -> None:
    """Draw a density per row over that of the first row, which is reality."""
    values = [np.array([getattr(run, axis.field) for run in runs]) for runs in rows.values()]
    of_real, real_height = _density(values[0])
    for row, (name, scores) in enumerate(zip(rows, values, strict=True)):
        panel.fill_between(
            of_real, row - real_height, row, color=palette.REAL_COLOUR, alpha=0.3, linewidth=0
        )
        at, height = _density(scores)
        panel.plot(at, row - height, color=colours[name], linewidth=1.5)
        panel.plot(scores, np.full(len(scores), row + 0.1), '|', color=colours[name], markersize=5)
    panel.set_xlim(left=0.0)
    style.tidy(panel, grid=True)
    panel.tick_params(axis='y', length=0)
    panel.set_xlabel(axis.label, fontsize=9)


def _density(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points and densities, up to three kernel widths beyond the outermost values."""
    if np.ptp(values) == 0.0:
        return np.zeros(0), np.zeros(0)
    # This import takes half a second, and only one plot needs it.
    from scipy.stats import gaussian_kde

    kernels = gaussian_kde(values)
    beyond = 3.0 * math.sqrt(kernels.covariance[0, 0])
    at = np.linspace(max(values.min() - beyond, 0.0), values.max() + beyond, 200)
    density = kernels(at)
    return at, 0.8 * density / density.max()


def save_scores(
    folder: Path, real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]]
) -> list[Path]:
    """Write `rmse.png` and `entropy.png`; return their paths."""
    return [
        style.save_png(scores_figure(real, sim, axis), folder / name)
        for name, axis in (('rmse.png', RMSE), ('entropy.png', ENTROPY))
    ]


_ACROSS = 5
_RANGES = 2.0
"""Margin for estimates beyond the true speeds, in ranges of the true speeds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Overlay:
    """One real run and, by model, the simulated runs that are compared with it."""

    real: VelocitySeries
    sim: Mapping[str, VelocitySeries]


def overlay_figure(
    overlays: Mapping[str, Overlay],
    *,
    speed_label: str = 'horizontal speed',
    real_label: str = 'real',
    subtitle: str = '',
) -> Figure:
    """Return small multiples of speed over time.

    Black is the truth of the real run, grey the estimate from real sensors, colour the estimate
    from simulated ones. A simulated run with a truth of its own (another drive, not the real truth
    replayed) shows that truth dashed.

    `overlays` maps the label of a row, such as a scenario or a run, to its series. `speed_label`
    is the label of the axis, `real_label` the label of the real runs, and `subtitle` names judge
    and warm-up in the title.
    """
    models = list(dict.fromkeys(model for overlay in overlays.values() for model in overlay.sim))
    colours = palette.model_colours(models)
    # Many models are wrapped, so that the page keeps a readable width.
    columns = min(len(models), _ACROSS)
    blocks = [models[i : i + columns] for i in range(0, len(models), columns)]
    rows = len(overlays) * len(blocks)
    figure = style.new_figure(max(2.5 * columns + 0.4, 6.4), 1.9 * rows + 1.1)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    lines = [(*item, block) for block in blocks for item in overlays.items()]
    own_truth = False
    for line, (label, overlay, block) in enumerate(lines):
        for column, model in enumerate(block):
            panel: Axes = panels[line][column]
            style.tidy(panel, grid=True)
            panel.tick_params(labelbottom=True)
            if line % len(overlays) == 0:
                panel.set_title(model, fontsize=9, loc='left')
            if column == 0:
                panel.set_ylabel(label, fontsize=9)
            own_truth |= _draw(panel, overlay, model, colours[model])
        for unused in panels[line][len(block) :]:
            unused.remove()
    _clip(panels, lines)
    figure.supxlabel('time since the start of the comparison [s]', fontsize=9)
    figure.supylabel(f'{speed_label} [m/s]', fontsize=9)
    handles = [
        style.legend_line('truth', palette.TRUTH_COLOUR, linewidth=1.1),
        style.legend_line(f'estimate, {real_label} sensors', palette.REAL_COLOUR, linewidth=1.6),
        style.legend_line('estimate, simulated sensors', colours[models[0]], linewidth=1.1),
    ]
    if own_truth:
        handles.append(
            style.legend_line('truth, simulated', 'black', linewidth=0.9, linestyle='--')
        )
    title = f'True and estimated speed{", " if subtitle else ""}{subtitle}'
    style.figure_legend(figure, handles, len(handles) if columns > 2 else 2, title)
    return figure


def _draw(panel: Axes, overlay: Overlay, model: str, colour: str) -> bool:
    """Draw one panel; return whether the truth of the simulated run differs from the real one."""
    real, sim = overlay.real, overlay.sim.get(model)
    # Truth lies on top but thin, so that an estimate that follows it stays visible around it.
    _plot_estimate(panel, real, color=palette.REAL_COLOUR, linewidth=1.8, zorder=2)
    panel.plot(real.gt_time, real.gt_vel, color=palette.TRUTH_COLOUR, linewidth=0.9, zorder=4)
    if sim is None:
        panel.text(0.5, 0.5, 'no run', transform=panel.transAxes, ha='center', fontsize=8)
        return False
    _plot_estimate(panel, sim, color=colour, linewidth=1.1, zorder=3)
    if np.array_equal(sim.gt_time, real.gt_time) and np.array_equal(sim.gt_vel, real.gt_vel):
        return False
    panel.plot(sim.gt_time, sim.gt_vel, color='black', linewidth=0.9, linestyle='--', zorder=5)
    return True


def _clip(panels: Any, lines: Sequence[tuple[str, Overlay, list[str]]]) -> None:
    """Limit the common axis if an estimate is far from the truth, and mark its panel."""
    speeds = np.concatenate([overlay.real.gt_vel for _, overlay, _ in lines])
    low, high = float(speeds.min()), float(speeds.max())
    span = max(high - low, abs(high), 0.1)
    floor, top = low - _RANGES * span, high + _RANGES * span
    ends: dict[Axes, tuple[float, float]] = {}
    for line, (_, overlay, block) in enumerate(lines):
        for column, model in enumerate(block):
            series = [overlay.real, *([overlay.sim[model]] if model in overlay.sim else [])]
            estimates = np.concatenate(
                [run.se_vel[run.se_time <= run.gt_time[-1]] for run in series]
            )
            if len(estimates):
                ends[panels[line][column]] = float(estimates.min()), float(estimates.max())
    if all(floor <= least and most <= top for least, most in ends.values()):
        return
    bottom = min(low, *(max(least, floor) for least, _ in ends.values()))
    above = max(high, *(min(most, top) for _, most in ends.values()))
    margin = 0.05 * (above - bottom)
    bottom, above = bottom - margin, above + 2.0 * margin
    panels[0][0].set_ylim(bottom, above)
    for panel, (least, most) in ends.items():
        if least < bottom or most > above:
            # The text is above the axes, so that it covers nothing.
            text = f'cut, up to {max(-least, most):.3g} m/s'
            panel.set_title(text, fontsize=7, loc='right')


def _plot_estimate(panel: Axes, series: VelocitySeries, **look: Any) -> None:
    """Plot an estimate up to the end of the truth, after which the judge only predicts."""
    with_truth = series.se_time <= series.gt_time[-1]
    panel.plot(series.se_time[with_truth], series.se_vel[with_truth], **look)
