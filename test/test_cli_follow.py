# SPDX-License-Identifier: Apache-2.0
"""`sim2real follow`: waypoints of recordings and tables, errors, plots and driven recordings."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_examples import Screen, call, check_refused, contents, run_of, segments

from sim2real_eval.benches.following import waypoints_of
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import VISION_TOPIC, WHEEL_TOPIC
from sim_sensors.camera.camera import load_camera
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.world.earth import DEFAULT_ORIGIN
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('bags')
    write_recording(run_of('drive_circle', 1), folder / 'circle_1')
    return folder / 'circle_1'


def test_equal_seeds_give_equal_tables_plots_and_recordings(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    line = ['follow', bag, '--controllers', 'yaw_pid,nonlinear', '--imu', 'chrono', '--seed', 3]
    line += ['--set', 'pose.position_std=0.01']
    outcome = call(capsys, *line, '--out', tmp_path / 'a')
    assert outcome.status == 0
    assert 'yaw_pid' in outcome.out
    assert call(capsys, *line, '--out', tmp_path / 'b').status == 0
    files = contents(tmp_path / 'a')
    assert files == contents(tmp_path / 'b')
    assert {'errors.csv', 'follow.json', 'circle_1.png', 'waypoints/circle_1.csv'} <= set(files)
    record = json.loads(files['follow.json'])
    with (tmp_path / 'a' / 'errors.csv').open() as file:
        rows = list(csv.DictReader(file))
    assert [row['controller'] for row in rows] == ['yaw_pid', 'nonlinear']
    for row in rows:
        errors = record['runs'][0]['controllers'][row['controller']]
        assert float(row['distance_mean_m']) == errors['distance']['mean']
        assert float(row['yaw_max_deg']) == errors['yaw']['max']
    real = read_recording(bag)
    driven = read_recording(tmp_path / 'a' / 'circle_1_nonlinear')
    # Truth and IMU are those of the simulated robot, at the stamps of the recorded run.
    assert driven.name == 'circle_1'
    assert driven.scenario == real.scenario
    assert driven.gps is None
    assert driven.truth is not None
    assert driven.imu is not None
    assert real.truth is not None
    assert driven.truth.stamp_ns[0] == real.truth.stamp_ns[0]
    assert abs(int(driven.truth.stamp_ns[-1] - real.truth.stamp_ns[-1])) <= 10_000_000
    way = real.truth.position[-1] - real.truth.position[0]
    assert driven.truth.position[-1] == pytest.approx(way, abs=0.2)
    assert np.mean(driven.imu.linear_acceleration[:, 2]) == pytest.approx(9.8, abs=0.5)


@pytest.mark.usefixtures('blank_pictures')
def test_waypoints_that_were_written_can_be_followed(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    call(capsys, 'follow', bag, '--controllers', 'nonlinear', '--out', tmp_path / 'a')
    table = tmp_path / 'a' / 'waypoints' / 'circle_1.csv'
    outcome = call(capsys, 'follow', table, '--controllers', 'nonlinear', '--json')
    again = json.loads(outcome.out)
    record = json.loads((tmp_path / 'a' / 'follow.json').read_text())
    assert again['pooled'] == record['pooled']


def test_runs_of_one_name_are_renamed_or_refused(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Tables are named by their folders; a table named like a recording is refused."""
    table = 't,x,y\n0,0,0\n1,1,0\n2,2,0\n'
    for folder in ('a', 'b'):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'way.csv').write_text(table)
    (tmp_path / 'circle_1.csv').write_text(table)
    ways = [tmp_path / 'a' / 'way.csv', tmp_path / 'b' / 'way.csv']
    outcome = call(capsys, 'follow', *ways, '--controllers', 'nonlinear', '--json')
    assert [run['run'] for run in json.loads(outcome.out)['runs']] == ['a_way', 'b_way']
    line = ['follow', bag, tmp_path / 'circle_1.csv', '--controllers', 'nonlinear', '--json']
    outcome = call(capsys, *line)
    assert outcome.status == 1
    assert len(outcome.complaints) == 1
    assert "'circle_1'" in outcome.complaints[0]


def test_a_part_is_followed_from_the_origin(bag: Path, capsys: Capture) -> None:
    outcome = call(capsys, 'follow', bag, '--start', 2, '--duration', 2, '--json')
    run = json.loads(outcome.out)['runs'][0]
    assert run['duration'] == pytest.approx(2.0, abs=0.2)
    assert list(run['controllers']) == list(TRACKERS)


