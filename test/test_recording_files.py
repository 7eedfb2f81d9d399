# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that other programs left: foreign channels, compressed and cut files, odd clocks."""

from __future__ import annotations

import dataclasses
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from recording_examples import arrays_equal, drive
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore
from test_recording_checks import altered, note_on, reread

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.cdr import encode_transforms, typestore
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import StaticTransform
from sim2real_eval.recording.storage import zstandard
from sim2real_eval.recording.writing import write_recording

MAGIC = b'\x89MCAP0\r\n'
ROS1 = get_typestore(Stores.ROS1_NOETIC)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack('<I', len(data)) + data


def record(kind: int, content: bytes) -> bytes:
    return struct.pack('<BQ', kind, len(content)) + content


def add_channel(
    file: Path, topic: str, schema: tuple[str, str, bytes], encoding: str, rows: list[bytes]
) -> None:
    """Put a channel and its messages at the start of an MCAP file, and leave its summary out."""
    name, schema_encoding, definition = schema
    number = struct.pack('<H', 900)
    added = record(3, number + text(name) + text(schema_encoding) + text(definition))
    added += record(4, number + number + text(topic) + text(encoding) + struct.pack('<I', 0))
    for k, row in enumerate(rows):
        time = 1_000_000_000_000 + 10_000_000 * k
        added += record(5, number + struct.pack('<IQQ', k, time, time) + row)
    data, place, written = file.read_bytes(), len(MAGIC), [MAGIC]
    while data[place] != 15:
        (size,) = struct.unpack_from('<Q', data, place + 1)
        written.append(data[place : place + 9 + size])
        if data[place] == 1:
            written.append(added)
        place += 9 + size
    written += [record(15, bytes(4)), record(2, bytes(20)), MAGIC]
    file.write_bytes(b''.join(written))


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    write_recording(drive(100), tmp_path / 'line_3')
    return tmp_path / 'line_3'


@pytest.mark.parametrize(
    ('schema', 'encoding'),
    [
        # Descriptors are binary: these bytes are no text.
        (('foxglove.PoseInFrame', 'protobuf', b'\n\xfa\xff\x80'), 'protobuf'),
        (('sensor_msgs/msg/Imu', 'jsonschema', b'{}'), 'json'),
        (('Table', 'flatbuffer', b'\x18\x00\xff'), 'flatbuffer'),
    ],
)
def test_a_channel_of_another_encoding_is_ignored_beside_ros_topics(
    bag: Path, schema: tuple[str, str, bytes], encoding: str
) -> None:
    expected = read_recording(bag)
    add_channel(bag / 'line_3.mcap', '/foreign', schema, encoding, [b'abc'] * 3)
    for path in (bag, bag / 'line_3.mcap'):
        read = read_recording(path)
        assert read.messages.keys() == expected.messages.keys()
        for topic, array in expected.messages.items():
            assert arrays_equal(read.messages[topic], array)
    assert f'/foreign ({schema[0]}, {encoding})' in read.ignored


