# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A recording with all inputs, and its delivery to the live judge step by step."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from judge_examples import (
    START_NS,
    commands,
    filter_config,
    fixes,
    imu,
    mask,
    odometry,
    recording,
    stamps,
)  # fmt: skip

from sim2real_eval.judge.estimate import ODOMETRY_FIELDS, JudgedRun
from sim2real_eval.judge.robot_localization.configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    topic_name,
)
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray

MOUNTED = (
    StaticTransform('base_link', 'imu_link', (0.3, -0.1, 0.2), (0.0, 0.0, 0.6, 0.8)),
    StaticTransform('base_link', 'gps_link', (-0.4, 0.2, 1.1), (0.0, 0.0, 0.0, 1.0)),
)


def curve(seconds: float = 4.0, transforms: tuple[StaticTransform, ...] = MOUNTED) -> Recording:
    """A noisy drive with wheel odometry, an IMU and fixes, that also turns; fixed seed."""
    rng = np.random.default_rng(7)
    imu_ns, fix_ns = stamps(100, seconds), stamps(10, seconds)
    wheel_ns = stamps(20, seconds, START_NS + 3_000_000)
    t = (imu_ns - START_NS) * 1e-9
    rate = np.zeros((len(t), 3))
    rate[:, 2] = 0.3 + 0.05 * rng.standard_normal(len(t))
    force = np.array([0.2, 0.1, 9.8]) + 0.1 * rng.standard_normal((len(t), 3))
    metres = 2e-5 * (fix_ns - START_NS) * 1e-9
    velocity = np.array([1.5, 0.0, 0.0]) + 0.1 * rng.standard_normal((len(wheel_ns), 3))
    return recording(
        {
            '/wheel/odom': odometry(wheel_ns, velocity=velocity),
            '/imu/data': imu(imu_ns, yaw=0.3 * t, rate=rate, force=force),
            '/gps/fix': fixes(fix_ns, 43.0 + 0.7 * metres, -89.4 + metres),
            '/cmd_vel': commands(stamps(5, seconds, START_NS + 1_000_000), 1.2),
        },
        transforms,
    )


def everything(folder: Path, **more: object) -> FilterConfig:
    """Wheel speed, fixes through navsat_transform, attitude, rates, acceleration, commands."""
    parameters = {'odom1_pose_rejection_threshold': 3.0, **more}
    return filter_config(
        folder, frequency=35.0, odom0='wheel/odom', odom0_config=mask('vx', 'vyaw'),
        odom1='odometry/gps', odom1_config=mask('x', 'y'), imu0='imu/data',
        imu0_config=mask('yaw', 'vyaw', 'ax', 'ay'), imu0_remove_gravitational_acceleration=True,
        use_control=True, acceleration_gains=[1.0] * 6,
        control_config=[True, False, False, False, False, True], control_timeout=0.5, **parameters,
    )  # fmt: skip


@dataclasses.dataclass
class Published:
    """Messages of a live judge, in order."""

    filtered: list[OdometryArray] = dataclasses.field(default_factory=list)
    gps: list[OdometryArray] = dataclasses.field(default_factory=list)
    back: list[FixArray] = dataclasses.field(default_factory=list)

    def bits(self) -> bytes:
        return estimate_bits(self.filtered) + gps_bits(self.gps) + fix_bits(self.back)


def estimate_bits(estimates: list[OdometryArray]) -> bytes:
    return field_bits(estimates, (*ODOMETRY_FIELDS, 'arrival_ns'))


def gps_bits(positions: list[OdometryArray]) -> bytes:
    return field_bits(positions, ('stamp_ns', 'position', 'pose_covariance'))


def field_bits(messages: list[OdometryArray], fields: tuple[str, ...]) -> bytes:
    columns = [[getattr(message, name) for message in messages] for name in fields]
    return b''.join(np.concatenate(column).tobytes() for column in columns if column)


def fix_bits(fixes: list[FixArray]) -> bytes:
    fields = [field.name for field in dataclasses.fields(FixArray) if field.name != 'frame']
    columns = [[getattr(fix, name) for fix in fixes] for name in fields]
    return b''.join(np.concatenate(column).tobytes() for column in columns if column)


