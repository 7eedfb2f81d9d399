# SPDX-License-Identifier: Apache-2.0
"""What rosbags leaves to be done with an mcap file: checksums, and reading a chunk at a time.

The CRC-32 checksums are of each chunk, of the data section and of the summary; rosbags writes
none. It makes three objects of each message read, which takes longer than all else that is done
with them. Layout of the records: https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from sim2real_eval.common.errors import RecordingError
from .storage import LARGEST, unpacked

_MAGIC = b'\x89MCAP0\r\n'
_FOOTER, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x02, 0x04, 0x05, 0x06, 0x0F
_RECORD = struct.Struct('<BQ')
_SIZES = {_FOOTER: 20, _DATA_END: 4}
_HEAD = struct.Struct('<BQHIQ')
"""Of a message: kind and size of the record, channel, number, receive time; 8 bytes follow."""
_DATA = 31
"""Where in the record of a message its data begins."""
_LENGTH = struct.Struct('<I')
_CHECKSUM = struct.Struct('<I')
_CHUNK_CHECKSUM = 24
"""Where in a chunk its checksum is: after two times and the size of its records."""
_CHUNK_HEAD = struct.Struct('<QQQII')
"""Of a chunk: two times, size and checksum of its records, length of its compression's name."""
_FOOTER_CHECKSUM = 16
_FOOTER_SIZE = 20
_PIECE = 1 << 20
"""Bytes that are in memory at a time."""


class _Checksum(NamedTuple):
    """What a checksum is of, where it stands, and from where to where the bytes are."""

    of: str
    place: int
    start: int
    end: int


def write_checksums(file: Path) -> None:
    """Enter the checksums of an mcap file whose chunks are not compressed."""
    with file.open('r+b') as stream:
        for one in _checksums(stream, file):
            computed = _CHECKSUM.pack(_computed(stream, one))
            stream.seek(one.place)
            stream.write(computed)


def check_checksums(file: Path) -> None:
    """Refuse an mcap file that has changed since its checksums were computed.

    Checksums that its writer left out are 0 and not checked, nor are those of compressed chunks,
    which `read_messages` checks when it unpacks them.

    Raises
    ------
    RecordingError
        It names the file and the chunk, or another part, or the record that cannot be one.
    """
    if not file.stat().st_size:
        return
    with file.open('rb') as stream:
        for one in _checksums(stream, file):
            (written,) = _read(stream, one.place, _CHECKSUM)
            if written and written != _computed(stream, one):
                raise RecordingError(
                    f'{file}: damaged: the checksum of {one.of} is not that of its bytes'
                )
        stream.seek(-len(_MAGIC) - _FOOTER_SIZE, 2)
        (summary,) = struct.unpack('<Q', stream.read(8))
    if not summary:
        # Without it rosbags unpacks all chunks at once when it opens the file, whatever they hold.
        for _ in read_messages(file, ()):
            pass


def _read(stream: BinaryIO, place: int, layout: struct.Struct) -> tuple[int, ...]:
    stream.seek(place)
    return layout.unpack(stream.read(layout.size))


def _computed(stream: BinaryIO, one: _Checksum) -> int:
    checksum = 0
    stream.seek(one.start)
    for start in range(one.start, one.end, _PIECE):
        checksum = crc32(stream.read(min(_PIECE, one.end - start)), checksum)
    return checksum


def _checksums(stream: BinaryIO, file: Path) -> Iterator[_Checksum]:
    """Yield the checksums of a file in the order in which they are to be computed."""
    chunks, summary = 0, 0
    for kind, start, content, end in _records(stream, file):
        if kind == _CHUNK:
            chunks += 1
            (compression,) = _read(stream, content + _CHUNK_CHECKSUM + 4, _CHECKSUM)
            if not compression:
                name = f'chunk {chunks} (at byte {start})'
                yield _Checksum(name, content + _CHUNK_CHECKSUM, content + 40, end)
        elif kind == _DATA_END:
            summary = end
            yield _Checksum('the data section', content, 0, start)
        elif kind == _FOOTER:
            place = content + _FOOTER_CHECKSUM
            yield _Checksum('the summary', place, summary, place)


