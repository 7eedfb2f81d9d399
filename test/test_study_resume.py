# SPDX-License-Identifier: Apache-2.0
"""Studies that are killed, continued, changed, or run by two at a time."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cli_examples import call, call_process, contents, pictures_left_blank
from command_copies import CommandCopy
from study_file_examples import SMALL, small_plan, write_study_file

from sim2real_eval.cli.main import main
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report import study_plots, study_report
from sim2real_eval.study import runner
from sim2real_eval.study.runner import hold_study, run_study
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


def test_a_killed_study_of_several_processes_continues_and_comes_to_the_same_bytes(
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
    (out / 'runs' / '.half.npz.tmp-1').write_bytes(b'half')
    capsys.readouterr()
    _study(tmp_path)
    assert f'{len(stored)} of 12 runs were there already' in capsys.readouterr().err
    assert contents(out) == undisturbed
    assert {path: path.stat().st_mtime_ns for path in stored} == stored


def test_a_finished_study_is_not_redone(
    tmp_path: Path, undisturbed: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    _study(tmp_path)
    out = tmp_path / 'out'
    assert contents(out) == undisturbed
    before = {path: path.stat().st_mtime_ns for path in _judged(out)}
    capsys.readouterr()
    _study(tmp_path)
    assert '12 of 12 runs were there already' in capsys.readouterr().err
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
        ({'seed': 1}, 'seed: was 0, is 1'),
        ({'models': {'gps': ['ch_gauss', 'airsim'], 'imu': ['chrono']}}, 'models'),
        ({'judges': ['clean']}, 'judges[0].label: was paper_released, is clean'),
        ({'metric': {'warmup': 1.0}}, 'metric.warmup: was 0.0, is 1.0'),
        ({'repetitions': 2}, 'repetitions: was 1, is 2'),
        ({'recordings': SMALL['recordings']}, 'recordings: were 4, are 2'),
    ],
)
def test_another_study_is_refused(
    tmp_path: Path, changes: dict[str, Any], difference: str
) -> None:
    first = small_plan(tmp_path, FOUR)
    with hold_study(tmp_path / 'out', first):
        pass
    before = contents(tmp_path / 'out')
    with (
        pytest.raises(Sim2RealError) as caught,
        hold_study(tmp_path / 'out', small_plan(tmp_path, {**FOUR, **changes})),
    ):
        pass
    assert difference in str(caught.value)
    assert contents(tmp_path / 'out') == before
    # Words may change, and with --overwrite everything.
    with hold_study(tmp_path / 'out', small_plan(tmp_path, {**FOUR, 'about': 'something else'})):
        pass
    with hold_study(tmp_path / 'out', small_plan(tmp_path, {**FOUR, **changes}), overwrite=True):
        pass


def test_plots_of_a_study_are_overwritten_and_those_of_others_beside_them_stay(
    tmp_path: Path,
) -> None:
    plan, out = small_plan(tmp_path), tmp_path / 'out'
    with hold_study(out, plan):
        pass
    files = ('clean/rmse.png', 'clean/mine.png', 'old/a/ranking.png')
    for name in files:
        (out / 'plots' / name).parent.mkdir(parents=True, exist_ok=True)
        (out / 'plots' / name).write_text('')
    with hold_study(out, plan, overwrite=True):
        names = {path.name for path in (out / 'plots').rglob('*')}
    assert names == {'clean', 'mine.png'}


def test_a_recording_with_other_content_makes_another_study(tmp_path: Path) -> None:
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


def test_other_versions_make_another_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_study(tmp_path / 'out', small_plan(tmp_path)):
        pass
    monkeypatch.setattr('sim2real_eval.study.plan.versions', lambda: {'numpy': '9.9'})
    with (
        pytest.raises(Sim2RealError, match=r'versions.numpy: was .*, is 9.9'),
        hold_study(tmp_path / 'out', small_plan(tmp_path)),
    ):
        pass


def test_a_held_folder_and_a_foreign_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write_study_file(tmp_path), tmp_path / 'out'
    with hold_study(out, small_plan(tmp_path)):
        done = call_process('study', file, '--out', out)
    assert done.status == 2
    assert f'{out}: another command is writing there' in done.err
    foreign = tmp_path / 'foreign'
    foreign.mkdir()
    # Also what has names like our own half-written files.
    for name in ('thesis.tex', '.notes.tmp', 'series/.git/config', 'runs/a/.b.tmp'):
        (foreign / name).parent.mkdir(parents=True, exist_ok=True)
        (foreign / name).write_text('years of work', encoding='utf-8')
    before = contents(foreign)
    assert len(before) == 4
    for option in ([], ['--overwrite']):
        done = call(capsys, 'study', file, '--out', foreign, *option)
        assert done.status == 2
        assert len(done.complaints) == 1
    assert contents(foreign) == before


def test_files_of_others_that_appear_in_a_running_study_stay(tmp_path: Path) -> None:
    out = tmp_path / 'out'

    def begin(runs: int, stored: int, units: int) -> Callable[[], None]:
        for name in ('precious.txt', 'series/thesis.tex'):
            (out / name).parent.mkdir(exist_ok=True)
            (out / name).write_text('theirs')
        return lambda: None

    run_study(small_plan(tmp_path), out, begin=begin)
    for name in ('precious.txt', 'series/thesis.tex'):
        assert (out / name).read_text() == 'theirs'
    assert (out / 'vepd.csv').is_file()


def test_everything_is_written_while_the_study_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process that began meanwhile would sweep or replace what the first one writes."""
    file, out = write_study_file(tmp_path), tmp_path / 'out'
    plan, refused = small_plan(tmp_path), []

    def try_it() -> None:
        with hold_study(out, plan):
            pass

    def while_held(write: Callable[..., Any]) -> Callable[..., Any]:
        def check_lock(*arguments: Any) -> Any:
            with (
                ThreadPoolExecutor(1) as other,
                pytest.raises(Sim2RealError, match='another command is writing there'),
            ):
                other.submit(try_it).result()
            refused.append(write.__name__)
            return write(*arguments)

        return check_lock

    for module, name in (
        (runner, 'write_study'), (study_report, 'write_report'), (study_plots, 'ranks_figure')
    ):  # fmt: skip
        monkeypatch.setattr(module, name, while_held(getattr(module, name)))
    assert call(capsys, 'study', file, '--out', out, '--jobs', 1).status == 0
    assert refused == ['ranks_figure', 'write_study', 'write_report']


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
    assert 'the same command continues' in line
    assert not list(out.rglob('.*'))
