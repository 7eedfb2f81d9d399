# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Camera info (sensor_msgs/CameraInfo) in recordings."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from recording_examples import TYPESTORE, arrays_equal, drive

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.csv_files import read_camera_info, write_camera_info
from sim2real_eval.recording.message_types import CAMERA_INFO
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.camera.lens import PlumbBob
from sim_sensors.camera.pinhole import CameraInfoArray, Intrinsics

TYPE = CAMERA_INFO.name
STAMPS = 1_000_000_000_000 + 40_000_000 * np.arange(50)


def plain() -> CameraInfoArray:
    """A webcam with five coefficients and skew."""
    lens = PlumbBob(-0.28, 0.07, 1e-3, -2e-3, 0.01)
    intrinsics = Intrinsics(640, 480, 501.5, 499.25, 320.5, 241.75, 0.002, lens)
    return CameraInfoArray.from_intrinsics(intrinsics, STAMPS, STAMPS + 5_000_000, 'eye')


def zooming(coefficients: int) -> CameraInfoArray:
    """Return messages in which every number differs and all fields are used."""
    rng = np.random.default_rng(coefficients)
    n = len(STAMPS)
    return dataclasses.replace(
        plain(), distortion_model='rational_polynomial', size=rng.integers(1, 2**32, (n, 2)),
        distortion=rng.normal(size=(n, coefficients)), matrix=rng.normal(size=(n, 3, 3)),
        rectification=rng.normal(size=(n, 3, 3)), projection=rng.normal(size=(n, 3, 4)),
        binning=rng.integers(0, 5, (n, 2)),
        roi=np.hstack([rng.integers(0, 2**32, (n, 4)), rng.integers(0, 2, (n, 1))]),
    )  # fmt: skip


def recorded(info: CameraInfoArray) -> Recording:
    return drive().with_messages('camera_info', info)


def test_camera_info_fields_equal_those_read_by_rosbags() -> None:
    """Both byte orders are read."""
    rows = encode(CAMERA_INFO, plain(), 'x')
    message = TYPESTORE.deserialize_cdr(rows[7], TYPE)
    stamp = message.header.stamp
    assert stamp.sec * 10**9 + stamp.nanosec == STAMPS[7]
    assert message.header.frame_id == 'eye'
    assert (message.width, message.height) == (640, 480)
    assert message.distortion_model == 'plumb_bob'
    assert message.d.tolist() == [-0.28, 0.07, 1e-3, -2e-3, 0.01]
    assert message.k.tolist() == [501.5, 501.5 * 0.002, 320.5, 0, 499.25, 241.75, 0, 0, 1]
    assert message.r.tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    projection = [501.5, 501.5 * 0.002, 320.5, 0, 0, 499.25, 241.75, 0, 0, 0, 1, 0]
    assert message.p.tolist() == projection
    assert (message.binning_x, message.binning_y) == (0, 0)
    roi = message.roi
    assert (roi.x_offset, roi.y_offset, roi.height, roi.width) == (0, 0, 0, 0)
    assert roi.do_rectify is False
    messages = [TYPESTORE.deserialize_cdr(row, TYPE) for row in rows]
    big = [bytes(TYPESTORE.serialize_cdr(m, TYPE, little_endian=False)) for m in messages]
    assert arrays_equal(decode(CAMERA_INFO, big, plain().arrival_ns, 'x').array, plain())


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3', 'csv'])
@pytest.mark.parametrize('coefficients', [0, 1, 6, 14])
def test_camera_info_is_read_as_it_was_written(
    tmp_path: Path, storage: str, coefficients: int
) -> None:
    written = zooming(coefficients)
    write_recording(recorded(written), tmp_path / 'seen', storage=storage)
    read = read_recording(tmp_path / 'seen')
    assert arrays_equal(read.camera_info, written)
    assert not [note for note in read.notes if note.subject == '/camera/camera_info']


def test_an_empty_camera_info_table_is_read(tmp_path: Path) -> None:
    empty = dataclasses.replace(plain().take(slice(0, 0)), frame='', distortion_model='')
    write_camera_info(tmp_path / 'none.csv', empty)
    assert arrays_equal(read_camera_info(tmp_path / 'none.csv')[0], empty)
    assert encode(CAMERA_INFO, empty, 'x') == []


def test_camera_info_on_another_topic_is_read_by_name_only(tmp_path: Path) -> None:
    written = recorded(plain())
    messages = dict(written.messages)
    messages['/rear/camera_info'] = messages.pop('/camera/camera_info')
    roles = {role: topic for role, topic in written.roles.items() if role != 'camera_info'}
    write_recording(
        dataclasses.replace(written, messages=messages, roles=roles), tmp_path / 'rear'
    )
    read = read_recording(tmp_path / 'rear')
    assert read.camera_info is None
    assert f'/rear/camera_info ({TYPE})' in read.ignored
    named = read_recording(tmp_path / 'rear', topics={'camera_info': 'rear/camera_info'})
    assert arrays_equal(named.camera_info, plain())


def test_camera_info_with_nan_values_is_left_out(tmp_path: Path) -> None:
    broken = dataclasses.replace(plain(), matrix=np.full((len(STAMPS), 3, 3), np.nan))
    write_recording(recorded(broken), tmp_path / 'seen')
    read = read_recording(tmp_path / 'seen')
    assert read.camera_info is None
    (note,) = (note for note in read.notes if note.subject == '/camera/camera_info')
    assert note.code == 'recording.topic_left_out'


def test_changing_lenses_and_damaged_messages_are_refused() -> None:
    rows = encode(CAMERA_INFO, plain(), 'x')
    received = np.zeros(2, np.int64)
    other = encode(CAMERA_INFO, zooming(8), 'x')[0]
    with pytest.raises(RecordingError, match=r'plumb_bob \(5\), rational_polynomial \(8\)'):
        decode(CAMERA_INFO, [rows[0], other], received, 'x')
    with pytest.raises(RecordingError, match='message 1 of 40 bytes'):
        decode(CAMERA_INFO, [rows[0], rows[1][:40]], received, 'x')


@pytest.mark.parametrize(('column', 'value', 'message'), [
    ('width', '-1', 'line 3: width: -1'),
    ('k4', 'x', "line 3: k4: 'x'"),
    ('distortion_model', 'fisheye', 'fisheye, plumb_bob'),
])  # fmt: skip
def test_a_wrong_entry_is_refused_by_its_line(
    tmp_path: Path, column: str, value: str, message: str
) -> None:
    write_recording(recorded(plain()), tmp_path / 'seen', storage='csv')
    path = tmp_path / 'seen/camera_info.csv'
    rows = [line.split(',') for line in path.read_text().splitlines()]
    rows[2][rows[0].index(column)] = value
    path.write_text(''.join(','.join(row) + '\n' for row in rows))
    with pytest.raises(RecordingError, match=message):
        read_recording(tmp_path / 'seen')


def test_wrong_shapes_and_sizes_are_refused() -> None:
    for name, value in (('roi', plain().roi[:, :4]), ('size', -plain().size)):
        with pytest.raises(ValueError, match=rf'CameraInfoArray\.{name}'):
            dataclasses.replace(plain(), **{name: value})
