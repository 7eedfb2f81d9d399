# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of evaluation_node: differences of runs, failures, sensors on the graph, topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from recording_examples import arrays_equal, drive
from ros_evaluation_examples import bags_parameter, node_of, onlooker, short_bags
from ros_examples import Graph, graph_of_its_own

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.graph import free_domain, private_context
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import NO_NUMBERS, NO_TRUTH
from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import default_type
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.ros import evaluation_node
from sim2real_eval.ros.evaluation.bench import SensorBench
from sim2real_eval.ros.evaluation.run import Broadcast, Pace, first_difference
from sim2real_eval.ros.evaluation.study import LiveStudy
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim2real_eval.study.run_plan import PlannedRun, RunPlan
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray, Intrinsics
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.ros.messages import message_class

STAMPS = np.array([1, 2], dtype=np.int64)
RUN = JudgedRun(
    stamp_ns=STAMPS, tick_ns=STAMPS, position=np.full((2, 3), 2000.0),
    orientation=np.full((2, 4), 0.5), linear_velocity=np.ones((2, 3)),
    angular_velocity=np.ones((2, 3)), pose_covariance=np.full((2, 6, 6), 1e6),
    twist_covariance=np.full((2, 6, 6), 1e-9), gps_stamp_ns=STAMPS,
    gps_position=np.full((2, 3), np.nan), gps_covariance=np.ones((2, 6, 6)), parts=(),
    notes=(NO_TRUTH(),),
)  # fmt: skip


@pytest.fixture(scope='module')
def graph() -> Iterator[Graph]:
    with onlooker() as graph:
        yield graph


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return short_bags(tmp_path_factory.mktemp('bags'), line=2.0, circle=2.0)


@pytest.mark.parametrize(
    ('field', 'apart', 'exact', 'nearly'),
    [
        ('linear_velocity', 0.0, False, False),
        ('linear_velocity', 1e-12, True, False),
        ('angular_velocity', 2e-4, True, True),
        ('position', 1.5, True, False),
        ('position', 3.0, True, True),
        ('pose_covariance', 500.0, True, False),
        ('gps_stamp_ns', 1, True, True),
    ],
)
def test_differences_between_runs_are_detected_exactly_or_beyond_a_tolerance(
    field: str, apart: float, exact: bool, nearly: bool
) -> None:
    """Velocities may differ by 1e-4, other numbers by 1e-3 plus a thousandth of their size."""
    values = getattr(RUN, field).copy()
    values[-1] += apart
    second = dataclasses.replace(RUN, **{field: values})
    for pair in ((RUN, second), (second, RUN)):
        for is_exact, differs in ((True, exact), (False, nearly)):
            difference = first_difference(*pair, exact=is_exact)
            assert (difference or '').startswith(f'{field}: ') == differs


def test_different_findings_count_as_a_difference_only_in_exact_comparisons() -> None:
    second = dataclasses.replace(RUN, notes=(NO_NUMBERS(),))
    assert first_difference(RUN, second, exact=True)
    assert first_difference(RUN, second, exact=False) is None


class BatchPass:
    """A pass judged in batch; the real side of the second model is `apart` m/s off."""

    apart = 0.0
    unlucky = ''
    pace = Pace(1.0, 1.0)

    def __init__(self, setup: JudgeSetup, plan: RunPlan, run: PlannedRun, **_: Any) -> None:
        self._setup, self._plan, self._run = setup, plan, run
        if self._plan.maker.real.name == self.unlucky:
            raise OSError(28, 'No space left on device', '/tmp/log')

    def __enter__(self) -> BatchPass:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def play(self) -> None:
        pass

    def judged_runs(self) -> tuple[JudgedRun, JudgedRun]:
        plan = self._plan
        real, simulated = (
            JudgeSetup.judge(self._setup, plan.recording(run), start_ns=plan.maker.start_ns)
            for run in (plan.real, self._run)
        )
        if self._run.model != 'ch_gauss':
            off = real.linear_velocity + self.apart
            real = dataclasses.replace(real, linear_velocity=off)
        return real, simulated

    def recording(self) -> Recording:
        return self._plan.recording(self._run)


