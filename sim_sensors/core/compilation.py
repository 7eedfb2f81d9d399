# SPDX-License-Identifier: Apache-2.0
"""The one way in which loops are compiled, so that every loop has the same numerics."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numba
import numba.core.caching
import numba.core.event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from .heartbeat import heartbeat

with contextlib.suppress(ImportError):
    # Not on Windows.
    import fcntl

F = TypeVar('F', bound=Callable[..., object])

# In the names of this process's files of machine code. numba numbers the versions of a function,
# so that two processes that compile two of them at once would write to one file, and the index
# could call one version the other: wrong code, until the sources change.
_OWN = uuid.uuid4().hex[:12]
_SILENT_S = 1.0
_WORDS = (b'numba', b'compilation')
_PACKAGES = ('sim_sensors', 'sim2real_eval')

_LOG = logging.getLogger(__name__)
# numba's types are partial.
_CONFIG: Any = numba.config
_caching: Any = numba.core.caching
_COMPILES = 'numba:compile'


class Announcement(numba.core.event.Listener):
    """Tells that functions are compiled that are not in the cache: at once, and then every 10 s.

    The judge takes up to a minute, in which a user would otherwise see nothing. `say` gets the
    sentences.
    """

    def __init__(self, say: Callable[[str], None], interval_s: float = 10.0) -> None:
        self._say, self._interval_s = say, interval_s
        self._depth = 0
        self._said = False
        self._told = contextlib.ExitStack()

    def on_start(self, event: object) -> None:
        """Begin with the outermost function: functions compile those that they call."""
        if self._depth == 0:
            what = 'compiling for this machine, once'
            if not self._said:
                self._said = True
                self._say(what)
            self._told.enter_context(heartbeat(self._say, lambda: what, self._interval_s))
        self._depth += 1

    def on_end(self, event: object) -> None:
        """End with it."""
        self._depth -= 1
        if self._depth == 0:
            self._told.close()


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

    Arrays are copied number by number: for `a[i] = b` of two arrays numba compiles what it would
    say of unlike shapes: 8 of 19 s for the filter of attitudes.
    """
    return _cached(function, _OPTIONS)


def _cached(function: F, options: dict[str, object]) -> F:
    if _CONFIG.DISABLE_JIT:
        return function
    made = _Compiled(function, targetoptions=options)
    made._cache = _Cache(function)
    return cast(F, made)


def kernel(function: F) -> F:
    """Compile a function into the compiled functions that call it; see `compiled`.

    It allocates nothing and returns numbers, so numba counts no references. It would count some
    for every array of a tuple argument and every row that is named, with atomic instructions: that
    made the preparation of a measurement five times slower. The code goes into the caller, since
    the tuples of arrays would be copied to the stack at every call: another two times. A function
    that does allocate is refused when it is compiled.

    No machine code is made of the kernel itself, and it is optimised as a part of its callers
    only. With numba's ordinary functions, each of which is made callable by itself, the judge took
    1.8 times as long to compile. Called from Python, a kernel is compiled for that.
    """
    if _CONFIG.DISABLE_JIT:
        return function
    made = _Kernel(function, targetoptions=_KERNEL_OPTIONS, pipeline_class=_KernelCompiler)
    return cast(F, made)


# Nobody calls the loops from C.
_OPTIONS: dict[str, object] = {
    'nopython': True, 'boundscheck': None, 'nogil': True, 'error_model': 'numpy',
    'no_cfunc_wrapper': True,
}  # fmt: skip
_UNCOUNTED = {**_OPTIONS, '_nrt': False}
_KERNEL_OPTIONS = {**_UNCOUNTED, 'forceinline': True, 'no_cpython_wrapper': True}


class _Compiled(CPUDispatcher):
    """A function that one process compiles while others wait for what it keeps."""

    _cache: _Cache

    def compile(self, signature: Any) -> Any:
        """Return the entry point for a signature, from memory, from the cache, or compiled."""
        # In this order for all threads: numba's lock is held while functions compile others.
        with global_compiler_lock, self._cache.alone():
            return super().compile(signature)


class _KernelLibrary(JITCodeLibrary):
    """Code that is only ever linked into that of others."""

    def _optimize_final_module(self) -> None:
        """Leave that to the library that this one becomes a part of."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class _KernelCompiler(CompilerBase):
    """numba's usual passes, without machine code at the end."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.flags.no_compile = True
        library: Any = _KernelLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


class _Kernel(CPUDispatcher):
    """What `kernel` makes of a function."""

    def __call__(self, *arguments: object) -> object:
        return self._callable(*arguments)

    @functools.cached_property
    def _callable(self) -> Callable[..., object]:
        return _cached(self.py_func, _UNCOUNTED)

    def add_overload(self, result: Any) -> None:
        """Let compiled functions find the code; numba would also make it callable from Python."""
        # numba finds the code by the entry point, which is that of a function made callable.
        result = result._replace(entry_point=object())
        self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result


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
        self._folder = Path(self._impl.locator.get_cache_path())
        files = self._cache_file
        files._data_name_pattern = f'{self._impl.filename_base}.{_OWN}-{{number:d}}.nbc'

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other process compiles this function; each would take a minute for it.

        The system ends the wait also when the other process was killed. Where files cannot be
        locked nobody waits.
        """
        with contextlib.ExitStack() as stack:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                name = self._folder / f'{self._impl.filename_base}.lock'
                lock = stack.enter_context(name.open('w'))
                # Who loads what was compiled holds it for a moment: nobody need hear of that.
                end = time.monotonic() + _SILENT_S
                while not _locked(lock) and time.monotonic() < end:
                    time.sleep(0.01)
                if time.monotonic() >= end:
                    what = 'waiting for another process that compiles'
                    _LOG.info(what)
                    with heartbeat(_LOG.info, lambda: what):
                        fcntl.flock(lock, fcntl.LOCK_EX)
            except (NameError, OSError):
                pass
            yield


def _locked(file: IO[str]) -> bool:
    """Lock a file unless another process has; return whether it is locked by this one."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
