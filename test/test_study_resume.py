# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies on the disk: killed, continued, changed, damaged, or run by two at a time."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import call, call_process, contents, pictures_left_blank
from command_copies import CommandCopy
from study_file_examples import SMALL, small_plan, write_study_file

from sim2real_eval.cli.main import main
from sim2real_eval.common.file_list import list_name, listed_files, write_list
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.folder import hold_study
from sim2real_eval.study.outcome import MARK, StudyOutcome
from sim2real_eval.study.run_store import RunStore
from sim2real_eval.study.runner import run_study
from sim_sensors.core.errors import Sim2RealError

pytestmark = pytest.mark.usefixtures('blank_pictures')
FOUR = {'recordings': [{'stand_in': {'scenarios': ['line'], 'runs': 4, 'duration': 4.0}}]}


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a study of four recordings, run in one go by one process."""
    folder = tmp_path_factory.mktemp('undisturbed')
    with pictures_left_blank():
        _study(folder)
    return contents(folder / 'out')


def _study(folder: Path, *options: str) -> None:
    """Run the study of four recordings in this process."""
    file = write_study_file(folder, FOUR)
    assert main(['study', str(file), '--out', str(folder / 'out'), '--jobs', '1', *options]) == 0


def _judged(folder: Path) -> set[Path]:
    return {path for path in folder.glob('runs/*/*/*.npz') if path.name != 'truth.npz'}


def test_a_killed_study_of_several_processes_resumes_with_the_same_bytes(
    tmp_path: Path, undisturbed: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_study_file(tmp_path, FOUR)
    out = tmp_path / 'out'
    with CommandCopy('study', file, '--out', out, '--jobs', 2) as command:
        command.wait_for(lambda: len(_judged(out)) >= 5, 'the first runs')
        # The whole group: workers, which end with their parent, may be writing.
        command.send(signal.SIGKILL, to_group=True)
        assert command.end().status == -signal.SIGKILL
    stored = {path: path.stat().st_mtime_ns for path in _judged(out)}
    assert len(stored) > 0
    assert b'"state": "unfinished"' in (out / 'study.json').read_bytes()
    capsys.readouterr()
    _study(tmp_path)
    assert f'{len(stored)} of 12 runs are already finished' in capsys.readouterr().err
    assert contents(out) == undisturbed
    assert {path: path.stat().st_mtime_ns for path in stored} == stored


def test_a_finished_study_is_not_repeated(
    tmp_path: Path, undisturbed: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    _study(tmp_path)
    out = tmp_path / 'out'
    assert contents(out) == undisturbed
    before = {path: path.stat().st_mtime_ns for path in _judged(out)}
    capsys.readouterr()
    _study(tmp_path)
    assert '12 of 12 runs are already finished' in capsys.readouterr().err
    assert contents(out) == undisturbed
    assert {path: path.stat().st_mtime_ns for path in _judged(out)} == before


def test_a_broken_run_is_judged_again(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    out = tmp_path / 'out'
    _study(tmp_path)
    broken, lost, *_ = sorted(_judged(out))
    broken.write_bytes(broken.read_bytes()[:1000])
    lost.unlink()
    _study(tmp_path)
    assert contents(out) == undisturbed


@pytest.mark.parametrize(
    ('changes', 'difference'),
    [
        ({'seed': 1}, 'seed'),
        ({'models': {'gps': ['ch_gauss', 'airsim'], 'imu': ['chrono']}}, 'models'),
        ({'judges': ['clean']}, 'judges[0].label'),
        ({'metric': {'warmup': 1.0}}, 'metric.warmup'),
        ({'repetitions': 2}, 'repetitions'),
        ({'recordings': SMALL['recordings']}, 'recordings'),
    ],
)
def test_resuming_the_folder_of_another_study_is_refused(
    tmp_path: Path, changes: dict[str, Any], difference: str
) -> None:
    with hold_study(tmp_path / 'out', small_plan(tmp_path, FOUR)):
        pass
    before = contents(tmp_path / 'out')
    with (
        pytest.raises(Sim2RealError) as caught,
        hold_study(tmp_path / 'out', small_plan(tmp_path, {**FOUR, **changes})),
    ):
        pass
    assert difference in str(caught.value)
    assert contents(tmp_path / 'out') == before
    with hold_study(tmp_path / 'out', small_plan(tmp_path, {**FOUR, **changes}), overwrite=True):
        pass


def test_a_recording_with_other_content_is_treated_as_another_study(tmp_path: Path) -> None:
    stand_in, other = small_plan(tmp_path).recordings
    file = {'recordings': [{'path': 'bag'}]}
    write_recording(stand_in.read(), tmp_path / 'bag')
    with hold_study(tmp_path / 'out', small_plan(tmp_path, file)):
        pass
    (tmp_path / 'bag').rename(tmp_path / 'old')
    same_name = dataclasses.replace(other.read(), name=stand_in.name)
    write_recording(same_name, tmp_path / 'bag')
    with (
        pytest.raises(Sim2RealError, match=r'recordings\[0\].sha256'),
        hold_study(tmp_path / 'out', small_plan(tmp_path, file)),
    ):
        pass


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    file, out = write_study_file(tmp_path), tmp_path / 'out'
    with hold_study(out, small_plan(tmp_path)):
        done = call_process('study', file, '--out', out)
    assert (done.status, len(done.complaints)) == (2, 1)


def test_a_folder_with_other_content_is_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, foreign = write_study_file(tmp_path), tmp_path / 'foreign'
    foreign.mkdir()
    # Also what has names like our own half-written files.
    for name in ('thesis.tex', '.notes.tmp', 'series/.git/config', 'runs/a/.b.tmp'):
        (foreign / name).parent.mkdir(parents=True, exist_ok=True)
        (foreign / name).write_text('years of work', encoding='utf-8')
    before = contents(foreign)
    assert len(before) == 4
    for option in ([], ['--overwrite']):
        done = call(capsys, 'study', file, '--out', foreign, *option)
        assert (done.status, len(done.complaints)) == (2, 1)
    assert contents(foreign) == before


def test_ctrl_c_ends_with_one_line_that_says_how_to_continue(tmp_path: Path) -> None:
    long = {'recordings': [{'stand_in': {'scenarios': ['line'], 'runs': 40, 'duration': 8.0}}]}
    file, out = write_study_file(tmp_path, long), tmp_path / 'out'
    with CommandCopy('study', file, '--out', out, '--jobs', 1) as command:
        command.wait_for(lambda: _judged(out), 'the first run')
        command.send(signal.SIGINT)
        done = command.end()
    assert done.status == 130
    (line,) = done.err.splitlines()
    assert str(out) in line
    assert [path.name for path in out.rglob('.*')] == [list_name(MARK)]


THEIRS = (
    '.git/config', '.notes.tmp', '.precious.tmp/thesis.tex', '.x.tmp-1',
    'recordings/line_1/a.mcap', 'plots/mine/velocity.png', 'plots/paper_released/mine.png',
    'runs/.x.npz.tmp-1',
    'runs/paper_released/line_1/.ch_rw_0.npz.tmp-2', 'runs/paper_released/line_1/mine.npz',
    'series/.git/config', 'series/.x.tmp-y', 'series/paper_released/Real/line_99.csv',
    'series/paper_released/notes.txt', 'notes/runs.csv', 'transfer.json.bak', 'SYNTHETIC.txt',
)  # fmt: skip
"""Files of a user in the folder of a study, with names like ours."""


def test_files_of_a_user_in_a_study_stay(
    tmp_path: Path, undisturbed: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    _study(tmp_path)
    out, elsewhere = tmp_path / 'out', tmp_path / 'elsewhere'
    (elsewhere / 'plots').mkdir(parents=True)
    (elsewhere / 'plots' / 'velocity.png').write_bytes(b'theirs')
    (out / 'plots' / 'link').symlink_to(elsewhere / 'plots')
    for name in THEIRS:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(b'theirs')
    theirs = dict.fromkeys(THEIRS, b'theirs')
    _study(tmp_path)
    assert contents(out) == {**undisturbed, **theirs}
    assert call(capsys, 'report', out).status == 0
    assert {name: (out / name).read_bytes() for name in THEIRS} == theirs
    _study(tmp_path, '--overwrite')
    assert contents(out) == {**undisturbed, **theirs}
    # Another study leaves none of the older one's files.
    file = write_study_file(tmp_path, {'models': {'gps': ['airsim'], 'imu': ['chrono']}})
    assert call(capsys, 'study', file, '--out', out, '--overwrite').status == 0
    listed = listed_files(out, MARK)
    assert listed is not None
    assert set(contents(out)) == listed | set(THEIRS)
    assert not list(out.rglob('ch_*.npz'))
    assert (out / 'plots' / 'link').is_symlink()
    assert contents(elsewhere) == {'plots/velocity.png': b'theirs'}


def test_every_file_of_a_study_is_listed(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    _study(tmp_path)
    assert set(undisturbed) == listed_files(tmp_path / 'out', MARK)


@pytest.mark.parametrize('kind', ['table', 'run'])
def test_a_file_of_a_user_is_not_replaced_by_another_study(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'out'
    with hold_study(out, small_plan(tmp_path)):
        pass
    names = listed_files(out, MARK)
    assert names is not None
    run = next(name for name in names if '/ch_rw' in name)
    name = 'vepd.csv' if kind == 'table' else run.replace('paper_released', 'clean')
    write_list(out, MARK, names - {name})
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(b'theirs')
    before = contents(out)
    file = write_study_file(tmp_path, {'judges': ['clean']})
    done = call(capsys, 'study', file, '--out', out, '--overwrite')
    assert (done.status, len(done.complaints)) == (2, 1)
    assert name in done.complaints[0]
    assert contents(out) == before


@pytest.fixture(scope='module')
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished study."""
    folder = tmp_path_factory.mktemp('study')
    run_study(small_plan(folder), folder / 'out')
    return folder / 'out'


