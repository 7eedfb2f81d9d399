# SPDX-License-Identifier: Apache-2.0
"""What must be true of the judge whatever its numbers: physics, symmetries, time."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from judge_examples import (
    START_NS,
    commands,
    filter_config,
    imu,
    mask,
    navsat_config,
    odometry,
    recording,
    stamps,
)
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.clock import Case, Clock
from sim2real_eval.judge.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.embedded import judge
from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.judge.judged import JudgedRun
from sim2real_eval.recording import Recording, StaticTransform
from sim_sensors.catalogue import load_gps, load_imu
from sim_sensors.gps import simulate as simulate_gps
from sim_sensors.imu import simulate as simulate_imu
from sim_sensors.measurements import MessageArray
from sim_sensors.scenarios import HalfSine, Line, Scenario, Standstill

IMU_PERIOD = 10_000_000
FIELDS = (
    'position', 'orientation', 'linear_velocity', 'angular_velocity', 'pose_covariance',
    'twist_covariance',
)  # fmt: skip


def sensed(motion: Scenario) -> Recording:
    """An ideal IMU with attitude and a GPS without error, of a motion that begins at START_NS."""
    return recording(
        {
            '/imu/data': simulate_imu(
                load_imu('ideal'), motion, seed=1, run='truth', origin_ns=START_NS
            ),
            '/gps/fix': simulate_gps(
                load_gps('baseline'), motion, seed=1, run='truth', origin_ns=START_NS
            ),
        }
    )


def absolute(folder: Path) -> FilterConfig:
    """GPS position; yaw, yaw rate and acceleration of the IMU; the same noise in x and y."""
    noise = [1e-4] * 2 + [0.06, 0.03, 0.03, 1e-4] + [1.0] * 2 + [0.04, 0.01, 0.01] + [0.1] * 4
    return filter_config(
        folder,
        frequency=50.0,
        two_d_mode=True,
        odom0='odometry/gps',
        odom0_config=mask('x', 'y'),
        imu0='/imu/data',
        imu0_config=mask('yaw', 'vyaw', 'ax', 'ay'),
        imu0_remove_gravitational_acceleration=True,
        process_noise_covariance=noise,
    )


def judged(folder: Path, motion: Scenario) -> JudgedRun:
    return judge(
        sensed(motion), absolute(folder), navsat_config(folder, zero_altitude=True, frequency=50.0)
    )


def world_velocity(run: JudgedRun) -> np.ndarray:
    return Rotation.from_quat(run.orientation).apply(run.linear_velocity)


def truth_at(run: JudgedRun, motion: Scenario) -> np.ndarray:
    return motion.at(np.clip((run.stamp_ns - START_NS) * 1e-9, 0.0, motion.end)).velocity


def test_a_body_at_rest_stays_at_rest(tmp_path: Path) -> None:
    """Positions pass through UTM coordinates of 5e6 m, hence 1e-6 m/s and not zero."""
    run = judged(tmp_path, Standstill(duration=10.0, heading=0.7))
    assert np.abs(run.linear_velocity).max() < 1e-6
    assert np.abs(run.angular_velocity).max() < 1e-6
    assert np.abs(run.position).max() < 1e-6
    assert len(run) > 500


@pytest.mark.parametrize(
    'motion', [Line(duration=15.0, heading=0.7), HalfSine(duration=15.0, heading=-0.4)]
)
def test_ideal_sensors_give_the_true_velocity(tmp_path: Path, motion: Scenario) -> None:
    """World velocity within 2 cm/s at all times: UTM is 0.04 % small, the IMU 10 ms coarse."""
    run = judged(tmp_path, motion)
    error = world_velocity(run) - truth_at(run, motion)
    kept = run.stamp_ns <= START_NS + 15_000_000_000
    assert np.abs(error[kept]).max() < 0.02
    # It did move: the same bound fails without the motion.
    assert np.linalg.norm(truth_at(run, motion), axis=1).max() > 0.9


def test_heading_of_the_world_does_not_matter_to_absolute_positions(tmp_path: Path) -> None:
    """The same half-sine set out in four directions: equal speed to 1e-4 m/s (UTM's scale varies
    by 1e-6 over the track), and equal covariance of the body velocity.
    """
    runs = [judged(tmp_path, HalfSine(duration=12.0, heading=h)) for h in (0.0, 0.8, 2.5, -1.9)]
    speed = [np.hypot(*run.linear_velocity[:, :2].T) for run in runs]
    for other in speed[1:]:
        np.testing.assert_allclose(other, speed[0], atol=1e-4)
    for run in runs[1:]:
        np.testing.assert_allclose(
            run.twist_covariance[:, :2, :2], runs[0].twist_covariance[:, :2, :2], atol=1e-6
        )
    assert speed[0].max() > 0.9


def shifted(run: Recording, shift_ns: int) -> Recording:
    def later(array: MessageArray) -> MessageArray:
        return dataclasses.replace(
            array, stamp_ns=array.stamp_ns + shift_ns, arrival_ns=array.arrival_ns + shift_ns
        )

    return dataclasses.replace(
        run, messages={topic: later(array) for topic, array in run.messages.items()}
    )


@pytest.mark.parametrize('shift_ns', [1, 999_999_937, 1_700_000_000_123_456_789])
def test_a_shift_of_all_stamps_changes_no_bit(tmp_path: Path, shift_ns: int) -> None:
    """Times are differences of integers; the clock starts with the first message."""
    run = sensed(HalfSine(duration=5.0))
    config, navsat = absolute(tmp_path), navsat_config(tmp_path)
    here, there = judge(run, config, navsat), judge(shifted(run, shift_ns), config, navsat)
    assert (there.stamp_ns - here.stamp_ns == shift_ns).all()
    assert (there.tick_ns - here.tick_ns == shift_ns).all()
    for field in FIELDS:
        assert getattr(here, field).tobytes() == getattr(there, field).tobytes()


def simple(folder: Path, **more: object) -> FilterConfig:
    return filter_config(
        folder, frequency=50.0, imu0='imu', imu0_config=mask('yaw', 'vyaw'), **more
    )


def test_a_message_that_arrives_at_the_tick_is_used_by_it(tmp_path: Path) -> None:
    """Ticks every 20 ms, messages every 10 ms on the same grid; 1 ns late is one tick late."""
    clock = stamps(100.0, 2.0)
    on_time = judge(recording({'imu': imu(clock)}), simple(tmp_path), None, Case())
    n = 90
    assert (on_time.stamp_ns[:n] == on_time.tick_ns[:n]).all()
    assert (np.diff(on_time.tick_ns) == 20_000_000).all()
    late = dataclasses.replace(imu(clock), arrival_ns=clock + 1)
    case = Case(Clock(start_ns=START_NS))
    behind = judge(recording({'imu': late}), simple(tmp_path), None, case)
    assert (behind.tick_ns[:n] - behind.stamp_ns[:n] == IMU_PERIOD).all()


def test_a_coarse_clock_delays_ticks_to_its_steps(tmp_path: Path) -> None:
    """Clock every 30 ms, timer every 20 ms: ticks at 30, 60, 90 and not between."""
    run = recording({'imu': imu(stamps(100.0, 2.0))})
    found = judge(run, simple(tmp_path), None, Case(Clock(step_ns=30_000_000)))
    assert ((found.tick_ns - START_NS) % 30_000_000 == 0).all()
    assert (np.diff(found.tick_ns[:20]) == 30_000_000).all()


def test_a_tick_period_is_cut_to_nanoseconds_and_keeps_its_grid(tmp_path: Path) -> None:
    """35 Hz: 28571428 ns."""
    run = recording({'imu': imu(stamps(100.0, 2.0))})
    config = filter_config(tmp_path, frequency=35.0, imu0='imu', imu0_config=mask('yaw'))
    found = judge(run, config)
    assert ((found.tick_ns - START_NS) % 28_571_428 == 0).all()


def test_the_timeout_is_cut_to_nanoseconds_as_the_period_is(tmp_path: Path) -> None:
    """So that without a `sensor_timeout` every tick predicts; ekf_node 3.8.3 does it [run]."""
    run = recording({'imu': imu(stamps(100.0, 0.1))})
    found = judge(
        run, filter_config(tmp_path, frequency=35.0, imu0='imu', imu0_config=mask('yaw'))
    )
    assert (np.diff(found.tick_ns) == 28_571_428).all()
    assert (found.stamp_ns[-10:] == found.tick_ns[-10:]).all()


def test_silence_is_predicted_over_after_the_timeout(tmp_path: Path) -> None:
    """Data end at 1.99 s; 50 Hz, timeout 0.1 s, 0.4 s more: rows at 2.10, 2.20, 2.30."""
    clock = stamps(100.0, 2.0)
    found = judge(recording({'imu': imu(clock)}), simple(tmp_path, sensor_timeout=0.1))
    after = found.tick_ns > clock[-1] + 10_000_000
    assert (found.stamp_ns[after] - START_NS).tolist() == [
        2_100_000_000, 2_200_000_000, 2_300_000_000
    ]  # fmt: skip
    assert (found.stamp_ns[after] == found.tick_ns[after]).all()


def test_a_queue_of_future_measurements_blocks_the_timeout(tmp_path: Path) -> None:
    """The IMU falls silent at 1 s; odometry stamped 3 s and more waits in the queue: no estimate
    between, as in the original. Without it the silence is predicted over.
    """
    heard = imu(stamps(100.0, 1.0))
    waiting = dataclasses.replace(
        odometry(stamps(10.0, 1.0) + 3_000_000_000), arrival_ns=stamps(10.0, 1.0)
    )
    config = simple(tmp_path, odom0='odom', odom0_config=mask('vx'))
    case = Case(Clock(run_on_ns=5_000_000_000))
    found = judge(recording({'imu': heard, 'odom': waiting}), config, None, case)
    silence = START_NS + 1_000_000_000, START_NS + 3_000_000_000
    assert not ((found.stamp_ns > silence[0]) & (found.stamp_ns < silence[1])).any()
    assert found.stamp_ns[-1] > silence[1]
    ended = dataclasses.replace(waiting, stamp_ns=waiting.arrival_ns)
    free = judge(recording({'imu': heard, 'odom': ended}), config, None, case)
    assert ((free.stamp_ns > silence[0]) & (free.stamp_ns < silence[1])).any()


def test_what_arrives_together_is_delivered_in_the_order_of_the_case(tmp_path: Path) -> None:
    """The first delivered initialises the filter: with the speed of odometry, variance 0.01, or
    without it. Without a case the order is odometry, pose, twist, IMU.
    """
    clock = stamps(100.0, 1.0)
    moving = np.tile([3.0, 0.0, 0.0], (len(clock), 1))
    run = recording({'imu': imu(clock), 'odom': odometry(clock, velocity=moving)})
    config = simple(tmp_path, odom0='odom', odom0_config=mask('vx'))
    plain = judge(run, config)
    first = judge(run, config, None, Case(topics=('odom', 'imu')))
    second = judge(run, config, None, Case(topics=('imu', 'odom')))
    assert plain.linear_velocity.tobytes() == first.linear_velocity.tobytes()
    # Copied at once, against corrected from a variance of 1e-9.
    assert first.linear_velocity[0, 0] == pytest.approx(3.0)
    assert second.linear_velocity[0, 0] < 0.5


def test_the_order_of_equal_stamps_matters_only_at_the_first(tmp_path: Path) -> None:
    """Wheel odometry with each IMU message but the first, noisy, in both orders of delivery."""
    rng = np.random.default_rng(3)
    clock = stamps(100.0, 2.0)
    velocity = [2.0, 0.0, 0.0] + 0.2 * rng.normal(size=(len(clock) - 1, 3))
    rate = [0.0, 0.0, 0.3] + 0.1 * rng.normal(size=(len(clock), 3))
    run = recording({'imu': imu(clock, rate=rate), 'odom': odometry(clock[1:], velocity=velocity)})
    config = simple(tmp_path, odom0='odom', odom0_config=mask('vx', 'vyaw'))
    one, other = (
        judge(run, config, None, Case(topics=order))
        for order in (('odom', 'imu'), ('imu', 'odom'))
    )
    assert one.stamp_ns.tolist() == other.stamp_ns.tolist()
    for name in ('position', 'orientation', 'linear_velocity', 'twist_covariance'):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-12)
    assert one.linear_velocity.tobytes() != other.linear_velocity.tobytes()


def test_predicting_to_current_time_stamps_the_tick(tmp_path: Path) -> None:
    late = dataclasses.replace(imu(stamps(100.0, 2.0)), arrival_ns=stamps(100.0, 2.0) + 7_000_000)
    run = recording({'imu': late})
    plain = judge(run, simple(tmp_path))
    ahead = judge(run, simple(tmp_path, predict_to_current_time=True))
    assert (ahead.stamp_ns == ahead.tick_ns).all()
    assert (plain.stamp_ns[:90] < plain.tick_ns[:90]).all()


def test_corrections_without_new_time_are_published_only_when_permitted(tmp_path: Path) -> None:
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


def test_only_newer_messages_of_a_topic_count(tmp_path: Path) -> None:
    """The second half repeats the first: refused, counted, and told."""
    clock = stamps(100.0, 1.0)
    again = np.concatenate([clock, clock])
    arrival = stamps(100.0, 2.0)
    twice = dataclasses.replace(imu(again), arrival_ns=arrival)
    found = judge(recording({'imu': twice}), simple(tmp_path))
    twist = next(part for part in found.parts if part.name == 'imu0 twist')
    # An equal stamp is accepted, so the last message of the repetition counts.
    assert (twist.received, twist.older, twist.fused) == (200, 99, 101)
    assert any('99 of 200 messages are older' in note for note in found.notes)


def test_world_increments_are_fused_as_body_velocity_as_in_the_original(tmp_path: Path) -> None:
    """Driving north, heading north, with positions that carry no orientation (as those of
    navsat_transform): the estimate slides sideways at the right speed.
    """
    clock = stamps(10.0, 10.0)
    track = np.zeros((len(clock), 3))
    track[:, 1] = 2.0 * (clock - START_NS) * 1e-9
    run = recording(
        {'gps': odometry(clock, position=track), 'imu': imu(stamps(100.0, 10.0), yaw=math.pi / 2)}
    )
    config = simple(
        tmp_path, odom0='gps', odom0_config=mask('x', 'y'), odom0_differential=True,
        two_d_mode=True,
    )  # fmt: skip
    last = judge(run, config).linear_velocity[-1]
    assert last[0] == pytest.approx(0.0, abs=1e-3)
    assert last[1] == pytest.approx(2.0, abs=1e-2)


def test_commands_move_the_estimate_and_then_brake_it(tmp_path: Path) -> None:
    """Forward command 1 m/s for 5 s, gain 0.8, no measurement of speed: 1 - exp(-0.8 t); after
    the timeout the command is zero and the deceleration gain 1.0 brakes.
    """
    run = recording({'imu': imu(stamps(100.0, 10.0)), 'cmd_vel': commands(stamps(20.0, 5.0), 1.0)})
    config = simple(
        tmp_path, use_control=True, control_timeout=0.2,
        control_config=[True, False, False, False, False, False],
        acceleration_limits=[5.0] * 6, acceleration_gains=[0.8] * 6,
        deceleration_limits=[5.0] * 6, deceleration_gains=[1.0] * 6,
    )  # fmt: skip
    found = judge(run, config)
    time = (found.stamp_ns - START_NS) * 1e-9
    forward = found.linear_velocity[:, 0]
    rising, braking = time < 5.0, (time > 5.5) & (time < 9.9)
    np.testing.assert_allclose(forward[rising], 1 - np.exp(-0.8 * time[rising]), atol=0.01)
    start = forward[braking][0]
    np.testing.assert_allclose(
        forward[braking], start * np.exp(-(time[braking] - time[braking][0])), atol=0.01
    )
    idle = judge(run, simple(tmp_path))
    assert not idle.linear_velocity.any()


def test_lever_arm_of_a_turning_imu_is_compensated(tmp_path: Path) -> None:
    """Spinning at 1 rad/s with the IMU 0.5 m ahead: without the transform 0.5 m/s^2 of
    centripetal acceleration would be integrated.
    """
    clock = stamps(100.0, 10.0)
    angle = (clock - START_NS) * 1e-9
    n = len(clock)
    spinning = imu(
        clock,
        yaw=np.angle(np.exp(1j * angle)),
        rate=np.tile([0.0, 0.0, 1.0], (n, 1)),
        force=np.tile([-0.5, 0.0, 9.80665], (n, 1)),
    )
    wheels = odometry(stamps(20.0, 10.0), rate=np.tile([0.0, 0.0, 1.0], (200, 1)))
    config = filter_config(
        tmp_path, two_d_mode=True, frequency=50.0, imu0='imu', odom0='odom',
        imu0_config=mask('yaw', 'vyaw', 'ax', 'ay'), odom0_config=mask('vyaw'),
        imu0_remove_gravitational_acceleration=True,
    )  # fmt: skip
    run = recording({'imu': spinning, 'odom': wheels})
    arm = (StaticTransform('base_link', 'imu_link', (0.5, 0.0, 0.0)),)
    compensated = judge(dataclasses.replace(run, transforms=arm), config)
    naive = judge(run, config)
    assert np.abs(compensated.linear_velocity[-1]).max() < 0.02
    assert np.abs(naive.linear_velocity[-1]).max() > 1.0


@pytest.mark.parametrize(
    'clock',
    [
        Clock(start_ns=START_NS * 2),
        Clock(start_ns=0, filter_period_ns=100),
        Clock(filter_period_ns=1),
        Clock(run_on_ns=2**61),
    ],
)
def test_a_clock_of_another_epoch_is_refused(tmp_path: Path, clock: Clock) -> None:
    """Such as the case.yaml of another recording."""
    run = recording({'imu': imu(stamps(100.0, 1.0))})
    with pytest.raises(JudgeError, match='Messages arrive from 1000000000000'):
        judge(run, simple(tmp_path), None, Case(clock))


def test_missing_topics_are_refused_with_those_that_exist(tmp_path: Path) -> None:
    run = recording({'imu': imu(stamps(100.0, 1.0))})
    config = simple(tmp_path, odom0='wheel/odom', odom0_config=mask('vx'))
    with pytest.raises(JudgeError, match=r'wheel/odom is not in memory; it has imu'):
        judge(run, config)
    empty = recording({'imu': imu(stamps(100.0, 0.0))})
    with pytest.raises(JudgeError, match='no message'):
        judge(empty, simple(tmp_path))


def test_another_imu_topic_is_used_and_named(tmp_path: Path) -> None:
    run = recording({'/bno055/imu': imu(stamps(100.0, 1.0))})
    found = judge(run, simple(tmp_path))
    assert len(found)
    assert any('/bno055/imu used instead' in note for note in found.notes)


@pytest.mark.parametrize('name', ['paper_released', 'clean'])
def test_shipped_profiles_run_on_the_default_topics(repository: Path, name: str) -> None:
    """Ideal sensors on a line: horizontal speed within 0.1 m/s after 5 s."""
    folder = repository / 'config' / 'judge'
    motion = Line(duration=15.0)
    run = judge(
        sensed(motion),
        FilterConfig.from_file(folder / f'{name}.yaml'),
        NavsatConfig.from_file(folder / f'{name}_navsat.yaml'),
    )
    error = np.hypot(*run.linear_velocity[:, :2].T) - np.linalg.norm(truth_at(run, motion), axis=1)
    kept = (run.stamp_ns > START_NS + 5e9) & (run.stamp_ns <= START_NS + 15e9)
    assert np.sqrt(np.mean(error[kept] ** 2)) < 0.1
