# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Times of messages and ticks, and the estimates published at them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import START_NS, filter_config, imu, mask, odometry, recording, simple, stamps

from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import Clock, ReplayOptions
from sim2real_eval.recording.csv_files import write_table
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.reading import read_recording

IMU_PERIOD = 10_000_000


def test_a_message_that_arrives_at_a_tick_is_used_in_that_tick(tmp_path: Path) -> None:
    """Ticks every 20 ms, messages every 10 ms on the same grid; 1 ns late is one tick late."""
    clock = stamps(100.0, 2.0)
    on_time = judge(recording({'imu': imu(clock)}), simple(tmp_path), None, ReplayOptions())
    n = 90
    assert (on_time.stamp_ns[:n] == on_time.tick_ns[:n]).all()
    assert (np.diff(on_time.tick_ns) == 20_000_000).all()
    late = dataclasses.replace(imu(clock), arrival_ns=clock + 1)
    case = ReplayOptions(Clock(start_ns=START_NS))
    behind = judge(recording({'imu': late}), simple(tmp_path), None, case)
    assert (behind.tick_ns[:n] - behind.stamp_ns[:n] == IMU_PERIOD).all()


def test_a_coarse_clock_delays_ticks_to_its_steps(tmp_path: Path) -> None:
    """Clock every 30 ms, timer every 20 ms: ticks at 30, 60, 90 and not between."""
    run = recording({'imu': imu(stamps(100.0, 2.0))})
    tick_ns = judge(run, simple(tmp_path), None, ReplayOptions(Clock(step_ns=30_000_000)))
    assert ((tick_ns.tick_ns - START_NS) % 30_000_000 == 0).all()
    assert (np.diff(tick_ns.tick_ns[:20]) == 30_000_000).all()


def test_period_and_timeout_are_truncated_to_whole_nanoseconds(tmp_path: Path) -> None:
    """35 Hz is 28571428 ns; with an equal timeout every tick predicts, as in ekf_node [run]."""
    run = recording({'imu': imu(stamps(100.0, 2.0))})
    config = filter_config(tmp_path, frequency=35.0, imu0='imu', imu0_config=mask('yaw'))
    judged = judge(run, config)
    assert ((judged.tick_ns - START_NS) % 28_571_428 == 0).all()
    assert (np.diff(judged.tick_ns) == 28_571_428).all()
    assert (judged.stamp_ns[-10:] == judged.tick_ns[-10:]).all()


def test_the_filter_predicts_through_silence_after_the_timeout(tmp_path: Path) -> None:
    """Data end at 1.99 s; 50 Hz, timeout 0.1 s, 0.4 s more: rows at 2.10, 2.20, 2.30."""
    clock = stamps(100.0, 2.0)
    judged = judge(recording({'imu': imu(clock)}), simple(tmp_path, sensor_timeout=0.1))
    after = judged.tick_ns > clock[-1] + 10_000_000
    assert (judged.stamp_ns[after] - START_NS).tolist() == [
        2_100_000_000, 2_200_000_000, 2_300_000_000
    ]  # fmt: skip
    assert (judged.stamp_ns[after] == judged.tick_ns[after]).all()


def test_a_queue_of_future_measurements_blocks_the_timeout(tmp_path: Path) -> None:
    """Odometry stamped 3 s ahead waits, and no estimate is published, as in the original."""
    arrivals = imu(stamps(100.0, 1.0))
    waiting = dataclasses.replace(
        odometry(stamps(10.0, 1.0) + 3_000_000_000), arrival_ns=stamps(10.0, 1.0)
    )
    config = simple(tmp_path, odom0='odom', odom0_config=mask('vx'))
    case = ReplayOptions(Clock(run_on_ns=5_000_000_000))
    judged = judge(recording({'imu': arrivals, 'odom': waiting}), config, None, case)
    silence = START_NS + 1_000_000_000, START_NS + 3_000_000_000
    assert not ((judged.stamp_ns > silence[0]) & (judged.stamp_ns < silence[1])).any()
    assert judged.stamp_ns[-1] > silence[1]
    ended = dataclasses.replace(waiting, stamp_ns=waiting.arrival_ns)
    free = judge(recording({'imu': arrivals, 'odom': ended}), config, None, case)
    assert ((free.stamp_ns > silence[0]) & (free.stamp_ns < silence[1])).any()


def test_messages_of_one_arrival_are_delivered_in_the_order_of_the_case(tmp_path: Path) -> None:
    """The first message initialises the filter. The default is odometry, pose, twist, IMU."""
    clock = stamps(100.0, 1.0)
    moving = np.tile([3.0, 0.0, 0.0], (len(clock), 1))
    run = recording({'imu': imu(clock), 'odom': odometry(clock, velocity=moving)})
    config = simple(tmp_path, odom0='odom', odom0_config=mask('vx'))
    plain = judge(run, config)
    first = judge(run, config, None, ReplayOptions(topics=('odom', 'imu')))
    second = judge(run, config, None, ReplayOptions(topics=('imu', 'odom')))
    assert plain.linear_velocity.tobytes() == first.linear_velocity.tobytes()
    # Copied at once, against corrected from a variance of 1e-9.
    assert first.linear_velocity[0, 0] == pytest.approx(3.0)
    assert second.linear_velocity[0, 0] < 0.5


