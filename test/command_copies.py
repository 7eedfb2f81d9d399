# SPDX-License-Identifier: Apache-2.0
"""The command in copies of a process that has loaded what a new one loads for seconds."""

from __future__ import annotations

import contextlib
import functools
import io
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from cli_examples import Outcome, environment, pictures_left_blank, write_runs

from sim2real_eval.cli.main import main

TIMEOUT_S = 180.0
_SERVER = multiprocessing.get_context('forkserver')
_SERVER.set_forkserver_preload(['loaded_command'])


@functools.cache
def load() -> None:
    """Compare a short run with its twin here: what that loads and compiles, copies need not."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pictures_left_blank(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        bags = write_runs(Path(folder), ('drive_line', 1))
        few = '--models', 'ch_rw', '--resamples', '100', '--jobs', '1'
        assert main(['vepd', '--real', *map(str, bags), *few, '--out', f'{folder}/out']) == 0


class CommandCopy:
    """A command that runs in a copy of this process; a context manager that leaves no process.

    It leads a session of its own, hears the usual signals, writes into files and draws nothing.
    The copy has one thread: workers of --jobs are copies of it, as they are of a command that a
    user gives.

    Parameters
    ----------
    fresh : bool
        Copy a process that was started for this, for commands that use ROS: once DDS has run in
        a process, it does not in copies of it.
    variables : str
        Of the environment, beside those of this process.
    """

    def __init__(self, *arguments: object, fresh: bool = False, **variables: str) -> None:
        self._fresh, self._variables = fresh, variables
        self._words = [str(argument) for argument in arguments]

    def __enter__(self) -> CommandCopy:
        if not self._fresh:
            load()
        context = _SERVER if self._fresh else multiprocessing.get_context('fork')
        self._streams = tempfile.TemporaryDirectory()
        variables = {**environment(), **self._variables}
        given = self._words, self._streams.name, str(Path.cwd()), variables
        self._process = context.Process(target=_run, args=given)
        with mock.patch.dict(os.environ, environment()):
            self._process.start()
        # The signal that a test sends at once is to find the group.
        until(lambda: self._ended or os.getpgid(self.pid) == self.pid, 'the start of the command')
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.join()
        self._streams.cleanup()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def _ended(self) -> bool:
        return self._process.exitcode is not None

    @property
    def runs(self) -> bool:
        """Whether a process of its group runs; not those that only wait to be buried."""
        for stat in Path('/proc').glob('[0-9]*/stat'):
            try:
                text = stat.read_text(encoding='utf-8', errors='replace')
            except OSError:
                continue
            fields = text.rpartition(')')[2].split()
            if int(fields[2]) == self.pid and fields[0] not in 'ZX':
                return True
        return False

    def send(self, number: int, *, to_group: bool = False) -> None:
        """Send a signal to the command alone, or to all its processes as Ctrl-C does."""
        (os.killpg if to_group else os.kill)(self.pid, number)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until `condition`, which is to be there before the command ends."""
        until(lambda: condition() or self._ended, what)
        assert condition(), f'the command ended before {what}: {self.end().err}'

    def end(self) -> Outcome:
        """Wait for its end; the status is minus the signal that ended it."""
        self._process.join(TIMEOUT_S)
        status = self._process.exitcode
        assert status is not None, f'the command runs after {TIMEOUT_S:g} s'
        out, err = (Path(self._streams.name, name).read_text('utf-8') for name in _STREAMS)
        return Outcome(status, out, err)


def call_copy(*arguments: object, fresh: bool = False) -> Outcome:
    """Run the command in a copy of this process."""
    with CommandCopy(*arguments, fresh=fresh) as copy:
        return copy.end()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition`; the test fails when it never comes."""
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, f'waited {TIMEOUT_S:g} s for {what}'
        time.sleep(0.01)


_STREAMS = {'out': 1, 'err': 2}


def _run(words: list[str], streams: str, place: str, variables: dict[str, str]) -> None:
    os.setsid()
    # The forkserver may have been started with Ctrl-C blocked.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    for name, number in _STREAMS.items():
        file = os.open(Path(streams, name), os.O_CREAT | os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = (os.fdopen(k, 'w', buffering=1, closefd=False) for k in (1, 2))
    with pictures_left_blank():
        sys.exit(main(words))
