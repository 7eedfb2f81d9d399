# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""evaluation_node ends without a running process: refused, interrupted or with failures."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from nav_msgs.msg import Odometry
from ros_evaluation_examples import (
    bags_parameter,
    evaluation,
    node_of,
    nodes_on,
    onlooker,
    processes_on,
    short_bags,
    until,
)
from ros_examples import Graph
from ros_judge_examples import start_judge_node_here

from sim2real_eval.judge.external.connections import GraphEstimator
from sim2real_eval.ros import evaluation_node
from sim2real_eval.ros.evaluation_node import EvaluationNode

pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture
def graph() -> Iterator[Graph]:
    with onlooker() as graph:
        yield graph


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return short_bags(tmp_path_factory.mktemp('bags'), line=1.0, circle=4.0)


def refused(capsys: pytest.CaptureFixture[str], *parameters: str) -> str:
    """Run the node in this process; return its one complaint."""
    words = [word for parameter in parameters for word in ('-p', parameter)]
    assert evaluation_node.main(['--ros-args', *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ''
    (line,) = captured.err.splitlines()
    return line


@pytest.mark.parametrize(
    'parameter',
    [
        'models:=ch_gaus', 'models:=","', 'imu:=chrno', 'imu:=none.yaml', 'models:=3',
        'judge:=oracle', 'profile:=cleaner', 'params_file:=none.yaml',
        'navsat_params_file:=none.yaml', 'case_file:=none.yaml', 'repetitions:=0', 'repetition:=2',
        'rate_factor:=-1.0', 'metric.rate:=0.0', 'metric.drop_zeros:=true', 'metric.warm_up:=1.0',
        'component:=up', 'topics:=[odom]', 'topics:=[1, 2]', 'scenario:=all',
        'real:=[/no/such/bag]', 'real:=/no/such/*', 'real:=1.5', 'out:=""',
    ],
)  # fmt: skip
def test_a_malformed_parameter_is_a_one_line_error_with_its_name(
    bags: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], parameter: str
) -> None:
    name = parameter.partition(':=')[0]
    good = {'real': bags_parameter(bags), 'out': f'out:={tmp_path / "out"}'}
    line = refused(capsys, *{**good, name: parameter}.values())
    assert line.startswith('evaluation_node: error: ')
    assert f'{name}: ' in line
    assert not (tmp_path / 'out').exists()


def test_an_existing_result_is_not_replaced(
    bags: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'mine').write_text('precious')
    parameters = (bags_parameter(bags), f'out:={tmp_path}')
    for more in ([], ['overwrite:=true']):
        assert f'out: {tmp_path}: ' in refused(capsys, *parameters, *more)
    assert (tmp_path / 'mine').read_text() == 'precious'
    assert 'out: ' in refused(capsys, parameters[0], f'out:={tmp_path / "mine/out"}')


def test_recordings_with_equal_names_are_refused_at_the_start(
    bags: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / 'other'
    other.mkdir()
    out = f'out:={tmp_path / "out"}'
    (other / 'recording.yaml').write_text('name: line_1')
    line = refused(capsys, bags_parameter([bags[0], other]), out)
    assert f'real: line_1: is the name of {bags[0]} and of {other}' in line
    assert 'real: ' in refused(capsys, bags_parameter([bags[0], bags[0]]), out)


def test_an_interrupted_node_writes_the_completed_recordings(
    graph: Graph,
    bags: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the middle of the second recording, whose judges are processes; they end with it."""
    domain, second = os.environ['ROS_DOMAIN_ID'], bags[1].name
    estimates = graph.received['sim/odometry/filtered']
    graph.listen('sim/odometry/filtered', Odometry)
    as_process, poll, node_pids = GraphEstimator._start_process, EvaluationNode._poll, list[int]()

    def start(side: GraphEstimator, command: Sequence[str], *folders: Path) -> None:
        is_second = side._recording.name == second
        (as_process if is_second else start_judge_node_here)(side, command, *folders)
        if is_second:
            estimates.clear()

    def stop(node: EvaluationNode) -> None:
        poll(node)
        graph.executor.spin_once(timeout_sec=0.0)
        if node.tally.running.startswith(second) and estimates and not node_pids:
            node_pids.extend(nodes_on(domain))
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(GraphEstimator, '_start_process', start)
    monkeypatch.setattr(EvaluationNode, '_poll', stop)
    parameters = bags_parameter(bags), 'models:=ch_gauss', 'profile:=paper_released'
    words = [*parameters, f'out:={tmp_path / "out"}', 'rate_factor:=1.0']
    status = evaluation_node.main(['--ros-args', *(w for word in words for w in ('-p', word))])
    err = capsys.readouterr().err
    assert status == 130, err
    assert len(node_pids) == 2
    assert 'Traceback' not in err
    record = json.loads((tmp_path / 'out/study.json').read_text())
    assert {run['recording'] for run in record['runs']} == {'line_1'}
    assert [failure['recording'] for failure in record['failures']] == [second]
    until(lambda: not processes_on(domain), 'the end of what it started')


def test_nothing_is_written_if_no_recording_is_complete(
    graph: Graph, bags: list[Path], tmp_path: Path
) -> None:
    """The judges of the first pass are being started."""
    domain = os.environ['ROS_DOMAIN_ID']
    options = ('models:=ch_gauss', 'profile:=paper_released', f'out:={tmp_path / "out"}')
    with evaluation(bags_parameter(bags), *options) as running:
        until(lambda: len(nodes_on(domain)) >= 2, 'a judge')
        running.process.send_signal(signal.SIGTERM)
        status, _, err = running.end()
    assert status == 143, err
    assert 'Traceback' not in err
    assert not list(tmp_path.iterdir())
    until(lambda: not processes_on(domain), 'the end of what it started')


def test_a_recording_whose_judge_dies_is_left_out(
    graph: Graph, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next waits until DDS takes it for dead; here that is after 5 s and not 20."""
    profile = Path(os.environ['FASTRTPS_DEFAULT_PROFILES_FILE']).read_text()
    (tmp_path / 'dds.xml').write_text(profile.replace('<sec>20<', '<sec>5<'))
    monkeypatch.setenv('FASTRTPS_DEFAULT_PROFILES_FILE', str(tmp_path / 'dds.xml'))
    estimates = graph.received['sim/odometry/filtered']
    graph.listen('sim/odometry/filtered', Odometry)
    as_process, poll, killed = GraphEstimator._start_process, EvaluationNode._poll, []

    def start(side: GraphEstimator, command: Sequence[str], *folders: Path) -> None:
        """Start as a process the judge that is to die."""
        is_victim = 'in /sim' in side.name and not killed
        (as_process if is_victim else start_judge_node_here)(side, command, *folders)

    def kill(node: EvaluationNode) -> None:
        poll(node)
        graph.executor.spin_once(timeout_sec=0.0)
        if estimates and not killed:
            killed.extend(nodes_on(os.environ['ROS_DOMAIN_ID']))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(GraphEstimator, '_start_process', start)
    monkeypatch.setattr(EvaluationNode, '_poll', kill)
    options = ('models:=ch_gauss', 'profile:=paper_released', f'out:={tmp_path / "out"}')
    with node_of(graph, bags_parameter(bags[::-1]), *options) as node:
        node.evaluate()
        assert node.write() == 1
    record = json.loads((tmp_path / 'out/study.json').read_text())
    assert {run['recording'] for run in record['runs']} == {'line_1'}
    assert [failure['recording'] for failure in record['failures']] == [bags[1].name]
