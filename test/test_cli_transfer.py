# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real transfer`: answer, files, gate, study key and refusals."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_examples import call, check_refused

from sim2real_eval import read_recording, simulate
from sim2real_eval.benches.transfer.sources import study_sources
from sim2real_eval.cli.sensors import twins
from sim2real_eval.cli.transfer_request import TransferRequest
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.transfer import transfer_answer, transfer_table
from sim2real_eval.study.options import StudyOptions, TransferOptions
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.recordings import recordings_from_sources
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.transfer_record import read_transfer
from sim2real_eval.study.variants import StudyJudge
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
    words = ['transfer', *real(bags), '--models', 'ch_rw', '--imu', 'chrono',
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
    assert record['study']['seed'] == 0
    assert record['simulated']['ch_rw']['sensors'].keys() == {'gps', 'imu'}
    assert len(record['simulated']['mine']['recordings']) == 6
    assert len(transfer_answer(record)) == 3
    tunings = (result / 'tunings.csv').read_text().splitlines()
    assert len(tunings) == 1 + record['tunings'] == 9
    assert (result / 'transfer.png').stat().st_size > 10_000
    assert not list(result.parent.glob('*.evaluations'))


def _without_truth(bags: Path, folder: Path) -> list[Path]:
    """Write the real recordings without their truth."""
    for path in real(bags):
        drive = read_recording(path)
        topic = drive.roles['truth']
        blind = dataclasses.replace(
            drive,
            messages={name: array for name, array in drive.messages.items() if name != topic},
            roles={role: name for role, name in drive.roles.items() if role != 'truth'},
        )
        write_recording(blind, folder / path.name)
    return sorted(folder.glob('real*'))


def test_recordings_of_a_simulator_alone_need_neither_truth_nor_models(
    capsys: Capture, bags: Path, tmp_path: Path
) -> None:
    blind = _without_truth(bags, tmp_path / 'blind')
    words = ('transfer', *blind, '--out', tmp_path / 'out', *SMALL)
    mine = ('--simulated', f'mine={bags}/mine*')
    assert call(capsys, *words, *mine).status == 0
    record = read_transfer(tmp_path / 'out')
    assert record is not None
    assert [model['model'] for model in record['models']] == ['mine']
    assert record['quantity'] == 'likelihood'
    # The models of the package are simulated on the true motion.
    again = ('transfer', *blind, '--out', tmp_path / 'other', *SMALL)
    check_refused(capsys, 'truth', *again, *mine, '--models', 'ch_rw')
    check_refused(capsys, 'truth', *again, *mine, '--objective', 'speed')
    # The likelihood of other measurements cannot be compared.
    check_refused(capsys, 'odom0_config', *again, *mine, '--parameters', 'inputs')


def test_heading_errors_are_radians_in_files_and_degrees_in_tables(result: Path) -> None:
    record = read_transfer(result)
    assert record is not None
    best = {**record['models'][0], 'achieved': 0.1}
    shown = {}
    for quantity in ('speed', 'heading'):
        table = transfer_table({**record, 'quantity': quantity, 'models': [best]})
        column = next(k for k, c in enumerate(table.columns) if c.label == 'on the robot')
        shown[quantity] = float(table.rows[0][column]), table.columns[column].unit
    assert shown['speed'] == (0.1, 'm/s')
    value, unit = shown['heading']
    assert value == pytest.approx(math.degrees(0.1), rel=1e-3)
    assert unit == 'deg'


def test_an_interrupted_transfer_goes_on_unless_a_recording_has_changed(
    bags: Path, tmp_path: Path
) -> None:
    """Also models on the motion of a recording depend on its content."""

    def digest(paths: Sequence[Path]) -> str:
        sources = [RecordingSource(str(path)) for path in paths]
        file = StudyFile(
            title='', options=StudyOptions(), recordings=recordings_from_sources(sources),
            twins=twins('ch_rw', 'chrono'),
            judges=(StudyJudge('clean', 'embedded', JudgeSetup.load('clean')),), settings={},
        )  # fmt: skip
        plan = StudyPlan.from_file(file)
        drives, models = study_sources(plan, file.judges[0].setup)
        request = TransferRequest(
            file.judges[0].setup, TransferOptions(), drives, models, [''] * len(paths),
            file.options,
        )  # fmt: skip
        return request.store(tmp_path / 'out').search

    for path in real(bags)[:2]:
        shutil.copytree(path, tmp_path / path.name)
    paths = sorted(tmp_path.glob('real*'))
    first = digest(paths)
    assert digest(paths) == first
    shutil.rmtree(paths[1])
    shutil.copytree(real(bags)[2], paths[1])
    assert digest(paths) != first


def test_a_model_without_a_loss_breaks_the_gate(
    capsys: Capture, result: Path, tmp_path: Path
) -> None:
    record = read_transfer(result)
    assert record is not None
    broken = {**record, 'failures': {'bad': 'diverged'}}
    (tmp_path / 'transfer.json').write_text(json.dumps(broken))
    limit = ('--max-transfer-loss', '9000%')
    assert call(capsys, 'gate', tmp_path, *limit).status == 1
    assert call(capsys, 'gate', tmp_path, *limit, '--models', 'mine').status == 0
    assert call(capsys, 'gate', tmp_path, *limit, '--models', 'bad').status == 1
    # The intervals of a transfer have the level with which it was measured.
    words = ('gate', result, *limit, '--by', 'low')
    assert call(capsys, *words).status == 0
    check_refused(capsys, '--confidence', *words, '--confidence', 0.99)
    by_estimate = ('gate', result, *limit, '--by', 'estimate', '--confidence', 0.99)
    assert call(capsys, *by_estimate).status == 0


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
    other = ('--max-transfer-loss', '10%', '--models', 'none')
    check_refused(capsys, '--models', 'gate', result, *other)


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
    assert _stored_cost(tmp_path / 'out')['loss'] == record['models'][0]['loss']
    before = written.stat().st_mtime_ns
    assert call(capsys, *words).status == 0
    assert written.stat().st_mtime_ns == before
    assert _stored_cost(tmp_path / 'out')['loss'] == record['models'][0]['loss']
    for path in (tmp_path / 'out', tmp_path / 'out' / 'study.json'):
        assert call(capsys, 'gate', path, '--max-transfer-loss', '900%').status == 0
    judge = tmp_path / 'constant.py'
    judge.write_text('class Constant:\n    def judge(self, recording): return None\n')
    other = ('study', file, '--judge', f'{judge}:Constant', '--out', tmp_path / 'other')
    outcome = call(capsys, *other)
    assert outcome.status == 2
    assert 'Constant' in outcome.err
    # It is refused before anything is judged.
    assert not (tmp_path / 'other').exists()
    file.write_text(file.read_text().replace('tunings: 8', 'tuning: 8'))
    check_refused(capsys, 'tuning', *words)


def _stored_cost(study: Path) -> dict[str, Any]:
    """Return the cost in the answer of study.json, which must have a valid digest."""
    answer = StudyOutcome.read(study).record['answer']
    return dict(answer['transfer'])


def test_a_transfer_is_added_to_a_finished_study(
    capsys: Capture, bags: Path, tmp_path: Path
) -> None:
    study = ('vepd', *real(bags), '--models', 'ch_rw', '--imu', 'chrono', '--resamples',
             100, '--jobs', 1, '--out', tmp_path / 'study')  # fmt: skip
    assert call(capsys, *study).status == 0
    before = StudyOutcome.read(tmp_path / 'study')
    assert before.record['answer']['transfer'] is None
    words = ('transfer', *real(bags), '--models', 'ch_rw', '--imu', 'chrono', '--study',
             tmp_path / 'study', '--out', tmp_path / 'cost', *SMALL)  # fmt: skip
    assert call(capsys, *words).status == 0
    cost = _stored_cost(tmp_path / 'study')
    record = read_transfer(tmp_path / 'cost')
    assert record is not None
    assert cost['loss'] == record['models'][0]['loss']
    # Nothing else changes, also if the command of the study is repeated.
    for _ in range(2):
        after = StudyOutcome.read(tmp_path / 'study')
        assert _stored_cost(tmp_path / 'study') == cost
        assert {**after.record, 'answer': None} == {**before.record, 'answer': None}
        assert len(after.runs) == len(before.runs)
        assert call(capsys, *study).status == 0


def test_wrong_requests_are_refused_in_one_line(
    capsys: Capture, bags: Path, tmp_path: Path
) -> None:
    common = ('transfer', *real(bags)[:2], '--out', tmp_path / 'out', *SMALL)
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


def test_wrong_units_of_recordings_are_told_as_check_tells_them(
    capsys: Capture, bags: Path, tmp_path: Path
) -> None:
    for path in sorted(bags.glob('mine*'))[:2]:
        drive = read_recording(path)
        in_g = dataclasses.replace(
            drive.imu, linear_acceleration=drive.imu.linear_acceleration / 9.80665
        )
        write_recording(drive.with_messages('imu', in_g), tmp_path / 'in_g' / path.name)
    words = ('--simulated', f'g={tmp_path}/in_g/*', '--out', tmp_path / 'out', *SMALL)
    assert call(capsys, 'transfer', *real(bags), *words).status == 0
    record = read_transfer(tmp_path / 'out')
    assert record is not None
    units = [note for note in record['notes'] if note['code'].startswith('check.acceleration')]
    assert [runs[0] for note in units for runs in note['runs']] == ['g']
    assert 'decisive' in (tmp_path / 'out' / 'findings.txt').read_text()
