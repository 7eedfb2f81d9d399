# SPDX-License-Identifier: Apache-2.0
"""How evaluation_node ends: refused, interrupted, with failures; it leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from cli_examples import write_runs
from ros_evaluation_examples import bags_parameter, evaluation, processes_on, told, until
from ros_examples import Graph, graph_of_its_own

from sim2real_eval.ros import evaluation_node


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), ('drive_line', 1), ('drive_circle', 1))


def refused(capfd: pytest.CaptureFixture[str], *parameters: str) -> str:
    """Run the node in this process; return its one complaint."""
    words = [word for parameter in parameters for word in ('-p', parameter)]
    assert evaluation_node.main(['--ros-args', *words]) == 2
    captured = capfd.readouterr()
    assert captured.out == ''
    (line,) = captured.err.splitlines()
    return line


@pytest.mark.parametrize(
    ('parameter', 'complaint'),
    [
        ('models:=ch_gaus', "'ch_gaus'"),
        ('models:=3', 'models: 3 is not allowed; must be a text'),
        ('judge:=oracle', "judge: 'oracle' is not allowed; must be one of judge_node, robot_loc"),
        ('profile:=cleaner', "'cleaner' is unknown; must be one of clean, paper_released"),
        ('params_file:=none.yaml', 'none.yaml'),
        ('repetitions:=0', 'repetitions: 0 is not allowed; must be an integer >= 1'),
        ('repetition:=2', 'repetition: is not a parameter of this node'),
        ('rate_factor:=-1.0', 'rate_factor: -1.0 is not allowed'),
        ('metric.rate:=0.0', 'metric.rate: 0.0 is not allowed; must be a number > 0'),
        ('metric.drop_zeros:=true', 'metric.drop_zeros: is not a parameter'),
        ('component:=up', "component: 'up' is not allowed"),
        ('topics:=[odom]', "topics: 'odom' is not allowed; must be imu=, gps= or truth="),
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
    capfd: pytest.CaptureFixture[str],
    parameter: str,
    complaint: str,
) -> None:
    good = {'real': bags_parameter(bags), 'out': f'out:={tmp_path / "out"}'}
    good[parameter.partition(':=')[0]] = parameter
    line = refused(capfd, *good.values())
    assert line.startswith('evaluation_node: error: ')
    assert complaint in line
    assert not (tmp_path / 'out').exists()


def test_a_result_that_is_there_is_not_replaced(
    bags: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'mine').write_text('precious')
    given = (bags_parameter(bags), f'out:={tmp_path}')
    assert 'exists' in refused(capfd, *given)
    assert 'holds no vepd.json' in refused(capfd, *given, 'overwrite:=true')
    assert (tmp_path / 'mine').read_text() == 'precious'
    assert 'real: is missing' in refused(capfd, f'out:={tmp_path / "out"}')


def test_a_malformed_argument_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert evaluation_node.main(['--ros-args', '-p', 'nonsense']) == 2
    assert 'evaluation_node: error: ' in capfd.readouterr().err


@pytest.mark.parametrize('sign', [signal.SIGINT, signal.SIGTERM])
def test_what_is_complete_is_written_when_it_is_stopped(
    graph: Graph, bags: list[Path], tmp_path: Path, sign: signal.Signals
) -> None:
    """In the second recording, at real time so that there is a middle; the judges end with it."""
    domain = os.environ['ROS_DOMAIN_ID']
    with evaluation(
        bags_parameter(bags), 'models:=ch_gauss', f'out:={tmp_path / "out"}', 'rate_factor:=3.0'
    ) as running:
        told(graph, lambda values: values['running'].startswith('circle_1'))
        # Judges of both sides, beside the node itself.
        until(lambda: len(processes_on(domain)) >= 3, 'the judges')
        running.process.send_signal(sign)
        status, out, err = running.end()
    assert status == 128 + sign, err
    assert 'before the end; what is complete is written' in err
    assert 'Traceback' not in err
    assert 'Tables, series and plots' in out
    record = json.loads((tmp_path / 'out/vepd.json').read_text())
    assert {run['recording'] for run in record['runs']} == {'line_1'}
    (failure,) = record['failures']
    assert failure['recording'] == str(bags[1])
    assert failure['reason'] == 'stopped after 0 of 1 runs'
    until(lambda: not processes_on(domain), 'the end of what it started', 20.0)


def test_nothing_is_written_when_nothing_is_complete(
    graph: Graph, bags: list[Path], tmp_path: Path
) -> None:
    domain = os.environ['ROS_DOMAIN_ID']
    with evaluation(
        bags_parameter(bags), 'models:=ch_gauss', f'out:={tmp_path / "out"}', 'rate_factor:=1.0'
    ) as running:
        told(graph, lambda values: values['running'].startswith('line_1'))
        running.process.send_signal(signal.SIGINT)
        status, _, err = running.end()
    assert status == 130, err
    assert 'evaluation_node: error: interrupted; nothing was written' in err
    assert 'Traceback' not in err
    assert not list(tmp_path.iterdir())
    until(lambda: not processes_on(domain), 'the end of what it started', 20.0)
