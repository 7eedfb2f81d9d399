# SPDX-License-Identifier: Apache-2.0
"""How recordings are stored: compressed by Zstandard, read within limits, or in SQLite's files."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim2real_eval.common.errors import RecordingError

LARGEST = 1 << 30
"""Bytes of an unpacked chunk, or of messages that wait to be decoded; a few packed bytes may
become more than a disk holds."""

_MOST_TIMES = 100
"""A file may unpack to so many times its size, and to `LARGEST` in any case: messages of real
sensors become a half to a twentieth."""
_PIECE = 1 << 20


def zstandard() -> Any:
    """Return the module of the standard library, or what stands in for it before Python 3.14."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd


def unpacked(data: bytes, most: int) -> bytes:
    """Return what was compressed, at most one byte more than `most`."""
    return bytes(zstandard().ZstdDecompressor().decompress(data, most + 1))


def unpacked_message(data: bytes, where: str) -> bytes:
    """Return a message that was compressed by itself; RecordingError where it is too large."""
    message = unpacked(data, LARGEST)
    if len(message) > LARGEST:
        problem = f'unpacks to more than {LARGEST} bytes; at most that are allowed'
        raise RecordingError(f'{where}: a message {problem}')
    return message


def check_unpacked_size(file: Path) -> None:
    """Refuse a compressed file that unpacks to far more than its size; any other file passes."""
    most = max(LARGEST, _MOST_TIMES * file.stat().st_size)
    size = 0
    try:
        with zstandard().open(file) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > most:
                    break
    except (zstandard().ZstdError, EOFError):
        return  # whoever reads it says what is wrong
    if size > most:
        problem = f'unpacks to more than {most} bytes; at most that are allowed'
        raise RecordingError(f'{file}: {problem}; unpack it with `zstd -d` if it is right')


def databases(folder: Path) -> list[Path]:
    """Return the files of a bag, without what SQLite itself has beside them."""
    return sorted(file for file in folder.iterdir() if file.name.endswith(('.db3', '.db3.zstd')))


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database of SQLite, compressed or not."""
    with contextlib.ExitStack() as stack:
        if file.suffix == '.zstd':
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            unpacked = folder / file.stem
            with zstandard().open(file) as packed, unpacked.open('wb') as plain:
                shutil.copyfileobj(packed, plain)
            file = unpacked
        name = f'{file.absolute().as_uri()}?immutable=1'
        yield stack.enter_context(contextlib.closing(sqlite3.connect(name, uri=True)))


def check_file(path: Path) -> None:
    """Refuse what SQLite itself reads without a word: a cut last page, messages left in the log.

    Byte positions: https://www.sqlite.org/fileformat.html#the_database_header
    """
    with path.open('rb') as stream:
        header = stream.read(100)
    size = path.stat().st_size
    page = int.from_bytes(header[16:18], 'big')
    page = 65536 if page == 1 else page
    pages = int.from_bytes(header[28:32], 'big')
    # The page count is valid only when both change counters agree.
    if header[24:28] == header[92:96] and size < page * pages:
        raise RecordingError(
            f'{path}: file is cut short: it has {size} bytes, its header says {page * pages}'
        )
    log = path.with_name(f'{path.name}-wal')
    if log.is_file() and log.stat().st_size:
        raise RecordingError(
            f'{path}: recording was not closed: messages are left in {log.name}; '
            "merge them with: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'"
        )
