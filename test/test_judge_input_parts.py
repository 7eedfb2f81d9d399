# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of the inputs as plain arrays are those that the filter fuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import (
    filter_config,
    fixes,
    imu,
    mask,
    navsat_config,
    odometry,
    recording,
    stamps,
)

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.input_parts import input_parts
from sim2real_eval.judge.robot_localization.state import VX, VY, VYAW, YAW
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import TwistArray

TIMES = stamps(20.0, 2.0)
HALF = 0.5**0.5
SIDEWAYS = StaticTransform('base_link', 'log', (0.5, 0.0, 1.0), (0.0, 0.0, HALF, HALF))


def twist(velocity: np.ndarray, frame: str) -> TwistArray:
    n = len(velocity)
    covariance = np.broadcast_to(0.04 * np.eye(6), (n, 6, 6))
    return TwistArray(TIMES, TIMES, frame, velocity, np.zeros((n, 3)), covariance)


def test_a_turned_twist_feeds_the_turned_state_and_keeps_its_numbers(tmp_path: Path) -> None:
    velocity = np.random.default_rng(1).normal(size=(len(TIMES), 3))
    run = recording({'dvl': twist(velocity, 'log')}, (SIDEWAYS,))
    config = filter_config(tmp_path, twist0='/dvl', twist0_config=mask('vx'))
    (part,) = input_parts(run, config)
    assert (part.name, part.topic, part.kind, part.frame) == ('twist0', 'dvl', 'twist', 'log')
    np.testing.assert_array_equal(part.values[:, :3], velocity)
    np.testing.assert_array_equal(part.covariance[0], 0.04 * np.eye(6))
    assert part.message_mask.tolist() == [True, *[False] * 5]
    assert part.states.tolist() == [VY]
    np.testing.assert_allclose(part.rotation @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-12)
    assert part.offset.tolist() == [0.5, 0.0, 1.0]


def test_an_odometry_has_a_pose_and_a_twist(tmp_path: Path) -> None:
    yaw = np.linspace(0.0, 1.0, len(TIMES))
    run = recording({'wheels': odometry(TIMES, yaw=yaw)})
    config = filter_config(
        tmp_path, odom0='wheels', odom0_config=mask('yaw', 'vx', 'vyaw'), odom0_differential=True
    )
    pose, motion = input_parts(run, config)
    assert (pose.kind, pose.first_state, pose.differential) == ('pose', 0, True)
    np.testing.assert_allclose(pose.values[:, YAW], yaw, atol=1e-12)
    assert pose.states.tolist() == [YAW]
    assert (motion.kind, motion.first_state) == ('twist', VX)
    assert motion.states.tolist() == [VX, VYAW]


def test_absent_quantities_and_the_positions_of_navsat_transform_are_left_out(
    tmp_path: Path,
) -> None:
    messages = imu(TIMES)
    covariance = np.array(messages.orientation_covariance)
    covariance[::2, 0, 0] = -1.0
    messages = dataclasses.replace(messages, orientation_covariance=covariance)
    run = recording({'imu': messages, 'gps': fixes(TIMES)})
    config = filter_config(
        tmp_path, odom0='odometry/gps', odom0_config=mask('x', 'y'), imu0='imu',
        imu0_config=mask('yaw', 'vyaw', 'ax'),
    )  # fmt: skip
    parts = input_parts(run, config, navsat_config(tmp_path))
    assert [(part.kind, len(part.stamp_ns), part.values.shape[1]) for part in parts] == [
        ('pose', 20, 3), ('twist', 40, 3), ('acceleration', 40, 3),
    ]  # fmt: skip
    assert [part.states.tolist() for part in parts] == [[YAW], [VYAW], [12]]
    np.testing.assert_array_equal(parts[0].stamp_ns, TIMES[1::2])


def test_a_frame_without_a_transform_is_refused(tmp_path: Path) -> None:
    run = recording({'dvl': twist(np.zeros((len(TIMES), 3)), 'unknown')}, (SIDEWAYS,))
    config = filter_config(tmp_path, twist0='dvl', twist0_config=mask('vx'))
    with pytest.raises(JudgeError, match='unknown'):
        input_parts(run, config)