@pytest.mark.usefixtures('blank_pictures')
def test_a_broken_recording_does_not_affect_the_others(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    write_recording(run_of('drive_line', 1).with_messages('truth', None), tmp_path / 'blind')
    outcome = call(
        capsys, 'follow', bag, tmp_path / 'blind', '--waypoints', 'truth', '--out', tmp_path / 'o'
    )
    assert outcome.status == 1
    assert len(outcome.complaints) == 1
    assert 'no truth topic' in outcome.complaints[0]
    assert (tmp_path / 'o' / 'circle_1_open_loop').is_dir()


@pytest.mark.usefixtures('blank_pictures')
def test_the_progress_bars_reach_their_ends_past_a_broken_recording(
    bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two recordings are read and one is written."""
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setattr(sys, 'stderr', screen := Screen())
    line = ['follow', bag, 'gone', '--controllers', 'yaw_pid', '--out', tmp_path / 'o']
    assert call(capsys, *line).status == 1
    counts = re.findall(r'(runs|writing)[^\r\n]*?(\d/\d)', screen.getvalue())
    assert ('runs', '2/2') in counts
    assert counts[-1] == ('writing', '1/1')


def test_waypoints_of_the_gps_are_those_of_the_truth_to_the_noise_of_the_fixes() -> None:
    recording = run_of('drive_circle', 1, gps='ch_gauss')
    truth, _ = waypoints_of(recording, 'truth')
    fixes, start_ns = waypoints_of(recording, 'gps')
    assert start_ns == int(recording.gps.stamp_ns[0])
    assert np.median(np.diff(truth.time)) == pytest.approx(0.2)
    end = np.hypot(truth.x[-1] - fixes.x[-1], truth.y[-1] - fixes.y[-1])
    assert end < 5.0
    assert any('course over ground' in note for note in fixes.notes)


@pytest.mark.usefixtures('blank_pictures')
def test_driven_recordings_have_the_sensors_of_simulate(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """An ideal magnetometer reads the field of the world at the robot; ideal wheel odometry gives
    its pose; the camera sees tags. All use one world, whose origin is where the drive starts.
    """
    (tmp_path / 'room.yaml').write_text(
        'earth_field: {model: constant, value: [0.0, 2.0e-5, -4.0e-5]}\n'
        'dipoles: [{position: [1.0, 0.5, 0.2], moment: 8.0}]\n'
        'tags: [{id: 1, size: 0.2, position: [6.0, 0.0, 0.5], rpy: [1.5708, 0.0, -1.5708]}]\n',
        encoding='utf-8',
    )
    outcome = call(
        capsys, 'follow', bag, '--controllers', 'nonlinear', '--mag', 'ideal', '--wheels', 'ideal',
        '--vision', 'tags', '--camera', 'ideal_vga', '--world', tmp_path / 'room.yaml',
        '--out', tmp_path / 'o',
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    driven = read_recording(tmp_path / 'o' / 'circle_1_nonlinear')
    truth, field = driven.truth, driven.mag
    assert truth is not None
    assert field is not None
    place = np.column_stack(
        [np.interp(field.stamp_ns, truth.stamp_ns, truth.position[:, k]) for k in range(3)]
    )
    expected = load_world(tmp_path / 'room.yaml').magnetic_field(place)
    assert np.ptp(np.linalg.norm(expected, axis=1)) > 1e-7
    np.testing.assert_allclose(
        np.linalg.norm(field.magnetic_field, axis=1), np.linalg.norm(expected, axis=1), rtol=1e-3
    )
    frames, info = driven.features, driven.camera_info
    assert frames is not None
    assert len(frames.ids) > 0
    assert info is not None
    np.testing.assert_array_equal(info.stamp_ns, frames.stamp_ns)
    assert (info.matrix == load_camera('ideal_vga').intrinsics.matrix).all()
    wheels = driven.messages[WHEEL_TOPIC]
    at = np.searchsorted(truth.stamp_ns, wheels.stamp_ns)
    np.testing.assert_allclose(wheels.position, truth.position[at], atol=1e-3)
    vision = driven.messages[VISION_TOPIC]
    at = np.searchsorted(truth.stamp_ns, vision.stamp_ns)
    off = np.linalg.norm(vision.position[:, :2] - truth.position[at, :2], axis=1)
    assert len(vision) > 10
    assert np.median(off) < 0.5


@pytest.mark.usefixtures('blank_pictures')
def test_without_recorded_fixes_the_origin_is_that_of_the_world(
    tmp_path: Path, capsys: Capture
) -> None:
    write_recording(run_of('drive_line', 1).with_messages('gps', None), tmp_path / 'indoors')
    outcome = call(
        capsys, 'follow', tmp_path / 'indoors', '--controllers', 'open_loop', '--gps', 'ch_gauss',
        '--world', 'chessboard', '--out', tmp_path / 'o',
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    (driven,) = (tmp_path / 'o').glob('*_open_loop')
    fixes = read_recording(driven).gps
    assert fixes is not None
    frame = load_world('chessboard').frame
    assert frame.latitude_deg != DEFAULT_ORIGIN.latitude_deg
    first = frame.to_enu(fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1])
    assert np.linalg.norm(first) < 1.0


WRONG = {
    'follow': 'required: RECORDING|CSV',
    'follow gone': 'gone: no such file or folder',
    'follow {bag} --controllers mpc': "'mpc' is not allowed; must be one of open_loop",
    'follow {bag} --controllers ,': '--controllers: names none',
    'follow {bag} --set robot.slip=2': 'robot.slip: 2 is not allowed; must be a number',
    'follow {bag} --set robot.x=2': 'robot.x: unknown parameter',
    'follow {bag} --set robot=2': 'robot: 2 is not allowed',
    'follow {bag} --set robot.slip.a=2': 'robot.slip.a: unknown parameter',
    'follow {bag} --set robot': 'must be KEY=VALUE',
    'follow {bag} --controller-config gone.yaml': 'gone.yaml: cannot be read',
    'follow {bag} --imu chrono': '--imu: goes with --out only',
    'follow {bag} --mag ideal': '--mag: goes with --out only',
    'follow {bag} --world tag_ring': '--world: goes with --out only',
    'follow {bag} --mag idael --out o': "'idael' is unknown (did you mean ideal?)",
    'follow {bag} --camera webcam_vga --out o': '--camera: sees nothing',
    'follow {bag} --controllers nonlinear --vision tags --out o': 'the world has no tags',
    'follow {bag} --origin 1,2 --imu chrono --out o': '--origin: goes with --gps or --mag',
    'follow {bag} --out {bag}': 'exists',
    'follow {bag} --out o --compare': '--compare: goes with --imu and --out only',
    'follow {bag} --start 100': '0 waypoints from 100 s to inf s; must be >= 2',
    'follow {bag} --waypoint-rate 0': "'0' must be a number > 0",
}


@pytest.mark.parametrize('line', WRONG)
def test_a_wrong_command_line_is_refused_in_one_line(
    line: str, bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, WRONG[line], *line.format(bag=bag).split())


@pytest.mark.usefixtures('blank_pictures')
def test_on_the_real_drive_the_controllers_rank_as_in_the_thesis(
    real_dir: Path, capsys: Capture
) -> None:
    """Feedback beats the open loop; distance control has less distance and more yaw error.

    Figures of all 12 segments are in docs/howto/follow_a_path.md; here one with many turns.
    """
    bags = segments(real_dir, [9])
    record = json.loads(call(capsys, 'follow', *bags, '--json').out)
    distance = {name: errors['distance']['mean'] for name, errors in record['pooled'].items()}
    yaw = {name: errors['yaw']['rms'] for name, errors in record['pooled'].items()}
    assert distance['open_loop'] > distance['yaw_pid'] > distance['yaw_distance_pid']
    assert distance['nonlinear'] < 0.15
    assert yaw['yaw_pid'] < yaw['nonlinear'] < yaw['yaw_distance_pid']
    assert yaw['yaw_pid'] < 0.3 * yaw['open_loop']


@pytest.mark.usefixtures('blank_pictures')
def test_compare_reports_the_yaw_error_of_the_driven_run(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Waypoints, robot, IMU model, comparison: the pipeline of [Cesenek2019]."""
    outcome = call(
        capsys, 'follow', bag, '--controllers', 'yaw_pid', '--imu', 'airsim',
        '--out', tmp_path / 'o', '--compare',
    )  # fmt: skip
    assert outcome.status == 0
    assert 'yaw_pid: 1 simulated and 1 real runs' in outcome.out
    files = contents(tmp_path / 'o')
    (answer,) = json.loads(files['compare/comparison.json'])['answer']
    assert (answer['sensor'], answer['nearest']) == ('imu', 'yaw_pid')
    assert call(capsys, 'follow', bag, '--out', tmp_path / 'o').status == 2
    assert {'compare/yaw_error.png', 'compare/comparison.csv', 'circle_1.png'} <= set(files)
