# SPDX-License-Identifier: Apache-2.0
"""A node as a child process that never outlives its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.setup import JudgeSetup

__all__ = ['JUDGES', 'JudgeProcess', 'executable', 'filter_node', 'signals_held']

JUDGES = ('judge_node', 'robot_localization')
"""Kinds of judge nodes: ours, and ekf_node or ukf_node of robot_localization."""

_ABSENT = (
    'robot_localization is not found by way of AMENT_PREFIX_PATH; install it (such as apt install '
    'ros-jazzy-robot-localization) and source the setup file of ROS, or use the embedded judge, '
    'which needs nothing'
)
_LINES_OF_LOG = 3
_PR_SET_PDEATHSIG = 1
# How long a node may take to end after each signal, seconds.
_SHUTDOWN_SIGNALS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0))


def executable(judge: str, node: str = 'ekf_node') -> list[str]:
    """Return the command that starts a judge.

    Parameters
    ----------
    judge : str
        One of JUDGES.
    node : str
        Executable of robot_localization.

    Raises
    ------
    JudgeError
        When it is not installed; says what to do.
    """
    if judge == 'judge_node':
        return [sys.executable, '-m', 'sim2real_eval.ros.judge_node']
    try:
        from ament_index_python.packages import get_package_prefix
    except ImportError:
        raise JudgeError(_ABSENT) from None
    try:
        path = Path(get_package_prefix('robot_localization'), 'lib', 'robot_localization', node)
    except (LookupError, OSError):
        # No such package; or no AMENT_PREFIX_PATH to look in.
        raise JudgeError(_ABSENT) from None
    if not os.access(path, os.X_OK):
        raise JudgeError(f'robot_localization: {path} is missing; install the package anew')
    return [str(path)]


def filter_node(setup: JudgeSetup) -> str:
    """Return the executable of robot_localization whose parameters a set-up has."""
    return 'ekf_node' if setup.filter.sigma_points is None else 'ukf_node'


class JudgeProcess:
    """A node that runs from entering to leaving a `with` block.

    It is in a session of its own, so that Ctrl-C reaches the parent alone, which ends it; on
    Linux it is killed when the parent is.

    Parameters
    ----------
    name : str
        For messages.
    command : sequence of str
    environment : mapping or None
        None: that of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the node; `close` ends it, also when this is interrupted.

        Raises
        ------
        JudgeError
            When there is nothing to start.
        """
        # A file and not a pipe: nobody reads while the node runs, and a full pipe stops it.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            with signals_held():
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=subprocess.STDOUT,
                    env=None if self._environment is None else dict(self._environment),
                    start_new_session=True,
                    preexec_fn=_prepared(os.getpid()),
                )
        except OSError as error:
            self._log.close()
            raise JudgeError(f'{self.name}: cannot start {self._command[0]}: {error}') from None

    def __enter__(self) -> JudgeProcess:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Number of the process; 0 before it was started."""
        return 0 if self._process is None else self._process.pid

    def check(self) -> None:
        """Raise JudgeError, with the end of its log, when the node has ended."""
        if self._process is not None and (status := self._process.poll()) is not None:
            how = f'status {status}' if status >= 0 else f'signal {-status}'
            raise JudgeError(f'{self.name} ended with {how}: {self.log() or "it said nothing"}')

    def log(self) -> str:
        """Return the last lines that the node printed, as one."""
        size = os.fstat(self._log.fileno()).st_size
        text = os.pread(self._log.fileno(), 4096, max(size - 4096, 0)).decode(errors='replace')
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return ' | '.join(lines[-_LINES_OF_LOG:])

    def close(self) -> None:
        """End the node: ask, then insist; may be called twice."""
        if self._process is None:
            return
        try:
            for number, timeout in _SHUTDOWN_SIGNALS:
                # The whole group: the executable may be a script that started the node.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout)
                    break
            # What it started and did not end itself.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        except BaseException:
            # Interrupted while waiting.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise
        finally:
            if self._process.returncode is not None:
                self._process = None
                self._log.close()


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hear Ctrl-C and SIGTERM after the block and not inside.

    Their handlers may raise, and inside Popen that would lose a child just born. A mask of the
    thread does not keep them away: Python calls them in the main thread when any thread, such as
    those of DDS, gets the signal. Other threads are never interrupted.
    """
    held: list[int] = []

    def deliver() -> None:
        for number in dict.fromkeys(held):
            signal.raise_signal(number)

    with contextlib.ExitStack() as stack:
        stack.callback(deliver)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(handler := signal.getsignal(number)):
                    stack.callback(signal.signal, number, handler)
                    signal.signal(number, lambda came, _: held.append(came))
        yield


def _prepared(parent: int) -> Callable[[], None]:
    """Return what the child does before it becomes the node.

    It ties its life to its parent's and hears the signals that end it, which a worker of --jobs
    does not.
    """
    linux = sys.platform.startswith('linux')
    prctl = ctypes.CDLL(None, use_errno=True).prctl if linux else None

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
        if prctl is None:
            return
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
