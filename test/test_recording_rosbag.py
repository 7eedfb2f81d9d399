# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Bags are written completely or not at all, and read back to equal arrays."""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from recording_examples import REAL, SUFFIX, TYPESTORE, assert_same, drive, write_bags
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.digest import recording_digest
from sim2real_eval.recording.message_types import default_type
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording


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


def test_the_arrival_is_the_stamp_or_optionally_the_receive_time(tmp_path: Path) -> None:
    written = drive()
    write_recording(written, tmp_path / 'line_3')
    (tmp_path / 'line_3/recording.yaml').unlink()
    by_stamp = read_recording(tmp_path / 'line_3').gps
    recorded = read_recording(tmp_path / 'line_3', arrival='recorded').gps
    assert by_stamp.arrival_ns.tolist() == written.gps.stamp_ns.tolist()
    assert (recorded.arrival_ns - recorded.stamp_ns).tolist() == [3_000_001] * len(recorded)


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bags(tmp_path_factory.mktemp('bags'))


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
def test_a_failed_write_leaves_no_files_and_overwrites_nothing(
    tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / 'line_3'
    target.mkdir()
    with pytest.raises(RecordingError, match='exists'):
        write_recording(drive(20), target, storage=storage)
    target.rmdir()
    imu = drive(20).imu
    late = dataclasses.replace(imu, stamp_ns=imu.stamp_ns + 2**31 * 10**9)
    if storage != 'csv':
        with pytest.raises(RecordingError):
            write_recording(drive(20).with_messages('imu', late), target, storage=storage)
        assert list(tmp_path.iterdir()) == []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('sim2real_eval.recording.writing._write_metadata', interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_recording(drive(20), target, storage=storage)
    assert list(tmp_path.iterdir()) == []


class SequentialReader:
    """The interface of rosbag2_py, which exists only inside ROS, on top of rosbags."""

    def open(self, storage: types.SimpleNamespace, _: object) -> None:
        self.reader = Reader(storage.uri)
        self.reader.open()
        self.rows = self.reader.messages()

    def get_metadata(self) -> types.SimpleNamespace:
        new = types.SimpleNamespace
        counts = [
            new(topic_metadata=new(name=c.topic), message_count=c.msgcount)
            for c in self.reader.connections
        ]
        return new(topics_with_message_count=counts, custom_data={})

    def get_all_topics_and_types(self) -> list[types.SimpleNamespace]:
        links = self.reader.connections
        return [types.SimpleNamespace(name=c.topic, type=c.msgtype) for c in links]

    def set_filter(self, chosen: types.SimpleNamespace) -> None:
        self.rows = (row for row in self.rows if row[0].topic in chosen.topics)

    def has_next(self) -> bool:
        self.row = next(self.rows, None)
        return self.row is not None

    def read_next(self) -> tuple[str, bytes, int]:
        return self.row[0].topic, self.row[2], self.row[1]


def test_the_rosbag2_py_reader_gives_the_same_recording(
    bags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType('rosbag2_py')
    module.SequentialReader = SequentialReader
    module.StorageOptions = lambda uri, storage_id: types.SimpleNamespace(uri=uri)
    module.ConverterOptions = lambda *_: None
    module.StorageFilter = lambda topics: types.SimpleNamespace(topics=topics)
    monkeypatch.setitem(sys.modules, 'rosbag2_py', module)
    native = read_recording(bags / 'mcap/line_3', reader='rosbag2_py')
    assert_same(native, drive(100))


def test_reading_with_a_missing_rosbag2_py_is_refused(
    bags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'rosbag2_py', None)
    with pytest.raises(RecordingError, match='rosbag2_py'):
        read_recording(bags / 'mcap/line_3', reader='rosbag2_py')


needs_drive = pytest.mark.skipif(
    not (REAL / 'drive0708/segments').is_dir(), reason='real recordings are not here'
)


@needs_drive
def test_real_drive_segments_are_read_completely() -> None:
    for folder in sorted((REAL / 'drive0708/segments').iterdir()):
        recording = read_recording(folder / 'bag')
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
def test_mcap_and_sqlite3_bags_of_a_real_drive_contain_the_same_messages() -> None:
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
def test_in_real_road_segments_wheel_odometry_is_not_taken_as_the_truth() -> None:
    for folder in sorted((REAL / 'comma2k19/segments').iterdir()):
        recording = read_recording(folder / 'bag')
        assert len(recording.imu) == 3024
        assert len(recording.messages['/wheel/odometry']) == 601
        assert recording.roles['truth'] == '/ground_truth/odometry'
        # A phone in a car, 10 Hz: with its magnets three times the field of the Earth.
        assert recording.roles['mag'] == '/imu/mag'
        assert 280 < len(recording.mag) < 460
        size = np.linalg.norm(recording.mag.magnetic_field, axis=1)
        assert (abs(size - 1.7e-4) < 2e-5).all()
        assert recording.ignored == ()
