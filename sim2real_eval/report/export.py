# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Exported sensor models beside their sensors: table, sentences and plot."""

from __future__ import annotations

import csv
import io
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.table import Table

from sim2real_eval.characterization.signals import unit_of
from sim2real_eval.exporting.comparison import TOLERANCE, Export, Misfit
from sim2real_eval.exporting.gps_export import GpsExport
from sim2real_eval.exporting.law_fit import QUANTITIES
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import FloatArray
from . import style
from .console import add_numbers, add_words, plain_table

SHOWN_TIMES = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Averaging times of the table, s."""
_SENSOR_COLOUR, _SIMULATED_COLOUR = '#0072b2', '#d55e00'
PLOT_UNITS = {'gyroscope': (math.pi / 180.0, 'deg/s'), 'accelerometer': (1.0, 'm/s²')}
"""Size in SI units and name of the units of plots, by quantity."""
# A comment in a file, by its suffix. JSON has none, and the first line of a Webots file is fixed.
_COMMENTS = {
    '.sdf': '<!-- {} -->', '.xml': '<!-- {} -->', '.py': '# {}', '.yaml': '# {}', '.m': '% {}',
}  # fmt: skip
_COMMENT_WIDTH = 96
_CAUSES = {
    'low_pass': '{title} has no low pass',
    'noise_at_rest': '{title} has no noise there at rest',
    'drift': '{title} has no drift there',
    'flicker': '{title} has no flicker',
    'shape': 'the law of {title} has another shape',
}


def read_allan_curves(path: Path) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return averaging times, s, and deviations by axis from an allan.csv, or a folder with one.

    If there are several recordings, they are the curves of the longest, as in the files that
    `sim2real allan` exports.
    """
    table = path / 'allan.csv' if path.is_dir() else path
    recordings: dict[str, dict[str, list[tuple[float, float]]]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_input_text(table), newline='')):
            point = float(row['tau_s']), float(row['deviation'])
            axes = recordings.setdefault(row['recording'], {})
            axes.setdefault(row['axis'], []).append(point)
    except (KeyError, ValueError, TypeError, csv.Error):
        problem = 'is no table of sim2real allan; must be its allan.csv'
        raise ParameterError(str(table), '', problem) from None
    curves = [
        {axis: np.array(points).T for axis, points in axes.items()} for axes in recordings.values()
    ]
    longest = max(
        curves, key=lambda axes: max(times[-1] for times, _ in axes.values()), default={}
    )
    return {axis: (times, deviations) for axis, (times, deviations) in longest.items()
            if (deviations > 0.0).all()}  # fmt: skip


def export_table(export: Export) -> Table:
    """Return the measured or modelled and the simulated Allan deviation at `SHOWN_TIMES`."""
    title = f'{_quantity_of(export)}: the sensor and {export.simulator.title}'
    if any(axis.is_measured for axis in export.axes):
        title += ' (measured: allan.csv, without lines and outliers)'
    table = plain_table(title)
    add_words(table, 'axis', 'unit', 'curve')
    add_numbers(table, *(f'{time:g} s' for time in SHOWN_TIMES))
    for axis in export.axes:
        sensor, simulated = np.array([axis.deviations_at(time) for time in SHOWN_TIMES]).T
        name = 'measured' if axis.is_measured else 'model'
        for index, (label, values) in enumerate(((name, sensor), ('simulated', simulated))):
            head = ('', '') if index else (_label(axis.axis), _unit(axis.axis))
            table.add_row(*head, label, *('-' if math.isnan(v) else f'{v:.3g}' for v in values))
    return table


def export_lines(export: Export) -> list[str]:
    """Return sentences: where the simulator follows, where not and why, and what is left out."""
    title = export.simulator.title
    phrases: dict[str, list[str]] = {}
    for axis in export.axes:
        if axis.matched_range is not None:
            phrases.setdefault(f'within 10 % {_span(*axis.matched_range)}.', []).append(axis.axis)
    for misfit in export.misfits:
        phrases.setdefault(misfit_phrase(misfit, title), []).append(misfit.axis)
    lines = [f'{_together(axes)}: {phrase}' for phrase, axes in phrases.items()]
    if export.omitted:
        lines.append(f'{title} cannot have: {", ".join(export.omitted)}.')
    if isinstance(export, GpsExport) and export.scatter:
        lines.append(export.scatter)
    return [*lines, *export.simulator.remarks]


def misfit_phrase(misfit: Misfit, title: str) -> str:
    """Return where and how much a simulator differs, and why."""
    cause = _CAUSES[misfit.cause].format(title=title)
    size = 'is 0'
    if misfit.ratio > 0.0:
        factor = max(misfit.ratio, 1.0 / misfit.ratio)
        side = 'small' if misfit.ratio < 1.0 else 'large'
        size = f'is up to {factor:.2g} times too {side}'
    span = _span(misfit.first, misfit.last)
    return f'{span} the simulated deviation {size}: {cause}.'


