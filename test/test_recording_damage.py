# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Damaged bags are refused in one line or get a finding."""

from __future__ import annotations

import contextlib
import resource
import shutil
import sqlite3
import struct
import tracemalloc
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from recording_examples import SUFFIX, drive, write_bags
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording import storage as storing
from sim2real_eval.recording.cdr import typestore
from sim2real_eval.recording.digest import recording_digest
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.storage import check_checksums, zstandard
from sim2real_eval.recording.writing import Storage, write_recording


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bags(tmp_path_factory.mktemp('bags'))


def damaged(bags: Path, tmp_path: Path, storage: str) -> tuple[Path, Path, bytes]:
    folder = tmp_path / 'line_3'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bags / storage / 'line_3', folder)
    file = folder / f'line_3{SUFFIX[storage]}'
    return folder, file, file.read_bytes()


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('share', [0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize('single', [False, True])
def test_a_truncated_bag_is_refused_in_one_line(
    bags: Path, tmp_path: Path, storage: str, share: float, single: bool
) -> None:
    folder, file, data = damaged(bags, tmp_path, storage)
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(RecordingError) as error:
        read_recording(file if single else folder)
    assert 'line_3' in str(error.value)
    assert '\n' not in str(error.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    storage=st.sampled_from(['mcap', 'sqlite3']),
    share=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=64),
)
@example(storage='sqlite3', share=0.15792955160714506, junk=b'\x00')
def test_damaged_bytes_never_cause_an_unexpected_exception(
    bags: Path, tmp_path: Path, storage: str, share: float, junk: bytes
) -> None:
    folder, file, data = damaged(bags, tmp_path, storage)
    at = int(share * len(data))
    file.write_bytes(data[:at] + junk + data[at + len(junk) :])
    with contextlib.suppress(RecordingError):
        read_recording(folder)


def test_missing_files_are_named_in_the_error(bags: Path, tmp_path: Path) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'mcap')
    (folder / 'metadata.yaml').unlink()
    with pytest.raises(RecordingError, match=r'metadata\.yaml'):
        read_recording(folder)
    folder, file, _ = damaged(bags, tmp_path, 'mcap')
    file.unlink()
    with pytest.raises(RecordingError, match=r'line_3\.mcap'):
        read_recording(folder)


def test_paths_that_are_not_recordings_are_refused_by_name(bags: Path, tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'notes.md').write_text('hello')
    for path in (tmp_path / 'nowhere', tmp_path / 'empty', bags / 'mcap', tmp_path / 'notes.md'):
        with pytest.raises(RecordingError, match=str(path)):
            read_recording(path)


def test_messages_missing_from_a_database_cause_a_finding(bags: Path, tmp_path: Path) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'sqlite3')
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute('DELETE FROM messages WHERE id % 50 = 7')
        database.commit()
    recording = read_recording(folder)
    assert any(note.code == 'recording.cut_short' for note in recording.notes)


def test_a_database_with_messages_in_its_write_ahead_log_is_refused(
    bags: Path, tmp_path: Path
) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'sqlite3')
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute('PRAGMA journal_mode=WAL')
        database.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES (1, 1, x'00')")
        database.commit()
        with pytest.raises(RecordingError, match='recording was not closed'):
            read_recording(folder)


def test_the_digest_depends_on_the_content_and_not_on_the_path(bags: Path, tmp_path: Path) -> None:
    original = recording_digest(bags / 'mcap/line_3')
    folder, file, data = damaged(bags, tmp_path, 'mcap')
    assert recording_digest(folder) == original
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert recording_digest(folder) != original
    with pytest.raises(RecordingError):
        recording_digest(tmp_path / 'nowhere')


def test_no_flipped_bit_changes_the_data_of_our_recordings_undetected(
    bags: Path, tmp_path: Path
) -> None:
    """One bit in every 97th byte and in each of the last 100: every byte is under a checksum, is
    one, or is one of the first or last eight. A chunk is named by its own.
    """
    folder, file, data = damaged(bags, tmp_path, 'mcap')
    places = [*range(0, len(data), 97), *range(len(data) - 100, len(data))]
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        file.write_bytes(flipped)
        with pytest.raises(RecordingError, match=r'line_3\.mcap: .*damaged'):
            check_checksums(file)
    file.write_bytes(data)
    check_checksums(file)
    half = len(data) // 3
    file.write_bytes(data[:half] + bytes([data[half] ^ 4]) + data[half + 1 :])
    for where in (folder, file):
        with pytest.raises(RecordingError, match=r'line_3\.mcap.*chunk 1'):
            read_recording(where)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3', 'csv'])
