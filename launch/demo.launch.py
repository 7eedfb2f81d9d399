# SPDX-License-Identifier: Apache-2.0
"""Demonstration without input: a car drives, sensors measure it, and the judge estimates.

Examples
--------
ros2 launch sim2real_sensors demo.launch.py
ros2 launch sim2real_sensors demo.launch.py view:=rviz loop:=true gps:=ch_rw profile:=clean
"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import LogInfo, Shutdown
from launch.conditions import IfCondition, UnlessCondition
from launch.events.process import ProcessExited
from launch.substitutions import EqualsSubstitution, LaunchConfiguration
from launch_ros.actions import Node

from sim2real_eval.ros_launch.arguments import (
    NAVSAT,
    check_packages,
    declare,
    motion_file,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import (
    fail_on_error,
    include,
    set_noise_free_imu,
    set_transforms_file,
    static_transform,
    trajectory_node,
    typed_argument,
)
from sim2real_eval.ros_launch.sensors import SensorTransform
from sim_sensors.core.shipped import config_path

SENSORS = ('imu_node', 'gps_node')
PUBLISHED = ('imu/data', 'gps/fix', 'odometry/filtered')
LAYOUTS = ('sim2real.rviz', 'plotjuggler.xml', 'foxglove.json')


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *declare('scenario', 'factor', 'loop', duration='60.0'),
            *declare(motion_params_file=motion_file()),
            *declare(
                'seed',
                'run',
                'imu',
                'gps',
                'sensors_params_file',
                'faults_file',
                noise_free_imu='',
            ),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('profile', judge='judge_node', judge_params_file=profile_file()),
            *declare(navsat_params_file=profile_file(NAVSAT)),
            *declare('view', 'namespace', 'log_level', use_sim_time='true'),
            check_packages(),
            set_transforms_file(),
            set_noise_free_imu(),
            include('sensors.launch.py', 'sensors_params_file'),
            # The sensors publish their transforms.
            include('judge.launch.py', 'judge_params_file', sensor_transforms='false'),
            trajectory_node(
                {
                    'loop': typed_argument('loop', bool),
                    'awaited': ' '.join(
                        [*(f'ground_truth/odometry:{name}' for name in SENSORS), *PUBLISHED]
                    ),
                },
                on_exit=on_motion_end,
            ),
            *viewers(),
        ]
    )


def on_motion_end(event: ProcessExited, context: LaunchContext) -> list:
    """End the launch after the motion; a viewer stays open until it is closed."""
    return fail_on_error(event, context) or [
        Shutdown(reason='the motion has ended', condition=has_view('none'))
    ]


def has_view(view: str) -> IfCondition:
    return IfCondition(EqualsSubstitution(LaunchConfiguration('view'), view))


def viewers() -> list:
    with_viewer = UnlessCondition(EqualsSubstitution(LaunchConfiguration('view'), 'none'))
    clock = {'use_sim_time': typed_argument('use_sim_time', bool)}
    layouts = {name: str(config_path('layouts', name)) for name in LAYOUTS}
    return [
        # The truth is in map and the estimate in odom; both are drawn from a common start.
        static_transform(
            SensorTransform('odom', 'odom', (0.0, 0.0, 0.0)), parent='map', condition=with_viewer
        ),
        Node(
            package='rviz2',
            executable='rviz2',
            arguments=['-d', layouts['sim2real.rviz']],
            parameters=[clock],
            condition=has_view('rviz'),
            on_exit=[Shutdown(reason='rviz2 was closed')],
        ),
        Node(
            package='plotjuggler',
            executable='plotjuggler',
            arguments=['--layout', layouts['plotjuggler.xml']],
            condition=has_view('plotjuggler'),
            on_exit=[Shutdown(reason='plotjuggler was closed')],
        ),
        Node(
            package='foxglove_bridge',
            executable='foxglove_bridge',
            parameters=[clock],
            condition=has_view('foxglove'),
        ),
        LogInfo(
            msg=f'open ws://localhost:8765 in Foxglove and import {layouts["foxglove.json"]}',
            condition=has_view('foxglove'),
        ),
    ]
