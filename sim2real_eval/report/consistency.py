# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""NIS and NEES as a table and as a plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.table import Table
from rich.text import Text

from sim2real_eval.metrics.consistency import Consistency, Squares, consistency, ratio_bounds
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.metrics.trajectory_errors import TrajectoryError
from sim_sensors.core.measurements import FloatArray, IntArray
from . import palette, style
from .console import add_numbers, add_words, plain_table

_STYLES = {'consistent': 'green', 'overconfident': 'red', 'underconfident': 'yellow'}


def consistency_table(rows: Iterable[Consistency], title: str) -> Table:
    """Return one line per part and quantity."""
    table = plain_table(title)
    add_words(table, '')
    add_numbers(table, 'samples', 'inde-\npendent', 'degrees of\nfreedom')
    add_numbers(table, 'ratio', style='bold')
    add_numbers(table, 'bounds', 'inside')
    table.add_column('verdict')
    for row in rows:
        verdict = Text(row.verdict, style=_STYLES.get(row.verdict, 'dim'))
        numbers = (
            f'{row.effective:.0f}',
            f'{row.freedom:.3g}',
            short_ratio(row.ratio),
            f'{row.lower:.2f}..{row.upper:.2f}',
            f'{100.0 * row.inside:.0f} %',
        )
        cells = numbers if row.samples else ('',) * len(numbers)
        table.add_row(Text(row.name), str(row.samples), *cells, verdict)
    return table


def errors_table(errors: Iterable[TrajectoryError], title: str) -> Table:
    """Return one line per quantity with the statistics that evo prints."""
    table = plain_table(title)
    add_words(table, '', 'unit')
    add_numbers(table, 'RMSE', style='bold')
    add_numbers(table, 'mean', 'median', 'std', 'max', 'samples')
    for error in errors:
        values = (error.rmse, error.mean, error.median, error.std, error.maximum)
        numbers = (f'{value:.4g}' for value in values)
        table.add_row(error.quantity, error.unit, *numbers, str(error.samples))
    return table


def short_ratio(ratio: float) -> str:
    """Return a ratio with two decimals; with an exponent where it needs one."""
    return f'{ratio:.2f}' if 0.1 <= ratio < 1e4 else f'{ratio:.2g}'


_PROBABILITY = 0.95
_WINDOWS = 20
_MIN_WINDOW = 5
# More than a panel has pixels.
_MAX_PLACES = 2000
_MIN = 1e-4
_MAX = 1e6


def consistency_figure(series: Sequence[Squares], *, title: str = '') -> Figure:
    """Return small multiples of normalised squares over their degrees of freedom; 1 is consistent.

    Dots are samples, arrows at the edge samples beyond it, and dashed lines the 95 % bounds of a
    single sample. The solid line is the moving mean over a twentieth of the run, or over five
    samples if that is more. The band is the
    95 % interval of this mean. It accounts for the correlation of the series, which reduces the
    number of independent samples. Series without samples are omitted. Raises MetricError when
    there are no samples at all.
    """
    nonempty = [squares for squares in series if len(squares)]
    if not nonempty:
        raise MetricError('consistency: no samples to plot')
    figure, panels = style.small_multiples(len(nonempty), 2, (5.0, 1.9), (0.0, 0.9), sharex=True)
    start = min(int(squares.stamp_ns[0]) for squares in nonempty)
    for panel, squares in zip(panels, nonempty, strict=True):
        _draw(panel, squares, start)
    figure.supxlabel('time since the first sample [s]', fontsize=9)
    figure.supylabel('square / degrees of freedom [1]', fontsize=9)
    percent = f'{100.0 * _PROBABILITY:g} %'
    handles: list[Artist] = [
        style.legend_line('sample', palette.REAL_COLOUR, marker='.', linestyle=''),
        style.legend_line(f'{percent} of samples', palette.BLUE, linewidth=0.9, linestyle='--'),
        style.legend_line('running mean', palette.VERMILION, linewidth=1.3),
        Patch(color=palette.BLUE, alpha=0.2, label=f'{percent} of running means'),
    ]
    style.figure_legend(figure, handles, 4, title)
    return figure


def _draw(panel: Axes, squares: Squares, start: int) -> None:
    order = np.argsort(squares.stamp_ns, kind='stable')
    time = (squares.stamp_ns[order] - start) * 1e-9
    freedom: FloatArray = np.asarray(squares.freedom[order], dtype=np.float64)
    values = squares.squares[order]
    n = len(values)
    window = min(max(n // _WINDOWS, _MIN_WINDOW), n)
    places = np.linspace(0, n - window, min(n - window + 1, _MAX_PLACES)).astype(np.int64)
    # A larger sample also lifts every moving mean that contains it above the drawn range.
    tame = np.minimum(values, _MAX * n * freedom)
    mean, total, middle = (
        _running(samples, window, places) for samples in (tame, freedom, np.asarray(time))
    )
    result = consistency(squares, _PROBABILITY)
    low, high = ratio_bounds(total * max(window * result.effective / n, 1.0), _PROBABILITY)
    panel.set_yscale('log')
    style.mark_log(panel.yaxis)
    ratios = values / freedom
    dots: dict[str, Any] = {
        'color': palette.REAL_COLOUR,
        'linestyle': 'none',
        'alpha': 0.5,
        'rasterized': True,
    }
    is_inside = (ratios >= _MIN) & (ratios <= _MAX)
    panel.plot(time[is_inside], ratios[is_inside], marker='.', markersize=1.5, **dots)
    title = f'{squares.name}: ratio {short_ratio(result.ratio)}, {result.verdict}'
    for is_outside, edge, marker, side in (
        (ratios < _MIN, _MIN, 'v', 'below'),
        (ratios > _MAX, _MAX, '^', 'above'),
    ):
        # Arrows at the edge: the values themselves would flatten all others.
        if count := int(np.sum(is_outside)):
            edges = np.full(count, edge)
            panel.plot(time[is_outside], edges, marker=marker, markersize=3.0, **dots)
            title += f'; {count} {side} {edge:g}'
    turns = np.flatnonzero(np.diff(freedom))
    corners = np.unique(np.concatenate([[0], turns, turns + 1, [n - 1]]))
    for bound in ratio_bounds(freedom[corners], _PROBABILITY):
        panel.plot(time[corners], bound, color=palette.BLUE, linewidth=0.9, linestyle='--')
    panel.fill_between(middle, low, high, color=palette.BLUE, alpha=0.2, linewidth=0)
    panel.plot(middle, np.clip(mean / total, _MIN, _MAX), color=palette.VERMILION, linewidth=1.3)
    panel.axhline(1.0, color='black', linewidth=0.6)
    panel.set_title(title, fontsize=9)
    panel.tick_params(labelbottom=True)
    style.tidy(panel, grid=True)


def _running(values: FloatArray, window: int, places: IntArray) -> FloatArray:
    """Mean over the `window` samples from each place on, of the shape of `places`."""
    # Differences of sums over millions of samples lose digits, but enough remain.
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.longdouble)])
    return np.asarray((sums[places + window] - sums[places]) / window, dtype=np.float64)
