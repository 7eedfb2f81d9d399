# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The whole graph: truth, sensors and a judge recorded into bags, and evaluation_node on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from cli_examples import call, contents
from recording_examples import arrays_equal
from ros_evaluation_examples import (
    Recorder,
    bags_parameter,
    everything,
    latched,
    node_of,
    onlooker,
    record,
    short_bags,
    start_judge,
    wait_for_values,
)
from ros_examples import Graph
from ros_judge_examples import start_judge_node_here

from sim2real_eval.judge.external.connections import GraphEstimator
from sim2real_eval.ros.evaluation_node import EvaluationNode
from sim_sensors.core.measurements import MessageArray, OdometryArray
from sim_sensors.core.seeding import run_label
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import START_NS
from sim_sensors.motion.odometry import OdometryMotion

pytestmark = pytest.mark.usefixtures('blank_pictures')
SECONDS = 3.0
MOTIONS = ('drive_line', 'drive_half_sine')
# On a machine as busy as this one may be, a queue has to hold all of it.
LOSSLESS = (
    'qos_overrides./ground_truth/odometry.publisher.depth:=1000',
    'qos_overrides./ground_truth/odometry.subscription.depth:=1000',
    'qos_overrides./ground_truth/odometry.subscription.reliability:=reliable',
    'qos_overrides./imu/data.publisher.depth:=1000',
    'qos_overrides./gps/fix.publisher.depth:=100',
)
_LATER_NS = 100_000_000_000

Recorded = dict[str, dict[str, MessageArray]]


@pytest.fixture(scope='module')
def graph() -> Iterator[Graph]:
    with onlooker() as graph:
        yield graph


