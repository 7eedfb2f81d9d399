# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""An input takes the message type that robot_localization subscribes to, and no other."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, fixes, imu, mask, odometry, recording, stamps

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.embedded import judge
from sim_sensors.core.measurements import MessageArray, PoseArray, TwistArray

TIMES = stamps(20.0, 2.0)
_N = len(TIMES)
_ZEROS = np.zeros((_N, 3))
_UNIT = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (_N, 4))
_CERTAIN = np.zeros((_N, 6, 6))
POSES = PoseArray(TIMES, TIMES, 'odom', _ZEROS, _UNIT, _CERTAIN)
TWISTS = TwistArray(TIMES, TIMES, 'base_link', _ZEROS, _ZEROS, _CERTAIN)


@pytest.mark.parametrize(
    ('name', 'array', 'ros_type', 'taken'),
    [
        ('twist0', TWISTS, 'geometry_msgs/TwistStamped', 'TwistWithCovarianceStamped'),
        ('twist1', TWISTS, 'geometry_msgs/Twist', 'TwistWithCovarianceStamped'),
        ('pose0', POSES, 'geometry_msgs/PoseStamped', 'PoseWithCovarianceStamped'),
        ('pose0', odometry(TIMES), 'geometry_msgs/TransformStamped', 'PoseWithCovarianceStamped'),
        ('odom2', POSES, '', 'nav_msgs/Odometry'),
        ('odom0', fixes(TIMES), '', 'odometry/gps'),
        ('imu0', odometry(TIMES), '', 'sensor_msgs/Imu'),
        # Types that no reader decodes.
        ('imu1', None, 'vectornav_msgs/CommonGroup', 'sensor_msgs/Imu'),
        ('odom0', None, 'geometry_msgs/PoseArray', 'nav_msgs/Odometry'),
    ],
)
def test_another_type_than_that_of_the_node_is_refused(
    tmp_path: Path, name: str, array: MessageArray | None, ros_type: str, taken: str
) -> None:
    full = ros_type.replace('/', '/msg/')
    run = recording({'/imu': imu(TIMES), **({'/it': array} if array else {})})
    if array is None:
        run = dataclasses.replace(run, ignored=(f'/it ({full})',))
    elif full:
        run = dataclasses.replace(run, ros_types={'/it': full})
    # Another input alone would give estimates.
    config = filter_config(
        tmp_path, imu5='imu', imu5_config=mask('vyaw'), **{name: 'it', f'{name}_config': mask('x')}
    )
    with pytest.raises(JudgeError) as error:
        judge(run, config)
    message = str(error.value)
    assert message.startswith(f'{name}: /it is {ros_type}')
    assert taken in message


def test_the_types_of_the_node_are_taken(tmp_path: Path) -> None:
    run = recording({'/pose': POSES, '/twist': TWISTS})
    types = {'/twist': 'geometry_msgs/msg/TwistWithCovarianceStamped'}
    config = filter_config(
        tmp_path, pose0='pose', pose0_config=mask('x'), twist0='twist', twist0_config=mask('vx')
    )
    parts = judge(dataclasses.replace(run, ros_types=types), config).parts
    assert [part.fused for part in parts] == [_N, _N]
