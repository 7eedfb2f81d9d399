# SPDX-License-Identifier: Apache-2.0
"""Hash of the files of a recording, for the provenance of results."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.metadata import find_metadata

__all__ = ['recording_digest']

_CHUNK = 1 << 20


def recording_digest(path: str | Path) -> str:
    """Return the SHA-256 (hex) over names, sizes and contents of all files of a recording.

    The recording.yaml that belongs to it counts, hidden files and sub-folders do not. The place of
    the recording does not enter, so a copy has the same digest.

    Raises
    ------
    RecordingError
        When the path is missing or a file cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f'{path}: no such file or folder')
    try:
        files = [path]
        if path.is_dir():
            files = sorted(
                each for each in path.iterdir() if each.is_file() and each.name[0] != '.'
            )
        sidecar = find_metadata(path)
        named = [(each.name, each) for each in files]
        if sidecar is not None and sidecar not in files:
            named.append(('recording.yaml', sidecar))
        total = hashlib.sha256()
        for name, file in named:
            total.update(f'{name}\x00{file.stat().st_size}\x00'.encode())
            with file.open('rb') as stream:
                while chunk := stream.read(_CHUNK):
                    total.update(chunk)
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    return total.hexdigest()