def test_messages_of_ros_1_in_mcap_are_read(bag: Path) -> None:
    types = ROS1.types
    rows = []
    level = types['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0)
    for k in range(5):
        stamp = types['builtin_interfaces/msg/Time'](sec=1000, nanosec=10_000_000 * k)
        header = types['std_msgs/msg/Header'](seq=k, stamp=stamp, frame_id='imu2')
        vector = types['geometry_msgs/msg/Vector3'](x=1.0 * k, y=2.0, z=3.0)
        message = types['sensor_msgs/msg/Imu'](
            header=header, orientation=level,
            orientation_covariance=np.eye(3).ravel(), angular_velocity=vector,
            angular_velocity_covariance=np.eye(3).ravel(), linear_acceleration=vector,
            linear_acceleration_covariance=np.eye(3).ravel(),
        )  # fmt: skip
        rows.append(bytes(ROS1.serialize_ros1(message, 'sensor_msgs/msg/Imu')))
    add_channel(bag / 'line_3.mcap', '/imu2', ('sensor_msgs/Imu', 'ros1msg', b'x'), 'ros1', rows)
    read = read_recording(bag / 'line_3.mcap')
    assert read.messages['/imu2'].angular_velocity[:, 0].tolist() == [0, 1, 2, 3, 4]  # type: ignore[attr-defined]
    assert len(read.imu) == 100


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_bag_whose_metadata_name_no_storage_is_read(tmp_path: Path, storage) -> None:
    write_recording(drive(100), tmp_path / 'line_3', storage=storage)
    expected = read_recording(tmp_path / 'line_3')
    metadata = tmp_path / 'line_3/metadata.yaml'
    changed = re.sub('storage_identifier: .*', "storage_identifier: ''", metadata.read_text())
    metadata.write_text(changed)
    read = read_recording(tmp_path / 'line_3')
    assert note_on(read, 'metadata_unused')
    assert arrays_equal(read.imu, expected.imu)


def compress(file: Path) -> Path:
    packed = file.with_name(f'{file.name}.zstd')
    packed.write_bytes(zstandard().compress(file.read_bytes()))
    file.unlink()
    return packed


@pytest.mark.parametrize(('storage', 'suffix'), [('mcap', '.mcap'), ('sqlite3', '.db3')])
def test_compressed_files_without_metadata_name_the_command_that_unpacks_them(
    tmp_path: Path, storage, suffix: str
) -> None:
    write_recording(drive(100), tmp_path / 'line_3', storage=storage)
    packed = compress(tmp_path / f'line_3/line_3{suffix}')
    with pytest.raises(RecordingError, match=f'zstd -d {packed}'):
        read_recording(packed)
    (tmp_path / 'line_3/metadata.yaml').unlink()
    with pytest.raises(RecordingError, match=f'zstd -d {packed} .*reindex {packed.parent}'):
        read_recording(packed.parent)


def test_a_cut_compressed_file_is_named(tmp_path: Path) -> None:
    write_recording(drive(100), tmp_path / 'line_3')
    packed = compress(tmp_path / 'line_3/line_3.mcap')
    packed.write_bytes(packed.read_bytes()[:-500])
    metadata = tmp_path / 'line_3/metadata.yaml'
    text_of_bag = metadata.read_text()
    for old, new in (
        ("compression_format: ''", 'compression_format: zstd'),
        ("compression_mode: ''", 'compression_mode: FILE'),
        ('line_3.mcap', packed.name),
    ):
        assert old in text_of_bag
        text_of_bag = text_of_bag.replace(old, new)
    metadata.write_text(text_of_bag)
    with pytest.raises(RecordingError, match=f'{packed}: compressed file is cut short'):
        read_recording(tmp_path / 'line_3')


@pytest.mark.parametrize('share', [0.3, 0.9])
def test_a_cut_mcap_file_names_the_command_that_recovers_it(bag: Path, share: float) -> None:
    file = bag / 'line_3.mcap'
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(RecordingError, match=f'mcap recover {file} -o '):
        read_recording(file)
    (bag / 'metadata.yaml').unlink()
    with pytest.raises(RecordingError, match=f'mcap recover {file} -o '):
        read_recording(bag)


@pytest.mark.parametrize(
    ('nanosec', 'shift_ns'), [((1 << 32) - 500_000, -500_000), ((1 << 32) - 1, -1)]
)
def test_negative_nanoseconds_in_the_unsigned_field_are_named_and_read(
    tmp_path: Path, nanosec: int, shift_ns: int
) -> None:
    """Stamps of three fixes at a full second; the bytes are changed in the file."""
    good = drive(3000)
    stamps = good.gps.stamp_ns
    rows = np.flatnonzero((stamps % 10**9 == 0) & (np.arange(len(stamps)) > 150))[:3]
    write_recording(good, tmp_path / 'line_3', storage='sqlite3')
    file = tmp_path / 'line_3/line_3.db3'
    data = file.read_bytes()
    for stamp in stamps[rows].tolist():
        sec = stamp // 10**9
        old = struct.pack('<iI', sec, 0) + text(b'gps_link\x00')
        assert data.count(old) == 1
        data = data.replace(old, struct.pack('<iI', sec, nanosec) + old[8:])
    file.write_bytes(data)
    read = read_recording(tmp_path / 'line_3')
    note = note_on(read, 'stamp_nanosec')
    assert (note.numbers['count'], note.numbers['value']) == (3, nanosec)
    expected = stamps.copy()
    expected[rows] += shift_ns
    assert read.gps.stamp_ns.tolist() == expected.tolist()


@pytest.mark.parametrize('wall_ns', [0, 1_770_000_000 * 10**9])
def test_a_clock_that_starts_at_zero_is_that_of_a_simulator(tmp_path: Path, wall_ns: int) -> None:
    good = drive(start_ns=0)
    for role in ('imu', 'gps', 'truth', 'mag'):
        stamp = good.require(role).stamp_ns
        good = altered(good, role, arrival_ns=stamp + wall_ns + 3_000_000)
    messages = {topic: good.messages[topic] for topic in good.roles.values()}
    read = reread(dataclasses.replace(good, messages=messages), tmp_path)
    assert {note.code for note in read.notes} <= {'frames.assumed_equal'}
    assert read.imu.stamp_ns[0] == 0


def test_clocks_that_drift_alike_are_told_once_with_their_own_drift(tmp_path: Path) -> None:
    good = drive(20_000, start_ns=0)
    for role in ('imu', 'gps', 'truth', 'mag'):
        stamp = good.require(role).stamp_ns
        arrival = 1_770_000_000 * 10**9 + (stamp / 0.3).astype(np.int64)
        good = altered(good, role, arrival_ns=arrival)
    messages = {topic: good.messages[topic] for topic in good.roles.values()}
    read = reread(dataclasses.replace(good, messages=messages), tmp_path)
    assert note_on(read, 'clocks_drift').numbers['spread'] == pytest.approx(
        200 / 0.3 - 200, rel=0.01
    )


def test_a_truth_of_transforms_is_named_with_its_frames(tmp_path: Path) -> None:
    with Writer(tmp_path / 'bag', version=8) as writer:
        store = typestore()
        connection = writer.add_connection('/mocap/tf', 'tf2_msgs/msg/TFMessage', typestore=store)
        command = writer.add_connection('/speed', 'std_msgs/msg/Float64', typestore=store)
        for k in range(20):
            stamp = (k + 1) * 10**8
            pose = StaticTransform('lab', 'rig', (0.1 * k, 0.0, 0.0))
            writer.write(connection, stamp, encode_transforms([pose], stamp))
            writer.write(command, stamp, b'\x00\x01\x00\x00' + bytes(8))
    named = {'truth': '/mocap/tf'}
    with pytest.raises(RecordingError, match=r'TFMessage.* truth=/mocap/tf:lab\.rig'):
        read_recording(tmp_path / 'bag', topics=named)
    read = read_recording(tmp_path / 'bag', topics={'truth': '/mocap/tf:lab.rig'})
    assert len(read.truth) == 20
    with pytest.raises(RecordingError, match='truth: topic /speed has type std_msgs/msg/Float64'):
        read_recording(tmp_path / 'bag', topics={'truth': '/speed'})


@pytest.mark.parametrize(
    ('factor', 'unit'), [(1e3, 'milliseconds'), (1e6, 'microseconds'), (1e9, 'nanoseconds')]
)
def test_a_trajectory_with_stamps_in_another_unit_names_the_unit(
    tmp_path: Path, factor: float, unit: str
) -> None:
    file = tmp_path / 'run.tum'
    rows = [f'{round((1_700_000_000 + k) * factor)} {k} 0 0 0 0 0 1' for k in range(5)]
    file.write_text('\n'.join(rows) + '\n')
    with pytest.raises(RecordingError, match=f'line 1: .*must be seconds; these are {unit}'):
        read_recording(file)
