# SPDX-License-Identifier: Apache-2.0
"""A tuned filter: tables, plot, and the folder that `sim2real tune` writes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from rich.table import Table
from rich.text import Text

from sim2real_eval.benches.tuning.gains import Gain
from sim2real_eval.benches.tuning.options import RMS, TuneOptions, gain_text
from sim2real_eval.benches.tuning.parameter_files import parameter_files
from sim2real_eval.benches.tuning.parameters import Tunable
from sim2real_eval.benches.tuning.tuning import Examined, Measure, Tuning
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import file_digest, fresh_folder, versions
from sim2real_eval.common.tables import write_bytes, write_csv, write_json
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.recording.reading import Source
from . import palette, style
from .console import add_numbers, add_words, listed, p_value_text, plain_table, short_number

MARK = 'tune.json'
"""File that every result of this kind holds."""


def parameter_table(tuning: Tuning, level: float) -> Table:
    """Return a row per parameter: start, tuned value with interval, and what it gains alone."""
    table = plain_table('Parameters (x: factor of what the file says)', gap=1)
    add_words(table, 'parameter')
    add_numbers(table, 'start', 'tuned', f'{level:.0%}\nfrom', '\nto', 'alone\nvalue')
    add_numbers(table, 'gains in\nsearch', '\nheld out', '\np-value')
    for one in tuning.parameters:
        known, alone = one.parameter, one.alone
        gains = (None, None) if alone is None else (alone.training, alone.held_out.mean)
        table.add_row(
            Text(known.name, style='bold' if one.changed else ''),
            known.shown(known.start),
            known.shown(one.value) if one.changed else 'left',
            *('-' if end is None else known.shown(end) for end in (one.low, one.high)),
            '-' if alone is None else known.shown(alone.value),
            *('-' if gain is None else gain_text(tuning.by, gain) for gain in gains),
            '-' if alone is None else p_value_text(alone.held_out.p_value),
        )
    return table


def measure_table(measures: Sequence[Measure], title: str) -> Table:
    """Return a row per error and score: before, after, held out, and the gain."""
    table = plain_table(title, gap=1)
    add_words(table, 'error or score')
    add_numbers(table, 'start', 'tuned', 'held out')
    add_numbers(table, 'better by', style='bold')
    add_numbers(table, 'from', 'to')
    for one in measures:
        shown = [_native(one.kind, v) for v in (one.before, one.after, one.held_out)]
        gain = one.gain
        unit = _UNITS.get(one.kind, '')
        table.add_row(
            f'{one.kind} [{unit}]' if unit else one.kind,
            *map(short_number, shown),
            *(gain_text(one.kind, value) for value in (gain.mean, gain.low, gain.high)),
        )
    return table


_UNITS = {**RMS, 'heading': 'deg'}


def _native(kind: str, value: float | None) -> float | None:
    """Return an error in the unit that people read."""
    return math.degrees(value) if kind == 'heading' and value is not None else value


def tuning_figure(tuning: Tuning, level: float) -> Figure:
    """Return two panels: the blocks before, after and held out; parameters with intervals."""
    factors = [one for one in tuning.parameters if one.parameter.scale == 'log']
    rows = max(len(tuning.blocks), len(factors), 4)
    figure = style.new_figure(10.0, 1.6 + 0.32 * rows)
    blocks, parameters = figure.subplots(1, 2)
    _draw_blocks(blocks, tuning)
    _draw_factors(parameters, factors, level)
    style.figure_legend(figure, blocks.get_legend_handles_labels()[0], 3, below=True)
    figure.suptitle(textwrap.fill(tuning.notes[0].problem, 130), fontsize=10)
    return figure


def _draw_blocks(panel: Axes, tuning: Tuning) -> None:
    rows = np.arange(len(tuning.blocks))[::-1]
    is_rms = tuning.by in RMS
    before, after, held = (
        [_native(tuning.by, getattr(block, name)) or 0.0 for block in tuning.blocks]
        for name in ('before', 'after', 'held_out')
    )
    panel.hlines(rows, before, held, color=palette.REAL_COLOUR, linewidth=1.0, alpha=0.6)
    panel.plot(before, rows, 'o', color=palette.REAL_COLOUR, label='start')
    panel.plot(held, rows, 'o', color=palette.BLUE, label='tuned without the block')
    panel.plot(after, rows, '|', color=palette.VERMILION, markersize=11, label='tuned with it')
    names = [listed(block.recordings, 1) for block in tuning.blocks]
    parts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    panel.set_yticks(
        rows,
        [
            f'{name}, part {part}' if names.count(name) > 1 else name
            for name, part in zip(names, parts, strict=True)
        ],
    )
    if is_rms:
        panel.set_xscale('log')
        # Within two decades powers of ten would be two marks.
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter(StrMethodFormatter('{x:g}'))
        panel.xaxis.set_minor_locator(NullLocator())
    unit = _UNITS.get(tuning.by, 'smaller is better')
    panel.set_xlabel(f'{tuning.by} {"error" if is_rms else "score"} [{unit}]', fontsize=9)
    panel.set_title('blocks of recordings', fontsize=9)
    panel.set_ylim(-0.6, len(rows) - 0.4)
    style.tidy(panel, grid=True)


def _draw_factors(panel: Axes, factors: Sequence[Examined], level: float) -> None:
    rows = np.arange(len(factors))[::-1]
    for row, one in zip(rows.tolist(), factors, strict=True):
        start = one.parameter.start
        if one.changed:
            # An open end is drawn to the bound of the search.
            low, high = one.parameter.bounds
            ends = [(one.low or low) / start, (one.high or high) / start]
            panel.plot(ends, [row, row], color=palette.BLUE, lw=2.0)
        colour = palette.BLUE if one.changed else palette.REAL_COLOUR
        panel.plot(
            one.value / start,
            row,
            'o',
            color=colour,
            markerfacecolor=colour if one.changed else 'white',
        )
    panel.axvline(1.0, color='black', linewidth=0.6)
    panel.set_yticks(rows, [_label(one.parameter) for one in factors])
    panel.set_xscale('log')
    panel.set_xlabel('factor of the start', fontsize=9)
    panel.set_title(f'tuned, with {level:.0%} interval; hollow: left', fontsize=9)
    panel.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    style.tidy(panel, grid=True)


def _label(one: Tunable) -> str:
    return one.name.removeprefix('process_noise_covariance.').replace('_', ' ')


def tuning_record(
    tuning: Tuning, options: TuneOptions, sources: Sequence[Source], tests: Sequence[Source]
) -> dict[str, Any]:
    """Return everything needed to repeat and to read a tuning, as plain values."""
    judge = tuning.start
    return {
        'format': 1,
        'versions': versions(),
        'options': {**options.to_mapping(), 'objective': tuning.by},
        'judge': {
            'name': judge.name,
            'files': [{'name': p.name, 'sha256': file_digest(p)} for p in judge.files],
            **judge.settings(),
        },
        'answer': str(tuning.notes[0]),
        'parameters': [_parameter_record(one) for one in tuning.parameters],
        'measures': [_measure_record(one) for one in tuning.measures],
        'tests': [_measure_record(one) for one in tuning.tests],
        'blocks': [block._asdict() for block in tuning.blocks],
        'recordings': [_recording_record(source) for source in sources],
        'test_recordings': [_recording_record(source) for source in tests],
        'notes': to_records(tuning.notes),
    }


def _recording_record(source: Source) -> dict[str, Any]:
    digest = recording_digest(source.path)
    return {'path': source.path, 'name': source.own_name(), 'sha256': digest}


def _measure_record(one: Measure) -> dict[str, Any]:
    return {
        **one._asdict(),
        'gain': _gain_record(one.gain),
        'training_gain': one.training,
        'unit': RMS.get(one.kind, ''),
    }


def _parameter_record(one: Examined) -> dict[str, Any]:
    known, alone = one.parameter, one.alone
    # A gate that there is not is null.
    ends = {'start': known.start, 'tuned': one.value, 'low': one.low, 'high': one.high}
    record: dict[str, Any] = {
        'name': known.name,
        'group': known.group,
        'unit': known.unit,
        'is_factor': known.is_factor,
        'changed': one.changed,
        **{name: _finite(value) for name, value in ends.items()},
    }
    if alone is not None:
        gain = _gain_record(alone.held_out)
        record['alone'] = {
            'value': _finite(alone.value), 'training_gain': alone.training, 'held_out': gain,
        }  # fmt: skip
    return record


def _gain_record(gain: Gain) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in gain._asdict().items()}


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def write_tuning(
    folder: str | Path, tuning: Tuning, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write the parameter files, tune.json, parameters.csv, measures.csv and the plot, all or
    nothing: not where the folder exists and may not be replaced.
    """
    level = record['options']['level']
    with fresh_folder(folder, MARK, overwrite=overwrite, older=_older) as fresh:
        header = _header(tuning, record)
        files = parameter_files(tuning.start, tuning.judge, header, _remarks(tuning))
        for name, text in files.items():
            write_bytes(fresh / name, text.encode())
        rows = [
            (known.name, known.group, known.start, one.value, one.changed, one.low, one.high)
            for one in tuning.parameters
            for known in [one.parameter]
        ]
        names = ('parameter', 'group', 'start', 'tuned', 'changed', 'low', 'high')
        write_csv(fresh / 'parameters.csv', names, rows)
        head = ('recordings', 'error', 'start', 'tuned', 'held_out', 'gain', 'gain_low',
                'gain_high')  # fmt: skip
        measures = [('search', one) for one in tuning.measures]
        measures += [('test', one) for one in tuning.tests]
        write_csv(
            fresh / 'measures.csv',
            head,
            [
                (where, one.kind, one.before, one.after, one.held_out, *one.gain[:3])
                for where, one in measures
            ],
        )
        style.save_png(tuning_figure(tuning, level), fresh / 'tuning.png')
        write_json(fresh / MARK, record, allow_nan=False)


