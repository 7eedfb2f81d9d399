# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A characterised GPS: tables and plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from rich.table import Table
from rich.text import Text

from sim2real_eval.characterization.gps_characterization import (
    AXIS_NAMES,
    SIMULATIONS,
    GpsResult,
    ModelCheck,
)
from sim2real_eval.characterization.stated_covariance import CovarianceConsistency
from sim_sensors.core.measurements import FloatArray
from .console import add_numbers, plain_table
from .palette import BLUE, GREEN, VERMILION
from .style import mark_log, new_figure, tidy

_MODELS = {
    'gps': 'gps.yaml: white + wander',
    'gps_gaussian': 'gps_gaussian.yaml: Ch:Gauss',
    'gps_random_walk': 'gps_random_walk.yaml: Ch:RW',
}
# Below it a ratio of variances is that of a receiver that holds its position.
_SMALL_RATIO = 1e-4


def gps_noise_table(result: GpsResult) -> Table:
    """Return a row per noise parameter.

    Estimates have their standard deviation; bounds hold with a probability of 95 %.
    """
    fixes = sum(len(run.time) for run in result.runs)
    table = plain_table(
        f'GPS: {fixes} fixes in {result.seconds:.4g} s at standstill, {result.rate:g} Hz', gap=1
    )
    for name in ('parameter', ''):
        table.add_column(name, no_wrap=True)
    add_numbers(table, *AXIS_NAMES)
    for title, key, unit in (
        ('deviation of a fix', 'total', 'm'),
        ('white noise', 'white', 'm'),
        ('Gauss-Markov deviation', 'wander', 'm'),
        ('Gauss-Markov time', 'time', 's'),
        ('as a random walk', 'walk', 'm/sqrt(s)'),
    ):
        table.add_row(title, unit, *(getattr(fit, key).shown() for fit in result.axes))
    table.add_section()
    walk = result.walk
    stated = result.stated
    rows = [
        ('second difference / T²', walk.second_difference),
        ('Ch:RW acceleration std', walk.acceleration_std),
        ('largest speed', walk.speed_limit),
        ('largest acceleration', walk.acceleration_limit),
        ('maximal error', walk.maximal_error),
        ('HDOP at the first fix', stated.start),
        ('HDOP limit', stated.limit),
        ('HDOP time constant', stated.time_constant),
    ]
    if stated.kind != 'zero':
        rows.append(('vertical / horizontal', stated.vertical_factor))
    for title, parameter in rows:
        remark = f'k = {stated.k:g} m given' if title == 'HDOP at the first fix' else ''
        end = title == 'maximal error'
        table.add_row(title, parameter.unit, parameter.shown(), remark, end_section=end)
    if stated.kind != 'zero':
        table.add_row(
            'stated deviation', 'm', *(deviation.shown() for deviation in stated.constant)
        )
    return table


def gps_consistency_table(result: GpsResult) -> Table | None:
    """Return a row per stated covariance with the squared errors relative to it.

    The result is None if the messages state no covariance.
    """
    tests = [test for test in result.consistency if test.samples]
    if not tests:
        return None
    table = plain_table('Variance of the errors over their stated variance, 95 %', gap=1)
    table.add_column('errors', no_wrap=True)
    add_numbers(table, 'independent', 'error² / stated²')
    table.add_column('verdict', no_wrap=True)
    for test in tests:
        verdict = Text(test.verdict, style='' if test.verdict == 'consistent' else 'bold')
        table.add_row(test.name, f'{test.independent:.3g}', _ratio(test), verdict)
    return table


def _ratio(test: CovarianceConsistency) -> str:
    if math.isinf(test.upper):
        return f'>= {test.lower:.2g}'
    if test.upper < _SMALL_RATIO:
        return f'< {_SMALL_RATIO:g}'
    return f'{test.ratio:.2g} ({test.lower:.2g} to {test.upper:.2g})'


def gps_checks_table(checks: Sequence[ModelCheck]) -> Table:
    """Return a row per model: the statistic in which the record is furthest from simulations."""
    title = f'Models simulated {SIMULATIONS} times like the record: the statistic furthest off [m]'
    table = plain_table(title, gap=1)
    table.add_column('model', no_wrap=True)
    table.add_column('statistic')
    add_numbers(table, 'record', '95 % of simulations')
    table.add_column('', no_wrap=True)
    for check in checks:
        worst = check.worst
        verdict = Text('passes') if check.is_consistent else Text('fails', style='bold red')
        between = f'{worst.lower:.3g} to {worst.upper:.3g}'
        table.add_row(_MODELS[check.model], str(worst), f'{worst.record:.3g}', between, verdict)
    return table


_COLOURS = (BLUE, VERMILION, GREEN)
_FIT = '#222222'
_MAX_DOTS = 5000


def gps_figure(result: GpsResult, check: ModelCheck) -> Figure:
    """Draw scatter with 95 % ellipses, changes with those of a model, and stated deviation."""
    figure = new_figure(11.5, 4.4)
    grid = figure.add_gridspec(3, 3, wspace=0.15)
    scatter, stated = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[:, 2])
    changes = [figure.add_subplot(grid[axis, 1]) for axis in range(3)]
    _scatter(scatter, result)
    _draw_changes(changes, check)
    _draw_stated(stated, result)
    for panel in (scatter, *changes, stated):
        tidy(panel)
    return figure


def _scale(result: GpsResult) -> tuple[float, str]:
    largest = max(float(np.abs(run.error).max()) for run in result.runs)
    return (1000.0, 'mm') if largest < 0.2 else (1.0, 'm')


