# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""CSV folders read back to the same bits, and damaged ones are refused by name."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from recording_examples import REFERENCE, arrays_equal, assert_same, drive

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.csv_files import read_table, write_table
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import TwistArray, is_absent

NODE = REFERENCE / 'judge/node'


@pytest.mark.parametrize('compress', [False, True])
def test_a_written_folder_reads_back_to_the_same_bits(tmp_path: Path, compress: bool) -> None:
    written = drive()
    write_recording(written, tmp_path / 'a', storage='csv', compress=compress)
    write_recording(written, tmp_path / 'b', storage='csv', compress=compress)
    assert_same(read_recording(tmp_path / 'a'), written)
    names = sorted(file.name for file in (tmp_path / 'a').iterdir())
    assert ('imu.csv.gz' if compress else 'imu.csv') in names
    for name in names:
        assert (tmp_path / 'a' / name).read_bytes() == (tmp_path / 'b' / name).read_bytes()


any_float = st.floats(allow_nan=False, allow_infinity=False, width=64)
texts = st.text(
    st.characters(exclude_categories=['Cs', 'Cc']) | st.sampled_from('\n,"'), max_size=8
)
stamps = st.integers(-(2**63), 2**63 - 1)


@given(data=st.data(), kind=st.sampled_from(list(MESSAGE_TYPES.values())), n=st.integers(0, 3))
def test_any_finite_value_and_any_frame_are_read_back_from_the_table(
    data: st.DataObject, kind, n: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fields: dict[str, object] = {
        'stamp_ns': data.draw(hnp.arrays(np.int64, n, elements=stamps)),
        'arrival_ns': data.draw(hnp.arrays(np.int64, n, elements=stamps)),
        'frame': data.draw(texts) if n else '',
    }
    if not kind.has_header:
        fields |= {'stamp_ns': fields['arrival_ns'], 'frame': ''}
    if kind.has_child:
        fields['child_frame'] = data.draw(texts) if n else ''
    for name, _, shape, code in kind.fields:
        if name and code == 'f8':
            fields[name] = data.draw(hnp.arrays(np.float64, (n, *shape), elements=any_float))
        elif name:
            fields[name] = data.draw(hnp.arrays(np.int64, n, elements=st.integers(-2, 3)))
    if kind.array is TwistArray and 'twist_covariance' not in fields:
        fields['twist_covariance'] = np.zeros((n, 6, 6))
    array = kind.array(**fields)
    path = tmp_path_factory.mktemp('table') / data.draw(st.sampled_from(['t.csv', 't.csv.gz']))
    write_table(path, kind, array)
    again, notes = read_table(path, kind)
    assert arrays_equal(again, array)
    assert notes == ()


@pytest.mark.parametrize('storage', ['csv', 'mcap', 'sqlite3'])
def test_commands_without_a_header_are_stamped_with_their_arrival(
    tmp_path: Path, storage: Literal['csv', 'mcap', 'sqlite3']
) -> None:
    """geometry_msgs/Twist, which most robots are driven by, has neither stamp nor frame."""
    folder = tmp_path / 'line_1'
    folder.mkdir()
    (folder / 'teleop.csv').write_text(
        'arrival_ns,vx,vy,vz,wx,wy,wz\n5000000000,1,0,0,0,0,0.5\n5100000000,2,0,0,0,0,0\n'
    )
    files = {'teleop.csv': {'topic': '/cmd_vel', 'type': 'geometry_msgs/Twist'}}
    (folder / 'recording.yaml').write_text(yaml.safe_dump({'files': files}))
    recording = read_recording(folder)
    write_recording(recording, tmp_path / storage / 'line_1', storage=storage)
    for read_back in (recording, read_recording(tmp_path / storage / 'line_1')):
        assert read_back.ros_types == {'/cmd_vel': 'geometry_msgs/msg/Twist'}
        assert not read_back.notes
        commands = read_back.messages['/cmd_vel']
        assert commands.stamp_ns.tolist() == [5 * 10**9, 51 * 10**8]
        assert commands.arrival_ns.tolist() == commands.stamp_ns.tolist()
        assert commands.linear_velocity[:, 0].tolist() == [1.0, 2.0]
        assert commands.angular_velocity[:, 2].tolist() == [0.5, 0.0]
        assert commands.frame == ''
    # A separate stamp or a frame is kept.
    late = dataclasses.replace(commands, frame='base_link', arrival_ns=commands.stamp_ns + 7)
    late_recording = dataclasses.replace(recording, messages={'/cmd_vel': late})
    write_recording(late_recording, tmp_path / 'own', storage=storage)
    again = read_recording(tmp_path / 'own', arrival='recorded').messages['/cmd_vel']
    assert arrays_equal(again, late)


def column(path: Path, name: str) -> list[float]:
    rows = list(csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
    return [float(row[rows[0].index(name)]) for row in rows[1:]]


@pytest.mark.skipif(not NODE.is_dir(), reason='reference traces are not here')
def test_reference_traces_are_read_exactly() -> None:
    recording = read_recording(NODE / 'a_paper_circle_gauss')
    folder = NODE / 'a_paper_circle_gauss'
    imu, gps, truth = recording.imu, recording.gps, recording.truth
    assert (len(imu), len(gps), len(truth)) == (2000, 200, 130)
    for values, file, name in (
        (imu.angular_velocity[:, 2], 'imu', 'wz'),
        (imu.linear_acceleration_covariance[:, 2, 2], 'imu', 'acov8'),
        (gps.longitude, 'gps', 'lon'),
        (truth.linear_velocity[:, 0], 'truth', 'vx_body'),
    ):
        assert values.tolist() == column(folder / f'{file}.csv.gz', name)
    assert (truth.frame, truth.child_frame) == ('map', 'base_link')
    assert recording.roles == {'imu': '/imu', 'gps': '/fix', 'truth': '/ground_truth/odometry'}
    assert [t.child for t in recording.transforms] == ['imu_link', 'gps_link']
    assert any(note.code == 'recording.covariance_zero' for note in recording.notes)


@pytest.mark.skipif(not NODE.is_dir(), reason='reference traces are not here')
def test_every_reference_trace_is_read_and_late_arrivals_are_kept() -> None:
    for folder in sorted(NODE.iterdir()):
        recording = read_recording(folder)
        assert recording.imu is not None
        assert recording.truth is not None
    lagged = read_recording(NODE / 'h_smooth_lagged')
    pose = lagged.messages['pose']
    assert len(pose) == 200
    assert ((pose.arrival_ns - pose.stamp_ns) * 1e-9).min() > 0.24
    # Two odometry messages are older than their predecessor on arrival; ekf_node refuses them too.
    assert len(lagged.messages['wheel/odom']) == 398
    assert [n.numbers['count'] for n in lagged.notes if n.code == 'recording.stamp_order'] == [2]
    # Ties of arrival are broken by the order of `inputs` in case.yaml.
    assert list(lagged.messages)[:3] == ['wheel/odom', 'pose', '/imu']


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_recording(drive(40), tmp_path / 'line_3', storage='csv')
    return tmp_path / 'line_3'


def replace_cell(path: Path, line: int, name: str, value: str) -> None:
    rows = list(csv.reader(io.StringIO(path.read_text())))
    rows[line - 1][rows[0].index(name)] = value
    path.write_text('\n'.join(','.join(row) for row in rows) + '\n')


@pytest.mark.parametrize(
    ('name', 'value', 'words'),
    [
        ('ax', 'fast', ['imu.csv', 'line 5', 'ax', "'fast'"]),
        ('stamp_ns', '1.5', ['line 5', 'stamp_ns']),
        ('stamp_ns', str(2**63), ['line 5', 'stamp_ns']),
        ('qw', '', ['line 5', 'qw']),
        ('frame', 'other', ['frame', 'imu_link', 'other']),
    ],
)
def test_a_wrong_cell_is_named_with_file_line_and_column(
    folder: Path, name: str, value: str, words: list[str]
) -> None:
    replace_cell(folder / 'imu.csv', 5, name, value)
    with pytest.raises(RecordingError) as error:
        read_recording(folder)
    message = str(error.value)
    assert all(word in message for word in words), message
    assert '\n' not in message


@pytest.mark.parametrize(
    ('old', 'new', 'word'),
    [('wz', 'yaw_rate', 'wz'), ('frame,', 'frame,frame,', 'repeated'), ('ax', 'wx', 'ax')],
)
def test_a_wrong_header_is_refused(folder: Path, old: str, new: str, word: str) -> None:
    text = (folder / 'imu.csv').read_text()
    (folder / 'imu.csv').write_text(text.replace(old, new, 1))
    with pytest.raises(RecordingError, match=word):
        read_recording(folder)


@pytest.mark.parametrize('name', ['pcov0', 'pcov1', 'tcov35'])
def test_a_truth_with_a_part_of_a_covariance_is_refused(folder: Path, name: str) -> None:
    header, *lines = (folder / 'truth.csv').read_text().splitlines()
    assert name not in header.split(',')
    rows = [f'{header},{name}', *(f'{line},0.0' for line in lines)]
    (folder / 'truth.csv').write_text('\n'.join(rows) + '\n')
    with pytest.raises(RecordingError, match=rf'truth.csv: missing column {name[:4]}'):
        read_recording(folder)


def test_a_table_with_only_a_header_is_an_empty_topic(folder: Path) -> None:
    text = (folder / 'gps.csv').read_text()
    (folder / 'gps.csv').write_text(text.splitlines()[0] + '\n')
    read = read_recording(folder)
    assert read.gps is None
    with pytest.raises(RecordingError, match=r'no gps topic .*\(no messages\)'):
        read.require('gps')


def test_a_missing_or_ambiguous_file_is_refused(folder: Path) -> None:
    (folder / 'imu.csv.gz').write_bytes(gzip.compress((folder / 'imu.csv').read_bytes()))
    with pytest.raises(RecordingError, match='both'):
        read_recording(folder)
    for file in folder.glob('imu.csv*'):
        file.unlink()
    with pytest.raises(RecordingError, match=r'imu\.csv'):
        read_recording(folder)


def write_minimal_folder(folder: Path) -> None:
    """Write the columns that users have: no frames, covariances, orientation or velocities."""
    good = drive()
    tables = {
        'imu': ('wx,wy,wz,ax,ay,az', good.imu.angular_velocity, good.imu.linear_acceleration),
        'gps': (
            'latitude,longitude,altitude',
            good.gps.latitude,
            good.gps.longitude,
            good.gps.altitude,
        ),
        'truth': ('x,y,z,qx,qy,qz,qw', good.truth.position, good.truth.orientation),
    }
    folder.mkdir()
    for role, (columns, *values) in tables.items():
        numbers = np.column_stack(values).tolist()
        stamps = good.require(role).stamp_ns.tolist()
        rows = [
            ','.join(map(repr, [stamp, *row])) for stamp, row in zip(stamps, numbers, strict=True)
        ]
        (folder / f'{role}.csv').write_text('\n'.join([f'stamp_ns,{columns}', *rows]) + '\n')


def test_a_folder_of_minimal_columns_is_read_and_each_topic_says_what_is_assumed(
    tmp_path: Path,
) -> None:
    write_minimal_folder(tmp_path / 'run')
    good, read = drive(), read_recording(tmp_path / 'run')
    assert read.imu.angular_velocity.tolist() == good.imu.angular_velocity.tolist()
    assert read.gps.altitude.tolist() == good.gps.altitude.tolist()
    assert read.truth.position.tolist() == good.truth.position.tolist()
    assert is_absent(read.imu.orientation_covariance).all()
    assert (read.imu.frame, read.gps.frame) == ('imu_link', 'gps_link')
    assert set(read.gps.status) == {0}
    codes = [note.code for note in read.notes if note.severity.name == 'ASSUMED']
    assert codes == ['recording.covariance_assumed'] * 2 + ['truth.from_poses']
    (tmp_path / 'run/recording.yaml').write_text(
        'corrections: {imu: {rate_std: 0.02, acceleration_std: 0.2}, gps: {std: 3}}\n'
    )
    stated = read_recording(tmp_path / 'run')
    assert 'recording.covariance_assumed' not in [note.code for note in stated.notes]
    assert stated.gps.position_covariance[0].tolist() == (9.0 * np.eye(3)).tolist()


@pytest.mark.parametrize(
    ('file', 'columns', 'missing'),
    [
        ('imu.csv', 'stamp_ns,wx,wy,wz,ax,ay', 'az'),
        ('imu.csv', 'stamp_ns,wx,wy,wz,ax,ay,az,qx,qy,qz', 'qw'),
        ('gps.csv', 'stamp_ns,latitude', 'lon'),
        ('truth.csv', 'stamp_ns,x,y,z,qx,qy,qz,qw,vx', 'vy_body|vy'),
    ],
)
def test_a_field_of_which_some_columns_are_missing_is_refused(
    tmp_path: Path, file: str, columns: str, missing: str
) -> None:
    write_minimal_folder(tmp_path / 'run')
    count = columns.count(',')
    (tmp_path / 'run' / file).write_text(f'{columns}\n1000000000{",1" * count}\n')
    with pytest.raises(RecordingError, match=f'{file}: missing column ({missing})'):
        read_recording(tmp_path / 'run')


def test_a_position_without_altitude_is_used_in_the_plane(tmp_path: Path) -> None:
    write_minimal_folder(tmp_path / 'run')
    rows = [line.rsplit(',', 1)[0] for line in (tmp_path / 'run/gps.csv').read_text().splitlines()]
    (tmp_path / 'run/gps.csv').write_text('\n'.join(rows) + '\n')
    read = read_recording(tmp_path / 'run')
    assert [
        note.numbers['count'] for note in read.notes if note.code == 'recording.no_altitude'
    ] == [40]
    assert not read.gps.altitude.any()


@pytest.mark.parametrize('ros_type', ['Twist', 'TwistStamped', 'TwistWithCovarianceStamped'])
@pytest.mark.parametrize('labels', ['frame,stamp_ns', 'stamp_ns', 'arrival_ns,stamp_ns,frame'])
def test_a_table_of_twists_needs_no_more_than_stamps(
    tmp_path: Path, ros_type: str, labels: str
) -> None:
    """Whether the messages have a stamp of their own, as TwistStamped, or none, as Twist."""
    values = {'frame': 'base_link', 'stamp_ns': '{0}00000000', 'arrival_ns': '{0}00000001'}
    start = ','.join(values[label] for label in labels.split(','))
    rows = [f'{start.format(k)},1.5,0,0,0,0,0.1' for k in range(1, 6)]
    table = '\n'.join([f'{labels},vx,vy,vz,wx,wy,wz', *rows, ''])
    (tmp_path / 'twist.csv').write_text(table, 'utf-8')
    stated = {'twist.csv': {'topic': '/twist', 'type': f'geometry_msgs/msg/{ros_type}'}}
    (tmp_path / 'recording.yaml').write_text(yaml.safe_dump({'files': stated}), 'utf-8')
    array = read_recording(tmp_path).messages['/twist']
    assert isinstance(array, TwistArray)
    # A message without a stamp has the time of its arrival.
    offset = 1 if ros_type == 'Twist' and 'arrival' in labels else 0
    assert array.stamp_ns.tolist() == [k * 100_000_000 + offset for k in range(1, 6)]
    assert array.linear_velocity[:, 0].tolist() == [1.5] * 5
