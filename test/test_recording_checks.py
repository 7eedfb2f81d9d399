# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Broken input is repaired with a note or refused with a reason, never silently used."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording_examples import drive

from sim2real_eval.common.findings import Finding, RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.repairs import check_messages
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import MessageArray

STORAGES = ['mcap', 'sqlite3', 'csv']


def altered(recording: Recording, role: str, **fields: object) -> Recording:
    return recording.with_messages(role, dataclasses.replace(recording.require(role), **fields))


def edited(
    role: str, rows: object, recording: Recording | None = None, **values: Any
) -> Recording:
    """Set fields of a role to other values in some rows, by default of a good drive."""
    recording = recording or drive()
    fields = {name: getattr(recording.require(role), name).copy() for name in values}
    for name, field in fields.items():
        field[rows] = values[name]
    return altered(recording, role, **fields)


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
def test_a_recording_without_faults_has_no_findings(tmp_path: Path, storage: str) -> None:
    assert reread(drive(), tmp_path, storage).notes == ()


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_messages_with_infinite_or_nan_values_are_dropped(
    tmp_path: Path, storage: str, value: float
) -> None:
    bad = edited('truth', ([5, 17], 1), position=value)
    read = reread(bad, tmp_path, storage)
    assert count_of(read, 'bad_value') == 2
    expected = np.delete(bad.truth.position, [5, 17], axis=0)
    assert read.truth.position.tolist() == expected.tolist()


def test_a_topic_with_a_quarter_of_broken_messages_loses_only_its_role(tmp_path: Path) -> None:
    bad = edited('truth', slice(None, None, 4), position=np.nan)
    read = reread(bad, tmp_path)
    assert (read.truth, len(read.imu), len(read.gps)) == (None, 400, 40)
    note = note_on(read, 'role_left_out')
    assert note.words['role'] == 'truth'
    assert '50 of 200' in note.words['problem']
    named = {'truth': '/ground_truth/odometry'}
    with pytest.raises(RecordingError, match='/ground_truth/odometry: 50 of 200'):
        read_recording(tmp_path / 'line_3', topics=named)


def test_a_broken_topic_without_a_role_is_left_out(tmp_path: Path) -> None:
    good = drive()
    odom = good.messages['/odom']
    nothing = np.full_like(odom.position, np.nan)
    bad = dataclasses.replace(
        odom,
        position=nothing,
        linear_velocity=nothing,
        angular_velocity=nothing,
        orientation=np.full_like(odom.orientation, np.nan),
    )
    read = reread(dataclasses.replace(good, messages={**good.messages, '/odom': bad}), tmp_path)
    assert '/odom' not in read.messages
    assert any(n.subject == '/odom' and n.code == 'recording.topic_left_out' for n in read.notes)


def test_any_number_of_messages_without_a_fix_is_dropped(tmp_path: Path) -> None:
    read = reread(edited('gps', slice(10, 30), status=-1, latitude=np.nan), tmp_path)
    assert count_of(read, 'no_fix') == len(read.gps) == 20
    assert note_on(read, 'gap').numbers['gap'] == pytest.approx(2.1)
    assert reread(edited('gps', slice(None), status=-1), tmp_path / 'none').gps is None


def test_backward_stamps_are_dropped_as_ekf_node_drops_them(tmp_path: Path) -> None:
    stamp = drive().imu.stamp_ns
    read = reread(edited('imu', 50, stamp_ns=stamp[50] - 35_000_000), tmp_path)
    assert count_of(read, 'stamp_order') == 1
    assert read.imu.stamp_ns.tolist() == np.delete(stamp, 50).tolist()


def test_any_number_of_late_messages_is_dropped_individually(tmp_path: Path) -> None:
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


def test_a_topic_with_stamps_of_a_restarted_clock_is_left_out(tmp_path: Path) -> None:
    good = drive()
    stamp = np.concatenate([good.imu.stamp_ns[:200], good.imu.stamp_ns[:200]])
    read = reread(altered(good, 'imu', stamp_ns=stamp), tmp_path)
    assert (read.imu, len(read.gps)) == (None, 40)
    assert 'stamp runs backwards' in note_on(read, 'role_left_out').words['problem']
    with pytest.raises(RecordingError, match='stamp runs backwards'):
        read_recording(tmp_path / 'line_3', topics={'imu': '/imu/data'})


