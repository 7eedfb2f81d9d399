# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A comparison of signals: tables for the terminal, and the folder of tables, series and plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim2real_eval.common.findings import FINDINGS, Finding, Severity, findings_text
from sim2real_eval.common.new_files import write_text
from sim2real_eval.common.results import (
    Field,
    format_field,
    fresh_folder,
    write_csv,
    write_json,
    write_rows,
)
from sim2real_eval.preflight import findings
from sim2real_eval.recording.reading import Failure
from sim2real_eval.signals.answer import SensorAnswer, sensor_answers
from sim2real_eval.signals.comparison import SignalComparison, SignalRow
from sim2real_eval.signals.features import AXES, FeatureRow
from sim2real_eval.signals.options import LIGORIO_2015, LIGORIO_2015_FEATURES
from .answer import AnswerLine
from .console import add_numbers, count_text, plain_table, round_text, short_number
from .signal_plots import UNITS, save_signal_plots, save_track_plot
from .yaw_plots import YAW_COLUMNS, yaw_rows


def signal_tables(comparison: SignalComparison, *, published: bool = False) -> Group:
    """Return two tables per kind of sensor: agreement with the truth, and distances of the sets.

    Models that have the same signals share a table, one below the other. Split-half distances,
    p-values and verdicts are shown if they exist. With `published`, the tables have the RMSE and R
    between real and simulated signals printed in [Ligorio2015]. Each table fits a terminal of 80
    characters.
    """
    groups: dict[tuple[object, ...], dict[str, list[SignalRow]]] = {}
    for model in comparison.models:
        rows = [row for row in comparison.rows if row.model == model]
        if not rows:
            continue
        same = (rows[0].n_real, rows[0].n_simulated, *(row.signal for row in rows))
        groups.setdefault(same, {})[model] = rows
    tables: list[Table | Text] = []
    aligned = comparison.options.align == 'apply'
    for models in groups.values():
        agreement = _agreement(models, published=published, aligned=aligned)
        for table in (agreement, _distances(models)):
            tables += [table, Text()]
    for features in comparison.features:
        tables += [_features_table(features, published=published), Text()]
    return Group(*tables[:-1])


def _feature_values(row: FeatureRow) -> Iterator[tuple[str, str, float, float]]:
    """Yield name, unit, and the values of the real and of the simulated camera."""
    sides = row.real, row.simulated
    for name, unit in _FEATURE_UNITS.items():
        values = [getattr(side, name) for side in sides]
        if isinstance(values[0], tuple):
            for axis, real, simulated in zip(AXES, *values, strict=True):
                yield f'{name}_{axis}', unit, real, simulated
        elif None not in values:
            yield name, unit, values[0], values[1]


def _value_text(value: float, unit: str) -> str:
    return (
        f'{value:.2%}' if unit == 'share' else round_text(value, {'px': 3, 'rad': 5}.get(unit, 4))
    )


def _features_table(row: FeatureRow, *, published: bool) -> Table:
    runs = f'{row.n_simulated} simulated and {row.n_real} real runs'
    table = _new(f'{row.model}: features against an ideal camera, {runs}')
    add_numbers(table, 'real', 'sim', *['Ligorio2015'] * published)
    features = {name: (unit, values) for name, unit, *values in _feature_values(row)}
    for name, (unit, values) in features.items():
        quantity, _, axis = name.rpartition('_')
        if quantity.endswith('_std'):
            continue
        cells = [_value_text(value, unit) for value in values]
        # Over the features, in brackets.
        if f'{quantity}_std_{axis}' in features:
            _, spread = features[f'{quantity}_std_{axis}']
            cells = [f'{a} ({_value_text(b, unit)})' for a, b in zip(cells, spread, strict=True)]
        if published:
            published_features = LIGORIO_2015_FEATURES.get(axis)
            cells.append(round_text(getattr(published_features, quantity, None), 2))
        label = name.replace('rmse', 'RMSE').replace('correlation', 'R').replace('_', ' ')
        table.add_row(Text(f'{label} [{unit}]' if unit in ('px', 'rad') else label), *cells)
    return table


def _title(models: Mapping[str, list[SignalRow]]) -> str:
    """Return the name of the only model, or the number of models and their kind of sensor."""
    if len(models) == 1:
        return next(iter(models))
    signals = {row.signal for rows in models.values() for row in rows}
    kinds = {_KINDS.get(signal.rpartition('_')[0], 'IMU') for signal in signals}
    kind = f'{kinds.pop()} ' if len(kinds) == 1 else ''
    return f'{len(models)} {kind}models'


_Columns = list[tuple[str, Callable[[SignalRow], str]]]


