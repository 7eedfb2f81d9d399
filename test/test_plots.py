# SPDX-License-Identifier: Apache-2.0
"""Plots show every run, are written as the same bytes every time, and tables fit a terminal."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import image
from rich.console import Console

from sim2real_eval.metrics.scores import RunScore, VepdRow
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.report.console import vepd_console_table
from sim2real_eval.report.palette import model_colours
from sim2real_eval.report.run_plots import (
    RMSE,
    Overlay,
    density_figure,
    overlay_figure,
    save_scores,
    scores_figure,
)
from sim2real_eval.report.style import save_png
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


def test_densities_are_sums_of_gaussians_of_scotts_width() -> None:
    """Up to their scale; equal runs have ticks alone."""
    real, sim = scores(12, 0.2), {'ch_rw': scores(9, 0.1), 'same': scores(1, 0.3) * 4}
    (panel,) = density_figure(real, sim).axes
    curves, ticks = panel.lines[::2], panel.lines[1::2]
    assert [len(line.get_xdata()) for line in ticks] == [12, 9, 4]
    for row, (runs, line) in enumerate(zip((real, sim['ch_rw']), curves, strict=False)):
        at, height = np.asarray(line.get_xdata()), row - np.asarray(line.get_ydata())
        rmse = np.array([run.rmse for run in runs])
        width = rmse.std(ddof=1) * len(rmse) ** -0.2
        density = np.exp(-(((at[:, None] - rmse) / width) ** 2) / 2.0).sum(axis=1)
        assert height / height.max() == pytest.approx(density / density.max(), abs=1e-9)
        assert at.min() >= 0.0
        assert at.max() == pytest.approx(rmse.max() + 3.0 * width)
    assert len(curves[2].get_xdata()) == 0


def test_png_files_are_the_same_bytes_and_free_of_metadata(tmp_path: Path) -> None:
    real, sim = scores(10, 0.2), {model: scores(10, 0.2) for model in FIVE}
    overlays = {'line': Overlay(series(0.1), {model: series(0.2) for model in FIVE})}
    files: list[list[bytes]] = []
    for folder in (tmp_path / 'one', tmp_path / 'two'):
        paths = [
            *save_scores(folder, real, sim),
            save_png(overlay_figure(overlays), folder / 'o.png'),
        ]
        files.append([path.read_bytes() for path in paths])
        assert sorted(path.name for path in folder.iterdir()) == [
            'entropy.png',
            'o.png',
            'rmse.png',
        ]
    assert files[0] == files[1]
    assert all(b'Software' not in data and b'matplotlib' not in data for data in files[0])
    pixels = image.imread(tmp_path / 'one' / 'o.png')
    assert pixels.shape[1] > 1000
    assert pixels[..., :3].std() > 0.05  # not an empty page


def test_plots_leave_no_global_state() -> None:
    import sys

    before = dict(mpl.rcParams)
    overlay_figure({'line': Overlay(series(0.1), {'m': series(0.2)})})
    assert dict(mpl.rcParams) == before
    if 'matplotlib.pyplot' in sys.modules:
        assert sys.modules['matplotlib.pyplot'].get_fignums() == []


def test_overlays_show_truth_real_and_simulated_estimates() -> None:
    real, sim, other = series(0.1), series(0.2), series(0.3)
    other = VelocitySeries(other.se_time, other.se_vel, other.gt_time, other.gt_vel + 1.0)
    figure = overlay_figure(
        {'line': Overlay(real, {'a': sim, 'b': other}), 'sine': Overlay(real, {'a': sim})},
        speed_label='forward speed',
    )
    assert len(figure.axes) == 4
    first = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines]
    for velocity in (real.se_vel, real.gt_vel, sim.se_vel):
        assert any(np.array_equal(velocity, drawn) for drawn in first)
    assert len(first) == 3  # a replayed truth is drawn once
    assert len(figure.axes[1].lines) == 4  # a truth of its own is drawn too
    assert figure.axes[3].texts[0].get_text() == 'no run'
    assert [panel.get_ylabel() for panel in figure.axes] == ['line', '', 'sine', '']
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert 'truth' in labels
    assert 'truth, simulated' in labels
    assert figure.get_supylabel() == 'forward speed [m/s]'


def running_away(top: float) -> VelocitySeries:
    """A speed of 0 to 1 m/s whose estimate leaves it for `top` at the end."""
    time = np.arange(0.0, 5.0, 0.1)
    truth = np.abs(np.sin(time))
    estimate = np.where(time > 4.0, top, truth + 0.05)
    return VelocitySeries(time, estimate, time, truth)


@pytest.mark.parametrize('top', [4000.0, -4000.0])
def test_an_estimate_that_runs_away_hides_no_other_and_is_said_to_be_clipped(top: float) -> None:
    """On the axis of the largest estimate the truth of all panels would be a line at 0."""
    sane, wild = running_away(1.1), running_away(top)
    figure = overlay_figure({'line': Overlay(sane, {'ch_rw': sane, 'airsim': wild})})
    calm, lost = figure.axes
    low, high = calm.get_ylim()
    assert lost.get_ylim() == (low, high)
    # The truth is 1 m/s high; two of its ranges beyond it, and a margin, are drawn at most.
    assert low <= 0.0 < 1.1 < high
    assert high - low < 6.0
    # Above the axes, where it covers nothing.
    assert calm.get_title(loc='right') == ''
    assert lost.get_title(loc='right') == 'cut, up to 4e+03 m/s'


def test_estimates_near_the_truth_are_clipped_nowhere() -> None:
    """Two ranges off: bad, but the truth is still to be seen beside it."""
    off = running_away(2.9)
    (panel,) = overlay_figure({'line': Overlay(running_away(1.0), {'a': off})}).axes
    assert panel.get_title(loc='right') == ''
    assert panel.get_ylim()[1] > 2.9


def test_what_the_margin_still_shows_is_not_called_cut() -> None:
    near, wild = running_away(3.1), running_away(4000.0)
    full_axes, cut_axes = overlay_figure({'line': Overlay(near, {'a': near, 'b': wild})}).axes
    assert full_axes.get_ylim()[1] > 3.1
    assert [panel.get_title(loc='right') != '' for panel in (full_axes, cut_axes)] == [False, True]


def test_what_lies_beyond_the_truth_clips_nothing() -> None:
    """There the judge only predicts, and nothing is drawn."""
    wild = running_away(4000.0)
    short = VelocitySeries(wild.se_time, wild.se_vel, wild.gt_time[:40], wild.gt_vel[:40])
    figure = overlay_figure({'line': Overlay(short, {'a': short})})
    assert figure.axes[0].get_title(loc='right') == ''


def test_models_keep_their_colour_whatever_runs_beside() -> None:
    alone = model_colours(['ch_rw'])
    beside = model_colours(['mine', *FIVE])
    assert alone['ch_rw'] == beside['ch_rw']
    assert len(set(beside.values())) == 6
    many = [f'm{i}' for i in range(20)]
    assert model_colours(many) == model_colours(many[::-1])


def row(model: str, scenario: str, rank: float) -> VepdRow:
    return VepdRow(10, 10, 0.2242, 0.0859, 0.1551, model, scenario, rank)


def test_console_table_is_sorted_and_fits_80_columns() -> None:
    rows = [row(model, s, 5 - i) for s in ('sine', 'all') for i, model in enumerate(FIVE)]
    console = Console(width=80, record=True, file=None, quiet=False, no_color=True)
    with console.capture() as capture:
        console.print(
            vepd_console_table(rows, forward_rmse={('airsim', 'sine'): 1.25}, published=True)
        )
    text = capture.get()
    lines = [line.split() for line in text.splitlines()]
    models = [word for line in lines for word in line if word in FIVE]
    assert models == [*FIVE[::-1], *FIVE[::-1]]
    assert all(len(line) <= 80 for line in text.splitlines())
    (airsim,) = (line for line in lines if 'airsim' in line and '1.2500' in line)
    assert airsim == ['3', 'airsim', '10/10', '0.2242', '0.0859', '0.1551', '1.2500', '0.0660']
    assert 'm/s' in text
    assert '…' not in text


def test_labels_that_look_like_markup_are_shown_as_they_are() -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(vepd_console_table([row('[red]x[/red]', '[b]', 1.5)]))
    assert '[red]x[/red]' in capture.get()
    assert '1.5' in capture.get()
    assert 'forward' not in capture.get()
