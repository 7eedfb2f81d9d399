# SPDX-License-Identifier: Apache-2.0
"""Compilation of numerical loops by numba, with one set of options and a private cache.

Compiled functions keep IEEE double precision and the written order of operations: stepping and
array runs agree bit for bit. Division by zero follows IEEE instead of raising, and the GIL is
released.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import numba

from .heartbeat import heartbeat

F = TypeVar('F', bound=Callable[..., object])

_LOG = logging.getLogger(__name__)
# numba's types are partial.
_CONFIG: Any = numba.config
_NJIT: Any = numba.njit
_MESSAGE = 'compiling for this machine, once'
_SILENT_S = 1.0
_OUTDATED_S = 7 * 86400.0
"""Age above which machine code of other sources is deleted."""
_WORDS = (b'numba', b'compilation')
_PACKAGES = ('sim_sensors', 'sim2real_eval')


def cache_folder(bases: list[Path]) -> Path | None:
    """Return a private folder for machine code of the present sources, or None.

    numba does not notice edits of functions that a cached function calls. The folder is therefore
    named by a digest of all sources that mention numba or this module. It is created in the first
    of `bases` that allows it. Machine code is run as it is read, so the folder must belong to the
    user and be closed to others.
    """
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for source in sorted((root / package).rglob('*.py')):
            content = source.read_bytes()
            if any(word in content for word in _WORDS):
                digest.update(content)
    name = f'numba-{digest.hexdigest()[:16]}'
    for base in bases:
        folder = base / name
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
            is_folder = stat.S_ISDIR(status.st_mode)  # and no link
            is_own = is_folder and (os.name != 'posix' or status.st_uid == os.getuid())
            if is_own and os.access(folder, os.W_OK):
                folder.chmod(0o700)
                return folder
    return None


def _prepare_cache() -> Path | None:
    """Direct numba's cache to a private folder; return its lock file, or None without a folder."""
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
                if other != folder and time.time() - other.stat().st_mtime > _OUTDATED_S:
                    shutil.rmtree(other, ignore_errors=True)
    _CONFIG.CACHE_DIR = str(folder)
    return folder / 'compiling.lock'


_LOCK_FILE = _prepare_cache()
_THREAD = threading.local()

PREPARED: list[str] = []
"""Names of the functions that this process has compiled, or loaded from the cache, in order."""


@contextlib.contextmanager
def announce(say: Callable[[str], None], interval_s: float = 10.0) -> Iterator[None]:
    """Say that functions are being compiled if it takes longer than a second, then regularly."""
    timer = threading.Timer(_SILENT_S, say, [_MESSAGE])
    timer.daemon = True
    timer.start()
    try:
        with heartbeat(say, lambda: _MESSAGE, interval_s):
            yield
    finally:
        timer.cancel()


def compiled(function: F) -> F:
    """Compile a function with numba; cache the machine code on disk."""
    return _compile(function)


def kernel(function: F) -> F:
    """Compile a function that allocates nothing; it is inlined into compiled functions.

    numba counts no references of its arguments. It would count them at every call, with atomic
    instructions. A function that allocates is refused when it is compiled.
    """
    return _compile(function, forceinline=True, _nrt=False)


def section(function: F) -> F:
    """Compile a kernel that compiled functions call in one place.

    numba inserts its statements into the caller, which is compiled once instead of twice. Long
    callers take disproportionately long to compile, so this suits functions of few statements.
    """
    return _compile(function, inline='always', _nrt=False)


def _compile(function: F, **options: bool | str) -> F:
    if _CONFIG.DISABLE_JIT:
        return function
    dispatcher = _NJIT(
        cache=_LOCK_FILE is not None,
        nogil=True,
        error_model='numpy',
        no_cfunc_wrapper=True,
        **options,
    )(function)
    dispatcher.compile = _compile_alone(function.__name__, dispatcher.compile)
    return cast(F, dispatcher)


def _compile_alone(
    name: str, compile_signature: Callable[[object], object]
) -> Callable[[object], object]:
    """Let one process at a time compile, or load compiled code, and announce long waits.

    Two processes that add to one index of numba's cache could otherwise mix up two versions of a
    function. Waiting also saves the time of compiling twice.
    """

    @functools.wraps(compile_signature)
    def compile_alone(signature: object) -> object:
        if getattr(_THREAD, 'is_compiling', False):
            # Another function of ours calls this one.
            return compile_signature(signature)
        _THREAD.is_compiling = True
        PREPARED.append(name)
        # A lock of its own for each call: a forked process must not use that of its parent.
        lock = filelock.FileLock(_LOCK_FILE) if _LOCK_FILE else contextlib.nullcontext()
        try:
            with announce(_LOG.info), lock:
                return compile_signature(signature)
        finally:
            _THREAD.is_compiling = False

    return compile_alone
