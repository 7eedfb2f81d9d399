# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real follow`: waypoints of recordings and tables, errors, plots and driven recordings."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents, run_of, segments

from sim2real_eval.benches.following import FollowedRun, follow_waypoints, waypoints_of
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.following import following_figure, wheel_figure
from sim2real_eval.simulation.twin import VISION_TOPIC, WHEEL_TOPIC
from sim_sensors.following.follower import FollowSettings
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.motion.vehicles import DifferentialDrive
from sim_sensors.motion.waypoints import repair_waypoints
from sim_sensors.world.geodesy import DEFAULT_ORIGIN
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('bags')
    write_recording(run_of('drive_circle', 1), folder / 'circle_1')
    return folder / 'circle_1'


def test_equal_seeds_give_equal_folders(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    line = ['follow', bag, '--controllers', 'yaw_pid,nonlinear', '--imu', 'chrono', '--seed', 3]
    line += ['--set', 'pose.position_std=0.01']
    outcome = call(capsys, *line, '--out', tmp_path / 'a')
    assert outcome.status == 0
    assert call(capsys, *line, '--out', tmp_path / 'b').status == 0
    files = contents(tmp_path / 'a')
    assert files == contents(tmp_path / 'b')
    record = json.loads(files['follow.json'])
    rows = list(csv.DictReader(io.StringIO(files['errors.csv'].decode())))
    assert [row['controller'] for row in rows] == ['yaw_pid', 'nonlinear']
    for row in rows:
        errors = record['runs'][0]['controllers'][row['controller']]
        assert float(row['distance_mean_m']) == errors['distance']['mean']
    real = read_recording(bag)
    driven = read_recording(tmp_path / 'a' / 'circle_1_nonlinear')
    # Truth and IMU are those of the simulated robot, at the stamps of the recorded run.
    assert (driven.name, driven.scenario, driven.gps) == ('circle_1', real.scenario, None)
    assert driven.truth.stamp_ns[0] == real.truth.stamp_ns[0]
    assert abs(int(driven.truth.stamp_ns[-1] - real.truth.stamp_ns[-1])) <= 10_000_000
    way = real.truth.position[-1] - real.truth.position[0]
    assert driven.truth.position[-1] == pytest.approx(way, abs=0.2)
    assert np.mean(driven.imu.linear_acceleration[:, 2]) == pytest.approx(9.8, abs=0.5)


def test_wheel_rates_are_written_with_waypoints_and_series(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """trajectory_data.csv of [Cesenek2019]; equal wheels give the speed."""
    call(capsys, 'follow', bag, '--controllers', 'yaw_pid', '--out', tmp_path / 'o')
    folder = tmp_path / 'o'
    waypoints = list(csv.DictReader((folder / 'waypoints' / 'circle_1.csv').open()))
    assert list(waypoints[0]) == ['t', 'x', 'y', 'theta', 'left_rate', 'right_rate']
    series = list(csv.DictReader((folder / 'series' / 'circle_1_yaw_pid.csv').open()))
    columns = {name: np.array([float(row[name]) for row in series]) for name in series[0]}
    speed = 0.1 * (columns['left_rate'] + columns['right_rate']) / 2.0
    np.testing.assert_allclose(columns['speed'], speed, atol=1e-9)
    # A circle to the left: the right wheel is the faster one.
    assert np.median(columns['right_command'] - columns['left_command']) > 0.0
    assert (folder / 'circle_1_wheels.png').stat().st_size > 10_000


def followed_circle(settings: FollowSettings, controllers: list[str]) -> FollowedRun:
    """Coarse waypoints of a circle: a chord is 0.24 m from the arc."""
    time = np.arange(0.0, 13.0, 1.0)
    path = repair_waypoints(time, 2.0 * np.sin(time), 2.0 - 2.0 * np.cos(time), time)
    return follow_waypoints('circle', path, settings, controllers)


def test_the_figure_draws_the_reference_of_the_errors_not_chords() -> None:
    """On the figure the robot is as far from the reference as its errors say."""
    run = followed_circle(FollowSettings(), ['nonlinear'])
    plan = following_figure(run).axes[0]
    lines = {line.get_label(): np.column_stack(line.get_data()) for line in plan.lines}
    gaps = np.hypot(*(lines['reference'] - lines['nonlinear']).T)
    np.testing.assert_allclose(gaps, run.drives['nonlinear'].errors.distance, atol=1e-12)


@pytest.mark.parametrize('lag', [0.0, 0.5])
def test_the_panel_of_the_distance_shows_errors_of_any_size(lag: float) -> None:
    """Also below 1 mm, which a perfect robot has."""
    settings = FollowSettings(robot=DifferentialDrive(wheel_lag=lag), interpolation='twist')
    run = followed_circle(settings, ['open_loop', 'nonlinear'])
    panel = following_figure(run).axes[1]
    low, high = panel.get_ylim()
    for line, drive in zip(panel.lines, run.drives.values(), strict=True):
        drawn = np.asarray(line.get_ydata())
        assert np.isfinite(drawn).all()
        assert drawn.max() < high
        # Errors of rounding are not drawn.
        assert np.mean(drawn > low) > 0.5 or drive.errors.distance.max() < 1e-8


def test_the_figure_of_the_wheels_draws_commands_and_driven_rates() -> None:
    run = followed_circle(FollowSettings(), ['yaw_pid', 'lqr'])
    figure = wheel_figure(run)
    assert len(figure.axes) == 6
    for controller, row in zip(run.drives, (figure.axes[:3], figure.axes[3:]), strict=True):
        drive = run.drives[controller]
        for panel, wheel in zip(row[:2], (0, 1), strict=True):
            driven, commanded = (np.asarray(line.get_ydata()) for line in panel.lines)
            np.testing.assert_allclose(driven, drive.wheel_rates[:, wheel])
            np.testing.assert_allclose(commanded, drive.wheel_commands[:, wheel])


@pytest.mark.usefixtures('blank_pictures')
def test_overwrite_replaces_a_comparison(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    line = ['follow', bag, '--controllers', 'yaw_pid', '--imu', 'airsim', '--compare']
    line += ['--out', tmp_path / 'o', '--overwrite']
    assert [call(capsys, *line).status for _ in range(2)] == [0, 0]


@pytest.mark.usefixtures('blank_pictures')
def test_waypoints_written_to_a_table_can_be_followed(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    call(capsys, 'follow', bag, '--controllers', 'nonlinear', '--out', tmp_path / 'a')
    table = tmp_path / 'a' / 'waypoints' / 'circle_1.csv'
    outcome = call(capsys, 'follow', table, '--controllers', 'nonlinear', '--json')
    again = json.loads(outcome.out)
    record = json.loads((tmp_path / 'a' / 'follow.json').read_text())
    assert again['pooled'] == record['pooled']


def test_tables_with_equal_names_are_labelled_by_their_folders(
    tmp_path: Path, capsys: Capture
) -> None:
    table = 't,x,y\n0,0,0\n1,1,0\n2,2,0\n'
    for folder in ('a', 'b'):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'way.csv').write_text(table)
    ways = [tmp_path / 'a' / 'way.csv', tmp_path / 'b' / 'way.csv']
    outcome = call(capsys, 'follow', *ways, '--controllers', 'nonlinear', '--json')
    assert [run['run'] for run in json.loads(outcome.out)['runs']] == ['a_way', 'b_way']


def test_a_part_of_a_path_can_be_followed_from_its_start(bag: Path, capsys: Capture) -> None:
    outcome = call(capsys, 'follow', bag, '--start', 2, '--duration', 2, '--json')
    run = json.loads(outcome.out)['runs'][0]
    assert run['duration'] == pytest.approx(2.0, abs=0.2)
    assert list(run['controllers']) == list(TRACKERS)


@pytest.mark.usefixtures('blank_pictures')
def test_a_broken_recording_does_not_affect_the_others(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    write_recording(run_of('drive_line', 1).with_messages('truth', None), tmp_path / 'blind')
    words = ('follow', bag, tmp_path / 'blind', '--waypoints', 'truth', '--out', tmp_path / 'o')
    outcome = call(capsys, *words)
    assert (outcome.status, len(outcome.complaints)) == (1, 1)
    assert (tmp_path / 'o' / 'circle_1_open_loop').is_dir()


def test_waypoints_of_the_gps_are_within_5_m_of_those_of_the_truth() -> None:
    recording = run_of('drive_circle', 1, gps='ch_gauss')
    truth, _ = waypoints_of(recording, 'truth')
    fixes, start_ns = waypoints_of(recording, 'gps')
    assert start_ns == int(recording.gps.stamp_ns[0])
    assert np.median(np.diff(truth.time)) == pytest.approx(0.2)
    end = np.hypot(truth.x[-1] - fixes.x[-1], truth.y[-1] - fixes.y[-1])
    assert end < 5.0


@pytest.mark.usefixtures('blank_pictures')
def test_recordings_of_drives_contain_magnetometer_camera_wheels_and_vision(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """All use one world, whose origin is where the drive starts; ideal sensors give the truth."""
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
    axes = [np.interp(field.stamp_ns, truth.stamp_ns, axis) for axis in truth.position.T]
    place = np.column_stack(axes)
    expected = np.linalg.norm(load_world(tmp_path / 'room.yaml').magnetic_field(place), axis=1)
    assert np.ptp(expected) > 1e-7
    np.testing.assert_allclose(np.linalg.norm(field.magnetic_field, axis=1), expected, rtol=1e-3)
    frames, info = driven.features, driven.camera_info
    assert len(frames.ids) > 0
    np.testing.assert_array_equal(info.stamp_ns, frames.stamp_ns)
    wheels = driven.messages[WHEEL_TOPIC]
    at = np.searchsorted(truth.stamp_ns, wheels.stamp_ns)
    np.testing.assert_allclose(wheels.position, truth.position[at], atol=1e-3)
    vision = driven.messages[VISION_TOPIC]
    at = np.searchsorted(truth.stamp_ns, vision.stamp_ns)
    off = np.linalg.norm(vision.position[:, :2] - truth.position[at, :2], axis=1)
    assert np.median(off) < 0.5


@pytest.mark.usefixtures('blank_pictures')
def test_without_fixes_the_origin_of_the_world_is_used(tmp_path: Path, capsys: Capture) -> None:
    write_recording(run_of('drive_line', 1).with_messages('gps', None), tmp_path / 'indoors')
    outcome = call(
        capsys, 'follow', tmp_path / 'indoors', '--controllers', 'open_loop', '--gps', 'ch_gauss',
        '--world', 'chessboard', '--out', tmp_path / 'o',
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    (driven,) = (tmp_path / 'o').glob('*_open_loop')
    fixes = read_recording(driven).gps
    frame = load_world('chessboard').frame
    assert frame.latitude_deg != DEFAULT_ORIGIN.latitude_deg
    first = frame.to_enu(fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1])
    assert np.linalg.norm(first) < 1.0


@pytest.mark.parametrize(
    ('options', 'named'),
    [
        ('--controllers mpc', 'mpc'),
        ('--controllers ,', '--controllers'),
        ('--set robot.slip=2', 'robot.slip: 2'),
        ('--set robot.x=2', 'robot.x'),
        ('--set robot', 'KEY=VALUE'),
        ('--controller-config gone.yaml', 'gone.yaml'),
        ('--imu chrono', '--imu'),
        ('--mag idael --out o', 'idael'),
        ('--camera webcam_vga --out o', '--camera'),
        ('--controllers nonlinear --vision tags --out o', 'tags'),
        ('--origin 1,2 --imu chrono --out o', '--origin'),
        ('--out {bag}', 'exists'),
        ('--out o --compare', '--compare'),
        ('--out o --yaw gyro', '--yaw'),
        ('--start 100', '100 s'),
        ('--waypoint-rate 0', '--waypoint-rate'),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    options: str, named: str, bag: Path, tmp_path: Path, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, named, 'follow', bag, *options.format(bag=bag).split())


@pytest.mark.usefixtures('blank_pictures')
def test_controllers_rank_as_in_the_thesis_on_real_data(real_dir: Path, capsys: Capture) -> None:
    """Feedback beats the open loop, and distance control has more yaw error."""
    bags = segments(real_dir, [9])
    record = json.loads(call(capsys, 'follow', *bags, '--json').out)
    distance = {name: errors['distance']['mean'] for name, errors in record['pooled'].items()}
    yaw = {name: errors['yaw']['rms'] for name, errors in record['pooled'].items()}
    assert distance['open_loop'] > distance['yaw_pid'] > distance['yaw_distance_pid']
    assert distance['nonlinear'] < 0.15
    assert yaw['yaw_pid'] < yaw['nonlinear'] < yaw['yaw_distance_pid']
    assert yaw['yaw_pid'] < 0.3 * yaw['open_loop']


@pytest.mark.usefixtures('blank_pictures')
def test_the_yaw_of_an_imu_without_orientation_is_compared_by_rates(
    real_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    line = ['follow', *segments(real_dir, [9]), '--controllers', 'yaw_pid', '--compare']
    line += ['--imu', 'bno055_fusion', '--out', tmp_path / 'o', '--yaw', 'gyro']
    assert call(capsys, *line).status == 0
    assert (tmp_path / 'o' / 'compare' / 'yaw_error.png').exists()


@pytest.mark.usefixtures('blank_pictures')
def test_compare_reports_the_yaw_error_of_the_drive(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Waypoints, robot, IMU model, comparison: the pipeline of [Cesenek2019]."""
    outcome = call(
        capsys, 'follow', bag, '--controllers', 'yaw_pid', '--imu', 'airsim',
        '--out', tmp_path / 'o', '--compare',
    )  # fmt: skip
    assert outcome.status == 0
    files = contents(tmp_path / 'o')
    (answer,) = json.loads(files['compare/comparison.json'])['answer']
    assert (answer['sensor'], answer['nearest']) == ('imu', 'yaw_pid')
    assert {'compare/yaw_error.png', 'compare/comparison.csv', 'circle_1.png'} <= set(files)
