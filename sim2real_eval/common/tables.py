# SPDX-License-Identifier: Apache-2.0
"""Result tables as CSV and JSON files: the same numbers always give the same bytes."""

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

from sim_sensors.core.blocks import blocks

Field = str | int | float | bool | None | np.integer | np.floating | np.bool_


_ROWS = 1024  # whose text is in memory


def format_field(value: Field) -> str:
    """Return the text of one field.

    Floats are written with `repr`, the shortest text that reads back to the same float, so a
    recomputation from the file loses nothing. None (absent) is an empty field; a NaN is written as
    `nan`, because a number that could not be computed is not the same as none.
    """
    if value is None:
        return ''
    if isinstance(value, str):
        # A spreadsheet would compute it: a name comes from files, which others may have written.
        return f"'{value}" if len(value) > 1 and value[0] in '=+-@\t\r' else value
    if isinstance(value, (bool, np.bool_)):
        return 'true' if value else 'false'
    return repr(int(value) if isinstance(value, (int, np.integer)) else float(value))


def _fields(header: Sequence[str], rows: Iterable[Sequence[Field]]) -> Iterator[list[str]]:
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f'row has {len(row)} fields, must have {len(header)}: {row!r}')
        yield [format_field(value) for value in row]


def _texts(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the text of a table a part at a time."""
    rows = itertools.chain([header], rows)
    while part := list(itertools.islice(rows, _ROWS)):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator='\n').writerows(part)
        yield buffer.getvalue()


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Field]]) -> Path:
    r"""Write a CSV file with `\n` line ends on every platform; return its path.

    A reader sees the old file or the whole new one, never a part. A missing folder is made.
    ValueError when a row has not as many fields as the header.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> write_csv(Path(mkdtemp(), 'a.csv'), ['model', 'vepd'], [['ch_rw', 0.043]]).read_text()
    'model,vepd\nch_rw,0.043\n'
    """
    return write_rows(path, header, _fields(header, rows))


def write_rows(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write rows of Python numbers as `write_csv` would, several times faster."""
    # Which writes floats with `repr` and None as nothing, as `format_field` does.
    return write_bytes(path, (text.encode() for text in _texts(header, rows)))


def write_columns(
    path: str | Path, header: Sequence[str], columns: Sequence[NDArray[np.float64]]
) -> Path:
    """Write columns, arrays (n,), as `write_csv` would, several times faster.

    Shorter columns end in empty fields.
    """
    parts = (
        itertools.zip_longest(*(column[part].tolist() for column in columns))
        for part in blocks(max(map(len, columns)))
    )
    return write_rows(path, header, itertools.chain.from_iterable(parts))


def write_json(path: str | Path, record: Any, *, allow_nan: bool = True) -> Path:
    r"""Write plain values as JSON, indented, in UTF-8, with `\n` line ends on every platform.

    All or nothing, as `write_csv`. Without `allow_nan` a number that is not finite, which JSON has
    no words for (RFC 8259), is a ValueError.
    """
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=allow_nan)
    return write_bytes(path, f'{text}\n'.encode())


def write_bytes(path: str | Path, data: bytes | Iterable[bytes]) -> Path:
    """Write `data` under a temporary name in the same folder, then move it to `path`."""
    with new_file(path) as file:
        file.writelines([data] if isinstance(data, bytes) else data)
    return Path(path)


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file to be written, which is at `path` once it is whole; see `write_bytes`."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: it makes private files, and a result is as readable as any other new file.
    temporary = target.with_name(f'.{target.name}.tmp-{os.getpid()}')
    try:
        with temporary.open('wb') as file:
            yield file
        temporary.replace(target)
    except OSError as error:
        # The user named this file, and knows of no other.
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)
