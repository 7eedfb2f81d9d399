# SPDX-License-Identifier: Apache-2.0
"""Who may write: one command at a time; what a killed command has left is known by its lock."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from types import FrameType
from typing import Any

from sim_sensors.core.errors import Sim2RealError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_HELD: dict[Path, int] = {}
"""Places that this process holds, and the threads that do."""
_DESCRIPTORS: set[int] = set()
_TRIES = 1000  # of a folder that does not stay
_OF_SYSTEMS_WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def _let_go() -> None:
    """Close what a copy of this process has of its locks, which end with who took them.

    A worker may live a moment longer than a command that was killed.
    """
    while _DESCRIPTORS:
        os.close(_DESCRIPTORS.pop())


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_let_go)


def _close(descriptor: int) -> None:
    # A copy of this process has closed what was not its own.
    if descriptor in _DESCRIPTORS:
        _DESCRIPTORS.remove(descriptor)
        os.close(descriptor)


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
        check_place(target)
    made = [above for above in target.parents if not above.exists()]
    lock = target.parent / f'.{target.name}.lock'
    descriptor = -1
    try:
        with uninterrupted():
            descriptor = _locked(lock, target, str(place))
            _HELD[target] = threading.get_ident()
            _DESCRIPTORS.add(descriptor)
        yield
    finally:
        if descriptor >= 0:
            with uninterrupted():
                _let_place_go(target, lock, descriptor, made)


def _let_place_go(target: Path, lock: Path, descriptor: int, made: list[Path]) -> None:
    """Free a place, and remove the folders `made` for it where nothing came into them."""
    del _HELD[target]
    with contextlib.suppress(OSError):
        lock.unlink()
    _close(descriptor)
    with contextlib.suppress(OSError):
        for above in made:
            above.rmdir()


def check_place(target: Path) -> None:
    """Refuse what cannot be made, as far as that shows before the work; a Sim2RealError."""
    above = next(each for each in target.absolute().parents if each.exists())
    if not above.is_dir():
        raise Sim2RealError(f'{target}: cannot be made; {above} is a file')
    if not os.access(above, os.W_OK | os.X_OK):
        raise Sim2RealError(f'{target}: cannot be made; {above} may not be written')


def _locked(lock: Path, target: Path, shown: str) -> int:
    """Return the descriptor of a lock that is had."""
    missing = 0
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            # A command that ends has removed the folder above, or, as in /proc, it takes no files.
            missing += 1
            if missing == _TRIES:
                raise Sim2RealError(
                    f'{shown}: cannot be made; {lock.parent} takes no new files'
                ) from None
            continue
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
                    f'{shown}: another command is writing there; wait, or choose another place'
                ) from None
            raise
        os.close(descriptor)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hear Ctrl-C and SIGTERM at the end of the block only, as their handlers would have then.

    For steps that take milliseconds. Only the main thread is interrupted by signals; in others,
    and for signals that Python does not handle, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _INTERRUPTS}
    handled = [number for number in _INTERRUPTS if callable(before[number])]
    try:
        for number in handled:
            signal.signal(number, lambda *signalled: heard.append(signalled))
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
        for signalled in heard:
            before[signalled[0]](*signalled)


# Folders for what is not finished, which nobody but their maker removes while it lives.

_MARK, _SUFFIX = 'sim2real.lock', '.tmp'
# Behind the prefix: the process, and what tempfile adds.
_OWN = re.compile(r'\d+\.\w{8}\.tmp')


class Scratch:
    """A new folder for what is not finished, removed by `remove` or at the end of a `with` block.

    It holds a locked file, so that a later command can tell that its maker was killed; see
    `left_scratches`.

    Parameters
    ----------
    where : Path
        Folder to make it in.
    prefix : str
        First part of its name.

    Examples
    --------
    >>> with Scratch(Path(tempfile.gettempdir()), 'sim2real_example_') as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """

    def __init__(self, where: Path, prefix: str) -> None:
        self.path, self._descriptor = where, -1
        try:
            with uninterrupted():
                self._make(where, f'{prefix}{os.getpid()}.')
        except BaseException:
            if self.path != where:
                self.remove()
            raise

    def _make(self, where: Path, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix, suffix=_SUFFIX, dir=where))
        if fcntl is None:
            return
        # It appears locked: whoever looks in between must not take it for what was left.
        early = self.path / f'{_MARK}.new'
        descriptor = os.open(early, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)  # a file system without locks
            early.unlink()
            return
        early.rename(self.path / _MARK)
        self._descriptor = descriptor
        _DESCRIPTORS.add(descriptor)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder and all in it; a second time, nothing."""
        with uninterrupted():
            if self.path.exists():
                remove_scratch(self.path)
            _close(self._descriptor)
            # The next lock of this process may get the same number.
            self._descriptor = -1


def remove_scratch(folder: Path) -> None:
    """Remove a scratch folder, by its lock file last: one half-removed is still known for one."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _MARK:
            path.unlink()
    shutil.rmtree(folder)


def left_scratches(where: Path, prefix: str) -> Iterator[Path]:
    """Yield each scratch folder whose maker was killed, locked against others meanwhile.

    Only what holds the lock file of a `Scratch` is one, whatever else is called so; one whose
    maker was killed before it had locked anything is removed.
    """
    if fcntl is None:
        return
    for folder in sorted(where.glob(f'{escape(prefix)}*{_SUFFIX}')):
        # Not that of a place whose name goes on where this one ends, as study.v2 after study.
        if not _OWN.fullmatch(folder.name[len(prefix) :]) or folder.is_symlink():
            continue
        with contextlib.suppress(OSError):  # of another user, or gone
            if _is_stillborn(folder, folder.name[len(prefix) :].partition('.')[0]):
                shutil.rmtree(folder)
                continue
            descriptor = os.open(folder / _MARK, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield folder
            finally:
                os.close(descriptor)


def _is_stillborn(folder: Path, process: str) -> bool:
    """Say whether a scratch folder never had its lock, and its maker, a number, has ended."""
    if not process.isdecimal() or {path.name for path in folder.iterdir()} - {f'{_MARK}.new'}:
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    return False
