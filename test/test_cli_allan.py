# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real allan`: noise terms, plots and models from recordings and tables at rest."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents, write_runs
from gps_standstill_examples import standing

from sim2real_eval.characterization.analysis import analyse
from sim2real_eval.characterization.options import AllanOptions, TableOptions
from sim2real_eval.characterization.signal_files import read_signals
from sim2real_eval.characterization.signals import AXES, SignalFileError, evenly_spaced
from sim2real_eval.common.findings import Severity
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.allan import FILES
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.imu.imu import load_imu

Capture = pytest.CaptureFixture[str]
RATE, SECONDS = 50.0, 200
GYRO, ACCEL = 2e-3, 1e-2


def samples(number: int = 1) -> FloatArray:
    """White noise of known density, rad/s and m/s^2, with gravity on z."""
    rng = stream(number, 'table', 'test', 'cli_allan')
    values = rng.standard_normal((int(RATE * SECONDS), 6)) * np.sqrt(RATE)
    values *= np.array([GYRO] * 3 + [ACCEL] * 3)
    values[:, 5] += 9.81
    return values


def write_csv(path: Path, header: str, columns: FloatArray) -> Path:
    np.savetxt(path, columns, delimiter=',', header=header, comments='', fmt='%.9g')
    return path


@pytest.fixture(scope='module')
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a time column in deg/s and g, as loggers write it."""
    path = tmp_path_factory.mktemp('allan') / 'night_1.csv'
    scale = np.array([180 / np.pi] * 3 + [1 / 9.80665] * 3)
    time = np.arange(int(RATE * SECONDS))[:, None] / RATE
    return write_csv(
        path, 'time,gx,gy,gz,ax,ay,az', np.concatenate([time, samples() * scale], axis=1)
    )


# Lines that are refused, and what the error names.
WRONG = (
    ('gone', 'gone'),
    ('gone.csv', 'gone.csv'),
    ('empty', 'empty'),
    ('file.txt', 'file.txt'),
    ('torn.csv', 'torn.csv'),
    ('bare.csv', '--columns'),
    ('bare.csv --columns a,b', '3 columns, but 2 names'),
    ('bare.csv --columns a,b,c', 'a, b, c'),
    ('bare.csv --columns gx,gx,c', 'gyroscope_x'),
    ('named.csv', '--sample-rate'),
    ('named.csv --sample-rate 0', "'0'"),
    ('named.csv --sample-rate 10', '2 samples'),
    ('circle_1', 'circle_1'),
    ('line_1 --sample-rate 100', '--sample-rate'),
    ('line_1 --topic imu=/gone', '/gone'),
    ('line_1 --axis pitch', 'pitch'),
    ('line_1 --outliers none --outlier-factor 2', '--outlier-factor'),
    ('line_1 --gyro-unit rpm', 'rpm'),
    ('line_1 --moving keep --fit-from 1e6', '--fit-from'),
    ('line_1 --out file.txt', 'file.txt'),
    ('line_1 --out file.txt/sub', 'file.txt/sub'),
    ('nan_time.csv', 'sample 1 is nan'),
    ('nan.csv --sample-rate 10', 'gyroscope_x: sample 1 is nan'),
    ('nan.csv ./nan.csv', 'nan.csv'),
    ('huge.csv --sample-rate 10', '1e+300'),
    ('back.csv', '3 samples'),
    ('backward.csv', '--sample-rate'),
    ('slow.csv', 'time steps by 1e+07 s'),
    ('fast.csv', 'time_ms steps by 1e-05 s'),
    ('seconds.csv', 'stamp_ns steps by 1e-09 s'),
    ('uneven.npz', '2 times for 9 samples'),
    ('epoch.csv', '1.7e+18'),
    ('tables', 'tables/log.csv'),
    ('point.npy --sample-rate 10 --columns gx', '0 dimensions'),
    ('complex.npy --sample-rate 10 --columns gx', 'complex128'),
    ('nan_rate.npz', 'fs is nan'),
)


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('place')
    write_runs(folder, ('drive_line', 1), ('drive_circle', 1))
    (folder / 'empty').mkdir()
    (folder / 'tables').mkdir()
    for name, text in {
        'file.txt': 'text',
        'bare.csv': '1,2,3\n4,5,6\n',
        'named.csv': 'gyroscope_x,b\n1,2\n3,4\n',
        'torn.csv': 'gyroscope_x,time\n1,2\n3\n',
        'nan_time.csv': 'gyroscope_x,time\n1,2\n3,nan\n',
        'nan.csv': 'gyroscope_x\n1\nnan\n3\n',
        'slow.csv': 'gx,time\n1,0\n2,1e7\n3,2e7\n',
        'huge.csv': 'gyroscope_x\n1\n1e300\n3\n',
        'back.csv': 'gx,time\n1,3\n2,2\n3,1\n',
        'backward.csv': '\n'.join(['gx,time', *(f'{k % 3 / 2},{99 - k}' for k in range(99))])
        + '\n',
        'fast.csv': 'gx,time_ms\n1,0\n2,0.01\n3,0.02\n',
        'seconds.csv': 'gx,stamp_ns\n1,1\n2,2\n3,3\n',
        'epoch.csv': 'gx,time\n1,17e17\n2,17e17\n3,17e17\n',
        'tables/log.csv': 'gx,time\n1,0\n',
    }.items():
        (folder / name).write_text(text, encoding='utf-8')
    np.save(folder / 'point.npy', np.array(1.0))
    np.save(folder / 'complex.npy', np.zeros((9, 1), dtype=np.complex128))
    np.savez(folder / 'nan_rate.npz', gyro=np.zeros((9, 3)), fs=np.nan)
    np.savez(folder / 'uneven.npz', gyro=np.zeros((9, 3)), time=np.arange(2.0))
    return folder


@pytest.mark.parametrize(('words', 'named'), WRONG)
def test_a_wrong_command_line_is_refused_in_one_line(
    words: str, named: str, place: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    check_refused(capsys, named, 'allan', *words.split())


UNITS = ('--gyro-unit', 'deg/s', '--accel-unit', 'g')


def test_the_model_fitted_to_a_table_simulates_its_noise(
    table: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'noise'
    done = call(capsys, 'allan', table, *UNITS, '--out', out)
    assert done.status == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)

    record = json.loads((out / 'allan.json').read_text(encoding='utf-8'))
    assert list(record['axes']) == list(AXES)
    assert record['reidentified']['all_recovered']
    for axis, estimates in record['axes'].items():
        white = estimates['terms']['white']
        truth = GYRO if axis.startswith('gyro') else ACCEL
        assert abs(white['value'] - truth) < 4.0 * white['std']
        assert white['discrete'] == pytest.approx(white['value'] * np.sqrt(RATE))
        assert not estimates['terms']['rate_ramp']['observable']
    with (out / 'allan.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert float(row['lower']) < float(row['deviation']) < float(row['upper'])
    assert {row['axis'] for row in rows} == set(AXES)

    model = load_imu(out / 'imu.yaml')
    assert model.rate == pytest.approx(RATE)
    again = tmp_path / 'again'
    simulated = call(
        capsys, 'simulate', '--motion', 'standstill', '--duration', 60, '--imu',
        out / 'imu.yaml', '--out', again,
    )  # fmt: skip
    assert simulated.status == 0
    back = call(capsys, 'allan', again / 'standstill_1', '--json', '--no-check')
    assert back.status == 0
    estimates = json.loads(back.out)
    assert estimates['reidentified'] is None
    white = estimates['axes']['accelerometer_y']['terms']['white']
    assert abs(white['value'] - ACCEL) < 4.0 * white['std']


@pytest.mark.usefixtures('blank_pictures')
def test_equal_inputs_give_equal_bytes_and_nothing_is_overwritten(
    table: Path, tmp_path: Path, capsys: Capture
) -> None:
    first, second = tmp_path / 'one', tmp_path / 'two'
    for out in (first, second):
        assert (
            call(capsys, 'allan', table, *UNITS, '--axis', 'gyroscope_z', '--out', out).status == 0
        )
    assert contents(first) == contents(second)
    refused = call(capsys, 'allan', table, *UNITS, '--out', first)
    assert refused.status == 2
    assert '--overwrite' in refused.err
    assert contents(first) == contents(second)
    other = (*UNITS, '--axis', 'gyroscope_x', '--no-check', '--overwrite', '--out', first)
    assert call(capsys, 'allan', table, *other).status == 0
    assert contents(first) != contents(second)


@pytest.mark.usefixtures('blank_pictures')
def test_recordings_are_weighted_by_length_and_a_broken_one_is_left_out(
    table: Path, tmp_path: Path, capsys: Capture
) -> None:
    short = write_csv(tmp_path / 'night_2.csv', 'wx,wy,wz', np.rad2deg(samples(2)[:5000, :3]))
    options = ('--sample-rate', RATE, '--no-check', '--json', '--axis', 'gyroscope_x', *UNITS)
    both = call(capsys, 'allan', table, short, 'gone.csv', *options, '--weights', 'length')
    assert both.status == 1
    (complaint,) = both.complaints
    assert 'gone.csv' in complaint
    record = json.loads(both.out)
    values = [
        recording['axes']['gyroscope_x']['terms']['white']['value']
        for recording in record['recordings']
    ]
    mean = record['axes']['gyroscope_x']['terms']['white']['value']
    assert mean == pytest.approx((2 * values[0] + values[1]) / 3, rel=1e-9)


def test_the_interquartile_rule_reports_its_bias(table: Path, capsys: Capture) -> None:
    done = call(capsys, 'allan', table, *UNITS, '--outliers', 'iqr', '--no-check', '--json')
    assert done.status == 0
    assert '(-13.48% for clean Gaussian noise)' in done.out
    assert 'gyroscope_y' in done.out


def test_wrong_units_are_reported_with_the_option_that_corrects_them(
    table: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Tables and recordings are checked alike; correct units give no finding."""
    assert '-unit' not in call(capsys, 'allan', table, *UNITS, '--no-check').err
    refused = call(capsys, 'allan', table, '--no-check')
    assert refused.status == 2
    assert '--gyro-unit' in refused.err
    wrong = call(capsys, 'allan', table, '--no-check', '--moving', 'keep')
    assert wrong.status == 0
    assert '--accel-unit' in wrong.err
    assert '--gyro-unit deg/s' in wrong.err
    in_g = standing(30.0, imu_model=dataclasses.replace(load_imu('bno055'), rate=50.0))
    scaled = dataclasses.replace(in_g.imu, linear_acceleration=in_g.imu.linear_acceleration / 9.8)
    write_recording(in_g.with_messages('imu', scaled), tmp_path / 'bag')
    assert '--accel-unit' in call(capsys, 'allan', tmp_path / 'bag', '--no-check').err
    corrected = call(capsys, 'allan', tmp_path / 'bag', '--no-check', '--accel-unit', 'g')
    assert corrected.status == 0
    assert '-unit' not in corrected.err


