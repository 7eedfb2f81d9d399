# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judge nodes in lockstep over real DDS give what the batch judge gives."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy', reason='no ROS')

from judge_examples import mask, read_rows
from live_examples import MOUNTED, batch_bits, curve, everything
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros_judge_examples import start_judge_node_here
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external import NodeJudgeSetup, connections
from sim2real_eval.judge.external.connections import GraphEstimator, Senders
from sim2real_eval.judge.external.expected import PendingMessage, RecordedFeed
from sim2real_eval.judge.external.graph import ReplayClock, free_domain, private_context
from sim2real_eval.judge.external.graph_estimators import FilterEstimator
from sim2real_eval.judge.external.process import executable, input_topics
from sim2real_eval.judge.external.publishers import OtherPublisherError, publishers_of
from sim2real_eval.judge.robot_localization.replay_options import Clock, Options
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import encode_transforms
from sim2real_eval.recording.reading import read_recording
from sim_sensors.core.measurements import MessageArray

try:
    executable('robot_localization')
    ABSENT = ''
except JudgeError as error:
    ABSENT = str(error)


TRACES = (
    'a_paper_circle_gauss', 'b_paper_airsim', 'c_clean_navsat', 'd_wheel_imu',
    'e_differential_pose', 'f_relative_pose', 'g_mounted_imu_lever', 'h_smooth_lagged',
    'i_predict_to_current_time', 'l_control',
)  # fmt: skip
World = tuple[Node, SingleThreadedExecutor]


def setup_of_everything(folder: Path, **more: object) -> JudgeSetup:
    """All inputs, navsat_transform, control; sensors are mounted anywhere."""
    everything(folder, **more)
    navsat = {'/**': {'ros__parameters': {'frequency': 20.0, 'use_odometry_yaw': False}}}
    (folder / 'navsat_params.yaml').write_text(yaml.safe_dump(navsat), encoding='utf-8')
    return JudgeSetup.load(folder / 'params.yaml', folder / 'navsat_params.yaml')


