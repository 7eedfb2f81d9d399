# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""evaluation_node and judges on a graph where other processes publish the same topics."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from nav_msgs.msg import Odometry
from ros_evaluation_examples import (
    PATIENCE_S,
    Evaluation,
    bags_parameter,
    evaluation,
    onlooker,
    short_bags,
)
from ros_examples import Graph

from sim2real_eval.cli.main import main

pytestmark = pytest.mark.usefixtures('blank_pictures')

_ESTIMATES = '/sim/odometry/filtered'
_STRANGER = """
import sys, time
import rclpy
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu

topic, count = sys.argv[1], int(sys.argv[2])
rclpy.init(args=[])
node = Node('stranger', namespace='/robot')
kind = Imu if 'imu' in topic else Odometry
publisher = node.create_publisher(kind, topic, 10)
while not publisher.get_subscription_count():
    rclpy.spin_once(node, timeout_sec=0.02)
for _ in range(count):
    publisher.publish(kind())
    time.sleep(0.01)
# DDS tells the name of a node later than its publishers.
end = time.monotonic() + 2.0
while count == 0 or time.monotonic() < end:
    rclpy.spin_once(node, timeout_sec=0.1)
node.destroy_node()
rclpy.shutdown()
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with onlooker() as graph:
        yield graph


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return short_bags(tmp_path_factory.mktemp('bags'), line=2.0, circle=4.0)


@pytest.fixture(scope='module')
def batch(tmp_path_factory: pytest.TempPathFactory, bags: list[Path]) -> Path:
    """Return the result of the same comparison on the command line."""
    out = tmp_path_factory.mktemp('batch') / 'out'
    words = ['--models', 'ch_gauss', '--judge-config', 'paper_released', '--out', str(out)]
    assert main(['vepd', *words, *map(str, bags)]) == 0
    return out


def wait_for_estimate(graph: Graph, running: Evaluation) -> None:
    """Wait until the first pass has begun, which may have to compile."""
    while not graph.received[_ESTIMATES] and running.process.poll() is None:
        graph.executor.spin_once(timeout_sec=0.02)


@contextlib.contextmanager
def stranger(topic: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that publishes some messages and ends; 0: a publisher that stays."""
    process = subprocess.Popen(
        [sys.executable, '-c', _STRANGER, topic, str(count)], stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def scores(out: Path) -> dict[str, float]:
    record = json.loads((out / 'study.json').read_text())
    return {f'{run["model"]}/{run["recording"]}': run['values']['rmse'] for run in record['runs']}


def complaints(err: str, word: str) -> list[str]:
    assert 'Traceback' not in err
    return [line for line in err.splitlines() if word in line]


@pytest.mark.parametrize(
    'topic',
    [
        '/sim/sensors/imu/data',
        '/ground_truth/odometry',
        '/real/imu/data',
        '/sim/odometry/filtered',
    ],
)
def test_a_stranger_in_a_pass_is_named_and_the_recording_repeated(
    graph: Graph, bags: list[Path], batch: Path, tmp_path: Path, topic: str
) -> None:
    """The stranger publishes three messages in the middle of the first pass and ends."""
    graph.listen(_ESTIMATES, Odometry)
    out = tmp_path / 'out'
    options = ('models:=ch_gauss', 'profile:=paper_released', 'rate_factor:=0.5')
    with evaluation(bags_parameter(bags[::-1]), *options, f'out:={out}') as running:
        wait_for_estimate(graph, running)
        with stranger(topic, 3):
            status, _, err = running.end()
    (line,) = complaints(err, 'is repeated')
    assert f'{topic}: ' in line
    assert '/robot/stranger' in line
    assert status == 0, err
    assert scores(out) == scores(batch)


def test_two_evaluations_in_one_domain_do_not_mix(
    graph: Graph, bags: list[Path], batch: Path, tmp_path: Path
) -> None:
    """Each recording has the scores of a batch run, or is left out and names the other one.

    Which evaluation gives way depends on which of them discovers the other one first.
    """
    graph.listen(_ESTIMATES, Odometry)
    options = ('models:=ch_gauss', 'profile:=paper_released')
    outs = tmp_path / 'first', tmp_path / 'second'
    slow = (*options, 'rate_factor:=0.1', f'out:={outs[0]}')
    with evaluation(bags_parameter(bags[::-1]), *slow) as first:
        wait_for_estimate(graph, first)
        with evaluation(bags_parameter(bags), *options, f'out:={outs[1]}') as second:
            second_end = second.end()
        assert first.process.poll() is None
        ends = first.end(), second_end
    expected = scores(batch)
    complete = 0
    for out, (status, _, err) in zip(outs, ends, strict=True):
        left_out = complaints(err, 'left out')
        assert all('/ground_truth/odometry: another ' in line for line in left_out)
        assert status == (2 if len(left_out) == len(bags) else 1 if left_out else 0), err
        found = scores(out) if status != 2 else {}
        assert found.items() <= expected.items()
        assert len(found) == (len(bags) - len(left_out)) * len(expected) // len(bags)
        complete += not left_out
    assert complete
    assert any('/ground_truth/odometry: another ' in err for _, _, err in ends)
