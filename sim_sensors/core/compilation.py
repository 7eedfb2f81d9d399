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
import numba.core.caching
import numba.core.event

F = TypeVar('F', bound=Callable[..., object])

# In the names of this process's files of machine code. numba numbers the versions of a function,
# so that two processes that compile two of them at once would write to one file, and the index
# could call one version the other: wrong code, until the sources change.
_OWN = uuid.uuid4().hex[:12]
_WORDS = (b'numba', b'compilation')
_PACKAGES = ('sim_sensors', 'sim2real_eval')

_LOG = logging.getLogger(__name__)
# numba's types are partial.
_CONFIG: Any = numba.config
_caching: Any = numba.core.caching
_COMPILES = 'numba:compile'


class Announcement(numba.core.event.Listener):
    """Calls `say` with a sentence, once: when a function is compiled that is not in the cache.

    The judge takes a minute, in which a user would otherwise see nothing.
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
def _cache_directory(base: str) -> str:
    """Return the folder for machine code compiled from exactly the present sources.

    numba notices a change of the file that a function stands in, but not of the functions that it
    calls and inlines, so after an edit or `git pull` it may run old machine code. A folder named
    after the contents of all sources that have to do with compiled loops, which are those that
    name numba or this module, rules that out. It also makes the place and the age of the sources
    irrelevant, so a checkout and what is installed from it can share a `base`.
    """
    here = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for source in sorted((here.parent / package).rglob('*.py')):
            content = source.read_bytes()
            if any(word in content for word in _WORDS):
                digest.update(content)
    name = f'numba-{digest.hexdigest()[:16]}'
    if base:
        return str(Path(base) / name)
    own = here / '__pycache__'
    if not os.access(own if own.exists() else here, os.W_OK):
        home = Path(os.environ.get('XDG_CACHE_HOME', Path.home() / '.cache'))
        own = home / 'sim2real_sensors'
    try:
        own.mkdir(parents=True, exist_ok=True)
        for old in own.glob('numba-*'):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
    except OSError:
        own = Path(tempfile.gettempdir()) / f'sim2real_sensors-{os.getuid()}'
    return str(own / name)


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
    njit: Any = numba.njit
    made = njit(nogil=True, error_model='numpy', **options)(function)
    # Without a compiler (NUMBA_DISABLE_JIT) there is nothing to keep.
    if hasattr(made, '_cache'):
        made._cache = _Cache(function)
    return cast(F, made)


class _Locator(_caching._CacheLocator):  # type: ignore[misc]
    """Where the machine code of one function is kept, and for which sources it is valid."""

    def __init__(self, function: Callable[..., object], file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        module = function.__module__
        # The folder stands for our own sources, all of them. Others have a file and its age.
        self._ours = module.partition('.')[0] in _PACKAGES
        place = module if self._ours else self.get_suitable_cache_subpath(file)
        self._folder = Path(_cache_directory(_CONFIG.CACHE_DIR), place)

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> _Locator:
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> tuple[float, int]:
        if self._ours:
            return 0.0, 0
        status = Path(self._py_file).stat()
        return status.st_mtime, status.st_size

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(_caching.FunctionCache):  # type: ignore[misc]
    """Machine code on disk, in files that this process alone writes."""

    _impl_class = _Files

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        files = self._cache_file
        files._data_name_pattern = f'{self._impl.filename_base}.{_OWN}-{{number:d}}.nbc'