@pytest.fixture(autouse=True)
def judges_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations with judges as processes are in test_ros_evaluation_ends."""
    monkeypatch.setattr(GraphEstimator, '_start_process', start_judge_node_here)


@pytest.fixture(scope='module')
def recorded(graph: Graph) -> Recorded:
    """Two motions on the same clock at twice real time; slower if the machine is busy."""
    recorder = Recorder(graph)
    nodes = [graph.launch('sensors_node', 'use_sim_time:=true', 'seed:=3', *LOSSLESS)]
    nodes.append(start_judge(graph))
    readers = dict(recorder.subscriptions)
    readers.pop('ground_truth/odometry', None)
    graph.wait(lambda: all(r.get_publisher_count() for r in readers.values()), 'the nodes')
    arrays: Recorded = {}
    start_ns = START_NS
    for motion, factor in itertools.product(MOTIONS, (2.0, 0.5, 0.125)):
        if motion in arrays and len(late_estimates(arrays[motion])) > 5:
            continue
        words = f'duration:={SECONDS}', f'factor:={factor}', f'start_ns:={start_ns}'
        arrays[motion] = record(graph, recorder, motion, *words, *LOSSLESS)
        start_ns += _LATER_NS
    for node in nodes:
        graph.stop(node)
    recorder.close()
    return arrays


def late_estimates(arrays: dict[str, MessageArray]) -> OdometryArray:
    """Estimates of the judge after the start of the motion."""
    estimate, truth = arrays['odometry/filtered'], arrays['ground_truth/odometry']
    return estimate.take(estimate.stamp_ns > truth.stamp_ns[0] + 2_000_000_000)


def test_measurements_on_the_graph_equal_the_batch_run_bit_for_bit(recorded: Recorded) -> None:
    """Every stamp of the motions, and every bit, to the last interval."""
    for motion, arrays in recorded.items():
        truth = arrays['ground_truth/odometry']
        start = int(truth.stamp_ns[0])
        count = round(SECONDS * 100)
        assert truth.stamp_ns.tolist() == [start + k * 10_000_000 for k in range(count + 1)]
        path = OdometryMotion(truth, origin_ns=start, velocity='twist')
        labels = {'seed': 3, 'run': run_label('recording', 1, 'run_1'), 'origin_ns': start}
        inertial = imu.simulate(load_imu('chrono'), path, **labels)
        fixes = gps.simulate(load_gps('ch_gauss'), path, **labels)
        assert len(inertial) == count + 1
        assert len(fixes) == count / 10 + 1
        assert arrays_equal(arrays['imu/data'], inertial), motion
        assert arrays_equal(arrays['gps/fix'], fixes), motion


def test_the_judge_on_the_graph_follows_the_motion(recorded: Recorded) -> None:
    """On a busy machine it may miss ticks, but not the motion."""
    for motion, arrays in recorded.items():
        estimate, truth = arrays['odometry/filtered'], arrays['ground_truth/odometry']
        assert np.all(np.diff(estimate.stamp_ns) > 0)
        late = late_estimates(arrays)
        assert len(late) > 5, motion
        speed = np.hypot(*late.linear_velocity[:, :2].T)
        true = np.hypot(*truth.linear_velocity[:, :2].T)
        error = speed - np.interp(late.stamp_ns, truth.stamp_ns, true)
        assert np.sqrt(np.mean(error**2)) < 0.8, motion


def test_the_result_folder_of_the_node_equals_that_of_vepd_byte_for_byte(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Two repetitions, with a broken recording; a late subscriber receives the progress."""
    broken = tmp_path / 'broken_1'
    broken.mkdir()
    inputs = [*short_bags(tmp_path, line=1.0), broken]
    batch = call(
        capsys, 'vepd', *inputs, '--models', 'ch_gauss', '--repetitions', 2,
        '--judge-config', 'paper_released', '--match-rates', '--jobs', 1,
        '--out', tmp_path / 'batch',
    )  # fmt: skip
    assert batch.status == 1
    late: list[dict[str, Any]] = []
    tell = EvaluationNode.publish_progress

    def look(node: EvaluationNode) -> None:
        """Subscribe after the first run."""
        tell(node)
        if node.tally.done == 1 and not late:
            first = wait_for_values(graph, lambda values: int(values['runs done']) == 1)
            assert float(first['real-time factor']) > 0.0
            assert float(first['VEPD ch_gauss']) > 0.0
            latched(graph, 'evaluation_node/vepd', late)
            graph.wait(lambda: late, 'what a late subscriber hears')

    monkeypatch.setattr(EvaluationNode, 'publish_progress', look)
    with node_of(
        graph, bags_parameter(inputs), 'models:=ch_gauss', 'repetitions:=2', 'match_rates:=true',
        'profile:=paper_released', f'out:={tmp_path / "live"}',
    ) as node:  # fmt: skip
        node.evaluate()
        capsys.readouterr()
        assert node.write() == 1
        out, err = capsys.readouterr()
        graph.wait(lambda: late[-1]['finished'], 'its end')
    assert (late[0]['done'], late[0]['finished']) == (1, False)
    assert (late[-1]['done'], late[-1]['total']) == (2, 4)
    assert [failure['recording'] for failure in late[-1]['failures']] == [broken.name]
    live = contents(tmp_path / 'live')
    assert live == contents(tmp_path / 'batch')
    assert out.replace('live', 'batch') == batch.out
    assert str(broken) in err


def test_mounted_late_sensors_and_wheels_give_the_result_of_vepd(
    graph: Graph, recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wheel odometry, lever arms, latencies, odd rates, another truth frame, and real GPS."""
    inputs = everything(tmp_path, recorded['drive_half_sine'])
    batch = call(
        capsys, 'vepd', inputs.bag, '--models', f'{inputs.gps},real',
        '--imu', inputs.imu,
        '--judge-config', inputs.params, '--navsat-config', inputs.navsat, '--seed', 5,
        '--start-heading', '--warmup', 0.5, '--component', 'forward',
        '--topic', 'truth=/ins', '--scenario', 'odd', '--jobs', 1, '--out', tmp_path / 'batch',
    )  # fmt: skip
    assert batch.status == 0, batch.err
    with node_of(
        graph, f'real:={inputs.bag}', f'models:={inputs.gps},real', f'imu:={inputs.imu}',
        f'params_file:={inputs.params}', f'navsat_params_file:={inputs.navsat}', 'seed:=5',
        'start_heading:=true', 'metric.warmup:=0.5', 'component:=forward',
        'topics:=[truth=/ins]', 'scenario:=odd', f'out:={tmp_path / "live"}',
    ) as node:  # fmt: skip
        node.evaluate()
        assert node.write() == 0
    assert contents(tmp_path / 'live') == contents(tmp_path / 'batch')
