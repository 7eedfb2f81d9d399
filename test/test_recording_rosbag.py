# SPDX-License-Identifier: Apache-2.0
"""Bags read back to equal arrays, agree with an independent decoder, and fail in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sqlite3
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recording_examples import REAL, arrays_equal, assert_same, drive
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from sim2real_eval.recording import (
    RecordingError,
    StaticTransform,
    read_recording,
    recording_digest,
    write_recording,
)
from sim2real_eval.recording.cdr import decode, decode_transforms, encode, encode_transforms
from sim2real_eval.recording.message_types import MESSAGE_TYPES, TF_TYPE, default_type

TYPESTORE = get_typestore(Stores.ROS2_JAZZY)
SUFFIX = {'mcap': '.mcap', 'sqlite3': '.db3'}


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_written_bag_reads_back_to_equal_arrays_and_equal_bytes(
    tmp_path: Path, storage: str
) -> None:
    written = drive()
    for place in ('a', 'b'):
        write_recording(written, tmp_path / place / 'line_3', storage=storage)
    assert_same(read_recording(tmp_path / 'a/line_3'), written)
    data = tmp_path / f'a/line_3/line_3{SUFFIX[storage]}'
    assert_same(read_recording(data), written)
    names = [file.name for file in (tmp_path / 'a/line_3').iterdir()]
    assert sorted(names) == sorted(['metadata.yaml', 'recording.yaml', data.name])
    for name in names:
        a, b = (tmp_path / place / 'line_3' / name for place in 'ab')
        assert a.read_bytes() == b.read_bytes(), name
    assert recording_digest(tmp_path / 'a/line_3') == recording_digest(tmp_path / 'b/line_3')


def test_arrival_of_a_bag_is_the_stamp_unless_the_receive_time_is_asked_for(
    tmp_path: Path,
) -> None:
    written = drive()
    write_recording(written, tmp_path / 'line_3')
    (tmp_path / 'line_3/recording.yaml').unlink()
    by_stamp = read_recording(tmp_path / 'line_3').gps
    recorded = read_recording(tmp_path / 'line_3', arrival='recorded').gps
    assert by_stamp.arrival_ns.tolist() == written.gps.stamp_ns.tolist()
    assert (recorded.arrival_ns - recorded.stamp_ns).tolist() == [3_000_001] * len(recorded)


def fields_of(message: object, kind) -> dict[str, object]:
    """Read one message of the rosbags decoder by the field paths of the .msg files."""
    at = {
        'ImuArray': lambda m: {
            'orientation': quaternion(m.orientation),
            'orientation_covariance': m.orientation_covariance,
            'angular_velocity': vector(m.angular_velocity),
            'angular_velocity_covariance': m.angular_velocity_covariance,
            'linear_acceleration': vector(m.linear_acceleration),
            'linear_acceleration_covariance': m.linear_acceleration_covariance,
        },
        'FixArray': lambda m: {
            'latitude': m.latitude,
            'longitude': m.longitude,
            'altitude': m.altitude,
            'status': m.status.status,
            'position_covariance': m.position_covariance,
            'position_covariance_type': m.position_covariance_type,
        },
        'OdometryArray': lambda m: {
            'child_frame': m.child_frame_id,
            **pose(m.pose),
            **twist(m.twist.twist, m.twist.covariance),
        },
        'PoseArray': lambda m: pose(m.pose),
        'TwistArray': lambda m: (
            twist(m.twist.twist, m.twist.covariance)
            if hasattr(m.twist, 'covariance')
            else twist(m.twist, np.zeros(36))
        ),
    }[kind.array.__name__](message)
    header = message.header
    stamp = header.stamp.sec * 10**9 + header.stamp.nanosec
    return {'stamp_ns': stamp, 'frame': header.frame_id, **at}


def vector(v) -> list[float]:
    return [v.x, v.y, v.z]


def quaternion(q) -> list[float]:
    return [q.x, q.y, q.z, q.w]


def pose(p) -> dict[str, object]:
    return {
        'position': vector(p.pose.position),
        'orientation': quaternion(p.pose.orientation),
        'pose_covariance': p.covariance,
    }


def twist(t, covariance) -> dict[str, object]:
    return {
        'linear_velocity': vector(t.linear),
        'angular_velocity': vector(t.angular),
        'twist_covariance': covariance,
    }


@settings(deadline=None, max_examples=25)
@given(
    frame=st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=17),
    child=st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=17),
    stamp=st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1),
    type_name=st.sampled_from(list(MESSAGE_TYPES)),
)
def test_the_codec_agrees_with_the_decoder_of_rosbags(
    frame: str, child: str, stamp: int, type_name: str
) -> None:
    kind = MESSAGE_TYPES[type_name]
    array = next(a for a in drive(20).messages.values() if type(a) is kind.array).take(slice(0, 2))
    if kind.array.__name__ == 'TwistArray' and 'Covariance' not in type_name:
        array = dataclasses.replace(array, twist_covariance=np.zeros((2, 6, 6)))
    array = dataclasses.replace(array, frame=frame, stamp_ns=np.array([stamp, 5]))
    if kind.has_child:
        array = dataclasses.replace(array, child_frame=child)
    rows = encode(kind, array, 'here')
    for index, row in enumerate(rows):
        message = TYPESTORE.deserialize_cdr(row, type_name)
        # The other way round as well: rosbags serialises to the very same bytes.
        assert bytes(TYPESTORE.serialize_cdr(message, type_name)) == row
        for name, value in fields_of(message, kind).items():
            mine = getattr(array, name)
            mine = mine if isinstance(mine, str) else np.ravel(mine[index]).tolist()
            assert mine == (value if isinstance(value, str) else np.ravel(value).tolist()), name
    again = decode(kind, rows, array.arrival_ns, 'here').array
    assert arrays_equal(again, array)
    big = [
        bytes(TYPESTORE.serialize_cdr(TYPESTORE.deserialize_cdr(r, type_name), type_name,
                                      little_endian=False))
        for r in rows
    ]  # fmt: skip
    assert arrays_equal(decode(kind, big, array.arrival_ns, 'here').array, array)


@settings(deadline=None, max_examples=30)
@given(names=st.lists(st.text('abc_/', min_size=1, max_size=9), min_size=0, max_size=6))
def test_static_transforms_agree_with_the_decoder_of_rosbags(names: list[str]) -> None:
    transforms = [
        StaticTransform('base_link', name, (0.1 * i, -1.0, 2.0), (0.0, 0.6, 0.0, 0.8))
        for i, name in enumerate(names)
    ]
    row = encode_transforms(transforms, 12_345_678_901)
    message = TYPESTORE.deserialize_cdr(row, TF_TYPE)
    assert [t.child_frame_id for t in message.transforms] == names
    assert all(t.header.stamp.nanosec == 345_678_901 for t in message.transforms)
    assert bytes(TYPESTORE.serialize_cdr(message, TF_TYPE)) == row
    assert decode_transforms(row, 'here') == transforms
    for size in range(len(row)):
        with pytest.raises(RecordingError):
            decode_transforms(row[:size], 'here')


def test_decoding_a_topic_at_once_is_much_faster_than_message_by_message() -> None:
    imu = drive(4500).imu
    kind = default_type(imu)
    rows = encode(kind, imu, 'here')

    def best(call) -> float:
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        return min(times)

    mine = best(lambda: decode(kind, rows, imu.arrival_ns, 'here'))
    each = best(lambda: [TYPESTORE.deserialize_cdr(row, kind.name) for row in rows])
    assert mine < each / 4


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp('bags')
    for storage in SUFFIX:
        write_recording(drive(100), root / storage / 'line_3', storage=storage)
    return root


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


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    storage=st.sampled_from(['mcap', 'sqlite3']),
    share=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=64),
)
def test_overwritten_bytes_never_give_another_error(
    bags: Path, tmp_path: Path, storage: str, share: float, junk: bytes
) -> None:
    folder, file, data = damaged(bags, tmp_path, storage)
    at = int(share * len(data))
    file.write_bytes(data[:at] + junk + data[at + len(junk) :])
    with contextlib.suppress(RecordingError):
        read_recording(folder)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(start=st.floats(0, 1), length=st.integers(1, 80), junk=st.text(max_size=5))
def test_a_damaged_metadata_yaml_never_gives_another_error(
    bags: Path, tmp_path: Path, start: float, length: int, junk: str
) -> None:
    folder, _, _ = damaged(bags, tmp_path, 'sqlite3')
    text = (folder / 'metadata.yaml').read_text()
    at = int(start * len(text))
    broken = text[:at] + junk + text[at + length :]
    (folder / 'metadata.yaml').write_text(broken, errors='surrogatepass')
    with contextlib.suppress(RecordingError):
        read_recording(folder)


def test_missing_pieces_are_named(bags: Path, tmp_path: Path) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'mcap')
    (folder / 'metadata.yaml').unlink()
    with pytest.raises(RecordingError, match=r'metadata\.yaml is missing; give the \.mcap'):
        read_recording(folder)
    folder, file, _ = damaged(bags, tmp_path, 'mcap')
    file.unlink()
    with pytest.raises(RecordingError, match=r'line_3\.mcap'):
        read_recording(folder)
    with pytest.raises(RecordingError, match='no such file or folder'):
        read_recording(tmp_path / 'nowhere')
    (tmp_path / 'empty').mkdir()
    with pytest.raises(RecordingError, match=r'neither metadata\.yaml nor CSV'):
        read_recording(tmp_path / 'empty')
    with pytest.raises(RecordingError, match=r'did you mean .*line_3'):
        read_recording(bags / 'mcap')
    (tmp_path / 'notes.txt').write_text('hello')
    with pytest.raises(RecordingError, match=r'\.mcap or \.db3'):
        read_recording(tmp_path / 'notes.txt')


def test_messages_lost_from_a_database_are_remarked(bags: Path, tmp_path: Path) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'sqlite3')
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute('DELETE FROM messages WHERE id % 50 = 7')
        database.commit()
    recording = read_recording(folder)
    assert any('were announced' in note.problem for note in recording.notes)


def test_a_database_with_messages_left_in_its_log_is_refused(bags: Path, tmp_path: Path) -> None:
    folder, file, _ = damaged(bags, tmp_path, 'sqlite3')
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute('PRAGMA journal_mode=WAL')
        database.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES (1, 1, x'00')")
        database.commit()
        with pytest.raises(RecordingError, match='recording was not closed'):
            read_recording(folder)


def test_a_message_of_the_wrong_size_is_refused_by_topic_and_size(tmp_path: Path) -> None:
    imu = drive(20).imu
    rows = encode(default_type(imu), imu, 'here')
    rows[3] = rows[3][:-8]
    with Writer(tmp_path / 'bag', version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        link = writer.add_connection('/imu/data', 'sensor_msgs/msg/Imu', typestore=TYPESTORE)
        for time_ns, row in zip(imu.stamp_ns.tolist(), rows, strict=True):
            writer.write(link, time_ns, row)
    with pytest.raises(RecordingError, match=r'/imu/data: message 3 has \d+ bytes'):
        read_recording(tmp_path / 'bag')


def test_a_bag_without_a_known_type_is_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        link = writer.add_connection('/chatter', 'std_msgs/msg/String', typestore=TYPESTORE)
        writer.write(link, 1, TYPESTORE.serialize_cdr(
            TYPESTORE.types['std_msgs/msg/String']('hi'), 'std_msgs/msg/String'))  # fmt: skip
    with pytest.raises(RecordingError, match=r'no topic of a known type.*/chatter'):
        read_recording(tmp_path / 'bag')


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3', 'csv'])
def test_nothing_is_overwritten_and_failures_leave_nothing(
    tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / 'line_3'
    target.mkdir()
    with pytest.raises(RecordingError, match='exists already'):
        write_recording(drive(20), target, storage=storage)
    target.rmdir()
    imu = drive(20).imu
    late = dataclasses.replace(imu, stamp_ns=imu.stamp_ns + 2**31 * 10**9)
    if storage != 'csv':
        with pytest.raises(RecordingError, match='does not fit a ROS header'):
            write_recording(drive(20).with_messages('imu', late), target, storage=storage)
        assert list(tmp_path.iterdir()) == []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('sim2real_eval.recording.writing._write_metadata', interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_recording(drive(20), target, storage=storage)
    assert list(tmp_path.iterdir()) == []


def test_the_digest_follows_content_and_not_place(bags: Path, tmp_path: Path) -> None:
    original = recording_digest(bags / 'mcap/line_3')
    folder, file, data = damaged(bags, tmp_path, 'mcap')
    assert recording_digest(folder) == original
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert recording_digest(folder) != original
    with pytest.raises(RecordingError):
        recording_digest(tmp_path / 'nowhere')


def test_the_rosbag2_py_reader_gives_the_same_recording(
    bags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rosbag2_py exists only inside ROS; here its interface is played from the same file."""

    class SequentialReader:
        def open(self, storage: types.SimpleNamespace, _: object) -> None:
            self.reader = Reader(storage.uri)
            self.reader.open()
            self.rows = self.reader.messages()
            self.wanted: list[str] = []

        def get_metadata(self) -> types.SimpleNamespace:
            counts = [
                types.SimpleNamespace(
                    topic_metadata=types.SimpleNamespace(name=c.topic), message_count=c.msgcount
                )
                for c in self.reader.connections
            ]
            return types.SimpleNamespace(topics_with_message_count=counts, custom_data={})

        def get_all_topics_and_types(self) -> list[types.SimpleNamespace]:
            return [
                types.SimpleNamespace(name=c.topic, type=c.msgtype)
                for c in self.reader.connections
            ]

        def set_filter(self, chosen: types.SimpleNamespace) -> None:
            self.wanted = chosen.topics

        def has_next(self) -> bool:
            self.row = next((r for r in self.rows if r[0].topic in self.wanted), None)
            return self.row is not None

        def read_next(self) -> tuple[str, bytes, int]:
            return self.row[0].topic, self.row[2], self.row[1]

    module = types.ModuleType('rosbag2_py')
    module.SequentialReader = SequentialReader
    module.StorageOptions = lambda uri, storage_id: types.SimpleNamespace(uri=uri)
    module.ConverterOptions = lambda *_: None
    module.StorageFilter = lambda topics: types.SimpleNamespace(topics=topics)
    monkeypatch.setitem(sys.modules, 'rosbag2_py', module)
    native = read_recording(bags / 'mcap/line_3', reader='rosbag2_py')
    assert_same(native, drive(100))
    monkeypatch.setitem(sys.modules, 'rosbag2_py', None)
    with pytest.raises(RecordingError, match='can be imported'):
        read_recording(bags / 'mcap/line_3', reader='rosbag2_py')


