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
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sim_sensors.core.errors import Sim2RealError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# What may be written.


def check_result_folder(folder: str | Path, mark: str, *, overwrite: bool) -> None:
    """Refuse a folder that would be overwritten; with `overwrite`, one that is not ours.

    Ours holds the file `mark`, as every result of a kind. A folder that cannot be made is refused
    as well, as far as that shows before the work is done.
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
    """Refuse a folder in which the files `names` would be overwritten, or that cannot be made.

    For results that may lie beside other files.
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


# Who may write: one command at a time.

_HELD: dict[Path, int] = {}
"""Places that this process holds, and the threads that do."""
_DESCRIPTORS: set[int] = set()
_OF_SYSTEMS_WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)


def _let_go() -> None:
    """Close what a copy of this process has of its locks, which end with who took them.

    A worker may live a moment longer than a command that was killed.
    """
    while _DESCRIPTORS:
        os.close(_DESCRIPTORS.pop())


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_let_go)


@contextlib.contextmanager
def hold(place: str | Path) -> Iterator[None]:
    """Hold a folder or file of results against other commands and threads.

    The lock is on a hidden file beside it, `.NAME.lock`, and ends with the process, however that
    ends. Where nothing can be written beside it, the lock is on the folder itself; a file system
    without locks (some network ones) is taken as it is. A thread may hold a place twice. The place
    need not exist; one that is held already, or cannot be made, is a Sim2RealError.
    """
    target = Path(place).resolve()
    if fcntl is None or _HELD.get(target) == threading.get_ident():
        yield
        return
    if not target.exists():
        _check_place(target)
    made = [above for above in target.parents if not above.exists()]
    lock = target.parent / f'.{target.name}.lock'
    descriptor = _locked(lock, target, str(place))
    _HELD[target] = threading.get_ident()
    _DESCRIPTORS.add(descriptor)
    try:
        yield
    finally:
        del _HELD[target]
        with contextlib.suppress(OSError):
            lock.unlink()
        _DESCRIPTORS.discard(descriptor)
        os.close(descriptor)
        with contextlib.suppress(OSError):
            for above in made:
                above.rmdir()


def _locked(lock: Path, target: Path, shown: str) -> int:
    """Return the descriptor of a lock that is had."""
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # a command that ends has removed the folder above
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not target.is_dir():
                raise
            lock, descriptor = target, os.open(target, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Not the file that the last holder has removed meanwhile.
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _OF_SYSTEMS_WITHOUT_LOCKS:
                return descriptor
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise Sim2RealError(
                    f'{shown}: another command is writing there; wait, or choose another --out'
                ) from None
            raise
        os.close(descriptor)


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
    scratch = Path(tempfile.mkdtemp(prefix=f'.{target.name}.', suffix='.tmp', dir=target.parent))
    fresh, old = scratch / target.name, scratch / f'{target.name}.old'
    try:
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
        _appear(fresh, target, str(folder))
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(scratch)


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
