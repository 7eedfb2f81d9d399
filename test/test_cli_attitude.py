# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real attitude`: simulated and recorded runs, the result folder, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents

Capture = pytest.CaptureFixture[str]
FILES = {'.attitude.json.files', 'attitude.json', 'errors.csv', 'errors.png', 'consistency.png'}
SHORT = '--camera', 'none', '--runs', 2, '--duration', 2, '--jobs', 1


def test_simulated_runs_write_table_record_and_plots(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ['attitude', *SHORT, '--seed', 3, '--out', 'case']
    printed = call(capsys, *words, '--json')
    assert printed.status == 0
    assert {path.name for path in Path('case').iterdir()} == FILES
    record = json.loads(Path('case/attitude.json').read_text(encoding='utf-8'))
    assert record == json.loads(printed.out)
    assert [row['name'] for row in record['consistency']] == [
        'NEES orientation', 'NIS accelerometer', 'NIS magnetometer',
    ]  # fmt: skip
    table = np.genfromtxt('case/errors.csv', delimiter=',', names=True)
    assert len(table) == 201
    first = record['runs'][0]
    for i, angle in enumerate(record['angles']):
        rmse = np.sqrt(np.mean(table[f'{angle}_rad'] ** 2))
        np.testing.assert_allclose(rmse, first['rmse_rad'][i])
    for axis, share in zip('xyzw', first['inside_99'], strict=True):
        inside = np.abs(table[f'q{axis}']) <= table[f'q{axis}_bound_99']
        np.testing.assert_allclose(inside.mean(), share)
    rmse = np.array([run['rmse_rad'] for run in record['runs']])
    np.testing.assert_allclose(record['rmse_rad'], np.sqrt(np.mean(rmse**2, axis=0)))

    check_refused(capsys, 'case: exists', *words)
    before = contents(Path('case'))
    assert call(capsys, *words, '--overwrite').status == 0
    assert contents(Path('case')) == before


def test_an_unmodelled_magnet_makes_the_filter_overconfident(capsys: Capture) -> None:
    outcome = call(
        capsys, 'attitude', *SHORT, '--world', 'dipole_room', '--motion', 'swaying', '--set',
        'position=[4.0,5.0,1.2]',
    )  # fmt: skip
    assert outcome.status == 0
    (line,) = (row for row in outcome.out.splitlines() if row.startswith('NEES'))
    assert 'overconfident' in line


def test_the_attitude_of_a_simulated_recording_is_estimated(
    capsys: Capture, tmp_path: Path
) -> None:
    """Errors stay below three stated standard deviations for a motion without acceleration."""
    assert call(
        capsys, 'simulate', '--motion', 'swaying', '--duration', 6, '--imu', 'xsens_mtx', '--mag',
        'xsens_mtx', '--world', 'default', '--out', tmp_path,
    ).status == 0  # fmt: skip
    bag = tmp_path / 'swaying_1'
    for more in ((), ('--world', 'default')):
        outcome = call(capsys, 'attitude', bag, *more, '--json')
        assert outcome.status == 0
        record = json.loads(outcome.out)
        assert np.degrees(record['rmse_rad']).max() < 0.5
        assert min(record['inside_99'].values()) > 0.9
    assert call(
        capsys, 'simulate', '--motion', 'swaying', '--duration', 3, '--imu', 'xsens_mtx', '--mag',
        'xsens_mtx', '--world', 'chessboard', '--camera', 'webcam_vga', '--set',
        'position=[-0.2,0.15,0.08]', '--set', 'rpy=[0,0.25,-0.64]', '--out', tmp_path / 'seen',
    ).status == 0  # fmt: skip
    with_camera = tmp_path / 'seen/swaying_1'
    record = json.loads(
        call(capsys, 'attitude', with_camera, '--world', 'chessboard', '--json').out
    )
    assert record['consistency'][-1]['name'] == 'NIS camera'
    assert record['consistency'][-1]['samples'] > 80
    assert np.degrees(record['rmse_rad']).max() < 0.6
    without = call(capsys, 'attitude', bag, '--without', 'magnetometer', '--json')
    rows = json.loads(without.out)['consistency']
    assert [row['name'] for row in rows] == ['NEES orientation', 'NIS accelerometer']


def test_the_filter_is_overconfident_on_a_real_car(
    capsys: Capture, real_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bag = (real_dir / 'comma2k19/comma2k19_seg40_mcap').resolve()
    if not bag.is_dir():
        pytest.skip('no real recordings')
    outcome = call(capsys, 'attitude', bag, '--without', 'magnetometer', '--acceleration', 1)
    assert outcome.status == 0
    assert 'overconfident' in outcome.out
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, '--magnetometer-std', 'attitude', bag)


def test_wrong_options_are_refused(capsys: Capture, tmp_path: Path) -> None:
    for words in (
        ['bag', '--runs', 3],
        ['bag', '--camera', 'none'],
        ['--topic', 'imu=/imu'],
        ['--set', 'duration=3'],
        ['--camera', 'webcam'],
        ['--mag', ''],
        ['--initial-std', '1e-200'],
        ['--acceleration', '1e200'],
        [tmp_path / 'nothing'],
        ['--duration', '1e9', '--camera', 'none'],
        ['--runs', 1, '--world', 'default'],  # The camera sees nothing there.
    ):
        outcome = call(capsys, 'attitude', *words)
        assert outcome.status == 2, words
        assert len(outcome.complaints) == 1


def test_a_stand_in_has_larger_errors_than_its_twin_and_only_the_twin_is_consistent(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of calibration are known to the stand-in only; [Ligorio2015], tables 2 to 4."""
    monkeypatch.chdir(tmp_path)
    out = Path('mimu')
    outcome = call(capsys, 'attitude', '--validation', '--duration', 12, '--out', out)
    assert outcome.status == 0
    record = json.loads((out / 'validation.json').read_text(encoding='utf-8'))
    assert {len(axes) for axes in record['table_2'].values()} == {3}
    assert 0.0175 < record['table_2']['angular_rate']['x']['rmse'] < 0.04
    assert record['table_3']['v']['rmse'] > 2.0
    angles = record['table_4_deg']
    assert angles['real']['yaw'] > 3.0 * angles['simulated']['yaw']
    assert record['nees_ratio']['real'] > 10.0 > 4.0 > record['nees_ratio']['simulated']
    assert {'quaternion_errors.png', 'signals_feature.png', 'scatter.png'} <= {
        path.name for path in out.iterdir()
    }
    check_refused(capsys, '--runs', 'attitude', '--validation', '--runs', 2)
