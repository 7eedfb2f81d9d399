# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Result folders, tables and records, moved to their place when they are complete."""

from __future__ import annotations

import contextlib
import csv
import importlib.metadata
import io
import itertools
import json
import math
import os
import platform
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.errors import Sim2RealError
from .file_list import foreign_file, list_name, remove_listed, write_list
from .new_files import encode_text, unfinished_path, write_bytes, write_text

_HOLDERS: dict[Path, int] = {}
"""Places that this process has locked, and the threads that did."""


@contextlib.contextmanager
def hold(place: str | Path) -> Iterator[None]:
    """Lock a result folder or file against other commands and threads until the block ends.

    The lock is the file `.NAME.lock` beside the place; it ends with the process. A thread may hold
    a place twice. A place without a possible lock file is not locked. A place that another
    command or thread holds, or that cannot be made, raises Sim2RealError. So does anything but an
    empty file with the name of the lock.
    """
    from filelock import FileLock, Timeout

    target = Path(place).resolve()
    if _HOLDERS.get(target) == threading.get_ident():
        yield
        return
    if not target.exists():
        check_place(target)
    new_parents = [folder for folder in target.parents if not folder.exists()]
    path = target.with_name(f'.{target.name}.lock')
    if path.is_symlink() or path.is_dir() or (path.exists() and path.stat().st_size):
        raise Sim2RealError(f'{path}: is not a lock of sim2real; move it, or choose another --out')
    lock = FileLock(path, timeout=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise Sim2RealError(
            f'{place}: another command is writing this folder; wait, or choose another --out'
        ) from None
    except (OSError, NotImplementedError) as error:
        if not target.exists():
            raise Sim2RealError(f'{place}: cannot be created; {path.parent}: {error}') from None
        # Beside a mounted folder nothing can be written, and some file systems have no locks.
    _HOLDERS[target] = threading.get_ident()
    try:
        yield
    finally:
        del _HOLDERS[target]
        if lock.is_locked:
            # Before it is released: afterwards the file may be the lock of another command.
            with contextlib.suppress(OSError):
                path.unlink()
            lock.release()
        with contextlib.suppress(OSError):
            for folder in new_parents:
                folder.rmdir()


def check_place(target: Path) -> None:
    """Raise Sim2RealError if the first existing parent of a place is no writable folder."""
    parent = next(folder for folder in target.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise Sim2RealError(f'{target}: cannot be created; {parent} is a file')
    if not os.access(parent, os.W_OK | os.X_OK):
        raise Sim2RealError(f'{target}: cannot be created; {parent} is not writable')


def check_result_folder(folder: str | Path, mark: str, *, overwrite: bool) -> None:
    """Raise Sim2RealError if a result may not be written into a folder.

    The folder must be missing or empty, or hold an older result of the same kind with `overwrite`.
    Every result of the kind has the file `mark`.
    """
    target = Path(folder)
    check_place(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not overwrite:
        raise Sim2RealError(f'{target}: exists; choose another --out or give --overwrite')
    if not (target / mark).is_file():
        raise Sim2RealError(
            f'{target}: has no {mark}, so it is not a result that can be overwritten'
        )


def check_result_files(folder: str | Path, names: Sequence[str], *, overwrite: bool) -> None:
    """Raise Sim2RealError if files may not be written into a folder that may hold others."""
    target = Path(folder)
    check_place(target)
    if target.exists() and not target.is_dir():
        raise Sim2RealError(f'{target}: is not a folder; choose another --out')
    for path in (target / name for name in names):
        if path.is_dir():
            raise Sim2RealError(f'{path}: is a folder; choose another place')
        if path.exists() and not overwrite:
            raise Sim2RealError(f'{path}: exists; choose another --out or give --overwrite')


@contextlib.contextmanager
def fresh_files(
    folder: str | Path, names: Sequence[str], *, overwrite: bool, mark: str | None = None
) -> Iterator[Path]:
    """Yield an empty folder whose files are moved into `folder` when the block succeeds.

    The files are among `names`. Older files of these names are replaced, if `overwrite` allows it;
    all other files stay. If `mark`, one of `names`, is given as the record, files of an older
    result that are not written anew are removed. See `check_result_files` and `hold` for errors.
    """
    target = Path(folder).resolve()
    with hold(target / names[0]):
        check_result_files(folder, names, overwrite=overwrite)
        with unfinished_path(target / names[0], target) as fresh:
            fresh.mkdir()
            yield fresh
            check_result_files(folder, names, overwrite=overwrite)
            written = [name for name in names if (fresh / name).exists()]
            if mark is not None:
                remove_listed(target, mark, lambda name: name not in written)
                write_list(fresh, mark, written)
                written.insert(0, list_name(mark))
            for name in written:
                (fresh / name).replace(target / name)


@contextlib.contextmanager
def fresh_folder(folder: str | Path, mark: str, *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder that becomes the result `folder` when the block succeeds.

    An older result is replaced if `overwrite` allows it; files that it does not list stay. See
    `check_result_folder`, `hold` and `new_folder` for errors.
    """
    target = Path(folder).resolve()
    with hold(folder):
        check_result_folder(folder, mark, overwrite=overwrite)
        is_result = (target / mark).is_file()
        with unfinished_path(target, target) as fresh:
            fresh.mkdir()
            yield fresh
            names = [path.as_posix() for path in _files(fresh)]
            write_list(fresh, mark, names)
            if is_result and (target / mark).is_file() and _fits_into(fresh, target, mark):
                _replace_result(fresh, target, mark, names)
            else:
                _appear(fresh, target)


@contextlib.contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """Yield a path, not made yet, that becomes the folder `folder` when the block succeeds.

    If a folder is there then, the new one is kept beside it, and a Sim2RealError says where.
    """
    target = Path(folder).resolve()
    with unfinished_path(target, target) as fresh:
        yield fresh
        _appear(fresh, target)


def _appear(fresh: Path, target: Path) -> None:
    """Move a folder to its place, or beside the place if something is there."""
    with contextlib.suppress(OSError):
        target.rmdir()  # fails unless it is an empty folder
    if not target.exists():
        fresh.rename(target)
        return
    rescue_path = Path(tempfile.mkdtemp(prefix=f'{target.name}.', dir=target.parent))
    rescue_path.rmdir()
    fresh.rename(rescue_path)
    raise Sim2RealError(
        f'{target}: holds files that this command has not written and would replace; the result '
        f'is in {rescue_path}'
    )


def _files(folder: Path) -> list[Path]:
    """Return the files and links below a folder, relative to it."""
    paths = folder.rglob('*')
    return [path.relative_to(folder) for path in paths if path.is_symlink() or not path.is_dir()]


def _fits_into(fresh: Path, target: Path, mark: str) -> bool:
    """Return whether the new files replace only files of the older result, and no folders."""
    files = _files(fresh)
    return not foreign_file(target, mark, map(str, files)) and not any(
        (target / file).is_dir() or any((target / parent).is_file() for parent in file.parents)
        for file in files
    )


def _replace_result(fresh: Path, target: Path, mark: str, names: Sequence[str]) -> None:
    """Move the files of a new result over those of an older one.

    The older mark is removed first and the new one comes last: without it, a folder is no result.
    """
    (target / mark).unlink()
    remove_listed(target, mark, lambda name: name not in names)
    for file in sorted(_files(fresh), key=lambda file: file == Path(mark)):
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (fresh / file).replace(target / file)


_PACKAGES = ('sim2real_sensors', 'numpy', 'scipy', 'numba', 'pyproj', 'rosbags')


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that affect results."""
    return {
        'python': platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return 'not installed as a package'


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
        yield encode_text(buffer.getvalue())


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Field]]) -> Path:
    r"""Write a CSV file with `\n` line ends on every platform and return its path.

    The file appears whole. A missing folder is made. A row that has not as many fields as the
    header raises ValueError.

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

    The file appears whole. See `json_text` for numbers that are not finite.
    """
    return write_text(path, json_text(record, allow_nan=allow_nan) + '\n')


def json_text(record: Any, *, indent: int | None = 2, allow_nan: bool = True) -> str:
    r"""Return plain values as JSON that every reader accepts.

    A number that is not finite is null, or a ValueError if `allow_nan` is false: JSON has no
    notation for it (RFC 8259). A text with characters that are not printable is in ASCII.

    Examples
    --------
    >>> print(json_text(['Fähre', float('nan')], indent=None), json_text('\x7f\udcff'))
    ["Fähre", null] "\u007f\udcff"
    """
    try:
        text = json.dumps(record, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        if not allow_nan:
            raise
        record = _without_nan(record)
        text = json.dumps(record, indent=indent, ensure_ascii=False)
    is_printable = text.replace('\n', '').isprintable()
    return text if is_printable else json.dumps(record, indent=indent)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(element) for element in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