def test_a_full_disk_is_a_one_line_error_and_leaves_no_files(
    tmp_path: Path, storage: Storage
) -> None:
    """Files of at most 20 kB: writing fails in the middle, as where no space is left."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        with pytest.raises(RecordingError, match=r'line_3: [^\n]+$'):
            write_recording(drive(), tmp_path / 'line_3', storage=storage)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('compression', ['zstd', 'lz4'])
def test_a_chunk_uses_no_more_memory_than_its_stated_size(
    tmp_path: Path, compression: str
) -> None:
    """64 MiB of zeros are packed into kilobytes; a stated size of 2 GiB is refused unread."""
    zeros = bytes(1 << 26)
    packed = zstandard().compress(zeros) if compression == 'zstd' else lz4.frame.compress(zeros)
    kind = compression.encode()
    for size, problem in ((10, 'damaged: chunk'), (1 << 31, r'at most \d+ are allowed')):
        head = struct.pack('<QQQII', 0, 0, size, 0, len(kind)) + kind
        chunk = head + struct.pack('<Q', len(packed)) + packed
        file = tmp_path / f'{size}.mcap'
        records = bytes([6]) + struct.pack('<Q', len(chunk)) + chunk
        records += bytes([15]) + struct.pack('<QI', 4, 0)
        records += bytes([2]) + struct.pack('<QQQI', 20, 0, 0, 0)
        magic = b'\x89MCAP0\r\n'
        file.write_bytes(magic + records + magic)
        tracemalloc.start()
        with pytest.raises(RecordingError, match=problem):
            check_checksums(file)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
        tracemalloc.stop()


def compressed(folder: Path, mode: CompressionMode, storage: StoragePlugin) -> Path:
    """Write the messages of a drive as rosbag2 does with compression; return the bag."""
    write_recording(drive(), folder / 'plain', storage='sqlite3')
    writer = Writer(folder / 'bag', version=8, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with Reader(folder / 'plain') as reader, writer:
        copies = {
            source.topic: writer.add_connection(
                source.topic, source.msgtype, typestore=typestore()
            )
            for source in reader.connections
        }
        for source, time, data in reader.messages():
            writer.write(copies[source.topic], time, data)
    return folder / 'bag'


@pytest.mark.parametrize('mode', [CompressionMode.FILE, CompressionMode.MESSAGE])
@pytest.mark.parametrize('storage', list(StoragePlugin))
def test_compressed_bags_are_read_up_to_the_allowed_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: CompressionMode, storage: StoragePlugin
) -> None:
    """A bag of some kilobytes would fill memory or disk; the limits here are those of a test."""
    bag, plain = compressed(tmp_path, mode, storage), read_recording(tmp_path / 'plain')
    read = read_recording(bag)
    for topic, array in plain.messages.items():
        assert np.array_equal(read.messages[topic].stamp_ns, array.stamp_ns)
    monkeypatch.setattr(storing, 'LARGEST', 200)
    monkeypatch.setattr(storing, '_LARGEST_RATIO', 1)
    with pytest.raises(RecordingError, match='unpacks'):
        read_recording(bag)


def rewritten(file: Path, *, chunked: bool) -> None:
    """Turn the messages of each chunk of an mcap file around, with no index and no summary."""
    magic = b'\x89MCAP0\r\n'
    data, place, written = file.read_bytes(), len(magic), [magic]
    while place < len(data) - len(magic):
        kind, size = struct.unpack_from('<BQ', data, place)
        record, place = data[place : place + 9 + size], place + 9 + size
        if kind == 6:
            rows, at = [], 49
            while at < len(record):
                end = at + 9 + struct.unpack_from('<Q', record, at + 1)[0]
                rows.append(record[at:end])
                at = end
            messages = [row for row in rows if row[0] == 5]
            inner = b''.join([row for row in rows if row[0] != 5] + messages[::-1])
            head = struct.pack('<BQ', 6, 40 + len(inner)) + record[9:25]
            head += struct.pack('<QIIQ', len(inner), 0, 0, len(inner))
            written.append(head + inner if chunked else inner)
        elif kind == 1:
            written.append(record)
        elif kind == 15:
            break
    written += [struct.pack('<BQI', 15, 4, 0), struct.pack('<BQQQI', 2, 20, 0, 0, 0), magic]
    file.write_bytes(b''.join(written))


@pytest.mark.parametrize('chunked', [True, False])
def test_unordered_and_unchunked_mcap_files_are_read_as_the_same_recording(
    bags: Path, tmp_path: Path, chunked: bool
) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'mcap')
    before = read_recording(folder)
    rewritten(file, chunked=chunked)
    for where in (folder, file):
        after = read_recording(where)
        assert after.messages.keys() == before.messages.keys()
        for topic, array in before.messages.items():
            read_array = after.messages[topic]
            np.testing.assert_array_equal(read_array.stamp_ns, array.stamp_ns)
            np.testing.assert_array_equal(read_array.arrival_ns, array.arrival_ns)
