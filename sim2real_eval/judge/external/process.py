# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""An estimator as a process: its command, its parameter files, and its lifetime."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.parameter_file import (
    read_node_parameters,
    to_declared_types,
)
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX, HEADING
from sim2real_eval.judge.setup import JudgeSetup, node_of
from sim2real_eval.recording.metadata import transform_mappings
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.config_files import read_yaml_mapping
from .declaration import RosStack
from .keeper import ORPHANED

JUDGES = ('judge_node', 'robot_localization')
"""Judge nodes: judge_node of this package, and ekf_node or ukf_node of robot_localization."""
NODE_NAME = 'ekf_filter_node'
FILTERED_TOPIC = 'odometry/filtered'
TOPICS_BESIDE_INPUTS = {FIX: 'gps/fix', HEADING: 'imu', COMMAND: 'cmd_vel'}
"""Topics of the inputs that are no measurements of the filter."""

_NOT_FOUND = (
    'robot_localization is not found by way of AMENT_PREFIX_PATH; install it (such as apt install '
    'ros-jazzy-robot-localization) and source the setup file of ROS, or use the embedded judge, '
    'which needs nothing'
)
_LOG_LINES = 3
_PR_SET_PDEATHSIG = 1
_KEEPER = (sys.executable, '-I', '-S', str(Path(__file__).with_name('keeper.py')))
_QUEUE_SIZE = 100  # Subscriptions are best effort: a message that finds the queue full is lost.
_PARAMETERS = 'ros__parameters'
# Signals that end a node, and how long it may take after each, s.
_SHUTDOWN_SIGNALS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0))


def executable(judge: str, node: str = 'ekf_node') -> list[str]:
    """Return the command that starts one of JUDGES, or a node of robot_localization.

    JudgeError if it is not installed.
    """
    if judge == 'judge_node':
        return [sys.executable, '-m', 'sim2real_eval.ros.judge_node']
    try:
        from ament_index_python.packages import get_package_prefix

        path = Path(get_package_prefix('robot_localization'), 'lib', 'robot_localization', node)
    except (ImportError, LookupError, OSError):
        raise JudgeError(_NOT_FOUND) from None
    if not os.access(path, os.X_OK):
        raise JudgeError(f'robot_localization: {path} is missing; reinstall the package')
    return [str(path)]


def filter_node(setup: JudgeSetup) -> str:
    """Return the name of robot_localization's executable for a set-up."""
    return 'ekf_node' if setup.filter.sigma_points is None else 'ukf_node'


class JudgeProcess:
    """A node that runs while a `with` block is entered.

    It has a session of its own, so that Ctrl-C reaches the parent alone, which then ends the node.
    On Linux the node and all its children are killed if the parent is killed.

    Parameters
    ----------
    name : str
        Name in messages.
    command : sequence of str
    environment : mapping, optional
        Environment variables; None: those of this process.
    folder : Path, optional
        Working folder.
    scratch_folder : Path, optional
        Folder that is removed if the parent is killed.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        scratch_folder: Path | None = None,
    ) -> None:
        self.name, self._command, self._environment = name, command, environment
        self._folder, self._scratch_folder = folder, scratch_folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> JudgeProcess:
        program = self._command[0]
        search_path = (self._environment or os.environ).get('PATH')
        path = Path(self._folder or '', program) if '/' in program else program
        if shutil.which(path, path=search_path) is None:
            raise JudgeError(f'{self.name}: cannot start {program}: it is no program')
        # A file instead of a pipe: nothing reads it while the node runs, and a full pipe blocks.
        self._log = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [*_KEEPER, str(self._scratch_folder or ''), *self._command],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_child_setup(os.getpid()),
            )
        except OSError as error:
            self._log.close()
            raise JudgeError(f'{self.name}: cannot start {program}: {error}') from None
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process number; 0 before the start."""
        return 0 if self._process is None else self._process.pid

    def check(self) -> None:
        """Raise JudgeError with the end of the log if the node has ended."""
        if self._process is not None and (status := self._process.poll()) is not None:
            reason = f'status {status}' if status >= 0 else f'signal {-status}'
            log = self.log() or 'it printed nothing'
            raise JudgeError(f'{self.name} ended with {reason}: {log}')

    def log(self) -> str:
        """Return the last lines that the node printed, joined to one line."""
        size = os.fstat(self._log.fileno()).st_size
        text = os.pread(self._log.fileno(), 4096, max(size - 4096, 0)).decode(errors='replace')
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return ' | '.join(lines[-_LOG_LINES:])

    def close(self) -> None:
        """End the node, by SIGKILL if it does not react; a second call does nothing."""
        process = self._process
        if process is None:
            return

        def signal_group(number: signal.Signals) -> None:
            # The executable may be a script that started the node.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)

        try:
            for number, timeout in _SHUTDOWN_SIGNALS:
                signal_group(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout)
                    break
        finally:
            # Also if waiting was interrupted, and for children that the node left behind.
            signal_group(signal.SIGKILL)
            process.wait()
            self._process = None
            self._log.close()


