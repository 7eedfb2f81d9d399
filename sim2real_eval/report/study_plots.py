# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plots of a study: scores, speeds over time and rankings.

The drawing functions are imported only when a plot is drawn, because that takes 0.4 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sim2real_eval.common.file_list import list_files
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import POOLED, RunScore
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.metrics.uncertainty import Uncertainty
from sim2real_eval.study.outcome import MARK, StudyOutcome
from sim2real_eval.study.run import RunKey
from sim2real_eval.study.secondary_results import side_results
from sim_sensors.core.measurements import FloatArray
from . import palette, style
from .console import count_text, short_number
from .page.figure import thin_line
from .page.tables import Standing, differs, first_distance, representative_runs, standings
from .path_plot import driven_paths
from .ranking_tables import RankLines, metric_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOTS = 'plots'
"""Name of the folder of plots in the folder of a study."""

MAX_DRAWN = 4
"""Largest number of rankings (judges and groups) that have plots."""

_Drawing = tuple[Path, Callable[[], 'Figure']]
_Overlay = tuple[VelocitySeries, Mapping[str, VelocitySeries]]  # real and, by model, simulated


def begin_plots(
    folder: Path, outcome: StudyOutcome, workers: Workers
) -> Callable[[], list[list[Path]]]:
    """Begin to draw a study into plots/ in its folder; return a function that waits for the files.

    Each of the first judges (and groups) has plots of RMSE and entropy of every run, of their
    densities, of the ranking, and of true and estimated speed. Groups of a single scenario, such
    as surfaces, share the plot of speeds. The ranks by other metrics are in metrics.png.
    """
    plots = folder / PLOTS
    synthetic = bool(outcome.record.get('synthetic'))
    real_label = 'stand-in (SYNTHETIC)' if synthetic else 'real'
    warmup = outcome.record['metric'].get('warmup', 0.0)
    left_out = f', first {warmup:g} s left out' if warmup else ''
    figures: dict[Path, Callable[[], Figure]] = {}
    speeds: dict[tuple[Path, str], dict[str, _Overlay]] = {}
    for standing in standings(outcome)[:MAX_DRAWN]:
        place = plots / standing.judge / standing.group
        labels: dict[str, str] = {'real_label': real_label}
        subtitle = f'judge {standing.label}{left_out}'
        scores = {
            model: [run.score for run in runs]
            for model, runs in outcome.by_model(standing.judge, standing.group).items()
        }
        models = {model.model: scores[model.model] for model in standing.pooled_uncertainty.order}
        for name in ('rmse', 'entropy'):
            figures[place / f'{name}.png'] = partial(_scores, scores[REAL], models, name, **labels)
        figures[place / 'density.png'] = partial(
            _densities, scores[REAL], models, subtitle=subtitle, **labels
        )
        figures[place / 'ranking.png'] = partial(
            _ranking, standing.uncertainty, subtitle=subtitle, **labels
        )
        if overlays := _overlays(outcome, standing):
            shared = len(standing.scenarios) == 1
            folder_of_speeds = plots / standing.judge if shared else place
            judge = standing.judge if shared else standing.label
            speeds.setdefault((folder_of_speeds, judge), {}).update(overlays)
    for (place, judge), overlays in speeds.items():
        figures[place / 'velocity.png'] = partial(
            _speeds,
            overlays,
            speed_label=f'{outcome.record["component"]} speed',
            subtitle=f'judge {judge}{left_out}',
            real_label=real_label,
        )
    if paths := driven_paths(outcome, real_label):
        figures[plots / 'paths.png'] = partial(_paths, paths)
    ranks = folder / 'metrics.png'
    list_files(folder, MARK, [path.relative_to(folder) for path in (*figures, ranks)])
    # The slowest plots are drawn first.
    waits = [workers.begin_map(_save, list(figures.items())[::-1])]
    tables = side_results(outcome).overall_metrics[:MAX_DRAWN]
    if lines := [metric_lines(table) for table in tables]:
        waits.append(workers.begin_map(_save, [(ranks, partial(_ranks, lines))]))
    return lambda: [wait() for wait in waits]


def _save(drawing: _Drawing) -> Path:
    from .style import save_png

    path, make = drawing
    return save_png(make(), path)


def _scores(
    real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]], axis: str, **how: Any
) -> Figure:
    from .run_plots import ENTROPY, RMSE, scores_figure

    return scores_figure(real, sim, {'rmse': RMSE, 'entropy': ENTROPY}[axis], **how)


