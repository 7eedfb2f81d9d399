# SPDX-License-Identifier: Apache-2.0
"""The command as a process: clean streams, and signals that leave nothing over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_examples import call_process, command, environment, write_runs

from sim2real_eval.cli.main import main


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording, line_1."""
    folder = tmp_path_factory.mktemp('place')
    write_runs(folder, ('drive_line', 1))
    return folder


def test_no_progress_bar_in_a_pipe(place: Path, tmp_path: Path) -> None:
    """A process of its own: no control characters, results on the one, notes on the other."""
    outcome = call_process(
        'vepd', '--real', place / 'line_1', '--models', 'ch_rw', '--jobs', 1, '--out',
        tmp_path / 'o',
    )  # fmt: skip
    assert outcome.status == 0
    for text in (outcome.out, outcome.err):
        assert '\x1b' not in text
        assert '\r' not in text
    assert 'ch_rw' in outcome.out
    assert 'Please note' not in outcome.err


@pytest.mark.parametrize(
    'words',
    [('models', '--json'), ('simulate', '--motion', 'line', '--duration', 2, '--out', 'more')],
)
def test_reader_that_goes_away_is_no_error(place: Path, words: tuple[object, ...]) -> None:
    """Also where all that is said fits into a buffer, which is written at the end."""
    process = subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**environment(), 'PYTHONUNBUFFERED': ''}, text=True, cwd=place,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=180)
    assert process.returncode in (0, 141)
    assert err == ''


def _alive(group: int) -> bool:
    """Whether a process of the group runs; those that ended but were not waited for do not."""
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text(encoding='utf-8', errors='replace').rpartition(')')[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in 'ZX':
            return True
    return False


def _workers(parent: int) -> int:
    found = 0
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            found += int(stat.read_text(errors='replace').rpartition(')')[2].split()[1]) == parent
        except OSError:
            continue
    return found


def _hear_interrupts() -> None:
    """Undo what a shell does to programs in the background, and with it to their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='looks for processes in /proc')
@pytest.mark.parametrize(
    ('name', 'to_group', 'status', 'said'),
    [
        ('SIGINT', True, 130, ['interrupted; runs that were finished are in ']),
        ('SIGTERM', False, 143, ['interrupted; runs that were finished are in ']),
        ('SIGKILL', False, -9, None),
    ],
)  # fmt: skip
def test_signals_end_all_processes_and_leave_nothing_half_written(
    tmp_path: Path, name: str, to_group: bool, status: int, said: list[str] | None
) -> None:
    """Ctrl-C reaches the whole group, as from a terminal; SIGTERM and SIGKILL the parent alone."""
    bags = write_runs(tmp_path / 'bags', *(('drive_line', number) for number in range(8)))
    process = subprocess.Popen(
        command('vepd', '--real', *bags, '--models', 'all', '--repetitions', 50, '--jobs', 2,
                '--out', tmp_path / 'result' / 'o'),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        start_new_session=True, preexec_fn=_hear_interrupts,
    )  # fmt: skip
    try:
        # They start once everything is compiled.
        deadline = time.monotonic() + 180
        while _workers(process.pid) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.5)
        number = getattr(signal, name)
        if to_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=180)
        assert process.returncode == status
        assert out == ''
        if said is not None:
            lines = [line for line in err.splitlines() if 'compiling for this' not in line]
            assert len(lines) == len(said)
            assert all(part in line for part, line in zip(said, lines, strict=True))
        deadline = time.monotonic() + 60
        while _alive(process.pid):
            assert time.monotonic() < deadline, 'a process is left'
            time.sleep(0.02)
        record = json.loads((tmp_path / 'result' / 'o' / 'study.json').read_text())
        assert record['state'] == 'unfinished'
        if name != 'SIGKILL':
            assert not list((tmp_path / 'result').rglob('.*'))
    finally:
        if process.poll() is None:
            process.kill()


def test_main_puts_the_signal_handler_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert main(['models']) == 0
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not Path('/proc/self/task').is_dir(), reason='counts threads by /proc')
@pytest.mark.parametrize(('set_by_user', 'threads'), [({}, 1), ({'OPENBLAS_NUM_THREADS': '2'}, 2)])
def test_linear_algebra_has_one_thread_unless_the_user_wants_more(
    set_by_user: dict[str, str], threads: int
) -> None:
    code = (
        'import os\n'
        'from sim2real_eval.common.workers import single_threads\n'
        'before = dict(os.environ)\n'
        'with single_threads():\n'
        '    import numpy\n'
        'assert dict(os.environ) == before\n'
        'print(len(os.listdir("/proc/self/task")))\n'
    )
    known = {name: value for name, value in environment().items() if 'THREADS' not in name}
    done = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True,
        text=True,
        check=True,
        env={**known, **set_by_user},
    )
    # A machine of one processor has one in any case.
    assert int(done.stdout) == min(threads, os.cpu_count() or 1)
