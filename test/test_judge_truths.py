# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Properties of the judge for all numbers: physics, symmetries, time."""

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
    simple,
    stamps,
)
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import Clock, ReplayOptions
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.gps.gps import load_gps
from sim_sensors.gps.gps import simulate as simulate_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.imu import simulate as simulate_imu
from sim_sensors.motion.scenarios import HalfSine, Line, Scenario, Standstill

FIELDS = (
    'position', 'orientation', 'linear_velocity', 'angular_velocity', 'pose_covariance',
    'twist_covariance',
)  # fmt: skip


def sensed(motion: Scenario) -> Recording:
    """Return an ideal IMU with attitude and a GPS without error, from START_NS on."""
    labels = {'seed': 1, 'run': 'truth', 'origin_ns': START_NS}
    return recording({
        '/imu/data': simulate_imu(load_imu('ideal'), motion, **labels),
        '/gps/fix': simulate_gps(load_gps('baseline'), motion, **labels),
    })  # fmt: skip


def absolute(folder: Path) -> FilterConfig:
    """GPS position; yaw, yaw rate and acceleration of the IMU; the same noise in x and y."""
    noise = [1e-4] * 2 + [0.06, 0.03, 0.03, 1e-4] + [1.0] * 2 + [0.04, 0.01, 0.01] + [0.1] * 4
    return filter_config(
        folder, frequency=50.0, two_d_mode=True, odom0='odometry/gps', odom0_config=mask('x', 'y'),
        imu0='/imu/data', imu0_config=mask('yaw', 'vyaw', 'ax', 'ay'),
        imu0_remove_gravitational_acceleration=True, process_noise_covariance=noise,
    )  # fmt: skip


def judged(folder: Path, motion: Scenario) -> JudgedRun:
    return judge(
        sensed(motion), absolute(folder), navsat_config(folder, zero_altitude=True, frequency=50.0)
    )


def world_velocity(run: JudgedRun) -> np.ndarray:
    return Rotation.from_quat(run.orientation).apply(run.linear_velocity)


def truth_at(run: JudgedRun, motion: Scenario) -> np.ndarray:
    return motion.at(np.clip((run.stamp_ns - START_NS) * 1e-9, 0.0, motion.end)).velocity


def test_a_body_at_rest_stays_at_rest(tmp_path: Path) -> None:
    """Positions pass through UTM coordinates of 5e6 m, which leaves 1e-6 m/s."""
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
    settled = run.stamp_ns <= START_NS + 15_000_000_000
    assert np.abs(error[settled]).max() < 0.02
    # It did move: the same bound fails without the motion.
    assert np.linalg.norm(truth_at(run, motion), axis=1).max() > 0.9


def test_the_accuracy_does_not_depend_on_the_heading_of_the_motion(tmp_path: Path) -> None:
    """A half-sine in four directions: equal speed to 1e-4 m/s, equal covariance of velocity."""
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
    later = {
        topic: dataclasses.replace(
            array, stamp_ns=array.stamp_ns + shift_ns, arrival_ns=array.arrival_ns + shift_ns
        )
        for topic, array in run.messages.items()
    }
    return dataclasses.replace(run, messages=later)


@pytest.mark.parametrize('shift_ns', [1, 999_999_937, 1_700_000_000_123_456_789])
def test_a_shift_of_all_stamps_changes_no_bit(tmp_path: Path, shift_ns: int) -> None:
    """Times are differences of integers; the clock starts with the first message."""
    run = sensed(HalfSine(duration=5.0))
    config, navsat = absolute(tmp_path), navsat_config(tmp_path)
    here, shifted_run = judge(run, config, navsat), judge(shifted(run, shift_ns), config, navsat)
    assert (shifted_run.stamp_ns - here.stamp_ns == shift_ns).all()
    assert (shifted_run.tick_ns - here.tick_ns == shift_ns).all()
    for field in FIELDS:
        assert getattr(here, field).tobytes() == getattr(shifted_run, field).tobytes()


def test_position_increments_in_the_world_are_fused_as_body_velocity(tmp_path: Path) -> None:
    """The original does this: driving north without orientation, the estimate slides sideways."""
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


def test_commands_accelerate_and_brake_the_estimate(tmp_path: Path) -> None:
    """1 m/s for 5 s with gain 0.8: 1 - exp(-0.8 t); after the timeout gain 1.0 brakes to zero."""
    run = recording({'imu': imu(stamps(100.0, 10.0)), 'cmd_vel': commands(stamps(20.0, 5.0), 1.0)})
    config = simple(
        tmp_path, use_control=True, control_timeout=0.2,
        control_config=[True, False, False, False, False, False],
        acceleration_limits=[5.0] * 6, acceleration_gains=[0.8] * 6,
        deceleration_limits=[5.0] * 6, deceleration_gains=[1.0] * 6,
    )  # fmt: skip
    judged = judge(run, config)
    time = (judged.stamp_ns - START_NS) * 1e-9
    forward = judged.linear_velocity[:, 0]
    rising, braking = time < 5.0, (time > 5.5) & (time < 9.9)
    np.testing.assert_allclose(forward[rising], 1 - np.exp(-0.8 * time[rising]), atol=0.01)
    start = forward[braking][0]
    np.testing.assert_allclose(
        forward[braking], start * np.exp(-(time[braking] - time[braking][0])), atol=0.01
    )
    idle = judge(run, simple(tmp_path))
    assert not idle.linear_velocity.any()


def test_the_lever_arm_of_a_rotating_imu_is_compensated(tmp_path: Path) -> None:
    """At 1 rad/s and 0.5 m, 0.5 m/s^2 of centripetal acceleration would be integrated."""
    clock = stamps(100.0, 10.0)
    yaw, n = np.angle(np.exp(1e-9j * (clock - START_NS))), len(clock)
    force = np.tile([-0.5, 0.0, 9.80665], (n, 1))
    spinning = imu(clock, yaw=yaw, rate=np.tile([0.0, 0.0, 1.0], (n, 1)), force=force)
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
    """The case.yaml of another recording has such a clock."""
    run = recording({'imu': imu(stamps(100.0, 1.0))})
    with pytest.raises(JudgeError, match='1000000000000'):
        judge(run, simple(tmp_path), None, ReplayOptions(clock))


def test_missing_topics_and_messages_are_refused(tmp_path: Path) -> None:
    config = simple(tmp_path, odom0='wheel/odom', odom0_config=mask('vx'))
    with pytest.raises(JudgeError, match=r'wheel/odom .* imu'):
        judge(recording({'imu': imu(stamps(100.0, 1.0))}), config)
    with pytest.raises(JudgeError, match='no message'):
        judge(recording({'imu': imu(stamps(100.0, 0.0))}), simple(tmp_path))


def test_another_imu_topic_is_used_and_causes_a_finding(tmp_path: Path) -> None:
    judged = judge(recording({'/bno055/imu': imu(stamps(100.0, 1.0))}), simple(tmp_path))
    assert len(judged)
    (used,) = (note.words['used'] for note in judged.notes if note.code == 'rl.other_topic')
    assert used == '/bno055/imu'


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
    settled = (run.stamp_ns > START_NS + 5e9) & (run.stamp_ns <= START_NS + 15e9)
    assert np.sqrt(np.mean(error[settled] ** 2)) < 0.1
