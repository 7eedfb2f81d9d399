# SPDX-License-Identifier: Apache-2.0
"""One CSV file of messages <-> one array, plain or gzip, numbers exact both ways."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.camera.pinhole import LARGEST
from sim_sensors.core.measurements import MessageArray, OdometryArray
from .findings import NO_LINE_END
from .message_types import MessageType

_TRUTH_ALIASES = {'vx_body': 'vx', 'vy_body': 'vy', 'vz_body': 'vz'}
TRUTH_COLUMNS = (
    'stamp_ns',
    *('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'),
    *('vx_body', 'vy_body', 'vz_body', 'wx', 'wy', 'wz'),
)
_TRUTH_FRAME, _TRUTH_CHILD = 'map', 'base_link'


def read_header(path: Path) -> list[str]:
    """Return the names of a file's columns; what is wrong with them `read_table` tells."""
    return next(csv.reader(io.StringIO(_text_of(path), newline='')), [])


def read_table(
    path: Path, kind: MessageType, *, truth: bool = False
) -> tuple[MessageArray, tuple[Finding, ...]]:
    """Read one file with a header line; the order of its columns is free.

    In the ground truth frame, child, arrival and covariances may be missing: frame map, child
    base_link, zero covariances. A RecordingError names file, line, column, value and what is
    allowed.
    """
    text = _text_of(path)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=''), strict=True))
    except csv.Error as error:
        raise RecordingError(f'{path}: not CSV: {error}') from None
    if not rows:
        raise RecordingError(f'{path}: file is empty; must start with a header line')
    header = [_TRUTH_ALIASES.get(name, name) if truth else name for name in rows[0]]
    body = rows[1:]
    _check_header(path, kind, header, truth)
    for line, row in enumerate(body, 2):
        if len(row) != len(header):
            raise RecordingError(
                f'{path}: line {line}: {len(row)} values, the header names {len(header)} '
                '(truncated file?)'
            )
    columns: Sequence[Sequence[str]] = list(zip(*body, strict=True)) or [()] * len(header)
    codes = {'arrival_ns': 'i8', 'stamp_ns': 'i8'}
    codes |= {name: field.code for field in kind.fields for name in field.columns}
    table = {
        name: _parse(path, name, column, codes[name]) if name in codes else column
        for name, column in zip(header, columns, strict=True)
    }
    array = _array(path, kind, table, len(body), truth)
    is_cut = body and not text.endswith('\n')
    return array, (NO_LINE_END(path.name),) if is_cut else ()


