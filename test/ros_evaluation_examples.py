# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Bags recorded from a live graph, and evaluation_node as a process, for its tests."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import json

import numpy as np
from cli_examples import run_of
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_examples import TIMEOUT, Graph, graph_of_its_own
from sensor_msgs.msg import Imu, NavSatFix
from std_msgs.msg import String
from std_srvs.srv import Trigger

from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.ros.evaluation.run import Stop
from sim2real_eval.ros.evaluation_node import EvaluationNode
from sim2real_eval.study.folder import hold_study
from sim_sensors.core.measurements import MessageArray
from sim_sensors.core.shipped import config_path

PATIENCE_S = 180.0
_UNSTEADY = 'delivery: {jitter: 0.01, drop_out: 0.05, drop_out_length: 0.3}\n'
_TOPICS = {
    'ground_truth/odometry': (Odometry, 'nav_msgs/msg/Odometry'),
    'imu/data': (Imu, 'sensor_msgs/msg/Imu'),
    'gps/fix': (NavSatFix, 'sensor_msgs/msg/NavSatFix'),
    'odometry/filtered': (Odometry, 'nav_msgs/msg/Odometry'),
}


@contextlib.contextmanager
def onlooker() -> Iterator[Graph]:
    """Provide a graph without publishers of the clock and of the truth."""
    with graph_of_its_own() as graph:
        graph.node.destroy_publisher(graph.clock)
        graph.node.destroy_publisher(graph.odometry)
        yield graph


class Recorder:
    """Listens to everything that a graph of sensors and a judge publishes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.rows: dict[str, list[bytes]] = {topic: [] for topic in _TOPICS}
        self.subscriptions = {
            topic: graph.node.create_subscription(
                kind, topic, self.rows[topic].append, QoSProfile(depth=2000), raw=True
            )
            for topic, (kind, _) in _TOPICS.items()
        }

    def close(self) -> None:
        for subscription in self.subscriptions.values():
            self._graph.node.destroy_subscription(subscription)

    def take(self) -> dict[str, MessageArray]:
        """Return the messages since the last call; each message arrives at its stamp."""
        arrays = {}
        for topic, rows in self.rows.items():
            kind = MESSAGE_TYPES[_TOPICS[topic][1]]
            array = decode(kind, rows, np.zeros(len(rows), dtype=np.int64), topic).array
            arrays[topic] = dataclasses.replace(array, arrival_ns=array.stamp_ns)
            rows.clear()
        return arrays


def start_judge(graph: Graph) -> subprocess.Popen[str]:
    """Start judge_node with the paper's parameters."""
    words = [
        '--params-file', str(config_path('judge', 'paper_released.yaml')),
        '-p', f'navsat_params_file:={config_path("judge", "paper_released_navsat.yaml")}',
        '-p', 'use_sim_time:=true', '-p', 'assume_identity_frames:=true',
    ]  # fmt: skip
    command = [sys.executable, '-m', 'sim2real_eval.ros.judge_node', '--ros-args', *words]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    graph.processes.append(process)
    return process


def record(
    graph: Graph, recorder: Recorder, motion: str, *parameters: str
) -> dict[str, MessageArray]:
    """Let trajectory_node drive, and return what it, the sensors and the judge published."""
    nodes = ('imu_node', 'gps_node', 'world')
    readers = ' '.join(f'ground_truth/odometry:{name}' for name in nodes)
    (moving,) = graph.start(
        'trajectory_node', f'motion:={motion}', 'clock:=true', f'awaited:={readers}', *parameters
    )
    wait(graph, lambda: moving.finished, f'the end of {motion}')
    graph.end(moving)
    for node, topic in (('imu_node', 'imu/data'), ('gps_node', 'gps/fix')):
        answer = graph.call(Trigger, f'{node}/finish', Trigger.Request())
        assert answer.success, answer.message
        published = json.loads(answer.message)['published']
        graph.wait(lambda t=topic, n=published: len(recorder.rows[t]) == n, f'all of {topic}')
    arrays = recorder.take()
    for node in ('imu_node', 'gps_node', 'ekf_filter_node'):
        assert graph.call(Trigger, f'{node}/reset', Trigger.Request()).success
    return arrays


def short_bags(folder: Path, **seconds: float) -> list[Path]:
    """Write the first seconds of simulated drives as bags: `line=2.0` is a drive along a line.

    Their GPS is at 5 Hz, half the rate of the models.
    """
    bags = []
    for motion, duration in seconds.items():
        whole = run_of(f'drive_{motion}', 1)
        end = whole.start_ns + round(duration * 1e9)
        parts = {
            topic: array.take(array.stamp_ns <= end) for topic, array in whole.messages.items()
        }
        parts[whole.roles['gps']] = parts[whole.roles['gps']].take(slice(None, None, 2))
        write_recording(dataclasses.replace(whole, messages=parts), folder / whole.name)
        bags.append(folder / whole.name)
    return bags


@dataclasses.dataclass(frozen=True)
class Everything:
    """A recording in which everything is somewhere else than usual, and files that go with it."""

    bag: Path
    gps: Path
    imu: Path
    params: Path
    navsat: Path


