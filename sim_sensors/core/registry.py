# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Objects by name: built in, installed by another package, or a class in a user's file."""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import ParameterError, UnknownNameError, did_you_mean, not_among
from .input_files import read_input

if TYPE_CHECKING:
    import importlib.metadata
    import types

T = TypeVar('T')

_IN_FILE = re.compile(r'(?P<path>.+\.py):(?P<name>[^\W\d]\w*)')
_FILE_MODULE = 'sim2real_file_'


class Registry(Generic[T]):
    """Named objects of one kind, such as judges: `get` returns one, `names` lists them.

    Objects are imported when they are requested. There are three sources:

    - built in, as `builtins` or as classes found in `packages`;
    - an entry point of the group in any installed package, `name = module:attribute`;
    - a file: `my_file.py:MyClass` is accepted wherever a name is.

    Parameters
    ----------
    group : str
        Entry-point group, such as `sim2real_sensors.judges`.
    what : str
        Word for one object, with its article: `a judge`.
    is_one : callable
        Returns whether an object is of this kind.
    builtins : mapping, optional
        `module:attribute` by name; a bare module stands for itself.
    packages : sequence of str, optional
        Packages whose modules are searched for classes, so that a new class is found by itself.
    name_of : callable, optional
        Name of a class that was found in a package; a class with an empty name is left out.
    is_shared : bool
        Whether the group also has entry points of other kinds. `names` then imports them to find
        those of this kind.
    needs : str, optional
        What every object of this kind must have, for messages.
    in_files : bool
        Whether a class in a file is accepted.

    Examples
    --------
    >>> shapes = Registry('example.shapes', 'a shape', callable, {'point': 'math:hypot'})
    >>> shapes.get('point')(3.0, 4.0)
    5.0
    >>> shapes.get('pint')
    Traceback (most recent call last):
    sim_sensors.core.errors.UnknownNameError: a shape: 'pint' is unknown (did you mean point?); ...
    """

    def __init__(
        self,
        group: str,
        what: str,
        is_one: Callable[[Any], bool],
        builtins: Mapping[str, str] | None = None,
        packages: Sequence[str] = (),
        name_of: Callable[[Any], str] = lambda thing: str(thing.__name__),
        is_shared: bool = False,
        needs: str = '',
        in_files: bool = True,
    ) -> None:
        self.group = group
        self.what = what
        self._is_one = is_one
        self._places = dict(builtins or {})
        self._packages = packages
        self._name_of = name_of
        self._is_shared = is_shared
        self._needs = needs
        self._in_files = in_files
        self._registered: dict[str, T] = {}
        self._searched: dict[str, T] | None = None

    def names(self, *, installed: bool = True) -> list[str]:
        """Return all names: built-in ones in their order, then the others, sorted.

        `installed=False` leaves out names of other packages and of `register`.
        An entry point with the name of a built-in one does not replace it. `get` reports an entry
        point that cannot be imported.
        """
        ours = dict.fromkeys([*self._places, *self._package_classes()])
        if not installed:
            return list(ours)
        installed_names = {
            name
            for name in self._entry_points_by_name()
            if not self._is_shared or self._is_of_kind(name)
        }
        return [*ours, *sorted((installed_names | self._registered.keys()) - ours.keys())]

    def get(self, name: str, *, where: str = '', key: str = '', folder: Path | None = None) -> T:
        """Return the object with a name, or in a file: `my_file.py:MyClass`.

        `where` is the file or option with the name, and `key` the key in it, for messages; the
        default is `what`. Relative paths are relative to `folder`, by default the current one.

        Raises
        ------
        UnknownNameError
            For an unknown name; the message has the nearest known one.
        ParameterError
            When the file or package cannot be imported, or contains an object of another kind.
        """
        where = where or self.what
        if self._in_files and name.endswith('.py'):
            raise ParameterError(where, key, f'{name!r} names no class; must be {name}:MyClass')
        if self._in_files and is_in_file(name):
            return self._check(
                load_from_file(name, where=where, key=key, folder=folder), name, where, key
            )
        if name in self._registered:
            return self._registered[name]
        if name in self._places:
            return self._check(_import(self._places[name]), name, where, key)
        if name in self._package_classes():
            return self._package_classes()[name]
        if name in (installed := self._entry_points_by_name()):
            return self._check(self._load(installed[name], where, key), name, where, key)
        problem = not_among(f'{name!r} is unknown', name, self.names())
        file = ', or a class in a file, such as my_file.py:MyClass' if self._in_files else ''
        raise UnknownNameError(where, key, f'{problem}{file}')

    def register(self, name: str, thing: T) -> None:
        """Register an object under a name in this process; see `remove`."""
        self._registered[name] = self._check(thing, name, self.what)

    def remove(self, name: str) -> None:
        """Remove a name that was added by `register`."""
        del self._registered[name]

    def _check(self, thing: Any, name: str, where: str, key: str = '') -> T:
        if not self._is_one(thing):
            needs = f'; must have {self._needs}' if self._needs else ''
            raise ParameterError(where, key, f'{name!r} is not {self.what}{needs}')
        checked: T = thing
        return checked

    def _package_classes(self) -> dict[str, T]:
        """Return the classes in the packages by name; they are imported once."""
        if self._searched is None:
            classes = [
                candidate for package in self._packages for candidate in _classes_in(package)
            ]
            self._searched = {
                name: candidate
                for candidate in classes
                if self._is_one(candidate) and (name := self._name_of(candidate))
            }
        return self._searched

    def _entry_points_by_name(self) -> dict[str, importlib.metadata.EntryPoint]:
        return {entry.name: entry for entry in entry_points(self.group)}

    def _is_of_kind(self, name: str) -> bool:
        try:
            return self._is_one(self._load(self._entry_points_by_name()[name], self.what))
        except ParameterError:
            return False

    def _load(self, entry: importlib.metadata.EntryPoint, where: str, key: str = '') -> object:
        try:
            return entry.load()
        except Exception as error:
            # The code of another package may raise any exception.
            package = entry.dist.name if entry.dist else 'an installed package'
            raise ParameterError(
                where, key, f'{entry.name!r} of {package} cannot be imported: {_short(error)}'
            ) from error


