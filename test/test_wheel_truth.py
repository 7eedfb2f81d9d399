# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real wheels` on recorded paths: slopes, missing velocities, tags in view."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.wheels import RecordedMotion
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.motions import START_NS, truth_of
from sim_sensors.motion.scenarios import FigureEight

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures('blank_pictures')
TOPIC = '/ground_truth/odometry'
SHORT = ('--runs', 2, '--models', 'swerve,frc_swerve')


def recording_of(truth: OdometryArray, name: str = 'run_1') -> Recording:
    return Recording(name, 'run', '', {TOPIC: truth}, {'truth': TOPIC})


def eight(duration: float = 8.0, *, ahead: float = 0.0) -> OdometryArray:
    truth = truth_of(FigureEight(speed=1.0, duration=duration))
    return dataclasses.replace(truth, position=truth.position + np.array([ahead, 0.0, 0.0]))


def ramp(length: float, pitch: float) -> OdometryArray:
    """A straight way up a slope, at a steady 1 m/s, nose along the slope."""
    flat = truth_of(FigureEight(speed=1.0, duration=length))
    n = len(flat)
    along = np.linspace(0.0, length, n)
    position = along[:, None] * [math.cos(pitch), 0.0, math.sin(pitch)]
    turn = Rotation.from_euler('y', -pitch).as_quat()
    velocity = np.tile([1.0, 0.0, 0.0], (n, 1))
    return dataclasses.replace(
        flat, position=position, orientation=np.tile(turn, (n, 1)), linear_velocity=velocity,
        angular_velocity=np.zeros((n, 3)),
    )  # fmt: skip


@pytest.mark.parametrize('pitch_deg', [0.0, 10.0, 30.0])
def test_wheels_on_a_slope_measure_the_distance_along_it(pitch_deg: float) -> None:
    """Exact wheels on a slope a are off by s (1 - cos a) after the path s; rms L/sqrt(3)."""
    pitch, length = math.radians(pitch_deg), 10.0
    drive = RecordedMotion.of_recording(recording_of(ramp(length, pitch)))
    assert drive.way == pytest.approx(length, rel=1e-12)
    assert drive.tilt == pytest.approx(pitch, abs=1e-12)
    assert drive.height == pytest.approx(length * math.sin(pitch), abs=1e-12)
    # The mean over 1000 samples is that over the way to 0.1 %.
    expected = length * (1.0 - math.cos(pitch)) / math.sqrt(3.0)
    assert drive.planar_error == pytest.approx(expected, rel=2e-3, abs=1e-12)
    tilts = [note.numbers['tilt'] for note in drive.notes() if 'tilt' in note.numbers]
    assert tilts == ([pytest.approx(pitch_deg)] if pitch_deg else [])


def test_velocities_missing_in_the_truth_are_derived_from_positions() -> None:
    """Only the topic that a judge compares its speed with is written."""
    truth = eight()
    blind = dataclasses.replace(truth, linear_velocity=np.zeros((len(truth), 3)))
    recording = recording_of(blind)
    odometry = {**recording.messages, '/wheel/odometry': truth}
    drive = RecordedMotion.of_recording(dataclasses.replace(recording, messages=odometry))
    assert set(drive.recording.messages) == {TOPIC}
    derived, expected = drive.truth.linear_velocity, truth.linear_velocity
    np.testing.assert_allclose(derived[5:-5], expected[5:-5], atol=1e-3)
    place, heading = drive.at(truth.stamp_ns)
    np.testing.assert_allclose(place, truth.position[:, :2], atol=1e-12)
    yaw = Rotation.from_quat(truth.orientation).as_euler('ZYX')[:, 0]
    np.testing.assert_allclose(np.sin(heading - yaw), 0.0, atol=1e-12)
    assert RecordedMotion.of_recording(recording_of(truth)).start_ns == START_NS


