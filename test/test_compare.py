# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings compared by their signals: what is put in comes out, and the folder is repeatable."""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents, run_of, segments, write_runs
from scipy.spatial.transform import Rotation
from scipy.stats import chi2
from signal_examples import PLAIN, made, truth_of

from sim2real_eval.benches.signals import SignalStudy, study_signals
from sim2real_eval.cli.arguments import sources
from sim2real_eval.cli.sensors import single_sensors, twins
from sim2real_eval.recording.recording import StaticTransform
from sim2real_eval.recording.writing import write_recording
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
        # Yaw has no errors, and so no spectrum.
        assert row.spectrum_distance == (None if row.signal == 'yaw' else 0.0)
        assert row.between.rmse == row.between.mean == 0.0
        assert row.real == row.simulated
        assert row.error_p is row.error_split_half is None


def test_ideal_sensors_measure_the_truth_at_their_mounting() -> None:
    """On a circle with lever arms and a mounting; yaw passes +-pi."""
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


def test_simulated_noise_and_bias_are_recovered() -> None:
    """RMSE in its chi-square band (1e-3 each); bias and Fisher's transformation to 4 sigma."""
    density, bias = 0.004, (0.02, -0.01, 0.005)
    gyroscope = GyroscopeChain(noise_density=(density,) * 3, constant_bias=bias)
    accelerometer = AccelerometerChain(noise_density=(0.03,) * 3)
    imu = ImuChain(rate=100.0, gyroscope=gyroscope, accelerometer=accelerometer)
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


def test_the_delay_of_a_sensor_is_estimated_and_corrected() -> None:
    run = made(truth_of('drive_half_sine', 1), IDEAL)
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


def test_yaw_is_taken_from_the_orientation_if_there_is_one() -> None:
    """A compass that is 0.3 rad off, across the wrap of the yaw."""
    truth = truth_of('drive_circle', 3)
    ideal = dataclasses.replace(load_imu('ideal'), orientation=Orientation(mode='truth'))
    run = made(truth, Twin('compass', None, ideal))
    off = Rotation.from_euler('z', 0.3) * Rotation.from_quat(run.imu.orientation)
    imu = dataclasses.replace(run.imu, orientation=off.as_quat())
    imu_run = run.with_messages('imu', imu)
    row = rows_of(compare_signals([imu_run], [imu_run], PLAIN))['yaw']
    assert row.real.mean == pytest.approx(0.3, abs=1e-9)
    assert row.real.rmse == pytest.approx(0.3, abs=1e-9)
    gyro = compare_signals([imu_run], [imu_run], dataclasses.replace(PLAIN, yaw='gyro'))
    assert rows_of(gyro)['yaw'].real.rmse < 1e-3
    assert any(note.code == 'signals.yaw_integrated' for note in gyro.notes)


def test_quantities_that_an_imu_marks_as_absent_are_not_compared() -> None:
    run = run_of('drive_circle', 1).with_messages('gps', None)
    absent = np.full_like(run.imu.angular_velocity_covariance, -1.0)
    blind = dataclasses.replace(run.imu, angular_velocity_covariance=absent)
    signals = run_signals(run.with_messages('imu', blind), dataclasses.replace(PLAIN, yaw='gyro'))
    assert list(signals.measured) == ['specific_force']


@pytest.mark.parametrize(('real', 'simulated'), [((), ('gps', 'imu')), (('gps',), ('imu',))])
def test_recordings_without_a_common_sensor_are_refused(
    real: tuple[str, ...], simulated: tuple[str, ...]
) -> None:
    """Sets of recordings without the sensors given."""
    first = second = run_of('drive_line', 1)
    for role in real:
        first = first.with_messages(role, None)
    for role in simulated:
        second = second.with_messages(role, None)
    with pytest.raises(SignalComparisonError):
        compare_signals([second], [first], PLAIN)


@pytest.fixture(scope='module')
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    signal_folder = tmp_path_factory.mktemp('runs')
    return write_runs(signal_folder, ('drive_circle', 1), ('drive_half_sine', 1))