def _older(record: Any) -> list[str]:
    nodes = [f'{kind}{end}.yaml' for kind in ('ekf', 'ukf') for end in ('', '_navsat')]
    return [*nodes, 'case.yaml', 'judge.yaml']


def _header(tuning: Tuning, record: Mapping[str, Any]) -> list[str]:
    names = listed((one['name'] for one in record['recordings']), 8)
    return [
        f'Tuned by `sim2real tune` from {tuning.start.name} on {names}.',
        f'{tuning.notes[0].problem}.',
        'For robot_localization (ros2 run ... --ros-args --params-file) and for sim2real '
        '(--judge-config) alike.'
        if isinstance(tuning.start, JudgeSetup)
        else 'For --judge-config, beside the same --judge.',
    ]


def _remarks(tuning: Tuning) -> dict[str, list[str]]:
    """Return a comment for each parameter of the file, of what was changed and what was left."""
    found: dict[str, list[str]] = {}
    for one in tuning.parameters:
        known = one.parameter
        key, part = known.name, ''
        if known.group != 'declared':
            key, _, part = known.name.partition('.')
        if known.group == 'covariance':
            continue
        about = f'{part}: ' if part else ''
        if one.changed:
            low, high = (None if end is None else known.shown(end) for end in (one.low, one.high))
            ends = f' (interval {low or "open"} to {high or "open"})' if low or high else ''
            was = '' if known.is_factor else f', was {known.shown(known.start)}'
            found.setdefault(key, []).append(f'{about}tuned, {known.shown(one.value)}{ends}{was}')
        elif known.group == 'noise':
            found.setdefault(key, []).append(
                f'{about}left: no other value is significantly better'
            )
    return found
