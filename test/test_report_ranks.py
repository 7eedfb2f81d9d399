# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables and pictures of rankings show the calculated values."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console
from study_examples import drawn_study

from sim2real_eval.report.ranking_tables import metric_lines, ranks_table, short_number
from sim2real_eval.report.study_plots import _share, ranks_figure
from sim2real_eval.report.style import save_png
from sim2real_eval.study.secondary_results import SideResults, side_results
from sim2real_eval.study.sensitivity import ranking_pairs


@pytest.fixture(scope='module')
def results() -> SideResults:
    return side_results(drawn_study(runs=6, models={'[red]bad[/red]': 0.3, 'same': 0.05}))


def text_of(table: object) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_a_model_with_six_times_the_noise_is_last_and_marked(results: SideResults) -> None:
    """Its name looks like markup and is shown as text."""
    table = results.metrics[-1]
    table_text = text_of(ranks_table(metric_lines(table)))
    vepd = table.rows[0]
    assert '[red]bad[/red]' in table_text
    (line,) = [text_line for text_line in table_text.splitlines() if text_line.startswith('VEPD ')]
    assert f'{short_number(vepd.distances[0])}*(2)' in line
    assert '(1)' in line
    # Metrics that nobody has are left out.
    assert 'yaw' not in table_text


def test_many_models_are_rows_in_the_order_of_the_first_ranking() -> None:
    noises = {f'model{k}': 0.02 * 2.0**k for k in range(9)}
    (table, *_) = side_results(drawn_study(runs=6, models=noises)).overall_metrics
    table_text = text_of(ranks_table(metric_lines(table)))
    rows = [line.split() for line in table_text.splitlines() if line.startswith('model')]
    vepd, w1 = (dict(zip(table.models, row.ranks, strict=True)) for row in table.rows[:2])
    assert [row[0] for row in rows] == sorted(noises, key=vepd.__getitem__)
    for name, first, second, *_ in rows:
        assert (first.rstrip('*'), second.rstrip('*')) == (f'{vepd[name]:g}', f'{w1[name]:g}')
    assert rows[-1][1] == '9*'
    assert max(map(len, table_text.splitlines())) <= 100
    kendall = table.rows[1].with_vepd.kendall
    assert f'tau {kendall:.2f}' in ' '.join(table_text.split())


def test_only_the_order_of_significantly_different_models_is_certain() -> None:
    """Errors of 0.1, 0.2 and 0.4 m/s under both judges, and three models of one error."""
    for errors, width in (((0.1, 0.2, 0.4), 0.0), ((0.05, 0.05, 0.05), 1.0)):
        models = {f'model{k}': error for k, error in enumerate(errors)}
        (pair,) = ranking_pairs(drawn_study(runs=8, scenarios=('line',), models=models))
        assert pair.low is not None
        assert pair.high is not None
        assert pair.high - pair.low >= width
        assert width or (pair.low, pair.high) == (1.0, 1.0)
    (unsure_pair,) = ranking_pairs(drawn_study(runs=2, scenarios=('line',), models=models))
    assert (unsure_pair.low, unsure_pair.high) == (None, None)


def test_the_rank_plot_is_reproducible_and_likely_ranks_are_dark(
    results: SideResults, tmp_path: Path
) -> None:
    panels = [metric_lines(table) for table in results.metrics[:2]]
    picture = save_png(ranks_figure(panels), tmp_path / 'one.png')
    other = save_png(ranks_figure(panels), tmp_path / 'other.png')
    assert picture.read_bytes() == other.read_bytes()
    pixels = imread(picture)[..., :3]
    # The palest is the smallest distance; one of six times the noise is darker.
    near = abs(pixels * 255.0 - (0xEA, 0xF2, 0xF9)).max(axis=2) < 3.0
    dark = pixels[..., 0] < 0.5
    assert near.mean() > 0.02
    assert dark.mean() > 0.02


def test_models_with_nearly_equal_distances_have_the_same_colour() -> None:
    shares = _share(np.array([0.381, 0.382, 1.2]))
    assert abs(shares[1] - shares[0]) < 0.01
    assert shares[2] == pytest.approx(np.log10(1.2 / 0.381))
