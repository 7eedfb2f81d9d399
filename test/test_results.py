# SPDX-License-Identifier: Apache-2.0
"""Results appear as a whole, one command at a time, and nothing of somebody else is lost."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_examples import call_process, command, contents, environment

from sim2real_eval.common.locks import Scratch, hold
from sim2real_eval.common.results import fresh_files, fresh_folder, new_folder
from sim_sensors.core.errors import Sim2RealError

MARK = 'result.json'


def write(
    folder: Path, text: str, *, overwrite: bool = False, meanwhile: str = '', run: str = 'a'
) -> None:
    """Write a result; somebody else puts the file `meanwhile` there before it is done."""

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


def test_a_result_appears_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    out = tmp_path / 'deep' / 'out'
    write(out, 'first')
    write(out, 'second', overwrite=True)
    whole = contents(tmp_path)
    assert set(whole) == {f'deep/out/{name}' for name in (MARK, 'table.csv', 'runs/a.csv')}
    assert whole['deep/out/table.csv'] == b'second'
    assert contents(tmp_path) == whole
    with pytest.raises(IsADirectoryError):
        write(out, 'third', overwrite=True, meanwhile='.')
    assert contents(tmp_path) == whole
    assert [path.name for path in out.parent.iterdir()] == ['out']


def test_a_folder_that_appears_during_the_run_survives_and_so_does_the_result(
    tmp_path: Path,
) -> None:
    out = tmp_path / 'out'
    for overwrite in (False, True):
        # Even what looks like a result: it is not the one that was to be replaced.
        with pytest.raises(Sim2RealError, match=r'appeared or changed.*the result is in '):
            write(out, 'ours', overwrite=overwrite, meanwhile=MARK)
        assert (out / MARK).read_text() == 'theirs'
        (beside,) = (path for path in tmp_path.iterdir() if path != out)
        assert (beside / 'table.csv').read_text() == 'ours'
        shutil.rmtree(out)
        shutil.rmtree(beside)
    out.write_text('a file')
    with pytest.raises(Sim2RealError), new_folder(out) as fresh:
        fresh.mkdir()
    assert out.read_text() == 'a file'


@pytest.mark.parametrize('name', ['thesis.tex', 'plots/mine/thesis.tex'])
def test_a_file_that_appears_in_a_result_to_replace_survives(tmp_path: Path, name: str) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    write(out, 'second', overwrite=True, meanwhile=name)
    written = contents(out)
    assert set(written) == {MARK, 'table.csv', 'runs/a.csv', name}
    assert (written['table.csv'], written[name]) == (b'second', b'theirs')


@pytest.mark.parametrize('name', ['thesis.tex', 'runs/b.csv', 'mine/thesis.tex', '.hidden'])
def test_a_file_that_lay_in_a_result_before_survives_and_what_was_ours_goes(
    tmp_path: Path, name: str
) -> None:
    out = tmp_path / 'out'
    write(out, 'first', run='a')
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text('theirs')
    (out / 'link').symlink_to('nowhere')
    write(out, 'second', overwrite=True, run='c')
    assert set(contents(out)) == {MARK, 'table.csv', 'runs/c.csv', name}
    assert (out / name).read_text() == 'theirs'
    assert (out / 'table.csv').read_text() == 'second'
    assert (out / 'link').is_symlink()


def test_a_file_in_the_place_of_one_of_our_folders_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    shutil.rmtree(out / 'runs')
    (out / 'runs').write_text('theirs')
    with pytest.raises(Sim2RealError, match='the result is in'):
        write(out, 'second', overwrite=True)
    assert (out / 'runs').read_text() == 'theirs'


def test_a_folder_in_the_place_of_one_of_our_files_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / 'table.csv').unlink()
    (out / 'table.csv').mkdir()
    (out / 'table.csv' / 'note').write_text('theirs')
    with pytest.raises(Sim2RealError, match='the result is in'):
        write(out, 'second', overwrite=True)
    assert (out / 'table.csv' / 'note').read_text() == 'theirs'


@pytest.mark.parametrize(
    'mark',
    ['', '[]', '{"run": 3}', 'no JSON', '[' * 100_000, '{"run": "**"}', '{"run": "a"}'],
    ids=['empty', 'list', 'number', 'text', 'deep', 'bad_glob', 'good'],
)
def test_a_result_with_any_mark_can_be_replaced(tmp_path: Path, mark: str) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / MARK).write_text(mark)
    write(out, 'second', overwrite=True, run='b')
    assert (out / 'runs/a.csv').exists() == (mark != '{"run": "a"}')
    assert (out / 'table.csv').read_text() == 'second'


def test_a_file_with_the_name_of_one_of_ours_survives_in_its_place(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    write(out, 'first')
    (out / 'table.csv').unlink()
    with pytest.raises(Sim2RealError, match='the result is in'):
        write(out, 'second', overwrite=True, meanwhile='table.csv')
    assert b'first' in contents(out)[MARK]
    assert contents(out)['table.csv'] == b'theirs'


def killed(target: Path, write: str) -> None:
    """Kill a process that writes a new folder, in the middle of it."""
    code = (
        'import os, pathlib, signal, sys\n'
        'from sim2real_eval.common.results import new_folder\n'
        'target = pathlib.Path(sys.argv[1])\n'
        f'with new_folder(target, lambda: True) as fresh:\n    {write}\n'
        '    os.kill(os.getpid(), signal.SIGKILL)\n'
    )
    done = subprocess.run([sys.executable, '-c', code, target], env=environment(), check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_command_has_left_goes_with_the_next_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Neither what another command is writing, nor what only has such a name."""
    out = tmp_path / 'out'
    killed(out, '(fresh / "runs").mkdir(parents=True)')
    (left,) = tmp_path.iterdir()
    theirs = tmp_path / '.out.backup.tmp'
    theirs.mkdir()
    (theirs / 'thesis.tex').write_text('theirs')
    with Scratch(tmp_path, '.out.') as writing:
        write(out, 'ours')
        assert not left.exists()
        assert set(tmp_path.iterdir()) == {out, theirs, writing}
    assert (theirs / 'thesis.tex').read_text() == 'theirs'


