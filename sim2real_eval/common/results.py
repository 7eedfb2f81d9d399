# SPDX-License-Identifier: Apache-2.0
"""Folders of results: written whole or not at all, and never over what is not one of ours."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sim_sensors.core.errors import Sim2RealError


def check_result_folder(folder: str | Path, mark: str, *, overwrite: bool) -> None:
    """Refuse a folder that would be overwritten; with `overwrite`, one that is not ours.

    And one that cannot be made, as far as that shows before the work is done.

    Parameters
    ----------
    folder : str or Path
    mark : str
        File that every result of this kind holds.
    overwrite : bool

    Raises
    ------
    Sim2RealError
    """
    target = Path(folder)
    _check_place(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not overwrite:
        raise Sim2RealError(f'{target}: exists; choose another --out or give --overwrite')
    if not (target / mark).is_file():
        raise Sim2RealError(f'{target}: holds no {mark}, so it is not a result to overwrite')


def check_result_files(folder: str | Path, names: Sequence[str], *, overwrite: bool) -> None:
    """Refuse a folder in which files would be overwritten, or that cannot be made.

    For results that may lie beside other files.

    Parameters
    ----------
    folder : str or Path
    names : sequence of str
        Files that will be written.
    overwrite : bool

    Raises
    ------
    Sim2RealError
        Naming what is in the way.
    """
    target = Path(folder)
    _check_place(target)
    if target.exists() and not target.is_dir():
        raise Sim2RealError(f'{target}: exists and is no folder; choose another --out')
    for name in names:
        if (target / name).exists() and not overwrite:
            raise Sim2RealError(
                f'{target / name}: exists; choose another --out or give --overwrite'
            )


def _check_place(target: Path) -> None:
    above = next(each for each in target.absolute().parents if each.exists())
    if not above.is_dir():
        raise Sim2RealError(f'{target}: cannot be made; {above} is a file')
    if not os.access(above, os.W_OK | os.X_OK):
        raise Sim2RealError(f'{target}: cannot be made; {above} may not be written')


@contextlib.contextmanager
def fresh_folder(folder: str | Path, mark: str, *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` when the block ends well.

    Parameters
    ----------
    folder, mark, overwrite
        As in `check_result_folder`.

    Raises
    ------
    Sim2RealError
        When the folder exists and may not be replaced.
    """
    check_result_folder(folder, mark, overwrite=overwrite)
    target = Path(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f'.{target.name}.', dir=target.parent))
    try:
        fresh = scratch / 'new'
        fresh.mkdir()
        yield fresh
        if target.exists():
            target.rename(scratch / 'old')
        fresh.rename(target)
    finally:
        shutil.rmtree(scratch)


# -------- What a result was made with: versions of the software and digests of the files.

_PACKAGES = ('sim2real_sensors', 'numpy', 'scipy', 'numba', 'pyproj', 'rosbags')


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that shape results."""
    found = {'python': platform.python_version()}
    return found | {package: version(package) for package in _PACKAGES}


def version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return 'not installed as a package'


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's contents as hexadecimal text."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
