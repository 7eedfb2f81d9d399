# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judge nodes as child processes: they end with their parent, and their graphs do not meet."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from cli_examples import call, contents, environment, run_of, write_runs
from command_copies import CommandCopy, call_copy, until

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge import external
from sim2real_eval.judge.external import graph as conductor
from sim2real_eval.judge.external import process as process_module
from sim2real_eval.judge.external.graph import free_domain
from sim2real_eval.judge.external.process import JudgeProcess
from sim2real_eval.recording.writing import write_recording

Capture = pytest.CaptureFixture[str]
NO_PROC = pytest.mark.skipif(
    not Path('/proc/self/environ').exists(), reason='looks for processes in /proc'
)


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two short runs."""
    folder, paths = tmp_path_factory.mktemp('short'), []
    for motion in ('drive_line', 'drive_circle'):
        whole = run_of(motion, 1)
        end = whole.start_ns + 1_500_000_000
        cut = {name: array.take(array.stamp_ns < end) for name, array in whole.messages.items()}
        paths.append(folder / whole.name)
        write_recording(dataclasses.replace(whole, messages=cut), paths[-1])
    return paths


@pytest.fixture(scope='module')
def long_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run that occupies a judge node for many seconds."""
    (path,) = write_runs(tmp_path_factory.mktemp('long'), ('drive_line', 1))
    return path


@pytest.fixture(scope='module')
def bag(bags: list[Path]) -> Path:
    return bags[0]


def processes(mark: str) -> list[int]:
    """Running processes with an environment variable of this value, without zombies."""
    pids = []
    for folder in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / 'environ').read_bytes():
                pids.append(int(folder.name))
    return pids


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
@pytest.mark.parametrize(
    'script',
    [
        'trap "" INT TERM; touch {ready}; sleep 600 & wait',
        '(trap "" INT TERM; touch {ready}; exec sleep 600) & trap "exit 0" INT; wait',
    ],
    ids=['ignores signals', 'leaves a child'],
)
def test_a_node_is_ended_when_its_block_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(
        process_module, '_SHUTDOWN_SIGNALS',
        ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.3), (signal.SIGKILL, 10.0)),
    )  # fmt: skip
    mark, ready = uuid.uuid4().hex, tmp_path / 'ready'
    environment = {**os.environ, 'MARK': mark}
    node = ['/bin/sh', '-c', script.format(ready=ready)]
    for error in (ValueError('failure'), KeyboardInterrupt()):
        ready.unlink(missing_ok=True)
        with contextlib.suppress(type(error)), JudgeProcess('node', node, environment):
            until(ready.exists, 'the node')
            raise error
        until(lambda: not processes(mark), 'its end')


@NO_PROC
def test_a_node_and_its_children_die_with_a_parent_that_is_killed() -> None:
    mark = uuid.uuid4().hex
    code = (
        'import time\n'
        'from sim2real_eval.judge.external.process import JudgeProcess\n'
        'with JudgeProcess("node", ["/bin/sh", "-c", "sleep 600 & wait"]):\n'
        '    time.sleep(600)\n'
    )
    parent = subprocess.Popen([sys.executable, '-c', code], env={**environment(), 'MARK': mark})
    try:
        # The parent, what stands between, the node, and what that started.
        until(lambda: len(processes(mark)) == 4, 'the node')
    finally:
        parent.kill()
        parent.wait()
    until(lambda: not processes(mark), 'its end')


def test_a_node_that_ended_is_reported_with_its_last_output() -> None:
    with (
        pytest.raises(JudgeError, match='node in /here ended with status 3: no such thing'),
        JudgeProcess('node in /here', ['/bin/sh', '-c', 'echo no such thing; exit 3']) as process,
    ):
        until(lambda: bool(process.check()), 'its end')  # type: ignore[func-returns-value]
    with pytest.raises(JudgeError, match='cannot start /nowhere/node'):
        JudgeProcess('node', ['/nowhere/node']).__enter__()


@pytest.mark.parametrize('offset', [0, 10, 12, 72])
def test_a_domain_in_use_is_not_taken(offset: int) -> None:
    """Ports of multicast discovery and of the participants 0, 1 and 31."""
    with free_domain() as first, free_domain() as second:
        assert first != second
        foreign = 1 + (max(first, second)) % 101
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(('', 7400 + 250 * foreign + offset))
            with contextlib.ExitStack() as stack:
                domains = [stack.enter_context(free_domain()) for _ in range(20)]
                assert foreign not in domains
                assert len({first, second, *domains}) == 22
    with free_domain() as again:
        assert again == first


def test_processes_that_share_no_folder_reserve_different_domains(tmp_path: Path) -> None:
    """Domains are a matter of the network: containers may share it and nothing else."""
    program = f"""
        import os
        os.getpid = lambda: {os.getpid()}
        from sim2real_eval.judge.external.graph import free_domain
        with free_domain() as domain:
            print(domain, flush=True)
            input()
    """
    with free_domain() as domain:
        done = subprocess.run(
            [sys.executable, '-c', textwrap.dedent(program)],
            env={**os.environ, 'TMPDIR': str(tmp_path)},
            input='\n', capture_output=True, text=True, timeout=120.0, check=True,
        )  # fmt: skip
    assert int(done.stdout) != domain


