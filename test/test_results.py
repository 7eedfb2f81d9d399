# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Results appear as a whole, one command at a time, and foreign files stay."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_examples import call_process, contents, environment

from sim2real_eval.common.results import fresh_files, fresh_folder, hold
from sim_sensors.core.errors import Sim2RealError

MARK = 'result.json'


def write(
    folder: Path, text: str, *, overwrite: bool = False, meanwhile: str = '', run: str = 'a'
) -> None:
    """Write a result; another program writes the file `meanwhile` before it is finished."""

    def older(record: dict[str, str]) -> list[str]:
        return [f'runs/{record["run"]}.*']

    with fresh_folder(folder, MARK, overwrite=overwrite, older=older) as fresh:
        (fresh / 'runs').mkdir()
        (fresh / MARK).write_text(json.dumps({'run': run, 'text': text}))
        for name in ('table.csv', f'runs/{run}.csv'):
            (fresh / name).write_text(text)
        assert not folder.exists() or overwrite
        if meanwhile:
            (folder / meanwhile).parent.mkdir(parents=True, exist_ok=True)
            (folder / meanwhile).write_text('theirs')


def test_a_result_appears_complete_and_leaves_no_temporary_files(tmp_path: Path) -> None:
    out = tmp_path / 'deep' / 'out'
    write(out, 'first')
    write(out, 'second', overwrite=True)
    whole = contents(tmp_path)
    assert set(whole) == {f'deep/out/{name}' for name in (MARK, 'table.csv', 'runs/a.csv')}
    assert whole['deep/out/table.csv'] == b'second'
    with pytest.raises(IsADirectoryError):
        write(out, 'third', overwrite=True, meanwhile='.')
    assert contents(tmp_path) == whole
    assert [path.name for path in out.parent.iterdir()] == ['out']


def test_a_folder_created_during_the_run_and_the_result_are_both_kept(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    with pytest.raises(Sim2RealError, match='the result is in '):
        write(out, 'ours', meanwhile=MARK)
    assert (out / MARK).read_text() == 'theirs'
    (beside,) = (path for path in tmp_path.iterdir() if path != out)
    assert (beside / 'table.csv').read_text() == 'ours'


@pytest.mark.parametrize('name', ['thesis.tex', 'runs/b.csv', 'mine/thesis.tex', '.hidden'])
@pytest.mark.parametrize('appears', ['before', 'meanwhile'])
def test_overwriting_keeps_unrelated_files_and_removes_those_of_the_old_result(
    tmp_path: Path, name: str, appears: str
) -> None:
    out = tmp_path / 'out'
    write(out, 'first', run='a')
    if appears == 'before':
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text('theirs')
    write(out, 'second', overwrite=True, run='c', meanwhile=name if appears != 'before' else '')
    assert set(contents(out)) == {MARK, 'table.csv', 'runs/c.csv', name}
    assert (out / name).read_text() == 'theirs'
    assert (out / 'table.csv').read_text() == 'second'


@pytest.mark.parametrize(
    ('own_file', 'foreign_file'), [('runs/a.csv', 'runs'), ('table.csv', 'table.csv/note')]
)
def test_a_result_that_conflicts_with_unrelated_files_is_kept_beside_them(
    tmp_path: Path, own_file: str, foreign_file: str
) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / own_file).unlink()
    if foreign_file == 'runs':
        (out / 'runs').rmdir()
    (out / foreign_file).parent.mkdir(exist_ok=True)
    (out / foreign_file).write_text('theirs')
    with pytest.raises(Sim2RealError, match='the result is in'):
        write(out, 'second', overwrite=True)
    assert (out / foreign_file).read_text() == 'theirs'


