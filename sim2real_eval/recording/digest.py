# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Digests of all files that belong to a recording."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from sim2real_eval.common.digests import (
    ChangedError,
    FileState,
    NamedFile,
    file_state,
    files_digest,
)
from sim2real_eval.common.findings import RecordingError
from sim_sensors.core.errors import Sim2RealError
from .metadata import find_metadata, read_metadata
from .poses import TRAJECTORY_SUFFIXES, find_trajectory


def recording_digest(path: str | Path, topics: Mapping[str, str | None] | None = None) -> str:
    """Return the SHA-256 (hex) of the names, sizes and contents of a recording's files.

    The digest includes the recording.yaml that applies, and the file of the true trajectory that
    recording.yaml or `topics` names. It ignores hidden files and sub-folders. A copy elsewhere has
    the same digest. Raises RecordingError for a path that is missing or cannot be read.
    """
    files = recording_files(path, topics)
    try:
        return files_digest(files)
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None


def recording_files(
    path: str | Path, topics: Mapping[str, str | None] | None = None
) -> tuple[NamedFile, ...]:
    """Return the files whose digest is `recording_digest`; raises the same errors."""
    path = Path(path)
    if not path.exists():
        raise RecordingError(f'{path}: no such file or folder')
    try:
        files = [path]
        if path.is_dir():
            entries = sorted(path.iterdir())
            files = [file for file in entries if file.is_file() and file.name[0] != '.']
        sidecar = find_metadata(path)
        named_paths = [(file.name, file) for file in files]
        if sidecar is not None and sidecar not in files:
            named_paths.append(('recording.yaml', sidecar))
        truth = (topics or {}).get('truth')
        if truth is None and sidecar is not None:
            truth = _stated_truth(sidecar, file_state(sidecar))
        if truth is not None and Path(truth).suffix in TRAJECTORY_SUFFIXES:
            # A missing file is reported when the recording is read.
            with contextlib.suppress(RecordingError):
                trajectory = find_trajectory(path, truth)
                if trajectory not in files:
                    named_paths.append((trajectory.name, trajectory))
        return tuple(NamedFile(name, file, file_state(file)) for name, file in named_paths)
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None


@functools.lru_cache(maxsize=1024)
def _stated_truth(sidecar: Path, state: FileState) -> str | None:
    """Return the topic or file of the truth in a recording.yaml, or None.

    An invalid file gives None, too.
    """
    with contextlib.suppress(Sim2RealError):
        return read_metadata(sidecar).topics.get('truth')
    return None


@dataclasses.dataclass(frozen=True)
class RecordingFiles:
    """State of the files of a recording at one time."""

    path: str
    topics: Mapping[str, str | None]
    files: tuple[NamedFile, ...]
    digest: str  # empty if the recording cannot be read

    @classmethod
    def of(cls, path: str, topics: Mapping[str, str | None]) -> RecordingFiles:
        """Return the current state of the files of a recording; see `recording_digest`."""
        with contextlib.suppress(OSError, Sim2RealError):
            files = recording_files(path, topics)
            return cls(path, topics, files, files_digest(files))
        return cls(path, topics, (), '')

    @property
    def size(self) -> int:
        """Size of all files, bytes."""
        return sum(file.state.size for file in self.files)

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise ChangedError if the files differ from this state before or after the block.

        Contents are compared only if the states of the files differ: hashing a large recording
        takes long.
        """
        self._check()
        try:
            yield
        finally:
            self._check()

    def _check(self) -> None:
        with contextlib.suppress(Sim2RealError):
            if recording_files(self.path, self.topics) == self.files:
                return
        if self.of(self.path, self.topics).digest != self.digest:
            raise ChangedError(
                f'{self.path}: was changed after the study had begun; restore it and repeat the '
                'command to continue, or give --overwrite to start over'
            )