def test_a_judge_that_is_not_installed_is_refused_in_one_line(
    bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    out = tmp_path / 'out'
    of_judge = ['judge', bag, '--config', 'clean', '--out', out, '--judge']
    of_vepd = ['vepd', bag, '--models', 'ch_rw', '--out', out, '--judge']
    for arguments in (of_judge, of_vepd):
        outcome = call(capsys, *arguments, 'robot_localization')
        assert outcome.status == 2
        assert len(outcome.err.splitlines()) == 1
        assert 'AMENT_PREFIX_PATH' in outcome.err
    monkeypatch.setattr(external, 'find_spec', lambda name: None)
    outcome = call(capsys, *of_judge, 'judge_node')
    assert outcome.status == 2
    assert 'pip install ros-jazzy-' in outcome.err
    assert not out.exists()


@pytest.mark.parametrize(
    ('script', 'named'),
    [('echo "no library"; exit 127', 'status 127: no library'), ('sleep 600', 'waited 1 s')],
    ids=['ends', 'hangs'],
)
def test_a_node_that_does_not_work_is_reported_and_ended(
    bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, script: str,
    named: str,
) -> None:  # fmt: skip
    mark = uuid.uuid4().hex
    monkeypatch.setenv('MARK', mark)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(fake_prefix(tmp_path, script)))
    monkeypatch.setattr(conductor, '_START_TIMEOUT_S', 1.0 if 'waited' in named else 60.0)
    outcome = call(
        capsys, 'judge', bag, '--config', 'clean', '--judge', 'robot_localization', '--out',
        tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 2
    assert named in outcome.err
    if Path('/proc/self/environ').exists():
        until(lambda: not [pid for pid in processes(mark) if pid != os.getpid()], 'its end')


@NO_PROC
@pytest.mark.parametrize(('name', 'status'), [('SIGINT', 130), ('SIGTERM', 143), ('SIGKILL', -9)])
def test_signals_end_command_and_node(
    long_bag: Path, tmp_path: Path, name: str, status: int
) -> None:
    """Ctrl-C reaches the process group of the command, but not the node."""
    mark = uuid.uuid4().hex
    with CommandCopy(
        'judge', long_bag, '--config', 'clean', '--judge', 'judge_node', '--out',
        tmp_path / 'out', MARK=mark, TMPDIR=str(tmp_path),
    ) as running:  # fmt: skip
        # What stands between, and the node.
        running.wait_for(lambda: len(processes(mark)) == 2 and folders(tmp_path), 'the node')
        # From now on the node works, and nothing is left whatever happens.
        running.wait_for(lambda: not folders(tmp_path), 'its answer')
        running.send(getattr(signal, name), to_group=name == 'SIGINT')
        assert running.end().status == status
        until(lambda: not processes(mark) and not running.runs, 'the end of all')
    assert not (tmp_path / 'out').exists()
    assert not folders(tmp_path)


@NO_PROC
@pytest.mark.parametrize(('name', 'status'), [('SIGINT', 130), ('SIGTERM', 143)])
def test_signals_end_workers_and_their_nodes(
    bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, status: int
) -> None:
    """Both nodes start for ever; their files are removed, and the study can be continued."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(fake_prefix(tmp_path / 'ros', 'exec sleep 600')))
    with CommandCopy(
        'vepd', *bags, '--models', 'ch_rw', '--judge', 'robot_localization', '--jobs',
        2, '--out', tmp_path / 'out', MARK=mark, TMPDIR=str(tmp_path),
    ) as running:  # fmt: skip
        running.wait_for(lambda: len(folders(tmp_path)) == 2, 'both nodes')
        running.send(getattr(signal, name), to_group=name == 'SIGINT')
        assert running.end().status == status
        until(lambda: not processes(mark) and not running.runs, 'the end of all')
    assert not folders(tmp_path)
    assert json.loads((tmp_path / 'out/study.json').read_text())['state'] == 'unfinished'
    assert not (tmp_path / 'out/runs.csv').exists()


@NO_PROC
def test_a_parent_under_nohup_that_ends_at_once_leaves_no_node(tmp_path: Path) -> None:
    """A process below `nohup` ignores SIGHUP, and its children do so until they change it."""
    mark = uuid.uuid4().hex
    program = (
        'import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n'
        'from sim2real_eval.judge.external.process import JudgeProcess\n'
        "JudgeProcess('node', ['/bin/sleep', '600']).__enter__(); os._exit(0)"
    )
    for _ in range(5):
        subprocess.run(
            [sys.executable, '-c', program], env={**os.environ, 'MARK': mark}, check=True
        )
    until(lambda: not processes(mark), 'the end of all')


def folders(folder: Path) -> list[Path]:
    return list(folder.glob('sim2real_judge_*'))


def test_parallel_jobs_have_separate_ros_graphs(bags: list[Path], tmp_path: Path) -> None:
    """vepd with two jobs writes the bytes of the embedded judge, but for the name of the judge."""
    for judge, jobs in (('embedded', 1), ('judge_node', 2)):
        outcome = call_copy(
            'vepd', *bags, '--models', 'ch_rw', '--judge-config', 'paper_released',
            '--judge', judge, '--jobs', jobs, '--out', tmp_path / judge,
        )  # fmt: skip
        assert outcome.status == 0, outcome.err
    nodes, embedded = (
        {name: data for name, data in contents(tmp_path / judge).items() if '.png' not in name}
        for judge in ('judge_node', 'embedded')
    )
    record, expected = (json.loads(files.pop('study.json')) for files in (nodes, embedded))
    assert record['judges'][0].pop('judge') == 'judge_node'
    assert expected['judges'][0].pop('judge') == 'embedded'
    for key in ('sha256', 'command'):
        assert record.pop(key) != expected.pop(key)
    assert record == expected
    assert b'judge_node' in nodes.pop('report.html')
    del embedded['report.html']
    assert nodes == embedded
