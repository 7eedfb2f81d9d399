# SPDX-License-Identifier: Apache-2.0
"""Run the judge on a live ROS graph with one of the shipped profiles.

Examples
--------
ros2 launch sim2real_sensors judge.launch.py use_sim_time:=true profile:=clean gps_z:=1.2
ros2 launch sim2real_sensors judge.launch.py judge:=judge_node use_sim_time:=true
ros2 bag play my_recording --clock
"""

from __future__ import annotations

import dataclasses

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import (
    AndSubstitution,
    EqualsSubstitution,
    IfElseSubstitution,
    LaunchConfiguration,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from sim2real_eval.ros_launch.arguments import (
    ARGUMENTS,
    NAVSAT,
    check_packages,
    declare,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import ended_badly, node, static_transform, typed
from sim2real_eval.ros_launch.sensors import Mounting, transforms_file


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *declare('judge', 'profile'),
            *declare(
                params_file=dataclasses.replace(
                    ARGUMENTS['judge_params_file'], default=profile_file()
                ),
                navsat_params_file=profile_file(NAVSAT),
            ),
            *declare('navsat', 'static_transforms_file', 'assume_identity_frames'),
            *declare('use_sim_time', 'namespace', 'log_level', 'sensor_transforms'),
            *declare('imu_x', 'imu_y', 'imu_z', 'imu_roll', 'imu_pitch', 'imu_yaw'),
            *declare('gps_x', 'gps_y', 'gps_z'),
            check_packages(),
            OpaqueFunction(function=transforms),
            *originals(),
            stand_in(),
        ]
    )


def originals() -> list[Node]:
    chosen = EqualsSubstitution(LaunchConfiguration('judge'), 'robot_localization')
    return [
        node(
            'ekf_node',
            package='robot_localization',
            name='ekf_filter_node',
            condition=IfCondition(chosen),
            parameters=[LaunchConfiguration('params_file')],
            on_exit=ended_badly,
        ),
        node(
            'navsat_transform_node',
            package='robot_localization',
            name='navsat_transform_node',
            condition=IfCondition(AndSubstitution(chosen, LaunchConfiguration('navsat'))),
            parameters=[LaunchConfiguration('navsat_params_file')],
            # gps/fix, odometry/gps and odometry/filtered are its own names already.
            remappings=[('imu', 'imu/data')],
            on_exit=ended_badly,
        ),
    ]


def stand_in() -> Node:
    navsat_file = IfElseSubstitution(
        LaunchConfiguration('navsat'), LaunchConfiguration('navsat_params_file'), ''
    )
    return node(
        'judge_node',
        name='ekf_filter_node',
        condition=IfCondition(EqualsSubstitution(LaunchConfiguration('judge'), 'judge_node')),
        parameters=[
            LaunchConfiguration('params_file'),
            {
                'navsat_params_file': ParameterValue(navsat_file, value_type=str),
                'static_transforms_file': typed('static_transforms_file', str),
                'assume_identity_frames': typed('assume_identity_frames', bool),
            },
        ],
        remappings=[('imu', 'imu/data')],
        on_exit=ended_badly,
    )


def transforms(context: LaunchContext) -> list[Node]:
    """Tell TF where the sensors are, and judge_node in a file."""
    given = context.launch_configurations
    if given['sensor_transforms'] != 'true':
        return []
    rpy = tuple(float(given[f'imu_{angle}']) for angle in ('roll', 'pitch', 'yaw'))
    imu, gps = (
        tuple(float(given[f'{sensor}_{axis}']) for axis in 'xyz') for sensor in ('imu', 'gps')
    )
    found = [Mounting('imu', 'imu_link', imu, rpy), Mounting('gps', 'gps_link', gps)]
    if not given['static_transforms_file']:
        given['static_transforms_file'] = str(transforms_file(found))
    return [static_transform(mounting) for mounting in found]
