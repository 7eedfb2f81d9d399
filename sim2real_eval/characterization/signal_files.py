# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Signals from files: recordings, tables of numbers (CSV) and numpy arrays."""

from __future__ import annotations

import dataclasses
import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding, RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.rosbag import STORAGE_SUFFIXES
from sim_sensors.core.input_files import check_input, open_input
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.parameters import parse_float
from . import findings
from .options import TableOptions
from .sheet_units import UnitError, unit_size
from .signals import AXES, UNIT_OPTIONS, SignalFileError, Signals, quantity_of
from .signals import signals_of as signals_of_recording
from .stamps import ordinary_step

TIME_COLUMNS = {
    'stamp_ns': 1.0, 'time_ns': 1.0, 'time_us': 1e3, 'time_ms': 1e6,
    'time': 1e9, 't': 1e9, 'timestamp': 1e9, 'time_s': 1e9,
}  # fmt: skip
"""Nanoseconds in 1 of a column, by its name in lower case."""

# s between samples; no inertial sensor is slower or faster, but milliseconds read as seconds are,
# or seconds as milliseconds.
_LONGEST_STEP = 2.0
_SHORTEST_STEP = 2e-5


def nanoseconds(column: NDArray[Any], name: str) -> IntArray:
    """Return the times of a column of real numbers, `(n,)` ns, in the unit that its name tells.

    The name is one of `TIME_COLUMNS`, in any case. ValueError for what is no time, or steps that
    no inertial sensor has: the unit is another.
    """
    size = TIME_COLUMNS[name.lower()]
    unit = {1.0: 'ns', 1e3: 'us', 1e6: 'ms'}.get(size, 's')
    other = f'in {unit}; name it stamp_ns, time_us, time_ms or time (s) in --columns'
    if np.issubdtype(column.dtype, np.integer) and size == 1.0:
        stamps = np.asarray(column, np.int64)
    else:
        exact = np.asarray(column, np.float64) * size
        good = np.abs(exact) < 2.0**63
        if not good.all():
            bad = int(np.argmin(good))
            raise ValueError(f'{name} of sample {bad} is {column[bad]}; must be a time {other}')
        stamps = np.asarray(np.rint(exact), np.int64)
    step = ordinary_step(stamps) * 1e-9 if len(stamps) > 2 else 0.0
    if step and not _SHORTEST_STEP <= step <= _LONGEST_STEP:
        raise ValueError(
            f'{name} steps by {step:.3g} s; must be {_SHORTEST_STEP:g} to {_LONGEST_STEP:g} s '
            f'{other}'
        )
    return stamps


# Other names that people give to columns, in lower case.
_ALIASES = {
    **{f'w{axis}': f'gyroscope_{axis}' for axis in 'xyz'},
    **{f'g{axis}': f'gyroscope_{axis}' for axis in 'xyz'},
    **{f'a{axis}': f'accelerometer_{axis}' for axis in 'xyz'},
    **{
        f'{name}{gap}{axis}': f'{quantity}_{axis}'
        for quantity, names in (
            ('gyroscope', ('gyro', 'gyr', 'gyroscope', 'angular_velocity', 'angvel', 'rate')),
            (
                'accelerometer',
                ('acc', 'accel', 'accelerometer', 'acceleration', 'linear_acceleration'),
            ),
        )
        for name in names
        for gap in ('_', '', '.', ' ')
        for axis in 'xyz'
    },
}
# A name with its unit in brackets, such as `ax [g]` or `time (ms)`.
_WITH_UNIT = re.compile(r'\s*(.*?)\s*[\[(](.*)[\])]\s*')
_TIMES = {'ns': 'stamp_ns', 'us': 'time_us', 'ms': 'time_ms', 's': 'time'}
_TABLES = ('.csv', '.txt', '.dat', '.npy', '.npz')


