# SPDX-License-Identifier: Apache-2.0
"""Result tables as CSV and JSON files: equal numbers give equal bytes."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Field = str | int | float | bool | None | np.integer | np.floating | np.bool_

_CHUNK = 1 << 14
"""Rows whose text is in memory at a time."""


def format_field(value: Field) -> str:
    """Return the text of one field.

    Floats have the shortest text that reads back to the same float. None is an empty field, and
    NaN, a number that could not be computed, is `nan`.
    """
    if value is None:
        return ''
    if isinstance(value, str):
        # A spreadsheet would evaluate it: names come from files that others may have written.
        return f"'{value}" if len(value) > 1 and value[0] in '=+-@\t\r' else value
    if isinstance(value, (bool, np.bool_)):
        return 'true' if value else 'false'
    return repr(int(value) if isinstance(value, (int, np.integer)) else float(value))


def _format_rows(header: Sequence[str], rows: Iterable[Sequence[Field]]) -> Iterator[list[str]]:
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f'row has {len(row)} fields, must have {len(header)}: {row!r}')
        yield [format_field(value) for value in row]


def _encode_rows(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield the bytes of a table, a chunk of rows at a time."""
    rows = itertools.chain([header], rows)
    while chunk := list(itertools.islice(rows, _CHUNK)):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator='\n').writerows(chunk)
        yield buffer.getvalue().encode()


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Field]]) -> Path:
    r"""Write a CSV file with `\n` line ends on every platform and return its path.

    The file appears whole. A missing folder is made. A row that has not as many fields as the
    header is a ValueError.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> write_csv(Path(mkdtemp(), 'a.csv'), ['model', 'vepd'], [['ch_rw', 0.043]]).read_text()
    'model,vepd\nch_rw,0.043\n'
    """
    return write_rows(path, header, _format_rows(header, rows))


def write_rows(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write rows of Python numbers as `write_csv` does, several times faster."""
    # The csv module writes floats with `repr` and None as an empty field.
    return write_bytes(path, _encode_rows(header, rows))


def write_columns(
    path: str | Path, header: Sequence[str], columns: Sequence[NDArray[np.float64]]
) -> Path:
    """Write columns, arrays (n,), as `write_csv` does, several times faster.

    Shorter columns end in empty fields.
    """
    chunks = (
        itertools.zip_longest(*(column[start : start + _CHUNK].tolist() for column in columns))
        for start in range(0, max(map(len, columns)), _CHUNK)
    )
    return write_rows(path, header, itertools.chain.from_iterable(chunks))


def write_json(path: str | Path, record: Any, *, allow_nan: bool = True) -> Path:
    r"""Write plain values as indented JSON, in UTF-8 with `\n` line ends on every platform.

    The file appears whole. A number that is not finite is a ValueError unless `allow_nan` is True,
    because JSON has no notation for it (RFC 8259).
    """
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=allow_nan)
    return write_bytes(path, f'{text}\n'.encode())


def write_bytes(path: str | Path, data: bytes | Iterable[bytes]) -> Path:
    """Write a file under a temporary name beside `path`, then move it there."""
    with new_file(path) as file:
        file.writelines([data] if isinstance(data, bytes) else data)
    return Path(path)


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at `path` when the block succeeds."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # tempfile would make a file that only its owner can read.
    temporary = target.with_name(f'.{target.name}.tmp-{os.getpid()}')
    try:
        with temporary.open('wb') as file:
            yield file
        temporary.replace(target)
    except OSError as error:
        # The user knows the final name only.
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)
