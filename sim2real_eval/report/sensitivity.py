# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Table, plot and result folder of `sim2real sensitivity`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from sim2real_eval.benches.settings import LEVEL
from sim2real_eval.common.findings import to_records
from sim2real_eval.simulation.twin import STAND_IN, Twin
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.variants import StudyJudge
from . import palette, style
from .answer import MARK
from .console import add_words, plain_table
from .search_layout import result_header, write_search_result

if TYPE_CHECKING:
    from sim2real_eval.benches.sensitivity import Detectable, Sensitivity

_PLOT = 'sensitivity.png'
_OWN_SENSORS = 'own'


def sensitivity_table(result: Sensitivity) -> Table:
    """Return a row per error: the smallest size that each judge detects."""
    judges = list(dict.fromkeys(detectable.judge for detectable in result.detectable))
    table = plain_table(
        f'Smallest error detected by {result.runs} runs at {result.options.power:.0%} power '
        '(95 % interval)', gap=1,
    )  # fmt: skip
    add_words(table, 'error', 'meaning', *judges)
    for error in result.errors:
        by_judge = {
            detectable.judge: detectable
            for detectable in result.detectable
            if detectable.error is error
        }
        cells = [_cell(by_judge[judge], result.options.power) for judge in judges]
        table.add_row(error.name, error.meaning, *cells)
    return table


def _cell(detectable: Detectable, power: float) -> str:
    unit = _unit(detectable.error.unit)
    size, low, points = detectable.size, detectable.low, detectable.points
    if not points:
        return 'not in the messages'
    if detectable.jump is not None:
        return f'{size:.3g}{unit} (jumps from {detectable.jump[0]:.0%} at {low:.3g})'
    if size is not None:
        return f'{size:.2g}{unit} ({low:.2g} to {detectable.high:.2g})'
    if points[-1].power >= power:
        return f'below {points[0].size:.2g}{unit}'
    return f'not detected up to {points[-1].size:.2g}{unit}'


def _unit(unit: str) -> str:
    return '' if unit == '1' else f' {unit}'


def sensitivity_figure(result: Sensitivity) -> Figure:
    """Return a panel per error: power over size, with the interval of the detectable size."""
    judges = list(dict.fromkeys(detectable.judge for detectable in result.detectable))
    colours = palette.model_colours(judges)
    errors = list(
        dict.fromkeys(detectable.error for detectable in result.detectable if detectable.points)
    )
    figure, panels = style.small_multiples(
        max(len(errors), 1), 4, (3.0, 2.4), (0.2, 0.8), sharey=True, narrowest=6.0
    )
    for panel, error in zip(panels, errors, strict=False):
        for detectable in result.detectable:
            if detectable.error is error:
                _draw_power(panel, detectable, colours[detectable.judge], result.options.power)
        panel.axhline(result.options.power, color='black', linewidth=0.6, linestyle=':')
        panel.axhline(LEVEL, color=palette.REAL_COLOUR, linewidth=0.6, linestyle=':')
        style.log_x(panel)
        panel.set_ylim(-0.03, 1.03)
        panel.set_title(error.name.replace('_', ' '), fontsize=9)
        panel.set_xlabel(f'size [{error.unit}]' if error.unit != '1' else 'size', fontsize=8)
        style.tidy(panel, grid=True)
    for left_panel in panels[::4]:
        left_panel.set_ylabel('share of studies\nthat detect it', fontsize=8)
    handles = [
        style.legend_line(judge, colours[judge], marker='o', markersize=4) for judge in judges
    ]
    power = f'{result.options.power:.0%} power'
    title = f'Errors detected by {result.runs} runs; bars: 95 % interval of the size at {power}'
    style.figure_legend(figure, handles, 4, title)
    return figure


def _draw_power(panel: Axes, detectable: Detectable, colour: str, power: float) -> None:
    size, share = np.array(detectable.points).reshape(-1, 2).T
    panel.plot(size, share, color=colour, linewidth=1.0, marker='o', markersize=3)
    low, high = detectable.low, detectable.high
    if low is not None and high is not None:
        panel.plot([low, high], [power, power], color=colour, linewidth=4.0, alpha=0.5,
                   solid_capstyle='butt')  # fmt: skip


def sensitivity_record(
    result: Sensitivity,
    judges: Sequence[StudyJudge],
    twin: Twin | None,
    recordings: Sequence[StudyRecording],
) -> dict[str, Any]:
    """Return everything needed to repeat and to interpret a result, as JSON values."""
    return {
        **result_header(),
        'options': result.options.to_mapping(),
        'level': LEVEL,
        'runs': result.runs,
        'paired': result.paired,
        'sensors': _OWN_SENSORS if twin is None else twin.to_mapping(),
        'judges': [judge.to_mapping() for judge in judges],
        'recordings': [recording.to_mapping() for recording in recordings],
        'false_alarms': dict(result.false_alarms),
        'answers': {
            judge.label: _answer(result, judge.label, simulated=twin is not None)
            for judge in judges
        },
        'found': [
            {
                'judge': detectable.judge,
                'error': detectable.error.name,
                'unit': detectable.error.unit,
                'meaning': detectable.error.meaning,
                **{name: getattr(detectable, name) for name in ('size', 'low', 'high', 'jump')},
                'points': [point._asdict() for point in detectable.points],
            }
            for detectable in result.detectable
        ],
        'notes': to_records(result.notes),
    }


def _answer(result: Sensitivity, judge: str, *, simulated: bool) -> str:
    """Return a line with the errors that a judge would not detect, and the sensors."""
    options = result.options
    unseen, limits = [], []
    for detectable in result.detectable:
        unit = _unit(detectable.error.unit)
        if detectable.judge != judge or not detectable.points:
            continue
        if detectable.size is not None:
            limits.append(f'{detectable.error.noun} below {detectable.size:.2g}{unit}')
        elif detectable.points[-1].power < options.power:
            unseen.append(f'{detectable.error.noun} of {detectable.points[-1].size:.2g}{unit}')
    errors = ', '.join([*unseen, *limits])
    sensors = 'as recorded'
    if simulated:
        sensors = f'GPS {options.gps or STAND_IN}, IMU {options.imu or STAND_IN}'
    what = f'cannot detect {errors}' if errors else 'can detect all tested errors'
    return f'this judge {what} ({result.runs} runs, {options.power:.0%} power; sensors: {sensors})'


def write_sensitivity(
    folder: str | Path, result: Sensitivity, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write sensitivity.json, errors.csv and the plot, or nothing."""
    rows = [
        (
            detectable.judge,
            detectable.error.name,
            detectable.error.unit,
            detectable.size,
            detectable.low,
            detectable.high,
            *point,
        )
        for detectable in result.detectable
        for point in detectable.points
    ]
    header = ('judge', 'error', 'unit', 'size', 'low', 'high', 'tried', 'power')
    write_search_result(
        folder,
        MARK,
        record,
        tables={'errors.csv': (header, rows)},
        figures={_PLOT: sensitivity_figure(result)},
        overwrite=overwrite,
    )
