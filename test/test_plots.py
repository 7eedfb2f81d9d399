# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plots show every run and have reproducible bytes; tables fit a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import image
from rich.console import Console
from study_examples import drawn_study

from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.scores import RunScore, VepdRow
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.report.console import vepd_console_table
from sim2real_eval.report.palette import model_colours
from sim2real_eval.report.path_plot import paths_figure
from sim2real_eval.report.run_plots import (
    RMSE,
    Overlay,
    density_figure,
    overlay_figure,
    save_scores,
    scores_figure,
)
from sim2real_eval.report.study_plots import begin_plots, ranking_figure
from sim2real_eval.report.style import log_ticks, save_png
from sim2real_eval.study.secondary_results import study_uncertainty
from sim_sensors.core.seeding import stream

FIVE = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim')


def scores(n: int, mean: float) -> list[RunScore]:
    rng = stream(1, f'{n}_{mean}', 'test', 'scores')
    return [RunScore(r, 0.1, 0.2, r / 5, 300, 20.0) for r in mean * rng.uniform(0.5, 1.5, n)]


def series(offset: float) -> VelocitySeries:
    time = np.arange(0, 5, 0.1)
    return VelocitySeries(time, np.sin(time) + offset, time, np.sin(time))


def test_every_run_is_a_dot_in_the_row_of_its_model() -> None:
    real, sim = scores(12, 0.2), {'ch_rw': scores(9, 0.1), 'mine': scores(7, 0.3)}
    (panel,) = scores_figure(real, sim, RMSE).axes
    labels = [text.get_text() for text in panel.get_yticklabels()]
    assert labels == ['real (12)', 'ch_rw (9)', 'mine (7)']
    dots = [line for line in panel.lines if line.get_marker() == 'o']
    assert [len(line.get_xdata()) for line in dots] == [12, 9, 7]
    assert [set(line.get_ydata()) for line in dots] == [{0}, {1}, {2}]
    assert '[m/s]' in panel.get_xlabel()


@pytest.mark.parametrize(('far', 'scale'), [(0.3, 'linear'), (30.0, 'log')])
def test_a_model_far_away_makes_the_axis_logarithmic(far: float, scale: str) -> None:
    sim = {'near': scores(5, 0.2), 'far': scores(5, far)}
    (panel,) = scores_figure(scores(12, 0.2), sim, RMSE).axes
    assert panel.get_xscale() == scale


@pytest.mark.parametrize('decades', [0.1, 0.3, 0.7, 1.0, 2.0, 3.5, 8.0, 20.0])
def test_a_logarithmic_axis_has_three_to_nine_ticks_inside(decades: float) -> None:
    for low in np.geomspace(1e-9, 1e6, 40).tolist():
        high = low * 10.0**decades
        ticks = log_ticks(low, high)
        assert 3 <= len(ticks) <= 10, (low, high, ticks)
        assert low <= ticks[0]
        assert ticks == sorted(set(ticks))
        assert ticks[-1] <= high


def test_an_interval_that_begins_below_a_logarithmic_axis_ends_in_an_arrow() -> None:
    study = drawn_study(
        judges=('clean',), scenarios=('line',), runs=3, models={'near': 0.05, 'far': 5.0}
    )
    (uncertainties,) = study_uncertainty(study).values()
    (panel,) = ranking_figure(uncertainties).axes
    assert panel.get_xscale() == 'log'
    left = panel.get_xlim()[0]
    (models,) = {tuple(u.order) for u in uncertainties.values()}
    below = [row for row, model in enumerate(models) if model.low < left]
    arrows = [int(line.get_ydata()[0]) for line in panel.lines if line.get_marker() == '<']
    assert below
    assert arrows == below


def test_each_driven_path_is_a_line_in_the_panel_of_its_scenario() -> None:
    path = np.column_stack([np.arange(50.0), np.zeros(50)])
    figure = paths_figure({
        ('real', 'line'): [path, 2.0 * path],
        ('real', 'circle'): [path],
        ('simulated', 'line'): [path],
    })  # fmt: skip
    lines = [
        len([line for line in panel.lines if line.get_marker() != 'o']) for panel in figure.axes
    ]
    assert lines == [2, 1, 1]
    assert all(panel.get_aspect() == 1.0 for panel in figure.axes)


@pytest.mark.parametrize(('number', 'field'), [(0, 'rmse'), (1, 'entropy_difference')])
def test_densities_are_sums_of_gaussians_of_scotts_width(number: int, field: str) -> None:
    """The scale is arbitrary; equal runs have ticks only."""
    real, sim = scores(12, 0.2), {'ch_rw': scores(9, 0.1), 'same': scores(1, 0.3) * 4}
    panel = density_figure(real, sim).axes[number]
    curves, ticks = panel.lines[::2], panel.lines[1::2]
    assert [len(line.get_xdata()) for line in ticks] == [12, 9, 4]
    for row, (runs, line) in enumerate(zip((real, sim['ch_rw']), curves, strict=False)):
        at, height = np.asarray(line.get_xdata()), row - np.asarray(line.get_ydata())
        values = np.array([getattr(run, field) for run in runs])
        width = values.std(ddof=1) * len(values) ** -0.2
        density = np.exp(-(((at[:, None] - values) / width) ** 2) / 2.0).sum(axis=1)
        assert height / height.max() == pytest.approx(density / density.max(), abs=1e-9)
        assert at.min() >= 0.0
        assert at.max() == pytest.approx(values.max() + 3.0 * width)
    assert len(curves[2].get_xdata()) == 0