def entry_points(group: str) -> Sequence[importlib.metadata.EntryPoint]:
    """Return the entry points of a group, of all packages on `sys.path`."""
    return _entry_points(group, tuple(sys.path))


@functools.cache
def _entry_points(group: str, path: tuple[str, ...]) -> Sequence[importlib.metadata.EntryPoint]:
    # Most installations have no entry point of a group, and importlib.metadata takes some 25 ms.
    declarations = map(_declarations, path)
    if all(text is not None and group.encode() not in text for text in declarations):
        return ()
    import importlib.metadata

    return tuple(importlib.metadata.entry_points(group=group))


@functools.cache
def _declarations(folder: str) -> bytes | None:
    """Return the entry points of all packages in a folder of `sys.path`; None for a zip file."""
    path = Path(folder or '.')
    if path.is_file():
        return None
    return b'\n'.join(read_input(file) for file in path.glob('*-info/entry_points.txt'))


def is_in_file(text: str) -> bool:
    """Return True if a string names an object in a file: `my_file.py:MyClass`."""
    return _IN_FILE.fullmatch(text) is not None


def load_from_file(text: str, *, where: str, key: str = '', folder: Path | None = None) -> Any:
    """Return the object that `my_file.py:MyClass` names.

    The file is imported once per process, also in worker processes, so that its objects can be
    pickled. It can import modules of its folder. Raises ParameterError when there is no such file,
    it cannot be imported or has no such object.
    """
    match = _IN_FILE.fullmatch(text)
    assert match is not None, text
    path = Path(folder or Path.cwd(), Path(match['path']).expanduser()).resolve()
    if not path.is_file():
        raise ParameterError(where, key, f'{text!r}: there is no file {path}')
    try:
        module = importlib.import_module(f'{_FILE_MODULE}{str(path).encode().hex()}')
    except Exception as error:
        # Code of the user may raise any exception.
        raise ParameterError(where, key, f'{path}: cannot be imported: {_short(error)}') from error
    if not hasattr(module, match['name']):
        names = [name for name in vars(module) if not name.startswith('_')]
        raise ParameterError(
            where, key, f'{path}: holds no {match["name"]!r}{did_you_mean(match["name"], names)}'
        )
    return getattr(module, match['name'])


def file_of(thing: type) -> Path | None:
    """Return the file that a class was loaded from by path, or None."""
    prefix, marker, code = thing.__module__.partition(_FILE_MODULE)
    return Path(bytes.fromhex(code).decode()) if marker and not prefix else None


def raised_at(error: BaseException, thing: type) -> str:
    """Return the line that raised an error, such as `my_filter.py:7`.

    This is the innermost line in the file of the class `thing`, or else the innermost line.
    """
    import inspect
    import traceback

    lines = traceback.extract_tb(error.__traceback__)
    own_lines = [line for line in lines if line.filename == inspect.getsourcefile(thing)]
    line = (own_lines or lines)[-1]
    return f'{Path(line.filename).name}:{line.lineno}'


def source_digest(thing: type) -> str:
    """Return the SHA-256 of the code of a class that was loaded from a file by path, or ''.

    It is that of the code in this process: the file may have been changed since.
    """
    return _SOURCE_DIGESTS.get(thing.__module__, '')


_SOURCE_DIGESTS: dict[str, str] = {}
"""SHA-256 of the source of each module that was loaded from a file by path, by its name."""


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Loader that keeps the digest of what it loads.

    Cached bytecode is not used: it may be that of an older file of the same second and size.
    """

    def get_code(self, fullname: str) -> types.CodeType:
        import hashlib

        source = self.get_data(self.path)
        _SOURCE_DIGESTS[fullname] = hashlib.sha256(source).hexdigest()
        code: types.CodeType = self.source_to_code(source, self.path)
        return code


class _Files:
    """Finder of modules that were loaded from files; their name encodes the path, for pickles."""

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_FILE_MODULE):
            return None
        import importlib.util

        place = bytes.fromhex(fullname.removeprefix(_FILE_MODULE)).decode()
        # For modules beside the file; last, so that they replace no installed module.
        if (folder := str(Path(place).parent)) not in sys.path:
            sys.path.append(folder)
        loader = _SourceLoader(fullname, place)
        return importlib.util.spec_from_file_location(fullname, place, loader=loader)


sys.meta_path.append(_Files())


def _import(place: str) -> object:
    module, _, attribute = place.partition(':')
    imported = importlib.import_module(module)
    return getattr(imported, attribute) if attribute else imported


def _classes_in(package: str) -> list[Any]:
    """Return the classes that the modules of a package define."""
    import pkgutil

    folder = importlib.import_module(package).__path__
    names = sorted(module.name for module in pkgutil.iter_modules(folder))
    modules = [importlib.import_module(f'{package}.{name}') for name in names]
    return [
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__ == module.__name__
    ]


def _short(error: Exception) -> str:
    text = str(error).partition('\n')[0]
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
