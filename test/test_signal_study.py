# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies of signals: the thesis's conclusion, sizes of errors, and what is refused."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call, check_refused
from signal_examples import made as twin_of
from signal_examples import truth_of

from sim2real_eval.recording.recording import Recording
from sim2real_eval.signals.comparison import compare_signals
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_path
from sim_sensors.imu.gazebo import HectorImu, HectorYaw

pytest.importorskip('imufusion', reason='the stand-in has the yaw of a fusion')

Capture = pytest.CaptureFixture[str]
THESIS = config_path('studies', 'thesis_imu.yaml')


@pytest.fixture(scope='module')
def thesis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the result of the thesis's study with one run per path."""
    from sim2real_eval.cli.main import main

    out = tmp_path_factory.mktemp('thesis') / 'out'
    assert main(['study', 'thesis_imu', '--runs', '1', '--out', str(out), '--quiet']) == 0
    return out


def turned(offset: float) -> Recording:
    """A circle with an IMU whose yaw is off by a constant angle, rad."""
    imu = HectorImu(orientation=HectorYaw(offset=offset))
    return twin_of(truth_of('circle', 1), Twin('turned', None, imu))


def yaw_of(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Return the columns of yaw.csv by path and sensor."""
    rows = csv.DictReader((folder / 'yaw.csv').read_text(encoding='utf-8').splitlines())
    return {
        (row['path'], row['sensor']): {
            name: float(value) for name, value in row.items() if name.endswith('_deg')
        }
        for row in rows
    }


def test_the_stand_in_drifts_as_the_thesis_prints(thesis: Path) -> None:
    """Path A: 1.5 deg after one minute, 15 deg after eleven."""
    real = yaw_of(thesis)['path_a', 'real']
    assert real['largest_1_min_deg'] == pytest.approx(1.5, abs=0.4)
    assert real['largest_11_min_deg'] == pytest.approx(15.0, abs=0.5)


def test_the_conclusion_is_that_of_the_thesis(thesis: Path) -> None:
    """Generic does not drift; Hector does, and is nearest."""
    answer = json.loads((thesis / 'comparison.json').read_text(encoding='utf-8'))['answer'][0]
    assert answer['nearest'] == 'hector_1000s'
    assert answer['signals'] == 1
    yaw = yaw_of(thesis)
    for path in ('path_a', 'path_b', 'path_c', 'path_d'):
        assert yaw[path, 'generic']['last_trend_deg'] < 1.0
        for hector in ('hector_200s', 'hector_1000s'):
            assert yaw[path, hector]['largest_11_min_deg'] > 3.0
        assert (thesis / f'yaw_{path}_1.png').stat().st_size > 20_000


def test_the_drift_has_its_power_at_low_frequencies(thesis: Path) -> None:
    """Figure 4.11: generic lacks some orders of magnitude; Hector is within one (4.15)."""
    rows = csv.DictReader((thesis / 'psd.csv').read_text(encoding='utf-8').splitlines())
    low: dict[str, list[float]] = {}
    for row in rows:
        if row['signal'] == 'yaw' and 0.005 < float(row['frequency_hz']) < 0.03:
            low.setdefault(row['model'], []).append(float(row['error_psd']))
    power = {model: float(np.mean(values)) for model, values in low.items()}
    assert power['generic'] < 1e-3 * power['real']
    assert 0.1 < power['hector_1000s'] / power['real'] < 10.0


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'judges': ['clean']}, 'judges'),
        ({'conditions': [{'label': 'x'}]}, 'conditions'),
        ({'signals': {'quantities': 'yaws'}}, 'did you mean yaw'),
        ({'signals': {'trend': 3}}, 'trend'),
    ],
)
def test_what_signals_do_not_have_is_refused(
    change: dict[str, object],
    words: str,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path('mine.yaml')
    file.write_text(yaml.safe_dump(yaml.safe_load(THESIS.read_text('utf-8')) | change), 'utf-8')
    check_refused(capsys, words, 'study', file, '--out', 'out')


@pytest.mark.parametrize(
    'words',
    [
        ('--judge-config', 'clean'),
        ('--warmup', '5'),
        ('--simulate-on', 'drive'),
        ('--resamples', '100'),
        ('--no-start-heading',),
        ('--window', '5'),
    ],
)
def test_options_of_judges_are_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    option = words[0].removeprefix('--no-').removeprefix('--')
    check_refused(capsys, option, 'study', 'thesis_imu', *words, '--out', 'out')


def test_a_study_of_signals_takes_recordings(tmp_path: Path, capsys: Capture) -> None:
    """They stand in place of the stand-ins; three are too few to tell more than the order."""
    made = tmp_path / 'made'
    words = ('--motion', 'circle', '--duration', 20, '--runs', 3, '--imu', 'chrono_ahrs')
    assert call(capsys, 'simulate', *words, '--out', made).status == 0
    real = sorted(made.iterdir()) if made.is_dir() else []
    real = [path for path in real if path.is_dir()] or [made]
    words = (*real, '--out', tmp_path / 'out', '--json')
    told = call(capsys, 'study', 'thesis_imu', *words)
    assert told.status == 0, told.err
    record = json.loads(told.out)
    assert len(record['real']) == len(real)
    assert {row['signal'] for row in record['rows']} == {'yaw'}


def test_opposite_drifts_are_alike_in_size() -> None:
    """Offsets of 0.1 and -0.1 rad: W1 of the errors is 0.2 rad, and 0 of the sizes."""
    real, other = turned(0.1), turned(-0.1)
    for sizes, distance in ((False, 0.2), (True, 0.0)):
        options = SignalOptions(quantities='yaw', sizes=sizes)
        (row,) = compare_signals([real], [other], options).rows
        assert row.error_distance == pytest.approx(distance, abs=1e-6)


def test_an_error_of_rounding_has_no_spectrum() -> None:
    noisy = HectorImu(orientation=HectorYaw(gaussian_noise=0.01))
    real = twin_of(truth_of('circle', 1), Twin('noisy', None, noisy))
    for sides in ((real, turned(0.0)), (turned(0.0), real), (turned(0.0), turned(1e-15))):
        first, second = ([one] * 8 for one in sides)
        (row,) = compare_signals(first, second, SignalOptions(quantities='yaw')).rows
        assert (row.spectrum_distance, row.spectrum_split_half, row.spectrum_p) == (None,) * 3
        assert row.error_p is not None
    (row,) = compare_signals([real], [real], SignalOptions(quantities='yaw')).rows
    assert row.spectrum_distance == 0.0


def test_what_has_no_spectrum_is_left_out_of_the_test() -> None:
    """Of one signal, p of the W1 distance alone and adjusted are then one number."""
    noisy = Twin('noisy', None, HectorImu(orientation=HectorYaw(gaussian_noise=0.01)))
    real = [twin_of(truth_of('circle', 1), noisy, seed=seed) for seed in range(8)]
    (row,) = compare_signals(real, [turned(0.0)] * 8, SignalOptions(quantities='yaw')).rows
    assert row.p_adjusted == row.error_p
    assert row.verdict == 'different'


@pytest.mark.parametrize('chosen', ['angular_rate', 'specific_force,yaw', 'yaw'])
def test_any_choice_of_quantities_has_its_figures(
    chosen: str, tmp_path: Path, capsys: Capture
) -> None:
    made, out = tmp_path / 'made', tmp_path / 'out'
    words = ('--motion', 'circle', '--duration', 20, '--imu', 'chrono_ahrs', '--out', made)
    assert call(capsys, 'simulate', *words).status == 0
    words = ('--imu', 'hector_imu', '--quantities', chosen, '--out', out)
    told = call(capsys, 'compare', made / 'circle_1', *words)
    assert told.status == 0, told.err
    assert (out / 'scatter.png').exists() == (chosen != 'yaw')
    assert (out / 'yaw_error.png').exists() == ('yaw' in chosen)


def test_a_quantity_that_no_run_has_is_refused(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = tmp_path / 'made'
    words = ('--motion', 'circle', '--duration', 20, '--gps', 'none', '--out', made)
    assert call(capsys, 'simulate', *words).status == 0
    words = ('--imu', 'ideal', '--quantities', 'position', '--out', tmp_path / 'out')
    check_refused(capsys, 'position', 'compare', made / 'circle_1', *words)


def test_an_unknown_quantity_is_refused() -> None:
    with pytest.raises(ParameterError, match='angular_rate'):
        SignalOptions(quantities='angular_rates')
    assert dataclasses.replace(SignalOptions(), quantities='yaw, position').quantity_names == (
        'yaw', 'position',
    )  # fmt: skip
