# SPDX-License-Identifier: Apache-2.0
"""Broken input is repaired with a note or refused with a reason, never silently used."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from recording_examples import drive

from sim2real_eval.common.findings import Finding, RecordingError
from sim2real_eval.recording.checks import check_messages
from sim2real_eval.recording.reading import label_from_path, read_recording, scenario_from_name
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import MessageArray

STORAGES = ['mcap', 'sqlite3', 'csv']


def altered(recording: Recording, role: str, **fields: object) -> Recording:
    return recording.with_messages(role, dataclasses.replace(recording.require(role), **fields))


def reread(recording: Recording, tmp_path: Path, storage: str = 'mcap', **options) -> Recording:
    write_recording(recording, tmp_path / 'line_3', storage=storage)
    return read_recording(tmp_path / 'line_3', **options)


def note_on(recording: Recording, code: str) -> Finding:
    matching = [note for note in recording.notes if note.code == f'recording.{code}']
    assert len(matching) == 1, [str(note) for note in recording.notes]
    return matching[0]


def count_of(recording: Recording, code: str) -> float:
    return note_on(recording, code).numbers['count']


@pytest.mark.parametrize('storage', STORAGES)
def test_a_sound_recording_has_no_notes(tmp_path: Path, storage: str) -> None:
    assert reread(drive(), tmp_path, storage).notes == ()


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_values_that_are_not_finite_are_dropped(
    tmp_path: Path, storage: str, value: float
) -> None:
    good = drive()
    rates = good.imu.angular_velocity.copy()
    rates[[5, 17], 1] = value
    read = reread(altered(good, 'imu', angular_velocity=rates), tmp_path, storage)
    assert count_of(read, 'bad_value') == 2
    keep = np.delete(np.arange(len(rates)), [5, 17])
    assert read.imu.angular_velocity.tolist() == rates[keep].tolist()


@pytest.mark.parametrize('storage', STORAGES)
def test_a_topic_that_is_mostly_broken_is_refused(tmp_path: Path, storage: str) -> None:
    good = drive()
    rates = good.imu.angular_velocity.copy()
    rates[::4] = np.nan
    with pytest.raises(RecordingError, match=r'/imu/data: 100 of 400 .* at most 20%') as error:
        reread(altered(good, 'imu', angular_velocity=rates), tmp_path, storage)
    assert '\n' not in str(error.value)


def test_a_broken_topic_without_a_role_is_left_out(tmp_path: Path) -> None:
    good = drive()
    bad = dataclasses.replace(
        good.messages['/odom'], position=np.full_like(good.messages['/odom'].position, np.nan)
    )
    read = reread(dataclasses.replace(good, messages={**good.messages, '/odom': bad}), tmp_path)
    assert '/odom' not in read.messages
    assert any(n.subject == '/odom' and n.code == 'recording.topic_left_out' for n in read.notes)


@pytest.mark.parametrize('storage', STORAGES)
def test_fixes_without_a_fix_are_dropped_however_many(tmp_path: Path, storage: str) -> None:
    good = drive()
    status = np.zeros(len(good.gps), np.int64)
    status[10:30] = -1
    latitude = good.gps.latitude.copy()
    latitude[10:30] = np.nan
    read = reread(altered(good, 'gps', status=status, latitude=latitude), tmp_path, storage)
    assert count_of(read, 'no_fix') == 20
    assert len(read.gps) == 20
    assert note_on(read, 'gap').numbers['gap'] == pytest.approx(2.1)
    indoors = reread(altered(good, 'gps', status=status - status - 1), tmp_path / 'none', storage)
    assert indoors.gps is None
    assert len(indoors.imu) == len(good.imu)
    with pytest.raises(RecordingError, match='no usable message is left: STATUS_NO_FIX'):
        indoors.require('gps')


@pytest.mark.parametrize('storage', STORAGES)
def test_backward_stamps_are_dropped_as_ekf_node_drops_them(tmp_path: Path, storage: str) -> None:
    good = drive()
    stamp = good.imu.stamp_ns.copy()
    stamp[50] -= 35_000_000
    arrival = good.imu.stamp_ns
    read = reread(altered(good, 'imu', stamp_ns=stamp, arrival_ns=arrival), tmp_path, storage)
    assert count_of(read, 'stamp_order') == 1
    assert read.imu.stamp_ns.tolist() == np.delete(stamp, 50).tolist()


def test_late_messages_of_one_topic_are_refused_one_by_one_however_many(tmp_path: Path) -> None:
    """The judge fuses the rest, as ekf_node does; a topic that is left out says why."""
    good = drive()
    pose = good.messages['/pose']
    stamp = pose.stamp_ns.copy()
    late = np.arange(1, len(stamp)) % 5 < 2
    stamp[1:][late] -= 250_000_000
    messages = {**good.messages, '/pose': dataclasses.replace(pose, stamp_ns=stamp)}
    read = reread(dataclasses.replace(good, messages=messages), tmp_path / 'late')
    kept_count = len(read.messages['/pose'])
    assert 0.4 * len(pose) < kept_count < 0.8 * len(pose)
    assert count_of(read, 'stamp_order') == len(pose) - kept_count
    stamp = np.concatenate([pose.stamp_ns[:20], pose.stamp_ns[:20]])
    messages['/pose'] = dataclasses.replace(pose, stamp_ns=stamp)
    read = reread(dataclasses.replace(good, messages=messages), tmp_path / 'again')
    assert 'stamp runs backwards' in read.why_missing('pose')


def test_a_clock_that_starts_again_is_refused(tmp_path: Path) -> None:
    good = drive()
    stamp = np.concatenate([good.imu.stamp_ns[:200], good.imu.stamp_ns[:200]])
    with pytest.raises(RecordingError, match='stamp runs backwards'):
        reread(altered(good, 'imu', stamp_ns=stamp), tmp_path)


def test_repeated_stamps_stay_in_sensors_and_leave_the_truth(tmp_path: Path) -> None:
    good = drive()
    for role in ('imu', 'truth'):
        stamp = good.require(role).stamp_ns.copy()
        stamp[20] = stamp[19]
        good = altered(good, role, stamp_ns=stamp)
    read = reread(good, tmp_path)
    assert note_on(read, 'stamp_repeated').subject == '/imu/data'
    assert note_on(read, 'stamp_order').subject == '/ground_truth/odometry'
    assert (len(read.imu), len(read.truth)) == (400, 199)
    assert np.diff(read.truth.stamp_ns).min() > 0


def test_one_stamp_far_in_the_future_does_not_cost_the_rest(tmp_path: Path) -> None:
    good = drive()
    stamp = good.imu.stamp_ns.copy()
    stamp[3] += 10**18
    read = reread(altered(good, 'imu', stamp_ns=stamp), tmp_path)
    assert count_of(read, 'bad_stamp') == 1
    assert len(read.imu) == 399


@pytest.mark.parametrize('ahead_s', [0.5, 30.0, 1e9])
@pytest.mark.parametrize('role', ['imu', 'truth'])
def test_one_stamp_ahead_costs_itself_alone_without_receive_times_to_judge_it_by(
    tmp_path: Path, role: str, ahead_s: float
) -> None:
    """In a table the receive time is the stamp; in a bag half a minute is no glitch by it."""
    good = drive()
    stamp = good.require(role).stamp_ns.copy()
    stamp[40] += int(ahead_s * 1e9)
    read = reread(altered(good, role, stamp_ns=stamp, arrival_ns=stamp), tmp_path, 'csv')
    assert count_of(read, 'stamp_order') == 1
    assert read.require(role).stamp_ns.tolist() == np.delete(stamp, 40).tolist()


def test_stamps_that_swap_places_are_late_ones_as_for_ekf_node(tmp_path: Path) -> None:
    """Early by the time of two messages: it is the two after it that are older than the newest."""
    good = drive()
    stamp = good.imu.stamp_ns.copy()
    stamp[40] += 25_000_000
    read = reread(altered(good, 'imu', stamp_ns=stamp), tmp_path)
    assert count_of(read, 'stamp_order') == 2
    assert read.imu.stamp_ns.tolist() == np.delete(stamp, [41, 42]).tolist()


def test_zero_stamps_take_the_receive_time(tmp_path: Path) -> None:
    good = drive()
    read = reread(altered(good, 'imu', stamp_ns=np.zeros(400, np.int64)), tmp_path)
    assert count_of(read, 'stamp_zero') == 400
    assert read.imu.stamp_ns.tolist() == good.imu.arrival_ns.tolist()


def test_topics_that_do_not_overlap_are_refused_and_partial_overlap_is_remarked(
    tmp_path: Path,
) -> None:
    good = drive()
    for shift, place in ((5_000_000_000, 'apart'), (2_000_000_000, 'partial')):
        moved = altered(
            good, 'gps', stamp_ns=good.gps.stamp_ns + shift, arrival_ns=good.gps.arrival_ns + shift
        )
        if place == 'apart':
            with pytest.raises(RecordingError, match=r'/gps/fix \(1005\.000 .* do not overlap'):
                reread(moved, tmp_path / place)
        else:
            read = reread(moved, tmp_path / place)
            assert note_on(read, 'overlap').numbers['common'] == pytest.approx(1.98, abs=0.005)


def test_unknown_and_absent_quantities_are_told_with_their_consequence(tmp_path: Path) -> None:
    good = drive()
    absent = np.zeros((400, 3, 3))
    absent[:, 0, 0] = -1
    read = reread(
        altered(
            altered(good, 'gps', position_covariance=np.zeros((40, 3, 3))),
            'imu',
            orientation_covariance=absent,
            orientation=np.full((400, 4), np.nan),
        ),
        tmp_path,
    )
    unknown = note_on(read, 'covariance_zero')
    assert unknown.numbers == {'count': 40}
    assert 'trusts the measurement completely' in str(unknown)
    assert count_of(read, 'quantity_absent') == 400
    assert read.imu.orientation.tolist() == [[0, 0, 0, 1]] * 400


def test_zero_quaternions(tmp_path: Path) -> None:
    good = drive()
    imu = good.imu.orientation.copy()
    imu[:] = 0
    truth = good.truth.orientation.copy()
    truth[7] = 0
    truth[8] *= 3.0
    read = reread(
        altered(altered(good, 'imu', orientation=imu), 'truth', orientation=truth), tmp_path
    )
    assert (read.imu.orientation_covariance[:, 0, 0] == -1).all()
    assert len(read.truth) == 199
    norms = np.linalg.norm(read.truth.orientation, axis=1)
    assert np.abs(norms - 1).max() < 1e-12
    assert note_on(read, 'quaternion_norm').numbers['norm'] == pytest.approx(3.0)


def test_impossible_coordinates_are_dropped(tmp_path: Path) -> None:
    good = drive()
    latitude, longitude = good.gps.latitude.copy(), good.gps.longitude.copy()
    latitude[3], longitude[4] = 90.5, -181.0
    read = reread(altered(good, 'gps', latitude=latitude, longitude=longitude), tmp_path)
    bad_values = [note for note in read.notes if note.code == 'recording.bad_value']
    assert [note.numbers['value'] for note in bad_values] == [90.5, -181.0]
    assert len(read.gps) == 38


def test_a_missing_altitude_is_set_to_zero(tmp_path: Path) -> None:
    read = reread(altered(drive(), 'gps', altitude=np.full(40, np.nan)), tmp_path)
    assert count_of(read, 'no_altitude') == 40
    assert not read.gps.altitude.any()


@given(
    data=st.data(),
    stamps=st.lists(st.integers(1, 60), min_size=1, max_size=30),
    is_truth=st.booleans(),
)
def test_whatever_the_stamps_the_result_is_in_order(
    data: st.DataObject, stamps: list[int], is_truth: bool
) -> None:
    n = len(stamps)
    truth = drive(200).truth.take(slice(0, n))
    bad = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    position = np.where(np.array(bad)[:, None], np.nan, truth.position)
    array = dataclasses.replace(truth, stamp_ns=np.array(stamps) * 10**9, position=position)
    try:
        result, notes = check_messages('here', '/t', array, is_truth=is_truth)
    except RecordingError:
        return
    assert np.diff(result.stamp_ns).min(initial=1) >= (1 if is_truth else 0)
    assert np.isfinite(result.position).all()
    dropped = sum(one.numbers['count'] for one in notes if 'stamp' in one.numbers)
    assert len(result) + dropped == n


def test_roles_follow_options_then_yaml_then_defaults(tmp_path: Path) -> None:
    good = drive()
    second = dataclasses.replace(good.imu, frame='imu2_link')
    messages: dict[str, MessageArray] = {**good.messages, '/imu2': second}
    write_recording(dataclasses.replace(good, messages=messages), tmp_path / 'line_3')
    (tmp_path / 'line_3/recording.yaml').unlink()
    assert read_recording(tmp_path / 'line_3').roles['imu'] == '/imu/data'
    yaml_file = tmp_path / 'line_3.recording.yaml'
    yaml_file.write_text(
        'topics: {imu: /imu2}\nscenario: loop\nlever_arms: {gps: [1, 2, 3.5]}\n'
        'frames: {gps: antenna}\n'
    )
    read = read_recording(tmp_path / 'line_3')
    assert (read.roles['imu'], read.imu.frame, read.scenario) == ('/imu2', 'imu2_link', 'loop')
    assert read.gps.frame == 'antenna'
    assert StaticTransform('base_link', 'antenna', (1.0, 2.0, 3.5)) in read.transforms
    option = read_recording(tmp_path / 'line_3', topics={'imu': 'imu/data'}, scenario='x')
    assert (option.roles['imu'], option.scenario) == ('/imu/data', 'x')
    assert read_recording(tmp_path / 'line_3', topics={'gps': None}).gps is None
    with pytest.raises(RecordingError, match=r'imu: topic /imu3 is missing; .*/imu/data, /imu2'):
        read_recording(tmp_path / 'line_3', topics={'imu': '/imu3'})
    with pytest.raises(RecordingError, match=r'imu: topic /odom has type nav_msgs/msg/Odometry'):
        read_recording(tmp_path / 'line_3', topics={'imu': '/odom'})


def test_a_single_candidate_is_taken_with_a_note_and_of_several_none(tmp_path: Path) -> None:
    good = drive()
    messages = {f'/x{topic}': array for topic, array in good.messages.items()}
    renamed = dataclasses.replace(good, messages=messages, roles={}, ros_types={})
    write_recording(renamed, tmp_path / 'one')
    (tmp_path / 'one/recording.yaml').unlink()
    read = read_recording(tmp_path / 'one')
    assert read.roles == {'imu': '/x/imu/data', 'gps': '/x/gps/fix', 'mag': '/x/imu/mag'}
    guessed = {one.words['role'] for one in read.notes if one.code == 'recording.role_guessed'}
    assert 'imu' in guessed
    # Two topics have the type of a truth; none of them is guessed to be one.
    with pytest.raises(RecordingError, match=r'no truth topic .*/x/odom'):
        read.require('truth')
    write_recording(
        dataclasses.replace(renamed, messages={**messages, '/y': good.imu}), tmp_path / 'two'
    )
    (tmp_path / 'two/recording.yaml').unlink()
    with pytest.raises(RecordingError, match=r'no imu topic .* /x/imu/data, /y'):
        read_recording(tmp_path / 'two').require('imu')


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('topic: {imu: /a}', 'topic: unknown key'),
        ('topics: {lidar: /a}', 'topics.lidar: unknown role'),
        ('topics: [a]', 'topics: .*must be a mapping'),
        ('topics: {imu: [1]}', 'topics.imu: .*must be a text'),
        ('arrival: late', 'arrival: .*stamp or recorded'),
        ('lever_arms: {gps: [1, 2]}', 'lever_arms.gps: .*3 finite numbers'),
        ('lever_arms: {gps: [1, 2, .nan]}', 'lever_arms.gps: .*3 finite numbers'),
        ('lever_arms: {gps: [1, 2, .inf]}', 'lever_arms.gps: .*3 finite numbers'),
        ('truth: {low_pass: .inf}', 'low_pass: .*above 0 Hz'),
        ('transforms: [{parent: a}]', r'transforms\[0\]\.child: .*must be a text'),
        ('- 1', 'content: .*must be a mapping'),
        ('a: [', 'not valid YAML'),
        ('scenario: ""', 'scenario: .*must be a text'),
        ('scenario: all', "scenario: 'all' is not allowed"),
        ('name: a/b', "name: 'a/b' is not allowed"),
        (r'name: "a\0b"', r"name: 'a\\x00b' is not allowed"),
        ('name: ..', "name: '..' is not allowed"),
        ('name: a\nname: b', "key 'name' was already given on line 1"),
    ],
)
def test_a_wrong_recording_yaml_is_refused_by_key(tmp_path: Path, text: str, words: str) -> None:
    write_recording(drive(20), tmp_path / 'line_3')
    (tmp_path / 'line_3/recording.yaml').write_text(text)
    with pytest.raises(RecordingError, match=words) as error:
        read_recording(tmp_path / 'line_3')
    assert 'recording.yaml' in str(error.value)
    assert '\n' not in str(error.value)


def test_names_and_scenarios() -> None:
    assert label_from_path(Path('/x/segments/drive0708_seg00/bag')) == 'drive0708_seg00'
    assert label_from_path(Path('/x/line_3/bag/bag.db3')) == 'line_3'
    assert label_from_path(Path('/x/line_3')) == 'line_3'
    assert scenario_from_name('line_3') == 'line'
    assert scenario_from_name('half_sine_10') == 'half_sine'
    assert scenario_from_name('drive0708_seg00') == 'drive0708'
    assert scenario_from_name('2024_01') == 'drive'
    assert scenario_from_name('rosbag2_2024_01_31-12_34_56') == 'drive'


def test_a_recording_is_a_value_that_processes_can_exchange() -> None:
    good = drive(20)
    again = pickle.loads(pickle.dumps(good))
    assert again.roles == good.roles
    without = good.with_messages('imu', None)
    assert without.imu is None
    assert good.imu is not None
    assert without.with_messages('imu', good.imu).roles['imu'] == '/imu/data'
    with pytest.raises(ValueError, match='must be ImuArray'):
        good.with_messages('imu', good.gps)
    assert good.start_ns == 1_000_000_000_000
    assert good.end_ns == 1_000_190_000_000


def test_metadata_of_a_written_folder_is_plain_yaml(tmp_path: Path) -> None:
    write_recording(drive(20), tmp_path / 'line_3', storage='csv')
    content = yaml.safe_load((tmp_path / 'line_3/recording.yaml').read_text())
    assert content['topics']['truth'] == '/ground_truth/odometry'
    assert content['arrival'] == 'recorded'
    assert content['files']['gps_vel.csv']['topic'] == '/gps/vel'
