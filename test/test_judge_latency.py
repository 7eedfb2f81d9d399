# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages that arrive later than the recording says, topic by topic."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import (
    START_NS,
    YAW,
    filter_config,
    fixes,
    imu,
    mask,
    navsat_config,
    odometry,
    recording,
    simple,
    stamps,
)

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import Clock, ReplayOptions
from sim2real_eval.recording.recording import Recording

SECONDS = 4.0


def drive(odom_ns: int = START_NS) -> Recording:
    """A noisy turn: positions at 10 Hz, heading and rate at 100 Hz from 1 ms on; fixed seed."""
    rng = np.random.default_rng(11)
    clock, imu_ns = stamps(10.0, SECONDS, odom_ns), stamps(100.0, SECONDS, START_NS + 1_000_000)
    t = (imu_ns - START_NS) * 1e-9
    position = 0.1 * rng.standard_normal((len(clock), 3))
    position[:, 0] += 2.0 * (clock - START_NS) * 1e-9
    rate = np.zeros((len(t), 3))
    rate[:, 2] = 0.3 + 0.05 * rng.standard_normal(len(t))
    return recording(
        {'odom': odometry(clock, position=position), 'imu': imu(imu_ns, yaw=0.3 * t, rate=rate)}
    )


def config(folder: Path, *, smooth: bool, **more: float) -> FilterConfig:
    return filter_config(
        folder, frequency=50.0, sensor_timeout=100.0, permit_corrected_publication=True,
        smooth_lagged_data=smooth, history_length=2.0, odom0='odom',
        odom0_config=mask('x', 'y'), **YAW, **more,
    )  # fmt: skip


def late(**seconds: float) -> ReplayOptions:
    return ReplayOptions(
        latency_ns={topic: round(delay * 1e9) for topic, delay in seconds.items()}
    )


def last(judged: JudgedRun) -> np.ndarray:
    """The last estimate: pose, twist and both covariances, flat."""
    return np.concatenate([
        judged.position[-1], judged.orientation[-1], judged.linear_velocity[-1],
        judged.angular_velocity[-1], judged.pose_covariance[-1].ravel(),
        judged.twist_covariance[-1].ravel(),
    ])  # fmt: skip


@pytest.mark.parametrize('case', [late(odom=0.25), late(imu=0.25), late(odom=0.1, imu=0.3)])
def test_smoothing_processes_late_messages_at_their_stamps(
    tmp_path: Path, case: ReplayOptions
) -> None:
    """The estimate after the last message has seen the same measurements in the same order."""
    # The filter must be initialised by the same message in both runs.
    run = drive(START_NS if 'imu' in case.latency_ns else START_NS + 5_000_000)
    smoothing = config(tmp_path, smooth=True)
    on_time, delayed = judge(run, smoothing), judge(run, smoothing, None, case)
    assert delayed.stamp_ns[-1] == on_time.stamp_ns[-1]
    np.testing.assert_allclose(last(delayed), last(on_time), rtol=1e-9, atol=1e-12)
    assert delayed.parts == on_time.parts
    forgetful = judge(run, config(tmp_path, smooth=False), None, case)
    assert np.abs(forgetful.position[-1] - on_time.position[-1]).max() > 1e-3


@pytest.mark.parametrize('seconds', [0.05, 0.3])
def test_every_replayed_measurement_has_a_mahalanobis_distance(
    tmp_path: Path, seconds: float
) -> None:
    gated = config(tmp_path, smooth=True, odom0_pose_rejection_threshold=1.5)
    run = drive(START_NS + 5_000_000)
    judged = judge(run, gated, None, late(odom=seconds))
    part = next(k for k, part in enumerate(judged.parts) if part.topic == 'odom')
    corrections = judged.corrections
    distances = set(corrections.stamp_ns[corrections.part == part].tolist())
    assert len(distances) == judged.parts[part].fused + judged.parts[part].rejected
    assert judged.parts[part].rejected > 3
    assert judged.parts[part].singular == 0


