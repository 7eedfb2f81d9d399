# SPDX-License-Identifier: Apache-2.0
"""What was compressed by Zstandard, within limits: little of it may unpack to more than a disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sim2real_eval.common.errors import RecordingError

LARGEST = 1 << 30
"""Bytes of an unpacked chunk, or of messages that wait to be decoded."""

_MOST_TIMES = 100
"""A file may unpack to so many times its size, and to `LARGEST` in any case: messages of real
sensors become a half to a twentieth."""
_PIECE = 1 << 20


def zstandard() -> Any:
    """Return the module of the standard library, or what stands in for it before Python 3.14."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd


def unpacked(data: bytes, most: int) -> bytes:
    """Return what was compressed, at most one byte more than `most`."""
    return bytes(zstandard().ZstdDecompressor().decompress(data, most + 1))


def unpacked_message(data: bytes, where: str) -> bytes:
    """Return a message that was compressed by itself; RecordingError where it is too large."""
    message = unpacked(data, LARGEST)
    if len(message) > LARGEST:
        problem = f'unpacks to more than {LARGEST} bytes; at most that are allowed'
        raise RecordingError(f'{where}: a message {problem}')
    return message


def check_unpacked_size(file: Path) -> None:
    """Refuse a compressed file that unpacks to far more than its size; any other file passes."""
    most = max(LARGEST, _MOST_TIMES * file.stat().st_size)
    size = 0
    try:
        with zstandard().open(file) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > most:
                    break
    except (zstandard().ZstdError, EOFError):
        return  # whoever reads it says what is wrong
    if size > most:
        problem = f'unpacks to more than {most} bytes; at most that are allowed'
        raise RecordingError(f'{file}: {problem}; unpack it with `zstd -d` if it is right')
