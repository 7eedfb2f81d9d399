# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Integrity of stored recordings: checksums of MCAP, sizes of compressed data, SQLite files.

rosbags neither writes the checksums of an MCAP file nor limits the size of unpacked data, and
SQLite reads a truncated database without an error. Layout of MCAP: https://mcap.dev/spec.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from sim2real_eval.common.findings import RecordingError
from sim_sensors.core.input_files import open_input

LARGEST = 1 << 30
"""Largest size of an unpacked chunk or message, bytes; a few packed bytes may fill a disk."""
_LARGEST_RATIO = 100
"""Largest ratio of unpacked to packed file size above `LARGEST`; sensor data reach 2 to 20."""
_PIECE = 1 << 20
"""Bytes read at a time."""

# MCAP.

_MAGIC = b'\x89MCAP0\r\n'
_FOOTER, _CHUNK, _DATA_END = 0x02, 0x06, 0x0F
_MIN_SIZES = {_FOOTER: 20, _DATA_END: 4, _CHUNK: 40}
_RECORD = struct.Struct('<BQ')
_CHUNK_HEAD = struct.Struct('<QQQII')
"""Start and end time, unpacked size, checksum, and length of the compression's name."""
_CHECKSUM = struct.Struct('<I')
_CHUNK_CHECKSUM, _FOOTER_CHECKSUM = 24, 16
"""Positions of the checksum in the content of a chunk and of the footer."""


class _Checksum(NamedTuple):
    """CRC-32 of the bytes from `start` to `end`, stored at `position`."""

    part: str
    position: int
    start: int
    end: int


def write_checksums(file: Path) -> None:
    """Enter the checksums of an MCAP file whose chunks are not compressed."""
    with file.open('r+b') as stream:
        for checksum in _checksums(stream, file):
            computed = _CHECKSUM.pack(_compute_crc(stream, checksum.start, checksum.end))
            stream.seek(checksum.position)
            stream.write(computed)


def check_checksums(file: Path) -> None:
    """Raise RecordingError if the bytes of an MCAP file do not match their checksums.

    A checksum of 0 was not written and is not checked. The error names the chunk or section.
    """
    if not file.stat().st_size:
        return
    with open_input(file) as stream:
        for checksum in _checksums(stream, file):
            (stored,) = _read_at(stream, checksum.position, _CHECKSUM)
            if stored and stored != _compute_crc(stream, checksum.start, checksum.end):
                raise _damage(
                    file, f'damaged: the checksum of {checksum.part} is not that of its bytes'
                )


def _checksums(stream: BinaryIO, file: Path) -> Iterator[_Checksum]:
    """Yield the checksums of a file in the order of computation; check compressed chunks."""
    chunk_count, summary_start = 0, 0
    for kind, start, content, end in _records(stream, file):
        if kind == _CHUNK:
            chunk_count += 1
            head = _read_at(stream, content, _CHUNK_HEAD)
            if head[-1]:
                _check_compressed_chunk(stream, file, start, end, head)
            else:
                name = f'chunk {chunk_count} (at byte {start})'
                yield _Checksum(name, content + _CHUNK_CHECKSUM, content + 40, end)
        elif kind == _DATA_END:
            summary_start = end
            yield _Checksum('the data section', content, 0, start)
        elif kind == _FOOTER:
            position = content + _FOOTER_CHECKSUM
            yield _Checksum('the summary', position, summary_start, position)