def _fill(table: Table, models: Mapping[str, list[SignalRow]], columns: _Columns) -> None:
    """Add the columns, and the rows of each model below its name if there are several."""
    for head, _ in columns:
        if head == _VERDICT:
            table.add_column(head, no_wrap=True)
        else:
            add_numbers(table, head)
    for model, rows in models.items():
        if len(models) > 1:
            table.add_row(Text(model, style='bold'))
        for row in rows:
            table.add_row(_name(row), *(cell(row) for _, cell in columns))


def _new(title: str) -> Table:
    table = plain_table(title, min_width=min(len(title) + 1, 78))
    table.add_column('signal', no_wrap=True)
    return table


def _agreement(models: Mapping[str, list[SignalRow]], *, published: bool, aligned: bool) -> Table:
    everything = [row for rows in models.values() for row in rows]
    first = everything[0]
    table = _new(
        f'{_title(models)}: {first.n_simulated} simulated and {first.n_real} real runs, each '
        f'compared with its truth{", certain lags subtracted" if aligned else ""}'
    )
    columns: _Columns = [
        ('RMSE\nreal', lambda row: _number(row.real.rmse, row.unit)),
        ('\nsim', lambda row: _number(row.simulated.rmse, row.unit)),
        ('R\nreal', lambda row: round_text(row.real.correlation, 3)),
        ('\nsim', lambda row: round_text(row.simulated.correlation, 3)),
    ]
    if not published:
        columns += [
            ('lag±std ms\nreal', lambda row: _lag(row.lag_real, row.lag_real_std)),
            ('\nsim', lambda row: _lag(row.lag_simulated, row.lag_simulated_std)),
        ]
    if any(row.between is not None for row in everything):
        columns += [
            ('between\nRMSE', lambda row: _number(getattr(row.between, 'rmse', None), row.unit)),
            ('\nR', lambda row: round_text(getattr(row.between, 'correlation', None), 3)),
        ]
    if published:
        columns += [
            ('Ligorio2015\nRMSE', lambda row: _number(_published_value(row, 'rmse'), row.unit)),
            ('\nR', lambda row: round_text(_published_value(row, 'correlation'), 2)),
        ]
    _fill(table, models, columns)
    return table


def _published_value(row: SignalRow, name: str) -> float | None:
    return getattr(LIGORIO_2015.get(row.signal), name, None)


def _distances(models: Mapping[str, list[SignalRow]]) -> Table:
    everything = [row for rows in models.values() for row in rows]
    split_half = any(row.error_split_half is not None for row in everything)
    judged = any(row.p_adjusted is not None for row in everything)
    table = _new(
        f'{_title(models)}: how different the errors are'
        + (', and halves of the real runs (split)' if split_half else '')
    )
    columns: _Columns = [('errors\nW1', lambda row: _number(row.error_distance, row.unit))]
    if split_half:
        columns.append(('\nsplit', lambda row: _number(row.error_split_half, row.unit)))
    if judged:
        columns.append(('\np', lambda row: _p_value(row.error_p)))
    columns.append(('spectra\ndB', lambda row: round_text(row.spectrum_distance, 1)))
    if split_half:
        columns.append(('\nsplit', lambda row: round_text(row.spectrum_split_half, 1)))
    if judged:
        columns += [
            ('\np', lambda row: _p_value(row.spectrum_p)),
            (_VERDICT, lambda row: row.verdict),
            ('\np', lambda row: _p_value(row.p_adjusted)),
        ]
    _fill(table, models, columns)
    return table


_VERDICT = 'verdict'
_FEATURE_UNITS = {
    'rmse': 'px', 'rmse_std': 'px', 'correlation': '', 'correlation_std': '', 'noise': 'px',
    'missed': 'share', 'mismatched_frames': 'share', 'mismatched': 'share',
    'line_angle_rmse': 'rad', 'line_distance_rmse': 'px',
}  # fmt: skip
_SHORT = {
    'angular_rate': 'rate',
    'specific_force': 'force',
    'position': 'position',
    'magnetic_field': 'field',
}
_KINDS = {'position': 'GPS', 'magnetic_field': 'magnetometer'}


def _name(row: SignalRow) -> Text:
    """Return a short name of the signal with its unit."""
    quantity, _, axis = row.signal.rpartition('_')
    short = _SHORT.get(quantity)
    name = row.signal if short is None else f'{short} {axis}'
    return Text(f'{name} [{UNITS.get(row.unit, (row.unit, 1.0))[0]}]')


def _number(value: float | None, unit: str) -> str:
    """Return a value with three digits in the displayed unit."""
    return short_number(None if value is None else value * UNITS.get(unit, (unit, 1.0))[1])


