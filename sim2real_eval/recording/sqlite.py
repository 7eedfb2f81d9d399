# SPDX-License-Identifier: Apache-2.0
"""Files of SQLite storage, read as they are."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sim2real_eval.common.errors import RecordingError
from .unpacking import zstandard


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
