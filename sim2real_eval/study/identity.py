# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Digests of the code and the inputs of a run, taken in the process that judges it.

Code is what this process has imported. A file that has been changed since then is refused, because
the process may have imported one part of the code before the change and another part after it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.digests import ChangedError, file_digest
from sim_sensors.core.input_files import read_input
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import file_of, is_in_file, source_digest
from sim_sensors.motion.motions import SCENARIOS
from .recordings import PathDrive, StandIn

if TYPE_CHECKING:
    from sim2real_eval.simulation.twin import Twin
    from .recordings import StudyRecording
    from .variants import StudyJudge

PACKAGE = 'sim2real_sensors'
"""Name of the digest of the code of this package."""
RECORDING = 'recording'
"""Name of the digest of the recording of a run."""

_ROOTS = tuple(
    Path(folder).resolve()
    for name in ('sim_sensors', 'sim2real_eval')
    for folder in sys.modules[name].__path__
)
"""Folders of this package."""
_STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(name)) for name in ('stdlib', 'platstdlib'))
_SCRIPTS = ('__main__', '__mp_main__')
"""Modules that worker processes do not share."""


class _PackageCode:
    """Code of this package: its files when this object was made."""

    def __init__(self, roots: Iterable[Path] = _ROOTS) -> None:
        whole = hashlib.sha256()
        self._digests: dict[Path, str] = {}
        for root in roots:
            for path in sorted(root.rglob('*')):
                name = path.relative_to(root.parent)
                if '__pycache__' in name.parts or path.name[0] == '.' or not path.is_file():
                    continue
                digest = hashlib.sha256(read_input(path)).hexdigest()
                whole.update(f'{name.as_posix()}\x00{digest}\n'.encode())
                self._digests[path] = digest
        self._whole = whole.hexdigest()
        self._checked = set(sys.modules)

    def digest(self) -> str:
        """Return the digest of the code in this process.

        Raises
        ------
        ChangedError
            When a module was imported from a file that had been changed meanwhile.
        """
        for name in sys.modules.keys() - self._checked:
            path = _module_path(sys.modules[name])
            if path in self._digests and file_digest(path) != self._digests[path]:
                raise _changed(path)
            self._checked.add(name)
        return self._whole


# Made when this module is imported, as the rest of the package is: a process that lives for long
# must not take the digest of code that was installed later.
_PACKAGE_CODE = _PackageCode()


def package_digest() -> str:
    """Return the SHA-256 of the code of this package that the process has imported.

    A module that was imported from a file that had been changed meanwhile is a ChangedError.
    """
    return _PACKAGE_CODE.digest()


def study_identity(
    recordings: Iterable[StudyRecording], judges: Iterable[StudyJudge], twins: Iterable[Twin]
) -> dict[str, str]:
    """Return the digests of the code and the parameter files of a study, by name.

    The names are `PACKAGE` and those of files: parameter files of judges, files of classes outside
    of this package, and modules that these import, unless they are installed. Files of one name
    have one entry, with all their digests.

    Raises
    ------
    ChangedError
        When a file has been changed since this process read it.
    """
    files: dict[Path, str] = {}
    for judge in judges:
        files |= _judge_files(judge)
    things = [thing for twin in twins for thing in _twin_things(twin)]
    things += [thing for recording in recordings for thing in _recording_things(recording)]
    return {PACKAGE: package_digest(), **_by_name(files | code_files(things))}


def run_identity(
    recording: StudyRecording, judge: StudyJudge, twin: Twin | None
) -> dict[str, str]:
    """Return the digests behind a run; `twin` is None for the real run.

    These are entries of `study_identity`, and `RECORDING` for a recording that was read from
    files. See `study_identity` for errors.
    """
    things = _recording_things(recording) + ([] if twin is None else _twin_things(twin))
    files = _judge_files(judge) | code_files(things)
    identity = {PACKAGE: package_digest(), **_by_name(files)}
    if recording.files is not None:
        identity[RECORDING] = recording.files.digest
    return identity


def require_same(
    run: Mapping[str, str], study: Mapping[str, str], recording: StudyRecording, where: str
) -> None:
    """Raise ChangedError if the identity of a run, which `where` names, is not that of a study."""
    for name, digest in run.items():
        known = study.get(name, '')
        if name == RECORDING:
            known = '' if recording.files is None else recording.files.digest
            name = str(getattr(recording.origin, 'path', recording.name))
        if not set(digest.split()) <= set(known.split()):
            raise ChangedError(
                f'{name}: {where} has another one than the study (sha256 {_short(digest)}, not '
                f'{_short(known)}); restore it and repeat the command to continue, or give '
                '--overwrite to start over'
            )


def this_process() -> str:
    """Return the name of this process for messages."""
    return f'process {os.getpid()} on {platform.node()}'


