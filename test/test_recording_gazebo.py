# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Logs of Gazebo's transport are read; made here as SQLite and protocol buffers have them."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import struct
from pathlib import Path

import numpy as np
import pytest
import yaml

from sim2real_eval import simulate
from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors import motion_of


def varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def inner(number: int, data: bytes) -> bytes:
    return varint(8 * number + 2) + varint(len(data)) + data


def doubles(*values: float, first: int = 2) -> bytes:
    """Encode doubles as protocol buffers do, without zeros."""
    return b''.join(
        varint(8 * (first + k) + 1) + struct.pack('<d', value)
        for k, value in enumerate(values)
        if value
    )


def header(stamp_ns: int, **data: str) -> bytes:
    seconds, nanoseconds = divmod(stamp_ns, 1_000_000_000)
    stamp = b''.join(varint(8 * k) + varint(v) for k, v in ((1, seconds), (2, nanoseconds)) if v)
    pairs = (inner(2, inner(1, k.encode()) + inner(2, v.encode())) for k, v in data.items())
    return inner(1, inner(1, stamp) + b''.join(pairs))


def odometry(stamp_ns: int, x: float, frame: str = 'map') -> bytes:
    pose = inner(4, doubles(x, -2.0, 0.1)) + inner(5, doubles(0, 0, 0, 1))
    twist = inner(2, doubles(1.5, 0, 0)) + inner(3, doubles(0, 0, -0.25))
    named = header(stamp_ns, frame_id=frame, child_frame_id='base_link')
    return named + inner(2, pose) + inner(3, twist)


def imu(stamp_ns: int) -> bytes:
    measured = inner(4, doubles(0, 0.02, 0)) + inner(5, doubles(0.5, 0, 9.80665))
    return header(stamp_ns, frame_id='car::imu') + inner(3, doubles(0, 0, 0, 1)) + measured


def navsat(stamp_ns: int) -> bytes:
    return header(stamp_ns) + doubles(43.07, -89.41, 260.5, 1.5) + inner(8, b'car::gps')


STAMPS = [10_000_000 * k for k in range(1, 6)]
TOPICS = {
    '/ground_truth/odometry': ('gz.msgs.Odometry', [odometry(t, t * 1.5e-9) for t in STAMPS]),
    '/ground_truth/imu': ('.ignition.msgs.IMU', [imu(t) for t in STAMPS]),
    '/ground_truth/fix': ('gz.msgs.NavSat', [navsat(t) for t in STAMPS]),
    '/world/field/state': ('gz.msgs.SerializedStateMap', [b'\x08\x01']),
}


def write_log(path: Path, topics: dict[str, tuple[str, list[bytes]]]) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            'CREATE TABLE message_types (id INTEGER PRIMARY KEY, name TEXT);'
            'CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT, message_type_id INTEGER);'
            'CREATE TABLE messages (id INTEGER PRIMARY KEY, time_recv INTEGER, topic_id INTEGER, '
            'message BLOB);'
        )
        for number, (topic, (name, messages)) in enumerate(topics.items(), start=1):
            database.execute('INSERT INTO message_types VALUES (?, ?)', (number, name))
            database.execute('INSERT INTO topics VALUES (?, ?, ?)', (number, topic, number))
            rows = zip(STAMPS, messages, strict=False)
            database.executemany(
                'INSERT INTO messages (time_recv, topic_id, message) VALUES (?, ?, ?)',
                [(time, number, message) for time, message in rows],
            )
    return path


