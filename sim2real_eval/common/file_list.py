# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The list of the files that belong to a result, by which a later command removes them.

The result with the record `study.json` has the list `.study.json.files`. Names are listed before
their files are written, so a killed command leaves no file without a name. A file that is not
listed is never removed and never replaced. Lists may come from others: names that lead out of the
folder, also through a link, are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_json
from .new_files import write_bytes

_ABOUT = 'Files of this result, written by sim2real; --overwrite removes these and no others.'


def list_name(mark: str) -> str:
    """Return the name of the list of a result whose record is the file `mark`."""
    return f'.{mark}.files'


def listed_files(folder: Path, mark: str) -> set[str] | None:
    """Return the names of the files of a result, relative to its folder; None without a list."""
    try:
        content = read_json(folder / list_name(mark))
        if content['about'] != _ABOUT:
            return None
        return {name for name in content['files'] if isinstance(name, str)}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write_list(folder: Path, mark: str, names: Iterable[str]) -> None:
    """Write the list of a result."""
    content = {'about': _ABOUT, 'files': sorted({*names, list_name(mark)})}
    write_bytes(folder / list_name(mark), f'{json.dumps(content, indent=0)}\n'.encode())


def list_files(folder: Path, mark: str, names: Iterable[str | Path]) -> None:
    """Add names to the list of a result, before their files are written.

    Parameters
    ----------
    folder : Path
        Folder of the result.
    mark : str
        Name of its record.
    names : iterable of str or Path
        Relative to the folder.

    Raises
    ------
    Sim2RealError
        When a file has such a name and is not listed, as it would be replaced.
    """
    old = listed_files(folder, mark)
    new = {name if isinstance(name, str) else name.as_posix() for name in names} - (old or set())
    if old is None and (folder / list_name(mark)).exists():
        raise Sim2RealError(f'{folder / list_name(mark)}: is not a list of files; move it away')
    if foreign := foreign_file(folder, mark, new):
        raise Sim2RealError(
            f'{foreign}: was not written by this command and would be replaced; move it, or '
            'choose another --out'
        )
    if new or old is None:
        write_list(folder, mark, new | (old or set()))


def foreign_file(folder: Path, mark: str, names: Iterable[str]) -> Path | None:
    """Return an existing file with one of the names that is not listed, or None.

    A result of an older version has no list; its files are not foreign.
    """
    old = listed_files(folder, mark)
    if old is None:
        return None
    foreign = (name for name in sorted(set(names) - old) if os.path.lexists(f'{folder}/{name}'))
    return next((folder / name for name in foreign), None)


def remove_listed(folder: Path, mark: str, is_outdated: Callable[[str], bool]) -> None:
    """Remove listed files whose names are outdated, and folders that become empty.

    The record and the list stay.
    """
    is_inside = functools.cache(functools.partial(_is_inside, folder))
    for name in sorted(listed_files(folder, mark) or ()):
        if name in (mark, list_name(mark)) or not is_outdated(name):
            continue
        path, place = folder / name, PurePosixPath(name)
        if not is_inside(place.parent) or place.name in ('', '..') or place.is_absolute():
            continue
        if os.path.lexists(path) and (path.is_symlink() or path.is_file()):
            path.unlink()
        with contextlib.suppress(OSError):
            for parent in place.parents[:-1]:
                (folder / parent).rmdir()  # fails unless it is an empty folder


def _is_inside(folder: Path, part: PurePosixPath) -> bool:
    """Return whether a relative path is below a folder and leads through no link."""
    try:
        return '..' not in part.parts and (folder / part).resolve() == folder.resolve() / part
    except (OSError, RuntimeError, ValueError):
        return False