@pytest.fixture(autouse=True)
def judges_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run judge_node in this process; test_lockstep_process starts it as a process."""
    monkeypatch.setattr(GraphEstimator, '_start_process', start_judge_node_here)


@pytest.fixture
def world() -> Iterator[World]:
    with free_domain() as domain, private_context(domain) as context:
        node = Node('world', context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        yield node, executor
        executor.shutdown()
        node.destroy_node()


class UnknownEnd:
    """A feed whose end is unknown until it is reached."""

    def __init__(self, recorded: RecordedFeed) -> None:
        self._recorded = recorded
        self._until = 0

    def until(self, now_ns: int) -> Sequence[PendingMessage]:
        self._until = now_ns
        return self._recorded.until(now_ns)

    @property
    def last_ns(self) -> int | None:
        last = self._recorded.last_ns
        return last if self._until >= last else None


def assert_same(run: JudgedRun, expected: JudgedRun) -> None:
    assert batch_bits(run) == batch_bits(expected)
    assert run.parts == expected.parts
    assert run.notes == expected.notes


@pytest.mark.parametrize(
    ('options', 'clock'),
    [
        (Options(), Clock()),
        (
            Options(unscented=True, correct=frozenset({'gravity', 'unscented'})),
            Clock(step_ns=10_000_000, run_on_ns=100_000_000),
        ),
        (Options(front_end='enu'), Clock()),
    ],
    ids=['usual', 'unscented on a coarse clock', 'enu'],
)
def test_judge_node_in_lockstep_equals_the_batch_run_bit_for_bit(
    tmp_path: Path, options: Options, clock: Clock
) -> None:
    """Every input, mounted sensors, a start heading; both filters and front ends."""
    setup_of_everything(tmp_path)
    path = tmp_path / 'params.yaml'
    parameters = yaml.safe_load(path.read_text(encoding='utf-8'))
    # A measured yaw would replace the start heading at once.
    parameters['/**']['ros__parameters']['imu0_config'] = mask('vyaw', 'ax', 'ay')
    path.write_text(yaml.safe_dump(parameters), encoding='utf-8')
    setup = JudgeSetup.load(path, tmp_path / 'navsat_params.yaml', options=options)
    setup = dataclasses.replace(setup, case=dataclasses.replace(setup.case, clock=clock))
    run = curve(2.0)
    expected = setup.judge(run, start_heading=0.3)
    assert batch_bits(expected) != batch_bits(setup.judge(run))
    run_by_node = NodeJudgeSetup.from_setup(setup, 'judge_node').judge(run, start_heading=0.3)
    assert len(run_by_node) > 60
    assert len(run_by_node.gps_stamp_ns) > 10
    assert_same(run_by_node, expected)


def test_two_judges_on_one_clock_do_not_affect_each_other(tmp_path: Path, world: World) -> None:
    """Two pairs of runs of different lengths, whose ends are unknown beforehand."""
    node, executor = world
    short = curve(0.5, transforms=())
    start_ns = short.start_ns
    setup = setup_of_everything(tmp_path).with_start(start_ns=start_ns)
    for long in (curve(1.0), curve(0.4)):
        steps: list[int] = []
        with (
            FilterEstimator(node, 'real', setup, long) as real,
            FilterEstimator(node, 'sim', setup, short) as sim,
        ):
            feeds = [UnknownEnd(RecordedFeed(run, setup)) for run in (long, short)]
            ReplayClock(
                node, [real, sim], feeds, executor=executor, start_ns=start_ns,
                on_step=steps.append,
            ).play()  # fmt: skip
        assert steps == sorted(set(steps))
        assert_same(real.judged_run(long), setup.judge(long))
        assert_same(sim.judged_run(short), setup.judge(short))
    assert not [name for name, _ in node.get_topic_names_and_types() if name.startswith('/real/')]


def test_the_replay_speed_can_be_limited_by_the_wall_clock(tmp_path: Path, world: World) -> None:
    """0.9 s at a factor of 2 take 0.43 s, less two steps; a stall of 0.3 s adds to it."""
    node, executor = world
    run = curve(0.5)
    setup = setup_of_everything(tmp_path).with_start(start_ns=run.start_ns)
    times: list[float] = []

    def stall(_: int) -> None:
        times.append(time.monotonic())
        if len(times) == 5:
            time.sleep(0.3)

    with FilterEstimator(node, 'real', setup, run) as estimator:
        ReplayClock(
            node, [estimator], [RecordedFeed(run, setup)], executor=executor,
            start_ns=run.start_ns, rate_factor=2.0, on_step=stall,
        ).play()  # fmt: skip
    assert times[-1] - times[0] > 0.35 + 0.3
    assert_same(estimator.judged_run(run), setup.judge(run))


@pytest.mark.parametrize('judge', ['judge_node', 'robot_localization'])
@pytest.mark.parametrize('lost', ['odom0', 'imu0', 'rest'])
def test_a_lost_message_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str, judge: str
) -> None:
    if judge == 'robot_localization' and ABSENT:
        pytest.skip(ABSENT)
    setup = NodeJudgeSetup.from_setup(setup_of_everything(tmp_path), judge)
    run = curve(0.8, transforms=() if judge == 'robot_localization' else MOUNTED)
    sent, dropped, send = Counter[str](), 0, Senders.send

    def lossy(self: Senders, input_name: str, array: MessageArray) -> None:
        nonlocal dropped
        sent[input_name] += 1
        if sent[input_name] == 9 if input_name == lost else lost == 'rest' and sent['imu0'] > 30:
            dropped += 1
        else:
            send(self, input_name, array)

    monkeypatch.setattr(Senders, 'send', lossy)
    with pytest.raises(JudgeError, match='a message was lost on the way'):
        setup.judge(run)
    assert dropped == 1 or lost == 'rest'


def test_other_publishers_of_clock_or_estimates_are_an_error(tmp_path: Path, world: World) -> None:
    node, executor = world
    run = curve(0.5)
    setup = setup_of_everything(tmp_path).with_start(start_ns=run.start_ns)
    with foreign(node, '/clock', ClockMessage):
        alone = ReplayClock(node, [], [], executor=executor, start_ns=run.start_ns)
        with pytest.raises(JudgeError, match=r'^/clock: /other'):
            alone.play()
    topic = '/real/odometry/filtered'
    with foreign(node, topic, Odometry), FilterEstimator(node, 'real', setup, run) as estimator:
        feeds = [RecordedFeed(run, setup)]
        replay_clock = ReplayClock(
            node, [estimator], feeds, executor=executor, start_ns=run.start_ns
        )
        with pytest.raises(JudgeError, match=f'^{topic}: /other'):
            replay_clock.play()


@pytest.mark.parametrize(
    ('topic', 'message'),
    [('/clock', ClockMessage), ('/real/imu/data', Imu), ('/real/odometry/filtered', Odometry)],
)
def test_a_publisher_that_joins_during_a_run_is_named(
    tmp_path: Path, world: World, topic: str, message: type
) -> None:
    """A judge of the command line and one of evaluation_node have the same watch."""
    node, executor = world
    run = curve(0.5)
    setup = setup_of_everything(tmp_path).with_start(start_ns=run.start_ns)
    with contextlib.ExitStack() as opened:

        def join(now_ns: int) -> None:
            if '/other' not in publishers_of(node, topic):
                context = opened.enter_context(private_context(node.context.get_domain_id()))
                other = Node('other', context=context)
                opened.callback(other.destroy_node)
                other.create_publisher(message, topic, 1)
                until(lambda: '/other' in publishers_of(node, topic))

        estimator = opened.enter_context(FilterEstimator(node, 'real', setup, run))
        feeds = [RecordedFeed(run, setup)]
        replay_clock = ReplayClock(
            node, [estimator], feeds, executor=executor, start_ns=run.start_ns, on_step=join
        )
        with pytest.raises(OtherPublisherError, match=f'^{topic}: /other'):
            replay_clock.play()
    until(lambda: '/other' not in publishers_of(node, topic))


@contextlib.contextmanager
def foreign(node: Node, topic: str, message: type) -> Iterator[None]:
    """Publish a topic by a foreign node, and wait until the graph has lost it."""
    with private_context(node.context.get_domain_id()) as context:
        other = Node('other', context=context)
        other.create_publisher(message, topic, 1)
        try:
            until(lambda: publishers_of(node, topic) == ['/other'])
            yield
        finally:
            other.destroy_node()
    until(lambda: '/other' not in publishers_of(node, topic))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 180.0
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.02)


def test_inputs_that_share_a_topic_get_separate_topics(tmp_path: Path) -> None:
    setup = setup_of_everything(tmp_path, imu1='imu', imu2='imu/data')
    assert input_topics(setup.filter) == {
        'odom0': 'wheel/odom', 'odom1': 'odometry/gps', 'imu0': 'imu/data',
        'imu1': 'imu/imu1', 'imu2': 'imu/data/imu2',
    }  # fmt: skip


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize('name', TRACES)
def test_the_real_ekf_node_reproduces_its_recorded_traces(reference_dir: Path, name: str) -> None:
    """Same stamps, same ticks; velocities to 1e-9, with positions through UTM to 1e-6."""
    folder = reference_dir / 'judge' / 'node' / name
    if not folder.is_dir():
        pytest.skip(f'no trace {folder}')
    navsat = folder / 'navsat_params.yaml'
    navsat_file = navsat if navsat.exists() else None
    setup = JudgeSetup.load(folder / 'params.yaml', navsat_file, folder / 'case.yaml')
    run_by_node = NodeJudgeSetup.from_setup(setup, 'robot_localization').judge(
        read_recording(folder)
    )
    header, rows = read_rows(folder / 'expected_filtered.csv.gz')
    assert run_by_node.stamp_ns.tolist() == [int(row[0]) for row in rows]
    assert run_by_node.tick_ns.tolist() == [int(row[1]) for row in rows]
    columns = [header.index(name) for name in ('vx', 'vy', 'vz')]
    expected = np.array([[float(row[column]) for column in columns] for row in rows])
    error = np.abs(run_by_node.linear_velocity - expected).max()
    tolerance = 1e-6 if navsat.exists() else 1e-9
    assert error < tolerance, f'ekf_node differs from its trace by more than {tolerance} m/s'


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_the_real_ekf_node_equals_the_batch_judge_with_mounted_sensors(tmp_path: Path) -> None:
    pytest.importorskip('tf2_msgs')
    setup, run = setup_of_everything(tmp_path), curve(2.0)
    expected = setup.judge(run, start_heading=0.3)
    run_by_node = NodeJudgeSetup.from_setup(setup, 'robot_localization').judge(
        run, start_heading=0.3
    )
    assert run_by_node.stamp_ns.tolist() == expected.stamp_ns.tolist()
    np.testing.assert_allclose(run_by_node.linear_velocity, expected.linear_velocity, atol=1e-9)
    np.testing.assert_allclose(run_by_node.gps_position, expected.gps_position, atol=1e-9)
    again = NodeJudgeSetup.from_setup(setup, 'robot_localization').judge(run, start_heading=0.3)
    assert batch_bits(again) == batch_bits(run_by_node)


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_missing_transforms_are_named_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node silently drops an input without a transform."""
    pytest.importorskip('tf2_msgs')
    setup = NodeJudgeSetup.from_setup(setup_of_everything(tmp_path), 'robot_localization')
    empty = encode_transforms((), 0)
    monkeypatch.setattr(connections, 'encode_transforms', lambda *_: empty)
    with pytest.raises(JudgeError, match='transforms not received for imu0'):
        setup.judge(curve(1.0))
