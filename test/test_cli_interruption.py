# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM that arrive while C code, such as LLVM, calls Python."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from sim2real_eval.cli.main import interruptible

# Waits for a signal in a C callback or a finalizer, which drop exceptions, and then goes on.
_DROPPING_PROGRAM = """
import ctypes, sys, time
from sim2real_eval.cli.main import interruptible

def wait():
    print('ready', flush=True)
    time.sleep(600)

class Ending:
    def __del__(self):
        wait()

try:
    with interruptible():
        ctypes.CFUNCTYPE(None)(wait)() if sys.argv[1] == 'ctypes' else Ending()
        print('goes on', flush=True)
        while True:
            sum(range(1000)) if sys.argv[2] == 'busy' else time.sleep(600)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture(autouse=True)
def _listening() -> Iterator[None]:
    """Handle Ctrl-C as on a terminal; background processes of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _drop(number: int) -> None:
    """Send a signal to this process inside a C callback, which drops the exception."""
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number))()


def _fail_after(number: int) -> None:
    """Raise an error after a dropped signal, as numba does."""
    _drop(number)
    raise RuntimeError('no compiled object yet')


@pytest.mark.parametrize(
    ('number', 'ends_with'), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_an_error_after_a_swallowed_signal_is_reported_as_the_interruption(
    number: int, ends_with: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ends_with) as ended, interruptible():
        _fail_after(number)
    assert ended.value.args in ((), (128 + number,))
    assert capfd.readouterr().err == ''


def test_an_error_without_a_signal_is_unchanged_and_signal_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(RuntimeError, match='ours'), interruptible():
        raise RuntimeError('ours')
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(('number', 'where', 'then', 'status'), [
    (signal.SIGINT, 'ctypes', 'busy', 130),
    (signal.SIGINT, 'del', 'blocked', 130),
    (signal.SIGTERM, 'ctypes', 'blocked', 143),
])  # fmt: skip
def test_a_swallowed_signal_still_ends_the_program(
    number: int, where: str, then: str, status: int
) -> None:
    with subprocess.Popen(
        [sys.executable, '-c', _DROPPING_PROGRAM, where, then],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == 'ready\n'
            time.sleep(0.05)
            process.send_signal(number)
            out, err = process.communicate(timeout=180)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (status, 'goes on\n', '')
