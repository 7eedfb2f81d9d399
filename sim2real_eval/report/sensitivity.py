# SPDX-License-Identifier: Apache-2.0
"""What judges can see: table, plot, and the folder that `sim2real sensitivity` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from sim2real_eval.benches.sensitivity.options import LEVEL
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import fresh_folder, versions
from sim2real_eval.common.tables import write_csv, write_json
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.variants import STAND_IN
from . import palette, style
from .answer import MARK
from .console import add_words, plain_table

if TYPE_CHECKING:
    from sim2real_eval.benches.sensitivity.detection import Sensitivity
    from sim2real_eval.benches.sensitivity.power import Detectable

_PLOT = 'sensitivity.png'
_OWN_SENSORS = 'own'


def sensitivity_table(found: Sensitivity) -> Table:
    """Return a row per error: what each judge would not have seen below."""
    judges = list(dict.fromkeys(one.judge for one in found.found))
    table = plain_table(
        f'Smallest error that {found.runs} runs reveal at {found.options.power:.0%} power '
        '(95 % interval)', gap=1,
    )  # fmt: skip
    add_words(table, 'error', 'what', *judges)
    for kind in found.kinds:
        of_judge = {one.judge: one for one in found.found if one.error is kind}
        cells = [_cell(of_judge[judge], found.options.power) for judge in judges]
        table.add_row(kind.name, kind.meaning, *cells)
    return table


def _cell(one: Detectable, power: float) -> str:
    unit = _unit(one.error.unit)
    if not one.points:
        return 'not in the messages'
    if one.jump is not None:
        return f'{one.size:.3g}{unit} (jumps from {one.jump[0]:.0%} at {one.low:.3g})'
    if one.size is not None:
        return f'{one.size:.2g}{unit} ({one.low:.2g} to {one.high:.2g})'
    if one.points[-1].power >= power:
        return f'below {one.points[0].size:.2g}{unit}'
    return f'not seen up to {one.points[-1].size:.2g}{unit}'


def _unit(unit: str) -> str:
    return '' if unit == '1' else f' {unit}'


def sensitivity_figure(found: Sensitivity) -> Figure:
    """Return a panel per error: the power over its size, and the size that is looked for."""
    judges = list(dict.fromkeys(one.judge for one in found.found))
    colours = palette.model_colours(judges)
    kinds = [kind for kind in found.kinds
             if any(one.points for one in found.found if one.error is kind)]  # fmt: skip
    figure, panels = style.small_multiples(
        max(len(kinds), 1), 4, (3.0, 2.4), (0.2, 0.8), sharey=True, narrowest=6.0
    )
    for panel, kind in zip(panels, kinds, strict=False):
        for one in found.found:
            if one.error is kind:
                _draw(panel, one, colours[one.judge], found.options.power)
        panel.axhline(found.options.power, color='black', linewidth=0.6, linestyle=':')
        panel.axhline(LEVEL, color=palette.REAL_COLOUR, linewidth=0.6, linestyle=':')
        style.log_x(panel)
        panel.set_ylim(-0.03, 1.03)
        panel.set_title(kind.name.replace('_', ' '), fontsize=9)
        panel.set_xlabel(f'size [{kind.unit}]' if kind.unit != '1' else 'size', fontsize=8)
        style.tidy(panel, grid=True)
    for first in panels[::4]:
        first.set_ylabel('share of studies\nthat reveal it', fontsize=8)
    handles = [
        style.legend_line(judge, colours[judge], marker='o', markersize=4) for judge in judges
    ]
    power = f'{found.options.power:.0%} power'
    title = f'What {found.runs} runs reveal; bars: 95 % interval of the size at {power}'
    style.figure_legend(figure, handles, 4, title)
    return figure


def _draw(panel: Axes, one: Detectable, colour: str, power: float) -> None:
    size, share = np.array(one.points).reshape(-1, 2).T
    panel.plot(size, share, color=colour, linewidth=1.0, marker='o', markersize=3)
    if one.low is not None and one.high is not None:
        panel.plot([one.low, one.high], [power, power], color=colour, linewidth=4.0, alpha=0.5,
                   solid_capstyle='butt')  # fmt: skip


def sensitivity_record(
    found: Sensitivity,
    judges: Sequence[StudyJudge],
    twin: Twin | None,
    recordings: Sequence[StudyRecording],
) -> dict[str, Any]:
    """Return everything needed to repeat and to read a result, as plain values."""
    return {
        'format': 1,
        'versions': versions(),
        'options': found.options.to_mapping(),
        'level': LEVEL,
        'runs': found.runs,
        'paired': found.paired,
        'sensors': _OWN_SENSORS if twin is None else twin.to_mapping(),
        'judges': [judge.to_mapping() for judge in judges],
        'recordings': [one.to_mapping() for one in recordings],
        'false_alarms': dict(found.false_alarms),
        'answers': {
            judge.label: _answer(
                [one for one in found.found if one.judge == judge.label],
                found,
                simulated=twin is not None,
            )
            for judge in judges
        },
        'found': [
            {
                'judge': one.judge,
                'error': one.error.name,
                'unit': one.error.unit,
                'meaning': one.error.meaning,
                **{name: getattr(one, name) for name in ('size', 'low', 'high', 'jump')},
                'points': [point._asdict() for point in one.points],
            }
            for one in found.found
        ],
        'notes': to_records(found.notes),
    }


def _answer(found: Sequence[Detectable], whole: Sensitivity, *, simulated: bool) -> str:
    """Say in a line what a judge would not have seen, and with which sensors."""
    seen = [
        f'{one.error.noun} below {one.size:.2g}{_unit(one.error.unit)}'
        for one in found
        if one.size is not None
    ]
    never = [
        f'{one.error.noun} of {one.points[-1].size:.2g}{_unit(one.error.unit)}'
        for one in found
        if one.size is None and one.points and one.points[-1].power < whole.options.power
    ]
    said = ', '.join([*never, *seen]) or 'nothing that was tried'
    own = whole.options
    sensors = (
        f'GPS {own.gps or STAND_IN}, IMU {own.imu or STAND_IN}' if simulated else 'as recorded'
    )
    return (
        f'this judge would not have seen {said} ({whole.runs} runs, {own.power:.0%} power; '
        f'sensors: {sensors})'
    )


def write_sensitivity(
    folder: str | Path, found: Sensitivity, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write sensitivity.json, errors.csv and the plot, all or nothing."""
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        head = ('judge', 'error', 'unit', 'size', 'low', 'high', 'tried', 'power')
        rows = [
            (one.judge, one.error.name, one.error.unit, one.size, one.low, one.high, *point)
            for one in found.found
            for point in one.points
        ]
        write_csv(fresh / 'errors.csv', head, rows)
        style.save_png(sensitivity_figure(found), fresh / _PLOT)
        write_json(fresh / MARK, record, allow_nan=False)
