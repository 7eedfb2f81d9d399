# SPDX-License-Identifier: Apache-2.0
"""Judge nodes in lockstep over real DDS give what the batch judge gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy', reason='no ROS')

from judge_examples import mask, read_rows
from live_examples import batch_bits, curve, everything
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from sim2real_eval.judge import Case, Clock, JudgedRun, JudgeError
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.recording import read_recording
from sim2real_eval.ros.lockstep import (
    Conductor,
    Delivery,
    GraphJudgeSetup,
    RecordedFeed,
    Side,
)
from sim2real_eval.ros.lockstep import side as side_module
from sim2real_eval.ros.lockstep.domain import free_domain, private_context
from sim2real_eval.ros.lockstep.grids import Grids
from sim2real_eval.ros.lockstep.process import executable
from sim2real_eval.ros.lockstep.senders import Senders, input_topics

try:
    executable('robot_localization')
    ABSENT = ''
except JudgeError as error:
    ABSENT = str(error)


def setup_of_everything(folder: Path, **more: object) -> JudgeSetup:
    """All inputs, navsat_transform, control; sensors are mounted anywhere."""
    everything(folder, **more)
    navsat = {'/**': {'ros__parameters': {'frequency': 20.0, 'use_odometry_yaw': False}}}
    (folder / 'navsat_params.yaml').write_text(yaml.safe_dump(navsat), encoding='utf-8')
    return JudgeSetup.load(folder / 'params.yaml', folder / 'navsat_params.yaml')


@pytest.fixture
def world() -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    with free_domain() as domain, private_context(domain) as context:
        node = Node('world', context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        yield node, executor
        executor.shutdown()
        node.destroy_node()


class UnknownEnd:
    """A feed that does not know how much is to come until all has come."""

    def __init__(self, recorded: RecordedFeed) -> None:
        self._recorded = recorded
        self._until = 0

    def until(self, now_ns: int) -> Sequence[Delivery]:
        self._until = now_ns
        return self._recorded.until(now_ns)

    @property
    def last_ns(self) -> int | None:
        last = self._recorded.last_ns
        return last if self._until >= last else None


def assert_same(found: JudgedRun, expected: JudgedRun) -> None:
    assert batch_bits(found) == batch_bits(expected)
    assert found.parts == expected.parts
    assert found.notes == expected.notes


@pytest.mark.parametrize('case', [Case(), Case(Clock(step_ns=10_000_000, run_on_ns=100_000_000))])
def test_judge_node_gives_the_bits_of_the_batch_judge(tmp_path: Path, case: Case) -> None:
    """Every input, navsat_transform, mounted sensors, a start heading; clocks fine and coarse."""
    setup_of_everything(tmp_path)
    path = tmp_path / 'params.yaml'
    parameters = yaml.safe_load(path.read_text(encoding='utf-8'))
    # A measured yaw would replace the start heading at once.
    parameters['/**']['ros__parameters']['imu0_config'] = mask('vyaw', 'ax', 'ay')
    path.write_text(yaml.safe_dump(parameters), encoding='utf-8')
    setup = JudgeSetup.load(path, tmp_path / 'navsat_params.yaml')
    setup = dataclasses.replace(setup, case=case)
    run = curve(2.0)
    expected = setup.judge(run, start_heading=0.3)
    assert batch_bits(expected) != batch_bits(setup.judge(run))
    found = GraphJudgeSetup.of(setup, 'judge_node').judge(run, start_heading=0.3)
    assert len(found) > 60
    assert len(found.gps_stamp_ns) > 10
    assert_same(found, expected)


def test_two_sides_on_one_clock_do_not_meet(
    tmp_path: Path, world: tuple[Node, SingleThreadedExecutor]
) -> None:
    """Other messages, ends that are not known beforehand, one after the other; then once more on
    the same node.
    """
    node, executor = world
    long, short = curve(1.5), curve(1.0, transforms=())
    start_ns = long.start_ns
    setup = setup_of_everything(tmp_path).started(start_ns=start_ns)
    for _ in range(2):
        steps: list[int] = []
        with (
            Side(node, 'real', setup, long) as real,
            Side(node, 'sim', setup, short) as sim,
        ):
            feeds = [UnknownEnd(RecordedFeed(run, setup)) for run in (long, short)]
            Conductor(
                node, [real, sim], feeds, executor=executor, start_ns=start_ns,
                on_step=steps.append,
            ).play()  # fmt: skip
        assert steps == sorted(set(steps))
        assert_same(real.judged(long), setup.judge(long))
        assert_same(sim.judged(short), setup.judge(short))
    assert not [name for name, _ in node.get_topic_names_and_types() if name.startswith('/real/')]


def test_the_wall_clock_can_set_the_pace(
    tmp_path: Path, world: tuple[Node, SingleThreadedExecutor]
) -> None:
    """0.9 s of a run at a factor of 2 take 0.43 s at least, less a step at either end."""
    import time

    node, executor = world
    run = curve(0.5)
    setup = setup_of_everything(tmp_path).started(start_ns=run.start_ns)
    times: list[float] = []
    with Side(node, 'real', setup, run) as side:
        Conductor(
            node, [side], [RecordedFeed(run, setup)], executor=executor, start_ns=run.start_ns,
            rate_factor=2.0, on_step=lambda _: times.append(time.monotonic()),
        ).play()  # fmt: skip
    assert times[-1] - times[0] > 0.35
    assert_same(side.judged(run), setup.judge(run))


def test_a_lost_message_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Best effort may lose one; the estimate then bears another stamp, and none is made up."""
    setup = GraphJudgeSetup.of(setup_of_everything(tmp_path), 'judge_node')
    sent, send = 0, Senders.send

    def lossy(self: Senders, taker: str, array: object) -> None:
        nonlocal sent
        sent += 1
        if taker != 'imu0' or sent < 100:
            send(self, taker, array)  # type: ignore[arg-type]

    monkeypatch.setattr(side_module.Senders, 'send', lossy)
    with pytest.raises(JudgeError, match='a message was lost on the way'):
        setup.judge(curve(2.0))