def write_table(
    path: Path, kind: MessageType, array: MessageArray, *, truth: bool = False
) -> None:
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes.

    The ground truth takes the short layout of the reference traces when that loses nothing.
    """
    short = truth and isinstance(array, OdometryArray) and _is_plain_truth(array)
    count = len(array)
    columns: dict[str, list[Any]] = {'stamp_ns': array.stamp_ns.tolist()}
    if not kind.has_header:
        columns = {'arrival_ns': array.arrival_ns.tolist()}
    elif not short:
        columns = {'arrival_ns': array.arrival_ns.tolist(), **columns}
        columns['frame'] = [array.frame] * count
        if isinstance(array, OdometryArray):
            columns['child'] = [array.child_frame] * count
        if kind.text:
            columns[kind.text] = [getattr(array, kind.text)] * count
    for field in kind.csv_fields:
        if not (short and field.attribute.endswith('covariance')):
            values = getattr(array, field.attribute).reshape(count, len(field.columns))
            columns |= zip(field.columns, values.T.tolist(), strict=True)
    # The csv module prints floats with repr, so that they read back to the same bits.
    text = io.StringIO(newline='')
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(TRUTH_COLUMNS if short else columns)
    writer.writerows(zip(*columns.values(), strict=True))
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == '.gz' else data)


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
        if path.suffix == '.gz':
            data = gzip.decompress(data)
        return data.decode()
    except EOFError:
        raise RecordingError(f'{path}: gzip file is cut short') from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordingError(f'{path}: gzip file is damaged: {error}') from None
    except UnicodeDecodeError as error:
        raise RecordingError(f'{path}: byte {error.start} is not UTF-8 text') from None
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None


def _check_header(path: Path, kind: MessageType, header: Sequence[str], truth: bool) -> None:
    labels = {'frame', 'child'} if kind.has_child else {'frame'}
    required = {'stamp_ns', kind.text or 'stamp_ns'} | (set() if truth else labels)
    allowed = required | labels | {'arrival_ns'}
    if not kind.has_header:
        required, allowed = {'arrival_ns'}, {'arrival_ns'}
    for field in kind.fields:
        allowed.update(field.columns)
        # The covariances of a truth are whole or missing.
        is_covariance = field.attribute.endswith('covariance')
        if not (truth and is_covariance and set(field.columns).isdisjoint(header)):
            required.update(field.columns)
    missing = sorted(required - set(header))
    unknown = sorted(set(header) - allowed)
    repeated = sorted({name for name in header if header.count(name) > 1})
    for problem, names in (('missing', missing), ('unknown', unknown), ('repeated', repeated)):
        if names:
            shown = ', '.join(names[:5]) + (' ...' if len(names) > 5 else '')
            raise RecordingError(f'{path}: {problem} column {shown}; {kind.name} is expected')


def _parse(path: Path, name: str, column: Sequence[str], code: str) -> Any:
    """Return the numbers of a column that is `code` in a message; that of `u4` is held to it."""
    convert: Any = float if code[0] == 'f' else int
    kind = np.float64 if convert is float else np.int64

    def numbers(texts: Sequence[str]) -> Any:
        joined = ''.join(texts)
        if not joined.isascii() or '_' in joined:
            # Python alone takes 1_000 and the digits of all scripts.
            raise ValueError
        return np.array(list(map(convert, texts)), kind)

    try:
        values = numbers(column)
    except (ValueError, OverflowError):
        for line, value in enumerate(column, 2):
            try:
                numbers([value])
            except (ValueError, OverflowError):
                allowed = 'a 64-bit integer' if convert is int else 'a number'
                raise RecordingError(
                    f'{path}: line {line}: {name}: {value[:40]!r} is not allowed; '
                    f'must be {allowed}'
                ) from None
        raise
    if code == 'u4' and (wrong := (values < 0) | (values > LARGEST)).any():
        line = int(np.argmax(wrong))
        raise RecordingError(
            f'{path}: line {line + 2}: {name}: {values[line]} is not allowed; must be in '
            f'0 .. {LARGEST}'
        )
    return values


def _array(
    path: Path, kind: MessageType, table: dict[str, Any], count: int, truth: bool
) -> MessageArray:
    texts = []
    for name, default in (('frame', _TRUTH_FRAME), ('child', _TRUTH_CHILD), (kind.text, '')):
        column = table.get(name)
        texts.append(column[0] if column else default if truth else '')
        what = 'frames' if name in ('frame', 'child') else 'values'
        if column and any(value != column[0] for value in column):
            values = sorted(set(column))
            raise RecordingError(
                f'{path}: {name}: {len(values)} different {what} ({", ".join(values[:4])}); '
                'must be the same on every line'
            )
    fields = {}
    for attribute, names, shape, _ in kind.csv_fields:
        there = [table[name] for name in names if name in table]
        found: Any = np.stack(there, axis=-1) if there else np.zeros((count, len(names)))
        fields[attribute] = found.reshape(count, *shape)
    frame, child, text = texts
    if kind.text:
        fields[kind.text] = text
    stamps = table['stamp_ns' if kind.has_header else 'arrival_ns']
    return kind.array_of(stamps, table.get('arrival_ns', stamps), frame, child, fields)


def _is_plain_truth(array: OdometryArray) -> bool:
    return bool(
        array.frame == _TRUTH_FRAME
        and array.child_frame == _TRUTH_CHILD
        and np.array_equal(array.arrival_ns, array.stamp_ns)
        and not array.pose_covariance.any()
        and not array.twist_covariance.any()
    )
