# SPDX-License-Identifier: Apache-2.0
"""A judge node as a process: its command, parameters and files, and its life."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.common.locks import Scratch, left_scratches, remove_scratch, uninterrupted
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.ros_parameters import declared, read_node_parameters
from sim2real_eval.judge.setup import JudgeSetup, node_of
from sim2real_eval.recording.metadata import transform_mappings
from sim2real_eval.recording.recording import Recording
from .keeper import ORPHANED
from .senders import input_topics

JUDGES = ('judge_node', 'robot_localization')
"""Kinds of judge nodes: ours, and ekf_node or ukf_node of robot_localization."""
NODE_NAME = 'ekf_filter_node'

_ABSENT = (
    'robot_localization is not found by way of AMENT_PREFIX_PATH; install it (such as apt install '
    'ros-jazzy-robot-localization) and source the setup file of ROS, or use the embedded judge, '
    'which needs nothing'
)
_LINES_OF_LOG = 3
_PR_SET_PDEATHSIG = 1
_KEEPER = (sys.executable, '-I', '-S', str(Path(__file__).with_name('keeper.py')))
# How long a node may take to end after each signal, seconds.
_SHUTDOWN_SIGNALS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0))


def executable(judge: str, node: str = 'ekf_node') -> list[str]:
    """Return the command that starts one of JUDGES, or a node of robot_localization.

    JudgeError, which says what to do, when it is not installed.
    """
    if judge == 'judge_node':
        return [sys.executable, '-m', 'sim2real_eval.ros.judge_node']
    try:
        from ament_index_python.packages import get_package_prefix
    except ImportError:
        raise JudgeError(_ABSENT) from None
    try:
        path = Path(get_package_prefix('robot_localization'), 'lib', 'robot_localization', node)
    except (LookupError, OSError):  # No such package; or no AMENT_PREFIX_PATH to look in.
        raise JudgeError(_ABSENT) from None
    if not os.access(path, os.X_OK):
        raise JudgeError(f'robot_localization: {path} is missing; install the package anew')
    return [str(path)]


def filter_node(setup: JudgeSetup) -> str:
    """Return the executable of robot_localization whose parameters a set-up has."""
    return 'ekf_node' if setup.filter.sigma_points is None else 'ukf_node'


class JudgeProcess:
    """A node that runs from entering to leaving a `with` block; messages bear its name.

    It is in a session of its own, so that Ctrl-C reaches the parent alone, which ends it; on
    Linux it is killed when the parent is, with all that it started. `folder` is that which it runs
    in. JudgeError when there is nothing to start.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name, self._command, self._environment = name, command, environment
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> JudgeProcess:
        program = self._command[0]
        path = (self._environment or os.environ).get('PATH')
        if (
            shutil.which(
                Path(self._folder or '', program) if '/' in program else program, path=path
            )
            is None
        ):
            raise JudgeError(f'{self.name}: cannot start {program}: it is no program')
        # A file and not a pipe: nobody reads while the node runs, and a full pipe stops it.
        self._log = tempfile.TemporaryFile()
        try:
            # Their handlers may raise, which would lose a child just born.
            with uninterrupted():
                self._process = subprocess.Popen(
                    [*_KEEPER, *self._command],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    start_new_session=True,
                    preexec_fn=_prepared(os.getpid()),
                )
        except OSError as error:
            self._log.close()
            raise JudgeError(f'{self.name}: cannot start {program}: {error}') from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def started(self, closing: contextlib.ExitStack) -> JudgeProcess:
        """Start the node, which `closing` ends: known to it before, so that no signal in between
        leaves the node running.
        """
        closing.push(self)
        return self.__enter__()

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
        prctl(_PR_SET_PDEATHSIG, ORPHANED)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


_QUEUE_SIZE = 100  # Subscriptions are best effort: what finds the queue full would be lost.