def _lag(value: float | None, std: float | None) -> str:
    """Return milliseconds with their standard uncertainty."""
    if value is None or std is None:
        return round_text(value if value is None else 1e3 * value, 1)
    places = max(-math.floor(math.log10(1e3 * std)), 0) if std > 0.0 else 1
    places = min(places, 2)
    # No minus before zeros.
    return f'{round(1e3 * value, places) + 0.0:.{places}f}±{1e3 * std:.{places}f}'


def _p_value(value: float | None) -> str:
    return '<.001' if value is not None and value < 0.001 else round_text(value, 3)


# Result folder of a comparison.
MARK = 'comparison.json'
"""File that every result of this kind holds."""

# Columns of comparison.csv, each with the function that gives its value.
_ROW = {
    'model': 'model', 'signal': 'signal', 'unit': 'unit',
    'n_real': 'n_real', 'n_simulated': 'n_simulated',
    'rmse_real': 'real.rmse', 'rmse_simulated': 'simulated.rmse',
    'r_real': 'real.correlation', 'r_simulated': 'simulated.correlation',
    'mean_error_real': 'real.mean', 'mean_error_simulated': 'simulated.mean',
    'rmse_between': 'between.rmse', 'r_between': 'between.correlation',
    'lag_real_s': 'lag_real', 'lag_simulated_s': 'lag_simulated', 'lag_between_s': 'lag_between',
    'lag_real_std_s': 'lag_real_std', 'lag_simulated_std_s': 'lag_simulated_std',
    'lag_between_std_s': 'lag_between_std',
    'error_distance': 'error_distance', 'error_split_half': 'error_split_half',
    'error_p': 'error_p',
    'spectrum_distance_db': 'spectrum_distance', 'spectrum_split_half_db': 'spectrum_split_half',
    'spectrum_p': 'spectrum_p', 'p_adjusted': 'p_adjusted', 'verdict': 'verdict',
}  # fmt: skip
_RUN_COLUMNS = (
    'model', 'run', 'signal', 'unit', 'samples', 'rmse', 'r', 'mean_error', 'lag_s', 'lag_std_s',
)  # fmt: skip
_TREND_RATE = 10.0


def write_signals(
    folder: str | Path,
    comparison: SignalComparison,
    record: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> None:
    """Write the result folder of a comparison: tables, series and plots.

    The files are comparison.csv, comparison.json, runs.csv, trend.csv, psd.csv, yaw.csv and the
    plots. The folder is written completely or not at all; an existing one is refused unless it
    may be replaced. `record` holds plain values for comparison.json.
    """
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'comparison.csv', tuple(_ROW), map(_row, comparison.rows))
        write_csv(fresh / 'runs.csv', _RUN_COLUMNS, _runs(comparison))
        write_rows(
            fresh / 'trend.csv',
            ('model', 'run', 'signal', 'unit', 'time_s', 'error', 'trend'),
            _trends(comparison),
        )
        write_rows(
            fresh / 'psd.csv',
            ('model', 'signal', 'frequency_hz', 'unit', 'signal_psd', 'truth_psd', 'error_psd'),
            _densities(comparison),
        )
        if any('yaw' in quantities for quantities in comparison.prepared.values()):
            write_csv(fresh / 'yaw.csv', YAW_COLUMNS, yaw_rows(comparison))
        if comparison.features:
            columns = ('model', 'quantity', 'unit', 'real', 'simulated')
            rows = (
                (row.model, *feature)
                for row in comparison.features
                for feature in _feature_values(row)
            )
            write_csv(fresh / 'features.csv', columns, rows)
        lost = [Failure(**failure) for failure in record.get('failures', ())]
        write_text(fresh / FINDINGS, findings_text(comparison.notes, lost))
        write_json(fresh / MARK, record)
        if comparison.rows:
            save_signal_plots(fresh, comparison)
        save_track_plot(fresh, comparison)


def _row(row: SignalRow) -> list[Field]:
    return [
        None if row.between is None and path.startswith('between.') else attrgetter(path)(row)
        for path in _ROW.values()
    ]


def _runs(comparison: SignalComparison) -> Iterator[tuple[Field, ...]]:
    for model, _, name, run in comparison.runs():
        lag = run.sampled.lag
        late = (None, None) if lag is None else (lag.seconds, lag.std)
        for signal, agreement in zip(
            run.sampled.quantity.labels(), run.sampled.agreements, strict=True
        ):
            unit = run.sampled.quantity.unit
            yield (
                model, name, signal, unit, agreement.samples, agreement.rmse,
                agreement.correlation, agreement.mean, *late,
            )  # fmt: skip


