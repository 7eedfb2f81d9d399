# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The command as a process: output streams, signals, and threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import Outcome, command, environment, write_runs
from command_copies import CommandCopy, call_copy, until


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('place')
    write_runs(folder, ('drive_line', 1), ('drive_line', 2))
    return folder


def test_a_pipe_gets_no_progress_bar(place: Path, tmp_path: Path) -> None:
    """Results go to standard output, progress to standard error, without control characters."""
    outcome = call_copy(
        'vepd', place / 'line_1', '--models', 'ch_rw', '--jobs', 1, '--out',
        tmp_path / 'o',
    )  # fmt: skip
    assert outcome.status == 0
    for text in (outcome.out, outcome.err):
        assert '\x1b' not in text
        assert '\r' not in text
    assert 'ch_rw' in outcome.out


@pytest.mark.parametrize(
    'words',
    [('models', '--json'), ('simulate', '--motion', 'line', '--duration', 2, '--out', 'more')],
)
def test_a_closed_pipe_is_not_an_error(place: Path, words: tuple[object, ...]) -> None:
    """A short output, which is only flushed at the end, is covered too."""
    process = subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**environment(), 'PYTHONUNBUFFERED': ''}, text=True, cwd=place,
    )  # fmt: skip
    process.stdout.close()
    _, err = process.communicate(timeout=180)
    outcome = Outcome(process.returncode, '', err)
    assert outcome.status in (0, 141)
    assert outcome.err == ''


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='looks for processes in /proc')
@pytest.mark.parametrize(
    ('name', 'to_group', 'status'),
    [('SIGINT', True, 130), ('SIGTERM', False, 143), ('SIGKILL', False, -9)],
)  # fmt: skip
def test_signals_end_all_processes_and_leave_nothing_half_written(
    place: Path, tmp_path: Path, name: str, to_group: bool, status: int
) -> None:
    """Ctrl-C reaches the whole group, as from a terminal; SIGTERM and SIGKILL the parent alone."""
    out = tmp_path / 'result' / 'o'
    with CommandCopy(
        'vepd', place / 'line_1', place / 'line_2', '--models', 'all', '--repetitions',
        50, '--jobs', 2, '--out', out,
    ) as running:  # fmt: skip
        running.wait_for(lambda: len(set(out.glob('runs/*/*/[!t]*.npz'))) >= 2, 'the first runs')
        running.send(getattr(signal, name), to_group=to_group)
        # The last process may still write after the command has ended.
        until(lambda: not running.runs, 'the end of all processes')
        done = running.end()
        assert done.status == status
        assert done.out == ''
        assert len(done.err.splitlines()) == (name != 'SIGKILL')
    assert json.loads((out / 'study.json').read_text())['state'] == 'unfinished'
    if name != 'SIGKILL':
        hidden = [path.name for path in (tmp_path / 'result').rglob('.*')]
        assert hidden == ['.study.json.files']


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM'])
def test_a_signal_while_plots_are_drawn_gives_no_traceback(
    place: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / 'o'
    with CommandCopy(
        'vepd', place / 'line_1', place / 'line_2', '--models', 'all', '--jobs', 2,
        '--out', out,
    ) as running:  # fmt: skip
        running.wait_for(lambda: (out / 'plots').exists(), 'the plots')
        running.send(getattr(signal, name), to_group=name == 'SIGINT')
        done = running.end()
        until(lambda: not running.runs, 'the end of all processes')
    assert 'Traceback' not in done.err
    # Status 0 means that the signal came after the last plot.
    assert done.status in (0, 128 + getattr(signal, name))


@pytest.mark.skipif(not Path('/proc/self/task').is_dir(), reason='counts threads by /proc')
@pytest.mark.parametrize(('set_by_user', 'threads'), [({}, 1), ({'OPENBLAS_NUM_THREADS': '2'}, 2)])
def test_linear_algebra_uses_one_thread_unless_the_user_sets_more(
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
    variables = {name: value for name, value in environment().items() if 'THREADS' not in name}
    done = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True,
        text=True,
        check=True,
        env={**variables, **set_by_user},
    )
    # A machine with one processor has one thread in any case.
    assert int(done.stdout) == min(threads, os.cpu_count() or 1)