def test_each_recorded_path_gets_independent_noise(capsys: Capture, tmp_path: Path) -> None:
    """Two bags of the same motion and one without motion, which is left out with exit status 1.

    Ideal wheels measure the recorded positions to 1e-6 m at 100 Hz.
    """
    for name in ('run_1', 'run_2'):
        write_recording(recording_of(eight(), name), tmp_path / name)
    write_recording(recording_of(eight().take(slice(0, 2)), 'short'), tmp_path / 'short')
    bags = [tmp_path / name for name in ('run_1', 'run_2', 'short')]
    outcome = call(
        capsys, 'wheels', *bags, '--runs', 2, '--models', 'swerve,ideal', '--json',
        '--out', tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 1
    (complaint,) = outcome.complaints
    assert str(tmp_path / 'short') in complaint
    record = json.loads(outcome.out)
    # 8 s at 1 m/s, which it comes to in 2 s.
    assert [drive_record['name'] for drive_record in record['drives']] == ['run_1', 'run_2']
    assert record['drives'][0]['way_m'] == pytest.approx(7.0, abs=1e-3)
    with (tmp_path / 'out' / 'runs.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    keys = [(row['variant'], row['drive'], row['run']) for row in rows]
    assert keys == list(itertools.product(('swerve', 'ideal'), ('run_1', 'run_2'), '12'))
    drifts = [float(row['alone_rms_m']) for row in rows]
    assert len(set(drifts[:4])) == 4
    assert max(drifts[4:]) < 1e-6
    again = call(capsys, 'wheels', bags[1], '--runs', 2, '--models', 'swerve', '--json')
    alone = json.loads(again.out)['variants'][0]['runs']
    assert [run['alone_rms_m'] for run in alone] == drifts[2:4]


def test_one_table_with_the_truth_is_sufficient(capsys: Capture, tmp_path: Path) -> None:
    """Place and attitude by stamp, as docs/reference/recordings.md says: no sensor, no
    velocity."""
    truth = eight()
    columns = 'stamp_ns', 'x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'
    zeros = 'vx_body', 'vy_body', 'vz_body', 'wx', 'wy', 'wz'
    (tmp_path / 'mine').mkdir()
    with (tmp_path / 'mine' / 'truth.csv').open('w', encoding='utf-8', newline='') as file:
        table = csv.writer(file)
        table.writerow([*columns, *zeros])
        for stamp, place, turn in zip(
            truth.stamp_ns.tolist(), truth.position.tolist(), truth.orientation.tolist(),
            strict=True,
        ):  # fmt: skip
            table.writerow([stamp, *place, *turn, *[0] * 6])
    outcome = call(capsys, 'wheels', tmp_path / 'mine', *SHORT, '--json')
    assert outcome.status == 0
    (drive,) = json.loads(outcome.out)['drives']
    assert drive['name'] == 'mine'
    assert drive['frames'] == 241
    options = tmp_path / 'mine', '--imu', 'ideal', '--out', tmp_path / 'o'
    assert call(capsys, 'simulate', *options).status == 0


def test_frames_with_tags_and_poses_are_counted(capsys: Capture) -> None:
    away = '--motion', 'accelerating', '--set', 'acceleration=[1,0,3]', '--duration', 20
    gone = call(capsys, 'wheels', *SHORT, *away, '--json')
    (drive,) = json.loads(gone.out)['drives']
    # After 1.2 s it is 2.2 m above the tags 5.1 m ahead: 23 degrees down; the picture ends at 22.
    assert drive['frames'] == 601
    assert drive['poses_taken'] <= drive['poses'] <= drive['frames_with_tags'] < 1.2 * 30
    assert drive['longest_blind_s'] > 18.8
    near = call(capsys, 'wheels', *SHORT, '--duration', 20)
    assert near.err == ''


def test_a_truth_without_tags_in_view_or_without_motion_is_refused(
    capsys: Capture, tmp_path: Path
) -> None:
    moving = eight()
    still = np.tile(moving.position[:1], (len(moving), 1))
    zero = np.zeros((len(moving), 3))
    stands = dataclasses.replace(moving, position=still, linear_velocity=zero)
    for name, truth in (('far', eight(ahead=500.0)), ('stands', stands)):
        write_recording(recording_of(truth), tmp_path / name)
        outcome = call(capsys, 'wheels', *SHORT, tmp_path / name)
        assert outcome.status == 2
        assert len(outcome.err.splitlines()) == 1