def test_inputs_on_one_topic_and_those_of_navsat_transform_get_topics_of_their_own(
    tmp_path: Path,
) -> None:
    setup = setup_of_everything(tmp_path, imu1='imu', imu2='imu/data')
    assert input_topics(setup.filter) == {
        'odom0': 'wheel/odom', 'odom1': 'odometry/gps', 'imu0': 'imu/data',
        'imu1': 'imu/imu1', 'imu2': 'imu/data/imu2',
    }  # fmt: skip


@pytest.mark.parametrize(
    ('clock', 'named'),
    [
        (Clock(filter_period_ns=10), 'filter_timer_period_ns: 10'),
        (Clock(navsat_origin_ns=5_000), 'navsat_timer_origin_ns: 5000'),
        (Clock(navsat_period_ns=7), 'navsat_timer_period_ns: 7'),
        (Clock(filter_origin_ns=900), 'navsat_timer_origin_ns: 20001000'),
    ],
)
def test_timers_that_a_node_cannot_have_are_refused(
    tmp_path: Path, clock: Clock, named: str
) -> None:
    """But navsat_transform's are free where it is ours."""
    setup = setup_of_everything(tmp_path)
    with pytest.raises(JudgeError, match=named):
        Grids(clock, setup.filter, setup.navsat, 1000, inside=True)
    if clock.filter_period_ns is None:
        grids = Grids(clock, setup.filter, setup.navsat, 1000, inside=False)
        assert grids.next_ns > 1000


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize('name', ['a_paper_circle_gauss', 'd_wheel_imu', 'g_mounted_imu_lever'])
def test_the_real_ekf_node_meets_its_own_traces(reference_dir: Path, name: str) -> None:
    """Same stamps, same ticks; velocities to 1e-9, with positions through UTM to 1e-6."""
    folder = reference_dir / 'judge' / 'node' / name
    if not folder.is_dir():
        pytest.skip(f'no trace {folder}')
    navsat = folder / 'navsat_params.yaml'
    setup = JudgeSetup.load(
        folder / 'params.yaml', navsat if navsat.exists() else None, folder / 'case.yaml'
    )
    found = GraphJudgeSetup.of(setup, 'robot_localization').judge(read_recording(folder))
    header, rows = read_rows(folder / 'expected_filtered.csv.gz')
    assert found.stamp_ns.tolist() == [int(row[0]) for row in rows]
    assert found.tick_ns.tolist() == [int(row[1]) for row in rows]
    columns = [header.index(name) for name in ('vx', 'vy', 'vz')]
    expected = np.array([[float(row[column]) for column in columns] for row in rows])
    error = np.abs(found.linear_velocity - expected).max()
    assert error < (1e-6 if navsat.exists() else 1e-9)
    assert any('robot_localization judged' in note for note in found.notes)


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_the_real_ekf_node_takes_mounted_sensors_and_commands(tmp_path: Path) -> None:
    pytest.importorskip('tf2_msgs')
    setup, run = setup_of_everything(tmp_path), curve(2.0)
    expected = setup.judge(run, start_heading=0.3)
    found = GraphJudgeSetup.of(setup, 'robot_localization').judge(run, start_heading=0.3)
    assert found.stamp_ns.tolist() == expected.stamp_ns.tolist()
    np.testing.assert_allclose(found.linear_velocity, expected.linear_velocity, atol=1e-9)
    np.testing.assert_allclose(found.gps_position, expected.gps_position, atol=1e-9)


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_the_real_navsat_transform_node_runs_at_the_speed_of_the_wall_clock(
    tmp_path: Path,
) -> None:
    """What it does depends on the phase of its timer; that it was it is said."""
    pytest.importorskip('tf2_msgs')
    setup, run = setup_of_everything(tmp_path), curve(3.0)
    expected = setup.judge(run)
    node = GraphJudgeSetup.of(setup, 'robot_localization', navsat_node='robot_localization')
    found = node.judge(run)
    assert set(found.gps_stamp_ns.tolist()) <= set(run.messages['/gps/fix'].stamp_ns.tolist())
    assert len(found.gps_stamp_ns) > 15
    assert abs(len(found) - len(expected)) <= 2
    assert any('arbitrary phase' in note for note in found.notes)
    assert node.provenance['navsat_transform'] == 'robot_localization'