def test_repeated_stamps_are_kept_in_sensors_and_dropped_from_the_truth(tmp_path: Path) -> None:
    bad = drive()
    for role in ('imu', 'truth'):
        bad = edited(role, 20, bad, stamp_ns=bad.require(role).stamp_ns[19])
    read = reread(bad, tmp_path)
    assert note_on(read, 'stamp_repeated').subject == '/imu/data'
    assert note_on(read, 'stamp_order').subject == '/ground_truth/odometry'
    assert (len(read.imu), len(read.truth)) == (400, 199)
    assert np.diff(read.truth.stamp_ns).min() > 0


def test_a_stamp_far_in_the_future_drops_only_its_message(tmp_path: Path) -> None:
    read = reread(edited('imu', 3, stamp_ns=2 * 10**18), tmp_path)
    assert count_of(read, 'bad_stamp') == 1
    assert len(read.imu) == 399


@pytest.mark.parametrize('ahead_s', [0.5, 30.0, 1e9])
@pytest.mark.parametrize('role', ['imu', 'truth'])
def test_a_stamp_slightly_ahead_drops_only_its_message(
    tmp_path: Path, role: str, ahead_s: float
) -> None:
    good = drive()
    stamp = good.require(role).stamp_ns.copy()
    stamp[40] += int(ahead_s * 1e9)
    read = reread(altered(good, role, stamp_ns=stamp, arrival_ns=stamp), tmp_path, 'csv')
    assert count_of(read, 'stamp_ahead') == 1
    assert read.require(role).stamp_ns.tolist() == np.delete(stamp, 40).tolist()


def test_zero_stamps_are_replaced_by_the_receive_time(tmp_path: Path) -> None:
    good = drive()
    read = reread(altered(good, 'imu', stamp_ns=np.zeros(400, np.int64)), tmp_path)
    assert count_of(read, 'stamp_zero') == 400
    assert read.imu.stamp_ns.tolist() == good.imu.arrival_ns.tolist()


def late_by(recording: Recording, shift_ns: int) -> Recording:
    """Shift all stamps of the GPS."""
    gps = recording.gps
    stamps = {'stamp_ns': gps.stamp_ns + shift_ns, 'arrival_ns': gps.arrival_ns + shift_ns}
    return altered(recording, 'gps', **stamps)


def test_topics_that_do_not_overlap_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r'/gps/fix .* do not overlap'):
        reread(late_by(drive(), 5_000_000_000), tmp_path)


def test_a_partial_overlap_of_topics_causes_a_finding(tmp_path: Path) -> None:
    read = reread(late_by(drive(), 2_000_000_000), tmp_path)
    assert note_on(read, 'overlap').numbers['common'] == pytest.approx(1.98, abs=0.005)


def test_zero_covariances_and_absent_orientations_cause_findings(tmp_path: Path) -> None:
    good = drive()
    absent = np.zeros((400, 3, 3))
    absent[:, 0, 0] = -1
    unknown = altered(good, 'gps', position_covariance=np.zeros((40, 3, 3)))
    orientation = {'orientation_covariance': absent, 'orientation': np.full((400, 4), np.nan)}
    read = reread(altered(unknown, 'imu', **orientation), tmp_path)
    assert count_of(read, 'covariance_zero') == 40
    assert count_of(read, 'quantity_absent') == 400
    assert read.imu.orientation.tolist() == [[0, 0, 0, 1]] * 400