def _densities(
    real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]], **how: Any
) -> Figure:
    from .run_plots import density_figure

    return density_figure(real, sim, **how)


def _ranking(*uncertainty: Any, **labels: Any) -> Figure:

    return ranking_figure(*uncertainty, **labels)


def _speeds(overlays: Mapping[str, _Overlay], **how: Any) -> Figure:
    from .run_plots import Overlay, overlay_figure

    return overlay_figure({name: Overlay(*series) for name, series in overlays.items()}, **how)


def _paths(*paths: Any) -> Figure:
    from .path_plot import paths_figure

    return paths_figure(*paths)


def _ranks(panels: Sequence[RankLines]) -> Figure:

    return ranks_figure(panels)


def _overlays(outcome: StudyOutcome, standing: Standing) -> Mapping[str, _Overlay]:
    """Return runs per scenario on the recording with the (lower) median RMSE of real sensors.

    Simulated sensors that follow other drives are drawn with the first of these.
    """
    overlays: dict[str, _Overlay] = {}
    chosen = representative_runs([run for run in outcome.runs if run.key.judge == standing.judge])
    for scenario in outcome.scenarios:
        keys = chosen.get((standing.group, scenario), [])
        real = next((key for key in keys if key.model == REAL), None)
        if real is None:
            continue
        sim = {key.model: _drawn_series(outcome, key) for key in keys if key != real}
        if sim:
            overlays[real.recording] = _drawn_series(outcome, real), sim
    return overlays


def _drawn_series(outcome: StudyOutcome, key: RunKey) -> VelocitySeries:
    """Return a run thinned to the points that a small plot can show."""
    whole = outcome.series(key)
    # A judge only predicts after the end of the truth.
    with_truth = slice(
        max(1, int(np.searchsorted(whole.se_time, whole.gt_time[-1], side='right')))
    )
    estimate = thin_line(whole.se_time[with_truth], whole.se_vel[with_truth])
    return VelocitySeries(*estimate, *thin_line(whole.gt_time, whole.gt_vel), whole.name)


_ROW = 0.3  # inches
_VERDICTS = {True: palette.UNLIKE_REAL, False: palette.LIKE_REAL, None: palette.UNKNOWN}


def ranking_figure(
    uncertainties: Mapping[str, Uncertainty], *, real_label: str = 'real', subtitle: str = ''
) -> Figure:
    """Return a figure with a panel per scenario and a row per model, the closest on top.

    `uncertainties` maps scenarios to uncertainties; a single scenario is drawn without `all`.
    `real_label` names the recordings; `subtitle` names the judge.
    """
    panels = {
        name: uncertainty
        for name, uncertainty in uncertainties.items()
        if name != POOLED or len(uncertainties) > 2
    }
    rows = [len(uncertainty.models) for uncertainty in panels.values()]
    figure = style.new_figure(7.2, 1.5 + _ROW * sum(rows) + 0.5 * len(rows))
    axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)
    x_min = first_distance(
        [model for uncertainty in panels.values() for model in uncertainty.models]
    )
    if x_min:
        style.log_x(axes.flat[0])
    percent = f'{100 * next(iter(uncertainties.values())).options.level:g} %'
    for axis, (scenario, uncertainty) in zip(axes.flat, panels.items(), strict=True):
        _panel(axis, uncertainty, x_min)
        label = 'all scenarios pooled' if scenario == POOLED else scenario
        paired = ', in pairs' if uncertainty.paired else ''
        axis.set_title(
            f'{label} ({count_text(uncertainty.motions, f"{real_label} motion")}{paired})',
            fontsize=9,
            loc='left',
        )
    axes.flat[0].set_xlim(left=x_min)
    axes.flat[-1].set_xlabel('VEPD' + (', logarithmic' if x_min else ''), fontsize=9)
    verdicts = {
        False: f'no significant difference from {real_label}',
        True: 'differs significantly by VEPD',
        None: 'too few runs to decide',
    }
    models = [(panel, model) for panel in panels.values() for model in panel.models]
    drawn = {differs(*place) for place in models}
    handles: list[Artist] = [
        style.legend_line(label, _VERDICTS[verdict], **_dot(_VERDICTS[verdict]))
        for verdict, label in verdicts.items()
        if verdict in drawn
    ]
    if any(model.high is not None for _, model in models):
        handles.append(
            style.legend_line(f'{percent} interval', palette.REAL_COLOUR, linewidth=1.6)
        )
    if any(model.null_high is not None for _, model in models):
        handles.append(
            Patch(color=palette.REAL_COLOUR, alpha=0.3, label=f'identical sensors ({percent})')
        )
    style.figure_legend(figure, handles, 3, below=True)
    figure.suptitle(f'Distance from {real_label}{", " if subtitle else ""}{subtitle}', fontsize=10)
    return figure


