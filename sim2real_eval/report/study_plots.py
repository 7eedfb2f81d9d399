# SPDX-License-Identifier: Apache-2.0
"""Plots of a study: scores as histograms, speeds over time, rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.result import Uncertainty
from sim2real_eval.report.page.ranking import Standing
from sim2real_eval.report.ranking_tables import RankLines, metric_lines, short_number
from sim2real_eval.report.run_plots import Overlay, overlay_figure, save_histograms
from sim2real_eval.report.style import (
    REAL_COLOUR,
    figure_legend,
    legend_line,
    model_colours,
    new_figure,
    save_png,
    tidy,
)

if TYPE_CHECKING:
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.secondary_results import SideResults

PLOTS = 'plots'
"""Folder of the plots in that of a study."""

MOST_DRAWN = 4
"""Judges, or judges and groups, of which there are plots."""


def save_plots(
    folder: Path, outcome: StudyOutcome, standing: list[Standing], side: SideResults
) -> list[Path]:
    """Draw a study into plots/ in its folder; return the files.

    Of each of the first judges (and groups) the histograms of RMSE and entropy, the ranking and
    true and estimated speed; of all together the ranks by other metrics, in metrics.png.
    """
    plots = folder / PLOTS
    synthetic = bool(outcome.record.get('synthetic'))
    real_label = 'stand-in (SYNTHETIC)' if synthetic else 'real'
    warmup = outcome.record['metric'].get('warmup', 0.0)
    left_out = f', first {warmup:g} s left out' if warmup else ''
    files = []
    for one in standing[:MOST_DRAWN]:
        place = plots / one.judge / one.group
        place.mkdir(parents=True, exist_ok=True)
        about = f'judge {one.label}{left_out}'
        scores = {
            model: [run.score for run in runs]
            for model, runs in outcome.by_model(one.judge, one.group).items()
        }
        files += save_histograms(place, scores.pop(REAL), scores, real_label=real_label)
        figures = {'ranking': ranking_figure(one.uncertainty, real_label=real_label, about=about)}
        if overlays := _overlays(outcome, one):
            figures['velocity'] = overlay_figure(
                overlays,
                speed_label=f'{outcome.record["component"]} speed',
                real_label=real_label,
                about=about,
            )
        files += [save_png(figure, place / f'{name}.png') for name, figure in figures.items()]
    if lines := [metric_lines(table) for table in side.overall_metrics[:MOST_DRAWN]]:
        files.append(save_ranks(folder / 'metrics.png', lines))
    return files


def _overlays(outcome: StudyOutcome, standing: Standing) -> dict[str, Overlay]:
    """Pick per scenario the recording whose real RMSE is the (lower) median: neither showcase.

    Simulated sensors that follow drives of their own have no run beside a real one.
    """
    overlays = {}
    for scenario in outcome.scenarios:
        real = outcome.of(standing.judge, REAL, scenario=scenario, group=standing.group)
        if not real:
            continue
        order = np.argsort([run.score.rmse for run in real], kind='stable')
        chosen = real[int(order[(len(real) - 1) // 2])].key
        sim = {
            run.key.model: outcome.series(run.key)
            for run in outcome.runs
            if not run.is_real
            and (run.key.judge, run.key.recording) == (chosen.judge, chosen.recording)
            and run.key.repetition == 1
        }
        if sim:
            overlays[chosen.recording] = Overlay(outcome.series(chosen), sim)
    return overlays


# Distances with intervals, the closest model on top.

_ROW = 0.3  # inches


def ranking_figure(
    known: Mapping[str, Uncertainty], *, real_label: str = 'real', about: str = ''
) -> Figure:
    """Return a panel per scenario: a row per model, the closest on top.

    `known` is what is known by scenario; with one scenario, `all` is left out. `real_label` says
    what the recordings are, `about` under what they were judged.
    """
    panels = {name: one for name, one in known.items() if name != POOLED or len(known) > 2}
    rows = [len(one.models) for one in panels.values()]
    figure = new_figure(7.2, 1.5 + _ROW * sum(rows) + 0.5 * len(rows))
    colours = model_colours(dict.fromkeys(m.model for one in known.values() for m in one.models))
    axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=rows)
    level = next(iter(known.values())).options.level
    for axis, (scenario, one) in zip(axes.flat, panels.items(), strict=True):
        _panel(axis, one, colours)
        label = 'all scenarios pooled' if scenario == POOLED else scenario
        paired = ', in pairs' if one.paired else ''
        axis.set_title(
            f'{label} ({one.motions} {real_label} motions{paired})', fontsize=9, loc='left'
        )
    axes.flat[0].set_xlim(left=0.0)
    axes.flat[-1].set_xlabel('VEPD', fontsize=9)
    identical = f'what identical sensors score, up to {level:.3g}'
    handles: list[Artist] = [
        legend_line('VEPD as measured', 'black', marker='o', linewidth=0),
        legend_line(f'true VEPD, {level:.3g} interval', 'black', linewidth=2.0),
        Patch(color=REAL_COLOUR, alpha=0.3, label=identical),
    ]
    figure_legend(figure, handles, 3, below=True)
    title = 'Distance from reality; models with a common letter do not differ significantly'
    figure.suptitle(f'{title}\n{about}' if about else title, fontsize=10)
    return figure


def _panel(axis: Axes, known: Uncertainty, colours: Mapping[str, str]) -> None:
    order = list(known.order)
    for row, one in enumerate(order):
        if one.null_median is not None and one.null_high is not None:
            axis.barh(row, one.null_high, height=0.9, color=REAL_COLOUR, alpha=0.3, linewidth=0)
            axis.plot(
                [one.null_median] * 2, [row - 0.45, row + 0.45], color=REAL_COLOUR, linewidth=1.0
            )
        colour = colours[one.model]
        if one.low is not None and one.high is not None:
            axis.plot([one.low, one.high], [row, row], color=colour, linewidth=2.0)
        axis.plot(one.distance, row, 'o', color=colour, markersize=5)
    axis.set_yticks(
        range(len(order)),
        [f'{one.model}  {one.significance_groups}'.rstrip() for one in order],
        fontsize=8,
    )
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.grid(axis='x', alpha=0.3)
    tidy(axis)


# Picture of many rankings of the same models: who is near reality in whose eyes.

# One hue: pale is near reality. A rank is an order, and two hues would suggest a middle.
_COLOURS = LinearSegmentedColormap.from_list('ranks', ['#EAF2F9', '#9CC4E4', '#3B82B8', '#0B3C68'])
_DARK = 0.55


def save_ranks(path: str | Path, panels: Sequence[RankLines]) -> Path:
    """Write a panel per table: a line per metric or option, a column per model.

    The colour is the rank, the number the value, and * says that the distance is significant.
    """
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    models = max(len(panel.models) for panel in panels)
    lines = max(len(panel.lines) for panel in panels)
    figure = new_figure(across * (2.3 + 1.0 * models), down * (1.3 + 0.27 * lines))
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, panel)
    return save_png(figure, path)


def _draw(axes: Axes, panel: RankLines) -> None:
    ranks = np.array(
        [[np.nan if rank is None else rank for rank in line.ranks] for line in panel.lines]
    )
    most = max(2, len(panel.models))
    share = (ranks - 1.0) / (most - 1.0)
    axes.imshow(share, cmap=_COLOURS, vmin=0.0, vmax=1.0, aspect='auto')
    for y, line in enumerate(panel.lines):
        for x, (value, mark) in enumerate(zip(line.values, line.marks, strict=True)):
            text, colour = '-', '#666666'
            if value is not None:
                text = short_number(value) + ('*' if mark else '')
                colour = 'white' if share[y, x] > _DARK else 'black'
            axes.text(x, y, text, ha='center', va='center', fontsize=7.5, color=colour)
    labels = [model.replace('_', ' ') for model in panel.models]
    axes.set_xticks(range(len(labels)), labels, fontsize=8, rotation=20, ha='right')
    axes.set_yticks(range(len(panel.lines)), [line.label for line in panel.lines], fontsize=8)
    for y, line in enumerate(panel.lines[1:], start=1):
        tau = line.agreement.kendall
        told = '' if tau is None else f'{tau:.2f}'
        axes.text(len(labels) - 0.42, y, told, fontsize=8, va='center')
    axes.text(len(labels) - 0.42, 0, 'tau', fontsize=8, va='center', style='italic')
    axes.set_title(panel.title, fontsize=9, loc='left')
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(1, len(labels)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(panel.lines)) - 0.5, minor=True)
    axes.grid(which='minor', color='white', linewidth=1.5)
    axes.tick_params(which='minor', length=0)