@pytest.mark.parametrize(
    'mark',
    ['', '[]', '{"run": 3}', '[' * 100_000, '{"run": "**"}', '{"run": "a"}'],
    ids=['empty', 'list', 'number', 'deep', 'bad_glob', 'good'],
)
def test_any_folder_with_a_result_record_can_be_replaced(tmp_path: Path, mark: str) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / MARK).write_text(mark)
    write(out, 'second', overwrite=True, run='b')
    assert (out / 'runs/a.csv').exists() == (mark != '{"run": "a"}')
    assert (out / 'table.csv').read_text() == 'second'


def test_the_next_command_removes_only_temporary_files_of_killed_commands(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    code = (
        'import os, pathlib, signal, sys\n'
        'from sim2real_eval.common.results import new_folder\n'
        'with new_folder(pathlib.Path(sys.argv[1])) as fresh:\n'
        '    fresh.mkdir()\n'
        '    os.kill(os.getpid(), signal.SIGKILL)\n'
    )
    process = subprocess.run([sys.executable, '-c', code, out], env=environment(), check=False)
    assert process.returncode == -signal.SIGKILL
    (unfinished,) = tmp_path.iterdir()
    assert not out.exists()
    names = ('.out.backup', f'.out.tmp-{os.getppid()}', '.out2')
    foreign_folders = [tmp_path / name for name in names]
    for folder in foreign_folders:
        folder.mkdir()
    write(out, 'ours')
    assert not unfinished.exists()
    assert set(tmp_path.iterdir()) == {out, *foreign_folders}


def test_new_files_appear_together_beside_existing_ones(tmp_path: Path) -> None:
    (tmp_path / 'c').write_text('theirs')
    (tmp_path / 'b').write_text('older')
    with fresh_files(tmp_path, ('a', 'b'), overwrite=True) as fresh:
        (fresh / 'a').write_text('ours')
    assert contents(tmp_path) == {'a': b'ours', 'c': b'theirs'}


def test_files_are_replaced_only_with_overwrite_and_folders_never(tmp_path: Path) -> None:
    (tmp_path / 'b').write_text('older')
    (tmp_path / 'c').mkdir()
    for name, overwrite in (('b', False), ('c', True)):
        with pytest.raises(Sim2RealError, match=f'{name}: '):
            fresh_files(tmp_path, ('a', name), overwrite=overwrite).__enter__()


@pytest.mark.parametrize('is_folder', [False, True])
def test_an_error_names_the_final_path_of_the_file(tmp_path: Path, is_folder: bool) -> None:
    out = tmp_path / 'out'
    writing = (
        fresh_folder(out, 'a', overwrite=False)
        if is_folder
        else fresh_files(out, ('a', 'b'), overwrite=False)
    )

    def write_on_full_disk() -> None:
        with writing as fresh:
            (fresh / 'a').write_text('whole')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fresh / 'b'))

    with pytest.raises(OSError, match='No space') as full:
        write_on_full_disk()
    assert full.value.filename == str(out / 'b')
    assert contents(tmp_path) == {}


def test_a_locked_result_path_is_refused_to_another_thread(tmp_path: Path) -> None:
    out = tmp_path / 'a' / 'b' / 'out'

    def hold_out() -> None:
        with hold(out):
            pass

    with ThreadPoolExecutor(1) as other, hold(out):
        with hold(tmp_path / 'a' / '..' / 'a' / 'b' / 'out'), hold(tmp_path / 'a' / 'b' / 'else'):
            assert out.parent.is_dir()
        with pytest.raises(Sim2RealError, match='out: '):
            other.submit(hold_out).result()
    assert not list(tmp_path.iterdir())
    hold_out()


@pytest.mark.parametrize('verb', ['scenario', 'simulate --motion line', 'world default'])
def test_a_command_does_not_write_where_another_command_is_writing(
    tmp_path: Path, verb: str
) -> None:
    out = tmp_path / 'out.png'
    with hold(out):
        outcome = call_process(*verb.split(), '--out', out)
    assert outcome.status == 2
    (line,) = outcome.complaints
    assert str(out) in line
    assert not list(tmp_path.iterdir())