def read_signals(
    path: str | Path,
    options: TableOptions | None = None,
    topics: Mapping[str, str | None] | None = None,
) -> Signals:
    """Read a recording, or a table: .csv, .txt or .dat text, .npy or .npz.

    A .npy array has the columns `columns`; the arrays of a .npz are taken by name, `gyro` and
    `acc` being (n, 3), and its `rate` or `fs` is the rate. Rate and columns are for tables only,
    topics (see `sim2real_eval.recording.read_recording`) for recordings only. A Sim2RealError
    names the file, what was found and what is allowed.
    """
    path, options = Path(path), options or TableOptions()
    if path.is_dir() or path.suffix not in _TABLES:
        for name, value in (('sample-rate', options.rate), ('columns', options.columns)):
            if value:
                raise SignalFileError(f'--{name}: goes with tables only; {path} is a recording')
        return signals_of_recording(_recording(path, topics)).converted(options.si_factors)
    if not path.exists():
        raise SignalFileError(f'{path}: no such file or folder')
    try:
        table = _read_table(path, options)
    except (ValueError, OSError, EOFError, KeyError) as error:
        reason = ' '.join(str(getattr(error, 'strerror', None) or error).split())
        raise SignalFileError(f'{path}: cannot be read as a table of numbers: {reason}') from None
    return _signals(path, table, options).converted(options.si_factors)


def _recording(path: Path, topics: Mapping[str, str | None] | None) -> Recording:
    if path.is_file() and path.suffix not in STORAGE_SUFFIXES:
        raise SignalFileError(
            f'{path}: neither a recording nor a table; must be a folder, '
            f'{", ".join(STORAGE_SUFFIXES)}, or a table: {", ".join(_TABLES)}'
        )
    try:
        recording = read_recording(path, topics=topics)
        recording.require('imu')
        return recording
    except RecordingError as error:
        inside = sorted(path.iterdir()) if path.is_dir() else []
        tables = [table for table in inside if table.suffix in _TABLES]
        if not tables or any(file.suffix in STORAGE_SUFFIXES for file in inside):
            raise
        tables.sort(key=lambda table: 'imu' not in table.name)
        raise SignalFileError(f'{error}; is {tables[0]} a table? then name that file') from None


@dataclasses.dataclass
class _Table:
    """Columns by name, and the stamps among them."""

    names: Sequence[str]
    values: NDArray[Any]
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stamp_ns: IntArray | None = None
    rate: float | None = None


def _read_table(path: Path, options: TableOptions) -> _Table:
    if path.suffix == '.npy':
        check_input(path)
        array = _real(np.load(path, mmap_mode='r', allow_pickle=False), 'the array')
        return _split(_Table(options.columns, array if array.ndim == 2 else array[:, None]))
    if path.suffix == '.npz':
        if options.columns:
            raise SignalFileError(
                '--columns: the arrays of a .npz file are taken by name; select with --axis'
            )
        with open_input(path) as file, np.load(file, allow_pickle=False) as content:
            return _from_npz(content)
    with io.TextIOWrapper(open_input(path), 'utf-8') as stream:
        first = stream.readline()
    separator = ',' if ',' in first else ';' if ';' in first else None
    words = [word.strip().strip('"') for word in first.lstrip('#').strip().split(separator)]
    header = any(parse_float(word) is None for word in words)
    layout: dict[str, Any] = {'delimiter': separator, 'skiprows': int(header), 'comments': '#'}
    names, units = _names_and_units(options.columns or (words if header else ()))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)  # that there is nothing: said below
        table = _Table(names, np.loadtxt(path, ndmin=2, **layout), units)
    if not table.values.size:
        raise ValueError('no numbers in it')
    sizes = [TIME_COLUMNS.get(name.lower()) for name in names]
    stamps = sizes.index(1.0) if 1.0 in sizes else None
    if stamps is None:
        return _split(table)
    try:
        # Nanoseconds of the present epoch have more digits than a float.
        column = np.loadtxt(path, usecols=stamps, dtype=np.int64, ndmin=1, **layout)
    except ValueError:
        column = table.values[:, stamps]  # written as 1.7e18, as numpy does
    table.stamp_ns = nanoseconds(column, names[stamps])
    return table


