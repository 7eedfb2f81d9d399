# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Digests of files, which are not computed again while a file stays as it is."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import NamedTuple

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import open_input

_CHUNK = 1 << 20


class ChangedError(Sim2RealError):
    """Code or an input of a study is not what the study was begun with."""


class FileState(NamedTuple):
    """State of a file that changes with its content."""

    size: int  # bytes
    mtime_ns: int
    ctime_ns: int  # a copy that restores the modification time changes it
    inode: int


def file_state(path: Path) -> FileState:
    """Return the state of a file; one that cannot be read is an OSError."""
    state = path.stat()
    return FileState(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file as hexadecimal text."""
    path = Path(path).absolute()
    return _file_digest(path, file_state(path))


@functools.lru_cache(maxsize=1024)
def _file_digest(path: Path, state: FileState) -> str:
    digest = hashlib.sha256()
    _add_content(digest, path)
    return digest.hexdigest()


class NamedFile(NamedTuple):
    """A file, the name under which it counts, and its state."""

    name: str
    path: Path
    state: FileState


@functools.lru_cache(maxsize=1024)
def files_digest(files: tuple[NamedFile, ...]) -> str:
    """Return the SHA-256 of the names, sizes and contents of files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f'{file.name}\x00{file.state.size}\x00'.encode())
        _add_content(digest, file.path)
    return digest.hexdigest()


def _add_content(digest: hashlib._Hash, path: Path) -> None:
    with open_input(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