def test_the_order_of_equal_stamps_matters_only_for_the_first_measurement(tmp_path: Path) -> None:
    """Wheel odometry with each IMU message but the first, noisy, in both orders of delivery."""
    rng = np.random.default_rng(3)
    clock = stamps(100.0, 2.0)
    velocity = [2.0, 0.0, 0.0] + 0.2 * rng.normal(size=(len(clock) - 1, 3))
    rate = [0.0, 0.0, 0.3] + 0.1 * rng.normal(size=(len(clock), 3))
    run = recording({'imu': imu(clock, rate=rate), 'odom': odometry(clock[1:], velocity=velocity)})
    config = filter_config(
        tmp_path, frequency=50.0, odom0='odom', odom0_config=mask('vx', 'vyaw'), imu0='imu',
        imu0_config=mask('yaw', 'vyaw', 'ax'),
    )  # fmt: skip
    message_pair, other = (
        judge(run, config, None, ReplayOptions(topics=order))
        for order in (('odom', 'imu'), ('imu', 'odom'))
    )
    assert message_pair.stamp_ns.tolist() == other.stamp_ns.tolist()
    for name in ('position', 'orientation', 'linear_velocity', 'twist_covariance'):
        np.testing.assert_allclose(
            getattr(message_pair, name), getattr(other, name), rtol=0, atol=1e-12
        )
    assert message_pair.linear_velocity.tobytes() != other.linear_velocity.tobytes()


def test_predict_to_current_time_stamps_the_estimate_with_the_tick(tmp_path: Path) -> None:
    late = dataclasses.replace(imu(stamps(100.0, 2.0)), arrival_ns=stamps(100.0, 2.0) + 7_000_000)
    run = recording({'imu': late})
    plain = judge(run, simple(tmp_path))
    ahead = judge(run, simple(tmp_path, predict_to_current_time=True))
    assert (ahead.stamp_ns == ahead.tick_ns).all()
    assert (plain.stamp_ns[:90] < plain.tick_ns[:90]).all()


def test_corrections_at_an_unchanged_time_are_published_only_if_permitted(tmp_path: Path) -> None:
    """A pose that is always 1 s late never moves time; odometry at 10 Hz does."""
    clock = stamps(10.0, 4.0)
    lagging = dataclasses.replace(
        imu(stamps(100.0, 3.0)), arrival_ns=stamps(100.0, 3.0) + 1_000_000_000
    )
    run = recording({'odom': odometry(clock), 'imu': lagging})
    options = {'odom0': 'odom', 'odom0_config': mask('vx'), 'sensor_timeout': 5.0}
    refused = judge(run, simple(tmp_path, **options))
    permitted = judge(run, simple(tmp_path, permit_corrected_publication=True, **options))
    assert (np.diff(refused.stamp_ns) > 0).all()
    assert len(permitted) > 4 * len(refused)
    assert set(refused.stamp_ns) == set(permitted.stamp_ns)


def test_messages_older_than_the_latest_of_their_topic_are_refused(tmp_path: Path) -> None:
    clock = stamps(100.0, 1.0)
    again = np.concatenate([clock, clock])
    arrival = stamps(100.0, 2.0)
    twice = dataclasses.replace(imu(again), arrival_ns=arrival)
    counts = judge(recording({'imu': twice}), simple(tmp_path))
    twist = next(part for part in counts.parts if part.name == 'imu0 twist')
    # An equal stamp is accepted, so the last message of the repetition counts.
    assert (twist.received, twist.older, twist.fused) == (200, 99, 101)


@pytest.mark.parametrize('fault', ['late', 'not finite'])
def test_the_run_ends_after_the_last_message_that_is_refused(tmp_path: Path, fault: str) -> None:
    """A node receives what is left out, too. The oracle is a clock that runs on as much longer."""
    clock = stamps(20.0, 3.0)
    odom = odometry(clock)
    arrival = clock.copy()
    arrival[-2:] += [60_000_000, 90_000_000]
    if fault == 'late':
        odom = dataclasses.replace(odom, stamp_ns=np.append(clock[:-2], clock[-5:-3]))
    else:
        is_bad = np.arange(len(clock)) >= len(clock) - 2
        names = ('position', 'orientation', 'linear_velocity', 'angular_velocity')
        fields = {name: np.where(is_bad[:, None], np.nan, getattr(odom, name)) for name in names}
        odom = dataclasses.replace(odom, **fields)
    whole = dataclasses.replace(odom, arrival_ns=arrival)
    folders = {'whole': whole, 'kept': whole.take(slice(0, -2))}
    for name, array in folders.items():
        (tmp_path / name).mkdir()
        write_table(tmp_path / name / 'odom.csv', MESSAGE_TYPES['nav_msgs/msg/Odometry'], array)
    read, kept = (read_recording(tmp_path / name) for name in folders)
    assert len(read.messages['/odom']) == len(kept.messages['/odom'])
    config = filter_config(tmp_path, frequency=50.0, odom0='/odom', odom0_config=mask('vx'))
    later = int(arrival[-1] - arrival[-3])
    longer = ReplayOptions(Clock(run_on_ns=400_000_000 + later))
    judged, expected = judge(read, config, None), judge(kept, config, None, longer)
    assert judged.tick_ns.tolist() == expected.tick_ns.tolist()
    assert len(judged) > len(judge(kept, config, None))
