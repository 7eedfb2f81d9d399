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
from sim2real_eval.recording.findings import NO_LINE_END
from sim2real_eval.recording.message_types import MessageType
from sim_sensors.core.measurements import MessageArray, OdometryArray

_INTEGERS = (
    *('arrival_ns', 'stamp_ns', 'status', 'cov_type', 'id', 'age'),
    *('width', 'height', 'binning_x', 'binning_y'),
    *('roi_x_offset', 'roi_y_offset', 'roi_height', 'roi_width', 'roi_do_rectify'),
)
_TEXTS = ('frame', 'child', 'distortion_model')
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
    """Read one file.

    Parameters
    ----------
    path : Path
        File with a header line; the order of its columns is free.
    kind : MessageType
        Type of its messages.
    truth : bool
        True for the ground truth, where frame, child, arrival and covariances may be missing:
        frame map, child base_link, zero covariances.

    Raises
    ------
    RecordingError
        Naming file, line, column, value and what is allowed.
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
    table = {
        name: _parse(path, name, column) for name, column in zip(header, columns, strict=True)
    }
    array = _array(path, kind, table, len(body), truth)
    notes: tuple[Finding, ...] = ()
    if body and not text.endswith('\n'):
        notes = (NO_LINE_END(path.name),)
    return array, notes


def write_table(
    path: Path, kind: MessageType, array: MessageArray, *, truth: bool = False
) -> None:
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes.

    The ground truth takes the short layout of the reference traces when that loses nothing.
    """
    short = truth and isinstance(array, OdometryArray) and _is_plain_truth(array)
    names: list[str] = ['stamp_ns'] if short else ['arrival_ns', 'stamp_ns', 'frame']
    columns: list[Sequence[Any]] = [array.stamp_ns.tolist()]
    if not short:
        columns = [array.arrival_ns.tolist(), *columns, [array.frame] * len(array)]
    if isinstance(array, OdometryArray) and not short:
        names.append('child')
        columns.append([array.child_frame] * len(array))
    if kind.text:
        names.append(kind.text)
        columns.append([getattr(array, kind.text)] * len(array))
    for attribute, entries in kind.columns:
        if short and attribute.endswith('covariance'):
            continue
        names.extend(entries)
        values = getattr(array, attribute).reshape(len(array), len(entries))
        columns.extend(values[:, index].tolist() for index in range(len(entries)))
    if short:
        names = list(TRUTH_COLUMNS)
    # The csv module prints floats with repr, so that they read back to the same bits.
    text = io.StringIO(newline='')
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
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
    values = [(attribute, name) for attribute, names in kind.columns for name in names]
    required = {'stamp_ns'} | {
        name for attribute, name in values if not (truth and attribute.endswith('covariance'))
    }
    if not truth:
        required |= {'frame', 'child'} if kind.has_child else {'frame'}
    if kind.text:
        required.add(kind.text)
    allowed = required | {name for _, name in values} | {'arrival_ns', 'frame'}
    if kind.has_child:
        allowed.add('child')
    missing = sorted(required - set(header))
    unknown = sorted(set(header) - allowed)
    repeated = sorted({name for name in header if header.count(name) > 1})
    for problem, names in (('missing', missing), ('unknown', unknown), ('repeated', repeated)):
        if names:
            shown = ', '.join(names[:5]) + (' ...' if len(names) > 5 else '')
            raise RecordingError(f'{path}: {problem} column {shown}; {kind.name} is expected')


def _parse(path: Path, name: str, column: Sequence[str]) -> Any:
    if name in _TEXTS:
        return column
    convert: Any = int if name in _INTEGERS else float
    try:
        return np.array(list(map(convert, column)), np.int64 if convert is int else np.float64)
    except (ValueError, OverflowError):
        for line, value in enumerate(column, 2):
            try:
                np.array(convert(value), np.int64 if convert is int else np.float64)
            except (ValueError, OverflowError):
                allowed = 'a 64-bit integer' if convert is int else 'a number'
                raise RecordingError(
                    f'{path}: line {line}: {name}: {value[:40]!r} is not allowed; '
                    f'must be {allowed}'
                ) from None
        raise


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
    fields: dict[str, Any] = {}
    for attribute, names in kind.columns:
        shape = {9: (3, 3), 36: (6, 6), 1: ()}.get(len(names), (len(names),))
        if names[0] in table:
            fields[attribute] = np.stack([table[name] for name in names], axis=-1).reshape(
                count, *shape
            )
        else:
            fields[attribute] = np.zeros((count, *shape))
    if 'linear_velocity' in fields and 'twist_covariance' not in fields:
        fields['twist_covariance'] = np.zeros((count, 6, 6))
    if kind.has_child:
        fields['child_frame'] = texts[1]
    if kind.text:
        fields[kind.text] = texts[2]
    stamps = table['stamp_ns']
    return kind.array(
        stamp_ns=stamps, arrival_ns=table.get('arrival_ns', stamps), frame=texts[0], **fields
    )


def _is_plain_truth(array: OdometryArray) -> bool:
    return bool(
        array.frame == _TRUTH_FRAME
        and array.child_frame == _TRUTH_CHILD
        and np.array_equal(array.arrival_ns, array.stamp_ns)
        and not array.pose_covariance.any()
        and not array.twist_covariance.any()
    )
