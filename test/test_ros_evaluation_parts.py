# SPDX-License-Identifier: Apache-2.0
"""Parts of evaluation_node: whether two runs are alike, recordings that fail, sensors that go."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from ros_evaluation_examples import bags_parameter, node_of, onlooker, short_bags
from ros_examples import Graph

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.graph import free_domain, private_context
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import NO_NUMBERS, NO_TRUTH
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.ros import evaluation_node
from sim2real_eval.ros.evaluation.bench import SensorBench, TwinSensorNode
from sim2real_eval.ros.evaluation.run import Pace, Stopped, first_difference
from sim2real_eval.ros.evaluation.study import LiveStudy
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim2real_eval.study.run_plan import PlannedRun, RunPlan
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.imu.imu import load_imu

STAMPS = np.array([1, 2], dtype=np.int64)
RUN = JudgedRun(
    stamp_ns=STAMPS,
    tick_ns=STAMPS,
    position=np.full((2, 3), 2000.0),
    orientation=np.full((2, 4), 0.5),
    linear_velocity=np.ones((2, 3)),
    angular_velocity=np.ones((2, 3)),
    pose_covariance=np.full((2, 6, 6), 1e6),
    twist_covariance=np.full((2, 6, 6), 1e-9),
    gps_stamp_ns=STAMPS,
    gps_position=np.full((2, 3), np.nan),
    gps_covariance=np.ones((2, 6, 6)),
    parts=(),
    notes=(NO_TRUTH(),),
)


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
        ('linear_velocity', 0.0, None, None),
        ('linear_velocity', 1e-12, 'linear_velocity: up to 1e-12 apart', None),
        ('linear_velocity', 9e-5, 'linear_velocity: up to 9e-05 apart', None),
        ('angular_velocity', 2e-4, *['angular_velocity: up to 0.0002 apart'] * 2),
        ('position', 1.5, 'position: up to 1.5 apart', None),
        ('position', 3.0, *['position: up to 3 apart'] * 2),
        ('orientation', 0.01, *['orientation: up to 0.01 apart'] * 2),
        ('pose_covariance', 500.0, 'pose_covariance: up to 500 apart', None),
        ('twist_covariance', 1e-2, *['twist_covariance: up to 0.01 apart'] * 2),
        ('gps_stamp_ns', 1, *['gps_stamp_ns: up to 1 apart'] * 2),
    ],
)
def test_two_runs_are_alike(
    field: str, apart: float, exact: str | None, nearly: str | None
) -> None:
    """To the bit, or nearly: the wider, the larger a number is, but for velocities."""
    values = getattr(RUN, field).copy()
    values[-1] += apart
    second = dataclasses.replace(RUN, **{field: values})
    for first, two in ((RUN, second), (second, RUN)):
        difference = first_difference(first, two, exact=True)
        assert difference == (exact and pytest.approx(exact))
        assert first_difference(first, two, exact=False) == nearly


def test_notes_count_where_bits_do_and_rows_anyway() -> None:
    second = dataclasses.replace(RUN, notes=(NO_NUMBERS(),))
    assert first_difference(RUN, second, exact=True) == 'notes differ'
    assert first_difference(RUN, second, exact=False) is None
    shorter = dataclasses.replace(RUN, position=RUN.position[:1])
    for exact in (True, False):
        assert first_difference(RUN, shorter, exact=exact) == 'position: 2 and 1 rows'


class BatchPass:
    """In place of a pass on a graph: judged in batch.

    The real side of the second model is `apart` m/s off; the recording `unlucky` meets a full
    disk.
    """

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

    def judged(self) -> tuple[JudgedRun, JudgedRun]:
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
    ('judge', 'apart', 'differences'),
    [
        ('judge_node', 0.0, []),
        ('judge_node', 1e-9, ['linear_velocity: up to 1e-09 apart']),
        ('robot_localization', 9e-5, []),
        ('robot_localization', 2e-4, ['linear_velocity: up to 0.0002 apart']),
    ],
)
def test_a_real_side_that_is_judged_otherwise_is_told(
    graph: Graph,
    bags: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    judge: str,
    apart: float,
    differences: list[str],
) -> None:
    monkeypatch.setattr(evaluation_node, 'Pass', BatchPass)
    monkeypatch.setattr(BatchPass, 'apart', apart)
    out = f'out:={tmp_path / "out"}'
    with node_of(graph, bags_parameter(bags[:1]), 'models:=ch_gauss,ch_rw', out) as node:
        # As if it were installed.
        study = node.study
        setup = dataclasses.replace(study.setup, kind=judge)
        judges = (dataclasses.replace(study.judge, setup=setup),)
        file = dataclasses.replace(study.plan.file, judges=judges)
        node.study = dataclasses.replace(
            study,
            settings=dataclasses.replace(study.settings, judge=judge),
            plan=dataclasses.replace(study.plan, file=file),
        )
        node.evaluate()
        assert node.tally.notes == [
            f'line_1: the estimates of the real side differ with ch_rw: {what}'
            for what in differences
        ]
        assert node.tally.failures == []


def test_what_goes_wrong_with_files_of_one_recording_leaves_the_others(
    graph: Graph, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_node, 'Pass', BatchPass)
    monkeypatch.setattr(BatchPass, 'unlucky', 'line_1')
    out = tmp_path / 'out'
    with node_of(graph, bags_parameter(bags), 'models:=ch_gauss', f'out:={out}') as node:
        node.evaluate()
        (failure,) = node.tally.failures
        assert failure.told == 'line_1: /tmp/log: No space left on device'
        assert node.write() == 1
    assert (out / 'series/clean/Sim/ch_gauss/circle_1.csv').exists()


@pytest.mark.parametrize('failing', ['gps', 'wait'])
def test_sensors_that_cannot_all_be_started_are_taken_off_the_graph(
    graph: Graph, bags: list[Path], monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The second cannot be made, or somebody stops the wait for them to find each other."""

    def broken(self: GpsModel, *labels: object, **world: object) -> None:
        raise Sim2RealError('broken')

    looked = []

    def look() -> None:
        looked.append(True)
        raise Stopped(signal.SIGINT)

    if failing == 'gps':
        monkeypatch.setattr(GpsModel, 'start', broken)
    else:
        monkeypatch.setattr(TwinSensorNode, 'is_connected', False)
    maker = TwinMaker(read_recording(bags[0]), seed=0)
    sensors = maker.sensors(Twin('both', load_gps('ch_gauss'), load_imu('chrono')))
    truth = graph.node.create_publisher(Odometry, 'truth', QoSProfile(depth=10))
    before = len(list(graph.node.subscriptions))
    with pytest.raises((Sim2RealError, Stopped)) as raised:
        SensorBench(graph.node, truth, maker, sensors, 'both', namespace='/sensors', poll=look)
    assert bool(looked) == (failing == 'wait')
    assert len(list(graph.node.subscriptions)) == before
    graph.wait(
        lambda: not {'imu_node', 'gps_node'} & set(graph.node.get_node_names()), 'their end'
    )
    graph.node.destroy_publisher(truth)
    assert raised.value


