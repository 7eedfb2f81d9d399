# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs of the command in forks of a process that has loaded and compiled everything.

They are not forks of pytest: a fork that collects the nodes which a test has left ends in a
segmentation fault, and DDS does not work in forks of a process in which it has run.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

from cli_examples import Outcome, environment, pictures_left_blank

from sim2real_eval.cli.main import main

TIMEOUT_S = 180.0
# Not the one of multiprocessing, which a test may have started without the preload.
_SERVER = forkserver.ForkServer()
_SERVER.set_forkserver_preload(['loaded_command'])


class CommandCopy:
    """A command in a process of its own; the context manager ends all its processes.

    The process leads its own session, has the default signal handlers, writes its output into
    files and draws no pictures.
    """

    def __init__(self, *arguments: object, **variables: str) -> None:
        self._variables = variables
        self._words = [str(argument) for argument in arguments]

    def __enter__(self) -> CommandCopy:
        context = multiprocessing.get_context('forkserver')
        self._streams = tempfile.TemporaryDirectory()
        variables = {**environment(), **self._variables}
        arguments = self._words, self._streams.name, str(Path.cwd()), variables
        self._process = context.Process(target=_run, args=arguments)
        with (
            mock.patch.dict(os.environ, environment()),
            mock.patch.object(
                forkserver, 'connect_to_new_process', _SERVER.connect_to_new_process
            ),
        ):
            self._process.start()
        # A test may send a signal at once, which must find the process group.
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
        """Whether a process of its group runs; zombies do not count."""
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
        """Send a signal to the command alone, or to its process group as Ctrl-C does."""
        (os.killpg if to_group else os.kill)(self.pid, number)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until `condition` holds; the test fails if the command ends first."""
        until(lambda: condition() or self._ended, what)
        assert condition(), f'the command ended before {what}: {self.end().err}'

    def end(self) -> Outcome:
        """Wait for the end; a status below zero is minus the signal that ended the command."""
        self._process.join(TIMEOUT_S)
        status = self._process.exitcode
        assert status is not None, f'the command still runs after {TIMEOUT_S:g} s'
        out, err = (Path(self._streams.name, name).read_text('utf-8') for name in _STREAMS)
        return Outcome(status, out, err)


def call_copy(*arguments: object) -> Outcome:
    """Run the command in a process of its own."""
    with CommandCopy(*arguments) as copy:
        return copy.end()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition` holds; the test fails after `TIMEOUT_S`."""
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