def test_stored_signals_are_read_bit_for_bit_and_damage_is_detected(
    study: Path, tmp_path: Path
) -> None:
    outcome = StudyOutcome.read(study)
    run = next(run for run in outcome.runs if not run.is_real)
    signals = outcome.signals(run.key)
    RunStore(tmp_path).save(run, signals)
    for field in dataclasses.fields(signals):
        stored = getattr(RunStore(tmp_path).signals(run.key), field.name)
        np.testing.assert_array_equal(stored, getattr(signals, field.name), field.name)
    path = next(tmp_path.glob('runs/*/*/[!t]*.npz'))
    whole = path.read_bytes()
    entry = whole.rindex(b'PK\x01\x02')
    # A number, the compression method and the encryption flag of a member.
    for position, flipped in ((len(whole) // 2, 1), (entry + 10, 2), (entry + 8, 1)):
        data = bytearray(whole)
        data[position] ^= flipped
        path.write_bytes(data)
        with pytest.raises(Sim2RealError, match=path.name):
            RunStore(tmp_path).signals(run.key)


def test_a_damaged_truth_is_written_again(study: Path, tmp_path: Path) -> None:
    outcome = StudyOutcome.read(study)
    run = outcome.runs[0]
    RunStore(tmp_path).save(run, outcome.signals(run.key))
    (truth,) = tmp_path.glob('runs/*/*/truth.npz')
    whole = truth.read_bytes()
    for damaged in (whole[:-1], b''):
        truth.write_bytes(damaged)
        assert RunStore(tmp_path).run(run.key) is None
        RunStore(tmp_path).save(run, outcome.signals(run.key))
        assert truth.read_bytes() == whole
