# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables, plot and result folder of `sim2real tune`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from sim2real_eval.benches.settings import format_gain
from sim2real_eval.benches.tuning.parameters import parameter_files
from sim2real_eval.benches.tuning.tuning import LossComparison, TunedParameter, Tuning
from sim2real_eval.common.findings import to_records
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.study.options import RMS_UNITS, TuneOptions
from sim2real_eval.study.search.engine import Gain
from . import palette, style
from .console import add_numbers, add_words, list_text, p_value_text, plain_table, short_number
from .search_layout import (
    TABLE_UNITS,
    finite_or_none,
    judge_record,
    recording_record,
    result_header,
    to_table_unit,
    write_search_result,
)

MARK = 'tune.json'
"""File that every result of `tune` holds."""


def parameter_table(tuning: Tuning, level: float) -> Table:
    """Return a row per parameter: start, tuned value with interval, and gain on its own."""
    table = plain_table('Parameters (x: factor of the value in the file)', gap=1)
    add_words(table, 'parameter')
    add_numbers(table, 'start', 'tuned', f'{level:.0%}\nfrom', '\nto', 'alone\nvalue')
    add_numbers(table, 'gains in\nsearch', '\nheld out', '\np-value')
    for tuned in tuning.parameters:
        parameter, alone = tuned.parameter, tuned.alone
        gains = (None, None) if alone is None else (alone.training, alone.held_out.mean)
        ends = (tuned.low, tuned.high)
        table.add_row(
            Text(parameter.name, style='bold' if tuned.changed else ''),
            parameter.format_value(parameter.start),
            parameter.format_value(tuned.value) if tuned.changed else 'left',
            *('-' if end is None else parameter.format_value(end) for end in ends),
            '-' if alone is None else parameter.format_value(alone.value),
            *('-' if gain is None else format_gain(tuning.loss, gain) for gain in gains),
            '-' if alone is None else p_value_text(alone.held_out.p_value),
        )
    return table


def comparison_table(comparisons: Sequence[LossComparison], title: str) -> Table:
    """Return a row per error and score: before, after, held out, and the gain."""
    table = plain_table(title, gap=1)
    add_words(table, 'error or score')
    add_numbers(table, 'start', 'tuned', 'held out')
    add_numbers(table, 'gain', style='bold')
    add_numbers(table, 'low', 'high')
    for comparison in comparisons:
        kind, gain = comparison.kind, comparison.gain
        means = (comparison.before, comparison.after, comparison.held_out)
        unit = TABLE_UNITS.get(kind, '')
        table.add_row(
            f'{kind} [{unit}]' if unit else kind,
            *(short_number(to_table_unit(kind, mean)) for mean in means),
            *(format_gain(kind, number) for number in (gain.mean, gain.low, gain.high)),
        )
    return table


def tuning_figure(tuning: Tuning, level: float) -> Figure:
    """Return two panels: errors of the blocks, and parameters with their intervals.

    The errors are those before the tuning, after it, and held out.
    """
    factors = [tuned for tuned in tuning.parameters if tuned.parameter.scale == 'log']
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
    loss = tuning.loss
    is_rms = loss in RMS_UNITS
    before, after, held = (
        [to_table_unit(loss, getattr(block, name)) or 0.0 for block in tuning.blocks]
        for name in ('before', 'after', 'held_out')
    )
    panel.hlines(rows, before, held, color=palette.REAL_COLOUR, linewidth=1.0, alpha=0.6)
    panel.plot(before, rows, 'o', color=palette.REAL_COLOUR, label='start')
    panel.plot(held, rows, 'o', color=palette.BLUE, label='tuned without the block')
    panel.plot(
        after, rows, '|', color=palette.VERMILION, markersize=11, label='tuned with the block'
    )
    names = [list_text(block.recordings, 1) for block in tuning.blocks]
    parts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    panel.set_yticks(
        rows,
        [
            f'{name}, part {part}' if names.count(name) > 1 else name
            for name, part in zip(names, parts, strict=True)
        ],
    )
    if is_rms:
        style.log_x(panel)
    unit = TABLE_UNITS.get(loss, 'smaller is better')
    panel.set_xlabel(f'{loss} {"error" if is_rms else "score"} [{unit}]', fontsize=9)
    panel.set_title('blocks of recordings', fontsize=9)
    panel.set_ylim(-0.6, len(rows) - 0.4)
    style.tidy(panel, grid=True)


def _draw_factors(panel: Axes, factors: Sequence[TunedParameter], level: float) -> None:
    rows = np.arange(len(factors))[::-1]
    for row, tuned in zip(rows.tolist(), factors, strict=True):
        start = tuned.parameter.start
        if tuned.changed:
            # An open end is drawn to the bound of the search.
            low, high = tuned.parameter.bounds
            ends = [(tuned.low or low) / start, (tuned.high or high) / start]
            panel.plot(ends, [row, row], color=palette.BLUE, lw=2.0)
        colour = palette.BLUE if tuned.changed else palette.REAL_COLOUR
        panel.plot(
            tuned.value / start,
            row,
            'o',
            color=colour,
            markerfacecolor=colour if tuned.changed else 'white',
        )
    panel.axvline(1.0, color='black', linewidth=0.6)
    names = [tuned.parameter.name for tuned in factors]
    labels = [name.removeprefix('process_noise_covariance.').replace('_', ' ') for name in names]
    panel.set_yticks(rows, labels)
    style.log_x(panel)
    panel.set_xlabel('factor of the start value', fontsize=9)
    panel.set_title(f'tuned, with {level:.0%} interval; hollow: unchanged', fontsize=9)
    panel.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    style.tidy(panel, grid=True)