@pytest.mark.parametrize('scenarios', [('line',), ('line', 'circle')])
def test_surfaces_with_one_scenario_share_a_plot_of_speeds(
    tmp_path: Path, scenarios: tuple[str, ...]
) -> None:
    surfaces = ('grass', 'sand')
    outcome = drawn_study(
        judges=('clean',), groups=surfaces, scenarios=scenarios, models={'ch_rw': 0.1}
    )
    with Workers(1) as workers:
        begin_plots(tmp_path, outcome, workers)()
    places = [path.parent.name for path in tmp_path.rglob('velocity.png')]
    assert sorted(places) == (['clean'] if len(scenarios) == 1 else list(surfaces))
    assert all(
        (tmp_path / 'plots/clean' / surface / 'density.png').exists() for surface in surfaces
    )


def test_png_files_are_the_same_bytes_and_free_of_metadata(tmp_path: Path) -> None:
    real, sim = scores(10, 0.2), {model: scores(10, 0.2) for model in FIVE}
    overlays = {'line': Overlay(series(0.1), {model: series(0.2) for model in FIVE})}
    files: list[list[bytes]] = []
    for folder in (tmp_path / 'one', tmp_path / 'two'):
        paths = save_scores(folder, real, sim)
        paths = [*paths, save_png(overlay_figure(overlays), folder / 'o.png')]
        files.append([path.read_bytes() for path in paths])
    assert len(files[0]) == 3
    assert files[0] == files[1]
    assert all(b'Software' not in data and b'matplotlib' not in data for data in files[0])
    pixels = image.imread(tmp_path / 'one' / 'o.png')
    assert pixels[..., :3].std() > 0.05  # not an empty page


def test_overlays_show_truth_real_and_simulated_estimates() -> None:
    real, sim, other = series(0.1), series(0.2), series(0.3)
    other = VelocitySeries(other.se_time, other.se_vel, other.gt_time, other.gt_vel + 1.0)
    figure = overlay_figure(
        {'line': Overlay(real, {'a': sim, 'b': other}), 'sine': Overlay(real, {'a': sim})}
    )
    first = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines]
    for velocity in (real.se_vel, real.gt_vel, sim.se_vel):
        assert any(np.array_equal(velocity, drawn) for drawn in first)
    # A replayed truth is drawn once; a truth of its own is drawn beside it.
    assert [len(panel.lines) for panel in figure.axes[:2]] == [3, 4]


def running_away(top: float) -> VelocitySeries:
    """Return a speed of 0 to 1 m/s whose estimate jumps to `top` at the end."""
    time = np.arange(0.0, 5.0, 0.1)
    truth = np.abs(np.sin(time))
    estimate = np.where(time > 4.0, top, truth + 0.05)
    return VelocitySeries(time, estimate, time, truth)


@pytest.mark.parametrize('top', [4000.0, -4000.0])
def test_a_diverged_estimate_is_clipped_and_labelled(top: float) -> None:
    """On the axis of the largest estimate the truth of all panels would be a line at 0."""
    sane, wild = running_away(1.1), running_away(top)
    figure = overlay_figure({'line': Overlay(sane, {'ch_rw': sane, 'airsim': wild})})
    calm, lost = figure.axes
    low, high = calm.get_ylim()
    assert lost.get_ylim() == (low, high)
    # The truth is 1 m/s high; two of its ranges beyond it, and a margin, are drawn at most.
    assert low <= 0.0 < 1.1 < high
    assert high - low < 6.0
    assert [panel.get_title(loc='right') != '' for panel in (calm, lost)] == [False, True]


def test_estimates_near_the_truth_are_not_clipped() -> None:
    off = running_away(2.9)
    (panel,) = overlay_figure({'line': Overlay(running_away(1.0), {'a': off})}).axes
    assert panel.get_title(loc='right') == ''
    assert panel.get_ylim()[1] > 2.9


def test_the_colour_of_a_model_does_not_depend_on_the_others() -> None:
    alone = model_colours(['ch_rw'])
    beside = model_colours(['mine', *FIVE])
    assert alone['ch_rw'] == beside['ch_rw']
    assert len(set(beside.values())) == 6
    many = [f'm{i}' for i in range(20)]
    assert model_colours(many) == model_colours(many[::-1])


def test_the_console_table_is_sorted_and_fits_80_columns() -> None:
    rows = [
        VepdRow(10, 10, 0.2242, 0.0859, 0.1551, model, scenario, 5 - i)
        for scenario in ('sine', '[b]')
        for i, model in enumerate(FIVE)
    ]
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(
            vepd_console_table(rows, forward_rmse={('airsim', 'sine'): 1.25}, published=True)
        )
    lines = capture.get().splitlines()
    models = [word for line in lines for word in line.split() if word in FIVE]
    assert models == [*FIVE[::-1], *FIVE[::-1]]
    assert all(len(line) <= 80 for line in lines)
    (airsim,) = (line.split() for line in lines if 'airsim' in line and '1.2500' in line)
    assert airsim == ['3', 'airsim', '10/10', '0.2242', '0.0859', '0.1551', '1.2500', '0.0660']
    # A label that looks like markup is shown as it is.
    assert '[b]' in capture.get()
