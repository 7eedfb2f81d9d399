# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real vepd`: from real recordings to a table and its result folder."""

from __future__ import annotations

import csv
import functools
import json
import signal
from pathlib import Path

import pytest
from cli_examples import Outcome, call, check_refused, contents, segments, write_runs
from command_copies import CommandCopy, call_copy

from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    runs = [('drive_line', 1), ('drive_line', 2), ('drive_circle', 1)]
    return write_runs(tmp_path_factory.mktemp('bags'), *runs)


def vepd(capsys: Capture, *arguments: object) -> Outcome:
    return call(capsys, 'vepd', '--jobs', 1, *arguments)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline='', encoding='utf-8') as stream:
        return list(csv.DictReader(stream))


def as_text(value: object) -> str:
    """Format a value of the record as vepd.csv does; whole ranks are integers."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else repr(value)


def test_results_of_a_real_drive_do_not_depend_on_the_number_of_jobs(
    real_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Two segments of the car drive and the five models of the paper give equal folders."""
    paths = segments(real_dir, (0, 4))
    for jobs, run in ((1, functools.partial(call, capsys)), (2, call_copy)):
        outcome = run(
            'vepd', *paths, '--models', 'paper', '--jobs', jobs, '--out',
            tmp_path / str(jobs) / 'result',
        )  # fmt: skip
        assert outcome.status == 0
        assert outcome.complaints == []
    alone, in_two = (contents(tmp_path / str(jobs) / 'result') for jobs in (1, 2))
    assert alone.keys() == in_two.keys()
    for name in alone:
        # New worker processes draw the pictures that are blank in this process.
        assert name.endswith('.png') or alone[name] == in_two[name]
    assert sum(name.startswith('series/') for name in alone) == 2 * 6
    table = rows(tmp_path / '1/result/vepd.csv')
    assert len(table) == 10
    assert {(row['n_real'], row['n_sim']) for row in table} == {('2', '2')}