def test_a_rate_that_contradicts_the_time_column_is_reported(table: Path) -> None:
    assert read_signals(table, TableOptions(rate=RATE)).notes == ()
    assert evenly_spaced(read_signals(table, TableOptions(rate=RATE))).notes == ()
    other = evenly_spaced(read_signals(table, TableOptions(rate=2 * RATE)))
    assert other.rate == pytest.approx(50.0)
    assert other.notes[0].numbers == {'found': other.rate, 'given': 100.0}
    skipped = ('-', *AXES)
    renumbered = read_signals(table, TableOptions(rate=2 * RATE, columns=skipped))
    assert (renumbered.rate, renumbered.stamp_ns, renumbered.notes) == (2 * RATE, None, ())


def test_a_time_column_that_counts_samples_is_reported(tmp_path: Path) -> None:
    rows = np.column_stack([np.arange(100.0), np.zeros(100)])
    signals = read_signals(write_csv(tmp_path / 'numbered.csv', 'time,gx', rows))
    assert [note.code for note in signals.notes] == ['signals.one_second']


@pytest.mark.parametrize(('name', 'size'), [('time_ms', 1e3), ('time_us', 1e6), ('stamp_ns', 1e9)])
def test_time_columns_are_read_in_the_unit_of_their_name(
    name: str, size: float, tmp_path: Path
) -> None:
    path = tmp_path / 'log.csv'
    rows = (f'{round(k * 0.02 * size)},{k % 3}' for k in range(9))
    path.write_text('\n'.join([f'{name},gx', *rows]) + '\n', encoding='utf-8')
    signals = read_signals(path)
    assert np.diff(signals.stamp_ns).tolist() == [20_000_000] * 8