def test_an_older_result_survives_a_kill_while_it_gives_way(tmp_path: Path) -> None:
    """It is back before the next command looks whether there is one."""
    out = tmp_path / 'out'
    write(out, 'first')
    whole = contents(out)
    killed(out, 'fresh.mkdir(); target.rename(fresh.parent / "out.old")')
    assert not out.exists()
    with pytest.raises(Sim2RealError, match='exists; choose another --out'):
        write(out, 'second')
    assert contents(out) == whole
    assert list(tmp_path.iterdir()) == [out]
    # Where something has come in its place both stay.
    killed(out, 'fresh.mkdir(); target.rename(fresh.parent / "out.old")')
    out.mkdir()
    write(out, 'third', overwrite=True)
    (left,) = (path for path in tmp_path.iterdir() if path != out)
    assert contents(left / 'out.old') == whole


def test_what_is_left_of_a_place_is_not_that_of_another_whose_name_goes_on(tmp_path: Path) -> None:
    older = tmp_path / 'study.v2'
    write(older, 'first')
    whole = contents(older)
    killed(older, 'fresh.mkdir(); target.rename(fresh.parent / "study.v2.old")')
    write(tmp_path / 'study', 'another')
    with pytest.raises(Sim2RealError, match='exists'):
        write(older, 'second')
    assert contents(older) == whole


def left_files(folder: Path, complete: str) -> Path:
    """Make what a killed command could have left of a.csv and b.csv."""
    left = folder / '.a.csv.123.abcdefgh.tmp'
    (left / 'files').mkdir(parents=True)
    (left / 'sim2real.lock').touch()
    (left / 'complete').write_text(complete)
    return left


def test_the_folder_of_a_stranger_moves_and_removes_nothing_elsewhere(tmp_path: Path) -> None:
    out, victim = tmp_path / 'out', tmp_path / 'victim'
    victim.write_text('precious')
    left = left_files(out, json.dumps([str(victim), '../victim']))
    (left / 'files' / 'c.csv').write_text('theirs')
    with fresh_files(out, ('a.csv', 'b.csv'), overwrite=False) as fresh:
        (fresh / 'a.csv').write_text('ours')
    assert victim.read_text() == 'precious'
    assert contents(out) == {'a.csv': b'ours'}
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    (elsewhere / 'b.csv').write_text('theirs')
    left = left_files(out, '[]')
    (left / 'files').rmdir()
    (left / 'files').symlink_to(elsewhere)
    with pytest.raises(Sim2RealError, match=r'a.csv: exists'):
        fresh_files(out, ('a.csv', 'b.csv'), overwrite=False).__enter__()
    assert contents(elsewhere) == {'b.csv': b'theirs'}