def test_an_equal_latency_of_all_inputs_shifts_only_the_ticks(tmp_path: Path) -> None:
    """Stamps and estimates to the bit, through navsat_transform too; every tick 125 ms later."""
    clock = stamps(10.0, SECONDS)
    east = 2.5e-5 * (clock - START_NS) * 1e-9
    run = recording({**drive().messages, 'fix': fixes(clock, longitude=-89.4 + east)})
    both = dataclasses.replace(config(tmp_path, smooth=False), sources=(
        *config(tmp_path, smooth=False).sources,
        *filter_config(tmp_path, odom1='odometry/gps', odom1_config=mask('x', 'y')).sources,
    ))  # fmt: skip
    navsat = navsat_config(tmp_path)
    on_time = judge(run, both, navsat)
    later = judge(run, both, navsat, late(odom=0.125, imu=0.125, fix=0.125))
    assert len(on_time.gps_stamp_ns) > 30
    for field in dataclasses.fields(JudgedRun):
        before, after = getattr(on_time, field.name), getattr(later, field.name)
        if isinstance(before, np.ndarray):
            moved = 125_000_000 if field.name == 'tick_ns' else 0
            assert (before + moved).tobytes() == after.tobytes(), field.name
    assert on_time.parts == later.parts


@pytest.mark.parametrize(
    ('front_end', 'fix_ns', 'made_ns'),
    [('navsat_transform', 0, 20_000_000), ('enu', 0, 0), ('enu', 70_000_000, 70_000_000)],
)
def test_odometry_gps_arrives_after_its_stated_latency(
    tmp_path: Path, front_end: str, fix_ns: int, made_ns: int
) -> None:
    """Against a recorded topic that arrives then; navsat_transform ticks 20 ms after each fix."""
    clock = stamps(10.0, SECONDS)
    east = 2.5e-5 * (clock - START_NS) * 1e-9
    heading = imu(stamps(100.0, SECONDS))
    run = recording({'imu': heading, 'fix': fixes(clock, longitude=-89.4 + east)})
    listener = filter_config(
        tmp_path, frequency=50.0, sensor_timeout=100.0, odom0='odometry/gps',
        odom0_config=mask('x', 'y'), **YAW,
    )  # fmt: skip
    delays = {'odometry/gps': 330_000_000, 'fix': fix_ns}
    case = ReplayOptions(latency_ns=delays, front_end=front_end)
    published = judge(run, listener, navsat_config(tmp_path, zero_altitude=True), case)
    n = len(published.gps_stamp_ns)
    assert n > 30
    positions = dataclasses.replace(
        odometry(published.gps_stamp_ns, position=published.gps_position, child_frame=''),
        arrival_ns=published.gps_stamp_ns + made_ns + 330_000_000,
        pose_covariance=published.gps_covariance, twist_covariance=np.zeros((n, 6, 6)),
    )  # fmt: skip
    replay = recording({'odometry/gps': positions, 'imu': heading})
    recorded = judge(replay, listener, None, ReplayOptions(Clock(run_on_ns=400_000_000)))
    m = min(len(published), len(recorded))
    assert abs(len(published) - len(recorded)) < 5
    assert published.tick_ns[:m].tobytes() == recorded.tick_ns[:m].tobytes()
    np.testing.assert_allclose(published.position[:m], recorded.position[:m], atol=1e-12)
    assert published.parts == recorded.parts


def test_latency_is_added_to_a_recorded_arrival(tmp_path: Path) -> None:
    clock = stamps(100.0, 1.0)
    travelled = dataclasses.replace(imu(clock), arrival_ns=clock + 30_000_000)
    later = dataclasses.replace(imu(clock), arrival_ns=clock + 80_000_000)
    case = ReplayOptions(Clock(start_ns=START_NS), latency_ns={'imu': 50_000_000})
    arrival_ns = judge(recording({'imu': travelled}), simple(tmp_path), None, case)
    case = ReplayOptions(Clock(start_ns=START_NS))
    expected = judge(recording({'imu': later}), simple(tmp_path), None, case)
    assert arrival_ns.tick_ns.tobytes() == expected.tick_ns.tobytes()
    assert arrival_ns.position.tobytes() == expected.position.tobytes()


def test_the_latency_of_an_unused_topic_is_refused(tmp_path: Path) -> None:
    for topic in ('gps/fix', 'odometry/gps'):
        case = ReplayOptions(latency_ns={topic: 1})
        with pytest.raises(JudgeError, match=topic):
            judge(drive(), config(tmp_path, smooth=False), None, case)