@pytest.mark.parametrize(
    ('judge', 'apart', 'differs'),
    [
        ('judge_node', 1e-9, True),
        ('robot_localization', 9e-5, False),
        ('robot_localization', 2e-4, True),
    ],
)
def test_a_different_estimate_of_the_real_sensors_is_reported(
    graph: Graph, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str,
    apart: float, differs: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(evaluation_node, 'Pass', BatchPass)
    monkeypatch.setattr(BatchPass, 'apart', apart)
    out = f'out:={tmp_path / "out"}'
    with node_of(graph, bags_parameter(bags[:1]), 'models:=ch_gauss,ch_rw', out) as node:
        # As if it were installed.
        study = node.study
        setup = dataclasses.replace(study.setup, kind=judge)
        judges = (dataclasses.replace(study.judge, setup=setup),)
        file = dataclasses.replace(study.plan.file, judges=judges)
        settings = dataclasses.replace(study.settings, judge=judge)
        plan = dataclasses.replace(study.plan, file=file)
        node.study = dataclasses.replace(study, settings=settings, plan=plan)
        node.evaluate()
        assert ['line_1' in note and 'ch_rw' in note for note in node.tally.notes] == [
            True
        ] * differs
        assert node.tally.failures == []


def test_a_full_disk_during_one_recording_does_not_affect_the_others(
    graph: Graph, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_node, 'Pass', BatchPass)
    monkeypatch.setattr(BatchPass, 'unlucky', 'line_1')
    out = tmp_path / 'out'
    with node_of(graph, bags_parameter(bags), 'models:=ch_gauss', f'out:={out}') as node:
        node.evaluate()
        (failure,) = node.tally.failures
        assert 'No space left on device' in failure.message
        assert node.write() == 1
    assert (out / 'series/clean/Sim/ch_gauss/circle_1.csv').exists()


def test_noise_free_sensors_are_refused_on_the_graph(graph: Graph, bags: list[Path]) -> None:
    """A batch run would measure them, so odometry alone would give other sensors."""
    real = read_recording(bags[0])
    maker = TwinMaker(real.with_messages('ideal_imu', real.imu), seed=0)
    truth = graph.node.create_publisher(Odometry, 'truth', QoSProfile(depth=10))

    def bench(twin: Twin) -> SensorBench:
        sensors = maker.sensors(twin)
        return SensorBench(graph.node, truth, maker, sensors, 'x', namespace='/sensors', poll=int)

    with pytest.raises(Sim2RealError, match='ideal_imu is not replayed on the graph'):
        bench(Twin('both', load_gps('ch_gauss'), load_imu('chrono')))
    bench(Twin('gps', load_gps('ch_gauss'), None)).close()
    graph.node.destroy_publisher(truth)


def test_a_second_publisher_of_the_truth_is_refused(
    graph: Graph, bags: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second simulator still runs or is started meanwhile."""
    maker = TwinMaker(read_recording(bags[0]), seed=0)
    sensors = maker.sensors(Twin('both', load_gps('ch_gauss'), load_imu('chrono')))
    truth = graph.node.create_publisher(Odometry, 'truth', QoSProfile(depth=10))
    simulator = Node('simulator', context=graph.context)

    def bench() -> SensorBench:
        place = {'namespace': '/sensors', 'poll': int}
        return SensorBench(graph.node, truth, maker, sensors, 'both', **place)

    opened = bench()
    foreign = simulator.create_publisher(Odometry, 'truth', 10)
    readers = [sensor.node for sensor in opened._sensors.values()]
    graph.wait(
        lambda: all(first._subscription.get_publisher_count() == 2 for first in readers), 'both'
    )
    foreign.publish(Odometry())
    with pytest.raises(Sim2RealError, match='/truth'):
        opened.measure(maker.end_ns + 10**9)
    opened.close()
    with pytest.raises(Sim2RealError, match='/truth: /simulator'):
        bench()
    simulator.destroy_node()
    graph.node.destroy_publisher(truth)


@pytest.mark.parametrize('form', ['real:={}/*', 'real:=["{}/li*", "{}/circle_1"]'])
def test_recordings_can_be_patterns(
    graph: Graph, bags: list[Path], tmp_path: Path, form: str
) -> None:
    """As of the launch file, whose words it passes on."""
    real = form.replace('{}', str(bags[0].parent))
    with node_of(graph, real, f'out:={tmp_path / "out"}') as node:
        assert {recording.name for recording in node.study.plan.recordings} == {
            bag.name for bag in bags
        }
        assert str(bags[0]) in node.study.plan.file.command


def test_a_dump_with_empty_lists_starts_the_node(
    graph: Graph, bags: list[Path], tmp_path: Path
) -> None:
    """As `ros2 param dump` writes it; an empty list where a value is needed is refused by name."""
    real, out = f'real:={bags[0]}', f'out:={tmp_path / "out"}'
    with node_of(graph, real, out, 'topics:=[]') as node:
        assert len(node.study.plan.recordings) == 1
    with pytest.raises(ParameterError) as error, node_of(graph, 'real:=[]', out):
        pass
    assert error.value.key == 'real'


def test_explicit_options_are_not_adapted_to_the_recordings(
    real_dir: Path, tmp_path: Path
) -> None:
    """Even a value that equals the default."""
    bag = str(real_dir / 'drive0708/segments/drive0708_seg01/bag')
    parameters = {'real': [bag], 'models': 'baseline', 'out': str(tmp_path / 'out')}
    difference = []
    for more in ({}, {'match_rates': False, 'metric.warmup': 0.0}):
        values = [Parameter(name, value=first) for name, first in {**parameters, **more}.items()]
        with free_domain() as domain, private_context(domain) as context:
            node = Node(
                'evaluation_node',
                context=context,
                parameter_overrides=values,
                automatically_declare_parameters_from_overrides=True,
            )
            options = LiveStudy.from_node(node).plan.file.options
            node.destroy_node()
        difference.append((options.match_rates, options.metric.warmup, options.metric.rate))
    assert difference == [(True, 5.0, 4.0), (False, 0.0, 4.0)]


def test_every_topic_of_a_recording_is_replayed() -> None:
    """A magnetometer and a camera, too, of which it knew no message class."""
    stamps = 1_000_000_000_000 + 40_000_000 * np.arange(3)
    rows = np.arange(12.0).reshape(6, 2)
    features = FeatureArray(
        stamps, stamps, 'eye', [0, 2, 2, 6], np.arange(6), rows, rows, np.arange(6), rows
    )
    recording = drive(30).with_messages('features', features)
    info = CameraInfoArray.from_intrinsics(Intrinsics(), stamps, stamps, 'eye')
    recording = recording.with_messages('camera_info', info)
    messages = {
        topic: recording.messages[recording.roles[topic]]
        for topic in ('imu', 'gps', 'truth', 'mag', 'features', 'camera_info')
    }
    with graph_of_its_own() as graph:
        topics = {role: f'/look/{recording.roles[role].strip("/")}' for role in messages}
        for role, topic in topics.items():
            graph.listen(topic, message_class(default_type(messages[role]).name))
        broadcast = Broadcast(graph.node, recording, '/look')
        publishers = broadcast._publishers
        count = len(topics)
        graph.wait(
            lambda: sum(p.get_subscription_count() for p in publishers) == count, 'listeners'
        )
        broadcast.until(recording.end_ns + 10**9)
        for role, topic in topics.items():
            graph.wait(lambda r=role, t=topic: len(graph.received[t]) == len(messages[r]), topic)
            array = messages[role]
            data = [serialize_message(message) for message in graph.received[topic]]
            kind = default_type(array)
            assert arrays_equal(decode(kind, data, array.arrival_ns, topic).array, array), role
        broadcast.close()