def test_numpy_files_are_read_like_tables(tmp_path: Path) -> None:
    values = samples()
    np.savez(tmp_path / 'a.npz', gyro=values[:, :3], acc=values[:, 3:], fs=RATE)
    from_npz = read_signals(tmp_path / 'a.npz')
    assert from_npz.axes == AXES
    assert from_npz.rate == RATE
    assert np.array_equal(from_npz.values, values)
    with pytest.raises(SignalFileError, match='--columns'):
        read_signals(tmp_path / 'a.npz', TableOptions(columns=AXES[:1]))
    (note,) = read_signals(tmp_path / 'a.npz', TableOptions(rate=2.0 * RATE)).notes
    assert (note.code, note.severity) == ('signals.rate_used', Severity.DECISIVE)
    np.save(tmp_path / 'b.npy', values.astype(np.float32))
    mapped = read_signals(tmp_path / 'b.npy', TableOptions(rate=RATE, columns=AXES))
    assert isinstance(mapped.values, np.memmap)
    np.testing.assert_allclose(mapped.column('accelerometer_z'), values[:, 5], rtol=1e-6)
    with pytest.raises(SignalFileError, match='6 columns without names'):
        read_signals(tmp_path / 'b.npy')
    stamps = np.arange(len(values)) * 20_000_000 + 1_700_000_000_000_000_000
    np.savez(tmp_path / 'c.npz', gyro=values[:, :3], stamp_ns=stamps)
    assert np.array_equal(read_signals(tmp_path / 'c.npz').stamp_ns, stamps)