def everything(folder: Path, arrays: dict[str, MessageArray]) -> Everything:
    """Make it from what was recorded."""
    end = arrays['ground_truth/odometry'].stamp_ns[0] + 1_200_000_000
    truth, inertial, fixes = (
        arrays[topic].take(arrays[topic].stamp_ns <= end)
        for topic in ('ground_truth/odometry', 'imu/data', 'gps/fix')
    )
    wheels = truth.take(slice(3, None, 7))
    wheels = dataclasses.replace(
        wheels,
        frame='odom',
        arrival_ns=wheels.stamp_ns + 17_000_001,
        twist_covariance=np.broadcast_to(np.eye(6) * 0.01, (len(wheels), 6, 6)),
    )
    recording = Recording(
        name='odd_7',
        scenario='half_sine',
        path='',
        messages={
            '/ins': dataclasses.replace(truth.take(slice(None, None, 5)), child_frame='ins'),
            '/imu/data': inertial.take(slice(21, None)),
            '/gps/fix': fixes.take(slice(1, None)),
            '/wheel/odom': wheels,
        },
        roles={'truth': '/ins', 'imu': '/imu/data', 'gps': '/gps/fix'},
        transforms=(
            StaticTransform('base_link', 'ins', (0.1, 0.0, 0.4)),
            StaticTransform('base_link', 'imu_link', (0.2, -0.1, 0.3), (0.0, 0.0, 0.6, 0.8)),
            StaticTransform('base_link', 'gps_link', (-0.3, 0.1, 1.2)),
        ),
    )
    write_recording(recording, folder / 'odd_7')
    names = ('odd_7', 'receiver.yaml', 'inertial.yaml', 'judge.yaml', 'navsat.yaml')
    everything_node = Everything(*(folder / name for name in names))
    navsat = config_path('judge', 'clean_navsat.yaml').read_text()
    everything_node.navsat.write_text(re.sub(r'frequency: [\d.]+', 'frequency: 20.0', navsat))
    receiver = config_path('gps', 'ch_rw.yaml').read_text().replace('rate: 10.0', 'rate: 7.3')
    everything_node.gps.write_text(f'{receiver}latency: 0.13\n{_UNSTEADY}')
    inertial_text = config_path('imu', 'chrono_ahrs.yaml').read_text()
    everything_node.imu.write_text(f'{inertial_text}latency: 0.0213\n{_UNSTEADY}')
    listens = [False] * 15
    listens[6] = True
    everything_node.params.write_text(
        config_path('judge', 'clean.yaml').read_text()
        + f'    odom1: wheel/odom\n    odom1_config: {str(listens).lower()}\n'
    )
    return everything_node


class Evaluation:
    """evaluation_node as a process."""

    def __init__(self, *parameters: str) -> None:
        words = [word for parameter in parameters for word in ('-p', parameter)]
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'sim2real_eval.ros.evaluation_node', '--ros-args', *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Not what readline, once imported, hands on behind Python's back: COLUMNS=80.
            env=dict(os.environ),
        )

    def end(self, timeout_s: float = PATIENCE_S) -> tuple[int, str, str]:
        """Wait for its end; return status, output and complaints."""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=TIMEOUT)


@contextlib.contextmanager
def node_of(graph: Graph, *parameters: str) -> Iterator[EvaluationNode]:
    """Give evaluation_node in this process, on the graph."""
    words = [word for parameter in parameters for word in ('-p', parameter)]
    node = EvaluationNode(Stop(), context=graph.context, cli_args=['--ros-args', *words])
    with hold_study(node.folder, node.study.plan):
        yield node
    node.destroy_node()
    ours = {'evaluation_node', 'replay_node'}
    graph.wait(lambda: not ours & set(graph.node.get_node_names()), 'the end of both nodes')


@contextlib.contextmanager
def evaluation(*parameters: str) -> Iterator[Evaluation]:
    running = Evaluation(*parameters)
    try:
        yield running
    finally:
        running.kill()


def wait(graph: Graph, condition: Callable[[], Any], what: str) -> None:
    """Spin for as long as an evaluation may take."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f'waited {PATIENCE_S:g} s for {what}'
        graph.executor.spin_once(timeout_sec=0.02)


def wait_for_values(
    graph: Graph, reached: Callable[[dict[str, str]], bool], timeout_s: float = PATIENCE_S
) -> dict[str, str]:
    """Wait for diagnostics of the evaluation, and return their values."""
    end = time.monotonic() + timeout_s
    graph.received['/diagnostics'].clear()
    while True:
        for status in graph.statuses():
            values = {pair.key: pair.value for pair in status.values}
            if status.name.endswith(': evaluation') and reached(values):
                return values
        graph.received['/diagnostics'].clear()
        assert time.monotonic() < end, f'waited {timeout_s:g} s for the evaluation'
        graph.executor.spin_once(timeout_sec=0.02)


def bags_parameter(bags: list[Path]) -> str:
    return f'real:=[{", ".join(str(bag) for bag in bags)}]'


def latched(graph: Graph, topic: str, received: list[dict[str, Any]]) -> None:
    """Subscribe to a topic whose last message is kept for whoever comes later."""
    qos = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    graph.node.create_subscription(
        String, topic, lambda message: received.append(json.loads(message.data)), qos
    )


def until(condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f'waited {timeout_s:g} s for {what}'
        time.sleep(0.05)


def processes_on(domain: str) -> dict[int, str]:
    """Numbers and commands of the processes that were started on a ROS domain, but this one."""
    arrays = {}
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                environment = (entry / 'environ').read_bytes().split(b'\0')
                if f'ROS_DOMAIN_ID={domain}'.encode() in environment:
                    command = (entry / 'cmdline').read_bytes().replace(b'\0', b' ')
                    if command:
                        arrays[int(entry.name)] = command.decode()
    return arrays


def nodes_on(domain: str) -> list[int]:
    """Return the process numbers of nodes; helpers that end with their parent are not counted."""
    commands = processes_on(domain)
    return [number for number, command in commands.items() if 'keeper.py' not in command]