def _scatter(panel: Axes, result: GpsResult) -> None:
    factor, unit = _scale(result)
    error = np.concatenate([run.error for run in result.runs])[:, :2] * factor
    thin = max(len(error) // _MAX_DOTS, 1)
    time = np.concatenate([run.time for run in result.runs])
    dots = panel.scatter(
        error[::thin, 0], error[::thin, 1], s=5, c=time[::thin], cmap='viridis', linewidths=0
    )
    bar = panel.figure.colorbar(dots, ax=panel, shrink=0.7)
    bar.set_label('time at standstill [s]', fontsize=8)
    bar.ax.tick_params(labelsize=7)
    blocks = np.concatenate([run.covariance[:, :2, :2] for run in result.runs])
    _ellipse(panel, np.cov(error.T), _FIT, '-', '95 % ellipse of the fixes')
    if result.stated.kind != 'zero' and np.isfinite(blocks).all(axis=(1, 2)).any():
        # A receiver that has just started states a far larger deviation than later.
        finite = blocks[np.isfinite(blocks).all(axis=(1, 2))]
        usual = np.median(finite, axis=0) * factor**2
        _ellipse(panel, usual, VERMILION, '--', '95 % ellipse, median stated covariance')
    panel.set_aspect('equal', adjustable='datalim')
    panel.autoscale_view()
    panel.set_xlabel(f'east of the mean [{unit}]', fontsize=9)
    panel.set_ylabel(f'north of the mean [{unit}]', fontsize=9)
    panel.set_title(f'{len(error)} fixes, {result.seconds:.4g} s', fontsize=9)
    panel.legend(fontsize=7, frameon=False, loc='upper left')


def _ellipse(panel: Axes, covariance: FloatArray, colour: str, style: str, label: str) -> None:
    values, vectors = np.linalg.eigh(covariance)
    # 95 % of two normal variables: chi-square with two degrees of freedom, 5.991.
    width, height = 2.0 * np.sqrt(5.991 * np.maximum(values, 0.0))
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    patch = Ellipse((0.0, 0.0), width, height, angle=angle, fill=False)
    patch.set(edgecolor=colour, linestyle=style, linewidth=1.2, label=label)
    panel.add_patch(patch)


def _draw_changes(panels: Sequence[Axes], check: ModelCheck) -> None:
    for axis, (name, panel) in enumerate(zip(AXIS_NAMES, panels, strict=True)):
        rows = [
            statistic
            for statistic in check.statistics
            if (statistic.axis, statistic.quantity) == (name, 'change')
        ]
        lag, record, model, lower, upper = np.array(
            [(row.lag, row.record, row.simulated, row.lower, row.upper) for row in rows]
        ).T
        colour = _COLOURS[axis]
        panel.fill_between(lag, lower, upper, color=colour, alpha=0.2, linewidth=0)
        panel.plot(lag, model, color=_FIT, linewidth=1.2)
        panel.plot(lag, record, color=colour, linewidth=0, marker='.', markersize=5)
        panel.set(xscale='log', yscale='log')
        for side in (panel.xaxis, panel.yaxis):
            mark_log(side)
        panel.text(0.03, 0.86, name, fontsize=8, transform=panel.transAxes)
        panel.tick_params(labelbottom=axis == len(panels) - 1)
    panels[1].set_ylabel('change, root mean square [m]', fontsize=9)
    panels[-1].set_xlabel('over a lag of [s]', fontsize=9)
    verdict = 'passes' if check.is_consistent else 'fails'
    panels[0].set_title(
        f'{check.model}.yaml {verdict} its check\ndots: fixes; line, band: median and 95 % of '
        'simulations',
        fontsize=9,
    )


def _draw_stated(panel: Axes, result: GpsResult) -> None:
    fit = result.stated
    panel.set_title('stated horizontal deviation', fontsize=9)
    if fit.kind == 'zero':
        panel.text(0.5, 0.5, 'no covariance is stated', ha='center', transform=panel.transAxes)
        panel.set_axis_off()
        return
    panel.plot(fit.time, fit.deviation, '.', color=BLUE, markersize=3, label='stated')
    if fit.kind == 'airsim':
        start, limit, lag = (
            parameter.value for parameter in (fit.start, fit.limit, fit.time_constant)
        )
        hdop = limit + (start - limit) * np.exp(-fit.time / lag)
        panel.set_xlim(0.0, min(12.0 * lag, float(fit.time[-1])))
        label = f'HDOP {start:.3g} → {limit:.3g}, {lag:.3g} s, k = {fit.k:g} m'
        panel.plot(fit.time, fit.k * hdop, color=_FIT, linewidth=1.2, label=label)
    else:
        value = float(np.sqrt(0.5 * (fit.constant[0].value ** 2 + fit.constant[1].value ** 2)))
        panel.axhline(value, color=_FIT, linewidth=1.2, label=f'constant: {value:.3g} m')
    panel.axhline(
        float(np.sqrt(0.5 * np.sum(result.rms[:2] ** 2))),
        color=VERMILION,
        linestyle='--',
        linewidth=1.0,
        label='deviation of the fixes from their mean',
    )
    panel.set_yscale('log')
    mark_log(panel.yaxis)
    panel.set_xlabel('time since the first fix [s]', fontsize=9)
    panel.set_ylabel('deviation [m]', fontsize=9)
    panel.legend(fontsize=7, frameon=False)
