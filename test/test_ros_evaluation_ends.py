# SPDX-License-Identifier: Apache-2.0
"""How evaluation_node ends: refused, interrupted, with failures; it leaves nothing running."""

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

from sim2real_eval.judge.external.connections import Side
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
    ('parameter', 'complaint'),
    [
        ('models:=ch_gaus', "evaluation_node: models: gps model: 'ch_gaus' is unknown"),
        ('models:=","', "evaluation_node: models: ',' has an empty entry"),
        ('imu:=chrno', "evaluation_node: imu: imu model: 'chrno' is unknown"),
        ('imu:=none.yaml', 'evaluation_node: imu: none.yaml: cannot be read'),
        ('models:=3', 'models: 3 is not allowed; must be a text'),
        ('judge:=oracle', "judge: 'oracle' is not allowed; must be one of judge_node, robot_loc"),
        ('profile:=cleaner', "profile: judge configuration: 'cleaner' is unknown (did you mean"),
        ('params_file:=none.yaml', 'params_file: none.yaml: cannot be read'),
        ('navsat_params_file:=none.yaml', 'navsat_params_file: none.yaml: cannot be read'),
        ('case_file:=none.yaml', 'case_file: none.yaml: cannot be read'),
        ('repetitions:=0', 'repetitions: 0 is not allowed; must be an integer >= 1'),
        ('repetition:=2', 'repetition: unknown parameter (did you mean repetitions?)'),
        ('rate_factor:=-1.0', 'rate_factor: -1.0 is not allowed'),
        ('metric.rate:=0.0', 'metric.rate: 0.0 is not allowed; must be a number > 0'),
        ('metric.drop_zeros:=true', 'metric.drop_zeros: unknown parameter'),
        ('metric.warm_up:=1.0', 'metric.warm_up: unknown parameter (did you mean metric.warmup?)'),
        ('component:=up', "component: 'up' is not allowed"),
        ('topics:=[odom]', "topics: 'odom' is not allowed; must be ROLE=TOPIC"),
        ('topics:=[1, 2]', 'topics: [1, 2] is not allowed; must be a list of texts'),
        ('scenario:=all', "scenario: 'all' must not be all"),
        ('real:=[/no/such/bag]', 'real: /no/such/bag: no such file or folder'),
        ('real:=1.5', 'real: 1.5 is not allowed; must be a list of texts'),
        ('out:=""', 'out: is missing; must be the folder to write'),
    ],
)
def test_a_malformed_parameter_is_one_line(
    bags: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    parameter: str,
    complaint: str,
) -> None:
    good = {'real': bags_parameter(bags), 'out': f'out:={tmp_path / "out"}'}
    good[parameter.partition(':=')[0]] = parameter
    line = refused(capsys, *good.values())
    assert line.startswith('evaluation_node: error: ')
    assert complaint in line
    assert not (tmp_path / 'out').exists()


def test_a_result_that_is_there_is_not_replaced(
    bags: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'mine').write_text('precious')
    parameters = (bags_parameter(bags), f'out:={tmp_path}')
    exists = f'out: {tmp_path}: exists; must be another folder, unless overwrite is true'
    assert exists in refused(capsys, *parameters)
    assert f'out: {tmp_path}: has no study.json' in refused(capsys, *parameters, 'overwrite:=true')
    assert (tmp_path / 'mine').read_text() == 'precious'
    under = f'out:={tmp_path / "mine/out"}'
    assert 'out: ' in (line := refused(capsys, parameters[0], under))
    assert 'cannot be made' in line
    assert 'real: is missing' in refused(capsys, f'out:={tmp_path / "out"}')


def test_two_recordings_of_one_name_are_refused_before_anything_starts(
    bags: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By path, or by what one says in its recording.yaml; one that is broken names itself."""
    other = tmp_path / 'other'
    other.mkdir()
    out = f'out:={tmp_path / "out"}'
    (other / 'recording.yaml').write_text('name: line_1')
    line = refused(capsys, bags_parameter([bags[0], other]), out)
    assert f'real: line_1: is the name of {bags[0]} and of {other}; must be' in line
    assert 'is given twice' in refused(capsys, bags_parameter([bags[0], bags[0]]), out)
    (other / 'recording.yaml').write_text('nam: line_1')
    assert "models: gps model: 'nothing'" in refused(
        capsys, bags_parameter([bags[0], other]), out, 'models:=nothing'
    )


def test_what_is_complete_is_written_when_it_is_stopped(
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
    as_process, poll, node_pids = Side._start_process, EvaluationNode._poll, list[int]()

    def start(side: Side, command: Sequence[str], *folders: Path) -> None:
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

    monkeypatch.setattr(Side, '_start_process', start)
    monkeypatch.setattr(EvaluationNode, '_poll', stop)
    parameters = bags_parameter(bags), 'models:=ch_gauss', 'profile:=paper_released'
    words = [*parameters, f'out:={tmp_path / "out"}', 'rate_factor:=1.0']
    status = evaluation_node.main(['--ros-args', *(w for word in words for w in ('-p', word))])
    out, err = capsys.readouterr()
    assert status == 130, err
    assert len(node_pids) == 2
    assert 'before the end; complete recordings are written' in err
    assert 'Traceback' not in err
    assert 'Report: ' in out
    record = json.loads((tmp_path / 'out/study.json').read_text())
    assert {run['recording'] for run in record['runs']} == {'line_1'}
    (failure,) = record['failures']
    assert failure['recording'] == second
    assert failure['reason'] == 'stopped after 0 of 1 runs'
    until(lambda: not processes_on(domain), 'the end of what it started')


def test_nothing_is_written_when_nothing_is_complete(
    graph: Graph, bags: list[Path], tmp_path: Path
) -> None:
    """The judges of the first pass are being started."""
    domain = os.environ['ROS_DOMAIN_ID']
    with evaluation(
        bags_parameter(bags),
        'models:=ch_gauss',
        'profile:=paper_released',
        f'out:={tmp_path / "out"}',
    ) as running:
        until(lambda: len(nodes_on(domain)) >= 2, 'a judge')
        running.process.send_signal(signal.SIGTERM)
        status, _, err = running.end()
    assert status == 143, err
    assert 'evaluation_node: error: terminated; nothing was written' in err
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
    as_process, poll, killed = Side._start_process, EvaluationNode._poll, []

    def start(side: Side, command: Sequence[str], *folders: Path) -> None:
        """Start as a process the judge that is to die."""
        (as_process if 'in /sim' in side.name and not killed else start_judge_node_here)(
            side, command, *folders
        )

    def kill(node: EvaluationNode) -> None:
        poll(node)
        graph.executor.spin_once(timeout_sec=0.0)
        if estimates and not killed:
            killed.extend(nodes_on(os.environ['ROS_DOMAIN_ID']))
            (judge,) = killed
            os.kill(judge, signal.SIGKILL)

    monkeypatch.setattr(Side, '_start_process', start)
    monkeypatch.setattr(EvaluationNode, '_poll', kill)
    with node_of(
        graph,
        bags_parameter(bags[::-1]),
        'models:=ch_gauss',
        'profile:=paper_released',
        f'out:={tmp_path / "out"}',
    ) as node:
        node.evaluate()
        assert node.write() == 1
    record = json.loads((tmp_path / 'out/study.json').read_text())
    assert {run['recording'] for run in record['runs']} == {'line_1'}
    (failure,) = record['failures']
    assert failure['recording'] == bags[1].name
    assert 'judge_node in /sim ended with signal 9' in failure['reason']