def batch_bits(judged: JudgedRun) -> bytes:
    """Return the bits of a batch run in the order of `Published.bits`."""
    filtered = (*ODOMETRY_FIELDS, 'tick_ns')
    gps = ('gps_stamp_ns', 'gps_position', 'gps_covariance')
    bits = b''.join(getattr(judged, name).tobytes() for name in (*filtered, *gps))
    return bits + fix_bits([judged.filtered_fixes])


def live_judge(
    recording: Recording,
    config: FilterConfig,
    navsat: NavsatConfig | None = None,
    correct: frozenset[str] = frozenset(),
) -> LiveJudge:
    transforms = recording.transforms
    tree = FrameTree(transforms, assume_identity=not transforms)
    return LiveJudge(config, navsat, tree, correct)


def arrivals(
    live: LiveJudge, recording: Recording, case: ReplayOptions
) -> list[tuple[int, str, MessageArray]]:
    """Return every message and its input in order of arrival, ties in the order of the case."""
    topics = {topic_name(topic): array for topic, array in recording.messages.items()}
    rank = {topic: number for number, topic in enumerate(case.topics)}
    inputs: list[tuple[str, MessageArray | None]] = [
        (source.name, topics[source.topic])
        for source in sorted(live.config.sources, key=lambda s: rank.get(s.topic, len(rank)))
        if live.navsat is None or source.topic != NAVSAT_TOPIC
    ]
    if live.navsat is not None:
        inputs.append(('fix', topics.get(case.fix) or recording.gps))
        inputs.append(('heading', topics.get(case.heading) or recording.imu))
    inputs.append(('command', topics.get('cmd_vel')))
    events = [
        (int(array.arrival_ns[index]), input_name, array.take([index]))
        for input_name, array in inputs
        if array is not None
        for index in range(len(array))
    ]
    return sorted(events, key=lambda event: event[0])


def give(live: LiveJudge, input_name: str, message: Any) -> list[OdometryArray]:
    """Deliver a message; return what is published at once."""
    if input_name == 'fix':
        return live.receive_fix(message)
    if input_name == 'heading':
        live.receive_heading(message)
    elif input_name == 'command':
        live.receive_command(message)
    else:
        live.receive(input_name, message)
    return []


def step_through(
    live: LiveJudge, recording: Recording, case: ReplayOptions | None = None
) -> Published:
    """Deliver the messages and tick both nodes when due, clock step by clock step."""
    case = case or ReplayOptions()
    clock, events, out = case.clock, arrivals(live, recording, case), Published()
    start = events[0][0] if clock.start_ns is None else clock.start_ns
    period = clock.filter_period_ns or int(1e9 / live.config.frequency)
    origin = start if clock.filter_origin_ns is None else clock.filter_origin_ns
    due, navsat_due, navsat_period = origin + period, 2**62, 1
    if live.navsat is not None and live.navsat.has_timer:
        navsat_period = clock.navsat_period_ns or int(1e9 / live.navsat.frequency)
        navsat_due = navsat_period + (
            start + 20_000_000 if clock.navsat_origin_ns is None else clock.navsat_origin_ns
        )
    end, i = events[-1][0] + clock.run_on_ns, 0
    while True:
        event = min(due, navsat_due, events[i][0] if i < len(events) else 2**62)
        now = start + max(-((start - event) // clock.step_ns), 0) * clock.step_ns
        if now > end:
            return out
        while i < len(events) and events[i][0] <= now:
            out.gps += give(live, events[i][1], events[i][2])
            i += 1
        if due <= now:
            due += ((now - due) // period + 1) * period
            estimate = live.tick(now)
            if estimate is not None:
                out.filtered.append(estimate)
        if navsat_due <= now:
            navsat_due += ((now - navsat_due) // navsat_period + 1) * navsat_period
            position = live.navsat_tick()
            if position is not None:
                out.gps.append(position)
            back = live.filtered_fix(now)
            if back is not None:
                out.back.append(back)
