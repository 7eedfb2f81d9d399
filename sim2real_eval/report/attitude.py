# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the attitude filter: table, plot and result folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from sim2real_eval.benches.attitude.study import (
    ANGLES,
    BOUND,
    PUBLISHED_REAL,
    PUBLISHED_SIMULATED,
    AttitudeErrors,
    AttitudeRun,
    AttitudeStudy,
)
from sim2real_eval.common.results import fresh_folder, versions, write_csv, write_json
from sim2real_eval.metrics.consistency import Squares
from . import palette, style
from .consistency import consistency_figure
from .console import add_numbers, plain_table


def attitude_table(study: AttitudeStudy, title: str) -> Table:
    """Return a line per angle: RMSE over all runs, its range, and the published RMSE if any."""
    table = plain_table(title, gap=1, min_width=min(len(title) + 1, 78))
    table.add_column('RMSE, deg')
    add_numbers(table, 'all runs', style='bold')
    several = len(study.names) > 1
    if several:
        add_numbers(table, 'least', 'most')
    add_numbers(table, 'Ligorio2015\nsimulated', '\nreal')
    rmse_deg = np.degrees(study.rmse)
    for i, name in enumerate(ANGLES):
        cells = [name, f'{np.degrees(study.overall[i]):.3f}']
        if several:
            cells += [f'{rmse_deg[:, i].min():.3f}', f'{rmse_deg[:, i].max():.3f}']
        for published in (PUBLISHED_SIMULATED, PUBLISHED_REAL):
            cells.append(f'{np.degrees(published[i]):.2f}' if i < len(published) else '')
        table.add_row(*cells)
    return table


_POINTS = 4000
# Scalar part first, as in figure 7 of [Ligorio2015].
_COMPONENTS = {'w': 3, 'x': 0, 'y': 1, 'z': 2}


def draw_component(
    panel: Axes, errors: AttitudeErrors, component: str, heading: str, room: float
) -> None:
    """Draw the error of a component of the quaternion, w, x, y or z, within its 99 % bounds.

    The scale is `room` times the largest value after the first tenth of the time.
    """
    i = _COMPONENTS[component]
    step = max(1, len(errors.stamp_ns) // _POINTS)
    time, settled = errors.time[::step], errors.time >= 0.1 * errors.time[-1]
    bound = BOUND * errors.quaternion_std[:, i]
    for side in (-bound, bound):
        panel.plot(time, side[::step], color=palette.TRUTH_COLOUR, linewidth=0.7)
    panel.plot(time, errors.quaternion[::step, i], color=palette.BLUE, linewidth=0.7)
    panel.set_title(f'{heading}q{component}: {100.0 * errors.inside[i]:.1f} % inside', fontsize=9)
    most = np.concatenate([bound[settled], np.abs(errors.quaternion[settled, i])]).max()
    panel.set_ylim(-room * most, room * most)


def component_legend(figure: Figure, title: str) -> None:
    """Add the legend of `draw_component` and a title."""
    handles = [
        style.legend_line('estimated - true', palette.BLUE),
        style.legend_line('99 % bounds of the filter', palette.TRUTH_COLOUR, linewidth=0.7),
    ]
    style.figure_legend(figure, handles, 2, title)


def attitude_figure(run: AttitudeRun, title: str) -> Figure:
    """Return eight panels: the components with 99 % bounds as in [Ligorio2015], and the angles.

    The scale is that of the later attitudes, because the first one is far less certain.
    """
    errors = run.errors
    step = max(1, len(errors.stamp_ns) // _POINTS)
    time = errors.time[::step]
    figure = style.new_figure(11.0, 7.2)
    panels = figure.subplots(4, 2, sharex=True)
    settled = errors.time >= 0.1 * errors.time[-1]
    for name, panel in zip(_COMPONENTS, panels[:, 0], strict=True):
        draw_component(panel, errors, name, '', 1.4)
    for i, name in enumerate(ANGLES):
        panel = panels[i, 1]
        panel.plot(time, np.degrees(errors.angles[::step, i]), color=palette.BLUE, linewidth=0.7)
        panel.axhline(0.0, color=palette.TRUTH_COLOUR, linewidth=0.5)
        panel.set_title(f'{name} [deg]: RMSE {np.degrees(errors.rmse[i]):.3f}', fontsize=9)
        most = np.degrees(np.abs(errors.angles[settled, i]).max())
        # The angle of the whole rotation has no sign.
        panel.set_ylim(-1.4 * most if name != 'rotation' else 0.0, 1.4 * most)
    for panel in panels.flat:
        style.tidy(panel, grid=True)
        panel.locator_params(axis='y', nbins=5)
    component_legend(figure, title)
    figure.supxlabel(
        'time since the first sample [s]; axes are scaled to the data after the first tenth',
        fontsize=9,
    )
    return figure


MARK = 'attitude.json'
"""File that every result of this kind holds."""

_PARTS = 'xyzw'


def attitude_record(study: AttitudeStudy, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything but the series as a plain mapping, for JSON; rad.

    `inputs` describes what was estimated, as plain values.
    """
    return {
        'versions': versions(),
        **inputs,
        'angles': list(ANGLES),
        'rmse_rad': study.overall.tolist(),
        'rmse_deg': dict(zip(ANGLES, np.degrees(study.overall).tolist(), strict=True)),
        'published_rmse_rad': {
            # [Ligorio2015] has no number of the whole rotation.
            'simulated': [*PUBLISHED_SIMULATED, None],
            'real': [*PUBLISHED_REAL, None],
        },
        'inside_99': dict(zip(_PARTS, study.inside.mean(axis=0).tolist(), strict=True)),
        'consistency': [row.summary() for row in study.consistency()],
        'runs': [
            {'name': name, 'rmse_rad': rmse, 'inside_99': inside}
            for name, rmse, inside in zip(
                study.names, study.rmse.tolist(), study.inside.tolist(), strict=True
            )
        ],
    }


def write_attitude(
    folder: str | Path, study: AttitudeStudy, record: Mapping[str, Any], *, overwrite: bool
) -> None:
    """Write the complete folder or nothing.

    An existing folder is refused unless it may be replaced.
    """
    first = study.first
    errors = first.errors
    columns = {
        'time_s': errors.time,
        **{f'{name}_rad': errors.angles[:, i] for i, name in enumerate(ANGLES)},
        **{f'q{name}': errors.quaternion[:, i] for i, name in enumerate(_PARTS)},
        **{
            f'q{name}_bound_99': BOUND * errors.quaternion_std[:, i]
            for i, name in enumerate(_PARTS)
        },
        'nees': errors.nees.squares,
    }
    number = len(study.names)
    # Sums over runs are stamped since their start already.
    start = int(errors.stamp_ns[0])
    nees = study.squares[0] if number > 1 else _since(start, errors.nees)
    nis = [_since(start, squares) for squares in first.estimate.innovations]
    title = f'NEES summed over {number} runs, NIS of {first.name}' if number > 1 else first.name
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'errors.csv', tuple(columns), np.column_stack([*columns.values()]))
        write_json(fresh / MARK, record)
        figure = attitude_figure(first, f'Attitude errors of {first.name}')
        style.save_png(figure, fresh / 'errors.png')
        style.save_png(consistency_figure([nees, *nis], title=title), fresh / 'consistency.png')


def _since(start: int, squares: Squares) -> Squares:
    return dataclasses.replace(squares, stamp_ns=squares.stamp_ns - start)
