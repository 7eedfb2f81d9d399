# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Results appear as a whole, one command at a time, and foreign files stay."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_examples import call_process, contents, environment

from sim2real_eval.common.file_list import list_name
from sim2real_eval.common.new_files import new_file, write_bytes
from sim2real_eval.common.results import fresh_files, fresh_folder, hold, new_folder
from sim_sensors.core.errors import Sim2RealError

MARK = 'result.json'
LIST = list_name(MARK)


def write(
    folder: Path, text: str, *, overwrite: bool = False, meanwhile: str = '', run: str = 'a'
) -> None:
    """Write a result; another program writes the file `meanwhile` before it is finished."""
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
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
    assert set(whole) == {f'deep/out/{name}' for name in (MARK, LIST, 'table.csv', 'runs/a.csv')}
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
    assert set(contents(out)) == {MARK, LIST, 'table.csv', 'runs/c.csv', name}
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


@pytest.mark.parametrize('record', ['', '[]', '[' * 100_000, '{}'])
def test_a_result_with_a_damaged_record_can_be_replaced(tmp_path: Path, record: str) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / MARK).write_text(record)
    write(out, 'second', overwrite=True, run='b')
    assert set(contents(out)) == {MARK, LIST, 'table.csv', 'runs/b.csv'}


@pytest.mark.parametrize(
    'name',
    ['../thesis.tex', 'runs/../../thesis.tex', '{here}/thesis.tex', 'link/thesis.tex', 'mine', '',
     '.', '..', '/', 'a\0b', 'x' * 5000],
    ids=range(11),
)  # fmt: skip
def test_a_list_of_others_removes_nothing_outside_and_no_folder(tmp_path: Path, name: str) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (tmp_path / 'thesis.tex').write_text('theirs')
    (out / 'link').symlink_to(tmp_path)
    (out / 'mine').mkdir()
    file = out / LIST
    content = json.loads(file.read_text())
    content['files'] += [name.format(here=tmp_path), 3, None]
    file.write_text(json.dumps(content))
    write(out, 'second', overwrite=True, run='b')
    assert (tmp_path / 'thesis.tex').read_text() == 'theirs'
    assert (out / 'link').is_symlink()
    assert (out / 'mine').is_dir()
    assert not (out / 'runs/a.csv').exists()


@pytest.mark.parametrize(
    'text', ['', '[]', '{', '[' * 100_000, '{"files": ["thesis.tex"]}', '\udcff', 'thesis.tex']
)
def test_a_damaged_or_foreign_list_removes_nothing(tmp_path: Path, text: str) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / 'thesis.tex').write_text('theirs')
    (out / LIST).write_bytes(text.encode(errors='surrogateescape'))
    write(out, 'second', overwrite=True, run='b')
    names = {MARK, LIST, 'table.csv', 'runs/a.csv', 'runs/b.csv', 'thesis.tex'}
    assert set(contents(out)) == names


@pytest.mark.parametrize('is_link', [False, True])
def test_overwriting_does_not_replace_a_file_that_the_older_result_did_not_write(
    tmp_path: Path, is_link: bool
) -> None:
    out = tmp_path / 'out'
    write(out, 'first', run='a')
    theirs = tmp_path / 'theirs.csv' if is_link else out / 'runs/b.csv'
    theirs.write_text('theirs')
    if is_link:
        (out / 'runs/b.csv').symlink_to(theirs)
    with pytest.raises(Sim2RealError, match='the result is in'):
        write(out, 'second', overwrite=True, run='b')
    assert theirs.read_text() == 'theirs'
    assert (out / 'runs/b.csv').read_text() == 'theirs'
    assert (out / 'table.csv').read_text() == 'first'


_KILLED = (
    'import os, pathlib, signal, sys\n'
    'from sim2real_eval.common.new_files import new_file\n'
    'from sim2real_eval.common.results import new_folder\n'
    'with {writer}(pathlib.Path(sys.argv[1])) as fresh:\n'
    '    fresh.{write}\n'
    '    os.kill(os.getpid(), signal.SIGKILL)\n'
)


def run_killed_command(out: Path, writer: str, write: str) -> None:
    """Let a process write a result; it is killed before the result is finished."""
    code = _KILLED.format(writer=writer, write=write)
    process = subprocess.run([sys.executable, '-c', code, out], env=environment(), check=False)
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()


