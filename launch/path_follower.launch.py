# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A robot of any simulator follows a path, and simulated sensors measure it.

The simulator takes cmd_vel and publishes the true odometry. The controller gets that odometry, or,
as on a real robot, the estimate of a judge.

Examples
--------
ros2 launch sim2real_sensors path_follower.launch.py path:=waypoints.csv use_sim_time:=true
ros2 launch sim2real_sensors path_follower.launch.py path:=waypoints.csv feedback:=judge
"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import EqualsSubstitution, IfElseSubstitution, LaunchConfiguration
from launch_ros.actions import Node

from sim2real_eval.ros_launch.arguments import (
    NAVSAT,
    STATED_GPS,
    check_packages,
    declare,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import (
    describe,
    fail_on_error,
    include,
    node,
    set_imu_topic,
    set_transforms_file,
    typed_argument,
)
from sim_sensors.core.parameters import Parameter


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('path', 'controller', 'at_robot', 'stamped', 'feedback', 'ground_truth'),
            *declare(
                params_file=Parameter(
                    '',
                    '',
                    'Parameter file of path_follower_node; it overrides the other arguments.',
                )
            ),
            *declare('seed', 'run', 'imu_data_raw', sensors='[imu, gps, wheels]'),
            # As in the demo, so that the layouts show yaw and wheels.
            *declare(imu='chrono_ahrs', gps=STATED_GPS, wheels='differential'),
            *declare('sensors_params_file', 'faults_file'),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('profile', judge='judge_node', judge_params_file=profile_file()),
            *declare(navsat_params_file=profile_file(NAVSAT)),
            *declare('namespace', 'frame_prefix', 'use_sim_time', 'log_level'),
            check_packages(),
            set_imu_topic(),
            set_transforms_file(),
            include('sensors.launch.py', 'sensors_params_file'),
            # The sensors publish their transforms.
            include(
                'judge.launch.py',
                'judge_params_file',
                sensor_transforms='false',
                condition=IfCondition(uses_judge()),
            ),
            OpaqueFunction(function=start_follower),
        ]
    )


def uses_judge() -> EqualsSubstitution:
    return EqualsSubstitution(LaunchConfiguration('feedback'), 'judge')


def start_follower(context: LaunchContext) -> list[Node]:
    odometry = IfElseSubstitution(
        uses_judge(), 'odometry/filtered', LaunchConfiguration('ground_truth')
    )
    file = LaunchConfiguration('params_file').perform(context)
    return [
        node(
            'path_follower_node',
            parameters=[
                {
                    'path': typed_argument('path', str),
                    'controller': typed_argument('controller', str),
                    'at_robot': typed_argument('at_robot', bool),
                    'stamped': typed_argument('stamped', bool),
                    'frame_prefix': typed_argument('frame_prefix', str),
                },
                *([file] if file else []),
            ],
            remappings=[('ground_truth/odometry', odometry)],
            on_exit=fail_on_error,
        )
    ]
