# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM that come while C code, as LLVM does, calls Python."""

from __future__ import annotations

import ctypes
import os
import signal

import pytest

from sim2real_eval.cli.interruption import interruptible


def _fail_after(number: int) -> None:
    """Fail as numba does after a signal whose exception C has dropped."""
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number))()
    raise RuntimeError('no compiled object yet')


@pytest.mark.parametrize(
    ('number', 'ends_with'), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_what_fails_after_a_dropped_signal_is_the_end_that_was_asked_for(
    number: int, ends_with: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    """A user saw `RuntimeError: no compiled object yet` and a traceback."""
    with pytest.raises(ends_with) as ended, interruptible():
        _fail_after(number)
    assert ended.value.args in ((), (128 + number,))
    assert capfd.readouterr().err == ''


def test_a_failure_without_a_signal_stays_what_it_is() -> None:
    """A fault of ours is not taken for Ctrl-C, and the handlers are those of before."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(RuntimeError, match='ours'), interruptible():
        raise RuntimeError('ours')
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