def _records(stream: BinaryIO, file: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield kind, start, start of the content, and end of each record of an MCAP file."""
    start, stop, kind = len(_MAGIC), file.stat().st_size - len(_MAGIC), 0
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise RecordingError(f'{file}: damaged: its first bytes are not those of MCAP')
    stream.seek(max(stop, start))
    if stream.read() != _MAGIC:
        raise _damage(file, 'cut short or damaged: its last bytes are not those of MCAP')
    while start < stop:
        content = start + _RECORD.size
        kind, size = _read_at(stream, start, _RECORD) if content <= stop else (0, 0)
        end = content + size
        if not kind or end > stop or size < _MIN_SIZES.get(kind, 0):
            raise _damage(file, f'damaged: no record at byte {start}')
        yield kind, start, content, end
        start = end
    if kind != _FOOTER:
        raise _damage(file, 'damaged: no footer')


def _check_compressed_chunk(
    stream: BinaryIO, file: Path, start: int, end: int, head: tuple[int, ...]
) -> None:
    """Raise RecordingError if a compressed chunk is damaged or unpacks to more than it states."""
    _, _, size, checksum, length = head
    if size > LARGEST:
        raise RecordingError(
            f'{file}: chunk at byte {start} holds {size} bytes; at most {LARGEST} are allowed'
        )
    damaged = f'damaged: chunk at byte {start}'
    if stream.tell() + length + 8 > end:
        raise _damage(file, damaged)
    try:
        compression = stream.read(length).decode()
        stream.seek(8, 1)
        packed = stream.read(end - stream.tell())
        if compression == 'lz4':
            import lz4.frame

            content = bytes(lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1))
        elif compression == 'zstd':
            content = unpack(packed, size)
        else:
            raise RecordingError(
                f'{file}: compression {compression!r} is unknown; must be lz4, zstd or none'
            )
    except (UnicodeDecodeError, RuntimeError, EOFError, zstandard().ZstdError) as error:
        raise _damage(file, f'{damaged} ({error})') from None
    if len(content) != size or (checksum and crc32(content) != checksum):
        raise _damage(file, damaged)


def _damage(file: Path, problem: str) -> RecordingError:
    """Return the error of a damaged MCAP file, with the command that recovers its messages."""
    recovered = file.with_name(f'{file.stem}_recovered.mcap')
    return RecordingError(
        f'{file}: {problem}; `mcap recover {file} -o {recovered}` keeps the intact messages'
    )


@contextlib.contextmanager
def allow_foreign_schemas() -> Iterator[None]:
    """Let rosbags open MCAP files with schemas of other encodings, such as Protobuf or JSON.

    It refuses a file as a whole if one channel is not of ROS. Such schemas may hold bytes that are
    not text.
    """
    from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
    from rosbags.rosbag2 import storage_mcap

    module: Any = storage_mcap
    get_definition, read_text = module.get_msgdef, module.read_string

    def get_any_definition(schema: Any) -> Any:
        try:
            return get_definition(schema)
        except KeyError:
            return MessageDefinition(MessageDefinitionFormat.NONE, '')

    module.get_msgdef = get_any_definition
    module.read_string = lambda stream: module.read_bytes(stream).decode(errors='replace')
    try:
        yield
    finally:
        module.get_msgdef, module.read_string = get_definition, read_text


def _read_at(stream: BinaryIO, position: int, layout: struct.Struct) -> tuple[int, ...]:
    stream.seek(position)
    return layout.unpack(stream.read(layout.size))


def _compute_crc(stream: BinaryIO, start: int, end: int) -> int:
    checksum = 0
    stream.seek(start)
    for piece_start in range(start, end, _PIECE):
        checksum = crc32(stream.read(min(_PIECE, end - piece_start)), checksum)
    return checksum


# Zstandard.


def zstandard() -> Any:
    """Return the zstd module of Python 3.14, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd


def unpack(data: bytes, limit: int) -> bytes:
    """Return the unpacked data, at most `limit` + 1 bytes of it."""
    return bytes(zstandard().ZstdDecompressor().decompress(data, limit + 1))


def unpack_message(data: bytes, where: str) -> bytes:
    """Unpack an individually compressed message; RecordingError if it exceeds `LARGEST` bytes."""
    message = unpack(data, LARGEST)
    if len(message) > LARGEST:
        raise RecordingError(
            f'{where}: a message unpacks to more than {LARGEST} bytes; at most that are allowed'
        )
    return message


def check_unpacked_size(file: Path) -> None:
    """Raise RecordingError for a compressed file that unpacks to far more than its size."""
    limit = max(LARGEST, _LARGEST_RATIO * file.stat().st_size)
    size = 0
    try:
        with zstandard().open(file) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > limit:
                    break
    except EOFError:
        if file.suffix != '.zstd':
            return
        raise RecordingError(
            f'{file}: compressed file is cut short; copy it again, or unpack what is left with '
            f'`zstd -dc {file} > {file.with_suffix("")}` and give that file'
        ) from None
    except zstandard().ZstdError:
        return  # The file is not compressed, or its reader reports the damage.
    if size > limit:
        raise RecordingError(
            f'{file}: unpacks to more than {limit} bytes; at most that are allowed; '
            'unpack it with `zstd -d` if it is right'
        )


# SQLite.


def list_databases(folder: Path) -> list[Path]:
    """Return the SQLite files of a bag, without the log files that SQLite puts beside them."""
    return sorted(file for file in folder.iterdir() if file.name.endswith(('.db3', '.db3.zstd')))


@contextlib.contextmanager
def open_database(file: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite database for reading, compressed or not."""
    with contextlib.ExitStack() as stack:
        if file.suffix == '.zstd':
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            unpacked_file = folder / file.stem
            with zstandard().open(file) as packed, unpacked_file.open('wb') as target:
                shutil.copyfileobj(packed, target)
            file = unpacked_file
        name = f'{file.absolute().as_uri()}?immutable=1'
        yield stack.enter_context(contextlib.closing(sqlite3.connect(name, uri=True)))


def check_database(path: Path) -> None:
    """Raise RecordingError for damage that SQLite ignores: a cut last page, unmerged messages.

    Byte positions: https://www.sqlite.org/fileformat.html#the_database_header
    """
    with open_input(path) as stream:
        header = stream.read(100)
    size = path.stat().st_size
    page_size = int.from_bytes(header[16:18], 'big')
    page_size = 65536 if page_size == 1 else page_size
    page_count = int.from_bytes(header[28:32], 'big')
    # The page count is valid only when both change counters agree.
    if header[24:28] == header[92:96] and size < page_size * page_count:
        raise RecordingError(
            f'{path}: file is cut short: it has {size} bytes, its header states '
            f'{page_size * page_count}'
        )
    log = path.with_name(f'{path.name}-wal')
    if log.is_file() and log.stat().st_size:
        raise RecordingError(
            f'{path}: recording was not closed: messages are left in {log.name}; '
            "merge them with: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'"
        )