def test_stamps_of_a_table_are_read_to_the_nanosecond(tmp_path: Path) -> None:
    stamps = [1_700_000_000_123_456_789 + 10_000_000 * k for k in range(9)]
    lines = ['stamp_ns,junk,Gyro_X', *(f'{stamp},7,{0.5 * k}' for k, stamp in enumerate(stamps))]
    path = tmp_path / 'log.csv'
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    signals = read_signals(path)
    assert signals.stamp_ns.tolist() == stamps
    assert signals.axes == ('gyroscope_x',)
    assert signals.column('gyroscope_x').tolist() == [0.5 * k for k in range(9)]
    spaced = tmp_path / 'log.txt'
    spaced.write_text('# t ax\n0.0 1.5\n0.1 2.5\n', encoding='utf-8')
    again = read_signals(spaced, TableOptions(accelerometer_unit='mg'))
    assert again.stamp_ns.tolist() == [0, 100_000_000]
    assert again.column('accelerometer_x') == pytest.approx([0.0147099750, 0.0245166250])


def test_a_real_recording_gives_the_published_noise(real_dir: Path) -> None:
    """ADIS16405, 2.8 h: the deviation at 1.28 s within 3 sigma, the bias near the data sheet."""
    folder = real_dir / 'adis16405_static'
    result = analyse(read_signals(folder / 'adis16405_imu1_si.npz'), AllanOptions(fit_from=0.1))
    with (folder / 'adev_published_vs_allantools.csv').open(encoding='utf-8') as file:
        published = [
            float(row['adev_published'])
            for row in csv.DictReader(file)
            if row['imu'] == '1' and row['tau_s'] == '1.28'
        ]
    for k, axis in enumerate(result.axes):
        white = axis.terms.white
        at = int(np.argmin(np.abs(axis.curve.tau - 1.28)))
        modelled = np.sqrt(axis.model[at].sum()) / (np.pi / 180 if k < 3 else 9.80665)
        sigma = np.sqrt(
            (white.std / white.value) ** 2 + (axis.fit.misfit / 2) ** 2 + 0.5 / axis.freedom[at]
        )
        assert abs(modelled / published[k] - 1.0) < 3.0 * sigma
        terms = axis.terms
        # The highest Allan deviation of a Gauss-Markov process is 0.617 of its own.
        level = 0.664 * terms.bias_instability.value
        level += 0.617 * terms.gauss_markov.value if terms.gauss_markov else 0.0
        sheet = np.deg2rad(0.007) if k < 3 else 0.2e-3 * 9.80665
        assert 0.5 * sheet < level < 2.0 * sheet


def counts(number: int, per_degree: float, per_g: float) -> FloatArray:
    """The samples as whole numbers, as converters deliver them."""
    scale = np.array([per_degree * 180.0 / np.pi] * 3 + [per_g / 9.80665] * 3)
    return np.rint(samples(number) * scale)