needs_drive = pytest.mark.skipif(
    not (REAL / 'drive0708/segments').is_dir(), reason='real recordings are not here'
)


@needs_drive
def test_real_drive_segments_are_read_whole_and_fast() -> None:
    for folder in sorted((REAL / 'drive0708/segments').iterdir()):
        begin = time.perf_counter()
        recording = read_recording(folder / 'bag')
        assert time.perf_counter() - begin < 1.0
        with Reader(folder / 'bag') as reader:
            counts = {c.topic: c.msgcount for c in reader.connections}
        assert {topic: len(array) for topic, array in recording.messages.items()} == counts
        assert (recording.name, recording.scenario) == (folder.name, 'drive0708')
        # Truth of a car: its speed and the steps of its position tell the same story.
        truth = recording.truth
        speed = np.hypot(truth.linear_velocity[:, 0], truth.linear_velocity[:, 1])
        steps = np.linalg.norm(np.diff(truth.position[:, :2], axis=0), axis=1)
        seconds = np.diff(truth.stamp_ns) * 1e-9
        assert abs(steps.sum() - (speed[:-1] * seconds).sum()) < 0.02 * steps.sum() + 1.0


@needs_drive
def test_mcap_and_sqlite3_of_the_same_real_drive_hold_the_same_messages() -> None:
    whole = read_recording(REAL / 'drive0708/drive0708_mcap')
    part = read_recording(REAL / 'drive0708/segments/drive0708_seg03/bag')
    for topic, array in part.messages.items():
        other = whole.messages[topic]
        begin = int(np.searchsorted(other.stamp_ns, array.stamp_ns[0]))
        same = other.take(slice(begin, begin + len(array)))
        assert same.stamp_ns.tolist() == array.stamp_ns.tolist()
        name = 'latitude' if topic == '/gps/fix' else 'angular_velocity'
        assert getattr(same, name).tolist() == getattr(array, name).tolist()


@pytest.mark.skipif(not (REAL / 'comma2k19').is_dir(), reason='real recordings are not here')
def test_real_road_segments_keep_wheel_odometry_apart_from_the_truth() -> None:
    for folder in sorted((REAL / 'comma2k19/segments').iterdir()):
        recording = read_recording(folder / 'bag')
        assert len(recording.imu) == 3024
        assert len(recording.messages['/wheel/odometry']) == 601
        assert recording.roles['truth'] == '/ground_truth/odometry'
        assert recording.ignored == ('/imu/mag (sensor_msgs/msg/MagneticField)',)