def _names_and_units(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of columns without units in brackets, and the units by name."""
    names, units = [], {}
    for word in words:
        match = _WITH_UNIT.fullmatch(word)
        name, unit = (match[1], match[2]) if match else (word, '')
        if name.lower() in TIME_COLUMNS and unit in _TIMES:
            name = _TIMES[unit]
        elif unit:
            units[name] = unit
        names.append(name)
    return tuple(names), units


def _split(table: _Table) -> _Table:
    """Take the stamps out of a table whose columns have one type."""
    for index, name in enumerate(table.names):
        if name.lower() in TIME_COLUMNS and index < table.values.shape[1]:
            table.stamp_ns = nanoseconds(table.values[:, index], name)
    return table


def _real(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim not in (1, 2) or array.dtype.kind not in 'fiu':
        raise ValueError(
            f'{name} has {array.ndim} dimensions of type {array.dtype}; must be one or two of '
            'real numbers'
        )
    return array


def _from_npz(content: Any) -> _Table:
    table = _Table([], np.empty((0, 0)))
    names: list[str] = []
    columns: list[NDArray[Any]] = []
    for key in content.files:
        array = content[key]
        if key in ('rate', 'fs') and array.size == 1:
            table.rate = float(_real(array.reshape(1), key)[0])
            if not 0.0 < table.rate < math.inf:
                raise ValueError(f'{key} is {table.rate}; must be a number > 0')
        elif key.lower() in TIME_COLUMNS and array.ndim == 1:
            table.stamp_ns = nanoseconds(_real(array, key), key)
        elif array.ndim == 2 and array.shape[1] == 3:
            names += [f'{key}_{axis}' for axis in 'xyz']
            columns += list(_real(array, key).T)
        elif array.ndim == 1:
            names.append(key)
            columns.append(_real(array, key))
    if not columns:
        raise ValueError('no array of one column, or of three')
    table.names, table.values = names, np.stack(columns, axis=1)
    count = len(table.values) if table.stamp_ns is None else len(table.stamp_ns)
    if count != len(table.values):
        raise ValueError(f'{count} times for {len(table.values)} samples; must be one for each')
    return table


def _signals(path: Path, table: _Table, options: TableOptions) -> Signals:
    width = table.values.shape[1]
    if not table.names:
        raise SignalFileError(
            f'{path}: {width} columns without names; name them with --columns, such as '
            f'{",".join(AXES[:width])}'
        )
    if len(table.names) != width:
        raise SignalFileError(f'{path}: {width} columns, but {len(table.names)} names for them')
    names = [_ALIASES.get(name.lower(), name.lower()) for name in table.names]
    axes = tuple(axis for axis in AXES if axis in names)
    twice = [axis for axis in axes if names.count(axis) > 1]
    if not axes or twice:
        problem = f'{twice[0]} is named twice' if twice else 'no axis is named'
        raise SignalFileError(
            f'{path}: {problem} among {", ".join(table.names)}; name the columns with --columns: '
            f'{", ".join(AXES)}, time, stamp_ns, and - for others'
        )
    values = table.values
    chosen = [names.index(axis) for axis in axes]
    if chosen != list(range(width)):
        values = values[:, chosen]
    rate = options.rate or table.rate
    notes = _unit_notes(table, options)
    if table.stamp_ns is not None:
        seconds = np.diff(table.stamp_ns) == 1_000_000_000
        if rate is None and len(seconds) and seconds.all():
            notes += (findings.ONE_SECOND(),)
        return Signals(path.stem, axes, values, table.stamp_ns, rate, notes)
    if rate is None:
        raise SignalFileError(f'{path}: no column time or stamp_ns; give the --sample-rate')
    if table.rate is not None and rate != table.rate:
        notes += (findings.RATE_USED(found=table.rate, given=rate),)
    return Signals(path.stem, axes, values, None, rate, notes)


def _unit_notes(table: _Table, options: TableOptions) -> tuple[Finding, ...]:
    """Return a finding per sensor whose unit in the header is not the unit of the options."""
    notes = {}
    for name, text in table.units.items():
        quantity = quantity_of(_ALIASES.get(name.lower(), name.lower()))
        option = UNIT_OPTIONS.get(quantity)
        if option is None or getattr(options, f'{quantity}_scale') != 1.0:
            continue
        assumed_unit = getattr(options, f'{quantity}_unit')
        try:
            is_other = not math.isclose(unit_size(text), unit_size(assumed_unit), rel_tol=1e-3)
        except UnitError:
            continue
        if is_other:
            notes[quantity] = findings.HEADER_UNIT(
                name, stated=text, taken=assumed_unit, option=option
            )
    return tuple(notes.values())