def _child_setup(parent: int) -> Callable[[], None]:
    """Return the function that a child runs before it executes the command.

    It ties the child's life to its parent's, and unblocks the signals that end it, which workers
    of --jobs block.
    """
    is_linux = sys.platform.startswith('linux')
    prctl = ctypes.CDLL(None, use_errno=True).prctl if is_linux else None

    def prepare_child() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
        if prctl is None:
            return
        # Below nohup it is ignored, until the keeper has its handler.
        signal.signal(ORPHANED, signal.SIG_DFL)
        prctl(_PR_SET_PDEATHSIG, ORPHANED)
        if os.getppid() != parent:
            os._exit(1)

    return prepare_child


def make_scratch_folder(closing: contextlib.ExitStack) -> Path:
    """Return a new folder for the files that a node reads when it starts; `closing` removes it."""
    folder = Path(tempfile.gettempdir(), f'sim2real_judge_{uuid.uuid4().hex}')
    # First, so that a signal between both leaves no folder.
    closing.callback(shutil.rmtree, folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def input_topics(config: FilterConfig) -> dict[str, str]:
    """Return the topic of each input of the filter, relative to the namespace.

    Each input has a topic of its own. If two inputs shared a topic, the node's executor would
    decide which of them takes a message first.
    """
    used = {'set_pose', FILTERED_TOPIC, *TOPICS_BESIDE_INPUTS.values()}
    topics = {}
    for source in config.sources:
        topic = source.topic
        if topic in used:
            topic = f'{topic}/{source.name}'
        used.add(topic)
        topics[source.name] = topic
    return topics


def node_parameters(setup: JudgeSetup) -> dict[str, Any]:
    """Return the parameters of the filter's node in a lockstep run.

    They are those of the set-up's file, with a simulated clock, a topic for each input, and the
    initial state of the set-up.
    """
    config = setup.filter
    node = node_of(setup.files[0], setup.case)
    file_parameters = read_node_parameters(setup.files[0], node)
    # FilterConfig changes the values that it reads.
    parameters = to_declared_types(file_parameters.values)
    parameters.pop('rl_version', None)
    original = FilterConfig.from_parameters(
        file_parameters, unscented=config.sigma_points is not None, release=config.release
    )
    for name, before, now in (
        ('initial_state', original.initial_state, config.initial_state),
        ('initial_estimate_covariance', original.initial_covariance, config.initial_covariance),
    ):
        if not np.array_equal(before, now):
            parameters[name] = now.ravel().tolist()
    for name, topic in input_topics(config).items():
        parameters |= {name: topic, f'{name}_queue_size': _QUEUE_SIZE}
    # Recorded commands have stamps and take effect at them.
    return {**parameters, 'use_sim_time': True, 'stamped_control': True, 'publish_tf': False}


def filter_command(
    judge: str, folder: Path, namespace: str, setup: JudgeSetup, recording: Recording
) -> list[str]:
    """Write the files of a judge node into a folder; return the command that starts the node.

    The namespace has a leading slash; the transforms are those of the recording.
    """
    is_real, navsat = judge != 'judge_node', setup.navsat
    parameters = node_parameters(setup)
    rules = [f'__node:={NODE_NAME}', f'__ns:={namespace}']
    if is_real:
        # The real node then publishes at every tick, which proves that the tick is done.
        # Estimates that it would not publish otherwise are dropped on arrival.
        parameters['permit_corrected_publication'] = True
        # A wait for a transform would wait for a clock that waits for the node.
        parameters['transform_timeout'] = 0.0
        # Transforms stay within the namespace.
        rules += [f'/{topic}:={namespace}/{topic}' for topic in ('tf', 'tf_static')]
    else:
        parameters['filter'] = 'ekf' if setup.filter.sigma_points is None else 'ukf'
        parameters['rl_version'] = setup.filter.release.value
        if navsat is not None and navsat.has_timer:
            parameters['navsat_params_file'] = str(setup.files[-1].resolve())
        elif navsat is not None:
            # The front end without navsat_transform needs no file, so there may be none.
            front_end: dict[str, Any] = {'zero_altitude': navsat.zero_altitude}
            if navsat.datum is not None:
                front_end |= {'wait_for_datum': True, 'datum': list(navsat.datum)}
            path = _write_parameters(folder / 'navsat.yaml', front_end)
            parameters |= {'front_end': navsat.front_end, 'navsat_params_file': str(path)}
        if setup.case.correct:
            parameters['correct'] = sorted(setup.case.correct)
        path = folder / 'static_transforms.yaml'
        transforms = transform_mappings(recording.transforms)
        path.write_text(yaml.safe_dump(transforms), encoding='utf-8')
        parameters['static_transforms_file'] = str(path)
        parameters['assume_identity_frames'] = not recording.transforms
    path = _write_parameters(folder / 'params.yaml', parameters)
    remappings = [word for rule in rules for word in ('-r', rule)]
    command = executable(judge, filter_node(setup))
    return [*command, '--ros-args', '--params-file', str(path), *remappings]


def _write_parameters(path: Path, parameters: Mapping[str, Any]) -> Path:
    """Write a parameter file that applies to any node."""
    tree = {'/**': {_PARAMETERS: dict(parameters)}}
    path.write_text(yaml.safe_dump(tree, default_flow_style=None), encoding='utf-8')
    return path


def stack_command(stack: RosStack, declaration: Path, folder: Path) -> list[str]:
    """Write the parameters of a declared estimator into a folder; return its start command."""
    overrides = {**stack.parameters, 'use_sim_time': True}
    tree: dict[str, Any] = {}
    if stack.parameters_file:
        tree = read_yaml_mapping(declaration.parent / stack.parameters_file)
    if not isinstance(tree.get('/**'), dict):
        tree['/**'] = {}
    tree['/**'].setdefault(_PARAMETERS, {})
    tree = _override_parameters(tree, overrides)
    path = folder / 'params.yaml'
    path.write_text(yaml.safe_dump(tree, default_flow_style=None), encoding='utf-8')
    if stack.launch:
        words = ['ros2', 'launch', *shlex.split(stack.launch)]
        return [*words, 'use_sim_time:=true', f'params_file:={path}']
    words = shlex.split(stack.command)
    if words[0] in ('python', 'python3'):
        words[0] = sys.executable
    return [*words, '--ros-args', '--params-file', str(path)]


def _override_parameters(tree: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree of namespaces and nodes with parameters of every node overridden."""
    result = {}
    for name, branch in tree.items():
        if name == _PARAMETERS:
            result[name] = {**(branch or {}), **overrides}
        elif isinstance(branch, dict):
            result[name] = _override_parameters(branch, overrides)
        else:
            result[name] = branch
    return result
