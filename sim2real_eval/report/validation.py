# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A validation of simulated sensors as [Ligorio2015] prints it: tables 2 to 4, figures 5 to 7."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim2real_eval.benches.attitude.study import PUBLISHED_REAL, PUBLISHED_SIMULATED, AttitudeRun
from sim2real_eval.benches.attitude.validation import Validation
from sim2real_eval.common.results import fresh_folder, versions, write_json
from sim2real_eval.signals.answer import comparison_record
from sim2real_eval.signals.features import AXES
from sim2real_eval.signals.options import LIGORIO_2015, LIGORIO_2015_FEATURES
from . import style
from .attitude import component_legend, draw_component
from .console import add_numbers, plain_table
from .signal_plots import save_series_plots, save_track_plot, scatter_figure

MARK = 'validation.json'
"""File that every result of this kind holds."""

_QUANTITIES = {
    'angular_rate': ('Gyroscope', 'rad/s', 1.0),
    'magnetic_field': ('Magnetic sensor', 'µT', 1e6),
    'specific_force': ('Accelerometer', 'm/s²', 1.0),
}
_ANGLES = ('yaw', 'pitch', 'roll')


def validation_record(validation: Validation, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables 2 to 4 as JSON values: real sensors beside their error-free twins.

    Errors are in SI units and px, but those of angles in degrees, as in the paper.
    """
    rows = {row.signal: row.real for row in validation.comparison.rows}
    table_2 = {
        quantity: {
            axis: {'rmse': agreement.rmse, 'r': agreement.correlation}
            for axis in 'xyz'
            if (agreement := rows.get(f'{quantity}_{axis}')) is not None
        }
        for quantity in _QUANTITIES
    }
    table_3 = {}
    for row in validation.comparison.features[:1]:
        for i, axis in enumerate(AXES):
            table_3[axis] = {
                'rmse': row.real.rmse[i],
                'rmse_std': row.real.rmse_std[i],
                'r': row.real.correlation[i],
                'r_std': row.real.correlation_std[i],
            }
    sides = {'simulated': validation.simulated, 'real': validation.real}
    return {
        'versions': versions(),
        **inputs,
        'table_2': {quantity: axes for quantity, axes in table_2.items() if axes},
        'table_3': table_3,
        'table_4_deg': {
            side: dict(zip(_ANGLES, np.degrees(study.overall[:3]).tolist(), strict=True))
            for side, study in sides.items()
        },
        'nees_ratio': {side: study.consistency()[0].ratio for side, study in sides.items()},
        'inside_99': {side: float(study.inside.mean()) for side, study in sides.items()},
        'comparison': comparison_record(validation.comparison),
    }


def validation_tables(record: Mapping[str, Any], *, real: str) -> Group:
    """Return tables 2 to 4, ours beside the printed numbers; `real` names the recorded side."""
    tables: list[Table | Text] = [_table_2(record['table_2'], real), Text()]
    if record['table_3']:
        tables += [_table_3(record['table_3'], real), Text()]
    table = plain_table('Table 4: RMSE of the filter, deg', min_width=60)
    table.add_column('')
    add_numbers(table, *_ANGLES, 'Ligorio2015\nyaw', '\npitch', '\nroll', 'NEES / 3')
    for side, published in (('simulated', PUBLISHED_SIMULATED), ('real', PUBLISHED_REAL)):
        ours = [f'{record["table_4_deg"][side][name]:.2f}' for name in _ANGLES]
        theirs = [f'{value:.2f}' for value in np.degrees(published)]
        ratio = f'{record["nees_ratio"][side]:.2f}'
        table.add_row(real if side == 'real' else side, *ours, *theirs, ratio)
    return Group(*tables, table)


def _table_2(quantities: Mapping[str, Any], real: str) -> Table:
    table = plain_table(f'Table 2: {real} against error-free simulated sensors', min_width=60)
    table.add_column('')
    add_numbers(table, *'xyz', 'Ligorio2015\nx', '\ny', '\nz')
    for quantity, axes in quantities.items():
        name, unit, scale = _QUANTITIES[quantity]
        printed = [LIGORIO_2015[f'{quantity}_{axis}'] for axis in axes]
        table.add_row(
            Text(f'{name}: RMSE [{unit}]'),
            *(f'{scale * axis["rmse"]:.3f}' for axis in axes.values()),
            *(f'{scale * value.rmse:.2f}' for value in printed),
        )
        table.add_row(
            'R',
            *('-' if axis['r'] is None else f'{axis["r"]:.3f}' for axis in axes.values()),
            *(f'{value.correlation:.2f}' for value in printed),
        )
    return table


def _table_3(axes: Mapping[str, Any], real: str) -> Table:
    table = plain_table(f'Table 3: features of {real} and ideal camera, mean (std)', min_width=60)
    table.add_column('')
    add_numbers(table, 'x', 'y', 'Ligorio2015\nx', '\ny')
    printed = [LIGORIO_2015_FEATURES[axis] for axis in axes]
    for name, key, label in (('RMSE [px]', 'rmse', 'rmse'), ('R', 'r', 'correlation')):
        ours = [f'{axis[key]:.2f} ({axis[f"{key}_std"]:.2f})' for axis in axes.values()]
        table.add_row(Text(name), *ours, *(f'{getattr(value, label):.2f}' for value in printed))
    return table


def write_validation(
    folder: str | Path,
    validation: Validation,
    record: Mapping[str, Any],
    *,
    real: str,
    overwrite: bool,
) -> None:
    """Write the record and figures 5 to 7, completely or not at all.

    An existing folder is refused unless it may be replaced.
    """
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_json(fresh / MARK, record)
        comparison = validation.comparison
        save_series_plots(fresh, comparison)
        save_track_plot(fresh, comparison)
        style.save_png(scatter_figure(comparison), fresh / 'scatter.png')
        figure = quaternion_figure(validation.real.first, validation.simulated.first, real)
        style.save_png(figure, fresh / 'quaternion_errors.png')


def quaternion_figure(real: AttitudeRun, simulated: AttitudeRun, name: str) -> Figure:
    """Return errors and 99 % bounds of the quaternion, measured and simulated: figure 7."""
    figure = style.new_figure(11.0, 7.2)
    panels = figure.subplots(4, 2, sharex=True)
    for column, (title, run) in enumerate(((name, real), ('simulated', simulated))):
        for panel, component in zip(panels[:, column], 'wxyz', strict=True):
            draw_component(panel, run.errors, component, f'{title}, ', 1.2)
            panel.locator_params(axis='y', nbins=5)
            style.tidy(panel, grid=True)
    component_legend(figure, 'Errors of the quaternion; each panel has its scale')
    figure.supxlabel('time since the first sample [s]', fontsize=9)
    return figure