def _records(stream: BinaryIO, file: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield kind, start, start of the content and end of each record of a file."""
    size = len(_MAGIC)
    start, stop, kind = size, file.stat().st_size - size, 0
    if stream.read(size) != _MAGIC:
        raise RecordingError(f'{file}: damaged: no mcap file by its first bytes')
    stream.seek(max(stop, start))
    if stream.read() != _MAGIC:
        raise RecordingError(f'{file}: cut short or damaged: no mcap file by its last bytes')
    while start < stop:
        content = start + _RECORD.size
        kind, size = _read(stream, start, _RECORD) if content <= stop else (0, 0)
        end = content + size
        least = _SIZES.get(kind, 40 if kind == _CHUNK else 0)
        if not kind or end > stop or size < least:
            raise RecordingError(f'{file}: damaged: no record at byte {start}')
        yield kind, start, content, end
        start = end
    if kind != _FOOTER:
        raise RecordingError(f'{file}: damaged: no footer')


# Messages.


def read_messages(
    file: Path, topics: Container[str]
) -> Iterator[tuple[str, list[int], list[bytes]]]:
    """Yield topic, receive times, ns, and data of messages, in the order of the file.

    A chunk of the file is in memory at a time. What is damaged is a RecordingError.
    """
    channels: dict[int, str] = {}
    with file.open('rb') as stream:
        for kind, start, content, end in _records(stream, file):
            stream.seek(start)
            if kind == _CHUNK:
                stream.seek(content)
                try:
                    records = _records_of(stream, end, file, start)
                except RecordingError:
                    raise
                except Exception as error:
                    # As lz4, zstd or a name that is no text have it.
                    problem = f'damaged: chunk at byte {start} ({error})'
                    raise RecordingError(f'{file}: {problem}') from None
            elif kind in (_CHANNEL, _MESSAGE):
                records = stream.read(end - start)
            else:
                continue
            try:
                yield from _messages(records, channels, topics)
            except (struct.error, UnicodeDecodeError, IndexError):
                raise RecordingError(f'{file}: damaged: no records at byte {start}') from None


def _records_of(stream: BinaryIO, end: int, file: Path, start: int) -> bytes:
    """Return the records of the chunk whose content begins here, unpacked."""
    _, _, size, checksum, length = _CHUNK_HEAD.unpack(stream.read(_CHUNK_HEAD.size))
    if stream.tell() + length + 8 > end:
        raise RecordingError(f'{file}: damaged: chunk at byte {start}')
    compression = stream.read(length).decode()
    stream.seek(8, 1)
    packed = stream.read(end - stream.tell())
    if size > LARGEST:
        problem = f'holds {size} bytes; at most {LARGEST} are allowed'
        raise RecordingError(f'{file}: chunk at byte {start} {problem}')
    if not compression:
        records = packed
    elif compression == 'lz4':
        # Both are dependencies of rosbags.
        import lz4.frame

        records = bytes(lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1))
    elif compression == 'zstd':
        records = unpacked(packed, size)
    else:
        raise RecordingError(
            f'{file}: compression {compression!r} is unknown; must be lz4, zstd or none'
        )
    if len(records) != size or (compression and checksum and crc32(records) != checksum):
        raise RecordingError(f'{file}: damaged: chunk at byte {start}')
    return records


def _text(data: bytes, place: int) -> tuple[str, int]:
    """Return a text, and where it ends."""
    (length,) = _LENGTH.unpack_from(data, place)
    start, end = place + _LENGTH.size, place + _LENGTH.size + length
    return data[start:end].decode(), end


def _messages(
    records: bytes, channels: dict[int, str], topics: Container[str]
) -> Iterator[tuple[str, list[int], list[bytes]]]:
    """Yield the messages among some records by channel; `channels` learns the topics."""
    found: dict[int, tuple[list[int], list[bytes]]] = {
        channel: ([], []) for channel, topic in channels.items() if topic in topics
    }
    place, end = 0, len(records)
    while place < end:
        try:
            kind, size, channel, _, received_ns = _HEAD.unpack_from(records, place)
        except struct.error:
            # A last record that is shorter than the head of a message.
            rest = records[place:].ljust(_HEAD.size, b'\0')
            kind, size, channel, _, received_ns = _HEAD.unpack(rest)
        start, place = place, place + _RECORD.size + size
        if place > end:
            raise IndexError
        if kind == _MESSAGE and channel in found:
            times, rows = found[channel]
            times.append(received_ns)
            rows.append(records[start + _DATA : place])
        elif kind == _CHANNEL:
            channels[channel], _ = _text(records, start + _RECORD.size + 4)
            if channels[channel] in topics:
                found.setdefault(channel, ([], []))
    for channel, (times, rows) in found.items():
        if rows:
            yield channels[channel], times, rows
