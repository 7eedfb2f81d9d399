# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of data sheets become models whose Allan curves show these numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.characterization.allan import allan_curve
from sim2real_eval.characterization.data_sheet import SHEET_KEYS, read_sheet
from sim2real_eval.characterization.sheet_units import UnitError, parse_quantity, parse_unit
from sim2real_eval.characterization.signal_files import read_signals
from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.imu import load_imu
from sim_sensors.world.geodesy import STANDARD_GRAVITY

Capture = pytest.CaptureFixture[str]
SHEETS = sorted((Path(__file__).parents[1] / 'docs' / 'howto' / 'sheets').glob('*.yaml'))
DEGREE = math.radians(1.0)


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('0.3 deg/sqrt(h)', 0.005 * DEGREE),
        ('0.3 \u00b0/\u221ahr', 0.005 * DEGREE),
        ('5 mdps/\u221aHz', 0.005 * DEGREE),
        ('0.005 \u00ba/s/rtHz', 0.005 * DEGREE),
        ('400 \u00b5g/\u221a(Hz)', 400e-6 * STANDARD_GRAVITY),
        ('0.06 m/s/sqrt(h)', 1e-3),
        ('\u00b120 \u00b0/sec', 20.0 * DEGREE),
        ('8 deg/hr', 8.0 * DEGREE / 3600.0),
        ('16,384 LSB/g', 16384.0 / STANDARD_GRAVITY),
        ('0.061 mg/LSB', 0.061e-3 * STANDARD_GRAVITY),
        ('16.4 LSB/(\u00ba/s)', 16.4 / DEGREE),
        ('0.02 %/\u00b0C', 2e-4),
        ('100 ppm/K', 1e-4),
        ('9.8 m s^-2', 9.8),
        ('9.8 m/s\u00b2', 9.8),
        ('2 kHz', 2000.0),
    ],
)
def test_units_are_read_as_sheets_print_them(text: str, value: float) -> None:
    assert parse_quantity(text)[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    'text', ['', 'deg', '5 furlongs', '5 deg/', '5 (deg', '5 deg)', '1,2 g', '5 $']
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_quantity(text)


@given(st.text(alphabet='degsqrtHz/()^*-0123456789. %\u221a\u00b0', max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        value, unit = parse_quantity(text)
    except UnitError:
        return
    assert math.isfinite(unit.size)
    assert not math.isnan(value)


@pytest.mark.parametrize('key', SHEET_KEYS)
def test_the_examples_of_the_messages_are_allowed(key: str) -> None:
    for example, unit in zip(SHEET_KEYS[key].example, ('rad/s', 'm/s^2'), strict=True):
        if example:
            expected = parse_unit(SHEET_KEYS[key].unit.format(u=unit))
            found = parse_quantity(example)[1]
            is_step = found.is_like(expected.raised(-1.0))
            is_angle = found.is_like(parse_unit('rad'))
            assert found.is_like(expected) or is_step or is_angle


def write(folder: Path, text: str) -> Path:
    path = folder / 'sheet.yaml'
    path.write_text(text, encoding='utf-8')
    return path


FULL = """\
name: example
rate: 100 Hz
gyroscope:
  noise_density: 0.004 deg/s/sqrt(Hz)
  spectrum: two-sided
  turn_on_bias: 0.1 deg/s
  range: 500 deg/s
  sensitivity: 65.5 LSB/(deg/s)
accelerometer:
  noise_density: [150 ug/sqrt(Hz), 150 ug/sqrt(Hz), 200 ug/sqrt(Hz)]
  spectrum: one-sided
  turn_on_bias: 1 mg
  range: 4 g
  sensitivity: 0.122 mg/LSB
"""
WALKS = """\
rate: 50 Hz
gyroscope:
  angle_random_walk: 0.6 deg/sqrt(h)
  bandwidth: 30 Hz
accelerometer:
  rms_noise: 2 mg
  noise_bandwidth: 25 Hz
"""


@pytest.mark.parametrize(
    ('text', 'gyroscope', 'accelerometer'),
    [
        (
            FULL,
            [0.004 * DEGREE] * 3,
            np.array([150e-6, 150e-6, 200e-6]) * STANDARD_GRAVITY / 2**0.5,
        ),
        (WALKS, [0.01 * DEGREE] * 3, [2e-3 / 50**0.5 * STANDARD_GRAVITY] * 3),
    ],
)
def test_the_allan_curve_of_the_model_shows_the_numbers_of_the_sheet(
    text: str, gyroscope: object, accelerometer: object, tmp_path: Path, capsys: Capture
) -> None:
    """Within 2 %: the Allan deviation at 1 s of 2000 s scatters by 1.9 %, its mean by less."""
    model = tmp_path / 'model' / 'imu.yaml'
    sheet = write(tmp_path, text)
    assert call(capsys, 'models', '--sheet', sheet, '--out', model.parent).status == 0
    assert load_imu(model) == read_sheet(sheet).model
    simulated = call(
        capsys, 'simulate', '--motion', 'standstill', '--duration', 2000, '--imu', model,
        '--out', tmp_path / 'out',
    )  # fmt: skip
    assert simulated.status == 0
    signals = read_signals(tmp_path / 'out' / 'standstill_1')
    rate = load_imu(model).rate
    for axis, expected in zip(signals.axes, [*gyroscope, *accelerometer], strict=True):
        # White noise: sigma sqrt(tau) = N at each time; the low pass has settled at 0.2 s.
        factors = np.round(np.array([0.2, 0.3, 0.5]) * rate).astype(int)
        curve = allan_curve(signals.column(axis), rate, factors)
        densities = np.sqrt(curve.variance * curve.tau)
        assert densities.mean() == pytest.approx(expected, rel=0.02)


def test_bias_instability_is_the_lowest_point_or_b(tmp_path: Path) -> None:
    text = 'rate: 10 Hz\ngyroscope: {bias_instability: 8 deg/h%s}\n'
    for more, factor in (
        ('', 0.664), (', stability: minimum', 0.664), (', stability: coefficient', 1.0),
    ):  # fmt: skip
        sheet = read_sheet(write(tmp_path, text % more))
        b = sheet.model.gyroscope.bias_instability[0]
        assert factor * b == pytest.approx(8.0 * DEGREE / 3600.0, rel=1e-8)
        assert ('sheet.stability' in {note.code for note in sheet.notes}) is not bool(more)


def test_rounding_is_taken_off_where_the_filtered_noise_moves_over_the_steps(
    tmp_path: Path,
) -> None:
    """0.01 deg/s/sqrt(Hz) at 1 kHz has 0.3 deg/s, and 0.03 deg/s behind 5 Hz; a step is 0.1."""
    text = (
        'rate: 1 kHz\ngyroscope:\n  noise_density: 0.01 dps/sqrt(Hz)\n  sensitivity: 0.1 dps/LSB'
    )
    plain = read_sheet(write(tmp_path, text)).model.gyroscope.noise_density[0]
    assert plain == pytest.approx(DEGREE * (0.01**2 - 0.1**2 / 12.0 / 1000.0) ** 0.5)
    filtered = read_sheet(write(tmp_path, f'{text}\n  bandwidth: 5 Hz')).model.gyroscope
    assert filtered.noise_density[0] == pytest.approx(0.01 * DEGREE)


def test_what_a_sheet_does_not_state_is_zero_and_named(tmp_path: Path) -> None:
    sheet = read_sheet(write(tmp_path, WALKS))
    missing = {
        note.subject: set(note.words['keys'].split(', '))
        for note in sheet.notes
        if note.code == 'sheet.not_stated'
    }
    assert missing['gyroscope'] >= {'bias_instability', 'random_walk', 'range', 'sensitivity'}
    assert 'bandwidth' not in missing['gyroscope']
    assert 'noise_density' not in missing['accelerometer']
    assert not any(sheet.model.gyroscope.bias_instability)
    assert not any(sheet.model.accelerometer.random_walk)


@pytest.mark.parametrize(
    ('text', 'codes'),
    [
        ('gyroscope: {noise_density: 0.004 deg/s/sqrt(Hz)}', {'sheet.spectrum', 'sheet.no_rate'}),
        (
            'rate: 9 Hz\ngyroscope: {angle_random_walk: 0.34 deg/sqrt(h), spectrum: one-sided, '
            'noise_density: 0.008 deg/s/sqrt(Hz)}',
            set(),
        ),
        (
            'rate: 9 Hz\ngyroscope: {angle_random_walk: 0.34 deg/sqrt(h), '
            'noise_density: 0.008 deg/s/sqrt(Hz)}',
            {'sheet.disagree'},
        ),
    ],
)
def test_assumptions_about_a_sheet_are_told(text: str, codes: set[str], tmp_path: Path) -> None:
    sheet = read_sheet(write(tmp_path, text))
    assert {note.code for note in sheet.notes} - {'sheet.not_stated'} == codes


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('gyroscope: {noise_density: 400 ug/sqrt(Hz)}', 'gyroscope.noise_density'),
        ('gyroscope: {noise_density: 0.004 deg/s}', 'deg/s/sqrt(Hz)'),
        ('gyroscope: {noise_density: 0.004}', 'deg/s/sqrt(Hz)'),
        ('accelerometer: {angle_random_walk: 1 deg/sqrt(h)}', 'velocity_random_walk'),
        ('accelerometer: {range: 16 parsecs}', 'parsecs'),
        ('accelerometer: {range: [16 g, 16 g]}', 'accelerometer.range'),
        ('accelerometer: {rms_noise: 1 mg}', 'noise_bandwidth'),
        ('accelerometer: {range: -2 g}', '-2 g'),
        ('gyroscope: {bias_instability: 1 deg/h, stability: maybe}', 'coefficient'),
        ('gyroscope: {sensitivity: 16.4 LSB/g}', 'gyroscope.sensitivity'),
        ('gyroscope: 3', 'mapping'),
        ('name: nothing', 'gyroscope'),
        ('gyro: {}', 'gyroscope'),
        ('- 1', 'mapping'),
        ('rate: 5 s\ngyroscope: {range: 5 dps}', 'rate'),
        ('accelerometer: {rms_noise: 1 mg, noise_bandwidth: 0 Hz}', 'noise_bandwidth'),
    ],
)
def test_a_wrong_sheet_is_refused_in_one_line(
    text: str, complaint: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text)
    check_refused(capsys, complaint, 'models', '--sheet', 'sheet.yaml')


def test_wrong_options_are_refused(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, FULL)
    (tmp_path / 'imu.yaml').touch()
    check_refused(capsys, '--overwrite', 'models', '--sheet', 'sheet.yaml', '--out', '.')
    check_refused(capsys, '--sheet', 'models', '--out', 'new')
    check_refused(capsys, 'bno055', 'models', 'bno055', '--sheet', 'sheet.yaml')
    check_refused(capsys, 'gone.yaml', 'models', '--sheet', 'gone.yaml')
    printed = call(capsys, 'models', '--sheet', 'sheet.yaml')
    (tmp_path / 'new.yaml').write_text(printed.out, encoding='utf-8')
    assert load_imu(tmp_path / 'new.yaml') == read_sheet(tmp_path / 'sheet.yaml').model
    record = json.loads(call(capsys, 'models', '--sheet', 'sheet.yaml', '--json').out)
    assert record['gyroscope']['range'][0] == pytest.approx(500.0 * DEGREE)


@pytest.mark.parametrize('path', SHEETS, ids=lambda path: path.stem)
def test_the_sheets_of_the_documentation_are_models(path: Path, tmp_path: Path) -> None:
    sheet = read_sheet(path)
    assert sheet.source
    (tmp_path / 'imu.yaml').write_text(sheet.to_yaml(), encoding='utf-8')
    assert load_imu(tmp_path / 'imu.yaml') == sheet.model


def test_there_are_five_sheets() -> None:
    assert len(SHEETS) >= 5


def test_a_sheet_of_a_receiver_is_refused_with_what_to_use(tmp_path: Path) -> None:
    sheet = tmp_path / 'f9p.yaml'
    sheet.write_text('name: F9P\ngps:\n  cep: 0.01\n')
    with pytest.raises(ParameterError, match='characterize'):
        read_sheet(sheet)