def _dot(colour: str) -> dict[str, Any]:
    """Return the style of a model's dot, which is filled if the model differs from reality."""
    inside = colour if colour == palette.UNLIKE_REAL else 'white'
    return {'marker': 'o', 'markersize': 6, 'markerfacecolor': inside, 'linewidth': 0}


def _panel(axis: Axes, uncertainty: Uncertainty, x_min: float) -> None:
    order = list(uncertainty.order)
    for row, model in enumerate(order):
        if model.null_high is not None:
            axis.barh(row, model.null_high - x_min, height=0.9, left=x_min,
                      color=palette.REAL_COLOUR, alpha=0.3, linewidth=0)  # fmt: skip
        colour = _VERDICTS[differs(uncertainty, model)]
        if model.low is not None and model.high is not None:
            axis.plot([max(model.low, x_min), model.high], [row, row], color=colour, linewidth=1.6)
            if model.low < x_min:
                # The interval begins below a logarithmic axis, often at 0.
                axis.plot(x_min, row, '<', color=colour, markersize=6, clip_on=False)
        axis.plot(model.distance, row, color=colour, **_dot(colour))
    axis.set_yticks(range(len(order)), [model.model for model in order], fontsize=8)
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.grid(axis='x', alpha=0.3)
    style.tidy(axis)
    # Room for the arrows.
    axis.tick_params(axis='y', length=0, pad=6.0)


# The second figure compares many rankings of the same models.

# Models near reality have pale colours. There is one hue, as distances have no neutral middle.
_COLOURS = LinearSegmentedColormap.from_list(
    'distances', ['#EAF2F9', '#9CC4E4', '#3B82B8', '#0B3C68']
)
_DARK = 0.7  # white text has a contrast of 4.5 above this value, black text below it


def ranks_figure(panels: Sequence[RankLines]) -> Figure:
    """Return a figure with a panel per table, a row per model and a column per metric or option.

    The colour is the distance relative to the smallest of its column, on a logarithmic scale.
    A star marks a significant distance.
    """
    across = max(len(panel.lines) for panel in panels)
    heights = [1.6 + 0.24 * len(panel.models) for panel in panels]
    figure = style.new_figure(2.0 + 0.78 * across, sum(heights))
    grid = figure.subplots(len(panels), squeeze=False, height_ratios=heights)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _draw(axes, panel)
    return figure


def _draw(axes: Axes, panel: RankLines) -> None:
    # None becomes NaN.
    values = np.array([line.values for line in panel.lines], dtype=np.float64).T
    order = np.argsort(values[:, 0], kind='stable')
    share = np.stack([_share(column) for column in values.T], axis=1)[order]
    axes.imshow(share, cmap=_COLOURS, vmin=0.0, vmax=1.0, aspect='auto')
    for y, place in enumerate(order):
        for x, line in enumerate(panel.lines):
            value = line.values[place]
            text = '-' if value is None else short_number(value) + '*' * line.marks[place]
            colour = 'white' if share[y, x] > _DARK else 'black'
            axes.text(x, y, text, ha='center', va='center', fontsize=7.5, color=colour)
    models = [panel.models[place] for place in order]
    labels = []
    for number, line in enumerate(panel.lines):
        tau = line.agreement.kendall if number else None
        labels.append(line.label if tau is None else f'{line.label}\ntau {tau:.2f}')
    axes.set_xticks(range(len(labels)), labels, fontsize=8, rotation=30, ha='right')
    axes.set_yticks(range(len(models)), models, fontsize=8)
    axes.set_title(
        f'{panel.title} (* significant; tau: agreement with VEPD)', fontsize=9, loc='left'
    )
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(1, len(labels)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(models)) - 0.5, minor=True)
    axes.grid(which='minor', color='white', linewidth=1.5)
    axes.tick_params(which='both', length=0)


def _share(distances: FloatArray) -> FloatArray:
    """Return the position of distances on the colour scale, on a logarithmic axis.

    The smallest distance is 0. The largest is 1 if it is at least ten times the smallest.
    """
    most = float(np.nanmax(distances, initial=0.0)) or 1.0
    logs = np.log10(np.maximum(distances, most / 1000.0))
    shares: FloatArray = (logs - np.nanmin(logs)) / max(
        float(np.ptp(logs[np.isfinite(logs)])), 1.0
    )
    return shares