def tuning_record(
    tuning: Tuning,
    options: TuneOptions,
    sources: Sequence[RecordingSource],
    tests: Sequence[RecordingSource],
) -> dict[str, Any]:
    """Return everything needed to repeat and to interpret a tuning, as JSON values."""
    return {
        **result_header(),
        'options': {**options.to_mapping(), 'objective': tuning.loss},
        'judge': judge_record(tuning.start),
        'answer': str(tuning.notes[0]),
        'parameters': [_parameter_record(tuned) for tuned in tuning.parameters],
        'measures': [_comparison_record(comparison) for comparison in tuning.comparisons],
        'tests': [_comparison_record(comparison) for comparison in tuning.tests],
        'blocks': [block._asdict() for block in tuning.blocks],
        'recordings': [recording_record(source, source.expected_name()) for source in sources],
        'test_recordings': [recording_record(source, source.expected_name()) for source in tests],
        'notes': to_records(tuning.notes),
    }


def _comparison_record(comparison: LossComparison) -> dict[str, Any]:
    return {
        **comparison._asdict(),
        'gain': _gain_record(comparison.gain),
        'training_gain': comparison.training_gain,
        'unit': RMS_UNITS.get(comparison.kind, ''),
    }


def _parameter_record(tuned: TunedParameter) -> dict[str, Any]:
    parameter, alone = tuned.parameter, tuned.alone
    record: dict[str, Any] = {
        'name': parameter.name,
        'group': parameter.group,
        'unit': parameter.unit,
        'is_factor': parameter.is_factor,
        'changed': tuned.changed,
        'start': finite_or_none(parameter.start),
        'tuned': finite_or_none(tuned.value),
        'low': finite_or_none(tuned.low),
        'high': finite_or_none(tuned.high),
    }
    if alone is not None:
        record['alone'] = {
            'value': finite_or_none(alone.value),
            'training_gain': alone.training,
            'held_out': _gain_record(alone.held_out),
        }
    return record


def _gain_record(gain: Gain) -> dict[str, float | None]:
    return {name: finite_or_none(number) for name, number in gain._asdict().items()}


def write_tuning(
    folder: str | Path, tuning: Tuning, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write parameter files, tune.json, parameters.csv, measures.csv and the plot, or nothing."""
    comparisons = [('search', comparison) for comparison in tuning.comparisons]
    comparisons += [('test', comparison) for comparison in tuning.tests]
    write_search_result(
        folder,
        MARK,
        record,
        texts=parameter_files(
            tuning.start, tuning.judge, _header(tuning, record), _comments(tuning)
        ),
        tables={
            'parameters.csv': (
                ('parameter', 'group', 'start', 'tuned', 'changed', 'low', 'high'),
                [
                    (parameter.name, parameter.group, parameter.start, *outcome)
                    for parameter, *outcome, _ in tuning.parameters
                ],
            ),
            'measures.csv': (
                ('recordings', 'error', 'start', 'tuned', 'held_out', 'gain', 'gain_low',
                 'gain_high'),
                [(name, *means, *gain[:3]) for name, (*means, gain) in comparisons],
            ),
        },
        figures={'tuning.png': tuning_figure(tuning, record['options']['level'])},
        overwrite=overwrite,
    )  # fmt: skip


def _header(tuning: Tuning, record: Mapping[str, Any]) -> list[str]:
    names = list_text((recording['name'] for recording in record['recordings']), 8)
    return [
        f'Tuned by `sim2real tune` from {tuning.start.name} on {names}.',
        f'{tuning.notes[0].problem}.',
        'Use it with robot_localization (ros2 run ... --ros-args --params-file) or with sim2real '
        '(--judge-config).'
        if isinstance(tuning.start, JudgeSetup)
        else 'Use it with --judge-config and the same --judge.',
    ]


def _comments(tuning: Tuning) -> dict[str, list[str]]:
    """Return the comments of each parameter of the file."""
    comments: dict[str, list[str]] = {}
    for tuned in tuning.parameters:
        parameter = tuned.parameter
        key, part = parameter.name, ''
        if parameter.group != 'declared':
            key, _, part = parameter.name.partition('.')
        if parameter.group == 'covariance':
            continue
        prefix = f'{part}: ' if part else ''
        if tuned.changed:
            low, high = (
                'open' if end is None else parameter.format_value(end)
                for end in (tuned.low, tuned.high)
            )
            interval = '' if low == high == 'open' else f' (interval {low} to {high})'
            start = (
                '' if parameter.is_factor else f', was {parameter.format_value(parameter.start)}'
            )
            value = parameter.format_value(tuned.value)
            comments.setdefault(key, []).append(f'{prefix}tuned, {value}{interval}{start}')
        elif parameter.group == 'noise':
            text = f'{prefix}unchanged: no other value is significantly better'
            comments.setdefault(key, []).append(text)
    return comments