@pytest.mark.parametrize(('per_degree', 'per_g'), [(131.0, 8192.0), (65.5, 2048.0)])
def test_counts_are_named_and_converted_by_their_scale(
    per_degree: float,
    per_g: float,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    values = counts(3, per_degree, per_g)
    time = 20.0 * np.arange(len(values))[:, None]
    write_csv(tmp_path / 'raw.csv', 'time_ms,gx,gy,gz,ax,ay,az', np.hstack([time, values]))
    scales = ('--gyro-scale', per_degree, '--accel-scale', per_g)
    check_refused(capsys, '--accel-scale', 'allan', 'raw.csv')
    check_refused(capsys, '--gyro-scale', 'allan', 'raw.csv', *UNITS)
    check_refused(capsys, '--accel-scale', 'allan', 'raw.csv', *UNITS, *scales[:2])
    done = call(capsys, 'allan', 'raw.csv', *UNITS, *scales, '--no-check', '--json')
    assert done.status == 0
    for axis, estimates in json.loads(done.out)['axes'].items():
        white = estimates['terms']['white']
        truth = GYRO if axis.startswith('gyro') else ACCEL
        assert abs(white['value'] - truth) < 4.0 * white['std']


def test_whole_numbers_of_fine_units_are_no_counts(tmp_path: Path, capsys: Capture) -> None:
    """A table in mdps and mg, as drivers of LSM6DS sensors write it."""
    values = counts(4, 1000.0, 1000.0)
    path = write_csv(tmp_path / 'milli.csv', 'gx,gy,gz,ax,ay,az', values)
    units = ('--gyro-unit', 'mdps', '--accel-unit', 'mg')
    done = call(capsys, 'allan', path, *units, '--sample-rate', RATE, '--no-check', '--json')
    assert done.status == 0
    white = json.loads(done.out)['axes']['gyroscope_x']['terms']['white']
    assert abs(white['value'] - GYRO) < 4.0 * white['std']


@pytest.mark.parametrize('unit', ['g', 'mg'])
@pytest.mark.parametrize('axes', [('accelerometer_z',), ('accelerometer_x', 'gyroscope_y')])
def test_gravity_tells_the_unit_of_any_choice_of_axes(
    unit: str, axes: tuple[str, ...], tmp_path: Path
) -> None:
    size = 9.80665 * (1.0 if unit == 'g' else 1e-3)
    values = samples(5) / np.array([1.0] * 3 + [size] * 3)
    path = write_csv(tmp_path / 'g.csv', 'gx,gy,gz,ax,ay,az', values)
    options = AllanOptions(reject_motion=False)
    for given, expected in (('m/s^2', {'signals.unit_is_g'}), (unit, set())):
        chosen = TableOptions(rate=RATE, accelerometer_unit=given)
        result = analyse(read_signals(path, chosen).only(axes), options)
        assert {note.code for note in result.notes if 'unit' in note.code} == expected


def test_one_vertical_axis_alone_tells_its_unit(tmp_path: Path) -> None:
    up = samples(6)[:, 5:]
    options = AllanOptions(reject_motion=False)
    for unit, scale in (('g', 9.80665), ('mg', 9.80665e-3), ('', 1.0)):
        path = write_csv(tmp_path / 'z.csv', 'az', up / scale)
        result = analyse(read_signals(path, TableOptions(rate=RATE)), options)
        words = [n.words.get('unit') for n in result.notes if n.code == 'signals.unit_is_g']
        assert words == ([unit] if unit else [])


def test_units_in_the_header_are_compared_with_the_options(tmp_path: Path) -> None:
    header = 'time [ms],gx [deg/s],gy [deg/s],gz [deg/s],ax (m/s^2),ay (m/s^2),az (m/s^2)'
    values = samples(7)
    table = np.hstack([20.0 * np.arange(len(values))[:, None], values])
    path = write_csv(tmp_path / 'header.csv', header, table)
    signals = read_signals(path)
    assert signals.axes == AXES
    assert np.diff(signals.stamp_ns[:3]).tolist() == [20_000_000] * 2
    assert [note.words['stated'] for note in signals.notes] == ['deg/s']
    assert read_signals(path, TableOptions(gyroscope_unit='deg/s')).notes == ()


@pytest.mark.parametrize('joint', ['=', ' '])
@pytest.mark.parametrize('last', ['', ',-'])
def test_the_first_column_may_be_left_out(
    joint: str, last: str, tmp_path: Path, capsys: Capture
) -> None:
    values = samples(8)[:, :2]
    table = np.column_stack([np.zeros(len(values)), values, np.zeros(len(values))])
    path = write_csv(tmp_path / 'first.csv', 'time,a,b,c', table[:, : 4 if last else 3])
    columns = f'--columns{joint}-,gyroscope_x,gyroscope_y{last}'.split()
    done = call(capsys, 'allan', path, *columns, '--sample-rate', RATE, '--no-check', '--json')
    assert done.status == 0
    assert set(json.loads(done.out)['axes']) == {'gyroscope_x', 'gyroscope_y'}
