# SPDX-License-Identifier: Apache-2.0
"""Recordings compared by their signals: what is put in comes out, and the folder is repeatable."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents, run_of, segments, write_runs
from rich.console import Console
from scipy.spatial.transform import Rotation
from scipy.stats import chi2
from signal_examples import PLAIN, made, truth_of

from sim2real_eval.benches.signals import SignalStudy, study_signals
from sim2real_eval.cli.arguments import sources
from sim2real_eval.cli.models import single_sensors, twins
from sim2real_eval.recording.recording import StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.signals import signal_tables
from sim2real_eval.signals.comparison import (
    SignalComparison,
    SignalRow,
    compare_runs,
    compare_signals,
)
from sim2real_eval.signals.measured import run_signals
from sim2real_eval.signals.options import SignalComparisonError, SignalOptions
from sim2real_eval.signals.prepared import partners
from sim2real_eval.simulation.twin import Twin
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.orientation import Orientation

Capture = pytest.CaptureFixture[str]
IDEAL = Twin('ideal', load_gps('baseline'), load_imu('ideal'))


def rows_of(comparison: SignalComparison) -> dict[str, SignalRow]:
    return {row.signal: row for row in comparison.rows}


def test_identical_recordings_give_zero() -> None:
    run = run_of('drive_circle', 1)
    comparison = compare_signals([run], [run], PLAIN)
    assert len(comparison.rows) == 10
    for row in comparison.rows:
        assert row.error_distance == 0.0
        assert row.spectrum_distance == 0.0
        assert row.between is not None
        assert row.between.rmse == 0.0
        assert row.between.mean == 0.0
        assert row.real == row.simulated
        assert row.verdict == 'too few runs'
        assert row.error_p is row.error_split_half is None
    assert any('too few' in str(note) for note in comparison.notes)


def test_ideal_sensors_read_the_truth_at_their_mounting() -> None:
    """Far from the middle, turned, on a circle; yaw passes +-pi, position starts anywhere."""
    turn = tuple(Rotation.from_euler('xyz', [0.2, -0.1, 2.5]).as_quat().tolist())
    recording = dataclasses.replace(
        truth_of('drive_circle', 2),
        transforms=(
            StaticTransform('base_link', 'imu_link', (0.8, -0.3, 0.5), turn),
            StaticTransform('base_link', 'gps_link', (-0.4, 0.2, 1.5)),
        ),
    )
    run = made(recording, IDEAL)
    rows = rows_of(compare_signals([run], [run], PLAIN))
    for signal, most in (('angular_rate', 1e-12), ('specific_force', 1e-12), ('position', 1e-6)):
        for axis in 'xyz':
            row = rows[f'{signal}_{axis}']
            assert row.real.rmse < most
    yaw = rows['yaw']
    # Rates of a turned triad have no error, and their sum misses by the trapezoids alone.
    assert yaw.real.rmse < 2e-4
    assert yaw.real.correlation > 0.9999999


def test_noise_and_bias_come_out_as_they_were_put_in() -> None:
    """RMSE about the mean in its chi-square band (1e-3 each), bias to 4 sigma, floor of spectra.

    Correlation as the signal-to-noise ratio says, to 4 sigma of Fisher's transformation.
    """
    density, bias = 0.004, (0.02, -0.01, 0.005)
    imu = ImuChain(
        rate=100.0,
        gyroscope=GyroscopeChain(noise_density=(density,) * 3, constant_bias=bias),
        accelerometer=AccelerometerChain(noise_density=(0.03,) * 3),
    )
    run = made(truth_of('drive_half_sine', 3), Twin('chain', None, imu))
    comparison = compare_signals([run], [run], PLAIN)
    rows = rows_of(comparison)
    assert len(rows) == 7
    ready = comparison.prepared['simulated']['angular_rate']
    for i, axis in enumerate('xyz'):
        agreement = rows[f'angular_rate_{axis}'].real
        sigma, n = density * 10.0, agreement.samples
        low, high = sigma * np.sqrt(chi2.ppf([5e-4, 1 - 5e-4], n - 1) / n)
        assert low < np.sqrt(agreement.rmse**2 - agreement.mean**2) < high
        assert agreement.mean == pytest.approx(bias[i], abs=4 * sigma / np.sqrt(n))
        # One-sided, so twice the density squared.
        level = ready.density('error', 'real')[1:-1, i].mean()
        assert level == pytest.approx(2 * density**2, rel=0.25)
        power = float(np.var(ready.real[0].even.true[:, i]))
        if power > 1e-6:
            expected = np.arctanh(1 / np.sqrt(1 + sigma**2 / power))
            assert abs(np.arctanh(agreement.correlation) - expected) < 4 / np.sqrt(n - 3)


def test_late_sensor_is_found_and_put_right() -> None:
    run = made(truth_of('drive_half_sine', 1), IDEAL)
    assert run.imu is not None
    late = dataclasses.replace(run.imu, stamp_ns=run.imu.stamp_ns + 35_000_000)
    late_run = run.with_messages('imu', late)
    rmse = {}
    for align in ('none', 'report', 'apply'):
        options = dataclasses.replace(PLAIN, align=align)
        row = rows_of(compare_signals([late_run], [run], options))['angular_rate_z']
        rmse[align] = row.real.rmse
        if align == 'none':
            assert row.lag_real is row.lag_between is None
        else:
            assert row.lag_real == pytest.approx(0.035, abs=0.002)
            assert row.lag_simulated == pytest.approx(0.0, abs=1e-3)
    assert rmse['none'] == rmse['report'] > 5 * rmse['apply']
    noise = np.random.default_rng(4).normal(0.0, 0.05, (len(run.imu), 3))  # hides what is left
    imu = dataclasses.replace(run.imu, angular_velocity=run.imu.angular_velocity + noise)
    (row, other) = (
        rows_of(compare_signals([run.with_messages('imu', imu)], [run], options))['angular_rate_z']
        for options in (PLAIN, dataclasses.replace(PLAIN, align='apply'))
    )
    assert other.lag_real is not None
    assert row.real.rmse == other.real.rmse


def test_yaw_is_of_the_orientation_where_there_is_one() -> None:
    """A compass that is 0.3 rad off, more than half a turn away from the true yaw at times."""
    truth = truth_of('drive_circle', 3)
    ideal = dataclasses.replace(load_imu('ideal'), orientation=Orientation(mode='truth'))
    run = made(truth, Twin('compass', None, ideal))
    assert run.imu is not None
    off = Rotation.from_euler('z', 0.3) * Rotation.from_quat(run.imu.orientation)
    imu = dataclasses.replace(run.imu, orientation=off.as_quat())
    imu_run = run.with_messages('imu', imu)
    row = rows_of(compare_signals([imu_run], [imu_run], PLAIN))['yaw']
    assert row.real.mean == pytest.approx(0.3, abs=1e-9)
    assert row.real.rmse == pytest.approx(0.3, abs=1e-9)
    gyro = compare_signals([imu_run], [imu_run], dataclasses.replace(PLAIN, yaw='gyro'))
    assert rows_of(gyro)['yaw'].real.rmse < 1e-3
    assert any(note.code == 'signals.yaw_integrated' for note in gyro.notes)


def test_what_an_imu_marks_as_absent_is_not_compared() -> None:
    run = run_of('drive_circle', 1).with_messages('gps', None)
    assert run.imu is not None
    absent = np.full_like(run.imu.angular_velocity_covariance, -1.0)
    blind = dataclasses.replace(run.imu, angular_velocity_covariance=absent)
    signals = run_signals(run.with_messages('imu', blind), dataclasses.replace(PLAIN, yaw='gyro'))
    assert list(signals.measured) == ['specific_force']
    assert not any('yaw' in str(note) for note in signals.notes)
    force = run.imu.linear_acceleration.copy()
    force[7, 1] = np.nan
    torn = dataclasses.replace(run.imu, linear_acceleration=force)
    with pytest.raises(SignalComparisonError, match='specific_force: measurement 7 is not finite'):
        run_signals(run.with_messages('imu', torn), PLAIN)


def test_sets_without_a_common_sensor_are_refused() -> None:
    run = run_of('drive_line', 1)
    with pytest.raises(SignalComparisonError, match='no sensor in common'):
        compare_signals([run.with_messages('gps', None)], [run.with_messages('imu', None)], PLAIN)
    bare = run.with_messages('gps', None).with_messages('imu', None)
    with pytest.raises(SignalComparisonError, match='has no imu or gps'):
        compare_signals([bare], [run], PLAIN)
    with pytest.raises(SignalComparisonError, match='no run'):
        compare_signals([run], [], PLAIN)


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    signal_folder = tmp_path_factory.mktemp('runs')
    return write_runs(signal_folder, ('drive_circle', 1), ('drive_half_sine', 1))


WRONG = {
    '': 'required: --real, --out',
    '--real gone --out o': 'gone: no such file or folder',
    '--real circle_1 --sim gone --out o': 'gone: no such file or folder',
    '--real circle_1 --sim half_sine_1 --models ch_rw --out o': 'not allowed with argument',
    '--real circle_1 --sim half_sine_1 --imu airsim --out o': '--imu: goes with --models',
    '--real circle_1 --models nope --out o': "'nope' is unknown",
    '--real circle_1 --models real --imu real --out o': 'all sensors stay real',
    '--real circle_1 --trend-window 4 --out o': 'must be odd',
    '--real circle_1 --trend-window 0 --out o': "'0' must be an integer >= 1",
    '--real circle_1 --nperseg 2 --out o': "'2' must be max or an integer >= 8",
    '--real circle_1 --nperseg some --out o': "'some' must be max or an integer >= 8",
    '--real circle_1 --rate 1e9 --out o': "'1e9' must be a number >= 0 and <= 10000",
    '--real circle_1 --rate 0.1 --out o --models ch_rw': 'must give 16 or more',
    '--real circle_1 --align maybe --out o': 'invalid choice',
    '--real circle_1 --imu= --out o': '--imu: is empty; must name a model or more',
    '--real circle_1 --max-lag 0 --out o': "'0' must be a number > 0",
    '--real circle_1 --max-lag 99 --out o': "--max-lag: '99' must be a number > 0 and",
    '--real circle_1 --out full': 'full: exists',
    '--real circle_1 --out full --overwrite': 'comparison.json',
}


@pytest.mark.parametrize('line', WRONG)
def test_wrong_command_line_is_one_line_of_complaint(
    line: str, runs: list[Path], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = runs[0].parent
    monkeypatch.chdir(place)
    (place / 'full').mkdir(exist_ok=True)
    (place / 'full' / 'mine.txt').write_text('mine', encoding='utf-8')
    jobs = ['--jobs', 1] if line else []
    check_refused(capsys, WRONG[line], 'compare', *shlex.split(line), *jobs)


@pytest.mark.usefixtures('blank_pictures')
def test_folder_is_whole_and_the_same_every_time(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    arguments = ('compare', '--real', *runs, '--trend-window', 101, '--yaw', 'gyro')
    first = call(capsys, *arguments, '--jobs', 1, '--out', tmp_path / 'one', '--json')
    assert first.status == 0, first.err
    second = call(capsys, *arguments, '--jobs', 1, '--out', tmp_path / 'two', '--published')
    assert second.status == 0, second.err
    files = contents(tmp_path / 'one')
    assert sorted(files) == [
        'comparison.csv', 'comparison.json', 'findings.txt', 'psd.csv', 'psd_errors.png',
        'psd_signals.png', 'runs.csv', 'scatter.png', 'trend.csv', 'yaw_error.png',
    ]  # fmt: skip
    assert contents(tmp_path / 'two') == files
    record = json.loads(first.out)
    assert record == json.loads(files['comparison.json'])
    with (tmp_path / 'one' / 'comparison.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert [row['signal'] for row in rows] == [row['signal'] for row in record['rows']]
    assert float(rows[0]['rmse_real']) == record['rows'][0]['real']['rmse']
    assert 'Ligorio2015' in second.out
    assert b'too few' in files['findings.txt']
    refused = call(capsys, *arguments, '--jobs', 1, '--out', tmp_path / 'one')
    assert refused.status == 2
    assert 'exists' in refused.complaints[0]


@pytest.mark.usefixtures('blank_pictures')
def test_given_recordings_are_compared_as_made_ones(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """`simulate --truth` and then `--sim`; a recording without truth is left out and named."""
    done = call(
        capsys, 'simulate', '--truth', *runs, '--imu', 'airsim', '--out', tmp_path / 'twins',
    )  # fmt: skip
    assert done.status == 0
    simulated = sorted((tmp_path / 'twins').iterdir())
    blind = run_of('drive_line', 1).with_messages('truth', None)
    write_recording(blind, tmp_path / 'blind')
    outcome = call(
        capsys, 'compare', '--real', *runs, tmp_path / 'blind', '--sim', *simulated, '--nperseg',
        'max', '--align', 'apply', '--trend-window', 51, '--jobs', 1, '--out', tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 1
    assert len(outcome.complaints) == 1
    assert 'blind: no truth topic' in outcome.complaints[0]
    findings_text = (tmp_path / 'out' / 'findings.txt').read_text(encoding='utf-8')
    assert re.match(r'left out: \S*blind: no truth topic', findings_text)
    record = json.loads((tmp_path / 'out' / 'comparison.json').read_text(encoding='utf-8'))
    assert record['options']['nperseg'] == -1
    assert {row['model'] for row in record['rows']} == {'simulated'}
    assert all(row['between'] is not None for row in record['rows'])


def test_car_drive_against_a_simulated_imu(real_dir: Path) -> None:
    """Gyro z follows the course rate of the drive (residual 0.48 deg/s, slope 1).

    Its bias of 0.17 deg/s makes yaw drift; forces correlate with the truth on flat road.
    """
    real = sources([str(path) for path in segments(real_dir, (8, 9))], [], None)
    study = SignalStudy(twins=twins('real', 'airsim'))
    comparison, failures = study_signals(real, study, SignalOptions(yaw='gyro'))
    assert not failures
    rows = rows_of(comparison)
    assert len(rows) == 7
    rate = rows['angular_rate_z'].real
    assert rate.correlation is not None
    assert rate.correlation > 0.99
    assert np.degrees(rate.mean) == pytest.approx(0.17, abs=0.03)
    assert np.degrees(rate.rmse) < 1.0
    force = rows['specific_force_y'].real.correlation
    assert force is not None
    assert force > 0.7
    # Half of 45 s at that drift, on average.
    assert np.degrees(rows['yaw'].real.mean) == pytest.approx(0.17 * 22.5, abs=0.7)


def test_runs_are_paired_by_name_and_time() -> None:
    run = run_signals(run_of('drive_circle', 1), PLAIN)
    later = dataclasses.replace(
        run, start_ns=run.start_ns + 10**13, end_ns=run.end_ns + 10**13, name='circle_1'
    )
    names = ('circle_1', 'circle_1_yaw_pid', 'circle_10', 'other')
    named_runs = [dataclasses.replace(run, name=name) for name in names]
    assert partners([run], named_runs) == [0, 0, None, None]
    assert partners([run, named_runs[1]], named_runs) == [0, 1, None, None]
    assert partners([run, run], named_runs) == [None] * 4
    assert partners([run], [later]) == [None]
    comparison = compare_runs([run], {'later': [later]}, PLAIN)
    assert all(row.between is None for row in comparison.rows)


def test_files_that_share_a_name_are_called_by_their_folder(tmp_path: Path) -> None:
    for folder_name, name in (('npz', 'imu'), ('bagA', 'imu'), ('npz', 'mine'), ('bagA', 'mine')):
        path = tmp_path / folder_name / f'{name}.yaml'
        path.parent.mkdir(exist_ok=True)
        path.write_text('model: ideal\n', encoding='utf-8')
    imu = f'{tmp_path}/npz/imu.yaml,{tmp_path}/bagA/imu.yaml,hector_imu:as_upstream'
    labels = [twin.label for twin in twins('ch_rw', imu)]
    assert labels == ['ch_rw+npz', 'ch_rw+bagA', 'ch_rw+hector_imu_as_upstream']
    same = f'{tmp_path}/npz/mine.yaml,{tmp_path}/bagA/mine.yaml'
    assert [twin.label for twin in twins('real', same)] == ['npz_mine', 'bagA_mine']


def test_each_model_of_a_sensor_is_compared_once(runs: list[Path]) -> None:
    """The signals of an IMU do not depend on the GPS beside it; airsim is the name of both."""
    study = SignalStudy(twins=single_sensors('ch_rw,airsim', 'chrono,airsim'))
    assert [twin.label for twin in study.twins] == ['chrono', 'airsim_imu', 'ch_rw', 'airsim_gps']
    real = sources([str(runs[0])], [], None)
    plain = dataclasses.replace(PLAIN, yaw='gyro')
    comparison, failures = study_signals(real, study, plain)
    assert not failures
    together, _ = study_signals(real, SignalStudy(twins=twins('ch_rw', 'chrono')), plain)
    for row in together.rows:
        label = 'ch_rw' if row.signal.startswith('position') else 'chrono'
        assert dataclasses.replace(row, model=label) in comparison.rows
    assert len(comparison.rows) == 2 * len(together.rows)
    assert {ready.quantity.name for label, _, ready in comparison.sides() if label == 'real'} == {
        'angular_rate', 'specific_force', 'yaw', 'position',
    }  # fmt: skip
    text = Console(width=80, file=io.StringIO(), record=True)
    text.print(signal_tables(comparison))
    table_text = text.export_text()
    assert table_text.count('2 IMU models') == table_text.count('2 GPS models') == 2
    # With single runs there are neither split-half distances nor p-values; a note says so, once.
    assert 'null_median' not in table_text
    assert 'too few' not in table_text
    assert len([note for note in comparison.notes if 'too few' in str(note)]) == 1


def test_models_of_a_sensor_that_was_not_recorded_are_left_out(tmp_path: Path) -> None:
    write_recording(run_of('drive_line', 1).with_messages('gps', None), tmp_path / 'blind')
    study = SignalStudy(twins=single_sensors('ch_rw', 'chrono'))
    comparison, _ = study_signals(sources([str(tmp_path / 'blind')], [], None), study, PLAIN)
    assert comparison.models == ['chrono']
    left_out = [finding for finding in comparison.notes if finding.code == 'signals.not_recorded']
    assert [finding.subject for finding in left_out] == ['model ch_rw']