def test_noise_free_sensors_which_are_not_played_are_refused(
    graph: Graph, bags: list[Path]
) -> None:
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


def test_truth_of_somebody_else_is_refused(
    graph: Graph, bags: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulator that still runs, or is started meanwhile: its odometry would be measured too.

    The middleware keeps some publishers of an earlier run for a while, without a name.
    """
    maker = TwinMaker(read_recording(bags[0]), seed=0)
    sensors = maker.sensors(Twin('both', load_gps('ch_gauss'), load_imu('chrono')))
    truth = graph.node.create_publisher(Odometry, 'truth', QoSProfile(depth=10))
    simulator = Node('simulator', context=graph.context)

    def bench() -> SensorBench:
        return SensorBench(
            graph.node, truth, maker, sensors, 'both', namespace='/sensors', poll=int
        )

    look = graph.node.get_publishers_info_by_topic

    def left_over(topic: str) -> list[Any]:
        (publisher,) = look(topic)
        return [
            publisher,
            SimpleNamespace(node_name='UNKNOWN', endpoint_gid=publisher.endpoint_gid),
        ]

    with monkeypatch.context() as patched:
        patched.setattr(graph.node, 'get_publishers_info_by_topic', left_over)
        opened = bench()
    foreign = simulator.create_publisher(Odometry, 'truth', 10)
    readers = [sensor.node for sensor in opened._sensors.values()]
    graph.wait(
        lambda: all(first._subscription.get_publisher_count() == 2 for first in readers), 'both'
    )
    foreign.publish(Odometry())
    with pytest.raises(Sim2RealError, match='another node published /truth meanwhile'):
        opened.measure(maker.end_ns + 10**9)
    opened.close()
    with pytest.raises(Sim2RealError, match='/truth: /simulator publishes it too; end that'):
        bench()
    simulator.destroy_node()
    graph.node.destroy_publisher(truth)


def test_what_the_node_is_given_does_not_follow_from_recordings(
    real_dir: Path, tmp_path: Path
) -> None:
    """Even a value that is the default one."""
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
