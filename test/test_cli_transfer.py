# SPDX-License-Identifier: Apache-2.0
"""`sim2real transfer`: answer, files, gate, study key and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_examples import call, check_refused

from sim2real_eval import simulate
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.transfer import transfer_answer
from sim2real_eval.study.transfer_record import read_transfer
from sim_sensors import motion_of

Capture = pytest.CaptureFixture[str]
SMALL = (
    '--parameters', 'process_noise_covariance.velocity', '--tunings', '8', '--warmup', '1',
    '--jobs', '1',
)  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('bags')
    for k in range(6):
        motion = motion_of('accelerating', duration=6.0)
        for kind, gps in (('real', 'ch_rw'), ('mine', 'ch_gauss')):
            name = f'{kind}{k}'
            drive = simulate(motion, gps=gps, imu='chrono', name=name, seed=10 * k)
            write_recording(drive, folder / name)
    return folder


def real(bags: Path) -> list[Path]:
    return sorted(bags.glob('real*'))


@pytest.fixture(scope='module')
def result(bags: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a transfer with models of the package and recordings of another simulator."""
    from sim2real_eval.cli.main import main

    out = tmp_path_factory.mktemp('result') / 'cost'
    words = ['transfer', '--real', *real(bags), '--models', 'ch_rw', '--imu', 'chrono',
             '--simulated', f'mine={bags}/mine*', '--out', out, *SMALL]  # fmt: skip
    assert main([str(word) for word in words]) == 0
    return out


def test_models_and_recordings_of_another_simulator_stand_in_one_table(result: Path) -> None:
    record = read_transfer(result)
    assert record is not None
    assert {model['model'] for model in record['models']} == {'ch_rw', 'mine'}
    best = record['models'][0]
    # The recordings were made with ch_rw.
    assert best['model'] == 'ch_rw'
    assert abs(best['loss']) < 0.1
    assert len(record['recordings']) == 6
    assert len(transfer_answer(record)) == 3
    tunings = (result / 'tunings.csv').read_text().splitlines()
    assert len(tunings) == 1 + record['tunings'] == 9
    assert (result / 'transfer.png').stat().st_size > 10_000
    assert not list(result.parent.glob('*.evaluations'))


def test_the_gate_takes_the_loss_in_per_cent(capsys: Capture, result: Path) -> None:
    record = read_transfer(result)
    assert record is not None
    losses = {model['model']: model for model in record['models']}
    worst = max(model['loss'] for model in losses.values())
    for limit, status in ((f'{100.0 * worst + 1.0}%', 0), (f'{100.0 * worst - 1.0}%', 1)):
        assert call(capsys, 'gate', result, '--max-transfer-loss', limit).status == status
    high = losses['ch_rw']['high']
    for limit, status in ((high + 0.01, 0), (high - 0.01, 1)):
        words = ('--models', 'ch_rw', '--by', 'high', '--max-transfer-loss', limit)
        assert call(capsys, 'gate', result, *words).status == status
    check_refused(capsys, 'no VEPD', 'gate', result, '--max-vepd', 0.1)
    check_refused(capsys, 'ten%', 'gate', result, '--max-transfer-loss', 'ten%')
    words = ('--max-transfer-loss', '10%', '--models', 'none')
    check_refused(capsys, '--models', 'gate', result, *words)


def test_a_study_file_asks_for_the_transfer_once(
    capsys: Capture, bags: Path, tmp_path: Path
) -> None:
    file = tmp_path / 'study.yaml'
    file.write_text(
        f'title: two models\nrecordings: [{{path: {bags}/real*}}]\n'
        'models: [{label: rw, gps: ch_rw, imu: chrono}]\n'
        'transfer: {tunings: 8, warmup: 1.0, parameters: process_noise_covariance.velocity}\n'
    )
    words = ('study', file, '--out', tmp_path / 'out', '--resamples', 100, '--jobs', 1)
    assert call(capsys, *words).status == 0
    written = tmp_path / 'out' / 'transfer.json'
    record = json.loads(written.read_text())
    assert [model['model'] for model in record['models']] == ['rw']
    assert 'id="transfer"' in (tmp_path / 'out' / 'report.html').read_text()
    before = written.stat().st_mtime_ns
    assert call(capsys, *words).status == 0
    assert written.stat().st_mtime_ns == before
    assert call(capsys, 'gate', tmp_path / 'out', '--max-transfer-loss', '900%').status == 0
    file.write_text(file.read_text().replace('tunings: 8', 'tuning: 8'))
    check_refused(capsys, 'tuning', *words)


def test_wrong_requests_are_refused_in_one_line(
    capsys: Capture, bags: Path, tmp_path: Path
) -> None:
    common = ('transfer', '--real', *real(bags)[:2], '--out', tmp_path / 'out', *SMALL)
    for complaint, *words in (
        ('NAME=PATTERN', '--simulated', 'mine'),
        ('nothing', '--simulated', f'mine={bags}/nothing*'),
        ('ch_rw', '--models', 'ch_rw', '--simulated', f'ch_rw={bags}/mine*'),
        ('nothing', '--models', 'nothing'),
        ('comfort', '--models', 'ch_rw', '--objective', 'comfort'),
        ('--blocks', '--models', 'ch_rw', '--blocks', 3),
        ('study.json', '--models', 'ch_rw', '--study', tmp_path),
    ):
        check_refused(capsys, str(complaint), *common, *words)
