# SPDX-License-Identifier: Apache-2.0
"""The one way in which loops are compiled, so that every loop has the same numerics."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core.event

__all__ = ['Announcement', 'compiled', 'kernel']

F = TypeVar('F', bound=Callable[..., object])

# In the names of this process's files of machine code. numba numbers the versions of a function,
# so that two processes that compile two of them at once would write to one file, and the index
# could call one version the other: wrong code, until the sources change.
_OWN = uuid.uuid4().hex[:12]
_WORDS = (b'numba', b'compilation')
_PACKAGES = ('sim_sensors', 'sim2real_eval')

_LOG = logging.getLogger(__name__)
_COMPILES = 'numba:compile'


class Announcement(numba.core.event.Listener):
    """Tells when the first function is compiled that is not in the cache.

    The judge takes a minute, in which a user would otherwise see nothing.

    Parameters
    ----------
    say : callable
        Called with a sentence, once.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said = False

    def on_start(self, event: object) -> None:
        """Tell it, once."""
        if not self._said:
            self._said = True
            self._say('compiling for this machine, once: up to some minutes')

    def on_end(self, event: object) -> None:
        """Say nothing."""


numba.core.event.register(_COMPILES, Announcement(_LOG.info))


@functools.cache
def _cache_directory() -> str:
    """Return the folder for machine code compiled from exactly the present sources.

    numba notices a change of the file that a function stands in, but not of the functions that it
    calls and inlines, so after an edit or `git pull` it may run old machine code. A folder named
    after the contents of all sources that have to do with compiled loops, which are those that
    name numba or this module, rules that out.
    """
    here = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for source in sorted((here.parent / package).rglob('*.py')):
            content = source.read_bytes()
            if any(word in content for word in _WORDS):
                digest.update(content)
    name = f'numba-{digest.hexdigest()[:16]}'
    base = here / '__pycache__'
    if not os.access(base if base.exists() else here, os.W_OK):
        home = Path(os.environ.get('XDG_CACHE_HOME', Path.home() / '.cache'))
        base = home / 'sim2real_sensors'
    try:
        base.mkdir(parents=True, exist_ok=True)
        for old in base.glob('numba-*'):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
    except OSError:
        base = Path(tempfile.gettempdir()) / f'sim2real_sensors-{os.getuid()}'
    return str(base / name)


def compiled(function: F) -> F:
    """Compile a function with numba and cache the machine code on disk.

    No fast-math: results are those of the same operations in IEEE double precision, in the order
    written, so that stepping and array runs agree bit for bit. Division by zero follows IEEE
    instead of raising. The GIL is released, so recordings can be judged in threads.
    """
    return _compiled(function)


def kernel(function: F) -> F:
    """Compile a function that allocates nothing and returns numbers; see `compiled`.

    numba then counts no references. It would count some for every array of a tuple argument and
    every row that is named, with atomic instructions: that made the preparation of a measurement
    five times slower. The code goes into the caller, since the tuples of arrays would be copied to
    the stack at every call: another two times. A function that does allocate is refused when it
    is compiled.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: F, **options: bool) -> F:
    config: Any = numba.config
    before = config.CACHE_DIR
    if not before:
        config.CACHE_DIR = _cache_directory()
    try:
        njit: Any = numba.njit
        made = njit(cache=True, nogil=True, error_model='numpy', **options)(function)
        # Without a compiler (NUMBA_DISABLE_JIT) there are no files.
        files: Any = getattr(getattr(made, '_cache', None), '_cache_file', None)
        if pattern := getattr(files, '_data_name_pattern', ''):
            files._data_name_pattern = pattern.replace('{number:d}', f'{_OWN}-{{number:d}}')
        return cast(F, made)
    finally:
        config.CACHE_DIR = before