def test_the_next_command_removes_only_the_folders_of_killed_commands(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    run_killed_command(out, 'new_folder', 'mkdir()')
    (unfinished,) = tmp_path.iterdir()
    assert re.fullmatch(r'\.out\.tmp-\w+', unfinished.name)
    theirs = [tmp_path / f'.out{name}' for name in ('.backup', '2', '.tmp-1', '.tmp-mine')]
    for folder in theirs:
        folder.mkdir()
        (folder / 'thesis.tex').write_text('years of work')
    # A copy of our folder, in which somebody continued, and a link to one elsewhere.
    theirs += [tmp_path / '.out.tmp-copy', tmp_path / '.out.tmp-link']
    shutil.copytree(unfinished, theirs[-2])
    theirs[-1].symlink_to(theirs[-2])
    write(out, 'ours')
    assert not unfinished.exists()
    assert set(tmp_path.iterdir()) == {out, *theirs}
    assert all(path.exists() for path in theirs)


def test_the_folder_of_a_running_command_is_not_removed(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    with new_folder(out) as fresh:
        fresh.mkdir()
        (fresh / 'a').write_text('ours')
        with contextlib.suppress(Sim2RealError), new_folder(out) as other:
            other.mkdir()
        out.rmdir()
        assert (fresh / 'a').read_text() == 'ours'
    assert contents(tmp_path) == {'out/a': b'ours'}


@pytest.mark.skipif(not hasattr(os, 'O_TMPFILE'), reason='needs files without a name, as on Linux')
@pytest.mark.parametrize('is_there', [False, True])
def test_a_command_that_is_killed_while_it_writes_a_file_leaves_nothing(
    tmp_path: Path, is_there: bool
) -> None:
    out = tmp_path / 'table.csv'
    run_killed_command(out, 'new_file', 'write(b"half")')
    assert list(tmp_path.iterdir()) == []
    if is_there:
        out.write_text('older')
    write_bytes(out, b'whole')
    assert contents(tmp_path) == {'table.csv': b'whole'}


@pytest.mark.parametrize('is_unnamed', [False, True])
def test_a_new_file_replaces_a_file_or_a_link_but_no_temporary_file_of_others(
    tmp_path: Path, is_unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_unnamed:
        monkeypatch.setattr(os, 'O_TMPFILE', -1, raising=False)
    theirs = tmp_path / f'.a.tmp-{os.getpid()}'
    theirs.write_text('theirs')
    (tmp_path / 'link').symlink_to(theirs)
    for name in ('a', 'a', 'link'):
        write_bytes(tmp_path / name, name.encode())
        assert (tmp_path / name).stat().st_mode & 0o777 == theirs.stat().st_mode & 0o777
    assert contents(tmp_path) == {'a': b'a', 'link': b'link', theirs.name: b'theirs'}

    def write_on_full_disk() -> None:
        with new_file(tmp_path / 'b') as file:
            file.write(b'half')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match='No space') as full:
        write_on_full_disk()
    assert full.value.filename == str(tmp_path / 'b')
    assert set(contents(tmp_path)) == {'a', 'link', theirs.name}


@pytest.mark.parametrize('kind', ['file', 'link', 'folder'])
def test_a_file_with_the_name_of_a_lock_is_not_touched(tmp_path: Path, kind: str) -> None:
    place = tmp_path / '.out.lock'
    if kind == 'folder':
        place.mkdir()
    else:
        theirs = tmp_path / 'theirs' if kind == 'link' else place
        theirs.write_text('theirs')
        if kind == 'link':
            place.symlink_to(theirs)
    before = contents(tmp_path)
    with pytest.raises(Sim2RealError, match=r'\.out\.lock'):
        write(tmp_path / 'out', 'ours')
    assert contents(tmp_path) == before
    assert place.is_symlink() == (kind == 'link')


def test_new_files_appear_together_beside_existing_ones(tmp_path: Path) -> None:
    (tmp_path / 'c').write_text('theirs')
    (tmp_path / 'b').write_text('older')
    with fresh_files(tmp_path, ('a', 'b'), overwrite=True) as fresh:
        (fresh / 'a').write_text('ours')
    assert contents(tmp_path) == {'a': b'ours', 'b': b'older', 'c': b'theirs'}


def test_files_of_an_older_result_are_removed_only_if_it_wrote_them(tmp_path: Path) -> None:
    names = ('a.json', 'gps.yaml', 'imu.yaml')
    for written in (('a.json', 'gps.yaml'), ('a.json', 'imu.yaml'), ('a.json',)):
        (tmp_path / 'magnetometer.yaml').write_text('theirs')
        with fresh_files(tmp_path, names, overwrite=True, mark='a.json') as fresh:
            for name in written:
                (fresh / name).write_text('ours')
        theirs = {'magnetometer.yaml', list_name('a.json')}
        assert set(contents(tmp_path)) == {*written, *theirs}
    (tmp_path / 'gps.yaml').write_text('theirs')
    with fresh_files(tmp_path, names, overwrite=True, mark='a.json') as fresh:
        (fresh / 'a.json').write_text('ours')
    assert (tmp_path / 'gps.yaml').read_text() == 'theirs'


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