def _trends(comparison: SignalComparison) -> Iterator[tuple[str | float, ...]]:
    """Yield yaw errors and their trends, thinned to about 10 Hz."""
    for model, ready, name, run in comparison.runs():
        quantity = run.sampled.quantity
        if quantity.name != 'yaw':
            continue
        step = max(1, round(ready.rate / _TREND_RATE))
        trend = run.trend(ready.trend_window(comparison.options))[:, 0]
        columns = (run.even.time, run.even.error[:, 0], trend)
        names = [format_field(field) for field in (model, name, quantity.name, quantity.unit)]
        thin = [column[::step] for column in columns]
        numbers = (column.tolist() for column in thin)
        yield from zip(*map(repeat, names), *numbers, strict=False)


def _densities(comparison: SignalComparison) -> Iterator[tuple[str | float, ...]]:
    for model, side, ready in comparison.sides():
        rows = ready.shown
        frequency = ready.frequency[rows].tolist()
        kinds = [ready.density(kind, side)[rows] for kind in ('signal', 'true', 'error')]
        unit = f'({ready.quantity.unit})^2/Hz'
        for column, signal in enumerate(ready.quantity.labels()):
            first, second, third = map(format_field, (model, signal, unit))
            numbers = (kind[:, column].tolist() for kind in kinds)
            yield from zip(
                repeat(first), repeat(second), frequency, repeat(third), *numbers,
                strict=False,
            )  # fmt: skip


_HEADS = {'imu': 'Nearest IMU', 'gps': 'Nearest GPS', 'mag': 'Nearest magnetometer'}
# Stated covariances matter to filters and not to the errors of a signal.
_OF_COVARIANCES = (
    findings.NO_COVARIANCE,
    findings.PESSIMISTIC,
    findings.COVARIANCE,
    findings.COVARIANCE_LARGE,
)
_HARDLY = 0.1  # of the real RMSE
_ELSE = 'the answer is valid only for motions and sensors like those of these recordings'


def signal_answer_lines(comparison: SignalComparison) -> list[AnswerLine]:
    """Return the lines of the answer; empty if no signal was compared."""
    lines = [
        AnswerLine(_HEADS[answer.sensor], f'{_nearest(answer)}; {_verdict(answer, comparison)}')
        for answer in sensor_answers(comparison)
    ]
    if lines:
        worst = next(iter(doubts(comparison)), None)
        lines.append(AnswerLine('Main doubt', _ELSE if worst is None else str(worst)))
    return lines


def doubts(comparison: SignalComparison) -> list[Finding]:
    """Return the findings that may change the answer, the most severe first."""
    sensors = {answer.sensor for answer in sensor_answers(comparison)}
    beside = _OF_COVARIANCES if 'gps' in sensors else (*_OF_COVARIANCES, *findings.OF_FIXES)
    return [
        note
        for note in comparison.notes
        if note.severity != Severity.ROUTINE and note.kind not in beside
    ]


def _nearest(answer: SensorAnswer) -> str:
    many = f', of {answer.models}' if answer.models > 1 else ''
    text = f'{answer.nearest}{many}'
    if answer.distance is None:
        return f'{text}: not ranked, because the models have no signal with a real error in common'
    distance, ratio = short_number(answer.distance), short_number(answer.rmse_ratio)
    signals = count_text(answer.compared, 'signal')
    text += (
        f': error distance {distance} times the real RMSE (mean of {signals}), RMSE {ratio} times '
        'the real RMSE'
    )
    if answer.rmse_ratio is not None and answer.rmse_ratio < _HARDLY:
        text += ' (a sensor with almost no errors)'
    if answer.next_distance is not None:
        text += f'; next {answer.next}, {short_number(answer.next_distance)}'
    return text


def _verdict(answer: SensorAnswer, comparison: SignalComparison) -> str:
    signals = count_text(answer.signals, 'signal')
    level = f'{comparison.options.level:.3g}'
    if answer.different is None:
        row = next(row for row in comparison.rows if row.model == answer.nearest)
        runs = f'{row.n_real} real and {count_text(row.n_simulated, "simulated run")}'
        return f'{runs} are too few to show whether it is distinguishable from the real sensor'
    if not answer.different:
        by = f'any of {signals} (adjusted p > {level})'
        return f'not distinguishable from the real sensor by {by}'
    count = len(answer.different)
    names = '' if count == answer.signals else f': {", ".join(answer.different)}'
    by = f'{count} of {signals} (adjusted p <= {level}){names}'
    return f'distinguishable from the real sensor by {by}'
