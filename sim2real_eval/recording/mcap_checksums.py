# SPDX-License-Identifier: Apache-2.0
"""The CRC-32 checksums of an mcap file: of each chunk, of the data section, of the summary.

rosbags writes none. Layout of the records: https://mcap.dev/spec.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from sim2real_eval.common.errors import RecordingError

_MAGIC = b'\x89MCAP0\r\n'
_FOOTER, _CHUNK, _DATA_END = 0x02, 0x06, 0x0F
_RECORD = struct.Struct('<BQ')
_SIZES = {_FOOTER: 20, _DATA_END: 4}
_CHECKSUM = struct.Struct('<I')
_CHUNK_CHECKSUM = 24
"""Where in a chunk its checksum is: after two times and the size of its records."""
_FOOTER_CHECKSUM = 16


class _Checksum(NamedTuple):
    """What a checksum is of, where it stands, and from where to where the bytes are."""

    of: str
    place: int
    start: int
    end: int


def write_checksums(file: Path) -> None:
    """Enter the checksums of an mcap file whose chunks are not compressed."""
    with file.open('r+b') as stream, mmap.mmap(stream.fileno(), 0) as data:
        for one in _checksums(data, file):
            _CHECKSUM.pack_into(data, one.place, _computed(data, one))


def check_checksums(file: Path) -> None:
    """Refuse an mcap file that has changed since its checksums were computed.

    Checksums that its writer left out are 0 and not checked, nor are those of compressed chunks,
    which rosbags checks when it unpacks them.

    Raises
    ------
    RecordingError
        It names the file and the chunk, or another part, or the record that cannot be one.
    """
    if not file.stat().st_size:
        return
    with file.open('rb') as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for one in _checksums(data, file):
            (written,) = _CHECKSUM.unpack_from(data, one.place)
            if written and written != _computed(data, one):
                raise RecordingError(
                    f'{file}: damaged: the checksum of {one.of} is not that of its bytes'
                )


def _computed(data: mmap.mmap, one: _Checksum) -> int:
    with memoryview(data) as view, view[one.start : one.end] as part:
        return crc32(part)


def _checksums(data: mmap.mmap, file: Path) -> Iterator[_Checksum]:
    """Yield the checksums of a file in the order in which they are to be computed."""
    chunks, summary = 0, 0
    for kind, start, content, end in _records(data, file):
        if kind == _CHUNK:
            chunks += 1
            (compression,) = _CHECKSUM.unpack_from(data, content + _CHUNK_CHECKSUM + 4)
            if not compression:
                name = f'chunk {chunks} (at byte {start})'
                yield _Checksum(name, content + _CHUNK_CHECKSUM, content + 40, end)
        elif kind == _DATA_END:
            summary = end
            yield _Checksum('the data section', content, 0, start)
        elif kind == _FOOTER:
            place = content + _FOOTER_CHECKSUM
            yield _Checksum('the summary', place, summary, place)


def _records(data: mmap.mmap, file: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield kind, start, start of the content and end of each record of a file."""
    start, stop, kind = len(_MAGIC), len(data) - len(_MAGIC), 0
    if data[:start] != _MAGIC:
        raise RecordingError(f'{file}: damaged: no mcap file by its first bytes')
    if data[max(stop, start) :] != _MAGIC:
        raise RecordingError(f'{file}: cut short or damaged: no mcap file by its last bytes')
    while start < stop:
        content = start + _RECORD.size
        kind, size = _RECORD.unpack_from(data, start) if content <= stop else (0, 0)
        end = content + size
        least = _SIZES.get(kind, 40 if kind == _CHUNK else 0)
        if not kind or end > stop or size < least:
            raise RecordingError(f'{file}: damaged: no record at byte {start}')
        yield kind, start, content, end
        start = end
    if kind != _FOOTER:
        raise RecordingError(f'{file}: damaged: no footer')
