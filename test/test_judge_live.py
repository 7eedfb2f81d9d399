# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The live judge gives the bits of the judge that is run over a recording."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_examples import (
    START_NS,
    filter_config,
    imu,
    mask,
    navsat_config,
    odometry,
    recording,
    stamps,
)
from live_examples import (
    MOUNTED,
    arrivals,
    batch_bits,
    curve,
    estimate_bits,
    everything,
    give,
    live_judge,
    step_through,
)  # fmt: skip

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization import live as live_module
from sim2real_eval.judge.robot_localization.configuration import (
    FilterConfig,
    NavsatConfig,
    with_front_end,
)
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.measurements import OdometryArray, PoseArray

TRACES = (
    'a_paper_circle_gauss', 'b_paper_airsim', 'c_clean_navsat', 'd_wheel_imu',
    'e_differential_pose', 'f_relative_pose', 'g_mounted_imu_lever', 'i_predict_to_current_time',
    'l_control',
)  # fmt: skip


def first_half(run: Recording) -> Recording:
    """Any difference would show in the first seconds."""
    middle = (run.start_ns + run.end_ns) // 2
    messages = {
        topic: array.take(array.arrival_ns <= middle) for topic, array in run.messages.items()
    }
    return dataclasses.replace(run, messages=messages)


@pytest.mark.parametrize('name', TRACES)
def test_live_and_batch_are_bit_identical_on_reference_traces(
    reference_dir: Path, name: str
) -> None:
    folder = reference_dir / 'judge' / 'node' / name
    if not folder.is_dir():
        pytest.skip(f'no trace {folder}')
    run = first_half(read_recording(folder))
    config = FilterConfig.from_file(folder / 'params.yaml')
    navsat_file = folder / 'navsat_params.yaml'
    navsat = NavsatConfig.from_file(navsat_file) if navsat_file.exists() else None
    case = ReplayOptions.from_file(folder / 'case.yaml')
    judged = judge(run, config, navsat, case)
    live = live_judge(run, config, navsat)
    assert step_through(live, run, case).bits() == batch_bits(judged)
    # The case's order of delivery is the batch's order of counting.
    assert set(live.parts) == set(judged.parts)


@pytest.mark.parametrize('name', ['ukf_distinct_alpha01', 'ukf_equal_alpha01'])
def test_live_and_batch_are_bit_identical_with_the_unscented_filter(name: str) -> None:
    """Also where stamps are equal and their order decides."""
    folder = Path(__file__).parent / 'traces' / name
    run = read_recording(folder)
    config = FilterConfig.from_file(folder / 'params.yaml', unscented=True)
    case = ReplayOptions.from_file(folder / 'case.yaml')
    live = live_judge(run, config)
    published = step_through(live, run, case)
    assert len(published.filtered) > 20
    assert published.bits() == batch_bits(judge(run, config, None, case))


@pytest.mark.parametrize('front_end', ['navsat_transform', 'enu'])
@pytest.mark.parametrize('unscented', [False, True], ids=['ekf', 'ukf'])
def test_live_and_batch_are_bit_identical_with_every_correction(
    tmp_path: Path, unscented: bool, front_end: str
) -> None:
    """An IMU that stands slanted, increments of fixes, and the textbook's unscented filter."""
    slanted = StaticTransform('base_link', 'imu_link', (0.3, 0.0, 0.1), (0.1, 0.2, 0.2, 0.9))
    run = curve(2.5, transforms=(slanted, MOUNTED[1]))
    more = {'odom1_differential': True, 'odom1_pose_rejection_threshold': 1e3}
    config = everything(tmp_path, two_d_mode=True, alpha=0.1, **more)
    if unscented:
        config = FilterConfig.from_file(tmp_path / 'params.yaml', unscented=True)
    navsat = with_front_end(navsat_config(tmp_path, use_odometry_yaw=True), front_end)
    names = {'gravity', 'differential', *(['unscented'] if unscented else [])}
    estimates = set()
    for correct in (frozenset[str](), *(frozenset({name}) for name in names), frozenset(names)):
        judged = judge(run, config, navsat, ReplayOptions(correct=correct, front_end=front_end))
        live = live_judge(run, config, navsat, correct)
        assert step_through(live, run).bits() == batch_bits(judged)
        estimates.add(batch_bits(judged))
    assert len(estimates) == len(names) + 2


def test_increments_restart_when_the_first_oriented_pose_arrives(tmp_path: Path) -> None:
    """As a batch judge does where all are; where one is not, increments begin anew from there."""
    config = filter_config(
        tmp_path, odom0='odom', odom0_config=mask('x', 'y'), odom0_differential=True,
        initial_state=[0.0] * 5 + [1.0] + [0.0] * 9,
    )  # fmt: skip
    clock = stamps(10.0, 1.0)
    position = np.stack([0.2 * np.arange(10), np.zeros(10), np.zeros(10)], axis=1)
    plain = odometry(clock, position=position)
    turned = odometry(clock, position=position, yaw=np.where(np.arange(10) < 5, 0.0, 0.5))
    corrected = frozenset({'differential'})
    for array, received in ((plain, [9, 1]), (turned, [8, 2])):
        run = recording({'odom': array})
        live = live_judge(run, config, None, corrected)
        published = step_through(live, run)
        (part,) = live.parts
        assert [part.fused, part.unusable] == received
        if array is plain:
            judged = judge(run, config, None, ReplayOptions(correct=corrected))
            assert published.bits() == batch_bits(judged)


