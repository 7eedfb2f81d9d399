# SPDX-License-Identifier: Apache-2.0
"""Folders of results: written whole or not at all, and never over what is not one of ours."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sim_sensors.core.errors import Sim2RealError
from .locks import Scratch, check_place, hold, left_scratches, remove_scratch, uninterrupted

# What may be written.


def check_result_folder(folder: str | Path, mark: str, *, overwrite: bool) -> None:
    """Refuse a folder that would be overwritten; with `overwrite`, one that is not ours.

    Ours holds the file `mark`, as every result of a kind. A folder that cannot be made is refused
    as well, as far as that shows before the work is done.
    """
    target = Path(folder)
    check_place(target)
    recover(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not overwrite:
        raise Sim2RealError(f'{target}: exists; choose another --out or give --overwrite')
    if not (target / mark).is_file():
        raise Sim2RealError(f'{target}: holds no {mark}, so it is not a result to overwrite')


def check_result_files(folder: str | Path, names: Sequence[str], *, overwrite: bool) -> None:
    """Refuse a folder in which the files `names` would be overwritten, or that cannot be made.

    For results that may lie beside other files.
    """
    target = Path(folder)
    check_place(target)
    if target.exists() and not target.is_dir():
        raise Sim2RealError(f'{target}: exists and is no folder; choose another --out')
    _recover_files(target, names)
    for name in names:
        if (target / name).is_dir():
            raise Sim2RealError(f'{target / name}: is a folder; choose another place')
        if (target / name).exists() and not overwrite:
            raise Sim2RealError(
                f'{target / name}: exists; choose another --out or give --overwrite'
            )


@contextlib.contextmanager
def fresh_files(folder: str | Path, names: Sequence[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder whose files appear in `folder`, all of them, when the block ends well.

    They are among `names`; with `overwrite`, others of these names go. A command that is killed
    while they appear is completed by the next that asks for the place, one killed earlier leaves
    nothing to it. Refused is what `check_result_files` and `hold` refuse.
    """
    target = Path(folder).resolve()
    with hold(target / names[0]):
        check_result_files(folder, names, overwrite=overwrite)
        scratch = Scratch(target, f'.{names[0]}.')
        try:
            fresh = scratch.path / 'files'
            fresh.mkdir()
            with _named(fresh, target):
                yield fresh
            check_result_files(folder, names, overwrite=overwrite)
            stale = [name for name in names if overwrite and not (fresh / name).exists()]
            (scratch.path / 'stale').write_text(json.dumps(stale), encoding='utf-8')
            flush(fresh)
            with uninterrupted():
                # From here on the files are the result, whoever moves them.
                (scratch.path / 'stale').rename(scratch.path / _COMPLETE)
                _move_files(scratch.path, target, names)
            flush(target, deep=False)
        finally:
            scratch.remove()


@contextlib.contextmanager
def _named(made: Path, target: Path) -> Iterator[None]:
    """Let errors of files in a folder that is made name the place that the user named."""
    try:
        yield
    except OSError as error:
        if error.filename and Path(error.filename).is_relative_to(made):
            error.filename = str(target / Path(error.filename).relative_to(made))
        raise


_COMPLETE = 'complete'


def _move_files(scratch: Path, target: Path, names: Sequence[str]) -> None:
    """Move files to their place if they are complete; those of no other names.

    A folder of somebody else may hold what only looks like one of ours.
    """
    files = scratch / 'files'
    try:
        stale = json.loads((scratch / _COMPLETE).read_text(encoding='utf-8'))
    except (FileNotFoundError, ValueError):
        return
    for name in names:
        if isinstance(stale, list) and name in stale:
            (target / name).unlink(missing_ok=True)
        if not files.is_symlink() and (files / name).is_file():
            (files / name).replace(target / name)


def _recover_files(target: Path, names: Sequence[str]) -> None:
    """Complete or remove what killed commands have left of files that appear together."""
    for left in left_scratches(target, f'.{names[0]}.'):
        _move_files(left, target, names)
        with contextlib.suppress(OSError):
            remove_scratch(left)


# How a folder is written: beside its place, to appear as a whole.


