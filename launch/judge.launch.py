# Copyright 2026 The sim2real_sensors contributors
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

import yaml
from launch import Action, LaunchContext, LaunchDescription
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

from sim2real_eval.judge.external.installed import find_robot_localization
from sim2real_eval.judge.robot_localization.parameter_file import read_node_parameters
from sim2real_eval.ros_launch.arguments import (
    ARGUMENTS,
    NAVSAT,
    check_packages,
    declare,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import (
    absolute_namespace,
    activate,
    describe,
    fail_on_error,
    node,
    static_transform,
    typed_argument,
)
from sim2real_eval.ros_launch.sensors import (
    SensorTransform,
    name_prefix,
    write_temporary_file,
    write_transforms_file,
)

FILTER = 'ekf_filter_node'
FRAMES = {'map_frame': 'map', 'odom_frame': 'odom', 'base_link_frame': 'base_link'}
IMU_REMAPPINGS = [(topic, LaunchConfiguration('imu_topic')) for topic in ('imu', 'imu/data')]


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('judge', 'profile'),
            *declare(
                params_file=dataclasses.replace(
                    ARGUMENTS['judge_params_file'], default=profile_file()
                ),
                navsat_params_file=profile_file(NAVSAT),
            ),
            *declare('navsat', 'static_transforms_file', 'assume_identity_frames'),
            *declare('imu_topic', 'use_sim_time', 'namespace', 'frame_prefix', 'log_level'),
            *declare('sensor_transforms'),
            *declare('imu_x', 'imu_y', 'imu_z', 'imu_roll', 'imu_pitch', 'imu_yaw'),
            *declare('gps_x', 'gps_y', 'gps_z'),
            check_packages(),
            OpaqueFunction(function=set_frames_file),
            OpaqueFunction(function=publish_transforms),
            *robot_localization_nodes(),
            judge_node(),
        ]
    )


def robot_localization_nodes() -> list[Action]:
    is_chosen = EqualsSubstitution(LaunchConfiguration('judge'), 'robot_localization')
    installed = find_robot_localization()
    is_lifecycle = installed is not None and installed.is_lifecycle
    ekf_node = node(
        'ekf_node',
        package='robot_localization',
        is_lifecycle=is_lifecycle,
        name=FILTER,
        condition=IfCondition(is_chosen),
        parameters=[LaunchConfiguration('params_file'), LaunchConfiguration('frames_file')],
        remappings=IMU_REMAPPINGS,
        on_exit=fail_on_error,
    )
    return [
        *(activate(ekf_node) if is_lifecycle else ()),
        ekf_node,
        node(
            'navsat_transform_node',
            package='robot_localization',
            name='navsat_transform_node',
            condition=IfCondition(AndSubstitution(is_chosen, LaunchConfiguration('navsat'))),
            parameters=[LaunchConfiguration('navsat_params_file')],
            # gps/fix, odometry/gps and odometry/filtered are its default names.
            remappings=IMU_REMAPPINGS,
            on_exit=fail_on_error,
        ),
    ]


def judge_node() -> Node:
    navsat_file = IfElseSubstitution(
        LaunchConfiguration('navsat'), LaunchConfiguration('navsat_params_file'), ''
    )
    return node(
        'judge_node',
        name=FILTER,
        condition=IfCondition(EqualsSubstitution(LaunchConfiguration('judge'), 'judge_node')),
        parameters=[
            LaunchConfiguration('params_file'),
            LaunchConfiguration('frames_file'),
            {
                'navsat_params_file': ParameterValue(navsat_file, value_type=str),
                'static_transforms_file': typed_argument('static_transforms_file', str),
                'assume_identity_frames': typed_argument('assume_identity_frames', bool),
            },
        ],
        remappings=IMU_REMAPPINGS,
        on_exit=fail_on_error,
    )


def set_frames_file(context: LaunchContext) -> None:
    """Write the frames of the parameter file with the prefix to a parameter file of their own.

    robot_localization declares a parameter tf_prefix, which has no effect in ROS 2.
    """
    arguments = context.launch_configurations
    arguments['frames_file'] = arguments['params_file']
    if not (prefix := arguments['frame_prefix']):
        return
    reader = read_node_parameters(arguments['params_file'], FILTER)
    frames = {name: reader.text(name, default) for name, default in FRAMES.items()}
    frames['world_frame'] = reader.text('world_frame', frames['odom_frame'])
    parameters = {name: prefix + frame for name, frame in frames.items()}
    section = name_prefix(absolute_namespace(context)) + FILTER
    content = yaml.safe_dump({section: {'ros__parameters': parameters}})
    arguments['frames_file'] = str(write_temporary_file('frames', '.yaml', content))


def publish_transforms(context: LaunchContext) -> list[Node]:
    """Publish the sensor transforms, and write them to a file for judge_node."""
    arguments = context.launch_configurations
    if arguments['sensor_transforms'] != 'true':
        return []
    rpy = tuple(float(arguments[f'imu_{angle}']) for angle in ('roll', 'pitch', 'yaw'))
    imu, gps = (
        tuple(float(arguments[f'{sensor}_{axis}']) for axis in 'xyz') for sensor in ('imu', 'gps')
    )
    sensor_transforms = [
        SensorTransform('imu', 'imu_link', imu, rpy),
        SensorTransform('gps', 'gps_link', gps),
    ]
    if not arguments['static_transforms_file']:
        path = write_transforms_file(sensor_transforms, arguments['frame_prefix'])
        arguments['static_transforms_file'] = str(path)
    return [static_transform(transform) for transform in sensor_transforms]