@pytest.mark.parametrize('heading', [False, True], ids=['from imu', 'from odometry'])
@pytest.mark.parametrize('two_d', [False, True], ids=['3d', '2d'])
def test_live_and_batch_are_bit_identical_with_all_inputs(
    tmp_path: Path, heading: bool, two_d: bool
) -> None:
    run, config = curve(), everything(tmp_path, two_d_mode=two_d)
    navsat = navsat_config(tmp_path, frequency=20.0, use_odometry_yaw=heading)
    judged = judge(run, config, navsat)
    live = live_judge(run, config, navsat)
    published = step_through(live, run)
    assert len(published.filtered) > 100
    assert len(published.gps) > 30
    assert len(published.back) > 60
    assert published.bits() == batch_bits(judged)
    assert live.parts == judged.parts
    assert live.notes() == list(judged.notes)


def test_a_judge_repeats_its_estimates_bit_for_bit_after_a_reset(tmp_path: Path) -> None:
    run, config, navsat = curve(), everything(tmp_path), navsat_config(tmp_path)
    live = live_judge(run, config, navsat)
    first = step_through(live, run)
    live.reset()
    assert all(part.received == 0 for part in live.parts)
    assert step_through(live, run).bits() == first.bits()


def test_growing_the_queue_and_the_history_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue has room for one measurement at first, and fixes come 0.3 s late."""
    run = curve(5.0)
    late = dataclasses.replace(run.gps, arrival_ns=run.gps.stamp_ns + 300_000_000)
    run = dataclasses.replace(run, messages={**run.messages, '/gps/fix': late})
    config = everything(tmp_path, smooth_lagged_data=True, history_length=1.0)
    navsat = navsat_config(tmp_path)
    monkeypatch.setattr(live_module, '_FIRST_QUEUE', 1)
    live = live_judge(run, config, navsat)
    assert step_through(live, run).bits() == batch_bits(judge(run, config, navsat))


def test_messages_of_an_unknown_frame_are_refused_until_it_is_known(tmp_path: Path) -> None:
    config = filter_config(tmp_path, imu0='imu/data', imu0_config=mask('vyaw'))
    live = LiveJudge(config, None, FrameTree(()))
    run = recording({'/imu/data': imu(stamps(100, 0.5))}, MOUNTED)
    events = arrivals(live, run, ReplayOptions())
    for _, input_name, message in events[:10]:
        with pytest.raises(JudgeError, match='imu_link'):
            give(live, input_name, message)
    assert live.tick(START_NS + 100_000_000) is None
    live.set_frames(FrameTree(MOUNTED))
    for _, input_name, message in events[10:]:
        give(live, input_name, message)
    assert live.tick(START_NS + 600_000_000) is not None
    assert [part.fused for part in live.parts] == [len(events) - 10]


def test_a_message_of_another_type_is_refused_by_name(tmp_path: Path) -> None:
    live = LiveJudge(everything(tmp_path), None, FrameTree((), assume_identity=True))
    with pytest.raises(JudgeError, match='odom0'):
        live.receive('odom0', imu(stamps(10, 0.1)))


@pytest.mark.parametrize(
    ('field', 'value'),
    [
        ('orientation', [[0.0, 0.0, 0.0, 0.0]]),
        ('position', [[math.nan, 0.0, 0.0]]),
        ('pose_covariance', np.full((1, 6, 6), math.inf)),
        ('pose_covariance', -np.eye(6)[None]),
    ],
)
def test_an_invalid_pose_is_refused_and_changes_nothing(
    tmp_path: Path, field: str, value: Any
) -> None:
    config = filter_config(tmp_path, imu0='imu/data', imu0_config=mask('vyaw'), two_d_mode=True)
    live, second_judge = (LiveJudge(config, None, FrameTree(MOUNTED)) for _ in range(2))
    now = START_NS + 110_000_000
    pose = PoseArray(
        stamp_ns=[now], arrival_ns=[now], frame='odom', position=[[2.0, 0.0, 0.0]],
        orientation=[[0.0, 0.0, 0.0, 1.0]], pose_covariance=np.eye(6)[None],
    )  # fmt: skip
    for either_judge in (live, second_judge):
        either_judge.receive('imu0', imu(stamps(100, 0.3)).take(slice(0, 10)))
    with pytest.raises(JudgeError):
        live.set_pose(dataclasses.replace(pose, **{field: value}), now)
    estimates, expected = live.tick(now), second_judge.tick(now)
    np.testing.assert_array_equal(estimates.pose_covariance, expected.pose_covariance)
    np.testing.assert_array_equal(estimates.position, expected.position)


def test_set_pose_moves_the_estimate_and_discards_older_measurements(tmp_path: Path) -> None:
    """The pose is given in a frame turned by 90 degrees: 2 m along its x are 2 m along y."""
    turned = StaticTransform('odom', 'map', (10.0, 0.0, 0.0), (0.0, 0.0, 0.5**0.5, 0.5**0.5))
    config = filter_config(tmp_path, imu0='imu/data', imu0_config=mask('vyaw'), two_d_mode=True)
    live = LiveJudge(config, None, FrameTree((*MOUNTED, turned)))
    messages = imu(stamps(100, 0.3))
    live.receive('imu0', messages.take(slice(0, 10)))
    assert live.tick(START_NS + 100_000_000) is not None
    pose = PoseArray(
        stamp_ns=[START_NS + 110_000_000], arrival_ns=[START_NS + 110_000_000], frame='map',
        position=[[2.0, 0.0, 0.0]], orientation=[[0.0, 0.0, 0.0, 1.0]],
        pose_covariance=np.diag([4.0, 1.0, 1.0, 1.0, 1.0, 1.0])[None],
    )  # fmt: skip
    live.set_pose(pose, START_NS + 110_000_000)
    live.receive('imu0', messages.take(slice(10, 20)))
    estimate = live.tick(START_NS + 200_000_000)
    np.testing.assert_allclose(estimate.position[0], [10.0, 2.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(estimate.orientation[0, 2:], [0.5**0.5, 0.5**0.5], atol=1e-3)
    assert estimate.pose_covariance[0, 1, 1] == pytest.approx(4.0, abs=0.1)
    # Stamps of 100 ms and 110 ms are not after the pose.
    assert [part.older for part in live.parts] == [2]


@pytest.mark.parametrize('smooth', [False, True], ids=['', 'smooth_lagged_data'])
def test_the_time_while_processing_is_off_does_not_exist(tmp_path: Path, smooth: bool) -> None:
    """As in `periodicUpdate` of robot_localization 3.8.3 and 3.10.0.

    Oracle: a judge without the pause, whose later messages and ticks are 2 s earlier.
    """
    config = filter_config(
        tmp_path, frequency=50.0, imu0='imu/data', imu0_config=mask('yaw', 'vyaw'),
        smooth_lagged_data=smooth, history_length=1.0,
    )  # fmt: skip
    live, oracle = (LiveJudge(config, None, FrameTree(MOUNTED)) for _ in range(2))
    messages, pause_ns = imu(stamps(100, 1.0)), 2_000_000_000

    def play(either: LiveJudge, rows: range, delay_ns: int) -> list[OdometryArray | None]:
        estimates = []
        for number in rows:
            message = messages.take([number])
            stamp_ns = message.stamp_ns + delay_ns
            either.receive(
                'imu0', dataclasses.replace(message, stamp_ns=stamp_ns, arrival_ns=stamp_ns)
            )
            if number % 2:
                estimates.append(either.tick(int(stamp_ns[0])))
        return estimates

    before = [play(either, range(50), 0)[-1] for either in (live, oracle)]
    live.processing = False
    # Measurements of this time are dropped, and each tick publishes the same state.
    held = play(live, range(50), pause_ns // 2)
    held.append(live.tick(START_NS + 490_000_000 + pause_ns))
    assert [int(estimate.stamp_ns[0]) for estimate in held] == [
        int(estimate.arrival_ns[0]) for estimate in held
    ]
    for name in ('position', 'orientation', 'pose_covariance', 'twist_covariance'):
        assert (getattr(held[-1], name) == getattr(before[0], name)).all(), name
    live.processing = True
    after, expected = play(live, range(50, 100), pause_ns), play(oracle, range(50, 100), 0)
    assert len(after) == len(expected) > 20
    for estimate, other in zip(after, expected, strict=True):
        assert estimate.stamp_ns[0] - other.stamp_ns[0] == pause_ns
        for name in ('orientation', 'pose_covariance', 'twist_covariance'):
            assert getattr(estimate, name).tobytes() == getattr(other, name).tobytes(), name


def test_measurements_wait_until_the_filter_is_enabled(tmp_path: Path) -> None:
    """As with `disabled_at_startup`: nothing is published, and nothing is lost.

    Oracle: a judge whose first tick is the one after the other is enabled.
    """
    run, config, navsat = curve(1.0), everything(tmp_path), navsat_config(tmp_path)
    live, oracle = (live_judge(run, config, navsat) for _ in range(2))
    live.enabled = False
    for now_ns, input_name, message in arrivals(live, run, ReplayOptions()):
        assert live.tick(now_ns) is None
        for either_judge in (live, oracle):
            give(either_judge, input_name, message)
    live.enabled = True
    estimates = [either.tick(START_NS + 1_100_000_000) for either in (live, oracle)]
    assert estimate_bits(estimates[:1]) == estimate_bits(estimates[1:])
    assert [part.fused for part in live.parts] == [part.fused for part in oracle.parts]