@contextlib.contextmanager
def fresh_folder(
    folder: str | Path,
    mark: str,
    *,
    overwrite: bool,
    older: Callable[[Any], Iterable[str]] = lambda record: (),
) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` when the block ends well.

    Of an older result the files go that the new one writes as well, and those under the globs
    that `older` makes of the JSON content of its mark; all others are not ours and stay. Refused
    is what `check_result_folder`, `hold` and `new_folder` refuse.
    """
    target = Path(folder)
    with hold(folder):
        check_result_folder(folder, mark, overwrite=overwrite)
        is_ours = (target / mark).is_file()
        globs: list[str] = []
        if is_ours:
            # Whatever is wrong with an older mark, all that it does not name stays.
            with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
                globs += older(json.loads((target / mark).read_text(encoding='utf-8')))
        with new_folder(folder, lambda: is_ours and (target / mark).is_file(), globs) as fresh:
            fresh.mkdir()
            yield fresh


@contextlib.contextmanager
def new_folder(
    folder: str | Path,
    replaces: Callable[[], bool] = lambda: False,
    older: Iterable[str] = ('**/*',),
) -> Iterator[Path]:
    """Yield a path, not made yet, of the same name; what is there moves to `folder` at the end.

    Nothing that others have put there is lost: single files move into the new folder; from a
    folder that is not replaced, or a file of the same name, the new one keeps away, and a
    Sim2RealError says where it is.

    Parameters
    ----------
    folder : str or Path
    replaces : callable
        Asked at the end whether the folder that is there is to be replaced.
    older : iterable of str
        Globs of the files that are ours already, beside those that are written again.
    """
    target = Path(folder).resolve()
    before = _files(target)
    stale = set[Path]().union(*(_matches(target, glob) for glob in older))
    target.parent.mkdir(parents=True, exist_ok=True)
    recover(target)
    scratch = Scratch(target.parent, f'.{target.name}.')
    fresh, old = _parts(scratch.path, target)
    try:
        with _named(fresh, target):
            yield fresh
        if replaces():
            target.rename(old)
            ours = {path for path in before if path in stale or (fresh / path).is_file()}
            theirs = _files(old) - ours
            if any(_collides(fresh, path) for path in theirs):
                old.rename(target)
            for path in theirs if old.exists() else ():
                (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(old / path, fresh / path, follow_symlinks=False)
        flush(fresh)
        _appear(fresh, target, str(folder))
        flush(target.parent, deep=False)
    finally:
        with uninterrupted():
            if old.exists() and not target.exists():
                old.rename(target)
            scratch.remove()


def _parts(scratch: Path, target: Path) -> tuple[Path, Path]:
    """Return where the new folder is made, and where the older one is while they change places."""
    return scratch / target.name, scratch / f'{target.name}.old'


def recover(place: Path) -> None:
    """Remove what killed commands have left beside a place, but no result.

    One that was killed while an older result gave way to its own had that put back; where
    something else has come meanwhile, both stay.
    """
    target = place.resolve()
    for left in left_scratches(target.parent, f'.{target.name}.'):
        fresh, old = _parts(left, target)
        if old.exists() and not target.exists():
            old.rename(target)
        if not (old.exists() and fresh.exists()):
            with contextlib.suppress(OSError):
                remove_scratch(left)


def _appear(fresh: Path, target: Path, shown: str) -> None:
    """Move a folder to its place; beside it when that is taken."""
    with contextlib.suppress(OSError):
        target.rmdir()  # empty, or it fails
    try:
        # Onto a file or a folder with anything in it this fails.
        fresh.rename(target)
    except OSError:
        kept = Path(tempfile.mkdtemp(prefix=f'{target.name}.', dir=target.parent))
        kept.rmdir()
        fresh.rename(kept)
        raise Sim2RealError(
            f'{shown}: appeared or changed during the run and is not replaced; the result is in '
            f'{kept}'
        ) from None


def _files(folder: Path) -> set[Path]:
    return {
        path.relative_to(folder)
        for path in folder.rglob('*')
        if path.is_symlink() or not path.is_dir()
    }


def _collides(folder: Path, path: Path) -> bool:
    """Say whether something has the place of a file in a folder, or a file that of its folders."""
    return (folder / path).exists() or any((folder / each).is_file() for each in path.parents)


def _matches(folder: Path, glob: str) -> set[Path]:
    """Return what a glob, perhaps of a damaged record, names in a folder."""
    with contextlib.suppress(ValueError, NotImplementedError, OSError):
        return {path.relative_to(folder) for path in folder.glob(glob)}
    return set()


# What a power cut does not take away.

_AT_ONCE = 8  # a disk writes several at a time


def flush(place: Path, *, deep: bool = True) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk.

    Until then a power cut may leave a file of the right name with nothing in it. Without `deep`,
    of a folder only which names it holds.
    """
    paths = [place, *(place.rglob('*') if deep else ())]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_flush, paths))


def _flush(path: Path) -> None:
    # A pipe would wait for its reader; Windows opens no folders.
    if path.is_symlink() or not (path.is_file() or (path.is_dir() and os.name == 'posix')):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY if os.name == 'posix' else os.O_RDWR)
    except PermissionError:
        return  # of another user
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot
            raise
    finally:
        os.close(descriptor)


# What a result was made with: versions of the software and digests of the files.

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
