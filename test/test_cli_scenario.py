# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real scenario`: the example, walking biases, tables, and refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents
from test_rigid_scenarios import write_table

from sim_sensors.motion.spatial_scenarios import ConstantTwist

Capture = pytest.CaptureFixture[str]
FILES = {'.scenario.json.files', 'scenario.json', 'scenario.png', 'measurements.csv', 'errors.csv'}
SCREW = '--motion', 'constant_twist', '--set', 'angular_velocity=[0.2,0,1]'


def test_record_and_series_contain_the_results(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        'scenario', *SCREW, '--accelerometer-walk', 0.03, '--gyroscope-walk', 0.003, '--runs', 300,
        '--duration', 1.0, '--seed', 5, '--out', 'walk',
    ]  # fmt: skip
    printed = call(capsys, *words, '--json')
    assert printed.status == 0
    assert {path.name for path in Path('walk').iterdir()} == FILES
    record = json.loads(Path('walk/scenario.json').read_text(encoding='utf-8'))
    assert record == json.loads(printed.out)
    assert record['runs'] == 300
    assert len(record['components']) == 15
    assert record['agreement']['degrees_of_freedom'] == 120
    assert record['agreement']['probability'] > 1e-4
    errors = np.genfromtxt('walk/errors.csv', delimiter=',', names=True)
    assert errors.dtype.names == tuple(record['components'])
    table = np.array(errors.tolist())
    np.testing.assert_allclose(np.cov(table, rowvar=False), record['estimated_covariance'])
    with Path('walk/measurements.csv').open(encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 100
    truth = ConstantTwist(angular_velocity=(0.2, 0.0, 1.0)).at([0.5])
    force = truth.specific_force(9.81)[0]
    ideal = [float(rows[50][f'ideal_force_{axis}']) for axis in 'xyz']
    np.testing.assert_allclose(ideal, force, atol=1e-12)

    check_refused(capsys, 'walk: exists', *words)
    before = contents(Path('walk'))
    assert call(capsys, *words, '--overwrite').status == 0
    assert contents(Path('walk')) == before


def test_a_list_option_may_begin_with_a_negative_number(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = 'scenario', '--runs', 20, '--duration', 0.1, '--json', '--seed', 0
    record = json.loads(call(capsys, *line, '--bias', '-1e-1,.2,-0.3,0,-.1,0').out)
    assert record['bias'] == [-0.1, 0.2, -0.3, 0.0, -0.1, 0.0]


def test_a_table_can_be_used_as_a_scenario(capsys: Capture, tmp_path: Path) -> None:
    """Rows are 0.5 s apart; joined segments reach the true end, `--as-upstream` misses it."""
    motion = ConstantTwist(angular_velocity=(0.1, 0.2, 0.9), velocity=(2.0, 0.0, 0.5))
    path = write_table(tmp_path / 'screw.csv', motion, np.arange(0.0, 5.1, 0.5))
    missed = []
    for more in ([], ['--as-upstream']):
        outcome = call(
            capsys, 'scenario', '--table', path, '--duration', 4.0, '--sample-time', 0.001,
            '--form', 'manifold', '--runs', 20, '--json', *more,
        )  # fmt: skip
        record = json.loads(outcome.out)
        assert record['scenario'] == 'screw'
        missed.append(float(np.linalg.norm(record['error_without_noise'][3:6])))
    assert missed[0] < 0.01
    assert missed[1] > 5.0 * missed[0]
    longer = call(capsys, 'scenario', '--table', path, '--duration', 6)
    assert longer.status == 2
    assert '--duration: 6' in longer.err


@pytest.mark.parametrize(
    ('words', 'complaint'),
    [
        (['--motion', 'spiral'], 'spiral'),
        (['--set', 'speed=1'], 'speed'),
        (['--set', 'rpy'], 'rpy'),
        (['--set', 'duration=3'], '--duration'),
        (['--table', 'gone.csv'], 'gone.csv'),
        (['--table', 'gone.csv', '--set', 'a=1'], '--motion'),
        (['--table', 'gone.csv', '--motion', 'line'], '--motion'),
        (['--as-upstream'], '--table'),
        (['--duration', '0.001'], '--duration: 0.001'),
        (['--sample-time', '0'], "'0'"),
        (['--bias', '1,2,3'], "'1,2,3'"),
        (['--bias', '-1,2'], "'-1,2'"),
        (['--runs', '19'], "'19'"),
        (['--motion', 'circle', '--set', 'ramp_time=0', '--set', 'radius=0.1', '--set', 'speed=1'],
         'form tangent'),
        (['--out', 'file.txt'], 'file.txt'),
    ],
)  # fmt: skip
def test_wrong_scenario_command_lines_are_refused(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str],
    complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path('file.txt').write_text('mine', encoding='utf-8')
    check_refused(capsys, complaint, 'scenario', *words)