def test_a_gazebo_log_is_read_with_truth_and_noise_free_sensors(tmp_path: Path) -> None:
    folder = tmp_path / 'circle_3'
    folder.mkdir()
    file = write_log(folder / 'state.tlog', TOPICS)
    run = read_recording(folder)
    assert (run.name, run.scenario) == ('circle_3', 'circle')
    assert read_recording(file).name == 'circle_3'
    truth = run.truth
    assert (truth.frame, truth.child_frame) == ('map', 'base_link')
    assert truth.stamp_ns.tolist() == STAMPS
    assert truth.position[:, 0] == pytest.approx(1.5e-9 * np.array(STAMPS))
    assert truth.position[0, 1:].tolist() == [-2.0, 0.1]
    assert truth.linear_velocity[0].tolist() == [1.5, 0, 0]
    assert truth.angular_velocity[0].tolist() == [0, 0, -0.25]
    measured, fixes = run.messages['/ground_truth/imu'], run.messages['/ground_truth/fix']
    assert measured.frame == 'car::imu'
    assert measured.linear_acceleration[2].tolist() == [0.5, 0, 9.80665]
    assert (fixes.frame, fixes.latitude[0], fixes.longitude[0]) == ('car::gps', 43.07, -89.41)
    assert fixes.altitude[0] == 260.5
    assert not fixes.position_covariance_type.any()
    assert set(run.roles) >= {'truth', 'ideal_imu', 'ideal_gps'}
    assert run.ignored == ('/world/field/state (gz.msgs.SerializedStateMap)',)


def test_a_noise_free_sensor_gets_its_lever_arm(tmp_path: Path) -> None:
    log = write_log(tmp_path / 'a.tlog', TOPICS)
    arms = '{ideal_imu: [0, 0, 0.05], ideal_gps: [0.5, 0, 0]}'
    (tmp_path / 'a.recording.yaml').write_text(f'lever_arms: {arms}\n')
    lever_arms = {frame.child: frame.translation for frame in read_recording(log).transforms}
    assert lever_arms == {'car::imu': (0, 0, 0.05), 'car::gps': (0.5, 0, 0)}


@pytest.mark.parametrize(
    'messages',
    [
        [odometry(STAMPS[0], 0.0)[:-3]],
        [b'\x08' + b'\xff' * 40],
        [b'\x0b'],
        [odometry(STAMPS[0], 0.0), odometry(STAMPS[1], 0.0, 'odom')],
        [odometry(STAMPS[0], 0.0), odometry(STAMPS[1], 0.0).replace(b'_link', b'_lonk')],
    ],
    ids=['cut short', '65 bits', 'wire type', 'two frames', 'two child frames'],
)
def test_an_error_about_a_damaged_message_names_its_topic(
    tmp_path: Path, messages: list[bytes]
) -> None:
    log = write_log(tmp_path / 'a.tlog', {'/truth': ('gz.msgs.Odometry', messages)})
    with pytest.raises(RecordingError, match=f'{log}: /truth: '):
        read_recording(log)


def test_a_file_that_is_not_a_gazebo_log_is_refused(tmp_path: Path) -> None:
    other = tmp_path / 'a.tlog'
    other.write_bytes(b'no database' * 20)
    with pytest.raises(RecordingError, match='not a readable Gazebo log'):
        read_recording(other)


def test_a_late_twist_is_replaced_by_velocities_of_the_poses(tmp_path: Path) -> None:
    """The twist of Gazebo is a mean of ten steps, which is 5 ms late."""
    motion = motion_of('half_sine', duration=6.0)
    right = simulate(motion, gps='baseline', imu='ideal')
    truth = right.truth
    late = truth.linear_velocity + 0.5 * np.sin(np.arange(len(truth)))[:, None]
    late_recording = right.with_messages('truth', dataclasses.replace(truth, linear_velocity=late))
    write_recording(late_recording, tmp_path / 'a', storage='csv')
    settings = {'corrections': {'truth': {'twist': 'positions'}}}
    (tmp_path / 'a' / 'recording.yaml').write_text(yaml.safe_dump(settings))
    read_truth = read_recording(tmp_path / 'a').truth
    assert read_truth is not None
    # Parabolas through three positions, 10 ms apart; at the ends they are one-sided.
    inside = slice(2, -2)
    for name in ('linear_velocity', 'angular_velocity'):
        error = getattr(read_truth, name)[inside] - getattr(truth, name)[inside]
        assert np.abs(error).max() < 2e-3