def node_parameters(setup: JudgeSetup, topics: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of the filter's node in a lockstep run, with the topic of each input.

    They are those of the set-up's file, with a simulated clock, the inputs on topics of their
    own, and what the set-up's filter starts with.
    """
    wanted = setup.filter
    unscented = wanted.sigma_points is not None
    given = read_node_parameters(setup.files[0], node_of(setup.files[0], setup.case))
    values = declared(given.values)
    original = FilterConfig.from_parameters(given, unscented=unscented)
    for name, before, now in (
        ('initial_state', original.initial_state, wanted.initial_state),
        ('initial_estimate_covariance', original.initial_covariance, wanted.initial_covariance),
    ):
        if not np.array_equal(before, now):
            values[name] = now.ravel().tolist()
    for name, topic in topics.items():
        values |= {name: topic, f'{name}_queue_size': _QUEUE_SIZE}
    # Commands carry stamps in recordings, and act from them.
    return {**values, 'use_sim_time': True, 'stamped_control': True, 'publish_tf': False}


def _write_parameters(path: Path, values: Mapping[str, Any]) -> Path:
    """Write a parameter file for whatever node reads it."""
    tree = {'/**': {'ros__parameters': dict(values)}}
    path.write_text(yaml.safe_dump(tree, default_flow_style=None), encoding='utf-8')
    return path


def _ros_arguments(file: Path, name: str, space: str, *, own_transforms: bool) -> list[str]:
    """Return the arguments that give a node its file, its name and its namespace.

    With `own_transforms` the transforms of a side stay in it.
    """
    rules = [f'__node:={name}', f'__ns:={space}']
    if own_transforms:
        rules += [f'/{topic}:={space}/{topic}' for topic in ('tf', 'tf_static')]
    words = [word for rule in rules for word in ('-r', rule)]
    return ['--ros-args', '--params-file', str(file), *words]


def node_folder(closing: contextlib.ExitStack) -> Scratch:
    """Return a folder for the files that a node reads when it starts; `closing` removes it."""
    where, prefix = Path(tempfile.gettempdir()), 'sim2real_judge_'
    for left in left_scratches(where, prefix):
        with contextlib.suppress(OSError):
            remove_scratch(left)
    # A signal after it was made and before it is known would leave it there.
    with uninterrupted():
        folder = Scratch(where, prefix)
        closing.callback(folder.remove)
    return folder


def filter_command(
    judge: str, folder: Path, space: str, setup: JudgeSetup, recording: Recording
) -> list[str]:
    """Write the files of a judge node into a folder; return the command that starts it.

    Its namespace has a leading slash, the transforms are those of the recording.
    """
    real, navsat = judge != 'judge_node', setup.navsat
    values = node_parameters(setup, input_topics(setup.filter))
    if real:
        # Answers to ticks; what a node would not publish is left out on arrival.
        values['permit_corrected_publication'] = True
        # Waiting for a transform would wait for a clock that waits for the node.
        values['transform_timeout'] = 0.0
    else:
        values['filter'] = 'ekf' if setup.filter.sigma_points is None else 'ukf'
        if navsat is not None and navsat.timed:
            values['navsat_params_file'] = str(setup.files[-1].resolve())
        elif navsat is not None:
            # The plain front end may have come without a file.
            plain: dict[str, Any] = {'zero_altitude': navsat.zero_altitude}
            if navsat.datum is not None:
                plain |= {'wait_for_datum': True, 'datum': list(navsat.datum)}
            path = _write_parameters(folder / 'navsat.yaml', plain)
            values |= {'front_end': navsat.front_end, 'navsat_params_file': str(path)}
        if setup.case.correct:
            values['correct'] = sorted(setup.case.correct)
        path = folder / 'static_transforms.yaml'
        transforms = transform_mappings(recording.transforms)
        path.write_text(yaml.safe_dump(transforms), encoding='utf-8')
        values['static_transforms_file'] = str(path)
        values['assume_identity_frames'] = not recording.transforms
    file = _write_parameters(folder / 'params.yaml', values)
    arguments = _ros_arguments(file, NODE_NAME, space, own_transforms=real)
    return [*executable(judge, filter_node(setup)), *arguments]
