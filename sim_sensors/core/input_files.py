# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The one place that opens inputs, and matches patterns of their names.

Inputs may come from strangers. A pipe, a socket or a device has no known end, so a program that
opens one may wait for ever.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

_KINDS = {
    stat.S_IFDIR: 'folder',
    stat.S_IFIFO: 'pipe',
    stat.S_IFSOCK: 'socket',
    stat.S_IFCHR: 'device',
    stat.S_IFBLK: 'device',
}


def check_input(path: str | Path) -> None:
    """Raise OSError unless a path is a regular file, for libraries that open it themselves."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - its error names the path as it was given
    except ValueError:
        # The path has a null character, or one that no file system can hold.
        raise OSError(errno.EINVAL, 'is not a file name', str(path)) from None
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), 'special file')
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, f'is a {kind}; must be a file', str(path))


def check_inputs(path: str | Path) -> None:
    """Raise OSError for a file, or a file in a folder, that `check_input` refuses.

    Hidden files and links that lead nowhere do not count.
    """
    if not os.path.isdir(path):  # noqa: PTH112 - is never an error
        check_input(path)
        return
    for file in sorted(Path(path).iterdir()):
        if file.name[0] != '.' and file.exists() and not file.is_dir():
            check_input(file)


def open_input(path: str | Path) -> BinaryIO:
    """Open a regular file for reading bytes; all problems are an OSError with a clear text."""
    check_input(path)
    return Path(path).open('rb')


def read_input(path: str | Path) -> bytes:
    """Return the bytes of a regular file; see `open_input` for errors."""
    with open_input(path) as file:
        return file.read()


def read_input_text(path: str | Path) -> str:
    """Return the text of a regular file in UTF-8, without a byte order mark.

    Other bytes are an OSError that names the first; see `open_input` for other errors.
    """
    try:
        return read_input(path).decode('utf-8-sig')
    except UnicodeDecodeError as error:
        problem = f'is not UTF-8 text at byte {error.start}'
        raise OSError(errno.EILSEQ, problem, str(path)) from None


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file; other text raises ValueError or RecursionError.

    See `read_input_text` for other errors.
    """
    return json.loads(read_input_text(path))


def match_paths(pattern: str, folder: str | Path = '.') -> list[str]:
    """Return the paths that a pattern matches, in order.

    A path that exists is not taken as a pattern. `folder`, of relative patterns, never is.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp(), 'exp[1]')
    >>> (folder / 'bag[2]').mkdir(parents=True)
    >>> [Path(path).name for path in match_paths('bag*', folder) + match_paths('bag[2]', folder)]
    ['bag[2]', 'bag[2]']
    """
    path = Path(folder) / pattern
    if os.path.exists(path):  # noqa: PTH110 - is never an error
        return [str(path)]
    return sorted(glob.glob(str(Path(glob.escape(str(folder))) / pattern)))  # noqa: PTH207