@pytest.mark.parametrize('complete', ['', '[', '{}'])
def test_what_a_power_loss_has_left_is_no_result(tmp_path: Path, complete: str) -> None:
    left_files(tmp_path / 'out', complete)
    with fresh_files(tmp_path / 'out', ('a.csv',), overwrite=False) as fresh:
        (fresh / 'a.csv').write_text('ours')
    assert contents(tmp_path / 'out') == {'a.csv': b'ours'}


@pytest.mark.parametrize('is_folder', [False, True])
def test_a_full_disk_is_told_of_the_place_that_was_named(tmp_path: Path, is_folder: bool) -> None:
    """Not of the hidden one, of which the user knows nothing and which is gone."""
    out = tmp_path / 'out'
    writing = (
        fresh_folder(out, 'a', overwrite=False)
        if is_folder
        else fresh_files(out, ('a', 'b'), overwrite=False)
    )

    def write() -> None:
        with writing as fresh:
            (fresh / 'a').write_text('whole')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fresh / 'b'))

    with pytest.raises(OSError, match='No space') as full:
        write()
    assert full.value.filename == str(out / 'b')
    assert contents(tmp_path) == {}


def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_moves(tmp_path: Path) -> None:
    (tmp_path / 'b').mkdir()
    with pytest.raises(Sim2RealError, match='b: is a folder'):
        fresh_files(tmp_path, ('a', 'b'), overwrite=True).__enter__()


def test_a_place_is_held_by_one_thread_and_freed_with_what_was_made_for_it(tmp_path: Path) -> None:
    out = tmp_path / 'a' / 'b' / 'out'

    def try_it() -> None:
        with hold(out):
            pass

    with ThreadPoolExecutor(1) as other, hold(out):
        with hold(tmp_path / 'a' / '..' / 'a' / 'b' / 'out'), hold(tmp_path / 'a' / 'b' / 'else'):
            assert out.parent.is_dir()
        with pytest.raises(Sim2RealError, match=r'out: another command is writing there'):
            other.submit(try_it).result()
    assert not list(tmp_path.iterdir())
    try_it()


def test_many_threads_take_turns_and_none_is_in_twice(tmp_path: Path) -> None:
    """The lock file is removed each time: nobody may hold one that is gone."""
    inside, most, turns = 0, 0, 0
    count = threading.Lock()

    def work() -> None:
        nonlocal inside, most, turns
        for _ in range(200):
            try:
                with hold(tmp_path / 'out'):
                    with count:
                        inside += 1
                        most, turns = max(most, inside), turns + 1
                    os.sched_yield()
                    with count:
                        inside -= 1
            except Sim2RealError:
                pass

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    assert (most, turns > 10) == (1, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path('/proc/self').exists(), reason='needs a folder without new files')
def test_a_folder_that_takes_no_files_is_refused_and_not_tried_for_ever() -> None:
    with pytest.raises(Sim2RealError, match='/proc/out: cannot be made'), hold('/proc/out'):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write anywhere')
def test_a_folder_in_a_place_that_cannot_be_written_is_locked_itself(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    out.mkdir()
    tmp_path.chmod(0o500)
    try:
        with (
            hold(out),
            ThreadPoolExecutor(1) as other,
            pytest.raises(Sim2RealError, match='another command'),
        ):
            other.submit(hold(out).__enter__).result()
        assert out.is_dir()
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    'verb',
    [
        ('scenario', '--out'),
        ('simulate', '--motion', 'line', '--out'),
        ('world', 'default', '--out'),
    ],
)
def test_whatever_the_verb_its_out_is_held(tmp_path: Path, verb: tuple[str, ...]) -> None:
    out = tmp_path / 'out.png'
    with hold(out):
        done = call_process(*verb, out)
    assert done.status == 2
    (line,) = done.complaints
    assert f'{out}: another command is writing there' in line
    assert not list(tmp_path.iterdir())


def test_of_two_commands_at_once_one_writes(tmp_path: Path) -> None:
    out = tmp_path / 'out'
    both = [
        subprocess.Popen(
            command('simulate', '--motion', 'line', '--runs', 10, '--out', out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for _ in range(2)
    ]
    told = [one.communicate(timeout=300)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 2], told
    (refused,) = (text for one, text in zip(both, told, strict=True) if one.returncode == 2)
    assert len(refused.splitlines()) == 1
    assert len(list(out.iterdir())) == 10
