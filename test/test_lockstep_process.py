# SPDX-License-Identifier: Apache-2.0
"""Judge nodes as child processes: they end with their parent, and their graphs do not meet."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from cli_examples import call, call_process, command, environment, write_runs
from judge_examples import read_rows

from sim2real_eval.cli import arguments
from sim2real_eval.judge import JudgeError
from sim2real_eval.ros.lockstep import JudgeProcess, conductor
from sim2real_eval.ros.lockstep.domain import free_domain, private_context

Capture = pytest.CaptureFixture[str]
NO_PROC = pytest.mark.skipif(
    not Path('/proc/self/environ').exists(), reason='looks for processes in /proc'
)


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = write_runs(tmp_path_factory.mktemp('bags'), ('drive_line', 1))
    return path


def processes(mark: str) -> list[int]:
    """Those that run with a variable of this value; not those that only wait to be buried."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / 'environ').read_bytes():
                found.append(int(folder.name))
    return found


def until(condition: Callable[[], bool], what: str, patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f'waited in vain for {what}'
        time.sleep(0.02)


def fake_prefix(folder: Path, script: str) -> Path:
    """An installation of a robot_localization whose ekf_node does not work."""
    index = folder / 'share/ament_index/resource_index/packages/robot_localization'
    node = folder / 'lib/robot_localization/ekf_node'
    for path in (index, node):
        path.parent.mkdir(parents=True)
    index.touch()
    node.write_text(f'#!/bin/sh\n{script}\n', encoding='utf-8')
    node.chmod(0o755)
    return folder


@NO_PROC
def test_a_node_ends_with_its_block_however_it_is_left() -> None:
    mark = uuid.uuid4().hex
    environment = {**os.environ, 'MARK': mark}
    # One that does not listen to requests, as a node that hangs.
    deaf = ['/bin/sh', '-c', 'trap "" INT; sleep 600 & wait']
    for error in (None, ValueError('failure'), KeyboardInterrupt()):
        with (
            contextlib.suppress(ValueError, KeyboardInterrupt),
            JudgeProcess('node', deaf, environment) as process,
        ):
            until(lambda: bool(processes(mark)), 'the node')
            assert os.getsid(process.pid) == process.pid
            process.check()
            if error is not None:
                raise error
        until(lambda: not processes(mark), 'its end', 5.0)


@NO_PROC
def test_a_node_dies_with_a_parent_that_is_killed() -> None:
    mark = uuid.uuid4().hex
    code = (
        'import time\n'
        'from sim2real_eval.ros.lockstep import JudgeProcess\n'
        'with JudgeProcess("node", ["/bin/sleep", "600"]):\n'
        '    time.sleep(600)\n'
    )
    parent = subprocess.Popen([sys.executable, '-c', code], env={**environment(), 'MARK': mark})
    try:
        until(lambda: len(processes(mark)) == 2, 'the node')
    finally:
        parent.kill()
        parent.wait()
    until(lambda: not processes(mark), 'its end', 5.0)


def test_a_node_that_ended_is_reported_with_its_last_words() -> None:
    with (
        pytest.raises(JudgeError, match='node in /here ended with status 3: no such thing'),
        JudgeProcess('node in /here', ['/bin/sh', '-c', 'echo no such thing; exit 3']) as process,
    ):
        until(lambda: process.check() is not None, 'its end')
    with pytest.raises(JudgeError, match='cannot start /nowhere/node'):
        JudgeProcess('node', ['/nowhere/node']).__enter__()


def test_domains_are_held_and_those_with_a_foreign_graph_are_left_alone() -> None:
    with free_domain() as first, free_domain() as second:
        assert first != second
        foreign = 1 + (max(first, second)) % 101
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(('', 7400 + 250 * foreign))
            with contextlib.ExitStack() as stack:
                taken = [stack.enter_context(free_domain()) for _ in range(20)]
                assert foreign not in taken
                assert len({first, second, *taken}) == 22
    with free_domain() as again:
        assert again == first


def test_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('ROS_STATIC_PEERS', '10.0.0.1')
    monkeypatch.delenv('ROS_AUTOMATIC_DISCOVERY_RANGE', raising=False)
    before = dict(os.environ)
    with free_domain() as domain, private_context(domain) as context:
        assert context.get_domain_id() == domain
        assert os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
        assert 'ROS_STATIC_PEERS' not in os.environ
    assert dict(os.environ) == before


# --- the command ---------------------------------------------------------------------------------


def test_the_command_writes_the_bytes_of_the_embedded_judge(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    for judge in ('embedded', 'judge_node'):
        outcome = call(
            capsys, 'judge', bag, '--config', 'paper_released', '--judge', judge, '--out',
            tmp_path / judge,
        )  # fmt: skip
        assert outcome.status == 0, outcome.err
    assert (tmp_path / 'judge_node').read_bytes() == (tmp_path / 'embedded').read_bytes()
    assert len(read_rows(tmp_path / 'embedded')[1]) > 100


def test_what_is_not_installed_is_said_in_one_line(
    bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    out = tmp_path / 'out'
    of_judge = ['judge', bag, '--config', 'clean', '--out', out, '--judge']
    of_vepd = ['vepd', '--real', bag, '--models', 'ch_rw', '--out', out, '--judge']
    for given in (of_judge, of_vepd):
        outcome = call(capsys, *given, 'robot_localization')
        assert outcome.status == 2
        assert len(outcome.err.splitlines()) == 1
        assert 'robot_localization is not found by way of AMENT_PREFIX_PATH' in outcome.err
    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    assert call(capsys, *of_judge, 'robot_localization').status == 2
    for given in (of_judge, of_vepd):
        outcome = call(capsys, *given, 'judge_node', '--navsat-node', 'robot_localization')
        assert outcome.status == 2
        assert 'goes with --judge robot_localization only' in outcome.err
        outcome = call(capsys, *given, 'nobody')
        assert outcome.status == 2
        assert len(outcome.err.splitlines()) == 1
    monkeypatch.setattr(arguments, 'find_spec', lambda name: None)
    outcome = call(capsys, *of_judge, 'judge_node')
    assert outcome.status == 2
    assert "pip install '.[ros]'" in outcome.err
    assert not out.exists()


@pytest.mark.parametrize(
    ('script', 'said'),
    [
        ('echo "cannot open shared object"; exit 127', 'ended with status 127: cannot open'),
        ('sleep 600', 'waited 1 s in vain for robot_localization in /judge: its subscriptions'),
    ],
    ids=['ends', 'hangs'],
)
def test_a_node_that_does_not_work_is_reported_and_ended(
    bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, script: str,
    said: str,
) -> None:  # fmt: skip
    mark = uuid.uuid4().hex
    monkeypatch.setenv('MARK', mark)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(fake_prefix(tmp_path, script)))
    monkeypatch.setattr(conductor, '_PATIENCE_AT_START_S', 1.0)
    outcome = call(
        capsys, 'judge', bag, '--config', 'clean', '--judge', 'robot_localization', '--out',
        tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 2
    assert said in outcome.err
    if Path('/proc/self/environ').exists():
        assert not [pid for pid in processes(mark) if pid != os.getpid()]


@NO_PROC
@pytest.mark.parametrize(('name', 'status'), [('SIGINT', 130), ('SIGTERM', 143), ('SIGKILL', -9)])
def test_signals_end_the_command_and_its_node(
    bag: Path, tmp_path: Path, name: str, status: int
) -> None:
    """Ctrl-C reaches the group of the command, in which the node is not."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        command('judge', bag, '--config', 'clean', '--judge', 'judge_node', '--out',
                tmp_path / 'out.csv'),
        env={**environment(), 'MARK': mark}, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(lambda: len(processes(mark)) == 2, 'the node')
        time.sleep(1.0)
        if name == 'SIGINT':
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(getattr(signal, name))
        process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == status
    until(lambda: not processes(mark), 'the end of all', 10.0)
    assert not (tmp_path / 'out.csv').exists()


def test_parallel_jobs_have_graphs_of_their_own(tmp_path: Path) -> None:
    """vepd with two jobs gives what it gives with the embedded judge, to the byte."""
    bags = write_runs(tmp_path / 'bags', ('drive_line', 1), ('drive_circle', 1))
    for judge in ('embedded', 'judge_node'):
        outcome = call_process(
            'vepd', '--real', *bags, '--models', 'ch_rw', '--judge', judge, '--jobs', 2, '--out',
            tmp_path / judge,
        )  # fmt: skip
        assert outcome.status == 0, outcome.err
    found, expected = (tmp_path / judge / 'runs.csv' for judge in ('judge_node', 'embedded'))
    assert found.read_bytes() == expected.read_bytes()
