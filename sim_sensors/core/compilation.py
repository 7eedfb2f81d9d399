# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Compilation of numerical loops by numba, with one set of options and a private cache.

Compiled functions keep IEEE double precision and the written order of operations: runs sample by
sample and over whole arrays agree bit for bit. Division by zero follows IEEE instead of raising,
and the GIL is released. numba, which takes 125 MB, is imported by the first call that needs it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import filelock
import numpy as np

F = TypeVar('F', bound=Callable[..., object])

_LOG = logging.getLogger(__name__)
_MESSAGE = 'compiling for this machine, once'
_WAITING = (
    'waiting for another process that is compiling the same functions; run `sim2real demo` before '
    'you start several processes at once'
)
_SILENT_S = 1.0
_OUTDATED_S = 7 * 86400.0
"""Age above which machine code of other versions of the sources is deleted."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NUMBA_MARKERS = (b'numba', b'compilation')
_CACHE_NAME = re.compile('numba-[0-9a-f]{16}')
_PACKAGES = ('sim_sensors', 'sim2real_eval')


def cache_folder(bases: list[Path]) -> Path | None:
    """Return a private folder for machine code of the present sources, or None.

    numba does not notice edits of functions that a cached function calls. The folder is therefore
    named by a digest of all sources that mention numba or this module. It is created in the first
    of `bases` that allows it; None means that code is compiled in memory.

    The index of the cache is a pickle and machine code is run as it is read. A folder is used only
    if nobody but the user (or root) could have written into it or replaced it.
    """
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for source in sorted((root / package).rglob('*.py')):
            content = source.read_bytes()
            if any(word in content for word in _NUMBA_MARKERS):
                digest.update(content)
    name = f'numba-{digest.hexdigest()[:16]}'
    for base in bases:
        folder = base / name
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(folder) and os.access(folder, os.W_OK):
                return folder
    return None


def _is_private(folder: Path) -> bool:
    """Return whether a folder is the user's, and nobody else can write into it or replace it."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):  # such as a link
        return False
    if os.name != 'posix':
        return True
    if status.st_uid != os.getuid() or status.st_mode & _OTHERS_WRITE:
        return False
    # A user who can write into a parent folder could replace the folder, unless the sticky bit is
    # set, as for /tmp. The owner of the sources is trusted, because their code is run, too.
    trusted = {0, os.getuid(), Path(__file__).stat().st_uid}
    return all(
        status.st_uid in trusted
        and (status.st_mode & stat.S_ISVTX or not _is_open_to_others(status))
        for status in (parent.stat() for parent in folder.resolve().parents)
    )


def _is_open_to_others(status: os.stat_result) -> bool:
    """Return True if other users may write into a folder.

    A group whose only member is the user does not count.
    """
    import grp
    import pwd

    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(status.st_gid)
    except KeyError:
        return True
    # Ubuntu creates such a group for each user and makes new folders writable for it.
    return group.gr_name != user or bool({*group.gr_mem} - {user})


def _prepare_cache() -> Path | None:
    """Prepare a private folder for numba's cache and return it, or None without one."""
    package = Path(__file__).resolve().parents[1]
    caches = Path(os.environ.get('XDG_CACHE_HOME') or '~/.cache').expanduser()
    bases = [package / '__pycache__', caches / 'sim2real_sensors']
    user_folder = os.environ.get('NUMBA_CACHE_DIR')
    folder = cache_folder([Path(user_folder)] if user_folder else bases)
    if folder is None:
        return None
    if not user_folder:
        # Other installations may share the cache of the user.
        for other in folder.parent.glob('numba-*'):
            with contextlib.suppress(OSError):
                is_other = other != folder and _CACHE_NAME.fullmatch(other.name)
                if is_other and time.time() - other.lstat().st_mtime > _OUTDATED_S:
                    shutil.rmtree(other, ignore_errors=True)
    return folder


_CACHE = _prepare_cache()
_THREAD_STATE = threading.local()
_ANNOUNCED = threading.Event()  # set by the first message of this process

PREPARED: list[str] = []
"""Names of the functions that this process has compiled, or loaded from the cache, in order."""

_CREATION_LOCK = threading.RLock()
FEW_ROWS = 32
"""Largest number of rows that a row loop runs in the interpreter."""


