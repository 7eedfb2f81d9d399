# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Demonstration without input: a car drives, sensors measure it, and the judge estimates.

Examples
--------
ros2 launch sim2real_sensors demo.launch.py
ros2 launch sim2real_sensors demo.launch.py view:=rviz loop:=true gps:=ch_rw profile:=clean
"""

from __future__ import annotations

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import LogInfo, OpaqueFunction, Shutdown
from launch.conditions import IfCondition
from launch.events.process import ProcessExited
from launch.substitutions import EqualsSubstitution, LaunchConfiguration
from launch_ros.actions import Node

from sim2real_eval.ros_launch.arguments import (
    NAVSAT,
    STATED_GPS,
    check_packages,
    declare,
    motion_file,
    profile_file,
)
from sim2real_eval.ros_launch.layouts import layout_file
from sim2real_eval.ros_launch.nodes import (
    absolute_namespace,
    describe,
    fail_on_error,
    include,
    node,
    set_clock_topic,
    set_imu_topic,
    set_noise_free_imu,
    set_transforms_file,
    static_transform,
    trajectory_node,
    typed_argument,
)
from sim2real_eval.ros_launch.sensors import SensorTransform, sensor_topics
from sim_sensors.core.config_files import parse_yaml

LAYOUTS = {'rviz': 'sim2real.rviz', 'plotjuggler': 'plotjuggler.xml', 'foxglove': 'foxglove.json'}


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('scenario', 'factor', 'loop', duration='60.0'),
            *declare(motion_params_file=motion_file()),
            *declare(sensors='[imu, gps, wheels]'),
            # Of the car that drives. Its IMU gives an orientation, its receiver a covariance.
            *declare(imu='chrono_ahrs', gps=STATED_GPS, wheels='ackermann'),
            *declare('mag', 'camera', 'vision', 'world', 'imu_data_raw', noise_free_imu=''),
            *declare('seed', 'run', 'sensors_params_file', 'faults_file'),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('profile', judge='judge_node', judge_params_file=profile_file()),
            *declare(navsat_params_file=profile_file(NAVSAT)),
            *declare('view', 'namespace', 'frame_prefix', 'log_level', use_sim_time='true'),
            check_packages(),
            set_clock_topic(),
            set_imu_topic(),
            set_transforms_file(),
            set_noise_free_imu(),
            include('sensors.launch.py', 'sensors_params_file'),
            # The sensors publish their transforms.
            include('judge.launch.py', 'judge_params_file', sensor_transforms='false'),
            OpaqueFunction(function=start_motion),
            OpaqueFunction(function=start_viewer),
        ]
    )


def start_motion(context: LaunchContext) -> list[Action]:
    """Start the car, which waits for the sensors and the judge."""
    arguments = context.launch_configurations
    names = [str(name) for name in parse_yaml(arguments['sensors'], 'sensors')]
    topics = sensor_topics(names, arguments['imu_topic'])
    awaited = [
        *(f'ground_truth/odometry:{node_name}' for node_name in topics),
        *topics.values(),
        'odometry/filtered',
    ]
    parameters = {'loop': typed_argument('loop', bool), 'awaited': ' '.join(awaited)}
    return [trajectory_node(parameters, on_exit=on_motion_end)]


def on_motion_end(event: ProcessExited, context: LaunchContext) -> list:
    """End the launch after the motion; a viewer stays open until it is closed."""
    return fail_on_error(event, context) or [
        Shutdown(reason='the motion has ended', condition=has_view('none'))
    ]


def has_view(view: str) -> IfCondition:
    return IfCondition(EqualsSubstitution(LaunchConfiguration('view'), view))


def start_viewer(context: LaunchContext) -> list[Action]:
    arguments = context.launch_configurations
    view, prefix = arguments['view'], arguments['frame_prefix']
    if view == 'none':
        return []
    layout = str(layout_file(LAYOUTS[view], absolute_namespace(context), prefix))
    if view == 'plotjuggler':
        viewer = Node(
            package='plotjuggler',
            executable='plotjuggler',
            arguments=['--layout', layout],
            on_exit=[Shutdown(reason='plotjuggler was closed')],
        )
    elif view == 'rviz':
        viewer = node(
            'rviz2',
            package='rviz2',
            arguments=['-d', layout],
            on_exit=[Shutdown(reason='rviz2 was closed')],
        )
    else:
        viewer = node('foxglove_bridge', package='foxglove_bridge')
    return [
        # The truth is in map and the estimate in odom; both are drawn from a common start.
        static_transform(SensorTransform('odom', 'odom', (0.0, 0.0, 0.0)), parent='map'),
        viewer,
        LogInfo(
            msg=f'open ws://localhost:8765 in Foxglove and import {layout}',
            condition=has_view('foxglove'),
        ),
    ]