def test_json_output_equals_the_written_record(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'result'
    models = ['--models', 'ch_gauss,airsim']
    outcome = vepd(capsys, *bags, *models, '--json', '--out', out)
    assert outcome.status == 0
    record = json.loads(outcome.out)
    written = json.loads((out / 'study.json').read_text(encoding='utf-8'))
    assert len(written.pop('sha256')) == 64
    judged, _ = written.pop('runs'), written.pop('uncertainty')
    assert {key: record[key] for key in written} == written
    columns = ['model', 'scenario', 'n_real', 'n_sim', 'w_rmse', 'w_entropy', 'vepd', 'rank']
    printed = [{name: as_text(row[name]) for name in columns} for row in record['vepd']]
    assert printed == [{name: row[name] for name in columns} for row in rows(out / 'vepd.csv')]
    runs = rows(out / 'runs.csv')
    assert len(runs) == len(judged) == 9
    assert {row['recording'] for row in runs} == {'line_1', 'line_2', 'circle_1'}
    series = {f'{source}/{run}.csv' for source in ('Real', 'Sim/ch_gauss', 'Sim/airsim')
              for run in ('line_1', 'line_2', 'circle_1')}  # fmt: skip
    assert set(contents(out / 'series/clean')) == series
    plots = {path.name for path in (out / 'plots/clean').iterdir()}
    assert {'rmse.png', 'entropy.png', 'density.png', 'velocity.png'} <= plots


def test_options_are_recorded_in_the_result(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'result'
    outcome = vepd(
        capsys, bags[0], '--models', 'ch_rw', '--repetitions', 3, '--seed', 5,
        '--match-rates', '--component', 'forward', '--rate', 10, '--warmup', 1, '--window', 3,
        '--spectrum', 'power', '--detrend', 'mean', '--scenario', 'yard', '--judge-config',
        'clean', '--out', out,
    )  # fmt: skip
    assert outcome.status == 0
    record = json.loads((out / 'study.json').read_text(encoding='utf-8'))
    assert (record['seed'], record['repetitions'], record['match_rates']) == (5, 3, True)
    assert (record['component'], record['judges'][0]['name']) == ('forward', 'clean')
    expected = {
        'rate': 10.0, 'warmup': 1.0, 'moving_average': 3, 'spectrum': 'power', 'detrend': 'mean'
    }  # fmt: skip
    assert {key: record['metric'][key] for key in expected} == expected
    runs = rows(out / 'runs.csv')
    assert [row['repetition'] for row in runs] == ['1', '1', '2', '3']
    assert {row['scenario'] for row in runs} == {'yard'}
    assert all(row['rmse'] == row['forward_rmse'] for row in runs)
    assert {float(row['n_samples']) for row in runs} == {50.0}


def test_exported_series_reproduce_the_table(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out, again = tmp_path / 'result', tmp_path / 'again'
    models = ['--models', 'ch_rw,airsim']
    assert vepd(capsys, *bags, *models, '--out', out).status == 0
    outcome = vepd(capsys, '--series', out / 'series/clean', '--out', again, '--json')
    assert outcome.status == 0

    def sorted_rows(path: Path) -> list[list[tuple[str, str]]]:
        # Series files do not say which runs are paired, so only the distances are equal.
        table = rows(path)
        columns = ('model', 'scenario', 'n_real', 'n_sim', 'w_rmse', 'w_entropy', 'vepd', 'rank')
        return sorted([(name, row[name]) for name in columns] for row in table)

    assert sorted_rows(again / 'vepd.csv') == sorted_rows(out / 'vepd.csv')
    assert len(json.loads(outcome.out)['vepd']) == 6
    assert (again / 'density.png').read_bytes().startswith(b'\x89PNG')


def test_published_data_with_zero_padding_are_read(tmp_path: Path, capsys: Capture) -> None:
    """Files have the layout and padding of the paper; equal series give a VEPD of 0."""
    lines = ['se_time,se_vel,gt_time,gt_vel']
    for k in range(600):
        time = 0.01 + k / 30
        truth = f'{0.02 + k / 10},{1.5 + 0.2 * (k % 3)}' if k < 200 else '0.0,0.0'
        lines.append(f'{time},{1.5 + 0.1 * (k % 7)},{truth}')
    for folder in ('Real', 'Sim/chWalk_results'):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / 'path_1.csv').write_text('\n'.join(lines), encoding='utf-8')
        (tmp_path / folder / 'rest_1.csv').write_text('no table', encoding='utf-8')
    refused = vepd(capsys, '--series', tmp_path)
    assert refused.status == 2
    outcome = vepd(capsys, '--series', tmp_path, '--drop-zeros', '--json')
    assert outcome.status == 0
    distances = [(row['scenario'], row['vepd']) for row in json.loads(outcome.out)['vepd']]
    assert distances == [('line', 0.0), ('all', 0.0)]


def test_a_broken_recording_is_left_out_with_status_1(
    bags: list[Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capsys: Capture
) -> None:
    out = tmp_path / 'result'
    empty = tmp_path_factory.mktemp('empty')
    recordings = [bags[0], empty, bags[1]]
    outcome = vepd(capsys, *recordings, '--models', 'ch_rw', '--out', out)
    assert outcome.status == 1
    assert len(outcome.complaints) == 1
    assert rows(out / 'vepd.csv')[0]['n_real'] == '2'
    record = json.loads((out / 'study.json').read_text(encoding='utf-8'))
    assert [failure['recording'] for failure in record['failures']] == [empty.name]


@pytest.mark.parametrize(
    'line',
    [
        'vepd {bag} gone --models ch_rw --out o',
        'study b_gps_models {bag} gone --out o',
        'fit {bag} gone --gps ch_gauss --tune gps.noise.std=0.01:1 --out o',
        'compare {bag} gone --out o',
    ],
)
def test_a_mistyped_path_is_refused_before_any_recording_is_read(
    line: str, bags: list[Path], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(source: RecordingSource) -> Recording:
        raise AssertionError(source.path)

    monkeypatch.setattr(RecordingSource, 'read', read)
    monkeypatch.chdir(tmp_path)
    words = line.format(bag=bags[0]).split()
    check_refused(capsys, 'recordings: gone', *words)


def test_results_are_not_overwritten(bags: list[Path], tmp_path: Path, capsys: Capture) -> None:
    """The same command finds all runs done; another command needs --overwrite."""
    out = tmp_path / 'result'
    first = [bags[0], '--models', 'ch_rw', '--out', out]
    assert vepd(capsys, *first).status == 0
    before = contents(out)
    again = vepd(capsys, *first)
    assert again.status == 0
    assert '2 of 2 runs are already finished' in again.err
    assert contents(out) == before
    other = vepd(capsys, *first, '--seed', 1)
    assert other.status == 2
    assert 'seed' in other.complaints[0]
    assert contents(out) == before
    (out / 'my_notes.md').write_text('mine', encoding='utf-8')
    assert vepd(capsys, *first, '--seed', 1, '--overwrite').status == 0
    changed = contents(out)
    assert changed.pop('my_notes.md') == b'mine'
    assert changed.keys() == before.keys()
    assert changed != before


def test_several_judges_give_the_results_of_each_judge_alone(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    first = [*bags[:2], '--models', 'ch_rw,airsim']
    both = ['--judge-config', 'paper_released', '--judge-config', 'clean']
    assert vepd(capsys, *first, *both, '--out', tmp_path / 'both').status == 0
    table = rows(tmp_path / 'both/vepd.csv')
    judge, single = 'paper_released', tmp_path / 'one'
    assert vepd(capsys, *first, '--judge-config', judge, '--out', single).status == 0
    assert rows(single / 'vepd.csv') == [row for row in table if row['judge'] == judge]


def test_a_killed_vepd_command_can_be_resumed(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """The command is killed after its first runs; until then, a second one is locked out."""
    out, whole = tmp_path / 'out', tmp_path / 'whole'
    words = ['vepd', '--jobs', 1, *bags, '--models', 'ch_rw', '--out']
    with CommandCopy(*words, out) as started:
        started.wait_for(lambda: len([*out.glob('runs/*/*/[!.t]*.npz')]) >= 2, 'the first runs')
        # A stopped command cannot finish before the second one starts.
        started.send(signal.SIGSTOP)
        second = call(capsys, *words, out)
        assert second.status == 2
        assert str(out) in second.complaints[0]
    assert json.loads((out / 'study.json').read_text())['state'] == 'unfinished'
    for folder in (out, whole):
        assert call(capsys, *words, folder).status == 0
    assert contents(out) == contents(whole)
