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
"""Names of the main module of a process, which differs between a command and its workers."""


class _PackageCode:
    """Digests of the files of this package at the time when the object is created."""

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
            When a module was imported from a file that has changed since then.
        """
        for name in sys.modules.keys() - self._checked:
            path = _module_path(sys.modules[name])
            if path in self._digests and file_digest(path) != self._digests[path]:
                raise _changed(path)
            self._checked.add(name)
        return self._whole


# Created at import, together with the rest of the package: a long-running process must not take
# the digest of code that was installed later.
_PACKAGE_CODE = _PackageCode()


def package_digest() -> str:
    """Return the SHA-256 of the code of this package that the process has imported.

    Raises ChangedError if a module was imported from a file that changed after the digest.
    """
    return _PACKAGE_CODE.digest()


def study_identity(
    recordings: Iterable[StudyRecording], judges: Iterable[StudyJudge], twins: Iterable[Twin]
) -> dict[str, str]:
    """Return the digests of the code and the parameter files of a study, by name.

    The names are `PACKAGE` and the names of files: parameter files of judges, files of classes
    outside of this package, and modules that these import, unless they are installed. Files of
    the same name share an entry, which holds all their digests.

    Raises
    ------
    ChangedError
        When a file has been changed since this process read it.
    """
    files: dict[Path, str] = {}
    for judge in judges:
        files |= _judge_files(judge)
    objects = [part for twin in twins for part in _twin_objects(twin)]
    objects += [part for recording in recordings for part in _recording_objects(recording)]
    return {PACKAGE: package_digest(), **_by_name(files | code_files(objects))}


def run_identity(
    recording: StudyRecording, judge: StudyJudge, twin: Twin | None
) -> dict[str, str]:
    """Return the digests of the code and inputs of a run; `twin` is None for the real run.

    These are entries of `study_identity`, and `RECORDING` for a recording that was read from
    files. See `study_identity` for errors.
    """
    objects = _recording_objects(recording) + ([] if twin is None else _twin_objects(twin))
    files = _judge_files(judge) | code_files(objects)
    identity = {PACKAGE: package_digest(), **_by_name(files)}
    if recording.files is not None:
        identity[RECORDING] = recording.files.digest
    return identity


def require_same(
    run: Mapping[str, str], study: Mapping[str, str], recording: StudyRecording, where: str
) -> None:
    """Raise ChangedError if the identity of a run differs from that of the study.

    `where` names the process or file of the run in the message.
    """
    for name, digest in run.items():
        expected = study.get(name, '')
        if name == RECORDING:
            expected = '' if recording.files is None else recording.files.digest
            name = str(getattr(recording.origin, 'path', recording.name))
        if not set(digest.split()) <= set(expected.split()):
            raise ChangedError(
                f'{name}: {where} has another version than the study (sha256 {_short(digest)}, '
                f'not {_short(expected)}); restore it and repeat the command to continue, or give '
                '--overwrite to start over'
            )


def this_process() -> str:
    """Return the name of this process for messages."""
    return f'process {os.getpid()} on {platform.node()}'


def _short(digest: str) -> str:
    return ' '.join(part[:8] for part in digest.split()) or 'none'


def _judge_files(judge: StudyJudge) -> dict[Path, str]:
    setup = judge.setup
    model = getattr(setup, 'model', setup)
    return {**judge.file_digests, **code_files([setup, *_with_parts(model)])}


def _twin_objects(twin: Twin) -> list[object]:
    return [part for model in twin.models.values() for part in _with_parts(model)]


def _recording_objects(recording: StudyRecording) -> list[object]:
    origin = recording.origin
    objects: list[object] = _twin_objects(origin.sensors) if isinstance(origin, StandIn) else []
    drive = origin.drive if isinstance(origin, StandIn) else origin
    if isinstance(drive, PathDrive) and is_in_file(drive.scenario):
        objects.append(SCENARIOS.get(drive.scenario))
    return objects


def _with_parts(model: object) -> list[object]:
    return [model, *(model.parts().values() if isinstance(model, Parameters) else ())]


def code_files(objects: Iterable[object]) -> dict[Path, str]:
    """Return the SHA-256 of the code files behind objects, without files of this package.

    These are the files that define their classes, and of the modules that those import, also
    within functions, unless they are installed. The digests are those of the imported code.
    """
    files: dict[Path, str] = {}
    for instance in objects:
        files |= _class_files(instance if isinstance(instance, type) else type(instance))
    return files


def code_digests(objects: Iterable[object]) -> dict[str, str]:
    """Return the digests of `code_files` by name; see `study_identity` for errors."""
    return _by_name(code_files(objects))


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
    """Return code files, and the files of the modules they import, unless installed."""
    all_files = dict.fromkeys(files)
    waiting = list(all_files)
    while waiting:
        for name in _imported_names(waiting.pop()):
            new_files = [file for file in _module_files(name) if file not in all_files]
            all_files |= dict.fromkeys(new_files)
            waiting += new_files
    return list(all_files)


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

    The list is empty for a module that is missing, installed or part of this package.
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
        paths = [
            path
            for folder in folders
            if not _is_excluded(folder)
            for path in sorted(folder.rglob('*.py'))
        ]
    return [path.resolve() for path in paths if not _is_excluded(path)]


def _is_excluded(path: Path) -> bool:
    """Return whether a path is part of an installation or of this package."""
    return _is_installed(path) or _is_below(path.resolve(), _ROOTS)


def _is_installed(path: Path) -> bool:
    is_package = not {'site-packages', 'dist-packages'}.isdisjoint(path.parts)
    return is_package or _is_below(path, _STANDARD_LIBRARY)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