def commented_text(export: Export) -> str:
    """Return the file with the sentences of `export_lines` as comments, if it can have any."""
    comment = _COMMENTS.get(export.simulator.suffix)
    if comment is None:
        return str(export.text)
    lines = [
        comment.format(part)
        for line in export_lines(export)
        for part in textwrap.wrap(line, _COMMENT_WIDTH, break_on_hyphens=False)
    ]
    return '\n'.join([*lines, export.text])


def _span(first: float, last: float) -> str:
    return f'from {float(f"{first:.2g}"):g} to {float(f"{last:.2g}"):g} s'


def _together(axes: Sequence[str]) -> str:
    """Return axes with their triad named once: gyroscope x, y, z."""
    names = [_label(axes[0])]
    for before, axis in itertools.pairwise(axes):
        is_same = _quantity(before) == _quantity(axis)
        names.append(axis.partition('_')[2] if is_same else _label(axis))
    return ', '.join(names)


def export_record(export: Export) -> dict[str, Any]:
    """Return the export as a plain mapping, for JSON."""
    return {
        'simulator': export.simulator.name,
        'rate': export.model.rate,
        'text': export.text,
        'model': export.model.to_mapping(),
        'axes': {
            axis.axis: {
                'followed': axis.matched_range,
                'is_measured': axis.is_measured,
                'curves': [
                    {'time': time, 'sensor': _plain(sensor), 'simulated': _plain(simulated)}
                    for time in SHOWN_TIMES
                    for sensor, simulated in [axis.deviations_at(time)]
                ],
            }
            for axis in export.axes
        },
        'omitted': list(export.omitted),
        'remarks': export_lines(export),
    }  # fmt: skip


def export_figure(export: Export, name: str) -> Figure:
    """Return a figure with a panel per axis: Allan deviation of sensor and simulator.

    `name` is that of the sensor. Panels of one unit have one scale.
    """
    across = min(3, len(export.axes))
    figure, panels = style.small_multiples(
        len(export.axes), across, (3.5, 3.0), (0.0, 0.8), narrowest=4.8
    )
    first_panels: dict[str, Axes] = {}
    for panel, axis in zip(panels, export.axes, strict=True):
        size, unit = PLOT_UNITS.get(_quantity(axis.axis), (1.0, 'm'))
        sensor, simulated = axis.sensor_deviation / size, axis.simulated_deviation / size
        simulated = np.where(simulated > 0.0, simulated, np.nan)
        low, high = (1.0 - TOLERANCE) * sensor, (1.0 + TOLERANCE) * sensor
        panel.fill_between(axis.times, low, high, color=_SENSOR_COLOUR, alpha=0.25, linewidth=0)
        panel.plot(axis.times, sensor, color=_SENSOR_COLOUR, linewidth=1.3)
        panel.plot(axis.times, simulated, color=_SIMULATED_COLOUR, linewidth=1.4, linestyle='--')
        if (first_panel := first_panels.setdefault(unit, panel)) is not panel:
            panel.sharey(first_panel)
        style.log_x(panel)
        panel.set_yscale('log')
        style.mark_log(panel.yaxis)
        panel.set_title(_label(axis.axis), fontsize=9)
        panel.set_ylabel(f'{_quantity_of(export)} [{unit}]', fontsize=8)
        style.tidy(panel, grid=True)
    is_allan = _quantity_of(export) == 'Allan deviation'
    figure.supxlabel('averaging time [s]' if is_allan else 'time apart [s]', fontsize=9)
    is_measured = any(axis.is_measured for axis in export.axes)
    handles = [
        style.legend_line('measured' if is_measured else 'model', _SENSOR_COLOUR, linewidth=1.3),
        Patch(color=_SENSOR_COLOUR, alpha=0.25, linewidth=0, label=f'± {TOLERANCE:.0%}'),
        style.legend_line(export.simulator.title, _SIMULATED_COLOUR, linestyle='--'),
    ]
    style.figure_legend(figure, handles, len(handles), name)
    return figure


def _label(axis: str) -> str:
    return axis.replace('_', ' ')


def _quantity(axis: str) -> str:
    return axis.partition('_')[0]


def _is_inertial(axis: str) -> bool:
    return _quantity(axis) in QUANTITIES


def _unit(axis: str) -> str:
    return unit_of(f'{_quantity(axis)}_x') if _is_inertial(axis) else 'm'


def _quantity_of(export: Export) -> str:
    is_inertial = any(_is_inertial(axis.axis) for axis in export.axes)
    return 'Allan deviation' if is_inertial else 'Deviation of position change'


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def longest_time(curves: Mapping[str, tuple[FloatArray, FloatArray]], default: float) -> float:
    """Return a tenth of the record that the curves are of, at most `default`, s.

    A curve ends at about half of its record.
    """
    ends = [times[-1] / 5.0 for times, _ in curves.values()]
    return min([default, *map(float, ends)])