@pytest.mark.parametrize(
    ('line', 'named'),
    [
        ('', 'RECORDING'),
        ('gone --out o', 'gone'),
        ('circle_1 --sim half_sine_1 --models ch_rw --out o', '--models'),
        ('circle_1 --sim half_sine_1 --imu airsim --out o', '--imu'),
        ('circle_1 --models nope --out o', 'nope'),
        ('circle_1 --models real --imu real --out o', 'real'),
        ('circle_1 --trend-window 4 --out o', 'odd'),
        ('circle_1 --nperseg 2 --out o', '--nperseg'),
        ('circle_1 --rate 0.1 --out o --models ch_rw', '16'),
        ('circle_1 --max-lag 99 --out o', '--max-lag'),
        ('circle_1 --out full', 'full'),
        ('circle_1 --out full --overwrite', 'comparison.json'),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    line: str, named: str, runs: list[Path], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = runs[0].parent
    monkeypatch.chdir(place)
    (place / 'full').mkdir(exist_ok=True)
    (place / 'full' / 'mine.txt').write_text('mine', encoding='utf-8')
    jobs = ['--jobs', 1] if line else []
    check_refused(capsys, named, 'compare', *shlex.split(line), *jobs)


@pytest.mark.usefixtures('blank_pictures')
def test_compare_writes_identical_folders_for_equal_inputs(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    arguments = ('compare', *runs, '--trend-window', 101, '--yaw', 'gyro')
    first = call(capsys, *arguments, '--jobs', 1, '--out', tmp_path / 'one', '--json')
    assert first.status == 0, first.err
    second = call(capsys, *arguments, '--jobs', 1, '--out', tmp_path / 'two', '--published')
    assert second.status == 0, second.err
    files = contents(tmp_path / 'one')
    assert set(files) == {
        '.comparison.json.files',
        *('comparison.csv', 'comparison.json', 'findings.txt', 'psd.csv', 'psd_errors.png'),
        *('psd_signals.png', 'runs.csv', 'scatter.png', 'trend.csv', 'yaw.csv', 'yaw_error.png'),
        *(f'yaw_{path.name}.png' for path in runs),
    }
    assert contents(tmp_path / 'two') == files
    record = json.loads(first.out)
    assert record == json.loads(files['comparison.json'])
    with (tmp_path / 'one' / 'comparison.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert [row['signal'] for row in rows] == [row['signal'] for row in record['rows']]
    assert float(rows[0]['rmse_real']) == record['rows'][0]['real']['rmse']


@pytest.mark.usefixtures('blank_pictures')
def test_the_option_sim_compares_given_recordings(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """Twins are recordings for --sim; a recording without truth is left out and named."""
    done = call(
        capsys, 'simulate', *runs, '--imu', 'airsim', '--out', tmp_path / 'twins',
    )  # fmt: skip
    assert done.status == 0
    simulated = tmp_path / 'twins' / '*'
    blind = run_of('drive_line', 1).with_messages('truth', None)
    write_recording(blind, tmp_path / 'blind')
    outcome = call(
        capsys, 'compare', *runs, tmp_path / 'blind', '--sim', simulated, '--nperseg',
        'max', '--align', 'apply', '--trend-window', 51, '--jobs', 1, '--out', tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 1
    (complaint,) = outcome.complaints
    assert 'blind' in complaint
    record = json.loads((tmp_path / 'out' / 'comparison.json').read_text(encoding='utf-8'))
    assert record['options']['nperseg'] == -1
    assert {row['model'] for row in record['rows']} == {'simulated'}
    assert all(row['between'] is not None for row in record['rows'])


def test_a_real_gyroscope_follows_the_course_rate_and_its_yaw_drifts(real_dir: Path) -> None:
    """Gyro z follows the course rate; its bias of 0.17 deg/s makes yaw drift."""
    real = sources([str(path) for path in segments(real_dir, (8, 9))], [], None)
    study = SignalStudy(twins=twins('real', 'airsim'))
    comparison, failures = study_signals(real, study, SignalOptions(yaw='gyro'))
    assert not failures
    rows = rows_of(comparison)
    assert len(rows) == 7
    rate = rows['angular_rate_z'].real
    assert rate.correlation > 0.99
    assert np.degrees(rate.mean) == pytest.approx(0.17, abs=0.03)
    assert np.degrees(rate.rmse) < 1.0
    force = rows['specific_force_y'].real.correlation
    assert force > 0.7
    # Half of 45 s at that drift, on average.
    assert np.degrees(rows['yaw'].real.mean) == pytest.approx(0.17 * 22.5, abs=0.7)


def test_runs_are_paired_by_name_and_time() -> None:
    run = run_signals(run_of('drive_circle', 1), PLAIN)
    end_ns = run.end_ns + 10**13
    later = dataclasses.replace(run, start_ns=run.start_ns + 10**13, end_ns=end_ns)
    names = ('circle_1', 'circle_1_yaw_pid', 'circle_10', 'other')
    named_runs = [dataclasses.replace(run, name=name) for name in names]
    assert partners([run], named_runs) == [0, 0, None, None]
    assert partners([run, named_runs[1]], named_runs) == [0, 1, None, None]
    assert partners([run, run], named_runs) == [None] * 4
    assert partners([run], [later]) == [None]
    comparison = compare_runs([run], {'later': [later]}, PLAIN)
    assert all(row.between is None for row in comparison.rows)


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


def test_models_of_an_unrecorded_sensor_are_left_out_with_a_finding(tmp_path: Path) -> None:
    write_recording(run_of('drive_line', 1).with_messages('gps', None), tmp_path / 'blind')
    study = SignalStudy(twins=single_sensors('ch_rw', 'chrono'))
    comparison, _ = study_signals(sources([str(tmp_path / 'blind')], [], None), study, PLAIN)
    assert comparison.models == ['chrono']
    left_out = [finding for finding in comparison.notes if finding.code == 'signals.not_recorded']
    assert [finding.subject for finding in left_out] == ['model ch_rw']