def _short(digest: str) -> str:
    return ' '.join(text[:8] for text in digest.split()) or 'none'


def _judge_files(judge: StudyJudge) -> dict[Path, str]:
    setup = judge.setup
    model = getattr(setup, 'model', setup)
    return {**judge.file_digests, **code_files([setup, *_with_parts(model)])}


def _twin_things(twin: Twin) -> list[object]:
    return [thing for model in twin.models.values() for thing in _with_parts(model)]


def _recording_things(recording: StudyRecording) -> list[object]:
    origin = recording.origin
    things: list[object] = _twin_things(origin.sensors) if isinstance(origin, StandIn) else []
    drive = origin.drive if isinstance(origin, StandIn) else origin
    if isinstance(drive, PathDrive) and is_in_file(drive.scenario):
        things.append(SCENARIOS.get(drive.scenario))
    return things


def _with_parts(model: object) -> list[object]:
    return [model, *(model.parts().values() if isinstance(model, Parameters) else ())]


def code_files(things: Iterable[object]) -> dict[Path, str]:
    """Return the SHA-256 of the files of code outside of this package that objects are made of.

    These are the files of the classes and of the modules that they import, also within functions,
    unless those are installed. Each digest is that of the code which this process has imported.
    """
    files: dict[Path, str] = {}
    for thing in things:
        files |= _class_files(thing if isinstance(thing, type) else type(thing))
    return files


def code_digests(things: Iterable[object]) -> dict[str, str]:
    """Return the digests of `code_files` by name; see `study_identity` for errors."""
    return _by_name(code_files(things))


def _by_name(files: Mapping[Path, str]) -> dict[str, str]:
    for path, digest in files.items():
        # A worker on another machine gets the contents of parameter files, not the files.
        with contextlib.suppress(FileNotFoundError):
            if file_digest(path) != digest:
                raise _changed(path)
    digests: dict[str, set[str]] = {}
    for path, digest in files.items():
        digests.setdefault(path.name, set()).add(digest)
    return {name: ' '.join(sorted(digests[name])) for name in sorted(digests)}


def _changed(path: Path) -> ChangedError:
    return ChangedError(
        f'{path}: was changed after {this_process()} had read it; restore it and repeat the '
        'command to continue, or give --overwrite to start over; restart workers of a cluster'
    )


@functools.cache
def _class_files(kind: type) -> Mapping[Path, str]:
    path = _module_path(sys.modules.get(kind.__module__))
    if path is None or kind.__module__ in _SCRIPTS or _is_below(path, _ROOTS):
        return {}
    files = {path: source_digest(kind) or _imported_digest(path)}
    if not _is_installed(path):
        top = kind.__module__.partition('.')[0]
        own_files = [path] if path.stem == top or file_of(kind) else _module_files(top)
        for file in _with_imports(own_files):
            files.setdefault(file, _imported_digest(file))
    return files


def _module_path(module: object) -> Path | None:
    file = getattr(module, '__file__', None)
    return None if file is None else Path(file).resolve()


@functools.cache
def _imported_digest(path: Path) -> str:
    """Return the digest that a file had when it was first needed in this process."""
    return file_digest(path)


def _with_imports(files: Iterable[Path]) -> list[Path]:
    """Return files of code, and the files of what they import that is not installed."""
    found = dict.fromkeys(files)
    waiting = list(found)
    while waiting:
        for name in _imported_names(waiting.pop()):
            new = [file for file in _module_files(name) if file not in found]
            found |= dict.fromkeys(new)
            waiting += new
    return list(found)


def _imported_names(path: Path) -> set[str]:
    """Return the top-level names of the modules that a file imports anywhere."""
    if path.suffix != '.py':
        return set()
    names = set()
    for node in ast.walk(ast.parse(read_input(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition('.')[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition('.')[0])
    return names - sys.stdlib_module_names


def _module_files(name: str) -> list[Path]:
    """Return the files of a top-level module, or of all modules of a package, in order.

    There is none if it is missing, installed or part of this package.
    """
    try:
        spec = getattr(sys.modules.get(name), '__spec__', None) or importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    paths = [Path(spec.origin)] if spec.has_location and spec.origin else []
    if spec.submodule_search_locations is not None:
        folders = map(Path, spec.submodule_search_locations)
        paths = [path for folder in folders if not _is_known(folder) for path in _code_in(folder)]
    return [path.resolve() for path in paths if not _is_known(path)]


def _code_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob('*.py'))


def _is_known(path: Path) -> bool:
    """Return whether a path is part of an installation or of this package."""
    return _is_installed(path) or _is_below(path.resolve(), _ROOTS)


def _is_installed(path: Path) -> bool:
    is_package = not {'site-packages', 'dist-packages'}.isdisjoint(path.parts)
    return is_package or _is_below(path, _STANDARD_LIBRARY)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
