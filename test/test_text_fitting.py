# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""No text of a figure leaves the canvas, however long its names are."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from cli_examples import overhang
from matplotlib.figure import Figure
from test_plots import scores, series

from sim2real_eval.benches.following import FollowedRun, follow_waypoints
from sim2real_eval.report import style
from sim2real_eval.report.following import following_figure, wheel_figure
from sim2real_eval.report.run_plots import RMSE, Overlay, density_figure, overlay_figure
from sim2real_eval.report.run_plots import scores_figure as dots_figure
from sim_sensors.following.follower import FollowSettings
from sim_sensors.motion.waypoints import repair_waypoints

SPACED = 'a name of many words ' * 9
LONG = 'name_without_a_single_space_' * 6


def titled_panels(name: str) -> Figure:
    figure, panels = style.small_multiples(6, 3, (2.0, 1.8), (0.5, 0.5))
    for k, panel in enumerate(panels):
        panel.set_title(f'{k} {name}', loc=('left', 'center', 'right')[k % 3])
        panel.set_xlabel(name)
        panel.set_ylabel(name)
    figure.suptitle(name)
    return figure


def labelled_figure(name: str) -> Figure:
    figure = style.new_figure(9.0, 7.0)
    plan, right = figure.subfigures(1, 2, squeeze=False)[0]
    panel = plan.subplots()
    panel.set_yticks(range(3), [f'{k}_{name}' for k in range(3)])
    panel.set_xticks(range(2), [f'{k}_{name}' for k in range(2)], rotation=30)
    handles = [style.legend_line(f'{k} {name}', 'black') for k in range(5)]
    style.figure_legend(plan, handles, 3, name)
    right.suptitle(name)
    right.subplots().legend(handles=handles[:2])
    figure.supxlabel(name)
    figure.supylabel(name)
    return figure


def followed(name: str) -> FollowedRun:
    time = np.arange(0.0, 4.0, 0.2)
    path = repair_waypoints(time, np.sin(time), 1.0 - np.cos(time))
    return follow_waypoints(name, path, FollowSettings(), ['yaw_pid', 'lqr'])


def run_figures(name: str) -> list[Figure]:
    """Return figures of runs and models with long names."""
    real, simulated = scores(4, 0.2), {f'{k}_{name}': scores(4, 0.1) for k in range(3)}
    overlays = {f'{k}_{name}': Overlay(series(0.1), {name: series(0.2)}) for k in range(2)}
    run = followed(name)
    return [
        dots_figure(real, simulated, RMSE), density_figure(real, simulated),
        overlay_figure(overlays), following_figure(run), wheel_figure(run),
    ]  # fmt: skip


@pytest.mark.parametrize('name', ['short', SPACED, LONG], ids=['short', 'spaced', 'long'])
def test_no_text_leaves_the_canvas(name: str, tmp_path: Path) -> None:
    figures = [titled_panels(name), labelled_figure(name), *run_figures(name)]
    for number, figure in enumerate(figures):
        style.save_png(figure, tmp_path / f'{number}.png')
        assert overhang(figure) < 2.0, number
        widths = [panel.bbox.width for panel in figure.axes]
        assert min(widths) > 0.1 * max(widths), number


def test_titles_of_neighbours_do_not_overlap(tmp_path: Path) -> None:
    figure = titled_panels(LONG)
    style.save_png(figure, tmp_path / 'one.png')
    boxes = [
        text.get_window_extent()
        for panel in figure.axes
        for text in (panel.title, panel._left_title, panel._right_title)
        if text.get_text()
    ]
    assert len(boxes) == 6
    for left, right in itertools.pairwise(boxes):
        assert left.y0 != right.y0 or left.x1 <= right.x0


def test_texts_with_room_are_left_as_they_are(tmp_path: Path) -> None:
    figure = labelled_figure('ch_gauss')
    style.save_png(figure, tmp_path / 'one.png')
    assert [text.get_text() for text in figure.texts] == ['ch_gauss', 'ch_gauss']
