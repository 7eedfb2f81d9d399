# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real simulate`: recordings can be read, judged and repeated to the byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, contents, write_runs
from recording_examples import arrays_equal

from sim2real_eval.recording.reading import read_recording
from sim_sensors.motion.scenarios import Circle

Capture = pytest.CaptureFixture[str]
SHORT = ('--duration', 6)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3', 'csv'])
def test_equal_seeds_give_equal_recordings(tmp_path: Path, capsys: Capture, storage: str) -> None:
    words = ['simulate', '--motion', 'drive_line', *SHORT, '--runs', 2, '--storage', storage]
    folders = {'a': 3, 'b': 3, 'c': 4}
    for folder, seed in folders.items():
        outcome = call(capsys, *words, '--seed', seed, '--out', tmp_path / folder / 'out')
        assert outcome.status == 0
    a, b, c = (contents(tmp_path / folder) for folder in folders)
    assert a == b
    assert a.keys() == c.keys()
    assert a != c
    runs = [read_recording(tmp_path / 'a/out' / name) for name in ('line_1', 'line_2')]
    for number, run in enumerate(runs, start=1):
        assert (run.name, run.scenario) == (f'line_{number}', 'line')
        assert (len(run.imu), len(run.gps), len(run.truth)) == (601, 61, 601)
    assert not arrays_equal(*(run.messages['/imu/data'] for run in runs))
    # The motions of the runs differ too.
    assert not arrays_equal(*(run.messages['/ground_truth/odometry'] for run in runs))


def test_the_estimated_speed_of_a_simulated_run_is_close_to_the_true_one(
    tmp_path: Path, capsys: Capture
) -> None:
    """Judge `clean` meets the true speed to 0.3 m/s with an ideal IMU and AirSim GPS."""
    outcome = call(
        capsys, 'simulate', '--motion', 'line', '--duration', 12, '--imu', 'ideal', '--gps',
        'airsim', '--out', tmp_path,
    )  # fmt: skip
    assert outcome.out.splitlines() == [str(tmp_path / 'line_1')]
    table = tmp_path / 'x.csv'
    judged = call(capsys, 'judge', tmp_path / 'line_1', '--config', 'clean', '--out', table)
    assert judged.status == 0
    data = np.genfromtxt(table, delimiter=',', names=True)
    truth = read_recording(tmp_path / 'line_1').truth
    speed = np.interp(data['stamp_ns'], truth.stamp_ns, truth.linear_velocity[:, 0])
    late = data['stamp_ns'] > truth.stamp_ns[0] + 6e9
    assert np.hypot(data['vx'], data['vy'])[late] == pytest.approx(speed[late], abs=0.3)


def test_the_option_set_changes_the_motion(tmp_path: Path, capsys: Capture) -> None:
    outcome = call(
        capsys, 'simulate', '--motion', 'circle', *SHORT, '--set', 'radius=5', '--set',
        'clockwise=true', '--out', tmp_path,
    )  # fmt: skip
    assert outcome.status == 0
    truth = read_recording(tmp_path / 'circle_1').truth
    expected = Circle(duration=6.0, radius=5.0, clockwise=True).at(np.array([4.0]))
    np.testing.assert_allclose(truth.position[400], expected.position[0], atol=1e-12)


def test_a_recorded_truth_is_measured_by_simulated_sensors(
    tmp_path: Path, capsys: Capture
) -> None:
    """The truth and the real sensor are copied unchanged; the other sensor is simulated."""
    (path,) = write_runs(tmp_path / 'bags', ('drive_circle', 1))
    out = tmp_path / 'twins'
    outcome = call(
        capsys, 'simulate', path, '--imu', 'real', '--gps', 'ch_gauss', '--runs', 2,
        '--out', out, '--json',
    )  # fmt: skip
    assert outcome.status == 0
    written = json.loads(outcome.out)
    assert [summary['path'] for summary in written] == [
        str(out / f'circle_1_{number}') for number in (1, 2)
    ]
    assert {summary['scenario'] for summary in written} == {'circle'}
    real = read_recording(path)
    twins = [read_recording(summary['path']) for summary in written]
    for twin in twins:
        assert arrays_equal(twin.messages['/imu/data'], real.messages['/imu/data'])
        topic = '/ground_truth/odometry'
        assert arrays_equal(twin.messages[topic], real.messages[topic])
        assert not arrays_equal(twin.messages['/gps/fix'], real.messages['/gps/fix'])
    assert not arrays_equal(*(twin.messages['/gps/fix'] for twin in twins))


def test_a_simulation_without_gps_has_no_fixes(tmp_path: Path, capsys: Capture) -> None:
    """Fixes are neither simulated nor copied, as for indoor motion capture."""
    words = '--duration', 2, '--imu', 'ideal', '--out'
    assert call(capsys, 'simulate', '--motion', 'circle', *words, tmp_path / 'fixes').status == 0
    without = 'simulate', '--gps', 'none', '--mag', 'ideal', '--imu', 'ideal'
    for where, more in (
        ('motion', ('--motion', 'circle', '--duration', 2)),
        ('truth', (tmp_path / 'fixes' / 'circle_1',)),
    ):
        assert call(capsys, *without, *more, '--out', tmp_path / where).status == 0
        recording = read_recording(tmp_path / where / 'circle_1')
        assert recording.gps is None
        assert recording.mag is not None
        assert '/gps/fix' not in recording.messages


def test_a_missing_truth_is_named_and_the_others_are_simulated(
    tmp_path: Path, capsys: Capture
) -> None:
    (path,) = write_runs(tmp_path / 'bags', ('drive_circle', 1))
    out = tmp_path / 'twins'
    outcome = call(capsys, 'simulate', tmp_path / 'gone', path, '--out', out)
    assert outcome.status == 1
    (complaint,) = outcome.complaints
    assert str(tmp_path / 'gone') in complaint
    assert outcome.out.splitlines() == [str(out / 'circle_1')]
    assert [path.name for path in out.iterdir()] == ['circle_1']


@pytest.mark.parametrize('on_truth', [False, True])
def test_missing_runs_are_added_only_by_the_same_command(
    tmp_path: Path, capsys: Capture, on_truth: bool
) -> None:
    """Runs of several models or seeds in one folder would count as repetitions."""
    (path,) = write_runs(tmp_path / 'bags', ('drive_circle', 1))
    out = tmp_path / 'made'
    motion = [path] if on_truth else ['--motion', 'circle', *SHORT]
    words = ['simulate', *motion, '--gps', 'ch_rw', '--out', out, '--runs', 3]
    assert call(capsys, *words).status == 0
    whole = contents(out)
    names = sorted(folder.name for folder in out.iterdir())
    shutil.rmtree(out / names[0])
    assert call(capsys, *words).status == 0
    assert contents(out) == whole
    shutil.rmtree(out / names[2])
    before = contents(out)
    for other in (['--seed', 5], ['--gps', 'ch_gauss'], ['--storage', 'csv']):
        refused = call(capsys, *words, *other)
        assert refused.status == 2
        assert names[0] in refused.complaints[0]
        assert contents(out) == before


def test_a_folder_that_is_not_a_recording_is_not_overwritten(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / 'circle_2').mkdir()
    words = ['simulate', '--motion', 'circle', *SHORT, '--runs', 3, '--out', tmp_path]
    outcome = call(capsys, *words)
    assert outcome.status == 1
    assert 'circle_2: exists' in outcome.complaints[0]
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ['circle_1', 'circle_2']
    assert not list((tmp_path / 'circle_2').iterdir())
