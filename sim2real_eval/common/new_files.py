# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Files and folders that appear when they are complete, and what a killed command leaves of them.

An unfinished file has no name where Linux allows that, so a killed command leaves none. NFS does
not: there it may leave a file `.NAME.tmp-RANDOM`, which nobody removes because nothing proves
whose it is. An unfinished folder `.NAME.tmp-RANDOM` holds a note that names it, and a lock that
ends with its process. It is removed by the next command that writes NAME.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from sim_sensors.core.input_files import read_json

_NOTE = '.made_by_sim2real'
_LOCK = '.lock'
_DESCRIPTORS = Path('/proc/self/fd')


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at `path` when the block succeeds."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f'.{target.name}.tmp-{uuid.uuid4().hex}')
    try:
        unnamed = _open_unnamed(target.parent)
        # tempfile would make a file that only its owner can read.
        with unnamed or temporary.open('xb') as file:
            yield file
            file.flush()
            if unnamed:
                _give_name(unnamed, target, temporary)
        if temporary.exists():
            temporary.replace(target)
    except OSError as error:
        # The user knows the final name only.
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _open_unnamed(folder: Path) -> IO[bytes] | None:
    """Open a file without a name on the file system of a folder, or return None."""
    if not hasattr(os, 'O_TMPFILE') or not _DESCRIPTORS.is_dir():
        return None
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), 'w+b')
    except OSError:
        return None


def _give_name(file: IO[bytes], path: Path, other: Path) -> None:
    """Give a path to a file without a name, or another path if the first is in use.

    See open(2), O_TMPFILE.
    """
    source = _DESCRIPTORS / str(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Python calls linkat, which follows the link in /proc, only if a folder is given.
        os.link(source, path, src_dir_fd=folder, follow_symlinks=True)
    except FileExistsError:
        os.link(source, other, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def write_bytes(path: str | Path, data: bytes | Iterable[bytes]) -> Path:
    """Write a file that appears at `path` when it is complete."""
    with new_file(path) as file:
        file.writelines([data] if isinstance(data, bytes) else data)
    return Path(path)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text as `write_bytes` does, encoded by `encode_text`."""
    return write_bytes(path, encode_text(text))


def encode_text(text: str) -> bytes:
    """Return a text in UTF-8, with escapes of bytes of file names that are not UTF-8."""
    return text.encode(errors='backslashreplace')


@contextlib.contextmanager
def unfinished_path(place: Path, target: Path) -> Iterator[Path]:
    """Yield a path in a new folder `.NAME.tmp-RANDOM` beside a place, removed when the block ends.

    The path has the last name of `target`. Errors that name a file below it are changed to name
    the file below `target`.
    """
    from filelock import FileLock

    _remove_abandoned(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f'.{place.name}.tmp-', dir=place.parent))
    fresh = folder / target.name
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        with contextlib.suppress(OSError, NotImplementedError):
            # Some file systems have no locks. There the folder of a killed command stays.
            stack.enter_context(FileLock(folder / _LOCK))
            (folder / _NOTE).write_text(json.dumps(_identity(folder)), encoding='utf-8')
        try:
            yield fresh
        except OSError as error:
            if error.filename and Path(error.filename).is_relative_to(fresh):
                error.filename = str(target / Path(error.filename).relative_to(fresh))
            raise


def _remove_abandoned(place: Path) -> None:
    """Remove the folders that killed commands left while they wrote a place."""
    for folder in place.parent.glob(f'.{glob.escape(place.name)}.tmp-*'):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _identity(folder: Path) -> list[str | int]:
    """Return what tells a folder from copies of it, and from itself under another name."""
    return [folder.name, folder.stat().st_ino]


def _is_abandoned(folder: Path) -> bool:
    """Return whether a folder was made by a command that has ended without removing it."""
    from filelock import FileLock, Timeout

    if folder.is_symlink():
        return False
    try:
        if read_json(folder / _NOTE) != _identity(folder):
            return False
        with FileLock(folder / _LOCK, timeout=0):
            return True
    except (OSError, ValueError, RecursionError, NotImplementedError, Timeout):
        return False