def test_zero_quaternions_mean_absent_in_an_imu_and_are_dropped_from_the_truth(
    tmp_path: Path,
) -> None:
    bad = edited('truth', 7, edited('imu', slice(None), orientation=0.0), orientation=0.0)
    bad = edited('truth', 8, bad, orientation=3.0 * bad.truth.orientation[8])
    read = reread(bad, tmp_path)
    assert (read.imu.orientation_covariance[:, 0, 0] == -1).all()
    assert len(read.truth) == 199
    norms = np.linalg.norm(read.truth.orientation, axis=1)
    assert np.abs(norms - 1).max() < 1e-12
    assert note_on(read, 'quaternion_norm').numbers['norm'] == pytest.approx(3.0)


def test_impossible_coordinates_are_dropped(tmp_path: Path) -> None:
    bad = edited('gps', 4, edited('gps', 3, latitude=90.5), longitude=-181.0)
    read = reread(bad, tmp_path)
    bad_values = [note for note in read.notes if note.code == 'recording.bad_value']
    assert [note.numbers['value'] for note in bad_values] == [90.5, -181.0]
    assert len(read.gps) == 38


def test_a_missing_altitude_is_set_to_zero(tmp_path: Path) -> None:
    read = reread(edited('gps', slice(None), altitude=np.nan), tmp_path)
    assert count_of(read, 'no_altitude') == 40
    assert not read.gps.altitude.any()


@given(
    data=st.data(),
    stamps=st.lists(st.integers(1, 60), min_size=1, max_size=30),
    is_truth=st.booleans(),
)
def test_checked_messages_are_finite_and_in_order_for_any_stamps(
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
    assert np.isfinite(result.position).all() or not is_truth
    is_kept = 'recording.field_left_out'
    dropped = sum(
        note.numbers['count'] for note in notes if 'stamp' in note.numbers and note.code != is_kept
    )
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
    for wrong in ('/imu3', '/odom'):
        with pytest.raises(RecordingError, match=f'imu: topic {wrong}'):
            read_recording(tmp_path / 'line_3', topics={'imu': wrong})


def test_a_role_is_guessed_only_from_a_single_candidate(tmp_path: Path) -> None:
    good = drive()
    messages = {f'/x{topic}': array for topic, array in good.messages.items()}
    renamed = dataclasses.replace(good, messages=messages, roles={}, ros_types={})
    write_recording(renamed, tmp_path / 'one')
    (tmp_path / 'one/recording.yaml').unlink()
    read = read_recording(tmp_path / 'one')
    assert read.roles == {'imu': '/x/imu/data', 'gps': '/x/gps/fix', 'mag': '/x/imu/mag'}
    guessed = {note.words['role'] for note in read.notes if note.code == 'recording.role_guessed'}
    assert 'imu' in guessed
    # Two topics have the type of a truth.
    with pytest.raises(RecordingError, match='no truth topic'):
        read.require('truth')
    two = dataclasses.replace(renamed, messages={**messages, '/y': good.imu})
    write_recording(two, tmp_path / 'two')
    (tmp_path / 'two/recording.yaml').unlink()
    with pytest.raises(RecordingError, match='no imu topic'):
        read_recording(tmp_path / 'two').require('imu')


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('topic: {imu: /a}', 'topic'),
        ('topics: {lidar: /a}', 'topics.lidar'),
        ('topics: {imu: [1]}', 'topics.imu'),
        ('arrival: late', 'arrival'),
        ('lever_arms: {gps: [1, 2, .nan]}', 'lever_arms.gps'),
        ('truth: {low_pass: .inf}', 'low_pass'),
        ('transforms: [{parent: a}]', r'transforms\[0\]\.child'),
        ('- 1', 'content'),
        ('a: [', 'not valid YAML'),
        ('scenario: all', 'scenario'),
        ('name: a/b', 'name'),
        (r'name: "a\0b"', 'name'),
        ('name: a\nname: b', 'name'),
    ],
)
def test_a_wrong_recording_yaml_is_refused_by_key(tmp_path: Path, text: str, key: str) -> None:
    write_recording(drive(20), tmp_path / 'line_3')
    (tmp_path / 'line_3/recording.yaml').write_text(text)
    with pytest.raises(RecordingError, match=f'recording.yaml.*{key}') as error:
        read_recording(tmp_path / 'line_3')
    assert '\n' not in str(error.value)