@contextlib.contextmanager
def _announced(message: str) -> Iterator[None]:
    """Log a message if the block takes longer than a second, at most once per process."""
    timer = threading.Timer(_SILENT_S, _announce, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _announce(message: str) -> None:
    if not _ANNOUNCED.is_set():
        _ANNOUNCED.set()
        _LOG.info(message)


def compiled(function: F) -> F:
    """Compile a function with numba; cache the machine code on disk."""
    return cast(F, _Compiled(function))


def kernel(function: F) -> F:
    """Compile a function that allocates nothing; it is inlined into compiled functions.

    Reference counting is switched off, because numba would count the arguments at every call, with
    atomic instructions. A function that allocates is refused when it is compiled.
    """
    return cast(F, _Compiled(function, forceinline=True, _nrt=False))


def section(function: F) -> F:
    """Compile a kernel that compiled functions call in one place.

    numba inserts its statements into the caller and compiles them only there. Long callers take
    disproportionately long to compile, so this suits functions of few statements.
    """
    return cast(F, _Compiled(function, inline='always', _nrt=False))


def row_loop(function: F) -> F:
    """Compile a loop over the rows of arrays; `FEW_ROWS` or fewer run in the interpreter.

    The results are the same bits, so a node that measures a few samples at a time needs no numba.
    The function must give the same bits in both: no power operator and no `math.hypot`, of which
    numba and Python have versions that differ in the last bit, and no root of a negative number.
    """
    return cast(F, _RowLoop(function))


def scalar_kernel(function: F) -> F:
    """Compile a kernel of numbers and tuples; called from Python it runs in the interpreter.

    The rules of `row_loop` apply.
    """
    return cast(F, _RowLoop(function, forceinline=True, _nrt=False))


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Run all row loops in the interpreter within the block, unless numba is loaded already.

    This suits a process that needs them once, for less time than numba takes to load.
    """
    if 'numba' not in sys.modules:
        _RowLoop.max_rows = sys.maxsize
    try:
        yield
    finally:
        _RowLoop.max_rows = FEW_ROWS


class _Compiled:
    """Function that numba compiles at the first call, with the options of `numba.njit`."""

    def __init__(self, function: Callable[..., object], **options: bool | str) -> None:
        functools.update_wrapper(self, function)
        self._function = cast(FunctionType, function)
        self._options = options

    def __call__(self, *arguments: object) -> object:
        return self.dispatcher(*arguments)

    def __reduce__(self) -> str:
        return self._function.__qualname__

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The compiled function; it is created at the first use."""
        with _CREATION_LOCK:
            # Another thread may have been first.
            if 'dispatcher' not in self.__dict__:
                self.__dict__['dispatcher'] = self._create_dispatcher()
            return self.__dict__['dispatcher']

    def _create_dispatcher(self) -> Any:
        import numba

        config: Any = numba.config
        if config.DISABLE_JIT:
            return self._function
        if _CACHE is not None:
            config.CACHE_DIR = str(_CACHE)
        # numba must see the dispatchers of the functions that this one calls, by their names.
        code, scope = self._function.__code__, self._function.__globals__
        called = {
            name: scope[name].dispatcher
            for name in code.co_names
            if isinstance(scope.get(name), _Compiled)
        }
        function = FunctionType(
            code,
            {**scope, **called},
            code.co_name,
            self._function.__defaults__,
            self._function.__closure__,
        )
        dispatcher = cast(Any, numba.njit)(
            cache=_CACHE is not None,
            nogil=True,
            error_model='numpy',
            no_cfunc_wrapper=True,
            **self._options,
        )(functools.update_wrapper(function, self._function))
        dispatcher.compile = _compile_alone(self._function, dispatcher.compile)
        return dispatcher


class _RowLoop(_Compiled):
    """Function over rows that runs in the interpreter if there are few."""

    max_rows = FEW_ROWS

    def __call__(self, *arguments: object) -> object:
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        if any(len(rows) > self.max_rows for rows in arrays):
            return self.dispatcher(*arguments)
        before = [array.copy() for array in arrays]
        try:
            with np.errstate(all='ignore'):
                return self._function(*arguments)
        except (ArithmeticError, ValueError):
            # Python raises where compiled code has an infinite value or NaN, such as sin(inf).
            for array, values in zip(arrays, before, strict=True):
                array[...] = values
            return self.dispatcher(*arguments)


def _compile_alone(
    function: FunctionType, compile_signature: Callable[[object], object]
) -> Callable[[object], object]:
    """Let one process at a time compile a function, or load its code, and announce long waits.

    Two processes that add to one index of numba's cache could otherwise mix up two versions of a
    function. numba has an index for each function of each source file, and so there is one lock
    for each: processes that need other functions, or run another copy of the sources, do not wait.

    There is no deadlock: the lock of numba lets one thread of a process compile at a time, and a
    function is locked before the functions that it calls.
    """
    place = f'{function.__code__.co_filename}:{function.__qualname__}'
    lock_name = f'{hashlib.sha256(place.encode()).hexdigest()[:16]}.lock'

    @functools.wraps(compile_signature)
    def compile_alone(signature: object) -> object:
        from numba.core.compiler_lock import global_compiler_lock

        with contextlib.ExitStack() as stack:
            if not getattr(_THREAD_STATE, 'is_compiling', False):
                _THREAD_STATE.is_compiling = True
                stack.callback(setattr, _THREAD_STATE, 'is_compiling', False)
                PREPARED.append(function.__name__)
            stack.enter_context(global_compiler_lock)
            if _CACHE is not None:
                stack.enter_context(_locked(_CACHE / lock_name))
            stack.enter_context(_announced(_MESSAGE))
            return compile_signature(signature)

    return compile_alone


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file; announce a long wait for another process."""
    # Each call creates a lock, because a forked process must not use that of its parent.
    lock = filelock.FileLock(file)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        with _announced(_WAITING):
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
