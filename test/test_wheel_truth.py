# SPDX-License-Identifier: Apache-2.0
"""`sim2real wheels` on recorded paths: what is taken of them, what it says of slopes and gaps."""

from __future__ import annotations

import csv
import dataclasses
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
def test_wheels_on_a_slope_tell_the_way_along_it(pitch_deg: float) -> None:
    """Exact wheels on a slope a are off by s (1 - cos a) after the path s; rms L/sqrt(3)."""
    pitch, length = math.radians(pitch_deg), 10.0
    drive = RecordedMotion.of_recording(recording_of(ramp(length, pitch)))
    assert drive.way == pytest.approx(length, rel=1e-12)
    assert drive.tilt == pytest.approx(pitch, abs=1e-12)
    assert drive.height == pytest.approx(length * math.sin(pitch), abs=1e-12)
    # The mean over 1000 samples is that over the way to 0.1 %.
    expected = length * (1.0 - math.cos(pitch)) / math.sqrt(3.0)
    assert drive.planar_error == pytest.approx(expected, rel=2e-3, abs=1e-12)
    remarks = [note for note in drive.notes() if 'level ground' in str(note)]
    assert len(remarks) == (pitch_deg > 0.0)
    assert all(note.numbers['tilt'] == pytest.approx(pitch_deg) for note in remarks)


def test_a_truth_without_velocities_has_those_of_its_positions() -> None:
    """Only the topic that a judge compares its speed with is written."""
    truth = eight()
    blind = dataclasses.replace(truth, linear_velocity=np.zeros((len(truth), 3)))
    recording = recording_of(blind)
    odometry = {**recording.messages, '/wheel/odometry': truth}
    drive = RecordedMotion.of_recording(dataclasses.replace(recording, messages=odometry))
    assert set(drive.recording.messages) == {TOPIC}
    np.testing.assert_allclose(
        drive.truth.linear_velocity[5:-5], truth.linear_velocity[5:-5], atol=1e-3
    )
    place, heading = drive.at(truth.stamp_ns)
    np.testing.assert_allclose(place, truth.position[:, :2], atol=1e-12)
    yaw = Rotation.from_quat(truth.orientation).as_euler('ZYX')[:, 0]
    np.testing.assert_allclose(np.sin(heading - yaw), 0.0, atol=1e-12)
    assert RecordedMotion.of_recording(recording_of(truth)).start_ns == START_NS


def test_recorded_paths_are_driven_each_with_noise_of_its_own(
    capsys: Capture, tmp_path: Path
) -> None:
    """Two bags of one and the same motion, and one that is none: left out, exit status 1.

    Ideal wheels tell the recorded place to what 100 Hz samples of it leave, 1e-6 m.
    """
    for name in ('run_1', 'run_2'):
        write_recording(recording_of(eight(), name), tmp_path / name)
    write_recording(recording_of(eight().take(slice(0, 2)), 'short'), tmp_path / 'short')
    bags = [tmp_path / name for name in ('run_1', 'run_2', 'short')]
    outcome = call(
        capsys, 'wheels', '--truth', *bags, '--runs', 2, '--models', 'swerve,ideal', '--json',
        '--out', tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 1
    (complaint,) = outcome.complaints
    assert f'left out: {tmp_path / "short"}: odometry has 2 samples' in complaint
    record = json.loads(outcome.out)
    # 8 s at 1 m/s, which it comes to in 2 s.
    assert [drive_record['name'] for drive_record in record['drives']] == ['run_1', 'run_2']
    assert record['drives'][0]['way_m'] == pytest.approx(7.0, abs=1e-3)
    with (tmp_path / 'out' / 'runs.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    keys = [(row['variant'], row['drive'], row['run']) for row in rows]
    assert keys == [
        (v, d, r) for v in ('swerve', 'ideal') for d in ('run_1', 'run_2') for r in '12'
    ]
    drifts = [float(row['alone_rms_m']) for row in rows]
    assert len(set(drifts[:4])) == 4
    assert max(drifts[4:]) < 1e-6
    again = call(capsys, 'wheels', '--truth', bags[1], '--runs', 2, '--models', 'swerve', '--json')
    alone = json.loads(again.out)['variants'][0]['runs']
    assert [run['alone_rms_m'] for run in alone] == drifts[2:4]


def test_one_table_with_the_truth_is_enough(capsys: Capture, tmp_path: Path) -> None:
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
    outcome = call(capsys, 'wheels', '--truth', tmp_path / 'mine', *SHORT, '--json')
    assert outcome.status == 0
    (drive,) = json.loads(outcome.out)['drives']
    assert drive['name'] == 'mine'
    assert drive['frames'] == 241
    twin = call(
        capsys, 'simulate', '--truth', tmp_path / 'mine', '--imu', 'ideal', '--out', tmp_path / 'o'
    )
    assert twin.status == 0


def test_a_camera_that_sees_little_is_told(capsys: Capture, tmp_path: Path) -> None:
    """Away from the tags `with` is wheels alone, and is said to be; among them nothing is."""
    away = '--motion', 'accelerating', '--set', 'acceleration=[1,0,3]', '--duration', 20
    gone = call(capsys, 'wheels', *SHORT, *away, '--json')
    (drive,) = json.loads(gone.out)['drives']
    # After 1.2 s it is 2.2 m above the tags 5.1 m ahead: 23 degrees down; the picture ends at 22.
    assert drive['frames'] == 601
    assert drive['poses_taken'] <= drive['poses'] <= drive['frames_with_tags'] < 1.2 * 30
    assert drive['longest_blind_s'] > 18.8
    output = call(capsys, 'wheels', *SHORT, *away)
    assert f'a tag in view in {drive["frames_with_tags"]} of 601 frames; ' in output.out
    assert 'no pose for up to 18.9 s of 20 s' in output.err
    near = call(capsys, 'wheels', *SHORT, '--duration', 20)
    assert near.err == ''
    write_recording(recording_of(eight(ahead=500.0)), tmp_path / 'far')
    far = call(capsys, 'wheels', *SHORT, '--truth', tmp_path / 'far')
    assert far.status == 2
    assert 'no tag is ever in view' in far.err
    assert len(far.err.splitlines()) == 1


def test_a_truth_that_stands_is_refused(capsys: Capture, tmp_path: Path) -> None:
    moving = eight()
    still = np.tile(moving.position[:1], (len(moving), 1))
    stands = dataclasses.replace(
        moving, position=still, linear_velocity=np.zeros((len(moving), 3))
    )
    write_recording(recording_of(stands), tmp_path / 'stands')
    outcome = call(capsys, 'wheels', *SHORT, '--truth', tmp_path / 'stands')
    assert outcome.status == 2
    assert 'stands: the truth never leaves its place' in outcome.err
